"""What did not arrive: numbers missing in lanes, messages that could not be put together, nodes that went silent."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import count_if, matched, total

_MS = 10**6


def lane_loss(lanes: DataFrame, messages: DataFrame) -> DataFrame:
    """Loss in each lane: a row for each recording, session, sender (``zid``), priority and reliability.

    * ``seen``: FRAMEs and FRAGMENTs of the lane in the recording. ``repeated``: those whose number had come before.
    * ``missing``: numbers that never came. ``expected``: how many there should have been.
    * ``loss``: ``missing / expected``, null for a lane without numbers.

    What the capture lacks and what the network lost look the same; on TCP only the former is possible. Where the ids
    of the nodes are unknown, both directions of a session are one row. Low-latency links have no numbers and no rows.
    """
    lane = ["recording", "session", "zid", "priority", "reliable"]
    counted = lanes.groupBy(*lane).agg(F.sum("missing").alias("missing"), F.sum("repeated").alias("repeated"))
    numbered = F.col("kind").isin("frame", "fragment") & F.col("sn").isNotNull() & F.col("fault").isNull()
    carriers = (
        messages.where(numbered)
        .withColumnRenamed("src_zid", "zid")
        .groupBy(*lane)
        .agg(F.count(F.lit(1)).alias("seen"))
    )  # fmt: skip
    found = matched(counted, carriers, lane).withColumn("seen", F.coalesce("seen", F.lit(0)))
    found = found.withColumn("expected", F.col("seen") - F.col("repeated") + F.col("missing"))
    return found.withColumn("loss", F.try_divide(F.col("missing"), F.col("expected")))


def incomplete_fragments(fragments: DataFrame) -> DataFrame:
    """Messages sent in fragments: a row for each recording, session, sender (``zid``), kind and key.

    ``kind`` and ``key`` are null where the beginning is missing.

    * ``chains``: messages, of which ``incomplete`` could not be put together: ``beginning_missing``, ``rest_missing``
      or ``too_long`` to be kept. ``loss``: incomplete / chains.
    * ``fragments``, ``bytes``: that came. ``bytes_lost``: those of incomplete messages, which came for nothing.
    * ``duration_mean_ns``, ``duration_max_ns``: from the first fragment to the last, of complete messages.
    """
    complete, missing = F.col("complete"), F.col("missing")
    duration = F.when(complete, F.col("ended") - F.col("began"))
    found = fragments.groupBy("recording", "session", "zid", "kind", "key").agg(
        F.count(F.lit(1)).alias("chains"),
        count_if(~complete).alias("incomplete"),
        count_if(missing == "beginning").alias("beginning_missing"),
        count_if(missing == "rest").alias("rest_missing"),
        count_if(missing == "too long").alias("too_long"),
        total("fragments").alias("fragments"),
        total("bytes").alias("bytes"),
        total(F.when(~complete, F.col("bytes"))).alias("bytes_lost"),
        F.avg(duration).alias("duration_mean_ns"),
        F.max(duration).alias("duration_max_ns"),
    )
    return found.withColumn("loss", F.col("incomplete") / F.col("chains"))


def lease_margins(messages: DataFrame, sessions: DataFrame, links: DataFrame) -> DataFrame:
    """How near nodes come to being given up: a row for each recording, session, link and sender (``zid``).

    Each end of a link promises to be heard within its lease, and the other end gives it up when it is not.

    * ``lease_ms``: the promise, null when it was not seen. ``batches``: how often the node was heard.
    * ``keep_alives``, ``keep_alive_mean_ns``: how many, and the mean time between two; nodes send them a quarter of
      the lease after they last sent anything. On multicast JOINs do that, and are counted.
    * ``silence_ns``: the longest time between two batches of it, or from the last one to ``until``, when the link or
      session was closed or last heard; or when the other one had been silent for its own lease, which allows this one
      to give up. ``silent_from``: when that began, in ns since 1970.
    * ``margin_ns``: lease minus silence; ``expired``: whether it is negative, both null without lease.

    An id that is null is told apart by its address. Bytes missing in the capture look like silence.
    """
    begins = F.col("session").startswith("?") & F.col("kind").isin("init_syn", "init_ack")  # of a session to come
    heard = messages.where((F.col("msg") == 0) & (F.col("layer") != "scouting") & ~begins)
    end = ["recording", "session", "link", "src_zid", "src", "sport"]
    before = F.lag("time").over(Window.partitionBy(*end).orderBy("time", "row"))
    told = F.col("kind").isin("keep_alive", "join")
    spoken = (
        heard.select(*end, "time", "row", "kind")
        .withColumn("before", before)
        .groupBy(*end)
        .agg(
            F.count(F.lit(1)).alias("batches"),
            count_if(told).alias("keep_alives"),
            F.min(F.when(told, F.col("time"))).alias("_first"),
            F.max(F.when(told, F.col("time"))).alias("_last"),
            F.max(F.when(F.col("before").isNotNull(), F.struct(F.col("time") - F.col("before"), "before"))).alias(
                "between"
            ),
            F.max("time").alias("heard"),
        )
        .withColumnRenamed("src_zid", "zid")
    )
    sides = sessions.select(
        "recording",
        "session",
        F.inline(
            F.array(
                F.struct(F.col("low_zid").alias("zid"), F.col("low_lease_ms").alias("lease_ms")),
                F.struct(F.col("high_zid").alias("zid"), F.col("high_lease_ms").alias("lease_ms")),
            )
        ),
    ).where(F.col("zid").isNotNull())
    over = sessions.groupBy("recording", "session").agg(F.max(F.coalesce("closed", "last")).alias("over"))
    ended = links.groupBy("recording", "link").agg(F.max("closed").alias("closed"))
    found = matched(spoken, sides, ["recording", "session", "zid"])
    found = matched(matched(found, over, ["recording", "session"]), ended, ["recording", "link"])
    lease = F.try_multiply(F.col("lease_ms").try_cast("long"), F.lit(_MS))  # null if it is beyond all times
    at_the_end = F.struct((F.col("until") - F.col("heard")).alias("silence"), F.col("heard").alias("since"))
    between = F.struct(F.col("between")["col1"].alias("silence"), F.col("between")["before"].alias("since"))
    longest = F.greatest(at_the_end, F.when(F.col("between").isNotNull(), between))
    given_up = F.when(F.col("longest.silence") > lease, F.col("longest.since") + lease)
    both = F.collect_list(F.struct("src", "sport", given_up.alias("at"))).over(
        Window.partitionBy("recording", "session", "link")
    )
    other = F.filter(both, lambda one: (one["src"] != F.col("src")) | (one["sport"] != F.col("sport")))
    gave_up = F.array_min(other["at"])  # of nulls as well, which it leaves out
    return (
        found.withColumn("until", F.greatest(F.coalesce("closed", "over", "heard"), "heard"))
        .withColumn("longest", longest)
        .withColumn("gave_up", gave_up)
        .withColumn("until", F.least("until", F.when(F.col("gave_up").isNotNull(), F.greatest("gave_up", "heard"))))
        .withColumn("longest", longest)
        .select(
            "recording",
            "session",
            "link",
            "zid",
            "src",
            "sport",
            "lease_ms",
            "batches",
            "keep_alives",
            F.try_divide(F.col("_last") - F.col("_first"), F.col("keep_alives") - 1).alias("keep_alive_mean_ns"),
            F.col("longest.silence").alias("silence_ns"),
            F.col("longest.since").alias("silent_from"),
            "until",
            (lease - F.col("longest.silence")).alias("margin_ns"),
            (F.col("longest.silence") > lease).alias("expired"),
        )
    )
