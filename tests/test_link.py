"""Where Zenoh is found: ports, segments, datagrams, sniffing, serial lines, and what is left to others."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from scapy.fields import StrField
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, bind_layers
from scapy.sendrecv import AsyncSniffer, sniff
from scapy.sessions import TCPSession
from scapy.utils import PcapReader, rdpcap

import scapy_zenoh as z
from scapy_zenoh import FaultKind
from scapy_zenoh.link import (
    ZenohBatch,
    ZenohCompressedBatch,
    ZenohCompressedStream,
    ZenohDatagram,
    ZenohLowLatencyStream,
    ZenohLowLatencyUnit,
    ZenohSerial,
    ZenohSerialFrame,
    ZenohStream,
    datagram_layer,
    is_hello,
    scouting_layer,
    segment_layer,
    serial_crc,
)
from scapy_zenoh.message import Record
from scapy_zenoh.scouting import ZenohHello, ZenohScout
from tests.conftest import captures
from tests.streams import Segment, segments, tcp_units, truth, udp_units, undamaged

KEEP_ALIVE = bytes.fromhex("0100 04")
INIT = bytes.fromhex("0500 01 09 11 0b0b")
HELLO = bytes.fromhex("22 09 20 c3b2a1 01 13 7463702f3132372e302e302e313a3237373630")
SCOUT = bytes.fromhex("01 09 03")
FRAME = bytes.fromhex("25 c1af803c 7d 00 06 64656d6f2f61 01 05 68656c6c6f")


@pytest.fixture(autouse=True)
def bindings() -> Iterator[None]:
    """Bindings made by a test end with it."""
    saved = [(cls, list(cls.payload_guess)) for cls in (TCP, UDP)]
    yield
    for cls, guesses in saved:
        cls.payload_guess[:] = guesses


def over(proto: type[Packet], data: bytes, sport: int, dport: int) -> Any:
    """The layer above TCP or UDP of a packet read from its bytes."""
    options = {"flags": "PA"} if proto is TCP else {}
    return IP(bytes(IP() / proto(sport=sport, dport=dport, **options) / Raw(data)))[proto].payload


def is_zenoh(packet: Packet) -> bool:
    """True when some layer of a packet is Zenoh's."""
    return any(issubclass(layer, Record) for layer in packet.layers())


# --- ports --------------------------------------------------------------------------------------

BOUND = {
    "TCP to 7447": (TCP, INIT, 5000, 7447, ZenohStream),
    "TCP from 7447": (TCP, INIT, 7447, 5000, ZenohStream),
    "UDP to 7447": (UDP, FRAME, 5000, 7447, ZenohDatagram),
    "UDP from 7447": (UDP, FRAME, 7447, 5000, ZenohDatagram),
    "SCOUT to 7446": (UDP, SCOUT, 5000, 7446, ZenohScout),
    "HELLO from 7446": (UDP, HELLO, 7446, 5000, ZenohHello),
    "HELLO between unknown ports": (UDP, HELLO, 40000, 50000, ZenohHello),
    "HELLO without locators between unknown ports": (UDP, bytes.fromhex("02 09 11 0b0b"), 40000, 50000, ZenohHello),
    "JOIN to 7447": (UDP, bytes.fromhex("a7 09 21 c3b2a1 0a cce0d45b fbdec244 27 01"), 5000, 7447, ZenohDatagram),
    "SCOUT to 7447": (UDP, SCOUT, 5000, 7447, ZenohScout),
    "INIT to 7447": (UDP, bytes.fromhex("01 09 11 0b0b"), 5000, 7447, ZenohDatagram),
}
UNBOUND = {
    "TCP on another port": (TCP, INIT, 5000, 19999),
    "UDP on another port": (UDP, FRAME, 5000, 19999),
    "SCOUT on another port": (UDP, SCOUT, 5000, 19999),
    "HELLO with a byte more": (UDP, HELLO + b"\0", 40000, 50000),
    "HELLO cut": (UDP, HELLO[:-1], 40000, 50000),
    "HELLO of another version": (UDP, b"\x22\x08" + HELLO[2:], 40000, 50000),
    "HTTP": (TCP, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 5000, 7447),
    "HTTP answer": (TCP, b"HTTP/1.1 101 Switching Protocols\r\n\r\n", 7447, 5000),
    "TLS": (TCP, bytes.fromhex("16 0301 0200 01 0001fc 0303") + bytes(40), 5000, 7447),
    "text": (UDP, b"hello there, this is no Zenoh", 5000, 7447),
}


