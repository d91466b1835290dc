"""A session that somebody else made and set up otherwise: the tables are the same."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.generate import generate
from scapy_zenoh.schema.tables import TABLES
from scapy_zenoh.synthetic.shape import Shape
from tests.pipeline.cluster import ROOT

pytestmark = pytest.mark.slow

#: What others set, and what could matter.
OTHERWISE = {
    "spark.sql.session.timeZone": "Pacific/Kiritimati",  # 14 hours from UTC: another day
    "spark.sql.ansi.enabled": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "false",
    "spark.sql.parquet.mergeSchema": "true",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.sources.default": "orc",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captures")
    generate(Shape(messages=300, sessions=4, queries=0.3, declarations=0.3), folder / "made.pcap")
    (folder / "made.truth.json").unlink()
    shutil.copy(ROOT / "samples" / "query.pcapng", folder)
    return folder


def made(spark: Any, captures: Path, output: Path) -> dict[str, Counter[str]]:
    """The rows of all tables, as Spark reads them."""
    from scapy_zenoh.pipeline import read_tables, write_tables

    write_tables(spark, [str(captures)], output)
    tables = read_tables(spark, output)
    return {name: Counter(str(row) for row in tables[name].toArrow().to_pylist()) for name in TABLES}


def read(spark: Any, captures: Path) -> Counter[str]:
    """The messages, from the data source."""
    from scapy_zenoh.pipeline import register

    register(spark)
    return Counter(str(row) for row in spark.read.format("zenoh").load(str(captures)).toArrow().to_pylist())


@pytest.fixture
def foreign(spark: Any) -> Any:
    session = spark.newSession()
    for key, value in OTHERWISE.items():
        session.conf.set(key, value)
    return session


def test_tables_of_a_foreign_session_are_the_same(spark: Any, foreign: Any, captures: Path, tmp_path: Path) -> None:
    expected, found = made(spark, captures, tmp_path / "ours"), made(foreign, captures, tmp_path / "theirs")
    assert all(expected[name] for name in ("messages", "sessions", "declarations", "queries"))
    for name in TABLES:
        assert found[name] == expected[name], name


def test_tables_are_derived_from_the_messages_of_a_foreign_session(spark: Any, foreign: Any, captures: Path) -> None:
    from scapy_zenoh.pipeline import derived, register

    def made(session: Any) -> list[Counter[str]]:
        register(session)
        messages = session.read.format("zenoh").load(str(captures))
        tables = derived.declarations(messages), derived.queries(messages)
        return [Counter(str(row) for row in table.toArrow().to_pylist()) for table in tables]

    expected = made(spark)
    assert all(expected)
    assert made(foreign) == expected


def test_data_source_gives_the_same_in_a_foreign_session(spark: Any, foreign: Any, captures: Path) -> None:
    assert read(foreign, captures) == read(spark, captures)
