"""What Scapy reads in a capture, in the shape in which Wireshark shows it: messages, and every item on its bytes.

``scapy`` follows a capture and gives each message with the values of its row and one item per field, in wire order,
through extensions, records and bodies. `tests/wireshark/tshark.py` gives the same from tshark with the plugin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from scapy.fields import ConditionalField

from scapy_zenoh import fields as wire
from scapy_zenoh.capture import CaptureReader, Packet
from scapy_zenoh.common import Ntp64Field
from scapy_zenoh.extension import ExtChain
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.follow import Follower
from scapy_zenoh.message import NETWORK, SCOUTING, TRANSPORT, Faulty, Malformed, MessageList, Record, RecordList
from scapy_zenoh.records import ScapyCodec
from scapy_zenoh.rows import Origin
from scapy_zenoh.schema.names import filter_of, record_filter
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.streams import Closed
from scapy_zenoh.tls import Decryptor
from scapy_zenoh.values import ntp64_to_ns

#: Packets of a capture that are compared; more of the same proves nothing more.
MOST = 1000

#: Filters of what is a row: the messages of three families.
MESSAGES = {record_filter(cls.__name__) for f in (SCOUTING, TRANSPORT, NETWORK) for cls in f.members.values()}
MESSAGES.add("unknown")


class Item(NamedTuple):
    """A line of the tree: its bytes, counted from the start of the message, and its value as text.

    What is inside a record follows it. Records and bytes have no value: their bytes say all.
    """

    name: str
    at: int
    size: int
    value: str
    raw: str  # hexadecimal


class Shown(NamedTuple):
    """A fault and where it begins, counted from the start of the message; None where no bytes tell."""

    kind: str
    at: int | None


@dataclass
class Message:
    """A message as one of the readers gives it; absent values are None."""

    frame: int
    kind: str
    body: str | None = None
    key: str | None = None
    sn: str | None = None
    rid: str | None = None
    encoding: str | None = None
    payload_len: str | None = None
    payload: str | None = None
    faults: list[Shown] = field(default_factory=list)
    malformed: bool = False
    items: list[Item] = field(default_factory=list)
    #: Of Scapy only: it was told after its packet, or when nothing more could come.
    delayed: bool = False
    last: bool = False

    def values(self) -> tuple[Any, ...]:
        """What a row says of it."""
        return self.kind, self.body, self.key, self.sn, self.rid, self.encoding, self.payload_len, self.payload


@dataclass
class Reading:
    """A capture as one of the readers gives it: messages in their order, and the ids of both ends by frame."""

    messages: list[Message] = field(default_factory=list)
    sources: dict[int, set[str]] = field(default_factory=dict)
    destinations: dict[int, set[str]] = field(default_factory=dict)


_CONTROLS = {number: f"\\x{number:x}" for number in (*range(1, 0x20), 0x7F)} | {0: "␀"}


def shown_text(text: str) -> str:
    """A text as the plugin shows it, bytes that are no UTF-8 replaced and zeros visible, in the XML of tshark."""
    return blanks(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).translate(_CONTROLS)


def blanks(text: str) -> str:
    """A text whose lines are joined, as readers of XML join those in an attribute."""
    return re.sub("\r\n|[\r\n\t]", " ", text)


# --- items --------------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What is to be shown of one field of a class."""

    name: str
    field: Any
    when: Any
    filter: str
    show: Callable[[Any], str] | None  # None for what has no value of its own


def _number(value: Any) -> str:
    return str(int(value))


def _time(value: Any) -> str:
    return str(ntp64_to_ns(int(value)))


def _nothing(value: Any) -> str:
    return ""


def _show(declared: Any) -> Callable[[Any], str] | None:
    match declared:
        case wire.Repeat():
            return _show(declared.element)
        case Ntp64Field():
            return _time
        case wire.NumberField():
            return _number
        case wire.ZidOf():
            return str
        case wire.TextOf() | wire.CountedText() | wire.RestText():
            return shown_text
        case wire.BytesOf():
            return _nothing
        case MessageList() | RecordList() | ExtChain():
            return None
    raise TypeError(f"{declared!r}: how is this shown?")


@cache
def _plans(cls: type[Record]) -> dict[str, _Plan]:
    found = {}
    for declared in cls.fields_desc:
        inner, when = (declared.fld, declared.cond) if isinstance(declared, ConditionalField) else (declared, None)
        found[inner.name] = _Plan(inner.name, inner, when, filter_of(cls.__name__, inner.name), _show(inner))
    return found


@cache
def _record_filter(cls: type[Record]) -> str:
    return record_filter(cls.__name__)


