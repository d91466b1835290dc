"""The compiled unpacker agrees with the library, or leaves the block to it."""

from __future__ import annotations

import random

import lz4.block
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scapy_zenoh.bulk import lz4 as ours
from scapy_zenoh.values import MAX_BATCH

_unpack = numba.njit(lambda b, p, e, out, to: ours.unpack(b, p, e, out, to))
_room = np.zeros(7 + MAX_BATCH, np.uint8)


def unpacked(block: bytes) -> bytes | None:
    """What the compiled unpacker makes of a block, None when it leaves it to the library."""
    padded = np.frombuffer(b"\xff" * 5 + block + b"\xff" * 5, np.uint8).copy()
    size = _unpack(padded, 5, 5 + len(block), _room, 7)
    return None if size < 0 else _room[7 : 7 + size].tobytes()


def library(block: bytes) -> bytes | None:
    try:
        return bytes(lz4.block.decompress(block, uncompressed_size=MAX_BATCH))
    except lz4.block.LZ4BlockError:
        return None


def texts(dice: random.Random) -> bytes:
    """Content that can be compressed: words, runs, and noise."""
    words = [dice.randbytes(dice.randrange(1, 20)) for _ in range(dice.randrange(1, 8))]
    content = b"".join(dice.choice(words) * dice.choice([1, 1, 1, 300]) for _ in range(dice.randrange(1, 60)))
    return content[: MAX_BATCH - 100]


@pytest.mark.parametrize("seed", range(200))
def test_blocks_of_the_library_are_unpacked(seed: int) -> None:
    content = texts(random.Random(seed))
    for mode in ("default", "fast", "high_compression"):
        block = lz4.block.compress(content, mode=mode, store_size=False)
        assert unpacked(block) == content


def test_literals_alone() -> None:
    assert unpacked(b"\x30abc") == b"abc"
    assert unpacked(b"\xf0\x02" + b"x" * 17) == b"x" * 17


def test_a_match_may_overlap_what_it_makes() -> None:
    block = b"\x1fa\x01\x00\x05" + b"\x50bcdef"  # a, then 24 times what is one back, then five literals
    assert unpacked(block) == b"a" * 25 + b"bcdef" == library(block)


@pytest.mark.parametrize(
    "block", [b"", b"\x30ab", b"\x10a\x00\x00", b"\x10a\x02\x00\x10b", b"\xf0", b"\x1fa\x01\x00\xff"]
)
def test_bad_blocks_are_left_to_the_library(block: bytes) -> None:
    assert unpacked(block) is None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_whatever_is_unpacked_the_library_unpacks_alike(block: bytes) -> None:
    assert unpacked(block) in (None, library(block))


@pytest.mark.parametrize("seed", range(300))
def test_damaged_blocks_are_unpacked_alike_or_left_alone(seed: int) -> None:
    dice = random.Random(seed)
    block = bytearray(lz4.block.compress(texts(dice), store_size=False))
    for _ in range(dice.randrange(1, 4)):
        block[dice.randrange(len(block))] = dice.randrange(256)
    cut = bytes(block[: dice.randrange(1, len(block) + 1)])
    for damaged in (bytes(block), cut):
        assert unpacked(damaged) in (None, library(damaged))
