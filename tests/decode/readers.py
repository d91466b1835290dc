"""Both decoders side by side on the same bytes, and where they differ."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import lz4.block

from scapy_zenoh.codec import PREFIX, Batch, Single
from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.records import ScapyCodec
from scapy_zenoh.session.record import MessageRecord, Offer

SCAPY, PLAIN = ScapyCodec(), PlainCodec()

COMPARED = [field.name for field in fields(MessageRecord) if field.name != "whole"]
OFFERED = [field.name for field in fields(Offer)]
FIGURES = {
    cls: [field.name for field in fields(cls) if field.name not in ("packet", "records", "record")]
    for cls in (Batch, Single)
}

#: What can be read, by which method of a codec: a batch in its framing, sized or not, or a single message.
Seen = tuple[bytes, str, bool]


def differences(scapy: Batch | Single | None, plain: Batch | Single | None) -> list[str]:
    """What two decoders disagree on, one line each."""
    if scapy is None or plain is None:
        return [] if scapy is plain else [f"Scapy: {scapy}, plain: {plain}"]
    found = []
    for name in FIGURES[type(scapy)]:
        one, other = getattr(scapy, name), getattr(plain, name)
        if not same(one, other):
            found.append(f"{name}: Scapy {one!r}, plain {other!r}")
    some, others = records_of(scapy), records_of(plain)
    if len(some) != len(others):
        found.append(f"Scapy reads {[r.kind for r in some]}, plain {[r.kind for r in others]}")
    for number, (a, b) in enumerate(zip(some, others, strict=False)):
        for name in COMPARED:
            one, other = getattr(a, name), getattr(b, name)
            if not same(one, other):
                found.append(f"{number} {a.kind} {a.body}, {name}: Scapy {one!r}, plain {other!r}")
    return found


def records_of(result: Batch | Single) -> list[MessageRecord]:
    """The messages that were read."""
    return result.records if isinstance(result, Batch) else [result.record]


def same(one: Any, other: Any) -> bool:
    """Equal and of one type, so that 1 is not True; texts of Scapy may remember how they were written."""
    if isinstance(one, Offer) and isinstance(other, Offer):
        return all(same(getattr(one, name), getattr(other, name)) for name in OFFERED)
    return one == other and (type(one) is type(other) or isinstance(one, str))


def read(codec: Any, seen: Seen) -> Any:
    """What a decoder makes of it."""
    data, framing, sized = seen
    match framing:
        case "scouting":
            return codec.scouting(data)
        case "network":
            return codec.network(data)
    return codec.batch(data, framing, sized)


def disagreement(seen: Seen) -> list[str]:
    """What the decoders disagree on."""
    return differences(read(SCAPY, seen), read(PLAIN, seen))


def sized(content: bytes, framing: str) -> bytes:
    """A batch with its size in front."""
    return len(content).to_bytes(PREFIX[framing], "little") + content


def everywhere(messages: bytes) -> list[Seen]:
    """Some messages in every framing."""
    contents = {
        "plain": [messages],
        "lowlatency": [messages],
        "compressed": [b"\x00" + messages, b"\x01" + lz4.block.compress(messages, store_size=False), messages],
    }
    found: list[Seen] = []
    for framing, some in contents.items():
        for content in some:
            if content or framing != "compressed":  # without a header byte nobody looks into it
                found.append((sized(content, framing), framing, True))
            if content:  # there is no datagram without bytes
                found.append((content, framing, False))
    return found


class Both:
    """A codec that reads with both, notes where they differ, and goes on with what Scapy says."""

    def __init__(self) -> None:
        self.scapy, self.plain = ScapyCodec(), PlainCodec()
        self.seen: dict[Seen, None] = {}
        self.differences: list[str] = []

    def _both(self, seen: Seen) -> Any:
        self.seen[seen] = None
        one, other = read(self.scapy, seen), read(self.plain, seen)
        self.differences += [f"{seen[1]} {seen[0].hex()}: {line}" for line in differences(one, other)]
        return one

    def batch(self, data: bytes, framing: str, sized: bool) -> Batch:
        """Read a batch."""
        result: Batch = self._both((bytes(data), framing, sized))
        return result

    def scouting(self, data: bytes) -> Single | None:
        """Read a scouting message."""
        result: Single | None = self._both((bytes(data), "scouting", False))
        return result

    def network(self, data: bytes) -> Single:
        """Read a network message."""
        result: Single = self._both((bytes(data), "network", False))
        return result