@pytest.mark.parametrize("proto, data, sport, dport, layer", BOUND.values(), ids=BOUND)
def test_zenoh_is_found(proto: type[Packet], data: bytes, sport: int, dport: int, layer: type[Packet]) -> None:
    found = over(proto, data, sport, dport)
    assert type(found) is layer
    assert found.fault is None
    assert bytes(found) == data


@pytest.mark.parametrize("proto, data, sport, dport", UNBOUND.values(), ids=UNBOUND)
def test_what_is_not_zenoh_is_left_alone(proto: type[Packet], data: bytes, sport: int, dport: int) -> None:
    found = over(proto, data, sport, dport)
    assert not isinstance(found, Record)
    assert bytes(found) == data


def test_ports_follow_from_the_layer() -> None:
    assert (IP() / TCP() / ZenohBatch())[TCP].dport == 7447
    assert (IP() / TCP() / ZenohStream())[TCP].dport == 7447
    assert (IP() / UDP() / ZenohDatagram())[UDP].dport == 7447
    assert (IP() / UDP() / ZenohScout())[UDP].dport == 7446


def test_another_port_can_be_bound() -> None:
    assert type(over(TCP, INIT, 5000, 19999)) is Raw
    z.bind(19999)
    assert type(over(TCP, INIT, 5000, 19999)) is ZenohStream
    assert type(over(TCP, INIT, 19999, 5000)) is ZenohStream
    assert type(over(UDP, FRAME, 5000, 19999)) is ZenohDatagram
    assert type(over(UDP, FRAME, 19999, 5000)) is ZenohDatagram


def test_binding_can_be_limited_to_one_protocol() -> None:
    z.bind(19998, udp=False)
    z.bind(19997, tcp=False)
    assert type(over(TCP, INIT, 5000, 19998)) is ZenohStream
    assert type(over(UDP, FRAME, 5000, 19998)) is Raw
    assert type(over(TCP, INIT, 5000, 19997)) is Raw
    assert type(over(UDP, FRAME, 5000, 19997)) is ZenohDatagram


class Theirs(Packet):
    """A protocol of the user."""

    name = "Theirs"
    fields_desc = [StrField("load", b"")]


def test_later_binding_of_the_user_wins() -> None:
    bind_layers(UDP, Theirs, dport=50000)
    assert type(over(UDP, HELLO, 40000, 50000)) is Theirs
    assert type(over(UDP, HELLO, 40000, 50001)) is ZenohHello


def test_ipv6_is_read_alike() -> None:
    packet = IPv6(bytes(IPv6() / TCP(dport=7447) / Raw(INIT)))
    assert packet[z.ZenohInit].zid == "b0b"
    packet = Ether(bytes(Ether() / IPv6() / UDP(dport=7446) / Raw(SCOUT)))
    assert packet[ZenohScout].what == 3


# --- segments -----------------------------------------------------------------------------------


def test_2000_batches_in_one_segment_are_read() -> None:
    packet = over(TCP, 2000 * KEEP_ALIVE, 5000, 7447)
    assert type(packet) is ZenohStream
    assert (packet.fault, len(packet.batches), packet.rest) == (None, 2000, b"")
    assert bytes(packet) == 2000 * KEEP_ALIVE


def test_empty_batches_are_read() -> None:
    """What remains of a dropped message is an empty batch (links.md)."""
    data = bytes(6) + KEEP_ALIVE + bytes(2)
    packet = over(TCP, data, 5000, 7447)
    assert type(packet) is ZenohStream
    assert [len(batch.msgs) for batch in packet.batches] == [0, 0, 0, 1, 0]
    assert (packet.fault, bytes(packet)) == (None, data)
    alone = over(TCP, bytes(2), 5000, 7447)
    assert (type(alone), len(alone.batches), alone.fault) == (ZenohStream, 1, None)


def test_start_of_the_next_batch_is_kept() -> None:
    packet = over(TCP, KEEP_ALIVE + INIT[:4], 5000, 7447)
    assert (len(packet.batches), packet.rest) == (1, INIT[:4])
    assert bytes(packet) == KEEP_ALIVE + INIT[:4]