class _Walk:
    """Goes through a message: its items in wire order, and its faults."""

    def __init__(self, message: Any) -> None:
        self.items: list[Item] = []
        self.faults: list[Shown] = []
        self.malformed = False
        self.inner: list[tuple[Any, _Walk]] = []  # the messages of a FRAME
        self.end = self.record(message, 0)
        if isinstance(message, Malformed):
            self.items = [Item("unknown", 0, self.end, "", "")]

    def record(self, record: Any, start: int) -> int:
        """A record from ``start``; returns where it ends."""
        index = len(self.items)
        self.faults += [Shown(str(f.kind), start + f.offset) for f in record._faults]
        self.malformed |= any(not f.noted for f in record._faults)
        if isinstance(record, Malformed):
            return start + len(record.load)
        pos = self.fields(record, start)
        if isinstance(record.payload, Faulty):
            pos = self.record(record.payload, pos)
        self.items.insert(index, Item(_record_filter(type(record)), start, pos - start, "", ""))
        return pos

    def fields(self, record: Any, pos: int) -> int:
        plans = _plans(type(record))
        carried: Any = b""  # of a byte or integer that several fields share
        group: list[tuple[_Plan, Any]] = []
        for declared in record.fields_desc if record._stop is None else record.read_fields():
            plan = plans[declared.name]
            if plan.when is not None and not plan.when(record):
                continue
            value = record.getfieldval(plan.name)
            if plan.show is None:
                pos = self.inside(plan, value or (), pos)
            elif isinstance(plan.field, wire.Repeat):
                for element in value or ():
                    pos = self.add([(plan, element)], plan.field.element.addfield(record, b"", element), pos)
            else:
                carried = plan.field.addfield(record, carried, value)
                group.append((plan, getattr(plan.field, "missing", None) if value is None else value))
                if isinstance(carried, bytes):
                    pos = self.add(group, carried, pos)
                    carried, group = b"", []
        return pos

    def add(self, group: list[tuple[_Plan, Any]], raw: bytes, pos: int) -> int:
        for plan, value in group:
            if value or not isinstance(plan.field, (wire.Reserved, wire.VLEReserved)):
                assert plan.show is not None
                self.items.append(Item(plan.filter, pos, len(raw), plan.show(value), raw.hex()))
        return pos + len(raw)

    def inside(self, plan: _Plan, records: Iterable[Any], pos: int) -> int:
        """Extensions and records; the messages of a FRAME are messages of their own, and only their length counts."""
        for record in records:
            if isinstance(plan.field, MessageList):
                self.inner.append((record, _Walk(record)))
                pos += self.inner[-1][1].end
            else:
                pos = self.record(record, pos)
        return pos


# --- messages -----------------------------------------------------------------------------------


def _message(record: MessageRecord, frame: int, walk: _Walk | None) -> Message:
    """A message with the values of its row; ``walk`` is None for bytes that are none."""
    shown = Message(
        frame=frame,
        kind=record.kind,
        body=record.body,
        key=None if record.key is None else shown_text(record.key),
        sn=str(record.sn) if record.kind in ("frame", "fragment") and record.sn is not None else None,
        rid=None if record.request_id is None else str(record.request_id),
        encoding=None if record.encoding is None else shown_text(record.encoding),
        payload_len=None if record.payload_len is None else str(record.payload_len),
        payload=None if record.payload is None else record.payload.hex(),
    )
    if walk is not None:
        shown.items, shown.faults, shown.malformed = walk.items, walk.faults, walk.malformed
    else:
        shown.malformed = True
    if record.fault is not None and record.fault not in [fault.kind for fault in shown.faults]:
        # What the link knows: bytes missing in the capture, or left over.
        stops = [fault for fault in shown.faults if not FaultKind(fault.kind).noted]
        shown.faults = [fault for fault in shown.faults if fault not in stops]
        shown.faults.append(Shown(record.fault, stops[0].at if stops else None))
    return shown


class _Watching(Follower):
    """A follower that keeps the messages with their rows."""

    def __init__(self, decryptor: Decryptor | None) -> None:
        super().__init__(decryptor=decryptor, codec=ScapyCodec())
        self.reading = Reading()
        self.on_batch = self._batches_append
        self._batches: list[Any] = []
        self._told: list[tuple[MessageRecord, Origin, bool]] = []
        self._ending = False

    def _batches_append(self, batch: Any) -> None:
        self._batches.append(batch)

    def row(self, record: MessageRecord, origin: Origin) -> None:
        self._told.append((record, origin, self._ending))
        super().row(record, origin)

    def _events(self, events: Iterable[Any]) -> None:
        for event in events:
            self._ending = self._ending or isinstance(event, Closed)
            super()._events([event])
            self._ending = False

    def take(self, packet: Packet) -> None:
        """Feed a packet and keep what it completes."""
        self.feed(packet)
        self._keep(packet.frame)

    def end(self) -> None:
        """Keep what the end completes."""
        self._ending = True
        self.finish()
        self._keep(0)

    def _keep(self, now: int) -> None:
        walks = {id(message.context): walk for batch in self._batches for message, walk in _walks(batch)}
        for record, origin, last in self._told:
            shown = _message(record, origin.frame, walks.get(id(record)))
            shown.last, shown.delayed = last, bool(now) and now != origin.frame
            self.reading.messages.append(shown)
            for zid, zids in ((record.src_zid, self.reading.sources), (record.dst_zid, self.reading.destinations)):
                if zid is not None:
                    zids.setdefault(origin.frame, set()).add(zid)
        self._batches, self._told = [], []


def _walks(batch: Any) -> Iterator[tuple[Any, _Walk]]:
    """The messages of a batch, of its FRAMEs, and those put together."""
    for message in batch.carried() if hasattr(batch, "carried") else [batch]:
        walk = _Walk(message)
        yield message, walk
        yield from walk.inner
        if message.context is not None and message.context.whole is not None:
            yield message.context.whole, _Walk(message.context.whole)


def packets_of(capture: Path) -> Iterator[Packet]:
    """The TCP and UDP packets among the first ``MOST`` of a capture."""
    return takewhile(lambda packet: packet.frame <= MOST, CaptureReader([capture]))


def scapy(capture: Path, keylog: Path | None = None) -> Reading:
    """A capture as Scapy reads it."""
    watching = _Watching(Decryptor([capture], keylog) if keylog is not None else None)
    for packet in packets_of(capture):
        watching.take(packet)
    watching.end()
    return watching.reading
