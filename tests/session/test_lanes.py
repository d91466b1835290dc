"""Sequence numbers, worked out by hand (protocol: SN arithmetic)."""

from __future__ import annotations

import pytest

from scapy_zenoh.session.lanes import WINDOW, Lane

BITS7, BITS14, BITS28 = 0x7F, 0x3FFF, 0x0FFFFFFF


def lane(*numbers: int, mask: int = BITS28, first: int | None = None, ends: tuple[int, ...] = ()) -> Lane:
    """A lane that has seen these numbers; ``ends`` are those of last fragments."""
    made = Lane(mask)
    if first is not None:
        made.expect(first)
    for number in numbers:
        made.see(number, ends_fragments=number in ends)
    return made


@pytest.mark.parametrize("mask", [BITS7, BITS14, BITS28, 0xFFFFFFFF])
def test_numbers_wrap_around(mask: int) -> None:
    assert lane(mask - 1, mask, 0, 1, 2, mask=mask, first=mask - 1).finish() == 0


def test_many_rounds_of_a_small_counter_lose_nothing() -> None:
    assert lane(*(n & BITS7 for n in range(1000)), mask=BITS7, first=0).finish() == 0


def test_first_number_is_the_one_that_was_announced() -> None:
    assert lane(7, 8, first=7).finish() == 0
    assert lane(9, 10, first=7).finish() == 2
    assert lane(0, 1, mask=BITS7, first=0).finish() == 0
    assert lane(1, mask=BITS7, first=127).finish() == 2  # 127 and 0


def test_without_announcement_the_first_seen_counts() -> None:
    assert lane(1000, 1001).finish() == 0


def test_skipped_number_is_missing() -> None:
    assert lane(5, 7).finish() == 1
    assert lane(5, 6, 10, 11).finish() == 3


def test_number_after_the_last_fragment_is_not_used() -> None:
    assert lane(5, 6, 8, ends=(6,)).finish() == 0


def test_number_after_the_last_fragment_may_be_used() -> None:
    assert lane(5, 6, 7, 8, ends=(6,)).finish() == 0


def test_only_one_number_is_left_out_after_the_last_fragment() -> None:
    assert lane(5, 6, 9, ends=(6,)).finish() == 1  # 8


def test_number_left_out_at_the_wrap() -> None:
    assert lane(126, 127, 1, 2, mask=BITS7, ends=(127,)).finish() == 0
    assert lane(125, 126, 0, 1, mask=BITS7, ends=(126,)).finish() == 0


def test_fragmented_messages_round_after_round() -> None:
    """Three fragments and a number left out, so that ends come to lie on every number."""
    made, number = Lane(BITS7), 0
    for _ in range(200):
        for step in range(3):
            made.see((number + step) & BITS7, ends_fragments=step == 2)
        number += 4
    made.see(number & BITS7)
    assert made.finish() == 0


def test_late_number_is_not_missing() -> None:
    assert lane(5, 7, 6, 8).finish() == 0
    assert lane(5, 8, 7, 6, 9).finish() == 0


def test_last_fragment_that_comes_late_explains_the_number_left_out() -> None:
    assert lane(5, 8, 6, ends=(6,)).finish() == 0


def test_repeated_number_is_no_loss() -> None:
    made = lane(5, 6, 6, 5, 7)
    assert (made.finish(), made.repeated) == (0, 2)


def test_number_that_does_not_come_within_the_window_is_missing() -> None:
    made = lane(0, *range(2, 2 + WINDOW))
    assert made.missing == 0
    made.see(2 + WINDOW)
    assert made.missing == 1
    assert made.finish() == 1


def test_far_number_is_damage_unless_the_next_one_goes_on() -> None:
    assert lane(10, 5000, 11, 12).finish() == 0


def test_far_number_that_goes_on_is_a_loss() -> None:
    assert lane(10, 5000, 5001, 5002).finish() == 4989  # 11 to 4999


def test_far_number_after_a_gap_of_a_fragment_goes_on() -> None:
    assert lane(10, 5000, 5002, 5003, ends=(5000,)).finish() == 4989


def test_two_damaged_numbers_are_not_one_jump() -> None:
    """The next number must go on from the far one, not some later one."""
    assert lane(10, 5000, 11, 5001, 12, 13).finish() == 0


def test_old_number_far_behind_does_not_move_the_lane() -> None:
    assert lane(1000, 1001, 10, 1002, 1003).finish() == 0


def test_loss_of_a_third_of_a_small_counter() -> None:
    assert lane(0, 41, 42, mask=BITS7, first=0).finish() == 40


def test_number_above_the_mask_is_ignored() -> None:
    made = lane(5, 0x80, 6, mask=BITS7)
    assert (made.finish(), made.repeated) == (0, 0)
