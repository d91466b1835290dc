"""What analytics share: joins where unknown is equal to unknown, who can hear whom, and which keys meet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from scapy_zenoh.keyexpr import intersects

#: Messages in which a node tells its role.
_INTRODUCTIONS = ("init_syn", "init_ack", "join", "hello")


def matched(left: DataFrame, right: DataFrame, on: Sequence[str], how: str = "left") -> DataFrame:
    """A join on columns of the same names in which null equals null; the result has those of the left side."""
    renamed = right.select(*(F.col(n).alias(f"_{n}") for n in on), *(n for n in right.columns if n not in on))
    same = reduce(and_, (F.col(n).eqNullSafe(F.col(f"_{n}")) for n in on))
    return left.join(renamed, same, how).drop(*(f"_{n}" for n in on))


def place(session: Column) -> Column:
    """Where a message can be heard: its session, or the multicast group, which has a session for each sender."""
    return F.coalesce(group(session), session)


def group(session: Column) -> Column:
    """Address and port of a multicast group, null for a session of two nodes."""
    return F.nullif(F.regexp_extract(session, "@(.*)#", 1), F.lit(""))


def roles(messages: DataFrame) -> DataFrame:
    """The role that a node tells, once for each ``recording`` and ``zid``."""
    told = messages.where(F.col("kind").isin(*_INTRODUCTIONS) & F.col("src_zid").isNotNull())
    return told.groupBy("recording", F.col("src_zid").alias("zid")).agg(F.max("whatami").alias("role"))


def from_elsewhere(rows: DataFrame, teller: str, told: str, known: DataFrame) -> DataFrame:
    """Rows with ``passed_on``: whether the node only passes on what it was told in another session.

    Rows have ``recording``, ``session`` and ``key``; ``teller`` and ``told`` name their columns of nodes. Clients and
    peers pass nothing on. The result has the ``role`` of the teller too.
    """
    heard = (
        rows.where(F.col(told).isNotNull())
        .groupBy("recording", "key", F.col(told).alias(teller))
        .agg(F.min("session").alias("_one"), F.max("session").alias("_other"))
    )
    elsewhere = (F.col("_one") != F.col("session")) | (F.col("_other") != F.col("session"))
    may = F.coalesce(F.col("role") == "router", F.lit(True))
    rows = matched(rows, known.withColumnRenamed("zid", teller), ["recording", teller])
    rows = matched(rows, heard, ["recording", "key", teller])
    return rows.withColumn("passed_on", may & F.coalesce(elsewhere, F.lit(False))).drop("_one", "_other")


# --- key expressions ----------------------------------------------------------------------------


def where_keys_meet(pairs: DataFrame, one: str, other: str) -> DataFrame:
    """The rows in which two key expressions intersect; for pairs of distinct keys, not for messages.

    Most pairs differ before their first wildcard: Spark sees that by itself, and asks Python about the others.
    """
    first, second = _literal(F.col(one)), _literal(F.col(other))
    alike = pairs.where(first.startswith(second) | second.startswith(first))
    meet = arrow_udf(_intersect, BooleanType())  # type: ignore[call-overload]  # its stubs want one argument more
    return alike.where(meet(F.col(one), F.col(other)))


def _literal(key: Column) -> Column:
    """What is before the first wildcard; the slash before ``**`` may be missing in what it matches."""
    return F.rtrim(F.regexp_extract(key, r"^[^*$]*", 0), F.lit("/"))


def _intersect(one: pa.Array, other: pa.Array) -> pa.Array:
    pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
    return pa.array([a is not None and b is not None and intersects(a, b) for a, b in pairs], pa.bool_())


# --- statistics ---------------------------------------------------------------------------------


def spread(value: Column, name: str) -> list[Column]:
    """Aggregates of a duration: ``name_min_ns``, mean, median, two high percentiles (approximate) and maximum."""
    high = F.percentile_approx(value, [0.5, 0.9, 0.99])
    found = {
        "min": F.min(value),
        "mean": F.avg(value),
        "p50": high[0],
        "p90": high[1],
        "p99": high[2],
        "max": F.max(value),
    }
    return [column.alias(f"{name}_{what}_ns") for what, column in found.items()]


def count_if(condition: Column) -> Column:
    """How many rows are so; unknown is not."""
    return F.count(F.when(condition, 1))


def total(value: Column | str) -> Column:
    """A sum that is 0 of nothing, and null if it is too large for a number."""
    summed = F.try_sum(value)
    return F.when(F.count(value) == 0, F.lit(0)).otherwise(summed)
