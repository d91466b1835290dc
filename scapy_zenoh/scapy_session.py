"""``sniff(session=ZenohSession)``: interactive Scapy with the memory of a session.

Each packet comes with the batches it completed, put together over TCP segments, decompressed and
unwrapped as the link negotiated. Every message has a ``context``: ``message.context.key`` is its key
expression, ``src_zid`` and ``dst_zid`` the nodes, ``session`` and ``link`` where it travelled. The last
FRAGMENT of a message has the message in ``context.whole``.
"""

from __future__ import annotations

from typing import Any

from scapy.config import conf
from scapy.packet import Packet
from scapy.sessions import IPSession

from scapy_zenoh import capture
from scapy_zenoh.follow import Follower
from scapy_zenoh.link import ZenohLowLatencyStream, ZenohLowLatencyUnit, ZenohStream
from scapy_zenoh.message import Record
from scapy_zenoh.records import ScapyCodec


class ZenohSession(IPSession):
    """Follows all Zenoh links; ``ports`` are read as Zenoh besides the default ones."""

    def __init__(self, *args: Any, ports: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.follower = Follower(ports, codec=ScapyCodec())
        self.follower.on_batch = lambda batch: self._batches.append(batch)
        self._batches: list[Any] = []
        self._frame = 0

    def process(self, packet: Packet) -> Packet | None:
        """The packet with what it completed, as Scapy asks for it."""
        from scapy.layers.inet import TCP, UDP  # they bring all layers, this class among them

        whole = super().process(packet)
        self._frame += 1
        carrier: Any = whole and (whole.getlayer(TCP) or whole.getlayer(UDP))
        if whole is None or not carrier or carrier.underlayer is None:
            return whole
        tcp = isinstance(carrier, TCP)
        self._batches = []
        self.follower.feed(self._plain(whole, carrier, tcp))
        if self._batches:
            carrier.remove_payload()
            carrier.add_payload(_layer(self._batches, tcp))
        elif isinstance(carrier.payload, Record):  # a guess without memory: part of a batch, or no Zenoh at all
            carrier.decode_payload_as(conf.raw_layer)
        return whole

    def _plain(self, packet: Packet, carrier: Any, tcp: bool) -> capture.Packet:
        ip = carrier.underlayer
        payload = bytes(carrier.payload.original) if carrier.payload else b""
        return capture.Packet(
            capture="live",
            frame=self._frame,
            time=int(packet.time * 10**9),
            src=ip.src,
            sport=carrier.sport,
            dst=ip.dst,
            dport=carrier.dport,
            proto="tcp" if tcp else "udp",
            payload=payload,
            missing=0,
            seq=carrier.seq if tcp else 0,
            ack=carrier.ack if tcp else 0,
            flags=int(carrier.flags) if tcp else 0,
        )


def _layer(batches: list[Any], tcp: bool) -> Packet:
    """One layer that holds the batches."""
    if len(batches) == 1 and not tcp:
        return batches[0]  # type: ignore[no-any-return]
    if any(isinstance(batch, ZenohLowLatencyUnit) for batch in batches):
        return ZenohLowLatencyStream(batches=batches)
    return ZenohStream(batches=batches)
