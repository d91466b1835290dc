"""``dissect`` and ``summary`` as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.cli import main
from tests.conftest import captures
from tests.rows.files import load
from tests.rows.test_truth import truth_of
from tests.wire import UDP, ipv4, pcap, record

ROOT = Path(__file__).parents[2]
Row = dict[str, Any]

#: The columns of the row of a message, as others rely on them.
COLUMNS = (
    "capture frame time src sport dst dport proto link session src_zid dst_zid batch msg layer kind body sn reliable "
    "priority congestion express key_scope key_suffix key_mapping key entity_id request_id interest_id encoding "
    "payload_len payload timestamp_time timestamp_id attachment source_zid source_eid source_sn parameters target "
    "consolidation timeout_ms budget whatami locators reason responder_zid responder_eid interest_mode "
    "interest_options fragments compressed lowlatency shm fault"
).split()

#: The figures of the accounting.
FIGURES = (
    "packets zenoh_packets zenoh_bytes decoded_bytes undecoded_bytes missing_bytes messages faults sessions"
).split()


def capture(name: str) -> Path:
    return next(path for path in captures() if path.name.split(".")[0] == name)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command; returns its exit code and the lines of stdout and stderr."""

    def run(*args: Any) -> tuple[int, list[str], list[str]]:
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as exit:
            code = int(exit.code or 0)
        shown = capsys.readouterr()
        return code, shown.out.splitlines(), shown.err.splitlines()

    return run


def rows_of(run: Any, *args: Any) -> list[Row]:
    code, out, err = run("dissect", "--json", *args)
    assert (code, err) == (0, [])
    return [json.loads(line) for line in out]


# --- dissect --json -----------------------------------------------------------------------------


def test_json_has_every_column_in_every_row(run: Any) -> None:
    rows = rows_of(run, capture("s04_query"))
    assert rows and all(set(COLUMNS) <= set(row) for row in rows)
    assert {row["capture"] for row in rows} == {capture("s04_query").name}
    payloads = {bytes.fromhex(row["payload"]) for row in rows if row["payload"]}
    assert b"answer a" in payloads and b"no such thing" in payloads


@pytest.mark.parametrize("kind", ["push", "put", "declare_subscriber", "close"])
def test_kind_keeps_messages_of_that_kind_or_body(run: Any, kind: str) -> None:
    every = rows_of(run, capture("s06_declared"))
    some = rows_of(run, "--kind", kind, capture("s06_declared"))
    assert some and some == [row for row in every if kind in (row["kind"], row["body"])]


def test_several_kinds_are_kept_together(run: Any) -> None:
    some = rows_of(run, "--kind", "init_syn", "--kind", "open_ack", capture("s06_declared"))
    assert [row["kind"] for row in some] == ["init_syn", "open_ack"] * 3  # pub, sub and query connect one by one


def test_key_keeps_messages_whose_key_intersects(run: Any) -> None:
    every = rows_of(run, capture("s06_declared"))
    one = rows_of(run, "--key", "demo/decl/pub/one", capture("s06_declared"))
    assert {row["key"] for row in one if row["kind"] == "push"} == {"demo/decl/pub/one"}
    assert "demo/decl/**" in {row["key"] for row in one}  # the subscriber gets it too
    assert "demo/decl/pub/two" not in {row["key"] for row in one}
    wide = rows_of(run, "--key", "demo/decl/pub/*", "--kind", "push", capture("s06_declared"))
    pushed = [row for row in every if row["kind"] == "push"]
    assert wide == [row for row in pushed if row["key"].startswith("demo/decl/pub/")]


def test_zid_keeps_messages_from_or_to_a_node(run: Any) -> None:
    every = rows_of(run, capture("s06_declared"))
    zid = truth_of(capture("s06_declared"))["nodes"]["pub"]["zid"]
    some = rows_of(run, "--zid", zid[:8], capture("s06_declared"))
    assert some and some == [row for row in every if zid in (row["src_zid"], row["dst_zid"])]
    assert rows_of(run, "--zid", zid.upper(), capture("s06_declared")) == some


def test_no_payload_leaves_payloads_out_and_their_length_in(run: Any) -> None:
    every = rows_of(run, capture("s06_declared"))
    bare = rows_of(run, "--no-payload", capture("s06_declared"))
    assert any(row["payload"] for row in every) and any(row["attachment"] for row in every)
    assert bare == [{**row, "payload": None, "attachment": None} for row in every]


