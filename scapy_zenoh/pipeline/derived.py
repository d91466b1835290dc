"""What messages say about declarations and queries: two tables made from ``messages``.

Both are made alike. Every message that matters becomes an event; events of the same thing (what one node told or
asked in one session, by its number) stand in the order of their rows, and a window over them tells which belong
together. Rows of earlier messages to which something may still happen are events as well, so the tables can be made
piece by piece: with ``done`` and ``open`` for the rows of ``f(first messages)`` that are over and that are not,
``f(all messages)`` is ``done`` and ``f(later messages, open)``. Two things are remembered by the open rows only:

* A node whose id is unknown is told by its address, which the tables do not have. With ``keep_sender`` the result has
  one more column, ``sender``, which open rows may have; without it such a row stays open for good.
* ``sender`` is null when nothing can happen to the row any more. Without it, a number that is used again while it is
  in use, and then withdrawn (answered) twice in different pieces, ends the use before it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from scapy_zenoh.pipeline.schema import of_table

#: Where the columns of an event come from, as far as their names differ.
Renaming = dict[str, Column | str]

_SENDER = T.StructField("sender", T.StringType(), True, {"comment": "id or address of who told or asked it"})


def declarations(messages: DataFrame, open_rows: DataFrame | None = None, *, keep_sender: bool = False) -> DataFrame:
    """The table ``declarations``: one row for each time that something was declared, or withdrawn without that.

    A declaration is over with the next withdrawal of its number. A number that is declared again while it is in use
    gives another row, and the one before stays without end. The number 0 stands for many things at once, which their
    keys tell apart (between routers, towards a group, and in answers to an interest).

    ``open_rows`` are rows of this table where ``withdrawn`` is null, from earlier messages of the same recordings.
    """
    parts = F.split("body", "_", 2)
    events = messages.where((F.col("kind") == "declare") & F.col("entity_id").isNotNull() & (parts[1] != "final"))
    events = events.select(
        "recording",
        "session",
        _end("src_zid", "src", "sport").alias("sender"),
        parts[1].alias("entity"),
        "entity_id",
        (parts[0] == "declare").alias("opens"),
        F.col("src_zid").alias("zid"),
        F.col("dst_zid").alias("peer_zid"),
        "key",
        "interest_id",
        "time",
        "row",
    )
    if open_rows is not None:
        told: Renaming = {
            "sender": _sender_of(open_rows),
            "opens": F.lit(True),
            "time": "declared",
            "row": "declared_row",
        }
        events = events.unionByName(_renamed(open_rows, events.columns, told))

    named = F.when(F.col("entity_id") == 0, F.coalesce("key", F.lit("")))
    in_order = Window.partitionBy("recording", "session", "sender", "entity", "entity_id", named).orderBy("row")
    opens = F.col("opens")
    ended = opens & ~F.lead("opens", 1, True).over(in_order)
    return (
        events.withColumns(
            {
                "stray": ~opens & ~F.lag("opens", 1, False).over(in_order),
                "newest": F.lead("row").over(in_order).isNull(),
                "end_key": F.when(ended, F.lead("key").over(in_order)),
                "end": F.when(ended, F.lead("time").over(in_order)),
                "end_row": F.when(ended, F.lead("row").over(in_order)),
            }
        )
        .where(opens | F.col("stray"))
        .withColumns(
            {
                "key": F.coalesce("key", "end_key"),
                "interest_id": F.when(opens, F.col("interest_id")),
                "declared": F.when(opens, F.col("time")),
                "declared_row": F.when(opens, F.col("row")),
                "withdrawn": F.when(opens, F.col("end")).otherwise(F.col("time")),
                "withdrawn_row": F.when(opens, F.col("end_row")).otherwise(F.col("row")),
                "sender": F.when(opens & F.col("newest"), F.col("sender")),
            }
        )
        .to(_schema("declarations", keep_sender))
    )


def queries(messages: DataFrame, open_rows: DataFrame | None = None, *, keep_sender: bool = False) -> DataFrame:
    """The table ``queries``: one row for each REQUEST, with what is known of its answers.

    An answer belongs to the newest request before it with its number, in its session, from the node that it goes to;
    answers to requests that were not seen are left out. The first RESPONSE_FINAL ends a query; replies that come
    later are counted nevertheless. ``open_rows`` are rows of this table where ``finished`` is null, from earlier
    messages of the same recordings; a reply that comes after the end of its query *and* in a later piece is not
    counted.
    """
    kind, body = F.col("kind"), F.col("body")
    asks, replies, ends = kind == "request", kind == "response", kind == "response_final"
    asker = F.when(asks, _end("src_zid", "src", "sport")).otherwise(_end("dst_zid", "dst", "dport"))
    events = messages.where((asks | replies | ends) & F.col("request_id").isNotNull()).select(
        "recording",
        "session",
        asker.alias("sender"),
        "request_id",
        "row",
        asks.alias("opens"),
        *(
            F.when(asks, F.col(source)).alias(name)
            for name, source in {
                "zid": "src_zid",
                "peer_zid": "dst_zid",
                "key": "key",
                "parameters": "parameters",
                "target": "target",
                "consolidation": "consolidation",
                "timeout_ms": "timeout_ms",
                "asked": "time",
                "asked_row": "row",
            }.items()
        ),
        F.when(replies, F.col("time")).alias("first_reply"),
        F.when(replies, F.col("time")).alias("last_reply"),
        F.when(ends, F.col("time")).alias("finished"),
        F.when(replies & body.isin("reply_put", "reply_del"), 1).otherwise(0).cast("long").alias("replies"),
        F.when(replies & (body == "err"), 1).otherwise(0).cast("long").alias("errors"),
        F.when(replies, F.coalesce("payload_len", F.lit(0))).otherwise(0).cast("long").alias("reply_bytes"),
    )
    if open_rows is not None:
        told: Renaming = {"sender": _sender_of(open_rows), "opens": F.lit(True), "row": "asked_row"}
        events = events.unionByName(_renamed(open_rows, events.columns, told))

    number = ["recording", "session", "sender", "request_id"]
    requests_so_far = F.sum(F.col("opens").cast("int")).over(Window.partitionBy(*number).orderBy("row"))
    of_request = ("zid", "peer_zid", "key", "parameters", "target", "consolidation", "timeout_ms", "asked", "asked_row")
    found = (
        events.withColumn("request", requests_so_far)
        .where(F.col("request") > 0)
        .groupBy(*number, "request")
        .agg(
            *(F.first(name, ignorenulls=True).alias(name) for name in of_request),
            F.min("first_reply").alias("first_reply"),
            F.max("last_reply").alias("last_reply"),
            F.min("finished").alias("finished"),
            *(F.sum(name).alias(name) for name in ("replies", "errors", "reply_bytes")),
        )
    )
    outcome = (
        F.when(F.col("finished").isNull(), "unfinished")
        .when(F.col("first_reply").isNull(), "empty")
        .otherwise("answered")
    )
    newest = F.col("request") == F.max("request").over(Window.partitionBy(*number))
    found = found.withColumn("outcome", outcome)
    if keep_sender:
        found = found.withColumn("sender", F.when(newest & F.col("finished").isNull(), F.col("sender")))
    return found.to(_schema("queries", keep_sender))


def _end(zid: str, address: str, port: str) -> Column:
    """One end of a message: the id of the node, or its address while that is unknown."""
    return F.coalesce(F.col(zid), F.concat_ws(":", F.col(address), F.col(port).cast("string")))


def _sender_of(open_rows: DataFrame) -> Column:
    return F.col("sender") if "sender" in open_rows.columns else F.col("zid")


def _renamed(open_rows: DataFrame, columns: list[str], told: Renaming) -> DataFrame:
    """Open rows as events."""
    return open_rows.select(*(_column(told.get(name, name)).alias(name) for name in columns))


def _column(column: Column | str) -> Column:
    return F.col(column) if isinstance(column, str) else column


def _schema(table: str, keep_sender: bool) -> T.StructType:
    schema = of_table(table)
    return T.StructType([*schema.fields, _SENDER]) if keep_sender else schema
