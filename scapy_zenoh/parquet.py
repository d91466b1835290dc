"""Rows as Parquet files; needs the extra ``tables``."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scapy_zenoh import arrow

GROUP_ROWS = 1 << 17  # rows that are written together


class ParquetFile:
    """Writes record batches as they come: ``with ParquetFile(path) as out: out.add(batch)``."""

    def __init__(self, path: str | Path) -> None:
        self._writer = pq.ParquetWriter(str(path), arrow.schema())
        self._batches: list[Any] = []
        self._rows = 0

    def __enter__(self) -> ParquetFile:
        return self

    def add(self, batch: Any) -> None:
        """Take one record batch."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._batches, arrow.schema()))
        self._batches, self._rows = [], 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows:
            self._flush()
        self._writer.close()
