"""Compiled dissection gives the same objects as the interpretation of ``fields_desc``, good bytes or bad."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scapy_zenoh as z
from scapy_zenoh.compiled import source
from scapy_zenoh.message import Record
from tests.conftest import captures, vector_rows
from tests.same import differences


@contextmanager
def interpreted() -> Iterator[None]:
    """Within, nothing is compiled."""
    Record.compiled = False
    try:
        yield
    finally:
        Record.compiled = True


def both(data: bytes, layer: str) -> list[str]:
    """What the two ways of reading disagree on."""
    fast, fast_rest = z.parse(data, layer)
    with interpreted():
        slow, slow_rest = z.parse(data, layer)
    found = differences(fast, slow)
    return found + ([] if fast_rest == slow_rest else [f"rest {fast_rest.hex()} and {slow_rest.hex()}"])


def damaged(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """A few seeded variations: bits flipped, cut, a byte doubled."""
    flipped = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        flipped[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    yield bytes(flipped)
    yield data[: dice.randrange(len(data))]
    at = dice.randrange(len(data))
    yield data[:at] + data[at : at + 1] + data[at:]


@pytest.mark.parametrize("name", ["zenoh-pico-valid.jsonl", "zenoh-pico-damaged.jsonl"])
def test_same_objects_from_vectors_and_damaged_copies(name: str) -> None:
    dice = random.Random(7)
    for row in vector_rows(name):
        data = bytes.fromhex(row["hex"])
        for variant in (data, *damaged(data, dice)):
            assert not both(variant, row["layer"]), (row["id"], variant.hex())


@pytest.mark.parametrize("capture", captures(), ids=lambda p: p.stem)
def test_same_objects_from_captures(capture: Any) -> None:
    from scapy.utils import PcapReader

    with PcapReader(str(capture)) as packets:
        raw = [bytes(p) for p, _ in zip(packets, range(300), strict=False)]
        kind = type(next(iter(PcapReader(str(capture)))))
    for data in raw:
        fast = kind(data)
        with interpreted():
            slow = kind(data)
        assert not differences(fast, slow), data.hex()


@given(st.sampled_from(sorted(z.LAYERS)), st.binary(min_size=1, max_size=200))
@settings(max_examples=500, deadline=None)
def test_same_objects_from_random_bytes(layer: str, data: bytes) -> None:
    assert not both(data, layer)


def test_generated_function_reads_like_the_declaration() -> None:
    lines = source(z.ZenohPush).splitlines()
    order = ["v_Z", "f['M']", "v_N", "v_scope", "v_suffix_len", "f['suffix']", "f['exts']", "body(BODY"]
    found = [next(i for i, line in enumerate(lines) if name in line) for name in order]
    assert found == sorted(found)


def test_bad_message_does_not_slow_the_frame_around_it() -> None:
    good = bytes(z.ZenohPush(suffix="a") / z.ZenohPut(data=b"x"))
    frame, _ = z.parse(b"\x25\x00" + good + b"\xdd\x01\x31\x00" + good, "transport")
    assert [type(m).__name__ for m in frame.msgs] == ["ZenohPush", "ZenohPush"]
    assert frame.msgs[1].exts[0].fault == "unknown_mandatory_ext"
