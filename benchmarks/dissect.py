"""Messages per second and peak memory of ``dissect``, from a generated capture to rows.

    python benchmarks/dissect.py [--messages N ...]

Memory must not grow with the capture: give two sizes and compare.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scapy_zenoh.generate import Shape, generate


def measure(capture: str) -> None:
    """Read a capture in this process and print rows, processor time and peak memory."""
    from scapy_zenoh.recording import Recording

    start, rows = time.process_time(), 0
    for _ in Recording([capture]):
        rows += 1
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{rows:>12,} rows {spent:>8.1f} s {rows / spent:>10,.0f} rows/s {peak:>6,} MB")


def main() -> None:
    """Generate captures of each size and read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        measure(options.read)
        return
    with tempfile.TemporaryDirectory() as folder:
        for count in options.messages:
            capture = Path(folder) / f"{count}.pcap"
            generate(Shape(messages=count, sessions=10, events=0), capture)
            print(f"{count:>10,} operations, {capture.stat().st_size / 1e6:>6.1f} MB", end=" ", flush=True)
            subprocess.run([sys.executable, __file__, "--read", str(capture)], check=True)


if __name__ == "__main__":
    main()
