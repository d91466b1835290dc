"""The row of a message: one shape for JSON lines, Parquet and tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from scapy_zenoh.schema import columns
from scapy_zenoh.session.record import MessageRecord


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message was seen: the packet that completed its batch, and the ends of the link."""

    capture: str
    frame: int
    time: int
    src: str
    sport: int
    dst: str
    dport: int
    proto: str


ORIGIN_COLUMNS = tuple(column.name for column in columns.ORIGIN)
RECORD_COLUMNS = tuple(column.name for column in columns.RECORD)
COLUMNS = ORIGIN_COLUMNS + RECORD_COLUMNS

#: Columns that hold bytes: hexadecimal in JSON.
BINARY = frozenset(column.name for column in columns.COLUMNS if column.type == "bytes")

Row = dict[str, Any]


def row_of(record: MessageRecord, origin: Origin) -> Row:
    """The row of a message, in the order of ``COLUMNS``."""
    row: Row = {name: getattr(origin, name) for name in ORIGIN_COLUMNS}
    for name in RECORD_COLUMNS:
        row[name] = getattr(record, name)
    return row


def to_json(row: Row) -> str:
    """A row as one line of JSON. Text that was not UTF-8 keeps its bytes as escaped surrogates."""
    values = {name: value.hex() if name in BINARY and value is not None else value for name, value in row.items()}
    return json.dumps(values, separators=(",", ":"))
