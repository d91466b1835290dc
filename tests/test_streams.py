"""TCP as it is captured: out of order, repeated, overlapping, with holes, from the middle, on ports used again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scapy_zenoh import streams as module
from scapy_zenoh.capture import CaptureReader, Packet
from scapy_zenoh.streams import Chunk, Closed, Event, Opened, TcpStreams
from tests.conftest import LAB, captures
from tests.streams import Address, connections, segments, truth, undamaged
from tests.wire import ACK, FIN, PSH, RST, SYN

LOW, HIGH = ("10.0.0.9", 50000), ("10.0.0.10", 7447)  # compared as numbers, not as text
LINK = "tcp/10.0.0.9:50000-10.0.0.10:7447"
SECOND = 10**9

Item = int | bytes  # what a direction carried: a gap or bytes


class Wire:
    """Makes the packets of a connection; positions count from the first byte of each direction."""

    def __init__(
        self, isn: Sequence[int] = (1000, 0xFFFFFFF0), low: Address = LOW, high: Address = HIGH, time: int = SECOND
    ) -> None:
        self.isn = isn
        self.ends = low, high
        self.frame = 0
        self.time = time

    def __call__(
        self, direction: int, at: int, data: bytes = b"", flags: int = ACK, ack: int = 0, missing: int = 0
    ) -> Packet:
        """A packet one millisecond after the one before."""
        self.frame += 1
        self.time += 10**6
        seq = (self.isn[direction] + 1 + at) % (1 << 32)
        acknowledged = (self.isn[1 - direction] + 1 + ack) % (1 << 32) if flags & ACK else 0
        ends = *self.ends[direction], *self.ends[1 - direction]
        return Packet("a.pcap", self.frame, self.time, *ends, "tcp", data, missing, seq, acknowledged, flags)

    def handshake(self, initiator: int = 0) -> list[Packet]:
        """SYN, SYN-ACK, ACK."""
        return [
            self(initiator, -1, flags=SYN),
            self(1 - initiator, -1, flags=SYN | ACK),
            self(initiator, 0),
        ]

    def goodbye(self, low: int = 0, high: int = 0) -> list[Packet]:
        """FIN from both sides after so many bytes, and the ACKs."""
        return [
            self(0, low, flags=FIN | ACK, ack=high),
            self(1, high, flags=FIN | ACK, ack=low + 1),
            self(0, low + 1, ack=high + 1),
        ]


def run(packets: Iterable[Packet], streams: TcpStreams | None = None) -> list[Event]:
    streams = streams or TcpStreams()
    return [*feed(streams, packets), *streams.finish()]


def feed(streams: TcpStreams, packets: Iterable[Packet]) -> list[Event]:
    return [event for packet in packets for event in streams.feed(packet)]


def content(events: Iterable[Event], direction: int, link: str = LINK + "#0") -> list[Item]:
    """Gaps and bytes of a direction, neighbours joined."""
    items: list[Item] = []
    for event in events:
        if isinstance(event, Chunk) and event.link == link and event.direction == direction:
            add(items, event.gap)
            add(items, event.data)
    return items


def add(items: list[Item], item: Item) -> None:
    if item:
        if items and type(items[-1]) is type(item):
            items[-1] += item  # type: ignore[operator]
        else:
            items.append(item)


def by_link(events: Iterable[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.link, []).append(event)
    return found


def lifes(events: Iterable[Event]) -> list[tuple[str, int | None, str]]:
    """Link, initiator and end of each connection, in the order they were opened."""
    closed = {e.link: e.how for e in events if isinstance(e, Closed)}
    return [(e.link, e.initiator, closed[e.link]) for e in events if isinstance(e, Opened)]


# --- a connection by the book -------------------------------------------------------------------


def test_connection_from_beginning_to_end() -> None:
    wire = Wire()
    syn, answer, ack = wire.handshake()
    hello, world = wire(0, 0, b"hello"), wire(1, 0, b"world", ack=5)
    fins = wire.goodbye(5, 5)
    streams = TcpStreams()
    ends = (*LOW, *HIGH)
    back = (*HIGH, *LOW)
    assert streams.feed(syn) == [Opened(LINK + "#0", 0, syn, LOW, HIGH)]
    assert streams.feed(answer) == streams.feed(ack) == []
    assert streams.feed(hello) == [Chunk(LINK + "#0", 0, b"hello", 4, hello.time, "a.pcap", 0, *ends, 4)]
    assert streams.feed(world) == [Chunk(LINK + "#0", 1, b"world", 5, world.time, "a.pcap", 0, *back, 5)]
    assert streams.feed(fins[0]) == streams.feed(fins[1]) == []
    assert streams.feed(fins[2]) == [Closed(LINK + "#0", "fin", fins[2], "a.pcap", 8, fins[2].time)]
    assert streams.finish() == []


def test_higher_end_may_open() -> None:
    assert lifes(run(Wire().handshake(1))) == [(LINK + "#0", 1, "end")]


def test_ipv6_ends_are_in_brackets_and_equal_addresses_are_told_apart_by_port() -> None:
    wire = Wire((1, 2), ("::1", 7447), ("::1", 40000))
    assert lifes(run(wire.handshake(1))) == [("tcp/[::1]:7447-[::1]:40000#0", 1, "end")]


def test_udp_is_no_concern() -> None:
    assert run([Wire()(0, 0, b"x")._replace(proto="udp")]) == []


def test_syn_and_fin_can_carry_data() -> None:
    wire = Wire()
    packets = [wire(0, -1, b"early", SYN)._replace(seq=1000), wire(1, -1, flags=SYN | ACK, ack=5)]
    packets += [wire(0, 5, b"last", FIN | ACK), wire(1, 0, flags=FIN | ACK, ack=10), wire(0, 10, ack=1)]
    events = run(packets)
    assert content(events, 0) == [b"earlylast"]
    assert lifes(events) == [(LINK + "#0", 0, "fin")]


def test_end_of_the_capture_closes() -> None:
    wire = Wire()
    last = wire.handshake()[-1]
    assert run(wire.handshake())[-1] == Closed(LINK + "#0", "end", None, "a.pcap", 6, last.time + 3 * 10**6)


# --- order, repetition, overlap -----------------------------------------------------------------


def test_each_chunk_names_the_packet_that_brought_it() -> None:
    wire = Wire()
    events = run([*wire.handshake(), wire(0, 3, b"def"), wire(0, 6, b"ghi"), wire(0, 0, b"abc")])
    chunks = [e for e in events if isinstance(e, Chunk)]
    assert [(c.data, c.frame) for c in chunks] == [(b"abc", 6), (b"def", 4), (b"ghi", 5)]


def test_old_bytes_keep_alive_probes_and_zero_windows_change_nothing() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abcdef"), wire(1, 0, ack=6)]
    packets += [wire(0, 5, b"\0"), wire(1, 0, ack=6), wire(0, 5), wire(0, 2, b"CD"), wire(0, 0, b"ABCDEFghi")]
    assert content(run(packets), 0) == [b"abcdefghi"]


@st.composite
def cuts(draw: st.DrawFn, size: int, most: int = 20) -> list[tuple[int, int]]:
    """Ranges that cover ``size`` bytes one after the other."""
    points = draw(st.lists(st.integers(0, size), max_size=most)) if size else []
    edges = sorted({0, size, *points})
    return list(zip(edges, edges[1:], strict=False))


@st.composite
def shuffled(draw: st.DrawFn, items: list[Any], window: int = 5) -> list[Any]:
    """Items of which each is at most ``window`` places too late."""
    late = draw(st.lists(st.integers(0, window), min_size=len(items), max_size=len(items)))
    return [items[i] for i in sorted(range(len(items)), key=lambda i: (i + late[i], i))]


ISN = st.one_of(st.integers(0, 0xFFFFFFFF), st.integers(0xFFFFFF00, 0xFFFFFFFF))


@settings(max_examples=300, deadline=None)
@given(st.data(), st.binary(max_size=300), st.binary(max_size=300), ISN, ISN)
def test_both_directions_come_back_whole(data: st.DataObject, up: bytes, down: bytes, a: int, b: int) -> None:
    wire = Wire((a, b))
    packets = wire.handshake(data.draw(st.integers(0, 1)))
    sent = []
    for direction, text in ((0, up), (1, down)):
        ranges = data.draw(cuts(len(text), 10))
        again = data.draw(st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, 60)), max_size=8))
        ranges = data.draw(shuffled(ranges))
        for start, size in again:
            ranges.insert(data.draw(st.integers(0, len(ranges))), (start, min(start + size, len(text))))
        sent.append([(direction, low, text[low:high]) for low, high in ranges])
    order = data.draw(st.permutations([0] * len(sent[0]) + [1] * len(sent[1])))
    for which in order:
        direction, at, piece = sent[which].pop(0)
        acked = data.draw(st.integers(0, len((down, up)[direction])))
        packets.append(wire(direction, at, piece, PSH | ACK, acked))
    assert len(packets) < 64
    packets += wire.goodbye(len(up), len(down))
    if data.draw(st.booleans()):
        packets = data.draw(shuffled(packets, 2))  # also the handshake and the end
        if not packets[0].flags & SYN or packets[1].payload:
            return  # what is known then is tested below
    events = run(packets)
    assert content(events, 0) == ([up] if up else [])
    assert content(events, 1) == ([down] if down else [])
    assert lifes(events)[0][2] == "fin"
    assert len(lifes(events)) == 1


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.binary(min_size=1, max_size=30)), max_size=20),
    st.integers(0, 60),
    ISN,
)
def test_first_captured_byte_wins(pieces: list[tuple[int, bytes]], acked: int, isn: int) -> None:
    wire = Wire((isn, 5))
    first: dict[int, int] = {}
    for at, data in pieces:
        for i, byte in enumerate(data):
            first.setdefault(at + i, byte)
    packets = [*wire.handshake(), *(wire(0, at, data) for at, data in pieces)]
    end = max([0, *(i + 1 for i in first)])
    events = run([*packets, *wire.goodbye(end)])
    assert content(events, 0) == expected(first, end)


def expected(first: dict[int, int], end: int) -> list[Item]:
    """The bytes known, and gaps for the others."""
    items: list[Item] = []
    for i in range(end):
        add(items, bytes([first[i]]) if i in first else 1)
    return items


# --- holes --------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.data(), st.binary(min_size=1, max_size=400), ISN, st.booleans())
def test_what_is_lost_is_a_gap_of_its_size(data: st.DataObject, text: bytes, isn: int, acks: bool) -> None:
    """Lost packets and snap lengths. With ACKs in between, holes are given up long before the end."""
    wire = Wire((isn, 7))
    packets = wire.handshake()
    first: dict[int, int] = {}
    for low, high in data.draw(shuffled(data.draw(cuts(len(text), 40)))):
        kept = data.draw(st.sampled_from([high, high, high, low, (low + high) // 2]))
        if kept > low or data.draw(st.booleans()):
            packets.append(wire(0, low, text[low:kept], missing=high - kept))
            first.update((i, text[i]) for i in range(low, kept))
        if acks:
            packets += [wire(1, 0, ack=high) for _ in range(4)]
    events = run([*packets, *wire.goodbye(len(text))])
    assert content(events, 0) == expected(first, len(text))


def behind_a_hole(wire: Wire, acked: bool = True) -> tuple[TcpStreams, list[Packet]]:
    """A connection with bytes 0..3 and 6..9, of which the other side has acknowledged all or three."""
    streams = TcpStreams()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(0, 6, b"ghi"), wire(1, 0, ack=9 if acked else 3)]
    assert content(feed(streams, packets), 0) == [b"abc"]
    return streams, packets


def test_acknowledged_hole_is_given_up_after_64_packets() -> None:
    wire = Wire()
    streams, _ = behind_a_hole(wire)
    for _ in range(63):
        assert feed(streams, [wire(1, 0, ack=9)]) == []
    assert content(feed(streams, [wire(1, 0, ack=9)]), 0) == [3, b"ghi"]
    assert feed(streams, [wire(0, 3, b"def")]) == []  # too late, it is old now


def test_acknowledged_hole_can_be_filled_until_then() -> None:
    wire = Wire()
    streams, _ = behind_a_hole(wire)
    feed(streams, [wire(1, 0, ack=9) for _ in range(63)])
    assert content(feed(streams, [wire(0, 3, b"def")]), 0) == [b"defghi"]


def test_acknowledged_hole_is_given_up_after_two_seconds() -> None:
    wire = Wire()
    streams, _ = behind_a_hole(wire)
    wire.time += 2 * SECOND - 2 * 10**6
    assert feed(streams, [wire(1, 0, ack=9)]) == []
    assert content(feed(streams, [wire(1, 0, ack=9)]), 0) == [3, b"ghi"]


def test_hole_that_nobody_acknowledged_stays_open() -> None:
    wire = Wire()
    streams, _ = behind_a_hole(wire, acked=False)
    for _ in range(200):
        wire.time += SECOND
        assert feed(streams, [wire(1, 0, ack=3)]) == []
    assert content(feed(streams, [wire(0, 3, b"def")]), 0) == [b"defghi"]


def test_clock_of_a_hole_starts_with_the_acknowledgement() -> None:
    wire = Wire()
    streams, _ = behind_a_hole(wire, acked=False)
    feed(streams, [wire(1, 0, ack=3) for _ in range(100)])
    for _ in range(64):
        assert feed(streams, [wire(1, 0, ack=9)]) == []
    assert content(feed(streams, [wire(1, 0, ack=9)]), 0) == [3, b"ghi"]


def test_acknowledgement_may_come_before_the_data_behind_the_hole() -> None:
    wire = Wire()
    streams = TcpStreams()
    feed(streams, [*wire.handshake(), wire(0, 0, b"abc"), *(wire(1, 0, ack=9) for _ in range(100))])
    assert feed(streams, [wire(0, 6, b"ghi"), *(wire(1, 0, ack=9) for _ in range(63))]) == []
    assert content(feed(streams, [wire(1, 0, ack=9)]), 0) == [3, b"ghi"]


def test_holes_close_together_do_not_wait_for_each_other() -> None:
    """One lost packet in five: what waits does not pile up."""
    wire = Wire()
    streams = TcpStreams()
    feed(streams, wire.handshake())
    came = sent = 0
    for i in range(1000):
        if i % 5:
            events = feed(streams, [wire(0, i * 10, bytes(10)), wire(1, 0, ack=i * 10 + 10)])
            came += sum(len(e.data) for e in events if isinstance(e, Chunk))
            sent += 10
            assert sent - came <= 10 * 40


def test_waiting_data_is_bounded() -> None:
    wire = Wire()
    streams = TcpStreams()
    feed(streams, wire.handshake())
    step = 1 << 16
    packets = [wire(0, 1 + i * step, bytes(step)) for i in range(65)]
    assert feed(streams, packets[:64]) == []
    assert [len(i) if isinstance(i, bytes) else i for i in content(feed(streams, packets[64:]), 0)] == [1, 65 * step]


def test_number_of_waiting_pieces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PIECES", 10)
    wire = Wire()
    streams = TcpStreams()
    feed(streams, wire.handshake())
    assert feed(streams, [wire(0, 2 * i + 1, b"x") for i in range(10)]) == []
    events = feed(streams, [wire(0, 21, b"x")])
    assert content(events, 0) == [1, b"x"]  # the first hole, no more


def test_bytes_acknowledged_at_the_end_are_missing() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(1, 0, ack=10)]
    *_, chunk, closed = run(packets)
    assert isinstance(chunk, Chunk)
    assert (chunk.data, chunk.gap, chunk.direction, chunk.frame) == (b"", 7, 0, 5)
    assert isinstance(closed, Closed)


def test_bytes_before_a_fin_are_missing() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(0, 10, flags=FIN | ACK)]
    assert content(run(packets), 0) == [b"abc", 7]


def test_one_byte_acknowledged_beyond_the_end_was_a_fin() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(1, 0, ack=4, flags=FIN | ACK)]
    assert content(run(packets), 0) == [b"abc"]


def test_direction_of_which_nothing_was_captured_is_missing_too() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abc", ack=0), wire(0, 3, b"def", ack=100)]
    assert content(run(packets), 1) == [100]


# --- snap length --------------------------------------------------------------------------------


def test_retransmission_fills_what_the_snap_length_cut_off() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"ab", missing=4), wire(0, 6, b"gh"), wire(0, 2, b"cdef")]
    assert content(run(packets), 0) == [b"abcdefgh"]


def test_what_was_cut_off_and_acknowledged_is_missing_at_once() -> None:
    wire = Wire()
    streams = TcpStreams()
    events = feed(streams, [*wire.handshake(), wire(0, 0, b"ab", missing=4), wire(0, 6, b"gh", missing=2)])
    assert content(events, 0) == [b"ab"]
    assert content(feed(streams, [wire(1, 0, ack=10)]), 0) == [4, b"gh"]
    assert content(streams.finish(), 0) == [2]


def test_packet_of_which_only_headers_were_captured() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, missing=10), wire(0, 10, b"x")]
    assert content(run(packets), 0) == [10, b"x"]


@pytest.mark.parametrize("acks", [True, False])
def test_headers_alone_of_more_than_all_sequence_numbers(acks: bool) -> None:
    wire = Wire()
    streams = TcpStreams()
    feed(streams, wire.handshake())
    step = 1 << 25
    for i in range(300):  # 9.4 GB
        feed(streams, [wire(0, i * step, missing=step), *([wire(1, 0, ack=(i + 1) * step)] if acks else [])])
    assert len(streams._live[LINK + "#0"].halves[0].cuts) == 1
    assert content(streams.finish(), 0) == [300 * step]


def test_places_of_cuts_are_bounded() -> None:
    wire = Wire()
    streams = TcpStreams()
    feed(streams, [*wire.handshake(), *(wire(0, i * 10, missing=5) for i in range(5000))])
    assert len(streams._live[LINK + "#0"].halves[0].cuts) <= module.MAX_CUTS
    assert content(streams.finish(), 0) == [49995]


def test_acknowledgements_alone_of_more_than_all_sequence_numbers() -> None:
    wire = Wire()
    assert content(run([*wire.handshake(), *(wire(1, 0, ack=i << 25) for i in range(300))]), 0) == [299 << 25]


# --- from the middle ----------------------------------------------------------------------------


def test_connection_without_beginning_starts_with_the_first_byte_seen() -> None:
    wire = Wire()
    events = run([wire(0, 500, b"abc"), wire(1, 900, b"xyz", ack=503)])
    assert lifes(events) == [(LINK + "#0", None, "end")]
    assert (content(events, 0), content(events, 1)) == ([b"abc"], [b"xyz"])


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_three_packets_in_any_order_come_out_together(order: tuple[int, ...]) -> None:
    wire = Wire((0xFFFFFFF0 - 500, 9))
    pieces = [(500, b"abc"), (503, b"defghijklmnop"), (516, b"qr")]
    streams = TcpStreams()
    packets = [wire(0, *pieces[i]) for i in order]
    assert content(feed(streams, packets[:2]), 0) == []
    assert content(feed(streams, packets[2:]), 0) == [b"abcdefghijklmnopqr"]
    assert feed(streams, [wire(0, 497, b"old")]) == []


def test_what_does_not_join_the_first_byte_seen_is_old() -> None:
    wire = Wire()
    packets = [wire(0, 500, b"abc"), wire(0, 490, b"old"), wire(0, 503, b"def"), wire(0, 506, b"ghi")]
    assert content(run(packets), 0) == [b"abcdefghi"]


def test_delivery_is_held_back_for_a_fifth_of_a_second() -> None:
    wire = Wire()
    streams = TcpStreams()
    assert content(feed(streams, [wire(0, 500, b"abc")]), 0) == []
    wire.time += 198 * 10**6
    assert feed(streams, [wire(1, 7, ack=503)]) == []
    assert content(feed(streams, [wire(1, 7, ack=503)]), 0) == [b"abc"]


def test_both_directions_begin_in_the_order_of_their_packets() -> None:
    wire = Wire()
    packets = [wire(0, 0, b"question"), wire(1, 0, b"an"), wire(1, 2, b"sw"), wire(1, 4, b"er")]
    wire.time += SECOND
    events = run([*packets, wire(0, 8, ack=6)])
    assert [e.data for e in events if isinstance(e, Chunk)] == [b"question", b"an", b"sw", b"er"]


def test_keep_alive_probe_is_not_the_first_byte() -> None:
    wire = Wire()
    packets = [wire(1, 0, ack=500), wire(0, 499, b"\0"), wire(0, 500, b"abc"), wire(0, 503, b"def")]
    assert content(run(packets), 0) == [b"abcdef"]


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 2), (1, 2), (2,)])
def test_beginning_is_known_from_one_packet_of_the_handshake(lost: tuple[int, ...]) -> None:
    """SYN alone with the first ACK, SYN-ACK alone: nothing is held back, and a lost first packet is a gap."""
    wire = Wire()
    streams = TcpStreams()
    feed(streams, [p for i, p in enumerate(wire.handshake()) if i not in lost])
    events = feed(streams, [wire(0, 0, b"abc"), wire(1, 0, b"x", ack=3)])
    assert (content(events, 0), content(events, 1)) == ([b"abc"], [b"x"])
    assert lifes(run([p for i, p in enumerate(wire.handshake()) if i not in lost]))[0][1] == 0


def test_first_packet_lost_behind_a_handshake_is_a_gap() -> None:
    wire = Wire()
    syn_ack = wire(1, -1, flags=SYN | ACK)
    assert content(run([syn_ack, wire(0, 5, b"abc")]), 0) == [5, b"abc"]


def test_syn_that_stands_behind_the_data_it_opened() -> None:
    wire = Wire()
    syn, answer, ack = wire.handshake()
    events = run([ack, wire(0, 3, b"def"), syn, wire(0, 0, b"abc"), answer, wire(1, 0, b"x")])
    assert (content(events, 0), content(events, 1)) == ([b"abcdef"], [b"x"])
    assert lifes(events) == [(LINK + "#0", None, "end")]


# --- closing and using ports again --------------------------------------------------------------


def test_data_that_fins_overtook_is_not_lost() -> None:
    wire = Wire()
    start, late = wire.handshake(), wire(0, 0, b"abc")
    events = run([*start, *wire.goodbye(3), late])
    assert content(events, 0) == [b"abc"]
    assert lifes(events) == [(LINK + "#0", 0, "fin")]


def test_data_that_is_under_way_when_the_connection_is_reset() -> None:
    wire = Wire()
    streams = TcpStreams()
    reset = wire(1, 0, flags=RST | ACK, ack=3)
    events = feed(streams, [*wire.handshake(), wire(0, 0, b"abc"), reset, wire(0, 3, b"def")])
    assert content(events, 0) == [b"abcdef"]
    assert isinstance(events[-1], Chunk)
    wire.time += module.LINGER_TIME
    assert feed(streams, [wire(0, 6, b"late")]) == [Closed(LINK + "#0", "rst", reset, "a.pcap", 1, reset.time)]
    assert streams.late_bytes == 4
    assert streams.finish() == []


def test_reset_is_reported_while_others_talk() -> None:
    wire, other = Wire(), Wire((1, 2), ("10.0.0.1", 1), ("10.0.0.1", 2))
    streams = TcpStreams()
    feed(streams, [*wire.handshake(), wire(0, 0, b"abc"), wire(0, 3, flags=RST)])
    other.time = wire.time + 2 * module.LINGER_TIME
    assert [e.how for e in feed(streams, other.handshake()) if isinstance(e, Closed)] == ["rst"]


def test_refused_connection_and_another_try() -> None:
    wire, again = Wire((1, 2)), Wire((500, 600))
    events = run([wire(0, -1, flags=SYN), wire(1, -1, flags=RST | ACK)._replace(seq=0), *again.handshake()])
    assert lifes(events) == [(LINK + "#0", 0, "rst"), (LINK + "#1", 0, "end")]


def test_late_packets_of_a_closed_connection_open_nothing() -> None:
    wire = Wire()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), *wire.goodbye(3)]
    late = [wire(0, 3, flags=FIN | ACK, ack=1), wire(1, 1, ack=4), wire(0, 0, b"abc"), wire(1, 1, flags=RST)]
    streams = TcpStreams()
    assert lifes(run([*packets, *late, packets[0]], streams)) == [(LINK + "#0", 0, "fin")]
    assert streams.late_bytes == 0


def test_same_ports_again_after_the_end() -> None:
    first, second = Wire((1, 2)), Wire((0x70000000, 0x90000000))
    events = run(
        [
            *first.handshake(),
            first(0, 0, b"one"),
            *first.goodbye(3),
            *second.handshake(1),
            second(0, 0, b"two"),
        ]
    )
    assert lifes(events) == [(LINK + "#0", 0, "fin"), (LINK + "#1", 1, "end")]
    assert [content(events, 0, f"{LINK}#{i}") for i in (0, 1)] == [[b"one"], [b"two"]]


def test_same_ports_again_without_an_end() -> None:
    first, second = Wire((1, 2)), Wire((1000, 2000))
    packets = [*first.handshake(), first(0, 0, b"one"), first(0, 6, b"three")]
    packets += [*second.handshake(), second(0, 0, b"two")]
    events = run(packets)
    assert lifes(events) == [(LINK + "#0", 0, "reuse"), (LINK + "#1", 0, "end")]
    assert [content(events, 0, f"{LINK}#{i}") for i in (0, 1)] == [[b"one", 3, b"three"], [b"two"]]


def test_same_ports_again_after_a_connection_without_beginning() -> None:
    first, second = Wire((0x40000000, 0x50000000)), Wire((1000, 2000))
    events = run([first(0, 0, b"one"), first(1, 0, b"x"), *second.handshake(), second(0, 0, b"two")])
    assert lifes(events) == [(LINK + "#0", None, "reuse"), (LINK + "#1", 0, "end")]


def test_new_connection_whose_handshake_was_not_captured() -> None:
    first, second = Wire((1, 2)), Wire((0x70000000, 0x90000000))
    packets = [*first.handshake(), first(0, 0, b"one"), *first.goodbye(3), second(0, 0, b"two")]
    assert lifes(run(packets)) == [(LINK + "#0", 0, "fin"), (LINK + "#1", None, "end")]


def test_syn_sent_again_is_the_same_connection() -> None:
    wire = Wire()
    syn, answer, ack = wire.handshake()
    events = run([syn, syn, answer, syn, answer, ack, wire(0, 0, b"abc"), syn, answer, wire(0, 3, b"def")])
    assert lifes(events) == [(LINK + "#0", 0, "end")]
    assert content(events, 0) == [b"abcdef"]


def test_second_try_to_open_with_another_number_is_the_same_connection() -> None:
    first, second = Wire((1, 2)), Wire((0x70000000, 0x90000000))
    events = run([first(0, -1, flags=SYN), *second.handshake(), second(0, 0, b"abc")])
    assert lifes(events) == [(LINK + "#0", 0, "end")]
    assert content(events, 0) == [b"abc"]


def test_reset_of_an_older_connection_is_ignored() -> None:
    old, wire = Wire((0x70000000, 0x90000000)), Wire((1, 2))
    packets = [*wire.handshake(), wire(0, 0, b"abc"), old(0, 0, flags=RST), wire(0, 3, b"def")]
    wire.time += SECOND
    events = run([*packets, wire(0, 6, b"ghi")])
    assert content(events, 0) == [b"abcdefghi"]
    assert lifes(events) == [(LINK + "#0", 0, "end")]


# --- what cannot be, and limits -----------------------------------------------------------------


def test_data_from_far_away_is_a_stray() -> None:
    wire = Wire()
    streams = TcpStreams()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(0, 1 << 30, b"stray"), wire(0, 3, b"def")]
    assert content(run(packets, streams), 0) == [b"abcdef"]
    assert streams.strays == 1


@pytest.mark.parametrize("distance", [1 << 30, 3 << 30])
def test_stream_goes_on_behind_a_lost_part_of_the_capture(distance: int) -> None:
    wire = Wire()
    streams = TcpStreams()
    packets = [*wire.handshake(), wire(0, 0, b"abc"), wire(0, distance, b"on "), wire(0, distance + 3, b"and ")]
    packets += [wire(0, distance + 7, b"on"), wire(1, 0, ack=distance + 9)]
    assert content(run(packets, streams), 0) == [b"abc", distance - 3, b"on and on"]
    assert streams.strays == 0


def test_acknowledgement_from_far_away_is_ignored() -> None:
    wire = Wire()
    assert content(run([*wire.handshake(), wire(0, 0, b"abc"), wire(1, 0, ack=1 << 30)]), 0) == [b"abc"]


def test_idle_connections_go_when_there_are_too_many() -> None:
    streams = TcpStreams(limit=3)
    wires = [Wire((i, i), ("10.0.0.1", i + 1), ("10.0.0.2", 7447)) for i in range(5)]
    packets = [p for wire in wires[:3] for p in wire.handshake()]
    packets += [wires[0](0, 0, b"x"), *wires[3].handshake(), *wires[4].handshake()]
    events = feed(streams, packets)
    assert [e.link[:14] for e in events if isinstance(e, Closed)] == ["tcp/10.0.0.1:2", "tcp/10.0.0.1:3"]
    assert streams.dropped == 2
    assert len(run([], streams)) == 3


def test_closed_connections_are_forgotten_but_not_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLOSED", 10)
    streams = TcpStreams()
    for round_number in range(2):
        for i in range(100):
            wire = Wire((round_number * 1000 + i, i), ("10.0.0.1", i + 1), ("10.0.0.2", 7447))
            events = feed(streams, [*wire.handshake(), wire(0, 0, b"x"), *wire.goodbye(1)])
            assert lifes(events) == [(f"tcp/10.0.0.1:{i + 1}-10.0.0.2:7447#{round_number}", 0, "fin")]
    assert len(streams._flows) == 20
    assert len(streams._closed) == 10
    assert not streams._live and not streams._closing


@st.composite
def chatter(draw: st.DrawFn, port: int = 50000) -> list[Packet]:
    """Packets of one pair of endpoints that make little sense."""
    wire = Wire((draw(ISN), draw(ISN)), ("10.0.0.9", port))
    packets = wire.handshake() if draw(st.booleans()) else []
    near = st.integers(-3, 40)
    anywhere = st.one_of(near, near, near, st.integers(0, 0xFFFFFFFF))
    flags = st.sampled_from([ACK, ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, 0, 0xFF])
    for _ in range(draw(st.integers(0, 25))):
        wire.time += draw(st.sampled_from([0, 0, 0, 10**6]))
        data = draw(st.binary(max_size=8))
        packets.append(
            wire(
                draw(st.integers(0, 1)),
                draw(anywhere),
                data,
                draw(flags),
                draw(anywhere),
                draw(st.sampled_from([0, 0, 0, 5])),
            )
        )
    return packets


@settings(max_examples=500, deadline=None)
@given(chatter())
def test_any_packets_give_a_life_for_each_link(packets: list[Packet]) -> None:
    events = run(packets)
    for link, own in by_link(events).items():
        assert [type(e) for e in own] == [Opened, *[Chunk] * (len(own) - 2), Closed], link
    assert sum(len(e.data) for e in events if isinstance(e, Chunk)) <= sum(len(p.payload) for p in packets)
    assert all(e.data or e.gap for e in events if isinstance(e, Chunk))


@settings(max_examples=200, deadline=None)
@given(st.data(), chatter(1), chatter(2), chatter(3))
def test_interleaving_of_connections_changes_nothing(
    data: st.DataObject, one: list[Packet], two: list[Packet], three: list[Packet]
) -> None:
    talks = one, two, three
    apart = by_link(event for packets in talks for event in run(packets))
    order = data.draw(st.permutations([i for i, packets in enumerate(talks) for _ in packets]))
    rest = [iter(packets) for packets in talks]
    assert by_link(run(next(rest[i]) for i in order)) == apart


# --- real traffic -------------------------------------------------------------------------------

WHOLE = [pytest.param(p, id=p.name.split(".")[0]) for p in captures() if undamaged(p) and p.stat().st_size < 400_000]


def told(path: Path) -> dict[tuple[Address, Address], list[bytes]]:
    """The bytes of each direction of each connection, as the plain reader of the tests finds them."""
    found: dict[tuple[Address, Address], list[bytes]] = {}
    for pair in connections(segments(path)):
        for side in pair:
            found.setdefault((side.src, side.dst), []).append(side.stream())
    return found


def carried(events: Iterable[Event]) -> dict[tuple[Address, Address], list[list[Item]]]:
    """The same from events."""
    found: dict[tuple[Address, Address], list[list[Item]]] = {}
    everything = list(events)
    for event in everything:
        if isinstance(event, Opened):
            for direction, ends in enumerate([(event.low, event.high), (event.high, event.low)]):
                found.setdefault(ends, []).append(content(everything, direction, event.link))
    return found


@pytest.mark.parametrize("path", WHOLE)
def test_streams_are_those_of_the_plain_reader(path: Path) -> None:
    events = run(CaptureReader([path]))
    assert carried(events) == {ends: [[s] if s else [] for s in sent] for ends, sent in told(path).items()}
    assert all(e.initiator is not None for e in events if isinstance(e, Opened))


@pytest.mark.parametrize("path", WHOLE)
def test_damage_to_real_traffic_costs_the_dropped_bytes_only(path: Path) -> None:
    """Neighbours swapped, packets repeated and dropped: all other bytes come out at their place."""
    dice = random.Random(path.name)
    packets: list[Packet] = []
    dropped: set[Any] = set()  # each byte by its ends and number
    kept: set[Any] = set()
    for packet in CaptureReader([path]):
        drop = packet.payload and packet.proto == "tcp" and dice.random() < 0.05
        (dropped if drop else kept).update((packet[3:7], packet.seq + i) for i in range(len(packet.payload)))
        if not drop:
            packets += [packet] * (2 if dice.random() < 0.05 else 1)
    for i in range(0, len(packets) - 1, 2):
        if dice.random() < 0.1 and not (packets[i].flags | packets[i + 1].flags) & SYN:
            packets[i : i + 2] = packets[i + 1], packets[i]
    whole = told(path)
    missing = 0
    for ends, streams in carried(run(packets)).items():
        assert len(streams) == len(whole[ends])
        for items, stream in zip(streams, whole[ends], strict=True):
            at = 0
            for item in items:
                if isinstance(item, int):
                    missing += item
                    at += item
                else:
                    assert stream[at : at + len(item)] == item
                    at += len(item)
            missing += len(stream) - at  # nobody acknowledged it any more
    assert missing == len(dropped - kept)


def lab(name: str) -> list[Path]:
    """A capture of the large collection; nothing where that is not at hand."""
    return [p for p in captures() if p.name.split(".")[0] == name]


def test_reordered_and_repeated_packets_of_a_recording() -> None:
    for path in lab("s25d_dup_reorder"):
        (source,) = lab("s06_declared")
        assert carried(run(CaptureReader([path]))) == {e: [[s] for s in sent] for e, sent in told(source).items()}


def test_lost_packets_of_a_recording_are_gaps_of_their_size() -> None:
    for path in lab("s25h_burst_loss"):
        (source,) = lab("s11b_burst_smallbatch")
        left = {(s.src, s.seq, s.data) for s in segments(path)}
        gone = [s for s in segments(source) if s.data and (s.src, s.seq, s.data) not in left]
        # Where two neighbours were moved, the file has one of them twice and not the other: 6 more than were dropped.
        assert {d["frame"] for d in truth(path)["damage"] if d["action"] == "drop"} <= {s.frame for s in gone}
        dropped = sum(len(s.data) for s in gone)
        whole = told(source)
        missing = 0
        for ends, (items,) in carried(run(CaptureReader([path]))).items():
            at = 0
            for item in items:
                if isinstance(item, bytes):
                    assert whole[ends][0][at : at + len(item)] == item
                missing += item if isinstance(item, int) else 0
                at += item if isinstance(item, int) else len(item)
            assert at == len(whole[ends][0])
        assert missing == dropped > 0


def test_rough_network_loses_nothing() -> None:
    for path in lab("s34_rough_tcp"):
        events = run(CaptureReader([path]))
        assert not any(e.gap for e in events if isinstance(e, Chunk))
        streams = [content(events, direction, events[0].link)[0] for direction in (0, 1)]
        for stream in streams:
            assert isinstance(stream, bytes)
            at = 0
            while at < len(stream):  # batches with their size in front, to the last byte
                at += 2 + int.from_bytes(stream[at : at + 2], "little")
            assert at == len(stream)
        puts = [e["hex"] for e in truth(path)["events"] if e["op"] == "put" and "hex" in e]
        assert all(any(bytes.fromhex(data) in stream for stream in streams) for data in puts)  # type: ignore[operator]


def test_files_of_a_recording_may_be_cut_anywhere(tmp_path: Path) -> None:
    path = next(p for p in captures() if p.suffix == ".pcap")
    data = path.read_bytes()
    ends, at = [24], 24
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.append(at)
    whole = carried(run(CaptureReader([path])))
    for cut in (ends[len(ends) // 3], ends[len(ends) // 2], ends[0], ends[-1]):
        first, second = tmp_path / "1.pcap", tmp_path / "2.pcap"
        first.write_bytes(data[:cut])
        second.write_bytes(data[:24] + data[cut:])
        assert carried(run(CaptureReader([first, second]))) == whole


def test_lab_has_the_damaged_recordings_if_it_is_the_large_one() -> None:
    if lab("s11_burst"):
        assert lab("s25d_dup_reorder") and lab("s25h_burst_loss") and lab("s34_rough_tcp"), LAB
