"""Captures as Arrow tables: what ``dissect --json`` prints, in columns that pandas, Polars and DuckDB take."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scapy_zenoh import compilation, parquet, read_capture, to_table
from scapy_zenoh.capture import CaptureError
from scapy_zenoh.cli import main
from scapy_zenoh.generate import Shape, generate
from scapy_zenoh.schema.columns import COLUMNS
from tests.bulk.conftest import compiled  # noqa: F401  (a fixture: one worker compiles)
from tests.conftest import captures
from tests.test_imports import ROOT, SCAPY_IS_MISSING

Row = dict[str, Any]

NAMES = ("s04_query", "s06_declared", "s13_encodings", "s21_shm", "s03_scouting", "s09_compression", "s33_not_zenoh")
SOME = [path for path in captures() if path.stat().st_size < 500_000 and path.name.startswith(NAMES)]

TEXT = pa.dictionary(pa.int32(), pa.string())
TYPES = {
    "text": TEXT,
    "texts": pa.list_(pa.string()),
    "bytes": pa.binary(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "number": pa.decimal128(20, 0),  # 64 bits without sign
}


def named(name: str) -> Path:
    return next(path for path in captures() if path.name.startswith(name))


@pytest.fixture(params=["plain", "compiled"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Small captures are read in plain Python, large ones compiled; here all in one way."""
    enough = 0 if request.param == "compiled" else 1 << 40
    monkeypatch.setattr(compilation, "ENOUGH_READY", enough)
    monkeypatch.setattr(compilation, "ENOUGH_COLD", enough)
    yield request.param


