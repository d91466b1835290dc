"""Packets in, rows out: gives each packet to its link, and adds up what became of every byte."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from scapy_zenoh.capture import Packet
from scapy_zenoh.codec import Codec
from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.follow.datagram import DatagramLink
from scapy_zenoh.follow.source import MessageSource
from scapy_zenoh.follow.stream import StreamLink
from scapy_zenoh.follow.tape import End, Ends, Where
from scapy_zenoh.rows import Origin, Row, row_of
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.session.tracker import Link, Tracker
from scapy_zenoh.streams import Chunk, Closed, Opened, TcpStreams
from scapy_zenoh.tls import Decryptor, Plain
from scapy_zenoh.values import SCOUTING_PORTS, TCP_PORTS, UDP_PORTS

#: Holes that are remembered one by one.
MAX_GAPS = 1000
#: UDP conversations that are remembered; those that have not turned out to be Zenoh are forgotten first.
MAX_CONVERSATIONS = 1 << 16

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
    unknown: int = 0  # rows of bytes that belong to no readable message
    faults: int = 0
    fault_kinds: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.messages + self.unknown

    def decoded(self, count: int) -> None:
        """Bytes of a Zenoh link that were read."""
        self.zenoh_bytes += count
        self.decoded_bytes += count

    def undecoded(self, count: int) -> None:
        """Bytes of a Zenoh link that could not be read."""
        self.zenoh_bytes += count
        self.undecoded_bytes += count

    def add(self, count: int, bad: int) -> None:
        """A batch of so many bytes, of which the last ``bad`` could not be read (counted after decompression)."""
        bad = min(bad, count)
        self.decoded(count - bad)
        self.undecoded(bad)


class Follower:
    """Packets in, rows out. ``ports`` are read as Zenoh besides the default ones."""

    def __init__(
        self,
        ports: Iterable[int] = (),
        tracker: Tracker | None = None,
        decryptor: Decryptor | None = None,
        codec: Codec | None = None,
    ) -> None:
        self._decryptor = decryptor
        self.codec = codec or PlainCodec()
        #: Called with each packet that a batch was read into, before its rows are made.
        self.on_batch: Callable[[Any], None] | None = None
        self.tracker = tracker or Tracker()
        self.accounting = Accounting()
        self.tcp_ports, self.udp_ports = {*TCP_PORTS}, {*UDP_PORTS}
        self.add_ports(ports)
        self.scouting_ports = set(SCOUTING_PORTS)
        self.opaque: dict[str, dict[str, Any]] = {}
        #: Holes in streams: link, who sent the bytes, their place in that direction, and how many are missing.
        self.gaps: deque[dict[str, Any]] = deque(maxlen=MAX_GAPS)
        self.links: list[Link] = []
        self.streams = TcpStreams()
        self._tcp: dict[str, StreamLink] = {}
        self._udp: dict[tuple[End, End], DatagramLink] = {}
        self._fed = 0
        self._rows: list[Row] = []

    def add_ports(self, ports: Iterable[int]) -> None:
        """Read these as Zenoh too."""
        self.tcp_ports.update(ports)
        self.udp_ports.update(ports)

    def feed(self, packet: Packet) -> list[Row]:
        """The rows that a packet completes."""
        self._fed += 1
        if packet.proto == "udp":
            self._datagram(packet, _where(packet, self._fed))
        else:
            self._events(self.streams.feed(packet))
            if self._decryptor is not None:
                for plain in self._decryptor.at(packet.capture, packet.frame):
                    self._decrypted(plain, _where(packet, self._fed))
        return self._take()

    def finish(self) -> list[Row]:
        """The recording is over; the rows that were waiting for more."""
        self._events(self.streams.finish())
        for stream in list(self._tcp.values()):
            stream.finish()
        for link in self._udp.values():
            link.finish()
        self.tracker.finish()
        return self._take()

    def _take(self) -> list[Row]:
        rows, self._rows = self._rows, []
        return rows

    # -- for whoever follows regular links by itself --

    def stream_link(self, link: str) -> StreamLink | None:
        """The link in a TCP connection."""
        return self._tcp.get(link)

    def datagram_link(self, packet: Packet) -> DatagramLink | None:
        """The link that a datagram belongs to, if it is known."""
        return self._udp.get(_ends(packet))

    def go_on(self, source: StreamLink, direction: int) -> list[Row]:
        """The rows of what waits in a direction."""
        source.drain(direction)
        return self._take()

    def reassembled(
        self, source: MessageSource, direction: int, record: MessageRecord, where: Where, ordinal: int, framing: str
    ) -> list[Row]:
        """The row of the message that a FRAGMENT completes, if it does."""
        source.batches[direction] = record.batch
        source.reassemble(direction, record, where, ordinal, framing)
        return self._take()

    # -- what links call --

    def take_batch(self, packet: Any) -> None:
        """A batch was read, by Scapy into this packet."""
        if self.on_batch is not None and packet is not None:
            self.on_batch(packet)

    def row(self, record: MessageRecord, origin: Origin) -> None:
        """A message is complete."""
        if record.kind == "unknown":
            self.accounting.unknown += 1
        else:
            self.accounting.messages += 1
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
                    self._tcp[event.link].feed(event, _where(event, event.order))
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
        ends = _ends(packet)
        link = self._udp.get(ends)
        if link is None:
            if len(self._udp) >= MAX_CONVERSATIONS:
                self._udp = {key: known for key, known in self._udp.items() if known.link is not None}
            link = self._udp[ends] = DatagramLink(self, Ends(*ends), _is_multicast(packet.dst))
        link.feed(packet, 0 if (packet.src, packet.sport) == ends[0] else 1, where)


def _where(seen: Packet | Chunk, order: int) -> Where:
    return Where(order, seen.capture, seen.frame, seen.time)


def _ends(packet: Packet) -> tuple[End, End]:
    """The ends of a conversation, the lower first; a group is the second."""
    src, dst = (packet.src, packet.sport), (packet.dst, packet.dport)
    return (src, dst) if _is_multicast(packet.dst) or _rank(src) <= _rank(dst) else (dst, src)


def _rank(end: End) -> tuple[int, bytes, int]:
    address = ipaddress.ip_address(end[0].partition("%")[0])
    return address.version, address.packed, end[1]


def _is_multicast(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_multicast
