"""Where samples and queries go, by what was declared: who would get them, and which declarations nobody needed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import from_elsewhere, group, matched, place, roles, where_keys_meet
from scapy_zenoh.pipeline.analytics.samples import publisher_rates, samples


def unused_declarations(declarations: DataFrame, messages: DataFrame) -> DataFrame:
    """Declarations that nothing came of: their rows in ``declarations``, with the columns of that table.

    * A ``keyexpr`` whose number is in no message of its session, be it a sample or another declaration.
    * A ``subscriber`` to whom no sample went in that session (on multicast: in that group) while it was declared.
      Those that a router passes on to other nodes are subscribers there.
    * A ``queryable`` that nobody asked there in that time.

    Tokens are not listed: nothing is sent to them. Nor are declarations whose key is unknown. Samples that a
    declaration brings about, but that are not captured any more, are not seen.
    """
    of_interest = declarations.where(F.col("declared_row").isNotNull() & F.col("key").isNotNull())
    used = _numbers_in_use(of_interest, messages).unionByName(_needed(of_interest, messages)).distinct()
    known = of_interest.where(F.col("entity").isin("keyexpr", "subscriber", "queryable"))
    return known.join(used, ["recording", "declared_row"], "left_anti").select(*declarations.columns)


def _numbers_in_use(declarations: DataFrame, messages: DataFrame) -> DataFrame:
    """The declarations of numbers that messages have."""
    sides = (
        F.when(F.col("key_mapping") == "sender", F.array("src_zid"))
        .when(F.col("key_mapping") == "receiver", F.array("dst_zid"))
        .otherwise(F.array("src_zid", "dst_zid"))  # it does not say whose number it is
    )
    number = (F.col("key_scope").alias("entity_id"), F.col("key").alias("whole_key"))
    uses = (
        messages.where(F.col("key_scope") > 0)
        .groupBy("recording", "session", "src_zid", "dst_zid", "key_mapping", *number)
        .agg(*_rows())
        .withColumn("zid", F.explode(sides))
        .drop("src_zid", "dst_zid", "key_mapping")
    )
    numbers = declarations.where(F.col("entity") == "keyexpr").select(
        "recording", "session", "zid", "entity_id", "key", "declared_row", "withdrawn_row"
    )
    found = matched(numbers, uses, ["recording", "session", "zid", "entity_id"], "inner")
    whole = F.coalesce(F.col("whole_key").startswith(F.col("key")), F.lit(True))
    return found.where(_while_declared() & whole).select("recording", "declared_row")


def _needed(declarations: DataFrame, messages: DataFrame) -> DataFrame:
    """The subscribers that got something, and the queryables that were asked."""
    asked = F.col("kind") == "request"
    brought = (
        messages.where((asked | (F.col("kind") == "push")) & F.col("key").isNotNull())
        .groupBy(
            "recording",
            place(F.col("session")).alias("place"),
            F.when(asked, "queryable").otherwise("subscriber").alias("entity"),
            F.col("src_zid").alias("sender"),
            F.col("dst_zid").alias("receiver"),
            F.col("key").alias("whole_key"),
        )
        .agg(*_rows())
    )
    wanted = declarations.where(F.col("entity").isin("subscriber", "queryable")).select(
        "recording", place(F.col("session")).alias("place"), "entity", "zid", "key", "declared_row", "withdrawn_row"
    )
    to_it = F.when(F.col("receiver").isNull(), ~F.col("sender").eqNullSafe(F.col("zid"))).otherwise(
        F.col("receiver").eqNullSafe(F.col("zid"))
    )
    # Where ids are unknown on both sides, the place and the key are all there is.
    to_it = to_it | (F.col("receiver").isNull() & F.col("zid").isNull())
    found = matched(wanted, brought, ["recording", "place", "entity"], "inner").where(to_it & _while_declared())
    return where_keys_meet(found, "key", "whole_key").select("recording", "declared_row")


def _rows() -> list[Column]:
    return [F.min("row").alias("first_row"), F.max("row").alias("last_row")]


def _while_declared() -> Column:
    withdrawn = F.col("withdrawn_row").isNull() | (F.col("first_row") < F.col("withdrawn_row"))
    return (F.col("last_row") > F.col("declared_row")) & withdrawn


def routing(messages: DataFrame, declarations: DataFrame, sessions: DataFrame) -> DataFrame:
    """Who would receive what: a row for each recording, published key, subscriber and subscription.

    A subscriber would receive what others publish under a key that its subscription intersects, if it was declared
    before the last such sample and neither withdrawn nor its session closed before the first. Keys for which there is
    none have one row, in which ``subscriber`` and what follows is null: published, but nobody subscribed. Subscribers
    to their own samples only get nothing over the wire and do not count.

    * ``key``; ``publishers``; ``samples`` as in ``key_rates``, but for those of the subscriber itself; ``first``,
      ``last`` of them, in ns since 1970.
    * ``subscriber``: the node; ``subscription``: its key expression; ``declared`` (null when that was not seen),
      ``ended`` (null when it was not).
    * ``delivered``: samples of the key that went to the node, whichever of its subscriptions is the reason, and in
      whichever session. Fewer than ``samples`` are to be expected where it was ``late`` (declared after the first one)
      or ``left`` (before the last one); more, if a node got them twice.

    Routers pass subscriptions on, which makes them no subscribers: theirs count only where nobody told it to them in
    another session of the recording.
    """
    said = declarations.where((F.col("entity") == "subscriber") & F.col("key").isNotNull())
    told = from_elsewhere(said, "zid", "peer_zid", roles(messages)).where(~F.col("passed_on"))
    made = publisher_rates(messages).where(F.col("key").isNotNull())
    keys = made.groupBy("recording", "key").agg(
        F.collect_list(F.struct("publisher", "samples", "first", "last")).alias("published")
    )
    pairs = keys.join(F.broadcast(_subscriptions(told, sessions)), "recording")
    pairs = where_keys_meet(pairs, "key", "subscription").select("*", F.inline("subscribers")).drop("subscribers")
    others = F.filter(
        "published", lambda each: each["publisher"].isNull() | ~each["publisher"].eqNullSafe(F.col("subscriber"))
    )
    first, last = _first(F.col("others")), _last(F.col("others"))
    expected = (
        pairs.withColumn("others", others)
        .drop("published")
        .where(F.size("others") > 0)
        .where(F.coalesce(F.col("declared") < last, F.lit(True)) & F.coalesce(F.col("ended") > first, F.lit(True)))
    )
    expected = matched(expected, _deliveries(messages, told), ["recording", "key", "subscriber"])
    of_others = F.coalesce("others", "published")
    found = F.col("subscriber").isNotNull() | F.col("subscription").isNotNull()
    return keys.join(expected, ["recording", "key"], "left").select(
        "recording",
        "key",
        F.size(of_others).alias("publishers"),
        F.aggregate(of_others["samples"], F.lit(0).cast("long"), lambda one, other: one + other).alias("samples"),
        _first(of_others).alias("first"),
        _last(of_others).alias("last"),
        "subscriber",
        "subscription",
        "declared",
        "ended",
        F.when(found, F.coalesce("delivered", F.lit(0))).alias("delivered"),
        F.when(found, F.coalesce(F.col("declared") > first, F.lit(False))).alias("late"),
        F.when(found, F.coalesce(F.col("ended") < last, F.lit(False))).alias("left"),
    )


def _first(published: Column) -> Column:
    return F.array_min(published["first"])


def _last(published: Column) -> Column:
    return F.array_max(published["last"])


def _subscriptions(told: DataFrame, sessions: DataFrame) -> DataFrame:
    """Who subscribes, and when: a row for each recording and key expression."""
    closed = sessions.groupBy("recording", "session").agg(F.max("closed").alias("closed"))
    end = F.coalesce("withdrawn", "closed")
    of_node = (
        matched(told, closed, ["recording", "session"])
        .groupBy("recording", F.col("zid").alias("subscriber"), F.col("key").alias("subscription"))
        .agg(
            F.when(F.every(F.col("declared").isNotNull()), F.min("declared")).alias("declared"),
            F.when(F.every(end.isNotNull()), F.max(end)).alias("ended"),
        )
    )
    return of_node.groupBy("recording", "subscription").agg(
        F.collect_list(F.struct("subscriber", "declared", "ended")).alias("subscribers")
    )


def _deliveries(messages: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """How many samples of each key went to each node, towards groups to all that subscribe in them but the sender."""
    to = ["recording", "key", "subscriber"]
    flows = samples(messages).groupBy("recording", "session", "src_zid", "dst_zid", "key").agg(
        F.count(F.lit(1)).alias("samples")
    )  # fmt: skip
    direct = flows.where(group(F.col("session")).isNull()).withColumnRenamed("dst_zid", "subscriber")
    members = subscriptions.select(
        "recording", group(F.col("session")).alias("group"), F.col("zid").alias("subscriber")
    ).distinct()
    shared = (
        flows.withColumn("group", group(F.col("session")))
        .join(F.broadcast(members), ["recording", "group"])
        .where(~F.col("src_zid").eqNullSafe(F.col("subscriber")))
    )
    every = direct.select(*to, "samples").unionByName(shared.select(*to, "samples"))
    return every.groupBy(*to).agg(F.sum("samples").alias("delivered"))