def printed(*arguments: str | Path) -> str:
    """What the command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([str(argument) for argument in arguments]) == 0
    return out.getvalue()


def json_rows(*arguments: str | Path) -> list[Row]:
    return [json.loads(line) for line in printed("dissect", "--json", *arguments).splitlines()]


def as_json(row: Row) -> Row:
    """A row of a table as JSON has it: bytes in hexadecimal, numbers as they are."""
    found = {}
    for column in COLUMNS:
        value = row[column.name]
        if value is not None and column.type == "bytes":
            value = value.hex()
        elif value is not None and column.type == "number":
            value = int(value)
        found[column.name] = value
    return found


def replaced(value: Any) -> Any:
    """Text that was not UTF-8, as tables have it."""
    if isinstance(value, list):
        return [replaced(one) for one in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def check(table: Any, expected: list[Row]) -> None:
    """The rows of a table are these."""
    found = [as_json(row) for row in table.to_pylist()]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == {name: replaced(value) for name, value in other.items()}


# --- schema -------------------------------------------------------------------------------------


def test_schema_is_that_of_the_columns(way: str) -> None:
    schema = to_table(named("s04_query")).schema
    assert schema.names == [column.name for column in COLUMNS]
    assert schema.types == [TYPES[column.type] for column in COLUMNS]
    comments = [schema.field(i).metadata[b"comment"].decode() for i in range(len(COLUMNS))]
    assert comments == [column.about for column in COLUMNS] and all(comments)


def test_capture_without_zenoh_is_an_empty_table_with_the_schema(way: str) -> None:
    table = to_table(named("s33_not_zenoh"))
    assert table.num_rows == len(json_rows(named("s33_not_zenoh")))
    assert table.schema == to_table(named("s04_query")).schema


def test_every_batch_has_the_schema(way: str) -> None:
    table = to_table(named("s04_query"))
    for path in SOME:
        for batch in read_capture(path):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema.equals(table.schema, check_metadata=True)
            batch.validate(full=True)


# --- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SOME, ids=[path.name.split(".")[0] for path in SOME])
def test_rows_are_those_of_dissect(path: Path, way: str) -> None:
    check(to_table(path), json_rows(path))


def test_batches_are_the_table(way: str) -> None:
    path = named("s13_encodings")
    batches = list(read_capture(str(path)))
    assert [row for batch in batches for row in batch.to_pylist()] == to_table(path).to_pylist()


def test_batches_come_as_the_file_is_read(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(Shape(messages=9000, sessions=4, events=0), tmp_path / "made.pcap")
    monkeypatch.setattr(compilation, "BLOCK", 1 << 18)
    batches = read_capture(tmp_path / "made.pcap")
    first = next(batches)
    assert 0 < first.num_rows < 13_000
    assert first.column("frame")[0].as_py() == 4
    assert first.num_rows + sum(batch.num_rows for batch in batches) > 18_000


@pytest.mark.parametrize("name", NAMES[:4])
def test_parquet_file_is_the_table(name: str, tmp_path: Path, way: str) -> None:
    path = named(name)
    assert printed("dissect", "--parquet", tmp_path / "out.parquet", path) == ""
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pylist() == to_table(path).to_pylist()
    assert [table.schema.field(c.name).metadata[b"comment"].decode() for c in COLUMNS] == [c.about for c in COLUMNS]


def test_parquet_file_does_not_wait_for_many_rows_if_they_are_large(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(parquet, "GROUP_BYTES", 100_000)
    table = to_table(named("s13_encodings"))
    with parquet.ParquetFile(tmp_path / "out.parquet") as out:
        for batch in table.to_batches(max_chunksize=10):
            out.add(batch)
    written = pq.ParquetFile(tmp_path / "out.parquet")
    assert 1 < written.num_row_groups < table.num_rows / 10
    assert written.read().to_pylist() == table.to_pylist()


def test_parquet_file_of_nothing_is_empty_and_has_the_columns(tmp_path: Path, way: str) -> None:
    printed("dissect", "--kind", "nothing", "--parquet", tmp_path / "out.parquet", named("s04_query"))
    table = pq.read_table(tmp_path / "out.parquet")
    assert (table.num_rows, table.schema.names) == (0, [column.name for column in COLUMNS])


@pytest.mark.parametrize("choice", [("--kind", "push"), ("--key", "demo/**"), ("--zid", "a"), ("--no-payload",)])
def test_parquet_file_has_the_rows_that_are_wanted(choice: tuple[str, ...], tmp_path: Path, way: str) -> None:
    for name in ("s04_query", "s06_declared"):
        printed("dissect", *choice, "--parquet", tmp_path / "out.parquet", named(name))
        check(pq.read_table(tmp_path / "out.parquet"), json_rows(*choice, named(name)))


def test_without_payload(way: str) -> None:
    path = named("s13_encodings")
    whole, without = to_table(path), to_table(path, payload=False)
    empty = ("payload", "attachment")
    assert [without.column(name).null_count for name in empty] == [without.num_rows] * 2
    assert whole.drop_columns([*empty]).to_pylist() == without.drop_columns([*empty]).to_pylist()
    assert whole.column("payload").null_count < whole.num_rows


def test_ports(way: str) -> None:
    path = named("s26_ports")
    default, more = to_table(path), to_table(path, ports=[19999])
    check(default, json_rows(path))
    check(more, json_rows(path, "--port", "19999"))
    assert more.num_rows >= default.num_rows


def test_several_paths_are_one_recording(way: str) -> None:
    paths = [named("s04_query"), named("s06_declared"), named("s03_scouting")]
    table = to_table(paths)
    check(table, json_rows(*paths))
    assert table.column("capture").unique().to_pylist() == [path.name for path in paths]


def test_text_that_is_not_utf8_is_replaced(tmp_path: Path, way: str) -> None:
    from tests.bulk.talk import Session, Stream, Wire
    from tests.wire import pcap

    link = Stream(Wire(), Session(), 50000)
    link.start()
    link.handshake()
    link.send(0, bytes.fromhex("2500 7d0002ff61 010178 7d000162 010178"))  # FRAME with two PUSH, the first of key \xffa
    path = tmp_path / "text.pcap"
    path.write_bytes(pcap(link.wire.records))
    rows = to_table(path).to_pylist()
    assert [(row["key"], row["fault"]) for row in rows if row["kind"] == "push"] == [
        ("\ufffda", "bad_utf8"),
        ("b", None),
    ]


def test_name_of_a_file_that_is_not_utf8_is_replaced(tmp_path: Path, way: str) -> None:
    path = tmp_path / os.fsdecode(b"\xff.pcapng")
    try:
        path.write_bytes(named("s04_query").read_bytes())
    except OSError:  # there all names are UTF-8
        return
    assert to_table(path).column("capture").unique().to_pylist() == ["\ufffd.pcapng"]


# --- others -------------------------------------------------------------------------------------


def test_pandas_takes_it(way: str) -> None:
    path = named("s06_declared")
    frame = to_table(path).to_pandas()
    rows = json_rows(path)
    assert isinstance(frame, pd.DataFrame) and len(frame) == len(rows)
    assert frame["kind"].value_counts()["push"] == sum(row["kind"] == "push" for row in rows)
    assert frame.loc[frame["kind"] == "push", "key"].tolist() == [r["key"] for r in rows if r["kind"] == "push"]


def test_polars_takes_it(way: str) -> None:
    path = named("s06_declared")
    frame = pl.from_arrow(to_table(path))
    assert isinstance(frame, pl.DataFrame)
    rows = json_rows(path)
    counts = dict(frame.group_by(pl.col("kind").cast(pl.String)).len().iter_rows())
    assert counts == {kind: sum(row["kind"] == kind for row in rows) for kind in {row["kind"] for row in rows}}
    assert frame["time"].to_list() == [row["time"] for row in rows]


def test_duckdb_takes_it(way: str) -> None:
    path = named("s06_declared")
    messages = to_table(path)  # found by its name in the query
    found = duckdb.sql("SELECT key, count(*) FROM messages WHERE kind = 'push' GROUP BY key").fetchall()
    pushes = [row["key"] for row in json_rows(path) if row["kind"] == "push"]
    assert messages.num_rows and dict(found) == {key: pushes.count(key) for key in set(pushes)}


# --- errors -------------------------------------------------------------------------------------


def test_missing_file_is_an_error_after_the_rows_before_it(tmp_path: Path, way: str) -> None:
    good = named("s04_query")
    batches = read_capture([good, tmp_path / "none.pcap"])
    rows: list[Row] = []
    with pytest.raises(CaptureError, match="none.pcap"):
        for batch in batches:
            rows += batch.to_pylist()
    expected = json_rows(good)
    assert [as_json(row) for row in rows] == expected[: len(rows)] and len(rows) > len(expected) - 10
    with pytest.raises(CaptureError, match="none.pcap"):
        to_table(tmp_path / "none.pcap")


def test_damaged_file_is_an_error_after_the_rows_before_it(tmp_path: Path, way: str) -> None:
    good = named("s06_declared")
    cut = tmp_path / good.name
    cut.write_bytes(good.read_bytes()[:-2000])
    rows: list[Row] = []
    with pytest.raises(CaptureError):
        for batch in read_capture(cut):
            rows += batch.to_pylist()
    assert 0 < len(rows) and [as_json(row) for row in rows] == json_rows(good)[: len(rows)]
    with pytest.raises(CaptureError):
        to_table(cut)


def run(code: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def works(code: str, *arguments: str | Path) -> str:
    """What a program that ends well and says nothing on stderr prints."""
    done = run(code, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


WITHOUT_PYARROW = SCAPY_IS_MISSING.replace('"scapy"', '"pyarrow"')


@pytest.mark.parametrize("name", ["read_capture", "to_table"])
def test_without_pyarrow_it_says_what_to_install(name: str) -> None:
    done = run(WITHOUT_PYARROW + f"from scapy_zenoh import {name}\n{name}('x.pcap')\n")
    assert done.stderr.endswith("ImportError: tables need pyarrow: pip install 'scapy-zenoh[tables]'\n")


def test_without_pyarrow_dissect_works_and_says_what_parquet_needs(tmp_path: Path) -> None:
    command = WITHOUT_PYARROW + "from scapy_zenoh.cli import main\nsys.exit(main(sys.argv[1:]))"
    path = named("s04_query")
    assert works(command, "dissect", "--json", path) == printed("dissect", "--json", path)
    done = run(command, "dissect", "--parquet", tmp_path / "x.parquet", path)
    assert done.returncode == 2 and "--parquet needs pyarrow" in done.stderr


# --- without Scapy ------------------------------------------------------------------------------

ALL = """
import contextlib, io, json
from scapy_zenoh import compilation, read_capture, to_table
from scapy_zenoh.cli import main
enough, path, parquet = int(sys.argv[1]), sys.argv[2], sys.argv[3]
compilation.ENOUGH_READY = compilation.ENOUGH_COLD = enough
for arguments in (["dissect", "--json"], ["summary", "--json"], ["dissect", "--parquet", parquet]):
    assert main([*arguments, path]) == 0
