"""Which key expression a number stands for: one table per session and declaring side."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class KeyTable:
    """The numbers that one side has declared. At the limit new ones are not remembered, and ``full`` says so."""

    limit: int
    names: dict[int, str] = field(default_factory=dict)
    full: bool = False
    #: Changes in their order, for whoever keeps a copy: (number, name), None when it is forgotten.
    log: list[tuple[int, str | None]] | None = None

    def declare(self, number: int, name: str) -> None:
        """Remember a number, or give it another name."""
        if number not in self.names and len(self.names) >= self.limit:
            self.full = True
            return
        self.names[number] = name
        if self.log is not None:
            self.log.append((number, name))

    def undeclare(self, number: int) -> str | None:
        """Forget a number; returns what it stood for."""
        if self.log is not None:
            self.log.append((number, None))
        return self.names.pop(number, None)

    def resolve(self, scope: int | None, suffix: str | None) -> str | None:
        """The key expression of a wire expression; None when the number is not known. Nothing is put between."""
        if not scope:
            return suffix or ""
        prefix = self.names.get(scope)
        return None if prefix is None else prefix + (suffix or "")
