"""Captures to tables on Spark, beside tshark with the plugin and beside the same work without Spark, in one run.

    python benchmarks/pipeline.py [--messages N] [--rounds N]

Two generated captures of N and a fifth of N messages (transport and network messages, as ``summary`` counts them) in
about 100 sessions. Measured is wall time, in a process of its own for each, after a small capture has warmed it up:

- Spark on ``local[2]``: ``write_tables`` from the capture to all tables in their places;
- Spark on ``local[1]``: the same with one core;
- without Spark: the same tables, by the same functions one after the other, and committed;
- tshark with the plugin: ``-T fields`` on a capture of the same shape with 100,000 messages, less its time for an
  empty one.

Fails when something is slower or larger than is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from decode import Tshark, Verdicts, make

from scapy_zenoh.generate import Shape
from scapy_zenoh.wireshark import find_tshark

SHAPE = Shape(sessions=100, events=0)
FOR_TSHARK = 100_000
WARM_UP = 20_000
TIMES = 5  # the large capture
WANTED_OF_TSHARK, WANTED_OF_PLAIN = 12, 1.5
LINEAR = 1.25  # seconds per message of the large capture, relative to the small one
SAME_MEMORY = 1.25  # memory of a worker for the large capture, relative to the small one


# --- in a process of its own --------------------------------------------------------------------


def with_spark(master: str, captures: list[str], folder: Path) -> list[dict[str, Any]]:
    """Write the tables of each capture with Spark."""
    from scapy_zenoh.pipeline.spark import session
    from scapy_zenoh.pipeline.tables import write_tables

    spark = session(master)
    told = []
    for number, capture in enumerate(captures):
        start = time.perf_counter()
        report = write_tables(spark, [capture], folder / str(number))
        spent = time.perf_counter() - start
        rows = report.rows["messages"]
        told.append({"seconds": spent, "rows": rows, "peak": report.peak, "tasks": report.tasks})
    spark.stop()
    return told


def without_spark(captures: list[str], folder: Path) -> list[dict[str, Any]]:
    """Write the same tables in this process."""
    from scapy_zenoh.pipeline.captures import each
    from scapy_zenoh.pipeline.store import Store
    from scapy_zenoh.pipeline.stretch import SPLIT, Options, cut, ended, pack
    from scapy_zenoh.pipeline.tables import events_of
    from scapy_zenoh.pipeline.writing import Pieces, derive, write

    told = []
    for number, capture in enumerate(captures):
        start, options = time.perf_counter(), Options()
        recordings = each([capture])
        with Store(folder / str(number)) as store, store.staging() as staging:
            (one,) = recordings
            whole = one.bytes <= SPLIT
            tasks = pack(recordings, SPLIT) if whole else [[stretch] for stretch in ended(cut(one, options, SPLIT))]
            written = [write(task, options, str(staging)) for task in tasks]
            pieces = [Pieces(recording, files) for recording, files in events_of(written).items()]
            for made in derive(pieces, str(staging)):
                written += [made.over, made.open]
            store.commit([(file.staged, file.place) for done in written for file in done.files], [])
        spent = time.perf_counter() - start
        rows = sum(done.rows["messages"] for done in written)
        told.append({"seconds": spent, "rows": rows, "peak": max(done.peak for done in written)})
    return told


# --- measuring ----------------------------------------------------------------------------------


def in_child(how: str, captures: list[Path]) -> list[dict[str, Any]]:
    """What a process tells of captures, the first of which warms it up."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--child", how, folder, *map(str, captures)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return told[1:]


class WallTshark(Tshark):
    """tshark by the clock on the wall."""

    def _run(self, capture: Path) -> float:
        start = time.perf_counter()
        super()._run(capture)
        return time.perf_counter() - start


