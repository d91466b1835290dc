"""The generated decoder as plain Python: for small captures, and wherever a link is not regular."""

from __future__ import annotations

import re
from array import array

import lz4.block

from scapy_zenoh.codec import PREFIX, Batch, Single
from scapy_zenoh.decode._generated import family_scouting
from scapy_zenoh.decode.reading import read_batch, read_network
from scapy_zenoh.decode.records import record_of
from scapy_zenoh.decode.runtime import END, INSIDE, STOP, STRIDE, clear
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.values import MAX_BATCH, PROTOCOL_VERSION

_LOCATOR = re.compile(r"[a-z][a-z0-9-]*/.+")


class PlainCodec:
    """Reads without Scapy. Its rows are used again for the next batch."""

    def __init__(self) -> None:
        self._room = 0
        self._rows = array("q")
        self._grow()

    def __reduce__(self) -> tuple[type[PlainCodec], tuple[()]]:
        return PlainCodec, ()  # its rows are nobody's memory

    def _grow(self) -> None:
        self._room = 2 * self._room or 64
        self._rows = array("q", bytes(8 * STRIDE * (self._room + 1)))

    def batch(self, data: bytes, framing: str, sized: bool) -> Batch:
        """Read a batch; ``sized``: it begins with its size, as on a stream."""
        start, compressed = PREFIX[framing] if sized else 0, False
        if framing == "compressed":
            if start >= len(data):
                return Batch([])
            compressed = data[start] & 1 != 0
            start += 1
            if compressed:
                try:
                    data, start = lz4.block.decompress(data[start:], uncompressed_size=MAX_BATCH), 0
                except lz4.block.LZ4BlockError:
                    fault = str(FaultKind.BAD_COMPRESSION)
                    return Batch([], True, len(data) - start, fault=fault, compressed=True)
        end, rows = len(data), self._rows
        count = read_batch(data, start, end, rows, 0, self._room, framing == "lowlatency")
        while count == self._room and rows[(count - 1) * STRIDE + END] < end:
            self._grow()
            rows = self._rows
            count = read_batch(data, start, end, rows, 0, self._room, framing == "lowlatency")
        records = [record_of(data, rows, o) for o in range(0, count * STRIDE, STRIDE)]
        stop = rows[(count - 1) * STRIDE + STOP] if count else -1
        return Batch(records, stop >= 0, end - stop if stop >= 0 else 0, compressed=compressed)

    def scouting(self, data: bytes) -> Single | None:
        """Read a scouting message; None when no id matches."""
        rows = self._rows
        clear(rows, 0, 0)
        rows[INSIDE] = 0
        end = family_scouting(data, 0, len(data), rows, 0) if data else -2
        return None if end == -2 else self._single(data, end)

    def network(self, data: bytes) -> Single:
        """Read a network message that was put together from FRAGMENTs."""
        return self._single(data, read_network(data, 0, len(data), self._rows, 0))

    def _single(self, data: bytes, end: int) -> Single:
        stop = self._rows[STOP]
        rest = 0 if stop >= 0 else len(data) - end
        return Single(record_of(data, self._rows, 0), rest, stop >= 0, len(data) - stop if stop >= 0 else 0)


def is_hello(data: bytes) -> bool:
    """True when a datagram is a HELLO to the last byte."""
    if len(data) < 4 or data[0] & 0x5F != 0x02 or data[1] != PROTOCOL_VERSION or data[2] & 0x0C:
        return False
    hello = PlainCodec().scouting(data)
    exact = hello is not None and hello.record.fault is None and not hello.rest
    return exact and hello is not None and all(_LOCATOR.match(locator) for locator in hello.record.locators or ())
