"""How messages travel: batches on streams, datagrams and serial lines.

Without memory of a session these layers do what the bytes of one segment allow: ``segment_layer``
looks at them and says whether they are plain, compressed or low-latency batches. Which of these a
link really uses is negotiated in its INIT messages.

Scapy's TCP and UDP are imported inside functions: with them come all layers (``binding.py``), this one
among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import lz4.block
from cobs import cobs
from scapy.config import conf
from scapy.packet import Packet, bind_bottom_up, bind_top_down

from scapy_zenoh.decode.codec import is_hello
from scapy_zenoh.enums import TransportId
from scapy_zenoh.expr import Expr, From
from scapy_zenoh.fault import FaultKind, WireFault
from scapy_zenoh.fields import Auto, Bits, Reserved, RestBytes, UInt, WindowSize
from scapy_zenoh.message import (
    NETWORK,
    SCOUTING,
    TRANSPORT,
    Family,
    InnerList,
    Malformed,
    MessageList,
    Record,
    stopped,
)
from scapy_zenoh.scouting import ZenohHello
from scapy_zenoh.transport import (
    ZenohClose,
    ZenohFragment,
    ZenohFrame,
    ZenohInit,
    ZenohJoin,
    ZenohKeepAlive,
    ZenohOpen,
    ZenohTransportOam,
    told,
)
from scapy_zenoh.values import MAX_BATCH, PROTOCOL_VERSION, SCOUTING_PORTS, TCP_PORTS, UDP_PORTS


class _Carrier(Record):
    """What everything that carries messages shares: its summary is theirs, behind the addresses."""

    def carried(self) -> list[Any]:
        """The messages inside."""
        return list(self.getfieldval("msgs") or ())

    def mysummary(self) -> str:
        return told(self.carried()) or "empty batch"

    def _do_summary(self) -> tuple[int, str, list[Any]]:
        from scapy.layers.inet import TCP, UDP

        found, text, needed = Record._do_summary(self)
        return found, text, [*needed, TCP, UDP]

    def answers(self, other: Any) -> int:
        if not isinstance(other, _Carrier):
            return 0
        return int(any(mine.answers(theirs) for mine in self.carried() for theirs in other.carried()))

    def hashret(self) -> bytes:
        messages = self.carried()
        return messages[0].hashret() if messages else b""


# --- compression --------------------------------------------------------------------------------


class Remembered(list):  # type: ignore[type-arg]
    """A list read from packed bytes, with those bytes: packing again need not give the same."""

    def __init__(self, items: Sequence[Any], plain: bytes, packed: bytes) -> None:
        super().__init__(items)
        self.plain, self.packed = plain, packed


class PackedMessages(MessageList):
    """Messages that fill the rest of a batch, as one LZ4 block where ``when`` holds."""

    __slots__ = ["when"]

    def __init__(self, name: str, *families: Family, when: Expr) -> None:
        self.when = when
        MessageList.__init__(self, name, *families)

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        if not self.when(pkt):
            return MessageList.getfield(self, pkt, s)
        try:
            plain = lz4.block.decompress(s, uncompressed_size=MAX_BATCH)
        except lz4.block.LZ4BlockError:
            raise WireFault(FaultKind.BAD_COMPRESSION, s) from None
        return b"", Remembered(MessageList.getfield(self, pkt, plain)[1], plain, s)

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        plain = MessageList.addfield(self, pkt, b"", val)
        if not self.when(pkt):
            return s + plain
        if isinstance(val, Remembered) and val.plain == plain:
            return s + val.packed
        return s + bytes(lz4.block.compress(plain, store_size=False))

    def do_copy(self, x: Any) -> Any:
        copied = MessageList.do_copy(self, x)
        return Remembered(copied, x.plain, x.packed) if isinstance(x, Remembered) else copied


def _compression_header() -> list[Any]:
    return [Reserved("reserved", 7), Bits("C", 1, 1), PackedMessages("msgs", TRANSPORT, when=From("C"))]


# --- batches on a stream ------------------------------------------------------------------------


class ZenohBatch(_Carrier):
    """A batch on TCP, TLS and the like: its size, then transport messages back to back."""

    name = "Zenoh batch"
    window = "size"
    fields_desc = [WindowSize("size", 2), MessageList("msgs", TRANSPORT)]


class ZenohCompressedBatch(_Carrier):
    """A batch where compression was negotiated: a header byte says whether an LZ4 block follows."""

    name = "Zenoh batch (compression)"
    window = "size"
    interpreted = True
    fields_desc = [WindowSize("size", 2), *_compression_header()]


class ZenohLowLatencyUnit(_Carrier):
    """A unit where low latency was negotiated: a size of four bytes, then bare network messages."""

    name = "Zenoh low-latency unit"
    window = "size"
    fields_desc = [WindowSize("size", 4), MessageList("msgs", TRANSPORT, NETWORK)]


class BatchList(InnerList):
    """All whole batches of a segment."""

    __slots__: list[str] = []

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        batches: list[Packet] = []
        pos = 0
        while True:
            found = pkt.next_batch(s, pos)
            if found is None:
                return s[pos:], batches
            cls, end = found
            batches.append(cls(s[pos:end], _internal=1, _parent=pkt))
            pos = end


class ZenohStream(_Carrier):
    """The Zenoh bytes of a TCP segment: whole batches, and the start of one that goes on in the next segment."""

    name = "Zenoh"
    unit: ClassVar[type[_Carrier]] = ZenohBatch
    prefix: ClassVar[int] = 2
    interpreted = True
    fields_desc = [BatchList("batches"), RestBytes("rest")]

    @classmethod
    def next_batch(cls, data: bytes, pos: int) -> tuple[type[_Carrier], int] | None:
        """Class and end of the batch at ``pos``, None when it is not all there."""
        start = pos + cls.prefix
        end = start + int.from_bytes(data[pos:start], "little")
        return (cls.unit, end) if start <= len(data) and end <= len(data) else None

    @classmethod
    def tcp_reassemble(cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Packet | None:
        """For Scapy's TCPSession: whole batches; the start of the next one is kept for later."""
        stream = cls(data)
        if not stream.batches:
            return None
        rest, stream.rest = stream.rest, b""
        return stream / conf.padding_layer(rest) if rest else stream

    def carried(self) -> list[Any]:
        return [message for batch in self.batches for message in batch.carried()]

    def mysummary(self) -> str:
        rest = f"{len(self.rest)} B of a batch" if self.rest else ""
        return " | ".join(filter(None, [told(self.carried()), rest])) or "empty batch"


