"""What the session knows of many messages at once, compiled.

``survey`` counts messages and follows sequence numbers where they go up by one; what else may change the
session it lists, for ``session`` to decide. ``resolve`` gives each message the name its number stands for,
with the changes of names put between the messages where they happened. ``intern`` numbers equal texts.
"""

from __future__ import annotations

from typing import Any

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
        elif kind == DECLARE:
            listed[found] = i
            found += 1
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


# --- names ---------------------------------------------------------------------------------------


@part
def _place(keys: Any, key: int) -> int:
    """Where a key is in a table, or belongs."""
    mask = keys.size - 1
    i: int = ((key * 0x27D4EB2F165667C5) >> 24) & mask
    while keys[i] >= 0 and keys[i] != key:
        i = (i + 1) & mask
    return i


@compiled
def assign_names(keys: Any, values: Any, changes: Any) -> None:
    """Take changes (row, side and number, name) into the table of names."""
    for j in range(changes.shape[0]):
        i = _place(keys, changes[j, 1])
        keys[i] = changes[j, 1]
        values[i] = changes[j, 2]


@compiled
def resolve(r: Any, B: Any, J: Any, keys: Any, values: Any, changes: Any, count: int, names: Any, to: int) -> None:
    """Number of the name that the scope of each row stands for, from ``names[to]`` on.

    0 is that of none, -1 says that nobody knows or asks.
    """
    j = 0
    last = changes.shape[0]
    for i in range(count):
        while j < last and changes[j, 0] < i:
            at = _place(keys, changes[j, 1])
            keys[at] = changes[j, 1]
            values[at] = changes[j, 2]
            j += 1
        o = i * STRIDE
        names[to + i] = -1
        if r[o + PRESENT] >> g.SCOPE & 1 == 0:
            continue
        scope = r[o + VALUES + g.SCOPE]
        if scope == 0:
            names[to + i] = 0
            continue
        f = B[r[o + BATCH], FLOW_OF]
        sender = r[o + VALUES + g.MAPPING] == 1
        if sender or J[f, MULTICAST] == 0:
            side = J[f, SIDE] if sender else J[f, PEER]
            at = _place(keys, side << 16 | scope)
            if keys[at] >= 0:
                names[to + i] = values[at]
    while j < last:
        at = _place(keys, changes[j, 1])
        keys[at] = changes[j, 1]
        values[at] = changes[j, 2]
        j += 1


# --- columns -------------------------------------------------------------------------------------


@compiled
def turn(r: Any, count: int, head: Any, slots: Any, to: int, tops: Any, has: Any, values: Any, lengths: Any) -> None:
    """Rows as columns, from place ``to`` on: some places of their heads, and what is in some slots."""
    spans = lengths.shape[0]
    for i in range(count):
        o = i * STRIDE
        for j in range(head.size):
            tops[j, to + i] = r[o + head[j]]
        present = r[o + PRESENT]
        for j in range(slots.size):
            slot = slots[j]
            if present >> slot & 1:
                has[slot, to + i] = True
                values[slot, to + i] = r[o + VALUES + slot]
                if slot < spans:
                    lengths[slot, to + i] = r[o + LENGTHS + slot]


# --- texts ---------------------------------------------------------------------------------------


@part
def _mixed(b: Any, at: int, length: int, salt: int) -> int:
    """A number that depends on all bytes, eight at a time: the compiler makes one read of them."""
    mixed = (salt + length) * 0x27D4EB2F165667C5
    end = at + length
    while at + 8 <= end:
        low = b[at] + 0 | (b[at + 1] + 0) << 8 | (b[at + 2] + 0) << 16 | (b[at + 3] + 0) << 24
        high = b[at + 4] + 0 | (b[at + 5] + 0) << 8 | (b[at + 6] + 0) << 16 | (b[at + 7] + 0) << 24
        mixed = (mixed ^ (low | high << 32)) * 0x27D4EB2F165667C5
        mixed ^= mixed >> 29
        at += 8
    while at < end:
        mixed = (mixed ^ b[at]) * 0x100000001B3
        at += 1
    return mixed ^ mixed >> 32


@compiled
def intern(
    data: Any, spill: Any, spilled: Any, at: Any, length: Any, salt: Any, table: Any, codes: Any, firsts: Any
) -> int:
    """Number the different texts of some rows; returns how many there are.

    Rows whose ``salt`` differs have different numbers, those with salt below 0 have none (-1). ``firsts`` is
    the first row of each number.
    """
    count = at.size
    mask = 1
    while mask < 2 * count:
        mask *= 2
    table[:mask] = -1
    mask -= 1
    known = 0
    for i in range(count):
        if salt[i] < 0:
            codes[i] = -1
            continue
        b = spill if spilled[i] else data
        place = _mixed(b, at[i], length[i], salt[i]) & mask
        while True:
            code = table[place]
            if code < 0:
                table[place] = known
                firsts[known] = i
                codes[i] = known
                known += 1
                break
            j = firsts[code]
            if salt[j] == salt[i] and length[j] == length[i]:
                if _same(spill if spilled[j] else data, at[j], b, at[i], length[i]):
                    codes[i] = code
                    break
            place = (place + 1) & mask
    return known


@part
def _same(a: Any, p: int, b: Any, q: int, length: int) -> bool:
    for i in range(length):
        if a[p + i] != b[q + i]:
            return False
    return True


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
