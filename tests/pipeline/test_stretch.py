"""Recordings that are cut anywhere give the same rows in all tables. Nothing here needs Spark."""

from __future__ import annotations

import gzip
from collections import Counter
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("numba")

import zstandard  # noqa: E402

from scapy_zenoh.capture import CaptureError  # noqa: E402
from scapy_zenoh.pipeline.captures import Captures, each  # noqa: E402
from scapy_zenoh.pipeline.errors import PipelineError  # noqa: E402
from scapy_zenoh.pipeline.stretch import (  # noqa: E402
    MOST_UNPACKED,
    SPLIT,
    Options,
    Stretch,
    can_be_cut,
    cut,
    ended,
    pack,
    read,
    split_size,
    too_large,
)
from scapy_zenoh.recording import COUNTS  # noqa: E402
from tests.conftest import captures  # noqa: E402
from tests.pipeline.conftest import name_of  # noqa: E402
from tests.pipeline.results import (  # noqa: E402
    damaged,
    dissected,
    in_pieces,
    in_stretches,
    small,
    together,
    unequal,
    whole,
)
from tests.rows.files import load  # noqa: E402
from tests.rows.test_truth import truth_of, undamaged  # noqa: E402
from tests.wire import UDP, ipv4, pcap, record, udp  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiled")


def one(path: Path) -> Captures:
    (captures,) = each([str(path)])
    return captures


def capture(name: str) -> Path:
    return next(path for path in captures() if name_of(path) == name)


def parameters(size: int) -> list[Any]:
    return [pytest.param(path, id=name_of(path)) for path in small(size)]


