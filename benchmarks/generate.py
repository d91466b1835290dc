"""Messages per second that ``generate`` makes, truth file included, for three kinds of traffic.

    python benchmarks/generate.py [--messages N]

An operation is a put, deletion, query or declaration; each gives one to eight messages on the wire.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from scapy_zenoh.generate import Shape, generate

ROUNDS = 3


def measure(shape: Shape, folder: Path) -> tuple[float, int]:
    """Processor time to make a capture of that shape, and how many network messages it has."""
    start = time.process_time()
    told = generate(shape, folder / "made.pcap")
    spent = time.process_time() - start
    wire = json.loads(told.read_text(encoding="utf-8"))["wire"]
    return spent, int(wire["network_messages"])


def main() -> None:
    """Make each kind of traffic in turn and print the best rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000, help="operations in a capture (%(default)s)")
    count = parser.parse_args().messages
    shapes = {
        "default": Shape(messages=count, sessions=10),
        "queries": Shape(messages=count, sessions=10, queries=0.6),
        "declarations": Shape(messages=count, sessions=10, declarations=0.6),
    }
    best: dict[str, tuple[float, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for name, shape in shapes.items():
                made = measure(shape, Path(folder))
                best[name] = min(made, best.get(name, made))
    for name, (spent, messages) in best.items():
        print(f"{name:<14}{count / spent:>10,.0f} operations/s {messages / spent:>10,.0f} network messages/s")


if __name__ == "__main__":
    main()