# examples of links.md, each a whole segment
COMPRESSED = bytes.fromhex("1c00 01 ff00 25d6d8fc0b7d0003632f7801c801410100ae60414141414141")
NOT_COMPRESSED = bytes.fromhex("0f00 00 25d7d8fc0b7d0003632f7901017a")
LOW_LATENCY = bytes.fromhex("0e000000 7d 00 03 632f78 01 06 6c6f776c6174")
LAST_CLOSE = bytes.fromhex("0200 0300")

SEGMENTS = {
    "plain": (INIT, ZenohStream),
    "plain, several": (KEEP_ALIVE + len(FRAME).to_bytes(2, "little") + FRAME, ZenohStream),
    "CLOSE": (LAST_CLOSE, ZenohStream),
    "compressed": (COMPRESSED, ZenohCompressedStream),
    "compression without compression": (NOT_COMPRESSED, ZenohCompressedStream),
    "compression, CLOSE": (bytes.fromhex("0300 00 0300"), ZenohCompressedStream),
    "compression, KEEP_ALIVE": (bytes.fromhex("0200 00 04"), ZenohCompressedStream),
    "low latency": (LOW_LATENCY, ZenohLowLatencyStream),
    "low latency, KEEP_ALIVE": (bytes.fromhex("01000000 04"), ZenohLowLatencyStream),
    "low latency, CLOSE": (bytes.fromhex("02000000 0300"), ZenohLowLatencyStream),
    "low latency, both CLOSEs": (bytes.fromhex("02000000 0300") + LAST_CLOSE, ZenohLowLatencyStream),
    # state.md: u16 at +2 is 0 and the byte at +4 is a network header
    "low latency, the start of a unit": (bytes.fromhex("8aea0000") + LOW_LATENCY[4:], ZenohLowLatencyStream),
    # state.md: the first byte is 0 and the next looks like a transport header
    "compression, the start of a batch": (bytes.fromhex("febf 00 66f0a5ad4e") + bytes(100), ZenohCompressedStream),
    "the start of a batch": (bytes.fromhex("febf 66f0a5ad4e") + bytes(100), ZenohStream),
}


@pytest.mark.parametrize("data, layer", SEGMENTS.values(), ids=SEGMENTS)
def test_segment_is_recognised_without_memory(data: bytes, layer: type[Packet]) -> None:
    found = over(TCP, data, 5000, 7447)
    assert type(found) is layer
    assert found.fault is None
    assert bytes(found) == data


def test_compressed_example_expands_to_what_the_specification_says() -> None:
    batch = ZenohCompressedBatch(COMPRESSED)
    assert batch.C == 1
    plain = b"".join(bytes(message) for message in batch.msgs)
    assert plain == bytes.fromhex("25d6d8fc0b7d0003632f7801c801") + 200 * b"A"
    assert ZenohCompressedBatch(NOT_COMPRESSED).C == 0


def test_low_latency_stream_ends_with_an_ordinary_close() -> None:
    stream = ZenohLowLatencyStream(LOW_LATENCY + bytes.fromhex("02000000 0300") + LAST_CLOSE)
    assert [type(batch) for batch in stream.batches] == [ZenohLowLatencyUnit, ZenohLowLatencyUnit, ZenohBatch]
    assert (stream.fault, stream.rest) == (None, b"")
    stream = ZenohLowLatencyStream(LOW_LATENCY + bytes.fromhex("0300 00 0300"))
    assert [type(batch) for batch in stream.batches] == [ZenohLowLatencyUnit, ZenohCompressedBatch]


# --- captures -----------------------------------------------------------------------------------

SLOW_BYTES = 400_000
FRAMES = 200  # of each capture, for what takes long


def each_capture(*, whole: bool) -> list[Any]:
    """All captures, or those that are whole and readable; the large ones marked slow."""
    return [
        pytest.param(p, id=p.name.split(".")[0], marks=[pytest.mark.slow] if p.stat().st_size > SLOW_BYTES else [])
        for p in captures()
        if not whole or undamaged(p)
    ]


@pytest.mark.parametrize("capture", each_capture(whole=False))
def test_no_byte_of_any_capture_is_lost(capture: Path) -> None:
    """Damaged ones, too."""
    with PcapReader(str(capture)) as packets:
        for packet in packets:
            for proto in (TCP, UDP):
                if proto in packet and not (IP in packet and packet[IP].frag):
                    size = 4 * packet[TCP].dataofs if proto is TCP else 8
                    assert bytes(packet[proto].payload) == packet[proto].original[size:]


