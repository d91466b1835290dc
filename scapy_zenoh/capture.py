"""The packets of capture files: what is in them, as TCP segments and UDP datagrams.

Reads pcap and pcapng, plain or compressed, from files and pipes, down to the payload of TCP and UDP.
IP fragments are put together on the way; the order of TCP is the question of ``streams``. No Scapy: this
runs once per packet of a capture.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from socket import AF_INET, AF_INET6, inet_ntop
from struct import Struct
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from scapy_zenoh.ip_fragments import Fragments

T = TypeVar("T")

CHUNK = 1 << 18  # bytes asked for at once
MAX_RECORD = 1 << 24  # no packet is as long; a longer record means the file is damaged
MAX_TIME = (1 << 62) - 1  # ns: the year 2116; what lies between two times fits 64 bits
MAX_ADDRESSES = 1 << 16  # addresses whose text is remembered

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
PCAP_MAGICS = {  # the first four bytes: byte order, ns per unit of the fraction
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}

BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}  # of a section of pcapng

# Block types of pcapng (draft-ietf-opsawg-pcapng, section 4)
SECTION, INTERFACE, PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 0x0A0D0D0A, 1, 2, 3, 6
OPT_TSRESOL, OPT_TSOFFSET = 9, 14

# Link types (the registry of tcpdump.org)
NULL, ETHERNET, LOOP, SLL, SLL2 = 0, 1, 108, 113, 276
RAW = frozenset((12, 14, 101, 228, 229))

IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TAGS = frozenset((0x8100, 0x88A8, 0x9100, 0x9200))
BSD_FAMILIES = {2: IPV4, 10: IPV6, 23: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}  # AF_INET and every AF_INET6 there is

TCP, UDP = 6, 17
IPV6_OPTIONS = frozenset((0, 43, 60))  # hop-by-hop, routing, destination options: length in 8-byte units
IPV6_FRAGMENT = 44

_U16 = Struct(">H").unpack_from
_IPV4 = Struct(">BxHHHxB2x4s4s").unpack_from  # version and length, total length, id, fragment, protocol, addresses
_IPV6 = Struct(">4xHBx16s16s").unpack_from  # payload length, next header, addresses
_TCP = Struct(">HHIIBB").unpack_from
_UDP = Struct(">HHH").unpack_from
_FRAGMENT = Struct(">BxHI").unpack_from


# What can be wrong with a file
CUT_FILE_HEADER = "the file header"
CUT_PACKET_HEADER = "the header of packet {frame}"
CUT_PACKET = "packet {frame}"
CUT_BLOCK_HEADER = "the header of a block"
CUT_BLOCK = "a block behind packet {frame}"
PACKET_LENGTH = "packet {frame} cannot be {value} bytes long"
NO_BYTE_ORDER = "a section header without byte order"
BLOCK_LENGTH = "a block cannot be {value} bytes long"
LENGTHS_DIFFER = "the two lengths of a block differ"
SHORT_BLOCK = "a block is too short for its kind"
PACKET_OVER_BLOCK = "packet {frame} is longer than its block"
NO_INTERFACE = "packet {frame} is from interface {value}, which is not described"


class CaptureError(Exception):
    """A file cannot be read (on): one line that names the file and what is wrong."""


class Packet(NamedTuple):
    """One TCP segment or UDP datagram. A named tuple because making a frozen dataclass takes four times as long."""

    capture: str  # name of the file, without folders
    frame: int  # number in that file, from 1
    time: int  # ns since 1970
    src: str
    sport: int
    dst: str
    dport: int
    proto: str  # "tcp" or "udp"
    payload: bytes  # what was captured of it, without padding of the link
    missing: int  # how many bytes of the payload were cut off behind it
    seq: int  # seq, ack and flags are those of TCP, and 0 for UDP
    ack: int
    flags: int


class Interface(NamedTuple):
    """An interface of a pcapng section."""

    linktype: int
    snaplen: int
    per_second: int  # ticks
    offset: int  # ns

    def time(self, ticks: int) -> int:
        """Ns since 1970, in the range of 64 bits: more is damage, and would fit nowhere."""
        time = ticks * 10**9 // self.per_second + self.offset
        return time if -MAX_TIME <= time <= MAX_TIME else max(-MAX_TIME, min(time, MAX_TIME))


class Place(NamedTuple):
    """Between two packets of a file: where, and what a reader has to know there."""

    offset: int  # in the unpacked file
    frame: int  # number of the packet before
    time: int  # and its time
    unit: int  # pcap: ns per unit of the fraction; 0: pcapng
    big: bool
    interfaces: tuple[Interface, ...]


class Part(NamedTuple):
    """A part of a file, to be read by ``PacketBlocks``: from a place, or the start, to an offset, or the end."""

    path: str
    start: Place | None = None
    end: int | None = None


Source = str | Path | BinaryIO | Part


class Sources:
    """What readers of captures share: the files, what is counted, and the way from a frame to TCP and UDP.

    ``packets`` counts every packet read so far, whatever it carries. ``bytes_read`` of ``total_bytes``
    (None when a source has no length) are those of the files, compressed or not. ``unknown_linktypes``
    has the number of packets of each link type that is not understood, ``lost_fragments`` counts IP
    fragments whose datagram never became whole.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self.packets = 0
        self.bytes_read = 0
        self.total_bytes = _total_size(sources)
        self.unknown_linktypes: dict[int, int] = {}
        #: Of each source that was read to its end, or to where it is damaged: the packets until then.
        self.packets_until: list[int] = []
        self._sources = deque(sources)
        self._fragments = Fragments()
        self._addresses: dict[bytes, str] = {}

    @property
    def ended(self) -> int:
        """How many sources were read to their end, or to where they are damaged."""
        return len(self.packets_until)

    def memory(self) -> tuple[Any, ...]:
        """What another reader has to know to go on behind the packets read so far; see ``remember``."""
        return self.packets, self.unknown_linktypes, self._fragments

    def remember(self, memory: tuple[Any, ...]) -> None:
        """Go on where the reader with this memory stopped."""
        self.packets, self.unknown_linktypes, self._fragments = memory

    @property
    def lost_fragments(self) -> int:
        """How many IP fragments belong to datagrams that are not whole (yet)."""
        return self._fragments.lost + self._fragments.waiting

    def _each(self, read: Callable[[BinaryIO, Part], Iterator[T]]) -> Iterator[T]:
        """What ``read`` gives for each source that is left."""
        while self._sources:
            source = self._sources.popleft()
            path = _path_of(source)
            try:
                if path is None:
                    file = cast(BinaryIO, source if not isinstance(source, (str, Path)) else sys.stdin.buffer)
                    yield from read(file, Part(name_of(source)))
                else:
                    with open(path, "rb", buffering=0) as raw:
                        yield from read(cast(BinaryIO, raw), source if isinstance(source, Part) else Part(path))
            except OSError as error:
                raise CaptureError(f"{name_of(source)}: {error.strerror or error}") from None
            finally:
                self.packets_until.append(self.packets)

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        """What a file holds. A pipe gives what it has, so that packets come out while it is written."""
        read = getattr(file, "read1", file.read)
        while data := read(CHUNK):
            self.bytes_read += len(data)
            yield data

    def _decode(
        self, buf: bytes, at: int, end: int, wire_end: int, linktype: int, capture: str, frame: int, time: int
    ) -> Packet | None:
        """One packet: ``buf[at:end]`` was captured of it, it reached to ``wire_end``. None if it is not TCP or UDP."""
        # One function for all layers on purpose: these lines are 3 of the 4 us that a packet takes.
        if linktype == ETHERNET:
            if end - at < 14:
                return None
            kind = buf[at + 12] << 8 | buf[at + 13]
            at += 14
        elif linktype == SLL:
            if end - at < 16:
                return None
            kind = buf[at + 14] << 8 | buf[at + 15]
            at += 16
        elif linktype == SLL2:
            if end - at < 20:
                return None
            kind = buf[at] << 8 | buf[at + 1]
            at += 20
        elif linktype in RAW:
            if at >= end:
                return None
            kind = {4: IPV4, 6: IPV6}.get(buf[at] >> 4, 0)
        elif linktype in (NULL, LOOP):
            if end - at < 4:
                return None
            # The number of the family has the byte order of the machine that captured it.
            kind = BSD_FAMILIES.get(max(buf[at], buf[at + 3]), 0)
            at += 4
        else:
            self.unknown_linktypes[linktype] = self.unknown_linktypes.get(linktype, 0) + 1
            return None
        while kind in VLAN_TAGS:
            if end - at < 4:
                return None
            kind = buf[at + 2] << 8 | buf[at + 3]
            at += 4

        if kind == IPV4:
            if end - at < 20:
                return None
            version, total, ident, fragment, protocol, src, dst = _IPV4(buf, at)
            header = (version & 15) * 4
            if version >> 4 != 4 or header < 20:
                return None
            wire_end = at + total if total else wire_end  # 0: segmentation left to the network card
            at += header
            if fragment & 0x3FFF:
                whole = self._fragments.add(
                    (src, dst, protocol, ident),
                    (fragment & 0x1FFF) * 8,
                    bool(fragment & 0x2000),
                    buf[at : min(end, wire_end)],
                    wire_end - at,
                    protocol,
                    time,
                )
                if whole is None:
                    return None
                buf, wire_end, protocol = whole
                at, end = 0, len(buf)
        elif kind == IPV6:
            if end - at < 40 or buf[at] >> 4 != 6:
                return None
            total, protocol, src, dst = _IPV6(buf, at)
            at += 40
            wire_end = at + total if total else wire_end
            while protocol in IPV6_OPTIONS or protocol == IPV6_FRAGMENT:
                if end - at < 8:
                    return None
                if protocol != IPV6_FRAGMENT:
                    protocol, at = buf[at], at + 8 + buf[at + 1] * 8
                    continue
                protocol, fragment, ident = _FRAGMENT(buf, at)
                at += 8
                if fragment & 0xFFF9:
                    whole = self._fragments.add(
                        (src, dst, ident),
                        fragment & 0xFFF8,
                        bool(fragment & 1),
                        buf[at : min(end, wire_end)],
                        wire_end - at,
                        protocol,
                        time,
                    )
                    if whole is None:
                        return None
                    buf, wire_end, protocol = whole
                    at, end = 0, len(buf)
        else:
            return None

        if end > wire_end:  # padding of the link
            end = wire_end
        if protocol == TCP:
            if end - at < 14:
                return None
            sport, dport, seq, ack, offset, flags = _TCP(buf, at)
            if offset < 0x50:
                return None
            at += (offset >> 4) * 4
            proto = "tcp"
        elif protocol == UDP:
            if end - at < 8:
                return None
            sport, dport, length = _UDP(buf, at)
            if length >= 8:
                wire_end = min(wire_end, at + length)
                end = min(end, wire_end)
            elif length:  # 0: segmentation left to the network card
                return None
            at += 8
            seq = ack = flags = 0
            proto = "udp"
        else:
            return None
        if at > wire_end:
            return None
        addresses = self._addresses
        src_text = addresses.get(src) or self._address(src)
        dst_text = addresses.get(dst) or self._address(dst)
        payload = buf[at:end]
        missing = wire_end - at - len(payload)
        return Packet(capture, frame, time, src_text, sport, dst_text, dport, proto, payload, missing, seq, ack, flags)

    def _address(self, packed: bytes) -> str:
        if len(self._addresses) >= MAX_ADDRESSES:
            self._addresses.clear()
        text = inet_ntop(AF_INET if len(packed) == 4 else AF_INET6, packed)
        self._addresses[packed] = text
        return text


