"""Numbers under keys in arrays that compiled code reads and writes; Python makes them larger between its calls.

A key is an integer that is not negative; the place of one that is not there any more can be taken by another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part

FREE, GONE = -1, -2  # keys that are none

_FIRST = 1 << 10  # places in a new table


@part
def _home(keys: Any, key: int) -> int:
    """Where looking for a key begins."""
    place: int = ((key * 0x27D4EB2F165667C5) >> 24) & (keys.size - 1)
    return place


@part
def find(keys: Any, key: int) -> int:
    """Where a key is, or -1."""
    i = _home(keys, key)
    while keys[i] != key:
        if keys[i] == FREE:
            return -1
        i = (i + 1) & (keys.size - 1)
    return i


@part
def enter(keys: Any, key: int) -> int:
    """Where a key is now that was not there."""
    i = _home(keys, key)
    while keys[i] >= 0:
        i = (i + 1) & (keys.size - 1)
    keys[i] = key
    return i


@compiled
def enter_all(keys: Any, values: Any, to_keys: Any, to_values: Any) -> None:
    """Put keys and their values into an empty table."""
    for i in range(keys.size):
        to = enter(to_keys, keys[i])
        for j in range(values.shape[1]):
            to_values[to, j] = values[i, j]


class Table:
    """Keys and, for each, a row of values."""

    def __init__(self, columns: int) -> None:
        self.keys = np.full(_FIRST, FREE, np.int64)
        self.values = np.zeros((_FIRST, columns), np.int64)
        self._used = 0  # places that are not free, at most

    def alive(self) -> Any:
        """Which places are in use, for keys that still count."""
        return self.keys >= 0

    def reserve(self, count: int) -> None:
        """Make room for so many new keys."""
        if 10 * (self._used + count) > 7 * len(self.keys):  # mostly fewer came than there was room for
            self._used = int(np.count_nonzero(self.keys != FREE))
        if 10 * (self._used + count) > 7 * len(self.keys):
            kept = np.flatnonzero(self.alive())
            size = len(self.keys)
            while 10 * (len(kept) + count) > 5 * size:
                size *= 2
            keys, values = self.keys[kept], self.values[kept]
            self.keys, self.values = np.full(size, FREE, np.int64), np.zeros((size, values.shape[1]), np.int64)
            enter_all(keys, values, self.keys, self.values)
            self._used = len(kept)
        self._used += count
