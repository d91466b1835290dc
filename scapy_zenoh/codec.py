"""What a decoder tells of a batch. There are two: Scapy's classes, and the one generated from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from scapy_zenoh.session.record import MessageRecord


@dataclass(slots=True)
class Batch:
    """The messages of a batch, those inside a FRAME behind it."""

    records: list[MessageRecord]
    stopped: bool = False  # not all bytes could be read
    undecoded: int = 0  # bytes from there on
    fault: str | None = None  # of the batch itself, whose messages cannot be reached
    compressed: bool = False
    packet: Any = None  # the Scapy packet, if there is one

    def first(self) -> MessageRecord | None:
        """The first message."""
        return self.records[0] if self.records else None


@dataclass(slots=True)
class Single:
    """One message outside any batch, and how many bytes are behind it."""

    record: MessageRecord
    rest: int
    stopped: bool = False
    undecoded: int = 0
    packet: Any = None


class Codec(Protocol):
    """Reads batches and single messages."""

    def batch(self, data: bytes, framing: str, sized: bool) -> Batch:
        """Read a batch; ``sized``: it begins with its size, as on a stream."""

    def scouting(self, data: bytes) -> Single | None:
        """Read a scouting message; None when no id matches."""

    def network(self, data: bytes) -> Single:
        """Read a network message that was put together from FRAGMENTs."""


#: Bytes in front of a batch on a stream.
PREFIX = {"plain": 2, "compressed": 2, "lowlatency": 4}
