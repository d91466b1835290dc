"""Blocks of packets are what the reader of single packets says: values, order, counters, errors."""

from __future__ import annotations

import gzip
import io
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from scapy_zenoh import capture as files
from scapy_zenoh.bulk import packets as module
from scapy_zenoh.bulk.packets import PacketBlock, PacketBlocks
from scapy_zenoh.capture import CaptureError, CaptureReader, Packet
from tests.conftest import captures
from tests.wire import (
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

TIME = 1_700_000_000_123_456_789
A, B, A6, B6 = "10.0.0.1", "192.168.7.200", "fe80::1", "2001:db8::ff"
BLOCKS = [64, 300, 1000, 4096, 65536, module.BLOCK]

Said = list[Packet | str]


def packets_of(blocks: Iterable[PacketBlock]) -> Iterable[Packet]:
    for found in blocks:
        assert found.count > 0
        yield from (found.packet(i) for i in range(found.count))


def everything(reader: CaptureReader | PacketBlocks) -> Said:
    """Packets and error texts in the order in which they come."""
    said: Said = []
    while True:
        try:
            for packet in reader if isinstance(reader, CaptureReader) else packets_of(reader):
                said.append(packet)
            return said
        except CaptureError as error:
            said.append(str(error))


def same(sources: Sequence[Path | bytes], size: int = module.BLOCK) -> Said:
    """What both readers say about these files, which must be the same."""

    def opened() -> list[Any]:
        return [io.BytesIO(source) if isinstance(source, bytes) else source for source in sources]

    reader, blocks = CaptureReader(opened()), PacketBlocks(opened(), size)
    said = everything(reader)
    assert everything(blocks) == said
    counters = ["packets", "total_bytes", "unknown_linktypes", "lost_fragments"]
    if not any(isinstance(s, str) for s in said):
        counters.append("bytes_read")  # up to an error it depends on how much is asked for at once
    assert [getattr(blocks, name) for name in counters] == [getattr(reader, name) for name in counters]
    assert len(set(blocks.addresses)) == len(blocks.addresses)
    return said


# --- real captures ------------------------------------------------------------------------------

EACH = [pytest.param(p, id=p.name.split(".")[0]) for p in captures()]


@pytest.mark.parametrize("path", EACH)
def test_real_capture(path: Path) -> None:
    assert same([path])


@pytest.mark.slow
@pytest.mark.parametrize("size", BLOCKS[:-1])
@pytest.mark.parametrize("path", EACH)
def test_real_capture_in_small_blocks(path: Path, size: int) -> None:
    assert same([path], size)


def test_real_captures_as_one_recording_with_errors_between(tmp_path: Path) -> None:
    paths = sorted(captures(), key=lambda p: p.stat().st_size)[:8]
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(paths[-1].read_bytes()[:-7])
    said = same([paths[0], tmp_path / "none", *paths[1:4], cut, tmp_path, *paths[4:]], 2000)
    assert sum(isinstance(s, str) for s in said) == 3
    assert isinstance(said[-1], Packet) and said[-1].capture == paths[-1].name


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A copy that is cut, or has a few bytes changed: anywhere, near the beginning, or close together."""
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    copy = bytearray(data)
    start, room = rng.choice([(0, len(data)), (0, min(len(data), 400)), (rng.randrange(len(data)), 64)])
    for _ in range(rng.randint(1, 6)):
        at = min(start + rng.randrange(room), len(data) - 1)
        copy[at] = rng.choice([0, 0xFF, rng.randrange(256), copy[at] ^ 1 << rng.randrange(8)])
    return bytes(copy)


@pytest.mark.slow
@pytest.mark.parametrize("path", EACH)
def test_damaged_copies_of_real_captures(path: Path) -> None:
    data, rng = path.read_bytes(), random.Random(path.name)
    errors = 0
    for _ in range(100 if len(data) < 100_000 else 10):
        said = same([damaged(data, rng)], rng.choice(BLOCKS))
        errors += any(isinstance(s, str) for s in said)
    assert errors


# --- files written out by hand ------------------------------------------------------------------

SEGMENT = tcp(50000, 7447, b"data of TCP", 0xFFFFFFF0, 0x80000001, SYN, bytes(12))
DATAGRAM = udp(4000, 7447, bytes(range(100)))
CHAIN6 = b"\x2b\x00" + bytes(6) + b"\x3c\x01" + bytes(14) + bytes([UDP, 0]) + bytes(6) + DATAGRAM
PIECES = [ipv4(A, B, UDP, DATAGRAM[at : at + 40], 7, at, at + 40 < len(DATAGRAM)) for at in range(0, 108, 40)]
PIECES6 = [
    ipv6(A6, B6, 44, ipv6_fragment(TCP, 9, at, at + 16 < len(SEGMENT)) + SEGMENT[at : at + 16])
    for at in range(0, len(SEGMENT), 16)
]
IPS = [
    ipv4(A, B, TCP, SEGMENT),
    ipv4(A, B, UDP, DATAGRAM, options=bytes(8)),
    ipv4(B, A, UDP, udp(1, 2, b"no length", 0), total=0),
    ipv6(A6, B6, UDP, DATAGRAM),
    ipv6(A6, B6, 0, CHAIN6),
    ipv6(B6, A6, 44, ipv6_fragment(UDP, 3, 0, False) + DATAGRAM),
    ipv4(A, B, 1, b"a ping"),
    *PIECES,
    *PIECES6,
]
LINKTYPES = [0, 1, 12, 14, 101, 105, 108, 113, 228, 229, 276]


def on_link(linktype: int, packet: bytes, tags: int = 0) -> bytes:
    """An IP packet as a frame of a kind of link."""
    kind = 0x0800 if packet[0] >> 4 == 4 else 0x86DD
    if linktype in (0, 108):
        return (b"\x02\0\0\0" if kind == 0x0800 else b"\0\0\0\x1e") + packet
    if linktype == 113:
        return bytes(14) + kind.to_bytes(2, "big") + packet
    if linktype == 276:
        return kind.to_bytes(2, "big") + bytes(18) + packet
    return ethernet(packet, kind, ((0x8100, 5), (0x88A8, 6), (0x9100, 7))[:tags]) if linktype == 1 else packet


@pytest.mark.parametrize("size", BLOCKS)
@pytest.mark.parametrize("linktype", LINKTYPES)
def test_every_packet_on_every_link(linktype: int, size: int) -> None:
    records = [record(TIME + i, on_link(linktype, ip, i % 4)) for i, ip in enumerate(IPS)]
    said = same([pcap(records, linktype)], size)
    assert len(said) == (0 if linktype == 105 else 8)


@pytest.mark.slow
@pytest.mark.parametrize("linktype", LINKTYPES)
def test_every_cut_of_a_packet(linktype: int) -> None:
    for ip in IPS:
        frame = on_link(linktype, ip, 2)
        same([pcap([record(TIME, frame, cut) for cut in range(len(frame) + 1)], linktype)])


@pytest.mark.slow
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_every_cut_of_a_pcap(order: str, nano: bool) -> None:
    data = pcap([record(TIME, ethernet(IPS[0])), record(TIME, ethernet(IPS[1]))], 1, order, nano)
    for cut in range(len(data) + 1):
        same([data[:cut]], 64)


def interfaces(order: str) -> bytes:
    """Four interfaces; the units of time of the last two are no whole numbers of ns."""
    offset = (3600).to_bytes(8, "little" if order == "<" else "big")
    return (
        interface(1, 0, option(9, b"\x09", order), order)
        + interface(101, 50, option(14, offset, order), order)
        + interface(1, 0, option(9, b"\x9e", order), order)
        + interface(105, 0, option(9, b"\x0c", order), order)
    )


def pcapng(order: str) -> bytes:
    """Every kind of block."""
    frame = ethernet(IPS[0])
    return (
        section(order)
        + block(4, b"names are skipped...", order)
        + interfaces(order)
        + enhanced(0, TIME, frame, order=order)
        + enhanced(1, 77, IPS[3], 200, order)
        + simple(frame + b"x", order=order)
        + enhanced(2, TIME, frame, order=order)
        + simple(frame, 1000, order=order)
        + obsolete(2, TIME + 5, frame, order=order)
        + enhanced(3, TIME, frame, order=order)
        + simple(frame, order=order)
        + b"".join(enhanced(1, i, piece, order=order) for i, piece in enumerate(PIECES))
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", ["<>", "><", "<<", ">>"])
def test_every_cut_of_a_pcapng_with_two_sections(order: str) -> None:
    """The first packet of the second section has the time of the last one before, in units of the first."""
    first, second = order
    frame = ethernet(IPS[0])
    data = pcapng(first) + enhanced(2, TIME + 9, frame, order=first) + section(second)
    data += interface(order=second) + simple(frame, order=second) + pcapng(second)
    said = same([data])
    assert len(said) == 18
    for cut in range(len(data)):
        same([data[:cut]], 64 if cut % 2 else 300)


@pytest.mark.parametrize("resolution", [0, 3, 6, 9, 10, 12, 127, 0x80, 0x81, 0x89, 0x8A, 0xA0, 0xFF])
def test_times(resolution: int) -> None:
    for offset in (0, 1, -1, 9_000_000_000, -9_000_000_000, 1 << 62, -(1 << 63)):
        options = option(9, bytes([resolution])) + option(14, offset.to_bytes(8, "little", signed=True))
        data = section() + interface(options=options)
        for ticks in (0, 1, TIME, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
            data += enhanced(0, ticks, ethernet(IPS[0]))
        assert len(same([data])) == 6


def test_record_larger_than_a_block() -> None:
    large = ipv6(A6, B6, TCP, tcp(1, 2, bytes(200_000)), 0)
    data = pcap([record(TIME, p) for p in (IPS[0], large, IPS[0], large, IPS[1])], 101)
    assert [len(cast(Packet, p).payload) for p in same([data], 300)] == [11, 200_000, 11, 200_000, 100]
    blocks = PacketBlocks([cast(Any, io.BytesIO(data))], 300)
    list(blocks)
    assert len(blocks._buffer.array) == 16 + len(large)


def test_block_ends_when_its_rows_are_full() -> None:
    data = pcap([record(TIME, ipv4(A, B, UDP, udp(1, 2, b"")))] * 1000, 101)
    counts = [found.count for found in PacketBlocks([cast(Any, io.BytesIO(data))], 1 << 16)]
    assert sum(counts) == 1000
    assert max(counts) == (1 << 16) // module.BYTES_PER_ROW
    same([data], 1 << 16)


def test_many_addresses() -> None:
    rng = random.Random(1)
    packets = [
        ipv4(f"10.0.{i >> 8}.{i & 255}", "10.0.0.0", UDP, udp(1, 2, b"4"))
        for i in (rng.randrange(5000) for _ in range(9000))
    ]
    packets += [ipv6(f"::10.0.{i >> 8}.{i & 255}", f"fe80:{i:x}::", UDP, udp(1, 2, b"6")) for i in range(3000)]
    data = pcap([record(TIME, p) for p in packets], 101)
    assert len(same([data])) == len(same([data], 300)) == 12000


def test_numbers_of_addresses_hold_for_the_whole_recording(tmp_path: Path) -> None:
    for name, ips in (("a", IPS), ("b", IPS[::-1])):
        (tmp_path / name).write_bytes(pcap([record(TIME, ip) for ip in ips], 101))
    blocks = PacketBlocks([tmp_path / "a", tmp_path / "b"])
    pairs = [set(zip(found.src.tolist(), found.dst.tolist(), strict=True)) for found in blocks]
    assert pairs[0] == pairs[1]
    assert sorted(blocks.addresses) == sorted([A, B, A6, B6])


def test_fragments_may_continue_in_the_next_block_and_file() -> None:
    first = pcap([record(TIME, PIECES[0])], 101)
    rest = pcap([record(TIME, p) for p in (IPS[0], *PIECES6[:2], PIECES[1], IPS[1], PIECES[2], *PIECES6[2:])], 101)
    for size in BLOCKS:
        said = same([first, rest], size)
        assert [cast(Packet, p).frame for p in said] == [1, 5, 6, 7]


def test_many_fragments() -> None:
    """Rows of fragments go, payloads of datagrams come behind the bytes of the file."""
    data = pcap([record(TIME, p) for p in (*PIECES, IPS[0], *PIECES6) * 50], 101)
    for size in BLOCKS:
        assert len(same([data], size)) == 150


def test_counters_are_right_after_each_block() -> None:
    data = pcap([record(TIME, p) for p in IPS] * 20, 101)
    blocks = PacketBlocks([cast(Any, io.BytesIO(data))], 300)
    before = 0
    for found in blocks:
        frames = found.frame.tolist()
        assert before < frames[0] <= frames[-1] <= blocks.packets
        before = frames[-1]
        assert max(found.src.max(), found.dst.max()) < len(blocks.addresses)
    assert blocks.packets == len(IPS) * 20


def test_columns_have_the_types_that_compiled_code_expects() -> None:
    for ips in (IPS, IPS[:1]):
        data = pcap([record(TIME, p) for p in ips], 101)
        (found,) = PacketBlocks([cast(Any, io.BytesIO(data))])
        types = {name: np.int64 for name in ("frame", "time", "start", "size", "missing", "seq", "ack")}
        types |= {name: np.int32 for name in ("src", "dst", "sport", "dport", "flags")}
        types |= {"proto": np.uint8, "data": np.uint8}
        for name, kind in types.items():
            column = getattr(found, name)
            assert column.dtype == kind and column.flags.c_contiguous and column.ndim == 1
            assert name == "data" or len(column) == found.count
        assert ((found.start >= 0) & (found.start + found.size <= len(found.data))).all()


MANY = pcap([record(TIME + i * 1000, ethernet(ipv4(A, B, UDP, udp(i, 7447, bytes(i))))) for i in range(1200)])


@pytest.mark.slow
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_compressed_files_whole_and_damaged(pack: Any) -> None:
    packed, rng = pack(MANY), random.Random(3)
    for size in BLOCKS:
        assert len(same([packed], size)) == 1200
        same([packed + pack(MANY[:500])], size)
        for _ in range(5):
            same([damaged(packed, rng)], size)
            same([pack(damaged(MANY, rng))], size)
    for cut in range(30):
        same([packed[:cut]])


def test_error_of_reading_comes_after_the_packets_before_it() -> None:
    class Failing(io.BytesIO):
        name = "failing"

        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(size) or self.fail()

        def readinto(self, room: Any, /) -> int:
            return super().readinto(room) or self.fail()

        read1 = read

        def fail(self) -> Any:
            raise OSError(5, "Input/output error")

    for cut in (3, 20, 24, 5000, len(MANY)):
        said = everything(CaptureReader([Failing(MANY[:cut])]))
        assert said[-1] == "failing: Input/output error"
        assert everything(PacketBlocks([cast(Any, Failing(MANY[:cut]))], 300)) == said


# --- anything -----------------------------------------------------------------------------------

orders = st.sampled_from("<>")
sizes = st.sampled_from(BLOCKS)


@st.composite
def frames(draw: st.DrawFn, linktype: int) -> bytes:
    """A frame that is good, changed in a few bytes, or random behind its first ones."""
    frame = bytearray(on_link(linktype, draw(st.sampled_from(IPS)), draw(st.integers(0, 3))))
    for _ in range(draw(st.integers(0, 3))):
        frame[draw(st.integers(0, len(frame) - 1))] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(frame)))
        frame[at:] = draw(st.binary(max_size=80))
    return bytes(frame)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(LINKTYPES), orders, st.booleans(), sizes)
def test_random_packets_in_pcap(data: st.DataObject, linktype: int, order: str, nano: bool, size: int) -> None:
    found = data.draw(st.lists(frames(linktype), max_size=12))
    snaplens = data.draw(st.lists(st.none() | st.integers(0, 120), min_size=len(found), max_size=len(found)))
    records = [record(TIME + i, f, snap) for i, (f, snap) in enumerate(zip(found, snaplens, strict=True))]
    same([pcap(records, linktype, order, nano)], size)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data(), orders, sizes)
def test_random_blocks_in_pcapng(data: st.DataObject, order: str, size: int) -> None:
    out = bytearray(section(order) + interface(1, 0, b"", order))
    for _ in range(data.draw(st.integers(0, 12))):
        kind = data.draw(st.integers(0, 9))
        ticks, index = data.draw(st.integers(0, (1 << 64) - 1)), data.draw(st.integers(0, 2))
        if kind == 0:
            order = data.draw(orders)
            out += section(order) + interface(101, 0, b"", order)
        elif kind <= 2:
            options = option(9, bytes([data.draw(st.integers(0, 255))]), order)
            out += interface(data.draw(st.sampled_from(LINKTYPES)), data.draw(st.integers(0, 90)), options, order)
        elif kind == 3:
            out += block(data.draw(st.integers(0, 12)), data.draw(st.binary(max_size=40)), order)
        else:
            frame = data.draw(frames(data.draw(st.sampled_from(LINKTYPES))))
            length = data.draw(st.none() | st.integers(0, 1 << 32))
            length = None if length is None else min(length, (1 << 32) - 1)
            if kind % 3 == 0:
                out += simple(frame, length, order)
            else:
                out += (enhanced if kind % 3 == 1 else obsolete)(index, ticks, frame, length, order)
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 3]))):
        out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
    same([bytes(out)], size)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*files.PCAP_MAGICS, files.PCAPNG_MAGIC, b""]), st.binary(max_size=300), sizes)
def test_random_bytes_as_file(magic: bytes, data: bytes, size: int) -> None:
    same([magic + data], size)
