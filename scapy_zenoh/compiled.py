"""Fast dissection: each class is read by a function generated once from its description.

Scapy interprets ``fields_desc`` field by field, and slices the bytes for each. The functions made
here read good bytes straight into the same objects. Whatever is out of the ordinary (a fault, an
integer longer than needed, a flag that contradicts the rest) ends in ``Slow``, and the interpreted
path reads that one record again: it alone knows about faults. ``source(cls)`` shows the function.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

from scapy.config import conf
from scapy.packet import NoPayload
from typing_extensions import assert_never

from scapy_zenoh.expr import Binary, Const, Expr, HasExt, Not, Ref
from scapy_zenoh.extension import ExtTable
from scapy_zenoh.message import (
    Family,
    MessageList,
    Record,
    Variants,
    take_padding,
    unknown_message,
)
from scapy_zenoh.primitives import zid_from_wire
from scapy_zenoh.schema import model
from scapy_zenoh.schema.extract import record_of

Reader = Callable[[Any, bytes, int, int], int]  # (empty packet, bytes, position, end) -> position


class Slow(Exception):
    """The bytes are not those of an ordinary good message."""


# --- what generated functions call --------------------------------------------------------------


def vle(b: bytes, p: int) -> tuple[int, int]:
    """The integer at ``p`` whose first byte has its high bit set, and the position after it."""
    value = b[p] & 0x7F
    shift = 7
    while shift < 56:
        p += 1
        byte = b[p]
        if byte < 0x80:
            if not byte:
                raise Slow  # longer than needed
            return value | byte << shift, p + 1
        value |= (byte & 0x7F) << shift
        shift += 7
    byte = b[p + 1]
    if not byte:
        raise Slow
    return value | byte << 56, p + 2


_set = object.__setattr__
_blank_slots = {
    "time": 0.0,
    **dict.fromkeys(
        ["sent_time", "raw_packet_cache", "raw_packet_cache_fields", "wirelen", "direction", "sniffed_on",
         "comments", "process_information", "stop_dissection_after", "_stop", "_ahead", "context"]
    ),
    "original": b"",
    "explicit": 1,
    "payload": NoPayload(),
}  # fmt: skip


def blank_factory(cls: type[Record]) -> Callable[[Any, Any], Any]:
    """A function that makes an empty packet as ``cls(bytes, _internal=1)`` would before it reads."""
    template = cls(b"")
    shared = {
        **_blank_slots,
        "name": template.name,
        "default_fields": template.default_fields,
        "overload_fields": template.overload_fields,
        "fieldtype": template.fieldtype,
        "packetfields": template.packetfields,
    }
    lines = [
        "def blank(parent, under):",
        "    o = new(cls)",
        *(f"    set(o, {slot!r}, {slot})" for slot in shared),
        "    set(o, 'overloaded_fields', {})",
        "    set(o, 'fields', {})",
        "    set(o, 'post_transforms', [])",
        "    set(o, '_faults', [])",
        "    set(o, 'parent', parent)",
        "    set(o, 'underlayer', under)",
        "    return o",
    ]
    space: dict[str, Any] = {**shared, "new": object.__new__, "set": _set, "cls": cls}
    exec("\n".join(lines), space)
    blank: Callable[[Any, Any], Any] = space["blank"]
    return blank


class _PerClass(dict):  # type: ignore[type-arg]
    """Something made once for each class, when it is first needed."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, cls: Any) -> Any:
        self[cls] = made = self.make(cls)
        return made


BLANK = _PerClass(blank_factory)
FILL = _PerClass(lambda cls: _compile(cls))


def record(cls: type[Record], b: bytes, p: int, e: int, parent: Any) -> tuple[Any, int]:
    """A record or extension inside a message; ``Slow`` makes the message slow."""
    o = BLANK[cls](parent, None)
    return o, FILL[cls](o, b, p, e)


def message(cls: type[Record], b: bytes, p: int, e: int, parent: Any, under: Any) -> tuple[Any, int]:
    """A message of a list, or a body; read slowly by itself if need be."""
    o = BLANK[cls](parent, under)
    try:
        return o, FILL[cls](o, b, p, e)
    except (Slow, IndexError, UnicodeDecodeError):
        o = BLANK[cls](parent, under)
        o.dissect_slowly(b[p:e])
        return o, e - len(take_padding(o))


