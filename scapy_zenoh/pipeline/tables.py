"""Captures to a folder of Parquet tables: the job of ``scapy-zenoh tables``.

Three kinds of tasks. *Cutting* goes through recordings that are too large for one task and finds where to cut them;
*writing* reads stretches and writes their rows to Parquet files. What takes the messages of a whole recording to
know, the tables ``declarations`` and ``queries``, further tasks make from the events that those leave. A commit puts it
all in place.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from scapy_zenoh.pipeline import jobs
from scapy_zenoh.pipeline.captures import Places, each, find, together
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.schema import of_table
from scapy_zenoh.pipeline.store import STREAM, Store
from scapy_zenoh.pipeline.stretch import Options, Stretch, plan, split_size
from scapy_zenoh.pipeline.writing import Derived, Pieces, Written, derive, write
from scapy_zenoh.schema.tables import DATE, RECORDING, TABLES

#: Bytes of events for one task.
EVENTS = 16 << 20


@dataclass
class Report:
    """What a job did."""

    captures: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    unread: list[tuple[str, str]] = field(default_factory=list)
    tasks: int = 0
    peak: int = 0  # bytes of memory of the Python process that had most

    def add(self, written: Written) -> None:
        """Take what was written."""
        self.rows.update(written.rows)
        self.unread += written.unread
        self.peak = max(self.peak, written.peak)


def write_tables(
    spark: SparkSession,
    places: Places,
    output: str | Path,
    options: Options = Options(),  # noqa: B008
    *,
    recording: bool = False,
    split: int | None = None,
    partitions: int | None = None,
) -> Report:
    """Write the tables of captures to a folder; what it has of the same captures is replaced, the rest stays.

    ``places`` are files, folders and globs. Each file is a capture of its own, unless all are one ``recording`` in
    their order. ``split`` is how many bytes a task reads, ``partitions`` asks for about so many tasks instead.
    A recording of which only some captures are read again goes as a whole.
    """
    paths, options = check(places, output, options)
    store = Store(output)
    recordings = [together(paths, places)] if recording else each(paths)
    every = split_size(recordings, split, partitions)
    with store, store.staging() as staging:
        work = plan(recordings, options, every, partial(jobs.run, spark))
        report = Report(captures=len(paths), tasks=len(work))
        written = write_stretches(spark, work, options, staging)
        pieces = [Pieces(recording, files) for recording, files in events_of(written).items()]
        for made in derive_tables(spark, pieces, staging):
            written += [made.over, made.open]
        for one in written:
            report.add(one)
        moves = [(file.staged, file.place) for one in written for file in one.files]
        old = {*store.recordings_of(paths), *(captures.name for captures in recordings)}
        store.commit(moves, store.files_of(sorted(old)))
    return report


def check(places: Places, output: str | Path, options: Options) -> tuple[list[str], Options]:
    """The captures there are, and how tasks read them; complain about what cannot work. Nothing is written."""
    store = Store(output)
    store.check()
    if store.is_there() and store.note(STREAM) is not None:
        raise PipelineError(f"{output}: a stream writes these tables; name another folder")
    return find(places, apart=store.path), options.checked()


def write_stretches(
    spark: SparkSession, work: Sequence[Sequence[Stretch]], options: Options, staging: Path
) -> list[Written]:
    """Write the tables of stretches, a task for each piece of work."""
    return jobs.run(spark, partial(write, options=options, staging=str(staging)), work)


def events_of(written: Sequence[Written]) -> dict[str, list[str]]:
    """The files of events that were left, in their order, for each recording."""
    found: dict[str, list[str]] = {}
    for one in written:
        for recording, path in one.events:
            found.setdefault(recording, []).append(path)
    return found


def derive_tables(spark: SparkSession, pieces: Sequence[Pieces], staging: Path) -> list[Derived]:
    """Write the tables that are made of events, a task for each large recording or for many small ones."""
    work: list[list[Pieces]] = []
    room = 0
    for one in pieces:
        size = sum(map(os.path.getsize, one.events))
        if not work or size > room:
            work.append([])
            room = EVENTS
        work[-1].append(one)
        room -= size
    return [made for done in jobs.run(spark, partial(derive, staging=str(staging)), work) for made in done]


# --- reading the tables ----------------------------------------------------------------------------


def read_tables(spark: SparkSession, folder: str | Path) -> dict[str, DataFrame]:
    """The tables in a folder, by name; they are views of these names from then on."""
    store = Store(folder)
    if not store.is_there():
        raise PipelineError(f"{store.path}: there are no tables here")
    store.repair()
    found = {}
    for table in TABLES:
        schema = of_table(table)
        found[table] = spark.read.schema(schema).parquet(literal(store.path / table))
        for column in set(schema.names) & {RECORDING.name, DATE.name}:  # of which Spark forgets the comments
            found[table] = found[table].withMetadata(column, schema[column].metadata)
        found[table].createOrReplaceTempView(table)
    return found


def literal(path: str | Path) -> str:
    """A path that Spark does not take for a glob."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))
