"""What all links share: a batch becomes rows, named by the session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from scapy_zenoh import framing as frames
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.follow.tape import Ends, Where
from scapy_zenoh.message import Malformed
from scapy_zenoh.parsing import parse
from scapy_zenoh.records import record_of
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.session.tracker import Link, lane_of
from scapy_zenoh.transport import ZenohFragment, ZenohFrame

if TYPE_CHECKING:
    from scapy_zenoh.follow.follower import Follower

#: Faults that bytes missing in the capture can cause.
CUT = {FaultKind.TRUNCATED, FaultKind.BAD_LENGTH, FaultKind.CHAIN_CUT, FaultKind.BODY_MISSING}


class MessageSource:
    """A link known to be Zenoh: turns its batches into rows."""

    def __init__(self, follower: Follower, ends: Ends, proto: str, name: str) -> None:
        self.follower, self.ends, self.proto, self.name = follower, ends, proto, name
        self.link: Link | None = None
        self.batches = [0, 0]

    def emit(self, direction: int, batch: Any, where: Where, framing: str, cut: FaultKind | None = None) -> None:
        """Rows of all messages of a batch; ``cut``: its end is missing in the capture, which is this fault."""
        ordinal = 0
        if framing == "compressed" and not batch.C:
            framing = "plain"  # not worth compressing
        if self.follower.on_batch is not None:
            self.follower.on_batch(batch)
        for message in batch.carried():
            record = message.context = self._record(message, cut)
            self._tell(direction, record, where, ordinal, framing)
            ordinal += 1
            if isinstance(message, ZenohFrame):
                for inner in message.msgs:
                    one = inner.context = self._record(inner, cut)
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

    def _record(self, message: Any, cut: FaultKind | None) -> MessageRecord:
        record = record_of(message)
        if cut is not None and (record.fault in CUT or isinstance(message, ZenohFragment) and record.fault is None):
            record.fault = str(cut)
        return record

    def _reassemble(self, direction: int, record: MessageRecord, where: Where, ordinal: int, framing: str) -> int:
        assert self.link is not None
        whole = self.follower.tracker.fragment(self.link, direction, record)
        if whole is None:
            return 0
        data, count = whole
        message, rest = parse(data, "network")
        one = message.context = record_of(message)
        record.whole = message
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
            lane = side.lanes.get(lane_of(session, record))
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
