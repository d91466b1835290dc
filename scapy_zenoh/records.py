"""From Scapy messages to the plain records that the session takes: the reference for all other decoders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scapy.packet import Packet

from scapy_zenoh.codec import Batch, Single
from scapy_zenoh.data import (
    ZenohDel,
    ZenohErr,
    ZenohExtAttachment,
    ZenohExtDelAttachment,
    ZenohExtPutShm,
    ZenohExtQueryAttachment,
    ZenohExtQueryBody,
    ZenohExtQueryBodySliced,
    ZenohExtSourceInfo,
    ZenohPut,
    ZenohQuery,
    ZenohReply,
    ZenohSlice,
    sliced_length,
)
from scapy_zenoh.declare import ZenohExtWireExpr
from scapy_zenoh.enums import (
    CloseReason,
    Consolidation,
    DeclareId,
    InterestMode,
    Mapping,
    QueryTarget,
    WhatAmI,
    WhatAmIBit,
)
from scapy_zenoh.fault import Fault, worst
from scapy_zenoh.link import (
    ZenohBatch,
    ZenohCompressedBatch,
    ZenohCompressedDatagram,
    ZenohDatagram,
    ZenohLowLatencyDatagram,
    ZenohLowLatencyUnit,
)
from scapy_zenoh.message import SCOUTING, Faulty, Malformed, stopped
from scapy_zenoh.network import (
    ZenohDeclare,
    ZenohExtBudget,
    ZenohExtQoS,
    ZenohExtQueryTarget,
    ZenohExtResponderId,
    ZenohExtTimeout,
    ZenohInterest,
    ZenohNetworkOam,
    ZenohPush,
    ZenohRequest,
    ZenohResponse,
    ZenohResponseFinal,
)
from scapy_zenoh.parsing import parse
from scapy_zenoh.scouting import ZenohHello, ZenohScout
from scapy_zenoh.session.record import MessageRecord, Offer
from scapy_zenoh.transport import (
    ZenohClose,
    ZenohExtCompression,
    ZenohExtDrop,
    ZenohExtFirst,
    ZenohExtInitAckMultiLink,
    ZenohExtInitSynMultiLink,
    ZenohExtJoinLanes,
    ZenohExtLane,
    ZenohExtLanes,
    ZenohExtLowLatency,
    ZenohExtPatch,
    ZenohExtQoSLink,
    ZenohExtRegionName,
    ZenohFragment,
    ZenohFrame,
    ZenohInit,
    ZenohJoin,
    ZenohKeepAlive,
    ZenohOpen,
    ZenohTransportOam,
)
from scapy_zenoh.values import MAX_LENGTH, lease_in_ms, ntp64_to_ns

DEFAULT_PRIORITY = 5


def record_of(message: Packet) -> MessageRecord:
    """The record of one message; of a FRAME without what is inside it."""
    record = _READERS[type(message)](message) if type(message) in _READERS else MessageRecord("transport", "unknown")
    fault = own_fault(message)
    if fault is not None:
        record.fault, record.fault_offset = str(fault.kind), fault.offset
    return record


def own_fault(message: Packet) -> Fault | None:
    """What is wrong with a message, its extensions and its body; not with the messages inside a FRAME."""
    found: list[Fault] = []
    layer: Any = message
    while layer:
        if isinstance(layer, Faulty):
            found += layer._faults
            for name, value in layer.fields.items():
                if isinstance(value, list) and name != "msgs":
                    found += [fault for inner in value if isinstance(inner, Faulty) for _, fault in inner.faults()]
        layer = layer.payload
    return worst(found)


# --- what several messages share ----------------------------------------------------------------


def _exts(message: Any) -> dict[type, Any]:
    """The extensions of a message by class; a repeated one counts as its last."""
    return {type(e): e for e in message.fields.get("exts") or ()}


def _key(record: MessageRecord, message: Any) -> None:
    values = message.fields
    if "scope" in values:
        record.key_scope = int(values["scope"])
        record.key_suffix = values.get("suffix")
        record.key_whole = record.key_suffix is not None or not message.getfieldval("N")
        if "M" in message.default_fields:  # D_KEYEXPR has no such flag
            record.key_mapping = Mapping.describe(message.getfieldval("M"))


def _qos(record: MessageRecord, exts: dict[type, Any]) -> None:
    qos = exts.get(ZenohExtQoS)
    if qos is None:
        record.priority, record.congestion, record.express = DEFAULT_PRIORITY, "drop", False
    else:
        values = qos.fields
        record.priority = int(values.get("priority", DEFAULT_PRIORITY))
        record.congestion, record.express = qos.congestion(), bool(values.get("express"))


def _network(kind: str, message: Any, exts: dict[type, Any]) -> MessageRecord:
    record = MessageRecord("network", kind)
    _qos(record, exts)
    _key(record, message)
    return record


def _timestamp(record: MessageRecord, data: Any) -> None:
    if "ts_time" in data.fields:
        record.timestamp_time = ntp64_to_ns(int(data.fields["ts_time"]))
        record.timestamp_id = (data.fields.get("ts_id") or "").lstrip("0") or None


def _source(record: MessageRecord, exts: dict[type, Any]) -> None:
    info = exts.get(ZenohExtSourceInfo)
    if info is not None and "sn" in info.fields:
        record.source_zid, record.source_eid = _zid(info.zid), int(info.entity)
        record.source_sn = int(info.sn)


def _zid(text: str | None) -> str | None:
    """An id as Zenoh prints it."""
    return (text.lstrip("0") or "0") if text else None


def _payload(record: MessageRecord, holder: Any, slices: list[Any] | None) -> None:
    """The payload of a PUT or a query body, which may be in pieces."""
    if slices is None:
        data = holder.fields.get("data")
        if data is not None:
            record.payload, record.payload_len = data, len(data)
        return
    record.payload_len = min(sliced_length(slices), MAX_LENGTH)
    if any(not isinstance(piece, ZenohSlice) for piece in slices):
        record.shm = True
    elif all("data" in piece.fields for piece in slices):
        record.payload = b"".join(piece.data for piece in slices)


# --- bodies -------------------------------------------------------------------------------------


def _data(record: MessageRecord, data: Packet) -> None:
    """Fill in the body of a PUSH, REQUEST or RESPONSE."""
    if isinstance(data, ZenohReply):
        inner = data.payload
        if isinstance(inner, (ZenohPut, ZenohDel)):
            _data(record, inner)
            record.body = f"reply_{record.body}"
        return
    exts = _exts(data) if isinstance(data, Faulty) else {}
    if isinstance(data, ZenohPut):
        record.body, record.encoding = "put", data.encoding
        shared = ZenohExtPutShm in exts
        _payload(record, data, data.fields.get("slices", []) if shared else None)
        attachment = exts.get(ZenohExtAttachment)
    elif isinstance(data, ZenohDel):
        record.body = "del"
        attachment = exts.get(ZenohExtDelAttachment)
    elif isinstance(data, ZenohQuery):
        record.body = "query"
        attachment = exts.get(ZenohExtQueryAttachment)
        record.consolidation = Consolidation.labels().get(int(data.fields.get("consolidation", 0)), "auto")
        record.parameters = data.fields.get("parameters")
        if ZenohExtQueryBody in exts or ZenohExtQueryBodySliced in exts:
            body = exts.get(ZenohExtQueryBody) or exts[ZenohExtQueryBodySliced]
            record.encoding = body.encoding
            sliced = isinstance(body, ZenohExtQueryBodySliced)
            _payload(record, body, body.fields.get("slices", []) if sliced else None)
    elif isinstance(data, ZenohErr):
        record.body, record.encoding = "err", data.encoding
        _payload(record, data, None)
        attachment = None
    else:
        return
    _timestamp(record, data)
    _source(record, exts)
    if attachment is not None:
        record.attachment = attachment.fields.get("data")


# --- messages -----------------------------------------------------------------------------------


def _push(message: ZenohPush) -> MessageRecord:
    record = _network("push", message, _exts(message))
    _data(record, message.payload)
    return record


def _request(message: ZenohRequest) -> MessageRecord:
    exts = _exts(message)
    record = _network("request", message, exts)
    record.request_id = _number(message, "request_id")
    target = exts.get(ZenohExtQueryTarget)
    record.target = QueryTarget.labels().get(int(target.fields.get("target", 0)) if target else 0)
    if ZenohExtTimeout in exts:
        record.timeout_ms = _number(exts[ZenohExtTimeout], "timeout")
    if ZenohExtBudget in exts:
        record.budget = _number(exts[ZenohExtBudget], "budget")
    _data(record, message.payload)
    return record


def _number(message: Any, name: str) -> int | None:
    value = message.fields.get(name)
    return None if value is None else int(value)


def _response(message: ZenohResponse) -> MessageRecord:
    exts = _exts(message)
    record = _network("response", message, exts)
    record.request_id = _number(message, "request_id")
    responder = exts.get(ZenohExtResponderId)
    if responder is not None and "entity" in responder.fields:
        record.responder_zid, record.responder_eid = _zid(responder.zid), int(responder.entity)
    _data(record, message.payload)
    return record


def _response_final(message: ZenohResponseFinal) -> MessageRecord:
    record = _network("response_final", message, _exts(message))
    record.request_id = _number(message, "request_id")
    return record


def _declare(message: ZenohDeclare) -> MessageRecord:
    record = _network("declare", message, _exts(message))
    record.interest_id = _number(message, "interest_id")
    body: Any = message.payload
    if not body or isinstance(body, Malformed):
        return record
    record.body = DeclareId(body.message_id()).label
    record.entity_id = _number(body, "expr_id" if "expr_id" in body.default_fields else "id")
    _key(record, body)
    withdrawn = _exts(body).get(ZenohExtWireExpr)
    if withdrawn is not None and (withdrawn.fields.get("scope") or withdrawn.fields.get("suffix")):
        _key(record, withdrawn)
    return record


_OPTIONS = {"K": "keyexprs", "S": "subscribers", "Q": "queryables", "T": "tokens", "A": "aggregate"}


def _interest(message: ZenohInterest) -> MessageRecord:
    record = _network("interest", message, _exts(message))
    record.interest_id = _number(message, "id")
    record.interest_mode = InterestMode.describe(message.mode)
    if message.mode != InterestMode.FINAL:
        record.interest_options = "|".join(text for flag, text in _OPTIONS.items() if message.fields.get(flag))
    return record


def _network_oam(message: ZenohNetworkOam) -> MessageRecord:
    record = _network("network_oam", message, _exts(message))
    for state in message.fields.get("states") or ():
        record.gossip += state.fields.get("locators") or ()
    return record


def _scout(message: ZenohScout) -> MessageRecord:
    roles = [bit.label for bit in WhatAmIBit if message.fields.get("what", 0) & bit]
    return MessageRecord("scouting", "scout", zid=_zid(message.fields.get("zid")), whatami="|".join(roles))


def _hello(message: ZenohHello) -> MessageRecord:
    record = MessageRecord("scouting", "hello", zid=_zid(message.fields.get("zid")))
    record.whatami = WhatAmI.labels().get(message.fields.get("whatami", -1))
    record.locators = message.fields.get("locators") or []
    return record


def _init(message: ZenohInit) -> MessageRecord:
    record = MessageRecord("transport", "init_ack" if message.A else "init_syn", zid=_zid(message.fields.get("zid")))
    record.whatami = WhatAmI.labels().get(message.fields.get("whatami", -1))
    exts, values = _exts(message), message.fields
    record.offer = Offer(
        lanes=ZenohExtLanes in exts or bool(exts.get(ZenohExtQoSLink) and _qos_link(exts[ZenohExtQoSLink])),
        compression=ZenohExtCompression in exts,
        low_latency=ZenohExtLowLatency in exts,
        multilink=ZenohExtInitSynMultiLink in exts or ZenohExtInitAckMultiLink in exts,
        shared_memory=any(e.eid == 0x2 for e in values.get("exts") or ()),
        auth=any(e.eid == 0x3 for e in values.get("exts") or ()),
        patch=int(exts[ZenohExtPatch].patch) if ZenohExtPatch in exts else 0,
        sn_resolution=values.get("sn_resolution", 2),
        batch_size=values.get("batch_size", 65535),
        region=exts[ZenohExtRegionName].region if ZenohExtRegionName in exts else None,
        version=values.get("version"),
    )
    return record


def _qos_link(ext: ZenohExtQoSLink) -> bool:
    return any(ext.fields.get(name) for name in ("lanes", "has_priorities", "has_reliability"))


def _open(message: ZenohOpen) -> MessageRecord:
    record = MessageRecord("transport", "open_ack" if message.A else "open_syn")
    lease = _number(message, "lease")
    record.offer = Offer(
        lease_ms=lease_in_ms(lease, bool(message.T)),
        initial_sn=_number(message, "initial_sn"),
    )
    return record


def _close(message: ZenohClose) -> MessageRecord:
    record = MessageRecord("transport", "close", whole_session=bool(message.S))
    if "reason" in message.fields:
        record.reason = CloseReason.describe(message.fields["reason"])
    return record


def _keep_alive(message: ZenohKeepAlive) -> MessageRecord:
    return MessageRecord("transport", "keep_alive")


def _lane(record: MessageRecord, message: Any, exts: dict[type, Any]) -> None:
    record.sn, record.reliable = _number(message, "sn"), bool(message.fields.get("R", 1))
    lane = exts.get(ZenohExtLane)
    record.priority = DEFAULT_PRIORITY if lane is None else int(lane.fields.get("priority", DEFAULT_PRIORITY))


def _frame(message: ZenohFrame) -> MessageRecord:
    record = MessageRecord("transport", "frame")
    _lane(record, message, _exts(message))
    return record


def _fragment(message: ZenohFragment) -> MessageRecord:
    exts = _exts(message)
    record = MessageRecord(
        "transport", "fragment", more=bool(message.M), first=ZenohExtFirst in exts, drop=ZenohExtDrop in exts
    )
    _lane(record, message, exts)
    record.slice = message.fields.get("data") or b""
    return record


def _join(message: ZenohJoin) -> MessageRecord:
    record = MessageRecord("transport", "join", zid=_zid(message.fields.get("zid")))
    record.whatami = WhatAmI.labels().get(message.fields.get("whatami", -1))
    exts, values = _exts(message), message.fields
    lanes = exts.get(ZenohExtJoinLanes)
    lease = _number(message, "lease")
    single = (int(values.get("next_sn_reliable", 0)), int(values.get("next_sn_best_effort", 0)))
    record.offer = Offer(
        lanes=lanes is not None,
        patch=int(exts[ZenohExtPatch].patch) if ZenohExtPatch in exts else 0,
        sn_resolution=values.get("sn_resolution", 2),
        batch_size=values.get("batch_size", 8192),
        lease_ms=lease_in_ms(lease, bool(message.T)),
        next_sns=tuple(int(n) for n in lanes.next_sns) if lanes is not None else single,
        version=values.get("version"),
    )
    return record


def _transport_oam(message: ZenohTransportOam) -> MessageRecord:
    return MessageRecord("transport", "transport_oam")


_READERS: dict[type, Any] = {
    ZenohScout: _scout,
    ZenohHello: _hello,
    ZenohInit: _init,
    ZenohOpen: _open,
    ZenohClose: _close,
    ZenohKeepAlive: _keep_alive,
    ZenohFrame: _frame,
    ZenohFragment: _fragment,
    ZenohJoin: _join,
    ZenohTransportOam: _transport_oam,
    ZenohPush: _push,
    ZenohRequest: _request,
    ZenohResponse: _response,
    ZenohResponseFinal: _response_final,
    ZenohDeclare: _declare,
    ZenohInterest: _interest,
    ZenohNetworkOam: _network_oam,
}


# --- batches ------------------------------------------------------------------------------------

_SIZED: dict[str, type[Any]] = {
    "plain": ZenohBatch,
    "compressed": ZenohCompressedBatch,
    "lowlatency": ZenohLowLatencyUnit,
}
_UNSIZED: dict[str, type[Any]] = {
    "plain": ZenohDatagram,
    "compressed": ZenohCompressedDatagram,
    "lowlatency": ZenohLowLatencyDatagram,
}


class ScapyCodec:
    """Reads with the Scapy classes; each message knows its record as ``context``."""

    def batch(self, data: bytes, framing: str, sized: bool) -> Batch:
        """Read a batch; ``sized``: it begins with its size, as on a stream."""
        packet = (_SIZED if sized else _UNSIZED)[framing](data)
        records: list[MessageRecord] = []
        for message in packet.carried():
            record = message.context = record_of(message)
            records.append(record)
            for inner in message.msgs if isinstance(message, ZenohFrame) else ():
                one = inner.context = record_of(inner)
                one.layer, one.sn, one.reliable = "network", record.sn, record.reliable
                records.append(one)
        bad = stopped(packet)
        fault = None if packet.own_fault is None else str(packet.own_fault.kind)
        compressed = framing == "compressed" and bool(packet.C)
        return Batch(records, bad, _undecoded(packet) if bad else 0, fault, compressed, packet)

    def scouting(self, data: bytes) -> Single | None:
        """Read a scouting message; None when no id matches."""
        return self._single(data, "scouting") if SCOUTING.pick(data) else None

    def network(self, data: bytes) -> Single:
        """Read a network message that was put together from FRAGMENTs."""
        single = self._single(data, "network")
        single.record.layer = "network"
        return single

    def _single(self, data: bytes, layer: str) -> Single:
        message, rest = parse(data, layer)
        record = message.context = record_of(message)
        return Single(record, len(rest), stopped(message), _undecoded(message), message)


def _undecoded(packet: Any) -> int:
    """Bytes from a fault on."""
    return sum(len(pkt.load) for pkt in _walk(packet) if isinstance(pkt, Malformed))


def _walk(pkt: Any) -> Iterator[Any]:
    while pkt:
        yield pkt
        for holder in pkt.packetfields:
            for inner in pkt.fields.get(holder.name) or ():
                yield from _walk(inner)
        pkt = pkt.payload
