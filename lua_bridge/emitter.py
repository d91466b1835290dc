"""Records of the schema as Lua: the fields Wireshark is told about, and a function that reads each record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from typing_extensions import assert_never

from lua_bridge.expressions import Expressions
from lua_bridge.labels import label
from scapy_zenoh.schema.model import (
    Bits,
    Bytes,
    Choice,
    EnumDef,
    Exts,
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
from scapy_zenoh.schema.names import filter_of, record_filter

_FAMILIES_OF_ROWS = ("scouting", "transport", "network")


def quoted(text: str) -> str:
    """A Lua string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


# --- enumerations and fields --------------------------------------------------------------------


def enums(schema: Schema) -> Iterator[str]:
    """A table of names for every enumeration."""
    for enum in schema.enums():
        members = [f"[{number}] = {quoted(label)}" for number, label in enum.members]
        yield from _wrapped(f"N.{enum.name} = {{", members)


def _wrapped(head: str, members: list[str]) -> Iterator[str]:
    """A table in lines of readable length."""
    line = head
    for i, member in enumerate(members):
        text = member + (", " if i + 1 < len(members) else "}")
        if len(line) + len(text) > 120:
            yield line.rstrip()
            line = "  "
        line += text
    yield line if members else head + "}"


def fields(schema: Schema) -> Iterator[str]:
    """One line per field: its filter, what people read, its type."""
    known: set[str] = set()
    for record in schema.records.values():
        own = f"record_field({quoted(record_filter(record.name))}, {quoted(title(record))})"
        for line in (own, *(line for item in record.items for line in _item_fields(record, item))):
            if line not in known:
                known.add(line)
                yield line


def title(record: Record) -> str:
    """What a record is called in the tree."""
    text = record.title.removeprefix("Zenoh ")
    if record.identity is None:
        return text
    return text if text.endswith("extension") else f"{text} extension"


def _item_fields(record: Record, item: Item) -> Iterator[str]:
    match item:
        case Bits():
            for part in item.parts:
                yield _part_field(record, item, part)
        case UInt():
            yield _field(record, item.name, f"uint{8 * item.size}", item.enum)
        case Vle():
            kind = "time" if item.time else "uint32" if item.bits <= 32 else "uint64"
            yield _field(record, item.name, kind, item.enum)
        case Bytes():
            yield _field(record, item.name, "bytes" if item.form == "bytes" else "text")
        case Repeat():
            wide = isinstance(item.element, Vle) and item.element.bits > 32
            kind = "text" if isinstance(item.element, Text) else "uint64" if wide else "uint32"
            yield _field(record, item.name, kind)
        case Records() | Messages() | Exts():
            pass  # what is inside has fields of its own
        case _:
            assert_never(item)


def _field(record: Record, name: str, kind: str, enum: EnumDef | None = None, part: Part | None = None) -> str:
    more = f", N.{enum.name}" if enum is not None else ""
    return (
        f"field({quoted(filter_of(record.name, name))}, {quoted(label(record.name, name, part))}, {quoted(kind)}{more})"
    )


def _part_field(record: Record, item: Bits, part: Part) -> str:
    if item.carrier == "vle":
        kind = "flag" if part.size == 1 else "uint32" if part.size <= 32 else "uint64"
        return _field(record, part.name, kind, part.enum, part)
    mask = ((1 << part.size) - 1) << part.shift
    names = f", N.{part.enum.name}" if part.enum is not None else ""
    where = f"{quoted(filter_of(record.name, part.name))}, {quoted(label(record.name, part.name, part))}"
    return f"bit_field({where}, {mask:#04x}{names})"


# --- readers ------------------------------------------------------------------------------------


def reader(schema: Schema, record: Record) -> list[str]:
    """The function that reads a record."""
    return _Reader(schema, record).lines()


