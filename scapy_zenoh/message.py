"""Base classes of everything that is read from the wire, and the families that tell messages apart.

A ``Record`` is a group of fields. A ``Message`` is a record whose header byte carries an id of a
``Family``; its body, if it has one, is its Scapy payload: ``ZenohPush(...) / ZenohPut(...)``.

Reading never raises on bad bytes. The record that cannot be read further keeps the fields it has,
remembers where it stopped, and the rest of the bytes becomes its ``Malformed`` payload. No record
keeps a copy of its bytes: ``bytes(packet)`` always follows from the field values, so an edit at any
depth shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from scapy.config import conf
from scapy.fields import PacketListField, RawVal, StrField
from scapy.packet import Packet

from scapy_zenoh.expr import Expr
from scapy_zenoh.fault import Fault, FaultKind, WireFault, worst
from scapy_zenoh.fields import Auto, FixedBits, VLEReserved, owner_name
from scapy_zenoh.primitives import VLE


class Faulty(Packet):
    """A packet that can say what was wrong with its bytes."""

    __slots__ = ["_ahead", "_faults", "_stop", "context"]

    _ahead: bytes | None  # while reading: the bytes from the current field on
    _faults: list[Fault]  # of this packet alone
    _stop: str | None  # the field at which reading ended, if it did
    #: What a session knew when the message passed: ``message.context.key``; None without a session.
    context: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        object.__setattr__(self, "_ahead", None)
        object.__setattr__(self, "_faults", [])
        object.__setattr__(self, "_stop", None)
        object.__setattr__(self, "context", None)
        Packet.__init__(self, *args, **kwargs)

    def note(self, kind: FaultKind, field: str = "", offset: int = 0) -> None:
        """Record a fault of this packet."""
        self._faults.append(Fault(kind, field, offset))

    @property
    def own_fault(self) -> Fault | None:
        """What is wrong with this packet itself, whatever is inside it or follows."""
        return worst(self._faults)

    def faults(self) -> Iterator[tuple[Packet, Fault]]:
        """Every fault of this packet, of what is inside it and of its body, with the packet it belongs to."""
        pkt: Packet = self
        while pkt:
            if isinstance(pkt, Faulty):
                for fault in pkt._faults:
                    yield pkt, fault
            for field in pkt.packetfields:
                for inner in pkt.fields.get(field.name) or ():
                    if isinstance(inner, Faulty):
                        yield from inner.faults()
            pkt = pkt.payload

    @property
    def fault(self) -> FaultKind | None:
        """The kind of the worst fault here or inside, None when all is well."""
        found = worst([fault for _, fault in self.faults()])
        return found.kind if found else None

    def copy(self) -> Any:
        clone = Packet.copy(self)
        for holder in clone.packetfields:
            for inner in clone.fields.get(holder.name) or ():
                if isinstance(inner, Packet):
                    inner.add_parent(clone)
        clone._faults, clone._stop, clone.context = list(self._faults), self._stop, self.context
        return clone

    def clone_with(self, payload: Any = None, **kargs: Any) -> Any:
        clone = Packet.clone_with(self, payload, **kargs)
        clone._faults, clone._stop, clone.context = list(self._faults), self._stop, self.context
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        function, args, state = Packet.__reduce__(self)
        state.pop("extra_slots", None)  # reading the bytes again finds the faults
        return function, args, state


class Malformed(Faulty):
    """The bytes from a fault to the end of the batch."""

    name = "Zenoh malformed"
    fields_desc = [StrField("load", b"")]

    def mysummary(self) -> str:
        return f"malformed {len(self.load)} B"


class Record(Faulty):
    """A group of fields, read in order.

    ``window`` names a field that counts the bytes of all fields after it, which must fill it.
    ``virtual`` names properties that the constructor takes like fields.
    """

    fields_desc: ClassVar[list[Any]] = []
    window: ClassVar[str | None] = None
    virtual: ClassVar[tuple[str, ...]] = ()
    body: ClassVar[Family | None] = None
    autos: ClassVar[dict[str, Auto]] = {}
    fixed: ClassVar[dict[str, int]] = {}

    #: Whether records are read by compiled functions, or all by interpretation of ``fields_desc``.
    compiled: ClassVar[bool] = True
    #: True for a class that has fields only the interpretation knows.
    interpreted: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        extra = {name: kwargs.pop(name) for name in self.virtual if name in kwargs}
        Faulty.__init__(self, *args, **kwargs)
        for name, value in extra.items():
            setattr(self, name, value)

    @classmethod
    def register_variant(cls) -> None:
        """Called by Scapy for each new class."""
        fields = {f.name: getattr(f, "fld", f) for f in cls.fields_desc}
        for name in fields:
            if any(name in vars(base) for base in Faulty.__mro__):
                raise TypeError(f"{cls.__name__}.{name}: this name belongs to Scapy's Packet; choose another")
        cls.autos = {name: f for name, f in fields.items() if isinstance(f, Auto)}
        fixed = {name: f for name, f in fields.items() if isinstance(f, (FixedBits, VLEReserved))}
        cls.fixed = {name: int(f.default or 0) for name, f in fixed.items()}

    # -- values --

    def getfieldval(self, attr: str) -> Any:
        value = Packet.getfieldval(self, attr)
        if value is None and attr in self.autos:
            return self.autos[attr].auto(self)
        return value

    def getfield_and_val(self, attr: str) -> tuple[Any, Any]:
        field, value = Packet.getfield_and_val(self, attr)
        if value is None and attr in self.autos:
            value = self.autos[attr].auto(self)
        return field, value

    # -- reading --

    def dissect(self, s: bytes) -> None:
        if not (Record.compiled and _fast_reader(type(self))(self, s)):
            self.dissect_slowly(s)

    def dissect_slowly(self, s: bytes) -> None:
        """Read as ``fields_desc`` says, field by field, and find what is wrong."""
        rest = self.do_dissect(s)
        if self._stop is not None or self._faults and not all(f.noted for f in self._faults):
            self._close(rest, b"")
        elif self.body is None:
            self._close(b"", rest)
        else:
            self._read_body(rest, len(s) - len(rest))

    def _close(self, malformed: bytes, padding: bytes) -> None:
        if malformed:
            self.add_payload(Malformed(malformed, _internal=1, _underlayer=self))
        if padding:
            self.add_payload(conf.padding_layer(padding, _internal=1, _underlayer=self))

    def _read_body(self, s: bytes, offset: int) -> None:
        cls = self.body.pick(s) if self.body else None
        if cls is not None:
            self.add_payload(cls(s, _internal=1, _underlayer=self))
            return
        self.note(FaultKind.UNKNOWN_MESSAGE if s else FaultKind.BODY_MISSING, "body", offset)
        self._close(s, b"")

    def do_dissect(self, s: bytes) -> bytes:
        """Read the fields as ``fields_desc`` says; returns what is left."""
        whole, after, windowed = len(s), b"", False
        group: list[str] = []  # fields read so far of a byte or integer that several share
        name = ""
        self.explicit = 1
        try:
            for field in self.fields_desc:
                name, noted = field.name, len(self._faults)
                self._ahead = s if isinstance(s, bytes) else None
                offset = whole - len(after) - len(s[0] if isinstance(s, tuple) else s)
                s, value = field.getfield(self, s)
                for i in range(noted, len(self._faults)):
                    self._faults[i] = replace(self._faults[i], offset=offset)
                if value is None and field.isconditional:
                    continue
                self.fields[name] = value
                group = [*group, name] if isinstance(s, tuple) else []
                if name == self.window:
                    windowed = True
                    if value > len(s):
                        raise WireFault(FaultKind.BAD_LENGTH, s)
                    s, after = s[:value], s[value:]
            if windowed and s:
                self.note(FaultKind.BAD_LENGTH, self.window or "", whole - len(after) - len(s))
        except WireFault as fault:
            s = fault.remain
            if fault.kind is not None:
                kind = fault.kind
                if windowed and kind is FaultKind.TRUNCATED:
                    kind = FaultKind.BAD_LENGTH  # the window, not the message, was too short
                self.note(kind, name, whole - len(after) - len(s))
            for shared in group:
                del self.fields[shared]
            if fault.partial is not None:
                self.fields[name] = fault.partial
            self._stop = group[0] if group else self._after(name) if windowed and name == self.window else name
        self._ahead = None
        self._forget_automatic()
        return s + after

    def readable(self, records: str, data: bytes) -> bool:
        """True when ``data`` is the count and the elements of the list ``records``, all good, and nothing else."""
        counter: Any = self.fieldtype[f"{records}_count"]
        listed: Any = self.fieldtype[records]
        try:
            data, count = counter.fld.getfield(self, data)
            for _ in range(count):
                if not data:
                    return False
                record = listed.fld.kinds(data, _internal=1)
                data = take_padding(record)
                if record.fault is not None:
                    return False
        except WireFault:
            return False
        return not data

    def _after(self, name: str) -> str:
        names = [f.name for f in self.fields_desc]
        return names[names.index(name) + 1] if name != names[-1] else ""

    def _forget_automatic(self) -> None:
        """Drop ids, flags and counters that say nothing the class and the other fields do not say."""
        for name, default in self.fixed.items():
            if self.fields.get(name) == default:
                del self.fields[name]
        for name, auto in self.autos.items():
            value = self.fields.get(name)
            if value is None or isinstance(value, VLE):
                continue
            if not self._faults and name == self.window:  # filled exactly: no need to build it
                del self.fields[name]
            elif value == auto.auto(self):
                del self.fields[name]

    # -- people --

    def mysummary(self) -> str:
        return str(self.name)

    def read_fields(self) -> list[Any]:
        """The fields up to where reading stopped."""
        names = [f.name for f in self.fields_desc]
        if self._stop not in names:
            return self.fields_desc
        return self.fields_desc[: names.index(self._stop) + (self._stop in self.fields)]

    def _show_or_dump(self, *args: Any, **kwargs: Any) -> Any:
        shown: Any = self if self._stop is None else _ReadPart(self)
        return Packet._show_or_dump(shown, *args, **kwargs)

    def _do_summary(self) -> tuple[int, str, list[Any]]:
        """A record and its body read as one sentence: ``PUSH demo/a PUT 12 B text/plain``."""
        _, rest, needed = self.payload._do_summary()
        return 1, " ".join(filter(None, [self.mysummary(), rest])), needed

    # -- building --

    def self_build(self) -> bytes:
        return self._build_fields(self.read_fields())

    def build_after(self, name: str) -> bytes:
        """The bytes of the fields after ``name``."""
        names = [f.name for f in self.fields_desc]
        return self._build_fields(self.read_fields()[names.index(name) + 1 :])

    def _build_fields(self, fields: list[Any]) -> bytes:
        data: Any = b""
        for field in fields:
            value = self.getfieldval(field.name)
            try:
                data = data + bytes(value) if isinstance(value, RawVal) else field.addfield(self, data, value)
            except (TypeError, AttributeError) as error:
                raise ValueError(f"{owner_name(self, field)}: cannot build {value!r} ({error})") from error
        return bytes(data)


class _ReadPart:
    """A record as far as it was read, for ``show()``."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.fields_desc = record.read_fields()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


