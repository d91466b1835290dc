"""Messages per second of the columnar decoder, beside Scapy and tshark with the plugin, in one run.

    python benchmarks/decode.py [--messages N] [--rounds N] [--large] [--cold]

Three generated captures of N messages (transport and network messages, as ``summary`` counts them): publications
above all, queries above all, declarations above all. Measured are

- link bytes to columns: the batches of all links, in memory, to arrays of what their messages say;
- capture to Arrow rows: the file to record batches, with all that sessions know;
- capture to Parquet: the command ``scapy-zenoh dissect --parquet``, from its start to its end;
- Scapy, interpreted: the classes without their fast readers, on a sample of the same batches;
- tshark with the plugin: on a capture of the same shape with a tenth of the messages, less its time for an empty one.

The compiled code is there before: when it is not, the first run takes a minute or two longer. Processor time is
measured, and all take turns: the rates are medians over the rounds, the ratios medians of the ratios within a round.
All must find the same number of messages. ``--large`` adds the time and memory for five times as many messages,
``--cold`` the time for compiling. Fails when something is slower or larger than is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lua_bridge.generate import plugin
from scapy_zenoh.bulk import engine
from scapy_zenoh.bulk.columns import Store
from scapy_zenoh.bulk.compiling import compiled
from scapy_zenoh.bulk.follower import ENOUGH, RUN
from scapy_zenoh.capture import CaptureReader
from scapy_zenoh.decode.runtime import BATCH, FAULT, PRESENT, STRIDE
from scapy_zenoh.generate import Shape, generate
from scapy_zenoh.recording import Recording
from scapy_zenoh.wireshark import find_tshark, isolated

CHILD = Path(__file__).with_name("child.py")

SHAPES = {
    "publications": Shape(sessions=10, events=0),
    "queries": Shape(sessions=10, events=0, queries=0.6),
    "declarations": Shape(sessions=10, events=0, declarations=0.6),
}
TRIAL = 10_000  # operations that tell how many messages an operation gives
FOR_SCAPY = 4_000  # messages of the sample
TIMES = 5  # the large capture
MEMORY = 1000  # MB that reading it may take
LINEAR = 0.8  # its rate, relative to that of the small one; what a start costs makes it larger than 1

FIELDS = ("msg", "srczid", "dstzid", "sn", "keyexpr", "rid", "encoding", "payload")  # of tshark, as rows have them
BODIES = ("put", "del", "query", "reply_put", "reply_del", "err")  # what ``zenoh.msg`` has besides messages

COLUMNS, ROWS, PARQUET, SCAPY, TSHARK = (
    "link bytes to columns",
    "capture to Arrow rows",
    "capture to Parquet",
    "Scapy, interpreted",
    "tshark with the plugin",
)
#: What is to be so many times as fast as what.
WANTED = ((COLUMNS, SCAPY, 1000), (COLUMNS, TSHARK, 100), (ROWS, TSHARK, 20), (PARQUET, TSHARK, 10))
ROWS_WANTED = 1_000_000  # a second


class Verdicts:
    """What is wanted and what is the case."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def say(self, where: str, what: str, value: str, wanted: str, holds: bool) -> None:
        """Print one line."""
        print(f"  {what:<48} {value:>12}   {wanted} wanted: {'holds' if holds else 'MISSED'}")
        if not holds:
            self.missed.append(f"{where}: {what} {value}")


# --- link bytes ----------------------------------------------------------------------------------


@compiled
def read(data: Any, begins: Any, ends: Any, at: int, r: Any, enough: int) -> tuple[int, int, int]:
    """Read batches from number ``at`` on until there are enough rows.

    Returns the next batch, the rows, and the slots that any of them has; -1 rows when the batch is not regular.
    """
    count = 0
    present = 0
    while at < begins.size and count < enough:
        first = count * STRIDE
        found = engine.read_batch(data, begins[at], ends[at], r, first, engine.RESERVE, False)
        if found <= 0:
            return at, -1, present
        for o in range(first, first + found * STRIDE, STRIDE):
            if r[o + FAULT] != 0:
                return at, -1, present
            present |= r[o + PRESENT]
            r[o + BATCH] = at
        count += found
        at += 1
    return at, count, present


