"""Messages made at random from the declarations of their classes: any field, extension and body, good or not.

Nothing here knows a class by name. What a class declares is drawn, so a new message is covered by being declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from scapy.fields import ConditionalField

from scapy_zenoh import fields as wire
from scapy_zenoh.expr import Const, Ref
from scapy_zenoh.extension import UNKNOWN, ExtChain, Extension
from scapy_zenoh.message import NETWORK, Family, Message, MessageList, Record, RecordList, Variants
from scapy_zenoh.primitives import VLE, WideText, zid_from_wire

TEXTS = st.one_of(
    st.text("ab/*é", max_size=8),
    st.binary(max_size=8).map(lambda data: data.decode("utf-8", "surrogateescape")),
)
LOCATORS = st.one_of(st.sampled_from(["tcp/10.0.0.1:7447", "udp/[::1]:7447", "/", "tcp", "a#/b", "é/"]), TEXTS)
#: Often short ones, and sometimes one whose length takes two bytes.
BYTES = st.one_of(st.binary(max_size=8), st.integers(120, 140).map(bytes))


# --- numbers ------------------------------------------------------------------------------------


def numbers(bits: int) -> st.SearchStrategy[int]:
    """Numbers of at most so many bits: small ones, those at the edges of what a byte holds, and any."""
    edges = {value for n in (7, 8, 14, 16, 31, 32, 56, 63, 64) for value in ((1 << n) - 1, 1 << n)}
    most = (1 << bits) - 1
    return st.one_of(
        st.integers(0, min(most, 20)),
        st.sampled_from(sorted({most, *(value for value in edges if value <= most)})),
        st.integers(0, most),
    )


@st.composite
def vles(draw: st.DrawFn, bits: int) -> int:
    """A number as it is on the wire: sometimes longer than needed, sometimes too large for its field."""
    roll = draw(st.integers(0, 19))
    if roll == 0:
        return VLE(draw(numbers(64)), 0)
    value = draw(numbers(bits))
    return VLE(value, draw(st.integers(1, 9))) if roll < 4 else value


def _number(field: Any, bits: int) -> st.SearchStrategy[int]:
    any_number = vles(bits) if isinstance(field, wire.VLEField) else numbers(bits)
    named = [number for number in (field.enum.labels() if field.enum else ()) if not number >> bits]
    return st.one_of(st.sampled_from(sorted(named)), any_number) if named else any_number


# --- fields -------------------------------------------------------------------------------------


def _ids(field: Any) -> st.SearchStrategy[str]:
    return st.binary(min_size=1, max_size=16).map(zid_from_wire)


def _elements(field: wire.Repeat) -> st.SearchStrategy[list[Any]]:
    element: st.SearchStrategy[Any] = LOCATORS
    if isinstance(field.element, wire.VLEField):
        element = vles(field.element.bits)
    elif not isinstance(field.element, wire.LocatorText):
        element = st.one_of(TEXTS, TEXTS.map(lambda text: WideText(text, 2)))
    size = field.count.value if isinstance(field.count, Const) else None
    some = st.lists(element, max_size=3)
    return some if size is None else st.one_of(some, st.lists(element, min_size=size, max_size=size))


def value_of(field: Any) -> st.SearchStrategy[Any] | None:
    """Values of a field; None for one that follows from the others, or never changes."""
    match field:
        case wire.MessageId() | wire.Auto():
            return None
        case wire.Reserved() | wire.VLEReserved():
            return st.one_of(st.just(0), st.just(0), numbers(field.size))
        case wire.FixedBits():
            return None
        case wire.Bits() | wire.VLEPart():
            return _number(field, field.size)
        case wire.UInt():
            return _number(field, 8 * field.sz)
        case wire.VLEField():
            return _number(field, field.bits)
        case wire.ZidOf():
            return _ids(field)
        case wire.TextOf():
            return TEXTS
        case wire.BytesOf():
            return BYTES
        case wire.Repeat():
            return _elements(field)
        case RecordList():
            return st.lists(records(field.kinds), max_size=3)
        case MessageList():
            return st.lists(st.deferred(lambda: of_family(NETWORK)), max_size=3)
    raise TypeError(f"no values for {type(field).__name__}")


def wrong_value_of(field: Any) -> st.SearchStrategy[Any] | None:
    """Values that somebody sets by hand where others follow from the rest: flags, lengths and counts."""
    match field:
        case wire.AutoBits() | wire.CountBits() | wire.VLEFlag():
            return st.integers(0, (1 << field.size) - 1)
        case wire.VLEField() if isinstance(field, wire.Auto):
            return st.one_of(st.integers(0, 5), numbers(field.bits))
    return None


# --- records ------------------------------------------------------------------------------------


@st.composite
def record(draw: st.DrawFn, cls: type[Record]) -> Any:
    """A record, a message with its body, or an extension."""
    values: dict[str, Any] = {}
    broken = draw(st.integers(0, 9)) == 0
    for declared in cls.fields_desc:
        field: Any = declared.fld if isinstance(declared, ConditionalField) else declared
        strategy = chain(field) if isinstance(field, ExtChain) else value_of(field)
        if strategy is None:
            strategy = wrong_value_of(field) if broken and draw(st.booleans()) else None
        elif draw(st.integers(0, 2)) == 0:
            strategy = None  # left to its default
        if strategy is not None:
            values[field.name] = draw(strategy)
    packet = cls(**values)
    if cls.body is None or draw(st.integers(0, 19)) == 0:
        return packet
    return packet / draw(of_family(cls.body))


@st.composite
def chain(draw: st.DrawFn, field: ExtChain) -> list[Any]:
    """Extensions of one of the tables, in any order and number, and some that nobody knows."""
    _, table = draw(st.sampled_from(field.cases))
    found = []
    for _ in range(draw(st.integers(0, 4))):
        cls = draw(st.sampled_from([*table.classes, *UNKNOWN.values()]))
        ext = draw(record(cls))
        if not cls.known:
            ext.eid, ext.mandatory = draw(st.integers(0, 15)), draw(st.integers(0, 1))
        found.append(ext)
    return found


def records(kinds: type[Record] | Variants) -> st.SearchStrategy[Any]:
    """Records of a list."""
    if not isinstance(kinds, Variants):
        return st.deferred(lambda: record(kinds))
    return st.one_of(*(record(cls) for cls in (*(cls for _, cls in kinds.cases), kinds.otherwise)))


def of_family(family: Family) -> st.SearchStrategy[Any]:
    """Any message of a family."""
    return st.sampled_from(sorted(family.members.values(), key=lambda cls: cls.__name__)).flatmap(record)


def filled(cls: type[Record]) -> Any:
    """A good record with a value in every field, as far from its default as it may be."""
    values: dict[str, Any] = {}
    for declared in cls.fields_desc:
        field: Any = getattr(declared, "fld", declared)
        if not isinstance(field, ExtChain) and value_of(field) is not None:
            values[field.name] = _full(field)
    return cls(**values)


def _full(field: Any) -> Any:
    match field:
        case wire.NumberField() if field.closed and field.enum is not None:
            return max(field.enum.labels())
        case wire.Bits() | wire.VLEPart():
            return (1 << field.size) - 1
        case wire.UInt():
            return (1 << 8 * field.sz) - 1
        case wire.VLEField():
            return (1 << field.bits) - 1
        case wire.ZidOf():
            return "abc"
        case wire.TextOf():
            return "tcp/a"
        case wire.BytesOf():
            return b"abc"
        case wire.Repeat():
            return [_full(field.element)] * (field.count.value if isinstance(field.count, Const) else 2)
        case RecordList():
            return [filled(field.kinds.otherwise if isinstance(field.kinds, Variants) else field.kinds)] * 2
    raise TypeError(f"no value for {type(field).__name__}")


@dataclass(frozen=True)
class Place:
    """A message that knows an extension, with the flags that choose the table it is in."""

    cls: type[Message]
    flags: tuple[tuple[str, int], ...]
    ext: type[Extension]

    def __str__(self) -> str:
        return "-".join([self.cls.__name__, *(f"{name}{value}" for name, value in self.flags), self.ext.__name__])


def known_extensions(cls: type[Message]) -> Iterator[Place]:
    """Every extension that a message knows."""
    for declared in cls.fields_desc:
        field: Any = getattr(declared, "fld", declared)
        others: tuple[tuple[str, int], ...] = ()
        for when, table in field.cases if isinstance(field, ExtChain) else ():
            assert when is None or isinstance(when, Ref), "a flag chooses the table"
            flags = others if when is None else ((when.name, 1),)
            others += () if when is None else ((when.name, 0),)
            for ext in table.classes:
                yield Place(cls, flags, ext)


def message_with(place: Place, exts: list[Any]) -> Any:
    """A message with these extensions, after the one that must come before them."""
    before = [] if place.ext.after is None else [place.ext.after()]
    return place.cls(**dict(place.flags), exts=[*before, *exts])


@st.composite
def bytes_with(draw: st.DrawFn, place: Place) -> bytes:
    """A message with one of the extensions that it knows, good or not; twice sometimes."""
    packet = message_with(place, [draw(record(place.ext)) for _ in range(draw(st.sampled_from([1, 1, 2])))])
    if place.cls.body is not None:
        packet = packet / draw(of_family(place.cls.body))
    return draw(damaged(_built(packet)))


# --- bytes --------------------------------------------------------------------------------------


def _built(packet: Any) -> bytes:
    try:
        return bytes(packet)
    except ValueError:  # pieces in shared memory that are larger together than a length can say
        reject()


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes of which some are replaced, removed, doubled or put in; often none."""
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 4]))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 3))
        data = data[:at] + draw(st.binary(max_size=3)) + data[at + size :]
    return data


@st.composite
def bytes_of(draw: st.DrawFn, cls: type[Message]) -> bytes:
    """The bytes of a message of a class, good or not."""
    return draw(damaged(_built(draw(record(cls)))))


@st.composite
def started(draw: st.DrawFn, cls: type[Message]) -> bytes:
    """Any bytes behind the header of a message, so that more than its id is read."""
    return bytes([cls.message_id() | draw(st.integers(0, 7)) << 5]) + draw(st.binary(max_size=60))
