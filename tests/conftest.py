"""What all tests share: where real traffic and vectors come from, and how skips count.

The folder in ``ZENOH_LAB`` is a larger collection with the layout of ``tests/data``:
``captures/*.pcap*`` each with a ``.truth.json``, ``vectors/*.jsonl``, ``protocol/vectors.json``.
Without it the tests run on the small collection that is shipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.config import conf

conf.debug_dissector = True  # a mistake of ours must surface, not become Raw

LAB = Path(os.environ.get("ZENOH_LAB") or Path(__file__).parent / "data")


def captures() -> list[Path]:
    """Every capture with a truth file."""
    return sorted(p for p in (LAB / "captures").glob("*.pcap*") if truth_path(p).exists())


def truth_path(capture: Path) -> Path:
    """The truth file of a capture."""
    return capture.with_name(capture.name.split(".")[0] + ".truth.json")


def vector_rows(name: str) -> list[dict[str, Any]]:
    """The rows of a vector file."""
    return [json.loads(line) for line in (LAB / "vectors" / name).read_text().splitlines()]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Under CI=true a skipped test has failed: everything it needs is installed there."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.skipped and os.environ.get("CI") == "true":
        report.outcome = "failed"
        report.longrepr = f"skipped under CI=true: {report.longrepr}"