class ZenohCompressedStream(ZenohStream):
    """The same where compression was negotiated."""

    name = "Zenoh (compression)"
    unit = ZenohCompressedBatch


class ZenohLowLatencyStream(ZenohStream):
    """The same where low latency was negotiated. The last CLOSE of a stream comes as an ordinary batch."""

    name = "Zenoh (low latency)"
    unit = ZenohLowLatencyUnit
    prefix = 4
    last_close: ClassVar[dict[bytes, type[_Carrier]]] = {
        b"\x02\x00\x03\x00": ZenohBatch,
        b"\x03\x00\x00\x03\x00": ZenohCompressedBatch,
    }

    @classmethod
    def next_batch(cls, data: bytes, pos: int) -> tuple[type[_Carrier], int] | None:
        last = cls.last_close.get(data[pos:])
        return (last, len(data)) if last else super().next_batch(data, pos)


# --- one batch per datagram ---------------------------------------------------------------------


class ZenohDatagram(_Carrier):
    """A batch without size: one UDP datagram, or one WebSocket message."""

    name = "Zenoh"
    fields_desc = [MessageList("msgs", TRANSPORT)]


class ZenohCompressedDatagram(_Carrier):
    """The same where compression was negotiated."""

    name = "Zenoh (compression)"
    interpreted = True
    fields_desc = _compression_header()


