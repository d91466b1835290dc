"""Captures to a folder of Parquet tables: the job of ``scapy-zenoh tables``.

Two kinds of tasks. *Cutting* goes through recordings that are too large for one task and finds where to cut them;
*writing* reads stretches and writes their rows to Parquet files. What takes the messages of a whole recording to
know, the tables ``declarations`` and ``queries``, Spark then makes from what was written. A commit puts it all in
place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from scapy_zenoh.pipeline import derived, jobs
from scapy_zenoh.pipeline.captures import Captures, Places, each, find, together
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.schema import of_table
from scapy_zenoh.pipeline.store import STREAM, File, Store
from scapy_zenoh.pipeline.stretch import Options, Stretch, cut, ended, pack, split_size, too_large
from scapy_zenoh.pipeline.writing import Written, write
from scapy_zenoh.schema.tables import TABLES

#: Tables that are made from messages.
DERIVED: dict[str, Callable[..., DataFrame]] = {
    "declarations": derived.declarations,
    "queries": derived.queries,
}
#: The messages that those are made from.
OF_INTEREST = ("declare", "request", "response", "response_final")


@dataclass
class Report:
    """What a job did."""

    captures: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    unread: list[tuple[str, str]] = field(default_factory=list)
    tasks: int = 0
    peak: int = 0  # bytes of memory of the Python process that had most

    def add(self, written: Written) -> None:
        """Take what came of a task."""
        self.rows.update(written.rows)
        self.unread += written.unread
        self.tasks += 1
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
        work = plan(spark, recordings, options, every)
        report = Report(captures=len(paths))
        files = write_stretches(spark, work, options, staging, report)
        files += derive(spark, staging, files, report)
        moves = [(file.staged, file.place) for file in files]
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


def plan(spark: SparkSession, recordings: Sequence[Captures], options: Options, every: int) -> list[Sequence[Stretch]]:
    """What each task reads, the largest first."""
    large, small = too_large(recordings, options, every)
    tasks: list[Sequence[Stretch]] = [
        [stretch]
        for stretches in jobs.run(spark, partial(_cut, options=options, every=every), large)
        for stretch in stretches
    ]
    return tasks + sorted(pack(small, every), key=lambda task: -sum(stretch.captures.bytes for stretch in task))


def _cut(captures: Captures, options: Options, every: int) -> list[Stretch]:
    return ended(cut(captures, options, every))


def write_stretches(
    spark: SparkSession, work: Sequence[Sequence[Stretch]], options: Options, staging: Path, report: Report
) -> list[File]:
    """Write the tables of stretches, a task for each piece of work."""
    files: list[File] = []
    for written in jobs.run(spark, partial(_write, options=options, staging=str(staging)), work):
        report.add(written)
        files += written.files
    return files


def _write(stretches: Sequence[Stretch], options: Options, staging: str) -> Written:
    return write(stretches, options, staging)


# --- tables that are made from messages ------------------------------------------------------------


def derive(spark: SparkSession, staging: Path, files: Sequence[File], report: Report) -> list[File]:
    """Make the tables that follow from messages which are not in their place yet."""
    messages = staged(spark, "messages", staging, files)
    if messages is None:
        return []
    messages = messages.where(F.col("kind").isin(*OF_INTEREST))
    return [file for table, make in DERIVED.items() for file in stage(make(messages), table, staging, report)]


def staged(spark: SparkSession, table: str, staging: Path, files: Sequence[File]) -> DataFrame | None:
    """The rows of a table in files that are not in their place yet."""
    paths = [file.staged for file in files if file.table == table]
    if not paths:
        return None
    reader = spark.read.schema(of_table(table)).option("basePath", str(staging / table))
    return reader.parquet(*map(literal, paths))


def stage(rows: DataFrame, table: str, staging: Path, report: Report) -> list[File]:
    """Write rows of a table, which has no dates, by Spark."""
    place = staging / table
    schema = of_table(table)
    rows = rows.select(*schema.names).hint("rebalance", "recording").mapInArrow(_explained, schema)
    rows.write.partitionBy("recording").parquet(str(place))
    found = []
    for path in sorted(place.glob("recording=*/*.parquet")):
        report.rows[table] += pq.ParquetFile(path).metadata.num_rows
        found.append(File(table, path.parent.name.partition("=")[2], str(path), path.name))
    return found


def _explained(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows. Spark forgets the comments of columns that it computes, but not of those that Python gives."""
    return batches


# --- reading the tables ----------------------------------------------------------------------------


def read_tables(spark: SparkSession, folder: str | Path) -> dict[str, DataFrame]:
    """The tables in a folder, by name; they are views of these names from then on."""
    store = Store(folder)
    if not store.is_there():
        raise PipelineError(f"{store.path}: there are no tables here")
    store.repair()
    found = {}
    for table in TABLES:
        found[table] = spark.read.schema(of_table(table)).parquet(literal(store.path / table))
        found[table].createOrReplaceTempView(table)
    return found


def literal(path: str | Path) -> str:
    """A path that Spark does not take for a glob."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path))