def messages(field: MessageList, b: bytes, p: int, e: int, parent: Any) -> tuple[list[Any], int]:
    """Messages up to ``e``, or to one of another family."""
    out: list[Any] = []
    while p < e:
        header = b[p] & 0x1F
        for family in field.families:
            cls = family.members.get(header)
            if cls is not None:
                break
        else:
            if field.until is not None and header in field.until.members:
                break
            out.append(unknown_message(b[p:e], parent))
            return out, e
        one, p = message(cls, b, p, e, parent, None)
        out.append(one)
    return out, p


def body(family: Family, o: Any, b: bytes, p: int, e: int) -> int:
    """Read the body of ``o`` as its payload."""
    if p >= e:
        raise Slow
    cls = family.members.get(b[p] & 0x1F)
    if cls is None:
        raise Slow
    payload, p = message(cls, b, p, e, None, o)
    _set(o, "payload", payload)
    return p


def extensions(table: ExtTable, o: Any, b: bytes, p: int, e: int) -> tuple[list[Any], int]:
    """A chain of extensions."""
    out: list[Any] = []
    before: set[type] = set()
    while True:
        if p >= e:
            raise Slow
        header = b[p]
        cls = table.pick(header, before)
        if cls is None or not cls.known and header & 0x10 and not table.lenient:
            raise Slow
        ext, p = record(cls, b, p, e, o)
        out.append(ext)
        before.add(cls)
        if header < 0x80:
            return out, p
        del ext.fields["more"]  # the next one shows that it is right


def records(kinds: type[Record] | Variants, count: int, o: Any, b: bytes, p: int, e: int) -> tuple[list[Any], int]:
    """``count`` records."""
    out: list[Any] = []
    for _ in range(count):
        if p >= e:
            raise Slow
        cls = kinds.pick(b[p:e]) if isinstance(kinds, Variants) else kinds
        one, p = record(cls, b, p, e, o)
        out.append(one)
    return out, p


def numbers(bits: int, count: int, b: bytes, p: int, e: int) -> tuple[list[int], int]:
    """``count`` integers."""
    out: list[int] = []
    for _ in range(count):
        if p >= e:
            raise Slow
        value = b[p]
        if value > 127:
            value, p = vle(b, p)
            if value >> bits:
                raise Slow
        else:
            p += 1
        out.append(value)
    return out, p


def texts(form: str, bits: int, count: int, b: bytes, p: int, e: int) -> tuple[list[str], int]:
    """``count`` texts."""
    sizes, out = 0, []
    for _ in range(count):
        (sizes,), p = numbers(bits, 1, b, p, e)
        if p + sizes > e:
            raise Slow
        text = b[p : p + sizes].decode()
        if form == "locator" and (text.find("/") < 1 or "#" in text):
            raise Slow
        out.append(text)
        p += sizes
    return out, p


# --- the generator ------------------------------------------------------------------------------