class ZenohLowLatencyDatagram(_Carrier):
    """The same where low latency was negotiated."""

    name = "Zenoh (low latency)"
    fields_desc = [MessageList("msgs", TRANSPORT, NETWORK)]


# --- serial lines -------------------------------------------------------------------------------


def serial_crc(data: bytes) -> int:
    """The checksum of Zenoh's serial frames: CRC-32 with its polynomial not reflected, as all nodes compute it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x04C11DB7 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class _BoundedMessages(MessageList):
    """Transport messages in as many bytes as ``length`` says; what follows them is read in any case."""

    __slots__ = ["length"]

    def __init__(self, name: str, length: Expr) -> None:
        self.length = length
        MessageList.__init__(self, name, TRANSPORT)

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        size = int(self.length(pkt))
        if size > len(s):
            raise WireFault(FaultKind.BAD_LENGTH, s)
        return s[size:], MessageList.getfield(self, pkt, s[:size])[1]


class _DataLength(UInt, Auto):
    __slots__: list[str] = []

    def auto(self, pkt: Any) -> int:
        return sum(len(bytes(m)) for m in pkt.getfieldval("msgs"))


class _Crc(UInt, Auto):
    __slots__: list[str] = []

    def auto(self, pkt: Any) -> int:
        return serial_crc(b"".join(bytes(m) for m in pkt.getfieldval("msgs")))

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, int]:
        rest, value = UInt.getfield(self, pkt, s)
        if value != self.auto(pkt):
            pkt.note(FaultKind.BAD_CHECKSUM, self.name)
        return rest, value


class ZenohSerialFrame(_Carrier):
    """A frame on a serial line, before it is stuffed: a batch with its checksum, or a step of connecting."""

    name = "Zenoh serial frame"
    interpreted = True
    fields_desc = [
        Reserved("reserved", 5), Bits("reset", 0, 1), Bits("ack", 0, 1), Bits("init", 0, 1),
        _DataLength("length", None, size=2),
        _BoundedMessages("msgs", From("length")),
        _Crc("crc", None, size=4),
    ]  # fmt: skip

    def mysummary(self) -> str:
        step = "+".join(flag.upper() for flag in ("init", "ack", "reset") if self.getfieldval(flag))
        return f"serial {step}" if step else _Carrier.mysummary(self)


def _unstuffed(wire: bytes) -> bytes:
    """A frame without its stuffing; empty when it is not stuffed as it should be."""
    try:
        return bytes(cobs.decode(wire))
    except cobs.DecodeError:
        return b""


class StuffedFrames(InnerList):
    """Serial frames as they are on the line: COBS, each ended by a zero byte."""

    __slots__: list[str] = []

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        frames: list[Packet] = []
        *stuffed, rest = s.split(b"\0")
        for wire in stuffed:
            frame: Any = Malformed(wire, _internal=1, _parent=pkt)
            if wire:  # a zero byte alone is an idle line
                plain = _unstuffed(wire)
                if plain:
                    frame = ZenohSerialFrame(plain, _internal=1, _parent=pkt)
                else:
                    frame.note(FaultKind.BAD_LENGTH)
            frames.append(frame)
        return rest, Remembered(frames, b"", s[: len(s) - len(rest)])

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        remembered = val.packed.split(b"\0") if isinstance(val, Remembered) else []
        for i, frame in enumerate(val or ()):
            wire = remembered[i] if i < len(remembered) else b""
            s += (wire if self._unchanged(frame, wire) else cobs.encode(bytes(frame))) + b"\0"
        return s

    @staticmethod
    def _unchanged(frame: Any, wire: bytes) -> bool:
        plain = bytes(frame)
        return plain == wire if isinstance(frame, Malformed) else bool(plain) and plain == _unstuffed(wire)

    def do_copy(self, x: Any) -> Any:
        copied = InnerList.do_copy(self, x)
        return Remembered(copied, b"", x.packed) if isinstance(x, Remembered) else copied


class ZenohSerial(_Carrier):
    """Bytes of a serial line: whole frames, and the start of the next."""

    name = "Zenoh serial line"
    interpreted = True
    fields_desc = [StuffedFrames("frames"), RestBytes("rest")]

    def carried(self) -> list[Any]:
        return [message for frame in self.frames for message in frame.getfieldval("msgs") or ()]

    def mysummary(self) -> str:
        return " | ".join(frame.summary() for frame in self.frames) or "serial line"


# --- which layer some bytes are -----------------------------------------------------------------


def _readable(cls: type[_Carrier], data: bytes) -> bool:
    """True when the first message is one that nodes send, and good to its end."""
    messages = cls(data).carried()
    first = messages[0] if messages else None
    if first is None or stopped(first) or isinstance(first, ZenohTransportOam):
        return False
    if isinstance(first, (ZenohInit, ZenohJoin)):
        return bool(first.version == PROTOCOL_VERSION)
    if isinstance(first, (ZenohClose, ZenohKeepAlive)):  # a byte or two prove little: nothing bad may follow
        return not any(stopped(message) for message in messages)
    return True


def _opening_of(data: bytes) -> type[Packet] | None:
    """The layer of a segment that holds no whole batch, from the first bytes of the one that starts in it."""
    if len(data) < 5:
        return None
    header = data[2]
    if data[2:4] == b"\0\0" and (NETWORK.pick(data[4:]) or data[4] in (0x03, 0x04, 0x23)):
        return ZenohLowLatencyStream
    if header & 0x1F == TransportId.INIT and data[3] == PROTOCOL_VERSION and data[1] < 0x10:
        return ZenohStream  # no INIT is longer than 4 kB
    if header == 0x01 or header == 0x00 and TRANSPORT.pick(data[3:]) not in (None, ZenohTransportOam):
        return ZenohCompressedStream
    known = TRANSPORT.pick(data[2:])
    return ZenohStream if known not in (None, ZenohTransportOam, ZenohInit) else None


def segment_layer(data: bytes) -> type[Packet]:
    """The layer of a TCP segment on a Zenoh port: one of the streams, or Raw for what is no Zenoh.

    A segment may begin in the middle of a batch; only TCPSession, or a session that remembers, can
    read those.
    """
    if data[:4] in (b"GET ", b"HTTP") or (data[:1] == b"\x16" and data[1:2] == b"\x03"):
        return conf.raw_layer  # WebSocket upgrade, TLS: for others to read
    last = ZenohLowLatencyStream.last_close.get(data)
    if last is not None:  # these bytes end an ordinary stream and a low-latency one alike
        return ZenohStream if last is ZenohBatch else ZenohCompressedStream
    empty = len(data) - len(data.lstrip(b"\0"))
    if empty >= 2 and data[:2] == b"\0\0":  # empty batches come first
        rest = data[empty - empty % 2 :]
        return segment_layer(rest) if rest else ZenohStream
    for stream in (ZenohLowLatencyStream, ZenohStream, ZenohCompressedStream):
        if stream.next_batch(data, 0) is not None and _readable(stream, data):
            return stream
    whole = ZenohStream.next_batch(data, 0) is not None
    return _opening_of(data) or conf.raw_layer if not whole else _damaged(data)


def _damaged(data: bytes) -> type[Packet]:
    """A whole batch that cannot be read: Zenoh all the same if its first byte is that of a common message."""
    known = TRANSPORT.pick(data[2:])
    return ZenohStream if known in (ZenohFrame, ZenohOpen, ZenohFragment) else conf.raw_layer


def datagram_layer(data: bytes) -> type[Packet]:
    """The layer of a datagram on a Zenoh port; Raw when its first message cannot be read."""
    if is_hello(data):
        return ZenohHello
    scouting = SCOUTING.pick(data)
    if scouting is not None and len(data) > 1 and data[1] == PROTOCOL_VERSION:
        whole = scouting(data)
        if whole.fault is None and not whole.payload and stopped(ZenohInit(data)):
            return scouting
    return ZenohDatagram if _readable(ZenohDatagram, data) else conf.raw_layer


def scouting_layer(data: bytes) -> type[Packet]:
    """The layer of a datagram on a scouting port: SCOUT or HELLO if it has a version, else as any datagram."""
    scouting = SCOUTING.pick(data)
    if scouting is not None and not stopped(scouting(data)):
        return scouting
    return datagram_layer(data)


class _Entry(Packet):
    """Stands in Scapy's bindings and gives way to the layer that fits the bytes."""

    choose: ClassVar[Callable[[bytes], type[Packet]]]


