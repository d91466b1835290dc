"""The message reference, from the schema: ``python -m scapy_zenoh.schema.docs > docs/messages.md``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from typing_extensions import assert_never

from scapy_zenoh.expr import Binary, Expr
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.schema.extract import schema
from scapy_zenoh.schema.model import (
    Bits,
    Bytes,
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

_WIDTH = 15  # inner width of a box: eight bits and the bars between them

_INTRO = """\
# Zenoh messages

Generated from the classes in `scapy_zenoh`; do not edit.

Boxes read from top to bottom, bit 7 on the left. `|` encloses what has a fixed size, `%` what has a variable one,
`~` what is there only under the condition beside it. `zN` is a variable length integer of at most N bits: seven bits
per byte, least significant first, at most nine bytes, the ninth with eight bits.
"""


def messages_md(described: Schema | None = None) -> str:
    """The whole reference as Markdown."""
    all_of = described or schema()
    parts = [_INTRO]
    placed: set[str] = set()
    for family in ("scouting", "transport", "network", "declaration", "data"):
        parts.append(f"## {family.capitalize()} messages\n")
        for mid, name in all_of.families[family].members:
            parts.append(_record(all_of, all_of.records[name], f"id `{mid:#04x}`"))
            placed.add(name)
    rest = [r for r in all_of.records.values() if r.name not in placed]
    parts.append("## Extensions\n")
    for record in (r for r in rest if r.identity is not None):
        parts.append(_record(all_of, record, _extension_note(all_of, record)))
    parts.append("## Records inside messages\n")
    for record in (r for r in rest if r.identity is None):
        parts.append(_record(all_of, record, _choice_note(all_of, record)))
    parts.append("## Enumerations\n")
    parts += [_enum(enum) for enum in all_of.enums()]
    parts.append(_faults())
    return "\n".join(parts)


def _record(all_of: Schema, record: Record, note: str) -> str:
    lines = [f"### {record.name}", "", f"{record.title}" + (f", {note}" if note else "") + f". {record.doc}", ""]
    lines += ["```", *_box(record), "```", "", *_fields(record)]
    for item in record.items:
        if isinstance(item, Exts):
            lines += _tables(all_of, item)
    if record.body:
        names = [name for _, name in all_of.families[record.body].members]
        lines += ["", "Body: " + ", ".join(_link(n) for n in names) + "."]
    return "\n".join(lines) + "\n"


# --- boxes --------------------------------------------------------------------------------------


def _box(record: Record) -> Iterator[str]:
    first = record.items[0] if record.items else None
    if isinstance(first, Bits) and first.carrier == "byte":
        yield " 7 6 5 4 3 2 1 0"
    yield "+" + "-+" * 8
    for item in record.items:
        if isinstance(item, Bits) and item.carrier == "byte":
            cells = [_label(part).center(2 * part.size - 1)[: 2 * part.size - 1] for part in item.parts]
            yield "|" + "|".join(cells) + "|" + _condition(item.when)
            yield "+" + "+".join("-" * len(cell) for cell in cells) + "+"
            continue
        edge = "~" if item.when is not None else "|" if isinstance(item, UInt) else "%"
        for line in _wrap(", ".join(names_of(item))):
            yield f"{edge}{line.center(_WIDTH)}{edge}" + _condition(item.when)
        yield "+" + "-" * _WIDTH + "+"
    if record.body:
        yield f"%{'body'.center(_WIDTH)}%  one {record.body} message"
        yield "+" + "-" * _WIDTH + "+"


def _label(part: Part) -> str:
    if part.name == "mid" and part.enum is not None:
        label = dict(part.enum.members)[part.fixed or 0].upper()
        return label if len(label) <= 2 * part.size - 1 else f"{part.fixed:#04x}"
    if part.fixed == 0 and part.name in ("X", "reserved"):
        return "x"
    return part.name if len(part.name) <= 2 * part.size - 1 else part.name[:1]


def _wrap(text: str) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}".strip()
        if len(joined) > _WIDTH - 1 and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = joined
    return lines


def _condition(when: Expr | None) -> str:
    return "" if when is None else f"  if {_plain(when)}"


def _plain(expr: Expr) -> str:
    """An expression without the parentheses around the whole."""
    text = repr(expr)
    return text[1:-1] if isinstance(expr, Binary) else text


# --- tables -------------------------------------------------------------------------------------


def names_of(item: Item) -> list[str]:
    """The names of the fields that an item has."""
    return [part.name for part in item.parts] if isinstance(item, Bits) else [item.name]


def _fields(record: Record) -> Iterator[str]:
    yield "| field | type | present | meaning |"
    yield "|---|---|---|---|"
    for item in record.items:
        when = "always" if item.when is None else f"if `{_plain(item.when)}`"
        for name, kind, meaning in _rows(record, item):
            yield f"| `{name}` | {kind} | {when} | {meaning} |"


def _rows(record: Record, item: Item) -> Iterator[tuple[str, str, str]]:
    match item:
        case Bits():
            for part in item.parts:
                low, high = part.shift, part.shift + part.size - 1
                where = "byte" if item.carrier == "byte" else f"z{item.bits}"
                bits = f"bit {low}" if low == high else f"bits {high}:{low}"
                yield part.name, f"{bits} of a {where}", _part_meaning(part)
        case UInt():
            kind = "u8" if item.size == 1 else f"u{8 * item.size} LE"
            missing = f"; {item.missing} when absent" if item.when is not None and item.missing else ""
            yield item.name, kind, (_window(record, item.name) or _enum_meaning(item.enum, item.closed)) + missing
        case Vle():
            yield item.name, f"z{item.bits}", _vle_meaning(record, item)
        case Bytes():
            size = "the rest" if item.length is None else f"`{_plain(item.length)}` bytes"
            yield item.name, size, {"bytes": "", "lax": "text", "zid": "Zenoh id"}.get(item.form, "UTF-8 text")
        case Repeat():
            element = f"z{item.element.bits}" if isinstance(item.element, Vle) else f"<utf8;z{item.element.bits}>"
            what = item.element.form if isinstance(item.element, Text) else ""
            yield item.name, f"`{_plain(item.count)}` times {element}", what
        case Records():
            yield (
                item.name,
                f"`{_plain(item.count)}` records",
                f"each a {_link(item.of) if item.of.startswith('Zenoh') else item.of}",
            )
        case Messages():
            until = f", up to a {item.until} message" if item.until else ""
            yield item.name, "messages", " or ".join(item.families) + until
        case Exts():
            yield item.name, "extensions", "see below"
        case _:
            assert_never(item)


def _part_meaning(part: Part) -> str:
    if part.presence and part.size == 1:
        fields = " or ".join(f"`{name}`" for name, code in part.presence if code == 1)
        return f"1 when {fields} is present"
    if part.counts:
        return f"length of `{part.counts}`" + (f" less {part.bias}" if part.bias else "")
    if part.name == "more":
        return "1 when another extension follows"
    if part.fixed is not None:
        return f"always {part.fixed:#x}" if part.fixed else "0"
    return _enum_meaning(part.enum, part.closed)


def _vle_meaning(record: Record, item: Vle) -> str:
    if item.counts:
        limit = f", at most {item.most}" if item.most is not None else ""
        return f"length of `{item.counts}`{limit}"
    if item.time:
        return "NTP64: seconds since 1970 in the high 32 bits, fraction in the low"
    return _window(record, item.name) or _enum_meaning(item.enum, item.closed)


def _window(record: Record, name: str) -> str:
    return "number of bytes after it" if name == record.window else ""


def _enum_meaning(enum: EnumDef | None, closed: bool) -> str:
    return "" if enum is None else _link(enum.name) + ("; other numbers are refused" if closed else "")


def _tables(all_of: Schema, item: Exts) -> Iterator[str]:
    for when, table in item.cases:
        yield ""
        condition = f" if `{_plain(when)}`" if when is not None else " otherwise" if len(item.cases) > 1 else ""
        unknown = " Unknown ones are skipped, mandatory or not." if table.lenient else ""
        if not table.extensions:
            yield f"Extensions{condition}: none defined.{unknown}"
            continue
        yield f"Extensions{condition}:{unknown}"
        yield ""
        yield "| header | extension | what it says |"
        yield "|---|---|---|"
        for name in table.extensions:
            extension = all_of.records[name]
            yield f"| `{extension.identity:02x}` | {_link(name)} | {extension.doc} |"


def _extension_note(all_of: Schema, record: Record) -> str:
    users = []
    for other in all_of.records.values():
        chains = chain.from_iterable(i.cases for i in other.items if isinstance(i, Exts))
        if any(record.name in table.extensions for _, table in chains):
            users.append(_link(other.name))
    known = f"in {', '.join(users)}" if users else "in any chain"
    after = f", after {_link(record.after)}" if record.after else ""
    return f"header `{record.identity:02x}` {known}{after}"


def _choice_note(all_of: Schema, record: Record) -> str:
    for choice in all_of.choices.values():
        for guard, name in choice.cases:
            if name == record.name:
                return f"a {choice.name} where {_plain(guard)}"
        if choice.otherwise == record.name:
            return f"any other {choice.name}"
    return ""


def _enum(enum: EnumDef) -> str:
    rows = [f"| {number} | `{number:#x}` | {label} |" for number, label in enum.members]
    return "\n".join([f"### {enum.name}", "", enum.doc, "", "| number | | name |", "|---|---|---|", *rows]) + "\n"


def _faults() -> str:
    rows = [f"| `{kind}` | {'noted' if kind.noted else 'stops'} | {kind.about} |" for kind in FaultKind]
    return "\n".join(
        [
            "## Faults",
            "",
            "A fault that *stops* ends decoding until the next batch; one that is *noted* does not.",
            "",
            "| fault | | what it means |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _link(name: str) -> str:
    return f"[{name}](#{name.lower()})"


if __name__ == "__main__":
    print(messages_md(), end="")