class Family:
    """One space of ids: looks at the next byte and says which class it starts."""

    def __init__(self, name: str, *classes: type[Message]) -> None:
        self.name = name
        self.members: dict[int, type[Message]] = {c.message_id(): c for c in classes}

    def add(self, cls: type[Message]) -> None:
        """Called for each class that declares this family."""
        mid = cls.message_id()
        known = self.members.get(mid)
        if known is not None and known.__name__ != cls.__name__:
            raise TypeError(f"{cls.__name__}: id {mid:#04x} of {self.name} belongs to {known.__name__}")
        self.members[mid] = cls

    def pick(self, data: bytes) -> type[Message] | None:
        """The class of the message at the start of ``data``, None when no id matches."""
        return self.members.get(data[0] & 0x1F) if data else None

    def __repr__(self) -> str:
        return f"Family({self.name})"


class Message(Record):
    """A record with a header byte: flags and the id that picks the class."""

    family: ClassVar[Family | None] = None

    @classmethod
    def register_variant(cls) -> None:
        Record.register_variant.__func__(cls)  # type: ignore[attr-defined]
        if cls.family is not None and "fields_desc" in cls.__dict__:
            cls.family.add(cls)

    @classmethod
    def message_id(cls) -> int:
        """The id in the low five bits of the header."""
        return int(next(f.default for f in cls.fields_desc if f.name == "mid"))


