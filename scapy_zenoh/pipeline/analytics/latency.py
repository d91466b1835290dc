"""How long things take: samples from their timestamp on and through a node, queries until they are answered."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import count_if, spread, total
from scapy_zenoh.pipeline.analytics.samples import SECOND, begin_of_window, samples

_MS = 10**6
#: A node starts the clock of a query a little before the query is on the wire.
_IN_TIME = 0.99


def delivery_latency(messages: DataFrame) -> DataFrame:
    """From timestamp to capture: a row for each recording, session, sender, receiver, key and ``timestamp_id``.

    ``delay_*_ns`` are capture time minus ``timestamp_time``, in ns: minimum, mean, percentiles (approximate in large
    groups), maximum. The timestamp is that of the clock of ``timestamp_id``, so the difference between that clock and
    the one of the capture is in the delay, which can be negative; ``clock_drift`` tells about it. A router gives a
    timestamp to samples without one: then ``timestamp_id`` is the router and the way to it is not in the delay.
    ``samples`` without timestamp have no row; one that goes over several links has a row on each.
    """
    stamped = samples(messages).where(F.col("timestamp_time").isNotNull())
    delay = F.col("time") - F.col("timestamp_time")
    return stamped.groupBy(
        "recording",
        "session",
        F.col("src_zid").alias("sender"),
        F.col("dst_zid").alias("receiver"),
        "key",
        "timestamp_id",
    ).agg(F.count(F.lit(1)).alias("samples"), *spread(delay, "delay"))


def hop_latency(messages: DataFrame) -> DataFrame:
    """How long nodes keep what they forward: a row for each recording, node, session in, session out and key.

    A sample is known again by its source info (node, entity, number), else by its timestamp, and its key; samples
    with neither are not counted, nor is the first hop of one that got its timestamp from the node itself.

    * ``node``; ``sender``, ``session_in``: whom it had the sample from first; ``receiver``, ``session_out``: where it
      sent it, null for a group.
    * ``samples``: pairs of a sample coming and going. ``kept_*_ns``: time between the two in ns, as captured;
      negative only if packets were captured out of order, or by different machines.
    """
    made = F.struct("source_zid", "source_eid", "source_sn")
    stamped = F.struct("timestamp_id", "timestamp_time")
    by_source = F.col("source_sn").isNotNull() & F.col("source_zid").isNotNull()
    seen = samples(messages).select(
        "recording",
        "session",
        "key",
        F.when(by_source, made.cast("string"))
        .when(F.col("timestamp_time").isNotNull(), stamped.cast("string"))
        .alias("sample"),
        "time",
        "row",
        "src_zid",
        "dst_zid",
    )
    ends = F.array(
        F.struct(F.col("dst_zid").alias("node"), F.lit(True).alias("comes"), F.col("src_zid").alias("other")),
        F.struct(F.col("src_zid").alias("node"), F.lit(False).alias("comes"), F.col("dst_zid").alias("other")),
    )
    seen = seen.where(F.col("sample").isNotNull()).select("*", F.inline(ends)).where(F.col("node").isNotNull())
    whole = Window.partitionBy("recording", "key", "sample", "node")
    first = F.min(F.when(F.col("comes"), F.struct("time", "row", "session", F.col("other").alias("from")))).over(whole)
    passed = seen.withColumn("first", first).where(~F.col("comes") & (F.col("first.session") != F.col("session")))
    kept = F.col("time") - F.col("first.time")
    return passed.groupBy(
        "recording",
        "node",
        F.col("first.from").alias("sender"),
        F.col("first.session").alias("session_in"),
        F.col("other").alias("receiver"),
        F.col("session").alias("session_out"),
        "key",
    ).agg(F.count(F.lit(1)).alias("samples"), *spread(kept, "kept"))


def query_times(queries: DataFrame) -> DataFrame:
    """The rows of ``queries`` with durations in ns from when they were asked, as captured, and how they ended.

    ``first_reply_ns``, ``last_reply_ns``, ``finished_ns`` are null where that was not seen. ``timed_out``: the end
    came, but not before the timeout of the query was over. A node that gives up waiting sends an error and the end
    itself; one that asks gives up silently, and such a query stays ``unfinished``. ``ending`` is ``timeout``, else
    ``error`` (there were errors and no other reply), else the ``outcome``.
    """
    asked = F.col("asked")
    finished = F.col("finished") - asked
    timed_out = F.coalesce(finished >= F.col("timeout_ms").cast("double") * (_MS * _IN_TIME), F.lit(False))
    only_errors = (F.col("errors") > 0) & (F.col("replies") == 0)
    ending = F.when(F.col("timed_out"), "timeout").when(
        only_errors & F.col("finished").isNotNull(), "error"
    ).otherwise(F.col("outcome"))  # fmt: skip
    return queries.withColumns(
        {
            "first_reply_ns": F.col("first_reply") - asked,
            "last_reply_ns": F.col("last_reply") - asked,
            "finished_ns": finished,
            "timed_out": timed_out,
        }
    ).withColumn("ending", ending)


def query_latency(queries: DataFrame) -> DataFrame:
    """How queries go: a row for each recording, session, asker (``zid``), asked (``peer_zid``) and key.

    A query that a router passes on is a query in each session.

    * ``queries``, of which ``answered``, ``empty``, ``unfinished`` are the outcomes of the table; ``timed_out``,
      ``failed`` (only errors came): see ``query_times``.
    * ``replies``, ``errors``, ``reply_bytes``: of all of them.
    * ``first_reply_*_ns``, ``last_reply_*_ns``, ``finished_*_ns``: time since the query, in ns, over the queries that
      have it. Percentiles are approximate in large groups.
    """
    outcome = F.col("outcome")
    return (
        query_times(queries)
        .groupBy("recording", "session", "zid", "peer_zid", "key")
        .agg(
            F.count(F.lit(1)).alias("queries"),
            *(count_if(outcome == name).alias(name) for name in ("answered", "empty", "unfinished")),
            count_if(F.col("timed_out")).alias("timed_out"),
            count_if(F.col("ending") == "error").alias("failed"),
            *(total(name).alias(name) for name in ("replies", "errors", "reply_bytes")),
            *(
                column
                for name in ("first_reply", "last_reply", "finished")
                for column in spread(F.col(f"{name}_ns"), name)
            ),
        )
    )


def clock_drift(messages: DataFrame, window: float = 1.0) -> DataFrame:
    """Clocks against that of the capture: a row for each recording and ``timestamp_id``.

    Every sample counts where it was first captured. What it took to get there adds to its delay, so the smallest
    delays tell most.

    * ``samples`` with different timestamps; ``first``, ``last`` capture in ns since 1970; ``span_s`` between these.
    * ``offset_ns``: the smallest delay (capture time minus timestamp). The clock is not further *behind* that of the
      capture than this, and if it is negative, the clock is ahead by at least as much.
    * ``drift_ppm``: how much the smallest delay of each ``window`` (seconds) grows, by linear regression, in
      millionths. Positive: the clock is slow. Null with fewer than two windows; little means little in a short span.
    * ``windows``: how many there were.

    Timestamps that applications chose, or that come with old data, are taken for those of the clock.
    """
    stamped = samples(messages).where(F.col("timestamp_time").isNotNull())
    once = stamped.groupBy("recording", "timestamp_id", "timestamp_time").agg(F.min("time").alias("time"))
    delay = F.col("time") - F.col("timestamp_time")
    of_window = (
        once.groupBy("recording", "timestamp_id", begin_of_window(F.col("time"), window))
        .agg(
            F.count(F.lit(1)).alias("samples"),
            F.min(F.struct(delay.alias("delay"), "time")).alias("least"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
        )
    )  # fmt: skip
    slope = F.regr_slope(F.col("least.delay").cast("double"), F.col("least.time") / SECOND)
    return of_window.groupBy("recording", "timestamp_id").agg(
        F.sum("samples").alias("samples"),
        F.count(F.lit(1)).alias("windows"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        ((F.max("last") - F.min("first")) / SECOND).alias("span_s"),
        F.min("least.delay").alias("offset_ns"),
        (slope / 1000).alias("drift_ppm"),
    )