# --- the same rows, wherever it is cut ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", parameters(1 << 18))
def test_stretches_of_any_size_give_the_rows_of_the_whole(path: Path) -> None:
    """Links, sessions, fragments and queries span the cuts. A stretch has at least a packet, and some are large."""
    expected = whole(one(path))
    size = path.stat().st_size
    for every in (size // 12, size // 3):
        found, count = in_stretches(one(path), every)
        assert unequal(expected, found) == [], every
        assert count > 1


@pytest.mark.parametrize("name", ["s04_query", "s12c_multilink_prio"])
def test_stretches_of_a_packet_or_two_give_the_rows_of_the_whole(name: str) -> None:
    found, count = in_stretches(one(capture(name)), 1)
    assert unequal(whole(one(capture(name))), found) == []
    assert count > truth_of(capture(name))["capture"]["packets"] / 3


@pytest.mark.slow
def test_large_captures_in_stretches_give_the_rows_of_the_whole() -> None:
    for path in captures():
        if 1 << 20 < path.stat().st_size:
            expected = together(read(Stretch(one(path)), Options(), compiled=True))
            found, count = in_stretches(one(path), path.stat().st_size // 5)
            assert unequal(expected, found) == [], path.name
            assert 4 <= count <= 6


def test_rows_without_payloads_are_the_same_otherwise() -> None:
    path = capture("s06_declared")
    bare, _ = in_stretches(one(path), 2000, Options(payload=False))
    assert unequal(whole(one(path)), bare, but=("payload", "attachment")) == []
    assert bare["messages"]["payload"].null_count == len(bare["messages"])


def test_ports_are_known_in_every_stretch(tmp_path: Path) -> None:
    """A link on an unknown port whose handshake was not captured is Zenoh because the user says so."""
    raw = load(capture("s26_ports"))
    rows, _ = dissected(capture("s26_ports"))
    opened = max(row["frame"] for row in rows if row["kind"] == "open_ack")
    later = raw.write(tmp_path / "later.pcap", raw.records[opened:])
    found, count = in_stretches(one(later), 400, Options(ports=(19999,)))
    assert count > 2 and len(found["messages"]) == sum(row["frame"] > opened for row in rows)


# --- recordings of several files ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("path", parameters(1 << 16))
def test_recording_in_several_files_gives_the_rows_of_one_file(path: Path, tmp_path: Path) -> None:
    """Cut between any two packets, and the files in stretches again; only names and numbers of packets differ."""
    (uncut,) = in_pieces(path, tmp_path, 0)
    expected = whole(one(uncut))
    files = in_pieces(path, tmp_path / "pieces", 3)
    recording = Captures("r", tuple(map(str, files)))
    packets = [len(load(file).records) for file in files]
    before = dict(zip((file.name for file in files), accumulate([0, *packets]), strict=False))
    for found in (whole(recording), in_stretches(recording, recording.bytes // 7)[0]):
        told = found.pop("captures")
        if "messages" in found:
            names, frames = (found["messages"][name].to_pylist() for name in ("capture", "frame"))
            numbers = [before[name] + frame for name, frame in zip(names, frames, strict=True)]
            assert numbers == expected["messages"]["frame"].to_pylist()
        but_captures = {table: rows for table, rows in expected.items() if table != "captures"}
        assert unequal(but_captures, found, but=("capture", "frame")) == []
        assert {name: sum(row[name] for row in told) for name in COUNTS} == {
            name: expected["captures"][0][name] for name in COUNTS
        }
        assert [row["packets"] for row in sorted(told, key=lambda row: row["ordinal"])] == packets
        if undamaged(path):  # otherwise rows wait for bytes that are missing
            of_file = Counter(found["messages"]["capture"].to_pylist()) if "messages" in found else {}
            assert {row["capture"]: row["rows"] for row in told if row["rows"]} == of_file


def test_links_of_a_session_stay_together_over_files_and_stretches(tmp_path: Path) -> None:
    """By the truth file two nodes have several links: one session has them all, wherever it is cut."""
    for path in captures():
        if "multilink" not in path.name:
            continue
        files = in_pieces(path, tmp_path / path.name, 4)
        found, _ = in_stretches(Captures("r", tuple(map(str, files))), 500)
        (session,) = [row for row in found["sessions"] if len(row["links"]) > 1]
        assert session["multilink"]
        links = {row["link"] for row in found["links"] if row["session"] == session["session"]}
        assert links == set(session["links"])
        _, summary = dissected(path)
        assert [len(told["links"]) for told in summary["sessions"] if told["multilink"]] == [len(links)]


# --- damaged files --------------------------------------------------------------------------------


def test_damaged_files_among_those_of_a_recording_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (uncut,) = in_pieces(capture("s26_ports"), tmp_path / "good", 0)
    said = damaged(tmp_path / "bad")
    first, second = in_pieces(capture("s26_ports"), tmp_path / "good", 2)
    bad = [tmp_path / "bad" / name for name in ("empty.pcap", "text.pcap", "gone.pcap")]
    recording = Captures("r", tuple(map(str, [bad[0], first, bad[1], second, bad[2]])))
    expected = whole(one(uncut))
    for found in (whole(recording), in_stretches(recording, 300)[0]):
        told = sorted(found.pop("captures"), key=lambda row: row["ordinal"])
        assert [row["capture"] for row in told] == [Path(path).name for path in recording.paths]
        for row in (told[0], told[2], told[4]):
            assert said[row["capture"]] in row["error"]
            assert not any(row[name] for name in COUNTS)
        assert told[1]["error"] is None is told[3]["error"]
        but_captures = {table: rows for table, rows in expected.items() if table != "captures"}
        assert unequal(but_captures, found, but=("capture", "frame")) == []


def test_cut_file_gives_the_same_rows_and_error_in_stretches(tmp_path: Path) -> None:
    damaged(tmp_path)
    for name in ("cut.pcap", "length.pcap"):
        expected = whole(one(tmp_path / name))
        assert expected["captures"][0]["error"] is not None
        found, _ = in_stretches(one(tmp_path / name), 200)
        assert unequal(expected, found) == []


# --- compressed files -----------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed_file_is_cut_into_few_stretches(pack: Any, tmp_path: Path) -> None:
    """Each begins by unpacking all that is before it, so more and more of them would take longer and longer."""
    raw = load(capture("s06_declared"))
    plain = raw.write(tmp_path / "c.pcap")
    (tmp_path / "packed").mkdir()
    packed = tmp_path / "packed" / "c.pcap"  # with the same name, which is in the rows
    packed.write_bytes(pack(plain.read_bytes()))
    expected, many = in_stretches(one(plain), 300)
    found, few = in_stretches(one(packed), 300)
    assert many > 3 * MOST_UNPACKED
    assert 3 <= few <= MOST_UNPACKED + 1
    assert unequal(expected, found, but=("path", "bytes")) == []
    assert found["captures"][0]["bytes"] == packed.stat().st_size


# --- which tasks there are ------------------------------------------------------------------------


def test_small_captures_share_a_task_and_large_ones_are_cut(tmp_path: Path) -> None:
    for name, size in {"a": 60, "b": 50, "c": 40, "d": 500, "e": 1}.items():
        (tmp_path / name).write_bytes(bytes(size))
    recordings = each([str(tmp_path / name) for name in "abcde"])
    large, rest = too_large(recordings, Options(), 100)
    assert [captures.paths[0][-1] for captures in large] == ["d"]
    tasks = pack(rest, 100)
    assert [[stretch.captures.paths[0][-1] for stretch in task] for task in tasks] == [["a"], ["b", "c", "e"]]
    assert all(stretch.last and stretch.begin is None is stretch.end for task in tasks for stretch in task)
    assert split_size(recordings, None, None) == SPLIT
    assert split_size(recordings, None, 7) == 93  # of 651 bytes
    assert split_size(recordings, 5, None) == 5
    with pytest.raises(PipelineError, match="exclude each other"):
        split_size(recordings, 5, 7)


def test_what_needs_the_whole_file_is_not_cut(tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9.pcap"
    odd.write_bytes(capture("s26_ports").read_bytes())
    assert not can_be_cut(one(odd), Options())
    assert not can_be_cut(one(capture("s26_ports")), Options(keylog="keys"))
    assert can_be_cut(one(capture("s26_ports")), Options())
    assert too_large([one(odd)], Options(), 1) == ([], [one(odd)])
    assert {name.encode() for name in whole(one(odd))["messages"]["capture"].to_pylist()} == {"caf\ufffd.pcap".encode()}


def test_last_stretch_alone_ends_the_recording() -> None:
    stretches = ended(cut(one(capture("s26_ports")), Options(), 500))
    assert [stretch.last for stretch in stretches] == [False] * (len(stretches) - 1) + [True]
    for before, after in zip(stretches, stretches[1:], strict=False):
        assert before.end is not None and after.begin is not None and after.begin.memory
        assert before.end == after.begin._replace(memory=b"")  # which it does not need
    tables = [{table for table, batch in read(stretch, Options()) if batch.num_rows} for stretch in stretches]
    assert all("sessions" not in found for found in tables[:-1]) and "sessions" in tables[-1]


def test_stretch_whose_file_is_gone_does_not_pass_for_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    path.write_bytes(capture("s26_ports").read_bytes())
    first, second, *others = ended(cut(one(path), Options(), 500))
    path.unlink()
    for stretch in (first, second):
        with pytest.raises(CaptureError, match=r"/a\.pcapng: No such file"):
            list(read(stretch, Options()))
    (told,) = (batch.to_pylist() for table, batch in read(others[-1], Options()) if table == "captures")
    assert told[0]["error"].endswith("No such file or directory")


# --- options --------------------------------------------------------------------------------------


def test_key_log_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.chdir(tmp_path)
    Path("keys").write_text("")
    assert Options(keylog="keys").checked().keylog == str(tmp_path / "keys")
    with pytest.raises(PipelineError, match="^nokeys: no such key log$"):
        Options(keylog="nokeys").checked()
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(PipelineError, match="tshark"):
        Options(keylog="keys").checked()


def test_stretch_whose_file_was_shortened_does_not_pass_for_a_shorter_one(tmp_path: Path) -> None:
    packets = [record(second, ipv4("10.0.0.1", "10.0.0.2", UDP, udp(1, 2, b"x"))) for second in range(40)]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets, 101))
    first, *_ = ended(cut(one(path), Options(), 100))
    assert first.end is not None and first.end.place is not None
    path.write_bytes(pcap(packets[:2], 101))
    with pytest.raises(CaptureError, match=r"a\.pcap"):
        list(read(first, Options()))


# --- wrong use ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ports", [9000, "9000", ("9000",), (0,), (65536,), (True,)])
def test_what_are_no_ports_is_told(ports: Any) -> None:
    with pytest.raises(PipelineError, match="no port numbers"):
        Options(ports).checked()


@pytest.mark.parametrize("number", [0, -1, "64M", 1.5])
def test_what_is_no_size_is_told(number: Any) -> None:
    for given in ((number, None), (None, number)):
        with pytest.raises(PipelineError, match="is no number from 1 on"):
            split_size([], *given)


# --- what messages may say ----------------------------------------------------------------------


def test_numbers_that_no_column_can_hold_are_told_as_the_largest(tmp_path: Path) -> None:
    from scapy_zenoh import (
        ZenohExtPatch,
        ZenohExtPutShm,
        ZenohFrame,
        ZenohInit,
        ZenohOpen,
        ZenohPush,
        ZenohPut,
        ZenohSliceShm,
    )

    most = (1 << 64) - 1
    shared = ZenohPut(slices=[ZenohSliceShm(data_len=most), ZenohSliceShm(data_len=most)], exts=[ZenohExtPutShm()])
    said = [
        (0, ZenohInit(zid=b"\1", exts=[ZenohExtPatch(patch=most)])),
        (1, ZenohInit(A=1, zid=b"\2", cookie=b"c", exts=[ZenohExtPatch(patch=most)])),
        (0, ZenohOpen(lease=most, T=1, initial_sn=5, cookie=b"c")),
        (1, ZenohOpen(A=1, lease=most, T=0, initial_sn=9)),
        (0, ZenohFrame(sn=5, msgs=[ZenohPush(suffix="a") / shared])),
    ]
    ends = ("10.0.0.1", 5000), ("10.0.0.2", 7447)
    path = tmp_path / "large.pcap"
    packets = []
    for time, (side, message) in enumerate(said):
        (src, sport), (dst, dport) = ends[side], ends[1 - side]
        packets.append(record(time, ipv4(src, dst, UDP, udp(sport, dport, bytes(message)))))
    path.write_bytes(pcap(packets, 101))
    for compiled in (False, True):
        tables = together(read(Stretch(one(path)), Options(), compiled))
        (session,) = tables["sessions"]
        assert (session["low_lease_ms"], session["high_lease_ms"], session["patch"]) == (most, most, most)
        assert [row["payload_len"] for row in tables["messages"].to_pylist() if row["body"] == "put"] == [(1 << 63) - 1]
        assert tables["captures"][0]["undecoded_bytes"] == 0
