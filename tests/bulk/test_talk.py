"""Conversations made by hand: what is remembered in one way and needed in the other, and in which order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import scapy_zenoh as z
from tests.bulk.compare import ODD, SMALL, TINY, USUAL, Cut, agree, scapy
from tests.bulk.disturb import as_pcap
from tests.bulk.talk import Datagrams, Link, Session, Stream, Wire
from tests.wire import ACK, PSH, RST, enhanced, interface, option, section

LANE = (5, 1)
CUTS = (USUAL, SMALL, ODD, TINY, Cut(1 << 16, 1))


def declare(number: int, name: str) -> bytes:
    return bytes(z.ZenohDeclare() / z.ZenohDeclareKeyexpr(expr_id=number, suffix=name))


def push(scope: int, mapping: int = 1) -> bytes:
    return bytes(z.ZenohPush(scope=scope, M=mapping) / z.ZenohPut(data=b"x"))


def ask(number: int) -> bytes:
    return bytes(z.ZenohRequest(request_id=number, suffix="q") / z.ZenohQuery())


def answer(number: int) -> bytes:
    return bytes(z.ZenohResponse(request_id=number, suffix="q") / z.ZenohReply() / z.ZenohPut(data=b"y"))


def final(number: int) -> bytes:
    return bytes(z.ZenohResponseFinal(request_id=number))


def frame(link: Link, direction: int, *messages: bytes, step: int = 1) -> bytes:
    head = z.ZenohFrame(sn=link.session.number(direction, LANE, step), R=1)
    return bytes(head) + b"".join(messages)


def fragments(link: Link, direction: int, message: bytes) -> list[bytes]:
    found = []
    for first, piece in ((True, message[:3]), (False, message[3:])):
        exts = [z.ZenohExtFirst()] if first else []
        number = link.session.number(direction, LANE)
        found.append(bytes(z.ZenohFragment(sn=number, R=1, M=int(first), exts=exts, data=piece)))
    link.session.number(direction, LANE)
    return found


def opened(kind: type[Any] = Stream, **options: Any) -> Any:
    """A link after its handshake."""
    link = kind(Wire(), Session(**options), 50000)
    link.start()
    link.handshake()
    return link


def several(count: int = 2) -> list[Stream]:
    """The links of one session."""
    wire, session = Wire(), Session(several=True)
    links = [Stream(wire, session, 50000 + number) for number in range(count)]
    for link in links:
        link.start()
        link.handshake()
    return links


def check(wire: Wire, folder: Path, *cuts: Cut) -> list[dict[str, Any]]:
    """Both ways tell the same; returns the rows."""
    path = folder / "talk.pcap"
    path.write_bytes(as_pcap(1, wire.records))
    reference = scapy([path])
    agree(reference, [path], *(cuts or CUTS))
    return reference.rows


def held_back(wire: Wire, first: int, last: int) -> None:
    """Packets from ``first`` on come only after ``last``."""
    moved = wire.records[first : last + 1]
    wire.records[first : last + 1] = [*moved[1:], moved[0]]


# --- messages put together ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Stream, Datagrams])
def test_names_declared_in_fragments_are_known_at_once(kind: type[Any], tmp_path: Path) -> None:
    link = opened(kind)
    link.send(0, frame(link, 0, push(1)))
    for piece in fragments(link, 0, declare(1, "first")):
        link.send(0, piece)
    link.send(0, frame(link, 0, push(1)))
    link.send(1, frame(link, 1, push(1, mapping=0)))
    for content in [*fragments(link, 0, declare(1, "second")), frame(link, 0, push(1))]:
        link.send(0, content, hold=content[0] & 0x1F == 6)  # FRAGMENTs in the packet of the FRAME
    link.send(1, frame(link, 1, push(1, mapping=0)))
    rows = check(link.wire, tmp_path)
    assert [row["key"] for row in rows if row["kind"] == "push"] == [None, "first", "first", "second", "second"]


@pytest.mark.parametrize("what", ["request", "response", "final"])
@pytest.mark.parametrize("kind", [Stream, Datagrams])
def test_queries_in_fragments_are_followed_in_their_order(kind: type[Any], what: str, tmp_path: Path) -> None:
    link = opened(kind)
    for number in range(4):
        for direction, name, message in ((0, "request", ask(1)), (1, "response", answer(1)), (1, "final", final(1))):
            pieces = fragments(link, direction, message + bytes(0)) if name == what else []
            for content in pieces or [frame(link, direction, message)]:
                link.send(direction, content)
        if number == 2:
            link.send(1, frame(link, 1, answer(1)))  # too late
    check(link.wire, tmp_path)


# --- several links of one session ---------------------------------------------------------------


def test_name_declared_on_a_link_with_a_hole_is_known_on_the_other(tmp_path: Path) -> None:
    one, other = several()
    for _ in range(3):
        one.send(0, frame(one, 0, push(1)))
        other.send(0, frame(other, 0, push(1)))
    start = len(one.wire.records)
    one.send(0, frame(one, 0, declare(2, "late")))
    one.send(0, frame(one, 0, declare(1, "name")))
    for _ in range(3):
        other.send(0, frame(other, 0, push(1)))
    held_back(one.wire, start, start + 2)
    one.send(0, frame(one, 0, declare(1, "again")), cuts=(3,))
    for _ in range(3):
        other.send(0, frame(other, 0, push(1)))
    del one.wire.records[start + 1]  # this hole stays
    for number in range(80):
        one.send(0, frame(one, 0, declare(1, f"name{number}")))
        one.segment(1)
        other.send(0, frame(other, 0, push(1)))
    check(one.wire, tmp_path)


def half_lost() -> list[Stream]:
    """Two links of a session; on the first, nobody knows where the batches of the router begin."""
    one, other = several()
    one.segment(1, b"\xff\x00" + b"\x1f" * 0xFF, ACK | PSH)
    one.segment(1, b"\xff" * 100, ACK | PSH)
    return [one, other]


def test_name_declared_on_a_link_that_is_half_lost_is_known_on_the_other(tmp_path: Path) -> None:
    one, other = half_lost()
    for number in range(10):
        one.send(0, frame(one, 0, declare(1, f"name{number}")))
        other.send(0, frame(other, 0, push(1)))
        other.send(1, frame(other, 1, push(1, mapping=0)))
    rows = check(one.wire, tmp_path)
    assert [row["key"] for row in rows if row["kind"] == "push"] == [f"name{n}" for n in range(10) for _ in "01"]


def test_numbers_of_a_lane_come_over_both_links(tmp_path: Path) -> None:
    one, other = half_lost()
    for number in range(30):
        for _ in range(10):
            other.send(0, frame(other, 0, push(1)))
        one.send(0, frame(one, 0, push(1), step=1 + (number % 20 == 7)))
    check(one.wire, tmp_path)


def test_session_that_is_over_while_one_of_its_links_goes_on(tmp_path: Path) -> None:
    """The last link that was not closed lingers after its end; a packet of somebody else settles the session."""
    wire, session = Wire(), Session(several=True)
    one, other = (Stream(wire, session, 50000 + number) for number in range(2))
    third = Stream(wire, Session(zids=("0d", "0e")), 50009)
    for link in (one, other, third):
        link.start()
        link.handshake()
    for _ in range(3):
        other.send(0, frame(other, 0, push(1), ask(7)))
        third.send(0, frame(third, 0, push(1)))
    one.send(0, bytes(z.ZenohClose(S=1)))
    one.segment(0, flags=RST)
    for _ in range(3):
        wire.time += 100_000_000
        other.send(0, frame(other, 0, push(1)))
        third.send(0, frame(third, 0, push(1)))
    wire.time += 10**9
    third.send(0, frame(third, 0, push(1)))
    for number in range(5):
        other.send(0, frame(other, 0, push(1), ask(number)))
        other.send(1, frame(other, 1, answer(7), answer(number), final(number)))
    other.segment(0, b"\x01")
    other.segment(0, b"\x00\x04")
    check(wire, tmp_path)


def test_node_that_takes_another_id_on_one_of_its_links(tmp_path: Path) -> None:
    one, other = several()
    for zid in ("0c", "0d"):
        other.send(0, frame(other, 0, push(1)))
        one.send(0, bytes(z.ZenohInit(zid=zid, whatami=2)))
        for direction in (0, 1, 0):
            other.send(direction, frame(other, direction, push(1)))
    check(one.wire, tmp_path)


# --- sizes and times ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [131_000, 131_068, 131_069, 131_072, 140_000])
def test_units_around_the_largest_in_one_packet(size: int, tmp_path: Path) -> None:
    link = opened(low_latency=True, lanes=False)
    link.send(0, push(0))
    link.send(0, bytes(z.ZenohPush(suffix="a") / z.ZenohPut(data=bytes(size - 10))))
    link.send(0, push(0))
    link.send(0, push(0))
    check(link.wire, tmp_path)


def test_times_before_1970(tmp_path: Path) -> None:
    link = opened()
    for _ in range(5):
        link.send(0, frame(link, 0, push(0)))
        link.send(1, frame(link, 1, push(0)))
    offset = option(9, b"\x09") + option(14, (-(2**33)).to_bytes(8, "little", signed=True))
    data = section() + interface(1, 0, offset)
    data += b"".join(enhanced(0, time, packet, length) for time, packet, length in link.wire.records)
    path = tmp_path / "old.pcapng"
    path.write_bytes(data)
    reference = scapy([path])
    assert reference.rows[0]["time"] < 0
    agree(reference, [path], *CUTS)
