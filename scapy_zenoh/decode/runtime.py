"""What the generated readers share: integers, texts, faults, and where a row keeps what was read.

Everything here runs in two ways: as plain Python, and compiled by Numba. Hence the plain style: numbers
and arrays only, one result type per function, and ``b[p] + 0`` for a byte that shall become a number of
64 bits. ``b`` are the bytes, ``p`` a position in them, ``e`` where they end; ``r`` are the rows, one after
the other, and ``o`` is where the current row begins. A reader returns the position behind what it read,
or -1 after ``stop``.
"""

from __future__ import annotations

from typing import Any

from scapy_zenoh.fault import FaultKind

# --- the row ------------------------------------------------------------------------------------

PRESENT = 0  # one bit per slot that was read
EXTENSIONS = 1  # one bit per known extension that is there
KIND = 2  # which message; 0 is none
BODY = 3  # which body: the numbers of nested bodies, six bits each
FAULT = 4  # number of a fault, from 1 in the order of FaultKind; 0 is none
FAULT_OFFSET = 5  # counted from the start of the message, body or extension that has it
STOP = 6  # where decoding stopped, -1 if it did not
START = 7  # first byte of the message
END = 8  # behind its last byte, or the end of the batch when decoding stopped
UNKNOWN_EXTS = 9  # how many extensions nobody knows
UNKNOWN_EIDS = 10  # one bit per id of those
UNKNOWN_AT = 11  # where the last of them begins
MSG = 12  # ordinal in the batch
INSIDE = 13  # 1 inside a FRAME, 2 where network messages travel without one
BATCH = 14  # for whoever reads many batches: which one
LENGTHS = 16  # of the spans: bytes, or elements of a list
MAX_SPANS = 16
VALUES = LENGTHS + MAX_SPANS  # numbers, and where spans begin
MAX_SLOTS = 63  # bits of PRESENT
STRIDE = VALUES + MAX_SLOTS

FAULTS: tuple[FaultKind | None, ...] = (None, *FaultKind)

TRUNCATED = FAULTS.index(FaultKind.TRUNCATED)
BAD_LENGTH = FAULTS.index(FaultKind.BAD_LENGTH)
UNKNOWN_MESSAGE = FAULTS.index(FaultKind.UNKNOWN_MESSAGE)
RESERVED_ENCODING = FAULTS.index(FaultKind.RESERVED_ENCODING)
CHAIN_CUT = FAULTS.index(FaultKind.CHAIN_CUT)
BODY_MISSING = FAULTS.index(FaultKind.BODY_MISSING)
UNKNOWN_MANDATORY_EXT = FAULTS.index(FaultKind.UNKNOWN_MANDATORY_EXT)
BAD_UTF8 = FAULTS.index(FaultKind.BAD_UTF8)
VLE_OVERFLOW = FAULTS.index(FaultKind.VLE_OVERFLOW)
BAD_VALUE = FAULTS.index(FaultKind.BAD_VALUE)
LIMIT = FAULTS.index(FaultKind.LIMIT)

MAX_ELEMENTS = 1 << 16  # of a list


def clear(r: Any, o: int, p: int) -> None:
    """Begin a row for the message at ``p``. Slots need no clearing: PRESENT says which count."""
    r[o + PRESENT] = 0
    r[o + EXTENSIONS] = 0
    r[o + KIND] = 0
    r[o + BODY] = 0
    r[o + FAULT] = 0
    r[o + FAULT_OFFSET] = 0
    r[o + STOP] = -1
    r[o + START] = p
    r[o + UNKNOWN_EXTS] = 0
    r[o + UNKNOWN_EIDS] = 0
    r[o + UNKNOWN_AT] = 0


def stop(r: Any, o: int, kind: int, p: int, start: int) -> int:
    """A fault that ends decoding, at ``p`` in what began at ``start``."""
    r[o + FAULT] = kind
    r[o + FAULT_OFFSET] = p - start
    r[o + STOP] = p
    return -1


def note(r: Any, o: int, kind: int, p: int, start: int) -> None:
    """A fault after which decoding goes on; the first one counts."""
    if r[o + FAULT] == 0:
        r[o + FAULT] = kind
        r[o + FAULT_OFFSET] = p - start


# --- numbers ------------------------------------------------------------------------------------


def long_vle(b: Any, p: int, e: int, bits: int) -> tuple[int, int]:
    """The same for an integer of several bytes. Most have one; short functions are put in place of their calls."""
    value = 0
    shift = 0
    while p < e:
        byte = b[p] + 0
        p += 1
        if shift == 56:  # the ninth byte carries eight bits
            value |= (byte if byte < 128 else byte - 256) << 56
            break
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    else:
        return 0, -TRUNCATED
    if bits < 64 and value >> bits != 0:
        return 0, -VLE_OVERFLOW
    return value, p


