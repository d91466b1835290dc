"""Checksums of made packets."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from scapy_zenoh.synthetic.recorder import word_sum


@given(st.binary(max_size=3000))
@example(b"\xff" * 1448)
@example(b"\xff" * 65_000)
@example(b"\x00" * 769 + b"\x01")
def test_word_sum_is_the_sum_of_words(data: bytes) -> None:
    padded = data + b"\0" * (len(data) % 2)
    words = (int.from_bytes(padded[i : i + 2], "big") for i in range(0, len(padded), 2))
    assert word_sum(data) == sum(words) % 0xFFFF
