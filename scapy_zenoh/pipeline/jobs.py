"""Tasks on Spark: any list of work, one task each, and what each returns. Needs no shuffle of what is read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


def run(spark: SparkSession, do: Callable[[T], R], work: Sequence[T]) -> list[R]:
    """What ``do`` returns for each piece of work, in their order; every piece is a task of its own."""
    if not work:
        return []
    pieces = [pickle.dumps(piece, pickle.HIGHEST_PROTOCOL) for piece in work]
    table = pa.table({"number": pa.array(range(len(pieces)), pa.int32()), "piece": pa.array(pieces, pa.binary())})
    tasks = spark.createDataFrame(table).repartitionById(len(pieces), "number")
    done = tasks.mapInArrow(_Doing(do), "number int, result binary").toArrow()
    results = dict(zip(done["number"].to_pylist(), done["result"].to_pylist(), strict=True))
    return [pickle.loads(results[number]) for number in range(len(pieces))]


class _Doing:
    """A function for Spark, which gives and takes Arrow batches."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self.do = do

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number, piece in zip(batch["number"].to_pylist(), batch["piece"].to_pylist(), strict=True):
                result = pickle.dumps(self.do(pickle.loads(piece)), pickle.HIGHEST_PROTOCOL)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([result], pa.binary())], ["number", "result"]
                )
