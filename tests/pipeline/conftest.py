"""What tests of the pipeline share: one Spark, and captures as one table of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh import arrow
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.pipeline.java import find_java
from scapy_zenoh.recording import Recording
from tests.compiled import compile_once
from tests.conftest import captures
from tests.pipeline.cluster import Cluster, standalone_cluster
from tests.rows.test_truth import truth_of

Row = dict[str, Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for Spark needs it, and seconds."""
    for item in items:
        if {"spark", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.slow)


def name_of(path: Path) -> str:
    return path.name.split(".")[0]


@pytest.fixture(scope="session")
def compiled() -> None:
    """All functions that captures need are compiled, as they are where large captures have been read before."""
    compile_once()


@pytest.fixture(scope="session")
def spark_ready() -> None:
    """Skip where Spark or Java are missing."""
    pytest.importorskip("pyspark")
    try:
        find_java()
    except PipelineError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(spark_ready: None) -> Iterator[Any]:
    from scapy_zenoh.pipeline.spark import session

    few = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    slow = {"spark.sql.adaptive.enabled": "false"}  # it costs more than it saves on a few rows
    made = session("local[2,4]", **few, **slow)
    yield made
    made.stop()


@pytest.fixture(scope="session")
def cluster(spark_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master with two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Captures, read: a folder of messages for Spark, and what the session tracker says of each capture.

    The few large ones are bursts of samples, which other tests read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("messages")
    summaries = {}
    for path in captures():
        if path.stat().st_size > 1 << 20:
            continue
        keylog = truth_of(path).get("keylog")
        recording = Recording([path], keylog=path.with_name(keylog) if keylog else None)
        table = pa.Table.from_batches(recording.batches(payload=False), arrow.schema()).unify_dictionaries()
        summaries[name_of(path)] = recording.summary()
        if table.num_rows:
            pq.write_table(_with_more_columns(table, name_of(path)), folder / f"{name_of(path)}.parquet")
    return folder, summaries


def _with_more_columns(table: Any, recording: str) -> Any:
    """Rows as the tables have them: plain texts, and what tables add."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = [pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    table = table.cast(pa.schema(plain))

    def instant(name: str) -> Any:
        return pc.divide(table[name], 1000).cast(pa.timestamp("us", "UTC"))

    rows = table.num_rows
    table = table.add_column(0, "row", pa.array(range(rows), pa.int64()))
    for name, values in {
        "time_utc": instant("time"),
        "timestamp_utc": instant("timestamp_time"),
        "date": instant("time").cast(pa.date32()),
        "recording": pa.array([recording] * rows, pa.string()),
    }.items():
        table = table.append_column(name, values)
    return table


@pytest.fixture(scope="session")
def messages(spark: Any, read: tuple[Path, Any]) -> Any:
    """The messages of these captures; ``recording`` is the name of the capture."""
    from scapy_zenoh.pipeline.schema import of_table

    return spark.read.schema(of_table("messages")).parquet(str(read[0])).coalesce(2).cache()


@pytest.fixture(scope="session")
def summaries(read: tuple[Any, dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """What the session tracker says of each capture."""
    return read[1]


@pytest.fixture(scope="session")
def table(spark: Any) -> Callable[..., Any]:
    """Makes a small table by hand: columns that are not given are null, ``recording`` is ``r``, rows count up."""
    from scapy_zenoh.pipeline.schema import of_table

    def make(name: str, rows: Sequence[Row]) -> Any:
        schema = of_table(name)
        known = set(schema.names)
        full = [{"recording": "r", "row": number, **row} for number, row in enumerate(rows)]
        for row in full:
            assert set(row) - {"row"} <= known, sorted(set(row) - known)
        return spark.createDataFrame([tuple(row.get(column) for column in schema.names) for row in full], schema)

    return make


def rows_of(frame: Any) -> list[Row]:
    """The rows of a DataFrame, as dictionaries."""
    return [row.asDict() for row in frame.collect()]