def listening(capture: Path, proto: str) -> set[int]:
    """The ports that nodes of a capture listen on, by the truth file."""
    return {int(port) for port in re.findall(rf'"{proto}/[^"]*:(\d+)', json.dumps(truth(capture)["nodes"]))}


def with_ports(proto: str) -> list[Any]:
    """Whole captures in which a node listens on TCP or UDP."""
    return [param for param in each_capture(whole=True) if listening(param.values[0], proto)]


@pytest.mark.parametrize("proto, layer", [("tcp", ZenohStream), ("udp", ZenohDatagram)], ids=["TCP", "UDP"])
def test_rdpcap_gives_zenoh_layers(proto: str, layer: type[Packet]) -> None:
    for param in with_ports(proto):
        capture = param.values[0]
        z.bind(*listening(capture, proto))
        packets = rdpcap(str(capture), count=FRAMES)
        assert any(layer in packet for packet in packets), capture.name
        assert any(z.ZenohInit in packet or z.ZenohJoin in packet for packet in packets), capture.name
        assert all(packet.summary() for packet in packets)


def repeated(found: list[Segment]) -> set[int]:
    """Frames that only repeat bytes of the stream; Scapy's TCPSession gives some of those twice."""
    upto: dict[Any, int] = {}
    again: set[int] = set()
    for s in found:
        ends = s.src, s.dst
        end = s.seq + len(s.data) + s.syn
        if s.data and end <= upto.get(ends, 0):
            again.add(s.frame)
        upto[ends] = end if s.syn else max(end, upto.get(ends, 0))
    return again


def in_order(found: list[Segment]) -> bool:
    """True when no segment overtakes another."""
    upto: dict[Any, int] = {}
    for s in found:
        if s.data and s.seq > upto.get((s.src, s.dst), s.seq):
            return False
        upto[s.src, s.dst] = s.seq + 1 if s.syn else max(s.seq + len(s.data), upto.get((s.src, s.dst), 0))
    return True


def beginning(capture: Path) -> list[Segment]:
    """The first TCP segments; all of them if some come late, so that none is missing."""
    found = [s for s in segments(capture) if s.proto == "tcp"]
    return [s for s in found if s.frame <= FRAMES] if in_order(found) else found


@pytest.mark.parametrize("capture", with_ports("tcp"))
def test_tcp_session_puts_batches_together(capture: Path) -> None:
    bound = listening(capture, "tcp")
    z.bind(*bound)
    found = beginning(capture)
    known = [s for s in found if bound & {s.src[1], s.dst[1]}]
    wanted = Counter(unit.wire for unit in tcp_units(known) if unit.kind is not Raw)
    skip = repeated(found)
    packets = [p for n, p in enumerate(rdpcap(str(capture), count=found[-1].frame), 1) if n not in skip]
    got: Counter[bytes] = Counter()
    for packet in sniff(offline=packets, session=TCPSession, quiet=True):
        layer = packet[TCP].payload if TCP in packet else None
        while isinstance(layer, ZenohStream):
            assert layer.fault is None
            got.update(bytes(batch) for batch in layer.batches)
            layer = layer.payload
    if in_order(found):
        assert got == wanted
    else:  # Scapy's session does not wait for what was overtaken
        assert got & wanted


def test_tcp_session_puts_a_batch_together_wherever_it_is_cut() -> None:
    batch = len(FRAME).to_bytes(2, "little") + FRAME
    stream = 6 * batch
    for at in range(1, len(stream)):
        pieces = {0: stream[:at], at: stream[at:]}
        packets = [
            Ether(bytes(Ether() / IP() / TCP(sport=5000, dport=7447, seq=1000 + seq, flags="PA") / Raw(data)))
            for seq, data in pieces.items()
        ]
        got = b""
        for packet in sniff(offline=packets, session=TCPSession, quiet=True):
            layer = packet[TCP].payload
            while isinstance(layer, ZenohStream):
                got += b"".join(bytes(one) for one in layer.batches)
                layer = layer.payload
        assert got == stream, f"cut after {at} bytes"


@pytest.mark.parametrize("capture", each_capture(whole=True))
def test_datagrams_are_recognised_without_memory(capture: Path) -> None:
    for unit in udp_units(segments(capture)):
        if unit.kind is ZenohScout:
            assert scouting_layer(unit.wire) is ZenohScout
        elif unit.kind is ZenohHello:
            assert is_hello(unit.wire)
            assert datagram_layer(unit.wire) is ZenohHello
        else:
            assert datagram_layer(unit.wire) is unit.kind
            assert not is_hello(unit.wire)


