"""Conversations made at random: links of one or several sessions after a handshake, with whatever may happen on them.

The bytes of messages come from the classes; streams, datagrams and files are written out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

import scapy_zenoh as z
from scapy_zenoh.message import NETWORK, TRANSPORT
from tests.decode.made import damaged, of_family
from tests.wire import ACK, FIN, PSH, RST, SYN, TCP, UDP, Record, ethernet, ipv4, tcp, udp

START = 1_700_000_000 * 10**9
ROUTER, CLIENT, GROUP = "10.0.0.1", "10.0.0.2", "224.0.0.224"
ZIDS = ("a1b2c3", "b0b")
SN_BITS = (7, 14, 28)  # that a sequence number has, by code of the resolution


# --- links --------------------------------------------------------------------------------------


@dataclass
class Session:
    """What two nodes agree on; sequence numbers are those of all its links."""

    low_latency: bool = False
    lanes: bool = True
    several: bool = False
    resolution: int = 2
    zids: tuple[str, str] = ZIDS
    numbers: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def number(self, direction: int, lane: tuple[int, int], step: int = 1) -> int:
        """The next number of a lane."""
        key = (direction, *lane)
        number = (self.numbers.get(key, -1) + step) % (1 << SN_BITS[self.resolution])
        self.numbers[key] = number
        return number


class Wire:
    """Where all packets go, each a little later than the one before."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.time = START

    def put(self, src: str, dst: str, proto: int, data: bytes, after: int = 50_000) -> None:
        """Larger ones than IP allows are as captured before they are cut: without a length."""
        self.time += after
        packet = ethernet(ipv4(src, dst, proto, data, total=None if len(data) < 65000 else 0))
        self.records.append((self.time, packet, len(packet)))


class Link:
    """A link between client (0) and router (1): ``send`` takes the content of a batch."""

    def __init__(self, wire: Wire, session: Session, port: int) -> None:
        self.wire, self.session, self.port = wire, session, port
        self.opened = [False, False]

    def send(self, direction: int, content: bytes, hold: bool = False, cuts: tuple[int, ...] = ()) -> None:
        raise NotImplementedError

    def start(self) -> None:
        """Before the handshake."""

    def end(self, how: int) -> None:
        """After everything."""

    def handshake(self) -> None:
        """INIT and OPEN of both sides."""
        session = self.session
        exts: list[list[Any]] = [[], []]
        for chain in exts:
            if session.lanes:
                chain.append(z.ZenohExtLanes())
        if session.several:
            exts[0].append(z.ZenohExtInitSynMultiLink(modulus=b"m"))
            exts[1].append(z.ZenohExtInitAckMultiLink(modulus=b"m", nonce=b"n"))
        for chain in exts:
            if session.low_latency:
                chain.append(z.ZenohExtLowLatency())
            chain.append(z.ZenohExtPatch())
        sizes = {"sn_resolution": session.resolution, "request_resolution": 2, "batch_size": 65535}
        for direction, more in ((0, {}), (1, {"cookie": b"c"})):
            init = z.ZenohInit(zid=session.zids[direction], whatami=2 - 2 * direction, exts=exts[direction], **sizes)
            for name, value in more.items():
                init.setfieldval(name, value)
            self.send(direction, bytes(init))
        self.send(0, bytes(z.ZenohOpen(lease=10, initial_sn=0, cookie=b"c")))
        self.opened[0] = True
        self.send(1, bytes(z.ZenohOpen(lease=10, initial_sn=0)))
        self.opened[1] = True


class Stream(Link):
    """A TCP connection."""

    def __init__(self, wire: Wire, session: Session, port: int, first: int = 1000) -> None:
        super().__init__(wire, session, port)
        self.next = [first, first + 77]
        self.held = [b"", b""]

    def segment(self, direction: int, data: bytes = b"", flags: int = ACK) -> None:
        ports = (self.port, 7447)[:: -1 if direction else 1]
        ends = (CLIENT, ROUTER)[:: -1 if direction else 1]
        numbers = self.next[direction] & 0xFFFFFFFF, self.next[1 - direction] & 0xFFFFFFFF
        self.wire.put(*ends, TCP, tcp(*ports, data, *numbers, flags))
        self.next[direction] += len(data) + bool(flags & (SYN | FIN))

    def start(self) -> None:
        self.segment(0, flags=SYN)
        self.segment(1, flags=SYN | ACK)
        self.segment(0)

    def send(self, direction: int, content: bytes, hold: bool = False, cuts: tuple[int, ...] = ()) -> None:
        """``hold``: it waits for the next one; ``cuts``: where segments end."""
        size = len(content).to_bytes(4 if self.session.low_latency and self.opened[direction] else 2, "little")
        self.held[direction] += size + content
        if hold:
            return
        data, self.held[direction] = self.held[direction], b""
        places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
        for start, end in zip(places, places[1:], strict=False):
            if start < end:
                self.segment(direction, data[start:end], ACK | PSH)

    def end(self, how: int) -> None:
        for direction in (0, 1):
            if self.held[direction]:
                self.segment(direction, self.held[direction])
        if how == 1:
            self.segment(0, flags=RST)
        elif how == 2:
            self.segment(0, flags=FIN | ACK)
            self.segment(1, flags=FIN | ACK)
            self.segment(0)


