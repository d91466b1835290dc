"""From the rows of the decoder to the plain records that the session takes; one message at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.runtime import (
    BODY,
    EXTENSIONS,
    FAULT,
    FAULT_OFFSET,
    FAULTS,
    INSIDE,
    KIND,
    LENGTHS,
    PRESENT,
    STRIDE,
    UNKNOWN_EIDS,
    VALUES,
    clear,
    vle,
)
from scapy_zenoh.enums import CloseReason, Consolidation, InterestMode, Mapping, QueryTarget, WhatAmI, WhatAmIBit
from scapy_zenoh.primitives import text_from_wire, zid_from_wire
from scapy_zenoh.session.record import MessageRecord, Offer
from scapy_zenoh.values import MAX_LENGTH, encoding_to_text, lease_in_ms, ntp64_to_ns

DEFAULT_PRIORITY = 5
_U64 = (1 << 64) - 1

#: Kind of a message -> the layer it belongs to.
LAYERS = {
    **dict.fromkeys(("scout", "hello"), "scouting"),
    **dict.fromkeys(("push", "request", "response", "response_final", "declare", "interest", "network_oam"), "network"),
}

#: Bits of an INTEREST and how they are told, in this order.
OPTIONS = (
    (g.KEYEXPRS, "keyexprs"), (g.SUBSCRIBERS, "subscribers"), (g.QUERYABLES, "queryables"), (g.TOKENS, "tokens"),
    (g.AGGREGATE, "aggregate"),
)  # fmt: skip


@cache
def body_name(code: int) -> str | None:
    """The body that BODY means; None for a REPLY in which nothing could be read."""
    names = []
    while code:
        names.append(g.BODIES[code & 63])
        code >>= 6
    return None if not names or names == ["reply"] else "_".join(reversed(names))


def zid_text(data: bytes) -> str | None:
    """An id as Zenoh prints it."""
    return (zid_from_wire(data).lstrip("0") or "0") if data else None


class Row:
    """One row of the decoder, with the bytes it was read from."""

    __slots__ = ("b", "o", "present", "r")

    def __init__(self, b: bytes | memoryview, r: Sequence[int], o: int) -> None:
        self.b, self.r, self.o = b, r, o
        self.present = r[o + PRESENT]

    def number(self, slot: int) -> int | None:
        """The number in a slot, None when it was not read."""
        return self.r[self.o + VALUES + slot] & _U64 if self.present >> slot & 1 else None

    def value(self, slot: int, default: int) -> int:
        """The number in a slot."""
        return self.r[self.o + VALUES + slot] & _U64 if self.present >> slot & 1 else default

    def has(self, extension: int) -> bool:
        """Whether an extension is there."""
        return self.r[self.o + EXTENSIONS] & extension != 0

    def bytes(self, slot: int) -> bytes | None:
        """The bytes of a span, None when it was not read."""
        if not self.present >> slot & 1:
            return None
        at = self.r[self.o + VALUES + slot]
        return bytes(self.b[at : at + self.r[self.o + LENGTHS + slot]])

    def text(self, slot: int) -> str | None:
        """The text of a span, None when it was not read."""
        data = self.bytes(slot)
        return None if data is None else text_from_wire(data)

    def texts(self, slot: int) -> list[str]:
        """A list of counted texts."""
        found: list[str] = []
        if self.present >> slot & 1:
            at, end = self.r[self.o + VALUES + slot], len(self.b)
            for _ in range(self.r[self.o + LENGTHS + slot]):
                size, at = vle(self.b, at, end, 32)
                found.append(text_from_wire(bytes(self.b[at : at + size])))
                at += size
        return found

    def numbers(self, slot: int) -> tuple[int, ...]:
        """A list of integers."""
        found: list[int] = []
        if self.present >> slot & 1:
            at, end = self.r[self.o + VALUES + slot], len(self.b)
            for _ in range(self.r[self.o + LENGTHS + slot]):
                value, at = vle(self.b, at, end, 64)
                found.append(value & _U64)
        return tuple(found)


def record_of(b: bytes | memoryview, r: Sequence[int], o: int) -> MessageRecord:
    """The record of the message in row ``o``; of a FRAME without what is inside it."""
    row = Row(b, r, o)
    kind = g.KINDS[r[o + KIND]]
    fill = _FILL.get(kind)
    record = MessageRecord(LAYERS.get(kind, "transport"), kind)
    if fill is not None:
        fill(row, record)
    if r[o + INSIDE]:
        record.layer = "network"
    if r[o + INSIDE] == 1:
        record.sn, record.reliable = row.number(g.SN), bool(row.value(g.RELIABLE, 1))
    if r[o + FAULT]:
        record.fault, record.fault_offset = str(FAULTS[r[o + FAULT]]), r[o + FAULT_OFFSET]
    return record


# --- network messages ---------------------------------------------------------------------------


def _network(row: Row, record: MessageRecord) -> None:
    record.priority = row.value(g.PRIORITY, DEFAULT_PRIORITY)
    blocks = "block" if row.value(g.BLOCK, 0) else "block_first" if row.value(g.BLOCK_FIRST, 0) else "drop"
    record.congestion, record.express = blocks, bool(row.value(g.EXPRESS, 0))
    record.body = body_name(row.r[row.o + BODY])
    record.key_scope = row.number(g.SCOPE)
    if record.key_scope is not None:
        record.key_suffix = row.text(g.SUFFIX)
        record.key_whole = record.key_suffix is not None or not row.value(g.NAMED, 0)
        mapping = row.number(g.MAPPING)
        record.key_mapping = None if mapping is None else Mapping.describe(mapping)
    record.request_id, record.interest_id = row.number(g.REQUEST_ID), row.number(g.INTEREST_ID)


def _data(row: Row, record: MessageRecord) -> None:
    """The body of a PUSH, REQUEST or RESPONSE."""
    _network(row, record)
    body = (record.body or "").removeprefix("reply_")
    if body == "query":
        _query(row, record)
    elif body in ("put", "err"):
        record.encoding = encoding_to_text(row.number(g.ENCODING_ID), row.text(g.SCHEMA))
        _payload(row, record, row.has(g.EXT_PUT_SHM))
    stamp = row.number(g.TS_TIME)
    if stamp is not None:
        record.timestamp_time = ntp64_to_ns(stamp)
        record.timestamp_id = zid_from_wire(row.bytes(g.TS_ID) or b"").lstrip("0") or None
    record.source_sn = row.number(g.SOURCE_SN)
    if record.source_sn is not None:
        record.source_zid, record.source_eid = zid_text(row.bytes(g.SOURCE_ZID) or b""), row.number(g.SOURCE_EID)
    record.attachment = row.bytes(g.ATTACHMENT)


def _query(row: Row, record: MessageRecord) -> None:
    record.consolidation = Consolidation.labels().get(row.value(g.CONSOLIDATION, 0), "auto")
    record.parameters = row.text(g.PARAMETERS)
    if row.has(g.EXT_QUERY_BODY):
        record.encoding = encoding_to_text(row.number(g.ENCODING_ID), row.text(g.SCHEMA))
        _payload(row, record, False)
    elif row.has(g.EXT_QUERY_BODY_SLICED):
        record.encoding = encoding_to_text(row.number(g.SLICED_ENCODING_ID), row.text(g.SLICED_SCHEMA))
        _payload(row, record, True)


def _payload(row: Row, record: MessageRecord, sliced: bool) -> None:
    if not sliced:
        record.payload = row.bytes(g.DATA)
        record.payload_len = None if record.payload is None else len(record.payload)
        return
    record.payload_len, record.payload, record.shm = pieces_of(row)


def pieces_of(row: Row) -> tuple[int, bytes | None, bool]:
    """A payload in pieces: its length, its bytes unless some are elsewhere, and whether they are in shared memory."""
    length, found, shared, whole = 0, [], False, True
    if row.present >> g.SLICES & 1:
        at, end = row.r[row.o + VALUES + g.SLICES], len(row.b)
        one = [0] * (2 * STRIDE)
        for _ in range(row.r[row.o + LENGTHS + g.SLICES]):
            clear(one, 0, at)
            at = g.choice_slice(row.b, at, end, one, 0)
            piece = Row(row.b, one, 0)
            data = piece.bytes(g.PIECE)
            if piece.present >> g.SHM_LENGTH & 1:
                length, shared = length + piece.value(g.SHM_LENGTH, 0), True
            elif data is None:
                whole = False
            else:
                length += len(data)
                found.append(data)
    return min(length, MAX_LENGTH), None if shared or not whole else b"".join(found), shared


def _request(row: Row, record: MessageRecord) -> None:
    _data(row, record)
    record.target = QueryTarget.labels().get(row.value(g.TARGET, 0))
    record.timeout_ms, record.budget = row.number(g.TIMEOUT), row.number(g.BUDGET)


def _response(row: Row, record: MessageRecord) -> None:
    _data(row, record)
    record.responder_eid = row.number(g.RESPONDER_EID)
    if record.responder_eid is not None:
        record.responder_zid = zid_text(row.bytes(g.RESPONDER_ZID) or b"")


def _declare(row: Row, record: MessageRecord) -> None:
    _network(row, record)
    record.entity_id = row.number(g.ENTITY_ID)
    if (record.body or "").startswith("undeclare") and not record.key_scope and not record.key_suffix:
        # An extension without scope and suffix says nothing.
        record.key_scope = record.key_suffix = record.key_mapping = None
        record.key_whole = True


def _interest(row: Row, record: MessageRecord) -> None:
    _network(row, record)
    record.interest_mode = InterestMode.describe(row.value(g.MODE, 0))
    if row.value(g.MODE, 0) != InterestMode.FINAL:
        record.interest_options = "|".join(text for slot, text in OPTIONS if row.value(slot, 0))


def _network_oam(row: Row, record: MessageRecord) -> None:
    _network(row, record)
    if row.present >> g.STATES & 1:
        at, end = row.r[row.o + VALUES + g.STATES], len(row.b)
        one = [0] * (2 * STRIDE)
        for _ in range(row.r[row.o + LENGTHS + g.STATES]):
            clear(one, 0, at)
            at = g.read_link_state(row.b, at, end, one, 0)
            record.gossip += Row(row.b, one, 0).texts(g.LOCATORS)


# --- scouting and transport messages ------------------------------------------------------------


def _node(row: Row, record: MessageRecord) -> None:
    record.zid = zid_text(row.bytes(g.ZID) or b"")
    record.whatami = WhatAmI.labels().get(row.value(g.WHATAMI, -1))


def _scout(row: Row, record: MessageRecord) -> None:
    record.zid = zid_text(row.bytes(g.ZID) or b"")
    record.whatami = "|".join(bit.label for bit in WhatAmIBit if row.value(g.WHAT, 0) & bit)


def _hello(row: Row, record: MessageRecord) -> None:
    _node(row, record)
    record.locators = row.texts(g.LOCATORS)


def _init(row: Row, record: MessageRecord) -> None:
    _node(row, record)
    record.kind = "init_ack" if row.value(g.ANSWER, 0) else "init_syn"
    unknown = row.r[row.o + UNKNOWN_EIDS]
    of_link = (g.LINK_LANES, g.LINK_PRIORITIES, g.LINK_RELIABILITY)
    record.offer = Offer(
        lanes=row.has(g.EXT_LANES) or any(row.value(slot, 0) for slot in of_link),
        compression=row.has(g.EXT_COMPRESSION),
        low_latency=row.has(g.EXT_LOW_LATENCY),
        multilink=row.has(g.EXT_INIT_SYN_MULTI_LINK | g.EXT_INIT_ACK_MULTI_LINK),
        shared_memory=row.has(g.EXT_INIT_SYN_SHM | g.EXT_INIT_ACK_SHM) or unknown >> 2 & 1 != 0,
        auth=row.has(g.EXT_INIT_SYN_AUTH | g.EXT_INIT_ACK_AUTH) or unknown >> 3 & 1 != 0,
        patch=_patch(row),
        sn_resolution=row.value(g.SN_RESOLUTION, 2),
        batch_size=row.value(g.BATCH_SIZE, 65535),
        region=(row.text(g.REGION) or "") if row.has(g.EXT_REGION_NAME) else None,
        version=row.number(g.VERSION),
    )


def _patch(row: Row) -> int:
    return row.value(g.PATCH, 1) if row.has(g.EXT_PATCH) else 0


def _lease_ms(row: Row) -> int | None:
    return lease_in_ms(row.number(g.LEASE), bool(row.value(g.LEASE_SECONDS, 1)))


def _open(row: Row, record: MessageRecord) -> None:
    record.kind = "open_ack" if row.value(g.ANSWER, 0) else "open_syn"
    record.offer = Offer(lease_ms=_lease_ms(row), initial_sn=row.number(g.INITIAL_SN))


def _close(row: Row, record: MessageRecord) -> None:
    record.whole_session = bool(row.value(g.WHOLE_SESSION, 0))
    reason = row.number(g.REASON)
    record.reason = None if reason is None else CloseReason.describe(reason)


def _frame(row: Row, record: MessageRecord) -> None:
    record.sn, record.reliable = row.number(g.SN), bool(row.value(g.RELIABLE, 1))
    record.priority = row.value(g.PRIORITY, DEFAULT_PRIORITY)


def _fragment(row: Row, record: MessageRecord) -> None:
    _frame(row, record)
    record.more = bool(row.value(g.MORE, 0))
    record.first, record.drop = row.has(g.EXT_FIRST), row.has(g.EXT_DROP)
    record.slice = row.bytes(g.DATA) or b""


def _join(row: Row, record: MessageRecord) -> None:
    _node(row, record)
    single = (row.value(g.NEXT_RELIABLE, 0), row.value(g.NEXT_BEST_EFFORT, 0))
    record.offer = Offer(
        lanes=row.has(g.EXT_JOIN_LANES),
        patch=_patch(row),
        sn_resolution=row.value(g.SN_RESOLUTION, 2),
        batch_size=row.value(g.BATCH_SIZE, 8192),
        lease_ms=_lease_ms(row),
        next_sns=row.numbers(g.NEXT_SNS) if row.has(g.EXT_JOIN_LANES) else single,
        version=row.number(g.VERSION),
    )


_FILL = {
    "scout": _scout,
    "hello": _hello,
    "init": _init,
    "open": _open,
    "close": _close,
    "frame": _frame,
    "fragment": _fragment,
    "join": _join,
    "push": _data,
    "request": _request,
    "response": _response,
    "response_final": _network,
    "declare": _declare,
    "interest": _interest,
    "network_oam": _network_oam,
}
