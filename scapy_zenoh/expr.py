"""Conditions and lengths as values: Scapy calls them, generators walk them.

``When("N")``, ``From("zid_len") + 1``, ``HasExt(ZenohExtShm)`` are small frozen trees. Calling one
with a packet evaluates it; a generator matches on its class. Combine them with ``& | ~``; Python's
``and``, ``or`` and ``not`` raise, because they would evaluate the tree instead of extending it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "+": operator.add,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}


class Expr:
    """A tree over the fields of one message; ``expr(packet)`` is its value."""

    __slots__ = ()

    def __call__(self, pkt: Any) -> Any:
        raise NotImplementedError

    def __and__(self, other: Any) -> Expr:
        return Binary("and", self, lift(other))

    def __or__(self, other: Any) -> Expr:
        return Binary("or", self, lift(other))

    def __invert__(self) -> Expr:
        return Not(self)

    def __add__(self, other: Any) -> Expr:
        return Binary("+", self, lift(other))

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return Binary("==", self, lift(other))

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return Binary("!=", self, lift(other))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} has no truth value here: combine with & | ~ instead of and/or/not")


@dataclass(frozen=True, eq=False, repr=False)
class Ref(Expr):
    """The number in a field of the same message; 0 when the field is absent."""

    name: str

    def __call__(self, pkt: Any) -> Any:
        value = pkt.getfieldval(self.name)
        return 0 if value is None else value

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False, repr=False)
class Const(Expr):
    """A plain number."""

    value: int

    def __call__(self, pkt: Any) -> int:
        return self.value

    def __repr__(self) -> str:
        return repr(int(self.value))


@dataclass(frozen=True, eq=False, repr=False)
class Not(Expr):
    """True when its argument is 0."""

    arg: Expr

    def __call__(self, pkt: Any) -> bool:
        return not self.arg(pkt)

    def __repr__(self) -> str:
        return f"not {self.arg!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Binary(Expr):
    """Two expressions joined by ``== != + and or``."""

    op: str
    left: Expr
    right: Expr

    def __call__(self, pkt: Any) -> Any:
        return _OPERATORS[self.op](self.left(pkt), self.right(pkt))

    def __repr__(self) -> str:
        return f"({self.left!r} {self.op} {self.right!r})"


@dataclass(frozen=True, eq=False, repr=False)
class HasExt(Expr):
    """True when the message carries the extension ``ext`` (a class)."""

    ext: type
    chain: str = "exts"

    def __call__(self, pkt: Any) -> bool:
        return any(isinstance(e, self.ext) for e in pkt.getfieldval(self.chain) or ())

    def __repr__(self) -> str:
        return f"has {self.ext.__name__}"


@dataclass(frozen=True, eq=False, repr=False)
class Present(Expr):
    """True when a field of the same message was read, or is set."""

    name: str

    def __call__(self, pkt: Any) -> bool:
        return pkt.fields.get(self.name) is not None

    def __repr__(self) -> str:
        return f"{self.name} is present"


@dataclass(frozen=True, eq=False, repr=False)
class Readable(Expr):
    """True when all bytes left are a count and that many good records of the list ``records``.

    For values that nodes pass on unread: what is not readable goes into the field ``otherwise``. While
    building, it is True unless that field is set.
    """

    records: str
    otherwise: str

    def __call__(self, pkt: Any) -> bool:
        if pkt._ahead is None:
            return pkt.fields.get(self.otherwise) is None
        return bool(pkt.readable(self.records, pkt._ahead))

    def __repr__(self) -> str:
        return f"the rest is {self.records}"


@dataclass(frozen=True, eq=False, repr=False)
class PeekByte(Expr):
    """A byte further on, for choosing between records before one is read; call it with the bytes."""

    offset: int

    def __call__(self, data: Any) -> int:
        return data[self.offset] if self.offset < len(data) else -1

    def __repr__(self) -> str:
        return f"byte[{self.offset}]"


@dataclass(frozen=True, eq=False, repr=False)
class PeekVles(Expr):
    """How many variable length integers exactly fill the counted bytes at ``offset``; 0 if they do not."""

    offset: int

    def __call__(self, data: Any) -> int:
        pos, size, shift = self.offset, 0, 0
        while True:
            if pos >= len(data) or shift > 28:
                return 0
            byte = data[pos]
            pos, size, shift = pos + 1, size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        end, count = pos + size, 0
        if end > len(data):
            return 0
        while pos < end:
            width = 1
            while width < 9 and data[pos + width - 1] >= 0x80:
                if pos + width >= end:
                    return 0
                width += 1
            pos, count = pos + width, count + 1
        return count

    def __repr__(self) -> str:
        return f"integers in the bytes counted at [{self.offset}]"


def lift(value: Any) -> Expr:
    """A number as an expression."""
    return value if isinstance(value, Expr) else Const(int(value))


def When(name: str) -> Ref:
    """A condition on a field: ``When("N")``, ``When("mode") != InterestMode.FINAL``."""
    return Ref(name)


#: The same, where it reads better as a length: ``From("zid_len") + 1``.
From = When
