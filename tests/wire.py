"""Capture files and packets written out with struct, for tests: nothing here comes from the package."""

from __future__ import annotations

import struct
from socket import AF_INET, AF_INET6, inet_pton

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
TCP, UDP = 6, 17

Record = tuple[int, bytes, int]  # time in ns, captured bytes, length on the wire


def record(time: int, packet: bytes, snaplen: int | None = None) -> Record:
    """A packet of which ``snaplen`` bytes are captured."""
    return time, packet[:snaplen], len(packet)


# --- packets ------------------------------------------------------------------------------------


def udp(sport: int, dport: int, data: bytes, length: int | None = None) -> bytes:
    """A UDP datagram."""
    return struct.pack(">HHHH", sport, dport, 8 + len(data) if length is None else length, 0) + data


def tcp(
    sport: int, dport: int, data: bytes = b"", seq: int = 0, ack: int = 0, flags: int = ACK, options: bytes = b""
) -> bytes:
    """A TCP segment; options in multiples of four bytes."""
    offset = (20 + len(options)) // 4 << 4
    return struct.pack(">HHIIBBHHH", sport, dport, seq, ack, offset, flags, 512, 0, 0) + options + data


def ipv4(
    src: str,
    dst: str,
    proto: int,
    data: bytes,
    ident: int = 0,
    offset: int = 0,
    more: bool = False,
    options: bytes = b"",
    total: int | None = None,
) -> bytes:
    """An IPv4 packet; ``offset`` in bytes."""
    size = 20 + len(options) + len(data) if total is None else total
    fragment = offset // 8 | more << 13
    head = struct.pack(">BBHHHBBH", 0x40 | (20 + len(options)) // 4, 0, size, ident, fragment, 64, proto, 0)
    return head + inet_pton(AF_INET, src) + inet_pton(AF_INET, dst) + options + data


def ipv6(src: str, dst: str, proto: int, data: bytes, size: int | None = None) -> bytes:
    """An IPv6 packet; ``proto`` is the next header."""
    head = struct.pack(">IHBB", 6 << 28, len(data) if size is None else size, proto, 64)
    return head + inet_pton(AF_INET6, src) + inet_pton(AF_INET6, dst) + data


def ipv6_fragment(proto: int, ident: int, offset: int, more: bool) -> bytes:
    """A fragment header."""
    return struct.pack(">BBHI", proto, 0, offset | more, ident)


def ethernet(data: bytes, kind: int = 0x0800, tags: tuple[tuple[int, int], ...] = ()) -> bytes:
    """An Ethernet frame; tags as (kind, number)."""
    return bytes(12) + b"".join(struct.pack(">HH", *tag) for tag in tags) + struct.pack(">H", kind) + data


# --- files --------------------------------------------------------------------------------------


def pcap(records: list[Record], linktype: int = 1, order: str = "<", nano: bool = False, snaplen: int = 65535) -> bytes:
    """A pcap file."""
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snaplen, linktype)
    for time, data, length in records:
        fraction = time % 10**9 if nano else time % 10**9 // 1000
        out += struct.pack(order + "IIII", time // 10**9, fraction, len(data), length) + data
    return out


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    """An option of a block."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(linktype: int = 1, snaplen: int = 0, options: bytes = b"", order: str = "<") -> bytes:
    """An interface description block."""
    return block(1, struct.pack(order + "HHI", linktype, 0, snaplen) + options, order)


def enhanced(index: int, ticks: int, packet: bytes, length: int | None = None, order: str = "<") -> bytes:
    """An enhanced packet block."""
    whole = len(packet) if length is None else length
    head = struct.pack(order + "IIIII", index, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), whole)
    return block(6, head + packet, order)


def obsolete(index: int, ticks: int, packet: bytes, length: int | None = None, order: str = "<") -> bytes:
    """A packet block of the first drafts."""
    whole = len(packet) if length is None else length
    head = struct.pack(order + "HHIIII", index, 0xFFFF, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), whole)
    return block(2, head + packet, order)


def simple(packet: bytes, length: int | None = None, order: str = "<") -> bytes:
    """A simple packet block."""
    whole = len(packet) if length is None else length
    return block(3, struct.pack(order + "I", whole) + packet, order)
