"""Streams: whether a TCP connection is Zenoh, where its batches are, and what to do about holes and damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scapy_zenoh import framing as frames
from scapy_zenoh.codec import PREFIX, Batch
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.follow.source import MessageSource, begins_link
from scapy_zenoh.follow.tape import Ends, Tape, Where
from scapy_zenoh.session.tracker import Link
from scapy_zenoh.streams import Chunk, Opened
from scapy_zenoh.tls import Plain
from scapy_zenoh.websocket import UPGRADE_END, WebSocketReader

if TYPE_CHECKING:
    from scapy_zenoh.follow.follower import Follower

#: Bytes of a stream that are kept while nobody knows yet whether it is Zenoh, or where its batches begin.
UNDECIDED = 1 << 18


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
        self.undecided_gaps: list[dict[str, Any]] = []
        self.undecided_packets = 0
        self.place = [0, 0]  # in the stream, what is missing included

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
            self.place[direction] += chunk.gap
        self.place[direction] += len(chunk.data)
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
            self.drain(direction)

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
                if _opens(self.follower.codec.batch(data[:size], "plain", sized=True)):
                    return True
            if not self.known_port:
                return False
        if len(data) < 4 or not final and len(data) < 1.3 * self.tried[direction]:
            return False
        self.tried[direction] = len(data)
        enough = 4 if self.known_port else 8
        return frames.find(self.follower.codec, data, frames.FRAMINGS, frames.no_opinion, enough, final) is not None

    def _settle(self, final: bool) -> None:
        self.kind = "zenoh"
        self.link = self.follower.new_link(Link(self.name, self.proto, ordered=True))
        for gap in self.undecided_gaps:
            self._missing(gap)
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
            found = frames.find(self.follower.codec, data, frames.FRAMINGS, frames.no_opinion, 4, final)
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
                self.drain(direction, most=1)
                progress = progress or self.tapes[direction].start != before
        for direction in order:
            self.drain(direction)

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
            self.inside.name, direction, plain.data, where.frame, where.time, where.capture, 0, *plain.src, *plain.dst,
            where.order,
        )  # fmt: skip
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
                first = self.follower.codec.batch(content, "plain", sized=False)
                if not content or not (_opens(first) or self.known_port and not first.stopped):
                    continue
                self.link = self.follower.new_link(Link(self.name, "ws", ordered=True))
                self.follower.accounting.zenoh_packets += 1
            framing = self.link.framing(direction)
            batch = self.follower.codec.batch(content, framing, sized=False)
            self.account(direction, len(content), batch.undecoded)
            self.emit(direction, batch, where, framing)

    # -- batches --

    def drain(self, direction: int, most: int = 0) -> None:
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
        tape = self.tapes[direction]
        where = tape.where(size)
        data = bytes(tape.data[:size])
        if size == PREFIX[framing]:
            tape.take(size)
            self.account(direction, size)
            self.batches[direction] += 1
            return
        batch = self.follower.codec.batch(data, framing, sized=True)
        bad = 0
        if batch.stopped:
            bad = min(batch.undecoded, size - PREFIX[framing])
            if not frames.follow(bytes(tape.data), size, framing):
                # the size itself may be damaged: the next batch is looked for from the fault on
                size -= bad
                bad = 0
                self.lost[direction] = self.told[direction] = True
                self.tried[direction] = 0
        tape.take(size)
        self.account(direction, size, bad)
        self.emit(direction, batch, where, framing)

    def _resync(self, direction: int, final: bool = False) -> bool:
        """Look for the next batch; what is before it cannot be read."""
        assert self.link is not None
        tape = self.tapes[direction]
        if not final and len(tape.data) < 1.3 * self.tried[direction]:
            return False
        self.tried[direction] = len(tape.data)
        sure = self.link.handshake or self.link.framing_override is not None
        framings = (self.link.framing(direction),) if sure else frames.FRAMINGS
        found = frames.find(
            self.follower.codec, bytes(tape.data), framings, self.fits(direction), 3 if final else 4, final
        )
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
        self.account(direction, count, count)
        if not self.told[direction]:
            self.told[direction] = True
            self.unknown(direction, where, str(FaultKind.GAP))

    def _gap(self, direction: int, count: int, where: Where) -> None:
        """Bytes of the stream are missing here."""
        src, sport = self.ends.low if direction == 0 else self.ends.high
        gap = {"link": self.name, "src": f"{src}:{sport}", "offset": self.place[direction], "bytes": count}
        if self.kind == "undecided":
            self.undecided_gaps.append(gap)
            self.tapes[direction].take(len(self.tapes[direction].data))
            self.lost[direction] = True
            return
        self._missing(gap)
        if self.kind == "websocket":
            assert self.sockets is not None
            self.sockets[direction].broken = True
            return
        tape = self.tapes[direction]
        if self.lost[direction] and tape.data and self._resync(direction, final=True):
            self.drain(direction)
        left = self.skip[direction]
        self.told[direction] = bool(left)
        if not left and tape.data and not self.lost[direction]:
            left = self._cut_batch(direction, FaultKind.GAP)
        elif tape.data:
            self._undecoded(direction, len(tape.data))
        self.skip[direction] = max(left - count, 0)
        self.lost[direction] = left < count
        if left >= count and left:
            self.told[direction] = True
        self.tried[direction] = 0

    def _missing(self, gap: dict[str, Any]) -> None:
        """Bytes of a Zenoh link are not in the capture."""
        self.follower.accounting.missing_bytes += gap["bytes"]
        self.follower.gaps.append(gap)

    def _cut_batch(self, direction: int, cut: FaultKind) -> int:
        """Read the beginning of a batch whose end is missing; returns how many bytes of it are still to come."""
        tape = self.tapes[direction]
        framing, size = self._next(direction)
        where = tape.where(len(tape.data))
        data = tape.take(len(tape.data))
        prefix = PREFIX[framing]
        content = data[prefix:]
        self.told[direction] = True
        if not content or framing == "compressed":
            self.account(direction, len(data), len(data))
            self.unknown(direction, where, str(cut), framing)
        else:
            batch = self.follower.codec.batch(content, framing, sized=False)
            self.account(direction, len(data), batch.undecoded)
            self.emit(direction, batch, where, framing, cut)
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
            self.drain(direction)
            while tape.data:
                before = len(tape.data)
                if self.lost[direction]:
                    if self._resync(direction, final=True):
                        self.drain(direction)
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
        prefix = PREFIX[framing]
        data = bytes(tape.data)
        if framing != "compressed" and len(data) > prefix:
            codec, fits = self.follower.codec, self.fits(direction)
            batch = codec.batch(data[prefix:], framing, sized=False)
            good = len(data) - batch.undecoded
            if good < len(data) and frames.find(codec, data[good:], (framing,), fits, 4, final=True):
                where = tape.where(good)
                tape.take(good)
                self.account(direction, good)
                self.emit(direction, batch, where, framing)
                self.lost[direction] = self.told[direction] = True
                self.tried[direction] = 0
                return
        self._cut_batch(direction, FaultKind.TRUNCATED)

    def close(self, time: int) -> None:
        """The connection is over."""
        if self.inside is not None:
            self.inside.close(time)
        if self.link is not None:
            self.follower.tracker.close_link(self.link, time)
            self.follower.tracker.forget_link(self.link)


def _opens(batch: Batch) -> bool:
    """True for a batch that is an INIT to its last byte, and nothing else."""
    first = batch.first()
    return first is not None and len(batch.records) == 1 and begins_link(first, "init_syn", "init_ack")
