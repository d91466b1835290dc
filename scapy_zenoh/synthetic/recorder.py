"""The packets of made links, and the capture file they are written to.

``TcpLink`` and ``UdpLink`` turn what one side sends into Ethernet frames; ``Recorder`` gives frames
their time and writes them, or drops, doubles and swaps some of them as a bad capture would.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from random import Random
from typing import BinaryIO

PCAP_NANOSECONDS = 0xA1B23C4D
ETHERNET = 1
SNAPLEN = 262_144

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
WINDOW = 0xFFFF
TCP, UDP = 6, 17

SECOND = 1_000_000_000

_HEADERS = struct.Struct("!16sHHIH12sIIHHHH")  # Ethernet, IPv4 and TCP in one go
_UDP_HEADERS = struct.Struct("!16sHHIH12sHH")
_RECORD = struct.Struct("<IIII")
_FOLDS = [(bits, (1 << bits) - 1) for bits in (6144, 3072)]  # a half and a quarter of a segment


class Recorder:
    """Writes a capture file, frame by frame, at its own clock (``now``, nanoseconds since 1970)."""

    def __init__(self, file: BinaryIO, start: int, damage: Damage | None = None) -> None:
        self.now = start
        self.packets = 0
        self.bytes = 24
        self._write = file.write
        self._damage = damage
        file.write(struct.pack("<IHHiIII", PCAP_NANOSECONDS, 2, 4, 0, 0, SNAPLEN, ETHERNET))

    def add(self, frames: Sequence[bytes]) -> None:
        """Record frames in their order, as fast as a link of 10 Gbit/s carries them."""
        if self._damage is not None:
            self._add_damaged(frames, self._damage)
            return
        pack = _RECORD.pack
        records: list[bytes] = []
        seconds, ns = divmod(self.now, SECOND)
        for frame in frames:
            size = len(frame)
            ns += 300 + size * 8 // 10
            if ns >= SECOND:
                seconds, ns = seconds + 1, ns - SECOND
            records += (pack(seconds, ns, size, size), frame)
        data = b"".join(records)
        self._write(data)
        self.now = seconds * SECOND + ns
        self.packets += len(frames)
        self.bytes += len(data)

    def _add_damaged(self, frames: Sequence[bytes], damage: Damage) -> None:
        """The clock goes on as if nothing had happened: the traffic is that of the undamaged run."""
        for frame in frames:
            self.now += 300 + len(frame) * 8 // 10
            for i, left in enumerate(damage.apply(frame)):
                self._record(self.now + i, left)

    def finish(self) -> None:
        """Record what is still held back."""
        if self._damage is not None:
            for frame in self._damage.rest():
                self._record(self.now + 1, frame)

    def _record(self, now: int, frame: bytes) -> None:
        size = len(frame)
        self._write(_RECORD.pack(*divmod(now, SECOND), size, size) + frame)
        self.packets += 1
        self.bytes += 16 + size


@dataclass
class Damage:
    """Loss, repetition and swapping of frames; ``note`` gets one line of JSON for each."""

    random: Random
    note: Callable[[str], object]
    loss: float = 0.0
    reorder: float = 0.0
    duplicate: float = 0.0
    seen: int = 0  # frames of the undamaged capture so far
    written: int = 0
    held: tuple[int, bytes] | None = field(default=None, repr=False)

    def apply(self, frame: bytes) -> Iterator[bytes]:
        """What is left in the place of the next frame."""
        chance = self.random.random
        self.seen += 1
        if chance() < self.loss:
            self._tell("drop", self.seen)
        elif self.held is None and chance() < self.reorder:
            self.held = (self.seen, frame)
        else:
            self.written += 1
            yield frame
            if chance() < self.duplicate:
                self.written += 1
                self._tell("dup", self.seen, out=self.written)
                yield frame
            yield from self.rest()

    def rest(self) -> Iterator[bytes]:
        """The frame that waits for the next one to overtake it."""
        if self.held is None:
            return
        (number, frame), self.held = self.held, None
        self.written += 1
        self._tell("reorder", number, out=self.written, note="moved behind the following frame")
        yield frame

    def _tell(self, action: str, frame: int, **more: object) -> None:
        self.note(json.dumps({"action": action, "frame": frame, **more}))


# --- links --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Host:
    """One end of a link."""

    mac: bytes
    ip: bytes
    port: int


def host(number: int, port: int) -> Host:
    """An end with an address of its own in 10.0.0.0/8."""
    address = bytes((10, *(number + 1).to_bytes(3, "big")))
    return Host(b"\x02\x00" + address, address, port)


def word_sum(data: bytes) -> int:
    """The sum of 16-bit words as checksums use it: 65536 is 1 when one counts modulo 65535."""
    number = int.from_bytes(data, "big")
    if len(data) % 2:
        number <<= 8
    for bits, mask in _FOLDS:  # adding parts of a long number is faster than dividing it
        if number > mask:
            number = (number >> bits) + (number & mask)
    return number % 0xFFFF


class _Way:
    """One direction of a link: the constant part of its headers, and where it stands."""

    __slots__ = ("acked", "ends", "ident", "ip_sum", "prefix", "seq", "sum", "ttl", "unacked")

    def __init__(self, src: Host, dst: Host, protocol: int, seq: int) -> None:
        self.prefix = dst.mac + src.mac + b"\x08\x00\x45\x00"
        self.ends = src.ip + dst.ip + struct.pack("!HH", src.port, dst.port)
        self.ttl = 0x4000_4000 | protocol  # with the fragmentation before it and the protocol after it
        between = word_sum(src.ip + dst.ip)
        self.ip_sum = 0x4500 + 0x4000 + (0x4000 | protocol) + between
        self.sum = between + protocol + src.port + dst.port + (0x5000 + WINDOW if protocol == TCP else 0)
        self.ident = seq & 0xFFFF
        self.seq = seq
        self.acked = 0  # what the other side has sent so far, as acknowledged here
        self.unacked = 0  # bytes that the other side has not acknowledged


class TcpLink:
    """A TCP connection from a client (way 0) to a server (way 1)."""

    def __init__(self, client: Host, server: Host, segment: int, random: Random) -> None:
        first = [int(random.random() * 0xFFFFFFFF) for _ in range(2)]
        self.ways = _Way(client, server, TCP, first[0]), _Way(server, client, TCP, first[1])
        self.segment = segment
        self._random = random.random

    def open(self) -> list[bytes]:
        """The three packets that open the connection."""
        there, back = self.ways
        syn = self._packet(there, SYN, b"", 1)
        back.acked = there.seq
        answer = self._packet(back, SYN | ACK, b"", 1)
        there.acked = back.seq
        return [syn, answer, self._packet(there, ACK)]

    def send(self, way: int, batches: Sequence[bytes]) -> list[bytes]:
        """What one side sends; a batch begins a segment or follows in that of the one before, by chance."""
        me, other = self.ways[way], self.ways[1 - way]
        me.acked, other.unacked = other.seq, 0
        frames: list[bytes] = []
        if len(batches) == 1:  # as it mostly is
            self._cut(me, other, batches[0], frames)
            return frames
        joined: list[bytes] = []
        size, segment = 0, self.segment
        for batch in batches:
            if joined and (size >= segment or self._random() < 0.5):
                self._cut(me, other, b"".join(joined), frames)
                joined, size = [], 0
            joined.append(batch)
            size += len(batch)
        if joined:
            self._cut(me, other, b"".join(joined), frames)
        return frames

    def _cut(self, me: _Way, other: _Way, data: bytes, frames: list[bytes]) -> None:
        segment, size = self.segment, len(data)
        for start in range(0, size, segment):
            part = data[start : start + segment]
            me.unacked += len(part)
            if me.unacked >= WINDOW:
                frames.append(self._acknowledgement(other, me))
                me.unacked = len(part)
            frames.append(self._packet(me, ACK if start + segment < size else ACK | PSH, part, len(part)))

    def acknowledge(self, way: int) -> list[bytes]:
        """The side says that it got everything, when there is much to say or by chance."""
        me, other = self.ways[way], self.ways[1 - way]
        if other.unacked < 2 * self.segment and self._random() < 0.7:
            return []
        return [self._acknowledgement(me, other)]

    def _acknowledgement(self, me: _Way, other: _Way) -> bytes:
        me.acked, other.unacked = other.seq, 0
        return self._packet(me, ACK)

    def close(self) -> list[bytes]:
        """The packets that end the connection; the client begins."""
        there, back = self.ways
        there.acked = back.seq
        fin = self._packet(there, FIN | ACK, b"", 1)
        back.acked = there.seq
        answer = self._packet(back, FIN | ACK, b"", 1)
        there.acked = back.seq
        return [fin, answer, self._packet(there, ACK)]

    def _packet(self, way: _Way, flags: int, data: bytes = b"", advance: int = 0) -> bytes:
        seq, ack, ident = way.seq, way.acked, way.ident
        size = 40 + len(data)
        check = way.sum + size - 20 + seq + ack + flags + (word_sum(data) if data else 0)
        way.seq = (seq + advance) & 0xFFFFFFFF
        way.ident = (ident + 1) & 0xFFFF
        return (
            _HEADERS.pack(
                way.prefix, size, ident, way.ttl, -(way.ip_sum + size + ident) % 0xFFFF, way.ends,
                seq, ack, 0x5000 | flags, WINDOW, -check % 0xFFFF, 0,
            )
            + data
        )  # fmt: skip


class UdpLink:
    """Datagrams between a client (way 0) and a server (way 1): one batch each."""

    def __init__(self, client: Host, server: Host, random: Random) -> None:
        first = [int(random.random() * 0xFFFF) for _ in range(2)]
        self.ways = _Way(client, server, UDP, first[0]), _Way(server, client, UDP, first[1])

    def open(self) -> list[bytes]:
        """Nothing: there is no connection."""
        return []

    def send(self, way: int, batches: Sequence[bytes]) -> list[bytes]:
        """What one side sends."""
        me = self.ways[way]
        return [self._packet(me, batch) for batch in batches]

    def acknowledge(self, way: int) -> list[bytes]:
        """Nothing: nobody acknowledges."""
        return []

    def close(self) -> list[bytes]:
        """Nothing: there is no connection."""
        return []

    def _packet(self, way: _Way, data: bytes) -> bytes:
        length = 8 + len(data)
        size, ident = 20 + length, way.ident
        way.ident = (ident + 1) & 0xFFFF
        check = way.sum + 2 * length + word_sum(data)
        return (
            _UDP_HEADERS.pack(
                way.prefix, size, ident, way.ttl, -(way.ip_sum + size + ident) % 0xFFFF, way.ends,
                length, 0xFFFF - check % 0xFFFF,
            )
            + data
        )  # fmt: skip


def interleaved(flows: Sequence[list[bytes]]) -> list[bytes]:
    """Frames of several links in turn, as if they were sent at the same time."""
    if len(flows) == 1:
        return flows[0]
    return [frame for frame in chain.from_iterable(zip_longest(*flows)) if frame is not None]