SCOUTING = Family("scouting")
TRANSPORT = Family("transport")
NETWORK = Family("network")
DECLARATION = Family("declaration")
DATA = Family("data")


class Variants:
    """Records told apart by a look at the bytes: the first whose guard holds, else the last."""

    def __init__(self, name: str, *cases: tuple[Expr, type[Record]], otherwise: type[Record]) -> None:
        self.name, self.cases, self.otherwise = name, cases, otherwise

    def pick(self, data: bytes) -> type[Record]:
        """The class that fits ``data``."""
        return next((cls for guard, cls in self.cases if guard(data)), self.otherwise)


def take_padding(pkt: Packet) -> bytes:
    """Remove and return the bytes that a packet left over."""
    last = pkt.lastlayer()
    if not isinstance(last, conf.padding_layer) or last.underlayer is None:
        return b""
    del last.underlayer.payload
    return bytes(last.load)


class InnerList(PacketListField):
    """A list of packets inside a packet: what lists of messages, records and extensions share."""

    __slots__: list[str] = []

    def __init__(self, name: str) -> None:
        PacketListField.__init__(self, name, [], Packet)

    def any2i(self, pkt: Any, x: Any) -> Any:
        if isinstance(x, tuple):
            x = list(x)
        return [] if x is None else PacketListField.any2i(self, pkt, x)

    def addfield(self, pkt: Any, s: bytes, val: Any) -> bytes:
        return s + b"".join(self.element(pkt, v) for v in val or ())

    def element(self, pkt: Any, value: Any) -> bytes:
        """The bytes of one element: a packet, or raw bytes put in on purpose."""
        if not isinstance(value, (Packet, RawVal, bytes)):
            raise ValueError(f"{owner_name(pkt, self)}: {value!r} is no packet")
        return bytes(value)

    def randval(self) -> Any:
        return None


