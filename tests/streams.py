"""From captures to units of transmission, for tests: TCP put in order, WebSocket unwrapped, batches cut.

Written apart from the code under test, plainly and without regard to speed, for captures that are
whole. Of the package it uses only the classes it names as readers, and INIT to see what was agreed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.config import conf
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapReader

from scapy_zenoh.link import (
    ZenohBatch,
    ZenohCompressedBatch,
    ZenohCompressedDatagram,
    ZenohDatagram,
    ZenohLowLatencyDatagram,
    ZenohLowLatencyUnit,
)
from scapy_zenoh.scouting import ZenohHello, ZenohScout
from scapy_zenoh.transport import ZenohExtCompression, ZenohExtLowLatency, ZenohInit
from tests.conftest import truth_path

Address = tuple[str, int]

INIT, OPEN = 0x01, 0x02  # ids of transport messages (transport.md)
SCOUTING_PORT = 7446


@dataclass(frozen=True)
class Segment:
    """One TCP segment or UDP datagram of a capture."""

    frame: int  # from 1
    proto: str
    src: Address
    dst: Address
    data: bytes
    seq: int = 0
    syn: bool = False
    ack: bool = False


@dataclass(frozen=True)
class Unit:
    """A batch, low-latency unit or datagram: who sent it, and the class that must read all of it.

    ``kind`` is Raw for bytes at the end of a stream that are no whole unit.
    """

    src: Address
    dst: Address
    kind: type[Packet]
    wire: bytes

    def read(self) -> Any:
        """The unit as a packet."""
        return self.kind(self.wire)


def truth(capture: Path) -> dict[str, Any]:
    """What the applications did."""
    return dict(json.loads(truth_path(capture).read_text()))


def undamaged(capture: Path) -> bool:
    """True when a capture has all bytes of its links, from their beginning, and they are readable Zenoh."""
    told = truth(capture)
    whole = "damage" not in told and "capture_started_ns" not in told and told["capture"]["snaplen"] is None
    return whole and bool(told["zenoh_versions"]) and told["link"] not in ("tls", "quic")


def segments(capture: Path) -> list[Segment]:
    """All TCP segments and UDP datagrams, with Scapy reading no further than that."""
    found: list[Segment] = []
    fragments: dict[tuple[str, str, int], list[Any]] = {}
    conf.layers.filter([Ether, Dot1Q, CookedLinux, IP, IPv6, TCP, UDP])
    try:
        with PcapReader(str(capture)) as packets:
            for frame, packet in enumerate(packets, 1):
                ip = packet.getlayer(IP) or packet.getlayer(IPv6)
                if IP in packet and (ip.frag or ip.flags.MF):
                    pieces = fragments.setdefault((ip.src, ip.dst, ip.id), [])
                    pieces.append((ip.frag * 8, ip.original[4 * ip.ihl : ip.len], bool(ip.flags.MF)))
                    whole = joined(pieces)
                    if whole and ip.proto == 17:
                        found.append(datagram(frame, ip, UDP(whole)))
                elif TCP in packet:
                    tcp = packet[TCP]
                    data = tcp.original[4 * tcp.dataofs :]
                    ends = (ip.src, tcp.sport), (ip.dst, tcp.dport)
                    found.append(Segment(frame, "tcp", *ends, data, tcp.seq, "S" in tcp.flags, "A" in tcp.flags))
                elif UDP in packet:
                    found.append(datagram(frame, ip, packet[UDP]))
    finally:
        conf.layers.unfilter()
    return found


def datagram(frame: int, ip: Any, udp: Any) -> Segment:
    """A UDP datagram between the addresses of ``ip``."""
    return Segment(frame, "udp", (ip.src, udp.sport), (ip.dst, udp.dport), udp.original[8 : udp.len])


def joined(pieces: list[tuple[int, bytes, bool]]) -> bytes:
    """An IP datagram from its fragments (start, bytes, more), empty while one is missing."""
    data = b""
    for start, piece, _ in sorted(pieces):
        if start != len(data):
            return b""
        data += piece
    last = max(pieces)
    return b"" if last[2] else data


# --- TCP ----------------------------------------------------------------------------------------


@dataclass
class Direction:
    """What one side of a connection sent."""

    src: Address
    dst: Address
    first: int  # sequence number of the first byte
    pieces: list[tuple[int, bytes]] = field(default_factory=list)

    def stream(self) -> bytes:
        """The bytes in order, each once."""
        data = bytearray()
        for start, piece in sorted(self.pieces):
            assert start <= len(data), f"{start - len(data)} bytes are missing at {len(data)}"
            data += piece[len(data) - start :]
        return bytes(data)


def connections(found: list[Segment]) -> list[tuple[Direction, Direction]]:
    """The TCP connections: what the side that opened it sent, and what the other sent."""
    opened: list[tuple[Direction, Direction]] = []
    current: dict[tuple[Address, Address], Direction] = {}
    for s in found:
        if s.proto != "tcp":
            continue
        if s.syn and not s.ack:
            known = current.get((s.src, s.dst))
            if known is None or known.first != s.seq + 1:
                pair = Direction(s.src, s.dst, s.seq + 1), Direction(s.dst, s.src, -1)
                current[s.src, s.dst], current[s.dst, s.src] = pair
                opened.append(pair)
        elif s.syn:
            current[s.src, s.dst].first = s.seq + 1
        if s.data:
            side = current[s.src, s.dst]
            side.pieces.append(((s.seq - side.first) % (1 << 32), s.data))
    return opened


@dataclass(frozen=True)
class Mode:
    """What both INITs of a link carry."""

    compression: bool = False
    low_latency: bool = False

    @property
    def stream(self) -> type[Packet]:
        """The unit on a stream once the link is open."""
        plain = ZenohCompressedBatch if self.compression else ZenohBatch
        return ZenohLowLatencyUnit if self.low_latency else plain

    @property
    def datagram(self) -> type[Packet]:
        """The same on UDP and WebSocket."""
        plain = ZenohCompressedDatagram if self.compression else ZenohDatagram
        return ZenohLowLatencyDatagram if self.low_latency else plain


def agreed(*inits: bytes) -> Mode:
    """The mode that the first messages of both sides negotiate."""
    chains = [ZenohInit(data).exts or [] for data in inits if data[:1] and data[0] & 0x1F == INIT]
    if len(chains) < 2:
        return Mode()
    both = [all(any(isinstance(e, ext) for e in chain) for chain in chains) for ext in _OPTIONS]
    return Mode(*both)


_OPTIONS = (ZenohExtCompression, ZenohExtLowLatency)


def cut_stream(side: Direction, data: bytes, mode: Mode) -> Iterator[Unit]:
    """Batches of one direction: ordinary ones up to OPEN, then as agreed."""
    last_close = bytes.fromhex("0300000300" if mode.compression else "02000300")
    kind: type[Packet] = ZenohBatch
    pos = 0
    while pos < len(data):
        if kind is ZenohLowLatencyUnit and data[pos:] == last_close:
            kind = ZenohCompressedBatch if mode.compression else ZenohBatch
        start = pos + (4 if kind is ZenohLowLatencyUnit else 2)
        end = start + int.from_bytes(data[pos:start], "little")
        if end > len(data) or start > len(data):
            yield Unit(side.src, side.dst, Raw, data[pos:])
            return
        yield Unit(side.src, side.dst, kind, data[pos:end])
        if kind is ZenohBatch and data[start:end][:1] and data[start] & 0x1F == OPEN:
            kind = mode.stream
        pos = end


# --- WebSocket (RFC 6455) -----------------------------------------------------------------------


def is_web_socket(data: bytes) -> bool:
    """True for either side of an HTTP upgrade."""
    return data.startswith((b"GET ", b"HTTP/1.1 101"))


def web_socket_messages(data: bytes) -> Iterator[bytes]:
    """The binary messages after the upgrade, unmasked and put together."""
    pos = data.index(b"\r\n\r\n") + 4
    message = b""
    while pos < len(data):
        final, opcode = data[pos] >> 7, data[pos] & 0x0F
        masked, size = data[pos + 1] >> 7, data[pos + 1] & 0x7F
        pos += 2
        wide = {126: 2, 127: 8}.get(size, 0)
        if wide:
            size, pos = int.from_bytes(data[pos : pos + wide], "big"), pos + wide
        mask = data[pos : pos + 4] if masked else bytes(4)
        pos += 4 * masked
        content = data[pos : pos + size]
        assert len(content) == size, "a WebSocket frame is cut"
        pos += size
        if opcode > 2:  # close, ping, pong
            continue
        assert opcode != 1, "Zenoh sends no text"
        key = (mask * (size // 4 + 1))[:size]
        message += (int.from_bytes(content, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")
        if final:
            yield message
            message = b""


# --- units --------------------------------------------------------------------------------------


def tcp_units(found: list[Segment]) -> Iterator[Unit]:
    """The units of all TCP connections, one direction after the other."""
    for pair in connections(found):
        data = [side.stream() for side in pair]
        if is_web_socket(data[0]):
            messages = [list(web_socket_messages(d)) if d else [] for d in data]
            mode = agreed(*(m[0] if m else b"" for m in messages))
            for side, sent in zip(pair, messages, strict=True):
                yield from cut_datagrams([(side.src, side.dst, m) for m in sent], mode)
        else:
            mode = agreed(*(d[2:] for d in data))
            for side, d in zip(pair, data, strict=True):
                yield from cut_stream(side, d, mode)


def cut_datagrams(sent: list[tuple[Address, Address, bytes]], mode: Mode) -> Iterator[Unit]:
    """Datagrams of a link in their order: ordinary ones up to the OPEN of each sender, then as agreed."""
    opened: set[Address] = set()
    for src, dst, data in sent:
        yield Unit(src, dst, mode.datagram if src in opened else ZenohDatagram, data)
        if data[:1] and data[0] & 0x1F == OPEN:
            opened.add(src)


def udp_units(found: list[Segment]) -> Iterator[Unit]:
    """Scouting as it comes, then the datagrams of each link. A HELLO goes to where a SCOUT came from."""
    links: dict[frozenset[Address], list[tuple[Address, Address, bytes]]] = {}
    scouts: set[Address] = set()
    for s in found:
        if s.proto != "udp":
            continue
        if s.dst[1] == SCOUTING_PORT:
            scouts.add(s.src)
            yield Unit(s.src, s.dst, ZenohScout, s.data)
        elif s.dst in scouts:
            yield Unit(s.src, s.dst, ZenohHello, s.data)
        else:
            links.setdefault(frozenset([s.src, s.dst]), []).append((s.src, s.dst, s.data))
    for sent in links.values():
        first = {src: data for src, _, data in reversed(sent)}
        yield from cut_datagrams(sent, agreed(*first.values()))


def units(capture: Path) -> list[Unit]:
    """Everything Zenoh in a capture."""
    found = segments(capture)
    return [*udp_units(found), *tcp_units(found)]


# --- fragments ----------------------------------------------------------------------------------


def lane_of(message: Any) -> tuple[int, int]:
    """Priority and reliability of a FRAME or FRAGMENT; without the extension the priority is 5 (data)."""
    priority = next((e.priority for e in message.exts or () if "priority" in e.default_fields), 5)
    return int(priority), int(message.R)


def reassembled(packets: list[tuple[Address, Address, Any]]) -> list[bytes]:
    """The network messages whose FRAGMENTs are all there, per sender, receiver, priority and reliability."""
    whole: list[bytes] = []
    begun: dict[Any, bytes] = {}
    for src, dst, packet in packets:
        for message in packet.fields.get("msgs", ()):
            if type(message).__name__ != "ZenohFragment":
                continue
            lane = (src, dst, *lane_of(message))
            names = {type(e).__name__ for e in message.exts or ()}
            if "ZenohExtFirst" in names:
                begun[lane] = b""
            begun[lane] = begun.get(lane, b"") + message.data
            if not message.M:
                whole.append(begun.pop(lane))
    return whole
