"""LZ4 blocks, compiled. What is not beyond doubt is left to the library, which decides."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.bulk.compiling import part
from scapy_zenoh.values import MAX_BATCH

#: Writers leave the last bytes of a block uncompressed: a match begins 12 bytes before the end at the latest, and the
#: last 5 are literals. The library is strict about it near the end of its room only, so here it holds everywhere.
_LAST_MATCH, _LAST_LITERALS = 12, 5
LIMIT = MAX_BATCH - 64


@part
def _length(b: Any, p: int, e: int, size: int) -> tuple[int, int]:
    """A length whose first four bits are ``size``, and the position behind it; -1 when it is cut off."""
    if size == 15:
        more = 255
        while more == 255:
            if p >= e:
                return 0, -1
            more = b[p] + 0
            p += 1
            size += more
    return size, p


@part
def unpack(b: Any, p: int, e: int, out: Any, to: int) -> int:
    """Unpack the block ``b[p:e]`` to ``out[to:]``; returns its length, -1 when somebody else should look at it."""
    o = to
    end = to + LIMIT
    last_match = -1
    while p < e:
        token = b[p] + 0
        p += 1
        size, p = _length(b, p, e, token >> 4)
        if p < 0 or size > e - p or size > end - o:
            return -1
        for i in range(size):
            out[o + i] = b[p + i]
        p += size
        o += size
        if p == e:
            if last_match >= 0 and (size < _LAST_LITERALS or o - last_match < _LAST_MATCH):
                return -1
            length: int = o - to
            return length
        if e - p < 2:
            return -1
        back = b[p] + 0 | (b[p + 1] + 0) << 8
        p += 2
        size, p = _length(b, p, e, token & 15)
        size += 4
        if p < 0 or back == 0 or back > o - to or size > end - o:
            return -1
        last_match = o
        for i in range(size):
            out[o + i] = out[o + i - back]
        o += size
    return -1
