"""The generated decoder is that of the classes as they are, complete, and free of what its users do not need."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh import decode
from scapy_zenoh.decode import _generated, generator, records, runtime
from scapy_zenoh.expr import Const, Expr, From, HasExt, When
from scapy_zenoh.schema.extract import schema
from scapy_zenoh.schema.model import Bytes, Exts, ExtTableDef, Item, Record, Schema
from scapy_zenoh.schema.slots import NUMBERS, SPANS

FOLDER = Path(decode.__path__[0])
SLOTS = (*SPANS, *NUMBERS)

#: Modules that read without Scapy; only the generator sees the classes.
READING = ["_generated", "codec", "reading", "records", "runtime"]


# --- the file -----------------------------------------------------------------------------------


def test_committed_decoder_is_what_the_classes_give() -> None:
    there = (FOLDER / "_generated.py").read_text()
    wanted = generator.source()
    for number, (line, other) in enumerate(zip(there.splitlines(), wanted.splitlines(), strict=False), 1):
        assert line == other, f"line {number}: run python -m scapy_zenoh.decode.generator"
    assert there == wanted


def test_command_writes_the_same() -> None:
    command = [sys.executable, "-m", "scapy_zenoh.decode.generator"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=FOLDER.parents[1])
    assert (done.stdout, done.stderr) == (generator.source(), "")


def imported(name: str) -> set[str]:
    """The modules that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize("name", READING)
def test_readers_import_neither_scapy_nor_messages(name: str) -> None:
    messages = {"message", "extension", "fields", "network", "transport", "scouting", "data", "declare", "link"}
    forbidden = {"scapy", "scapy_zenoh.schema", "scapy_zenoh.records", *(f"scapy_zenoh.{part}" for part in messages)}
    assert not {module for module in imported(name) if any(f"{module}.".startswith(f"{no}.") for no in forbidden)}


def test_every_message_and_body_has_a_reader_and_a_name() -> None:
    described = schema()
    for family in generator.ROWS:
        for _, name in described.families[family].members:
            assert callable(getattr(_generated, generator.function_of(name)))
            assert generator.constant_of(name).lower() in _generated.KINDS
    for family in {record.body for record in described.records.values() if record.body}:
        for _, name in described.families[family].members:
            assert generator.constant_of(name).lower() in _generated.BODIES


def test_every_kind_that_has_more_to_tell_is_told() -> None:
    bare = {"unknown", "keep_alive", "transport_oam"}  # of these a row has nothing but the kind
    assert set(records._FILL) == set(_generated.KINDS) - bare


# --- slots --------------------------------------------------------------------------------------


def test_there_is_room_for_all_slots() -> None:
    assert len(SPANS) <= runtime.MAX_SPANS
    assert len(SLOTS) <= runtime.MAX_SLOTS
    assert len({name.upper() for name in SLOTS}) == len(SLOTS)
    assert [getattr(_generated, name.upper()) for name in SLOTS] == list(range(len(SLOTS)))


def test_names_of_bodies_and_extensions_fit_their_bits() -> None:
    assert len(_generated.BODIES) <= 1 << 6
    known = [value for name, value in vars(_generated).items() if name.startswith("EXT_")]
    assert len(known) == len(set(known)) and max(known) < 1 << 63


@pytest.mark.parametrize("name", SLOTS)
def test_every_slot_is_used(name: str) -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse((FOLDER / "records.py").read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "g"
    }
    assert name.upper() in used


def test_a_field_fills_one_slot() -> None:
    places = [place for table in (SPANS, NUMBERS) for some in table.values() for place in some]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("place", ["ZenohPush.nothing", "ZenohNobody.scope", "scope"])
def test_slot_of_a_field_that_does_not_exist_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NUMBERS, "scope", (*NUMBERS["scope"], place))
    with pytest.raises(TypeError, match=rf"^{place}: there is no such field$"):
        generator.source()


def test_slot_of_a_field_that_was_renamed_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^ZenohPush\.scope: there is no such field$"):
        generator.source(with_item("ZenohPush", "scope", name="sphere"))


# --- what cannot be generated -------------------------------------------------------------------


