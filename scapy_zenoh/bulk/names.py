"""Names by number, as bytes one after the other, which compiled code reads and adds to."""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part
from scapy_zenoh.bulk.engine import copy
from scapy_zenoh.primitives import text_from_wire, text_to_wire

MOST = 1 << 26  # bytes from which names that nobody needs any more are looked for


@part
def longer(text: Any, starts: Any, known: Any, number: int, b: Any, at: int, length: int) -> int:
    """The number of a name with more bytes behind it; -1 when there is no room for it."""
    if length == 0:
        return number
    new: int = known[0]
    to = starts[new]
    size = starts[number + 1] - starts[number]
    if new + 2 > starts.size or to + size + length > text.size:
        return -1
    copy(text, starts[number], text, to, size)
    copy(b, at, text, to + size, length)
    starts[new + 1] = to + size + length
    known[0] += 1
    return new


@compiled
def copy_all(text: Any, starts: Any, numbers: Any, to_text: Any, to_starts: Any) -> None:
    """Put some names one after the other."""
    for i in range(numbers.size):
        first = starts[numbers[i]]
        size = starts[numbers[i] + 1] - first
        copy(text, first, to_text, to_starts[i], size)
        to_starts[i + 1] = to_starts[i] + size


class Names:
    """Names by number: 0 is the empty one. A name may have several numbers, which looking for it would save."""

    def __init__(self) -> None:
        self.bytes = np.empty(1 << 12, np.uint8)
        self.starts = np.zeros(1 << 8, np.int64)
        self.known = np.ones(1, np.int64)
        self._most = MOST

    def grow(self) -> None:
        """Make room for more."""
        self.bytes, self.starts = (np.concatenate([a, np.zeros_like(a)]) for a in (self.bytes, self.starts))

    def number(self, name: str) -> int:
        """A number for a name."""
        data = text_to_wire(name)
        number = int(self.known[0])
        start = int(self.starts[number])
        end = start + len(data)
        while number + 2 > len(self.starts) or end > len(self.bytes):
            self.grow()
        self.bytes[start:end] = np.frombuffer(data, np.uint8)
        self.starts[number + 1] = end
        self.known[0] += 1
        return number

    def text(self, number: int) -> str | None:
        """The name that has a number; none has -1."""
        if number < 0:
            return None
        return text_from_wire(self.bytes[self.starts[number] : self.starts[number + 1]].tobytes())

    @property
    def is_full(self) -> bool:
        """Whether it is time to call ``keep``."""
        return self._size() > self._most

    def keep(self, numbers: Any) -> Any:
        """Forget all but some names, which get new numbers: those of ``numbers`` in their order."""
        kept, new = np.unique(np.append(numbers, 0), return_inverse=True)
        text, starts = self.bytes, self.starts
        sizes = starts[kept + 1] - starts[kept]
        self.bytes = np.empty(max(1 << 12, 2 * int(sizes.sum())), np.uint8)
        self.starts = np.zeros(max(1 << 8, 2 * len(kept)), np.int64)
        copy_all(text, starts, kept, self.bytes, self.starts)
        self.known[0] = len(kept)
        self._most = max(MOST, 2 * self._size())
        return new[:-1]

    def _size(self) -> int:
        return int(self.starts[self.known[0]]) + self.starts.itemsize * int(self.known[0])
