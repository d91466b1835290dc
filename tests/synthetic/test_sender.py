"""The quick ways of the senders give what the thorough ones give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scapy_zenoh.synthetic.sender import Counts, Lane, PlainLane, Sender
from scapy_zenoh.synthetic.shape import Shape

MASK = 0x0FFFFFFF


def batches(kind: type[Lane], messages: list[tuple[bytes, bool]], compression: bool) -> tuple[list[bytes], Counts]:
    counts = Counts()
    sender = Sender(Shape(per_batch=4, compression=compression), counts, MASK - 1, MASK)
    lane = kind(sender, 3, MASK - 1)
    for message, at_once in messages:
        lane.add(message, at_once=at_once)
    lane.finish()
    return sender.take(), counts


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=40), st.booleans())), st.booleans())
def test_plain_lane_makes_the_same_batches(messages: list[tuple[bytes, bool]], compression: bool) -> None:
    assert batches(PlainLane, messages, compression) == batches(Lane, messages, compression)


@pytest.mark.parametrize(
    ("shape", "plain"),
    [
        (Shape(), True),
        (Shape(express=0.5), True),
        (Shape(best_effort=0.1), False),
        (Shape(batch_size=4000), False),
        (Shape(per_batch=100), False),
        (Shape(large=0.1), False),
    ],
)
def test_lane_is_plain_only_when_no_batch_can_overflow(shape: Shape, plain: bool) -> None:
    assert (type(Sender(shape, Counts(), 0, MASK).lane(5)) is PlainLane) is plain
