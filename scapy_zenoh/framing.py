"""Where batches begin and end in the bytes of a stream, also when the beginning is missing or damaged.

A framing says how a batch is delimited and read: ``plain`` (two-byte size), ``compressed`` (the same, with
a header byte) or ``lowlatency`` (four-byte size). Cheap looks at headers come first; only a chain of
plausible batches is read, and only several good ones count as proof.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from scapy_zenoh.codec import PREFIX, Batch, Codec
from scapy_zenoh.session.record import MessageRecord

FRAMINGS = ("plain", "lowlatency", "compressed")  # in the order in which they are tried

#: The end of a low-latency stream: a CLOSE in an ordinary batch, with a batch header if compression was agreed too.
LAST_CLOSE = {b"\x02\x00\x03": "plain", b"\x03\x00\x00\x03": "compressed"}

MAX_EMPTY = 4  # empty batches in a row; nodes send one at a time
MAX_UNIT = 1 << 17  # no low-latency unit is larger than a batch; anything above is no size

#: How much a transport message of each kind proves.
_WORTH = {"init_syn": 8, "init_ack": 8, "open_syn": 3, "open_ack": 3, "join": 8, "frame": 3}

#: Whether the number of a FRAME or FRAGMENT goes on from what was seen before: 1 yes, 0 cannot tell, -1 no.
Fits = Callable[[MessageRecord], int]


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


def _plausible_bare(byte: int) -> bool:
    return byte & 0x1F >= 0x19 or byte in (0x03, 0x04, 0x23)


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
        return _plausible_bare(data[start])
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

    fits: Fits
    points: int = 0
    batches: int = 0
    numbers: dict[tuple[int, bool], int] = field(default_factory=dict)  # newest per lane
    continues: bool = False  # a number goes on from what was seen before

    def add(self, batch: Batch) -> bool:
        """Take the next batch; False when it is bad or does not go on from the last."""
        if batch.stopped:
            return False
        inside = False  # a FRAME, which counts for all that is in it
        for number, record in enumerate(batch.records):
            if record.layer == "network":
                self.points += 0 if inside else 2
                continue
            if record.kind == "transport_oam":
                return False
            inside = record.kind == "frame"
            self.points += _WORTH.get(record.kind, 1)
            if inside and not _is_network(batch.records, number + 1):
                self.points -= _WORTH["frame"]  # an empty FRAME proves nothing
            if record.kind in ("frame", "fragment"):
                verdict = self._number(record)
                if verdict < 0:
                    return False
                self.points += 3 * verdict
        self.batches += 1
        return True

    def _number(self, record: MessageRecord) -> int:
        sn, lane = record.sn or 0, (record.priority or 0, bool(record.reliable))
        last = self.numbers.get(lane)
        self.numbers[lane] = sn
        if last is None:
            verdict = self.fits(record)
            self.continues = self.continues or verdict > 0
            return verdict
        if sn - last in (1, 2) or last in _LARGEST and sn <= 1:
            return 1
        return -1


def _is_network(records: list[MessageRecord], number: int) -> bool:
    return number < len(records) and records[number].layer == "network"


_LARGEST = (0x7F, 0x7E, 0x3FFF, 0x3FFE, 0x0FFFFFFF, 0x0FFFFFFE, 0xFFFFFFFF, 0xFFFFFFFE)


def proof(codec: Codec, data: bytes, pos: int, framing: str, fits: Fits, enough: int, final: bool) -> bool:
    """True when the batches from ``pos`` on are Zenoh.

    Two good ones are, or one whose numbers go on from what was seen, or one that ends with the stream.
    """
    shown, empty = Proof(fits), 0
    while shown.points < enough or not (shown.batches >= 2 or shown.continues):
        size = size_at(data, pos, framing)
        if size is None or pos + size > len(data):
            return False
        if size > PREFIX[framing]:
            if not shown.add(codec.batch(data[pos : pos + size], framing, sized=True)):
                return False
        elif framing != "plain" or empty == MAX_EMPTY:
            return False
        else:
            empty += 1
        pos += size
        if pos == len(data):
            break
    return shown.points >= enough and (shown.batches >= 2 or shown.continues or final and pos == len(data))


def no_opinion(record: MessageRecord) -> int:
    """For ``fits`` when no sequence number was seen yet."""
    return 0


def find(
    codec: Codec, data: bytes, framings: tuple[str, ...], fits: Fits, enough: int, final: bool = False
) -> tuple[int, str] | None:
    """The first position from which batches can be followed, and their framing. ``final``: no more bytes will come."""
    for pos, number in merge(*(_candidates(data, framing, number) for number, framing in enumerate(framings))):
        framing = framings[number]
        empty = size_at(data, pos, framing) == PREFIX[framing]  # proves nothing: zeros would be many of them
        if not empty and plausible(data, pos, framing) and follow(data, pos, framing):
            if proof(codec, data, pos, framing, fits, enough, final):
                return pos, framing
    return None


def _candidates(data: bytes, framing: str, number: int) -> Iterator[tuple[int, int]]:
    """Positions whose first bytes a batch may have: a fifth of all, found without Python looking at each."""
    return ((match.start(), number) for match in _BEGINNINGS[framing].finditer(data))


def _one_of(headers: Iterable[int]) -> bytes:
    return b"[" + re.escape(bytes(headers)) + b"]"


_HEADER = _one_of(byte for byte in range(256) if _plausible_header(byte))
_BARE = _one_of(byte for byte in range(256) if _plausible_bare(byte))
_BEGINNINGS = {
    "plain": re.compile(b"(?s)(?=.." + _HEADER + b")"),
    "compressed": re.compile(b"(?s)(?=..(?:\x01.|\x00" + _HEADER + b"))"),
    "lowlatency": re.compile(b"(?s)(?=..[\x00-\x02]\x00" + _BARE + b")"),  # no unit is larger than MAX_UNIT
}
