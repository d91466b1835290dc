"""From classes to the neutral description. Refuses what a generator could not read, and says what to write instead."""

from __future__ import annotations

from typing import Any

from scapy.fields import ConditionalField

from scapy_zenoh import data, declare, network, scouting, transport  # noqa: F401  (the messages declare themselves)
from scapy_zenoh import fields as wire
from scapy_zenoh.common import Ntp64Field
from scapy_zenoh.enums import Named
from scapy_zenoh.expr import Expr
from scapy_zenoh.extension import UNKNOWN, ExtChain, Extension, ExtTable
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.message import (
    DATA,
    DECLARATION,
    NETWORK,
    SCOUTING,
    TRANSPORT,
    Family,
    Message,
    MessageList,
    RecordList,
    Variants,
)
from scapy_zenoh.message import Record as RecordClass
from scapy_zenoh.schema.model import (
    Bits,
    Bytes,
    Choice,
    EnumDef,
    Exts,
    ExtTableDef,
    FamilyDef,
    Form,
    Item,
    Messages,
    Part,
    Record,
    Records,
    Repeat,
    Schema,
    Text,
    UInt,
    Vle,
)

ROOTS = (SCOUTING, TRANSPORT, NETWORK, DECLARATION, DATA)


class SchemaError(TypeError):
    """A declaration that generators cannot read."""


def record_of(cls: type[RecordClass]) -> Record:
    """The description of one class."""
    fields: list[tuple[Any, Any]] = [
        (f.fld, f.cond) if isinstance(f, ConditionalField) else (f, None) for f in cls.fields_desc
    ]
    for field, when in fields:
        if when is not None and not isinstance(when, Expr):
            raise SchemaError(
                f"{cls.__name__}.{field.name}: the condition {when!r} is opaque; "
                "write it with When(...), From(...) or HasExt(...)"
            )
    items: list[Item] = []
    while fields:
        field, when = fields[0]
        size = _group_size(cls, [f for f, _ in fields])
        items.append(_bits([f for f, _ in fields[:size]], when) if size else _item(cls, field, when))
        fields = fields[size or 1 :]
    message = issubclass(cls, Message)
    extension = issubclass(cls, Extension)
    return Record(
        name=cls.__name__,
        title=str(cls._name or cls.__name__),
        doc=(cls.__doc__ or "").strip(),
        items=tuple(items),
        window=cls.window,
        family=cls.family.name if message and cls.family else None,
        mid=cls.message_id() if message and cls.family else None,
        body=cls.body.name if cls.body else None,
        identity=cls.identity() if extension else None,
        after=cls.after.__name__ if extension and cls.after else None,
        lenient=extension and cls.lenient,
    )


def schema() -> Schema:
    """The description of every message and of everything inside them."""
    walk = _Walk()
    for family in ROOTS:
        walk.family(family)
    for unknown in UNKNOWN.values():
        walk.record(unknown)
    return Schema(walk.records, walk.families, walk.choices)


