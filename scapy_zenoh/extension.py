"""Extensions: the header, the three encodings, tables of what each message knows, and the chain.

The identity of an extension is its whole header without the "more" bit: id, mandatory bit and
encoding. The same id with another encoding is another extension.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scapy_zenoh.enums import ExtEncoding
from scapy_zenoh.expr import Expr
from scapy_zenoh.fault import FaultKind, WireFault
from scapy_zenoh.fields import Auto, Bits, FixedBits, VLEField, VLEWindow, counted
from scapy_zenoh.message import InnerList, Record, stopped, take_padding


class MoreFlag(Bits, Auto):
    """Bit 7: another extension follows in the same chain."""

    __slots__: list[str] = []

    def __init__(self) -> None:
        Bits.__init__(self, "more", None, 1)

    def auto(self, pkt: Any) -> int:
        chain = pkt.parent.fields.get("exts", ()) if pkt.parent is not None else ()
        return int(any(ext is pkt for ext in chain[:-1]))


class Extension(Record):
    """One extension of a chain; see ``unit``, ``z64`` and ``zbuf``."""

    #: The class of an extension that must have come before, for values whose layout depends on it.
    after: ClassVar[type[Extension] | None] = None
    #: True when nodes pass the value on unread and judge it later: what cannot be read is no fault.
    lenient: ClassVar[bool] = False
    #: False for the classes that stand in for extensions nobody knows.
    known: ClassVar[bool] = True

    @classmethod
    def identity(cls) -> int:
        """The header without the "more" bit."""
        default = {f.name: f.default for f in cls.fields_desc}
        return int(default["enc"] << 5 | default["mandatory"] << 4 | default["eid"])

    def in_chain(self, more: int) -> bytes:
        """The bytes, with the "more" bit that the place in a chain wants unless somebody has set another."""
        if self.fields.get("more") is not None:
            return bytes(self)
        self.fields["more"] = more
        try:
            return bytes(self)
        finally:
            del self.fields["more"]


def _header(enc: ExtEncoding, eid: int, mandatory: bool) -> list[Any]:
    return [
        MoreFlag(),
        FixedBits("enc", enc, 2, enum=ExtEncoding),
        FixedBits("mandatory", int(mandatory), 1),
        FixedBits("eid", eid, 4),
    ]


def unit(eid: int, mandatory: bool = False) -> list[Any]:
    """The fields of an extension without a value."""
    return _header(ExtEncoding.UNIT, eid, mandatory)


def z64(eid: int, *value: Any, mandatory: bool = False) -> list[Any]:
    """The fields of an extension whose value is one integer, whole or in parts."""
    return [*_header(ExtEncoding.Z64, eid, mandatory), *value]


def zbuf(eid: int, *value: Any, mandatory: bool = False) -> list[Any]:
    """The fields of an extension whose value is a counted run of bytes holding ``value``."""
    return [*_header(ExtEncoding.ZBUF, eid, mandatory), VLEWindow("size"), *value]


class ZBufExtension(Extension):
    """An extension whose fields fill the announced size."""

    window = "size"


class HandshakeExtension(ZBufExtension):
    """One whose value the reference reads while it negotiates, not while it decodes the message."""

    lenient = True


class ZenohExtUnit(Extension):
    """An extension without value that this message does not know."""

    name = "unknown extension"
    known = False
    fields_desc = unit(0)


class ZenohExtZ64(Extension):
    """An extension with a number that this message does not know."""

    name = "unknown extension"
    known = False
    fields_desc = z64(0, VLEField("value", 0))


class ZenohExtZBuf(Extension):
    """An extension with bytes that this message does not know."""

    name = "unknown extension"
    known = False
    fields_desc = [*_header(ExtEncoding.ZBUF, 0, False), *counted("value", b"")]


UNKNOWN: dict[int, type[Extension]] = {
    ExtEncoding.UNIT: ZenohExtUnit,
    ExtEncoding.Z64: ZenohExtZ64,
    ExtEncoding.ZBUF: ZenohExtZBuf,
}


class ExtTable:
    """The extensions that one message knows, in the order in which nodes write them.

    ``lenient`` messages skip unknown extensions even if those claim to be mandatory.
    """

    def __init__(self, *classes: type[Extension], lenient: bool = False) -> None:
        self.classes, self.lenient = classes, lenient
        self.by_identity: dict[int, list[type[Extension]]] = {}
        for cls in sorted(classes, key=lambda c: c.after is None):  # the more particular first
            self.by_identity.setdefault(cls.identity(), []).append(cls)

    def pick(self, header: int, before: set[type]) -> type[Extension] | None:
        """The class for a header byte after extensions of the classes ``before``; None for the reserved encoding."""
        for cls in self.by_identity.get(header & 0x7F, ()):
            if cls.after is None or cls.after in before:
                return cls
        return UNKNOWN.get(header >> 5 & 3)


class ExtChain(InnerList):
    """Extensions linked by their "more" bit.

    The table may depend on a condition: ``ExtChain("exts", (When("A"), ACK), SYN)``.
    """

    __slots__ = ["cases"]

    def __init__(self, name: str, *cases: ExtTable | tuple[Expr, ExtTable]) -> None:
        self.cases: tuple[tuple[Expr | None, ExtTable], ...] = tuple(
            (None, case) if isinstance(case, ExtTable) else case for case in cases
        )
        InnerList.__init__(self, name)

    def table(self, pkt: Any) -> ExtTable:
        """The table that holds for this packet."""
        return next(table for when, table in self.cases if when is None or when(pkt))

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        table = self.table(pkt)
        chain: list[Any] = []
        before: set[type] = set()
        more = 1
        while more:
            if not s:
                raise WireFault(FaultKind.CHAIN_CUT, s, chain)
            cls = table.pick(s[0], before)
            if cls is None:
                raise WireFault(FaultKind.RESERVED_ENCODING, s, chain)
            if chain:
                chain[-1].fields.pop("more", None)  # the next one shows that it was right
            ext: Any = cls(s, _internal=1, _parent=pkt)
            if cls.lenient and stopped(ext):
                ext = UNKNOWN[s[0] >> 5 & 3](s, _internal=1, _parent=pkt)
            more = s[0] >> 7
            s = take_padding(ext)
            chain.append(ext)
            before.add(type(ext))
            if stopped(ext):
                raise WireFault(None, s, chain)
            if not cls.known and ext.mandatory and not table.lenient:
                ext.note(FaultKind.UNKNOWN_MANDATORY_EXT)
        return s, chain

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        for i, ext in enumerate(val or ()):
            s += ext.in_chain(int(i + 1 < len(val))) if isinstance(ext, Extension) else self.element(pkt, ext)
        return s