def main() -> None:
    """Make the captures, let all take turns, print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5_000_000, help="messages in the large capture (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each has its turn (%(default)s)")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        how, folder, *captures = options.child
        run = without_spark if how == "plain" else lambda *args: with_spark(how, *args)
        print(json.dumps(run(captures, Path(folder))))
        return
    tshark = find_tshark()
    if tshark is None:
        parser.error("tshark is not installed")
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), tshark, options)


def measure(folder: Path, tshark: str, options: argparse.Namespace) -> None:
    """All of it."""
    names = ("first", "part", "small", "large")
    first, part, small, large = (folder / f"{name}.pcap" for name in names)
    make(SHAPE, WARM_UP, first)
    counts = [make(SHAPE, FOR_TSHARK, part), make(SHAPE, options.messages // TIMES, small)]
    counts.append(make(SHAPE, options.messages, large))
    size = large.stat().st_size / 1e6
    print(f"{counts[2]:,} and {counts[1]:,} messages, {size:.0f} MB the large, load {os.getloadavg()[0]:.1f}")
    reader = WallTshark(tshark, folder, part)
    rounds: list[dict[str, Any]] = []
    for _ in range(options.rounds):
        told: dict[str, Any] = {"tshark": counts[0] / reader.spent()}
        told |= {how: in_child(how, [first, small, large]) for how in ("local[2]", "local[1]", "plain")}
        for how in ("local[2]", "local[1]", "plain"):
            if [one["rows"] for one in told[how]] != counts[1:]:
                sys.exit(f"{how}: {told[how]} where there are {counts[1:]} messages")
        rounds.append(told)
    report(rounds, counts)


def report(rounds: list[dict[str, Any]], counts: list[int]) -> None:
    """Print what came of it."""
    print(f"  {'tshark with the plugin':<56} {median(told['tshark'] for told in rounds):>12,.0f} messages/s")
    for how in ("local[2]", "local[1]", "plain"):
        for number, name in enumerate(("small", "large")):
            found = [told[how][number] for told in rounds]
            rate = median(one["rows"] / one["seconds"] for one in found)
            more = f"{found[0]['tasks']} tasks" if how != "plain" else ""
            seconds = median(one["seconds"] for one in found)
            peak = median(one["peak"] for one in found) / 1e6
            print(f"  {f'{how}, {name}':<56} {rate:>12,.0f} messages/s  {seconds:.1f} s, worker {peak:.0f} MB  {more}")
    verdicts = Verdicts()
    times = median(told["local[2]"][1]["rows"] / told["local[2]"][1]["seconds"] / told["tshark"] for told in rounds)
    holds = times >= WANTED_OF_TSHARK
    verdicts.say("large", "local[2] / tshark", f"{times:.1f}", f"at least {WANTED_OF_TSHARK}", holds)
    cost = median(told["local[1]"][1]["seconds"] / told["plain"][1]["seconds"] for told in rounds)
    holds = cost <= WANTED_OF_PLAIN
    verdicts.say("large", "time of local[1] / without Spark", f"{cost:.2f}", f"at most {WANTED_OF_PLAIN}", holds)
    for how in ("local[2]", "local[1]"):
        growth = median(told[how][1]["seconds"] / counts[2] / (told[how][0]["seconds"] / counts[1]) for told in rounds)
        # A fixed cost of every job makes messages of small captures dearer: only more than linear is a failure.
        holds = growth <= LINEAR
        wanted = f"at most {LINEAR}"
        verdicts.say("growing", f"{how}: time per message, large / small", f"{growth:.2f}", wanted, holds)
        memory = median(told[how][1]["peak"] / told[how][0]["peak"] for told in rounds)
        holds = memory <= SAME_MEMORY
        verdicts.say(
            "growing", f"{how}: memory of a worker, large / small", f"{memory:.2f}", f"at most {SAME_MEMORY}", holds
        )
    if verdicts.missed:
        sys.exit("\n".join(["missed:", *verdicts.missed]))


if __name__ == "__main__":
    main()
