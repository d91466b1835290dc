"""What generators see of a message: records of items, and the tables that join them.

Everything here is a small frozen value that prints well. Conditions and lengths are the expressions
of ``scapy_zenoh.expr``. Records refer to each other by name; ``Schema`` holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scapy_zenoh.expr import Expr
from scapy_zenoh.fault import FaultKind

#: How bytes are to be understood. ``lax`` text need not be UTF-8.
Form = Literal["bytes", "text", "lax", "zid", "locator"]


@dataclass(frozen=True)
class EnumDef:
    """Numbers with names."""

    name: str
    doc: str
    members: tuple[tuple[int, str], ...]

    def __repr__(self) -> str:
        return f"EnumDef({self.name})"


@dataclass(frozen=True)
class Part:
    """Some bits: ``shift`` counts from the least significant bit of what carries them.

    ``closed``: numbers without a name are refused. ``fixed``: the value in all good traffic.
    ``presence``: ((field, code), ...) when the bits say which of these fields is present.
    ``counts``: the field whose length they hold, less ``bias``.
    """

    name: str
    size: int
    shift: int
    enum: EnumDef | None = None
    closed: bool = False
    fixed: int | None = None
    presence: tuple[tuple[str, int], ...] = ()
    counts: str | None = None
    bias: int = 0


@dataclass(frozen=True)
class Bits:
    """A byte, or a variable length integer of ``bits`` bits, that several named parts share."""

    carrier: Literal["byte", "vle"]
    bits: int
    parts: tuple[Part, ...]
    when: Expr | None = None


@dataclass(frozen=True)
class UInt:
    """An unsigned integer of ``size`` bytes, least significant first. A ``window`` counts all bytes after it."""

    name: str
    size: int
    enum: EnumDef | None = None
    closed: bool = False
    missing: int = 0
    when: Expr | None = None


@dataclass(frozen=True)
class Vle:
    """A variable length integer of at most ``bits`` bits.

    ``counts`` names the field whose bytes or elements it counts. A value above ``most`` is the fault
    ``beyond``. ``time`` marks an NTP64 time.
    """

    name: str
    bits: int
    enum: EnumDef | None = None
    closed: bool = False
    counts: str | None = None
    most: int | None = None
    beyond: FaultKind | None = None
    time: bool = False
    when: Expr | None = None


@dataclass(frozen=True)
class Bytes:
    """As many bytes as ``length`` says; without it, all that are left (a *rest*)."""

    name: str
    length: Expr | None
    form: Form = "bytes"
    when: Expr | None = None


@dataclass(frozen=True)
class Text:
    """A text with its length in front: the element of a list."""

    name: str
    bits: int
    form: Form = "text"


@dataclass(frozen=True)
class Repeat:
    """``count`` numbers or texts."""

    name: str
    element: Vle | Text
    count: Expr
    when: Expr | None = None


@dataclass(frozen=True)
class Records:
    """``count`` records, all of one kind or each by a choice."""

    name: str
    of: str  # a record or a choice
    count: Expr
    when: Expr | None = None


@dataclass(frozen=True)
class Messages:
    """Messages of ``families`` to the end, or to a message of the family ``until``."""

    name: str
    families: tuple[str, ...]
    until: str | None = None
    when: Expr | None = None


@dataclass(frozen=True)
class Exts:
    """A chain of extensions; the first case whose condition holds gives the table."""

    name: str
    cases: tuple[tuple[Expr | None, ExtTableDef], ...]
    when: Expr | None = None


Item = Bits | UInt | Vle | Bytes | Repeat | Records | Messages | Exts


@dataclass(frozen=True)
class ExtTableDef:
    """Records of the extensions that a message knows. ``lenient``: unknown mandatory ones are skipped."""

    extensions: tuple[str, ...]
    lenient: bool = False


@dataclass(frozen=True)
class Choice:
    """Records told apart by a look at the bytes: the first whose guard holds, else the last."""

    name: str
    cases: tuple[tuple[Expr, str], ...]
    otherwise: str


@dataclass(frozen=True)
class FamilyDef:
    """A space of ids: id -> record."""

    name: str
    members: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Record:
    """A message, an extension, or a group of fields inside one.

    ``window`` names the item that counts all bytes after it. ``body`` is the family of the message that
    follows. Extensions have an ``identity`` (header without the "more" bit); ``after`` names the
    extension that must have come before, and what cannot be read of a ``lenient`` one is kept as bytes.
    """

    name: str
    title: str
    doc: str
    items: tuple[Item, ...]
    window: str | None = None
    family: str | None = None
    mid: int | None = None
    body: str | None = None
    identity: int | None = None
    after: str | None = None
    lenient: bool = False


@dataclass(frozen=True)
class Schema:
    """All records, and the families and choices that lead from one to the next."""

    records: dict[str, Record]
    families: dict[str, FamilyDef]
    choices: dict[str, Choice]

    def enums(self) -> list[EnumDef]:
        """Every enumeration in use, by name."""
        found: dict[str, EnumDef] = {}
        for record in self.records.values():
            for item in record.items:
                for holder in item.parts if isinstance(item, Bits) else (item,):
                    enum = getattr(getattr(holder, "element", holder), "enum", None)
                    if enum is not None:
                        found[enum.name] = enum
        return [found[name] for name in sorted(found)]


def item_name(item: Item) -> str:
    """The name of an item; of a shared byte, those of its parts."""
    return "/".join(p.name for p in item.parts) if isinstance(item, Bits) else item.name