class CaptureReader(Sources):
    """The TCP and UDP packets of several files that are one recording in that order.

    A source is a path, ``-`` for standard input, or a binary file object, which need not be seekable.
    Iterating reads on; nothing is read before. After a CaptureError, iterating again goes on with the
    next source.
    """

    def __iter__(self) -> Iterator[Packet]:
        return self._each(self._read)

    def _read(self, file: BinaryIO, part: Part) -> Iterator[Packet]:
        """The packets of one file."""
        assert part[1:] == (None, None), "this reader takes whole files"
        stream = _Stream(unpacked(self._chunks(file), part.path), part.path)
        stream.fill(0, 4)
        magic = stream.buf[:4]
        if magic == PCAPNG_MAGIC:
            return self._read_pcapng(stream)
        if magic in PCAP_MAGICS:
            return self._read_pcap(stream, *PCAP_MAGICS[magic])
        raise stream.strange(magic)

    def _read_pcap(self, stream: _Stream, order: str, unit: int) -> Iterator[Packet]:
        if not stream.fill(0, 24):
            raise stream.cut(CUT_FILE_HEADER, 0)
        linktype = Struct(order + "I").unpack_from(stream.buf, 20)[0] & 0x03FFFFFF  # FCS bits above
        header = Struct(order + "IIII").unpack_from
        decode, capture = self._decode, os.path.basename(stream.name)
        frame, pos = 0, 24
        buf = stream.buf
        while True:
            if pos + 16 > len(buf):
                enough, buf, pos = stream.fill(pos, 16), stream.buf, 0
                if not enough:
                    if buf:
                        raise stream.cut(CUT_PACKET_HEADER, 0, frame + 1)
                    return
            seconds, fraction, captured, length = header(buf, pos)
            frame += 1
            if captured > MAX_RECORD:
                raise stream.damaged(PACKET_LENGTH, pos, frame, captured)
            if pos + 16 + captured > len(buf):
                enough, buf, pos = stream.fill(pos, 16 + captured), stream.buf, 0
                if not enough:
                    raise stream.cut(CUT_PACKET, 0, frame)
            start = pos + 16
            pos = start + captured
            self.packets += 1
            time = seconds * 1_000_000_000 + fraction * unit
            packet = decode(buf, start, pos, start + length, linktype, capture, frame, time)
            if packet is not None:
                yield packet

    def _read_pcapng(self, stream: _Stream) -> Iterator[Packet]:
        decode, capture = self._decode, os.path.basename(stream.name)
        interfaces: list[Interface] = []
        header = enhanced = obsolete = word = Struct("<I").unpack_from  # set by the first block, a section header
        order = "<"
        frame, pos, time = 0, 0, 0
        buf = stream.buf
        while True:
            if pos + 12 > len(buf):
                enough, buf, pos = stream.fill(pos, 12), stream.buf, 0
                if not enough:
                    if buf:
                        raise stream.cut(CUT_BLOCK_HEADER, 0)
                    return
            if buf[pos : pos + 4] == PCAPNG_MAGIC:
                order = BYTE_ORDERS.get(buf[pos + 8 : pos + 12], "")
                if not order:
                    raise stream.damaged(NO_BYTE_ORDER, pos)
                interfaces = []
                header = Struct(order + "II").unpack_from
                word = Struct(order + "I").unpack_from
                enhanced = Struct(order + "IIIII").unpack_from
                obsolete = Struct(order + "HHIIII").unpack_from
            kind, size = header(buf, pos)
            padded = size + 3 & ~3  # a few writers forget the padding in the length
            if size < 12 or padded > MAX_RECORD:
                raise stream.damaged(BLOCK_LENGTH, pos, frame, size)
            if pos + padded > len(buf):
                enough, buf, pos = stream.fill(pos, padded), stream.buf, 0
                if not enough:
                    raise stream.cut(CUT_BLOCK, 0, frame)
            body, end = pos + 8, pos + padded - 4
            if word(buf, end)[0] != size:
                raise stream.damaged(LENGTHS_DIFFER, pos)
            pos = end + 4

            if kind == ENHANCED_PACKET and end - body >= 20:
                index, high, low, captured, length = enhanced(buf, body)
                body += 20
            elif kind == PACKET and end - body >= 20:
                index, _, high, low, captured, length = obsolete(buf, body)
                body += 20
            elif kind == SIMPLE_PACKET and end - body >= 4:
                index, length = 0, word(buf, body)[0]
                body += 4
                snaplen = interfaces[0].snaplen if interfaces else 0
                captured = min(length, end - body, snaplen or length)
            elif kind == INTERFACE and end - body >= 8:
                interfaces.append(read_interface(buf[body:end], order))
                continue
            elif kind in (ENHANCED_PACKET, PACKET, SIMPLE_PACKET, INTERFACE):
                raise stream.damaged(SHORT_BLOCK, body - 8)
            else:
                continue

            frame += 1
            if captured > end - body:
                raise stream.damaged(PACKET_OVER_BLOCK, body, frame)
            if index >= len(interfaces):
                raise stream.damaged(NO_INTERFACE, body, frame, index)
            interface = interfaces[index]
            if kind != SIMPLE_PACKET:  # which has no time: it keeps that of the packet before
                time = interface.time(high << 32 | low)
            self.packets += 1
            packet = decode(buf, body, body + captured, body + length, interface.linktype, capture, frame, time)
            if packet is not None:
                yield packet


