"""What docs/tables.md and docs/cluster.md show runs: Python in Spark, SQL in Spark and DuckDB, and a notebook cell."""

from __future__ import annotations

import doctest
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.pipeline.java import java_home
from tests.pipeline.cluster import ROOT, run

pytestmark = pytest.mark.slow

DOCS = ROOT / "docs"


def blocks(document: Path, language: str) -> list[str]:
    """The blocks of code in a document."""
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def place(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples and their tables, as the examples have it."""
    from scapy_zenoh.pipeline import write_tables

    folder = tmp_path_factory.mktemp("docs")
    (folder / "samples").mkdir()
    for capture in (ROOT / "samples").glob("*.pcapng"):
        shutil.copy(capture, folder / "samples")
    write_tables(spark, [str(folder / "samples")], folder / "tables")
    return folder


def test_python_runs(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    names: dict[str, Any] = {"spark": spark}
    found = blocks(DOCS / "tables.md", "python")
    assert len(found) == 3
    for block in found:
        exec(block, names)
    assert names["messages"].count() == names["m"].count() > 100


def test_readme_shows_what_spark_says(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    shown = re.findall(r"^```\n(>>> .*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(shown) == 2
    examples = doctest.DocTestParser().get_doctest("\n".join(shown), {"spark": spark}, "README", None, None)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=told.append)
    assert not told, "".join(told)


def test_every_function_of_analytics_is_shown() -> None:
    from scapy_zenoh.pipeline import analytics

    (shown,) = (block for block in blocks(DOCS / "tables.md", "python") if "analytics" in block)
    in_their_own_right = set(analytics.__all__) - {"samples", "sample_flows", "query_times"}
    assert {name for name in in_their_own_right if f"\n{name}(" not in shown} == set()


def test_sql_gives_the_same_in_spark_and_duckdb(spark: Any, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb")
    from scapy_zenoh.pipeline import read_tables

    monkeypatch.chdir(place)
    read_tables(spark, "tables")
    duck = duckdb.connect()
    duck.execute("set timezone = 'UTC'")
    views, *queries = blocks(DOCS / "tables.md", "sql")
    duck.execute(views)
    assert len(queries) >= 7
    for query in queries:
        in_spark = [tuple(row) for row in spark.sql(query).collect()]
        in_duckdb = duck.sql(query).fetchall()
        assert len(in_spark) == len(in_duckdb) > 0, query


@pytest.mark.spark
def test_notebook_cells_run_in_a_plain_session(spark_ready: None, place: Path, tmp_path: Path) -> None:
    cells = blocks(DOCS / "cluster.md", "python")
    assert len(cells) == 3
    shutil.copytree(place / "samples", tmp_path / "captures")
    code = "\n".join(cells).replace("/Volumes/main/zenoh", str(tmp_path))
    start = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    end = "\nprint(spark.conf.get('spark.sql.session.timeZone'), spark.table('zenoh_queries').count())\n"
    variables = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "TZ": "Asia/Tokyo"}
    done = run(sys.executable, "-c", start + code + end, cwd=tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Asia/Tokyo 8"  # four queries, each on two links
