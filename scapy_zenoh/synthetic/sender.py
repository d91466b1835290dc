"""From network messages to batches: what one side of a link does once it is open."""

from __future__ import annotations

from dataclasses import dataclass

import lz4.block

from scapy_zenoh.synthetic import wire
from scapy_zenoh.synthetic.shape import Shape

HEADER = 8  # a FRAME up to its messages takes no more: header, number of five bytes, extension


@dataclass
class Counts:
    """What is on the wire, all links together."""

    network_messages: int = 0
    batches: int = 0
    fragments: int = 0
    link_bytes: int = 0  # what TCP or UDP carries, each byte once


class _Queue:
    """The batch that is being filled for one priority."""

    __slots__ = ("count", "parts", "reliable", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = self.count = 0
        self.reliable: bool | None = None  # of the FRAME at the end


class Sender:
    """Fills batches with messages; ``take`` hands over what is ready to be sent."""

    def __init__(self, shape: Shape, counts: Counts, initial_sn: int, mask: int) -> None:
        self._counts = counts
        self._lanes = shape.qos
        self._low_latency = shape.low_latency
        self._compression = shape.compression
        self._stream = shape.transport == "tcp"
        self._per_batch = shape.per_batch
        self._room = shape.batch_size - (2 if self._stream else 0) - (1 if shape.compression else 0)
        self._mask = mask
        self._next = dict.fromkeys(((p, r) for p in range(8) for r in (True, False)), initial_sn)
        self._queues = {p: _Queue() for p in range(8)} if shape.qos else dict.fromkeys(range(8), _Queue())
        self._ready: list[bytes] = []

    def send(self, message: bytes, priority: int = wire.DATA, reliable: bool = True, at_once: bool = False) -> None:
        """Put a network message into the batch of its priority."""
        self._counts.network_messages += 1
        if self._low_latency:
            self._ready.append(self.framed(message))
            return
        queue = self._queues[priority]
        size = len(message) + HEADER
        if size > self._room - queue.size:
            self._finish(queue)
            if size > self._room:
                self._send_fragments(message, priority if self._lanes else wire.DATA, reliable)
                return
        if queue.reliable is not reliable:
            head = wire.frame(self._number(priority, reliable), reliable, priority if self._lanes else wire.DATA)
            queue.reliable = reliable
            queue.parts.append(head)
            queue.size += len(head)
        queue.parts.append(message)
        queue.size += len(message)
        queue.count += 1
        if at_once or queue.count >= self._per_batch:
            self._finish(queue)

    def declare(self, declaration: bytes, interest_id: int | None = None) -> None:
        """Send a declaration, ahead of everything that may rely on it."""
        self.send(wire.declare(declaration, interest_id), wire.CONTROL, at_once=True)

    def take(self) -> list[bytes]:
        """All batches that were begun, ready for the link; the most urgent of the unfinished ones first."""
        for queue in self._queues.values():
            if queue.parts:
                self._finish(queue)
        ready, self._ready = self._ready, []
        self._counts.batches += len(ready)
        self._counts.link_bytes += sum(map(len, ready))
        return ready

    def framed(self, batch: bytes, plain: bool = False) -> bytes:
        """A batch as it is on the link; ``plain`` before the link is open."""
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

    def put(self, batch: bytes) -> None:
        """Queue a batch that is already framed."""
        self._ready.append(batch)

    def _number(self, priority: int, reliable: bool, step: int = 1) -> int:
        lane = (priority if self._lanes else wire.DATA, reliable)
        sn = self._next[lane]
        self._next[lane] = (sn + step) & self._mask
        return sn

    def _finish(self, queue: _Queue) -> None:
        if queue.parts:
            self._ready.append(self.framed(b"".join(queue.parts)))
            queue.parts, queue.size, queue.count, queue.reliable = [], 0, 0, None

    def _send_fragments(self, message: bytes, priority: int, reliable: bool) -> None:
        pos, first = 0, True
        while pos < len(message):
            sn = self._number(priority, reliable)
            more = len(message) - pos > self._room - len(wire.fragment(sn, reliable, False, first, priority))
            head = wire.fragment(sn, reliable, more, first, priority)
            end = pos + self._room - len(head)
            self._ready.append(self.framed(head + message[pos:end]))
            self._counts.fragments += 1
            pos, first = end, False
        self._number(priority, reliable)  # nodes leave out one number after the last fragment