def vle(b: Any, p: int, e: int, bits: int) -> tuple[int, int]:
    """An integer of at most ``bits`` bits, as signed 64 bits, and the position behind it or less than 0: -fault."""
    if p < e and b[p] < 128:
        return b[p] + 0, p + 1
    return long_vle(b, p, e, bits)


def short(kind: int) -> int:
    """The fault of a number inside a counted run of bytes: when it is cut off, the count was wrong."""
    return BAD_LENGTH if kind == TRUNCATED else kind


def little(b: Any, p: int, size: int) -> int:
    """An unsigned integer, least significant byte first."""
    value = 0
    for i in range(size):
        value |= (b[p + i] + 0) << 8 * i
    return value


# --- texts --------------------------------------------------------------------------------------


def is_utf8(b: Any, p: int, e: int) -> bool:
    """What Python's strict decoder takes."""
    while p < e:
        first = b[p] + 0
        p += 1
        if first < 0x80:
            continue
        if 0xC2 <= first < 0xE0:
            more = 1
        elif 0xE0 <= first < 0xF0:
            more = 2
        elif 0xF0 <= first < 0xF5:
            more = 3
        else:
            return False
        if p + more > e:
            return False
        second = b[p] + 0
        if first == 0xE0 and second < 0xA0 or first == 0xED and second > 0x9F:
            return False
        if first == 0xF0 and second < 0x90 or first == 0xF4 and second > 0x8F:
            return False
        for i in range(more):
            if b[p + i] & 0xC0 != 0x80:
                return False
        p += more
    return True


def is_locator(b: Any, p: int, e: int) -> bool:
    """An address as nodes take it: a protocol before the first slash, and no ``#``."""
    slash = -1
    for i in range(p, e):
        if b[i] == 0x23:
            return False
        if b[i] == 0x2F and slash < 0:
            slash = i
    return slash > p


# --- lists --------------------------------------------------------------------------------------


def numbers(b: Any, p: int, e: int, count: int, bits: int) -> tuple[int, int, int]:
    """``count`` integers: the position behind those that could be read, how many they are, and a fault or 0."""
    for i in range(count):
        _, q = vle(b, p, e, bits)
        if q < 0:
            return p, i, -q
        p = q
    return p, count, 0


def texts(b: Any, p: int, e: int, count: int, bits: int, locators: bool) -> tuple[int, int, int, bool]:
    """``count`` counted texts: as ``numbers``, and whether all of them are UTF-8."""
    good = True
    for i in range(count):
        size, q = vle(b, p, e, bits)
        if q < 0:
            return p, i, -q, good
        if size > e - q:
            return p, i, BAD_LENGTH, good
        good = good and is_utf8(b, q, q + size)
        if locators and not is_locator(b, q, q + size):
            return p, i, BAD_VALUE, good
        p = q + size
    return p, count, 0, good


# --- extensions nobody knows --------------------------------------------------------------------


def unknown_extension(b: Any, p: int, e: int, r: Any, o: int, marked: bool, judged: bool) -> int:
    """Skip an extension. ``marked``: the row tells of it; ``judged``: claiming to be mandatory is a fault."""
    start = p
    header = b[p] + 0
    p += 1
    if marked:
        r[o + UNKNOWN_EXTS] += 1
        r[o + UNKNOWN_EIDS] |= 1 << (header & 15)
        r[o + UNKNOWN_AT] = start
    encoding = header >> 5 & 3
    if encoding == 1:
        _, q = vle(b, p, e, 64)
        if q < 0:
            return stop(r, o, -q, p, start)
        p = q
    elif encoding == 2:
        size, q = vle(b, p, e, 32)
        if q < 0:
            return stop(r, o, -q, p, start)
        p = q
        if size > e - p:
            return stop(r, o, BAD_LENGTH, p, start)
        p += size
    if judged and header & 0x10 != 0:
        note(r, o, UNKNOWN_MANDATORY_EXT, start, start)
    return p


# --- looking ahead ------------------------------------------------------------------------------


def peek_byte(b: Any, p: int, e: int) -> int:
    """A byte further on, -1 behind the end."""
    return b[p] + 0 if p < e else -1


def peek_vles(b: Any, p: int, e: int) -> int:
    """How many integers exactly fill the counted bytes at ``p``; 0 if they do not."""
    size = 0
    shift = 0
    while True:
        if p >= e or shift > 28:
            return 0
        byte = b[p] + 0
        size |= (byte & 127) << shift
        p += 1
        shift += 7
        if byte < 128:
            break
    end = p + size
    count = 0
    if end > e:
        return 0
    while p < end:
        width = 1
        while width < 9 and b[p + width - 1] >= 128:
            if p + width >= end:
                return 0
            width += 1
        p += width
        count += 1
    return count
