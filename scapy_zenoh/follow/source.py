"""What all links share: a batch becomes rows, named by the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scapy_zenoh import framing as frames
from scapy_zenoh.codec import Batch
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.follow.tape import Ends, Where
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.session.tracker import Link, lane_of
from scapy_zenoh.values import PROTOCOL_VERSION

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

    def account(self, direction: int, count: int, bad: int = 0) -> None:
        """So many bytes of a direction were gone through, of which the last ``bad`` could not be read."""
        assert self.link is not None
        self.follower.accounting.add(count, bad)
        self.link.add_bytes(direction, count)

    def emit(self, direction: int, batch: Batch, where: Where, framing: str, cut: FaultKind | None = None) -> None:
        """Rows of all messages of a batch; ``cut``: its end is missing in the capture, which is this fault."""
        ordinal = 0
        if framing == "compressed" and not batch.compressed:
            framing = "plain"  # not worth compressing
        self.follower.take_batch(batch.packet)
        for record in batch.records:
            fragment = record.kind == "fragment"
            if cut is not None and (record.fault in CUT or fragment and record.fault is None):
                record.fault = str(cut)
            self._tell(direction, record, where, ordinal, framing)
            ordinal += 1
            if fragment and not record.fault:
                ordinal += self.reassemble(direction, record, where, ordinal, framing)
        if batch.fault is not None and not ordinal:
            self.unknown(direction, where, batch.fault, framing)
            return
        self.batches[direction] += 1

    def reassemble(self, direction: int, record: MessageRecord, where: Where, ordinal: int, framing: str) -> int:
        """The row of the message that a FRAGMENT completes; returns how many rows that are, 1 or 0."""
        assert self.link is not None
        whole = self.follower.tracker.fragment(self.link, direction, record, where.time, self._peek)
        if whole is None:
            return 0
        data, count = whole
        message = self.follower.codec.network(data)
        one = message.record
        record.whole = message.packet
        if message.rest and one.fault is None:
            one.fault = str(FaultKind.TRAILING_BYTES)
        one.sn, one.reliable, one.fragments = record.sn, record.reliable, count
        self._tell(direction, one, where, ordinal, framing)
        return 1

    def _peek(self, beginning: bytes) -> MessageRecord:
        """What the beginning of a network message tells."""
        return self.follower.codec.network(beginning).record

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

    def fits(self, direction: int) -> frames.Fits:
        """Whether the number of a FRAME goes on from those seen in this direction."""
        link = self.link
        if link is None:
            return frames.no_opinion
        session = link.session
        side = session.sides[link.side_of[direction]]

        def verdict(record: MessageRecord) -> int:
            if record.sn is None or record.sn > session.mask:
                return -1
            lane = side.lanes.get(lane_of(session, record))
            if lane is None or lane.last is None or session.mask < 0x3FFF:
                return 0
            return 1 if (record.sn - lane.last) & session.mask < 0x1000 else 0

        return verdict


def begins_link(record: MessageRecord, *kinds: str) -> bool:
    """True for a message of these kinds that is good to its last byte and of our version of the protocol."""
    offer = record.offer
    return record.kind in kinds and not record.fault and offer is not None and offer.version == PROTOCOL_VERSION