class MessageList(InnerList):
    """Messages of some families up to the end of the bytes, or to a message of the family ``until``.

    An id that nobody knows is a fault.
    """

    __slots__ = ["families", "until"]

    def __init__(self, name: str, *families: Family, until: Family | None = None) -> None:
        self.families, self.until = families, until
        InnerList.__init__(self, name)

    def pick(self, data: bytes) -> type[Message] | None:
        """The class of the next message."""
        for family in self.families:
            cls = family.pick(data)
            if cls is not None:
                return cls
        return None

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        if Record.compiled:
            from scapy_zenoh.compiled import messages as read_all  # without a copy of the rest for each message

            found, end = read_all(self, s, 0, len(s), pkt)
            return s[end:], found
        messages: list[Packet] = []
        while s:
            cls = self.pick(s)
            if cls is None:
                if self.until is not None and self.until.pick(s):
                    break
                messages.append(unknown_message(s, pkt))
                return b"", messages
            message = cls(s, _internal=1, _parent=pkt)
            s = take_padding(message)
            messages.append(message)
        return s, messages


def unknown_message(data: bytes, parent: Any) -> Malformed:
    """What stands in a list for bytes that start no message."""
    unknown = Malformed(data, _internal=1, _parent=parent)
    unknown.note(FaultKind.UNKNOWN_MESSAGE)
    return unknown


class RecordList(InnerList):
    """As many records as an expression says."""

    __slots__ = ["count", "kinds"]

    def __init__(self, name: str, kinds: type[Record] | Variants, count: Expr) -> None:
        self.kinds, self.count = kinds, count
        InnerList.__init__(self, name)

    def getfield(self, pkt: Any, s: bytes) -> tuple[bytes, list[Any]]:
        records: list[Packet] = []
        for _ in range(int(self.count(pkt))):
            if not s:
                raise WireFault(FaultKind.TRUNCATED, s, records)
            cls = self.kinds.pick(s) if isinstance(self.kinds, Variants) else self.kinds
            record = cls(s, _internal=1, _parent=pkt)
            s = take_padding(record)
            records.append(record)
            if stopped(record):
                raise WireFault(None, s, records)
        return s, records


def stopped(pkt: Packet) -> bool:
    """True when a packet could not be read to its end."""
    return isinstance(pkt, Faulty) and any(not f.noted for _, f in pkt.faults())


def _fast_reader(cls: type[Record]) -> Any:
    from scapy_zenoh.compiled import (
        reader,  # generated from the schema, which imports the messages
    )

    return reader(cls)
