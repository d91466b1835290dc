"""What all sides have declared, in one table for compiled code: numbers for keys, subscribers, queryables, tokens.

``resolve`` gives each row the name that its number stands for, or the key of what it withdraws. What it remembers is
that of ``session.keyspace`` and ``session.entities``; both ask here as long as blocks come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.bulk.engine import FLOW_OF, SPILLED_OF
from scapy_zenoh.bulk.hashing import GONE, Table, enter, find
from scapy_zenoh.bulk.joining import DECLARE, MULTICAST, PEER, SIDE
from scapy_zenoh.bulk.names import Names, longer
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.runtime import BATCH, BODY, KIND, LENGTHS, PRESENT, STRIDE, VALUES
from scapy_zenoh.enums import Mapping
from scapy_zenoh.session.entities import Entities
from scapy_zenoh.session.keyspace import KeyTable
from scapy_zenoh.session.tracker import Limits, Side

KEYEXPR = 0  # the others are entities
WHATS = ("keyexpr", "subscriber", "queryable", "token")

# what is known of a declaration: number of its name or -1, and when it was made
NAME, SINCE, COLUMNS = range(3)

# sides: how many keys and entities they have declared, and when the latter were forgotten
KEYS, ENTITIES, CLEARED, SIDE_COLUMNS = range(4)

# for all: how many declarations were made, and how many of both sorts a side may have
CLOCK, MOST, STATE = 0, 1, 3

_SENDER = int(Mapping.SENDER)


def _meaning(body: str) -> int:
    happens, _, what = body.partition("_")
    return 2 * WHATS.index(what) + (happens == "undeclare") if what in WHATS else -1


#: Body -> twice the number of what it is about, 1 more for a withdrawal; -1 when it declares nothing.
_MEANINGS = np.array([_meaning(body) for body in g.BODIES])


@part
def _sort(what: int) -> int:
    return KEYS if what == KEYEXPR else ENTITIES


@part
def look_up(keys: Any, values: Any, sides: Any, side: int, what: int, number: int) -> int:
    """The place of what a side has declared, or -1."""
    i = find(keys, side << 34 | what << 32 | number)
    if i >= 0 and what != KEYEXPR and values[i, SINCE] <= sides[side, CLEARED]:
        keys[i] = GONE
        return -1
    return i


@part
def declare(keys: Any, values: Any, sides: Any, state: Any, side: int, what: int, number: int, name: int) -> bool:
    """Something is declared, or declared anew; False when there are too many to remember it."""
    i = look_up(keys, values, sides, side, what, number)
    if i < 0:
        sort = _sort(what)
        if sides[side, sort] >= state[MOST + sort]:
            return False
        i = enter(keys, side << 34 | what << 32 | number)
        sides[side, sort] += 1
        state[CLOCK] += 1
        values[i, SINCE] = state[CLOCK]
    values[i, NAME] = name
    return True


@part
def withdraw(keys: Any, values: Any, sides: Any, side: int, what: int, number: int) -> int:
    """Something is taken back; the number of its name, or -1."""
    i = look_up(keys, values, sides, side, what, number)
    if i < 0:
        return -1
    keys[i] = GONE
    sides[side, _sort(what)] -= 1
    name: int = values[i, NAME]
    return name


@part
def _name(keys: Any, values: Any, sides: Any, side: int, scope: int) -> int:
    """The number of the name that a scope of a side stands for, or -1."""
    i = look_up(keys, values, sides, side, KEYEXPR, scope)
    if i < 0:
        return -1
    name: int = values[i, NAME]
    return name


@part
def _prefix(r: Any, o: int, J: Any, f: int, keys: Any, values: Any, sides: Any, meaning: int) -> int:
    """The number of the name that the scope of a row stands for: 0 is that of none, -1 says that nobody knows."""
    scope = r[o + VALUES + g.SCOPE]
    if scope == 0:
        return 0
    alone = J[f, MULTICAST] != 0
    if meaning == 2 * KEYEXPR:  # it does not say whose scope that is: the receiver's, else the sender's
        name = -1 if alone else _name(keys, values, sides, J[f, PEER], scope)
        return name if name >= 0 else _name(keys, values, sides, J[f, SIDE], scope)
    if r[o + VALUES + g.MAPPING] == _SENDER:
        return _name(keys, values, sides, J[f, SIDE], scope)
    return -1 if alone else _name(keys, values, sides, J[f, PEER], scope)


@compiled
def resolve(
    r: Any,
    B: Any,
    J: Any,
    data: Any,
    spill: Any,
    keys: Any,
    values: Any,
    sides: Any,
    state: Any,
    text: Any,
    starts: Any,
    known: Any,
    begin: int,
    end: int,
    names: Any,
    to: int,
    listed: Any,
    found: int,
) -> tuple[int, int]:
    """Number of the name that stands before the suffix of each row, -1 for no key, from ``names[to]`` on.

    Declarations that are too many are listed besides the ``found`` rows that are. Returns how many rows are listed
    then, and how far it came: before a declaration for which the names have no room.
    """
    for i in range(begin, end):
        o = i * STRIDE
        f = B[r[o + BATCH], FLOW_OF]
        meaning = _MEANINGS[r[o + BODY]] if r[o + KIND] == DECLARE else -1
        name = -1
        if r[o + PRESENT] >> g.SCOPE & 1:
            name = _prefix(r, o, J, f, keys, values, sides, meaning)
        if meaning >= 0:
            what = meaning >> 1
            number = r[o + VALUES + g.ENTITY_ID]
            length = r[o + LENGTHS + g.SUFFIX] if r[o + PRESENT] >> g.SUFFIX & 1 else 0
            if meaning & 1:
                of_id = withdraw(keys, values, sides, J[f, SIDE], what, number)
                # An extension without scope and suffix says nothing.
                if r[o + PRESENT] >> g.SCOPE & 1 == 0 or r[o + VALUES + g.SCOPE] == 0 and length == 0:
                    name = of_id
            elif name >= 0 or what != KEYEXPR:
                whole = -1
                if name >= 0:
                    b = spill if B[r[o + BATCH], SPILLED_OF] else data
                    whole = longer(text, starts, known, name, b, r[o + VALUES + g.SUFFIX], length)
                    if whole < 0:
                        return found, i
                if not declare(keys, values, sides, state, J[f, SIDE], what, number, whole):
                    listed[found] = i
                    found += 1
        names[to + i] = name
    return found, end


@compiled
def look_up_one(keys: Any, values: Any, sides: Any, side: int, what: int, number: int) -> int:
    """``look_up``, from Python."""
    return look_up(keys, values, sides, side, what, number)


@compiled
def declare_one(keys: Any, values: Any, sides: Any, state: Any, side: int, what: int, number: int, name: int) -> bool:
    """``declare``, from Python."""
    return declare(keys, values, sides, state, side, what, number, name)


@compiled
def withdraw_one(keys: Any, values: Any, sides: Any, side: int, what: int, number: int) -> int:
    """``withdraw``, from Python."""
    return withdraw(keys, values, sides, side, what, number)


class DeclarationTable(Table):
    """All of them, with their names."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(COLUMNS)
        self.limits, self.names = limits, Names()
        self.sides = np.zeros((1 << 6, SIDE_COLUMNS), np.int64)
        self.state = np.array([0, limits.keys, limits.entities])

    def resolve(
        self, r: Any, batches: Any, joined: Any, data: Any, spill: Any, begin: int, end: int, names: Any, to: int,
        listed: Any, found: int,
    ) -> int:  # fmt: skip
        """Take rows from ``begin`` to ``end`` as the compiled function does; returns how many are listed."""
        self.reserve(end - begin)
        while True:
            found, begin = resolve(
                r, batches, joined, data, spill, self.keys, self.values, self.sides, self.state, self.names.bytes,
                self.names.starts, self.names.known, begin, end, names, to, listed, found,
            )  # fmt: skip
            if begin == end:
                return found
            self.names.grow()

    def forget_names(self) -> None:
        """Begin anew with the numbers of names when there are too many; those that are still declared get new ones."""
        if self.names.is_full:
            named = np.flatnonzero(self.alive() & (self.values[:, NAME] >= 0))
            self.values[named, NAME] = self.names.keep(self.values[named, NAME])

    def declare(self, side: int, what: str, number: int, key: str | None) -> bool:
        """Something is declared, or declared anew; False when there are too many to remember it."""
        self.reserve(1)
        name = -1 if key is None else self.names.number(key)
        return declare_one(self.keys, self.values, self.sides, self.state, side, WHATS.index(what), number, name)

    def withdraw(self, side: int, what: str, number: int) -> str | None:
        """Something is taken back; returns its key."""
        return self.names.text(withdraw_one(self.keys, self.values, self.sides, side, WHATS.index(what), number))

    def name(self, side: int, scope: int) -> str | None:
        """What the number of a key stands for."""
        i = look_up_one(self.keys, self.values, self.sides, side, KEYEXPR, scope)
        return None if i < 0 else self.names.text(int(self.values[i, NAME]))

    def alive(self) -> Any:
        entities = self.keys >> 32 & 3 != KEYEXPR
        forgotten = entities & (self.values[:, SINCE] <= self.sides[self.keys >> 34, CLEARED])
        return super().alive() & ~forgotten

    def of(self, side: int | None = None) -> Iterator[tuple[int, str, int, str | None]]:
        """What a side or all have declared, the oldest first: side, what it is, number, key."""
        alive = self.alive() if side is None else self.alive() & (self.keys >> 34 == side)
        places = np.flatnonzero(alive)
        places = places[np.argsort(self.values[places, SINCE])]
        for key, name in zip(self.keys[places].tolist(), self.values[places, NAME].tolist(), strict=True):
            yield key >> 34, WHATS[key >> 32 & 3], key & 0xFFFFFFFF, self.names.text(name)

    def adopt(self, number: int, side: Side) -> None:
        """Take over what a side remembers."""
        while number >= len(self.sides):
            self.sides = np.concatenate([self.sides, np.zeros_like(self.sides)])
        for scope, name in side.keys.names().items():
            self.declare(number, "keyexpr", scope, name)
        for (what, of), key in side.entities.known.items():
            self.declare(number, what, of, key)
        side.keys = SideKeys(self, number, side.keys.full)
        side.entities = SideEntities(self, number)

    def give_back(self, sides: Sequence[Side]) -> None:
        """Give all sides what they remember."""
        for side in sides:
            side.keys = KeyTable(self.limits.keys, full=side.keys.full)
            side.entities = Entities(self.limits.entities)
        for number, what, of, key in self.of():
            if what != "keyexpr":
                sides[number].entities.known[what, of] = key
            elif key is not None:
                sides[number].keys.known[of] = key


