"""The queries of all sides in one table, for compiled code; what it remembers is that of ``session.queries``."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.bulk.hashing import GONE, Table, enter, find
from scapy_zenoh.session.queries import Outcome, Queries, Query
from scapy_zenoh.session.tracker import Limits, Side

OPEN, REPLIED, FINISHED = range(3)  # what is known of a query

# sides
KNOWN, UNFINISHED, HEAD, DONE, COLUMNS = range(5)

NOTHING, ANSWERED, EMPTY = range(3)
_OUTCOMES = (None, Outcome.ANSWERED, Outcome.EMPTY)


@part
def ask(keys: Any, states: Any, sides: Any, side: int, number: int, limit: int) -> bool:
    """A request was sent; False when too many are open to remember it."""
    if sides[side, KNOWN] >= limit:
        return False
    key = side << 32 | number
    i = find(keys, key)
    if i < 0:
        i = enter(keys, key)
        sides[side, KNOWN] += 1
        sides[side, UNFINISHED] += 1
    elif states[i, 0] == FINISHED:
        sides[side, UNFINISHED] += 1
    states[i, 0] = OPEN
    return True


@part
def reply(keys: Any, states: Any, side: int, number: int) -> bool:
    """A reply was sent; True when it comes after the end of the replies."""
    i = find(keys, side << 32 | number)
    if i < 0:
        return False
    if states[i, 0] == FINISHED:
        return True
    states[i, 0] = REPLIED
    return False


@part
def finish(keys: Any, states: Any, sides: Any, done: Any, side: int, number: int) -> int:
    """No more replies will come; how the query ended."""
    i = find(keys, side << 32 | number)
    if i < 0 or states[i, 0] == FINISHED:
        return NOTHING
    outcome = ANSWERED if states[i, 0] == REPLIED else EMPTY
    states[i, 0] = FINISHED
    sides[side, UNFINISHED] -= 1
    kept = done.shape[1]
    at = (sides[side, HEAD] + sides[side, DONE]) % kept
    if sides[side, DONE] == kept:
        old = find(keys, side << 32 | done[side, at])
        if old >= 0 and states[old, 0] == FINISHED:
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


class QueryTable(Table):
    """All of them."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(1)
        self.limit = limits.requests
        self.sides = np.zeros((1 << 6, COLUMNS), np.int64)
        self.done = np.zeros((1 << 6, limits.answered), np.int64)

    def alive(self) -> Any:
        return super().alive() & (self.sides[self.keys >> 32, KNOWN] >= 0)

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

    def give_back(self, sides: Sequence[Side]) -> None:
        """Give all sides what they remember."""
        for number, side in enumerate(sides):
            first = self.sides[number, HEAD]
            done = np.take(self.done[number], range(first, first + self.sides[number, DONE]), mode="wrap")
            side.queries = Queries(self.limit, self.done.shape[1], done=deque(done.tolist()))
        places = np.flatnonzero(self.alive())
        for key, state in zip(self.keys[places].tolist(), self.values[places, 0].tolist(), strict=True):
            sides[key >> 32].queries.known[key & 0xFFFFFFFF] = Query(state == REPLIED, state == FINISHED)


class SideQueries(Queries):
    """Those of one side, with the methods that the session knows."""

    __slots__ = ("side", "table")

    def __init__(self, table: QueryTable, side: int) -> None:
        super().__init__(table.limit, table.done.shape[1])
        self.table, self.side = table, side

    def ask(self, number: int) -> bool:
        table = self.table
        table.reserve(1)
        return ask_one(table.keys, table.values, table.sides, self.side, number, table.limit)

    def reply(self, number: int) -> bool:
        return reply_one(self.table.keys, self.table.values, self.side, number)

    def finish(self, number: int) -> Outcome | None:
        table = self.table
        return _OUTCOMES[finish_one(table.keys, table.values, table.sides, table.done, self.side, number)]

    def unfinished(self) -> int:
        return int(self.table.sides[self.side, UNFINISHED])

    def clear(self) -> None:
        self.table.sides[self.side] = (-1, 0, 0, 0)
