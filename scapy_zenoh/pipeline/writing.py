"""What tasks do: they write rows to Parquet files, and return a list of those.

Some read stretches; what their messages tell of declarations and queries, the *events*, they leave in files that
others make tables of, recording by recording.
"""

from __future__ import annotations

import os
import resource
import uuid
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from scapy_zenoh import arrow
from scapy_zenoh.parquet import ParquetFile
from scapy_zenoh.pipeline import derived
from scapy_zenoh.pipeline.schema import struct
from scapy_zenoh.pipeline.store import File, place_of
from scapy_zenoh.pipeline.stretch import Options, Stretch, read, worth_compiling
from scapy_zenoh.schema.tables import OF_MESSAGES, TABLES

MOST_OPEN = 16  # files that are written at the same time; a damaged clock can bring many days

_DAY = 86_400 * 10**9


@dataclass
class Written:
    """What came of a task."""

    files: list[File] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    events: list[tuple[str, str]] = field(default_factory=list)  # of a recording, in this file
    unread: list[tuple[str, str]] = field(default_factory=list)  # captures that could not be read (on), and why
    peak: int = 0  # bytes of memory that the process had at most


def write(stretches: Sequence[Stretch], options: Options, staging: str) -> Written:
    """Write the rows of some stretches, and their events."""
    compiled = worth_compiling(stretches, options)
    written = Written()
    with closing(_Files(staging, written)) as out:
        for stretch in stretches:
            with closing(_Events(staging, stretch.captures.name, written)) as events:
                for table, batch in read(stretch, options, compiled):
                    out.add(table, stretch.captures.name, batch)
                    if table == "messages":
                        events.add(derived.events(batch))
                    elif table == "captures":
                        told = zip(batch.column("path").to_pylist(), batch.column("error").to_pylist(), strict=True)
                        written.unread += [(path, error) for path, error in told if error is not None]
    written.peak = _peak()
    return written


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --- tables made of events --------------------------------------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """The events of a recording: files of them in their order. ``before``: what earlier ones left open, by table."""

    recording: str
    events: Sequence[str]
    before: Mapping[str, str] = field(default_factory=dict)
    tail: Sequence[str] = ()  # events that would follow if the recording ended now
    settled: Sequence[str] = ()  # sessions of which nothing more can come


@dataclass(frozen=True)
class Derived:
    """What came of the events of a recording."""

    recording: str
    over: Written
    open: Written  # rows that may still change, as they are now
    left: dict[str, str]  # what was left open, by table: the ``before`` of the next events


def derive(pieces: Sequence[Pieces], staging: str) -> list[Derived]:
    """Write the tables that are made of events."""
    return [_derive(one, staging) for one in pieces]


def _derive(pieces: Pieces, staging: str) -> Derived:
    made = Derived(pieces.recording, Written(), Written(), {})
    with closing(_Files(staging, made.over)) as over, closing(_Files(staging, made.open)) as shown:
        for table, making in derived.DERIVED.items():
            before = pieces.before.get(table)
            rows = making(_read(before).read_all() if before is not None else None)
            for path in pieces.events:
                for batch in _read(path):
                    over.add_all(table, pieces.recording, rows.add(batch))
            over.add_all(table, pieces.recording, [rows.over(), rows.settle(pieces.settled)])
            made.left[table] = _left(rows.waiting, staging)
            rows = making(rows.waiting)
            for path in pieces.tail:
                for batch in _read(path):
                    shown.add_all(table, pieces.recording, rows.add(batch))
            shown.add_all(table, pieces.recording, [rows.over(), rows.open()])
    made.over.peak = _peak()
    return made


def _read(path: str) -> Any:
    return pa.ipc.open_stream(pa.memory_map(path))


def _left(rows: Any, staging: str) -> str:
    path = os.path.join(staging, f"open-{uuid.uuid4().hex}.arrow")
    with pa.ipc.new_stream(path, rows.schema, options=_PACKED) as out:
        out.write_table(rows)
    return path


# --- files ------------------------------------------------------------------------------------------

_PACKED = pa.ipc.IpcWriteOptions(compression="lz4")


class _Events:
    """The events of a stretch on their way to a file, which is there if there are any."""

    def __init__(self, staging: str, recording: str, written: Written) -> None:
        self._staging, self._recording, self._written = staging, recording, written
        self._out: Any = None

    def add(self, batch: Any) -> None:
        """Take some events."""
        if not batch.num_rows:
            return
        if self._out is None:
            path = os.path.join(self._staging, f"events-{uuid.uuid4().hex}.arrow")
            self._written.events.append((self._recording, path))
            self._out = pa.ipc.new_stream(path, batch.schema, options=_PACKED)
        self._out.write_batch(batch)

    def close(self) -> None:
        """There are no more."""
        if self._out is not None:
            self._out.close()


class _Files:
    """The files of a task. Their names are of this attempt alone: another one may be cut short in the middle."""

    def __init__(self, staging: str, written: Written) -> None:
        self._staging, self._written, self._attempt = staging, written, uuid.uuid4().hex[:12]
        self._open: OrderedDict[tuple[str, str, str | None], ParquetFile] = OrderedDict()

    def add(self, table: str, recording: str, batch: Any) -> None:
        """Write rows of a table."""
        if not batch.num_rows:
            return
        self._written.rows[table] += batch.num_rows
        if table not in OF_MESSAGES:
            self._file(table, recording, None).add(batch)
            return
        days = batch.column("time").to_numpy() // _DAY
        for day in np.unique(days).tolist():
            some = batch if days[0] == days[-1] == day and (days == day).all() else batch.filter(pa.array(days == day))
            self._file(table, recording, str(np.datetime64(day, "D"))).add(some)

    def add_all(self, table: str, recording: str, found: Iterable[Any]) -> None:
        """Write tables of rows."""
        for rows in found:
            for batch in arrow.encoded(rows).to_batches():
                self.add(table, recording, batch)

    def _file(self, table: str, recording: str, date: str | None) -> ParquetFile:
        key = table, recording, date
        file = self._open.get(key)
        if file is None:
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            name = f"{self._attempt}-{len(self._written.files):04}.parquet"
            path = os.path.join(self._staging, place_of(table, recording, name, date))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._written.files.append(File(table, recording, path, name, date))
            file = self._open[key] = ParquetFile(path, _schema(table))
        self._open.move_to_end(key)
        return file

    def close(self) -> None:
        """Write what is left."""
        while self._open:
            self._open.popitem()[1].close()


@cache
def _schema(table: str) -> Any:
    """The schema of a table, which tells Spark the comments too."""
    spark = {"org.apache.spark.sql.parquet.row.metadata": struct(TABLES[table]).json()}
    return arrow.schema(TABLES[table]).with_metadata(spark)
