"""Packets of files written out by hand, and of real ones as Scapy and tshark read them."""

from __future__ import annotations

import gzip
import io
import itertools
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from scapy_zenoh import ip_fragments
from scapy_zenoh.capture import CaptureError, CaptureReader, Packet
from tests.conftest import captures
from tests.streams import segments, truth
from tests.wire import (
    ACK,
    PSH,
    SYN,
    TCP,
    UDP,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    ipv6_fragment,
    obsolete,
    option,
    pcap,
    record,
    section,
    simple,
    tcp,
    udp,
)

A, B = "10.0.0.1", "192.168.7.200"
A6, B6 = "fe80::1", "2001:db8::ff"
TIME = 1_700_000_000_123_456_789
MICRO = 1_700_000_000_123_456_000
HELLO = ipv4(A, B, UDP, udp(4000, 7447, b"hello"))
EXPECTED = Packet("-", 1, MICRO, A, 4000, B, 7447, "udp", b"hello", 0, 0, 0, 0)


def read(*files: bytes) -> list[Packet]:
    return list(CaptureReader([io.BytesIO(data) for data in files]))


def read_until_error(*files: bytes) -> tuple[list[Packet], str]:
    packets: list[Packet] = []
    with pytest.raises(CaptureError) as error:
        packets.extend(CaptureReader([io.BytesIO(data) for data in files]))  # keeps what came before the error
    return packets, str(error.value)


def one(packet: bytes, linktype: int = 1, snaplen: int | None = None) -> Packet:
    """The only packet of a file."""
    (found,) = read(pcap([record(TIME, packet, snaplen)], linktype))
    return found


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_of_both_byte_orders_and_resolutions(order: str, nano: bool) -> None:
    data = pcap([record(TIME, ethernet(HELLO)), record(TIME + 5000, ethernet(HELLO))], 1, order, nano)
    first = TIME if nano else MICRO
    assert read(data) == [EXPECTED._replace(time=first), EXPECTED._replace(time=first + 5000, frame=2)]


def test_tcp_header_is_read() -> None:
    segment = tcp(50000, 7447, b"data", 0xFFFFFFF0, 0x80000001, ACK | PSH, bytes(12))
    assert one(ethernet(ipv4(A, B, TCP, segment))) == Packet(
        "-", 1, MICRO, A, 50000, B, 7447, "tcp", b"data", 0, 0xFFFFFFF0, 0x80000001, 0x18
    )


