"""Putting fragmented messages together, one lane at a time.

Fragments of a message have consecutive numbers. They may come out of order (UDP, several links), and
any of them may be missing: a run that cannot be completed is given up when newer ones push it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_RUNS = 4  # unfinished messages of one lane: more than one only when order is not kept
MAX_WAITING = 256  # fragments before whose turn others must come


@dataclass(slots=True)
class Run:
    """The beginning of a message."""

    slices: list[bytes] = field(default_factory=list)
    size: int = 0


@dataclass(slots=True)
class Assembler:
    """The unfinished messages of one lane."""

    mask: int
    limit: int  # bytes
    marked: bool = False  # the sender marks first fragments
    runs: dict[int, Run] = field(default_factory=dict)  # by the number that comes next
    waiting: dict[int, tuple[bytes, bool]] = field(default_factory=dict)
    given_up: int = 0
    over_limit: int = 0

    def add(self, sn: int, data: bytes, more: bool, first: bool, drop: bool) -> tuple[bytes, int] | None:
        """A fragment has come; returns the message and the number of its fragments if it is complete."""
        if drop:
            if self.runs.pop(sn, None) is not None:
                self.given_up += 1
            return None
        if first:
            self.marked = True
            run = Run()
        elif sn in self.runs:
            run = self.runs.pop(sn)
        elif not self.marked and not self.runs and not self.waiting:
            run = Run()  # releases before 1.0.4 do not mark the first
        else:
            self._wait(sn, data, more)
            return None
        return self._extend(run, sn, data, more)

    def _extend(self, run: Run, sn: int, data: bytes, more: bool) -> tuple[bytes, int] | None:
        while True:
            run.slices.append(data)
            run.size += len(data)
            if not more:
                return b"".join(run.slices), len(run.slices)
            if run.size > self.limit:
                self.over_limit += 1
                return None
            sn = (sn + 1) & self.mask
            if sn not in self.waiting:
                break
            data, more = self.waiting.pop(sn)
        while len(self.runs) >= MAX_RUNS:
            del self.runs[next(iter(self.runs))]
            self.given_up += 1
        self.runs[sn] = run
        return None

    def _wait(self, sn: int, data: bytes, more: bool) -> None:
        while len(self.waiting) >= MAX_WAITING:
            del self.waiting[next(iter(self.waiting))]
        self.waiting[sn] = (data, more)

    def frame(self, ordered: bool) -> None:
        """A FRAME of the same lane: where order is kept, what is unfinished will not be finished."""
        if ordered and (self.runs or self.waiting):
            self.given_up += len(self.runs)
            self.runs.clear()
            self.waiting.clear()

    def finish(self) -> int:
        """No more will come; the number of messages that were not completed."""
        self.given_up += len(self.runs)
        self.runs.clear()
        self.waiting.clear()
        return self.given_up
