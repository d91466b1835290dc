"""Expressions of the schema as Lua. ``0`` is true in Lua, so numbers and conditions are written apart."""

from __future__ import annotations

from scapy_zenoh.expr import Binary, Const, Expr, HasExt, Not, PeekByte, PeekVles, Present, Readable, Ref
from scapy_zenoh.schema.model import Record, Records, Schema
from scapy_zenoh.schema.names import record_filter


class Expressions:
    """Writes the expressions of one record, whose values are in ``v``; ``always`` names those that are never absent."""

    def __init__(self, schema: Schema, record: Record | None, always: frozenset[str] = frozenset()) -> None:
        self.schema, self.record, self.always = schema, record, always

    def number(self, expr: Expr) -> str:
        """An expression as a number."""
        match expr:
            case Ref(name):
                return f"v.{name}" if name in self.always else f"(v.{name} or 0)"
            case Const(value):
                return str(int(value))
            case Binary("+", left, right):
                return f"{self.number(left)} + {self.number(right)}"
            case PeekByte(offset):
                return f"peek_byte(p + {offset}, e)"
            case PeekVles(offset):
                return f"peek_vles(p + {offset}, e)"
        raise TypeError(f"no number: {expr!r}")

    def condition(self, expr: Expr) -> str:
        """An expression as a condition."""
        match expr:
            case Not(Ref() as arg):
                return f"{self.number(arg)} == 0"
            case Not(Present(name)):
                return f"v.{name} == nil"
            case Not(HasExt() as arg):
                return f"not {self.condition(arg)}"
            case Not(arg):
                return f"not ({self.condition(arg)})"
            case Binary("and" | "or" as op, left, right):
                return f"{self._joined(left)} {op} {self._joined(right)}"
            case Binary("==", left, right):
                return f"{self.number(left)} == {self.number(right)}"
            case Binary("!=", left, right):
                return f"{self.number(left)} ~= {self.number(right)}"
            case HasExt(ext):
                return f'has_ext(v, "{record_filter(ext.__name__)}")'
            case Present(name):
                return f"v.{name} ~= nil"
            case Readable(records):
                return f'readable("{self._list(records)}", p, e)'
        return f"{self.number(expr)} ~= 0"

    def _joined(self, expr: Expr) -> str:
        text = self.condition(expr)
        return f"({text})" if isinstance(expr, Binary) and expr.op in ("and", "or") else text

    def _list(self, name: str) -> str:
        assert self.record is not None
        for item in self.record.items:
            if isinstance(item, Records) and item.name == name:
                return record_filter(item.of)
        raise TypeError(f"{self.record.name}: no list {name}")
