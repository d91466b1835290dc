"""Wire primitives as Scapy fields.

Every field reads to the last detail what stood on the wire, so that a message is rebuilt from its
field values alone: an integer written with more bytes than needed comes back as a ``VLE`` that
remembers its width, an absent field is None, an empty one is not.

*Automatic* fields (flags, counters) are None until somebody sets them. Asking for one gives what it
will be on the wire; setting one, even to nonsense, overrides that. After dissection they are None
again wherever they agree with the rest, so that an edited message stays consistent.

Reading raises ``WireFault``; building a value that does not fit raises ``ValueError`` and names the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scapy.fields import BitField, ConditionalField, Field
from scapy.volatile import RandBin, RandNum, RandString, VolatileValue

from scapy_zenoh.enums import ExtEncoding, Named
from scapy_zenoh.expr import Expr, From
from scapy_zenoh.fault import FaultKind, WireFault
from scapy_zenoh.primitives import (
    VLE,
    WideText,
    text_from_wire,
    text_to_wire,
    vle_decode,
    vle_encode,
    zid_from_wire,
    zid_to_wire,
)

#: More elements than this in one counted list are not read: no node sends as many.
MAX_ELEMENTS = 1 << 16


# --- what all fields share ----------------------------------------------------------------------


def owner_name(pkt: Any, field: Any) -> str:
    """``ZenohPush.scope``: how an error names a field."""
    return f"{type(pkt).__name__}.{field.name}" if pkt is not None else str(field.name)


def fitting(pkt: Any, field: Any, value: Any, bits: int) -> int:
    """``value`` as a number of at most ``bits`` bits, or an error that names the field."""
    if value is None:
        return int(field.missing)
    if not isinstance(value, int):
        raise ValueError(f"{owner_name(pkt, field)}: {value!r} is not a number")
    if value < 0 or value >> bits:
        raise ValueError(f"{owner_name(pkt, field)}: {int(value)} does not fit in {bits} bits")
    return value


def refusal(enum: type[Named]) -> FaultKind:
    """The fault of a number that a closed enumeration does not have."""
    return FaultKind.RESERVED_ENCODING if enum is ExtEncoding else FaultKind.BAD_VALUE


class NumberField(Field[int, int]):
    """What numeric fields share: names of an enumeration, and the values that nodes refuse."""

    __slots__: list[str] = []

    enum: type[Named] | None
    closed: bool  # numbers outside the enumeration are refused
    missing: int  # what is written for None

    def any2i(self, pkt: Any, x: Any) -> Any:
        if isinstance(x, str) and self.enum is not None:
            for number, label in self.enum.labels().items():
                if x.lower() == label.lower():
                    return number
            known = ", ".join(self.enum.labels().values())
            raise ValueError(f"{owner_name(pkt, self)}: {x!r} is none of {known}")
        return int(x) if isinstance(x, Named) else x

    def i2repr(self, pkt: Any, x: Any) -> str:
        label = self.enum.labels().get(x) if self.enum is not None and isinstance(x, int) else None
        return label if label is not None else repr(x)

    def check(self, value: int, start: bytes) -> None:
        """Refuse a number outside a closed enumeration; ``start`` are the bytes from the field on."""
        if self.closed and self.enum is not None and value not in self.enum.labels():
            raise WireFault(refusal(self.enum), start)


class Auto:
    """Mark of an automatic field: ``auto(pkt)`` is its value while nobody has set it."""

    __slots__ = ()

    def auto(self, pkt: Any) -> int:
        """The value that agrees with the other fields."""
        raise NotImplementedError


def present(value: Any) -> bool:
    """True when a field is on the wire: lists when they have elements, all else when not None."""
    return bool(value) if isinstance(value, list) else value is not None


# --- bits of a byte -----------------------------------------------------------------------------


class Bits(NumberField, BitField):
    """Some bits of a byte, most significant first; consecutive ones share it."""

    __slots__ = ["closed", "enum", "missing"]

    def __init__(
        self,
        name: str,
        default: Any,
        size: int,
        enum: type[Named] | None = None,
        closed: bool = False,
        missing: int = 0,
    ) -> None:
        self.enum, self.closed, self.missing = enum, closed, missing
        BitField.__init__(self, name, default, size)

    def getfield(self, pkt: Any, s: Any) -> Any:
        byte = s[0] if isinstance(s, tuple) else s
        if not byte:
            raise WireFault(FaultKind.TRUNCATED, byte)
        s, value = BitField.getfield(self, pkt, s)
        self.check(value, byte)
        return s, value

    def i2m(self, pkt: Any, x: Any) -> int:
        return fitting(pkt, self, x, self.size)

    def i2repr(self, pkt: Any, x: Any) -> str:
        return NumberField.i2repr(self, pkt, x)

    def any2i(self, pkt: Any, x: Any) -> Any:
        return NumberField.any2i(self, pkt, x)


class FixedBits(Bits):
    """Bits that are always the same in good traffic: ids and reserved bits.

    They are kept after dissection only where they differ, and ``fuzz()`` leaves them alone.
    """

    __slots__: list[str] = []

    def randval(self) -> Any:
        return None


class Reserved(FixedBits):
    """Bits without meaning, written 0."""

    __slots__: list[str] = []

    def __init__(self, name: str, size: int) -> None:
        FixedBits.__init__(self, name, 0, size)


class MessageId(FixedBits):
    """The id in the low five bits of a header."""

    __slots__: list[str] = []

    def __init__(self, name: str, member: Named) -> None:
        FixedBits.__init__(self, name, int(member), 5, enum=type(member))


class AutoBits(Bits, Auto):
    """Bits that say which of some fields is present: the code of the first one that is, else 0."""

    __slots__ = ["codes"]

    def __init__(self, name: str, size: int, codes: Sequence[tuple[str, int]], enum: type[Named] | None = None) -> None:
        self.codes = tuple(codes)
        Bits.__init__(self, name, None, size, enum, closed=enum is not None)

    def auto(self, pkt: Any) -> int:
        for field, code in self.codes:
            if present(pkt.getfieldval(field)):
                return code
        return 0


class AutoFlag(AutoBits):
    """One header bit: whether field ``of`` (or any of several) is present."""

    __slots__: list[str] = []

    def __init__(self, name: str, of: str | tuple[str, ...]) -> None:
        AutoBits.__init__(self, name, 1, [(f, 1) for f in ((of,) if isinstance(of, str) else of)])


class CountBits(Bits, Auto):
    """Bits holding the length of a field less ``bias``."""

    __slots__ = ["bias", "of"]

    def __init__(self, name: str, of: str, size: int, bias: int = 0) -> None:
        self.of, self.bias = of, bias
        Bits.__init__(self, name, None, size)

    def auto(self, pkt: Any) -> int:
        field, value = pkt.getfield_and_val(self.of)
        return field.i2len(pkt, value) - self.bias if present(value) else 0


# --- integers -----------------------------------------------------------------------------------


class UInt(NumberField):
    """An unsigned integer of 1, 2 or 4 bytes, least significant byte first."""

    __slots__ = ["closed", "enum", "missing"]

    def __init__(
        self,
        name: str,
        default: Any,
        size: int = 1,
        enum: type[Named] | None = None,
        closed: bool = False,
        missing: int = 0,
    ) -> None:
        self.enum, self.closed, self.missing = enum, closed, missing
        Field.__init__(self, name, default, {1: "<B", 2: "<H", 4: "<I"}[size])

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, int]:
        if len(s) < self.sz:
            raise WireFault(FaultKind.TRUNCATED, s)
        value = int.from_bytes(s[: self.sz], "little")
        self.check(value, s)
        return s[self.sz :], value

    def i2m(self, pkt: Any, x: Any) -> int:
        return fitting(pkt, self, x, 8 * self.sz)

    def randval(self) -> Any:
        return RandNum(0, (1 << 8 * self.sz) - 1)


class WindowSize(UInt, Auto):
    """A fixed-width count of the bytes that the fields after it take."""

    __slots__: list[str] = []

    def __init__(self, name: str, size: int) -> None:
        UInt.__init__(self, name, None, size)

    def auto(self, pkt: Any) -> int:
        return len(pkt.build_after(self.name))


class VLEField(NumberField):
    """A variable length integer of at most ``bits`` bits (``zN`` in the specification)."""

    __slots__ = ["bits", "closed", "enum", "missing"]

    def __init__(
        self, name: str, default: Any, bits: int = 64, enum: type[Named] | None = None, closed: bool = False
    ) -> None:
        self.bits, self.enum, self.closed, self.missing = bits, enum, closed, 0
        Field.__init__(self, name, default, "<Q")
        self.sz = 1

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, int]:
        value, width = vle_decode(s)
        if value >> self.bits:
            raise WireFault(FaultKind.VLE_OVERFLOW, s)
        self.check(value, s)
        return s[width:], value

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        return s + vle_encode(self.i2m(pkt, val))

    def i2m(self, pkt: Any, x: Any) -> int:
        return x if isinstance(x, VLE) else fitting(pkt, self, x, self.bits)

    def i2len(self, pkt: Any, x: Any) -> int:
        return len(vle_encode(self.i2m(pkt, x)))

    def randval(self) -> Any:
        return RandNum(0, (1 << self.bits) - 1)


class VLELen(VLEField, Auto):
    """The number of bytes of another field; ``most`` is the largest that makes sense."""

    __slots__ = ["most", "of"]

    def __init__(self, name: str, of: str, bits: int = 32, most: int | None = None) -> None:
        self.of, self.most = of, most
        VLEField.__init__(self, name, None, bits)

    def auto(self, pkt: Any) -> int:
        field, value = pkt.getfield_and_val(self.of)
        return int(field.i2len(pkt, value))

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, int]:
        rest, value = VLEField.getfield(self, pkt, s)
        if self.most is not None and value > self.most:
            raise WireFault(FaultKind.BAD_LENGTH, s)
        return rest, value


class VLEWindow(VLEField, Auto):
    """The number of bytes that all fields after it take."""

    __slots__: list[str] = []

    def __init__(self, name: str, bits: int = 32) -> None:
        VLEField.__init__(self, name, None, bits)

    def auto(self, pkt: Any) -> int:
        return len(pkt.build_after(self.name))


class VLECount(VLEField, Auto):
    """The number of elements of a list."""

    __slots__ = ["of"]

    def __init__(self, name: str, of: str, bits: int = 32) -> None:
        self.of = of
        VLEField.__init__(self, name, None, bits)

    def auto(self, pkt: Any) -> int:
        return len(pkt.getfieldval(self.of) or ())

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, int]:
        rest, value = VLEField.getfield(self, pkt, s)
        if value > MAX_ELEMENTS:
            raise WireFault(FaultKind.LIMIT, s)
        return rest, value


# --- bits of a variable length integer ----------------------------------------------------------


class VLEPart(NumberField):
    """Some bits of a variable length integer, least significant first; see ``vle_bits``.

    The first part of an integer that was written too long is a ``VLE`` with the width of the whole.
    """

    __slots__ = ["bits", "closed", "enum", "first", "last", "missing", "shift", "size"]

    def __init__(
        self, name: str, default: Any, size: int, enum: type[Named] | None = None, closed: bool = False
    ) -> None:
        self.size, self.enum, self.closed, self.missing = size, enum, closed, 0
        self.shift, self.first, self.last, self.bits = 0, False, False, 64
        Field.__init__(self, name, default, "<Q")
        self.sz = size / 8  # type: ignore[assignment]

    def getfield(self, pkt: Any, s: Any) -> Any:
        if self.first:
            whole, width = vle_decode(s)
            if whole >> self.bits:
                raise WireFault(FaultKind.VLE_OVERFLOW, s)
            s = s, whole, width
        start, whole, width = s
        value = whole >> self.shift & (1 << self.size) - 1
        self.check(value, start)
        if self.first and isinstance(whole, VLE):
            value = VLE(value, width)
        return (start[width:] if self.last else s), value

    def addfield(self, pkt: Any, s: Any, val: Any) -> Any:
        if self.first:
            s = s, 0, val.width if isinstance(val, VLE) else 0
        start, whole, width = s
        whole |= fitting(pkt, self, val, self.size) << self.shift
        return start + vle_encode(VLE(whole, width)) if self.last else (start, whole, width)

    def randval(self) -> Any:
        return RandNum(0, (1 << min(self.size, 16)) - 1)


class VLEReserved(VLEPart):
    """Bits of an integer without meaning, written 0."""

    __slots__: list[str] = []

    def __init__(self, name: str, size: int) -> None:
        VLEPart.__init__(self, name, 0, size)

    def randval(self) -> Any:
        return None


class VLEFlag(VLEPart, Auto):
    """One bit of a variable length integer: whether field ``of`` is present."""

    __slots__ = ["of"]

    def __init__(self, name: str, of: str) -> None:
        self.of = of
        VLEPart.__init__(self, name, None, 1)

    def auto(self, pkt: Any) -> int:
        return int(present(pkt.getfieldval(self.of)))


def vle_bits(*parts: VLEPart, bits: int = 64) -> list[VLEPart]:
    """Parts that share one variable length integer of ``bits`` bits, least significant first.

    Bits that no part names are an error of the declaration: give them a part of their own, so that
    nothing is lost.
    """
    shift = 0
    for part in parts:
        part.shift, part.bits = shift, bits
        shift += part.size
    if shift != bits:
        raise TypeError(f"{parts[0].name}...: {shift} bits named of {bits}; name the reserved ones as well")
    parts[0].first = parts[-1].last = True
    return list(parts)


# --- bytes, text, ids ---------------------------------------------------------------------------


class BytesOf(Field[Any, bytes]):
    """As many bytes as an expression over earlier fields says."""

    __slots__ = ["length"]

    def __init__(self, name: str, default: Any, length: Expr) -> None:
        self.length = length
        Field.__init__(self, name, default, "<B")

    def take(self, pkt: Any, s: bytes) -> int:
        """How many bytes of ``s`` belong to the field."""
        size = int(self.length(pkt))
        if size > len(s):
            raise WireFault(FaultKind.BAD_LENGTH, s)
        return size

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, Any]:
        size = self.take(pkt, s)
        return s[size:], self.m2i(pkt, s[:size])

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        return s + self.i2m(pkt, val)

    def any2i(self, pkt: Any, x: Any) -> Any:
        if isinstance(x, str):
            return x.encode("utf-8", "surrogateescape")
        return bytes(x) if isinstance(x, (bytearray, memoryview)) else x

    def i2m(self, pkt: Any, x: Any) -> bytes:
        if isinstance(x, VolatileValue):
            x = self.any2i(pkt, x._fix())
        if x is not None and not isinstance(x, bytes):
            raise ValueError(f"{owner_name(pkt, self)}: {x!r} is not bytes")
        return x or b""

    def i2len(self, pkt: Any, x: Any) -> int:
        return len(self.i2m(pkt, x))

    def randval(self) -> Any:
        return RandBin(RandNum(0, 64))


class RestBytes(BytesOf):
    """All bytes that are left in the message, the batch or the extension."""

    __slots__: list[str] = []

    def __init__(self, name: str, default: Any = b"") -> None:
        BytesOf.__init__(self, name, default, From(name))

    def take(self, pkt: Any, s: bytes) -> int:
        return len(s)


class TextOf(BytesOf):
    """Counted text. ``lax`` text may be anything; other text that is not UTF-8 is noted as a fault."""

    __slots__ = ["lax"]

    def __init__(self, name: str, default: Any, length: Expr, lax: bool = False) -> None:
        self.lax = lax
        BytesOf.__init__(self, name, default, length)

    def m2i(self, pkt: Any, x: bytes) -> str:
        try:
            return x.decode()
        except UnicodeDecodeError:
            if not self.lax:
                pkt.note(FaultKind.BAD_UTF8, self.name)
            return text_from_wire(x)

    def any2i(self, pkt: Any, x: Any) -> Any:
        return text_from_wire(bytes(x)) if isinstance(x, (bytes, bytearray, memoryview)) else x

    def i2m(self, pkt: Any, x: Any) -> bytes:
        if isinstance(x, VolatileValue):
            x = self.any2i(pkt, x._fix())
        if x is not None and not isinstance(x, str):
            raise ValueError(f"{owner_name(pkt, self)}: {x!r} is not text")
        return text_to_wire(x) if x else b""

    def randval(self) -> Any:
        return RandString(RandNum(0, 64))


class RestText(TextOf):
    """Text up to the end of the extension, without a length of its own."""

    __slots__: list[str] = []

    def __init__(self, name: str, default: Any = None) -> None:
        TextOf.__init__(self, name, default, From(name))

    def take(self, pkt: Any, s: bytes) -> int:
        return len(s)


class ZidOf(BytesOf):
    """A Zenoh id; takes text (``"a1b2c3"``), a number, or bytes in wire order."""

    __slots__: list[str] = []

    def m2i(self, pkt: Any, x: bytes) -> str:
        return zid_from_wire(x)

    def any2i(self, pkt: Any, x: Any) -> Any:
        if isinstance(x, (bytes, bytearray, memoryview)):
            return zid_from_wire(bytes(x))
        if isinstance(x, int):
            return f"{x:x}"
        return x.lower() if isinstance(x, str) else x

    def i2m(self, pkt: Any, x: Any) -> bytes:
        if isinstance(x, VolatileValue):
            x = x._fix()
        try:
            return zid_to_wire(self.any2i(pkt, x) or "")
        except (ValueError, TypeError):
            raise ValueError(f"{owner_name(pkt, self)}: {x!r} is not an id in hexadecimal") from None

    def i2repr(self, pkt: Any, x: Any) -> str:
        return str(x)

    def randval(self) -> Any:
        return RandNum(1, (1 << 128) - 1)


# --- lists --------------------------------------------------------------------------------------


class CountedText(TextOf):
    """A text with its length in front, as one value: the element of a list of texts."""

    __slots__ = ["bits"]

    def __init__(self, name: str, bits: int) -> None:
        self.bits = bits
        TextOf.__init__(self, name, None, From(name))

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, str]:
        size, width = vle_decode(s)
        if size >> self.bits:
            raise WireFault(FaultKind.VLE_OVERFLOW, s)
        end = width + size
        if end > len(s):
            raise WireFault(FaultKind.BAD_LENGTH, s[width:])
        text = self.m2i(pkt, s[width:end])
        return s[end:], WideText(text, width) if isinstance(size, VLE) else text

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        data = self.i2m(pkt, val)
        fitting(pkt, self, len(data), self.bits)
        width = val.width if isinstance(val, WideText) else 0
        return s + vle_encode(VLE(len(data), width)) + data


class LocatorText(CountedText):
    """An address such as ``tcp/10.0.0.1:7447``; nodes refuse one without protocol, or with a ``#``."""

    __slots__: list[str] = []

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, str]:
        rest, text = CountedText.getfield(self, pkt, s)
        if text.find("/") < 1 or "#" in text:
            raise WireFault(FaultKind.BAD_VALUE, s)
        return rest, text


