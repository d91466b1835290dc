"""TCP streams: which bytes each direction of a connection carried, in order.

Packets in, events out: a connection was opened, these are its next bytes, it was closed. Positions in a
stream are whole numbers that do not wrap around; the 32-bit numbers of TCP are turned into them at once.
What happens to a connection depends on its own packets alone, however those of others lie in between.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import merge
from operator import itemgetter
from socket import AF_INET, AF_INET6, inet_pton
from typing import NamedTuple

from scapy_zenoh.capture import Packet

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

HOLE_PACKETS = 64  # an acknowledged hole stays open for so many packets of its connection ...
HOLE_TIME = 2 * 10**9  # ... or ns: packets can stand in the file out of order
MAX_WAITING = 4 << 20  # bytes that may wait behind a hole
MAX_PIECES = 1 << 16  # and in how many pieces
MAX_CUTS = 1 << 10  # places where a snap length cut that are remembered
HOLD_PACKETS = 3  # a direction whose beginning was not captured is held back for so many packets with data ...
HOLD_TIME = 200_000_000  # ... or ns
LINGER_TIME = 200_000_000  # ns in which data still counts after RST, or when FINs overtook data
REACH = 1 << 26  # no window is larger: data farther away is from another connection or damaged
SYN_REACH = 1 << 16  # how much data may stand in the file before its SYN

MAX_CONNECTIONS = 1 << 16
MAX_CLOSED = 1 << 12  # closed ones that are remembered for late packets
MAX_INSTANCES = 1 << 16  # pairs of endpoints whose instances are counted

_MASK = 0xFFFFFFFF
_HALF = 0x80000000

End = tuple[str, int]


class Opened(NamedTuple):
    """A connection, before its first Chunk."""

    link: str  # "tcp/10.0.0.1:5000-10.0.0.2:7447#0", lower endpoint first
    initiator: int | None  # direction of the side that opened it, None when no SYN was seen
    packet: Packet
    low: End
    high: End


class Chunk(NamedTuple):
    """The next bytes of a direction. ``frame``, ``time`` and ``capture`` are of the packet that brought them."""

    link: str
    direction: int  # 0: from the lower endpoint, 1: from the higher
    data: bytes  # empty only behind a gap at the end of the stream
    frame: int
    time: int
    capture: str
    gap: int  # so many bytes before these are not in the capture
    src: str
    sport: int
    dst: str
    dport: int
    order: int = 0  # of the packet that brought them among those of its connection


class Closed(NamedTuple):
    """No more events of this link follow."""

    link: str
    how: str  # "fin", "rst", "reuse" (a new connection of the same endpoints), "end" (of the capture, or no room)
    packet: Packet | None  # that closed it; None for "end"
    capture: str  # capture, frame and time of that packet, or of the last one
    frame: int
    time: int


Event = Opened | Chunk | Closed


class _Piece(NamedTuple):
    """Captured bytes that wait for those before them."""

    start: int
    data: bytes
    order: int  # packets of the connection when it came
    time: int
    frame: int
    capture: str


class _Half:
    """One direction of a connection. ``next`` is the position of the next byte to deliver."""

    __slots__ = (
        "ack_log",
        "acked",
        "cuts",
        "direction",
        "end",
        "fin",
        "held",
        "held_since",
        "isn",
        "key",
        "next",
        "seen",
        "start",
        "started",
        "stray",
        "waiting",
        "waiting_bytes",
    )

    def __init__(self, direction: int, key: tuple[str, int, str, int]) -> None:
        self.direction = direction
        self.key = key  # src, sport, dst, dport
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.isn: int | None = None  # as in the SYN
        self.started = False
        self.start = 0  # first position of the stream, once started
        self.next = 0  # as long as not started: any position near
        self.seen = False  # whether next means anything
        self.end = 0  # behind the last byte that was on the wire, captured or not
        self.fin: int | None = None
        self.acked: int | None = None  # what the other side has acknowledged
        self.ack_log: list[tuple[int, int, int]] = []  # while something waits: acked, packets, time
        self.waiting: list[_Piece] = []  # sorted, without overlaps
        self.waiting_bytes = 0
        self.cuts: list[tuple[int, int]] = []  # what snap lengths cut off, from where to where
        self.held: list[tuple[int, int]] = []  # not started: ranges of the packets with data, as they came
        self.held_since = 0
        self.stray: tuple[int, Packet] | None = None  # the last packet with data too far away, and where it ends

    def position(self, number: int) -> int:
        """The position that a sequence number means: the one nearest to what was last seen of the stream."""
        if not self.seen:
            self.seen = True
            self.next = number + (1 << 32)
        near = max(self.end, self.acked or 0) if self.started else self.next
        return near + ((number - near + _HALF) & _MASK) - _HALF

    def begin(self, position: int) -> None:
        """The stream begins here; what came from before is old."""
        self.started = self.seen = True
        self.start = self.next = position
        self.end = max(self.end, position)
        self.acked = position if self.acked is None else max(self.acked, position)
        self.held.clear()
        waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
        for piece in waiting:
            self.insert(piece)

    def begin_held(self) -> None:
        """No SYN came: begin with the first byte seen, and with what came later but directly before it."""
        start = self.held[0][0]
        for low, high in sorted(self.held, key=itemgetter(1), reverse=True):
            if low < start <= high:
                start = low
        self.begin(start)

    def insert(self, piece: _Piece) -> None:
        """Keep what is new of a piece. Bytes that came earlier win."""
        start, data = piece.start, piece.data
        end = start + len(data)
        if self.started and start < self.next:
            start = self.next
        if self.fin is not None and end > self.fin:
            end = self.fin
        waiting = self.waiting
        at = bisect_left(waiting, (start,))
        if at and (before := waiting[at - 1]).start + len(before.data) > start:
            start = before.start + len(before.data)
        while start < end:
            until = end if at == len(waiting) else min(end, waiting[at].start)
            if start < until:
                new = data[start - piece.start : until - piece.start]
                waiting.insert(at, _Piece(start, new, *piece[2:]))
                self.waiting_bytes += until - start
                at += 1
            if at == len(waiting):
                break
            start = max(until, waiting[at].start + len(waiting[at].data))
            at += 1

    def cut(self, start: int, end: int) -> None:
        """Remember what a snap length cut off; the oldest go when there are too many."""
        if self.cuts and self.cuts[-1][1] == start:
            start, _ = self.cuts.pop()
        elif len(self.cuts) >= MAX_CUTS:
            del self.cuts[: MAX_CUTS // 2]
        self.cuts.append((start, end))

    def take(
        self, now: int, upto: int | None, connection: _Connection, before: int | None = None
    ) -> list[tuple[int, Chunk]]:
        """What can be delivered, with the order of each. Holes are given up that end at or before ``upto``.

        What came after packet ``before`` of the connection waits: the other direction has a hole there, and an
        answer must not overtake what it answers.
        """
        waiting = self.waiting
        taken: list[tuple[int, Chunk]] = []
        done = 0
        for piece in waiting:
            gap = piece.start - self.next
            full = self.waiting_bytes > MAX_WAITING or len(waiting) - done > MAX_PIECES
            if before is not None and piece.order > before and not full:
                break
            if gap and (upto is None or piece.start > upto):
                if not full and not self._hopeless(piece, now, connection):
                    break
            chunk = Chunk(
                connection.link,
                self.direction,
                piece.data,
                piece.frame,
                piece.time,
                piece.capture,
                gap,
                *self.key,
                piece.order,
            )
            taken.append((piece.order, chunk))
            self.next = piece.start + len(piece.data)
            self.waiting_bytes -= len(piece.data)
            done += 1
        del waiting[:done]
        if not waiting:
            self.ack_log.clear()
        if self.cuts and done:
            self.cuts = [cut for cut in self.cuts if cut[1] > self.next]
        return taken

    def blocked(self, now: int, connection: _Connection) -> int | None:
        """The first packet of the connection whose data waits behind a hole that may still be filled."""
        end = self.next
        for at, piece in enumerate(self.waiting):
            if piece.start > end and not self._hopeless(piece, now, connection):
                return min(later.order for later in self.waiting[at:])
            end = piece.start + len(piece.data)
        return None

    def _hopeless(self, piece: _Piece, now: int, connection: _Connection) -> bool:
        """True when the hole before a piece will not be filled any more."""
        if self.acked is None or self.acked < piece.start:
            return False
        if any(low <= self.next and piece.start <= high for low, high in self.cuts):
            return True  # the packet did arrive, and what it brought is not in the file
        packets, time = piece.order, piece.time
        at = bisect_left(self.ack_log, (piece.start,))
        if at < len(self.ack_log) and self.ack_log[at][1] > packets:
            _, packets, time = self.ack_log[at]
        return connection.packets - packets >= HOLE_PACKETS or now - time >= HOLE_TIME

    def log_ack(self, packets: int, time: int) -> None:
        """Remember when the other side acknowledged what, as long as something waits."""
        if self.acked is not None and self.waiting:
            self.ack_log.append((self.acked, packets, time))

    def missing_at_end(self) -> int:
        """Bytes behind the last delivered one that were on the wire."""
        if not self.started:
            return 0
        if self.fin is not None:
            return max(self.fin - self.next, 0)
        end = max(self.end, self.next)
        if self.acked is not None and self.acked - end > 1:  # 1: a FIN that is not in the capture
            end = self.acked
        return end - self.next


class _Connection:
    """Both directions of a connection."""

    __slots__ = ("closed", "closing", "data", "halves", "last", "link", "packets", "touched")

    def __init__(self, link: str, low: tuple[str, int, str, int], high: tuple[str, int, str, int]) -> None:
        self.link = link
        self.halves = _Half(0, low), _Half(1, high)
        self.packets = 0
        self.data = False  # some packet had data
        self.closing: tuple[str, Packet] | None = None  # how and by which packet, while late data can still come
        self.closed = False
        self.last: tuple[str, int, int] = ("", 0, 0)  # capture, frame, time
        self.touched = 0


class TcpStreams:
    """All TCP connections of a recording.

    ``dropped`` counts connections that were given up because there were more than ``limit``, ``late_bytes``
    the data that came after its connection was closed, ``strays`` the packets whose data is so far from the
    rest of its stream that it cannot belong there.
    """

    def __init__(self, limit: int = MAX_CONNECTIONS) -> None:
        self.dropped = 0
        self.late_bytes = 0
        self.strays = 0
        self._limit = limit
        self.fed = 0
        self._flows: dict[tuple[str, int, str, int], tuple[_Connection, _Half, _Half]] = {}
        self._live: dict[str, _Connection] = {}
        self._closing: dict[str, _Connection] = {}  # those of _live that linger, oldest first
        self._closed: dict[str, _Connection] = {}
        self._instances: dict[tuple[str, int, str, int], int] = {}

    def feed(self, packet: Packet) -> list[Event]:
        """The events that a packet causes, oldest first. Packets that are not TCP cause none."""
        if packet.proto != "tcp":
            return []
        events: list[Event] = []
        self.fed += 1
        if self._closing:
            self._sweep(packet.time, events)
        flow = self._flows.get(packet[3:7])
        flags = packet.flags
        if flow is not None:
            connection, half, peer = flow
            # Nearly all packets: the next bytes, or none, and nothing waits.
            if (
                flags & (SYN | FIN | RST) == 0
                and half.started
                and peer.started
                and (packet.seq - half.next) & _MASK == 0
                and not (half.waiting or peer.waiting or packet.missing or connection.closing or connection.closed)
                and half.fin is None
                and peer.fin is None
            ):
                connection.packets += 1
                connection.touched = self.fed
                connection.last = packet[:3]
                ahead = (packet.ack - (peer.acked or 0)) & _MASK
                if ahead and ahead < _HALF and flags & ACK:
                    self._acknowledge(connection, peer, packet)
                data = packet.payload
                if data:
                    connection.data = True
                    half.next += len(data)
                    if half.next > half.end:
                        half.end = half.next
                    capture, frame, time = packet[:3]
                    key, order = half.key, connection.packets
                    chunk = Chunk(connection.link, half.direction, data, frame, time, capture, 0, *key, order)
                    events.append(chunk)
                return events
            if self._is_other(connection, half, packet, events):
                flow = None
        if flow is None:
            flow = self._open(packet, events)
            if flow is None:
                return events
        connection, half, peer = flow
        if connection.closed:
            self._late(half, packet)
            return events
        self._take(connection, half, peer, packet, events)
        return events

    def regular(self, packet: Packet) -> tuple[_Connection, _Half, _Half] | None:
        """The connection of a packet and its directions, if the next one can only be the next bytes, or none."""
        flow = self._flows.get(packet[3:7])
        if flow is None or flow[0].closing or flow[0].closed:
            return None
        if any(not half.started or half.waiting or half.fin is not None for half in flow[1:]):
            return None
        return flow

    def lingering_since(self) -> int | None:
        """When the connection that lingers longest began to; None if none does."""
        for connection in self._closing.values():
            if connection.closing:
                return connection.closing[1].time
        return None

    def is_full(self) -> bool:
        """True when another connection may push old ones out."""
        return len(self._live) >= self._limit

    def finish(self) -> list[Event]:
        """The capture is over: what still waits, with its gaps."""
        events: list[Event] = []
        for connection in list(self._live.values()):
            self._close(connection, "end", None, events)
        return events

    # -- opening --

    def _is_other(self, connection: _Connection, half: _Half, packet: Packet, events: list[Event]) -> bool:
        """True when a packet of known endpoints belongs to a new connection; the old one is closed then."""
        closing = connection.closing
        if closing and packet.time - closing[1].time >= LINGER_TIME:
            self._close(connection, "end", None, events)
        if packet.flags & RST:
            return False
        if packet.flags & SYN == 0:
            return connection.closed and half.started and abs(half.position(packet.seq) - half.next) > REACH
        if half.isn == packet.seq:
            return False
        if half.isn is None and not connection.closed:
            if not half.seen:
                return False  # nothing is known of this side yet
            place = half.start if half.started else half.held[0][0] if half.held else half.next
            if 0 <= place - half.position(packet.seq + 1 & _MASK) <= SYN_REACH:
                return False  # it stands in the file behind what it opened
        if not (connection.data or connection.closed or connection.closing):
            for side in connection.halves:
                side.forget()  # another try to open it
            return False
        if not connection.closed:
            self._close(connection, "reuse", packet, events)
        return True

    def _open(self, packet: Packet, events: list[Event]) -> tuple[_Connection, _Half, _Half] | None:
        """A new connection that begins with this packet."""
        if packet.flags & RST:
            return None
        key: tuple[str, int, str, int] = packet[3:7]
        back = (key[2], key[3], key[0], key[1])
        low, high = (key, back) if _rank(key[0], key[1]) <= _rank(key[2], key[3]) else (back, key)
        instance = self._instances.pop(low, -1) + 1
        self._instances[low] = instance
        if len(self._instances) > MAX_INSTANCES:
            del self._instances[next(iter(self._instances))]
        link = f"tcp/{_text(low[0], low[1])}-{_text(low[2], low[3])}#{instance}"
        connection = _Connection(link, low, high)
        first, second = connection.halves
        self._flows[high] = connection, second, first
        self._flows[low] = connection, first, second
        self._live[link] = connection
        direction = 0 if key == low else 1
        initiator = None
        if packet.flags & SYN:
            initiator = 1 - direction if packet.flags & ACK else direction
        events.append(Opened(link, initiator, packet, low[:2], high[:2]))
        if len(self._live) > self._limit:
            self._make_room(connection, events)
        return self._flows[key]

    def _make_room(self, newest: _Connection, events: list[Event]) -> None:
        """Give up an eighth of the connections, those without packets for the longest time."""
        newest.touched = self.fed
        for connection in sorted(self._live.values(), key=lambda c: c.touched)[: max(self._limit // 8, 1)]:
            self.dropped += 1
            self._close(connection, "end", None, events)

    # -- packets of an open connection --

    def _take(self, connection: _Connection, half: _Half, peer: _Half, packet: Packet, events: list[Event]) -> None:
        """Any packet of an open connection."""
        flags, seq = packet.flags, packet.seq
        connection.packets += 1
        connection.touched = self.fed
        connection.last = packet[:3]
        if flags & SYN:
            seq = seq + 1 & _MASK
            if half.isn is None:
                half.isn = packet.seq
                if not half.started:
                    half.begin(half.position(seq))
        if flags & ACK:
            if not peer.started and (flags & SYN or (not peer.held and half.isn is not None and seq == half.isn + 1)):
                # The other side's SYN was not captured, but this answers it.
                place = peer.position(packet.ack)
                if not peer.held or 0 <= peer.held[0][0] - place <= SYN_REACH:
                    peer.begin(place)
            self._acknowledge(connection, peer, packet)
        if packet.payload or packet.missing:
            connection.data = True
            self._data(connection, half, packet, seq, events)
        if flags & FIN and half.fin is None:
            fin = half.position((seq + len(packet.payload) + packet.missing) & _MASK)
            if not half.started or half.next <= fin <= max(half.end, half.next) + REACH:
                half.fin = fin
        if flags & RST and not connection.closing and self._believable_reset(half, seq):
            connection.closing = "rst", packet
            self._closing[connection.link] = connection
        if half.held or peer.held:
            self._release(half, peer, packet.time)
        if half.waiting or peer.waiting:
            self._deliver(connection, packet.time, events)
        if not connection.closing and all(
            side.fin is not None and side.acked is not None and side.acked > side.fin for side in connection.halves
        ):
            connection.closing = "fin", packet
            self._closing[connection.link] = connection
        if connection.closing and connection.closing[0] == "fin":
            if all(not side.started or side.next == side.fin for side in connection.halves):
                self._close(connection, "end", None, events)

    def _acknowledge(self, connection: _Connection, peer: _Half, packet: Packet) -> None:
        """The sender of a packet has everything of its peer up to here."""
        place = peer.position(packet.ack)
        if peer.acked is None or (peer.acked < place <= max(peer.end, peer.next, peer.acked) + REACH):
            peer.acked = place
            if not peer.started and not peer.held:
                peer.next = place
            peer.log_ack(connection.packets, packet.time)

    def _data(self, connection: _Connection, half: _Half, packet: Packet, seq: int, events: list[Event]) -> None:
        """Put the data of a packet where it belongs."""
        start = half.position(seq)
        captured = start + len(packet.payload)
        end = captured + packet.missing
        if half.started or half.held:
            last = max(half.end, half.acked or 0, half.next)
            if not half.next - REACH <= start <= last + REACH:
                self._astray(connection, half, packet, seq, events)
                return
        if not half.started:
            if len(packet.payload) == 1 and half.acked == end and not half.held:
                return  # a keep-alive probe
            if not half.held:
                half.held_since = packet.time
                half.next = start
            half.held.append((start, end))
        half.end = max(half.end, end)
        if packet.missing:
            half.cut(captured, end)
        waited = bool(half.waiting)
        half.insert(_Piece(start, packet.payload, connection.packets, packet.time, packet.frame, packet.capture))
        if not waited:
            half.log_ack(connection.packets, packet.time)

    def _astray(self, connection: _Connection, half: _Half, packet: Packet, seq: int, events: list[Event]) -> None:
        """Data far away is ignored, unless the next such packet continues it: then a part of the capture is lost."""
        self.strays += 1
        before, half.stray = half.stray, (seq + len(packet.payload) + packet.missing & _MASK, packet)
        if before is None or before[0] != seq:
            return
        self.strays -= 2
        half.stray = None
        if half.held:
            half.begin_held()
        events.extend(chunk for _, chunk in half.take(packet.time, half.end, connection))
        first = before[1]
        gap = (first.seq - half.next) & _MASK
        half.next = half.end = half.acked = half.next + gap + len(first.payload)
        half.cuts.clear()
        half.fin = None
        chunk_of = first.payload, first.frame, first.time, first.capture, gap
        events.append(Chunk(connection.link, half.direction, *chunk_of, *half.key, connection.packets - 1))
        self._data(connection, half, packet, seq, events)

    @staticmethod
    def _believable_reset(half: _Half, seq: int) -> bool:
        """False for a RST that belongs to an older connection of the same endpoints."""
        return not half.started or abs(half.position(seq) - max(half.next, half.end)) <= REACH

    @staticmethod
    def _release(half: _Half, peer: _Half, time: int) -> None:
        """Begin the directions that were held back, both at once so that their order stays."""
        held = [side for side in (half, peer) if side.held]
        if all(len(side.held) >= HOLD_PACKETS or time - side.held_since >= HOLD_TIME for side in held):
            for side in held:
                side.begin_held()

    @staticmethod
    def _deliver(connection: _Connection, time: int, events: list[Event]) -> None:
        """Hand out what is in order now, both directions in the order of their packets."""
        low, high = connection.halves
        barriers = high.blocked(time, connection), low.blocked(time, connection)
        taken = [
            side.take(time, None, connection, before)
            for side, before in zip(connection.halves, barriers, strict=True)
            if side.started and side.waiting
        ]
        events.extend(chunk for _, chunk in merge(*taken, key=itemgetter(0)))

    # -- closing --

    def _sweep(self, time: int, events: list[Event]) -> None:
        """Close what has lingered; twice the time, so that packets of the connection itself decide if there are any."""
        for connection in list(self._closing.values()):
            if connection.closing and time - connection.closing[1].time < 2 * LINGER_TIME:
                break
            self._close(connection, "end", None, events)

    def _close(self, connection: _Connection, how: str, packet: Packet | None, events: list[Event]) -> None:
        """Hand out the rest of a connection and forget it, except for late packets."""
        if connection.closing:
            how, packet = connection.closing
            del self._closing[connection.link]
            connection.closing = None
        del self._live[connection.link]
        connection.closed = True
        capture, frame, time = connection.last if packet is None or how == "reuse" else packet[:3]
        for side in connection.halves:
            if side.held:
                side.begin_held()
        taken = [side.take(time, side.end, connection) for side in connection.halves if side.started]
        events.extend(chunk for _, chunk in merge(*taken, key=itemgetter(0)))
        for side in connection.halves:
            missing = side.missing_at_end()
            if missing:
                events.append(Chunk(connection.link, side.direction, b"", frame, time, capture, missing, *side.key))
                side.next += missing
                side.end = side.next
            side.cuts.clear()
            side.stray = None
        events.append(Closed(connection.link, how, packet, capture, frame, time))
        self._closed[connection.link] = connection
        if len(self._closed) > MAX_CLOSED:
            oldest = self._closed.pop(next(iter(self._closed)))
            for side in oldest.halves:
                if side.key in self._flows and self._flows[side.key][0] is oldest:
                    del self._flows[side.key]

    def _late(self, half: _Half, packet: Packet) -> None:
        """Count new data of a connection that is closed."""
        if half.started and packet.payload:
            end = half.position(packet.seq) + len(packet.payload)
            self.late_bytes += min(max(end - half.next, 0), len(packet.payload))
            half.next = half.end = max(half.next, end)


def _rank(address: str, port: int) -> tuple[bytes, int]:
    return inet_pton(AF_INET6 if ":" in address else AF_INET, address), port


def _text(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
