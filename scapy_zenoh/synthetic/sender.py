"""From network messages to batches: what one side of a link does once it is open."""

from __future__ import annotations

from dataclasses import dataclass

import lz4.block

from scapy_zenoh.synthetic import wire
from scapy_zenoh.synthetic.shape import OVERHEAD, QUESTION_PAYLOAD, Shape

HEADER = 8  # a FRAME up to its messages takes no more: header, number of five bytes, extension


@dataclass
class Counts:
    """What is on the wire, all links together."""

    network_messages: int = 0
    batches: int = 0
    fragments: int = 0
    link_bytes: int = 0  # what TCP or UDP carries, each byte once


class Lane:
    """The batch that is being filled for one priority."""

    __slots__ = ("_free", "_full", "_heads", "_next", "_parts", "_priority", "_reliable", "_sender")

    def __init__(self, sender: Sender, priority: int, initial_sn: int) -> None:
        self._sender = sender
        self._priority = priority
        self._next = [initial_sn, initial_sn]  # the next number of best effort, and of reliable
        self._clear()

    def _clear(self) -> None:
        self._parts: list[bytes] = []
        self._free = self._sender.room - HEADER
        self._heads = 0
        self._full = self._sender.per_batch  # parts of a batch with as many messages as it may have
        self._reliable: bool | None = None  # of the FRAME at the end

    def add(self, message: bytes, reliable: bool = True, at_once: bool = False) -> None:
        """Put a network message into the batch."""
        size = len(message)
        if size > self._free:
            self.finish()
            if size > self._free:
                self._add_fragments(message, reliable)
                return
        if reliable is not self._reliable:
            self._begin_frame(reliable)
        self._free -= size
        parts = self._parts
        parts.append(message)
        if at_once or len(parts) == self._full:
            self.finish()

    def finish(self) -> None:
        """Hand over the batch."""
        if self._parts:
            sender = self._sender
            sender.counts.network_messages += len(self._parts) - self._heads
            sender.put(sender.framed(b"".join(self._parts)))
            self._clear()

    def _begin_frame(self, reliable: bool) -> None:
        head = wire.frame(self._number(reliable), reliable, self._priority)
        self._reliable = reliable
        self._parts.append(head)
        self._free -= len(head)
        self._heads += 1
        self._full += 1

    def _number(self, reliable: bool) -> int:
        sn = self._next[reliable]
        self._next[reliable] = (sn + 1) & self._sender.mask
        return sn

    def _add_fragments(self, message: bytes, reliable: bool) -> None:
        sender, priority, room = self._sender, self._priority, self._sender.room
        pos, first = 0, True
        while pos < len(message):
            sn = self._number(reliable)
            more = len(message) - pos > room - len(wire.fragment(sn, reliable, False, first, priority))
            head = wire.fragment(sn, reliable, more, first, priority)
            end = pos + room - len(head)
            sender.put(sender.framed(head + message[pos:end]))
            sender.counts.fragments += 1
            pos, first = end, False
        sender.counts.network_messages += 1
        self._number(reliable)  # nodes leave out one number after the last fragment


class PlainLane(Lane):
    """A lane where every message is reliable and no batch is full before it has as many messages as it may have.

    So there is nothing to look at message by message, which halves the time.
    """

    __slots__ = ("_head",)

    def __init__(self, sender: Sender, priority: int, initial_sn: int) -> None:
        super().__init__(sender, priority, initial_sn)
        self._head = wire.around_id(wire.frame(0, True, priority))

    def add(self, message: bytes, reliable: bool = True, at_once: bool = False) -> None:
        """Put a network message into the batch."""
        parts = self._parts
        parts.append(message)
        if at_once or len(parts) == self._full:
            self.finish()

    def finish(self) -> None:
        """Hand over the batch."""
        parts = self._parts
        if parts:
            sender, (before, after) = self._sender, self._head
            number = wire.vle(self._number(True))
            sender.counts.network_messages += len(parts)
            sender.put(sender.framed(before + number + after + b"".join(parts)))
            parts.clear()


class LowLatencyLane(Lane):
    """Neither lanes nor frames: every message is a batch."""

    __slots__ = ()

    def add(self, message: bytes, reliable: bool = True, at_once: bool = False) -> None:
        """Send a network message."""
        sender = self._sender
        sender.counts.network_messages += 1
        sender.put(sender.framed(message))


class Sender:
    """One side of a link: its lanes fill batches, ``take`` hands over what is ready to be sent."""

    def __init__(self, shape: Shape, counts: Counts, initial_sn: int, mask: int) -> None:
        self.counts = counts
        self.mask = mask
        self.per_batch = shape.per_batch
        self._one_lane = not shape.qos
        self._lane = _kind_of_lane(shape)
        self._low_latency = shape.low_latency
        self._compression = shape.compression
        self._stream = shape.transport == "tcp"
        self._prefix_only = self._stream and not (shape.low_latency or shape.compression)
        self.room = shape.batch_size - (2 if self._stream else 0) - (1 if shape.compression else 0)
        self._initial_sn = initial_sn
        self._lanes: dict[int, Lane] = {}  # the most urgent one first
        self._ready: list[bytes] = []
        self.put = self._ready.append  # queues a batch that is already framed

    def lane(self, priority: int) -> Lane:
        """Where messages of a priority go."""
        if self._one_lane:
            priority = wire.DATA
        if priority not in self._lanes:
            self._lanes[priority] = self._lane(self, priority, self._initial_sn)
            self._lanes = dict(sorted(self._lanes.items()))
        return self._lanes[priority]

    def declare(self, declaration: bytes, interest_id: int | None = None) -> None:
        """Send a declaration, ahead of everything that may rely on it."""
        self.lane(wire.CONTROL).add(wire.declare(declaration, interest_id), at_once=True)

    def take(self) -> list[bytes]:
        """All batches that were begun, ready for the link; the most urgent of the unfinished ones first."""
        for lane in self._lanes.values():
            lane.finish()
        ready = self._ready[:]
        self._ready.clear()
        self.counts.batches += len(ready)
        self.counts.link_bytes += sum(map(len, ready))
        return ready

    def framed(self, batch: bytes, plain: bool = False) -> bytes:
        """A batch as it is on the link; ``plain`` before the link is open."""
        if self._prefix_only:
            return len(batch).to_bytes(2, "little") + batch
        if self._low_latency and not plain:
            return len(batch).to_bytes(4, "little") + batch if self._stream else batch
        if self._compression and not plain:
            packed = lz4.block.compress(batch, store_size=False)
            batch = b"\x01" + packed if len(packed) < len(batch) else b"\x00" + batch
        return len(batch).to_bytes(2, "little") + batch if self._stream else batch

    def last_close(self) -> bytes:
        """CLOSE as the last thing on the link: on a low-latency stream it comes as an ordinary batch."""
        if not (self._low_latency and self._stream):
            return self.framed(wire.CLOSE)
        batch = b"\x00" + wire.CLOSE if self._compression else wire.CLOSE
        return len(batch).to_bytes(2, "little") + batch


def _kind_of_lane(shape: Shape) -> type[Lane]:
    if shape.low_latency:
        return LowLatencyLane
    largest = max(shape.largest_payload, QUESTION_PAYLOAD) + OVERHEAD
    fits = shape.per_batch * largest < shape.batch_size
    return PlainLane if fits and not shape.best_effort else Lane
