"""Wire primitives as plain values: integers, ids and texts, and the bytes they are written as.

Everything survives a round trip: what was written longer than necessary remembers that.
"""

from __future__ import annotations

from typing import Any

from scapy_zenoh.fault import FaultKind, WireFault


class VLE(int):
    """An integer with the number of bytes it takes on the wire: ``VLE(5, width=3)`` is ``85 80 00``.

    Only integers that were, or shall be, written longer than necessary are of this class. Its value
    is not checked against the width of a field, so it also carries numbers that are too large.
    """

    width: int

    def __new__(cls, value: int, width: int) -> VLE:
        self = super().__new__(cls, value)
        self.width = width
        return self

    def __repr__(self) -> str:
        return f"VLE({int(self)}, width={self.width})"

    def __reduce__(self) -> tuple[Any, ...]:
        return VLE, (int(self), self.width)


def vle_encode(value: int) -> bytes:
    """Seven bits per byte, least significant first; the ninth byte carries eight."""
    width = value.width if isinstance(value, VLE) else 0
    value = int(value)
    out = bytearray()
    while len(out) < 8 and (value > 0x7F or len(out) + 1 < width):
        out.append(value & 0x7F | 0x80)
        value >>= 7
    if value > 0xFF:
        raise ValueError(f"{value << 56} does not fit in 64 bits")
    out.append(value)
    return bytes(out)


def vle_decode(data: bytes) -> tuple[int, int]:
    """The integer at the start of ``data`` and the number of bytes it took."""
    value = 0
    for i, byte in enumerate(data[:9]):
        if i == 8:
            value |= byte << 56
            return (value if byte else VLE(value, 9)), 9
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return (value if byte or not i else VLE(value, i + 1)), i + 1
    raise WireFault(FaultKind.TRUNCATED, data)


def text_from_wire(data: bytes) -> str:
    """UTF-8; bytes that are not become surrogates, so that the text still gives the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def text_to_wire(text: str) -> bytes:
    """The bytes of a text, surrogates as the bytes they stand for."""
    return text.encode("utf-8", "surrogateescape")


def as_utf8(text: str) -> str:
    """Text for those who take UTF-8 only: bytes that are none become U+FFFD."""
    return text if text.isascii() else text_to_wire(text).decode("utf-8", "replace")


def zid_from_wire(data: bytes) -> str:
    """The text that Zenoh prints: hexadecimal of the little-endian number, no leading zero.

    An id that ends in zero bytes (no node makes one) keeps them as leading ``00``, so that nothing is lost.
    """
    digits = data[::-1].hex()
    return digits[1:] if digits[:1] == "0" and data[-1] else digits


def zid_to_wire(text: str) -> bytes:
    """The bytes of an id given as text."""
    return bytes.fromhex("0" * (len(text) % 2) + text)[::-1]


class WideText(str):
    """A text whose length was written with more bytes than needed."""

    width: int

    def __new__(cls, text: str, width: int) -> WideText:
        self = super().__new__(cls, text)
        self.width = width
        return self

    def __repr__(self) -> str:
        return f"WideText({str(self)!r}, width={self.width})"

    def __reduce__(self) -> tuple[Any, ...]:
        return WideText, (str(self), self.width)
