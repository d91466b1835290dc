"""The messages of a batch, one row each. Like the readers, this runs as plain Python and compiled."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.decode._generated import KINDS, RELIABLE, SN, family_network, family_transport
from scapy_zenoh.decode.runtime import (
    END,
    INSIDE,
    KIND,
    MSG,
    PRESENT,
    STRIDE,
    TRUNCATED,
    UNKNOWN_MESSAGE,
    VALUES,
    clear,
    stop,
)

FRAME = KINDS.index("frame")


def read_batch(b: Any, p: int, e: int, r: Any, o: int, room: int, bare: bool) -> int:
    """Read the messages of a batch into rows; returns how many they are.

    ``bare``: network messages may stand without a FRAME. There is room for ``room`` rows, and one more that
    is used on the way; a batch never has more messages than bytes. -1 when a message comes that is not
    compiled.
    """
    frame = -1  # the row of the FRAME whose messages are read
    count = 0
    while p < e and count < room:
        clear(r, o, p)
        r[o + MSG] = count
        r[o + INSIDE] = 0
        q = -2
        if frame >= 0 or bare:
            q = family_network(b, p, e, r, o)
            if frame < 0 and q != -2:
                r[o + INSIDE] = 2
        if q == -2:
            q = family_transport(b, p, e, r, o)
            if q != -2:
                frame = o if r[o + KIND] == FRAME else -1
        if q == -3:
            return -1
        if q == -2:
            q = stop(r, o, UNKNOWN_MESSAGE, p, p)
        if frame >= 0 and frame != o:  # it travels under the number of its FRAME
            r[o + INSIDE] = 1
            r[o + VALUES + SN] = r[frame + VALUES + SN]
            r[o + VALUES + RELIABLE] = r[frame + VALUES + RELIABLE]
            r[o + PRESENT] |= r[frame + PRESENT] & (1 << SN | 1 << RELIABLE)
        p = q if q >= 0 else e
        r[o + END] = p
        count += 1
        o += STRIDE
    return count


def read_network(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Read one network message, such as FRAGMENTs are put together to; returns where it ends."""
    clear(r, o, p)
    r[o + MSG] = 0
    r[o + INSIDE] = 2
    q = family_network(b, p, e, r, o) if p < e else -2
    if q == -2:
        q = stop(r, o, UNKNOWN_MESSAGE if p < e else TRUNCATED, p, p)
    end = q if q >= 0 else e
    r[o + END] = end
    return end
