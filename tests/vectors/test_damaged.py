"""Changed messages with the verdict of zenoh-pico: nothing raises, nothing is lost, and the verdicts agree.

Where the reference implementation leaves no doubt (``rust_expected``), its verdict is ours. Elsewhere it is
that of zenoh-pico, no verdict counting as rejected. zenoh-pico departs from the reference in known ways; each
is a rule below with its reason. A rule looks at the message and the fault, never at the name of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from scapy.packet import Packet

import scapy_zenoh as z
from scapy_zenoh import Fault, FaultKind
from tests.conftest import vector_rows

ROWS = {row["id"]: row for row in vector_rows("zenoh-pico-damaged.jsonl")}

each_row = pytest.mark.parametrize("name", ROWS)


# --- a row and what we make of it ---------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A row with the packet that was read from its bytes."""

    row: dict[str, Any]
    data: bytes
    packet: Any
    rest: bytes

    @property
    def good(self) -> bool:
        """Our verdict."""
        return self.packet.fault is None

    @property
    def pico(self) -> bool:
        """The verdict of zenoh-pico."""
        return self.row["accepted"] is True

    def faults(self) -> list[tuple[Packet, Fault]]:
        """All that we find wrong."""
        return list(self.packet.faults())

    def records(self) -> Iterator[Any]:
        """The message, its body, and everything inside them."""
        return _records(self.packet)

    def __str__(self) -> str:
        faults = [f"{type(packet).__name__}: {fault}" for packet, fault in self.faults()]
        return f"{self.row['id']} ({self.row['mutation']} of {self.row['kind']}) {self.row['hex']} {faults}"


def _records(packet: Packet) -> Iterator[Any]:
    while packet:
        yield packet
        for field in packet.packetfields:
            for inner in packet.fields.get(field.name) or ():
                yield from _records(inner)
        packet = packet.payload


def case_of(row: dict[str, Any]) -> Case:
    """Read the bytes of a row."""
    data = bytes.fromhex(row["hex"])
    return Case(row, data, *z.parse(data, row["layer"]))


@cache
def named(name: str) -> Case:
    """The row of that name, read once."""
    return case_of(ROWS[name])


