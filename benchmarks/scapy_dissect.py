"""Messages per second of Scapy dissection, interpreted and compiled, in one run.

    python benchmarks/scapy_dissect.py [CAPTURE]

Without a capture it builds a FRAME-heavy batch. With one it takes the batches of its TCP streams on port 7447.
"""

from __future__ import annotations

import argparse
import time

from scapy.layers.inet import TCP
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession

import scapy_zenoh as z
from scapy_zenoh.message import Record


def synthetic() -> list[bytes]:
    """Batches of FRAMEs with a PUSH each, some with extensions, as a busy publisher sends them."""
    plain = z.ZenohPush(scope=3) / z.ZenohPut(data=bytes(40))
    rich = z.ZenohPush(suffix="demo/sensor", exts=[z.ZenohExtQoS(priority=4)]) / z.ZenohPut(
        encoding="text/plain", data=bytes(24)
    )
    frames = [z.ZenohFrame(sn=i, msgs=[rich if i % 4 == 0 else plain]) for i in range(500)]
    return [bytes(z.ZenohBatch(msgs=frames))] * 4


def recorded(path: str) -> list[bytes]:
    """The whole batches of a capture."""
    packets = sniff(offline=path, session=TCPSession, quiet=True)
    return [bytes(b) for p in packets if TCP in p and z.ZenohStream in p for b in p[z.ZenohStream].batches]


def count(batch: Record) -> int:
    """Network messages in a batch."""
    return sum(len(m.msgs) if isinstance(m, z.ZenohFrame) else 1 for m in batch.msgs)


def rate(batches: list[bytes], seconds: float) -> float:
    """Network messages read per second of processor time."""
    read, start = 0, time.process_time()
    while True:
        for data in batches:
            read += count(z.ZenohBatch(data))
            spent = time.process_time() - start
            if spent > seconds:
                return read / spent


def main() -> None:
    """Measure both ways, alternating, and print rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", nargs="?")
    parser.add_argument("--seconds", type=float, default=2.0, help="processor time of each measurement")
    options = parser.parse_args()
    batches = recorded(options.capture) if options.capture else synthetic()
    if not batches:
        parser.error("no batches on TCP port 7447 in this capture")
    z.ZenohBatch(batches[0])  # compile
    best: dict[bool, float] = {False: 0.0, True: 0.0}
    for _ in range(3):
        for compiled in best:
            Record.compiled = compiled
            best[compiled] = max(best[compiled], rate(batches, options.seconds))
    print(f"interpreted {best[False]:>10,.0f} messages/s")
    print(f"compiled    {best[True]:>10,.0f} messages/s")
    print(f"ratio       {best[True] / best[False]:>10.1f}")


if __name__ == "__main__":
    main()
