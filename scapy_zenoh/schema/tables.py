"""The tables that captures become: their columns, and what those mean. One place for Arrow, Parquet and Spark."""

from __future__ import annotations

from scapy_zenoh.schema.columns import COLUMNS, Column

#: What every table has besides its own columns, as the names of folders: the captures that belong together ...
RECORDING = Column("recording", "text", "the capture, or the captures that are one recording: a name and a hash")
#: ... and in the tables of messages the day.
DATE = Column("date", "date", "day of the message, UTC")

_ROW = Column("row", "int64", "ordinal of the message in its recording, from 0")
_UTC = (
    Column("time_utc", "instant", "time, as a timestamp"),
    Column("timestamp_utc", "instant", "timestamp_time, as a timestamp"),
)

_SESSION = Column("session", "text", "the session")


def _of_sides(name: str, type_: str, about: str) -> tuple[Column, Column]:
    """The same of both ends of a session: of the node with the lower id, and of the other."""
    return (
        Column(f"low_{name}", type_, f"{about}, of the node with the lower id"),  # type: ignore[arg-type]
        Column(f"high_{name}", type_, f"{about}, of the node with the higher id"),  # type: ignore[arg-type]
    )


TABLES: dict[str, tuple[Column, ...]] = {
    "messages": (_ROW, *COLUMNS, *_UTC),
    "faults": (
        _ROW,
        *(column for column in COLUMNS if column.name not in ("payload", "attachment")),
        *_UTC,
    ),
    "sessions": (
        _SESSION,
        Column("multicast", "bool", "whether it is one node towards a group"),
        *_of_sides("zid", "text", "id, null when unknown"),
        *_of_sides("whatami", "text", "role"),
        *_of_sides("region", "text", "region"),
        *_of_sides("lease_ms", "number", "lease in ms"),
        *_of_sides("initial_sn", "number", "first sequence number"),
        *_of_sides("messages", "int64", "messages sent"),
        *_of_sides("bytes", "int64", "bytes of whole batches sent"),
        Column("links", "texts", "its links"),
        Column("qos", "bool", "whether there is a lane per priority, null when the handshake was not seen"),
        Column("compression", "bool", "whether compression was agreed"),
        Column("low_latency", "bool", "whether low latency was agreed"),
        Column("multilink", "bool", "whether several links were agreed"),
        Column("shared_memory", "bool", "whether shared memory was agreed"),
        Column("auth", "bool", "whether authentication was asked for"),
        Column("patch", "number", "patch of the protocol"),
        Column("sn_bits", "int32", "bits of sequence numbers"),
        Column("batch_size", "int64", "largest batch"),
        Column("opened", "int64", "when it began, in ns since 1970, null when that was not seen"),
        Column("last", "int64", "its last message, in ns since 1970"),
        Column("closed", "int64", "when it ended, in ns since 1970, null when it did not"),
        Column("close_reason", "text", "why it was closed, null when nobody said"),
        Column("messages", "int64", "messages of both sides"),
        Column("queries_answered", "int64", "queries that got replies"),
        Column("queries_empty", "int64", "queries that ended without a reply"),
        Column("queries_unfinished", "int64", "queries whose end was not seen"),
    ),
    "links": (
        Column("link", "text", "the link"),
        Column("proto", "text", "tcp, udp, ws, tls or quic"),
        Column("session", "text", "its session, null when it cannot be read"),
        Column("opaque", "bool", "whether its content cannot be read"),
        Column("bytes", "int64", "bytes of whole batches, both ways; of an opaque link all bytes"),
        Column("opened", "int64", "when its handshake began, in ns since 1970"),
        Column("closed", "int64", "when it ended, in ns since 1970"),
    ),
    "lanes": (
        _SESSION,
        Column("zid", "text", "id of the node that sends"),
        Column("priority", "int8", "0 to 7"),
        Column("reliable", "bool", "whether the lane is reliable"),
        Column("missing", "int64", "sequence numbers that never came"),
        Column("repeated", "int64", "sequence numbers that came again"),
    ),
    "declarations": (
        _SESSION,
        Column("entity", "text", "keyexpr, subscriber, queryable or token"),
        Column("zid", "text", "id of the node that declared it, null when unknown"),
        Column("peer_zid", "text", "id of the node it was told to"),
        Column("entity_id", "int64", "its number"),
        Column("key", "text", "its key expression, null when unknown"),
        Column("interest_id", "int64", "the interest it answers, null when it came by itself"),
        Column("declared", "int64", "when, in ns since 1970; null when only its end was seen"),
        Column("declared_row", "int64", "row of that message"),
        Column("withdrawn", "int64", "when, in ns since 1970; null when it was not"),
        Column("withdrawn_row", "int64", "row of that message"),
    ),
    "queries": (
        _SESSION,
        Column("zid", "text", "id of the node that asks, null when unknown"),
        Column("peer_zid", "text", "id of the node that is asked"),
        Column("request_id", "int64", "number of the query in its session"),
        Column("key", "text", "key expression asked for"),
        Column("parameters", "text", "its parameters"),
        Column("target", "text", "which queryables it goes to"),
        Column("consolidation", "text", "how replies are merged"),
        Column("timeout_ms", "number", "how long it waits, in ms"),
        Column("asked", "int64", "when, in ns since 1970"),
        Column("asked_row", "int64", "row of the REQUEST"),
        Column("first_reply", "int64", "when the first reply came, in ns since 1970"),
        Column("last_reply", "int64", "when the last one did"),
        Column("finished", "int64", "when RESPONSE_FINAL came, null when it did not"),
        Column("replies", "int64", "replies with data, deletions included"),
        Column("errors", "int64", "replies that are errors"),
        Column("reply_bytes", "int64", "payload bytes of all replies"),
        Column("outcome", "text", "answered, empty (no reply at all) or unfinished (its end was not seen)"),
    ),
    "fragments": (
        _SESSION,
        Column("link", "text", "link of the newest fragment"),
        Column("zid", "text", "id of the node that sends"),
        Column("priority", "int8", "the lane: priority"),
        Column("reliable", "bool", "the lane: reliability"),
        Column("first_sn", "number", "sequence number of the first fragment seen"),
        Column("last_sn", "number", "and of the last one"),
        Column("fragments", "int64", "how many came"),
        Column("bytes", "int64", "bytes in them"),
        Column("complete", "bool", "whether the message was put together"),
        Column("missing", "text", "what is missing: beginning, rest, or too long; null when it is complete"),
        Column("kind", "text", "the message, as far as its beginning tells"),
        Column("key", "text", "and its key expression"),
        Column("began", "int64", "when the first fragment came, in ns since 1970"),
        Column("ended", "int64", "and the last one"),
    ),
    "captures": (
        Column("capture", "text", "name of the file"),
        Column("path", "text", "where it was read"),
        Column("ordinal", "int32", "its place in the recording, from 0"),
        Column("bytes", "int64", "size of the file"),
        Column("late", "bool", "read alone: it came after newer files of its series, or under a name used before"),
        Column("error", "text", "why it could not be read (on), null when it could"),
        Column("packets", "int64", "packets of any kind"),
        Column("zenoh_packets", "int64", "packets with bytes of Zenoh links"),
        Column("zenoh_bytes", "int64", "bytes of Zenoh links: decoded and undecoded ones"),
        Column("decoded_bytes", "int64", "those that were read"),
        Column("undecoded_bytes", "int64", "those in faults"),
        Column("missing_bytes", "int64", "bytes of Zenoh links that the capture does not contain"),
        Column("messages", "int64", "messages"),
        Column("faults", "int64", "rows with a fault"),
        Column("rows", "int64", "rows in messages; those that waited for bytes count where the waiting ended"),
    ),
    "findings": (
        Column("kind", "text", "what was noticed; `unread` is what was passed over"),
        Column("session", "text", "in which session"),
        Column("link", "text", "on which link"),
        Column("detail", "text", "in words"),
    ),
}

#: Tables whose rows are messages: they only grow, and have a folder for each day.
OF_MESSAGES = ("messages", "faults")