def vle(data: bytes) -> tuple[int, int]:
    """The number at the start of some bytes and its width: seven bits a byte, the ninth gives eight."""
    value = 0
    for i, byte in enumerate(data[:9]):
        value |= (byte if i == 8 else byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, i + 1
    return value, len(data[:9])


# --- where zenoh-pico accepts what we refuse ----------------------------------------------------


@dataclass(frozen=True)
class Laxity:
    """Something wrong that zenoh-pico does not mind. ``cause`` must show in the bytes wherever it applies."""

    name: str
    reason: str
    applies: Callable[[Any, Fault], bool]
    cause: Callable[[Case, Any, Fault], bool]

    def __str__(self) -> str:
        return self.name


def _from(packet: Any, fault: Fault) -> bytes:
    """The bytes of a packet from its fault on."""
    return bytes(packet)[fault.offset :]


def _fault(kind: FaultKind, *fields: str) -> Callable[[Any, Fault], bool]:
    return lambda packet, fault: fault.kind is kind and fault.field in fields


def _is_not_utf8(case: Case, packet: Any, fault: Fault) -> bool:
    value = packet.getfieldval(fault.field)
    for text in value if isinstance(value, list) else [value]:
        data = text.encode("utf-8", "surrogateescape")
        assert data in case.data
        try:
            data.decode()
        except UnicodeDecodeError:
            return True
    return False


#: Extensions with fields inside; all others hold bytes that need no filling.
STRUCTURED = (z.ZenohExtTimestamp, z.ZenohExtSourceInfo, z.ZenohExtResponderId, z.ZenohExtJoinLanes)


def _value_left_over(case: Case, packet: Any, fault: Fault) -> bool:
    size, width = vle(bytes(packet)[1:])
    return 0 < fault.offset - 1 - width < size <= len(bytes(packet)) - 1 - width


def _wide_consolidation(packet: Any) -> bool:
    """True for a QUERY or REPLY whose consolidation takes more than one byte."""
    if not isinstance(packet, (z.ZenohQuery, z.ZenohReply)):
        return False
    return bool(packet.C) and bytes(packet)[1:2] >= b"\x80"


def _messages_around(packet: Any) -> Iterator[Any]:
    while packet is not None:
        yield packet
        packet = packet.underlayer or packet.parent


LAXITIES = [
    Laxity(
        "text_must_be_utf8",
        "zenoh-pico takes any bytes as text; in Rust key suffix, parameters and locators must be UTF-8.",
        _fault(FaultKind.BAD_UTF8, "suffix", "parameters", "locators"),
        _is_not_utf8,
    ),
    Laxity(
        "reserved_extension_encoding",
        "zenoh-pico takes the reserved encoding 11 as an extension without body; Rust rejects it.",
        _fault(FaultKind.RESERVED_ENCODING, "exts"),
        lambda case, packet, fault: _from(packet, fault)[0] & 0x60 == 0x60,
    ),
    Laxity(
        "value_must_fill_its_extension",
        "A structured value should fill its ZBuf exactly: zenoh-pico ignores what is left of the stated length, "
        "Rust ignores the length, and a dissector flags the rest as a bad length.",
        lambda packet, fault: isinstance(packet, STRUCTURED) and _fault(FaultKind.BAD_LENGTH, "size")(packet, fault),
        _value_left_over,
    ),
    Laxity(
        "request_id_over_32_bits",
        "zenoh-pico accepts request ids over 32 bits; Rust rejects them.",
        _fault(FaultKind.VLE_OVERFLOW, "request_id"),
        lambda case, packet, fault: vle(_from(packet, fault))[0] > 0xFFFFFFFF,
    ),
    Laxity(
        "close_with_extensions",
        "In CLOSE zenoh-pico ignores the Z flag: extensions are neither read nor checked.",
        lambda packet, fault: any(isinstance(p, z.ZenohClose) and p.Z for p in _messages_around(packet)),
        lambda case, packet, fault: case.data[0] & 0x9F == 0x83 and case.row["consumed"] == 2,
    ),
    Laxity(
        "whatami_3",
        "zenoh-pico accepts WhatAmI 3; Rust rejects it.",
        _fault(FaultKind.BAD_VALUE, "whatami"),
        lambda case, packet, fault: _from(packet, fault)[0] & 0x03 == 3,
    ),
    Laxity(
        "short_text_over_255_bytes",
        "In zenoh-pico locators and the schema of an encoding may exceed 255 bytes; Rust rejects them.",
        _fault(FaultKind.VLE_OVERFLOW, "schema_len", "locators"),
        lambda case, packet, fault: vle(_from(packet, fault))[0] > 255,
    ),
    Laxity(
        "consolidation_as_one_byte",
        "zenoh-pico reads the consolidation as one raw byte, so after a larger number it reads on elsewhere.",
        lambda packet, fault: any(_wide_consolidation(p) for p in _messages_around(packet)),
        lambda case, packet, fault: any(_wide_consolidation(p) for p in case.records()),
    ),
]


# --- where zenoh-pico refuses what we accept ----------------------------------------------------


@dataclass(frozen=True)
class Strictness:
    """Something good that zenoh-pico does not read. ``cause`` must show in its verdict wherever it applies."""

    name: str
    reason: str
    applies: Callable[[Case], bool]
    cause: Callable[[Case], bool] = lambda case: not case.pico

    def __str__(self) -> str:
        return self.name


#: The largest QoS that zenoh-pico reads in some messages.
PICO_QOS_LIMIT = {z.ZenohRequest: 0xFF, z.ZenohPush: 0xFFFFFFFF}


def _qos_too_wide(case: Case) -> bool:
    found = [r for r in case.records() if isinstance(r, z.ZenohExtQoS) and type(r.parent) in PICO_QOS_LIMIT]
    return any(vle(bytes(qos)[1:])[0] > PICO_QOS_LIMIT[type(qos.parent)] for qos in found)


def _wide_timestamp_id_length(case: Case) -> bool:
    return any(getattr(r.fields.get("ts_id_len"), "width", 1) > 1 for r in case.records())


def _frame_ended(case: Case) -> bool:
    return isinstance(case.packet, z.ZenohFrame) and case.rest != b"" and case.rest[0] & 0x1F <= 0x07


def _frame_read_so_far(case: Case) -> bool:
    row = case.row
    return not case.pico and row["frame_header_accepted"] and row["nested_accepted"] == len(case.packet.msgs)


STRICTNESSES = [
    Strictness(
        "transport_oam",
        "zenoh-pico has no OAM among its transport messages; the protocol gives it id 0.",
        lambda case: isinstance(case.packet, z.ZenohTransportOam),
        lambda case: not case.pico and case.row["consumed"] == 1,
    ),
    Strictness(
        "frame_ended_by_a_transport_id",
        "A FRAME ends where the next header has a transport id; to zenoh-pico, which wants nothing but network "
        "messages there, it is a bad message inside the FRAME.",
        _frame_ended,
        _frame_read_so_far,
    ),
    Strictness(
        "qos_wider_than_a_byte",
        "zenoh-pico rejects a QoS value over 8 bits in REQUEST and over 32 bits in PUSH; elsewhere, and in Rust, "
        "the low byte is kept.",
        _qos_too_wide,
    ),
    Strictness(
        "consolidation_as_one_byte",
        "zenoh-pico reads the consolidation as one raw byte, where Rust reads a number of any length.",
        lambda case: any(_wide_consolidation(r) for r in case.records()),
        lambda case: not case.pico or case.row["consumed"] < len(case.data),
    ),
    Strictness(
        "timestamp_id_length_as_one_byte",
        "zenoh-pico reads the length of a timestamp id as one raw byte, where Rust reads a number of any length.",
        _wide_timestamp_id_length,
    ),
    Strictness(
        "mandatory_extension_unknown_to_zenoh_pico",
        "QoS on FRAME and FRAGMENT, and the node id, are unknown mandatory extensions to zenoh-pico.",
        lambda case: any(isinstance(r, (z.ZenohExtLane, z.ZenohExtNodeId)) for r in case.records()),
    ),
    Strictness(
        "reply_with_extension",
        "zenoh-pico rejects a REPLY with any extension, even an optional one.",
        lambda case: any(isinstance(r, z.ZenohReply) and r.exts for r in case.records()),
    ),
    Strictness(
        "scouting_skips_all_extensions",
        "zenoh-pico rejects SCOUT and HELLO with an unknown mandatory extension; Rust skips it.",
        lambda case: (
            isinstance(case.packet, (z.ZenohScout, z.ZenohHello))
            and any(ext.mandatory for ext in case.packet.exts or ())
        ),
    ),
]


def complaint(case: Case) -> str | None:
    """Why the verdict on a row is wrong, None when it is right or a rule gives the reason for it."""
    if "rust_expected" in case.row:
        return None if case.good == case.row["rust_expected"] else f"Rust says the opposite: {case}"
    if case.good == case.pico:
        return None
    if case.good:
        known = any(rule.applies(case) for rule in STRICTNESSES)
        return None if known else f"zenoh-pico rejects this: {case}"
    unknown = [fault for packet, fault in case.faults() if not any(rule.applies(packet, fault) for rule in LAXITIES)]
    return f"zenoh-pico accepts this: {case}" if unknown else None


# --- the tests ----------------------------------------------------------------------------------


@each_row
def test_every_byte_is_kept(name: str) -> None:
    read = named(name)
    assert bytes(read.packet) + read.rest == read.data
    assert z.rebuild(read.packet) + read.rest == read.data


@each_row
def test_the_verdict_is_that_of_the_nodes(name: str) -> None:
    assert complaint(named(name)) is None


@pytest.mark.parametrize("rule", LAXITIES, ids=str)
def test_what_zenoh_pico_lets_pass_shows_in_the_bytes(rule: Laxity) -> None:
    for read in map(named, ROWS):
        if read.pico:
            for packet, fault in read.faults():
                assert not rule.applies(packet, fault) or rule.cause(read, packet, fault), f"{rule.reason} {read}"


@pytest.mark.parametrize("rule", STRICTNESSES, ids=str)
def test_what_zenoh_pico_refuses_is_refused_in_every_row(rule: Strictness) -> None:
    for read in map(named, ROWS):
        assert not rule.applies(read) or rule.cause(read), f"{rule.reason} {read}"


def test_no_rule_stands_against_the_reference() -> None:
    for read in map(named, ROWS):
        if "rust_expected" not in read.row and read.good != read.pico:
            decided = {**read.row, "rust_expected": read.pico}
            assert complaint(case_of(decided)) is not None, str(read)
