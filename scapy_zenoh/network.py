"""Network messages: what travels inside FRAMEs, from hop to hop."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.common import (
    counted_zid,
    entity_id,
    locators,
    timestamp,
    wire_expr,
    wire_expr_flags,
)
from scapy_zenoh.data import ANSWER, QUERY_BODY, SAMPLE
from scapy_zenoh.enums import (
    ExtEncoding,
    InterestMode,
    Mapping,
    NetworkId,
    OamId,
    Priority,
    QueryTarget,
    StampPoint,
    WhatAmIBit,
)
from scapy_zenoh.expr import From, Present, Readable, When
from scapy_zenoh.extension import (
    ExtChain,
    Extension,
    ExtTable,
    ZBufExtension,
    z64,
    zbuf,
)
from scapy_zenoh.fields import (
    AutoBits,
    AutoFlag,
    Bits,
    MessageId,
    Repeat,
    Reserved,
    RestBytes,
    UInt,
    VLECount,
    VLEField,
    VLEFlag,
    VLEPart,
    VLEReserved,
    VLEWindow,
    counted,
    opt,
    vle_bits,
)
from scapy_zenoh.message import DECLARATION, NETWORK, Message, Record, RecordList
from scapy_zenoh.values import key_text

# --- extensions ---------------------------------------------------------------------------------


class ZenohExtQoS(Extension):
    """Priority, congestion control and express; absent means data priority, drop, not express."""

    name = "QoS"
    fields_desc = z64(
        0x1,
        *vle_bits(
            VLEPart("priority", Priority.DATA, 3, enum=Priority),
            VLEPart("block", 0, 1),
            VLEPart("express", 0, 1),
            VLEPart("block_first", 0, 1),
            VLEReserved("reserved", 58),
        ),
    )

    def congestion(self) -> str:
        """``drop``, ``block`` or ``block_first``; block wins over block_first."""
        return "block" if self.block else "block_first" if self.block_first else "drop"


class ZenohExtTimestamp(ZBufExtension):
    """When a network message was sent."""

    name = "Timestamp"
    fields_desc = zbuf(0x2, *timestamp())


class ZenohExtNodeId(Extension):
    """Between routers: the root of the distribution tree, as the sender numbers nodes in its link states."""

    name = "NodeId"
    fields_desc = z64(0x3, VLEField("node", 0), mandatory=True)


class ZenohStamp(Record):
    """One record of a timestamp stack: where it was made and when."""

    name = "timestamp record"
    window = "size"
    fields_desc = [
        Bits("custom", 0, 1), Reserved("reserved", 4), Bits("point", StampPoint.SEND, 3, enum=StampPoint),
        VLEWindow("size"),
        *opt(~When("custom"), *timestamp()),
        *opt(When("custom"), RestBytes("data")),
    ]  # fmt: skip


class ZenohExtTsStack(ZBufExtension):
    """Times taken on the way, when an application measures latency."""

    name = "TsStack"
    fields_desc = zbuf(
        0x7,
        Reserved("reserved", 5), Bits("at_receive", 0, 1), Bits("at_route", 0, 1), Bits("at_send", 1, 1),
        VLECount("stamps_count", of="stamps"),
        RecordList("stamps", ZenohStamp, From("stamps_count")),
    )  # fmt: skip


class ZenohExtQueryTarget(Extension):
    """Which queryables a query goes to; absent means the best matching."""

    name = "QueryTarget"
    fields_desc = z64(0x4, VLEField("target", 0, enum=QueryTarget, closed=True), mandatory=True)


class ZenohExtBudget(Extension):
    """How many replies a query wants at most."""

    name = "Budget"
    fields_desc = z64(0x5, VLEField("budget", 1))


class ZenohExtTimeout(Extension):
    """How long a query waits, in milliseconds."""

    name = "Timeout"
    fields_desc = z64(0x6, VLEField("timeout", 0))


class ZenohExtResponderId(ZBufExtension):
    """Who answers a query."""

    name = "ResponderId"
    fields_desc = zbuf(0x3, *entity_id())


# --- messages -----------------------------------------------------------------------------------


class ZenohPush(Message):
    """A sample or deletion travelling from publisher to subscribers."""

    name = "Zenoh PUSH"
    family = NETWORK
    body = SAMPLE
    fields_desc = [
        AutoFlag("Z", of="exts"), *wire_expr_flags(), MessageId("mid", NetworkId.PUSH),
        *wire_expr(),
        *opt(When("Z"), ExtChain("exts", ExtTable(
            ZenohExtQoS, ZenohExtTimestamp, ZenohExtNodeId, ZenohExtTsStack,
        ))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"PUSH {key_text(self.scope, self.suffix)}"


class ZenohRequest(Message):
    """A query travelling to queryables."""

    name = "Zenoh REQUEST"
    family = NETWORK
    body = QUERY_BODY
    fields_desc = [
        AutoFlag("Z", of="exts"), *wire_expr_flags(), MessageId("mid", NetworkId.REQUEST),
        VLEField("request_id", 1, bits=32),
        *wire_expr(),
        *opt(When("Z"), ExtChain("exts", ExtTable(
            ZenohExtQoS, ZenohExtTimestamp, ZenohExtQueryTarget, ZenohExtBudget, ZenohExtTimeout, ZenohExtNodeId,
            ZenohExtTsStack,
        ))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"REQUEST #{int(self.request_id)} {key_text(self.scope, self.suffix)}"

    def hashret(self) -> bytes:
        return b"zenoh-request-%d" % self.request_id


class ZenohResponse(Message):
    """One answer to a REQUEST, on its way back."""

    name = "Zenoh RESPONSE"
    family = NETWORK
    body = ANSWER
    fields_desc = [
        AutoFlag("Z", of="exts"), *wire_expr_flags(), MessageId("mid", NetworkId.RESPONSE),
        VLEField("request_id", 1, bits=32),
        *wire_expr(),
        *opt(When("Z"), ExtChain("exts", ExtTable(
            ZenohExtQoS, ZenohExtTimestamp, ZenohExtResponderId, ZenohExtTsStack,
        ))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"RESPONSE #{int(self.request_id)} {key_text(self.scope, self.suffix)}"

    def hashret(self) -> bytes:
        return b"zenoh-request-%d" % self.request_id

    def answers(self, other: Any) -> int:
        return int(isinstance(other, ZenohRequest) and other.request_id == self.request_id)


class ZenohResponseFinal(Message):
    """No more answers to a REQUEST will come."""

    name = "Zenoh RESPONSE_FINAL"
    family = NETWORK
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 2), MessageId("mid", NetworkId.RESPONSE_FINAL),
        VLEField("request_id", 1, bits=32),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtQoS, ZenohExtTimestamp))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"RESPONSE_FINAL #{int(self.request_id)}"

    hashret = ZenohResponse.hashret
    answers = ZenohResponse.answers


class ZenohDeclare(Message):
    """A declaration, spontaneous or as answer to an INTEREST."""

    name = "Zenoh DECLARE"
    family = NETWORK
    body = DECLARATION
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), AutoFlag("I", of="interest_id"),
        MessageId("mid", NetworkId.DECLARE),
        *opt(When("I"), VLEField("interest_id", None, bits=32)),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtQoS, ZenohExtTimestamp, ZenohExtNodeId))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return "" if self.payload else "DECLARE"  # the declaration tells it all


class ZenohInterest(Message):
    """Asks the other side for its declarations, now, from now on, or no longer."""

    name = "Zenoh INTEREST"
    family = NETWORK
    fields_desc = [
        AutoFlag("Z", of="exts"), Bits("mode", InterestMode.CURRENT_FUTURE, 2, enum=InterestMode),
        MessageId("mid", NetworkId.INTEREST),
        VLEField("id", 1, bits=32),
        *opt(When("mode") != InterestMode.FINAL,
             Bits("A", 0, 1), AutoBits("M", 1, [("scope", Mapping.SENDER), ("suffix", Mapping.SENDER)], enum=Mapping),
             AutoFlag("N", of="suffix"),
             AutoFlag("R", of=("scope", "suffix")),
             Bits("T", 0, 1), Bits("Q", 0, 1), Bits("S", 0, 1), Bits("K", 1, 1)),
        *opt((When("mode") != InterestMode.FINAL) & When("R"), VLEField("scope", None, bits=16)),
        *opt((When("mode") != InterestMode.FINAL) & When("R") & When("N"), *counted("suffix", bits=16, text=True)),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtQoS, ZenohExtTimestamp, ZenohExtNodeId))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        mode = InterestMode.describe(self.mode).replace("_", "+")
        names = {"K": "keyexprs", "S": "subscribers", "Q": "queryables", "T": "tokens"}
        what = "|".join(text for flag, text in names.items() if self.mode and self.getfieldval(flag))
        key = key_text(self.scope or 0, self.suffix)
        return " ".join(filter(None, [f"INTEREST {int(self.id)} {mode}", what, key]))


# --- link state ---------------------------------------------------------------------------------


class ZenohLinkState(Record):
    """What a router or peer says about one node of the network."""

    name = "link state"
    fields_desc = [
        *vle_bits(
            VLEFlag("PID", of="zid"),
            VLEFlag("WAI", of="whatami"),
            VLEFlag("LOC", of="locators"),
            VLEFlag("WGT", of="weights"),
            VLEPart("GWY", 0, 1),
            VLEReserved("reserved", 59),
        ),
        VLEField("psid", 0),
        VLEField("sn", 0),
        *opt(When("PID"), *counted_zid("zid")),
        *opt(When("WAI"), UInt("whatami", None, enum=WhatAmIBit)),
        *opt(When("LOC"), *locators()),
        VLECount("links_count", of="links"),
        Repeat("links", VLEField("link", 0), From("links_count")),
        *opt(When("WGT"), Repeat("weights", VLEField("weight", 0, bits=16), From("links_count"))),
    ]


ZBUF = When("enc") == ExtEncoding.ZBUF


class ZenohNetworkOam(Message):
    """Operation and maintenance: in practice the link states of routers, and gossip between peers.

    Nodes pass the body on unread, so one that holds no link states is no fault.
    """

    name = "Zenoh OAM"
    family = NETWORK
    interpreted = True
    window = "size"
    fields_desc = [
        AutoFlag("Z", of="exts"),
        AutoBits("enc", 2, [("value", ExtEncoding.Z64), ("data", ExtEncoding.ZBUF), ("states", ExtEncoding.ZBUF)],
                 enum=ExtEncoding),
        MessageId("mid", NetworkId.OAM),
        VLEField("id", OamId.LINKSTATE, bits=16, enum=OamId),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtQoS, ZenohExtTimestamp))),
        *opt(When("enc") == ExtEncoding.Z64, VLEField("value", None)),
        *opt(ZBUF, VLEWindow("size")),
        *opt(ZBUF & ~((When("id") == OamId.LINKSTATE) & Readable("states", otherwise="data")), RestBytes("data", None)),
        *opt(ZBUF & ~Present("data"), VLECount("states_count", of="states"),
             RecordList("states", ZenohLinkState, From("states_count"))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        if self.id == OamId.LINKSTATE:
            return f"OAM link state of {len(self.states or ())} nodes"
        return f"OAM {int(self.id)}"
