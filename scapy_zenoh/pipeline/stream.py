"""Captures as they are recorded: the tables of a folder of rotating files, kept up to date by Spark's streaming.

After every batch the tables are what ``tables --recording`` would make of the files so far, in that order. What is
remembered of a recording between two files is the value of its key in Spark's state store (``transformWithState``): a
batch goes through its new files from there, cuts them, and leaves the memory for the next one. The stretches it found
are then written like those of any job; if that gives other rows than were counted, because a file was changed or
deleted in between, the batch is done again. It is committed under its number, once. When Spark does it again after a
crash, all that is left to do is to remember what was remembered then, which the commit has kept: files may be gone
meanwhile.

Most rows are final when they are written. What may still change is written anew by every batch, and the note of the
commit says where it is: the *tail* (what would follow if the recording ended now: batches cut in the middle, what
waits behind a hole), queries and declarations that are open, and the tables of what is known at the end.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import Row

from scapy_zenoh.pipeline import arrivals, interrupts
from scapy_zenoh.pipeline.captures import Captures, find
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.spark import one_line
from scapy_zenoh.pipeline.store import STREAM, Store
from scapy_zenoh.pipeline.stretch import SPLIT, Options, Stretch, can_be_cut, cut, split_size
from scapy_zenoh.pipeline.tables import Report, derive_tables, events_of, write_stretches
from scapy_zenoh.pipeline.writing import Derived, Pieces, Written
from scapy_zenoh.primitives import as_utf8
from scapy_zenoh.recording import Checkpoint, Recording
from scapy_zenoh.schema.tables import TABLES

FOLDER, CHECKPOINT, LEDGER, OPEN, MEMORY = "_stream", "checkpoint", "files.jsonl", "open", "memory"
POLL = 2  # seconds between two looks into the folder
MOST_PARTITIONS = 8  # of the state: a recording is in one of them
ATTEMPTS = 4  # at a batch whose files change
GREW = "it grew after it was read, what was added is missing (settle says how long to wait)"

#: Tables of what is known when a recording ends, or would end.
AT_THE_END = ("sessions", "links", "lanes", "findings", "captures")


def stream_tables(
    spark: SparkSession,
    folder: str,
    output: str | Path,
    options: Options = Options(),  # noqa: B008
    *,
    once: bool = False,
    settle: float = 10.0,
    split: int = SPLIT,
    most: int = arrivals.MOST_FILES,
    told: Callable[[int, Report], None] | None = None,
) -> None:
    """Keep the tables of a folder of rotating captures up to date, until interrupted; or ``once``.

    The newest file of a folder is read when there is a newer one or it has not changed for ``settle`` seconds.
    A batch has at most ``most`` files. ``told`` hears of every batch: its number, and what it brought.
    """
    check(folder, output)
    options, split = options.checked(), split_size([], split, None)
    if options.keylog is not None:
        raise PipelineError("a key log needs whole recordings: decrypt with tables, not with stream")
    store, source = Store(output), str(Path(folder).resolve())
    with store:
        check(folder, output)
        place = store.path / FOLDER
        place.mkdir(exist_ok=True)
        if store.note(STREAM) is None:  # from now on they follow this folder
            none = asdict(Passing({}, {}, []))
            store.commit([], [], {"name": STREAM, "batch": -1, "source": source, **none})
        batches = _Batches(store, source, options, told)
        if once:
            _wait_for_newest(source, settle)
        with _quiet(spark) as hear, interrupts.counted() as pressed:
            batches.started = lambda: hear(True)
            with _configured(spark):
                query = _query(spark, source, place, options, settle, split, most, batches.take, once)
            try:
                _wait_for_end(query, batches, pressed)
            except Exception as error:
                raise PipelineError(f"the stream stopped: {one_line(batches.error or error)}") from error
            finally:
                hear(False)
                query.stop()


def check(folder: str, output: str | Path) -> None:
    """Complain about folders that cannot be followed or written; nothing is written."""
    if not folder or not Path(folder).is_dir():
        raise PipelineError(f"{folder}: no such folder")
    store, source = Store(output), Path(folder).resolve()
    store.check()
    tables = store.path.resolve()
    if tables == source or source in tables.parents:
        raise PipelineError(f"{output}: the tables cannot be inside the folder that is read")
    note = store.note(STREAM) if store.is_there() else None
    if note is None:
        if any(True for table in TABLES for _ in (store.path / table).rglob("*.parquet")):
            raise PipelineError(f"{output}: these tables were not written by a stream; name another folder")
        return
    if note["source"] != str(source):
        raise PipelineError(f"{output}: these tables follow another folder ({note['source']})")
    _check_memory(store.path / FOLDER, note["batch"])


def _check_memory(place: Path, batch: int) -> None:
    """Complain if what Spark remembers of a stream, or the ledger, does not reach to its last batch."""
    offsets = place / CHECKPOINT / "offsets"
    batches = sorted(int(path.name) for path in offsets.glob("*") if path.name.isdigit())
    files = 0
    if batches and batches[-1] >= batch:
        with suppress(ValueError, KeyError, IndexError):  # cut short: Spark complains about that itself
            files = json.loads((offsets / str(batches[-1])).read_text().splitlines()[-1])["files"]
    elif batch >= 0:
        raise PipelineError(
            f"{place / CHECKPOINT}: what the stream remembers is gone; name another folder for the tables"
        )
    if len(arrivals.Ledger(place / LEDGER).arrivals()) < files:
        raise PipelineError(
            f"{place / LEDGER}: files that were read are missing here; name another folder for the tables"
        )


def _wait_for_newest(source: str, settle: float) -> None:
    """Give files that were just written the time after which they count as finished."""
    try:
        newest = max((Path(path).stat().st_mtime for path in find([source])), default=0.0)
    except (OSError, PipelineError):
        return
    time.sleep(max(0.0, min(settle, newest + settle - time.time() + 0.1)))


def _wait_for_end(query: Any, batches: _Batches, pressed: list[int]) -> None:
    """Wait until the query ends by itself or is interrupted; then until its batch ends, or it is interrupted again."""
    while query.isActive and not pressed:
        time.sleep(0.2)
    while query.isActive and batches.busy and len(pressed) == 1:
        time.sleep(0.1)
    if not pressed:
        query.awaitTermination()  # which tells why


@contextmanager
def _quiet(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Nobody hears what Java says on standard error, unless what this gives is called with True.

    Spark checks the state with a Python process that tells its steps, and a query that is stopped tells where it was.
    """
    system = spark._jvm.java.lang.System if hasattr(spark, "_jvm") else None  # type: ignore[union-attr]
    if system is None:  # Spark Connect: it is told elsewhere
        yield lambda _: None
        return
    errors = system.err
    nowhere = spark._jvm.java.io.PrintStream(spark._jvm.java.io.OutputStream.nullOutputStream())  # type: ignore[union-attr]

    def hear(it: bool) -> None:
        system.setErr(errors if it else nowhere)

    hear(False)
    try:
        yield hear
    finally:
        hear(True)


