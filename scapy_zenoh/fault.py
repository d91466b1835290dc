"""What can be wrong with bytes: one vocabulary for Scapy, Wireshark and the tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class FaultKind(str, Enum):
    """Why bytes could not be read as the protocol wants them."""

    TRUNCATED = "truncated"  # a number, a header or a fixed field runs past the end of the bytes
    BAD_LENGTH = "bad_length"  # a length announces more than there is, or its content does not fill it
    UNKNOWN_MESSAGE = "unknown_message"  # no message has this id here
    RESERVED_ENCODING = "reserved_encoding"  # encoding bits 11 of an extension or an OAM
    CHAIN_CUT = "chain_cut"  # a flag promises an extension and the bytes end
    BODY_MISSING = "body_missing"  # the bytes end where PUSH, DECLARE, REPLY... need a body
    UNKNOWN_MANDATORY_EXT = "unknown_mandatory_ext"  # noted: the M bit of an extension nobody knows
    BAD_UTF8 = "bad_utf8"  # noted: text that is not UTF-8
    VLE_OVERFLOW = "vle_overflow"  # a number does not fit the bits its field has
    BAD_VALUE = "bad_value"  # a value the protocol reserves and nodes refuse, such as WhatAmI 3
    LIMIT = "limit"  # more elements than any node sends
    TRAILING_BYTES = "trailing_bytes"  # noted: bytes after the only message of a unit
    BAD_COMPRESSION = "bad_compression"  # not an LZ4 block, or larger than a batch can be
    BAD_CHECKSUM = "bad_checksum"  # noted: the CRC of a serial frame is wrong
    GAP = "gap"  # bytes of a stream are missing in the capture

    def __str__(self) -> str:
        return self.value


#: Kinds that are recorded while decoding goes on; all others end it until the next batch.
NOTED = frozenset(
    {
        FaultKind.UNKNOWN_MANDATORY_EXT,
        FaultKind.BAD_UTF8,
        FaultKind.TRAILING_BYTES,
        FaultKind.BAD_CHECKSUM,
    }
)


@dataclass(frozen=True)
class Fault:
    """A fault of one message: which field, and how many bytes after the start of that message."""

    kind: FaultKind
    field: str
    offset: int

    @property
    def noted(self) -> bool:
        """True when decoding went on after it."""
        return self.kind in NOTED

    def __str__(self) -> str:
        return f"{self.kind} at byte {self.offset} ({self.field})" if self.field else str(self.kind)


class WireFault(Exception):
    """Raised by a field that cannot be read.

    ``remain`` are the bytes from the fault on. ``kind`` is None when a packet inside the field
    has recorded the fault already; ``partial`` is then what could be read of the field.
    """

    def __init__(self, kind: FaultKind | None, remain: bytes, partial: Any = None) -> None:
        super().__init__(str(kind))
        self.kind, self.remain, self.partial = kind, remain, partial


def worst(faults: list[Fault]) -> Fault | None:
    """The fault that speaks for a message: the one that stopped it, else the first noted."""
    return next((f for f in faults if not f.noted), faults[0] if faults else None)
