"""The committed reference of columns is what the schema says now."""

from __future__ import annotations

from pathlib import Path

from scapy_zenoh.schema.table_docs import ABOUT, columns_md
from scapy_zenoh.schema.tables import TABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_reference_is_fresh() -> None:
    fresh = "run: python -m scapy_zenoh.schema.table_docs > docs/columns.md"
    assert (DOCS / "columns.md").read_text() == columns_md(), fresh


def test_every_table_is_explained() -> None:
    assert list(ABOUT) == list(TABLES)
    columns = [column for table in TABLES.values() for column in table]
    assert [column.name for column in columns if not column.about] == []
