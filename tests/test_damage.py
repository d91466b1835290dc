"""Bad bytes: reading never raises, loses nothing, keeps what came before the fault, and ends soon."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lz4.block
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scapy.packet import Packet, Padding

from scapy_zenoh import FaultKind, Malformed, Message, parse, rebuild
from scapy_zenoh.link import (
    ZenohBatch,
    ZenohCompressedBatch,
    ZenohCompressedDatagram,
    ZenohCompressedStream,
    ZenohDatagram,
    ZenohLowLatencyDatagram,
    ZenohLowLatencyStream,
    ZenohLowLatencyUnit,
    ZenohSerial,
    ZenohSerialFrame,
    ZenohStream,
    datagram_layer,
    scouting_layer,
    segment_layer,
)
from scapy_zenoh.message import InnerList, stopped
from scapy_zenoh.parsing import LAYERS
from scapy_zenoh.transport import ZenohFragment, ZenohFrame
from tests.examples import MESSAGES, examples, harvest, specified
from tests.same import differences

CARRIERS = [
    ZenohBatch, ZenohCompressedBatch, ZenohLowLatencyUnit,
    ZenohStream, ZenohCompressedStream, ZenohLowLatencyStream,
    ZenohDatagram, ZenohCompressedDatagram, ZenohLowLatencyDatagram,
    ZenohSerialFrame, ZenohSerial,
]  # fmt: skip

each_message = pytest.mark.parametrize("layer, cls", MESSAGES, ids=lambda v: v if isinstance(v, str) else v.__name__)
each_layer = pytest.mark.parametrize("layer", LAYERS)
each_carrier = pytest.mark.parametrize("carrier", CARRIERS, ids=lambda c: c.__name__)

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SECONDS = 10  # of processor time for one hostile batch, on a slow machine


def check_lossless(data: bytes, layer: str) -> tuple[Any, bytes]:
    """Read a message; whatever it is, its bytes and the rest are the input, and people can look at it."""
    packet, rest = parse(data, layer)
    assert bytes(packet) + rest == data
    assert rebuild(packet) + rest == data
    packet.summary()
    return packet, rest


# --- good vectors -------------------------------------------------------------------------------


@each_message
def test_each_message_has_a_vector_that_reads_without_fault(layer: str, cls: type[Message]) -> None:
    vectors = examples(layer, cls)
    assert vectors
    for data in vectors:
        packet, rest = check_lossless(data, layer)
        assert type(packet) is cls
        assert (packet.fault, rest) == (None, b""), data.hex()


def test_real_traffic_has_most_kinds_of_message() -> None:
    unseen = {cls.__name__ for layer, cls in MESSAGES if (layer, cls.__name__) not in harvest()}
    # A FRAGMENT is longer than the vectors kept here, the others are not sent by the recorded nodes.
    assert unseen <= {"ZenohFragment", "ZenohTransportOam", "ZenohUndeclareKeyexpr"}


# --- cut ----------------------------------------------------------------------------------------


def legal_ends(packet: Any, data: bytes) -> set[int]:
    """Where a cut leaves a shorter legal message.

    No message is the beginning of another, with two exceptions that have no length of their own: a
    FRAME ends where its bytes end, so it may be cut between messages, and the data of a FRAGMENT is
    all that is left, so it may be cut anywhere.
    """
    if isinstance(packet, ZenohFragment):
        return set(range(len(data) - len(packet.data), len(data)))
    ends: set[int] = set()
    if isinstance(packet, ZenohFrame):
        end = len(data)
        for message in reversed(packet.msgs):
            end -= len(bytes(message))
            ends.add(end)
    return ends


def field_ends(packet: Any) -> Iterator[tuple[str, int]]:
    """Each field of a record with the number of bytes up to its end; fields that share a byte end together."""
    built: Any = b""
    sharing: list[str] = []
    for field in packet.fields_desc:
        built = field.addfield(packet, built, packet.getfieldval(field.name))
        sharing.append(field.name)
        if not isinstance(built, tuple):
            yield from ((name, len(built)) for name in sharing)
            sharing = []


def check_kept(cut: Any, whole: Any, size: int) -> None:
    """What ends within the first ``size`` bytes is in ``cut`` as it is in ``whole``; nothing else is made up."""
    assert type(cut) is type(whole)
    window_open = False
    for name, end in field_ends(whole):
        if end <= size and not window_open:
            check_equal(cut.getfieldval(name), whole.getfieldval(name))
        if name == whole.window and name in dict(field_ends(whole)):
            window_open = len(bytes(whole)) > size  # what is inside an incomplete window is not read
    for name, value in cut.fields.items():
        if isinstance(cut.get_field(name), InnerList) or isinstance(value, list):
            check_beginning(value, whole.getfieldval(name))
        elif isinstance(whole, ZenohFragment) and name == "data":
            assert whole.data.startswith(value)
        else:
            assert value == whole.getfieldval(name), name
    own = len(whole.self_build())
    if size > own and isinstance(cut.payload, Message):
        check_kept(cut.payload, whole.payload, size - own)


def check_equal(one: Any, other: Any) -> None:
    """Lists of packets have the same in them; anything else is equal."""
    assert not differences(one, other) if isinstance(one, list) else one == other


def check_beginning(some: list[Any], every: list[Any]) -> None:
    """A list that was read in part is the beginning of the whole one; its last element may be incomplete."""
    assert len(some) <= len(every)
    for one, other in zip(some[:-1], every, strict=False):
        assert bytes(one) == bytes(other) if isinstance(one, Packet) else one == other
    if some and isinstance(some[-1], Malformed):
        return
    if some and isinstance(some[-1], Packet):
        assert type(some[-1]) is type(every[len(some) - 1]) or stopped(some[-1])
    elif some:
        assert some[-1] == every[len(some) - 1]


@each_message
def test_message_cut_at_any_byte_is_a_fault_and_keeps_its_fields(layer: str, cls: type[Message]) -> None:
    for data in examples(layer, cls):
        whole, _ = parse(data, layer)
        ends = legal_ends(whole, data)
        for size in range(1, len(data)):
            cut, rest = check_lossless(data[:size], layer)
            assert rest == b""
            assert stopped(cut) == (size not in ends), (data[:size].hex(), cut.fault)
            check_kept(cut, whole, size)


@each_layer
def test_no_bytes_are_no_message(layer: str) -> None:
    packet, rest = parse(b"", layer)
    assert (type(packet), packet.fault, rest) == (Malformed, FaultKind.TRUNCATED, b"")


CUT_BATCHES = {
    "the prefix": ("03 00", FaultKind.BAD_LENGTH),
    "a message": ("03 00 03", FaultKind.BAD_LENGTH),
}


@pytest.mark.parametrize("text, kind", CUT_BATCHES.values(), ids=CUT_BATCHES)
def test_batch_shorter_than_its_size_is_a_fault(text: str, kind: FaultKind) -> None:
    batch = ZenohBatch(bytes.fromhex(text))
    assert batch.fault == kind
    assert bytes(batch) == bytes.fromhex(text)


@each_carrier
def test_carrier_cut_at_any_byte_loses_nothing(carrier: type[Packet]) -> None:
    for data in carried(carrier):
        for size in range(1, len(data) + 1):
            cut = carrier(data[:size])
            assert bytes(cut) == rebuild(cut) == data[:size]
            cut.summary()


def carried(carrier: type[Packet]) -> list[bytes]:
    """Some whole units: KEEP_ALIVE and the first two FRAMEs of the specification, as the carrier wants them."""
    frames = [data for data in specified("transport") if data[0] & 0x1F == 5][:2]
    messages = b"\x04" + b"".join(frames)
    bare = b"\x04" + frames[0][5:]
    packed = b"\x01" + lz4.block.compress(messages, store_size=False)
    sized = {
        ZenohBatch: (2, messages), ZenohStream: (2, messages),
        ZenohCompressedBatch: (2, packed), ZenohCompressedStream: (2, packed),
        ZenohLowLatencyUnit: (4, bare), ZenohLowLatencyStream: (4, bare),
    }  # fmt: skip
    if carrier in sized:
        width, content = sized[carrier]
        return [len(content).to_bytes(width, "little") + content]
    whole = {
        ZenohDatagram: messages,
        ZenohCompressedDatagram: packed,
        ZenohLowLatencyDatagram: bare,
        ZenohSerialFrame: bytes.fromhex("00 0200 0300 ec577bf8"),
        ZenohSerial: bytes.fromhex("01 02 01 06 04 ba 6c 6a f8 00 01 02 02 02 03 05 ec 57 7b f8 00"),
    }
    return [whole[carrier]]


# --- damaged ------------------------------------------------------------------------------------


@pytest.mark.slow
@each_message
def test_flipped_bits_lose_nothing(layer: str, cls: type[Message]) -> None:
    for data in examples(layer, cls):
        for bit in range(8 * len(data)):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            check_lossless(bytes(damaged), layer)


@each_message
def test_bytes_replaced_by_extremes_lose_nothing(layer: str, cls: type[Message]) -> None:
    for data in examples(layer, cls):
        for i in range(len(data)):
            for byte in (0x00, 0x7F, 0x80, 0xFF):
                check_lossless(data[:i] + bytes([byte]) + data[i + 1 :], layer)


@st.composite
def mutated(draw: st.DrawFn, layer: str) -> bytes:
    """A good message with some bytes replaced, removed, doubled or put in."""
    known = [data for kind, cls in MESSAGES if kind == layer for data in examples(kind, cls)]
    data = draw(st.sampled_from(known))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 3))
        data = data[:at] + draw(st.binary(max_size=3)) + data[at + size :]
    return data + draw(st.binary(max_size=4))


@each_layer
@given(data=st.data())
@settings(relaxed, max_examples=150)
def test_mutated_messages_lose_nothing(layer: str, data: st.DataObject) -> None:
    check_lossless(data.draw(mutated(layer)), layer)


@st.composite
def started(draw: st.DrawFn, layer: str) -> bytes:
    """Random bytes behind the header of some message, so that more than the id is read."""
    mid = draw(st.sampled_from(sorted(LAYERS[layer].members)))
    return bytes([mid | draw(st.integers(0, 7)) << 5]) + draw(st.binary(max_size=80))


@each_layer
@given(data=st.data())
@settings(relaxed, max_examples=300)
def test_random_bytes_behind_a_header_lose_nothing(layer: str, data: st.DataObject) -> None:
    check_lossless(data.draw(started(layer)), layer)


@each_layer
@given(data=st.binary(max_size=200))
@settings(relaxed, max_examples=100)
def test_random_bytes_lose_nothing(layer: str, data: bytes) -> None:
    check_lossless(data, layer)


@each_carrier
@given(data=st.binary(min_size=1, max_size=300))  # without bytes Scapy makes a default packet
@settings(relaxed, max_examples=100)
def test_random_bytes_in_a_carrier_lose_nothing(carrier: type[Packet], data: bytes) -> None:
    packet = carrier(data)
    assert bytes(packet) == rebuild(packet) == data
    packet.summary()


@given(data=st.binary(max_size=300), content=st.lists(st.sampled_from(specified("transport")), max_size=4))
@settings(relaxed, max_examples=150)
def test_any_segment_and_datagram_gets_a_layer_that_loses_nothing(data: bytes, content: list[bytes]) -> None:
    messages = b"".join(content)
    for wire in (data, messages + data, len(messages).to_bytes(2, "little") + messages + data):
        for choose in (segment_layer, datagram_layer, scouting_layer):
            assert bytes(choose(wire)(wire)) == wire


@each_message
def test_damaged_messages_can_be_shown(layer: str, cls: type[Message]) -> None:
    for data in examples(layer, cls)[:3]:
        for size in range(1, len(data)):
            cut, _ = parse(data[:size], layer)
            assert cut.show(dump=True)
            assert repr(cut)


# --- what follows a fault -----------------------------------------------------------------------


def test_messages_before_a_fault_are_kept() -> None:
    good = "7d 00 06 64656d6f2f61 01 05 68656c6c6f"
    batch = ZenohDatagram(bytes.fromhex(f"04 25 c1af803c {good} {good} 7d 00 06 6465"))
    keep_alive, frame = batch.msgs
    assert keep_alive.fault is None
    assert [stopped(m) for m in frame.msgs] == [False, False, True]
    assert frame.own_fault is None
    assert frame.msgs[1].payload.data == b"hello"
    assert batch.fault == FaultKind.BAD_LENGTH


def test_unknown_id_ends_a_batch_with_the_rest_as_malformed() -> None:
    batch = ZenohDatagram(bytes.fromhex("04 08 0102"))
    assert batch.fault == FaultKind.UNKNOWN_MESSAGE
    assert isinstance(batch.msgs[-1], Malformed)
    assert batch.msgs[-1].load == bytes.fromhex("08 0102")


def test_next_batch_resumes_after_a_fault() -> None:
    stream = ZenohStream(bytes.fromhex("0300 0801 02  0100 04"))
    assert [stopped(batch) for batch in stream.batches] == [True, False]


FAULTS = {
    "number past the end": ("network", "1a 80", "truncated"),
    "length past the end": ("data", "01 05 6865", "bad_length"),
    "unknown id": ("network", "08", "unknown_message"),
    "unknown body": ("network", "7d 00 01 61 03", "unknown_message"),
    "no body": ("network", "7d 00 01 61", "body_missing"),
    "chain cut": ("transport", "84", "chain_cut"),
    "chain cut after the more bit": ("transport", "84 8e", "chain_cut"),
    "extension encoding 11": ("transport", "84 6e", "reserved_encoding"),
    "scouting, extension encoding 11": ("scouting", "81 09 02 6e", "reserved_encoding"),
    "OAM encoding 11": ("network", "7f 05", "reserved_encoding"),
    "unknown mandatory extension": ("transport", "84 1e", "unknown_mandatory_ext"),
    "suffix that is not UTF-8": ("network", "7d 00 01 ff 02", "bad_utf8"),
    "scope of 17 bits": ("network", "5d 80 80 04 02", "vle_overflow"),
    "WhatAmI 3": ("transport", "01 09 13 0b0b", "bad_value"),
    "query target 3": ("network", "dc 01 00 34 03 03", "bad_value"),
    "timestamp that does not fill its extension": ("network", "dd 00 42 05 01 02 0b0b 00 02", "bad_length"),
    "key longer than its extension": ("declare", "83 00 5f 01 03 01 2f2a2a", "bad_length"),
    "encoding longer than its extension": ("data", "83 43 00 08 504c", "bad_length"),
    "timestamp longer than its extension": ("network", "dd 00 42 03 01 02 0b 0b 02", "bad_length"),
}


@pytest.mark.parametrize("layer, text, kind", FAULTS.values(), ids=FAULTS)
def test_fault_has_the_kind_of_the_vocabulary(layer: str, text: str, kind: str) -> None:
    packet, _ = check_lossless(bytes.fromhex(text), layer)
    assert str(packet.fault) == kind


def test_scouting_skips_unknown_mandatory_extensions() -> None:
    packet, rest = parse(bytes.fromhex("81 09 02 1e"), "scouting")
    assert (packet.fault, rest) == (None, b"")


def test_numbers_longer_than_needed_are_no_fault() -> None:
    """Decoders accept over-long forms (primitives.md 1)."""
    data = bytes.fromhex("1a 87 80 00")
    packet, rest = check_lossless(data, "network")
    assert (packet.fault, packet.request_id, rest) == (None, 7, b"")


# --- large and hostile --------------------------------------------------------------------------


@contextmanager
def soon() -> Iterator[None]:
    """Within, little time is spent; counted for this process alone, others may keep the machine busy."""
    start = time.process_time()
    yield
    taken = time.process_time() - start
    assert taken < SECONDS, f"took {taken:.0f} s"


def number(value: int) -> bytes:
    """A variable length integer of less than 57 bits."""
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def test_frame_of_5000_messages_is_read() -> None:
    data = bytes.fromhex("25 00") + 5000 * bytes.fromhex("7d 00 01 61 01 00")
    with soon():
        frame, rest = check_lossless(data, "transport")
    assert (frame.fault, len(frame.msgs), rest) == (None, 5000, b"")
    assert all(type(m.payload).__name__ == "ZenohPut" for m in frame.msgs)


def test_chain_of_1000_extensions_is_read() -> None:
    data = b"\x81" + 999 * b"\x8e" + b"\x0e" + b"\x00"
    with soon():
        put, rest = check_lossless(data, "data")
    assert (put.fault, len(put.exts), rest) == (None, 1000, b"")


def test_batch_of_65535_messages_is_read() -> None:
    with soon():
        batch = ZenohBatch(b"\xff\xff" + 65535 * b"\x04")
    assert (batch.fault, len(batch.msgs)) == (None, 65535)


def compressed(content: bytes) -> bytes:
    packed = b"\x01" + lz4.block.compress(content, store_size=False)
    return len(packed).to_bytes(2, "little") + packed


@pytest.mark.slow
def test_compressed_batch_of_65535_messages_is_read() -> None:
    with soon():
        batch = ZenohCompressedBatch(compressed(65535 * b"\x04"))
    assert (batch.fault, len(batch.msgs)) == (None, 65535)


@pytest.mark.parametrize("size", [65536, 1_000_000, 16_000_000])
def test_block_that_expands_beyond_a_batch_is_refused(size: int) -> None:
    data = compressed(bytes(size))
    with soon():
        batch = ZenohCompressedBatch(data)
    assert batch.fault == FaultKind.BAD_COMPRESSION
    assert bytes(batch) == data


def nested(depth: int) -> bytes:
    """An Auth extension in an Auth extension in ..."""
    inner = b"\x02"
    for _ in range(depth):
        inner = b"\x43" + number(len(inner)) + inner
    return inner


HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "Auth in Auth, 10,000 deep": ("transport", lambda: bytes.fromhex("81 09 11 0b0b") + nested(10_000)),
    "Auth chain of 20,000 methods": (
        "transport",
        lambda: bytes.fromhex("81 09 11 0b0b 43") + number(20_000) + 19_999 * b"\x82" + b"\x02",
    ),
    "30,000 extensions without value": ("data", lambda: b"\x81" + 29_999 * b"\x8e" + b"\x0e\x00"),
    "10,000 query bodies": ("data", lambda: b"\x83" + 9_999 * b"\xc3\x01\x00" + b"\x43\x01\x00"),
    "20,000 QoS extensions": ("network", lambda: b"\xdd\x00" + 19_999 * b"\xa1\x05" + b"\x21\x05\x02"),
    "2^32 - 1 locators": ("scouting", lambda: bytes.fromhex("22 09 00 01 ffffffff0f 03 612f62")),
    "2^32 locators": ("scouting", lambda: bytes.fromhex("22 09 00 01 8080808010 03 612f62")),
    "2^64 - 1 locators": ("scouting", lambda: bytes.fromhex("22 09 00 01 ffffffffffffffffff 03 612f62")),
    "65,536 locators announced, one there": ("scouting", lambda: bytes.fromhex("22 09 00 01 808004 03 612f62")),
    "2^32 - 1 link states": ("network", lambda: bytes.fromhex("5f 01 05 ffffffff0f")),
    "2^32 - 1 links": ("network", lambda: bytes.fromhex("5f 01 09 01 00 00 00 ffffffff0f")),
    "65,536 links": ("network", lambda: b"\x5f\x01" + number(65536 + 7) + b"\1\0\0\0\x80\x80\x04" + bytes(65536)),
    "2^32 - 1 slices": ("data", lambda: bytes.fromhex("81 12 ffffffff0f 00 00")),
    "60,000 slices": ("data", lambda: b"\x81\x12" + number(60_000) + 60_000 * b"\0\0"),
    "2^32 - 1 stamps": ("network", lambda: bytes.fromhex("dd 00 47 06 07 ffffffff0f 02")),
    "payload of 2^32 - 1 bytes": ("data", lambda: bytes.fromhex("01 ffffffff0f 61")),
    "suffix of 65,535 bytes": ("network", lambda: bytes.fromhex("7d 00 ffff03 61")),
    "cookie of 2^64 - 1 bytes": ("transport", lambda: bytes.fromhex("02 0a 00 ffffffffffffffffff 61")),
    "30,000 empty FRAMEs": ("transport", lambda: 30_000 * b"\x25\x00"),
    "30,000 messages without body": ("transport", lambda: b"\x25\x00" + 10_000 * b"\x1a\x01" + 20_000 * b"\x9d"),
}


@pytest.mark.parametrize("layer, make", HOSTILE.values(), ids=HOSTILE)
def test_hostile_message_ends_soon(layer: str, make: Callable[[], bytes]) -> None:
    data = make()
    with soon():
        packet, rest = parse(data, layer)
        assert bytes(packet) + rest == data


HOSTILE_STREAMS: dict[str, tuple[type[Packet], Callable[[], bytes]]] = {
    "30,000 empty batches": (ZenohStream, lambda: bytes(60_000)),
    "30,000 empty low-latency units": (ZenohLowLatencyStream, lambda: bytes(60_000)),
    "6,000 empty serial frames": (ZenohSerial, lambda: bytes(6_000)),
    "a serial line that never ends a frame": (ZenohSerial, lambda: 60_000 * b"\xff"),
    "a low-latency unit of 4 GB": (ZenohLowLatencyStream, lambda: b"\xff\xff\xff\xff" + 1000 * b"\x04"),
    "20,000 compressed batches that are none": (ZenohCompressedStream, lambda: 20_000 * b"\x02\x00\x01\xff"),
    "a compressed batch of FRAMEs": (ZenohCompressedStream, lambda: compressed(32_000 * b"\x25\x00")),
}


@pytest.mark.parametrize("carrier, make", HOSTILE_STREAMS.values(), ids=HOSTILE_STREAMS)
def test_hostile_stream_ends_soon(carrier: type[Packet], make: Callable[[], bytes]) -> None:
    data = make()
    with soon():
        assert bytes(carrier(data)) == data


def test_list_counts_beyond_the_limit_are_named() -> None:
    packet, _ = parse(bytes.fromhex("22 09 00 01 ffffffff0f"), "scouting")
    assert packet.fault == FaultKind.LIMIT
    packet, _ = parse(bytes.fromhex("22 09 00 01 8080808010"), "scouting")
    assert packet.fault == FaultKind.VLE_OVERFLOW


def test_bytes_after_a_message_are_the_rest() -> None:
    for layer, cls in MESSAGES:
        if cls in (ZenohFrame, ZenohFragment):
            continue
        for data in examples(layer, cls):
            packet, rest = parse(data + b"\xff\x00", layer)
            assert (packet.fault, rest) == (None, b"\xff\x00")
            assert Padding not in packet
