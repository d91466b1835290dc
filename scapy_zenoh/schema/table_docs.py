"""The reference of tables and their columns: ``python -m scapy_zenoh.schema.table_docs > docs/columns.md``."""

from __future__ import annotations

from collections.abc import Iterator

from scapy_zenoh.schema.columns import Column, Type
from scapy_zenoh.schema.tables import DATE, OF_MESSAGES, RECORDING, TABLES

_INTRO = """\
# Tables and their columns

Generated from `scapy_zenoh/schema/tables.py`; do not edit. [tables.md](tables.md) says how the tables are made
and used.

Types are those of SQL. A column is null where the protocol says nothing, or where nobody knows: nothing is guessed.
Numbers of 64 bits without sign are `decimal(20,0)`.
"""

#: What a row of each table is.
ABOUT = {
    "messages": "a row for each message: of the transport, of the network, and of scouting",
    "faults": "those messages that have a fault, without the bytes they carry",
    "sessions": "a row for each session of two nodes, and for each node that sends to a multicast group",
    "links": "a row for each link, those that cannot be read included",
    "lanes": "a row for each direction, priority and reliability of a session that has sequence numbers",
    "declarations": "a row for each time that something was declared, or withdrawn without that",
    "queries": "a row for each REQUEST, with what is known of its answers",
    "fragments": "a row for each message that travelled in fragments, put together or not",
    "captures": "a row for each capture file: what it holds, and why it could not be read, if so",
    "findings": "what else was noticed: a row each",
}

#: How SQL calls a type.
_SQL: dict[Type, str] = {
    "text": "string",
    "texts": "array of string",
    "bytes": "binary",
    "bool": "boolean",
    "int8": "tinyint",
    "int32": "int",
    "int64": "bigint",
    "number": "decimal(20,0)",
    "instant": "timestamp",
    "date": "date",
}


def columns_md() -> str:
    """The whole reference as Markdown."""
    contents = [f"- [{name}](#{name}): {ABOUT[name]}" for name in TABLES]
    return "\n".join([_INTRO, *contents, *(line for name in TABLES for line in _table(name))]) + "\n"


def _table(name: str) -> Iterator[str]:
    about = ABOUT[name]
    yield from ("", f"## {name}", "", f"{about[0].upper()}{about[1:]}.", "")
    folders = (DATE, RECORDING) if name in OF_MESSAGES else (RECORDING,)
    if name == "faults":
        left_out = [column.name for column in TABLES["messages"] if column not in TABLES[name]]
        yield f"The columns are those of [messages](#messages) without {_enumerated(left_out)}."
        return
    yield from ("| column | type | meaning |", "|---|---|---|")
    yield from (_row(column) for column in TABLES[name])
    yield from (_row(column, ", the name of a folder") for column in folders)


def _row(column: Column, more: str = "") -> str:
    return f"| `{column.name}` | {_SQL[column.type]}{more} | {column.about} |"


def _enumerated(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(columns_md(), end="")
