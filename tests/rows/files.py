"""Captures taken apart and put together again, with struct; nothing here comes from the package."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from tests.wire import Record, pcap


@dataclass(frozen=True)
class Raw:
    """The packets of a capture as they are in the file, in ns."""

    linktype: int
    records: list[Record]

    def write(self, path: Path, records: list[Record] | None = None) -> Path:
        """A pcap file of these or other packets."""
        with path.open("wb") as file:
            file.write(pcap([], self.linktype, nano=True, snaplen=262144))
            for record in self.records if records is None else records:
                file.write(pcap([record], nano=True)[24:])  # without the header of the file
        return path


def load(path: Path) -> Raw:
    """Read a pcap or pcapng file with one interface."""
    data = path.read_bytes()
    return _pcapng(data) if data[:4] == b"\x0a\x0d\x0d\x0a" else _pcap(data)


def _pcap(data: bytes) -> Raw:
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    unit = 1 if b"\x3c\xb2" in data[:4] or b"\xb2\x3c" in data[:4] else 1000
    records, pos = [], 24
    while pos < len(data):
        seconds, fraction, size, length = struct.unpack_from(order + "IIII", data, pos)
        records.append((seconds * 10**9 + fraction * unit, data[pos + 16 : pos + 16 + size], length))
        pos += 16 + size
    return Raw(struct.unpack_from(order + "I", data, 20)[0], records)


def _pcapng(data: bytes) -> Raw:
    records, pos, linktype, ticks = [], 0, 1, 10**6
    while pos < len(data):
        kind, size = struct.unpack_from("<II", data, pos)
        if kind == 1:
            linktype = struct.unpack_from("<H", data, pos + 8)[0]
            at = pos + 16
            while at < pos + size - 4:
                code, length = struct.unpack_from("<HH", data, at)
                if code == 9:
                    ticks = 10 ** data[at + 4]
                at += 4 + (length + 3 & ~3)
        elif kind == 6:
            _, high, low, captured, length = struct.unpack_from("<IIIII", data, pos + 8)
            time = (high << 32 | low) * (10**9 // ticks)
            records.append((time, data[pos + 28 : pos + 28 + captured], length))
        pos += size
    return Raw(linktype, records)
