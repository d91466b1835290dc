"""The queries of all sides in one table, for compiled code; what it remembers is that of ``session.queries``."""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.session.queries import Outcome, Queries
from scapy_zenoh.session.tracker import Limits

FREE, GONE = -1, -2  # keys that are none
OPEN, REPLIED, FINISHED = range(3)  # what is known of a query

# sides
KNOWN, UNFINISHED, HEAD, DONE, COLUMNS = range(5)

NOTHING, ANSWERED, EMPTY = range(3)
_OUTCOMES = (None, Outcome.ANSWERED, Outcome.EMPTY)


@part
def _place(keys: Any, key: int) -> int:
    """Where a query is, or -1."""
    mask = keys.size - 1
    i: int = ((key * 0x27D4EB2F165667C5) >> 24) & mask
    while keys[i] != key:
        if keys[i] == FREE:
            return -1
        i = (i + 1) & mask
    return i


@part
def ask(keys: Any, states: Any, sides: Any, side: int, number: int, limit: int) -> bool:
    """A request was sent; False when too many are open to remember it."""
    if sides[side, KNOWN] >= limit:
        return False
    key = side << 32 | number
    i = _place(keys, key)
    if i < 0:
        mask = keys.size - 1
        i = ((key * 0x27D4EB2F165667C5) >> 24) & mask
        while keys[i] >= 0:
            i = (i + 1) & mask
        keys[i] = key
        sides[side, KNOWN] += 1
        sides[side, UNFINISHED] += 1
    elif states[i] == FINISHED:
        sides[side, UNFINISHED] += 1
    states[i] = OPEN
    return True


@part
def reply(keys: Any, states: Any, side: int, number: int) -> bool:
    """A reply was sent; True when it comes after the end of the replies."""
    i = _place(keys, side << 32 | number)
    if i < 0:
        return False
    if states[i] == FINISHED:
        return True
    states[i] = REPLIED
    return False


@part
def finish(keys: Any, states: Any, sides: Any, done: Any, side: int, number: int) -> int:
    """No more replies will come; how the query ended."""
    i = _place(keys, side << 32 | number)
    if i < 0 or states[i] == FINISHED:
        return NOTHING
    outcome = ANSWERED if states[i] == REPLIED else EMPTY
    states[i] = FINISHED
    sides[side, UNFINISHED] -= 1
    kept = done.shape[1]
    at = (sides[side, HEAD] + sides[side, DONE]) % kept
    if sides[side, DONE] == kept:
        old = _place(keys, side << 32 | done[side, at])
        if old >= 0 and states[old] == FINISHED:
            keys[old] = GONE
            sides[side, KNOWN] -= 1
        sides[side, HEAD] = (sides[side, HEAD] + 1) % kept
    else:
        sides[side, DONE] += 1
    done[side, at] = number
    return outcome


@compiled
def ask_one(keys: Any, states: Any, sides: Any, side: int, number: int, limit: int) -> bool:
    """``ask``, from Python."""
    return ask(keys, states, sides, side, number, limit)


@compiled
def reply_one(keys: Any, states: Any, side: int, number: int) -> bool:
    """``reply``, from Python."""
    return reply(keys, states, side, number)


@compiled
def finish_one(keys: Any, states: Any, sides: Any, done: Any, side: int, number: int) -> int:
    """``finish``, from Python."""
    return finish(keys, states, sides, done, side, number)


@compiled
def move(keys: Any, states: Any, sides: Any, to_keys: Any, to_states: Any) -> None:
    """Move all queries to an empty table, but for those of sides that are over."""
    mask = to_keys.size - 1
    for i in range(keys.size):
        key = keys[i]
        if key >= 0 and sides[key >> 32, KNOWN] >= 0:
            j = ((key * 0x27D4EB2F165667C5) >> 24) & mask
            while to_keys[j] >= 0:
                j = (j + 1) & mask
            to_keys[j] = key
            to_states[j] = states[i]


class QueryTable:
    """All of them."""

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.requests
        self.keys = np.full(1 << 12, FREE, np.int64)
        self.states = np.zeros(1 << 12, np.int8)
        self.sides = np.zeros((1 << 6, COLUMNS), np.int64)
        self.done = np.zeros((1 << 6, limits.answered), np.int64)
        self._used = 0  # at most

    def reserve(self, count: int) -> None:
        """Make room for so many queries."""
        if 10 * (self._used + count) > 7 * len(self.keys):
            known = int(self.sides[:, KNOWN].clip(0).sum())
            size = len(self.keys)
            while 10 * (known + count) > 5 * size:
                size *= 2
            keys, states = np.full(size, FREE, np.int64), np.zeros(size, np.int8)
            move(self.keys, self.states, self.sides, keys, states)
            self.keys, self.states, self._used = keys, states, known
        self._used += count

    def adopt(self, side: int, queries: Queries) -> SideQueries:
        """Take over what a side remembers."""
        while side >= len(self.sides):
            self.sides, self.done = (np.concatenate([a, np.zeros_like(a)]) for a in (self.sides, self.done))
        own = SideQueries(self, side)
        for number in queries.done:  # oldest first
            own.ask(number)
            own.finish(number)
        for number, query in queries.known.items():
            if not query.finished:
                own.ask(number)
                if query.replied:
                    own.reply(number)
        return own


class SideQueries(Queries):
    """Those of one side, with the methods that the session knows."""

    __slots__ = ("side", "table")

    def __init__(self, table: QueryTable, side: int) -> None:
        super().__init__(table.limit, table.done.shape[1])
        self.table, self.side = table, side

    def ask(self, number: int) -> bool:
        table = self.table
        table.reserve(1)
        return ask_one(table.keys, table.states, table.sides, self.side, number, table.limit)

    def reply(self, number: int) -> bool:
        return reply_one(self.table.keys, self.table.states, self.side, number)

    def finish(self, number: int) -> Outcome | None:
        table = self.table
        return _OUTCOMES[finish_one(table.keys, table.states, table.sides, table.done, self.side, number)]

    def unfinished(self) -> int:
        return int(self.table.sides[self.side, UNFINISHED])

    def clear(self) -> None:
        self.table.sides[self.side] = (-1, 0, 0, 0)
