"""``spark.read.format("zenoh")``: the rows of dissect as a DataFrame."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import captures
from tests.pipeline.conftest import name_of
from tests.pipeline.results import difference, dissected, in_pieces, json_value
from tests.rows.test_truth import truth_of

pytest.importorskip("pyspark")

import zstandard  # noqa: E402

from scapy_zenoh import pipeline  # noqa: E402
from scapy_zenoh.pipeline.captures import name_of as recording_of  # noqa: E402
from scapy_zenoh.pipeline.errors import PipelineError  # noqa: E402
from scapy_zenoh.pipeline.schema import struct  # noqa: E402
from scapy_zenoh.pipeline.source import Request  # noqa: E402
from scapy_zenoh.pipeline.spark import one_line  # noqa: E402
from scapy_zenoh.pipeline.stretch import Options  # noqa: E402
from scapy_zenoh.schema.columns import COLUMNS  # noqa: E402
from scapy_zenoh.schema.tables import RECORDING, TABLES  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("compiled")]

NAMES = [column.name for column in COLUMNS]


def capture(name: str) -> Path:
    return next(path for path in captures() if name_of(path) == name)


@pytest.fixture(scope="module")
def zenoh(spark: Any) -> Any:
    """Reads captures: ``zenoh(place, ...)`` with options by name."""
    pipeline.register(spark)

    def load(*places: Path, **options: str) -> Any:
        paths = [str(place) for place in places]
        return spark.read.format("zenoh").options(**options).load(paths[0] if len(paths) == 1 else paths)

    return load


def rows_of(frame: Any) -> list[dict[str, Any]]:
    rows = frame.orderBy("recording", "row").collect()
    return [{name: json_value(row[name]) for name in NAMES} for row in rows]


@pytest.mark.slow
def test_rows_are_those_of_dissect_whatever_the_file(zenoh: Any, tmp_path: Path) -> None:
    """A folder with pcapng, pcap, gzip and zstd, and a file that is no capture."""
    path = capture("s04_query")
    (plain,) = in_pieces(path, tmp_path, 0)
    (tmp_path / "1.pcapng").write_bytes(path.read_bytes())
    (tmp_path / "2.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "3.zst").write_bytes(zstandard.compress(path.read_bytes()))
    (tmp_path / "README").write_text("captures")
    frame = zenoh(tmp_path).cache()
    rows, _ = dissected(path)
    names = ["1.pcapng", "2.gz", "3.zst", "whole.pcap"]
    assert difference(rows_of(frame), [{**row, "capture": name} for name in names for row in rows]) is None
    assert frame.count() == 4 * len(rows)
    assert {row.recording for row in frame.select("recording").distinct().collect()} == {
        recording_of(str(tmp_path / name)) for name in names
    }


def test_columns_are_explained_pruned_and_filtered(zenoh: Any) -> None:
    frame = zenoh(capture("s04_query"))
    rows, _ = dissected(capture("s04_query"))
    expected = struct((*TABLES["messages"], RECORDING))
    assert frame.schema == expected
    assert {f.name: f.metadata["comment"] for f in frame.schema} == {f.name: f.metadata["comment"] for f in expected}
    queries = frame.where("body = 'query' AND key LIKE 'demo/%'").select("key", "sn")
    assert sorted((row.key, int(row.sn)) for row in queries.collect()) == sorted(
        (row["key"], row["sn"]) for row in rows if row["body"] == "query" and (row["key"] or "").startswith("demo/")
    )
    assert queries.count() > 0
    seconds = frame.selectExpr("max(abs(unix_micros(time_utc) - time div 1000)) AS off").first()
    assert seconds.off == 0


@pytest.mark.slow
def test_stretches_recordings_and_options(zenoh: Any, tmp_path: Path) -> None:
    path = capture("s12c_multilink_prio")
    expected, _ = dissected(path)
    for size in ({"split": "500"}, {"partitions": "7"}):
        frame = zenoh(path, **size)
        assert frame.rdd.getNumPartitions() > 3
        assert difference(rows_of(frame), expected) is None
    in_pieces(path, tmp_path / "many", 4)
    together = rows_of(zenoh(tmp_path / "many", recording="TRUE"))
    same = {"capture": "", "frame": 0}
    assert difference([{**row, **same} for row in together], [{**row, **same} for row in expected]) is None
    bare = rows_of(zenoh(capture("s06_declared"), payload="false"))
    rows, _ = dissected(capture("s06_declared"))
    assert difference(bare, [{**row, "payload": None, "attachment": None} for row in rows]) is None
    both = zenoh(path, capture("s06_declared"))
    assert both.count() == len(expected) + len(rows)
    shutil.copy(path, tmp_path / "a.pcapng")
    assert zenoh(tmp_path / "*.pcapng").count() == len(expected)


@pytest.mark.slow
@pytest.mark.tshark
def test_key_log_opens_tls(zenoh: Any) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("no tshark")
    for path in captures():
        if keylog := truth_of(path).get("keylog"):
            rows, _ = dissected(path, path.with_name(keylog))
            assert difference(rows_of(zenoh(path, keylog=str(path.with_name(keylog)))), rows) is None
            assert zenoh(path).count() == 0


# --- options --------------------------------------------------------------------------------------


def test_options_are_read_from_text() -> None:
    asked = Request.of({"Path": "c", "PORTS": "7447, 19999 5", "Payload": "False", "partitions": "7"})
    assert asked == Request(("c",), Options((7447, 19999, 5), None, False), False, None, 7)
    assert Request.of({"paths": '["a", "b"]', "recording": "true"}).places == ("a", "b")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": "c", "port": "7447"}, "format zenoh has no option 'port' (it has ports, keylog, payload"),
        ({"path": "c", "ports": "70000"}, "option ports: '70000' is no number from 1 to 65535"),
        ({"path": "c", "ports": "x"}, "option ports: 'x' is no number"),
        ({"path": "c", "split": "0"}, "option split: '0' is no number"),
        ({"path": "c", "partitions": "-1"}, "option partitions: '-1' is no number"),
        ({"path": "c", "payload": "maybe"}, "option payload: 'maybe' is neither true nor false"),
        ({"path": "c", "keylog": "/no/keys"}, "/no/keys: no such key log"),
        ({}, 'format zenoh reads files: load("captures/")'),
    ],
)
def test_bad_option_is_one_line(options: dict[str, str], said: str) -> None:
    with pytest.raises(PipelineError) as caught:
        Request.of(options)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)


def test_bad_use_is_told_through_spark(zenoh: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    for place, options, said in (
        (tmp_path / "nowhere", {}, f"{tmp_path / 'nowhere'}: no such file or folder"),
        (tmp_path, {"port": "1"}, "format zenoh has no option 'port'"),
        (capture("s04_query"), {"split": "9", "partitions": "9"}, "split and partitions exclude each other"),
    ):
        with pytest.raises(PySparkException) as caught:
            zenoh(place, **options).count()
        assert said in one_line(caught.value)
