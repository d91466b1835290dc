"""Where batches begin and end in the bytes of a stream, also when the beginning is missing or damaged.

A framing says how a batch is delimited and read: ``plain`` (two-byte size), ``compressed`` (the same, with
a header byte) or ``lowlatency`` (four-byte size). Cheap looks at headers come first; only a chain of
plausible batches is read, and only several good ones count as proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy_zenoh.link import (
    ZenohBatch,
    ZenohCompressedBatch,
    ZenohCompressedDatagram,
    ZenohDatagram,
    ZenohLowLatencyDatagram,
    ZenohLowLatencyUnit,
)
from scapy_zenoh.message import stopped
from scapy_zenoh.records import record_of
from scapy_zenoh.transport import ZenohFragment, ZenohFrame, ZenohInit, ZenohJoin, ZenohOpen, ZenohTransportOam

BATCH: dict[str, type[Any]] = {
    "plain": ZenohBatch,
    "compressed": ZenohCompressedBatch,
    "lowlatency": ZenohLowLatencyUnit,
}
DATAGRAM: dict[str, type[Any]] = {
    "plain": ZenohDatagram,
    "compressed": ZenohCompressedDatagram,
    "lowlatency": ZenohLowLatencyDatagram,
}
FRAMINGS = ("plain", "lowlatency", "compressed")  # in the order in which they are tried
PREFIX = {"plain": 2, "compressed": 2, "lowlatency": 4}

#: The end of a low-latency stream: a CLOSE in an ordinary batch, with a batch header if compression was agreed too.
LAST_CLOSE = {b"\x02\x00\x03": "plain", b"\x03\x00\x00\x03": "compressed"}

MAX_EMPTY = 4  # empty batches in a row; nodes send one at a time
MAX_UNIT = 1 << 17  # no low-latency unit is larger than a batch; anything above is no size

#: How much a batch of each kind proves.
_WORTH = {ZenohInit: 8, ZenohOpen: 3, ZenohJoin: 8, ZenohFrame: 3, ZenohFragment: 1}


def size_at(data: Any, pos: int, framing: str) -> int | None:
    """The whole length of the batch at ``pos``, prefix included; None when the prefix is not all there."""
    prefix = PREFIX[framing]
    if len(data) < pos + prefix:
        return None
    return prefix + int.from_bytes(data[pos : pos + prefix], "little")


def last_close(data: bytes) -> str | None:
    """The framing of the CLOSE that ends a low-latency stream, if ``data`` is one."""
    for start, framing in LAST_CLOSE.items():
        if data.startswith(start) and len(data) == size_at(data, 0, framing):
            return framing
    return None


def _plausible_header(byte: int) -> bool:
    kind, flags = byte & 0x1F, byte & 0x60
    if kind == 4:
        return not flags
    if kind in (3, 5):
        return not byte & 0x40
    return kind in (1, 2, 6, 7)


def plausible(data: Any, pos: int, framing: str) -> bool | None:
    """Whether a batch may begin at ``pos``; None when too little is there to tell."""
    size = size_at(data, pos, framing)
    if size is None:
        return None
    start = pos + PREFIX[framing]
    if framing == "lowlatency":
        if size > MAX_UNIT or size == 4:
            return False
        if start >= len(data):
            return None
        return data[start] & 0x1F >= 0x19 or data[start] in (0x03, 0x04, 0x23)
    if size == 2:
        return framing == "plain"  # an empty batch
    if framing == "compressed":
        if start >= len(data) or data[start] > 1:
            return None if start >= len(data) else False
        start += 1
        if start >= len(data):
            return None
        return data[start - 1] == 1 or _plausible_header(data[start])
    if start >= len(data):
        return None
    return _plausible_header(data[start])


def follow(data: bytes, pos: int, framing: str, most: int = 4) -> bool:
    """True when plausible batches follow each other from ``pos``, up to the end of the data or ``most`` of them."""
    for _ in range(most):
        if pos == len(data):
            return True
        answer = plausible(data, pos, framing)
        if answer is not True:
            return answer is None
        pos += size_at(data, pos, framing) or 0
        if pos > len(data):
            return True
    return True


@dataclass
class Proof:
    """What the batches of a stream have shown so far to be Zenoh."""

    fits: Callable[[Any], int]  # whether the number of a FRAME goes on from what was seen before: 1 yes, -1 no
    points: int = 0
    batches: int = 0
    numbers: dict[tuple[int, bool], int] = field(default_factory=dict)  # newest per lane
    continues: bool = False  # a number goes on from what was seen before

    def add(self, batch: Any) -> bool:
        """Take the next batch; False when it is bad or does not go on from the last."""
        if stopped(batch):
            return False
        for message in batch.carried():
            if isinstance(message, ZenohTransportOam):
                return False
            points = _WORTH.get(type(message), 2 if message.family and message.family.name == "network" else 1)
            if isinstance(message, ZenohFrame) and not message.msgs:
                points = 0
            if isinstance(message, (ZenohFrame, ZenohFragment)):
                verdict = self._number(message)
                if verdict < 0:
                    return False
                points += 3 * verdict
            self.points += points
        self.batches += 1
        return True

    def _number(self, message: Any) -> int:
        record = record_of(message)
        sn, lane = record.sn or 0, (record.priority or 0, bool(record.reliable))
        last = self.numbers.get(lane)
        self.numbers[lane] = sn
        if last is None:
            verdict = self.fits(message)
            self.continues = self.continues or verdict > 0
            return verdict
        if sn - last in (1, 2) or last in _LARGEST and sn <= 1:
            return 1
        return -1


_LARGEST = (0x7F, 0x7E, 0x3FFF, 0x3FFE, 0x0FFFFFFF, 0x0FFFFFFE, 0xFFFFFFFF, 0xFFFFFFFE)


def proof(data: bytes, pos: int, framing: str, fits: Callable[[Any], int], enough: int, final: bool) -> bool:
    """True when the batches from ``pos`` on are Zenoh.

    Two good ones are, or one whose numbers go on from what was seen, or one that ends with the stream.
    """
    shown, empty = Proof(fits), 0
    while shown.points < enough or not (shown.batches >= 2 or shown.continues):
        size = size_at(data, pos, framing)
        if size is None or pos + size > len(data):
            return False
        if size > PREFIX[framing]:
            if not shown.add(BATCH[framing](data[pos : pos + size])):
                return False
        elif framing != "plain" or empty == MAX_EMPTY:
            return False
        else:
            empty += 1
        pos += size
        if pos == len(data):
            break
    return shown.points >= enough and (shown.batches >= 2 or shown.continues or final and pos == len(data))


def no_opinion(message: Any) -> int:
    """For ``fits`` when no sequence number was seen yet."""
    return 0


def find(
    data: bytes, framings: tuple[str, ...], fits: Callable[[Any], int], enough: int, final: bool = False
) -> tuple[int, str] | None:
    """The first position from which batches can be followed, and their framing. ``final``: no more bytes will come."""
    for pos in range(len(data)):
        for framing in framings:
            empty = size_at(data, pos, framing) == PREFIX[framing]  # proves nothing: zeros would be many of them
            if not empty and plausible(data, pos, framing) and follow(data, pos, framing):
                if proof(data, pos, framing, fits, enough, final):
                    return pos, framing
    return None
