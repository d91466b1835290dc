"""IP datagrams in fragments, put together as their fragments come."""

from __future__ import annotations

LIFETIME = 30 * 10**9  # ns; what Linux waits for the rest of a datagram
MAX_DATAGRAMS = 1024  # unfinished ones at the same time
MAX_BYTES = 1 << 24  # in all unfinished datagrams together


class _Datagram:
    """An IP datagram of which some fragments have come, with the holes that are left (RFC 815)."""

    __slots__ = ("cut", "data", "fragments", "holes", "protocol", "size", "time", "total")

    def __init__(self, time: int) -> None:
        self.time = time
        self.data = bytearray()
        self.holes = [(0, 1 << 16)]
        self.total: int | None = None  # known from the last fragment
        self.cut = 1 << 16  # first byte that a snap length cut off
        self.protocol = -1  # known from the first fragment
        self.fragments = 0
        self.size = 0

    def add(self, start: int, data: bytes, end: int) -> None:
        """Put ``data`` at ``start``, of a fragment that reached to ``end``. Bytes that came earlier win."""
        have = start + len(data)
        holes = []
        for low, high in self.holes:
            first, last = max(low, start), min(high, end)
            if first >= last:
                holes.append((low, high))
                continue
            if low < first:
                holes.append((low, first))
            if last < high:
                holes.append((last, high))
            if len(self.data) < last:
                self.data.extend(bytes(last - len(self.data)))
            until = min(last, have)
            if first < until:
                self.data[first:until] = data[first - start : until - start]
            if until < last:
                self.cut = min(self.cut, max(first, until))
        self.holes = holes

    def whole(self) -> tuple[bytes, int, int] | None:
        """Captured bytes, length on the wire and protocol, once no hole is left before the end."""
        if self.total is None or (self.holes and self.holes[0][0] < self.total):
            return None
        return bytes(self.data[: min(self.total, self.cut)]), self.total, self.protocol


class Fragments:
    """IP fragments that wait for the rest of their datagram: the oldest go when there are too many."""

    def __init__(self) -> None:
        self.lost = 0
        self.waiting = 0
        self._size = 0
        self._table: dict[tuple[bytes | int, ...], _Datagram] = {}

    def add(
        self,
        key: tuple[bytes | int, ...],
        start: int,
        more: bool,
        data: bytes,
        length: int,
        protocol: int,
        time: int,
    ) -> tuple[bytes, int, int] | None:
        """Take one fragment; the datagram (captured bytes, length on the wire, protocol) if that completed it."""
        end = start + length
        if length <= 0 or end > 1 << 16 or (more and length % 8):
            self.lost += 1
            return None
        datagram = self._table.get(key)
        if datagram is not None and abs(time - datagram.time) > LIFETIME:
            self._drop(key)
            datagram = None
        if datagram is None:
            datagram = self._table[key] = _Datagram(time)
        datagram.add(start, data, end)
        datagram.fragments += 1
        self.waiting += 1
        self._size += len(datagram.data) - datagram.size
        datagram.size = len(datagram.data)
        if start == 0 and datagram.protocol < 0:
            datagram.protocol = protocol
        if not more and datagram.total is None:
            datagram.total = end
        whole = datagram.whole()
        if whole is not None:
            self._drop(key)
            self.lost -= datagram.fragments
            return whole
        while len(self._table) > MAX_DATAGRAMS or self._size > MAX_BYTES:
            self._drop(next(iter(self._table)))
        return None

    def _drop(self, key: tuple[bytes | int, ...]) -> None:
        datagram = self._table.pop(key)
        self._size -= datagram.size
        self.waiting -= datagram.fragments
        self.lost += datagram.fragments
