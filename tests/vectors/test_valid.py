"""Messages written by zenoh-pico: each is read, built and rebuilt to the last value and byte."""

from __future__ import annotations

from typing import Any

import pytest

import scapy_zenoh
from tests.conftest import vector_rows
from tests.vectors.mapping import Wanted, build, differences, wanted

ROWS = vector_rows("zenoh-pico-valid.jsonl")

each_row = pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])


@each_row
def test_reading_gives_the_values_that_went_in(row: dict[str, Any]) -> None:
    packet, rest = scapy_zenoh.parse(bytes.fromhex(row["hex"]), row["layer"])
    assert packet.fault is None, [str(fault) for _, fault in packet.faults()]
    assert rest == b""
    found = differences(packet, wanted(row))
    assert not found, "\n".join(found)


@each_row
def test_building_from_the_values_gives_the_bytes(row: dict[str, Any]) -> None:
    assert bytes(build(wanted(row))).hex() == row["hex"]


@each_row
def test_rebuilding_what_was_read_gives_the_bytes(row: dict[str, Any]) -> None:
    packet, rest = scapy_zenoh.parse(bytes.fromhex(row["hex"]), row["layer"])
    assert (scapy_zenoh.rebuild(packet) + rest).hex() == row["hex"]


def test_every_extension_of_a_query_is_in_one_of_two_orders() -> None:
    """The quirk may only change the order of extensions, never their values."""

    def sorted_exts(want: Wanted) -> list[str]:
        return sorted(repr(ext) for ext in want.exts)

    for row in ROWS:
        if row["layer"] == "data" and "query_extension_order" in row["quirks"]:
            usual = wanted({**row, "quirks": []})
            assert wanted(row).exts != usual.exts, row["id"]
            assert sorted_exts(wanted(row)) == sorted_exts(usual), row["id"]


def test_a_key_that_the_mapping_does_not_know_is_an_error() -> None:
    row = ROWS[0]
    with pytest.raises(KeyError, match="novelty"):
        wanted({**row, "fields": {**row["fields"], "novelty": 1}})