class ZenohTcpEntry(_Entry):
    """What a TCP port is bound to."""

    name = "Zenoh on TCP"

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kwargs: Any) -> type[Packet]:
        return segment_layer(_pkt) if _pkt else ZenohStream

    @classmethod
    def tcp_reassemble(cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]) -> Packet | None:
        layer = segment_layer(data)
        if issubclass(layer, ZenohStream):
            return layer.tcp_reassemble(data, metadata, session)
        return None if len(data) < 5 else layer(data)  # too little to tell what it is


class ZenohUdpEntry(_Entry):
    """What a UDP port is bound to."""

    name = "Zenoh on UDP"

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kwargs: Any) -> type[Packet]:
        return datagram_layer(_pkt) if _pkt else ZenohDatagram


class ZenohScoutingEntry(_Entry):
    """What a scouting port is bound to."""

    name = "Zenoh scouting"

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **kwargs: Any) -> type[Packet]:
        return scouting_layer(_pkt) if _pkt else ZenohHello


# --- bindings -----------------------------------------------------------------------------------


def bind(*ports: int, tcp: bool = True, udp: bool = True) -> None:
    """Read these ports as Zenoh: ``bind(19999)``."""
    from scapy.layers.inet import TCP, UDP

    for lower, entry, wanted in ((TCP, ZenohTcpEntry, tcp), (UDP, ZenohUdpEntry, udp)):
        for port in ports if wanted else ():
            bind_bottom_up(lower, entry, dport=port)
            bind_bottom_up(lower, entry, sport=port)


