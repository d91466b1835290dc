"""The compiled part of the packet reader: from the bytes of a capture file to columns of packets.

The same as in ``capture``, which is the reference, in three steps over many packets: ``walk`` finds the frames,
``decode`` the payload of TCP and UDP in them, ``intern`` gives numbers to their addresses. What is rare is left to
``packets``: descriptions of sections and interfaces, IP fragments, times that are not whole nanoseconds, damage.

Each step is one loop without calls that take arrays, other than those of a few lines: counting the references to
them took 200 of 260 ns per packet.

All numbers are int64: with an unsigned one among them the result would be a float. No read is checked by
the machine, so each is behind a comparison with the end of what was captured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.capture import (
    BSD_FAMILIES,
    ENHANCED_PACKET,
    INTERFACE,
    IPV4,
    IPV6,
    IPV6_FRAGMENT,
    IPV6_OPTIONS,
    PACKET,
    SECTION,
    SIMPLE_PACKET,
    TCP,
    UDP,
    VLAN_TAGS,
)

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int32]
Int = Any  # an int or np.int64 to Python, int64 when compiled

# Places in ``state``: what the steps tell each other, and keep between two calls
POS, FILLED, FRAME, PACKETS = 0, 1, 2, 3  # where it is, how far the bytes go, number of the last packet, counted
COUNT, DECODED, NAMED, MARKED = 4, 5, 6, 7  # rows, those of them that had the second and third step, marks
TIME, ORIGIN = 8, 9  # of the last packet; its interface if the time is still in ticks, else -1
NEED, VALUE = 10, 11  # bytes asked for from POS on; the number that an error text wants
BIG, UNIT = 12, 13  # byte order; ns per unit of the fraction in pcap, 0 for pcapng
INTERFACES, KNOWN = 14, 15  # how many there are; the section header that was taken already
ADDRESSES, SEED = 16, 17  # how many there are; what their hash begins with
LONGEST = 18  # MAX_RECORD
STATE = 19

# Columns of ``interfaces``. A time is ticks * FACTOR + OFFSET for ticks up to LIMIT.
LINK, SNAPLEN, FACTOR, OFFSET, LIMIT, UNKNOWN = 0, 1, 2, 3, 4, 5
INTERFACE_COLUMNS = 6

# Kinds of link, in LINK; packets of an unknown one are counted in UNKNOWN
ON_UNKNOWN, ON_ETHERNET, ON_SLL, ON_SLL2, ON_RAW, ON_BSD = 0, 1, 2, 3, 4, 5

# Rows of ``wide`` (int64) and ``narrow`` (int32), one column per packet, in the order that ``packets`` takes apart
W_FRAME, W_TIME, W_START, W_SIZE, W_MISSING, W_SEQ, W_ACK = 0, 1, 2, 3, 4, 5, 6
WIDE = 7
N_SRC, N_DST, N_SPORT, N_DPORT, N_FLAGS = 0, 1, 2, 3, 4
NARROW = 5

# Columns of ``marks``, the rows that Python has to complete: which row, what is left to do (the time is still
# in ticks; START, SIZE, MISSING are those of the frame: where, captured, on the wire), the interface of the packet
# and the one whose ticks they are
M_ROW, M_WHAT, M_INTERFACE, M_ORIGIN = 0, 1, 2, 3
MARK_COLUMNS = 4
MARK_FRAGMENT, MARK_TICKS = 1, 2

# Columns of ``keys``: an address as two numbers, and 4 or 6
K_HIGH, K_LOW, K_VERSION = 0, 1, 2
KEY_COLUMNS = 3

# Why ``walk`` came back
MORE_HEADER, MORE_BODY, ROWS_FULL, AT_SECTION, AT_INTERFACE = 0, 1, 2, 3, 4
BAD_PACKET_LENGTH, BAD_BLOCK_LENGTH, BAD_LENGTHS, BAD_SHORT_BLOCK, BAD_PACKET, BAD_INTERFACE = 5, 6, 7, 8, 9, 10

_VLANS = tuple(sorted(VLAN_TAGS))
_FAMILIES6 = tuple(sorted(family for family, kind in BSD_FAMILIES.items() if kind == IPV6))
_FAMILIES4 = tuple(sorted(family for family, kind in BSD_FAMILIES.items() if kind == IPV4))
_OPTIONS6 = tuple(sorted(IPV6_OPTIONS))


@part
def _short(buf: Bytes, at: Int) -> Int:
    """Two bytes in the order of the network."""
    return np.int64(buf[at]) << 8 | np.int64(buf[at + 1])


@part
def _long(buf: Bytes, at: Int) -> Int:
    """Four bytes in the order of the network."""
    return np.int64(buf[at]) << 24 | np.int64(buf[at + 1]) << 16 | np.int64(buf[at + 2]) << 8 | np.int64(buf[at + 3])


@part
def _word(buf: Bytes, at: Int, big: Int) -> Int:
    """Four bytes in the order of the file."""
    if big:
        return _long(buf, at)
    return np.int64(buf[at + 3]) << 24 | np.int64(buf[at + 2]) << 16 | np.int64(buf[at + 1]) << 8 | np.int64(buf[at])


@part
def _slot(high: Int, low: Int, mask: Int, seed: Int) -> Int:
    """Where the search for an address begins. Seeded: to make addresses collide, one would have to know the seed."""
    mixed = (high ^ seed) * 0x2545F4914F6CDD1D
    mixed = (mixed ^ (mixed >> 32) ^ low) * 0x1B873593CC9E2D51
    mixed = (mixed ^ (mixed >> 29) ^ seed) * 0x2127599BF4325C37
    return (mixed ^ (mixed >> 32)) & mask


@compiled
def walk(buf: Bytes, state: Ints, interfaces: Ints, wide: Ints, narrow: Shorts) -> Int:
    """Find the frames that are in ``buf``; why it stopped.

    START, SIZE and MISSING are where a frame is, what was captured and how long it was; SPORT is its interface,
    DPORT the one whose ticks TIME is, or -1 if that is a time. At a section header it stops before the block, at
    an interface behind it, with the length in VALUE.
    """
    pos, filled, big, unit = state[POS], state[FILLED], state[BIG], state[UNIT]
    index: Int = 0
    while True:
        state[POS] = pos
        row = state[COUNT]
        if row >= wide.shape[1]:
            return ROWS_FULL

        if unit:  # pcap
            if pos + 16 > filled:
                state[NEED] = 16
                return MORE_HEADER
            captured = _word(buf, pos + 8, big)
            if captured > state[LONGEST]:
                state[FRAME] += 1
                state[VALUE] = captured
                return BAD_PACKET_LENGTH
            at = pos + 16
            end = at + captured
            if end > filled:
                state[NEED] = 16 + captured
                return MORE_BODY
            state[FRAME] += 1
            state[TIME] = _word(buf, pos, big) * 1_000_000_000 + _word(buf, pos + 4, big) * unit
            length = _word(buf, pos + 12, big)
            pos = end
        else:
            if pos + 12 > filled:
                state[NEED] = 12
                return MORE_HEADER
            if _long(buf, pos) == SECTION and state[KNOWN] != pos:
                return AT_SECTION
            kind = _word(buf, pos, big)
            size = _word(buf, pos + 4, big)
            padded = (size + 3) & ~3
            if size < 12 or padded > state[LONGEST]:
                state[VALUE] = size
                return BAD_BLOCK_LENGTH
            if pos + padded > filled:
                state[NEED] = padded
                return MORE_BODY
            body, end = pos + 8, pos + padded - 4
            if _word(buf, end, big) != size:
                return BAD_LENGTHS
            if kind == ENHANCED_PACKET or kind == PACKET:
                at = body + 20
            elif kind == SIMPLE_PACKET:
                at = body + 4
            elif kind == INTERFACE:
                at = body + 8
            else:
                pos = end + 4
                continue
            if at > end:
                return BAD_SHORT_BLOCK
            pos = end + 4
            if kind == INTERFACE:
                state[POS] = pos
                state[VALUE] = padded
                return AT_INTERFACE

            state[FRAME] += 1
            index = _word(buf, body, big)
            if kind == SIMPLE_PACKET:
                index, length = 0, index
                captured = min(length, end - at)
                if state[INTERFACES] > 0 and interfaces[0, SNAPLEN] > 0:
                    captured = min(captured, interfaces[0, SNAPLEN])
            else:
                if kind == PACKET:  # the other half counts lost packets
                    index = index >> 16 if big else index & 0xFFFF
                captured = _word(buf, body + 12, big)
                length = _word(buf, body + 16, big)
            if captured > end - at:
                state[POS] = at
                return BAD_PACKET
            if index >= state[INTERFACES]:
                state[POS] = at
                state[VALUE] = index
                return BAD_INTERFACE
            if kind != SIMPLE_PACKET:  # which has no time: it keeps that of the packet before
                ticks = _word(buf, body + 4, big) << 32 | _word(buf, body + 8, big)
                if 0 <= ticks <= interfaces[index, LIMIT]:
                    state[TIME] = ticks * interfaces[index, FACTOR] + interfaces[index, OFFSET]
                    state[ORIGIN] = -1
                else:
                    state[TIME] = ticks
                    state[ORIGIN] = index
        state[PACKETS] += 1
        state[COUNT] = row + 1
        wide[W_FRAME, row] = state[FRAME]
        wide[W_TIME, row] = state[TIME]
        wide[W_START, row] = at
        wide[W_SIZE, row] = captured
        wide[W_MISSING, row] = length
        narrow[N_SPORT, row] = index
        narrow[N_DPORT, row] = state[ORIGIN]


@compiled
def decode(buf: Bytes, state: Ints, interfaces: Ints, wide: Ints, narrow: Shorts, proto: Bytes, marks: Ints) -> None:
    """Make packets of the frames from DECODED on, and close the gaps that those without TCP and UDP leave.

    SRC is then where the addresses begin in ``buf``, and DST is 4 or 6.
    """
    row = state[DECODED]
    for i in range(state[DECODED], state[COUNT]):
        at = wide[W_START, i]
        end = at + wide[W_SIZE, i]
        wire_end = at + wide[W_MISSING, i]
        index, origin = np.int64(narrow[N_SPORT, i]), np.int64(narrow[N_DPORT, i])
        link = interfaces[index, LINK]
        kind: Int = 0
        version: Int = 0
        if link == ON_ETHERNET:
            if end - at < 14:
                continue
            kind = _short(buf, at + 12)
            at += 14
        elif link == ON_SLL:
            if end - at < 16:
                continue
            kind = _short(buf, at + 14)
            at += 16
        elif link == ON_SLL2:
            if end - at < 20:
                continue
            kind = _short(buf, at)
            at += 20
        elif link == ON_RAW:
            if at >= end:
                continue
            version = np.int64(buf[at]) >> 4
            if version == 4:
                kind = IPV4
            elif version == 6:
                kind = IPV6
        elif link == ON_BSD:
            if end - at < 4:
                continue
            family = max(np.int64(buf[at]), np.int64(buf[at + 3]))
            if family in _FAMILIES4:
                kind = IPV4
            elif family in _FAMILIES6:
                kind = IPV6
            at += 4
        else:
            interfaces[index, UNKNOWN] += 1
            continue
        while kind in _VLANS and end - at >= 4:
            kind = _short(buf, at + 2)
            at += 4

        fragmented = False
        if kind == IPV4:
            if end - at < 20:
                continue
            version = np.int64(buf[at])
            size = (version & 15) * 4
            if version >> 4 != 4 or size < 20:
                continue
            total = _short(buf, at + 2)
            fragmented = _short(buf, at + 6) & 0x3FFF != 0
            protocol = np.int64(buf[at + 9])
            version, src = 4, at + 12
            if total:
                wire_end = at + total
            at += size
        elif kind == IPV6:
            if end - at < 40 or np.int64(buf[at]) >> 4 != 6:
                continue
            total = _short(buf, at + 4)
            protocol = np.int64(buf[at + 6])
            version, src = 6, at + 8
            at += 40
            if total:
                wire_end = at + total
            while not fragmented and end - at >= 8 and (protocol in _OPTIONS6 or protocol == IPV6_FRAGMENT):
                if protocol == IPV6_FRAGMENT:
                    fragmented = _short(buf, at + 2) & 0xFFF9 != 0
                    protocol = np.int64(buf[at])
                    at += 8
                else:
                    protocol = np.int64(buf[at])
                    at += 8 + np.int64(buf[at + 1]) * 8
        else:
            continue

        sport: Int = 0
        dport: Int = 0
        seq: Int = 0
        ack: Int = 0
        flags: Int = 0
        head: Int = 8
        if fragmented:
            start, size, missing = wide[W_START, i], wide[W_SIZE, i], wide[W_MISSING, i]
        else:
            if end > wire_end:
                end = wire_end
            if protocol == TCP:
                if end - at < 14:
                    continue
                offset = np.int64(buf[at + 12]) >> 4
                if offset < 5:
                    continue
                seq = _long(buf, at + 4)
                ack = _long(buf, at + 8)
                flags = np.int64(buf[at + 13])
                head = offset * 4
            elif protocol == UDP:
                if end - at < 8:
                    continue
                length = _short(buf, at + 4)
                if length >= 8:
                    wire_end = min(wire_end, at + length)
                    end = min(end, wire_end)
                elif length:
                    continue
            else:
                continue
            sport = _short(buf, at)
            dport = _short(buf, at + 2)
            at += head
            if at > wire_end:
                continue
            start = min(at, end)
            size = end - start
            missing = wire_end - at - size

        if fragmented or origin >= 0:
            mark = state[MARKED]
            state[MARKED] = mark + 1
            marks[mark, M_ROW] = row
            marks[mark, M_WHAT] = (MARK_FRAGMENT if fragmented else 0) | (MARK_TICKS if origin >= 0 else 0)
            marks[mark, M_INTERFACE] = index
            marks[mark, M_ORIGIN] = origin
        wide[W_FRAME, row] = wide[W_FRAME, i]
        wide[W_TIME, row] = wide[W_TIME, i]
        wide[W_START, row] = start
        wide[W_SIZE, row] = size
        wide[W_MISSING, row] = missing
        wide[W_SEQ, row] = seq
        wide[W_ACK, row] = ack
        narrow[N_SRC, row] = src
        narrow[N_DST, row] = version
        narrow[N_SPORT, row] = sport
        narrow[N_DPORT, row] = dport
        narrow[N_FLAGS, row] = flags
        proto[row] = protocol
        row += 1
    state[COUNT] = state[DECODED] = row


@compiled
def intern(buf: Bytes, state: Ints, narrow: Shorts, slots: Shorts, keys: Ints) -> bool:
    """Put the numbers of the addresses into the rows from NAMED on; False when the table has to grow before."""
    mask = len(slots) - 1
    for row in range(state[NAMED], state[COUNT]):
        state[NAMED] = row
        if state[ADDRESSES] + 2 > len(keys):
            return False
        at, version = np.int64(narrow[N_SRC, row]), np.int64(narrow[N_DST, row])
        for side in range(2):  # N_SRC and N_DST
            high: Int = 0
            if version == 4:
                low = _long(buf, at)
                at += 4
            else:
                high = _long(buf, at) << 32 | _long(buf, at + 4)
                low = _long(buf, at + 8) << 32 | _long(buf, at + 12)
                at += 16
            place = _slot(high, low, mask, state[SEED])
            number = np.int64(slots[place])
            while number >= 0 and (
                keys[number, K_LOW] != low or keys[number, K_HIGH] != high or keys[number, K_VERSION] != version
            ):
                place = (place + 1) & mask
                number = np.int64(slots[place])
            if number < 0:
                number = state[ADDRESSES]
                state[ADDRESSES] = number + 1
                slots[place] = number
                keys[number, K_HIGH] = high
                keys[number, K_LOW] = low
                keys[number, K_VERSION] = version
            narrow[side, row] = number
    state[NAMED] = state[COUNT]
    return True


@compiled
def rehash(state: Ints, slots: Shorts, keys: Ints) -> None:
    """Put every address into a new, empty table."""
    mask = len(slots) - 1
    for number in range(state[ADDRESSES]):
        place = _slot(keys[number, K_HIGH], keys[number, K_LOW], mask, state[SEED])
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = number
