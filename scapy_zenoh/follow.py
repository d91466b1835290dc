"""From captured packets to rows: finds the Zenoh links, cuts them into batches and asks the session for names.

Every byte of a Zenoh link ends up decoded, undecoded or missing; ``Accounting`` adds them up.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scapy_zenoh import framing as frames
from scapy_zenoh.capture import Packet
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.link import SCOUTING_PORTS, TCP_PORTS, UDP_PORTS, is_hello
from scapy_zenoh.message import SCOUTING, Faulty, Malformed, stopped
from scapy_zenoh.parsing import parse
from scapy_zenoh.records import record_of
from scapy_zenoh.rows import Origin, Row, row_of
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.session.tracker import Link, Tracker
from scapy_zenoh.streams import Chunk, Closed, Opened, TcpStreams
from scapy_zenoh.tls import Decryptor, Plain
from scapy_zenoh.transport import ZenohFragment, ZenohFrame, ZenohInit, ZenohJoin
from scapy_zenoh.websocket import UPGRADE_END, WebSocketReader

#: Bytes of a stream that are kept while nobody knows yet whether it is Zenoh, or where its batches begin.
UNDECIDED = 1 << 18
#: Datagrams of a link that are kept while nobody knows yet whether it is Zenoh.
UNDECIDED_DATAGRAMS = 16

FRAMINGS = ("plain", "lowlatency", "compressed")
#: Faults that bytes missing in the capture can cause.
CUT = {FaultKind.TRUNCATED, FaultKind.BAD_LENGTH, FaultKind.CHAIN_CUT, FaultKind.BODY_MISSING}

_LOCATOR = re.compile(r"(tcp|tls|ws|udp|quic)/(.+):(\d+)(?:[?#].*)?$")


@dataclass
class Accounting:
    """What became of every byte: ``zenoh_bytes == decoded_bytes + undecoded_bytes``."""

    zenoh_packets: int = 0
    zenoh_bytes: int = 0
    decoded_bytes: int = 0
    undecoded_bytes: int = 0
    missing_bytes: int = 0
    messages: int = 0
    faults: int = 0
    fault_kinds: Counter[str] = field(default_factory=Counter)

    def decoded(self, count: int) -> None:
        """Bytes of a Zenoh link that were read."""
        self.zenoh_bytes += count
        self.decoded_bytes += count

    def undecoded(self, count: int) -> None:
        """Bytes of a Zenoh link that could not be read."""
        self.zenoh_bytes += count
        self.undecoded_bytes += count


@dataclass(frozen=True, slots=True)
class Where:
    """The packet that brought some bytes; ``order`` grows from packet to packet, over all files."""

    order: int
    capture: str
    frame: int
    time: int


@dataclass
class Ends:
    """Addresses of a link; direction 0 is from ``low``."""

    low: tuple[str, int]
    high: tuple[str, int]

    def origin(self, direction: int, where: Where, proto: str) -> Origin:
        """The origin of messages in a direction."""
        (src, sport), (dst, dport) = (self.low, self.high) if direction == 0 else (self.high, self.low)
        return Origin(where.capture, where.frame, where.time, src, sport, dst, dport, proto)

    def ports(self) -> set[int]:
        """The two ports."""
        return {self.low[1], self.high[1]}


class Tape:
    """The bytes of one direction that are not used yet, and which packets brought them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.marks: deque[tuple[int, Where]] = deque()  # (end of the piece, counted from the start; its packet)
        self.start = 0

    def append(self, data: bytes, where: Where) -> None:
        """Add what a packet brought."""
        self.data += data
        self.marks.append((self.start + len(self.data), where))

    def where(self, size: int) -> Where:
        """The latest packet among those that brought the next ``size`` bytes."""
        latest: Where | None = None
        for end, where in self.marks:
            if latest is None or where.order > latest.order:
                latest = where
            if end >= self.start + size:
                break
        assert latest is not None
        return latest

    def take(self, size: int) -> bytes:
        """Remove the next ``size`` bytes."""
        taken = bytes(self.data[:size])
        del self.data[:size]
        self.start += size
        while len(self.marks) > 1 and self.marks[0][0] <= self.start:
            self.marks.popleft()
        return taken


