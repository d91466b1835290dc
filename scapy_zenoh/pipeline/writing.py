"""What a task does: reads stretches and writes their rows to Parquet files, a list of which it returns."""

from __future__ import annotations

import os
import resource
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from scapy_zenoh import arrow
from scapy_zenoh.parquet import ParquetFile
from scapy_zenoh.pipeline.schema import struct
from scapy_zenoh.pipeline.store import File, place_of
from scapy_zenoh.pipeline.stretch import Options, Stretch, read, worth_compiling
from scapy_zenoh.schema.tables import OF_MESSAGES, TABLES

MOST_OPEN = 16  # files that are written at the same time; a damaged clock can bring many days

_DAY = 86_400 * 10**9


@dataclass(frozen=True)
class Written:
    """What came of a task."""

    files: list[File]
    rows: dict[str, int]
    unread: list[tuple[str, str]]  # captures that could not be read (on), and why
    peak: int  # bytes of memory that the process had at most
    seconds: float


def write(stretches: Sequence[Stretch], options: Options, staging: str) -> Written:
    """Write all tables of some stretches."""
    began = time.monotonic()
    compiled = worth_compiling(stretches, options)
    out = _Files(staging)
    unread: list[tuple[str, str]] = []
    try:
        for stretch in stretches:
            for table, batch in read(stretch, options, compiled):
                if batch.num_rows:
                    out.add(table, stretch.captures.name, batch)
                if table == "captures":
                    told = zip(batch.column("path").to_pylist(), batch.column("error").to_pylist(), strict=True)
                    unread += [(path, error) for path, error in told if error is not None]
    finally:
        out.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Written(out.files, out.rows, unread, peak, time.monotonic() - began)


class _Files:
    """The files of a task. Their names are of this attempt alone: another one may be cut short in the middle."""

    def __init__(self, staging: str) -> None:
        self.files: list[File] = []
        self.rows: dict[str, int] = {}
        self._staging, self._attempt = staging, uuid.uuid4().hex[:12]
        self._open: OrderedDict[tuple[str, str, str | None], ParquetFile] = OrderedDict()

    def add(self, table: str, recording: str, batch: Any) -> None:
        """Write rows of a table."""
        self.rows[table] = self.rows.get(table, 0) + batch.num_rows
        if table not in OF_MESSAGES:
            self._file(table, recording, None).add(batch)
            return
        days = batch.column("time").to_numpy() // _DAY
        for day in np.unique(days).tolist():
            some = batch if days[0] == days[-1] == day and (days == day).all() else batch.filter(pa.array(days == day))
            self._file(table, recording, str(np.datetime64(day, "D"))).add(some)

    def _file(self, table: str, recording: str, date: str | None) -> ParquetFile:
        key = table, recording, date
        file = self._open.get(key)
        if file is None:
            while len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            name = f"{self._attempt}-{len(self.files):04}.parquet"
            path = os.path.join(self._staging, place_of(table, recording, name, date))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.files.append(File(table, recording, path, name, date))
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
