"""tshark with the plugin and Scapy agree on every capture and on damaged copies of it, field by field.

Where all segments of a connection are there and in order, everything is the same: frames, messages, items and their
bytes, names, faults. What the two cannot agree on follows from how Wireshark works, and is told by the packets alone:

* Bytes that wait for more when the capture ends, or the connection, are shown by Scapy only.
* Scapy names the packet that brought a message, also when a later one was needed to find where messages begin;
  Wireshark shows it in that later one. Then sequences are compared.
* Wireshark decides which segments of a rough connection reach a plugin, and in which order. There nothing wrong may be
  shown and nothing twice, and decoding has to go on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import pytest

from scapy_zenoh.capture import Packet
from tests.conftest import captures, truth_path
from tests.wire import SYN
from tests.wireshark.damage import damaged
from tests.wireshark.expected import Message, Reading, Shown, packets_of, scapy
from tests.wireshark.tshark import tshark, tshark_available

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(not tshark_available(), reason="tshark is not installed"),
]

#: Port 19999 of one capture is TLS to Wireshark; announced ports are found by themselves.
PREFERENCES = {"zenoh.tcp_ports": "7447,19999"}
#: The least that Wireshark has to show of the messages of a rough connection.
ENOUGH = 0.5

Way = tuple[str, int, str, int]  # from whom to whom
Condition = Literal["whole", "late", "rough"]


# --- what the packets allow ---------------------------------------------------------------------


def way(packet: Packet) -> Way:
    """From whom to whom."""
    return packet.src, packet.sport, packet.dst, packet.dport


def ends(path: Way) -> frozenset[tuple[str, int]]:
    """A connection, whatever the direction."""
    return frozenset((path[:2], path[2:]))


def conditions(packets: Iterable[Packet]) -> dict[frozenset[tuple[str, int]], Condition]:
    """How the capture has each TCP connection: all of it in order, without its beginning, or rough."""
    found: dict[frozenset[tuple[str, int]], Condition] = {}
    expected: dict[Way, int] = {}
    for packet in packets:
        if packet.proto != "tcp":
            continue
        path = way(packet)
        known = found.setdefault(ends(path), "whole")
        start = packet.seq + bool(packet.flags & SYN)
        if packet.flags & SYN:
            expected[path] = start
        if not packet.payload and not packet.missing:
            continue
        if path not in expected:
            expected[path] = start
            found[ends(path)] = "late" if known == "whole" else known
        if start != expected[path] or packet.missing:
            found[ends(path)] = "rough"
        expected[path] = start + len(packet.payload) + packet.missing & 0xFFFFFFFF
    return found


# --- comparing ----------------------------------------------------------------------------------


def compare(capture: Path, keylog: Path | None = None) -> list[str]:
    """What the two readers of a capture disagree on, one line each."""
    more = {"tls.keylog_file": str(keylog)} if keylog is not None else {}
    return disagreements(capture, scapy(capture, keylog), tshark(capture, PREFERENCES | more))


def disagreements(capture: Path, expected: Reading, shown: Reading) -> list[str]:
    """Where what is shown is not what is expected, one line each."""
    packets = list(packets_of(capture))
    condition = conditions(packets)
    paths = {packet.frame: way(packet) for packet in packets}
    ours, theirs = by_way(expected.messages, paths), by_way(shown.messages, paths)
    found: list[str] = []
    for path in sorted({*ours, *theirs}):
        mine = _in_time(ours[path], len(theirs[path]))
        state = condition.get(ends(path), "whole")
        name = f"{path[0]}:{path[1]} > {path[2]}:{path[3]}"
        if state == "rough":
            found += [f"{name} {line}" for line in _rough(ours[path], theirs[path])]
            continue
        if ends(path) not in condition:  # datagrams that were waiting for a proof that they are Zenoh
            mine = [message for message in mine if not message.delayed]
        shifted = state == "late" or any(m.delayed for p in (path, path[2:] + path[:2]) for m in ours[p])
        found += [f"{name} {line}" for line in _exact(mine, theirs[path], with_frames=not shifted)]
        if not shifted:
            frames = {message.frame for message in theirs[path]} & {message.frame for message in mine}
            found += [f"{name} {line}" for line in _ids(expected, shown, frames - _renamed(mine))]
    return found


def by_way(messages: list[Message], paths: dict[int, Way]) -> defaultdict[Way, list[Message]]:
    """The messages of each direction of each link."""
    found = defaultdict(list)
    for message in messages:
        found[paths[message.frame]].append(message)
    return found


def _in_time(messages: list[Message], shown: int) -> list[Message]:
    """Those that Wireshark has to show, and of those told at the end as many as it does show."""
    mine = [message for message in messages if not message.last]
    return mine + [message for message in messages if message.last][: max(shown - len(mine), 0)]


def _ids(expected: Reading, shown: Reading, frames: set[int]) -> list[str]:
    found = []
    for name in ("sources", "destinations"):
        for frame in sorted(frames):
            mine, theirs = (getattr(reading, name).get(frame, set()) for reading in (expected, shown))
            if mine != theirs:
                found.append(f"frame {frame}: {name} {mine}, shown {theirs}")
    return found


def _renamed(messages: list[Message]) -> set[int]:
    """Frames with a node that gives itself a name among other messages: the plugin shows names once per batch."""
    names = {m.frame for m in messages if m.kind in ("init_syn", "init_ack", "join")}
    return names & {m.frame for m in messages if m.kind not in ("init_syn", "init_ack", "join")}


def _exact(ours: list[Message], theirs: list[Message], with_frames: bool) -> list[str]:
    found = []
    for mine, other in zip_longest(ours, theirs):
        if mine is None or other is None:
            found.append(f"{_where(mine or other)}: {'not expected' if mine is None else 'not shown'}")
        elif with_frames and mine.frame != other.frame or mine.values()[:2] != other.values()[:2]:
            found.append(f"{_where(mine)}: shown {_where(other)}")
        else:
            found += [f"{_where(mine)}: {line}" for line in _message(mine, other)]
            continue
        break  # all that follow are shifted
    return found


def _where(message: Message) -> str:
    return f"frame {message.frame} {message.kind}{' ' + message.body if message.body else ''}"


def _message(mine: Message, other: Message) -> list[str]:
    found = []
    for name in ("key", "sn", "rid", "encoding", "payload_len", "payload", "malformed"):
        if getattr(mine, name) != getattr(other, name):
            found.append(f"{name} {getattr(mine, name)!r}, shown {getattr(other, name)!r}")
    if not _same_faults(mine.faults, other.faults):
        found.append(f"faults {mine.faults}, shown {other.faults}")
    if mine.items or mine.kind != "unknown":
        for item, drawn in zip_longest(mine.items, other.items):
            if item != drawn:
                found.append(f"{item}, shown {drawn}")
                break
    return found


def _same_faults(ours: list[Shown], theirs: list[Shown]) -> bool:
    if len(ours) != len(theirs):
        return False
    pairs = zip(sorted(ours, key=str), sorted(theirs, key=str), strict=True)
    return all(a.kind == b.kind and (a.at is None or a.at == b.at) for a, b in pairs)


def _rough(ours: list[Message], theirs: list[Message]) -> list[str]:
    """Nothing wrong is shown and nothing twice, and decoding goes on. A late segment is shown when it comes."""
    left: defaultdict[tuple[str, str | None], list[Message]] = defaultdict(list)
    for mine in ours:
        left[mine.kind, mine.sn].append(mine)
    found, matched = [], 0
    for other in theirs:
        if other.kind == "unknown":
            continue
        candidates = left[other.kind, other.sn]
        same = next((mine for mine in candidates if _could_be(mine, other)), None)
        if same is None:
            found.append(f"{_where(other)} is not among those expected, or shown twice")
        else:
            candidates.remove(same)
            matched += 1
    total = sum(message.kind != "unknown" and not message.last for message in ours)
    if matched < ENOUGH * total:
        found.append(f"only {matched} of {total} messages are shown")
    return found


def _could_be(mine: Message, other: Message) -> bool:
    """The same message, one of which may be cut short or not know the key."""
    if mine.key is not None and other.key is not None and mine.key != other.key:
        return False
    a, b = mine.items[1:], other.items[1:]
    return a == b or bool(mine.faults or other.faults) and a[: len(b)] == b[: len(a)]


# --- captures -----------------------------------------------------------------------------------


def cases() -> list[Any]:
    """Every capture; those that take seconds are slow."""
    slow = [pytest.mark.slow]
    return [
        pytest.param(path, id=path.name.split(".")[0], marks=slow if path.stat().st_size > 1 << 17 else [])
        for path in captures()
    ]


@pytest.mark.parametrize("capture", cases())
def test_tshark_shows_what_scapy_reads(capture: Path) -> None:
    keylog = json.loads(truth_path(capture).read_text()).get("keylog")
    found = compare(capture, capture.with_name(keylog) if keylog else None)
    assert not found, "\n".join(found[:20])


# --- damaged copies -----------------------------------------------------------------------------

#: All kinds of links: TCP with declarations, queries, lanes and several links, compressed, low latency, WebSocket, UDP.
DAMAGED = [
    "s02_peer_udp", "s04_query", "s06_declared", "s08_qos", "s09_compression_head", "s10_lowlatency_head",
    "s12c_multilink_prio", "s13_encodings", "s14b_mcast_qos", "s15b_ws_head", "s17_routers", "s21_shm_head",
]  # fmt: skip


def shipped(name: str) -> Path:
    """A capture of the small collection."""
    return next((Path(__file__).parents[1] / "data" / "captures").glob(f"{name}.pcap*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("seed", [1, 2])
def test_damage_inside_batches_is_read_alike(name: str, seed: int, tmp_path: Path) -> None:
    found = compare(damaged(shipped(name), seed, tmp_path / f"{name}.pcap", share=0.2))
    assert not found, "\n".join(found[:20])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DAMAGED if name not in ("s02_peer_udp", "s14b_mcast_qos")])
def test_decoding_goes_on_after_damaged_sizes(name: str, tmp_path: Path) -> None:
    """Where the next batch begins is then a guess; of what is good, as much is shown as Scapy finds in time."""
    original = shipped(name)
    capture = damaged(original, 1, tmp_path / f"{name}.pcap", share=0.05, aligned=False)
    good = {_essence(message) for message in scapy(original).messages}
    ours = sum(_essence(message) in good and not message.last for message in scapy(capture).messages)
    theirs = sum(_essence(message) in good for message in tshark(capture, PREFERENCES).messages)
    assert theirs >= 0.9 * ours


def _essence(message: Message) -> tuple[Any, ...]:
    """What is the same wherever a message is."""
    return message.kind, message.body, tuple(message.items[1:])
