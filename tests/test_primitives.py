"""Integers, ids, times and encodings, with the examples of the specification written out."""

from __future__ import annotations

import pickle

import pytest

from scapy_zenoh.fault import FaultKind, WireFault
from scapy_zenoh.primitives import VLE, vle_decode, vle_encode, zid_from_wire, zid_to_wire
from scapy_zenoh.values import encoding_from_text, encoding_to_text, ntp64_of, ntp64_to_ns, ntp64_to_text

INTEGERS = {
    0: "00",
    127: "7f",
    128: "80 01",
    300: "ac 02",
    16383: "ff 7f",
    16384: "80 80 01",
    65535: "ff ff 03",
    2097151: "ff ff 7f",
    2097152: "80 80 80 01",
    2**28 - 1: "ff ff ff 7f",
    2**28: "80 80 80 80 01",
    2**32 - 1: "ff ff ff ff 0f",
    2**35: "80 80 80 80 80 01",
    2**56 - 1: "ff ff ff ff ff ff ff 7f",
    2**56: "80 80 80 80 80 80 80 80 01",
    2**63 - 1: "ff ff ff ff ff ff ff ff 7f",
    2**63: "80 80 80 80 80 80 80 80 80",
    2**64 - 1: "ff ff ff ff ff ff ff ff ff",
    7709371979367022689: "e1 80 96 fc 81 9f cc fe 6a",
}


@pytest.mark.parametrize("value, wire", INTEGERS.items(), ids=str)
def test_integer_has_these_bytes(value: int, wire: str) -> None:
    data = bytes.fromhex(wire)
    assert vle_encode(value) == data
    read, size = vle_decode(data + b"\xff")
    assert (read, size, type(read)) == (value, len(data), int)


@pytest.mark.parametrize("value, wire", INTEGERS.items(), ids=str)
def test_integer_that_ends_early_is_truncated(value: int, wire: str) -> None:
    data = bytes.fromhex(wire)
    for end in range(len(data)):
        with pytest.raises(WireFault) as fault:
            vle_decode(data[:end])
        assert fault.value.kind is FaultKind.TRUNCATED


@pytest.mark.parametrize("wire, value", [("80 00", 0), ("85 80 00", 5), ("ff 80 80 80 80 80 80 80 00", 127)])
def test_integer_longer_than_needed_remembers_its_width(wire: str, value: int) -> None:
    data = bytes.fromhex(wire)
    read, size = vle_decode(data)
    assert read == value and size == len(data)
    assert isinstance(read, VLE) and repr(read) == f"VLE({value}, width={len(data)})"
    assert vle_encode(read) == data
    assert vle_encode(pickle.loads(pickle.dumps(read))) == data


def test_integer_over_64_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        vle_encode(2**64)


@pytest.mark.parametrize(
    "text, wire",
    [
        ("a1b2c3", "c3b2a1"),
        ("b0b", "0b0b"),
        ("1102030405060708090a0b0c0d0e0f10", "100f0e0d0c0b0a090807060504030211"),
        ("5", "05"),
        ("000b0b", "0b0b00"),  # no node makes one, and nothing of it is lost
        ("00", "00"),
    ],
)
def test_id_is_printed_as_zenoh_prints_it(text: str, wire: str) -> None:
    assert zid_from_wire(bytes.fromhex(wire)) == text
    assert zid_to_wire(text).hex() == wire


def test_time_counts_from_1970() -> None:
    assert ntp64_to_text(7709371979367022689).startswith("2026-11-18T05:00:40.12313")
    assert ntp64_to_ns(1 << 32) == 10**9
    assert ntp64_to_ns((5 << 32) + (1 << 31)) == 5_500_000_000


def test_microseconds_come_back() -> None:
    from datetime import datetime, timezone

    moment = datetime(2026, 11, 18, 5, 0, 40, 123457, tzinfo=timezone.utc)
    assert ntp64_to_text(ntp64_of(moment)).startswith("2026-11-18T05:00:40.123457")


@pytest.mark.parametrize(
    "text, number, schema",
    [
        ("zenoh/bytes", 0, None),
        ("text/plain;utf-8", 4, "utf-8"),
        ("application/json", 5, None),
        ("text/plain;", 4, ""),
        ("my/enc", 0xFFFF, "my/enc"),
        ("unknown(77);x", 77, "x"),
    ],
)
def test_encoding_is_id_and_schema(text: str, number: int, schema: str | None) -> None:
    assert encoding_from_text(text) == (number, schema)
    assert encoding_to_text(number, schema) == text
