"""What can be wrong with bytes: one vocabulary for Scapy, Wireshark and the tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any


class FaultKind(str, Enum):
    """Why bytes could not be read as the protocol wants them.

    ``noted`` kinds are recorded while decoding goes on; all others end it until the next batch.
    """

    about: str
    noted: bool

    def __new__(cls, value: str, about: str, noted: bool = False) -> FaultKind:
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.about, kind.noted = about, noted
        return kind

    TRUNCATED = "truncated", "a number, a header or a fixed field runs past the end of the bytes"
    BAD_LENGTH = "bad_length", "a length announces more than there is, or its content does not fill it"
    UNKNOWN_MESSAGE = "unknown_message", "no message has this id here"
    RESERVED_ENCODING = "reserved_encoding", "encoding bits 11 of an extension or an OAM"
    CHAIN_CUT = "chain_cut", "a flag promises an extension and the bytes end"
    BODY_MISSING = "body_missing", "the bytes end where a body must follow"
    UNKNOWN_MANDATORY_EXT = "unknown_mandatory_ext", "an extension nobody knows claims to be mandatory", True
    BAD_UTF8 = "bad_utf8", "text that is not UTF-8", True
    VLE_OVERFLOW = "vle_overflow", "a number does not fit the bits its field has"
    BAD_VALUE = "bad_value", "a value that the protocol reserves and nodes refuse, such as WhatAmI 3"
    LIMIT = "limit", "more elements than any node sends"
    TRAILING_BYTES = "trailing_bytes", "bytes after the only message of a unit", True
    BAD_COMPRESSION = "bad_compression", "not an LZ4 block, or larger than a batch can be"
    BAD_CHECKSUM = "bad_checksum", "the checksum of a serial frame is wrong", True
    GAP = "gap", "bytes of a stream are missing in the capture"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Fault:
    """A fault of one message: which field, and how many bytes after the start of that message."""

    kind: FaultKind
    field: str
    offset: int

    @property
    def noted(self) -> bool:
        """True when decoding went on after it."""
        return self.kind.noted

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