for rows in (to_table(path).to_pylist(), [row for batch in read_capture(path) for row in batch.to_pylist()]):
    print(repr(rows))
import pyarrow.parquet
print(repr(pyarrow.parquet.read_table(parquet).to_pylist()))
"""
NO_SCAPY = "\nassert [m for m in sys.modules if m.partition('.')[0] == 'scapy'] == []\n"


@pytest.mark.parametrize("enough", [0, 1 << 40], ids=["compiled", "plain"])
@pytest.mark.parametrize("name", ["s04_query", pytest.param("s13_encodings", marks=pytest.mark.slow)])
def test_everything_works_where_scapy_is_missing(name: str, enough: int, tmp_path: Path) -> None:
    arguments = (str(enough), named(name), tmp_path / "out.parquet")
    without = works(SCAPY_IS_MISSING + ALL + NO_SCAPY, *arguments)
    assert without == works("import sys\nimport scapy.all\n" + ALL, *arguments)
    assert without.startswith(printed("dissect", "--json", named(name)))


# --- memory -------------------------------------------------------------------------------------

PEAK = """
import sys, resource
from scapy_zenoh import read_capture
rows = sum(batch.num_rows for batch in read_capture(sys.argv[1]))
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # kB
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_capture(tmp_path: Path) -> None:
    peaks = []
    for messages in (60_000, 300_000):
        path = tmp_path / "made.pcap"
        generate(Shape(messages=messages, sessions=4, events=0), path)
        assert path.stat().st_size > compilation.ENOUGH_READY
        works(PEAK, path)  # compiled, if it was not yet
        rows, peak = map(int, works(PEAK, path).split())
        assert rows > 2 * messages
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 100_000, peaks