class _Emitter:
    """Writes the function that reads one record."""

    def __init__(self, cls: type[Record]) -> None:
        self.cls = cls
        self.described = record_of(cls)
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self.fields = {f.name: getattr(f, "fld", f) for f in cls.fields_desc}
        self.conditions = {n: i.when for i in self.described.items for n in _names(i)}

    def emit(self, line: str) -> None:
        self.lines.append("    " + line)

    def source(self) -> str:
        self.lines = [f"def fill(o, b, p, e):  # {self.cls.__name__}", "    f = o.fields"]
        if self.described.window:
            self.emit("outer = e")
        for _, items in groupby(self.described.items, key=lambda item: id(item.when)):
            self.items(list(items))
        self.guards()
        if self.described.window:
            self.emit(f"if {self.windowed()}p != e: raise Slow")
            self.emit("e = outer")
        else:
            self.emit("if p > e: raise Slow")
        if self.cls.body is not None:
            self.space["BODY"] = self.cls.body
            self.emit("p = body(BODY, o, b, p, e)")
        self.emit("return p")
        return "\n".join(self.lines)

    def windowed(self) -> str:
        """A condition in front of what holds only inside a window."""
        when = self.conditions[self.described.window or ""]
        return "" if when is None else f"{self.expr(when)} and "

    def items(self, items: list[model.Item]) -> None:
        """Read consecutive items that share a condition."""
        start, when = len(self.lines), items[0].when
        for item in items:
            self.read(item)
        if when is not None:
            absent = [f"    v_{name} = 0" for item in items for name in _names(item) if name in self.cls.autos]
            read = ["    " + line for line in self.lines[start:]]
            self.lines[start:] = [*absent, f"    if {self.expr(when)}:", *read]

    def read(self, item: model.Item) -> None:
        match item:
            case model.Bits():
                self.bits(item)
            case model.UInt():
                read = "b[p]" if item.size == 1 else f"int.from_bytes(b[p:p + {item.size}], 'little')"
                self.emit(f"v_{item.name} = {read}; p += {item.size}")
                self.closed(item.name, item.enum, item.closed)
                self.keep(item.name)
                self.window(item.name)
            case model.Vle():
                self.vle(item.name, item.bits)
                self.closed(item.name, item.enum, item.closed)
                if item.most is not None:
                    self.emit(f"if v_{item.name} > {item.most}: raise Slow")
                self.keep(item.name)
                self.window(item.name)
            case model.Bytes():
                self.emit(f"q = {'e' if item.length is None else 'p + ' + self.expr(item.length)}")
                self.emit(f"if {'p' if item.length is None else 'q'} > e: raise Slow")
                value = {"zid": "zid(b[p:q])", "bytes": "b[p:q]"}.get(item.form, "b[p:q].decode()")
                self.emit(f"f[{item.name!r}] = {value}; p = q")
            case model.Repeat():
                read = "numbers(" if isinstance(item.element, model.Vle) else f"texts({item.element.form!r}, "
                args = f"{item.element.bits}, {self.expr(item.count)}, b, p, e"
                self.emit(f"f[{item.name!r}], p = {read}{args})")
            case model.Records():
                self.space[f"KINDS_{item.name}"] = self.fields[item.name].kinds
                self.emit(f"f[{item.name!r}], p = records(KINDS_{item.name}, {self.expr(item.count)}, o, b, p, e)")
            case model.Messages():
                self.space[f"FIELD_{item.name}"] = self.fields[item.name]
                self.emit(f"f[{item.name!r}], p = messages(FIELD_{item.name}, b, p, e, o)")
            case model.Exts():
                self.extensions(item)
            case _:
                assert_never(item)

    def bits(self, item: model.Bits) -> None:
        if item.carrier == "byte":
            self.emit("h = b[p]; p += 1")
        else:
            self.vle("", item.bits)
            self.emit("h = v_")
        for part in item.parts:
            value = f"h >> {part.shift}" if part.shift else "h"
            whole = part.size + part.shift == item.bits
            value = f"({value})" if whole else f"({value}) & {(1 << part.size) - 1:#x}"
            if part.fixed is not None:
                if part.name != "mid":
                    self.emit(f"if {value} != {part.fixed}: f[{part.name!r}] = {value}")
                continue
            if part.name == "more":
                self.emit("if h > 127: f['more'] = 1")
                continue
            if part.name in self.cls.autos or part.name in self.referred():
                self.emit(f"v_{part.name} = {value}")
                value = f"v_{part.name}"
            if part.closed and part.enum is not None:
                self.emit(f"if {value} not in {self.allowed(part.enum)}: raise Slow")
            if part.name not in self.cls.autos:
                self.emit(f"f[{part.name!r}] = {value}")

    def vle(self, name: str, bits: int) -> None:
        self.emit(f"v_{name} = b[p]")
        self.emit(f"if v_{name} > 127:")
        self.emit(f"    v_{name}, p = vle(b, p)")
        if bits < 64:
            self.emit(f"    if v_{name} >> {bits}: raise Slow")
        self.emit("else: p += 1")

    def closed(self, name: str, enum: model.EnumDef | None, closed: bool) -> None:
        if closed and enum is not None:
            self.emit(f"if v_{name} not in {self.allowed(enum)}: raise Slow")

    def allowed(self, enum: model.EnumDef) -> str:
        self.space[f"ENUM_{enum.name}"] = frozenset(number for number, _ in enum.members)
        return f"ENUM_{enum.name}"

    def keep(self, name: str) -> None:
        if name not in self.cls.autos:
            self.emit(f"f[{name!r}] = v_{name}")

    def window(self, name: str) -> None:
        if name == self.described.window:
            self.emit(f"if p + v_{name} > e: raise Slow")
            self.emit(f"e = p + v_{name}")

    def extensions(self, item: model.Exts) -> None:
        cases = self.fields[item.name].cases
        choice = ""
        for i, (when, table) in enumerate(cases):
            self.space[f"TABLE_{item.name}_{i}"] = table
            name = f"TABLE_{item.name}_{i}"
            choice += name if when is None else f"{name} if {self.expr(when)} else "
        self.emit(f"f[{item.name!r}], p = extensions({choice}, o, b, p, e)")

    def guards(self) -> None:
        """Flags that contradict what is there are kept, which only the slow path does."""
        for item in self.described.items:
            for part in item.parts if isinstance(item, model.Bits) else ():
                if part.counts and self.conditions[part.counts] is not None:
                    self.emit(f"if v_{part.name} and {part.counts!r} not in f: raise Slow")
                if part.presence and not self.follows(part):
                    expected = "0"
                    for field, code in reversed(part.presence):
                        expected = f"{code} if f.get({field!r}) not in (None, []) else {expected}"
                    self.emit(f"if v_{part.name} != ({expected}): raise Slow")

    def follows(self, part: model.Part) -> bool:
        """True when a flag cannot contradict: it alone decides whether its first field is read."""
        first, code = part.presence[0]
        when = self.conditions[first]
        lists = isinstance(self.item_of(first), (model.Repeat, model.Records))
        return code == 1 and part.size == 1 and isinstance(when, Ref) and when.name == part.name and not lists

    def item_of(self, name: str) -> model.Item:
        return next(i for i in self.described.items if name in _names(i))

    def referred(self) -> set[str]:
        """Names that some condition or length needs."""
        found: set[str] = set()
        for item in self.described.items:
            exprs = [item.when, getattr(item, "length", None), getattr(item, "count", None)]
            exprs += [when for when, _ in item.cases] if isinstance(item, model.Exts) else []
            for expr in exprs:
                found |= _refs(expr)
        return found

    def expr(self, expr: Expr) -> str:
        match expr:
            case Ref():
                return f"v_{expr.name}"
            case Const():
                return str(int(expr.value))
            case Not():
                return f"(not {self.expr(expr.arg)})"
            case Binary():
                return f"({self.expr(expr.left)} {expr.op} {self.expr(expr.right)})"
            case HasExt():
                self.space[expr.ext.__name__] = expr.ext
                name, chain = expr.ext.__name__, repr(expr.chain)
                return f"({chain} in f and any(isinstance(x, {name}) for x in f[{chain}]))"
        raise TypeError(f"{self.cls.__name__}: {expr!r} cannot be compiled; declare the class as interpreted")