class SideKeys(KeyTable):
    """The keys of one side, with the methods that the session knows."""

    __slots__ = ("side", "table")

    def __init__(self, table: DeclarationTable, side: int, full: bool) -> None:
        super().__init__(table.limits.keys, full=full)
        self.table, self.side = table, side

    def declare(self, number: int, name: str) -> None:
        if not self.table.declare(self.side, "keyexpr", number, name):
            self.full = True

    def undeclare(self, number: int) -> str | None:
        return self.table.withdraw(self.side, "keyexpr", number)

    def resolve(self, scope: int | None, suffix: str | None) -> str | None:
        prefix = self.table.name(self.side, scope) if scope else ""
        return None if prefix is None else prefix + (suffix or "")

    def names(self) -> dict[int, str]:
        return {
            number: key for _, what, number, key in self.table.of(self.side) if what == "keyexpr" and key is not None
        }


class SideEntities(Entities):
    """The entities of one side, with the methods that the session knows."""

    __slots__ = ("side", "table")

    def __init__(self, table: DeclarationTable, side: int) -> None:
        super().__init__(table.limits.entities)
        self.table, self.side = table, side

    def declare(self, what: str, number: int, key: str | None) -> bool:
        return self.table.declare(self.side, what, number, key)

    def withdraw(self, what: str, number: int) -> str | None:
        return self.table.withdraw(self.side, what, number)

    def clear(self) -> None:
        self.table.sides[self.side, [ENTITIES, CLEARED]] = 0, self.table.state[CLOCK]
