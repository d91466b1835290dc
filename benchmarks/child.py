"""Reads captures in a process of its own, for ``decode.py``: tells rows and time of the last one, and the process's.

    python benchmarks/child.py [--plain] [--parquet FILE] CAPTURE...

Prints a JSON object: ``rows``, seconds of processor time ``spent`` on the last capture and in the ``whole`` process,
and the ``peak`` of its memory in MB (as Linux knows it: what ``getrusage`` tells begins with that of the parent).
"""

from __future__ import annotations

import argparse
import json
import time

from scapy_zenoh.recording import Recording


def write_parquet(capture: str, path: str) -> None:
    """What the command does."""
    from scapy_zenoh.cli import main as command

    command(["dissect", "--parquet", path, capture])


def main() -> None:
    """Read and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+")
    parser.add_argument("--plain", action="store_true", help="without compiled code")
    parser.add_argument("--parquet", help="write this file with the command")
    options = parser.parse_args()
    rows, spent = 0, 0.0
    for capture in options.captures:
        rows, start = 0, time.process_time()
        if options.parquet:
            write_parquet(capture, options.parquet)
        else:
            rows = sum(batch.num_rows for batch in Recording([capture], compiled=not options.plain).batches())
        spent = time.process_time() - start
    whole = time.process_time()
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(json.dumps({"rows": rows, "spent": spent, "whole": whole, "peak": peak / 1024}))


if __name__ == "__main__":
    main()
