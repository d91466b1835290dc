"""Which key expression a number stands for: one table per session and declaring side."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KeyTable:
    """The numbers that one side has declared. At the limit new ones are not remembered, and ``full`` says so."""

    limit: int
    known: dict[int, str] = field(default_factory=dict)
    full: bool = False

    def declare(self, number: int, name: str) -> None:
        """Remember a number, or give it another name."""
        if number not in self.known and len(self.known) >= self.limit:
            self.full = True
            return
        self.known[number] = name

    def undeclare(self, number: int) -> str | None:
        """Forget a number; returns what it stood for."""
        return self.known.pop(number, None)

    def resolve(self, scope: int | None, suffix: str | None) -> str | None:
        """The key expression of a wire expression; None when the number is not known. Nothing is put between."""
        if not scope:
            return suffix or ""
        prefix = self.known.get(scope)
        return None if prefix is None else prefix + (suffix or "")

    def names(self) -> dict[int, str]:
        """All numbers with what they stand for, in the order in which they were first declared."""
        return self.known