def _named(item: Item, name: str) -> bool:
    return getattr(item, "name", None) == name


def changed(record: Record) -> Schema:
    """The schema with another record of that name."""
    described = schema()
    return replace(described, records={**described.records, record.name: record})


def with_item(cls: str, field: str, **values: Any) -> Schema:
    """The schema with another declaration of a field."""
    record = schema().records[cls]
    assert any(_named(item, field) for item in record.items)
    items: tuple[Any, ...] = tuple(replace(item, **values) if _named(item, field) else item for item in record.items)
    return changed(replace(record, items=items))


class Opaque(Expr):
    """An expression that nobody told the generator about."""

    def __repr__(self) -> str:
        return "something new"


def test_unchanged_schema_gives_the_same_source() -> None:
    assert generator.source(schema()) == generator.source()


@pytest.mark.parametrize(
    "expr, told",
    [
        (Opaque(), "something new"),
        (From("data_len") + Opaque(), "something new"),
        (When("Z") & When("E"), r"\(Z and E\)"),
        (~When("Z"), "not Z"),
        (HasExt(Opaque), "has Opaque"),
    ],
    ids=repr,
)
def test_length_that_is_no_number_is_refused(expr: Expr, told: str) -> None:
    with pytest.raises(TypeError, match=f"^no number: {told}$"):
        generator.source(with_item("ZenohPut", "data", length=expr))


@pytest.mark.parametrize("expr", [Opaque(), ~Opaque(), When("T") & Opaque(), When("T") == Opaque()], ids=repr)
def test_condition_that_nobody_knows_is_refused(expr: Expr) -> None:
    with pytest.raises(TypeError, match="^no number: something new$"):
        generator.source(with_item("ZenohPut", "ts_time", when=expr))


def test_table_for_messages_and_extensions_alike_is_refused() -> None:
    described = schema()
    inside = next(item for item in described.records["ZenohExtInitSynAuth"].items if isinstance(item, Exts))
    with pytest.raises(TypeError, match="^ZenohDel: a table of extensions for messages and for extensions alike$"):
        generator.source(with_item("ZenohDel", "exts", cases=inside.cases))


def test_table_with_an_extension_that_is_not_described_is_refused() -> None:
    with pytest.raises(KeyError, match="ZenohExtNobody"):
        generator.source(with_item("ZenohDel", "exts", cases=((None, ExtTableDef(("ZenohExtNobody",))),)))


def test_new_field_is_read_and_checked() -> None:
    """A byte more behind a KEEP_ALIVE, as a change of its class would declare it."""
    keep_alive = schema().records["ZenohKeepAlive"]
    longer = replace(keep_alive, items=(*keep_alive.items, Bytes("tail", Const(1))))
    module: dict[str, Any] = {}
    exec(generator.source(changed(longer)), module)
    row = [0] * (2 * runtime.STRIDE)
    runtime.clear(row, 0, 0)
    assert module["family_transport"](b"\x04\x00", 0, 2, row, 0) == 2
    assert module["family_transport"](b"\x04", 0, 1, row, 0) == -1
    assert row[runtime.FAULT] == runtime.BAD_LENGTH


# --- the part that is compiled ------------------------------------------------------------------


@pytest.mark.parametrize("family", ["transport", "network"])
def test_readers_of_a_link_in_use_are_the_same_or_say_that_they_know_nothing(family: str) -> None:
    every, steady = getattr(_generated, f"family_{family}"), getattr(_generated, f"steady_{family}")
    seldom = {mid for mid, name in schema().families[family].members if name in generator.SELDOM}
    assert seldom
    for header in range(256):
        for data in (bytes([header]), bytes([header]) + bytes(20), bytes([header]) + b"\x01" * 20):
            one, other = [0] * (2 * runtime.STRIDE), [0] * (2 * runtime.STRIDE)
            end = every(data, 0, len(data), one, 0)
            if header & 0x1F in seldom:
                assert steady(data, 0, len(data), other, 0) == -3
            else:
                assert (steady(data, 0, len(data), other, 0), other) == (end, one)


def test_names_of_seldom_messages_are_those_of_classes() -> None:
    assert set(generator.SELDOM) <= set(schema().records)
