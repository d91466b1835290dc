"""What one side of a session has declared besides keys: subscribers, queryables and liveliness tokens."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Entities:
    """The key expression of each, None when it is not known. At the limit new ones are not remembered."""

    limit: int
    known: dict[tuple[str, int], str | None] = field(default_factory=dict)

    def declare(self, what: str, number: int, key: str | None) -> bool:
        """Remember an entity, or give it another key; False when there are too many."""
        if (what, number) not in self.known and len(self.known) >= self.limit:
            return False
        self.known[what, number] = key
        return True

    def withdraw(self, what: str, number: int) -> str | None:
        """Forget an entity; returns its key."""
        return self.known.pop((what, number), None)

    def clear(self) -> None:
        """Forget all."""
        self.known.clear()