class Repeat(Field[Any, Any]):
    """A list of numbers or texts; ``element`` is the field of one of them."""

    __slots__ = ["count", "element"]
    islist = 1
    ismutable = True

    def __init__(self, name: str, element: VLEField | CountedText, count: Expr) -> None:
        self.element, self.count = element, count
        element.name = name  # errors name the list
        Field.__init__(self, name, [], "<B")

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        values: list[Any] = []
        try:
            for _ in range(int(self.count(pkt))):
                s, value = self.element.getfield(pkt, s)
                values.append(value)
        except WireFault as fault:
            fault.partial, fault.remain = values, s  # the element that failed is not in the list
            raise
        return s, values

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        for value in val or ():
            s = self.element.addfield(pkt, s, value)
        return s

    def any2i(self, pkt: Any, x: Any) -> Any:
        if x is None or isinstance(x, VolatileValue):
            return x
        items: Iterable[Any] = x if isinstance(x, (list, tuple)) else [x]
        return [self.element.any2i(pkt, item) for item in items]

    def i2repr(self, pkt: Any, x: Any) -> str:
        return repr(x)

    def i2len(self, pkt: Any, x: Any) -> int:
        return len(self.addfield(pkt, b"", x))

    def randval(self) -> Any:
        return None


# --- declarations -------------------------------------------------------------------------------


def opt(condition: Expr, *fields: Any) -> list[Any]:
    """The same condition over consecutive fields: ``*opt(When("N"), a, b)``."""
    return [ConditionalField(f, condition) for f in fields]


def counted(name: str, default: Any = None, bits: int = 32, text: bool = False, lax: bool = False) -> list[Any]:
    """``<u8;zN>``: a length and the bytes (or text), declared once: ``*counted("suffix", bits=16)``."""
    length = From(f"{name}_len")
    body = TextOf(name, default, length, lax) if text else BytesOf(name, default, length)
    return [VLELen(f"{name}_len", name, bits), body]
