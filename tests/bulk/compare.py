"""A recording read in both ways, and where they differ: compiled, and with Scapy or in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh import compilation
from scapy_zenoh.bulk import follower, packets
from scapy_zenoh.capture import CaptureError
from scapy_zenoh.codec import Codec
from scapy_zenoh.recording import Recording
from scapy_zenoh.records import ScapyCodec
from scapy_zenoh.rows import Row
from scapy_zenoh.session.tracker import Limits
from tests.decode.readers import same

#: A port that some captures use besides the usual ones.
PORTS = (19999,)


@dataclass(frozen=True)
class Cut:
    """How a recording is cut on its way through compiled code.

    Bytes in a block, rows that leave together, and addresses after which their numbers begin anew.
    """

    block: int = compilation.BLOCK
    enough: int = follower.ENOUGH
    addresses: int = packets.MOST_ADDRESSES


USUAL = Cut()
TINY, ODD, SMALL = Cut(64, 1, 2), Cut(4099, 7, 1), Cut(1 << 16, 100)


@dataclass
class Read:
    """All that a recording tells."""

    rows: list[Row]
    error: str | None
    summary: dict[str, Any]
    ladders: dict[str, list[tuple[int, str, str]]]


def read(recording: Recording) -> Read:
    """Read a recording to its end, or to where it is damaged."""
    rows: list[Row] = []
    error = None
    try:
        rows.extend(recording)
    except CaptureError as damage:
        error = str(damage)
    return Read(rows, error, recording.summary(), recording.ladders)


def plain(paths: Sequence[Path], codec: Codec | None = None, limits: Limits | None = None) -> Read:
    """Packet by packet."""
    return read(Recording(paths, PORTS, limits=limits, compiled=False, codec=codec))


def scapy(paths: Sequence[Path]) -> Read:
    """Packet by packet, by Scapy: the reference."""
    return plain(paths, ScapyCodec())


@contextmanager
def cutting(cut: Cut) -> Iterator[None]:
    """Compiled code works on pieces of that size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "BLOCK", cut.block)
        patch.setattr(follower, "ENOUGH", cut.enough)
        patch.setattr(packets, "MOST_ADDRESSES", cut.addresses)
        yield


def bulk(paths: Sequence[Path], cut: Cut = USUAL, limits: Limits | None = None) -> Read:
    """Compiled."""
    with cutting(cut):
        return read(Recording(paths, PORTS, limits=limits, compiled=True))


def differences(one: Read, other: Read) -> list[str]:
    """What the reference and the compiled way tell differently, the first of each kind."""
    found = []
    for number, (a, b) in enumerate(zip(one.rows, other.rows, strict=False)):
        unequal = {name: (a[name], b[name]) for name in a if not same(a[name], b[name])}
        if unequal or list(a) != list(b):
            found.append(f"row {number}, {a['kind']} {a['body']} of frame {a['frame']}: {unequal}")
            break
    if len(one.rows) != len(other.rows):
        found.append(f"{len(one.rows)} and {len(other.rows)} rows")
    if one.error != other.error:
        found.append(f"error {one.error!r} and {other.error!r}")
    found += _unequal(one.summary, other.summary, "summary")
    if one.ladders != other.ladders:
        found.append(f"ladders {one.ladders} and {other.ladders}")
    return found


def _unequal(one: Any, other: Any, path: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        return [line for name in one for line in _unequal(one[name], other[name], f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for number, (a, b) in pairs for line in _unequal(a, b, f"{path}[{number}]")]
    if isinstance(one, dict) and isinstance(other, dict) and one == other and path.rpartition(".")[2] in UNORDERED:
        return []
    return [] if one == other and type(one) is type(other) else [f"{path}: {one!r} and {other!r}"]


#: Counters, whose order is that of the first time each was counted.
UNORDERED = {"messages", "queries", "declared"}


def agree(reference: Read, paths: Sequence[Path], *cuts: Cut, limits: Limits | None = None) -> None:
    """Compiled code tells what the reference does, however the recording is cut."""
    for cut in cuts or (USUAL,):
        found = differences(reference, bulk(paths, cut, limits))
        assert not found, f"{cut}: {found}"
