"""Putting fragments together, worked out by hand (protocol: reassembly)."""

from __future__ import annotations

from itertools import permutations

import pytest

from scapy_zenoh.session.fragments import MAX_RUNS, MAX_WAITING, Assembler

MASK = 0x3FFF


def assembler(limit: int = 1 << 20, mask: int = MASK, marked: bool = True) -> Assembler:
    return Assembler(mask, limit, marked)


def first(made: Assembler, sn: int, data: bytes, more: bool = True) -> tuple[bytes, int] | None:
    return made.add(sn, data, more, True, False)


def then(made: Assembler, sn: int, data: bytes, more: bool = True) -> tuple[bytes, int] | None:
    return made.add(sn, data, more, False, False)


def test_fragments_in_order_are_a_message() -> None:
    made = assembler()
    assert first(made, 1, b"ab") is None
    assert then(made, 2, b"cd") is None
    assert then(made, 3, b"e", more=False) == (b"abcde", 3)
    assert made.finish() == 0


def test_message_after_message() -> None:
    made = assembler()
    first(made, 1, b"a")
    assert then(made, 2, b"b", more=False) == (b"ab", 2)
    first(made, 4, b"c")
    assert then(made, 5, b"d", more=False) == (b"cd", 2)


def test_single_fragment_is_a_message() -> None:
    assert first(assembler(), 9, b"all", more=False) == (b"all", 1)


def test_numbers_wrap_around() -> None:
    made = assembler(mask=0x7F)
    first(made, 126, b"a")
    then(made, 127, b"b")
    assert then(made, 0, b"c", more=False) == (b"abc", 3)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_any_order_is_put_right(order: tuple[int, ...]) -> None:
    made, parts = assembler(), (b"a", b"b", b"c", b"d")
    results = [made.add(20 + i, parts[i], i < 3, i == 0, False) for i in order]
    assert [one for one in results if one is not None] == [(b"abcd", 4)]
    assert results[-1] is not None


def test_missing_start_gives_nothing() -> None:
    made = assembler()
    assert then(made, 2, b"b") is None
    assert then(made, 3, b"c", more=False) is None
    first(made, 5, b"x")
    assert then(made, 6, b"y", more=False) == (b"xy", 2)


def test_missing_middle_gives_nothing_and_is_counted() -> None:
    made = assembler()
    first(made, 1, b"a")
    assert then(made, 3, b"c", more=False) is None
    first(made, 5, b"x")
    assert then(made, 6, b"y", more=False) == (b"xy", 2)
    assert made.finish() == 1


def test_repeated_fragments_give_one_message() -> None:
    made = assembler()
    first(made, 1, b"a")
    first(made, 1, b"a")
    results = [then(made, 2, b"b"), then(made, 2, b"b"), then(made, 3, b"c", more=False)]
    assert [one for one in results if one is not None] == [(b"abc", 3)]


def test_drop_marker_ends_a_message() -> None:
    made = assembler()
    first(made, 1, b"a")
    assert made.add(2, b"", False, False, True) is None
    first(made, 4, b"x")
    assert then(made, 5, b"y", more=False) == (b"xy", 2)
    assert made.finish() == 1


def test_drop_marker_of_nothing_is_nothing() -> None:
    made = assembler()
    assert made.add(2, b"", False, False, True) is None
    assert made.finish() == 0


def test_new_first_fragment_ends_the_message_before() -> None:
    made = assembler()
    first(made, 1, b"a")
    first(made, 10, b"x")
    assert then(made, 11, b"y", more=False) == (b"xy", 2)
    assert made.finish() == 1


def test_frame_ends_the_message_where_order_is_kept() -> None:
    made = assembler()
    first(made, 1, b"a")
    made.frame(ordered=True)
    assert then(made, 2, b"b", more=False) is None
    assert made.finish() == 1


def test_frame_may_overtake_where_order_is_not_kept() -> None:
    made = assembler()
    first(made, 1, b"a")
    made.frame(ordered=False)
    assert then(made, 2, b"b", more=False) == (b"ab", 2)


def test_old_releases_do_not_mark_the_first() -> None:
    made = assembler(marked=False)
    assert then(made, 1, b"a") is None
    assert then(made, 2, b"b", more=False) == (b"ab", 2)
    assert then(made, 4, b"c") is None
    assert then(made, 5, b"d", more=False) == (b"cd", 2)


def test_message_above_the_limit_is_given_up_and_counted() -> None:
    made = assembler(limit=4)
    first(made, 1, b"abc")
    assert then(made, 2, b"def") is None
    assert then(made, 3, b"g", more=False) is None
    assert made.over_limit == 1
    first(made, 5, b"x")
    assert then(made, 6, b"y", more=False) == (b"xy", 2)


def test_what_is_kept_is_bounded() -> None:
    made = assembler()
    for number in range(0, 3000, 3):
        first(made, number, b"a")
        then(made, number + 2, b"c", more=False)
    assert len(made.runs) <= MAX_RUNS and len(made.waiting) <= MAX_WAITING
    assert made.finish() == 1000