class Follower:
    """Packets in, rows out. ``ports`` are read as Zenoh besides the default ones."""

    def __init__(
        self, ports: Iterable[int] = (), tracker: Tracker | None = None, decryptor: Decryptor | None = None
    ) -> None:
        self._decryptor = decryptor
        self.tracker = tracker or Tracker()
        self.accounting = Accounting()
        self.tcp_ports = {*TCP_PORTS, *ports}
        self.udp_ports = {*UDP_PORTS, *ports}
        self.scouting_ports = set(SCOUTING_PORTS)
        self.opaque: dict[str, dict[str, Any]] = {}
        self.links: list[Link] = []
        self._streams = TcpStreams()
        self._tcp: dict[str, StreamLink] = {}
        self._udp: dict[tuple[tuple[str, int], tuple[str, int]], DatagramLink] = {}
        self._files: dict[str, int] = {}
        self._rows: list[Row] = []

    def feed(self, packet: Packet) -> list[Row]:
        """The rows that a packet completes."""
        if packet.proto == "udp":
            self._datagram(packet, self._where(packet))
        else:
            self._events(self._streams.feed(packet))
            if self._decryptor is not None:
                for plain in self._decryptor.at(packet.capture, packet.frame):
                    self._decrypted(plain, self._where(packet))
        return self._take()

    def finish(self) -> list[Row]:
        """The recording is over; the rows that were waiting for more."""
        self._events(self._streams.finish())
        for stream in list(self._tcp.values()):
            stream.finish()
        for link in self._udp.values():
            link.finish()
        self.tracker.finish()
        return self._take()

    def _where(self, seen: Packet | Chunk) -> Where:
        file = self._files.setdefault(seen.capture, len(self._files))
        return Where(file << 40 | seen.frame, seen.capture, seen.frame, seen.time)

    def _take(self) -> list[Row]:
        rows, self._rows = self._rows, []
        return rows

    # -- what links call --

    def row(self, record: MessageRecord, origin: Origin) -> None:
        """A message is complete."""
        self.accounting.messages += record.kind != "unknown"
        if record.fault:
            self.accounting.faults += 1
            self.accounting.fault_kinds[record.fault] += 1
        for locator in (*record.gossip, *(record.locators or ())):
            self._learn(locator)
        self._rows.append(row_of(record, origin))

    def _learn(self, locator: str) -> None:
        """A node says where it listens: that port is Zenoh's."""
        match = _LOCATOR.match(locator)
        if match:
            ports = self.udp_ports if match[1] in ("udp", "quic") else self.tcp_ports
            ports.add(int(match[3]))

    def new_link(self, link: Link) -> Link:
        """A link turned out to be Zenoh."""
        self.links.append(link)
        return self.tracker.open_link(link)

    def mark_opaque(self, link: str, proto: str, size: int) -> None:
        """Bytes of a link whose content cannot be read."""
        entry = self.opaque.setdefault(link, {"link": link, "proto": proto, "bytes": 0})
        entry["bytes"] += size

    # -- TCP --

    def _events(self, events: Iterable[Any]) -> None:
        for event in events:
            match event:
                case Opened():
                    self._tcp[event.link] = StreamLink(self, event)
                case Chunk():
                    self._tcp[event.link].feed(event, self._where(event))
                case Closed():
                    stream = self._tcp.pop(event.link, None)
                    if stream is not None:
                        stream.finish()
                        stream.close(event.time)

    def _decrypted(self, plain: Plain, where: Where) -> None:
        """Plain text of a TLS connection: a stream of its own beside the TCP one."""
        for stream in self._tcp.values():
            if {stream.ends.low, stream.ends.high} == {plain.src, plain.dst}:
                stream.decrypted(plain, where)
                return

    # -- UDP --

    def _datagram(self, packet: Packet, where: Where) -> None:
        if not packet.payload and not packet.missing:
            return
        src, dst = (packet.src, packet.sport), (packet.dst, packet.dport)
        group = _is_multicast(packet.dst)
        ends = (src, dst) if group or _rank(src) <= _rank(dst) else (dst, src)
        link = self._udp.get(ends)
        if link is None:
            link = self._udp[ends] = DatagramLink(self, Ends(*ends), group)
        link.feed(packet, 0 if src == ends[0] else 1, where)