def test_files_are_one_recording_in_their_order(run: Any, tmp_path: Path) -> None:
    raw = load(capture("s26_ports"))
    half = len(raw.records) // 2
    first = raw.write(tmp_path / "a.pcap", raw.records[:half])
    second = raw.write(tmp_path / "b.pcap", raw.records[half:])
    whole = rows_of(run, raw.write(tmp_path / "all.pcap"))
    both = rows_of(run, first, second)
    assert {row["capture"] for row in both} == {"a.pcap", "b.pcap"}
    for row in (*whole, *both):
        del row["capture"], row["frame"]
    assert both == whole


def test_stdin_is_a_capture(run: Any) -> None:
    path = capture("s26_ports")
    command = [sys.executable, "-m", "scapy_zenoh", "dissect", "--json", "-"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, input=path.read_bytes(), capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    expected = rows_of(run, path)
    for row in (*rows, *expected):
        del row["capture"]
    assert rows == expected


def test_port_is_read_as_zenoh(run: Any, tmp_path: Path) -> None:
    """A link on an unknown port whose handshake was not captured is Zenoh if the user says so."""
    raw = load(capture("s26_ports"))
    every = rows_of(run, capture("s26_ports"))
    opened = max(row["frame"] for row in every if row["kind"] == "open_ack")
    later = raw.write(tmp_path / "later.pcap", raw.records[opened:])
    rows = rows_of(run, later, "--port", "19999")
    assert len(rows) == sum(row["frame"] > opened for row in every)


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1"])
def test_bad_port_is_one_line_and_code_2(run: Any, port: str) -> None:
    code, out, err = run("dissect", capture("s26_ports"), "--port", port)
    assert (code, out, len(err)) == (2, [], 1)


# --- dissect --parquet --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["s04_query", "s03_scouting", "s12c_multilink_prio", "s13_encodings"])
def test_parquet_equals_json(run: Any, tmp_path: Path, name: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "rows.parquet"
    assert run("dissect", "--parquet", target, capture(name)) == (0, [], [])
    table = parquet.read_table(target)
    assert table.column_names == list(rows_of(run, capture(name))[0])
    plain = [{column: plain_value(value) for column, value in row.items()} for row in table.to_pylist()]
    assert plain == rows_of(run, capture(name))
    assert all("uint" not in str(field.type) for field in table.schema)


def plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return int(value) if isinstance(value, Decimal) else value


def test_parquet_in_a_folder_that_is_not_there_is_one_line(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "rows.parquet"
    code, out, err = run("dissect", "--parquet", target, capture("s26_ports"))
    assert (code, out, len(err)) == (2, [], 1)
    assert str(target) in err[0]


def test_parquet_of_what_cannot_be_read_leaves_the_file_as_it_is(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    target.write_text("yesterday")
    code, _, err = run("dissect", "--parquet", target, tmp_path / "typo.pcap")
    assert (code, len(err)) == (2, 1)
    assert target.read_text() == "yesterday"


# --- what cannot be read ------------------------------------------------------------------------


def bad_files(folder: Path) -> dict[str, Path]:
    good = capture("s26_ports").read_bytes()
    files = {
        "empty": b"",
        "text": b"not a capture, but long enough to be one, if one does not look at it\n" * 10,
        "header": good[:6],
        "pcap_header": pcap([])[:10],
    }
    paths = {name: folder / f"{name}.pcap" for name in files}
    for name, data in files.items():
        paths[name].write_bytes(data)
    return {**paths, "missing": folder / "missing.pcap", "directory": folder}


def test_what_was_passed_over_is_told(run: Any, tmp_path: Path) -> None:
    """Without that a capture of a network nobody knows looks like one without Zenoh."""
    path = tmp_path / "strange.pcap"
    fragment = ipv4("10.0.0.1", "10.0.0.2", UDP, bytes(16), 1, 8, True)
    path.write_bytes(pcap([record(0, b"?" * 60), record(1, b"?" * 60)], 147))
    other = tmp_path / "fragment.pcap"
    other.write_bytes(pcap([record(0, fragment)], 101))
    code, out, _ = run("summary", path, other)
    assert code == 0
    assert out[-2:] == [
        "  unread: 2 packets of link type 147, which is not known",
        "  unread: 1 IP fragments of which the rest is missing",
    ]


@pytest.mark.parametrize("command", ["dissect", "summary"])
@pytest.mark.parametrize("name", ["empty", "text", "header", "pcap_header", "missing", "directory"])
def test_unreadable_file_is_one_line_that_names_it(run: Any, tmp_path: Path, command: str, name: str) -> None:
    path = bad_files(tmp_path)[name]
    code, out, err = run(command, path)
    assert (code, out, len(err)) == (2, [], 1)
    assert path.name in err[0] and "Traceback" not in err[0]


def test_file_without_permission_is_one_line_that_names_it(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "secret.pcap"
    path.write_bytes(capture("s26_ports").read_bytes())
    path.chmod(0)
    if os.access(path, os.R_OK):
        return  # root may read everything
    code, out, err = run("dissect", path)
    assert (code, out, len(err)) == (2, [], 1)
    assert path.name in err[0]


def test_rows_before_a_truncation_are_printed(run: Any, tmp_path: Path) -> None:
    raw = load(capture("s26_ports"))
    whole = raw.write(tmp_path / "whole.pcap").read_bytes()
    expected = rows_of(run, raw.write(tmp_path / "first.pcap", raw.records[:-1]))
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[:-3])
    code, out, err = run("dissect", "--json", path)
    rows = [json.loads(line) for line in out]
    assert code == 2 and len(err) == 1 and "cut.pcap" in err[0]
    complete = [row for row in expected if row["fault"] is None]
    for row in (*rows, *complete):
        del row["capture"]
    assert rows == complete


def test_bad_key_is_one_line(run: Any) -> None:
    code, out, err = run("dissect", "--key", "a//b", capture("s26_ports"))
    assert (code, out, len(err)) == (2, [], 1)
    assert "a//b" in err[0]


def test_key_log_that_is_not_there_is_one_line(run: Any, tmp_path: Path) -> None:
    code, _, err = run("dissect", "--keylog", tmp_path / "no.keys", capture("s26_ports"))
    assert (code, len(err)) == (2, 1) and "no.keys" in err[0]


# --- for people ---------------------------------------------------------------------------------


def test_text_tells_the_story_in_order(run: Any) -> None:
    """By the truth file: two clients connect, one subscribes, the other puts, the router passes it on, both close."""
    code, out, err = run("dissect", capture("s26_ports"))
    truth = truth_of(capture("s26_ports"))
    assert (code, err) == (0, [])
    zid = {name: node["zid"].lstrip("0")[:12] for name, node in truth["nodes"].items()}
    put = next(e for e in truth["events"] if e["op"] == "put")
    subscriber = next(e for e in truth["events"] if e["op"] == "declare_subscriber")
    story = [
        (f"{zid['pub']} >", f"INIT syn client {truth['nodes']['pub']['zid']}"),
        (f"{zid['router']} > {zid['pub']}", f"INIT ack router {truth['nodes']['router']['zid']}"),
        (f"{zid['pub']} > {zid['router']}", "OPEN syn"),
        (f"{zid['router']} > {zid['pub']}", "OPEN ack"),
        (f"{zid['sub']} > {zid['router']}", f"DECLARE subscriber 1 {subscriber['key']}"),
        (f"{zid['pub']} > {zid['router']}", f"PUSH {put['key']} PUT {put['payload']['len']} B"),
        (f"{zid['router']} > {zid['sub']}", f"PUSH {put['key']} PUT {put['payload']['len']} B"),
        (f"{zid['sub']} > {zid['router']}", "CLOSE generic"),
        (f"{zid['pub']} > {zid['router']}", "CLOSE generic"),
    ]
    rest = iter(out)
    for ends, told in story:
        assert any(ends in line and told in line for line in rest), (ends, told)
    assert "\x1b" not in "".join(out)


def test_summary_tells_sessions_and_figures(run: Any) -> None:
    path = capture("s26_ports")
    code, out, err = run("summary", path)
    truth, text = truth_of(path), "\n".join(out)
    assert (code, err) == (0, [])
    assert f"{truth['capture']['packets']:,} packets" in out[0]
    for name in ("router", "pub", "sub"):
        assert truth["nodes"][name]["zid"] in text
    assert text.count("\nSession ") == 2 and ":19999" in text


@pytest.mark.parametrize("name", ["s26_ports", "s04_query", "s33_not_zenoh", "s02_peer_udp"])
def test_summary_json_adds_up(run: Any, name: str) -> None:
    code, out, err = run("summary", "--json", capture(name))
    assert (code, len(out), err) == (0, 1, [])
    summary = json.loads(out[0])
    assert set(FIGURES) <= set(summary)
    assert summary["packets"] == truth_of(capture(name))["capture"]["packets"]
    assert summary["zenoh_bytes"] == summary["decoded_bytes"] + summary["undecoded_bytes"]
    assert summary["messages"] == len(rows_of(run, capture(name)))
