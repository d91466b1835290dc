"""What a row of the valid vectors says, in the words of the packet classes.

``wanted`` turns the ``fields`` of a row into a tree of classes, field values and extensions. The same
tree is compared with what was read from the bytes (``differences``) and built into a packet (``build``).
Its values come from the row alone; the numbers of flags and roles are those of the specification.
A key of ``fields`` that is not named here is an error, so that nothing of a row goes unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy.packet import NoPayload

import scapy_zenoh as z

WHATAMI = {"router": 0, "peer": 1, "client": 2}
MAPPING = {"receiver": 0, "sender": 1}
LEASE_IN_SECONDS = {"s": 1, "ms": 0}
#: The words of zenoh-pico for the number of a consolidation; other nodes number them from auto = 0.
PICO_CONSOLIDATION = {"none": 0, "monotonic": 1, "latest": 2}
PICO_QUERY_ORDER = "query_extension_order"


@dataclass
class Wanted:
    """A packet as a row describes it.

    ``values`` are set when it is built, and None means "not on the wire"; ``derived`` are flags that must
    follow from them. Extensions are in the order of the wire.
    """

    cls: type[Any]
    values: dict[str, Any] = field(default_factory=dict)
    derived: dict[str, int] = field(default_factory=dict)
    exts: list[Wanted] = field(default_factory=list)
    msgs: list[Wanted] | None = None
    body: Wanted | None = None


class Keys(dict[str, Any]):
    """The keys of a row, each to be taken once."""

    def take(self, name: str) -> Any:
        """The value of a key that must be there."""
        return self.pop(name)

    def take_known(self, *names: str) -> dict[str, Any]:
        """Values that have the same name in the packet."""
        return {name: self.pop(name) for name in names}

    def inside(self, name: str, mapper: Callable[[Keys], Any]) -> Any:
        """What ``mapper`` makes of the object under a key, None where it is null or absent."""
        value = self.pop(name, None)
        return None if value is None else whole(value, mapper)


def whole(fields: dict[str, Any], mapper: Callable[[Keys], Any]) -> Any:
    """Map an object and see that every key was used."""
    keys = Keys(fields)
    result = mapper(keys)
    if keys:
        raise KeyError(f"nothing in the mapping knows {sorted(keys)}")
    return result


def wanted(row: dict[str, Any]) -> Wanted:
    """The packet that a row describes."""
    mapper = _Mapper(body_before_source=PICO_QUERY_ORDER in row["quirks"])
    kind = row["kind"].partition(":")[0]
    if row["layer"] == "declare":
        return whole(row["fields"], mapper.declaration)
    if row["layer"] == "data":
        return whole(row["fields"], mapper.data)
    if row["layer"] == "network":
        named = row["fields"]["message"]
        assert named == kind, f"row of kind {kind} holds a {named}"
        return whole(row["fields"], mapper.network)
    return whole(row["fields"], TRANSPORT_AND_SCOUTING.get(kind) or mapper.frame)


# --- values -------------------------------------------------------------------------------------


def zid_text(wire: str | None) -> str | None:
    """The hexadecimal of an id in wire order, as Zenoh prints it: the little-endian number."""
    return None if wire is None else f"{int.from_bytes(bytes.fromhex(wire), 'little'):x}"


def unhex(text: str | None) -> bytes | None:
    """Bytes given in hexadecimal."""
    return None if text is None else bytes.fromhex(text)


def _node(keys: Keys) -> dict[str, Any]:
    return {
        "version": keys.take("version"),
        "whatami": WHATAMI[keys.take("whatami")],
        "zid": zid_text(keys.take("zid")),
    }


def _sizes(keys: Keys) -> tuple[dict[str, Any], dict[str, int]]:
    resolution = keys.inside("resolution", lambda k: (k.take("frame_sn"), k.take("request_id"))) or (None, None)
    values = dict(zip(("sn_resolution", "request_resolution"), resolution, strict=True))
    return values | keys.take_known("batch_size"), {"S": int(keys.take("size_params"))}


def _lease(keys: Keys) -> dict[str, Any]:
    return {"lease": keys.take("lease"), "T": LEASE_IN_SECONDS[keys.take("lease_unit")]}


def _timestamp(keys: Keys) -> dict[str, Any]:
    stamp = keys.inside("timestamp", lambda k: {"ts_time": k.take("time"), "ts_id": zid_text(k.take("id"))})
    return stamp or {"ts_time": None, "ts_id": None}


def _encoding(keys: Keys) -> dict[str, Any]:
    known = keys.inside("encoding", lambda k: {"encoding_id": k.take("id"), "schema": k.take("schema")})
    return known or {"encoding_id": None, "schema": None}


def _key(keys: Keys) -> dict[str, Any]:
    """A wire expression; that of a declared key expression has no mapping."""
    mapping = {"M": MAPPING[keys.take("mapping")]} if "mapping" in keys else {}
    return keys.take_known("scope", "suffix") | mapping


def _flag_n(key: dict[str, Any] | None) -> dict[str, int]:
    return {"N": int(key is not None and key["suffix"] is not None)}


# --- extensions ---------------------------------------------------------------------------------


def _numbered(cls: type[Any], name: str, value: int | None) -> list[Wanted]:
    return [] if value is None else [Wanted(cls, {name: value})]


def _marked(cls: type[Any], set_: bool) -> list[Wanted]:
    return [Wanted(cls)] if set_ else []


def _attached(cls: type[Any], keys: Keys) -> list[Wanted]:
    data = unhex(keys.pop("attachment", None))
    return [] if data is None else [Wanted(cls, {"data": data})]


def _qos(keys: Keys) -> Wanted:
    whole_value = keys.take("value")
    low = {
        "priority": keys.take("priority"),
        "block": int(keys.take("nodrop")),
        "express": int(keys.take("express")),
    }
    stated = low["priority"] | low["block"] << 3 | low["express"] << 4
    assert whole_value & 0x1F == stated, f"QoS {whole_value} is said to be {low}"
    return Wanted(z.ZenohExtQoS, low | {"block_first": whole_value >> 5 & 1, "reserved": whole_value >> 6})


def _network_exts(keys: Keys) -> list[Wanted]:
    """QoS and timestamp, which most network messages have first."""
    stamp = keys.inside("ext_timestamp", lambda k: {"ts_time": k.take("time"), "ts_id": zid_text(k.take("id"))})
    return [*_present(keys.inside("qos", _qos)), *([] if stamp is None else [Wanted(z.ZenohExtTimestamp, stamp)])]


def _source_info(keys: Keys) -> list[Wanted]:
    return _present(keys.inside("source_info", lambda k: Wanted(z.ZenohExtSourceInfo, _entity(k) | k.take_known("sn"))))


def _entity(keys: Keys) -> dict[str, Any]:
    return {"zid": zid_text(keys.take("zid")), "entity": keys.take("eid")}


def _query_body(keys: Keys) -> Wanted:
    return Wanted(z.ZenohExtQueryBody, _encoding(keys) | {"data": unhex(keys.take("payload"))})


def _withdrawn_key(keys: Keys) -> Wanted:
    key = _key(keys)
    return Wanted(z.ZenohExtWireExpr, key, _flag_n(key))


def _queryable_info(keys: Keys) -> Wanted:
    info = {"complete": int(keys.take("complete"))} | keys.take_known("distance")
    return Wanted(z.ZenohExtQueryableInfo, info)


def _present(item: Wanted | None) -> list[Wanted]:
    return [] if item is None else [item]


# --- scouting and transport ---------------------------------------------------------------------


def _scout(keys: Keys) -> Wanted:
    zid = zid_text(keys.take("zid"))
    return Wanted(z.ZenohScout, keys.take_known("version", "what") | {"zid": zid}, {"I": int(zid is not None)})


def _hello(keys: Keys) -> Wanted:
    locators = keys.take("locators")
    return Wanted(z.ZenohHello, _node(keys) | {"locators": locators}, {"L": int(bool(locators))})


def _init(keys: Keys) -> Wanted:
    sizes, size_flag = _sizes(keys)
    return Wanted(
        z.ZenohInit,
        _node(keys) | sizes | {"cookie": unhex(keys.pop("cookie", None))},
        {"A": int(keys.take("ack"))} | size_flag,
        _numbered(z.ZenohExtPatch, "patch", keys.take("patch")),
    )


def _open(keys: Keys) -> Wanted:
    values = _lease(keys) | keys.take_known("initial_sn") | {"cookie": unhex(keys.pop("cookie", None))}
    return Wanted(z.ZenohOpen, values, {"A": int(keys.take("ack"))})


def _close(keys: Keys) -> Wanted:
    return Wanted(z.ZenohClose, {"S": int(keys.take("session"))} | keys.take_known("reason"))


def _keep_alive(keys: Keys) -> Wanted:
    return Wanted(z.ZenohKeepAlive)


def _fragment(keys: Keys) -> Wanted:
    return Wanted(
        z.ZenohFragment,
        {"R": int(keys.take("reliable")), "M": int(keys.take("more"))}
        | keys.take_known("sn")
        | {"data": unhex(keys.take("payload"))},
        exts=[*_marked(z.ZenohExtFirst, keys.take("first")), *_marked(z.ZenohExtDrop, keys.take("drop"))],
    )


def _sn_pair(keys: Keys) -> list[int]:
    return [keys.take("reliable"), keys.take("best_effort")]


def _join(keys: Keys) -> Wanted:
    sizes, size_flag = _sizes(keys)
    next_sn = dict(zip(("next_sn_reliable", "next_sn_best_effort"), keys.inside("next_sn", _sn_pair), strict=True))
    lanes = keys.take("qos_sn")
    sns = None if lanes is None else [sn for pair in lanes for sn in whole(pair, _sn_pair)]
    return Wanted(
        z.ZenohJoin,
        _node(keys) | sizes | _lease(keys) | next_sn,
        size_flag,
        [
            *([] if sns is None else [Wanted(z.ZenohExtJoinLanes, {"next_sns": sns})]),
            *_numbered(z.ZenohExtPatch, "patch", keys.take("patch")),
        ],
    )


TRANSPORT_AND_SCOUTING: dict[str, Callable[[Keys], Wanted]] = {
    "scout": _scout,
    "hello": _hello,
    "init_syn": _init,
    "init_ack": _init,
    "open_syn": _open,
    "open_ack": _open,
    "close": _close,
    "keep_alive": _keep_alive,
    "fragment": _fragment,
    "join": _join,
}


# --- network, declarations, data ----------------------------------------------------------------

DECLARATIONS: dict[str, tuple[type[Any], dict[str, str]]] = {
    "keyexpr": (z.ZenohDeclareKeyexpr, {"expr_id": "expr_id"}),
    "undeclare_keyexpr": (z.ZenohUndeclareKeyexpr, {"expr_id": "expr_id"}),
    "subscriber": (z.ZenohDeclareSubscriber, {"subscriber_id": "id"}),
    "undeclare_subscriber": (z.ZenohUndeclareSubscriber, {"subscriber_id": "id"}),
    "queryable": (z.ZenohDeclareQueryable, {"queryable_id": "id"}),
    "undeclare_queryable": (z.ZenohUndeclareQueryable, {"queryable_id": "id"}),
    "token": (z.ZenohDeclareToken, {"token_id": "id"}),
    "undeclare_token": (z.ZenohUndeclareToken, {"token_id": "id"}),
    "final": (z.ZenohDeclareFinal, {}),
}

INTEREST_OPTIONS = {"keyexprs": "K", "subscribers": "S", "queryables": "Q", "tokens": "T", "aggregate": "A"}


class _Mapper:
    """The messages that can hold a QUERY, the one message whose extensions come in two orders."""

    def __init__(self, body_before_source: bool) -> None:
        self.body_before_source = body_before_source

    def frame(self, keys: Keys) -> Wanted:
        values = {"R": int(keys.take("reliable"))} | keys.take_known("sn")
        return Wanted(z.ZenohFrame, values, msgs=[whole(m, self.network) for m in keys.take("messages")])

    def network(self, keys: Keys) -> Wanted:
        return {
            "push": self._push,
            "request": self._request,
            "response": self._response,
            "response_final": self._response_final,
            "interest": self._interest,
            "interest_final": self._interest,
            "declare": self._declare,
            "oam": self._oam,
        }[keys.take("message")](keys)

    def _push(self, keys: Keys) -> Wanted:
        key = keys.inside("key", _key)
        return Wanted(z.ZenohPush, key, _flag_n(key), _network_exts(keys), body=keys.inside("payload", self.data))

    def _request(self, keys: Keys) -> Wanted:
        key = keys.inside("key", _key)
        exts = [
            *_network_exts(keys),
            *_numbered(z.ZenohExtQueryTarget, "target", keys.take("target")),
            *_numbered(z.ZenohExtBudget, "budget", keys.take("budget")),
            *_numbered(z.ZenohExtTimeout, "timeout", keys.take("timeout_ms")),
        ]
        values = keys.take_known("request_id") | key
        return Wanted(z.ZenohRequest, values, _flag_n(key), exts, body=keys.inside("payload", self.data))

    def _response(self, keys: Keys) -> Wanted:
        key = keys.inside("key", _key)
        responder = keys.inside("responder", lambda k: Wanted(z.ZenohExtResponderId, _entity(k)))
        exts = [*_network_exts(keys), *_present(responder)]
        values = keys.take_known("request_id") | key
        return Wanted(z.ZenohResponse, values, _flag_n(key), exts, body=keys.inside("payload", self.data))

    def _response_final(self, keys: Keys) -> Wanted:
        return Wanted(z.ZenohResponseFinal, keys.take_known("request_id"), exts=_network_exts(keys))

    def _interest(self, keys: Keys) -> Wanted:
        mode = int(keys.take("current")) | int(keys.take("future")) << 1
        values: dict[str, Any] = {"id": keys.take("interest_id"), "mode": mode}
        derived: dict[str, int] = {}
        if mode:
            key = keys.inside("key", _key)
            # Without a key the bit of the mapping says nothing and is written 0.
            values |= key or {"scope": None, "suffix": None, "M": 0}
            options = keys.take("options")
            derived = {"R": int(options["restricted"])} | _flag_n(key)
            values |= {INTEREST_OPTIONS[name]: int(on) for name, on in options.items() if name != "restricted"}
        return Wanted(z.ZenohInterest, values, derived, _network_exts(keys))

    def _declare(self, keys: Keys) -> Wanted:
        values = keys.take_known("interest_id")
        derived = {"I": int(values["interest_id"] is not None)}
        exts = _network_exts(keys)
        return Wanted(z.ZenohDeclare, values, derived, exts, body=self.declaration(keys))

    def declaration(self, keys: Keys) -> Wanted:
        cls, names = DECLARATIONS[keys.take("declaration")]
        values = {ours: keys.take(theirs) for theirs, ours in names.items()}
        derived: dict[str, int] = {}
        if "key" in keys:
            key = keys.inside("key", _key)
            values |= key
            derived = _flag_n(key)
        exts = [
            *_present(keys.inside("key_ext", _withdrawn_key)),
            *_present(keys.inside("queryable_info", _queryable_info)),
        ]
        return Wanted(cls, values, derived, exts)

    def _oam(self, keys: Keys) -> Wanted:
        values = {"id": keys.take("oam_id")}
        exts = _network_exts(keys)
        encoding, body = keys.inside("body", lambda k: (k.take("encoding"), k.pop("value", None)))
        values |= {
            "unit": {"value": None, "data": None},
            "z64": {"value": body, "data": None},
            "zbuf": {"value": None, "data": unhex(body) if encoding == "zbuf" else None},
        }[encoding]
        return Wanted(z.ZenohNetworkOam, values, {"enc": {"unit": 0, "z64": 1, "zbuf": 2}[encoding]}, exts)

    def data(self, keys: Keys) -> Wanted:
        return {
            "put": self._put,
            "del": self._del,
            "query": self._query,
            "reply": self._reply,
            "err": self._err,
        }[keys.take("body")](keys)

    def _put(self, keys: Keys) -> Wanted:
        values = _timestamp(keys) | _encoding(keys) | {"data": unhex(keys.take("payload"))}
        exts = [*_source_info(keys), *_attached(z.ZenohExtAttachment, keys)]
        return Wanted(z.ZenohPut, values, _present_flags(T=values["ts_time"], E=values["encoding_id"]), exts)

    def _del(self, keys: Keys) -> Wanted:
        values = _timestamp(keys)
        exts = [*_source_info(keys), *_attached(z.ZenohExtDelAttachment, keys)]
        return Wanted(z.ZenohDel, values, _present_flags(T=values["ts_time"]), exts)

    def _query(self, keys: Keys) -> Wanted:
        values = _consolidation(keys) | keys.take_known("parameters")
        first = [*_source_info(keys), *_present(keys.inside("query_body", _query_body))]
        if self.body_before_source:
            first.reverse()
        exts = [*first, *_attached(z.ZenohExtQueryAttachment, keys)]
        return Wanted(z.ZenohQuery, values, _present_flags(C=values["consolidation"], P=values["parameters"]), exts)

    def _reply(self, keys: Keys) -> Wanted:
        values = _consolidation(keys)
        body = keys.inside("reply_body", self.data)
        return Wanted(z.ZenohReply, values, _present_flags(C=values["consolidation"]), body=body)

    def _err(self, keys: Keys) -> Wanted:
        values = _encoding(keys) | {"data": unhex(keys.take("payload"))}
        return Wanted(z.ZenohErr, values, _present_flags(E=values["encoding_id"]), _source_info(keys))


def _present_flags(**values: Any) -> dict[str, int]:
    return {flag: int(value is not None) for flag, value in values.items()}


def _consolidation(keys: Keys) -> dict[str, Any]:
    values = keys.take_known("consolidation")
    name = keys.pop("consolidation_pico_name", None)
    assert name is None or PICO_CONSOLIDATION[name] == values["consolidation"], f"{name} is not {values}"
    return values


# --- what is done with it -----------------------------------------------------------------------


def build(want: Wanted) -> Any:
    """A packet with these values, all set by the names of its fields."""
    values = {name: value for name, value in want.values.items() if value is not None}
    if want.exts:
        values["exts"] = [build(ext) for ext in want.exts]
    if want.msgs is not None:
        values["msgs"] = [build(message) for message in want.msgs]
    packet = want.cls(**values)
    return packet if want.body is None else packet / build(want.body)


def differences(packet: Any, want: Wanted, path: str = "") -> list[str]:
    """Where a packet that was read is not what the row describes, one line each."""
    path = f"{path}{want.cls.__name__}"
    if type(packet) is not want.cls:
        return [f"{path}: read as {type(packet).__name__}"]
    found = []
    flags = {"Z": int(bool(want.exts))} if "Z" in packet.default_fields else {}
    for name, value in (want.values | flags | want.derived).items():
        read = packet.getfieldval(name)
        if read != value:
            found.append(f"{path}.{name}: read {read!r}, the row says {value!r}")
    exts = (packet.getfieldval("exts") if "exts" in packet.default_fields else None) or []
    found += _compare_lists(exts, want.exts, f"{path}.exts")
    if want.msgs is not None:
        found += _compare_lists(packet.getfieldval("msgs"), want.msgs, f"{path}.msgs")
    if want.body is not None:
        found += differences(packet.payload, want.body, f"{path}/")
    elif not isinstance(packet.payload, NoPayload):
        found.append(f"{path}: read with a body {packet.payload!r}")
    return found


def _compare_lists(packets: list[Any], wants: list[Wanted], path: str) -> list[str]:
    if len(packets) != len(wants):
        names = [type(p).__name__ for p in packets], [w.cls.__name__ for w in wants]
        return [f"{path}: read {names[0]}, the row says {names[1]}"]
    return [
        line
        for i, (packet, want) in enumerate(zip(packets, wants, strict=True))
        for line in differences(packet, want, f"{path}[{i}].")
    ]
