"""Rows of whole captures against what the applications say they did: all of it, and nothing else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.recording import Recording
from scapy_zenoh.rows import to_json
from tests.conftest import LAB, captures, truth_path
from tests.rows.judge import missing, unexplained

Row = dict[str, Any]
_READ: dict[Path, tuple[list[Row], dict[str, Any]]] = {}


def truth_of(path: Path) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads(truth_path(path).read_text())
    return truth


def undamaged(path: Path) -> bool:
    """The capture holds all that happened, as it was sent."""
    truth = truth_of(path)
    return not (truth.get("damage") or truth.get("capture_started_ns") or truth["capture"].get("snaplen"))


def read(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Rows and summary of a capture, read once."""
    if path not in _READ:
        keylog = truth_of(path).get("keylog")
        recording = Recording([path], keylog=path.with_name(keylog) if keylog else None)
        _READ[path] = list(recording), recording.summary()
    return _READ[path]


def slow(path: Path) -> Any:
    """A parameter; large captures take seconds."""
    large = path.stat().st_size > 1 << 20
    return pytest.param(path, id=path.name.split(".")[0], marks=[pytest.mark.slow] if large else [])


WHOLE = [slow(path) for path in captures() if undamaged(path)]
READABLE = [p for p in WHOLE if truth_of(p.values[0])["link"] != "quic"]


@pytest.mark.parametrize("capture", READABLE)
def test_everything_that_happened_is_in_the_rows(capture: Path) -> None:
    assert missing(truth_of(capture), read(capture)[0]) == []


@pytest.mark.parametrize("capture", READABLE)
def test_nothing_is_in_the_rows_that_did_not_happen(capture: Path) -> None:
    assert unexplained(truth_of(capture), read(capture)[0]) == []


@pytest.mark.parametrize("capture", WHOLE)
def test_undamaged_bytes_are_all_decoded(capture: Path) -> None:
    rows, summary = read(capture)
    assert summary["zenoh_bytes"] == summary["decoded_bytes"]
    assert (summary["undecoded_bytes"], summary["missing_bytes"], summary["faults"]) == (0, 0, 0)
    assert summary["messages"] == len(rows)


@pytest.mark.slow
def test_other_judge_gives_full_marks() -> None:
    """The large collection has a judge of its own."""
    if not (LAB / "judge.py").exists():
        return
    spec = importlib.util.spec_from_file_location("lab_judge", LAB / "judge.py")
    assert spec is not None and spec.loader is not None
    judge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(judge)
    parts = ("deliveries", "samples", "attributes", "queries", "replies", "gets", "declared", "hellos", "programs")
    for (capture,) in (param.values for param in WHOLE):
        marks = judge.judge(truth_of(capture), [json.loads(to_json(row)) for row in read(capture)[0]])
        assert {part: marks[part] for part in parts if marks[part][0] != marks[part][1]} == {}, capture.name


def test_quic_gives_an_opaque_link_and_no_rows() -> None:
    for (capture,) in (param.values for param in WHOLE if param not in READABLE):
        rows, summary = read(capture)
        opaque = [link for link in summary["links"] if link.get("opaque")]
        assert rows == [] and summary["zenoh_bytes"] == 0
        assert opaque and all(link["proto"] == "quic" and link["bytes"] > 1200 for link in opaque)


def test_tls_without_keys_gives_an_opaque_link_and_no_rows() -> None:
    for (capture,) in (param.values for param in WHOLE if truth_of(param.values[0]).get("keylog")):
        recording = Recording([capture])
        assert list(recording) == []
        summary = recording.summary()
        assert summary["zenoh_bytes"] == 0
        assert {link["proto"] for link in summary["links"] if link.get("opaque")} == {"tls"}


# --- the judge itself ---------------------------------------------------------------------------


def a_capture(name: str) -> Path:
    return next(path for path in captures() if path.name.split(".")[0] == name)


@pytest.mark.parametrize("kind", ["push", "request", "response", "declare", "close"])
def test_judge_sees_a_row_that_is_not_there(kind: str) -> None:
    """Without any one kind of row something is missing."""
    names = {"push": "s08_qos", "close": "s08_qos", "declare": "s06_declared"}
    capture = a_capture(names.get(kind, "s04_query"))
    rows = [row for row in read(capture)[0] if row["kind"] != kind]
    assert missing(truth_of(capture), rows)


@pytest.mark.parametrize("column", ["key", "payload", "priority", "congestion", "express", "encoding", "attachment"])
def test_judge_sees_a_value_that_is_wrong(column: str) -> None:
    capture = a_capture("s06_declared")
    other = {"priority": 1, "express": None}
    rows = [{**row, column: other.get(column, b"?" if column in ("payload", "attachment") else "?")}
            if row["kind"] == "push" else row for row in read(capture)[0]]  # fmt: skip
    assert missing(truth_of(capture), rows)
    assert unexplained(truth_of(capture), rows)


def test_judge_sees_a_row_that_is_there_twice() -> None:
    capture = a_capture("s06_declared")
    rows = read(capture)[0]
    for kind in ("push", "request", "response"):
        twice = next(number for number, row in enumerate(rows) if row["kind"] == kind)
        assert len(unexplained(truth_of(capture), [*rows[: twice + 1], *rows[twice:]])) == 1
