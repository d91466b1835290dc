"""Putting fragmented messages together, one lane at a time.

Fragments of a message have consecutive numbers. They may come out of order (UDP, several links), and
any of them may be missing: a run that cannot be completed is given up when newer ones push it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

MAX_RUNS = 4  # unfinished messages of one lane: more than one only when order is not kept
MAX_WAITING = 256  # fragments before whose turn others must come

# What is missing of a message
BEGINNING, REST, TOO_LONG = "beginning", "rest", "too long"


class About(NamedTuple):
    """What the beginning of a message tells."""

    kind: str
    key: str | None


class Slice(NamedTuple):
    """The content of one fragment."""

    sn: int
    data: bytes
    more: bool
    time: int


@dataclass(slots=True)
class Run:
    """The fragments of a message that have come."""

    about: About | None = None
    slices: list[bytes] = field(default_factory=list)
    size: int = 0
    first: int = 0  # sequence numbers and times of the first and the newest one
    last: int = 0
    began: int = 0
    ended: int = 0
    missing: str | None = None

    def take(self, piece: Slice) -> None:
        """The next fragment."""
        if not self.slices:
            self.first, self.began = piece.sn, piece.time
        self.slices.append(piece.data)
        self.size += len(piece.data)
        self.last, self.ended = piece.sn, max(self.ended, piece.time)

    def told(self) -> dict[str, Any]:
        """What there is to tell of it."""
        return {
            "first_sn": self.first,
            "last_sn": self.last,
            "fragments": len(self.slices),
            "bytes": self.size,
            "complete": self.missing is None,
            "missing": self.missing,
            "kind": self.about and self.about.kind,
            "key": self.about and self.about.key,
            "began": self.began,
            "ended": self.ended,
        }


@dataclass(slots=True)
class Assembler:
    """The unfinished messages of one lane."""

    mask: int
    limit: int  # bytes
    marked: bool = False  # the sender marks first fragments
    runs: dict[int, Run] = field(default_factory=dict)  # by the number that comes next
    waiting: dict[int, Slice] = field(default_factory=dict)
    given_up: int = 0
    over_limit: int = 0
    #: Messages that came to an end, complete or not, since somebody looked.
    ended: list[Run] = field(default_factory=list)

    def begins(self, sn: int, first: bool) -> bool:
        """Whether a fragment is the first of its message. Releases before 1.0.4 do not mark it."""
        return first or sn not in self.runs and not self.marked and not self.runs and not self.waiting

    def add(
        self, sn: int, data: bytes, more: bool, first: bool, drop: bool, time: int = 0, about: About | None = None
    ) -> tuple[bytes, int] | None:
        """A fragment has come; returns the message and the number of its fragments if it is complete."""
        if drop:
            if sn in self.runs:
                self._give_up(self.runs.pop(sn))
            return None
        piece = Slice(sn, data, more, time)
        if self.begins(sn, first):
            self.marked = self.marked or first
            run = Run(about)
        elif sn in self.runs:
            run = self.runs.pop(sn)
        else:
            while len(self.waiting) >= MAX_WAITING:
                self._lose([self.waiting.pop(next(iter(self.waiting)))])
            self.waiting[sn] = piece
            return None
        return self._extend(run, piece)

    def _extend(self, run: Run, piece: Slice) -> tuple[bytes, int] | None:
        while True:
            run.take(piece)
            if not piece.more:
                self.ended.append(run)
                return b"".join(run.slices), len(run.slices)
            if run.size > self.limit:
                self.over_limit += 1
                run.missing = TOO_LONG
                self.ended.append(run)
                return None
            sn = (piece.sn + 1) & self.mask
            if sn not in self.waiting:
                break
            piece = self.waiting.pop(sn)
        while len(self.runs) >= MAX_RUNS:
            self._give_up(self.runs.pop(next(iter(self.runs))))
        self.runs[sn] = run
        return None

    def _give_up(self, run: Run) -> None:
        self.given_up += 1
        run.missing = REST
        self.ended.append(run)

    def _lose(self, pieces: list[Slice]) -> None:
        """Fragments whose beginning never came; those that go on from each other are one message."""
        run: Run | None = None
        for piece in sorted(pieces):
            if run is None or (run.last + 1) & self.mask != piece.sn:
                run = Run(missing=BEGINNING)
                self.ended.append(run)
            run.take(piece)
            if not piece.more:
                run = None

    def frame(self, ordered: bool) -> None:
        """A FRAME of the same lane: where order is kept, what is unfinished will not be finished."""
        if ordered and (self.runs or self.waiting):
            self._clear()

    def _clear(self) -> None:
        for run in self.runs.values():
            self._give_up(run)
        self._lose(list(self.waiting.values()))
        self.runs.clear()
        self.waiting.clear()

    def finish(self) -> int:
        """No more will come; the number of messages that were not completed."""
        self._clear()
        return self.given_up