@pytest.mark.parametrize("order", "<>")
def test_pcapng_with_every_packet_block(order: str) -> None:
    frame = ethernet(HELLO)
    odd = frame + b"x"  # a length that needs padding in the block; the Ethernet frame has one byte of padding
    data = (
        section(order)
        + block(4, b"names are skipped...", order)
        + interface(order=order)
        + enhanced(0, MICRO // 1000, frame, order=order)
        + block(0x0BAD, b"some vendor's block.", order)
        + obsolete(0, MICRO // 1000 + 1, odd, order=order)
        + simple(odd, order=order)
    )
    assert read(data) == [
        EXPECTED,
        EXPECTED._replace(frame=2, time=MICRO + 1000),
        EXPECTED._replace(frame=3, time=MICRO + 1000),  # no time of its own
    ]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(
    ("options", "ticks", "time"),
    [
        ([(9, b"\x09")], TIME, TIME),
        ([(9, b"\x03")], TIME // 10**6, TIME // 10**6 * 10**6),
        ([(9, b"\x00")], 1_700_000_000, 1_700_000_000 * 10**9),
        ([(9, b"\x8a")], 1_700_000_000 << 10 | 512, 1_700_000_000_500_000_000),  # 2^-10 s
        ([(2, b"eth0"), (9, b"\x06"), (14, "offset")], 5, 3600 * 10**9 + 5000),
        ([(0, b""), (9, b"\x09")], MICRO // 1000, MICRO),  # behind the end of the options
    ],
)
def test_time_units_and_offset_of_an_interface(
    order: str, options: list[tuple[int, Any]], ticks: int, time: int
) -> None:
    offset = (3600).to_bytes(8, "little" if order == "<" else "big")
    encoded = b"".join(option(code, offset if value == "offset" else value, order) for code, value in options)
    data = section(order) + interface(1, 0, encoded, order) + enhanced(0, ticks, ethernet(HELLO), order=order)
    assert [p.time for p in read(data)] == [time]


@pytest.mark.parametrize(("ticks", "offset"), [((1 << 64) - 1, 0), (0, 1 << 62)])
def test_time_that_cannot_be_fits_in_64_bits(ticks: int, offset: int) -> None:
    options = option(14, offset.to_bytes(8, "little"))
    (packet,) = read(section() + interface(options=options) + enhanced(0, ticks, ethernet(HELLO)))
    assert packet.time == (1 << 62) - 1


def test_sections_have_their_own_byte_order_and_interfaces() -> None:
    data = (
        section("<")
        + interface(1)
        + interface(101, 0, option(9, b"\x09"))
        + enhanced(1, TIME, HELLO)
        + enhanced(0, MICRO // 1000, ethernet(HELLO))
        + section(">")
        + interface(101, order=">")
        + enhanced(0, MICRO // 1000, HELLO, order=">")
    )
    assert [(p.frame, p.time, p.payload) for p in read(data)] == [
        (1, TIME, b"hello"),
        (2, MICRO, b"hello"),
        (3, MICRO, b"hello"),
    ]


def test_simple_packet_is_cut_at_the_snap_length_of_its_interface() -> None:
    data = section() + interface(101, 30) + simple(HELLO[:30], len(HELLO))
    assert [(p.payload, p.missing, p.time) for p in read(data)] == [(b"he", 3, 0)]


def test_length_of_a_block_without_its_padding_is_accepted() -> None:
    good = enhanced(0, MICRO // 1000, ethernet(HELLO) + b"x")
    size = (len(good) - 3).to_bytes(4, "little")
    assert good[4:8] != size
    assert read(section() + interface() + good[:4] + size + good[8:-4] + size) == [EXPECTED]


def test_several_files_are_one_recording_and_frames_begin_anew(tmp_path: Path) -> None:
    first, second = tmp_path / "a.pcap", tmp_path / "b.pcapng.gz"
    first.write_bytes(pcap([record(TIME, ethernet(HELLO))] * 2))
    second.write_bytes(gzip.compress(section() + interface() + enhanced(0, 1, ethernet(HELLO))))
    reader = CaptureReader([first, str(second)])
    total = first.stat().st_size + second.stat().st_size
    assert (reader.bytes_read, reader.total_bytes) == (0, total)
    assert [(p.capture, p.frame) for p in reader] == [("a.pcap", 1), ("a.pcap", 2), ("b.pcapng.gz", 1)]
    assert (reader.packets, reader.bytes_read) == (3, total)


def test_every_packet_counts_also_those_that_are_not_ip() -> None:
    packets = [ethernet(b"\0" * 28, 0x0806), ethernet(HELLO), b"", ethernet(ipv4(A, B, 1, b"ping")), b"\x45" * 13]
    reader = CaptureReader([io.BytesIO(pcap([record(TIME, p) for p in packets]))])
    assert [p.frame for p in reader] == [2]
    assert reader.packets == 5
    assert reader.unknown_linktypes == {}


def test_packets_of_an_unknown_link_type_are_counted() -> None:
    data = section() + interface(105) + interface(1) + enhanced(0, 0, HELLO) * 2 + enhanced(1, 0, ethernet(HELLO))
    reader = CaptureReader([io.BytesIO(data)])
    assert [p.frame for p in reader] == [3]
    assert (reader.packets, reader.unknown_linktypes) == (3, {105: 2})


def test_fcs_bits_are_no_part_of_the_link_type() -> None:
    assert one(ethernet(HELLO), 0x24000001) == EXPECTED


# --- compression and pipes ----------------------------------------------------------------------

MANY = pcap([record(TIME + i * 1000, ethernet(ipv4(A, B, UDP, udp(i, 7447, bytes(i))))) for i in range(1200)])


class Trickle(io.RawIOBase):
    """A stream that gives a few bytes at a time and cannot seek."""

    def __init__(self, data: bytes, step: int) -> None:
        self._data = io.BytesIO(data)
        self._step = step

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._data.read(min(self._step, len(buffer)))
        buffer[: len(piece)] = piece
        return len(piece)


def compressed(data: bytes) -> list[Any]:
    half = len(data) // 2
    return [
        pytest.param(data, id="plain"),
        pytest.param(gzip.compress(data), id="gzip"),
        pytest.param(gzip.compress(data[:half]) + gzip.compress(data[half:]), id="gzip-members"),
        pytest.param(gzip.compress(data) + bytes(512), id="gzip-padded"),
        pytest.param(zstandard.compress(data), id="zstd"),
        pytest.param(zstandard.compress(data[:half]) + zstandard.compress(data[half:]), id="zstd-frames"),
    ]


@pytest.mark.parametrize("step", [7, 1000, 1 << 20])
@pytest.mark.parametrize("data", compressed(MANY))
def test_compressed_stream_that_trickles(data: bytes, step: int) -> None:
    packets = list(CaptureReader([cast(BinaryIO, Trickle(data, step))]))
    assert [(p.frame, p.sport, p.payload) for p in packets] == [(i + 1, i, bytes(i)) for i in range(1200)]


@pytest.mark.parametrize(
    ("data", "what"),
    [pytest.param(gzip.compress(MANY), "gzip", id="gzip"), pytest.param(zstandard.compress(MANY), "zstd", id="zstd")],
)
def test_compressed_file_that_is_cut_or_damaged(data: bytes, what: str) -> None:
    packets, error = read_until_error(data[:-20])
    assert packets == read(MANY)[: len(packets)]
    assert error == f"-: the {what} data ends too early"
    middle = len(data) // 2
    packets, error = read_until_error(data[:middle] + b"\xff" * 30 + data[middle + 30 :])
    assert "-: " in error and "\n" not in error


def test_pipe_gives_packets_while_it_is_written() -> None:
    inward, outward = os.pipe()
    head, tail = MANY[: 24 + 16 + 42], MANY[24 + 16 + 42 :]
    with open(inward, "rb") as reading, open(outward, "wb", buffering=0) as writing:
        packets = iter(CaptureReader([reading]))
        writing.write(head)
        assert next(packets).frame == 1  # would wait for ever if a whole chunk were asked for
        thread = threading.Thread(target=lambda: (writing.write(tail), writing.close()))
        thread.start()
        assert [p.frame for p in packets] == list(range(2, 1201))
        thread.join()


def test_standard_input() -> None:
    code = "from scapy_zenoh.capture import *; print([(p.capture, p.frame) for p in CaptureReader(['-'])])"
    data = gzip.compress(pcap([record(TIME, ethernet(HELLO))]))
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[('-', 1)]"


def test_sources_without_length_have_no_total() -> None:
    assert CaptureReader(["-"]).total_bytes is None
    assert CaptureReader([io.BytesIO()]).total_bytes is None


# --- errors -------------------------------------------------------------------------------------


def test_every_cut_of_a_pcap_gives_what_is_before_it() -> None:
    data = pcap([record(TIME, ethernet(HELLO))] * 2)
    size = 16 + len(ethernet(HELLO))
    for cut in range(1, len(data)):
        if cut == 24 + size or cut == 24:
            assert len(read(data[:cut])) == (cut - 24) // size
            continue
        packets, error = read_until_error(data[:cut])
        assert len(packets) == max(cut - 24, 0) // size
        if cut >= 24:
            start = 24 + len(packets) * size
            assert "-: the file ends in the middle of " in error and error.endswith(f"(byte {start})")


def test_every_cut_of_a_pcapng_gives_what_is_before_it() -> None:
    blocks = [section(), interface(), enhanced(0, 1, ethernet(HELLO)), enhanced(0, 2, ethernet(HELLO))]
    data = b"".join(blocks)
    ends = list(itertools.accumulate(len(b) for b in blocks))
    for cut in range(4, len(data)):
        count = sum(cut >= end for end in ends[2:])
        if cut in ends:
            assert len(read(data[:cut])) == count
            continue
        packets, error = read_until_error(data[:cut])
        assert len(packets) == count
        assert error.endswith(f"(byte {max([0, *(e for e in ends if e <= cut)])})")


def test_offset_counts_from_the_beginning_of_a_large_file() -> None:
    _, error = read_until_error(MANY[:-1])
    last = 16 + 14 + 28 + 1199
    assert error == f"-: the file ends in the middle of packet 1200 (byte {len(MANY) - last})"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (b"\x01", "not a capture file (it begins with 01)"),
        (b"GET / HTTP/1.1\r\n", "not a capture file (it begins with 47 45 54 20)"),
        (pcap([])[:20], "the file ends in the middle of the file header (byte 0)"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (section()[:8] + b"what" + section()[12:], "damaged at byte 0: a section header without byte order"),
        (
            section() + enhanced(0, 1, ethernet(HELLO)),
            "damaged at byte 56: packet 1 is from interface 0, which is not described",
        ),
        (section() + block(6, b"\0" * 16), "damaged at byte 28: a block is too short for its kind"),
        (section() + b"\x06\0\0\0\x08\0\0\0" + bytes(8), "damaged at byte 28: a block cannot be 8 bytes long"),
        (
            section() + b"\x06\0\0\0\xff\xff\xff\xff" + bytes(8),
            "damaged at byte 28: a block cannot be 4294967295 bytes long",
        ),
        (section() + interface()[:-4] + b"\x18\0\0\0", "damaged at byte 28: the two lengths of a block differ"),
        (
            pcap([]) + b"\0" * 8 + b"\xff\xff\xff\x7f" * 2,
            "damaged at byte 24: packet 1 cannot be 2147483647 bytes long",
        ),
    ],
)
def test_unusable_file_says_why(data: bytes, what: str) -> None:
    packets, error = read_until_error(data)
    assert packets == []
    assert error == f"-: {what}"


def test_packet_longer_than_its_block_is_an_error() -> None:
    good = enhanced(0, 1, ethernet(HELLO))
    bad = good[:20] + (1000).to_bytes(4, "little") + good[24:]
    assert read_until_error(section() + interface() + good + bad)[0] == [EXPECTED._replace(time=1000)]


def test_missing_file_and_folder_are_one_clear_line(tmp_path: Path) -> None:
    for path, what in [(tmp_path / "none.pcap", "No such file or directory"), (tmp_path, "Is a directory")]:
        with pytest.raises(CaptureError) as error:
            list(CaptureReader([path]))
        assert str(error.value) == f"{path}: {what}"


def test_reading_goes_on_with_the_next_file_after_an_error(tmp_path: Path) -> None:
    data = pcap([record(TIME, ethernet(HELLO))])
    reader = CaptureReader([io.BytesIO(data + b"cut"), tmp_path / "none", io.BytesIO(data)])
    found: list[Packet] = []
    errors = 0
    while errors < 3:
        try:
            found.extend(reader)
            break
        except CaptureError:
            errors += 1
    assert (found, errors) == ([EXPECTED, EXPECTED], 2)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_files_end_in_packets_or_one_clear_line(data: st.DataObject) -> None:
    whole = section() + interface() + enhanced(0, 1, ethernet(HELLO)) * 3 + interface(276) + simple(ethernet(HELLO))
    if data.draw(st.booleans()):
        whole = pcap([record(TIME, ethernet(ipv6(A6, B6, 44, ipv6_fragment(6, 1, 0, True) + bytes(48)), 0x86DD))] * 3)
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(damaged))
    except CaptureError as error:
        assert str(error).startswith("-: ") and "\n" not in str(error)


# --- links --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linktype", "head"),
    [
        (1, bytes(12) + b"\x08\x00"),
        (1, bytes(12) + b"\x81\x00\x00\x2a\x08\x00"),
        (1, bytes(12) + b"\x88\xa8\x00\x01\x81\x00\x00\x2a\x08\x00"),
        (1, bytes(12) + b"\x91\x00\x00\x01\x81\x00\x00\x2a\x08\x00"),
        (113, b"\0\0\x03\x04\0\x06" + bytes(8) + b"\x08\x00"),
        (113, b"\0\0\x00\x01\0\x06" + bytes(8) + b"\x81\x00\x00\x2a\x08\x00"),
        (276, b"\x08\x00" + bytes(18)),
        (0, b"\x02\0\0\0"),
        (0, b"\0\0\0\x02"),
        (108, b"\0\0\0\x02"),
        (12, b""),
        (14, b""),
        (101, b""),
        (228, b""),
    ],
)
def test_ipv4_on_each_link(linktype: int, head: bytes) -> None:
    assert one(head + HELLO, linktype) == EXPECTED


@pytest.mark.parametrize(
    ("linktype", "head"),
    [
        (1, bytes(12) + b"\x86\xdd"),
        (1, bytes(12) + b"\x81\x00\x00\x2a\x86\xdd"),
        (113, bytes(14) + b"\x86\xdd"),
        (276, b"\x86\xdd" + bytes(18)),
        (0, b"\x18\0\0\0"),
        (0, b"\0\0\0\x1c"),
        (0, b"\x1e\0\0\0"),
        (108, b"\0\0\0\x1e"),
        (101, b""),
        (229, b""),
    ],
)
def test_ipv6_on_each_link(linktype: int, head: bytes) -> None:
    packet = ipv6(A6, B6, UDP, udp(4000, 7447, b"hello"))
    assert one(head + packet, linktype) == EXPECTED._replace(src=A6, dst=B6)


@pytest.mark.parametrize(
    ("linktype", "packet"),
    [
        (1, ethernet(HELLO, 0x0806)),
        (1, ethernet(HELLO, 0x0100)),  # a length: 802.3
        (1, ethernet(HELLO, 0x86DD)),
        (0, b"\x07\0\0\0" + HELLO),
        (101, b"\x55" + HELLO[1:]),
        (101, b""),
        (1, ethernet(ipv4(A, B, 4, HELLO))),  # a tunnel
        (1, ethernet(ipv4(A, B, 132, b"sctp" * 10))),
        (1, ethernet(b"\x44" + HELLO[1:])),  # a header of 16 bytes
        (1, ethernet(ipv4(A, B, TCP, b"\0" * 12 + b"\x40" + b"\0" * 20))),  # likewise for TCP
        (1, ethernet(ipv4(A, B, TCP, b"\0" * 12 + b"\xf0" + b"\0" * 20))),  # longer than the packet
        (1, ethernet(ipv4(A, B, UDP, udp(1, 2, b"x", 7)))),
    ],
)
def test_what_is_not_tcp_or_udp_on_ip_is_left_out(linktype: int, packet: bytes) -> None:
    assert read(pcap([record(TIME, packet)], linktype)) == []


def test_every_cut_of_a_packet_is_a_prefix_of_its_payload_or_nothing() -> None:
    packet = ethernet(ipv4(A, B, TCP, tcp(1, 2, b"0123456789", 7, 9, ACK, bytes(12))), 0x0800, ((0x8100, 5),))
    start = 18 + 20 + 32
    for cut in range(len(packet)):
        found = read(pcap([record(TIME, packet, cut)]))
        if cut < 18 + 20 + 14:  # without the flags nothing is known
            assert found == []
        else:
            data = b"0123456789"[: max(cut - start, 0)]
            assert [(p.payload, p.missing, p.seq) for p in found] == [(data, 10 - len(data), 7)]


def test_padding_of_ethernet_is_no_payload() -> None:
    assert one(ethernet(HELLO) + bytes(60 - len(ethernet(HELLO)))) == EXPECTED
    empty = one(ethernet(ipv4(A, B, TCP, tcp(1, 2))) + bytes(6))
    assert (empty.payload, empty.missing) == (b"", 0)


def test_udp_is_as_long_as_it_says() -> None:
    assert one(ethernet(ipv4(A, B, UDP, udp(4000, 7447, b"hello, rest", 13)))) == EXPECTED


def test_lengths_left_to_the_network_card() -> None:
    assert one(ethernet(ipv4(A, B, UDP, udp(4000, 7447, b"hello", 0), total=0))) == EXPECTED
    large = ipv6(A6, B6, TCP, tcp(1, 2, bytes(70000)), 0)
    assert len(one(ethernet(large, 0x86DD)).payload) == 70000


def test_ip_options_are_skipped() -> None:
    assert one(ethernet(ipv4(A, B, UDP, udp(4000, 7447, b"hello"), options=bytes(8)))) == EXPECTED
    chain = b"\x2b\x00" + bytes(6) + b"\x3c\x01" + bytes(14) + bytes([UDP, 0]) + bytes(6) + udp(4000, 7447, b"hello")
    assert one(ethernet(ipv6(A6, B6, 0, chain), 0x86DD)) == EXPECTED._replace(src=A6, dst=B6)


def test_addresses_are_printed_as_usual() -> None:
    packet = ipv6("0:0:0:0:0:0:0:1", "2001:db8:0:0:1:0:0:1", UDP, udp(1, 2, b""))
    found = one(packet, 101)
    assert (found.src, found.dst) == ("::1", "2001:db8::1:0:0:1")


# --- fragments ----------------------------------------------------------------------------------

DATAGRAM = udp(4000, 7447, bytes(range(256)) * 5)


def fragments(size: int = 400, ident: int = 7, data: bytes = DATAGRAM) -> list[bytes]:
    return [ipv4(A, B, UDP, data[at : at + size], ident, at, at + size < len(data)) for at in range(0, len(data), size)]


def fragments6(size: int = 400, ident: int = 7, data: bytes = DATAGRAM, proto: int = UDP) -> list[bytes]:
    return [
        ipv6(A6, B6, 44, ipv6_fragment(proto, ident, at, at + size < len(data)) + data[at : at + size])
        for at in range(0, len(data), size)
    ]


def raw(packets: list[bytes], snaplen: int | None = None) -> CaptureReader:
    return CaptureReader([io.BytesIO(pcap([record(TIME, p, snaplen) for p in packets], 101))])


@pytest.mark.parametrize("pieces", [fragments(), fragments6()])
def test_fragments_in_any_order_with_repetitions(pieces: list[bytes]) -> None:
    assert len(pieces) == 4
    for order in itertools.permutations(range(4)):
        again = [order[0], *order[:3], order[3]]
        reader = raw([pieces[i] for i in again])
        (packet,) = reader
        assert (packet.frame, packet.payload, packet.missing) == (5, DATAGRAM[8:], 0)
        assert (packet.sport, packet.dport, packet.proto) == (4000, 7447, "udp")
        assert (reader.packets, reader.lost_fragments) == (5, 0)


def test_first_byte_wins_where_fragments_overlap() -> None:
    data = udp(1, 2, b"a" * 32)
    pieces = [
        ipv4(A, B, UDP, data[:16], 1, 0, True),
        ipv4(A, B, UDP, b"C" * 8, 1, 32, False),
        ipv4(A, B, UDP, b"B" * 32, 1, 8, False),  # 8..40, of which 16..32 is new
    ]
    (packet,) = raw(pieces)
    assert packet.payload == b"a" * 8 + b"B" * 16 + b"C" * 8


def test_fragments_of_different_datagrams_do_not_mix() -> None:
    other = udp(5, 6, bytes(1280))
    mixed = [p for pair in zip(fragments(), fragments(400, 8, other), fragments6(), strict=True) for p in pair]
    assert [(p.frame, p.src, p.sport, p.payload) for p in raw(mixed)] == [
        (10, A, 4000, DATAGRAM[8:]),
        (11, A, 5, bytes(1280)),
        (12, A6, 4000, DATAGRAM[8:]),
    ]


def test_tcp_and_options_in_fragments() -> None:
    segment = tcp(50000, 7447, bytes(500), 77, 88, SYN | ACK, bytes(4))
    options = bytes([TCP, 0]) + bytes(6)
    packets = raw(fragments6(80, 1, options + segment, 60))
    assert [(p.proto, p.seq, p.ack, p.flags, p.payload) for p in packets] == [("tcp", 77, 88, 0x12, bytes(500))]


def test_fragment_that_is_the_whole_datagram() -> None:
    assert [p.payload for p in raw(fragments6(4000))] == [DATAGRAM[8:]]


def test_snap_length_cuts_a_datagram_at_the_first_missing_byte() -> None:
    (packet,) = raw(fragments(), 300)
    assert (packet.payload, packet.missing) == (DATAGRAM[8:280], 1280 - 272)


def test_fragments_without_their_rest_are_counted() -> None:
    reader = raw(fragments()[:3])
    assert list(reader) == []
    assert reader.lost_fragments == 3


def test_id_used_again_later_is_another_datagram() -> None:
    first, *rest = fragments()
    other = fragments(400, 7, udp(5, 6, bytes(1280)))
    late = TIME + 31 * 10**9
    data = pcap([record(TIME, first), *(record(late, p) for p in other[:3]), record(late, other[3])], 101)
    reader = CaptureReader([io.BytesIO(data)])
    assert [p.sport for p in reader] == [5]
    assert reader.lost_fragments == 1


def test_fragments_may_continue_in_the_next_file() -> None:
    first, *rest = fragments()
    files = [pcap([record(TIME, first)], 101), pcap([record(TIME, p) for p in rest], 101)]
    assert [(p.frame, p.payload) for p in read(*files)] == [(3, DATAGRAM[8:])]


def test_table_of_fragments_is_bounded() -> None:
    many = [ipv4(A, B, UDP, bytes(1400), i, 64000, True) for i in range(3000)]
    reader = raw([*many, *fragments(400, 5000)])
    assert [p.sport for p in reader] == [4000]
    assert reader.lost_fragments == 3000
    assert len(reader._fragments._table) < ip_fragments.MAX_DATAGRAMS
    assert reader._fragments._size <= ip_fragments.MAX_BYTES


def test_fragments_that_cannot_be_are_left_out() -> None:
    bad = [
        ipv4(A, B, UDP, bytes(9), 7, 8, True),  # only the last may have a length that is no multiple of 8
        ipv4(A, B, UDP, bytes(16), 7, 65528, False),  # beyond the largest datagram
        ipv4(A, B, UDP, b"", 7, 8, True),
    ]
    reader = raw([*bad, *fragments()])
    assert [p.payload for p in reader] == [DATAGRAM[8:]]
    assert reader.lost_fragments == 3


# --- real captures ------------------------------------------------------------------------------

EACH = [pytest.param(p, id=p.name.split(".")[0]) for p in captures()]


@pytest.mark.parametrize("path", EACH)
def test_number_of_packets_is_that_of_the_truth_file(path: Path) -> None:
    reader = CaptureReader([path])
    times = [p.time for p in reader]
    assert reader.packets == truth(path)["capture"]["packets"]
    assert reader.bytes_read == reader.total_bytes == path.stat().st_size
    assert reader.unknown_linktypes == {}
    assert len(times) <= reader.packets


@pytest.mark.parametrize("path", [p for p in EACH if p.values[0].stat().st_size < 100_000])  # type: ignore[attr-defined]
def test_packets_are_those_scapy_finds(path: Path) -> None:
    ours = [(p.frame, p.proto, (p.src, p.sport), (p.dst, p.dport), p.payload, p.seq) for p in CaptureReader([path])]
    scapys = [(s.frame, s.proto, s.src, s.dst, s.data, s.seq) for s in segments(path)]
    assert ours == scapys


@pytest.mark.tshark
@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
@pytest.mark.parametrize("path", EACH)
def test_packets_are_those_tshark_finds(path: Path) -> None:
    fields = ["frame.number", "frame.time_epoch", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len"]
    fields += ["udp.srcport", "udp.dstport", "udp.length"]
    command = ["tshark", "-n", "-r", str(path), "-Y", "(tcp or udp) and not icmp", "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    theirs = []
    for line in lines:
        frame, time, *rest = line.split("\t")
        seconds, fraction = time.split(".")
        nanoseconds = int(seconds) * 10**9 + int(fraction)
        theirs.append((int(frame), nanoseconds, *(int(v) for v in rest if v)))
    ours = [
        (p.frame, p.time, p.sport, p.dport, p.seq, p.ack, len(p.payload) + p.missing)
        if p.proto == "tcp"
        else (p.frame, p.time, p.sport, p.dport, len(p.payload) + p.missing + 8)
        for p in CaptureReader([path])
    ]
    assert ours == theirs