def _names(item: model.Item) -> list[str]:
    return [p.name for p in item.parts] if isinstance(item, model.Bits) else [item.name]


def _refs(expr: Expr | None) -> set[str]:
    match expr:
        case Ref():
            return {expr.name}
        case Not():
            return _refs(expr.arg)
        case Binary():
            return _refs(expr.left) | _refs(expr.right)
    return set()


def source(cls: type[Record]) -> str:
    """The generated function that reads ``cls``."""
    return _Emitter(cls).source()


def _compile(cls: type[Record]) -> Reader:
    if cls.interpreted:
        return _never_fast
    emitter = _Emitter(cls)
    text = emitter.source()
    space: dict[str, Any] = {
        "Slow": Slow, "vle": vle, "zid": zid_from_wire, "numbers": numbers, "texts": texts, "records": records,
        "messages": messages, "extensions": extensions, "body": body, **emitter.space,
    }  # fmt: skip
    exec(compile(text, f"<reader of {cls.__name__}>", "exec"), space)
    fill: Reader = space["fill"]
    return fill


def _never_fast(o: Any, b: bytes, p: int, e: int) -> int:
    raise Slow


def reader(cls: type[Record]) -> Callable[[Any, bytes], bool]:
    """A function that reads bytes into an empty packet, or leaves it as it was and says False."""
    fill = FILL[cls]

    def read(o: Any, data: bytes) -> bool:
        try:
            end = fill(o, data, 0, len(data))
        except (Slow, IndexError, UnicodeDecodeError):
            o.fields.clear()
            _set(o, "payload", NoPayload())
            return False
        _set(o, "explicit", 1)
        if end < len(data):
            o.add_payload(conf.padding_layer(data[end:], _internal=1, _underlayer=o))
        return True

    return read