STREAMS = {ZenohBatch: ZenohStream, ZenohCompressedBatch: ZenohCompressedStream}


@pytest.mark.parametrize("capture", with_ports("tcp"))
def test_whole_units_are_recognised_without_memory(capture: Path) -> None:
    """As if each had a segment of its own."""
    for unit in tcp_units(beginning(capture)):
        if len(unit.wire) > 2 and unit.kind is not Raw:
            assert segment_layer(unit.wire) is STREAMS.get(unit.kind, ZenohLowLatencyStream), unit.wire[:40].hex()


def test_port_of_the_truth_file_can_be_bound() -> None:
    other = [p for p in captures() if undamaged(p) and "19999" in str(truth(p)["nodes"])]
    assert other
    for capture in other:
        assert not any(map(is_zenoh, rdpcap(str(capture))))
        z.bind(19999)
        zids = {p[z.ZenohInit].zid for p in rdpcap(str(capture)) if z.ZenohInit in p}
        assert zids == {node["zid"] for node in truth(capture)["nodes"].values()}


def accidental(packet: Packet) -> bool:
    """True for a FRAGMENT in a datagram: any bytes may follow its header, so chance makes some."""
    layer = packet.getlayer(ZenohDatagram)
    return layer is not None and [type(message) for message in layer.msgs] == [z.ZenohFragment]


def test_traffic_that_is_not_zenoh_is_left_alone() -> None:
    foreign = [p for p in captures() if not truth(p)["zenoh_versions"]]
    assert foreign
    for capture in foreign:
        alone, together = rdpcap(str(capture)), sniff(offline=str(capture), session=TCPSession, quiet=True)
        for packets in (alone, together):
            wrong = [p for p in packets if is_zenoh(p) and not accidental(p)]
            assert [(p.summary(), bytes(p[UDP if UDP in p else TCP].payload).hex()) for p in wrong] == []
            assert sum(map(accidental, packets)) <= len(packets) / 16


# --- live ---------------------------------------------------------------------------------------


@pytest.mark.live
def test_scouting_is_sniffed_on_loopback() -> None:
    seen: list[Packet] = []
    port = 0

    def ours(packet: Packet) -> bool:
        return UDP in packet and port in (packet[UDP].sport, packet[UDP].dport) and is_zenoh(packet)

    sniffer = AsyncSniffer(iface="lo", lfilter=ours, prn=seen.append, store=False)
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as answering,
    ):
        asking.bind(("127.0.0.1", 0))
        port = asking.getsockname()[1]
        try:
            sniffer.start()
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and not {ZenohScout, ZenohHello} <= {type(p[UDP].payload) for p in seen}:
                if sniffer.exception is not None:
                    pytest.skip(f"cannot sniff: {sniffer.exception}")
                asking.sendto(SCOUT, ("127.0.0.1", 7446))
                answering.sendto(HELLO, ("127.0.0.1", port))
                time.sleep(0.1)
        finally:
            if sniffer.running:
                sniffer.stop()
    scout = next(p for p in seen if ZenohScout in p)
    hello = next(p for p in seen if ZenohHello in p)
    assert (scout[UDP].sport, scout[ZenohScout].what) == (port, 3)
    assert (hello[UDP].dport, hello[ZenohHello].zid) == (port, "a1b2c3")
    assert hello[ZenohHello].locators == ["tcp/127.0.0.1:27760"]


# --- serial -------------------------------------------------------------------------------------

SERIAL = {
    "INIT": ("02 01 01 01 01 01 01 01 00", "01 0000 00000000", "serial INIT"),
    "INIT|ACK": ("02 03 01 01 01 01 01 01 00", "03 0000 00000000", "serial INIT+ACK"),
    "KEEP_ALIVE": ("01 02 01 06 04 ba 6c 6a f8 00", "00 0100 04 ba6c6af8", "KEEP_ALIVE"),
    "CLOSE": ("01 02 02 02 03 05 ec 57 7b f8 00", "00 0200 0300 ec577bf8", "CLOSE link generic"),
}


@pytest.mark.parametrize("wire, plain, summary", SERIAL.values(), ids=SERIAL)
def test_serial_frame_of_the_specification_is_read(wire: str, plain: str, summary: str) -> None:
    line = ZenohSerial(bytes.fromhex(wire))
    (frame,) = line.frames
    assert (line.fault, line.rest) == (None, b"")
    assert bytes(frame) == bytes.fromhex(plain)
    assert frame.summary() == summary
    assert bytes(line) == bytes.fromhex(wire)


