"""Copies of a capture with damaged Zenoh bytes in packets that are as good as before.

A damaged stream stays contiguous: where bytes are cut out or repeated, the numbers of all later segments and their
acknowledgements move along. So only the content differs, never what TCP makes of it. Checksums are left as they are.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.rows.files import load
from tests.wire import TCP, UDP

Kind = Literal["flip", "cut", "repeat"]
KINDS: tuple[Kind, ...] = ("flip", "cut", "repeat")

_ETHERNET, _IPV4 = 14, 0x0800
_PORTS = {7446, 7447}


@dataclass
class _Segment:
    """A packet taken apart: the place of its transport header, and of its payload."""

    data: bytearray
    transport: int
    payload: int
    proto: int

    @property
    def way(self) -> bytes:
        """From whom to whom."""
        return bytes(self.data[_ETHERNET + 12 : _ETHERNET + 20] + self.data[self.transport : self.transport + 4])

    @property
    def back(self) -> bytes:
        """The other direction."""
        way = self.way
        return way[4:8] + way[:4] + way[10:12] + way[8:10]

    @property
    def identity(self) -> bytes:
        """What is the same when a segment is sent again."""
        return self.way + bytes(self.data[self.transport + 4 : self.transport + 8] + self.data[self.payload :])

    def number(self, at: int) -> int:
        """The sequence number (at 4) or the acknowledgement (at 8)."""
        return int(struct.unpack_from(">I", self.data, self.transport + at)[0])

    def move(self, at: int, by: int) -> None:
        """Change one of these numbers."""
        struct.pack_into(">I", self.data, self.transport + at, self.number(at) + by & 0xFFFFFFFF)

    def replace(self, payload: bytes) -> None:
        """Another payload, with the lengths that belong to it."""
        self.data[self.payload :] = payload
        struct.pack_into(">H", self.data, _ETHERNET + 2, len(self.data) - _ETHERNET)
        if self.proto == UDP:
            struct.pack_into(">H", self.data, self.transport + 4, len(self.data) - self.transport)


def _segment(data: bytes) -> _Segment | None:
    """An Ethernet frame with TCP or UDP of Zenoh in IPv4, None for anything else."""
    if len(data) < 42 or struct.unpack_from(">H", data, 12)[0] != _IPV4:
        return None
    transport = _ETHERNET + (data[_ETHERNET] & 0x0F) * 4
    proto, fragment = data[_ETHERNET + 9], struct.unpack_from(">H", data, _ETHERNET + 6)[0] & 0x3FFF
    if fragment or proto not in (TCP, UDP) or not _PORTS & {*struct.unpack_from(">HH", data, transport)}:
        return None
    size = 8 if proto == UDP else data[transport + 12] >> 4 << 2
    end = _ETHERNET + int(struct.unpack_from(">H", data, _ETHERNET + 2)[0])
    return _Segment(bytearray(data[:end]), transport, transport + size, proto)


@dataclass
class _Moves:
    """How much later bytes of a direction have moved, by the number from which on they have."""

    steps: list[tuple[int, int]] = field(default_factory=list)

    def at(self, number: int) -> int:
        """The move at a sequence number."""
        return sum(by for since, by in self.steps if (number - since) % (1 << 32) < 1 << 31)


def damaged(capture: Path, seed: int, path: Path, share: float = 0.1, aligned: bool = True) -> Path:
    """Write a copy of a capture in which about ``share`` of the packets with Zenoh bytes are damaged.

    ``aligned``: only inside batches, whose sizes stay right, and not in the first of a direction; so everybody knows
    where the next batch begins, and that the link is Zenoh.
    """
    raw, dice = load(capture), random.Random(seed)
    moves: dict[bytes, _Moves] = {}
    sockets: set[bytes] = set()  # directions of WebSockets
    begun: set[bytes] = set()
    sent = Counter(s.identity for _, data, _ in raw.records if (s := _segment(data)))
    records = []
    for time, data, length in raw.records:
        segment = _segment(data)
        if segment is None or len(data) < length:
            records.append((time, data, length))
            continue
        number = segment.number(4)
        once = segment.proto == UDP or sent[segment.identity] == 1
        if segment.proto == TCP:
            segment.move(8, moves.setdefault(segment.back, _Moves()).at(segment.number(8)))
            segment.move(4, moves.setdefault(segment.way, _Moves()).at(number))
        payload = bytes(segment.data[segment.payload :])
        if payload.startswith((b"GET ", b"HTTP")):
            sockets.add(segment.way)
        elif payload and segment.way not in begun and aligned:
            begun.add(segment.way)
        elif payload and once and dice.random() < share:
            if segment.way in sockets:
                changed = change_inside(payload, dice)
            elif segment.proto == TCP and aligned:
                changed = change_batch(payload, dice)
            else:
                changed = change(payload, dice)
            segment.replace(changed)
            if segment.proto == TCP and len(changed) != len(payload):
                moves[segment.way].steps.append((number + len(payload) & 0xFFFFFFFF, len(changed) - len(payload)))
        records.append((time, bytes(segment.data), len(segment.data)))
    return raw.write(path, records)


# --- changes ------------------------------------------------------------------------------------


def change(payload: bytes, dice: random.Random) -> bytes:
    """Some bytes flipped, cut out or repeated; something is always left."""
    at, size = _some(len(payload), dice)
    match dice.choice(KINDS):
        case "flip":
            return _flipped(payload, at, size, dice)
        case "cut" if size < len(payload):
            return payload[:at] + payload[at + size :]
    return payload[: at + size] + payload[at:]


def change_batch(payload: bytes, dice: random.Random) -> bytes:
    """The same inside one of the batches that a segment holds, whose size is then put right."""
    for prefix in (2, 4):
        batches = _batches(payload, prefix)
        if batches:
            start, end = dice.choice(batches)
            content = change(payload[start + prefix : end], dice)
            return payload[:start] + len(content).to_bytes(prefix, "little") + content + payload[end:]
    return payload


def change_inside(payload: bytes, dice: random.Random) -> bytes:
    """Some bytes flipped in the content of the first message of a WebSocket; its header stays good."""
    start = {126: 4, 127: 10}.get(payload[1] & 0x7F, 2) + 4 * (payload[1] >> 7)
    if payload[0] & 0x0F > 2 or len(payload) <= start:
        return payload
    at, size = _some(len(payload) - start, dice)
    return _flipped(payload, start + at, size, dice)


def _batches(payload: bytes, prefix: int) -> list[tuple[int, int]]:
    """Where batches with sizes of so many bytes begin and end; none if they do not fill the payload."""
    found, pos = [], 0
    while pos < len(payload):
        end = pos + prefix + int.from_bytes(payload[pos : pos + prefix], "little")
        if not pos + prefix < end <= len(payload):
            return []
        found.append((pos, end))
        pos = end
    return found


def _some(length: int, dice: random.Random) -> tuple[int, int]:
    """Where the damage begins, and how many bytes it is."""
    at = dice.randrange(length)
    return at, min(dice.choice((1, 1, 1, 2, 3, 8)), length - at)


def _flipped(payload: bytes, at: int, size: int, dice: random.Random) -> bytes:
    masks = (dice.choice((0x01, 0x20, 0x80, 0xFF, dice.randrange(1, 256))) for _ in range(size))
    return payload[:at] + bytes(b ^ m for b, m in zip(payload[at:], masks, strict=False)) + payload[at + size :]