def bind_defaults() -> None:
    """Read the ports of the protocol as Zenoh, and send there what is built without a port."""
    from scapy.layers.inet import TCP, UDP

    bind(*TCP_PORTS, udp=False)
    bind(*UDP_PORTS, tcp=False)
    for port in SCOUTING_PORTS:
        bind_bottom_up(UDP, ZenohScoutingEntry, dport=port)
        bind_bottom_up(UDP, ZenohScoutingEntry, sport=port)
    for stream in (ZenohStream, ZenohBatch, ZenohCompressedStream, ZenohLowLatencyStream):
        bind_top_down(TCP, stream, dport=TCP_PORTS[0])
    for datagram in (ZenohDatagram, ZenohCompressedDatagram, ZenohLowLatencyDatagram):
        bind_top_down(UDP, datagram, dport=UDP_PORTS[0])
    bind_top_down(UDP, SCOUTING.members[1], dport=SCOUTING_PORTS[0])

    # A HELLO travels between two ephemeral ports, so no port can be bound. It is looked for where
    # Scapy would give up and say Raw, which leaves every binding of the user untouched.
    give_up = UDP.default_payload_class

    def hello_or(self: Any, payload: bytes) -> type[Packet]:
        return ZenohHello if is_hello(payload) else give_up(self, payload)

    UDP.default_payload_class = hello_or  # type: ignore[method-assign]
