"""Sequence numbers: what is missing in a lane, without false alarms.

A lane is one direction of a session at one priority and reliability; FRAMEs and FRAGMENTs share its
counter. After the last fragment of a message nodes leave one number out. On links that do not keep
order, and in sessions over several links, a number may still come later; it is missing only when the
lane has moved on by more than a window.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WINDOW = 64  # how far a late number may lag behind


@dataclass(slots=True)
class Lane:
    """The numbers of one lane, modulo the negotiated resolution."""

    mask: int
    last: int | None = None  # the newest number seen, or the one before the first expected
    jump: int | None = None  # a number far ahead, believed only if the next one goes on from it
    awaited: set[int] = field(default_factory=set)  # skipped, may still come
    ends: set[int] = field(default_factory=set)  # numbers of last fragments: the next one is not used
    missing: int = 0
    repeated: int = 0

    @property
    def window(self) -> int:
        """No more than a quarter of the numbers, so that old and new can be told apart."""
        return min(WINDOW, (self.mask + 1) // 4)

    def is_regular(self) -> bool:
        """True when nothing is awaited and the next number is all that matters."""
        return self.last is not None and self.jump is None and not self.awaited and self.mask >= 256

    def expect(self, first: int) -> None:
        """The next number is ``first``."""
        self.last = (first - 1) & self.mask

    def see(self, sn: int, ends_fragments: bool = False) -> None:
        """A FRAME or FRAGMENT with this number has come."""
        if sn > self.mask:
            return
        if ends_fragments:
            self.ends.add(sn)
        if self.last is None:
            self.last = sn
            return
        ahead = (sn - self.last) & self.mask
        if ahead == 0:
            self.repeated += 1
        elif ahead <= self.mask >> 1:
            self._advance(sn, ahead)
        elif sn in self.awaited:
            self.awaited.discard(sn)  # late, but here
        elif (self.last - sn) & self.mask <= self.window:
            self.repeated += 1
        else:
            self._far(sn)

    def _advance(self, sn: int, ahead: int) -> None:
        if ahead > self.window:
            self._far(sn)
            return
        self.jump = None
        last = self.last or 0
        for step in range(1, ahead):
            skipped = (last + step) & self.mask
            if (skipped - 1) & self.mask not in self.ends:
                self.awaited.add(skipped)
        self.last = sn
        self._give_up(self.window)

    def _far(self, sn: int) -> None:
        """A number that does not fit: damage, or many missing. The next one decides."""
        if self.jump is not None and (sn - self.jump) & self.mask in (1, 2):
            if self.last is not None:
                self.missing += ((self.jump - self.last) & self.mask) - 1
            self.last, self.jump = sn, None
        else:
            self.jump = sn

    def _give_up(self, lag: int) -> None:
        """Count what is too far behind as missing, and forget old ends."""
        if self.awaited:
            late = {n for n in self.awaited if (self.last - n) & self.mask > lag}  # type: ignore[operator]
            self.missing += len({n for n in late if (n - 1) & self.mask not in self.ends})
            self.awaited -= late
        if len(self.ends) > 4 * WINDOW or self.mask < 256:
            self.ends = {n for n in self.ends if (self.last - n) & self.mask <= self.window}  # type: ignore[operator]

    def finish(self) -> int:
        """No more will come; the number of messages that are missing in all."""
        self.missing += len({n for n in self.awaited if (n - 1) & self.mask not in self.ends})
        self.awaited.clear()
        return self.missing
