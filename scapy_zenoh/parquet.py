"""Rows as Arrow tables and Parquet files; needs the extra ``tables``."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from scapy_zenoh.rows import COLUMNS, Row

BATCH_ROWS = 10_000

_INTEGERS = {
    "frame": "int64", "time": "int64", "sport": "int32", "dport": "int32", "batch": "int64", "msg": "int32",
    "priority": "int8", "key_scope": "int64", "entity_id": "int64", "request_id": "int64", "interest_id": "int64",
    "payload_len": "int64", "timestamp_time": "int64", "source_eid": "int64", "source_sn": "int64",
    "responder_eid": "int64", "fragments": "int32", "fault_offset": "int64",
}  # fmt: skip
#: Numbers of 64 bits without sign.
_WIDE = ("sn", "timeout_ms", "budget")
_FLAGS = ("reliable", "express", "compressed", "lowlatency", "shm")


def arrow_schema() -> Any:
    """The schema of the rows."""
    import pyarrow as pa

    def kind(name: str) -> Any:
        if name in _INTEGERS:
            return getattr(pa, _INTEGERS[name])()
        if name in _WIDE:
            return pa.decimal128(20, 0)
        if name in _FLAGS:
            return pa.bool_()
        if name in ("payload", "attachment"):
            return pa.binary()
        return pa.list_(pa.string()) if name == "locators" else pa.string()

    return pa.schema([(name, kind(name)) for name in COLUMNS])


class ParquetFile:
    """Writes rows as they come: ``with ParquetFile(path) as out: out.add(row)``."""

    def __init__(self, path: str | Path) -> None:
        import pyarrow.parquet as pq

        self._schema = arrow_schema()
        self._writer = pq.ParquetWriter(str(path), self._schema)
        self._rows: list[Row] = []

    def __enter__(self) -> ParquetFile:
        return self

    def add(self, row: Row) -> None:
        """Take one row."""
        self._rows.append(row)
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        columns = [pa.array(_values(self._rows, field.name), field.type) for field in self._schema]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        self._rows.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rows:
            self._flush()
        self._writer.close()


def _values(rows: list[Row], name: str) -> list[Any]:
    values = [row[name] for row in rows]
    if name in _WIDE:
        from decimal import Decimal

        return [None if value is None else Decimal(value) for value in values]
    return [text.encode("utf-8", "replace").decode() if isinstance(text, str) else text for text in values]