class Datagrams(Link):
    """A UDP conversation."""

    def send(self, direction: int, content: bytes, hold: bool = False, cuts: tuple[int, ...] = ()) -> None:
        ends, ports = (CLIENT, ROUTER), (self.port, 7447)
        if direction:
            ends, ports = ends[::-1], ports[::-1]
        self.wire.put(*ends, UDP, udp(*ports, content))


class Group(Link):
    """One node towards a multicast group, who tells of itself by JOIN; the router sends to the same group."""

    def send(self, direction: int, content: bytes, hold: bool = False, cuts: tuple[int, ...] = ()) -> None:
        self.wire.put((CLIENT, ROUTER)[direction], GROUP, UDP, udp(self.port, 7446, content))

    def handshake(self) -> None:
        for direction in (0, 1):
            self.send(direction, join(self.session, direction))


KINDS = (Stream, Datagrams, Group)


def join(session: Session, direction: int) -> bytes:
    """A JOIN of a node."""
    exts: list[Any] = [z.ZenohExtJoinLanes(next_sns=[0] * 16)] if session.lanes else []
    sizes = {"sn_resolution": session.resolution, "request_resolution": 2, "batch_size": 8192}
    return bytes(z.ZenohJoin(zid=session.zids[direction], exts=[*exts, z.ZenohExtPatch()], **sizes))


# --- messages -----------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "a/b", "/c", "é", "*", "", "demo/example/temperature"])
NUMBERS = st.integers(0, 3)  # few, so that they meet again
SMALL = st.binary(max_size=12)
LANES = st.tuples(st.sampled_from([5, 5, 5, 2, 7]), st.sampled_from([1, 1, 0]))


def _expression(draw: st.DrawFn) -> dict[str, Any]:
    suffix = draw(st.none() | KEYS)
    return {"scope": draw(NUMBERS), "M": draw(st.integers(0, 1)), **({} if suffix is None else {"suffix": suffix})}


def _put(draw: st.DrawFn) -> Any:
    encoding = draw(st.sampled_from([{}, {"encoding_id": 4}, {"encoding_id": 4, "schema": "utf-8"}]))
    return z.ZenohPut(data=draw(SMALL), **encoding)


@st.composite
def declaring(draw: st.DrawFn) -> bytes:
    """A declaration, a withdrawal, or a message that needs them."""
    number = draw(NUMBERS)
    match draw(st.integers(0, 6)):
        case 0 | 1:
            suffix = draw(KEYS)
            message = z.ZenohDeclare() / z.ZenohDeclareKeyexpr(expr_id=number, scope=draw(NUMBERS), suffix=suffix)
        case 2:
            message = z.ZenohDeclare() / z.ZenohUndeclareKeyexpr(expr_id=number)
        case 3:
            kind = draw(st.sampled_from([z.ZenohDeclareSubscriber, z.ZenohDeclareQueryable, z.ZenohDeclareToken]))
            message = z.ZenohDeclare() / kind(id=number, **_expression(draw))
        case 4:
            kind = draw(st.sampled_from([z.ZenohUndeclareSubscriber, z.ZenohUndeclareQueryable, z.ZenohUndeclareToken]))
            exts = [z.ZenohExtWireExpr(**_expression(draw))] if draw(st.booleans()) else []
            message = z.ZenohDeclare() / kind(id=number, exts=exts)
        case _:
            message = z.ZenohPush(**_expression(draw)) / _put(draw)
    return bytes(message)


@st.composite
def telling(draw: st.DrawFn) -> bytes:
    """A message that refers to others, or that others refer to."""
    what, number = draw(st.integers(0, 10)), draw(NUMBERS)
    match what:
        case 5:
            message = z.ZenohRequest(request_id=number, **_expression(draw)) / z.ZenohQuery()
        case 6:
            body = draw(st.sampled_from([z.ZenohErr(data=b"no"), z.ZenohReply() / z.ZenohDel()]))
            message = z.ZenohResponse(request_id=number, **_expression(draw)) / body
        case 7:
            message = z.ZenohResponseFinal(request_id=number)
        case 8:
            message = z.ZenohInterest(id=number, mode=draw(st.integers(0, 3)), K=1, S=1)
        case _:
            return draw(declaring())
    return bytes(message)


def _built(packet: Any) -> bytes:
    try:
        return bytes(packet)
    except ValueError:  # pieces in shared memory that are larger together than a length can say
        reject()


NETWORK_MESSAGES = st.one_of(telling(), telling(), telling(), of_family(NETWORK).map(_built))


# --- what happens on a link ---------------------------------------------------------------------

Item = tuple[str, Any]