class Window:
    """The part of a file that is being looked at: where it is, and what is said when the file is wrong there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._start = 0  # where the part begins in the (unpacked) file

    def strange(self, magic: bytes) -> CaptureError:
        """The error for a file that begins with something else than a capture file does."""
        if not magic:
            return CaptureError(f"{self.name}: the file is empty")
        return CaptureError(f"{self.name}: not a capture file (it begins with {magic.hex(' ')})")

    def cut(self, what: str, pos: int, frame: int = 0) -> CaptureError:
        """The error for a file that ends too early, in a piece that begins at ``pos``."""
        what = what.format(frame=frame)
        return CaptureError(f"{self.name}: the file ends in the middle of {what} (byte {self._start + pos})")

    def damaged(self, what: str, pos: int, frame: int = 0, value: int = 0) -> CaptureError:
        """The error for bytes that cannot be right."""
        what = what.format(frame=frame, value=value)
        return CaptureError(f"{self.name}: damaged at byte {self._start + pos}: {what}")


class _Stream(Window):
    """The bytes of a file, of which ``buf`` holds the part that is being looked at."""

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        super().__init__(name)
        self.buf = b""
        self._chunks = chunks

    def fill(self, pos: int, need: int) -> bool:
        """Drop what is before ``pos`` and read until ``buf`` has ``need`` bytes; False if the file ends before."""
        parts = [self.buf[pos:]]
        have = len(parts[0])
        self._start += pos
        try:
            while have < need:
                chunk = next(self._chunks, b"")
                if not chunk:
                    break
                parts.append(chunk)
                have += len(chunk)
        finally:
            self.buf = b"".join(parts)
        return have >= need


def read_interface(body: bytes, order: str) -> Interface:
    """Read the body of an interface description block."""
    linktype, snaplen = Struct(order + "H2xI").unpack_from(body)
    resolution, offset = 6, 0
    option = Struct(order + "HH").unpack_from
    at = 8
    while at + 4 <= len(body):
        code, size = option(body, at)
        value = body[at + 4 : at + 4 + size]
        if code == 0:
            break
        if code == OPT_TSRESOL and len(value) == 1:
            resolution = value[0]
        elif code == OPT_TSOFFSET and len(value) == 8:
            offset = Struct(order + "q").unpack(value)[0]
        at += 4 + (size + 3 & ~3)
    per_second = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    return Interface(linktype, snaplen, per_second, offset * 10**9)


def unpacked(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The chunks themselves, or what they hold if they are compressed."""
    first = b""
    while len(first) < 4 and (chunk := next(chunks, b"")):
        first += chunk
    if first.startswith(GZIP_MAGIC):
        yield from _gunzipped(joined(first, chunks), name)
    elif first.startswith(ZSTD_MAGIC):
        yield from _unzstd(joined(first, chunks), name)
    else:
        yield from joined(first, chunks)


