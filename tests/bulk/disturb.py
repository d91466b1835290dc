"""Packets of captures disturbed at random, the same for the same seed: lost, late, cut, changed, mixed, used again."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zstandard

from tests.rows.files import Raw
from tests.wire import TCP, Record, enhanced, interface, option, pcap, section

_VLAN = (0x8100, 0x88A8)
#: Bytes before the IP header, by type of link; of Ethernet without tags.
_BEFORE_IP = {1: 14, 113: 16, 276: 20, 101: 0, 228: 0, 229: 0}


@dataclass(frozen=True)
class Parts:
    """Where the headers of a packet begin, and its payload."""

    ip: int
    transport: int
    payload: int
    proto: int


def parts(linktype: int, data: bytes) -> Parts | None:
    """Of a TCP or UDP packet; None for anything else."""
    ip = _BEFORE_IP.get(linktype)
    if ip is None:
        return None
    while linktype == 1 and len(data) > ip + 4 and struct.unpack_from(">H", data, ip - 2)[0] in _VLAN:
        ip += 4
    if len(data) < ip + 48:
        return None
    if data[ip] >> 4 == 4:
        transport, proto = ip + (data[ip] & 15) * 4, data[ip + 9]
    elif data[ip] >> 4 == 6:
        transport, proto = ip + 40, data[ip + 6]
    else:
        return None
    if proto not in (6, 17) or len(data) < transport + 20:
        return None
    return Parts(ip, transport, transport + (data[transport + 12] >> 4 << 2 if proto == TCP else 8), proto)


# --- packets of one capture ---------------------------------------------------------------------


@dataclass(frozen=True)
class Rough:
    """How often what happens to a packet."""

    lost: float = 0
    twice: float = 0
    late: float = 0
    snapped: float = 0  # anywhere
    emptied: float = 0  # snapped behind its headers
    flipped: float = 0  # a byte of the payload
    header: float = 0  # a byte of the headers
    size: float = 0  # one of the first bytes of the payload, where sizes and kinds of messages stand
    back: float = 0  # in time, up to a second


#: What a seed may bring.
KINDS = (
    Rough(lost=0.02),
    Rough(late=0.05),
    Rough(twice=0.1),
    Rough(snapped=0.03),
    Rough(emptied=0.05),
    Rough(flipped=0.05),
    Rough(header=0.03),
    Rough(size=0.03),
    Rough(back=0.2),
    Rough(lost=0.01, late=0.01, twice=0.01),
    Rough(lost=0.005, flipped=0.01, size=0.005, late=0.01),
    Rough(*[0.01] * 9),
    Rough(lost=0.3),
)


def disturbed(raw: Raw, rough: Rough, dice: random.Random) -> list[Record]:
    """The packets of a capture after a rough journey."""
    found: list[Record] = []
    late: list[Record] = []
    for time, data, length in raw.records:
        if dice.random() < rough.lost:
            continue
        if dice.random() < rough.back:
            time -= dice.randrange(10**9)
        data = _changed(raw.linktype, data, rough, dice)
        if dice.random() < rough.snapped:
            data = data[: dice.randrange(30, max(31, len(data)))]
        where = parts(raw.linktype, data)
        if where is not None and dice.random() < rough.emptied:
            data = data[: where.payload]
        if dice.random() < rough.late:
            late.append((time, data, length))
            continue
        found.append((time, data, length))
        if dice.random() < rough.twice:
            found.append((time, data, length))
        if late and dice.random() < 0.4:
            found.append(late.pop(dice.randrange(len(late))))
    return found + late


def _changed(linktype: int, data: bytes, rough: Rough, dice: random.Random) -> bytes:
    where = parts(linktype, data)
    if where is None:
        return data
    for share, start, end in (
        (rough.flipped, where.payload, len(data)),
        (rough.header, where.ip, where.payload),
        (rough.size, where.payload, min(where.payload + 12, len(data))),
    ):
        if start < end and dice.random() < share:
            copy = bytearray(data)
            copy[dice.randrange(start, end)] ^= dice.choice((1, 2, 4, 8, 16, 32, 64, 128, 255, dice.randrange(1, 256)))
            data = bytes(copy)
    return data


# --- connections used again, and beside each other ----------------------------------------------


def renumbered(raw: Raw, by: int) -> list[Record]:
    """The same packets as those of a later connection between the same ends: other sequence numbers."""
    found = []
    for time, data, length in raw.records:
        where = parts(raw.linktype, data)
        if where is not None and where.proto == TCP:
            copy = bytearray(data)
            for at in (where.transport + 4, where.transport + 8):
                struct.pack_into(">I", copy, at, struct.unpack_from(">I", data, at)[0] + by & 0xFFFFFFFF)
            data = bytes(copy)
        found.append((time, data, length))
    return found


def elsewhere(raw: Raw, by: int) -> list[Record]:
    """The same packets between hosts whose addresses end differently; groups stay."""
    found = []
    for time, data, length in raw.records:
        where = parts(raw.linktype, data)
        if where is not None:
            copy = bytearray(data)
            ends = (where.ip + 12, where.ip + 16) if data[where.ip] >> 4 == 4 else (where.ip + 8, where.ip + 24)
            size = ends[1] - ends[0]
            for at in ends:
                if data[at] < 224 or size == 16 and data[at] != 0xFF:
                    copy[at + size - 1] = (copy[at + size - 1] + by) & 0xFF
            data = bytes(copy)
        found.append((time, data, length))
    return found


def mixed(some: list[Record], others: list[Record], dice: random.Random) -> list[Record]:
    """Both, each in its order; times go on from where the other is."""
    found: list[Record] = []
    queues = [some[::-1], others[::-1]]
    while queues[0] and queues[1]:
        queue = dice.choice(queues)
        for _ in range(dice.randint(1, 8)):
            if queue:
                found.append(queue.pop())
    return found + queues[0][::-1] + queues[1][::-1]


# --- files --------------------------------------------------------------------------------------


def as_pcap(linktype: int, records: list[Record]) -> bytes:
    """Times in ns."""
    head = pcap([], linktype, nano=True, snaplen=262144)
    return head + b"".join(pcap([(max(time, 0), *rest)], nano=True)[24:] for time, *rest in records)


def as_pcapng(linktype: int, records: list[Record]) -> bytes:
    """Times in ns."""
    head = section() + interface(linktype, 0, option(9, b"\x09"))
    return head + b"".join(enhanced(0, max(time, 0), data, length) for time, data, length in records)


FORMATS: dict[str, Callable[[int, list[Record]], bytes]] = {
    "a.pcap": as_pcap,
    "a.pcapng": as_pcapng,
    "a.pcap.gz": lambda linktype, records: gzip.compress(as_pcap(linktype, records), 1),
    "a.pcapng.zst": lambda linktype, records: zstandard.compress(as_pcapng(linktype, records), 1),
}


def files(linktype: int, records: list[Record], folder: Path, dice: random.Random, most: int = 3) -> list[Path]:
    """The packets in one or several files, whose names may be the same."""
    count = dice.randint(1, most)
    places = sorted(dice.randrange(len(records) + 1) for _ in range(count - 1))
    paths = []
    for number, (start, end) in enumerate(zip([0, *places], [*places, len(records)], strict=True)):
        name = dice.choice([*FORMATS])
        path = folder / str(number) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(FORMATS[name](linktype, records[start:end]))
        paths.append(path)
    return paths
