"""Rows on their way out, in their order: as columns where there are many, one by one where links were not regular."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from scapy_zenoh.rows import Row, to_json

T = TypeVar("T")


class Check(NamedTuple):
    """A condition on texts: one of the columns must please ``wanted``, which is also asked of None."""

    columns: tuple[str, ...]
    wanted: Callable[[str | None], bool]

    def of_row(self, row: Row) -> bool:
        """Whether a row has such a text."""
        return any(self.wanted(row[name]) for name in self.columns)


@dataclass(slots=True)
class Piece:
    """A record batch (or None), and single rows, each before the row of the batch whose number it has."""

    columns: Any = None
    singles: list[tuple[int, Row]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.singles) + (0 if self.columns is None else int(self.columns.num_rows))

    def rows(self) -> Iterator[Row]:
        """All rows."""
        if self.columns is None:
            return (row for _, row in self.singles)
        from scapy_zenoh import arrow

        return self._mixed(arrow.rows_of(self.columns), self.singles)

    def json_lines(self) -> Iterator[str]:
        """All rows, a line of JSON each."""
        singles = ((number, to_json(row)) for number, row in self.singles)
        if self.columns is None:
            return (text for _, text in singles)
        from scapy_zenoh import arrow

        return self._mixed(arrow.json_lines(self.columns), singles)

    @staticmethod
    def _mixed(others: Iterator[T], singles: Iterable[tuple[int, T]]) -> Iterator[T]:
        taken = 0
        for number, single in singles:
            yield from islice(others, number - taken)
            taken = number
            yield single
        yield from others

    def batch(self) -> Any:
        """All rows as one record batch; text that was not UTF-8 is replaced."""
        from scapy_zenoh import arrow

        if not self.singles and self.columns is not None:
            return self.columns
        single = arrow.batch_of([row for _, row in self.singles])
        if self.columns is None:
            return single
        return arrow.merged(self.columns, single, [number for number, _ in self.singles])

    def only(self, checks: Sequence[Check]) -> Piece:
        """The rows that please all checks."""
        if not checks:
            return self
        columns, numbers = self.columns, None
        if columns is not None:
            from scapy_zenoh import arrow

            columns, numbers = arrow.only(columns, checks)
        kept = [(number, row) for number, row in self.singles if all(check.of_row(row) for check in checks)]
        if numbers is not None:
            kept = [(int(numbers[number]), row) for number, row in kept]
        return Piece(columns, kept)