def joined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks with one before them, unless it is empty."""
    if first:
        yield first
    yield from rest


def _gunzipped(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The content of a gzip file, which may have several members. Output comes in bounded pieces."""
    inflate = zlib.decompressobj(31)
    begun = False
    try:
        for data in chunks:
            while data:
                if not begun and not (data := data.lstrip(b"\0")):  # padding between members
                    break
                begun = True
                out = inflate.decompress(data, CHUNK)
                if out:
                    yield out
                data = inflate.unconsumed_tail
                if inflate.eof:
                    data, inflate, begun = inflate.unused_data, zlib.decompressobj(31), False
        while begun and (out := inflate.decompress(b"", CHUNK)):
            yield out
    except zlib.error as error:
        raise CaptureError(f"{name}: the gzip data is damaged ({error})") from None
    if begun:
        raise CaptureError(f"{name}: the gzip data ends too early")


def _unzstd(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The content of a zstd file, which may have several frames."""
    try:
        import zstandard
    except ImportError:
        raise CaptureError(f"{name}: to read zstd, install the package zstandard") from None
    unpacker = zstandard.ZstdDecompressor()
    frame = unpacker.decompressobj()
    begun = False
    step = 2048  # one block header of 4 bytes can stand for 128 KB, so this bounds what comes out at once to 64 MB
    try:
        for chunk in chunks:
            for at in range(0, len(chunk), step):
                data = chunk[at : at + step]
                while data:
                    begun = True
                    out = frame.decompress(data)
                    if out:
                        yield out
                    data = b""
                    if frame.eof:
                        data, frame, begun = frame.unused_data, unpacker.decompressobj(), False
    except zstandard.ZstdError as error:
        raise CaptureError(f"{name}: the zstd data is damaged ({error})") from None
    if begun:
        raise CaptureError(f"{name}: the zstd data ends too early")


def _path_of(source: Source) -> str | None:
    """The path to open, None for standard input and file objects."""
    if isinstance(source, Part):
        return source.path
    return str(source) if isinstance(source, (str, Path)) and source != "-" else None


def name_of(source: Source) -> str:
    """What a source is called in messages."""
    if isinstance(source, Part):
        return source.path
    name = source if isinstance(source, (str, Path)) else getattr(source, "name", "-")
    return str(name) if isinstance(name, (str, Path)) else "-"


def _total_size(sources: Sequence[Source]) -> int | None:
    """Bytes in all sources; None if one of them is no plain file."""
    total = 0
    for source in sources:
        path = _path_of(source)
        if path is None or not os.path.isfile(path):
            return None
        total += os.path.getsize(path)
    return total
