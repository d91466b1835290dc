"""What must hold however a recording is cut, split or interleaved."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scapy_zenoh.capture import CaptureReader
from scapy_zenoh.recording import Recording
from tests.conftest import captures
from tests.rows.files import Raw, load
from tests.rows.test_truth import WHOLE, read, truth_of
from tests.wire import SYN, Record

Row = dict[str, Any]


def named(*names: str) -> list[Any]:
    """The captures whose names begin so, whole or only their heads."""
    return [
        pytest.param(path, id=path.name.split(".")[0])
        for path in captures()
        if any(path.name.split(".")[0] in (name, f"{name}_head") for name in names)
    ]


def without(row: Row, *columns: str) -> tuple[Any, ...]:
    """The values of a row but for some columns."""
    return tuple(
        tuple(value) if isinstance(value, list) else value for name, value in row.items() if name not in columns
    )


def rows_of(*paths: Path, **options: Any) -> list[Row]:
    return list(Recording(paths, **options))


# --- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", WHOLE)
def test_no_number_is_missing_where_nothing_was_lost(capture: Path) -> None:
    assert read(capture)[1]["findings"] == []


# --- beginnings that were not captured ----------------------------------------------------------


def after_handshakes(capture: Path) -> tuple[Raw, int]:
    """The packets of a capture, and how many of them the handshakes take."""
    opened = [row["frame"] for row in read(capture)[0] if row["kind"] == "open_ack"]
    return load(capture), max(opened)


def by_direction(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each direction of each link, in their order: how directions are mixed is not told by the bytes."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["link"], row["src"], row["sport"]].append(row)
    return found


LATER = ("capture", "frame", "batch", "session", "src_zid", "dst_zid", "key")


@pytest.mark.parametrize(
    "capture", named("s04_query", "s06_declared", "s08_qos", "s09_compression", "s10_lowlatency", "s26b_vlan")
)
def test_framing_is_worked_out_without_the_handshake(capture: Path, tmp_path: Path) -> None:
    raw, cut = after_handshakes(capture)
    rows = rows_of(raw.write(tmp_path / "later.pcap", raw.records[cut:]))
    expected = [row for row in read(capture)[0] if row["frame"] > cut]
    ours, theirs = by_direction(rows), by_direction(expected)
    assert {way: len(some) for way, some in ours.items()} == {way: len(some) for way, some in theirs.items()}
    for way, some in ours.items():
        assert [without(row, *LATER) for row in some] == [without(row, *LATER) for row in theirs[way]]
        for row, whole in zip(some, theirs[way], strict=True):
            assert row["frame"] == whole["frame"] - cut
            assert row["key"] in (None, whole["key"]) and row["src_zid"] in (None, whole["src_zid"])


@pytest.mark.parametrize("capture", named("s06_declared", "s09_compression", "s10_lowlatency"))
def test_handshake_whose_offer_was_cut_is_understood_by_its_answer(capture: Path, tmp_path: Path) -> None:
    """The extensions of every INIT syn are cut off, as by a short snap length."""
    before, raw = read(capture)[0], load(capture)
    cut = {row["frame"] for row in before if row["kind"] == "init_syn"}
    sizes = {p.frame: len(raw.records[p.frame - 1][1]) - len(p.payload) for p in CaptureReader([capture])}
    records = [
        (time, data[: sizes[frame] + 26], length) if frame in cut else (time, data, length)  # id and batch size stay
        for frame, (time, data, length) in enumerate(raw.records, 1)
    ]
    rows = rows_of(raw.write(tmp_path / "cut.pcap", records))
    compared = [  # the answer itself may be read before the rest of the offer is known to be missing
        Counter(without(row, "capture", "batch") for row in some if row["kind"] not in ("init_syn", "init_ack"))
        for some in (rows, before)
    ]
    assert compared[0] == compared[1]


@pytest.mark.parametrize("capture", named("s06_declared", "s24_midstream"))
def test_keys_whose_declaration_was_not_seen_are_null(capture: Path, tmp_path: Path) -> None:
    rows = read(capture)[0]
    if not truth_of(capture).get("capture_started_ns"):
        raw = load(capture)
        declared = max(row["frame"] for row in rows if row["body"] == "declare_keyexpr")
        rows = rows_of(raw.write(tmp_path / "later.pcap", raw.records[declared // 2 :]))
    numbers: set[tuple[Any, ...]] = set()
    unknown = 0
    for row in rows:
        way = (row["link"], row["src"], row["sport"])
        back = (row["link"], row["dst"], row["dport"])
        if row["body"] == "declare_keyexpr":
            numbers.add((way, row["entity_id"]))
        if row["kind"] not in ("push", "request", "response"):
            continue
        if not row["key_scope"]:
            assert row["key"] == (row["key_suffix"] or "")
        elif ((way if row["key_mapping"] == "sender" else back), row["key_scope"]) in numbers:
            assert row["key"] is not None and row["key"].endswith(row["key_suffix"] or "")
        else:
            unknown += 1
            assert row["key"] is None
    assert unknown


# --- one recording in several files -------------------------------------------------------------


SPLIT = named("s02_peer_udp", "s06_declared", "s10_lowlatency", "s12c_multilink_prio", "s17_routers")


@pytest.mark.parametrize("capture", SPLIT)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_files_in_a_row_are_one_recording(capture: Path, data: st.DataObject) -> None:
    raw = load(capture)
    cuts = sorted(data.draw(st.lists(st.integers(1, len(raw.records) - 1), min_size=1, max_size=5, unique=True)))
    with TemporaryDirectory() as folder:
        edges = [0, *cuts, len(raw.records)]
        files = [
            raw.write(Path(folder) / f"{number}.pcap", raw.records[start:end])
            for number, (start, end) in enumerate(zip(edges, edges[1:], strict=False))
        ]
        rows = rows_of(*files)
        whole = rows_of(raw.write(Path(folder) / "whole.pcap"))
    assert [without(row, "capture", "frame") for row in rows] == [without(row, "capture", "frame") for row in whole]
    for row, one in zip(rows, whole, strict=True):
        number = int(row["capture"].removesuffix(".pcap"))
        assert row["frame"] + edges[number] == one["frame"]


# --- packets of different connections -----------------------------------------------------------


MIXED = named("s04_query", "s06_declared", "s17_routers", "s26_ports")


@pytest.mark.parametrize("capture", MIXED)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_connections_do_not_depend_on_how_they_are_mixed(capture: Path, seed: int) -> None:
    raw, dice = load(capture), random.Random(seed)
    queues: dict[frozenset[Any], list[Record]] = defaultdict(list)
    for packet in CaptureReader([capture]):
        ends = frozenset(((packet.src, packet.sport), (packet.dst, packet.dport)))
        queues[ends].append(raw.records[packet.frame - 1])
    waiting, mixed = [iter(queue) for queue in queues.values()], []
    while waiting:
        queue = dice.choice(waiting)
        for _ in range(dice.randrange(1, 20)):
            record = next(queue, None)
            if record is None:
                waiting.remove(queue)
                break
            mixed.append(record)
    with TemporaryDirectory() as folder:
        rows = rows_of(raw.write(Path(folder) / "mixed.pcap", mixed))
        whole = rows_of(raw.write(Path(folder) / "whole.pcap"))

    def by_link(rows: list[Row]) -> dict[str, Counter[Any]]:
        found: dict[str, Counter[Any]] = defaultdict(Counter)
        for row in rows:
            found[row["link"]][without(row, "capture", "frame")] += 1
        return found

    assert by_link(rows) == by_link(whole)


# --- many connections ---------------------------------------------------------------------------


def connections(count: int) -> Raw:
    """A handshake and the close that ended its session, again and again from other ports."""
    capture = next(path for path in captures() if path.name.startswith("s08_qos."))
    raw = load(capture)
    packets = list(CaptureReader([capture]))
    port = next(p.sport for p in packets if p.dport == 7447)
    ours = [p for p in packets if port in (p.sport, p.dport)]
    handshake, end = ours[:9], ours[-5:]
    after = {p.sport: p.seq + len(p.payload) + (p.flags & SYN > 0) for p in handshake}  # what is left out between
    gone = {sport: next(p.seq for p in end if p.sport == sport) - after[sport] for sport in after}
    records = []
    for number in range(count):
        for p in (*handshake, *end):
            time, data, length = raw.records[p.frame - 1]
            seq, ack = (p.seq - gone[p.sport], p.ack - gone[p.dport]) if p in end else (p.seq, p.ack)
            ports = [10000 + number if one == port else one for one in (p.sport, p.dport)]
            head = struct.pack(">HHII", *ports, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF)
            records.append((time + number * 10**9, data[:34] + head + data[46:], length))
    return Raw(raw.linktype, records)


@pytest.mark.slow
def test_a_thousand_connections_take_little_memory(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = connections(count).write(tmp_path / f"{count}.pcap")
        recording = Recording([path])
        tracemalloc.start()
        seen = sum(1 for _ in recording)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert seen == 7 * count and recording.summary()["missing_bytes"] == 0
        assert len({link["link"] for link in recording.summary()["links"]}) == count
        return most

    few, many = peak(100), peak(1000)
    assert (many - few) / 900 < 16 << 10  # bytes that stay of a connection that is over: its session and its ends
