"""What the generated readers share, on bytes worked out by hand."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.decode.reading import read_batch, read_network
from scapy_zenoh.decode.runtime import (
    BAD_LENGTH,
    BAD_VALUE,
    END,
    FAULT,
    FAULT_OFFSET,
    FAULTS,
    INSIDE,
    KIND,
    MSG,
    START,
    STOP,
    STRIDE,
    TRUNCATED,
    UNKNOWN_AT,
    UNKNOWN_EIDS,
    UNKNOWN_EXTS,
    UNKNOWN_MANDATORY_EXT,
    UNKNOWN_MESSAGE,
    VLE_OVERFLOW,
    clear,
    is_locator,
    is_utf8,
    little,
    note,
    numbers,
    peek_byte,
    peek_vles,
    stop,
    texts,
    unknown_extension,
    vle,
)
from scapy_zenoh.fault import FaultKind


def wire(text: str) -> bytes:
    return bytes.fromhex(text)


def rows(count: int) -> array[int]:
    """Room for some rows, with what a former batch may have left there."""
    return array("q", [-7]) * (count * STRIDE)


def row() -> array[int]:
    """A row that begins at byte 0."""
    fresh = rows(1)
    clear(fresh, 0, 0)
    return fresh


# --- integers: seven bits a byte, least significant first; the ninth byte carries eight ----------

GOOD = {
    "zero": ("00", 64, 0, 1),
    "largest of one byte": ("7f", 64, 127, 1),
    "smallest of two bytes": ("80 01", 64, 128, 2),
    "300": ("ac 02", 64, 300, 2),
    "longer than needed": ("85 80 00", 64, 5, 3),
    "largest of 16 bits": ("ff ff 03", 16, 65535, 3),
    "largest of 32 bits": ("ff ff ff ff 0f", 32, 2**32 - 1, 5),
    "largest of eight bytes": ("ff ff ff ff ff ff ff 7f", 64, 2**56 - 1, 8),
    "smallest of nine bytes": ("80 80 80 80 80 80 80 80 01", 64, 2**56, 9),
    "largest that is not negative": ("ff ff ff ff ff ff ff ff 7f", 64, 2**63 - 1, 9),
    "2**63 as signed": ("80 80 80 80 80 80 80 80 80", 64, -(2**63), 9),
    "2**64 - 1 as signed": ("ff ff ff ff ff ff ff ff ff", 64, -1, 9),
    "zero in nine bytes": ("80 80 80 80 80 80 80 80 00", 16, 0, 9),
    "no tenth byte": ("ff ff ff ff ff ff ff ff ff 01", 64, -1, 9),
}
BAD = {
    "no bytes": ("", 64, TRUNCATED),
    "one byte of more": ("80", 64, TRUNCATED),
    "eight bytes of nine": ("ff ff ff ff ff ff ff ff", 64, TRUNCATED),
    "cut before it could be too large": ("ff ff ff", 16, TRUNCATED),
    "256 in 8 bits": ("80 02", 8, VLE_OVERFLOW),
    "65536 in 16 bits": ("80 80 04", 16, VLE_OVERFLOW),
    "2**32 in 32 bits": ("80 80 80 80 10", 32, VLE_OVERFLOW),
    "2**63 in 32 bits": ("80 80 80 80 80 80 80 80 80", 32, VLE_OVERFLOW),
    "2**64 - 1 in 16 bits": ("ff ff ff ff ff ff ff ff ff", 16, VLE_OVERFLOW),
}


@pytest.mark.parametrize("text, bits, value, width", GOOD.values(), ids=GOOD)
def test_integer_is_read_as_signed_64_bits(text: str, bits: int, value: int, width: int) -> None:
    data = wire(text)
    assert vle(data, 0, len(data), bits) == (value, width)
    assert vle(b"\xff" + data + b"\xff", 1, 1 + len(data), bits) == (value, 1 + width)


@pytest.mark.parametrize("text, bits, fault", BAD.values(), ids=BAD)
def test_integer_that_is_cut_or_too_large_is_a_fault(text: str, bits: int, fault: int) -> None:
    data = wire(text)
    assert vle(data, 0, len(data), bits) == (0, -fault)
    assert vle(b"\x00" + data + b"\x00" * 9, 1, 1 + len(data), bits) == (0, -fault)  # what follows is not its


@given(st.integers(0, 2**64 - 1))
def test_integer_written_by_the_rule_comes_back(value: int) -> None:
    left, data = value, bytearray()
    while left > 0x7F and len(data) < 8:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    data.append(left)
    found, end = vle(bytes(data), 0, len(data), 64)
    assert (found % 2**64, end) == (value, len(data))


def test_numbers_of_fixed_width_are_little_endian() -> None:
    data = wire("00 01 02 80 ff")
    assert [little(data, p, 2) for p in range(4)] == [0x0100, 0x0201, 0x8002, 0xFF80]
    assert little(data, 1, 4) == 0xFF800201


# --- texts --------------------------------------------------------------------------------------


def decodes(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


#: Bytes that begin or end ranges of UTF-8, so that random bytes come near its rules.
EDGES = st.sampled_from([0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC,
                         0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF])  # fmt: skip


@given(st.one_of(st.binary(), st.lists(EDGES, max_size=6).map(bytes), st.text().map(str.encode)))
def test_utf8_is_what_python_decodes(data: bytes) -> None:
    assert is_utf8(data, 0, len(data)) is decodes(data)
    assert is_utf8(b"\xff" + data + b"\x80", 1, 1 + len(data)) is decodes(data)  # only the bytes in question count


def test_utf8_of_all_pairs_of_bytes() -> None:
    for first in range(0x80, 0x100):
        for second in range(0x100):
            for tail in (b"", b"\x80", b"\x80\xbf"):
                data = bytes([first, second]) + tail
                assert is_utf8(data, 0, len(data)) is decodes(data), data.hex()


@pytest.mark.parametrize("text", ["tcp/127.0.0.1:7447", "a/", "tcp/a/b", "é/x", "tcp/x?rel=1"])
def test_locator_has_a_protocol_before_its_first_slash(text: str) -> None:
    data = text.encode()
    assert is_locator(b"#" + data + b"#", 1, 1 + len(data))


@pytest.mark.parametrize("text", ["", "tcp", "/", "/tcp/x", "tcp/x#iface=lo", "#tcp/x", "tcp:127.0.0.1"])
def test_other_texts_are_no_locators(text: str) -> None:
    data = text.encode()
    assert not is_locator(b"a" + data + b"/", 1, 1 + len(data))


# --- lists --------------------------------------------------------------------------------------


def test_numbers_end_before_the_one_that_cannot_be_read() -> None:
    data = wire("05 ac02 8004 80")
    assert numbers(data, 0, 5, 3, 16) == (5, 3, 0)
    assert numbers(data, 0, 6, 4, 16) == (5, 3, TRUNCATED)
    assert numbers(data, 0, 5, 3, 8) == (1, 1, VLE_OVERFLOW)
    assert numbers(data, 0, 5, 0, 8) == (0, 0, 0)


def test_texts_end_before_the_one_that_cannot_be_read() -> None:
    data = wire("03 612f62 00 01 ff 02 61")
    assert texts(data, 0, 7, 3, 8, False) == (7, 3, 0, False)
    assert texts(data, 0, 7, 2, 8, False) == (5, 2, 0, True)
    assert texts(data, 0, 9, 4, 8, False) == (7, 3, BAD_LENGTH, False)
    assert texts(data, 0, 7, 4, 8, False) == (7, 3, TRUNCATED, False)
    assert texts(data, 0, 7, 3, 8, True) == (4, 1, BAD_VALUE, True)  # a text without slash is no locator
    assert texts(wire("8002") + bytes(256), 0, 258, 1, 8, False) == (0, 0, VLE_OVERFLOW, True)


# --- extensions nobody knows --------------------------------------------------------------------

SKIPPED = {
    "Unit": ("0e", 1),
    "Unit, more follow": ("8e 01", 1),
    "Z64": ("2e ac02", 3),
    "Z64 of nine bytes": ("2e ff ff ff ff ff ff ff ff ff", 10),
    "ZBuf": ("4e 02 aabb", 4),
    "empty ZBuf": ("4e 00", 2),
}


@pytest.mark.parametrize("text, end", SKIPPED.values(), ids=SKIPPED)
def test_unknown_extension_is_skipped_and_told(text: str, end: int) -> None:
    data, r = wire("99" + text), row()
    assert unknown_extension(data, 1, len(data), r, 0, True, True) == 1 + end
    assert (r[UNKNOWN_EXTS], r[UNKNOWN_EIDS], r[UNKNOWN_AT]) == (1, 1 << 14, 1)
    assert (r[FAULT], r[STOP]) == (0, -1)


def test_unknown_extension_inside_another_is_not_told() -> None:
    r = row()
    assert unknown_extension(wire("0e"), 0, 1, r, 0, False, True) == 1
    assert (r[UNKNOWN_EXTS], r[UNKNOWN_EIDS]) == (0, 0)


def test_unknown_extension_that_claims_to_be_mandatory_is_noted_where_that_counts() -> None:
    data, judged, lenient = wire("00 00 1e"), row(), row()
    assert unknown_extension(data, 2, 3, judged, 0, True, True) == 3
    assert (judged[FAULT], judged[FAULT_OFFSET], judged[STOP]) == (UNKNOWN_MANDATORY_EXT, 0, -1)
    assert unknown_extension(data, 2, 3, lenient, 0, True, False) == 3
    assert lenient[FAULT] == 0


@pytest.mark.parametrize(
    "text, fault, at",
    [
        ("2e", TRUNCATED, 1),
        ("2e 80", TRUNCATED, 1),
        ("4e", TRUNCATED, 1),
        ("4e 03 aabb", BAD_LENGTH, 2),
        ("4e 80 80 80 80 10", VLE_OVERFLOW, 1),
        ("3e", TRUNCATED, 1),  # it is also mandatory; what stops counts
    ],
)
def test_unknown_extension_that_is_cut_stops(text: str, fault: int, at: int) -> None:
    data, r = wire("00" + text), row()
    assert unknown_extension(data, 1, len(data), r, 0, True, True) == -1
    assert (r[FAULT], r[FAULT_OFFSET], r[STOP]) == (fault, at, 1 + at)


def test_first_noted_fault_counts_until_one_stops() -> None:
    r = row()
    note(r, 0, UNKNOWN_MANDATORY_EXT, 5, 3)
    note(r, 0, BAD_VALUE, 9, 3)
    assert (r[FAULT], r[FAULT_OFFSET], r[STOP]) == (UNKNOWN_MANDATORY_EXT, 2, -1)
    assert stop(r, 0, TRUNCATED, 9, 3) == -1
    assert (r[FAULT], r[FAULT_OFFSET], r[STOP]) == (TRUNCATED, 6, 9)


def test_every_fault_kind_has_a_number() -> None:
    assert FAULTS[0] is None
    assert set(FAULTS[1:]) == set(FaultKind) and len(FAULTS) == 1 + len(FaultKind)


# --- looking ahead ------------------------------------------------------------------------------


def test_byte_behind_the_end_is_none() -> None:
    assert [peek_byte(wire("0580"), p, 2) for p in (0, 1, 2, 3)] == [5, 0x80, -1, -1]


COUNTED = {
    "four integers": ("04 01020304", 4),
    "of two bytes each": ("04 8001 ac02", 2),
    "of nine bytes": ("09 ffffffffffffffffff", 1),
    "nine bytes and one": ("0a ffffffffffffffffff 01", 2),
    "nothing": ("00", 0),
    "the last one is cut": ("03 01 02 80", 0),
    "more announced than there is": ("05 01020304", 0),
    "what follows does not count": ("01 05 06 07", 1),
    "length in two bytes": ("8300 010203", 3),
    "length in five bytes": ("83 80 80 80 00 010203", 3),
    "length of more than five bytes": ("83 80 80 80 80 00 010203", 0),
    "length is cut": ("83", 0),
    "no length": ("", 0),
}


@pytest.mark.parametrize("text, count", COUNTED.values(), ids=COUNTED)
def test_integers_that_fill_counted_bytes(text: str, count: int) -> None:
    data = wire("ff" + text)
    assert peek_vles(data, 1, len(data)) == count


# --- batches ------------------------------------------------------------------------------------

KEEP_ALIVE = wire("04")
FRAME = wire("2505")  # number 5, reliable
FINAL = wire("1a07")  # RESPONSE_FINAL of request 7


def test_batch_fills_the_rows_there_is_room_for() -> None:
    data, r = KEEP_ALIVE * 5, rows(6)
    assert read_batch(data, 0, 5, r, 0, 3, False) == 3
    assert (r[2 * STRIDE + START], r[2 * STRIDE + END]) == (2, 3)  # and the reader sees that more follow
    assert r[3 * STRIDE + KIND] == -7
    assert read_batch(data, 0, 5, r, 0, 5, False) == 5
    assert r[4 * STRIDE + END] == 5


def test_rows_tell_where_messages_stand() -> None:
    data, r = KEEP_ALIVE + FRAME + FINAL * 2 + KEEP_ALIVE, rows(7)
    assert read_batch(data, 0, len(data), r, 0, 6, False) == 5
    told = [(r[o + MSG], r[o + START], r[o + END], r[o + INSIDE]) for o in range(0, 5 * STRIDE, STRIDE)]
    assert told == [(0, 0, 1, 0), (1, 1, 3, 0), (2, 3, 5, 1), (3, 5, 7, 1), (4, 7, 8, 0)]


def test_network_messages_need_a_frame_unless_they_are_bare() -> None:
    r = rows(3)
    assert read_batch(FINAL, 0, 2, r, 0, 2, False) == 1
    assert (r[KIND], r[FAULT], r[STOP], r[END]) == (0, UNKNOWN_MESSAGE, 0, 2)
    assert read_batch(FINAL + KEEP_ALIVE, 0, 3, r, 0, 2, True) == 2
    assert (r[FAULT], r[INSIDE], r[STRIDE + INSIDE]) == (0, 2, 0)


def test_fault_ends_the_batch() -> None:
    data, r = KEEP_ALIVE + wire("1f") + KEEP_ALIVE, rows(4)
    assert read_batch(data, 0, 3, r, 0, 3, False) == 2
    assert (r[STRIDE + FAULT], r[STRIDE + STOP], r[STRIDE + END]) == (UNKNOWN_MESSAGE, 1, 3)


def test_bytes_outside_the_batch_are_not_looked_at() -> None:
    data, r = b"\xff" + wire("1a87") + b"\x00\xff", rows(2)
    assert read_batch(data, 1, 3, r, 0, 1, True) == 1
    assert (r[FAULT], r[FAULT_OFFSET], r[STOP]) == (TRUNCATED, 1, 2)


def test_single_network_message_tells_where_it_ends() -> None:
    r = rows(2)
    assert read_network(FINAL + KEEP_ALIVE, 0, 3, r, 0) == 2
    assert (r[FAULT], r[INSIDE], r[END]) == (0, 2, 2)
    assert read_network(b"", 0, 0, r, 0) == 0
    assert (r[FAULT], r[STOP]) == (TRUNCATED, 0)
    assert read_network(KEEP_ALIVE, 0, 1, r, 0) == 1
    assert (r[FAULT], r[STOP]) == (UNKNOWN_MESSAGE, 0)


@pytest.mark.parametrize("count", [1, 63, 64, 65, 127, 128, 129, 5000])
def test_codec_makes_room_for_any_batch(count: int) -> None:
    codec = PlainCodec()
    for size in (count, 1, count):  # rows of a former batch leave nothing behind
        batch = codec.batch(FRAME + FINAL * size, "plain", sized=False)
        assert [record.kind for record in batch.records] == ["frame", *["response_final"] * size]
        assert {record.request_id for record in batch.records[1:]} == {7}
        assert {record.sn for record in batch.records} == {5}
        assert not batch.stopped


def test_fault_in_the_last_row_there_was_room_for_is_told() -> None:
    batch = PlainCodec().batch(KEEP_ALIVE * 63 + b"\x1f\x00", "plain", sized=False)
    assert len(batch.records) == 64
    assert (batch.stopped, batch.undecoded, batch.records[-1].fault) == (True, 2, "unknown_message")
