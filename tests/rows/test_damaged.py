"""Damaged captures: what is shown is right, what is untouched is shown, what is lost is named."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.capture import CaptureReader, Packet
from scapy_zenoh.recording import Recording
from scapy_zenoh.rows import COLUMNS
from tests.conftest import captures
from tests.rows.files import load
from tests.rows.test_truth import read, truth_of
from tests.wire import ACK, SYN

Row = dict[str, Any]

#: Columns that damage elsewhere may change: where a message stands, and names whose declaration was lost.
CHANGE = ("capture", "frame", "time", "batch", "msg", "session", "src_zid", "dst_zid", "key")
KEPT = [name for name in COLUMNS if name not in CHANGE]
HANDSHAKE = ("init_syn", "init_ack", "join")


def values(row: Row) -> tuple[Any, ...]:
    """What damage elsewhere cannot change."""
    return tuple(tuple(row[name]) if name == "locators" and row[name] else row[name] for name in KEPT)


def way(packet: Packet) -> tuple[Any, ...]:
    """From whom to whom."""
    return packet.src, packet.sport, packet.dst, packet.dport


def identity(packet: Packet) -> tuple[Any, ...]:
    """What makes a packet the same in two captures."""
    return *way(packet), packet.seq, packet.flags, packet.payload


def lost_bytes(before: list[Packet], after: list[Packet]) -> int:
    """Bytes of TCP that only the first capture has, between bytes of the second or acknowledged in it."""
    first = {}
    for p in before:
        first.setdefault(way(p), p.seq + (p.flags & SYN > 0))

    def places(packets: list[Packet]) -> dict[tuple[Any, ...], set[int]]:
        found: dict[tuple[Any, ...], set[int]] = defaultdict(set)
        for p in packets:
            if p.proto == "tcp" and p.payload:
                start = (p.seq - first[way(p)]) & 0xFFFFFFFF
                found[way(p)].update(range(start, start + len(p.payload)))
        return found

    sent, seen, total = places(before), places(after), 0
    for ends, there in sent.items():
        back = (*ends[2:], *ends[:2])
        acks = [(p.ack - first[ends]) & 0xFFFFFFFF for p in after if way(p) == back and p.flags & ACK]
        upto = max([0, *(place + 1 for place in seen[ends]), *(ack for ack in acks if ack < 1 << 31)])
        begun = any(way(p) == ends and p.flags & SYN for p in after)
        since = 0 if begun else min(seen[ends], default=upto)
        total += sum(since <= place < upto for place in there - seen[ends])
    return total


class Case:
    """A damaged capture and the one it was made from."""

    def __init__(self, rows: list[Row], summary: dict[str, Any], damaged: Path, original: Path, corrupt: bool) -> None:
        self.rows, self.summary, self.corrupt = rows, summary, corrupt
        self.before = read(original)[0]
        self.packets = {p.frame: p for p in CaptureReader([original])}
        after = list(CaptureReader([damaged]))
        left = Counter(identity(p) for p in after)
        self.repeated = Counter({p: n - 1 for p, n in left.items() if n > 1})
        self.touched: set[int] = set()  # by comparison: the lists in truth files lack packets that were moved twice
        for frame, packet in self.packets.items():
            left[identity(packet)] -= 1
            if left[identity(packet)] < 0 and packet.payload:
                self.touched.add(frame)
        self.lost = lost_bytes(list(self.packets.values()), after)
        self.whole = self._untouched()

    def _untouched(self) -> list[Row]:
        """The rows whose batch lies in packets that were not touched, with the packet in which the last one ended."""
        bad: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for frame in self.touched:
            bad[way(self.packets[frame])].append(frame)
        last: dict[tuple[Any, ...], dict[int, int]] = defaultdict(dict)
        slices: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        found = []
        for row in self.before:
            path = (row["src"], row["sport"], row["dst"], row["dport"])
            ends = last[path, row["link"]]
            ends[row["batch"]] = row["frame"]
            start = row["frame"] if row["proto"] == "udp" else ends.get(row["batch"] - 1, 0)
            lane = (path, row["link"], row["priority"], row["reliable"])
            if row["kind"] == "fragment":
                slices[lane].append(start)
            if row["fragments"]:
                key = next(k for k in reversed(slices) if k[:2] == lane[:2] and k[3] == row["reliable"])
                start = slices[key][-row["fragments"]]
            if not any(start <= frame <= row["frame"] for frame in bad[path]):
                found.append(row)
        return found


def lab_cases() -> list[Any]:
    """The damaged captures whose original is there as well."""
    there = {path.name.split(".")[0]: path for path in captures()}
    found = []
    for name, path in there.items():
        truth = truth_of(path)
        original = there.get(truth.get("source", ""))
        if original is not None and truth.get("damage"):
            marks = [pytest.mark.slow] if original.stat().st_size > 1 << 20 else []
            found.append(pytest.param((path, original), id=name, marks=marks))
    return found


#: Captures of all kinds of links, damaged here: (name, seed).
OURS = [
    (name, seed)
    for name in ("s02_peer_udp", "s04_query", "s06_declared", "s08_qos", "s12c_multilink_prio", "s17_routers")
    for seed in (1, 2)
]


def damaged(name: str, seed: int, folder: Path) -> tuple[Path, Path]:
    """A capture of which some packets are dropped, repeated, cut or moved, as in the large collection."""
    original = next(path for path in captures() if path.name.split(".")[0] == name)
    raw, dice = load(original), random.Random(seed)
    records = []
    for time, data, length in raw.records:
        roll = dice.random()
        if roll < 0.02:
            continue
        if roll < 0.03 and seed % 2:
            data = data[: 14 + 20 + 20 + dice.randrange(60)]
        records.append((time, data, length))
        if 0.03 < roll < 0.05:
            records.append((time, data, length))
    return raw.write(folder / f"{name}.pcap", records), original


_CASES: dict[Any, Case] = {}


@pytest.fixture(params=[*lab_cases(), *(pytest.param(item, id=f"{item[0]}-{item[1]}") for item in OURS)])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    if request.param not in _CASES:
        first, second = request.param
        if isinstance(second, Path):
            rows, summary = read(first)
            corrupt = any(change["action"] == "corrupt" for change in truth_of(first)["damage"])
            _CASES[request.param] = Case(rows, summary, first, second, corrupt)
        else:
            path, original = damaged(first, second, tmp_path)
            recording = Recording([path])
            _CASES[request.param] = Case(list(recording), recording.summary(), path, original, corrupt=False)
    return _CASES[request.param]


def test_rows_without_fault_are_rows_of_the_undamaged_capture(case: Case) -> None:
    safe = {row["frame"] for row in case.whole} - {
        row["frame"] for row in case.before if not any(row is other for other in case.whole)
    } if case.corrupt else None  # fmt: skip
    left = Counter(values(row) for row in case.before)
    for row in case.before:
        if row["proto"] == "udp":
            left[values(row)] += case.repeated[identity(case.packets[row["frame"]])]
    wrong = []
    for row in case.rows:
        if row["fault"] or safe is not None and row["frame"] not in safe:
            continue
        left[values(row)] -= 1
        if left[values(row)] < 0:
            wrong.append((row["frame"], row["kind"], row["body"], row["sn"], row["key"]))
    assert wrong == []


def test_what_the_damage_does_not_touch_is_recovered(case: Case) -> None:
    there = Counter(values(row) for row in case.rows if not row["fault"])
    absent = []
    for row in case.whole:
        there[values(row)] -= 1
        if there[values(row)] < 0:
            absent.append((row["frame"], row["kind"], row["body"], row["sn"], row["key"]))
    assert absent == []


def test_names_are_right_or_null_and_null_only_without_their_declaration(case: Case) -> None:
    there = Counter(values(row) for row in case.rows if not row["fault"])
    before: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    lost_numbers, lost_ends = set(), set()
    for row in case.before:
        before[values(row)].append(row)
        there[values(row)] -= 1
        if there[values(row)] < 0:
            if row["body"] == "declare_keyexpr":
                lost_numbers.add((row["link"].rpartition("#")[0], row["entity_id"]))
            if row["kind"] in HANDSHAKE or row["kind"] == "declare":
                lost_ends.add(row["link"].rpartition("#")[0])
    wrong = []
    for row in case.rows:
        same = before.get(values(row))
        if row["fault"] or not same:
            continue
        link = row["link"].rpartition("#")[0]
        for name in ("src_zid", "dst_zid", "key"):
            if any(row[name] == one[name] for one in same):
                continue
            scoped = (link, row["key_scope"]) in lost_numbers
            excused = link in lost_ends and (name != "key" or scoped or row["key_scope"] is None)
            if row[name] is not None and not case.corrupt or not excused and row[name] is None:
                wrong.append((row["frame"], row["kind"], row["body"], name, row[name], same[0][name]))
    assert wrong == []


def test_missing_bytes_are_those_that_were_taken_out_between_others(case: Case) -> None:
    assert case.summary["missing_bytes"] == case.lost


def test_numbers_missing_in_a_lane_are_found_and_no_others(case: Case) -> None:
    """A FRAME or FRAGMENT lost between others of its lane is a finding; the last ones of a lane nobody can miss."""
    there = Counter(values(row) for row in case.rows if row["kind"] in ("frame", "fragment") and not row["fault"])
    waiting: dict[tuple[Any, ...], int] = {}  # lost since the last one of the lane that is there
    between, lost = 0, 0
    for row in case.before:
        if row["kind"] not in ("frame", "fragment"):
            continue
        lane = (row["session"], row["src_zid"], row["priority"], row["reliable"])
        there[values(row)] -= 1
        if there[values(row)] < 0:
            lost += 1
            if lane in waiting:
                waiting[lane] += 1
        else:
            between += waiting.get(lane, 0)
            waiting[lane] = 0
    found = [finding for finding in case.summary["findings"] if finding["kind"] == "sequence_gap"]
    assert found or not between
    assert lost or not found


def test_bytes_that_cannot_be_read_are_named(case: Case) -> None:
    assert not case.summary["undecoded_bytes"] or any(row["fault"] for row in case.rows)


def test_every_byte_is_accounted_for(case: Case) -> None:
    summary = case.summary
    assert summary["zenoh_bytes"] == summary["decoded_bytes"] + summary["undecoded_bytes"]
    assert summary["messages"] == sum(row["kind"] != "unknown" for row in case.rows)
    assert summary["faults"] == sum(row["fault"] is not None for row in case.rows)


@pytest.mark.slow
def test_every_byte_of_every_capture_is_accounted_for() -> None:
    for path in captures():
        summary = read(path)[1]
        assert summary["zenoh_bytes"] == summary["decoded_bytes"] + summary["undecoded_bytes"], path.name
        assert sum(summary["fault_kinds"].values()) == summary["faults"], path.name


def test_snap_length_cuts_are_missing_bytes() -> None:
    for path in captures():
        snaplen = truth_of(path)["capture"].get("snaplen")
        if not snaplen:
            continue
        summary, raw = read(path)[1], load(path)
        assert all(len(data) <= snaplen for _, data, _ in raw.records)
        assert summary["missing_bytes"] == sum(length - len(data) for _, data, length in raw.records)
