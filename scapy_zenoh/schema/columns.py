"""The columns of a row: their order, their types, and what they mean. Every table of messages has these."""

from __future__ import annotations

from typing import Literal, NamedTuple

#: ``text`` repeats a lot; ``number`` has 64 bits without sign; ``texts`` is a list; ``instant`` counts microseconds.
Type = Literal["text", "texts", "bytes", "bool", "int8", "int32", "int64", "number", "instant", "date"]


class Column(NamedTuple):
    """One column."""

    name: str
    type: Type
    about: str


#: Where a message was seen: the packet that completed its batch, and the ends of the link.
ORIGIN = (
    Column("capture", "text", "name of the capture file"),
    Column("frame", "int64", "number of the packet that completed the batch, from 1"),
    Column("time", "int64", "when that packet was captured, in ns since 1970"),
    Column("src", "text", "address of the sender"),
    Column("sport", "int32", "port of the sender"),
    Column("dst", "text", "address of the receiver"),
    Column("dport", "int32", "port of the receiver"),
    Column("proto", "text", "tcp, udp, ws or tls"),
)

#: What the message says, and what the session knows of it.
RECORD = (
    Column("link", "text", "the link: protocol, both ends (the lower first) and the instance"),
    Column("session", "text", "the session: both ids, the lower first, and epoch; ? and the link until both are known"),
    Column("src_zid", "text", "id of the node that sent it, null when unknown"),
    Column("dst_zid", "text", "id of the node it was sent to, null when unknown or a group"),
    Column("batch", "int64", "ordinal of the batch on its link and direction, from 0"),
    Column("msg", "int32", "ordinal of the message in its batch, from 0"),
    Column("layer", "text", "scouting, transport or network"),
    Column("kind", "text", "which message it is, or unknown"),
    Column("body", "text", "what a PUSH, REQUEST, RESPONSE or DECLARE carries"),
    Column("sn", "number", "sequence number of the FRAME or last FRAGMENT"),
    Column("reliable", "bool", "whether that lane is reliable"),
    Column("priority", "int8", "0 to 7; of FRAME and FRAGMENT the lane"),
    Column("congestion", "text", "drop, block or block_first"),
    Column("express", "bool", "whether it is sent without waiting for a batch to fill"),
    Column("key_scope", "int64", "number that stands for a key expression, as on the wire"),
    Column("key_suffix", "text", "text behind it, as on the wire"),
    Column("key_mapping", "text", "whose number it is: sender or receiver"),
    Column("key", "text", "the resolved key expression, null when its declaration was not seen"),
    Column("entity_id", "int64", "id of what is declared"),
    Column("request_id", "int64", "id of the query"),
    Column("interest_id", "int64", "id of the interest"),
    Column("encoding", "text", "encoding of the payload, as Zenoh prints it"),
    Column("payload_len", "int64", "bytes of the payload"),
    Column("payload", "bytes", "the payload of a PUT, an ERR or a query; null in shared memory"),
    Column("timestamp_time", "int64", "timestamp of the data, in ns since 1970"),
    Column("timestamp_id", "text", "id of the node whose clock it is"),
    Column("attachment", "bytes", "bytes that travel beside the payload"),
    Column("source_zid", "text", "id of the node that made the data"),
    Column("source_eid", "int64", "number of the entity there"),
    Column("source_sn", "int64", "number of the sample there"),
    Column("parameters", "text", "parameters of a query"),
    Column("target", "text", "which queryables a query goes to"),
    Column("consolidation", "text", "how replies are merged"),
    Column("timeout_ms", "number", "how long a query waits, in ms"),
    Column("budget", "number", "how many replies a query wants at most"),
    Column("whatami", "text", "role of the node; of SCOUT the roles it looks for"),
    Column("locators", "texts", "addresses in a HELLO"),
    Column("reason", "text", "why a link or session is closed"),
    Column("responder_zid", "text", "id of the node that answers"),
    Column("responder_eid", "int64", "number of the entity there"),
    Column("interest_mode", "text", "current, future, current_future or final"),
    Column("interest_options", "text", "what an INTEREST asks for"),
    Column("fragments", "int32", "how many FRAGMENTs the message was put together from, null: none"),
    Column("compressed", "bool", "whether it travelled in a compressed batch"),
    Column("lowlatency", "bool", "whether it travelled on a low-latency link"),
    Column("shm", "bool", "whether some of its payload is in shared memory"),
    Column("fault", "text", "what is wrong with it, null: nothing"),
    Column("fault_offset", "int64", "where: bytes after the start of the message, body or extension that has it"),
)  # fmt: skip

COLUMNS = ORIGIN + RECORD
