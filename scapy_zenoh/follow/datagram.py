"""Datagrams: scouting, and links on which every datagram is a batch."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from scapy_zenoh import framing as frames
from scapy_zenoh.capture import Packet
from scapy_zenoh.decode.codec import is_hello
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.follow.source import MessageSource, begins_link
from scapy_zenoh.follow.tape import Ends, Where, end_text
from scapy_zenoh.session.tracker import Link
from scapy_zenoh.values import PROTOCOL_VERSION

if TYPE_CHECKING:
    from scapy_zenoh.follow.follower import Follower

#: Datagrams of a link that are kept while nobody knows yet whether it is Zenoh.
UNDECIDED = 16


class DatagramLink(MessageSource):
    """The datagrams between two UDP ends, or from one to a multicast group."""

    def __init__(self, follower: Follower, ends: Ends, group: bool) -> None:
        name = f"udp/{end_text(ends.low)}-{end_text(ends.high)}"
        super().__init__(follower, ends, "udp", name)
        self.group = group
        self.instance = 0
        self.waiting: deque[tuple[bytes, int, int, Where]] = deque(maxlen=UNDECIDED)
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
        on_port = bool(self.ends.ports() & self.follower.scouting_ports)
        if len(data) < 3 or not (is_hello(data) or on_port and data[1] == PROTOCOL_VERSION):
            return False
        message = self.follower.codec.scouting(data)
        if message is None or message.stopped and not packet.missing or message.rest and not on_port:
            return False
        record = message.record
        if message.rest and record.fault is None:
            record.fault = str(FaultKind.TRAILING_BYTES)
        if packet.missing and record.fault:
            record.fault = str(FaultKind.TRUNCATED)
        accounting = self.follower.accounting
        accounting.add(len(data), message.undecoded)
        accounting.missing_bytes += packet.missing
        accounting.zenoh_packets += 1
        record.link, record.session = f"{self.name}#0", f"?{self.name}#0"
        record.src_zid = record.zid
        record.batch = self.batches[direction]
        self.batches[direction] += 1
        self.follower.take_batch(message.packet)
        self.follower.row(record, self.ends.origin(direction, where, "udp"))
        return True

    def _is_new_handshake(self, data: bytes) -> bool:
        """An INIT on a link that was open before: the ends were used again."""
        link = self.link
        if link is None or self.group or not link.switched[0] and not link.switched[1]:
            return False
        if len(data) < 5 or data[0] & 0x3F != 0x01:
            return False
        batch = self.follower.codec.batch(data, "plain", sized=False)
        if len(batch.records) != 1 or not begins_link(batch.records[0], "init_syn"):
            return False
        self.follower.tracker.close_link(link, link.session.last)
        self.follower.tracker.forget_link(link)
        self.instance += 1
        self.batches = [0, 0]
        self.link = None
        return True

    def _proves(self, data: bytes) -> bool:
        """True when a datagram is Zenoh beyond doubt: an INIT or JOIN to the last byte, or on a Zenoh port a FRAME."""
        for framing in frames.FRAMINGS if self.known_port else ("plain",):
            batch = self.follower.codec.batch(data, framing, sized=False)
            shown = frames.Proof(frames.no_opinion)
            first = batch.first()
            if first is None or not shown.add(batch):
                continue
            opens = begins_link(first, "init_syn", "init_ack", "join")
            if opens or self.known_port and shown.points >= 3 and first.kind == "frame":
                if framing != "plain":
                    self.found_framing = framing
                return True
        return False

    found_framing: str | None = None

    def _settle(self) -> None:
        group = end_text(self.ends.high) if self.group else ""
        link = Link(f"{self.name}#{self.instance}", "udp", ordered=False, multicast=self.group, group=group)
        self.link = self.follower.new_link(link)
        self.link.framing_override = self.found_framing
        waiting, self.waiting = list(self.waiting), deque(maxlen=UNDECIDED)
        for datagram in waiting:
            self._batch(*datagram)

    def _batch(self, data: bytes, missing: int, direction: int, where: Where) -> None:
        assert self.link is not None
        framing = self.link.framing(direction)
        batch = self.follower.codec.batch(data, framing, sized=False)
        self.account(direction, len(data), batch.undecoded)
        self.follower.accounting.missing_bytes += missing
        self.follower.accounting.zenoh_packets += 1
        self.emit(direction, batch, where, framing, FaultKind.TRUNCATED if missing else None)

    def finish(self) -> None:
        """No more datagrams will come."""
        self.waiting.clear()
