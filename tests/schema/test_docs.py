"""The committed message reference is what the classes say now."""

from __future__ import annotations

from pathlib import Path

from scapy_zenoh.schema.docs import messages_md

REFERENCE = Path(__file__).parents[2] / "docs" / "messages.md"


def test_reference_is_fresh() -> None:
    assert REFERENCE.read_text() == messages_md(), "run: python -m scapy_zenoh.schema.docs > docs/messages.md"


def test_links_lead_somewhere() -> None:
    text = messages_md()
    anchors = {line[4:].lower() for line in text.splitlines() if line.startswith("### ")}
    targets = {part.split(")")[0] for part in text.split("](#")[1:]}
    assert targets <= anchors
