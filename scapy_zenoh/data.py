"""What applications exchange: PUT and DEL, QUERY and its answers REPLY and ERR."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.common import EncodingText, encoding, entity_id, timestamp
from scapy_zenoh.enums import Consolidation, DataId, SliceKind
from scapy_zenoh.expr import From, HasExt, PeekByte, PeekVles, When
from scapy_zenoh.extension import (
    ExtChain,
    Extension,
    ExtTable,
    ZBufExtension,
    unit,
    zbuf,
)
from scapy_zenoh.fields import (
    AutoFlag,
    MessageId,
    Reserved,
    RestBytes,
    UInt,
    VLECount,
    VLEField,
    VLEWindow,
    counted,
    opt,
)
from scapy_zenoh.message import DATA, Family, Message, Record, RecordList, Variants
from scapy_zenoh.primitives import text_to_wire, vle_encode

# --- shared-memory payloads ---------------------------------------------------------------------


class ZenohSlice(Record):
    """A piece of a payload as plain bytes, or a shared-memory descriptor nobody can read."""

    name = "slice"
    fields_desc = [UInt("kind", SliceKind.RAW, enum=SliceKind, closed=True), *counted("data", b"")]


class ZenohSliceShm(Record):
    """A piece of a payload that lies in shared memory: where it is, and how long."""

    name = "shared-memory slice"
    window = "size"
    fields_desc = [
        UInt("kind", SliceKind.SHM, enum=SliceKind, closed=True),
        VLEWindow("size"),
        VLEField("data_len", 1),
        VLEField("segment", 0, bits=32),
        VLEField("index", 0, bits=16),
        VLEField("generation", 0, bits=32),
    ]


class ZenohSliceShmOld(Record):
    """The same as nodes before 1.2.0 describe it."""

    name = "shared-memory slice before 1.2"
    window = "size"
    fields_desc = [
        UInt("kind", SliceKind.SHM, enum=SliceKind, closed=True),
        VLEWindow("size"),
        VLEField("data_segment", 0),
        VLEField("chunk", 0),
        VLEField("chunk_len", 0),
        VLEField("protocol", 0),
        VLEField("data_len", 1),
        VLEField("watchdog_segment", 0),
        VLEField("watchdog_index", 0),
        VLEField("header_segment", 0),
        VLEField("header_index", 0),
        VLEField("generation", 0),
    ]


SLICE = Variants(
    "slice",
    ((PeekByte(0) == SliceKind.SHM) & (PeekVles(1) == 4), ZenohSliceShm),
    ((PeekByte(0) == SliceKind.SHM) & (PeekVles(1) == 10), ZenohSliceShmOld),
    otherwise=ZenohSlice,
)


def slices() -> list[Any]:
    """A payload in pieces."""
    return [VLECount("slices_count", of="slices"), RecordList("slices", SLICE, From("slices_count"))]


def sliced_length(pieces: list[Any]) -> int:
    """How long a payload in pieces is, where it lies in shared memory included."""
    return sum(len(p.data) if isinstance(p, ZenohSlice) else int(p.data_len) for p in pieces)


# --- extensions ---------------------------------------------------------------------------------


class ZenohExtSourceInfo(ZBufExtension):
    """Who made a sample: the entity, and its number there."""

    name = "SourceInfo"
    fields_desc = zbuf(0x1, *entity_id(), VLEField("sn", 0, bits=32))


class ZenohExtPutShm(Extension):
    """Marks a payload in pieces, some of which lie in shared memory."""

    name = "Shm"
    fields_desc = unit(0x2, mandatory=True)


class ZenohExtAttachment(ZBufExtension):
    """Bytes that travel beside the payload of a PUT."""

    name = "Attachment"
    fields_desc = zbuf(0x3, RestBytes("data"))


class ZenohExtDelAttachment(ZBufExtension):
    """Bytes that travel with a DEL."""

    name = "Attachment"
    fields_desc = zbuf(0x2, RestBytes("data"))


class ZenohExtQueryAttachment(ZBufExtension):
    """Bytes that travel with a query."""

    name = "Attachment"
    fields_desc = zbuf(0x5, RestBytes("data"))


class ZenohExtQueryShm(Extension):
    """Marks a query body in pieces; QueryBody follows at once."""

    name = "QueryShm"
    fields_desc = unit(0x4)


class ZenohExtQueryBody(EncodingText, ZBufExtension):
    """The payload of a query."""

    name = "QueryBody"
    fields_desc = zbuf(0x3, *encoding(), RestBytes("data"))


class _AnnouncedSize(VLEWindow):
    """The size that nodes announce for a query body in shared memory.

    It counts the encoding, and for each piece one byte and the real length of its data. That is not
    the number of bytes which follow, so it is no window.
    """

    __slots__: list[str] = []

    def auto(self, pkt: Any) -> int:
        number = int(pkt.getfieldval("encoding_id") or 0) << 1 | pkt.getfieldval("S")
        schema = len(text_to_wire(pkt.schema)) + 1 if pkt.schema is not None else 0
        return len(vle_encode(number)) + schema + sum(1 + sliced_length([p]) for p in pkt.slices)


class ZenohExtQueryBodySliced(EncodingText, Extension):
    """The payload of a query in pieces; its announced size says nothing about the bytes that follow."""

    name = "QueryBody"
    after = ZenohExtQueryShm
    interpreted = True  # the announced size must be compared with what it should be
    fields_desc = [*zbuf(0x3)[:-1], _AnnouncedSize("size"), *encoding(), *slices()]


# --- messages -----------------------------------------------------------------------------------


def consolidation() -> list[Any]:
    """How replies are merged; absent means automatic."""
    return opt(When("C"), VLEField("consolidation", None, enum=Consolidation))


class ZenohPut(EncodingText, Message):
    """A value for a key."""

    name = "Zenoh PUT"
    family = DATA
    fields_desc = [
        AutoFlag("Z", of="exts"), AutoFlag("E", of=("encoding_id", "schema")), AutoFlag("T", of=("ts_time", "ts_id")),
        MessageId("mid", DataId.PUT),
        *opt(When("T"), *timestamp()),
        *encoding(When("E")),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtSourceInfo, ZenohExtPutShm, ZenohExtAttachment))),
        *opt(~HasExt(ZenohExtPutShm), *counted("data", b"")),
        *opt(HasExt(ZenohExtPutShm), *slices()),
    ]  # fmt: skip

    def mysummary(self) -> str:
        shared = any(isinstance(e, ZenohExtPutShm) for e in self.exts or ())
        size = f"{sliced_length(self.slices)} B shm" if shared else f"{len(self.data or b'')} B"
        return f"PUT {size}" + (f" {self.encoding}" if self.E else "")


class ZenohDel(Message):
    """The deletion of a key."""

    name = "Zenoh DEL"
    family = DATA
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), AutoFlag("T", of=("ts_time", "ts_id")),
        MessageId("mid", DataId.DEL),
        *opt(When("T"), *timestamp()),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtSourceInfo, ZenohExtDelAttachment))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return "DEL"


class ZenohQuery(Message):
    """The question inside a REQUEST."""

    name = "Zenoh QUERY"
    family = DATA
    fields_desc = [
        AutoFlag("Z", of="exts"), AutoFlag("P", of="parameters"), AutoFlag("C", of="consolidation"),
        MessageId("mid", DataId.QUERY),
        *consolidation(),
        *opt(When("P"), *counted("parameters", text=True)),
        *opt(When("Z"), ExtChain("exts", ExtTable(
            ZenohExtSourceInfo, ZenohExtQueryShm, ZenohExtQueryBody, ZenohExtQueryBodySliced, ZenohExtQueryAttachment,
        ))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return "QUERY" + (f" ?{self.parameters}" if self.parameters else "")


SAMPLE = Family("sample", ZenohPut, ZenohDel)


class ZenohReply(Message):
    """An answer to a query: a PUT or DEL."""

    name = "Zenoh REPLY"
    family = DATA
    body = SAMPLE
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), AutoFlag("C", of="consolidation"),
        MessageId("mid", DataId.REPLY),
        *consolidation(),
        *opt(When("Z"), ExtChain("exts", ExtTable())),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return "REPLY"


class ZenohExtErrShm(Extension):
    """A mark without effect: the payload of an ERR is never in pieces."""

    name = "Shm"
    fields_desc = unit(0x2, mandatory=True)


class ZenohErr(EncodingText, Message):
    """An error as answer to a query."""

    name = "Zenoh ERR"
    family = DATA
    fields_desc = [
        AutoFlag("Z", of="exts"), AutoFlag("E", of=("encoding_id", "schema")), Reserved("X", 1),
        MessageId("mid", DataId.ERR),
        *encoding(When("E")),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtSourceInfo, ZenohExtErrShm))),
        *counted("data", b""),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"ERR {len(self.data)} B" + (f" {self.encoding}" if self.E else "")


#: What a REQUEST carries (zenoh-pico's codec also reads PUT and DEL there).
QUERY_BODY = Family("query body", ZenohQuery, ZenohPut, ZenohDel)
#: What a RESPONSE carries.
ANSWER = Family("answer", ZenohReply, ZenohErr)
