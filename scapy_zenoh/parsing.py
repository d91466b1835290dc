"""One message from bytes, and bytes from one message."""

from __future__ import annotations

from scapy.packet import Packet

from scapy_zenoh import declare, network, scouting, transport  # noqa: F401  (declare the messages, network also data)
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.message import (
    DATA,
    DECLARATION,
    NETWORK,
    SCOUTING,
    TRANSPORT,
    Faulty,
    Malformed,
    take_padding,
)

#: Where reading can start.
LAYERS = {
    "scouting": SCOUTING,
    "transport": TRANSPORT,
    "network": NETWORK,
    "declare": DECLARATION,
    "data": DATA,
}


def parse(data: bytes, layer: str) -> tuple[Faulty, bytes]:
    """Read one message (a FRAME with what is inside it) and return it with the bytes after it.

    ``layer`` is one of ``scouting transport network declare data``. ``packet.fault`` is None or says
    what is wrong; bytes that start no message give a ``Malformed`` packet.
    """
    if layer not in LAYERS:
        raise ValueError(f"layer {layer!r} is none of {', '.join(LAYERS)}")
    data = bytes(data)
    cls = LAYERS[layer].pick(data)
    if cls is None:
        unknown = Malformed(data)
        unknown.note(FaultKind.UNKNOWN_MESSAGE if data else FaultKind.TRUNCATED)
        return unknown, b""
    packet = cls(data)
    return packet, take_padding(packet)


def rebuild(packet: Packet) -> bytes:
    """The bytes of a packet from its field values alone."""
    fresh = packet.copy()
    fresh.clear_cache()
    return bytes(fresh)
