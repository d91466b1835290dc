"""The packets of capture files in blocks of columns: what ``CaptureReader`` says, many times faster.

The bytes of a file are read into one buffer and gone through by the compiled functions of ``scan``. They leave
here what is rare: sections and interfaces of pcapng, IP fragments, odd units of time, and errors.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path
from socket import AF_INET, AF_INET6, inet_ntop
from struct import Struct
from typing import BinaryIO, cast

import numpy as np

from scapy_zenoh import capture as files
from scapy_zenoh.bulk import scan
from scapy_zenoh.bulk.scan import Bytes, Ints, Shorts
from scapy_zenoh.capture import CaptureError, Interface, Packet, Part, Place

BLOCK = 16 << 20  # bytes of a file in one block
BYTES_PER_ROW = 128  # of the file; with smaller packets a block ends when its rows are full
MIN_BLOCK, MIN_ROWS = 64, 16
FIRST_ADDRESSES = 1 << 4  # slots of the table of addresses, a power of two
MOST_ADDRESSES = 1 << 18  # after which their numbers begin anew
FULL = 0.7  # of which so many are used before there are twice as many

PROTOCOLS = {files.TCP: "tcp", files.UDP: "udp"}

LINKS = {
    files.ETHERNET: scan.ON_ETHERNET,
    files.SLL: scan.ON_SLL,
    files.SLL2: scan.ON_SLL2,
    files.NULL: scan.ON_BSD,
    files.LOOP: scan.ON_BSD,
    **dict.fromkeys(files.RAW, scan.ON_RAW),
}

DAMAGE = {
    scan.BAD_PACKET_LENGTH: files.PACKET_LENGTH,
    scan.BAD_BLOCK_LENGTH: files.BLOCK_LENGTH,
    scan.BAD_LENGTHS: files.LENGTHS_DIFFER,
    scan.BAD_SHORT_BLOCK: files.SHORT_BLOCK,
    scan.BAD_PACKET: files.PACKET_OVER_BLOCK,
    scan.BAD_INTERFACE: files.NO_INTERFACE,
}


@dataclass(slots=True, eq=False)
class PacketBlock:
    """TCP segments and UDP datagrams that follow each other in one file, a column for each part of a Packet.

    All arrays are valid until the next block is asked for, which uses the same memory.
    """

    capture: str  # name of the file, without folders
    data: Bytes  # what ``start`` and ``size`` refer to
    count: int
    frame: Ints  # number in the file, from 1
    time: Ints  # ns since 1970
    src: Shorts  # indexes into ``addresses``
    dst: Shorts
    sport: Shorts
    dport: Shorts
    proto: Bytes  # 6 or 17
    start: Ints  # where the payload begins in ``data``
    size: Ints  # what was captured of it
    missing: Ints  # what was cut off behind it
    seq: Ints  # seq, ack and flags are those of TCP, and 0 for UDP
    ack: Ints
    flags: Shorts
    addresses: list[str]  # the reader's, which grows; another list, when their numbers begin anew

    def packet(self, i: int) -> Packet:
        """One row as the reader of single packets gives it."""
        start = int(self.start[i])
        return Packet(
            self.capture,
            int(self.frame[i]),
            int(self.time[i]),
            self.addresses[self.src[i]],
            int(self.sport[i]),
            self.addresses[self.dst[i]],
            int(self.dport[i]),
            PROTOCOLS[int(self.proto[i])],
            self.data[start : start + int(self.size[i])].tobytes(),
            int(self.missing[i]),
            int(self.seq[i]),
            int(self.ack[i]),
            int(self.flags[i]),
        )


class PacketBlocks(files.Sources):
    """The TCP and UDP packets of several capture files that are one recording, in blocks.

    Iterating reads on; nothing is read before. Before a CaptureError come the packets that are before the
    damage; iterating again then goes on with the next file.
    The counters are right after each block, ``bytes_read`` up to what is read ahead of it.
    """

    def __init__(self, sources: Sequence[str | Path | Part], block: int = BLOCK) -> None:
        super().__init__(sources)
        #: Behind the newest block; None when its file is damaged there.
        self.place: Place | None = None
        self._buffer = _Buffer(block)
        self._rows = _Rows(max(block // BYTES_PER_ROW, MIN_ROWS))
        self._named = _Addresses()

    @property
    def addresses(self) -> list[str]:
        """The addresses that have a number now."""
        return self._named.texts

    def __iter__(self) -> Iterator[PacketBlock]:
        return self._each(self._read)

    def _read(self, file: BinaryIO, part: Part) -> Iterator[PacketBlock]:
        """The blocks of one file, or of a part of it."""
        view = self._open(file, part)
        state = np.zeros(scan.STATE, np.int64)
        state[scan.LONGEST] = files.MAX_RECORD
        state[scan.ORIGIN] = state[scan.KNOWN] = -1
        interfaces = _Interfaces()
        if part.start is not None:
            _, state[scan.FRAME], state[scan.TIME], state[scan.UNIT], state[scan.BIG], known = part.start
            for interface in known:
                interfaces.add(interface)
            state[scan.INTERFACES] = len(known) if not part.start.unit else 0
            return self._scan(view, state, interfaces)
        view.fill(0, 4)
        magic = view.data[:4].tobytes()
        if magic == files.PCAPNG_MAGIC:
            return self._scan(view, state, interfaces)
        if magic not in files.PCAP_MAGICS:
            raise view.strange(magic)
        if not view.fill(0, 24):
            raise view.cut(files.CUT_FILE_HEADER, 0)
        order, unit = files.PCAP_MAGICS[magic]
        linktype = Struct(order + "I").unpack(view.data[20:24].tobytes())[0] & 0x03FFFFFF  # FCS bits above
        interfaces.add(Interface(linktype, 0, 1, 0))
        state[scan.POS], state[scan.BIG], state[scan.UNIT] = 24, order == ">", unit
        return self._scan(view, state, interfaces)

    def _open(self, file: BinaryIO, part: Part) -> _View:
        """The content of a file, or a part of it: straight from the file, or as it is unpacked."""
        first = b""
        while len(first) < 4 and (piece := file.read(4 - len(first))):
            first += piece
        self.bytes_read += len(first)
        start = part.start.offset if part.start else 0
        left = None if part.end is None else part.end - start
        if first.startswith((files.GZIP_MAGIC, files.ZSTD_MAGIC)):
            rest = file.read(files.CHUNK - len(first))
            self.bytes_read += len(rest)
            content = files.unpacked(files.joined(first + rest, self._chunks(file)), part.path)
            return _View(self._buffer, _Pieces(content, start).readinto, part.path, start, left)

        def readinto(room: memoryview) -> int:
            size = cast(RawIOBase, file).readinto(room) or 0
            self.bytes_read += size
            return size

        if part[1:] != (None, None):
            file.seek(start)
            first = b""
        return _View(self._buffer, readinto, part.path, start, left, first)

    def _scan(self, view: _View, state: Ints, interfaces: _Interfaces) -> Iterator[PacketBlock]:
        """Go through a file: the compiled part as far as it can, then what it came back for."""
        rows, capture = self._rows, os.path.basename(view.name)
        pcapng = not state[scan.UNIT]
        counted = 0
        while True:
            state[scan.FILLED] = view.filled
            why = scan.walk(view.buf, state, interfaces.array, rows.wide, rows.narrow)
            if state[scan.COUNT] > state[scan.DECODED]:
                scan.decode(view.buf, state, interfaces.array, rows.wide, rows.narrow, rows.proto, rows.marks)
                self._named.name(view.buf, state, rows.narrow)
            self.packets += int(state[scan.PACKETS]) - counted
            counted = int(state[scan.PACKETS])
            if state[scan.MARKED]:
                self._complete(view, state, interfaces)
            pos, frame = int(state[scan.POS]), int(state[scan.FRAME])

            if why == scan.AT_INTERFACE:
                body = view.data[pos - int(state[scan.VALUE]) + 8 : pos - 4].tobytes()
                interfaces.add(files.read_interface(body, ">" if state[scan.BIG] else "<"))
                state[scan.INTERFACES] = len(interfaces.items)
                continue
            if why == scan.AT_SECTION:
                order = files.BYTE_ORDERS.get(view.data[pos + 8 : pos + 12].tobytes())
                if order is not None:
                    if state[scan.ORIGIN] >= 0:  # the interface goes, a simple packet may still want the time
                        state[scan.TIME] = interfaces.time(int(state[scan.ORIGIN]), int(state[scan.TIME]))
                        state[scan.ORIGIN] = -1
                    interfaces.count_unknown(self.unknown_linktypes)
                    interfaces.clear()
                    state[scan.INTERFACES], state[scan.BIG], state[scan.KNOWN] = 0, order == ">", pos
                    continue

            interfaces.count_unknown(self.unknown_linktypes)
            self.place = None
            if why in (scan.ROWS_FULL, scan.MORE_HEADER, scan.MORE_BODY):
                self.place = view.place(state, interfaces)
            block = rows.block(capture, view.data, int(state[scan.COUNT]), self.addresses)
            state[scan.COUNT] = state[scan.DECODED] = state[scan.NAMED] = 0
            if block.count:
                yield block
            if len(self.addresses) > MOST_ADDRESSES:
                self._named = _Addresses()
            if why == scan.AT_SECTION:
                raise view.damaged(files.NO_BYTE_ORDER, pos)
            if why in DAMAGE:
                raise view.damaged(DAMAGE[why], pos, frame, int(state[scan.VALUE]))
            if why == scan.ROWS_FULL:
                continue
            enough = view.fill(pos, int(state[scan.NEED]))
            state[scan.POS], state[scan.KNOWN] = 0, -1
            if enough:
                continue
            if why == scan.MORE_BODY:
                raise view.cut(files.CUT_BLOCK, 0, frame) if pcapng else view.cut(files.CUT_PACKET, 0, frame + 1)
            if view.filled or view.left:  # of a part that goes on further
                raise view.cut(files.CUT_BLOCK_HEADER if pcapng else files.CUT_PACKET_HEADER, 0, frame + 1)
            return

    def _complete(self, view: _View, state: Ints, interfaces: _Interfaces) -> None:
        """Do what is left to do for the rows that the compiled part marked."""
        marks = self._rows.marks[: state[scan.MARKED]]
        state[scan.MARKED] = 0
        rows = marks[:, scan.M_ROW]
        times: list[int] = []
        whole: dict[int, Packet] = {}
        data = view.data.data
        frames = self._rows.wide[: scan.W_MISSING + 1, rows].T.tolist()
        for (row, what, index, origin), (frame, time, start, size, length) in zip(marks.tolist(), frames, strict=True):
            if what & scan.MARK_TICKS:
                time = interfaces.time(origin, time)
            times.append(time)
            if what & scan.MARK_FRAGMENT:
                linktype = interfaces.items[index].linktype
                packet = self._decode(bytes(data[start : start + size]), 0, size, length, linktype, "", frame, time)
                if packet is None:
                    self._rows.dropped.append(row)
                else:
                    whole[row] = packet
        self._rows.wide[scan.W_TIME, rows] = times
        self._rows.put(whole, view.filled)


class _Rows:
    """The columns that the compiled part fills, and what Python adds to them."""

    def __init__(self, room: int) -> None:
        self.wide = np.empty((scan.WIDE, room), np.int64)
        self.narrow = np.empty((scan.NARROW, room), np.int32)
        self.proto = np.empty(room, np.uint8)
        self.marks = np.empty((room, scan.MARK_COLUMNS), np.int64)
        self.dropped: list[int] = []  # rows of fragments that complete nothing
        self._extra = bytearray()  # payloads of datagrams put together from fragments

    def put(self, packets: dict[int, Packet], end: int) -> None:
        """Complete rows of datagrams whose payload comes behind the bytes of the file, which go to ``end``."""
        wide, narrow = [], []
        for packet in packets.values():
            start = end + len(self._extra)
            self._extra += packet.payload
            wide.append((start, len(packet.payload), packet.missing, packet.seq, packet.ack))
            narrow.append((packet.sport, packet.dport, packet.flags))
        if packets:
            rows = list(packets)
            self.wide[scan.W_START :, rows] = np.array(wide).T
            self.narrow[scan.N_SPORT :, rows] = np.array(narrow).T
            self.proto[rows] = [files.TCP if packet.proto == "tcp" else files.UDP for packet in packets.values()]

    def block(self, capture: str, data: Bytes, count: int, addresses: list[str]) -> PacketBlock:
        """The first ``count`` rows without the dropped ones; the next rows begin anew."""
        wide, narrow, proto = self.wide[:, :count], self.narrow[:, :count], self.proto[:count]
        if self.dropped:
            kept = np.delete(np.arange(count), self.dropped)
            wide, narrow, proto = wide.take(kept, 1), narrow.take(kept, 1), proto[kept]
            self.dropped = []
        if self._extra:
            data = np.concatenate((data, np.frombuffer(self._extra, np.uint8)))
            self._extra = bytearray()
        frame, time, start, size, missing, seq, ack = wide
        src, dst, sport, dport, flags = narrow
        return PacketBlock(
            capture=capture,
            data=data,
            count=len(proto),
            frame=frame,
            time=time,
            src=src,
            dst=dst,
            sport=sport,
            dport=dport,
            proto=proto,
            start=start,
            size=size,
            missing=missing,
            seq=seq,
            ack=ack,
            flags=flags,
            addresses=addresses,
        )


class _Addresses:
    """Addresses by number, in a table that compiled code searches (open addressing)."""

    def __init__(self) -> None:
        self._seed = secrets.randbits(62)
        self.texts: list[str] = []
        self._make(FIRST_ADDRESSES)

    def _make(self, size: int) -> None:
        self.slots = np.full(size, -1, np.int32)
        self.keys = np.empty((int(size * FULL), scan.KEY_COLUMNS), np.int64)

    def name(self, buf: Bytes, state: Ints, narrow: Shorts) -> None:
        """Put numbers into the new rows, and add the text of the addresses that are new."""
        state[scan.ADDRESSES], state[scan.SEED] = len(self.texts), self._seed
        while not scan.intern(buf, state, narrow, self.slots, self.keys):
            keys, count = self.keys, int(state[scan.ADDRESSES])
            self._make(len(self.slots) * 2)
            self.keys[:count] = keys[:count]
            scan.rehash(state, self.slots, self.keys)
        for high, low, version in self.keys[len(self.texts) : state[scan.ADDRESSES]].tolist():
            if version == 4:
                self.texts.append(inet_ntop(AF_INET, low.to_bytes(4, "big")))
            else:
                packed = high.to_bytes(8, "big", signed=True) + low.to_bytes(8, "big", signed=True)
                self.texts.append(inet_ntop(AF_INET6, packed))


class _Interfaces:
    """The interfaces of a section, and what compiled code needs of them."""

    def __init__(self) -> None:
        self.items: list[Interface] = []
        self.array = np.zeros((4, scan.INTERFACE_COLUMNS), np.int64)

    def add(self, interface: Interface) -> None:
        """Take the next one."""
        index = len(self.items)
        self.items.append(interface)
        if index == len(self.array):
            self.array = np.concatenate((self.array, np.zeros_like(self.array)))
        factor, rest = divmod(10**9, interface.per_second)
        limit = -1  # every time is left to Python
        if not rest and abs(interface.offset) <= files.MAX_TIME:
            limit = (files.MAX_TIME - max(interface.offset, 0)) // factor
        offset = interface.offset if limit >= 0 else 0
        self.array[index] = LINKS.get(interface.linktype, scan.ON_UNKNOWN), interface.snaplen, factor, offset, limit, 0

    def clear(self) -> None:
        """Forget them: a new section has begun."""
        self.items = []

    def time(self, index: int, ticks: int) -> int:
        """The time of a packet of one of them, whose ticks fill all bits of an int64."""
        return self.items[index].time(ticks & 0xFFFFFFFFFFFFFFFF)

    def count_unknown(self, counts: dict[int, int]) -> None:
        """Move the numbers of packets of unknown link types to where the reader has them."""
        numbers = self.array[: len(self.items), scan.UNKNOWN]
        for index in np.flatnonzero(numbers).tolist():
            linktype = self.items[index].linktype
            counts[linktype] = counts.get(linktype, 0) + int(numbers[index])
            numbers[index] = 0


class _Buffer:
    """The memory for the bytes of files: as large as a block, or as the largest record."""

    def __init__(self, block: int) -> None:
        self.block = max(block, MIN_BLOCK)
        self.array = np.empty(self.block, np.uint8)


class _View(files.Window):
    """The part of a file that is in the buffer."""

    def __init__(
        self,
        buffer: _Buffer,
        readinto: Callable[[memoryview], int],
        name: str,
        start: int,
        left: int | None,
        first: bytes = b"",
    ) -> None:
        super().__init__(name)
        self._start = start
        self.left = left  # bytes to read, None: all
        self._buffer = buffer
        self._readinto = readinto
        self.filled = len(first)  # what was read of the file already
        buffer.array[: self.filled] = np.frombuffer(first, np.uint8)
        self._ended = False
        self._error: CaptureError | OSError | None = None

    @property
    def buf(self) -> Bytes:
        """All of the buffer."""
        return self._buffer.array

    @property
    def data(self) -> Bytes:
        """The bytes that are there."""
        return self._buffer.array[: self.filled]

    def place(self, state: Ints, interfaces: _Interfaces) -> Place:
        """Where the scan stands."""
        time, origin = int(state[scan.TIME]), int(state[scan.ORIGIN])
        if origin >= 0:
            time = interfaces.time(origin, time)
        unit, big = int(state[scan.UNIT]), bool(state[scan.BIG])
        offset = self._start + int(state[scan.POS])
        return Place(offset, int(state[scan.FRAME]), time, unit, big, tuple(interfaces.items))

    def fill(self, pos: int, need: int) -> bool:
        """Drop what is before ``pos`` and read a block; False if the file ends before there are ``need`` bytes.

        An error of reading comes when the bytes before it have been used.
        """
        kept = self.filled - pos
        if kept >= need and not pos:
            return True
        target = max(need, self._buffer.block)
        old = self._buffer.array
        if target > len(old):
            self._buffer.array = np.empty(target, np.uint8)
        self._buffer.array[:kept] = old[pos : self.filled]
        self._start += pos
        self.filled = kept
        room = self._buffer.array.data
        while self.filled < target and not self._ended:
            end = target if self.left is None else min(target, self.filled + self.left)
            try:
                size = self._readinto(room[self.filled : end]) if end > self.filled else 0
            except (CaptureError, OSError) as error:
                self._error, size = error, 0
            self.filled += size
            self._ended = not size
            if self.left is not None:
                self.left -= size
        if self.filled >= need:
            return True
        if self._error:
            raise self._error
        return False


class _Pieces:
    """Chunks of any size, read as a file is."""

    def __init__(self, chunks: Iterator[bytes], skip: int = 0) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")
        while skip and (chunk := next(chunks, b"")):
            self._left = memoryview(chunk)[skip:]
            skip -= len(chunk) - len(self._left)

    def readinto(self, room: memoryview) -> int:
        """Copy what fits; 0 at the end."""
        if not self._left:
            self._left = memoryview(next(self._chunks, b""))
        size = min(len(room), len(self._left))
        room[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
