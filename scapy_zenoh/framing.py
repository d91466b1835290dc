"""Where batches begin and end in the bytes of a stream, also when the beginning is missing or damaged.

A framing says how a batch is delimited and read: ``plain`` (two-byte size), ``compressed`` (the same, with
a header byte) or ``lowlatency`` (four-byte size). Cheap looks at headers come first; only a chain of
plausible batches is read, and only several good ones count as proof.
"""

from __future__ import annotations

from collections.abc import Callable
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
PREFIX = {"plain": 2, "compressed": 2, "lowlatency": 4}

#: The end of a low-latency stream: a CLOSE in an ordinary batch, with a batch header if compression was agreed too.
LAST_CLOSE = {b"\x02\x00\x03": "plain", b"\x03\x00\x00\x03": "compressed"}

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


def worth(batch: Any, fits: Callable[[Any], int]) -> int | None:
    """How much a batch proves to be Zenoh; None when it is bad. ``fits`` judges a FRAME's number: 1 good, -1 bad."""
    if stopped(batch):
        return None
    total = 0
    for message in batch.carried():
        if isinstance(message, ZenohTransportOam):
            return None
        points = _WORTH.get(type(message), 2 if message.family and message.family.name == "network" else 1)
        if isinstance(message, ZenohFrame) and not message.msgs:
            points = 0
        if isinstance(message, (ZenohFrame, ZenohFragment)):
            verdict = fits(message)
            if verdict < 0:
                return None
            points += 3 * verdict
        total += points
    return total


def proof(data: bytes, pos: int, framing: str, fits: Callable[[Any], int], enough: int) -> int | None:
    """How much the batches from ``pos`` on prove; None as soon as one is bad."""
    total = 0
    while total < enough:
        size = size_at(data, pos, framing)
        if size is None or pos + size > len(data):
            return total if plausible(data, pos, framing) is not False else None
        if size > PREFIX[framing]:
            points = worth(BATCH[framing](data[pos : pos + size]), fits)
            if points is None:
                return None
            total += points
        elif framing != "plain":
            return None
        pos += size
        if pos == len(data):
            break
    return total


def no_opinion(message: Any) -> int:
    """For ``fits`` when no sequence number was seen yet."""
    return 0


def find(
    data: bytes, framings: tuple[str, ...], fits: Callable[[Any], int], enough: int, start: int = 0
) -> tuple[int, str] | None:
    """The first position from which batches can be followed, and their framing."""
    for pos in range(start, len(data)):
        for framing in framings:
            if plausible(data, pos, framing) and follow(data, pos, framing):
                proven = proof(data, pos, framing, fits, enough)
                if proven is not None and proven >= enough:
                    return pos, framing
    return None