def _rank(end: tuple[str, int]) -> tuple[int, bytes, int]:
    address = ipaddress.ip_address(end[0].partition("%")[0])
    return address.version, address.packed, end[1]


def _is_multicast(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_multicast


# --- what all links share -----------------------------------------------------------------------


class MessageSource:
    """A link known to be Zenoh: turns its batches into rows."""

    def __init__(self, follower: Follower, ends: Ends, proto: str, name: str) -> None:
        self.follower, self.ends, self.proto, self.name = follower, ends, proto, name
        self.link: Link | None = None
        self.batches = [0, 0]

    def emit(self, direction: int, batch: Any, where: Where, framing: str, cut: bool = False) -> None:
        """Rows of all messages of a batch; ``cut``: its end is missing in the capture."""
        ordinal = 0
        for message in batch.carried():
            record = self._record(message, framing, cut)
            self._tell(direction, record, where, ordinal, framing)
            ordinal += 1
            if isinstance(message, ZenohFrame):
                for inner in message.msgs:
                    one = self._record(inner, framing, cut)
                    one.layer = "network"
                    one.sn, one.reliable = record.sn, record.reliable
                    self._tell(direction, one, where, ordinal, framing)
                    ordinal += 1
            elif isinstance(message, ZenohFragment) and not record.fault:
                ordinal += self._reassemble(direction, record, where, ordinal, framing)
        if batch.own_fault is not None and not ordinal:
            self.unknown(direction, where, str(batch.own_fault.kind), framing)
            return
        self.batches[direction] += 1

    def _record(self, message: Any, framing: str, cut: bool) -> MessageRecord:
        record = record_of(message)
        if cut and record.fault in CUT:
            record.fault = "gap" if self.proto != "udp" else "truncated"
        if cut and isinstance(message, ZenohFragment):
            record.fault = record.fault or ("gap" if self.proto != "udp" else "truncated")
        return record

    def _reassemble(self, direction: int, record: MessageRecord, where: Where, ordinal: int, framing: str) -> int:
        assert self.link is not None
        whole = self.follower.tracker.fragment(self.link, direction, record)
        if whole is None:
            return 0
        data, count = whole
        message, rest = parse(data, "network")
        one = record_of(message)
        one.layer = "network"
        if rest and one.fault is None:
            one.fault = str(FaultKind.TRAILING_BYTES)
        one.sn, one.reliable, one.fragments = record.sn, record.reliable, count
        self._tell(direction, one, where, ordinal, framing)
        return 1

    def _tell(self, direction: int, record: MessageRecord, where: Where, ordinal: int, framing: str) -> None:
        assert self.link is not None
        record.batch, record.msg = self.batches[direction], ordinal
        record.compressed, record.lowlatency = framing == "compressed", framing == "lowlatency"
        self.follower.tracker.message(self.link, direction, record, where.time)
        self.follower.row(record, self.ends.origin(direction, where, self.proto))

    def unknown(self, direction: int, where: Where, fault: str, framing: str = "plain") -> None:
        """One row for bytes that belong to no readable message."""
        self._tell(direction, MessageRecord("transport", "unknown", fault=fault), where, 0, framing)
        self.batches[direction] += 1

    def fits(self, direction: int) -> Callable[[Any], int]:
        """Whether the number of a FRAME goes on from those seen in this direction: 1 yes, 0 cannot tell, -1 no."""
        link = self.link
        if link is None:
            return frames.no_opinion
        session = link.session
        side = session.sides[link.side_of[direction]]

        def verdict(message: Any) -> int:
            record = record_of(message)
            if record.sn is None or record.sn > session.mask:
                return -1
            lane = side.lanes.get(Tracker._lane_key(session, record))
            if lane is None or lane.last is None or session.mask < 0x3FFF:
                return 0
            return 1 if (record.sn - lane.last) & session.mask < 0x1000 else 0

        return verdict


def undecoded_of(batch: Any) -> int:
    """Bytes of a batch from a fault on."""
    total = 0
    for pkt in _walk(batch):
        if isinstance(pkt, Malformed):
            total += len(pkt.load)
    return total


def _walk(pkt: Any) -> Iterator[Any]:
    while pkt:
        yield pkt
        for holder in pkt.packetfields:
            for inner in pkt.fields.get(holder.name) or ():
                yield from _walk(inner)
        pkt = pkt.payload


# --- streams ------------------------------------------------------------------------------------


class StreamLink(MessageSource):
    """A TCP connection: undecided, then Zenoh (also inside WebSocket), opaque, or something else."""

    def __init__(self, follower: Follower, opened: Opened, proto: str = "tcp") -> None:
        ends = Ends(opened.low, opened.high)
        super().__init__(follower, ends, proto, opened.link.replace("tcp/", f"{proto}/", 1))
        self.opened = opened
        self.inside: StreamLink | None = None  # the plain text of TLS
        self.initiator = opened.initiator
        self.kind = "undecided"
        self.tapes = (Tape(), Tape())
        self.skip = [0, 0]  # bytes of a batch whose beginning is lost
        lost = opened.initiator is None
        self.lost = [lost, lost]  # where the next batch begins is not known
        self.told = [False, False]  # the fault that lost it has its row
        self.tried = [0, 0]  # how much there was when the next batch was last looked for
        self.sockets: tuple[WebSocketReader, WebSocketReader] | None = None
        self.undecided_missing = 0
        self.undecided_packets = 0

    @property
    def known_port(self) -> bool:
        """True on a port that is Zenoh's."""
        return bool(self.ends.ports() & self.follower.tcp_ports)

    def feed(self, chunk: Chunk, where: Where) -> None:
        """Take the next bytes of a direction."""
        direction = chunk.direction
        if self.kind == "opaque":
            if self.inside is None:
                self.follower.mark_opaque(self.name, self.proto, len(chunk.data))
            return
        if self.kind == "other":
            return
        if chunk.gap:
            self._gap(direction, chunk.gap, where)
        if not chunk.data:
            return
        if self.link is None:
            self.undecided_packets += 1
        else:
            self.follower.accounting.zenoh_packets += 1
        if self.kind == "websocket":
            self._websocket(direction, chunk.data, where)
            return
        self.tapes[direction].append(chunk.data, where)
        if self.kind == "undecided":
            self._decide(final=False)
        if self.kind == "zenoh":
            self._drain(direction)

    # -- is it Zenoh? --

    def _decide(self, final: bool) -> None:
        starts = [bytes(tape.data[:4]) for tape in self.tapes]
        if self.proto == "tcp" and (self.initiator is not None or self.known_port):
            if any(start[:1] == b"\x16" and start[1:2] == b"\x03" for start in starts):
                self._settle_opaque("tls")
                return
            if any(start in (b"GET ", b"HTTP") for start in starts):
                self._upgrade(final)
                return
        for direction in (0, 1):
            if self._proves(direction, final):
                self._settle(final)
                return
        if final or sum(len(tape.data) for tape in self.tapes) > UNDECIDED or self._hopeless():
            self.kind = "other"
            for tape in self.tapes:
                tape.data.clear()

    def _hopeless(self) -> bool:
        """A connection seen from its start on some port that does not begin with INIT is not Zenoh."""
        if self.initiator is None or self.known_port:
            return False
        data = self.tapes[self.initiator].data
        size = frames.size_at(data, 0, "plain")
        return size is not None and (size <= len(data) or size > 4096 or (len(data) > 2 and data[2] & 0x3F != 1))

    def _proves(self, direction: int, final: bool) -> bool:
        """True when what this direction has shown so far is Zenoh."""
        data = bytes(self.tapes[direction].data)
        if self.initiator is not None and not self.lost[direction]:
            size = frames.size_at(data, 0, "plain")
            if size is not None and size <= len(data):
                messages = frames.BATCH["plain"](data[:size]).carried()
                whole = len(messages) == 1 and isinstance(messages[0], ZenohInit) and not messages[0].fault
                if whole and messages[0].version == 9:
                    return True
            if not self.known_port:
                return False
        if len(data) < 4 or not final and len(data) < 1.3 * self.tried[direction]:
            return False
        self.tried[direction] = len(data)
        enough = 4 if self.known_port else 8
        return frames.find(data, FRAMINGS, frames.no_opinion, enough, final) is not None

    def _settle(self, final: bool) -> None:
        self.kind = "zenoh"
        self.link = self.follower.new_link(Link(self.name, self.proto, ordered=True))
        self.follower.accounting.missing_bytes += self.undecided_missing
        self.follower.accounting.zenoh_packets += self.undecided_packets
        self.tried = [0, 0]
        order = (0, 1) if self.initiator in (None, 0) else (1, 0)
        if self.initiator is None:
            self._guess_framing(final)
        self._drain_both(order)

    def _guess_framing(self, final: bool) -> None:
        """Mid-stream: the framing of the direction that shows it holds for both."""
        for direction in (0, 1):
            data = bytes(self.tapes[direction].data)
            found = frames.find(data, FRAMINGS, frames.no_opinion, 4, final)
            if found is not None and self.link is not None:
                self.link.framing_override = found[1]
                return

    def _drain_both(self, order: tuple[int, int]) -> None:
        """Both directions waited for the decision: an answer is read after what it answers."""
        progress = True
        while progress:
            progress = False
            for direction in order:
                before = self.tapes[direction].start
                self._drain(direction, most=1)
                progress = progress or self.tapes[direction].start != before
        for direction in order:
            self._drain(direction)

    def _settle_opaque(self, proto: str) -> None:
        if not self.known_port:
            self.kind = "other"
            return
        self.kind, self.proto = "opaque", proto
        name = self.name.replace("tcp/", f"{proto}/", 1)
        self.name = name
        self.follower.mark_opaque(name, proto, sum(len(tape.data) for tape in self.tapes))

    def decrypted(self, plain: Plain, where: Where) -> None:
        """Plain text of this connection has become readable."""
        if self.inside is None:
            self.inside = StreamLink(self.follower, self.opened, "tls")
            self.follower.opaque.pop(self.inside.name, None)
        direction = 0 if plain.src == self.ends.low else 1
        chunk = Chunk(
            self.inside.name, direction, plain.data, where.frame, where.time, where.capture, 0, *plain.src, *plain.dst
        )
        self.inside.feed(chunk, where)

    # -- WebSocket --

    def _upgrade(self, final: bool) -> None:
        """An HTTP connection becomes a WebSocket after both sides have sent their headers."""
        heads = [bytes(tape.data).partition(UPGRADE_END) for tape in self.tapes]
        if not all(separator for _, separator, _ in heads):
            if final or any(len(tape.data) > 16384 for tape in self.tapes):
                self.kind = "other"
            return
        if not any(b"upgrade: websocket" in head.lower() for head, _, _ in heads):
            self.kind = "other"
            return
        self.kind, self.proto = "websocket", "ws"
        self.name = self.name.replace("tcp/", "ws/", 1)
        self.sockets = (WebSocketReader(), WebSocketReader())
        for direction, (head, separator, rest) in enumerate(heads):
            where = self.tapes[direction].where(len(self.tapes[direction].data))
            self.tapes[direction].take(len(head) + len(separator))
            if rest:
                self._websocket(direction, rest, where)

    def _websocket(self, direction: int, data: bytes, where: Where) -> None:
        assert self.sockets is not None
        for content in self.sockets[direction].feed(data):
            if self.link is None:
                if not content or stopped(frames.DATAGRAM["plain"](content)):
                    continue
                self.link = self.follower.new_link(Link(self.name, "ws", ordered=True))
                self.follower.accounting.zenoh_packets += 1
            framing = self.link.framing(direction)
            batch = frames.DATAGRAM[framing](content)
            bad = min(undecoded_of(batch), len(content))
            self.follower.accounting.decoded(len(content) - bad)
            self.follower.accounting.undecoded(bad)
            self.emit(direction, batch, where, framing)

    # -- batches --

    def _drain(self, direction: int, most: int = 0) -> None:
        """Read all whole batches (or ``most`` of them)."""
        tape, read = self.tapes[direction], 0
        while tape.data and (not most or read < most):
            if self.skip[direction]:
                count = min(self.skip[direction], len(tape.data))
                self.skip[direction] -= count
                self._undecoded(direction, count)
                continue
            if self.lost[direction] and not self._resync(direction):
                return
            framing, size = self._next(direction)
            if size is None or size > len(tape.data):
                return
            self._batch(direction, size, framing)
            read += 1

    def _next(self, direction: int) -> tuple[str, int | None]:
        """Framing and size of the next batch."""
        assert self.link is not None
        data = self.tapes[direction].data
        framing = self.link.framing(direction)
        size = frames.size_at(data, 0, framing)
        if framing == "lowlatency" and size is not None and size > frames.MAX_UNIT:
            last = next((f for start, f in frames.LAST_CLOSE.items() if bytes(data[:4]).startswith(start)), None)
            if last is not None:
                return last, frames.size_at(data, 0, last)
            self.lost[direction] = True
            return framing, None
        return framing, size

    def _batch(self, direction: int, size: int, framing: str) -> None:
        tape, accounting = self.tapes[direction], self.follower.accounting
        where = tape.where(size)
        data = bytes(tape.data[:size])
        if size == frames.PREFIX[framing]:
            tape.take(size)
            accounting.decoded(size)
            self.batches[direction] += 1
            return
        batch = frames.BATCH[framing](data)
        bad = 0
        if isinstance(batch, Faulty) and stopped(batch):
            bad = min(undecoded_of(batch), size - frames.PREFIX[framing])
            if not frames.follow(bytes(tape.data), size, framing):
                # the size itself may be damaged: the next batch is looked for from the fault on
                size -= bad
                bad = 0
                self.lost[direction] = self.told[direction] = True
                self.tried[direction] = 0
        tape.take(size)
        accounting.decoded(size - bad)
        accounting.undecoded(bad)
        self.emit(direction, batch, where, framing)

    def _resync(self, direction: int, final: bool = False) -> bool:
        """Look for the next batch; what is before it cannot be read."""
        assert self.link is not None
        tape = self.tapes[direction]
        if not final and len(tape.data) < 1.3 * self.tried[direction]:
            return False
        self.tried[direction] = len(tape.data)
        sure = self.link.handshake or self.link.framing_override is not None
        framings = (self.link.framing(direction),) if sure else FRAMINGS
        found = frames.find(bytes(tape.data), framings, self.fits(direction), 3 if final else 4, final)
        if found is None:
            if len(tape.data) > UNDECIDED:
                self._undecoded(direction, len(tape.data) - UNDECIDED // 2)
                self.tried[direction] = 0
            return False
        pos, framing = found
        if not sure:
            self.link.framing_override = framing
        if pos:
            self._undecoded(direction, pos)
        self.lost[direction] = self.told[direction] = False
        self.tried[direction] = 0
        return True

    def _undecoded(self, direction: int, count: int) -> None:
        """Bytes that belong to no readable message; one row tells of them, unless one has."""
        tape = self.tapes[direction]
        where = tape.where(count)
        tape.take(count)
        self.follower.accounting.undecoded(count)
        if not self.told[direction]:
            self.told[direction] = True
            self.unknown(direction, where, str(FaultKind.GAP))

    def _gap(self, direction: int, count: int, where: Where) -> None:
        """Bytes of the stream are missing here."""
        if self.kind == "undecided":
            self.undecided_missing += count
            self.tapes[direction].take(len(self.tapes[direction].data))
            self.lost[direction] = True
            return
        self.follower.accounting.missing_bytes += count
        if self.kind == "websocket":
            assert self.sockets is not None
            self.sockets[direction].broken = True
            return
        tape = self.tapes[direction]
        left = self.skip[direction]
        self.told[direction] = bool(left)
        if not left and tape.data and not self.lost[direction]:
            left = self._cut_batch(direction)
        elif tape.data:
            self._undecoded(direction, len(tape.data))
        self.skip[direction] = max(left - count, 0)
        self.lost[direction] = left < count
        if left >= count and left:
            self.told[direction] = True
        self.tried[direction] = 0

    def _cut_batch(self, direction: int) -> int:
        """Read the beginning of a batch whose end is missing; returns how many bytes of it are still to come."""
        tape = self.tapes[direction]
        framing, size = self._next(direction)
        where = tape.where(len(tape.data))
        data = tape.take(len(tape.data))
        prefix = frames.PREFIX[framing]
        content = data[prefix:]
        accounting = self.follower.accounting
        self.told[direction] = True
        if not content or framing == "compressed":
            accounting.undecoded(len(data))
            self.unknown(direction, where, str(FaultKind.GAP), framing)
        else:
            batch = frames.DATAGRAM[framing](content)
            bad = min(undecoded_of(batch), len(content))
            accounting.decoded(len(data) - bad)
            accounting.undecoded(bad)
            self.emit(direction, batch, where, framing, cut=True)
        return 0 if size is None else size - len(data)

    # -- the end --

    def finish(self) -> None:
        """No more bytes will come."""
        if self.inside is not None:
            self.inside.finish()
        if self.kind == "undecided":
            self._decide(final=True)
        if self.kind != "zenoh":
            return
        for direction in (0, 1):
            tape = self.tapes[direction]
            self._drain(direction)
            while tape.data:
                before = len(tape.data)
                if self.lost[direction]:
                    if self._resync(direction, final=True):
                        self._drain(direction)
                    else:
                        self._undecoded(direction, len(tape.data))
                else:
                    self._last_batch(direction)
                if len(tape.data) == before:
                    break

    def _last_batch(self, direction: int) -> None:
        """The capture ends in a batch, or its size is damaged and whole batches follow the fault."""
        assert self.link is not None
        tape = self.tapes[direction]
        framing, size = self._next(direction)
        prefix = frames.PREFIX[framing]
        data = bytes(tape.data)
        if framing != "compressed" and len(data) > prefix:
            batch = frames.DATAGRAM[framing](data[prefix:])
            good = len(data) - min(undecoded_of(batch), len(data) - prefix)
            if good < len(data) and frames.find(data[good:], (framing,), self.fits(direction), 4, final=True):
                where = tape.where(good)
                tape.take(good)
                self.follower.accounting.decoded(good)
                self.emit(direction, batch, where, framing)
                self.lost[direction] = self.told[direction] = True
                self.tried[direction] = 0
                return
        self._cut_batch(direction)

    def close(self, time: int) -> None:
        """The connection is over."""
        if self.inside is not None:
            self.inside.close(time)
        if self.link is not None:
            self.follower.tracker.close_link(self.link, time)


# --- datagrams ----------------------------------------------------------------------------------


class DatagramLink(MessageSource):
    """The datagrams between two UDP ends, or from one to a multicast group."""

    def __init__(self, follower: Follower, ends: Ends, group: bool) -> None:
        name = f"udp/{_end(ends.low)}-{_end(ends.high)}"
        super().__init__(follower, ends, "udp", name)
        self.group = group
        self.instance = 0
        self.waiting: deque[tuple[bytes, int, int, Where]] = deque(maxlen=UNDECIDED_DATAGRAMS)
        self.other = 0  # datagrams that were not Zenoh
        self.quic = False
        self.scouting: Link | None = None

    @property
    def known_port(self) -> bool:
        """True on a port that is Zenoh's."""
        return bool(self.ends.ports() & self.follower.udp_ports)

    def feed(self, packet: Packet, direction: int, where: Where) -> None:
        """Take one datagram."""
        data = packet.payload
        if self._is_quic(data):
            self.follower.mark_opaque(self.name.replace("udp/", "quic/", 1) + "#0", "quic", len(data) + packet.missing)
            return
        if self.link is None and self._scouting(packet, data, direction, where):
            return
        if self.link is None or self._is_new_handshake(data):
            if not self._proves(data):
                self.waiting.append((data, packet.missing, direction, where))
                return
            self._settle()
        self._batch(data, packet.missing, direction, where)

    def _is_quic(self, data: bytes) -> bool:
        if self.quic:
            return True
        ports = self.ends.ports() & (self.follower.udp_ports | self.follower.tcp_ports)
        version = data[1:5]
        long_header = len(data) >= 1200 and data[0] & 0xC0 == 0xC0
        if self.link is None and ports and long_header and version in (b"\0\0\0\1", b"\x6b\x33\x43\xcf"):
            self.quic = True
        return self.quic

    def _scouting(self, packet: Packet, data: bytes, direction: int, where: Where) -> bool:
        cls = SCOUTING.pick(data)
        on_port = bool(self.ends.ports() & self.follower.scouting_ports)
        if cls is None or len(data) < 3 or not (is_hello(data) or on_port and data[1] == 9):
            return False
        message, rest = parse(data, "scouting")
        if stopped(message) and not packet.missing or rest and not on_port:
            return False
        record = record_of(message)
        if rest and record.fault is None:
            record.fault = str(FaultKind.TRAILING_BYTES)
        if packet.missing and record.fault:
            record.fault = str(FaultKind.TRUNCATED)
        bad = min(undecoded_of(message), len(data))
        accounting = self.follower.accounting
        accounting.decoded(len(data) - bad)
        accounting.undecoded(bad)
        accounting.missing_bytes += packet.missing
        accounting.zenoh_packets += 1
        record.link, record.session = f"{self.name}#0", f"?{self.name}#0"
        record.src_zid = record.zid
        record.batch = self.batches[direction]
        self.batches[direction] += 1
        self.follower.row(record, self.ends.origin(direction, where, "udp"))
        return True

    def _is_new_handshake(self, data: bytes) -> bool:
        """An INIT on a link that was open before: the ends were used again."""
        link = self.link
        if link is None or self.group or not link.switched[0] and not link.switched[1]:
            return False
        if data[0] & 0x3F != 0x01 or len(data) < 5 or data[1] != 9:
            return False
        init = frames.DATAGRAM["plain"](data).carried()
        if len(init) != 1 or not isinstance(init[0], ZenohInit) or init[0].fault or init[0].A:
            return False
        self.follower.tracker.close_link(link, None)
        self.instance += 1
        self.batches = [0, 0]
        self.link = None
        return True

    def _proves(self, data: bytes) -> bool:
        """True when a datagram is Zenoh beyond doubt: an INIT or JOIN to the last byte, or on a Zenoh port a FRAME."""
        for framing in FRAMINGS if self.known_port else ("plain",):
            batch = frames.DATAGRAM[framing](data)
            shown = frames.Proof(frames.no_opinion)
            messages = batch.carried()
            if not messages or not shown.add(batch):
                continue
            first = messages[0]
            opens = isinstance(first, (ZenohInit, ZenohJoin)) and first.version == 9 and not first.fault
            if opens or self.known_port and shown.points >= 3 and isinstance(first, ZenohFrame):
                if framing != "plain":
                    self.found_framing = framing
                return True
        return False

    found_framing: str | None = None

    def _settle(self) -> None:
        group = _end(self.ends.high) if self.group else ""
        link = Link(f"{self.name}#{self.instance}", "udp", ordered=False, multicast=self.group, group=group)
        self.link = self.follower.new_link(link)
        self.link.framing_override = self.found_framing
        waiting, self.waiting = list(self.waiting), deque(maxlen=UNDECIDED_DATAGRAMS)
        for datagram in waiting:
            self._batch(*datagram)

    def _batch(self, data: bytes, missing: int, direction: int, where: Where) -> None:
        assert self.link is not None
        framing = self.link.framing(direction)
        batch = frames.DATAGRAM[framing](data)
        bad = min(undecoded_of(batch), len(data)) if stopped(batch) else 0
        accounting = self.follower.accounting
        accounting.decoded(len(data) - bad)
        accounting.undecoded(bad)
        accounting.missing_bytes += missing
        accounting.zenoh_packets += 1
        self.emit(direction, batch, where, framing, cut=bool(missing))

    def finish(self) -> None:
        """No more datagrams will come."""
        self.waiting.clear()


def _end(end: tuple[str, int]) -> str:
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"
