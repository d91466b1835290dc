"""Who is there, and who is linked to whom."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import group, matched, total

#: Columns of messages with the id of a node that may not be one of theirs.
_ELSEWHERE = {"timestamp": "timestamp_id", "source": "source_zid", "responder": "responder_zid"}


def nodes(sessions: DataFrame, messages: DataFrame) -> DataFrame:
    """The nodes of the topology: a row for each recording and ``zid``.

    * ``known_by``: where its id was seen, sorted: ``session``, ``multicast`` (a group), ``hello``, ``scout``, and for
      nodes that may be beyond those whose links were captured ``timestamp``, ``source`` and ``responder``.
    * ``role`` and ``region``, null when not told; ``patch``: the newest patch of the protocol that was agreed with it,
      all that is on the wire of its version; ``locators``: where it says it can be reached.
    * ``sessions``; ``neighbours``: different nodes with a session with it; ``messages`` and ``bytes`` that it sent.
    * ``first``, ``last``: when it was seen, in ns since 1970; of sessions their begin and last message.
    """
    sides = [
        F.struct(
            F.col(f"{side}_zid").alias("zid"),
            F.col(f"{side}_whatami").alias("role"),
            F.col(f"{side}_region").alias("region"),
            F.col(f"{side}_messages").alias("messages"),
            F.col(f"{side}_bytes").alias("bytes"),
            F.col(f"{other}_zid").alias("neighbour"),
        )
        for side, other in (("low", "high"), ("high", "low"))
    ]
    ends = sessions.select(
        "recording",
        "session",
        "patch",
        F.when(F.col("multicast"), "multicast").otherwise("session").alias("known_by"),
        F.coalesce("opened", "last").alias("first"),
        "last",
        F.inline(F.array(*sides)),
    )
    kind = F.col("kind")
    names = [
        (F.when(kind.isin("hello", "scout"), kind), F.when(F.col("layer") == "scouting", F.col("src_zid"))),
        *((F.lit(how), F.col(zid)) for how, zid in _ELSEWHERE.items()),
    ]
    named = F.array(*(F.struct(how.alias("known_by"), zid.alias("zid")) for how, zid in names))
    seen = (
        messages.select(
            "recording",
            "time",
            F.when(kind == "hello", F.col("whatami")).alias("role"),
            F.when(kind == "hello", F.col("locators")).alias("locators"),
            F.inline(F.filter(named, lambda name: name["zid"].isNotNull())),
        )
        .groupBy("recording", "zid", "known_by", "role", "locators")
        .agg(F.min("time").alias("first"), F.max("time").alias("last"))
    )
    return (
        ends.where(F.col("zid").isNotNull())
        .unionByName(seen, allowMissingColumns=True)
        .groupBy("recording", "zid")
        .agg(
            F.max("role").alias("role"),
            F.max("region").alias("region"),
            F.max("patch").alias("patch"),
            F.array_sort(F.collect_set("known_by")).alias("known_by"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("locators")))).alias("locators"),
            F.count_distinct("session").alias("sessions"),
            F.count_distinct("neighbour").alias("neighbours"),
            total("messages").alias("messages"),
            total("bytes").alias("bytes"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
        )
    )


def edges(sessions: DataFrame, links: DataFrame) -> DataFrame:
    """The edges of the topology: a row for each recording and two nodes, or node and multicast group.

    * ``low_zid``, ``high_zid``: the nodes, the lower id first; ``high_zid`` is null towards a group, whose address is
      ``group``. Where an id is unknown each session is an edge; where the content cannot be read (``opaque``), each
      link.
    * ``low_role``, ``high_role``; ``protocols``: sorted; ``links``; ``sessions``: how many they had after one another;
      ``open``: whether one of them was not closed.
    * ``messages``, ``bytes`` both ways, and those that each side sent (of an opaque link only all bytes are known).
    * Of the newest session: ``qos``, ``compression``, ``low_latency``, ``multilink``, ``shared_memory``, ``auth``,
      ``patch``, ``batch_size``, ``close_reason``.
    * ``opened``: of the first one, ``last``: message of any, in ns since 1970.
    """
    options = ("qos", "compression", "low_latency", "multilink", "shared_memory", "auth", "patch", "batch_size",
               "close_reason")  # fmt: skip
    sent = ("low_messages", "high_messages", "low_bytes", "high_bytes")
    newest = F.struct(F.coalesce("opened", "last", F.lit(0)).alias("began"), "session", *options)
    ends = ["low_zid", "high_zid", "group", "unknown"]
    over = (
        links.where(F.col("session").isNotNull())
        .groupBy("recording", "session")
        .agg(F.collect_set("proto").alias("protocols"), F.count(F.lit(1)).alias("links"))
    )
    whole = sessions.withColumns({"group": group(F.col("session")), "low_role": F.col("low_whatami"),
                                  "high_role": F.col("high_whatami"), "newest": newest})  # fmt: skip
    some_unknown = F.col("low_zid").isNull() | (F.col("high_zid").isNull() & ~F.col("multicast"))
    # A handshake that went on as a session under another name leaves an empty one.
    whole = whole.withColumn("unknown", F.when(some_unknown, F.col("session"))).drop("links")
    found = (
        matched(whole, over, ["recording", "session"])
        .groupBy("recording", *ends)
        .agg(
            F.max("low_role").alias("low_role"),
            F.max("high_role").alias("high_role"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_list("protocols")))).alias("protocols"),
            total("links").alias("links"),
            F.lit(False).alias("opaque"),
            F.count(F.lit(1)).alias("sessions"),
            F.some(F.col("closed").isNull()).alias("open"),
            *(total(name).alias(name) for name in (*sent, "messages")),
            F.max("newest").alias("newest"),
            F.min("opened").alias("opened"),
            F.max("last").alias("last"),
        )
        .select("*", (F.col("low_bytes") + F.col("high_bytes")).alias("bytes"), *map(_of_newest, options))
        .drop("newest")
    )
    opaque = links.where(F.col("opaque")).select(
        "recording",
        F.col("link").alias("unknown"),
        F.array("proto").alias("protocols"),
        F.lit(1).cast("long").alias("links"),
        "opaque",
        "bytes",
        "opened",
        F.col("closed").isNull().alias("open"),
    )
    return found.unionByName(opaque, allowMissingColumns=True)


def _of_newest(name: str) -> Column:
    return F.col("newest")[name].alias(name)
