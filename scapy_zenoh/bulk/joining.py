"""What the session knows of many messages at once, compiled.

``survey`` counts messages and follows queries, and sequence numbers where they go up by one; what else may change the
session it lists, for ``session`` to decide. ``turn`` makes columns of rows, ``intern`` numbers equal texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk import queries
from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.bulk.engine import FLOW_OF, PACKET_OF, copy
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.runtime import BATCH, BODY, KIND, LENGTHS, PRESENT, STRIDE, VALUES

FRAME, FRAGMENT, REQUEST, RESPONSE, RESPONSE_FINAL, DECLARE = (
    g.KINDS.index(name) for name in ("frame", "fragment", "request", "response", "response_final", "declare")
)

# --- flows: what the session says of them --------------------------------------------------------

(
    SIDE,  # number of the side that sends
    PEER,  # and of the other one
    MULTICAST,
    MASK,  # of sequence numbers
    LANES,  # 1: one lane per priority
    LAST_MESSAGE,  # time of the newest message
    JOINED,
) = range(7)

#: Counters of a flow: kinds, then bodies, then bodies of replies, then how queries ended.
COUNTERS = 96
_BODIES, _REPLIES, OUTCOMES = 32, 64, 92

# Where the newest number of a lane is (16 lanes a side): in the session, or here; LISTED: the session follows it
# for the rest of this run.
IN_SESSION, REGULAR, LISTED = range(3)

DEFAULT_LANE = 5
_REPLY = g.BODIES.index("reply")


def counter_names() -> list[str]:
    """What each counter counts, as the session calls it; "" for numbers that nothing has."""
    names = [""] * COUNTERS
    names[: len(g.KINDS)] = g.KINDS
    for number, body in enumerate(g.BODIES[1:], 1):
        names[_BODIES + number] = body
        names[_REPLIES + number] = f"reply_{body}"
    return names


@part
def _counter(kind: int, body: int) -> int:
    if body == 0 or body == _REPLY:
        return kind
    return _BODIES + body if body < 64 else _REPLIES + (body & 63)


@compiled
def survey(
    r: Any,
    B: Any,
    J: Any,
    C: Any,
    time: Any,
    last: Any,
    lanes: Any,
    query_keys: Any,
    query_states: Any,
    query_sides: Any,
    query_done: Any,
    most_queries: int,
    begin: int,
    count: int,
    listed: Any,
    turned: Any,
) -> tuple[int, int, int, int]:
    """Count rows and follow their numbers; returns how many are listed for the session, oldest first.

    And how many lanes were turned over to it (one whose newest number was here as -1 - lane), the slots that
    any row has, and how far it came: behind a FRAGMENT the session goes first, which may put a message together.
    """
    found = 0
    over = 0
    present = 0
    for i in range(begin, count):
        o = i * STRIDE
        present |= r[o + PRESENT]
        m = r[o + BATCH]
        f = B[m, FLOW_OF]
        kind = r[o + KIND]
        if kind == FRAME or kind == FRAGMENT:
            priority = DEFAULT_LANE
            if J[f, LANES] == 1 and r[o + PRESENT] >> g.PRIORITY & 1:
                priority = r[o + VALUES + g.PRIORITY]
            lane = 16 * J[f, SIDE] + 2 * priority + r[o + VALUES + g.RELIABLE]
            sn = r[o + VALUES + g.SN]
            if kind == FRAME and lanes[lane] == REGULAR and sn == (last[lane] + 1) & J[f, MASK]:
                last[lane] = sn
            else:
                if lanes[lane] != LISTED:
                    turned[over] = -1 - lane if lanes[lane] == REGULAR else lane
                    over += 1
                    lanes[lane] = LISTED
                listed[found] = i
                found += 1
                if kind == FRAGMENT:
                    return found, over, present, i + 1
                continue
        elif kind == REQUEST:
            number = r[o + VALUES + g.REQUEST_ID]
            if not queries.ask(query_keys, query_states, query_sides, J[f, SIDE], number, most_queries):
                listed[found] = i
                found += 1
        elif kind == RESPONSE:
            if queries.reply(query_keys, query_states, J[f, PEER], r[o + VALUES + g.REQUEST_ID]):
                listed[found] = i
                found += 1
        elif kind == RESPONSE_FINAL:
            number = r[o + VALUES + g.REQUEST_ID]
            outcome = queries.finish(query_keys, query_states, query_sides, query_done, J[f, PEER], number)
            C[f, OUTCOMES + outcome] += 1
        C[f, _counter(kind, r[o + BODY])] += 1
        now = time[B[m, PACKET_OF]]
        if now > J[f, LAST_MESSAGE]:
            J[f, LAST_MESSAGE] = now
    return found, over, present, count


# --- columns -------------------------------------------------------------------------------------


@compiled
def turn(
    r: Any, count: int, head: Any, spans: Any, numbers: Any, to: int, tops: Any, has: Any, values: Any, lengths: Any
) -> None:
    """Rows as columns, from place ``to`` on: some places of their heads, and what is in some slots."""
    for i in range(count):
        o = i * STRIDE
        place = to + i
        for j in range(head.size):
            tops[j, place] = r[o + head[j]]
        present = r[o + PRESENT]
        for j in range(spans.size):
            slot = spans[j]
            if present >> slot & 1:
                has[slot, place] = True
                values[slot, place] = r[o + VALUES + slot]
                lengths[slot, place] = r[o + LENGTHS + slot]
        for j in range(numbers.size):
            slot = numbers[j]
            if present >> slot & 1:
                has[slot, place] = True
                values[slot, place] = r[o + VALUES + slot]


# --- texts ---------------------------------------------------------------------------------------

SMALL = 1 << 9  # places of a new table


@part
def _eight(b: Any, at: int) -> int:
    """Eight bytes as a number. The compiler makes one read of them, since the place is a number without sign."""
    p = np.uint64(at)
    number = 0
    for i in range(8):
        number |= (b[p + np.uint64(i)] + 0) << 8 * i
    return number


@part
def _mixed(b: Any, at: int, length: int, salt: int) -> int:
    """A number that depends on all bytes, on some of the last eight twice."""
    mixed = (salt + length) * 0x27D4EB2F165667C5
    end = at + length
    if length >= 8:
        while at + 8 < end:
            mixed = (mixed ^ _eight(b, at)) * 0x27D4EB2F165667C5
            mixed ^= mixed >> 29
            at += 8
        mixed = (mixed ^ _eight(b, end - 8)) * 0x27D4EB2F165667C5
        mixed ^= mixed >> 29
    else:
        while at < end:
            mixed = (mixed ^ b[at]) * 0x100000001B3
            at += 1
    mixed = (mixed ^ mixed >> 32) * 0x27D4EB2F165667C5  # the last byte of many is in the highest bits
    return mixed ^ mixed >> 32


@compiled
def intern(
    data: Any, spill: Any, spilled: Any, at: Any, length: Any, salt: Any, table: Any, hashes: Any, codes: Any,
    firsts: Any,
) -> int:  # fmt: skip
    """Number the different texts of some rows; returns how many there are.

    Rows whose ``salt`` differs have different numbers, those with salt below 0 have none (-1). ``firsts`` is
    the first row of each number, and ``hashes`` of its text. The table grows with what is in it: mostly that
    is little, and then it stays where the processor reaches it at once.
    """
    mask = SMALL - 1
    table[:SMALL] = -1
    known = 0
    for i in range(at.size):
        if salt[i] < 0:
            codes[i] = -1
            continue
        b = spill if spilled[i] else data
        mixed = _mixed(b, at[i], length[i], salt[i])
        place = mixed & mask
        code = table[place]
        while code >= 0:
            if hashes[code] == mixed:
                j = firsts[code]
                if salt[j] == salt[i] and length[j] == length[i]:
                    if _same(spill if spilled[j] else data, at[j], b, at[i], length[i]):
                        break
            place = (place + 1) & mask
            code = table[place]
        if code < 0:
            code = known
            known += 1
            hashes[code], firsts[code], table[place] = mixed, i, code
            if 2 * known > mask:
                mask = 2 * mask + 1
                _fill(table, hashes, known, mask)
        codes[i] = code
    return known


@part
def _fill(table: Any, hashes: Any, known: int, mask: int) -> None:
    """Make the table of ``intern`` anew, with more places."""
    table[: mask + 1] = -1
    for code in range(known):
        place = hashes[code] & mask
        while table[place] >= 0:
            place = (place + 1) & mask
        table[place] = code


@part
def _same(a: Any, p: int, b: Any, q: int, length: int) -> bool:
    if length < 8:
        for i in range(length):
            if a[p + i] != b[q + i]:
                return False
        return True
    last = length - 8
    for i in range(0, last, 8):
        if _eight(a, p + i) != _eight(b, q + i):
            return False
    return _eight(a, p + last) == _eight(b, q + last)


@compiled
def gather(data: Any, spill: Any, spilled: Any, at: Any, offsets: Any, out: Any) -> None:
    """Put spans one after the other."""
    for i in range(at.size):
        if offsets[i + 1] > offsets[i]:
            copy(spill if spilled[i] else data, at[i], out, offsets[i], offsets[i + 1] - offsets[i])


@compiled
def append(
    names: Any, starts: Any, number: Any, data: Any, spill: Any, spilled: Any, at: Any, offsets: Any, out: Any
) -> None:
    """Put names (``number``, from ``starts[number]`` on) and the spans behind them one after the other."""
    for i in range(at.size):
        first = starts[number[i]]
        size = starts[number[i] + 1] - first
        copy(names, first, out, offsets[i], size)
        rest = offsets[i + 1] - offsets[i] - size
        copy(spill if spilled[i] else data, at[i], out, offsets[i] + size, rest)
