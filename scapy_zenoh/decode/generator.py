"""Writes the decoder, from the schema: ``python -m scapy_zenoh.decode.generator > scapy_zenoh/decode/_generated.py``.

One function reads one record: a message, a body, an extension, or a group of fields inside one. It checks
every field as the class says and leaves the few that a row needs in their slots (``schema/slots.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from typing_extensions import assert_never

from scapy_zenoh.expr import Binary, Const, Expr, HasExt, Not, PeekByte, PeekVles, Present, Readable, Ref
from scapy_zenoh.schema.extract import schema
from scapy_zenoh.schema.model import (
    Bits,
    Bytes,
    Choice,
    EnumDef,
    Exts,
    ExtTableDef,
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
from scapy_zenoh.schema.names import record_filter
from scapy_zenoh.schema.slots import NUMBERS, SPANS

#: Families whose messages are rows of their own.
ROWS = ("scouting", "transport", "network")

#: Messages that a link in use rarely carries.
SELDOM = ("ZenohInit", "ZenohOpen", "ZenohClose", "ZenohJoin", "ZenohTransportOam", "ZenohInterest", "ZenohNetworkOam")

_HEAD = '''\
"""Readers of all messages, generated from the classes by scapy_zenoh.decode.generator; do not edit."""

# mypy: ignore-errors
# ruff: noqa

from typing import Any

from scapy_zenoh.decode.runtime import (
    BAD_LENGTH, BAD_UTF8, BAD_VALUE, BODY, BODY_MISSING, CHAIN_CUT, EXTENSIONS, FAULT, FAULT_OFFSET, KIND, LENGTHS,
    LIMIT, PRESENT, RESERVED_ENCODING, STOP, STRIDE, TRUNCATED, UNKNOWN_MESSAGE, VALUES,
    clear, is_utf8, little, note, numbers, peek_byte, peek_vles, short, stop, texts, unknown_extension, vle,
)
'''


def source(described: Schema | None = None) -> str:
    """The whole module."""
    return "\n".join(_Module(described or schema()).lines()) + "\n"


def function_of(record: str) -> str:
    """``ZenohExtQoS`` -> ``read_ext_qos``."""
    return "read_" + record_filter(record).replace(".", "_")


def constant_of(record: str) -> str:
    """``ZenohExtQoS`` -> ``EXT_QOS``."""
    return record_filter(record).replace(".", "_").upper()


class _Module:
    """What the functions share: numbers of slots, kinds, bodies and extensions, and the tables of extensions."""

    def __init__(self, described: Schema) -> None:
        self.schema = described
        self.slot_of = {place: name for table in (SPANS, NUMBERS) for name, places in table.items() for place in places}
        self.kinds = [name for family in ROWS for _, name in described.families[family].members]
        bodies = {record.body for record in described.records.values() if record.body}
        members = {name for family in bodies for _, name in described.families[family].members}
        self.bodies = [name for name in described.records if name in members]
        self.tables: dict[ExtTableDef, str] = {}
        self.unmarked: set[str] = set()  # tables inside extensions, of which rows do not tell
        for record in described.records.values():
            for item in record.items:
                for number, (_, table) in enumerate(item.cases if isinstance(item, Exts) else ()):
                    self._table(record, table, number)
        self.extensions = list(
            dict.fromkeys(
                name for table, known in self.tables.items() if known not in self.unmarked for name in table.extensions
            )
        )
        self._check()

    def _table(self, record: Record, table: ExtTableDef, number: int) -> None:
        if table not in self.tables:
            self.tables[table] = f"chain_{constant_of(record.name).lower()}" + (f"_{number}" if number else "")
            if record.family is None:
                self.unmarked.add(self.tables[table])
        elif (record.family is None) != (self.tables[table] in self.unmarked):
            raise TypeError(f"{record.name}: a table of extensions for messages and for extensions alike")

    def _check(self) -> None:
        fields = {f"{r.name}.{n}" for r in self.schema.records.values() for i in r.items for n in _names(i)}
        for place in self.slot_of:
            if place not in fields:
                raise TypeError(f"{place}: there is no such field")

    def lines(self) -> Iterator[str]:
        yield _HEAD
        yield from self._constants()
        done: set[str] = set()
        for name in self.schema.records:
            yield from self._with_callees(name, done)
        for name in ROWS:
            yield from self._family(name)
        for name in ("transport", "network"):
            yield from self._steady(name)

    def _with_callees(self, name: str, done: set[str]) -> Iterator[str]:
        """A reader, after those it calls, as the compiler wants it."""
        if name in done:
            return
        done.add(name)
        record = self.schema.records[name]
        for item in record.items:
            if isinstance(item, Exts):
                for _, table in item.cases:
                    for extension in table.extensions:
                        yield from self._with_callees(extension, done)
                    if _is_new(self.tables[table], done):
                        yield from self._chain(table)
            elif isinstance(item, Records):
                choice = self.schema.choices.get(item.of)
                for inner in [item.of] if choice is None else [*(n for _, n in choice.cases), choice.otherwise]:
                    yield from self._with_callees(inner, done)
                if choice is not None and _is_new(f"choice {choice.name}", done):
                    yield from self._choice(choice)
        if record.body is not None:
            for _, body in self.schema.families[record.body].members:
                yield from self._with_callees(body, done)
            if _is_new(f"family {record.body}", done):
                yield from self._family(record.body)
        yield from _Reader(self, record).lines()

    def _constants(self) -> Iterator[str]:
        yield "# Slots: their numbers, where a row keeps them, and the bits that say so. Spans come first."
        for number, name in enumerate((*SPANS, *NUMBERS)):
            length = (f"LEN_{name.upper()}, ", f"LENGTHS + {number}, ") if name in SPANS else ("", "")
            names = f"{name.upper()}, AT_{name.upper()}, {length[0]}HAS_{name.upper()}"
            yield f"{names} = {number}, VALUES + {number}, {length[1]}1 << {number}"
        yield ""
        yield "#: Messages, as KIND says them."
        yield from _listed("KINDS", ["unknown", *(record_filter(name) for name in self.kinds)])
        yield ""
        yield "#: Bodies, as BODY says them."
        yield from _listed("BODIES", ["", *(record_filter(name) for name in self.bodies)])
        yield ""
        yield "# Extensions that messages know: one bit each."
        for number, name in enumerate(self.extensions):
            yield f"{constant_of(name)} = 1 << {number}"
        yield ""

    # -- what joins records --

    def _chain(self, table: ExtTableDef) -> Iterator[str]:
        marked = self.tables[table] not in self.unmarked
        yield ""
        yield ""
        yield f"def {self.tables[table]}(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:"
        yield "    while True:"
        yield "        if p >= e: return stop(r, o, CHAIN_CUT, p, start)"
        yield "        h = b[p] + 0"
        branch = "if"
        known = [self.schema.records[name] for name in table.extensions]
        for extension in sorted(known, key=lambda record: record.after is None):  # the more particular first
            after = f" and r[o + EXTENSIONS] & {constant_of(extension.after)} != 0" if extension.after else ""
            yield f"        {branch} h & 0x7F == {extension.identity:#04x}{after}:"
            yield from self._known(extension, marked)
            branch = "elif"
        unknown = f"unknown_extension(b, p, e, r, o, {marked}, {not table.lenient})"
        reserved = "return stop(r, o, RESERVED_ENCODING, p, start)"
        if known:
            yield f"        elif h & 0x60 == 0x60: {reserved}"
            yield f"        else: p = {unknown}"
        else:
            yield f"        if h & 0x60 == 0x60: {reserved}"
            yield f"        p = {unknown}"
        yield "        if p < 0: return p"
        yield "        if h < 128: return p"

    def _known(self, extension: Record, marked: bool) -> Iterator[str]:
        bit = f"r[o + EXTENSIONS] |= {constant_of(extension.name)}"
        read = f"{function_of(extension.name)}(b, p, e, r, o)"
        if not extension.lenient:
            if marked:
                yield f"            {bit}"
            slots = [
                self.slot_of[f"{extension.name}.{name}"].upper()
                for item in extension.items
                for name in _names(item)
                if f"{extension.name}.{name}" in self.slot_of
            ]
            if marked and slots:  # the last one of its kind counts
                yield f"            r[o + PRESENT] &= ~({' | '.join(f'HAS_{slot}' for slot in slots)})"
            yield f"            p = {read}"
            return
        yield "            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]"
        yield f"            q = {read}"
        yield "            if q < 0:  # nodes pass it on unread: what cannot be read is no fault"
        yield "                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1"
        yield f"                q = unknown_extension(b, p, e, r, o, {marked}, False)"
        if marked:
            yield f"            else: {bit}"
        yield "            p = q"

    def _choice(self, choice: Choice) -> Iterator[str]:
        yield ""
        yield ""
        yield f"def choice_{choice.name}(b: Any, p: int, e: int, r: Any, o: int) -> int:"
        for guard, name in choice.cases:
            yield f"    if {_condition(guard)}: return {function_of(name)}(b, p, e, r, o)"
        yield f"    return {function_of(choice.otherwise)}(b, p, e, r, o)"

    def _family(self, name: str) -> Iterator[str]:
        family = self.schema.families[name]
        yield ""
        yield ""
        yield f"def family_{name.replace(' ', '_')}(b: Any, p: int, e: int, r: Any, o: int) -> int:"
        if name in ROWS:
            yield '    """Read the message at ``p`` into a row; -2 when no message has this id."""'
        yield "    h = b[p] & 0x1F"
        for mid, record in family.members:
            kind = f"r[o + KIND] = {self.kinds.index(record) + 1}; " if name in ROWS else ""
            yield f"    if h == {mid:#04x}: {kind}return {function_of(record)}(b, p, e, r, o)"
        yield "    return -2"

    def _steady(self, name: str) -> Iterator[str]:
        yield ""
        yield ""
        yield f"def steady_{name}(b: Any, p: int, e: int, r: Any, o: int) -> int:"
        yield '    """The same without messages that links rarely carry, which are -3: they take long to compile."""'
        yield "    h = b[p] & 0x1F"
        for mid, record in self.schema.families[name].members:
            read = f"r[o + KIND] = {self.kinds.index(record) + 1}; return {function_of(record)}(b, p, e, r, o)"
            yield f"    if h == {mid:#04x}: " + ("return -3" if record in SELDOM else read)
        yield "    return -2"


def _is_new(key: str, done: set[str]) -> bool:
    fresh = key not in done
    done.add(key)
    return fresh


class _Reader:
    """Writes the function that reads one record."""

    def __init__(self, module: _Module, record: Record) -> None:
        self.module, self.record = module, record
        self.inside = False  # behind the count of a window
        self.out: list[str] = []
        self.needed = _referred(record)

    def lines(self) -> list[str]:
        record = self.record
        for item in record.items:
            for expr in _parts_of(item.when):
                if isinstance(expr, Readable):
                    self._readable(expr.records)
        self.emit("", 0)
        self.emit("", 0)
        self.emit(f"def {function_of(record.name)}(b: Any, p: int, e: int, r: Any, o: int) -> int:", 0)
        self.emit(f'"""{record.title}: {record.doc.splitlines()[0]}"""')
        self.emit("start = p")
        if record.name in self.module.bodies:
            self.emit(f"r[o + BODY] = r[o + BODY] << 6 | {self.module.bodies.index(record.name) + 1}")
        absent = [f"v_{n}" for i in self._items() if i.when is not None for n in _names(i) if n in self.needed]
        if absent:
            self.emit(" = ".join(absent) + " = 0")
        if record.window:
            self.emit("outer, inside = e, False")
        if record.identity is not None:
            self.emit("p += 1")
        for _, group in groupby(self._items(), key=lambda item: id(item.when)):
            items = list(group)
            depth = 1
            if items[0].when is not None:
                self.emit(f"if {_condition(items[0].when)}:")
                depth = 2
            for item in items:
                self.item(item, depth)
        if record.window:
            self.emit("if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)")
            self.emit("e = outer")
        if record.body:
            self.emit("if p >= e: return stop(r, o, BODY_MISSING, p, start)")
            self.emit(f"q = family_{record.body.replace(' ', '_')}(b, p, e, r, o)")
            self.emit("return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q")
        else:
            self.emit("return p")
        return self.out

    def _readable(self, name: str) -> None:
        """The function that says whether the rest is the list ``name``; it reads into a row of its own."""
        counter = next(i for i in self.record.items if isinstance(i, Vle) and i.counts == name)
        records = next(i for i in self.record.items if isinstance(i, Records) and i.name == name)
        self.emit("", 0)
        self.emit("", 0)
        self.emit(f"def readable_{name}(b: Any, p: int, e: int, r: Any, o: int) -> bool:", 0)
        self.emit(f"count, p = vle(b, p, e, {counter.bits})")
        self.emit(f"if p < 0 or count > {counter.most}: return False")
        self.emit("for _ in range(count):")
        self.emit("if p >= e: return False", 2)
        self.emit("clear(r, o, p)", 2)
        self.emit(f"p = {function_of(records.of)}(b, p, e, r, o)", 2)
        self.emit("if p < 0 or r[o + FAULT] != 0: return False", 2)
        self.emit("return p == e")

    def emit(self, line: str, depth: int = 1) -> None:
        self.out.append("    " * depth + line if line else "")

    def _items(self) -> tuple[Item, ...]:
        """What is read here; the header of an extension is known already."""
        return self.record.items[self.record.identity is not None :]

    def stop(self, kind: str) -> str:
        return f"return stop(r, o, {kind}, p, start)"

    @property
    def cut(self) -> str:
        """The fault of bytes that end too early."""
        return "BAD_LENGTH" if self.inside else "TRUNCATED"

    def item(self, item: Item, depth: int) -> None:
        match item:
            case Bits():
                self.bits(item, depth)
            case UInt():
                self.emit(f"if p + {item.size} > e: {self.stop(self.cut)}", depth)
                read = "b[p] + 0" if item.size == 1 else f"little(b, p, {item.size})"
                self.emit(f"v_{item.name} = {read}", depth)
                self.closed(f"v_{item.name}", item.enum, item.closed, depth)
                self.emit(f"p += {item.size}", depth)
                self.keep(item.name, f"v_{item.name}", depth)
            case Vle():
                self.number(f"v_{item.name}", item.bits, depth)
                self.closed(f"v_{item.name}", item.enum, item.closed, depth)
                if item.most is not None and item.beyond is not None:
                    self.emit(f"if v_{item.name} > {item.most}: {self.stop(item.beyond.name)}", depth)
                self.emit("p = q", depth)
                self.keep(item.name, f"v_{item.name}", depth)
            case Bytes():
                self.bytes(item, depth)
            case Repeat():
                self.repeat(item, depth)
            case Records():
                self.records(item, depth)
            case Messages():
                pass  # those are rows of their own
            case Exts():
                self.extensions(item, depth)
            case _:
                assert_never(item)
        if self.record.window in _names(item):
            self.emit(f"if v_{self.record.window} > e - p: {self.stop('BAD_LENGTH')}", depth)
            self.emit(f"e = p + v_{self.record.window}", depth)
            self.emit("inside = True", depth)
            self.inside = True

    def number(self, into: str, bits: int, depth: int) -> None:
        """An integer at ``p``; what is behind it is ``q``."""
        self.emit(f"{into}, q = vle(b, p, e, {bits})", depth)
        self.emit(f"if q < 0: {self.stop('short(-q)' if self.inside else '-q')}", depth)

    def bits(self, item: Bits, depth: int) -> None:
        if item.carrier == "byte":
            if item is not self.record.items[0] or self.record.family is None:
                self.emit(f"if p >= e: {self.stop(self.cut)}", depth)
            self.emit("h = b[p] + 0", depth)
        else:
            self.number("h", item.bits, depth)
        for part in item.parts:
            if part.closed and part.enum is not None and len(part.enum.members) < 1 << part.size:
                self.closed(f"({_part(part, item.bits)})", part.enum, True, depth)
        for part in item.parts:
            slot = self.slot(part.name)
            if part.name in self.needed:
                self.emit(f"v_{part.name} = {_part(part, item.bits)}", depth)
            if slot:
                self.emit(_kept(slot, _part(part, item.bits)), depth)
        self.emit("p += 1" if item.carrier == "byte" else "p = q", depth)

    def closed(self, value: str, enum: EnumDef | None, closed: bool, depth: int) -> None:
        if not closed or enum is None:
            return
        known = sorted(number for number, _ in enum.members)
        refused = f"{value} < {known[0]} or {value} > {known[-1]}"
        if known != list(range(known[0], known[-1] + 1)):
            refused = " and ".join(f"{value} != {number}" for number in known)
        kind = "RESERVED_ENCODING" if enum.name == "ExtEncoding" else "BAD_VALUE"
        self.emit(f"if {refused}: {self.stop(kind)}", depth)

    def slot(self, name: str) -> str:
        return self.module.slot_of.get(f"{self.record.name}.{name}", "").upper()

    def keep(self, name: str, value: str, depth: int) -> None:
        if self.slot(name):
            self.emit(_kept(self.slot(name), value), depth)

    def bytes(self, item: Bytes, depth: int) -> None:
        self.emit(f"size = {'e - p' if item.length is None else _value(item.length)}", depth)
        if item.length is not None:
            self.emit(f"if size > e - p: {self.stop('BAD_LENGTH')}", depth)
        if item.form == "text":
            self.emit("if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)", depth)
        if self.slot(item.name):
            self.emit(_kept(self.slot(item.name), "p", "size"), depth)
        if item.name in self.needed:
            self.emit(f"v_{item.name} = 1", depth)
        self.emit("p += size", depth)

    def repeat(self, item: Repeat, depth: int) -> None:
        args = f"b, p, e, {_value(item.count)}, {item.element.bits}"
        if isinstance(item.element, Text):
            self.emit(f"q, count, kind, good = texts({args}, {item.element.form == 'locator'})", depth)
            if item.element.form != "lax":
                self.emit("if not good: note(r, o, BAD_UTF8, p, start)", depth)
        else:
            self.emit(f"q, count, kind = numbers({args})", depth)
        if self.slot(item.name):
            self.emit(_kept(self.slot(item.name), "p", "count"), depth)
        self.emit("p = q", depth)
        self.emit(f"if kind > 0: {self.stop('short(kind)' if self.inside else 'kind')}", depth)

    def records(self, item: Records, depth: int) -> None:
        read = f"choice_{item.of}" if item.of in self.module.schema.choices else function_of(item.of)
        if self.slot(item.name):
            self.emit(_kept(self.slot(item.name), "p", "0"), depth)
        self.emit(f"for i in range({_value(item.count)}):", depth)
        self.emit(f"if p >= e: {self.stop(self.cut)}", depth + 1)
        if self.slot(item.name):
            self.emit(f"r[o + LEN_{self.slot(item.name)}] = i + 1", depth + 1)
        self.emit(f"p = {read}(b, p, e, r, o)", depth + 1)
        self.emit("if p < 0: return p", depth + 1)

    def extensions(self, item: Exts, depth: int) -> None:
        calls = [(when, f"{self.module.tables[table]}(b, p, e, r, o, start)") for when, table in item.cases]
        text = ""
        for when, call in calls:
            text += call if when is None else f"{call} if {_condition(when)} else "
        self.emit(f"p = {text}", depth)
        self.emit("if p < 0: return p", depth)


# --- expressions ---------------------------------------------------------------------------------


def _value(expr: Expr) -> str:
    """An expression as a number."""
    match expr:
        case Ref(name):
            return f"v_{name}"
        case Const(value):
            return str(int(value))
        case Binary("+", left, right):
            return f"{_value(left)} + {_value(right)}"
        case PeekByte(offset):
            return f"peek_byte(b, p + {offset}, e)"
        case PeekVles(offset):
            return f"peek_vles(b, p + {offset}, e)"
    raise TypeError(f"no number: {expr!r}")


def _condition(expr: Expr) -> str:
    """An expression as a condition."""
    match expr:
        case Not(arg):
            return f"not ({_condition(arg)})"
        case Binary("and" | "or" as op, left, right):
            return f"({_condition(left)} {op} {_condition(right)})"
        case Binary("==" | "!=" as op, left, right):
            return f"{_value(left)} {op} {_value(right)}"
        case HasExt(ext):
            return f"r[o + EXTENSIONS] & {constant_of(ext.__name__)} != 0"
        case Present(name):
            return f"v_{name} != 0"
        case Readable(records):
            return f"readable_{records}(b, p, e, r, o + STRIDE)"
    return f"{_value(expr)} != 0"


def _referred(record: Record) -> set[str]:
    """Names that some condition or length of a record needs."""
    found = {record.window} if record.window else set()
    for item in record.items:
        exprs = [item.when, getattr(item, "length", None), getattr(item, "count", None)]
        exprs += [when for when, _ in item.cases] if isinstance(item, Exts) else []
        for expr in exprs:
            found |= _refs(expr)
    return found


def _refs(expr: Expr | None) -> set[str]:
    return {part.name for part in _parts_of(expr) if isinstance(part, (Ref, Present))}


def _parts_of(expr: Expr | None) -> Iterator[Expr]:
    """An expression and all inside it."""
    if expr is not None:
        yield expr
    match expr:
        case Not(arg):
            yield from _parts_of(arg)
        case Binary(_, left, right):
            yield from _parts_of(left)
            yield from _parts_of(right)


def _kept(slot: str, value: str, length: str = "") -> str:
    """The statements that leave a value, or the place and length of a span, in its slot."""
    counted = f"r[o + LEN_{slot}] = {length}; " if length else ""
    return f"r[o + AT_{slot}] = {value}; {counted}r[o + PRESENT] |= HAS_{slot}"


def _part(part: Part, bits: int) -> str:
    shifted = f"h >> {part.shift}" if part.shift else "h"
    return shifted if part.shift + part.size == bits else f"{shifted} & {(1 << part.size) - 1:#x}"


def _names(item: Item) -> tuple[str, ...]:
    return tuple(p.name for p in item.parts) if isinstance(item, Bits) else (item.name,)


def _listed(name: str, texts: list[str]) -> Iterator[str]:
    """A tuple of texts in lines of readable length."""
    line = f"{name} = ("
    for text in texts:
        if len(line) + len(text) > 114:
            yield line.rstrip()
            line = "    "
        line += f'"{text}", '
    yield line.rstrip() + ")"


if __name__ == "__main__":
    import scapy_zenoh.network  # noqa: F401  (declares the messages)

    print(source(), end="")