class Links:
    """The regular batches of a capture, in memory."""

    def __init__(self, capture: Path) -> None:
        self._r = np.zeros((RUN + engine.RESERVE + 1) * STRIDE, np.int64)
        self._store = Store(ENOUGH + RUN + engine.RESERVE)
        self._arrange(_batches(capture))
        kept, at = [], 0
        while at < len(self.batches):  # one by one, without those of which a message is not compiled
            at, count, _ = read(self._data, self._begins, self._ends, at, self._r, 1)
            if count > 0:
                kept.append(self.batches[at - 1])
            else:
                at += 1
        self.left_out = len(self.batches) - len(kept)
        self._arrange(kept)

    def _arrange(self, batches: list[bytes]) -> None:
        self.batches = batches
        sizes = np.array([len(batch) for batch in batches])
        self._data = np.frombuffer(b"".join(batches), np.uint8)
        self._ends = np.cumsum(sizes)
        self._begins = self._ends - sizes + 2  # behind the size

    def sample(self, messages: int, of: int) -> Links:
        """Batches from all over that have about so many messages ``of`` all."""
        some = object.__new__(Links)
        some._r, some._store = self._r, self._store
        some._arrange(self.batches[:: max(1, of // messages)])
        return some

    def to_columns(self) -> int:
        """Read all of them; returns how many messages they have."""
        at = rows = 0
        while at < len(self.batches):
            at, count, present = read(self._data, self._begins, self._ends, at, self._r, RUN)
            self._store.add(self._r, count, present)
            rows += count
            if self._store.count >= ENOUGH:
                self._store.clear()
        self._store.clear()
        return rows

    def with_scapy(self) -> int:
        """The same with Scapy's classes."""
        import scapy_zenoh as z

        z.Record.compiled = False
        rows = 0
        for batch in self.batches:
            for message in z.ZenohBatch(batch).msgs:
                rows += 1 + (len(message.msgs) if isinstance(message, z.ZenohFrame) else 0)
        return rows


def _batches(capture: Path) -> list[bytes]:
    """The batches on all links of a capture in which nothing is missing and all is in order."""
    streams: dict[tuple[str, int, str, int], bytearray] = {}
    for packet in CaptureReader([capture]):
        streams.setdefault((packet.src, packet.sport, packet.dst, packet.dport), bytearray()).extend(packet.payload)
    found = []
    for data in streams.values():
        at = 0
        while at < len(data):
            end = at + 2 + int.from_bytes(data[at : at + 2], "little")
            found.append(bytes(data[at:end]))
            at = end
    return found


# --- processes -----------------------------------------------------------------------------------


def processor_time(command: list[str], output: Path, environment: dict[str, str]) -> float:
    """Run a command and return its seconds of processor time, user and system."""
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, env=environment)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or "Lua" in said:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{said}")
    return usage.ru_utime + usage.ru_stime


def in_child(captures: list[Path], *options: str, environment: dict[str, str] | None = None) -> dict[str, float]:
    """What ``child.py`` tells of captures."""
    command = [sys.executable, str(CHILD), *options, *map(str, captures)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


class Tshark:
    """tshark with the plugin, on one capture."""

    def __init__(self, program: str, folder: Path, capture: Path) -> None:
        self._folder, self._capture, self._output = folder, capture, folder / "tshark.txt"
        self._script, self._empty = folder / "zenoh.lua", folder / "empty.pcap"
        self._script.write_text(plugin(), "utf-8")
        self._empty.write_bytes(capture.read_bytes()[:24])
        self._program = program

    def _run(self, capture: Path) -> float:
        printed = [word for field in FIELDS for word in ("-e", f"zenoh.{field}")]
        command = [self._program, "-n", "-r", str(capture), "-X", f"lua_script:{self._script}", "-T", "fields"]
        return processor_time([*command, *printed], self._output, isolated(self._folder))

    def spent(self) -> float:
        """Seconds for the packets."""
        start = self._run(self._empty)
        return self._run(self._capture) - start

    def messages(self) -> int:
        """How many messages it printed last."""
        with self._output.open(encoding="utf-8", errors="replace") as lines:
            said = (line.split("\t", 1)[0] for line in lines)
            words = (word for text in said if text for word in text.split(","))
            return sum(not (word in BODIES or word.startswith(("declare_", "undeclare_"))) for word in words)


# --- measuring -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """Something to measure: what it is called, how many messages it reads, and seconds for it."""

    name: str
    messages: int
    spend: Callable[[], float]


def timed(work: Callable[[], int], expected: int) -> float:
    """Seconds of processor time; ends the program when the number of messages is not the expected one."""
    start = time.process_time()
    found = work()
    spent = time.process_time() - start
    if found != expected:
        sys.exit(f"{found:,} messages were found where there are {expected:,}")
    return spent


def to_rows(capture: Path) -> int:
    """Read a capture into record batches; returns how many rows they have."""
    return sum(batch.num_rows for batch in Recording([capture], compiled=True).batches())


def to_parquet(capture: Path, folder: Path, expected: int) -> float:
    """Seconds that the command takes."""
    import pyarrow.parquet as pq

    written = folder / "rows.parquet"
    command = [sys.executable, "-m", "scapy_zenoh", "dissect", "--parquet", str(written), str(capture)]
    spent = processor_time(command, folder / "parquet.txt", dict(os.environ))
    if pq.read_metadata(written).num_rows != expected:
        sys.exit(f"{written.name} has not {expected:,} rows")
    return spent


def make(shape: Shape, messages: int, capture: Path) -> int:
    """Generate a capture of about so many messages; returns how many they are."""
    found = []
    for operations in (TRIAL, 2 * TRIAL):  # what sessions begin with comes once
        generate(replace(shape, messages=operations), capture)
        found.append(to_rows(capture))
    operations = TRIAL + round((messages - found[0]) * TRIAL / (found[1] - found[0]))
    generate(replace(shape, messages=max(1, operations)), capture)
    return to_rows(capture)


def subjects(shape: Shape, messages: int, folder: Path, tshark: str) -> list[Subject]:
    """All that is measured on captures of a shape."""
    capture, part = folder / "whole.pcap", folder / "part.pcap"
    count, fewer = make(shape, messages, capture), make(shape, messages // 10, part)
    links, reader = Links(capture), Tshark(tshark, folder, part)
    read_by_links = links.to_columns()
    sample = links.sample(FOR_SCAPY, read_by_links)
    sampled = sample.to_columns()
    reader.spent()
    if reader.messages() != fewer:
        sys.exit(f"tshark printed {reader.messages():,} messages where there are {fewer:,}")
    size, kept = capture.stat().st_size / 1e6, len(links.batches)
    print(f"  {count:,} messages in {size:.1f} MB, {kept:,} batches; {links.left_out} with a handshake or so left out")
    return [
        Subject(COLUMNS, read_by_links, lambda: timed(links.to_columns, read_by_links)),
        Subject(ROWS, count, lambda: timed(lambda: to_rows(capture), count)),
        Subject(PARQUET, count, lambda: to_parquet(capture, folder, count)),
        Subject(SCAPY, sampled, lambda: timed(sample.with_scapy, sampled)),
        Subject(TSHARK, fewer, reader.spent),
    ]


def compare(name: str, options: argparse.Namespace, tshark: str, verdicts: Verdicts) -> None:
    """Measure everything on captures of one shape."""
    print(f"{name}, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        measured = subjects(SHAPES[name], options.messages, Path(folder), tshark)
        rates = [{one.name: one.messages / one.spend() for one in measured} for _ in range(options.rounds)]
    for one in measured:
        print(f"  {one.name:<48} {median(rate[one.name] for rate in rates):>12,.0f} messages/s")
    rate = median(rate[ROWS] for rate in rates)
    verdicts.say(name, f"{ROWS}, messages/s", f"{rate:,.0f}", f"at least {ROWS_WANTED:,}", rate >= ROWS_WANTED)
    for fast, slow, wanted in WANTED:
        ratio = median(rate[fast] / rate[slow] for rate in rates)
        verdicts.say(name, f"{fast} / {slow}", f"{ratio:,.1f}", f"at least {wanted:,}", ratio >= wanted)


def grow(options: argparse.Namespace, verdicts: Verdicts) -> None:
    """Measure time and memory for more messages, each in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, small, large = (folder / f"{size}.pcap" for size in ("first", "small", "large"))
        shape = SHAPES["publications"]
        make(shape, TRIAL, first)
        make(shape, options.messages, small)
        count = make(shape, TIMES * options.messages, large)
        print(f"growing to {count:,} messages in {large.stat().st_size / 1e6:.1f} MB, load {os.getloadavg()[0]:.1f}")
        rounds = [[in_child([first, capture]) for capture in (small, large)] for _ in range(options.rounds)]
        parquet = in_child([large], "--parquet", str(folder / "rows.parquet"))
    rates = [[told["rows"] / told["spent"] for told in both] for both in rounds]
    for size, rate in zip(("small", "large"), zip(*rates, strict=True), strict=True):
        print(f"  {f'{ROWS}, {size}':<48} {median(rate):>12,.0f} messages/s")
    ratio = median(large / small for small, large in rates)
    verdicts.say("growing", "rate of the large / of the small", f"{ratio:.2f}", f"at least {LINEAR}", ratio >= LINEAR)
    peaks = {ROWS: median(large["peak"] for _, large in rounds), PARQUET: parquet["peak"]}
    for what, peak in peaks.items():
        verdicts.say("growing", f"memory, {what}", f"{peak:,.0f} MB", f"below {MEMORY:,} MB", peak < MEMORY)


def compile_anew() -> None:
    """Measure what compiling and loading take, each in a process of its own that reads a small capture."""
    with tempfile.TemporaryDirectory() as name:
        capture = Path(name) / "first.pcap"
        generate(replace(SHAPES["publications"], messages=TRIAL), capture)
        print(f"a process that reads {to_rows(capture):,} messages into Arrow rows, load {os.getloadavg()[0]:.1f}")
        cache = {**os.environ, "NUMBA_CACHE_DIR": str(Path(name) / "cache")}
        for what in ("compiling", "loading what was compiled"):
            told = in_child([capture], environment=cache)
            print(f"  {what:<48} {told['whole']:>12.1f} s")
        print(f"  {'plain Python':<48} {in_child([capture], '--plain')['whole']:>12.1f} s")


def main() -> None:
    """Make the captures, let all take turns, print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages in a capture (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each has its turn (%(default)s)")
    parser.add_argument("--large", action="store_true", help="also five times as many messages: time and memory")
    parser.add_argument("--cold", action="store_true", help="also the time for compiling")
    options = parser.parse_args()
    tshark = find_tshark()
    if tshark is None:
        parser.error("tshark is not installed")
    verdicts = Verdicts()
    for name in SHAPES:
        compare(name, options, tshark, verdicts)
    if options.large:
        grow(options, verdicts)
    if options.cold:
        compile_anew()
    if verdicts.missed:
        sys.exit("\n".join(["missed:", *verdicts.missed]))


if __name__ == "__main__":
    main()