class _Reader:
    def __init__(self, schema: Schema, record: Record) -> None:
        self.schema, self.record = schema, record
        always = frozenset(n for i in record.items if i.when is None for n in _names(i))
        self.expr = Expressions(schema, record, always)
        self.windowed = False
        self.name = record_filter(record.name)
        self.out: list[str] = []

    def lines(self) -> list[str]:
        record = self.record
        self.emit(f"-- {title(record)}: {record.doc.splitlines()[0]}", 0)
        self.emit(f"R[{quoted(self.name)}] = function(p, e, t{'' if self._opens() else ', up'})", 0)
        self.emit("local start = p")
        if self._carriers():
            self.emit(f"local {', '.join(self._carriers())}")
        self.emit(f"local item = subtree(t, F[{quoted(self.name)}], p, e)")
        self.emit(self._begin())
        assert not (record.window and record.body), f"{record.name}: a window ends what is read, a body goes on"
        if record.identity is not None:
            self.emit("p = extension_header(p, item)")
        told = False
        for _, group in groupby(self._items(), key=lambda item: id(item.when)):
            items = list(group)
            condition = "" if items[0].when is None else self.expr.condition(items[0].when)
            depth = 1 + bool(condition)
            if condition:
                self.emit(f"if {condition} then")
            for item in items:
                if isinstance(item, Messages):
                    self.emit("told(v, p)", depth)
                    told = True
                self.item(item, depth)
            if condition:
                self.emit("end")
        if record.window:
            condition = "" if self._window().when is None else f"if v.{record.window} then "
            self.emit(f"{condition}filled(p, e){' end' if condition else ''}")
        if record.body:
            self.emit(f"p = body(p, e, item, FAMILY[{quoted(record.body)}], v)")
        self.emit("if item then set_len(item, p - start) end")
        if self._opens() and not told:
            self.emit("told(v, p)")
        self.emit("return p")
        self.emit("end", 0)
        return self.out

    def emit(self, line: str, depth: int = 1) -> None:
        self.out.append("  " * depth + line)

    def _opens(self) -> bool:
        """True for what is a row: the messages of three families."""
        return self.record.family in _FAMILIES_OF_ROWS

    def _begin(self) -> str:
        record = f"record = {quoted(self.name)}"
        if self._opens():
            return f"local v = open({{{self._room(record, 'item = item', 'start = start')}}})"
        if self.record.identity is not None:
            return f"local v = {{{self._room()}}}; up[{quoted(self.name)}] = v"
        if self.record.family is not None:
            return f"local v = {{{self._room(record, 'item = item')}}}; up.body = v"
        return f"local v = {{{self._room(record)}}}; up[#up + 1] = v"

    def _room(self, *known: str) -> str:
        """The fields of a table that has room for all of them from the start: growing it costs more than filling it."""
        names = [n for i in self._items() if i.when is None and not isinstance(i, Messages) for n in _names(i)]
        room = [*known, *(f"{name} = nil" for name in names if name not in ("mid", "X", "reserved"))]
        while len(text := ", ".join(room)) > 80:
            room.pop()
        return text

    def _items(self) -> tuple[Item, ...]:
        """What is read here; the header of extensions is read in one place."""
        return self.record.items[self.record.identity is not None :]

    def _carriers(self) -> list[str]:
        """The variables that hold what several parts share."""
        carriers = {item.carrier for item in self._items() if isinstance(item, Bits)}
        return ["h"] * ("byte" in carriers) + ["lo", "hi"] * ("vle" in carriers) + ["r"] * bool(carriers)

    def _window(self) -> Item:
        return next(item for item in self.record.items if self.record.window in _names(item))

    def item(self, item: Item, depth: int) -> None:
        short = ', "bad_length"' if self.windowed else ""
        match item:
            case Bits():
                self.bits(item, depth, short)
            case UInt():
                closed = f", N.{item.enum.name}, {self._refusal(item.enum)}" if item.closed and item.enum else ""
                args = f"{self._field(item.name)}, {item.size}{short or (', nil' if closed else '')}{closed}"
                self.emit(f"p, v.{item.name} = uint(p, e, item, {args})", depth)
            case Vle():
                self.vle(item, depth, short)
            case Bytes():
                self.bytes(item, depth)
            case Repeat():
                count, field = self.expr.number(item.count), self._field(item.name)
                if isinstance(item.element, Text):
                    args = f"{item.element.bits}, {quoted(item.element.form)}"
                    self.emit(f"p, v.{item.name} = texts(p, e, item, {field}, {count}, {args}{short})", depth)
                else:
                    many = "numbers64" if item.element.bits > 32 else "numbers"
                    args = f"{count}, {item.element.bits}"
                    self.emit(f"p, v.{item.name} = {many}(p, e, item, {field}, {args}{short})", depth)
            case Records():
                self.emit(f"v.{item.name} = {{}}", depth)
                pick = f"C.{item.of}" if item.of in self.schema.choices else f"R[{quoted(record_filter(item.of))}]"
                read = "choices" if item.of in self.schema.choices else "records"
                args = f"{self.expr.number(item.count)}, {pick}, v.{item.name}{short}"
                self.emit(f"p = {read}(p, e, item, {args})", depth)
            case Messages():
                until = f", FAMILY.{item.until}" if item.until else ""
                self.emit(f"p = messages(p, e, item, FAMILY.{item.families[0]}{until})", depth)
            case Exts():
                table = ""
                for number, (when, _) in enumerate(item.cases, 1):
                    name = f"X[{quoted(f'{self.name}.{number}')}]"
                    table += name if when is None else f"({self.expr.condition(when)}) and {name} or "
                self.emit(f"v.{item.name} = {{}}; p = extensions(p, e, item, {table}, v.{item.name})", depth)
            case _:
                assert_never(item)
        if self.record.window in _names(item):
            self.windowed = True
            self.emit(f"e = window(p, e, v.{self.record.window})", depth)

    def _field(self, name: str) -> str:
        return f"F[{quoted(filter_of(self.record.name, name))}]"

    def bits(self, item: Bits, depth: int, short: str) -> None:
        if item.carrier == "byte":
            self.emit(f"h, r = octet(p, e, item{short})", depth)
        else:
            self.emit(f"r, lo, hi = vle_bits(p, e, item, {item.bits}{short})", depth)
        for part in item.parts:
            if part.closed and part.enum is not None and len(part.enum.members) < 1 << part.size:
                self.emit(f"one_of(N.{part.enum.name}, {_byte_part(part)}, p, {self._refusal(part.enum)})", depth)
        for part in item.parts:
            self.part(item, part, depth)
        self.emit("p = p + 1" if item.carrier == "byte" else "p = p + r", depth)

    def part(self, item: Bits, part: Part, depth: int) -> None:
        field = self._field(part.name)
        if item.carrier == "byte":
            value = _byte_part(part)
            if part.fixed is None:
                self.emit(f"v.{part.name} = {value}; if r then add(item, {field}, r) end", depth)
            elif part.fixed == 0 and part.name != "mid":
                self.emit(f"if r and {value} ~= 0 then add(item, {field}, r) end", depth)
            else:
                self.emit(f"if r then add(item, {field}, r) end", depth)
            return
        if part.size > 32:
            assert part.fixed is not None
            self.emit(f"unused(lo, hi, {part.shift}, p, r, item, {field})", depth)
            return
        value = f"part(lo, hi, {part.shift}, {part.size})"
        shown = f"v.{part.name}" + (" ~= 0" if part.size == 1 and part.enum is None else "")
        adding = f"if item then add(item, {field}, range(TVB, p, r), {shown}) end"
        if part.fixed is not None:
            self.emit(f"unused32({value}, p, r, item, {field})", depth)
        else:
            self.emit(f"v.{part.name} = {value}; {adding}", depth)

    def vle(self, item: Vle, depth: int, short: str) -> None:
        if item.closed or item.most is not None:  # refused before it is shown
            self.emit(f"check(p, e, {item.bits}, {self._limit(item)}{short})", depth)
        read = "time" if item.time else "vle64" if item.bits > 32 else "vle"
        bits = "" if item.bits > 32 else f", {item.bits}"
        self.emit(f"p, v.{item.name} = {read}(p, e, item, {self._field(item.name)}{bits}{short})", depth)

    def _limit(self, item: Vle) -> str:
        if item.most is not None and item.beyond is not None:
            return f"nil, {item.most}, {quoted(str(item.beyond))}"
        assert item.enum is not None
        return f"N.{item.enum.name}, nil, {self._refusal(item.enum)}"

    def _refusal(self, enum: EnumDef) -> str:
        return quoted("reserved_encoding" if enum.name == "ExtEncoding" else "bad_value")

    def bytes(self, item: Bytes, depth: int) -> None:
        length = "e - p" if item.length is None else self.expr.number(item.length)
        field = self._field(item.name)
        match item.form:
            case "bytes":
                self.emit(f"v.{item.name} = p; p = bytes(p, e, item, {field}, {length}); v.{item.name}_end = p", depth)
            case "zid":
                self.emit(f"p, v.{item.name} = zid(p, e, item, {field}, {length})", depth)
            case "text" | "lax" | "locator":
                lax = ", true" if item.form == "lax" else ""
                self.emit(f"p, v.{item.name} = text(p, e, item, {field}, {length}{lax})", depth)
            case _:
                assert_never(item.form)