@st.composite
def items(draw: st.DrawFn) -> Item:
    """Something a node sends: a FRAME, a message in FRAGMENTs, or one of the rare things."""
    match draw(st.integers(0, 19)):
        case 0 | 1 | 2:
            data = b"".join(draw(st.lists(NETWORK_MESSAGES, min_size=1, max_size=1)))
            places = [0, *sorted(draw(st.sets(st.integers(0, len(data)), max_size=3))), len(data)]
            pieces = [data[start:end] for start, end in zip(places, places[1:], strict=False)]
            return "fragments", (draw(LANES), pieces)
        case 3:
            return "bare", b"\x04"
        case 4:
            return "bare", draw(st.sampled_from([b"", b"\x03\x00", b"\x23\x00", b"\x04\x04"]))
        case 5:
            return "again", draw(st.integers(0, 3))
        case 6:
            return "bare", draw(of_family(TRANSPORT).map(_built))
        case 7:
            return "bare", draw(of_family(TRANSPORT).map(_built).flatmap(damaged))
        case 8:
            return "frame", (draw(LANES), draw(st.integers(0, 70)), draw(st.lists(NETWORK_MESSAGES, max_size=2)))
        case 9:
            messages = b"".join(draw(st.lists(NETWORK_MESSAGES, min_size=1, max_size=3)))
            return "frame", (draw(LANES), 1, [draw(damaged(messages))])
    return "frame", (draw(LANES), 1, draw(st.lists(NETWORK_MESSAGES, min_size=1, max_size=4)))


@dataclass
class Turn:
    """An item of a direction of a link, on its way."""

    link: Link
    direction: int
    item: Item

    def contents(self) -> Iterator[bytes]:
        """What it takes to send it, one transport message after the other. Numbers are given as it is sent."""
        kind, value = self.item
        session = self.link.session
        match kind:
            case "frame":
                lane, step, messages = value
                if session.low_latency:
                    yield from messages
                    return
                head = z.ZenohFrame(sn=session.number(self.direction, lane, step), R=lane[1], exts=_lane(session, lane))
                yield bytes(head) + b"".join(messages)
            case "fragments":
                lane, pieces = value
                for n, piece in enumerate(pieces):
                    exts = [*_lane(session, lane), *([] if n else [z.ZenohExtFirst()])]
                    more = n < len(pieces) - 1
                    number = session.number(self.direction, lane)
                    yield bytes(z.ZenohFragment(sn=number, R=lane[1], M=more, exts=exts, data=piece))
                session.number(self.direction, lane)  # nodes leave one out
            case "again":
                if isinstance(self.link, Group):
                    yield join(session, self.direction)
                else:
                    zid = session.zids[value & 1] if value < 3 else "0c"
                    yield bytes(z.ZenohInit(zid=zid, whatami=0, **({"cookie": b"c"} if value == 2 else {})))
            case _:
                yield value


def _lane(session: Session, lane: tuple[int, int]) -> list[Any]:
    return [z.ZenohExtLane(priority=lane[0])] if session.lanes and lane[0] != 5 else []


@st.composite
def conversations(draw: st.DrawFn, kinds: tuple[type[Link], ...] = KINDS) -> list[Record]:
    """The packets of a few links."""
    wire = Wire()
    low_latency = draw(st.sampled_from([False, False, False, True]))
    several = draw(st.booleans())
    shape = {
        "low_latency": low_latency,
        "lanes": not low_latency and draw(st.booleans()),
        "several": several and not low_latency,
        "resolution": draw(st.sampled_from([2, 2, 1, 0])),
    }
    session = Session(**shape)
    links: list[Link] = []
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(kinds))
        own = session if session.several and kind is Stream else Session(**shape)
        links.append(kind(wire, own, 50000 + number))
    late = draw(st.integers(0, len(links) - 1))  # the other links open in the middle
    for link in links[: late + 1]:
        link.start()
        link.handshake()
    waiting: list[tuple[Turn, Iterator[bytes]]] = []
    batches: dict[tuple[int, int], bytes] = {}
    for step in range(draw(st.integers(1, 25))):
        if step == 3:
            for link in links[late + 1 :]:
                link.start()
                link.handshake()
        known = links[: late + 1] if step < 3 else links
        turn = Turn(draw(st.sampled_from(known)), draw(st.integers(0, 1)), draw(items()))
        waiting.append((turn, turn.contents()))
        while waiting and draw(st.integers(0, 3)):
            turn, rest = waiting[draw(st.integers(0, len(waiting) - 1))]
            content = next(rest, None)
            if content is None:
                waiting = [entry for entry in waiting if entry[1] is not rest]
                continue
            key = (links.index(turn.link), turn.direction)
            batches[key] = batches.get(key, b"") + content
            if draw(st.integers(0, 3)) and not shape["low_latency"]:
                cuts = tuple(draw(st.lists(st.integers(0, 200), max_size=3)))
                turn.link.send(turn.direction, batches.pop(key), draw(st.integers(0, 3)) == 0, cuts)
            elif shape["low_latency"]:
                turn.link.send(turn.direction, batches.pop(key), draw(st.integers(0, 3)) == 0)
    for (number, direction), content in batches.items():
        links[number].send(direction, content)
    for link in links:
        link.end(draw(st.integers(0, 2)))
    return wire.records
