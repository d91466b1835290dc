"""Bytes that wait to be read, and where they came from."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from scapy_zenoh.rows import Origin

End = tuple[str, int]


def end_text(end: End) -> str:
    """An address and port as they stand in the name of a link."""
    return f"[{end[0]}]:{end[1]}" if ":" in end[0] else f"{end[0]}:{end[1]}"


@dataclass(frozen=True, slots=True)
class Where:
    """The packet that brought some bytes; ``order`` grows from packet to packet of a connection, over all files."""

    order: int
    capture: str
    frame: int
    time: int


@dataclass
class Ends:
    """Addresses of a link; direction 0 is from ``low``."""

    low: End
    high: End

    def origin(self, direction: int, where: Where, proto: str) -> Origin:
        """The origin of messages in a direction."""
        (src, sport), (dst, dport) = (self.low, self.high) if direction == 0 else (self.high, self.low)
        return Origin(where.capture, where.frame, where.time, src, sport, dst, dport, proto)

    def ports(self) -> set[int]:
        """The two ports."""
        return {self.low[1], self.high[1]}


class Tape:
    """The bytes of one direction that are not used yet, and which packets brought them."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.marks: deque[tuple[int, Where]] = deque()  # (end of the piece, counted from the start; its packet)
        self.start = 0

    def append(self, data: bytes, where: Where) -> None:
        """Add what a packet brought."""
        self.data += data
        self.marks.append((self.start + len(self.data), where))

    def where(self, size: int) -> Where:
        """The latest packet among those that brought the next ``size`` bytes."""
        latest: Where | None = None
        for end, where in self.marks:
            if latest is None or where.order >= latest.order:
                latest = where
            if end >= self.start + size:
                break
        assert latest is not None
        return latest

    def take(self, size: int) -> bytes:
        """Remove the next ``size`` bytes."""
        taken = bytes(self.data[:size])
        del self.data[:size]
        self.start += size
        while self.marks and self.marks[0][0] <= self.start:
            self.marks.popleft()
        return taken

    def pieces(self) -> list[tuple[int, Where]]:
        """Who brought the bytes that are not used yet: how many of them, and the packet."""
        found, start = [], self.start
        for end, where in self.marks:
            if end > start:
                found.append((end - start, where))
                start = end
        return found

    def restore(self, data: bytes, pieces: list[tuple[int, Where]]) -> None:
        """Add bytes that ``pieces`` brought."""
        at = 0
        for size, where in pieces:
            self.append(data[at : at + size], where)
            at += size