def test_serial_frames_are_built_as_the_specification_writes_them() -> None:
    frames = [
        ZenohSerialFrame(init=1),
        ZenohSerialFrame(init=1, ack=1),
        ZenohSerialFrame(msgs=[z.ZenohKeepAlive()]),
        ZenohSerialFrame(msgs=[z.ZenohClose()]),
    ]
    assert bytes(ZenohSerial(frames=frames)) == b"".join(bytes.fromhex(wire) for wire, _, _ in SERIAL.values())


def test_checksum_is_that_of_the_specification() -> None:
    assert serial_crc(b"") == 0
    assert serial_crc(b"\x04") == int.from_bytes(bytes.fromhex("ba6c6af8"), "little")
    assert serial_crc(b"\x03\x00") == int.from_bytes(bytes.fromhex("ec577bf8"), "little")


def test_wrong_checksum_is_noted_and_the_messages_are_read() -> None:
    frame = ZenohSerialFrame(bytes.fromhex("00 0100 04 ba6c6af9"))
    assert frame.fault == FaultKind.BAD_CHECKSUM
    assert type(frame.msgs[0]) is z.ZenohKeepAlive
    assert bytes(frame) == bytes.fromhex("00 0100 04 ba6c6af9")


GARBAGE = {
    "before a frame": "ff fe fd 00 01 02 01 06 04 ba 6c 6a f8 00",
    "a zero before a frame": "00 01 02 01 06 04 ba 6c 6a f8 00",
    "zeros between frames": "01 02 01 06 04 ba 6c 6a f8 00 00 00 01 02 01 06 04 ba 6c 6a f8 00",
    "a zero too many": "01 02 01 06 04 ba 6c 6a f8 00 00",
    "a frame that goes on": "01 02 01 06 04 ba 6c 6a f8 00 01 02",
    "a frame cut in the middle": "01 02 01 06 04 ba 00 01 02 01 06 04 ba 6c 6a f8 00",
    "not stuffed as COBS wants": "05 01 00 01 02 01 06 04 ba 6c 6a f8 00",
    "a length that is too large": "01 02 09 06 04 ba 6c 6a f8 00",
    "only noise": "ff ff ff ff",
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_garbage_on_a_serial_line_loses_nothing(text: str) -> None:
    data = bytes.fromhex(text)
    line = ZenohSerial(data)
    assert bytes(line) == z.rebuild(line) == data
    assert line.summary()


@pytest.mark.parametrize("name", ["before a frame", "a zero before a frame", "a frame cut in the middle"])
def test_frame_after_garbage_is_read(name: str) -> None:
    line = ZenohSerial(bytes.fromhex(GARBAGE[name]))
    last = line.frames[-1]
    assert last.fault is None
    assert type(last.msgs[0]) is z.ZenohKeepAlive


def test_garbage_on_a_serial_line_is_a_fault() -> None:
    assert ZenohSerial(bytes.fromhex(GARBAGE["not stuffed as COBS wants"])).fault is not None
    assert ZenohSerial(bytes.fromhex(GARBAGE["a length that is too large"])).fault == FaultKind.BAD_LENGTH


def test_edit_of_a_serial_frame_changes_length_and_checksum() -> None:
    line = ZenohSerial(bytes.fromhex(SERIAL["KEEP_ALIVE"][0]))
    line.frames[0].msgs[0] = z.ZenohClose()
    again = ZenohSerial(bytes(line))
    assert again.fault is None
    assert bytes(line) == bytes.fromhex(SERIAL["CLOSE"][0])


# --- as an extension of Scapy -------------------------------------------------------------------

LOADED = """
from scapy.all import IP, TCP, Raw, conf
conf.exts.load("scapy-zenoh")
assert [ext.name for ext in conf.exts.exts] == ["Zenoh"], conf.exts
packet = IP(bytes(IP() / TCP(dport=7447) / Raw(bytes.fromhex("05000109110b0b"))))
print(packet.lastlayer().summary())
"""


def test_scapy_loads_the_extension() -> None:
    try:
        distribution("scapy-zenoh")
    except PackageNotFoundError:
        pytest.skip("scapy-zenoh is not installed: pip install -e .")
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "INIT syn peer b0b" in done.stdout
