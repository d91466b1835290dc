"""Which fields of the messages a row needs: each has a *slot*, where the columnar decoder leaves it.

A slot holds a number, or the place of bytes, texts and lists (a *span*). Field names are those of the
classes; the generator refuses a name that no class has.
"""

from __future__ import annotations

_KEYED = (
    "ZenohPush", "ZenohRequest", "ZenohResponse", "ZenohInterest", "ZenohDeclareKeyexpr", "ZenohDeclareSubscriber",
    "ZenohDeclareQueryable", "ZenohDeclareToken", "ZenohExtWireExpr",
)  # fmt: skip
_ENTITIES = (
    "ZenohDeclareSubscriber", "ZenohUndeclareSubscriber", "ZenohDeclareQueryable", "ZenohUndeclareQueryable",
    "ZenohDeclareToken", "ZenohUndeclareToken",
)  # fmt: skip
_NODES = ("ZenohInit", "ZenohJoin", "ZenohHello")


def _of(field: str, *records: str) -> tuple[str, ...]:
    return tuple(f"{record}.{field}" for record in records)


#: Bytes, texts, ids and lists: name of the slot -> the fields that fill it.
SPANS: dict[str, tuple[str, ...]] = {
    "suffix": _of("suffix", *_KEYED),
    "data": _of("data", "ZenohPut", "ZenohErr", "ZenohExtQueryBody", "ZenohFragment"),
    "schema": _of("schema", "ZenohPut", "ZenohErr", "ZenohExtQueryBody"),
    "ts_id": _of("ts_id", "ZenohPut", "ZenohDel"),
    "source_zid": ("ZenohExtSourceInfo.zid",),
    "attachment": _of("data", "ZenohExtAttachment", "ZenohExtDelAttachment", "ZenohExtQueryAttachment"),
    "parameters": ("ZenohQuery.parameters",),
    "responder_zid": ("ZenohExtResponderId.zid",),
    "zid": _of("zid", "ZenohScout", *_NODES),
    "region": ("ZenohExtRegionName.region",),
    "locators": _of("locators", "ZenohHello", "ZenohLinkState"),
    "states": ("ZenohNetworkOam.states",),
    "slices": _of("slices", "ZenohPut", "ZenohExtQueryBodySliced"),
    "sliced_schema": ("ZenohExtQueryBodySliced.schema",),
    "piece": ("ZenohSlice.data",),
    "next_sns": ("ZenohExtJoinLanes.next_sns",),
}

#: Numbers: name of the slot -> the fields that fill it.
NUMBERS: dict[str, tuple[str, ...]] = {
    "scope": _of("scope", *_KEYED),
    "mapping": _of("M", *(name for name in _KEYED if name != "ZenohDeclareKeyexpr")),
    "named": _of("N", *_KEYED),
    "sn": _of("sn", "ZenohFrame", "ZenohFragment"),
    "reliable": _of("R", "ZenohFrame", "ZenohFragment"),
    "priority": _of("priority", "ZenohExtQoS", "ZenohExtLane"),
    "block": ("ZenohExtQoS.block",),
    "express": ("ZenohExtQoS.express",),
    "block_first": ("ZenohExtQoS.block_first",),
    "entity_id": (*_of("id", *_ENTITIES), "ZenohDeclareKeyexpr.expr_id", "ZenohUndeclareKeyexpr.expr_id"),
    "request_id": _of("request_id", "ZenohRequest", "ZenohResponse", "ZenohResponseFinal"),
    "interest_id": ("ZenohDeclare.interest_id", "ZenohInterest.id"),
    "encoding_id": _of("encoding_id", "ZenohPut", "ZenohErr", "ZenohExtQueryBody"),
    "ts_time": _of("ts_time", "ZenohPut", "ZenohDel"),
    "source_eid": ("ZenohExtSourceInfo.entity",),
    "source_sn": ("ZenohExtSourceInfo.sn",),
    "target": ("ZenohExtQueryTarget.target",),
    "consolidation": ("ZenohQuery.consolidation",),
    "timeout": ("ZenohExtTimeout.timeout",),
    "budget": ("ZenohExtBudget.budget",),
    "responder_eid": ("ZenohExtResponderId.entity",),
    "more": ("ZenohFragment.M",),
    "mode": ("ZenohInterest.mode",),
    "keyexprs": ("ZenohInterest.K",),
    "subscribers": ("ZenohInterest.S",),
    "queryables": ("ZenohInterest.Q",),
    "tokens": ("ZenohInterest.T",),
    "aggregate": ("ZenohInterest.A",),
    "reason": ("ZenohClose.reason",),
    "whole_session": ("ZenohClose.S",),
    "version": _of("version", "ZenohInit", "ZenohJoin"),
    "whatami": _of("whatami", *_NODES),
    "what": ("ZenohScout.what",),
    "answer": _of("A", "ZenohInit", "ZenohOpen"),
    "sn_resolution": _of("sn_resolution", "ZenohInit", "ZenohJoin"),
    "batch_size": _of("batch_size", "ZenohInit", "ZenohJoin"),
    "patch": ("ZenohExtPatch.patch",),
    "link_lanes": ("ZenohExtQoSLink.lanes",),
    "link_priorities": ("ZenohExtQoSLink.has_priorities",),
    "link_reliability": ("ZenohExtQoSLink.has_reliability",),
    "lease": _of("lease", "ZenohOpen", "ZenohJoin"),
    "lease_seconds": _of("T", "ZenohOpen", "ZenohJoin"),
    "initial_sn": ("ZenohOpen.initial_sn",),
    "next_reliable": ("ZenohJoin.next_sn_reliable",),
    "next_best_effort": ("ZenohJoin.next_sn_best_effort",),
    "sliced_encoding_id": ("ZenohExtQueryBodySliced.encoding_id",),
    "shm_length": _of("data_len", "ZenohSliceShm", "ZenohSliceShmOld"),
}  # fmt: skip
