"""What the traffic consists of, and what of it names rather than carries."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import matched, total

#: Which class of traffic a kind of message belongs to.
CLASSES = {
    "scouting": ("scout", "hello"),
    "handshake": ("init_syn", "init_ack", "open_syn", "open_ack", "join", "close"),
    "declarations": ("declare", "interest"),
    "data": ("push",),
    "queries": ("request", "response", "response_final"),
    "keep_alive": ("keep_alive",),
    "routing": ("network_oam", "transport_oam"),
    "framing": ("frame", "fragment"),
}

_KEYED = ("push", "request", "response")


def traffic_classes(messages: DataFrame) -> DataFrame:
    """What the messages are for: a row for each recording, session and class.

    Classes are ``scouting``, ``handshake`` (JOIN and CLOSE too), ``declarations`` (interests too), ``data``,
    ``queries``, ``keep_alive``, ``routing`` (OAM), ``framing`` (FRAME and FRAGMENT, which carry messages of the other
    classes) and ``unknown``.

    * ``session``: that of the link where a message came before its session was known; null for scouting.
    * ``messages``: how many; a message is counted on each link that it goes over.
    * ``payload_bytes``: payloads (not those in shared memory) and attachments. ``name_bytes``: key expressions as they
      were sent, and parameters. Headers are in no table for each message: ``wire_overhead`` has them for a session.
    * ``first``, ``last``: capture times in ns since 1970.
    """
    counted = (
        messages.select("recording", "link", "session", "row", _class().alias("class"), "time", *_content())
        .groupBy("recording", "link", "session", "class")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            total("payload_bytes").alias("payload_bytes"),
            total("name_bytes").alias("name_bytes"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
            F.min("row").alias("row"),
        )
    )
    of_link = (
        counted.where(~_stranger())
        .groupBy("recording", "link")
        .agg(F.min_by("session", "row").alias("later"))
    )  # fmt: skip
    session = F.when(_stranger(), F.coalesce("later", "session")).otherwise(F.col("session"))
    return (
        matched(counted, of_link, ["recording", "link"])
        .withColumn("session", F.when(F.col("class") != "scouting", session))
        .groupBy("recording", "session", "class")
        .agg(
            *(F.sum(name).alias(name) for name in ("messages", "payload_bytes", "name_bytes")),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
        )
    )


def wire_overhead(messages: DataFrame, sessions: DataFrame) -> DataFrame:
    """What sessions cost beside their content: a row for each recording and session.

    * ``bytes``: of whole batches in both directions, as in ``sessions``: headers of TCP or UDP are not in it.
    * ``payload_bytes`` and ``name_bytes`` as in ``traffic_classes``. ``overhead_bytes``: all others, that is length
      prefixes, headers, numbers, extensions, handshakes, keep-alives, declarations but for their keys.
    * ``overhead``: their share of ``bytes``, null without bytes. Where batches are compressed (``compression``) it can
      be negative: the content is that after decompression.
    """
    content = (
        messages.select("recording", "session", *_content())
        .groupBy("recording", "session")
        .agg(total("payload_bytes").alias("payload_bytes"), total("name_bytes").alias("name_bytes"))
    )
    sent = sessions.select(
        "recording",
        "session",
        "compression",
        (F.coalesce("low_bytes", F.lit(0)) + F.coalesce("high_bytes", F.lit(0))).alias("bytes"),
    )
    nothing = F.lit(0).cast("long")
    found = matched(sent, content, ["recording", "session"]).withColumns(
        {name: F.coalesce(name, nothing) for name in ("payload_bytes", "name_bytes")}
    )
    left = F.col("bytes") - F.col("payload_bytes") - F.col("name_bytes")
    return found.withColumns({"overhead_bytes": left, "overhead": F.try_divide(left, F.col("bytes"))})


def key_overhead(messages: DataFrame) -> DataFrame:
    """What key expressions cost on the wire: a row for each recording, session, sender and key.

    Counted are samples, queries and replies, on each link that they go over. ``key`` is null where a declaration was
    not seen; then there is no estimate.

    * ``messages``; ``suffix_bytes``: text that was sent for the key; ``key_bytes``: with the numbers before and the
      length of the text.
    * ``numbered``: whether every message had a number and no text, so that the key was declared.
    * ``declared_bytes``: what they would have cost with one declaration of the whole key, and its number in each
      message; the keys that a sender uses most get the shortest numbers.
    * ``saved_bytes``: the difference, 0 when ``numbered``; negative where declaring does not pay.
    """
    text, scope = F.octet_length("key_suffix"), F.coalesce("key_scope", F.lit(0))
    numbered = (scope > 0) & F.col("key_suffix").isNull()
    cost = _vle(scope) + F.coalesce(_vle(text) + text, F.lit(0))
    used = (
        messages.where(F.col("kind").isin(*_KEYED) & F.col("key_scope").isNotNull())
        .where((F.col("key") != "") | F.col("key").isNull())  # the error of a query that timed out has none
        .groupBy("recording", "session", F.col("src_zid").alias("sender"), "key")
        .agg(
            F.count(F.lit(1)).alias("messages"),
            total(text).alias("suffix_bytes"),
            F.sum(cost).alias("key_bytes"),
            F.every(numbered).alias("numbered"),
        )
    )
    most_used = Window.partitionBy("recording", "session", "sender").orderBy(F.col("messages").desc(), "key")
    used = used.withColumn("number", F.row_number().over(most_used))
    number, length = _vle(F.col("number")), F.octet_length("key")
    # DECLARE and D_KEYEXPR with their QoS and scope 0: 9e 21 08 | 20 id 00 length text
    declaration = 5 + number + _vle(length) + length
    used = used.withColumn("declared_bytes", declaration + F.col("messages") * number).drop("number")
    saved = F.when(F.col("numbered"), 0).otherwise(F.col("key_bytes") - F.col("declared_bytes"))
    return used.withColumn("saved_bytes", saved)


def _class() -> Column:
    known = (F.when(F.col("kind").isin(*kinds), name) for name, kinds in CLASSES.items())
    return F.coalesce(*known, F.lit("unknown"))


def _stranger() -> Column:
    """Whether the ends of the session were not known yet."""
    return F.coalesce(F.col("session").startswith("?"), F.lit(True))


def _content() -> list[Column]:
    """Bytes that are there for somebody: payloads, and names of things."""
    on_the_wire = F.when(F.coalesce("shm", F.lit(False)), 0).otherwise(F.coalesce("payload_len", F.lit(0)))
    names = (F.coalesce(F.octet_length(name), F.lit(0)) for name in ("key_suffix", "parameters"))
    return [
        (on_the_wire + F.coalesce(F.octet_length("attachment"), F.lit(0))).alias("payload_bytes"),
        reduce(lambda one, other: one + other, names).alias("name_bytes"),
    ]


def _vle(number: Column) -> Column:
    """How many bytes a number takes that has seven bits in each."""
    steps = (F.when(number < 1 << 7 * length, length) for length in range(1, 5))
    return F.when(number.isNotNull(), F.coalesce(*steps, F.lit(5)))