class _Walk:
    """Follows the classes from the families to all they refer to, in order of appearance."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.families: dict[str, FamilyDef] = {}
        self.choices: dict[str, Choice] = {}

    def family(self, family: Family) -> None:
        if family.name not in self.families:
            members = sorted(family.members.items())
            self.families[family.name] = FamilyDef(family.name, tuple((i, c.__name__) for i, c in members))
            for _, cls in members:
                self.record(cls)

    def record(self, cls: type[RecordClass]) -> None:
        if cls.__name__ in self.records:
            return
        self.records[cls.__name__] = record_of(cls)
        if cls.body is not None:
            self.family(cls.body)
        for declared in cls.fields_desc:
            field = getattr(declared, "fld", declared)
            if isinstance(field, ExtChain):
                for _, table in field.cases:
                    for extension in table.classes:
                        self.record(extension)
            elif isinstance(field, MessageList):
                for family in field.families:
                    self.family(family)
            elif isinstance(field, RecordList):
                self.kinds(field.kinds)

    def kinds(self, kinds: type[RecordClass] | Variants) -> None:
        if not isinstance(kinds, Variants):
            self.record(kinds)
            return
        cases = tuple((guard, cls.__name__) for guard, cls in kinds.cases)
        self.choices[kinds.name] = Choice(kinds.name, cases, kinds.otherwise.__name__)
        for cls in (*(c for _, c in kinds.cases), kinds.otherwise):
            self.record(cls)


# --- fields -------------------------------------------------------------------------------------


def _group_size(cls: type[RecordClass], fields: list[Any]) -> int:
    """How many fields from here on share one byte or integer."""
    if isinstance(fields[0], wire.VLEPart):
        return next(i for i, f in enumerate(fields, 1) if f.last)
    bits = size = 0
    while size < len(fields) and isinstance(fields[size], wire.Bits):
        bits, size = bits + fields[size].size, size + 1
        if bits % 8 == 0:
            break
    if bits not in (0, 8):
        raise SchemaError(f"{cls.__name__}.{fields[0].name}: {bits} bits; consecutive Bits must fill one byte")
    return size


def _bits(fields: list[Any], when: Expr | None) -> Bits:
    in_vle = isinstance(fields[0], wire.VLEPart)
    width = fields[0].bits if in_vle else 8
    parts, above = [], width
    for field in fields:
        above -= field.size
        parts.append(_part(field, field.shift if in_vle else above))
    return Bits("vle" if in_vle else "byte", width, tuple(parts), when)


def _part(field: Any, shift: int) -> Part:
    presence: tuple[tuple[str, int], ...] = ()
    if isinstance(field, wire.AutoBits):
        presence = tuple((name, int(code)) for name, code in field.codes)
    elif isinstance(field, wire.VLEFlag):
        presence = ((field.of, 1),)
    counting = isinstance(field, wire.CountBits)
    return Part(
        name=field.name,
        size=field.size,
        shift=shift,
        enum=enum_of(field.enum),
        closed=field.closed,
        fixed=field.default if isinstance(field, (wire.FixedBits, wire.VLEReserved)) else None,
        presence=presence,
        counts=field.of if counting else None,
        bias=field.bias if counting else 0,
    )


def _item(cls: type[RecordClass], field: Any, when: Expr | None) -> Item:
    name = field.name
    match field:
        case wire.UInt():
            return UInt(name, field.sz, enum_of(field.enum), field.closed, int(field.missing), when)
        case wire.VLEField():
            return _vle(field, when)
        case wire.RestText():
            return Bytes(name, None, "text", when)
        case wire.RestBytes():
            return Bytes(name, None, "bytes", when)
        case wire.BytesOf() if not isinstance(field, wire.CountedText):
            if not isinstance(field.length, Expr):
                raise SchemaError(f"{cls.__name__}.{name}: the length {field.length!r} is opaque; write From(...)")
            return Bytes(name, field.length, _form(field), when)
        case wire.Repeat():
            return Repeat(name, _element(cls, field.element), field.count, when)
        case RecordList():
            return Records(name, _name(field.kinds), field.count, when)
        case ExtChain():
            return Exts(name, tuple((w, _table(t)) for w, t in field.cases), when)
        case MessageList() if type(field) is MessageList:
            until = field.until.name if field.until else None
            return Messages(name, tuple(f.name for f in field.families), until, when)
    raise SchemaError(
        f"{cls.__name__}.{name}: no generator knows {type(field).__name__}; use the fields of scapy_zenoh.fields "
        "(Bits, UInt, VLEField, counted(...), RestBytes, Repeat), RecordList, MessageList or ExtChain"
    )


def _name(kinds: type[RecordClass] | Variants) -> str:
    return kinds.name if isinstance(kinds, Variants) else kinds.__name__


def _vle(field: wire.VLEField, when: Expr | None) -> Vle:
    most, beyond = None, None
    if isinstance(field, wire.VLECount):
        most, beyond = wire.MAX_ELEMENTS, FaultKind.LIMIT
    elif isinstance(field, wire.VLELen) and field.most is not None:
        most, beyond = field.most, FaultKind.BAD_LENGTH
    return Vle(
        name=field.name,
        bits=field.bits,
        enum=enum_of(field.enum),
        closed=field.closed,
        counts=getattr(field, "of", None),
        most=most,
        beyond=beyond,
        time=isinstance(field, Ntp64Field),
        when=when,
    )


def _form(field: wire.BytesOf) -> Form:
    match field:
        case wire.ZidOf():
            return "zid"
        case wire.LocatorText():
            return "locator"
        case wire.TextOf():
            return "lax" if field.lax else "text"
    return "bytes"


def _element(cls: type[RecordClass], field: Any) -> Vle | Text:
    if isinstance(field, wire.CountedText):
        return Text(field.name, field.bits, _form(field))
    if isinstance(field, wire.VLEField):
        return _vle(field, None)
    raise SchemaError(
        f"{cls.__name__}.{field.name}: a list repeats a VLEField or a CountedText; use RecordList for more"
    )


def _table(table: ExtTable) -> ExtTableDef:
    return ExtTableDef(tuple(c.__name__ for c in table.classes), table.lenient)


def enum_of(enum: type[Named] | None) -> EnumDef | None:
    """The description of an enumeration."""
    if enum is None:
        return None
    return EnumDef(enum.__name__, (enum.__doc__ or "").strip(), tuple(sorted(enum.labels().items())))