def _byte_part(part: Part) -> str:
    shifted = f"floor(h / {1 << part.shift})" if part.shift else "h"
    return shifted if part.shift + part.size == 8 else f"{shifted} % {1 << part.size}"


def _names(item: Item) -> tuple[str, ...]:
    return tuple(p.name for p in item.parts) if isinstance(item, Bits) else (item.name,)


# --- what joins records -------------------------------------------------------------------------


def families(schema: Schema) -> Iterator[str]:
    """Id -> reader, for every family."""
    for family in schema.families.values():
        members = [f"[{mid}] = R[{quoted(record_filter(name))}]" for mid, name in family.members]
        yield from _wrapped(f"FAMILY[{quoted(family.name)}] = {{", members)


def extension_tables(schema: Schema) -> Iterator[str]:
    """What is known of each extension, and the tables of those that a message knows."""
    for record in schema.records.values():
        if record.identity is not None:
            more = [f"after = {quoted(record_filter(record.after))}"] if record.after else []
            more += ["lenient = true"] if record.lenient else []
            yield f"extension({quoted(record_filter(record.name))}, {record.identity:#04x}{_options(more)})"
    for record in schema.records.values():
        for item in record.items:
            if isinstance(item, Exts):
                for number, (_, table) in enumerate(item.cases, 1):
                    known = [quoted(record_filter(name)) for name in table.extensions]
                    name = quoted(f"{record_filter(record.name)}.{number}")
                    *lines, last = _wrapped(f"X[{name}] = extension_table({{", known)
                    yield from [*lines, last + (", true)" if table.lenient else ")")]


def _options(parts: list[str]) -> str:
    return f", {{{', '.join(parts)}}}" if parts else ""


def choice(schema: Schema, chosen: Choice) -> list[str]:
    """The function that looks at the bytes and picks a reader."""
    expr = Expressions(schema, None)
    lines = [f"C.{chosen.name} = function(p, e)"]
    for guard, name in chosen.cases:
        lines.append(f"  if {expr.condition(guard)} then return R[{quoted(record_filter(name))}] end")
    return [*lines, f"  return R[{quoted(record_filter(chosen.otherwise))}]", "end"]
