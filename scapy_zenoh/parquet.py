"""Rows as Parquet files; needs the extra ``tables``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scapy_zenoh import arrow

GROUP_ROWS = 1 << 17  # rows that are written together,
GROUP_BYTES = 64 << 20  # unless they have more bytes


class ParquetFile:
    """Writes record batches as they come: ``with ParquetFile(path) as out: out.add(batch)``.

    If there is an error before the first one, the file is not touched.
    """

    def __init__(self, path: str | Path, schema: Any = None) -> None:
        self._schema = arrow.schema() if schema is None else schema
        # Numbers seldom repeat: looking for those that do takes time and saves nothing.
        texts = [field.name for field in self._schema if field.type == arrow.TEXT]
        if not os.access(Path(path).parent, os.W_OK):  # complain before anything is read
            open(path, "ab").close()
        self._open = partial(pq.ParquetWriter, str(path), self._schema, use_dictionary=texts, compression="zstd")
        self._writer: Any = None
        self._batches: list[Any] = []
        self._rows = self._bytes = 0

    def __enter__(self) -> ParquetFile:
        return self

    def add(self, batch: Any) -> None:
        """Take one record batch."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = self._open()
        # With one dictionary for all of them: the writer gives dictionaries up when they change.
        self._writer.write_table(pa.Table.from_batches(self._batches, self._schema).unify_dictionaries())
        self._batches, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        self._flush()
        self._writer.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._writer is not None or self._batches:
            self.close()
