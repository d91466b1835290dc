"""The queries that one side of a session has asked: which are open, and which were finished lately."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum


class Outcome(str, Enum):
    """How a query ended."""

    ANSWERED = "answered"
    EMPTY = "empty"
    UNFINISHED = "unfinished"


@dataclass(slots=True)
class Query:
    """A REQUEST and what came back."""

    replied: bool = False
    finished: bool = False


@dataclass(slots=True)
class Queries:
    """At most ``limit`` queries are remembered, the last ``kept`` finished ones so as to notice late replies."""

    limit: int
    kept: int
    known: dict[int, Query] = field(default_factory=dict)
    done: deque[int] = field(default_factory=deque)

    def ask(self, number: int) -> bool:
        """A request was sent; False when too many are open to remember it."""
        if len(self.known) >= self.limit:
            return False
        self.known[number] = Query()
        return True

    def reply(self, number: int) -> bool:
        """A reply was sent; True when it comes after the end of the replies."""
        query = self.known.get(number)
        if query is None:
            return False
        query.replied = True
        return query.finished

    def finish(self, number: int) -> Outcome | None:
        """No more replies will come; how the query ended, None when that is known already or not remembered."""
        query = self.known.get(number)
        if query is None or query.finished:
            return None
        query.finished = True
        self.done.append(number)
        if len(self.done) > self.kept:
            old = self.done.popleft()
            if old in self.known and self.known[old].finished:
                del self.known[old]
        return Outcome.ANSWERED if query.replied else Outcome.EMPTY

    def unfinished(self) -> int:
        """How many are open."""
        return sum(not query.finished for query in self.known.values())

    def clear(self) -> None:
        """Forget all."""
        self.known.clear()
        self.done.clear()