@contextmanager
def _configured(spark: SparkSession) -> Iterator[None]:
    """A stream takes over the configuration that its session has when it starts; later ones take that of the first.

    Spark keeps state, and shuffles, in as many parts as it says: its 200 take minutes where a few take seconds.
    """
    partitions = "spark.sql.shuffle.partitions"
    wanted = {
        partitions: str(min(int(str(spark.conf.get(partitions))), MOST_PARTITIONS)),
        "spark.sql.streaming.stateStore.providerClass":  # transformWithState wants it
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    }  # fmt: skip
    before = {name: str(spark.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _query(
    spark: SparkSession,
    source: str,
    place: Path,
    options: Options,
    settle: float,
    split: int,
    most: int,
    take: Callable[[DataFrame, int], None],
    once: bool,
) -> Any:
    arrivals.register(spark)
    files = (
        spark.readStream.format("zenoh_arrivals")
        .option("folder", source)
        .option("ledger", str(place / LEDGER))
        .option("settle", str(settle))
        .option("most", str(most))
        .load()
    )
    work = files.groupBy("recording").transformWithState(
        statefulProcessor=Following(options, split, str(place / MEMORY)),
        outputStructType="recording string, work binary",
        outputMode="Append",
        timeMode="None",
    )
    writer = work.writeStream.foreachBatch(take).option("checkpointLocation", str(place / CHECKPOINT))
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{POLL} seconds")).start()


@dataclass(frozen=True)
class Work:
    """What the new files of a recording are."""

    captures: Captures
    stretches: list[Stretch]  # the last one is the tail, which has nothing to read
    rows: int  # of messages in the others
    over: list[str]  # sessions of which nothing more can come
    read: list[tuple[str, arrivals.Arrival]]  # the files in them, and where they were found
    memory: bytes  # what is remembered behind these files
    kept: str  # the name under which the commit keeps that


@dataclass(frozen=True)
class Passing:
    """What a batch leaves until another one replaces it: places in the folder of tables."""

    tails: dict[str, list[str]]  # of recordings: rows that may still change
    open: dict[str, dict[str, str]]  # of recordings and tables: rows that wait for more
    memory: list[str]  # what is remembered; only the last batch can be done again

    def replaced(self, recordings: Sequence[str]) -> list[str]:
        """What goes when these recordings go on."""
        tails = [place for name in recordings for place in self.tails.get(name, [])]
        return [*tails, *(place for name in recordings for place in self.open.get(name, {}).values()), *self.memory]


class Following(StatefulProcessor):
    """Goes through the new files of a recording from where the last ones ended, and cuts them into stretches."""

    def __init__(self, options: Options, split: int, kept: str) -> None:
        self.options, self.split, self.kept = options, split, kept

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.memory = handle.getValueState("memory", "memory binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        files = sorted(rows, key=lambda row: row.ordinal)
        taken = [
            arrivals.Arrival(key[0], row.ordinal, os.fsdecode(bytes(row.path)), row.late, row.bytes, 0, row.head)
            for row in files
        ]
        captures = Captures(key[0], tuple(arrivals.found_at(file.path) for file in taken), files[0].late)
        name = f"{captures.name}-{files[0].ordinal}"
        kept = Path(self.kept, name)
        if kept.exists():  # this batch is committed
            self.memory.update((kept.read_bytes(),))
            return
        known = self.memory.get() if self.memory.exists() else None
        begin = end = None if known is None else Checkpoint(0, None, bytes(known[0]))
        every = self.split if can_be_cut(captures, self.options) else sys.maxsize
        stretches: list[Stretch] = []
        found = list(zip(captures.paths, taken, strict=True))
        others = [arrivals.is_another(path, file) for path, file in found]
        for is_another, some in groupby(zip(others, captures.paths, strict=True), key=itemgetter(0)):
            part = replace(captures, paths=tuple(path for _, path in some))
            if is_another:
                end = _overwritten(part, end)
            else:
                stretches += cut(part, self.options, every, end)
                assert stretches[-1].end is not None
                end = Checkpoint(0, None, stretches[-1].end.memory)
        assert end is not None
        before, after = _recording(begin), _recording(end)
        _forget_names(after)
        work = Work(
            captures,
            [*stretches, Stretch(replace(captures, paths=()), end)],
            after.follower.accounting.rows - before.follower.accounting.rows,
            sorted(_over(after) - _over(before)),
            [one for one, is_another in zip(found, others, strict=True) if not is_another],
            after.memory(),
            name,
        )
        if not captures.late:  # nothing follows a late one
            self.memory.update((work.memory,))
        yield Row(recording=captures.name, work=pickle.dumps(work, pickle.HIGHEST_PROTOCOL))


def _overwritten(captures: Captures, begin: Checkpoint | None) -> Checkpoint:
    """Go on behind files that cannot be read any more: all that comes of them is what ``captures`` says."""
    sources: list[Any] = [arrivals.Overwritten(path) for path in captures.paths]
    memory = begin.memory if begin is not None else None
    recording = Recording(sources, memory=memory, finish=False, tolerant=True, compiled=False)
    (end,) = recording.checkpoints(sys.maxsize)
    return Checkpoint(0, None, end.memory)


def _recording(stop: Checkpoint | None) -> Recording:
    """A recording that was read until there."""
    return Recording([], memory=stop.memory if stop is not None else None, compiled=False)


def _over(recording: Recording) -> set[str]:
    return {session.id for session in recording.follower.tracker.sessions if session.settled}


def _forget_names(recording: Recording) -> None:
    """Sessions that are over stay in the tables, but nobody will ask for their names."""
    for session in recording.follower.tracker.sessions:
        if session.settled:
            for side in session.sides:
                side.keys.known.clear()


class _Batches:
    """Writes and commits what the batches bring."""

    def __init__(self, store: Store, source: str, options: Options, told: Callable[[int, Report], None] | None) -> None:
        self.store, self.source, self.options, self.told = store, source, options, told
        self.ledger = arrivals.Ledger(str(store.path / FOLDER / LEDGER))
        self.grown: set[str] = set()  # files of which was told that they grew
        self.started: Callable[[], None] = lambda: None
        self.error: Exception | None = None
        self.busy = False

    def take(self, found: DataFrame, number: int) -> None:
        """Do batch ``number``, unless it is done."""
        self.busy = True
        try:
            self.started()
            self._take(found, number)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.busy = False

    def _take(self, found: DataFrame, number: int) -> None:
        note = self.store.note(STREAM)
        assert note is not None
        if number <= note["batch"]:
            found.collect()  # Spark wants its state
            return
        for attempt in range(ATTEMPTS):
            rows = found.collect()
            if not rows:
                return
            report = None
            try:
                report = self._write(found.sparkSession, number, note, [pickle.loads(bytes(row.work)) for row in rows])
            except PySparkException:  # what could be read when it was cut cannot be read any more, or worse
                if attempt == ATTEMPTS - 1:
                    raise
            if report is not None:
                if self.told is not None:
                    self.told(number, report)
                return
        raise PipelineError("captures are changed while they are read")

    def _write(self, spark: SparkSession, number: int, note: dict[str, Any], work: Sequence[Work]) -> Report | None:
        """Write what a batch brings, and commit it; None if files were changed meanwhile."""
        paths = {path for one in work for path in one.captures.paths}
        parts = [[stretch] for one in work for stretch in one.stretches[:-1]]
        report = Report(captures=len(paths), tasks=len(parts))
        before = Passing(note["tails"], note["open"], note["memory"])
        with self.store.staging() as staging:
            new = write_stretches(spark, parts, self.options, staging)
            if sum(one.rows["messages"] for one in new) != sum(one.rows for one in work):
                return None
            if any(arrivals.may_be_misread(path, taken) for one in work for path, taken in one.read):
                return None
            tails = write_stretches(spark, [[one.stretches[-1] for one in work]], self.options, staging)
            made = derive_tables(spark, self._pieces(work, new, tails, before), staging)
            self._commit(staging, number, work, [*new, *(one.over for one in made)], tails, made, before)
        for one in [*new, *(one.over for one in made)]:
            report.add(one)
        report.unread += [unread for one in tails for unread in one.unread]
        report.unread = [(path, error) for path, error in report.unread if path in paths]
        for path in self._grown():
            self.grown.add(path)
            report.unread.append((path, GREW))
        return report

    def _pieces(
        self, work: Sequence[Work], new: Sequence[Written], tails: Sequence[Written], before: Passing
    ) -> list[Pieces]:
        """What declarations and queries are made of."""
        of_new, of_tails = events_of(new), events_of(tails)
        found = []
        for one in work:
            name = one.captures.name
            waiting = {table: str(self.store.path / place) for table, place in before.open.get(name, {}).items()}
            found.append(Pieces(name, of_new.get(name, []), waiting, of_tails.get(name, []), one.over))
        return found

    def _commit(
        self,
        staging: Path,
        number: int,
        work: Sequence[Work],
        final: Sequence[Written],
        tails: Sequence[Written],
        made: Sequence[Derived],
        before: Passing,
    ) -> None:
        """Put what was written in its places, and note which of it the next batch replaces."""
        names = [one.captures.name for one in work]
        going_on = {one.captures.name for one in work if not one.captures.late}
        passing = [file for one in [*tails, *(one.open for one in made)] for file in one.files]
        moves = [(file.staged, file.place) for file in [*(file for one in final for file in one.files), *passing]]
        now = Passing(before.tails | {name: [] for name in going_on}, dict(before.open), [])
        for file in passing:
            if file.recording in going_on and file.table not in AT_THE_END:
                now.tails[file.recording].append(file.place)
        for name, left in ((one.recording, one.left) for one in made if one.recording in going_on):
            now.open[name] = {table: f"{FOLDER}/{OPEN}/{name}-{number}-{table}" for table in left}
            moves += [(path, now.open[name][table]) for table, path in left.items()]
        for one in work:
            if not one.captures.late:  # for a batch that is done again
                (staging / one.kept).write_bytes(one.memory)
                now.memory.append(f"{FOLDER}/{MEMORY}/{one.kept}")
                moves.append((str(staging / one.kept), now.memory[-1]))
        gone = before.replaced(names) + self.store.files_of(names, AT_THE_END)
        self.store.commit(moves, gone, {"name": STREAM, "batch": number, "source": self.source, **asdict(now)})

    def _grown(self) -> list[str]:
        """Files that grew after they were read, of which was not told yet."""
        grown = arrivals.grown(self.ledger.arrivals())
        found = {file: size for file, size in grown.items() if file.path not in self.grown}
        read: dict[tuple[str, str], int] = {}  # their size then
        for recording in {file.recording for file in found}:
            for place in self.store.files_of([recording], ["captures"]):
                columns = pq.ParquetFile(self.store.path / place).read(["path", "bytes"]).to_pydict()
                read |= {(recording, path): size for path, size in zip(*columns.values(), strict=True)}
        told = {file: as_utf8(file.path) for file in found}  # as tables have it
        return [file.path for file, size in found.items() if size > read.get((file.recording, told[file]), size)]
