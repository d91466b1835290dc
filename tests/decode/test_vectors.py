"""The vectors of another implementation through the generated decoder alone: its values and its verdicts.

What is expected comes from the rows of the vector files; Scapy's classes only lend their names to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import takewhile
from typing import Any

import pytest

import scapy_zenoh as z
from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.enums import Encoding
from scapy_zenoh.session.record import MessageRecord, Offer
from tests.conftest import vector_rows
from tests.vectors.mapping import Wanted, wanted
from tests.vectors.test_damaged import ROWS as DAMAGED
from tests.vectors.test_damaged import complaint, named
from tests.vectors.test_sessions import BATCHES, Batch
from tests.wireshark.test_vectors import AROUND, DECLARE, PUSH, Told

VALID = {row["id"]: row for row in vector_rows("zenoh-pico-valid.jsonl")}

Row = dict[str, Any]


# --- reading a row ------------------------------------------------------------------------------


def read(row: Row) -> tuple[list[MessageRecord], int]:
    """The message of a row, with those inside it, and how many bytes are left behind it.

    Bodies stand in the shortest message that may have them.
    """
    codec, data = PlainCodec(), bytes.fromhex(row["hex"])
    match row["layer"]:
        case "transport":
            batch = codec.batch(data, "plain", sized=False)
            inside = takewhile(lambda record: record.layer == "network", batch.records[1:])
            mine = [*batch.records[:1], *inside]
            return mine, len(batch.records) - len(mine)
        case "scouting":
            single = codec.scouting(data)
            return ([], 0) if single is None else ([single.record], single.rest)
        case "declare":
            data = DECLARE + data
        case "data":
            data = AROUND.get(data[0] & 0x1F if data else 0, PUSH) + data
    message = codec.network(data)
    return [message.record], message.rest


# --- what a row says, in the words of records ---------------------------------------------------

ROLES = ("router", "peer", "client")
MAPPINGS = ("receiver", "sender")
TARGETS = ("best_matching", "all", "all_complete")
CONSOLIDATIONS = ("auto", "none", "monotonic", "latest")
MODES = ("final", "current", "future", "current_future")
REASONS = ("generic", "unsupported", "invalid", "max_sessions", "max_links", "expired", "unresponsive",
           "connection_to_self")  # fmt: skip
OPTIONS = {"K": "keyexprs", "S": "subscribers", "Q": "queryables", "T": "tokens", "A": "aggregate"}
DECLARATIONS = {
    z.ZenohDeclareKeyexpr: "declare_keyexpr",
    z.ZenohUndeclareKeyexpr: "undeclare_keyexpr",
    z.ZenohDeclareSubscriber: "declare_subscriber",
    z.ZenohUndeclareSubscriber: "undeclare_subscriber",
    z.ZenohDeclareQueryable: "declare_queryable",
    z.ZenohUndeclareQueryable: "undeclare_queryable",
    z.ZenohDeclareToken: "declare_token",
    z.ZenohUndeclareToken: "undeclare_token",
    z.ZenohDeclareFinal: "declare_final",
}
CUSTOM = 0xFFFF


def named_or_number(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def ext_of(want: Wanted, *classes: type[Any]) -> dict[str, Any] | None:
    """The values of an extension, None where the row has none of these."""
    return next((ext.values for ext in want.exts if ext.cls in classes), None)


def encoding_text(values: dict[str, Any]) -> str:
    """An encoding as Zenoh prints it; without one it is that of plain bytes."""
    number, schema = values["encoding_id"] or 0, values["schema"]
    if number == CUSTOM and schema is not None:
        return str(schema)
    name = Encoding.labels().get(number, f"unknown({number})")
    return name if schema is None else f"{name};{schema}"


def ns(ntp: int | None) -> int | None:
    """An NTP64 time as nanoseconds: seconds and a binary fraction."""
    return None if ntp is None else (ntp >> 32) * 10**9 + ((ntp & 0xFFFFFFFF) * 10**9 >> 32)


def key_of(values: dict[str, Any]) -> dict[str, Any]:
    """A wire expression."""
    if values.get("scope") is None:
        return {}
    mapping = None if values.get("M") is None else MAPPINGS[values["M"]]
    return {"key_scope": values["scope"], "key_suffix": values["suffix"], "key_mapping": mapping}


def quality(want: Wanted) -> dict[str, Any]:
    """Priority, congestion control and express of a network message."""
    qos = ext_of(want, z.ZenohExtQoS) or {"priority": 5, "block": 0, "block_first": 0, "express": 0}
    congestion = "block" if qos["block"] else "block_first" if qos["block_first"] else "drop"
    return {"priority": qos["priority"], "congestion": congestion, "express": bool(qos["express"])}


def payload_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"encoding": encoding_text(values), "payload": values["data"], "payload_len": len(values["data"])}


def about_data(want: Wanted) -> dict[str, Any]:
    """PUT, DEL, QUERY, REPLY and ERR."""
    if want.cls is z.ZenohReply:
        assert want.body is not None
        inner = about_data(want.body)
        return inner | {"body": f"reply_{inner['body']}"}
    found: dict[str, Any] = {}
    if want.values.get("ts_time") is not None:
        found |= {"timestamp_time": ns(want.values["ts_time"]), "timestamp_id": want.values["ts_id"]}
    source = ext_of(want, z.ZenohExtSourceInfo)
    if source is not None:
        found |= {"source_zid": source["zid"], "source_eid": source["entity"], "source_sn": source["sn"]}
    attached = ext_of(want, z.ZenohExtAttachment, z.ZenohExtDelAttachment, z.ZenohExtQueryAttachment)
    if attached is not None:
        found["attachment"] = attached["data"]
    if want.cls is z.ZenohDel:
        return found | {"body": "del"}
    if want.cls is z.ZenohQuery:
        number = want.values["consolidation"] or 0
        found["consolidation"] = CONSOLIDATIONS[number] if number < len(CONSOLIDATIONS) else "auto"
        found["parameters"] = want.values["parameters"]
        body = ext_of(want, z.ZenohExtQueryBody)
        return found | {"body": "query"} | ({} if body is None else payload_of(body))
    return found | {"body": "put" if want.cls is z.ZenohPut else "err"} | payload_of(want.values)


def about_declaration(want: Wanted) -> dict[str, Any]:
    """What a DECLARE carries."""
    found = {"body": DECLARATIONS[want.cls], "entity_id": want.values.get("expr_id", want.values.get("id"))}
    withdrawn = ext_of(want, z.ZenohExtWireExpr)
    if withdrawn is not None and (withdrawn["scope"] or withdrawn["suffix"]):
        return found | key_of(withdrawn)
    return found | key_of(want.values)


def _message(kind: str, want: Wanted, *more: str) -> MessageRecord:
    """A network message with a key and a body."""
    told = quality(want) | key_of(want.values) | {name: want.values[name] for name in more}
    return MessageRecord("network", kind, **told, **({} if want.body is None else about_data(want.body)))


def _request(want: Wanted) -> MessageRecord:
    record = _message("request", want, "request_id")
    record.target = TARGETS[(ext_of(want, z.ZenohExtQueryTarget) or {"target": 0})["target"]]
    record.timeout_ms = (ext_of(want, z.ZenohExtTimeout) or {"timeout": None})["timeout"]
    record.budget = (ext_of(want, z.ZenohExtBudget) or {"budget": None})["budget"]
    return record


def _response(want: Wanted) -> MessageRecord:
    record = _message("response", want, "request_id")
    responder = ext_of(want, z.ZenohExtResponderId)
    if responder is not None:
        record.responder_zid, record.responder_eid = responder["zid"], responder["entity"]
    return record


def _declare(want: Wanted) -> MessageRecord:
    assert want.body is not None
    told = quality(want) | about_declaration(want.body)
    return MessageRecord("network", "declare", interest_id=want.values["interest_id"], **told)


def _interest(want: Wanted) -> MessageRecord:
    mode, told = want.values["mode"], quality(want) | key_of(want.values)
    record = MessageRecord("network", "interest", interest_id=want.values["id"], interest_mode=MODES[mode], **told)
    if mode:
        record.interest_options = "|".join(text for flag, text in OPTIONS.items() if want.values[flag])
    return record


def _patch(want: Wanted) -> int:
    return int((ext_of(want, z.ZenohExtPatch) or {"patch": 0})["patch"])


def _sizes(want: Wanted, batch_size: int) -> dict[str, Any]:
    resolution, size = want.values["sn_resolution"], want.values["batch_size"]
    return {
        "sn_resolution": 2 if resolution is None else resolution,
        "batch_size": batch_size if size is None else size,
    }


def _lease_ms(want: Wanted) -> int:
    return int(want.values["lease"]) * (1000 if want.values["T"] else 1)


def _node(kind: str, want: Wanted, layer: str = "transport") -> MessageRecord:
    return MessageRecord(layer, kind, zid=want.values["zid"], whatami=ROLES[want.values["whatami"]])


def _scout(want: Wanted) -> MessageRecord:
    roles = "|".join(role for bit, role in enumerate(ROLES) if want.values["what"] >> bit & 1)
    return MessageRecord("scouting", "scout", zid=want.values["zid"], whatami=roles)


def _hello(want: Wanted) -> MessageRecord:
    record = _node("hello", want, "scouting")
    record.locators = want.values["locators"] or []
    return record


def _init(want: Wanted) -> MessageRecord:
    record = _node("init_ack" if want.derived["A"] else "init_syn", want)
    record.offer = Offer(patch=_patch(want), version=want.values["version"], **_sizes(want, 65535))
    return record


def _open(want: Wanted) -> MessageRecord:
    offer = Offer(lease_ms=_lease_ms(want), initial_sn=want.values["initial_sn"])
    return MessageRecord("transport", "open_ack" if want.derived["A"] else "open_syn", offer=offer)


def _close(want: Wanted) -> MessageRecord:
    reason = named_or_number(REASONS, want.values["reason"])
    return MessageRecord("transport", "close", reason=reason, whole_session=bool(want.values["S"]))


def _frame(want: Wanted, kind: str = "frame") -> MessageRecord:
    return MessageRecord("transport", kind, sn=want.values["sn"], reliable=bool(want.values["R"]), priority=5)


def _fragment(want: Wanted) -> MessageRecord:
    record = _frame(want, "fragment")
    record.more, record.slice = bool(want.values["M"]), want.values["data"]
    record.first = ext_of(want, z.ZenohExtFirst) is not None
    record.drop = ext_of(want, z.ZenohExtDrop) is not None
    return record


def _join(want: Wanted) -> MessageRecord:
    record, lanes = _node("join", want), ext_of(want, z.ZenohExtJoinLanes)
    single = (want.values["next_sn_reliable"], want.values["next_sn_best_effort"])
    record.offer = Offer(
        lanes=lanes is not None,
        next_sns=single if lanes is None else tuple(lanes["next_sns"]),
        lease_ms=_lease_ms(want),
        patch=_patch(want),
        version=want.values["version"],
        **_sizes(want, 8192),
    )
    return record


RECORDS: dict[type[Any], Callable[[Wanted], MessageRecord]] = {
    z.ZenohScout: _scout,
    z.ZenohHello: _hello,
    z.ZenohInit: _init,
    z.ZenohOpen: _open,
    z.ZenohClose: _close,
    z.ZenohKeepAlive: lambda want: MessageRecord("transport", "keep_alive"),
    z.ZenohFrame: _frame,
    z.ZenohFragment: _fragment,
    z.ZenohJoin: _join,
    z.ZenohPush: lambda want: _message("push", want),
    z.ZenohRequest: _request,
    z.ZenohResponse: _response,
    z.ZenohResponseFinal: lambda want: _message("response_final", want, "request_id"),
    z.ZenohDeclare: _declare,
    z.ZenohInterest: _interest,
    z.ZenohNetworkOam: lambda want: MessageRecord("network", "network_oam", **quality(want)),
}

#: The empty key of the sender, as it stands around bodies.
NO_KEY = {"scope": 0, "suffix": None, "M": 1}


def around(row: Row, want: Wanted) -> Wanted:
    """What a row describes, with what ``read`` puts around it."""
    if row["layer"] == "declare":
        return Wanted(z.ZenohDeclare, {"interest_id": None}, body=want)
    if row["layer"] != "data":
        return want
    if want.cls in (z.ZenohPut, z.ZenohDel):
        return Wanted(z.ZenohPush, NO_KEY, body=want)
    host = z.ZenohRequest if want.cls is z.ZenohQuery else z.ZenohResponse
    return Wanted(host, {"request_id": 1} | NO_KEY, body=want)


def expected(row: Row) -> list[MessageRecord]:
    """The records of a row: its message, and those inside it."""
    want = around(row, wanted(row))
    first = RECORDS[want.cls](want)
    inside = [RECORDS[one.cls](one) for one in want.msgs or ()]
    for record in inside:
        record.sn, record.reliable = first.sn, first.reliable
    return [first, *inside]


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VALID)
def test_values_are_those_that_went_in(name: str) -> None:
    row = VALID[name]
    records, rest = read(row)
    assert rest == 0
    assert [record.kind for record in records] == [record.kind for record in expected(row)]
    for record, want in zip(records, expected(row), strict=True):
        for field in fields(MessageRecord):
            found, said = getattr(record, field.name), getattr(want, field.name)
            assert found == said and type(found) is type(said), field.name


def test_rows_hold_what_records_can_tell() -> None:
    """Nearly every value of a record is somewhere in the vectors, so that none goes unchecked for good."""
    told = {
        field.name
        for row in VALID.values()
        for record in expected(row)
        for field in fields(MessageRecord)
        if getattr(record, field.name) != getattr(MessageRecord("", ""), field.name)
    }
    of_sessions = {"link", "session", "src_zid", "dst_zid", "key", "fragments", "compressed", "lowlatency", "batch",
                   "msg", "whole"}  # fmt: skip
    of_faults = {"fault", "fault_offset", "key_whole"}
    elsewhere = {"shm", "gossip"}  # zenoh-pico writes neither shared memory nor link states
    assert told == {field.name for field in fields(MessageRecord)} - of_sessions - of_faults - elsewhere


# --- verdicts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DAMAGED)
def test_verdict_is_that_of_the_nodes(name: str) -> None:
    records, _ = read(DAMAGED[name])
    good = bool(records) and not any(record.fault for record in records)
    case = named(name)
    told = Told(case.row, case.data, case.packet, case.rest, good)
    assert told.good == case.good, "Scapy says the opposite"  # whose faults the rules look at
    assert complaint(told) is None


# --- recorded sessions --------------------------------------------------------------------------

FRAMINGS = {z.ZenohDatagram: "plain", z.ZenohCompressedDatagram: "compressed", z.ZenohLowLatencyDatagram: "lowlatency"}
BODIES = {text: text.replace("undeclare", "u").replace("declare", "d").upper() for text in DECLARATIONS.values()}


def names_of(records: list[MessageRecord]) -> list[str]:
    """``FRAME[PUSH/PUT, INTEREST]``: messages as the sessions write them."""
    found: list[tuple[str, list[str]]] = []
    for record in records:
        name = "OAM" if record.kind.endswith("_oam") else record.kind.upper()
        if record.body is not None:
            name += "/" + BODIES.get(record.body, record.body.upper().replace("REPLY_", "REPLY/"))
        if record.layer == "network" and found and found[-1][0] == "FRAME":
            found[-1][1].append(name)
        else:
            found.append((name, []))
    return [f"FRAME[{', '.join(inside)}]" if name == "FRAME" else name for name, inside in found]


@pytest.mark.parametrize("batch", BATCHES, ids=[batch.place for batch in BATCHES])
def test_batch_of_a_session_holds_the_messages_that_were_sent(batch: Batch) -> None:
    for sized in (False, True):
        prefix = len(batch.data).to_bytes(4 if FRAMINGS[batch.layer] == "lowlatency" else 2, "little")
        result = PlainCodec().batch(prefix + batch.data if sized else batch.data, FRAMINGS[batch.layer], sized)
        assert (result.stopped, result.undecoded, result.fault) == (False, 0, None)
        assert [record.fault for record in result.records if record.fault] == []
        assert names_of(result.records) == batch.messages


def test_compressed_batches_are_told_from_plain_ones_with_a_header() -> None:
    for batch in BATCHES:
        result = PlainCodec().batch(batch.data, FRAMINGS[batch.layer], sized=False)
        assert result.compressed == (batch.plain is not None and batch.data[1:] != batch.plain)
