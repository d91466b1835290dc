"""Which key expression a number stands for, on all sides: one table for compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk import joining

#: A change: before which row it counts (-1: at once), side and number in one, the number of the name (-1: forgotten).
Change = tuple[int, int, int]

_FIRST = 1 << 10  # places in a new table


class Names:
    """Names by number, as bytes one after the other. 0 is the empty one."""

    def __init__(self) -> None:
        self.bytes = np.empty(1 << 12, np.uint8)
        self.starts = np.zeros(1 << 8, np.int64)
        self._numbers = {"": 0}

    @property
    def size(self) -> int:
        """How many bytes there are; a name counts for some more."""
        return int(self.starts[len(self._numbers)]) + 64 * len(self._numbers)

    def number(self, name: str) -> int:
        """The number of a name."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._numbers)
            data = np.frombuffer(name.encode("utf-8", "replace"), np.uint8)
            if number + 2 > len(self.starts):
                self.starts = np.concatenate([self.starts, np.zeros_like(self.starts)])
            start = self.starts[number]
            end = self.starts[number + 1] = start + len(data)
            while end > len(self.bytes):
                self.bytes = np.concatenate([self.bytes, np.empty_like(self.bytes)])
            self.bytes[start:end] = data
        return number


class NameTable:
    """The names of all sides."""

    def __init__(self) -> None:
        self.names = Names()
        self.keys = np.full(_FIRST, -1, np.int64)
        self.values = np.zeros(_FIRST, np.int64)
        self._used = 0  # at most

    def change(self, row: int, side: int, number: int, name: str | None) -> Change:
        """A side has given a number a name, or taken it back."""
        return row, side << 16 | number, -1 if name is None else self.names.number(name)

    def apply(self, changes: list[Change]) -> None:
        """Take changes at once."""
        if changes:
            joining.assign_names(self.keys, self.values, self.table(changes))

    def table(self, changes: list[Change]) -> Any:
        """Changes for compiled code, which will find room for them."""
        self._reserve(len(changes))
        return np.array(changes, np.int64).reshape(-1, 3)

    def _reserve(self, count: int) -> None:
        """Make the table large enough; names that were forgotten go."""
        if 10 * (self._used + count) > 7 * len(self.keys):
            kept = np.flatnonzero((self.keys >= 0) & (self.values >= 0))
            size = len(self.keys)
            while 10 * (len(kept) + count) > 5 * size:
                size *= 2
            old = np.stack([np.zeros(len(kept), np.int64), self.keys[kept], self.values[kept]], axis=1)
            self.keys, self.values = np.full(size, -1, np.int64), np.zeros(size, np.int64)
            joining.assign_names(self.keys, self.values, old)
            self._used = len(kept)
        self._used += count
