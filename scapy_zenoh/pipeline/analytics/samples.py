"""How much is published: samples and their bytes, per key, per publisher, and on the way between two nodes.

A sample is a PUSH with a PUT or DEL. A capture at a router has it once for each link that it goes over, so each
result says what it counts.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scapy_zenoh.pipeline.analytics.joining import count_if, from_elsewhere, group, roles, total

SECOND = 10**9

_COUNTS = ("samples", "puts", "deletes", "bytes")
_SIZES = ("payload_min", "payload_mean", "payload_max")
_RATES = ("per_second", "bytes_per_second")


def samples(messages: DataFrame) -> DataFrame:
    """The messages that are samples, with all columns of ``messages``."""
    return messages.where((F.col("kind") == "push") & F.col("body").isin("put", "del"))


def sample_flows(messages: DataFrame, window: float | None = None) -> DataFrame:
    """Samples on their way: a row for each recording, session, sender, receiver and key.

    A sample that goes over three links counts in three rows. ``receiver`` is null towards a multicast group.

    * ``samples``, ``puts``, ``deletes``; ``bytes`` of payloads; ``payload_min``, ``payload_mean``, ``payload_max`` of
      the PUTs. What is in shared memory counts with its length.
    * ``first``, ``last``: capture times in ns since 1970. ``per_second``: samples after the first one for each second
      between these, null for a single one. ``bytes_per_second``: that of mean samples.
    * ``role`` of the sender, null when it did not tell. ``passed_on``: whether the sender got samples of this key in
      another session, and is a router or of unknown role: then it has not made them. (A router that publishes what it
      also forwards is taken for one that forwards.)

    With ``window`` in seconds there is a row for each window with a sample, and ``window``, its begin in ns since
    1970; ``per_second`` is then over the whole window.
    """
    sent = samples(messages).select(
        "recording",
        "session",
        F.col("src_zid").alias("sender"),
        F.col("dst_zid").alias("receiver"),
        "key",
        *_windows(window),
        "body",
        "payload_len",
        "time",
    )
    flows = sent.groupBy("recording", "session", "sender", "receiver", "key", *_by(window)).agg(
        F.count(F.lit(1)).alias("samples"),
        count_if(F.col("body") == "put").alias("puts"),
        count_if(F.col("body") == "del").alias("deletes"),
        total("payload_len").alias("bytes"),
        F.min("payload_len").alias("payload_min"),
        F.avg("payload_len").alias("payload_mean"),
        F.max("payload_len").alias("payload_max"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )
    names = ("recording", "session", "sender", "receiver", "key", *_by(window), *_COUNTS, *_SIZES, "first", "last",
             *_RATES, "role", "passed_on")  # fmt: skip
    return _rates(from_elsewhere(flows, "sender", "receiver", roles(messages)), window).select(*names)


def publisher_rates(messages: DataFrame, window: float | None = None) -> DataFrame:
    """What each node publishes: a row for each recording, publisher and key, samples counted once.

    A client has one session at a time: all that it sent is counted. Of others, which may send a sample to several
    nodes, what went to the one with the most samples of the key, in all their sessions. ``copies`` are the samples to
    all, ``receivers`` how many they are. A datagram that was captured twice counts twice (``lanes`` tells how often
    that was). Nodes that only forward are left out, see ``passed_on`` of ``sample_flows``, where the other columns and
    ``window`` are explained too. Where the link of the publisher is not in the recording, its router stands for it.
    """
    made = _by_receiver(sample_flows(messages, window).where(~F.col("passed_on")), window)
    by = made.groupBy("recording", F.col("sender").alias("publisher"), "key", *_by(window)).agg(
        F.max("role").alias("role"),
        F.max(F.struct(*_COUNTS)).alias("most"),
        F.sum("samples").alias("copies"),
        F.size(F.array_distinct(F.flatten(F.collect_list("receivers")))).alias("receivers"),
        *_sizes_and_times(F.lit(True)),
    )
    names = ("recording", "publisher", "role", "key", *_by(window), *_COUNTS, *_SIZES, "first", "last", *_RATES,
             "copies", "receivers")  # fmt: skip
    return _rates(_counted(by), window).select(*names)


def key_rates(messages: DataFrame, window: float | None = None) -> DataFrame:
    """What is published under each key: a row for each recording and key, samples counted once.

    That is the sum over the rows of ``publisher_rates``; ``publishers`` is how many there are. ``hops`` is how often
    samples of the key are in the recording, once for each link that they went over.
    """
    made = ~F.col("passed_on")
    sent = _by_receiver(sample_flows(messages, window), window)
    of_sender = sent.groupBy("recording", "sender", "key", *_by(window))
    by = of_sender.agg(
        F.max(F.when(made, F.struct(*_COUNTS))).alias("most"),
        F.sum("samples").alias("hops"),
        *_sizes_and_times(made),
    )
    by = _counted(by).groupBy("recording", "key", *_by(window)).agg(
        F.count("most").alias("publishers"),
        *(total(name).alias(name) for name in _COUNTS),
        F.sum("hops").alias("hops"),
        *_sizes_and_times(F.lit(True)),
    )  # fmt: skip
    names = ("recording", "key", *_by(window), *_COUNTS, *_SIZES, "first", "last", *_RATES, "publishers", "hops")
    return _rates(by.withColumn("payload_mean", _mean()), window).select(*names)


def _by_receiver(flows: DataFrame, window: float | None) -> DataFrame:
    """Flows to the same node, or into the same group, as one: its sessions follow each other. So do all of clients."""
    of_client = F.when(F.col("role") == "client", F.lit(""))
    to = F.coalesce(of_client, group(F.col("session")), "receiver", "session").alias("to")
    return flows.groupBy("recording", "sender", "key", *_by(window), to, "passed_on").agg(
        *(total(name).alias(name) for name in _COUNTS),
        F.max("role").alias("role"),
        F.collect_set("receiver").alias("receivers"),
        *_sizes_and_times(F.lit(True)),
    )


def _windows(window: float | None) -> list[Column]:
    if window is None:
        return []
    return [begin_of_window(F.col("time"), window)]


def begin_of_window(time: Column, window: float) -> Column:
    """The begin of the window of so many seconds that a time is in, both in ns since 1970."""
    return (time - F.pmod(time, F.lit(round(window * SECOND)))).alias("window")


def _by(window: float | None) -> list[str]:
    return [] if window is None else ["window"]


def _sizes_and_times(where: Column) -> list[Column]:
    """Of several rows what is smallest, largest, first and last."""
    found = {"payload_min": F.min, "payload_max": F.max, "first": F.min, "last": F.max}
    return [aggregate(F.when(where, F.col(name))).alias(name) for name, aggregate in found.items()]


def _counted(rows: DataFrame) -> DataFrame:
    """With the counts that are the largest."""
    rows = rows.select("*", *(F.col("most")[name].alias(name) for name in _COUNTS))
    return rows.withColumn("payload_mean", _mean())


def _mean() -> Column:
    return F.try_divide(F.col("bytes"), F.col("puts"))


def _rates(rows: DataFrame, window: float | None) -> DataFrame:
    """With samples and bytes per second."""
    if window is None:
        between = F.nullif(F.col("last") - F.col("first"), F.lit(0)) / SECOND
        rate = F.when(F.col("samples") > 1, (F.col("samples") - 1) / between)
    else:
        rate = F.col("samples") / F.lit(float(window))
    mean = F.try_divide(F.col("bytes"), F.col("samples"))
    return rows.withColumns({"per_second": rate, "bytes_per_second": rate * mean})
