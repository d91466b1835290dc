"""Captures as a folder of tables: what dissect and summary say of each, whatever happens meanwhile."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import captures
from tests.pipeline.cluster import HASTE, Cluster, run
from tests.pipeline.conftest import name_of
from tests.pipeline.results import (
    as_json,
    changed,
    damaged,
    difference,
    dissected,
    everything,
    in_pieces,
    leftovers,
    lying_in,
)
from tests.rows.files import load
from tests.rows.test_truth import truth_of

pytest.importorskip("pyspark")

import pyarrow.parquet as pq  # noqa: E402

from scapy_zenoh.pipeline import captures as places  # noqa: E402
from scapy_zenoh.pipeline import stretch, tables  # noqa: E402
from scapy_zenoh.pipeline.errors import PipelineError  # noqa: E402
from scapy_zenoh.pipeline.jobs import run as run_job  # noqa: E402
from scapy_zenoh.pipeline.stretch import Options, Stretch  # noqa: E402
from scapy_zenoh.pipeline.tables import Report, read_tables, write_tables  # noqa: E402
from scapy_zenoh.recording import COUNTS  # noqa: E402
from scapy_zenoh.schema.columns import COLUMNS  # noqa: E402
from scapy_zenoh.schema.tables import OF_MESSAGES, TABLES  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("compiled")]

NAMES = [column.name for column in COLUMNS]
FEW = ("s04_query", "s06_declared", "s12c_multilink_prio", "s17_routers")


def capture(name: str) -> Path:
    return next(path for path in captures() if name_of(path) == name)


def name_in(path: Path) -> str:
    """The name of the recording that a file is by itself."""
    return places.name_of(str(path))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a few captures in which a lot happens."""
    folder = tmp_path_factory.mktemp("few")
    for name in FEW:
        shutil.copy(capture(name), folder)
    return folder


@pytest.fixture(scope="module")
def of_few(few: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All rows of those, read in one task."""
    folder = tmp_path_factory.mktemp("of_few") / "tables"
    write_tables(spark, [few], folder)
    return everything(folder)


# --- all captures at once -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def all_captures(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report, dict[Path, str | None]]:
    """The tables of all captures and of damaged files; and of each file what is said of it, if anything."""
    source = tmp_path_factory.mktemp("captures")
    files: dict[Path, str | None] = {}
    for path in captures():
        files[Path(shutil.copy(path, source))] = None
    raw = load(capture("s02_peer_udp"))
    snapped = [(time, data[:110], length) for time, data, length in raw.records]  # which brings faults
    files[raw.write(source / "snapped.pcap", snapped)] = None
    (source / "folder.pcap").mkdir()  # a name like that of a capture
    files |= {source / "folder.pcap" / name: said for name, said in damaged(source / "folder.pcap").items()}
    folder = tmp_path_factory.mktemp("all") / "t[1]{a,b}*"  # which Spark would take for a glob
    report = write_tables(spark, [str(source)], folder, partitions=6)
    return folder, report, files


@pytest.fixture(scope="module")
def expected(all_captures: Any) -> dict[Path, Any]:
    """Of each file: how many rows dissect has, how they differ from those of the table, and what summary says."""
    found = lying_in(all_captures[0], "messages")
    told = {}
    for path in (path for path, said in all_captures[2].items() if said is None):
        rows, summary = dissected(path)
        of_table = as_json(found[name_in(path)], NAMES) if name_in(path) in found else []
        told[path] = len(rows), difference(of_table, rows), summary
    return told


@pytest.mark.slow
def test_messages_are_the_rows_of_dissect(all_captures: Any, expected: dict[Path, Any]) -> None:
    found = lying_in(all_captures[0], "messages")
    for path, (count, different, _) in expected.items():
        assert different is None, path.name
        table = found.pop(name_in(path), None)
        if table is None:
            assert not count
            continue
        assert table["row"].to_pylist() == list(range(count))
        for utc, ns in (("time_utc", "time"), ("timestamp_utc", "timestamp_time")):
            microseconds = [None if value is None else value // 1000 for value in table[ns].to_pylist()]
            assert table[utc].cast("int64").to_pylist() == microseconds
    cut = {name_in(path) for path, said in all_captures[2].items() if said is not None}
    assert found and set(found) <= cut, "rows before the damage"


@pytest.mark.slow
def test_faults_are_the_messages_with_a_fault(all_captures: Any) -> None:
    messages, faults = (lying_in(all_captures[0], table) for table in OF_MESSAGES)
    columns = [column.name for column in TABLES["faults"]]
    with_fault = {name: as_json(rows, columns) for name, rows in messages.items()}
    with_fault = {name: [row for row in rows if row["fault"]] for name, rows in with_fault.items()}
    assert {name: as_json(rows, columns) for name, rows in faults.items()} == {
        name: rows for name, rows in with_fault.items() if rows
    }
    assert faults


@pytest.mark.slow
def test_captures_say_what_summary_says_and_why_a_file_was_not_read(
    all_captures: Any, expected: dict[Path, Any]
) -> None:
    folder, report, files = all_captures
    rows = {name: row for name, (row,) in lying_in(folder, "captures").items()}
    assert set(rows) == {name_in(path) for path in files}
    for path, said in files.items():
        row = rows[name_in(path)]
        told = {"capture": path.name, "path": str(path), "ordinal": 0, "late": False}
        assert {name: row[name] for name in told} == told
        assert row["bytes"] == (path.stat().st_size if path.exists() else 0)
        assert row["zenoh_bytes"] == row["decoded_bytes"] + row["undecoded_bytes"]
        if said is not None:
            assert said in row["error"] and path.name in row["error"]
            continue
        assert row["error"] is None
        count, _, summary = expected[path]
        assert {name: row[name] for name in COUNTS[:-1]} == {name: summary[name] for name in COUNTS[:-1]}
        assert row["rows"] == count
    assert report.captures == len(files)
    assert {Path(path) for path, _ in report.unread} == {path for path, said in files.items() if said is not None}


@pytest.mark.slow
def test_sessions_links_and_findings_are_those_of_summary(all_captures: Any, expected: dict[Path, Any]) -> None:
    folder = all_captures[0]
    sessions, links, findings = (lying_in(folder, table) for table in ("sessions", "links", "findings"))
    for path, (_, _, summary) in expected.items():
        name = name_in(path)
        found = {row["session"]: row for row in sessions.get(name, [])}
        assert len(found) == len(sessions.get(name, []))
        assert set(found) == {told["session"] for told in summary["sessions"]}
        for told in summary["sessions"]:
            row = found[told["session"]]
            same = [key for key in told if key in row and key not in ("messages",)]
            assert len(same) == 16
            assert {key: row[key] for key in same} == {key: told[key] for key in same}
            assert row["messages"] == sum(told["messages"].values())
            outcomes = {key: row[f"queries_{key}"] for key in ("answered", "empty", "unfinished")}
            assert +Counter(outcomes) == Counter(told["queries"])
            for node, side in zip(told["nodes"], ("low", "high"), strict=False):
                of_side = ("zid", "whatami", "region", "lease_ms", "initial_sn", "messages")
                assert {key: row[f"{side}_{key}"] for key in of_side} == {key: node[key] for key in of_side}
        told_links = sorted(
            (told["link"], told["proto"], told.get("session"), "opaque" in told) for told in summary["links"]
        )
        assert (
            sorted((row["link"], row["proto"], row["session"], row["opaque"]) for row in links.get(name, []))
            == told_links
        )
        assert sorted(findings.get(name, []), key=repr) == sorted(summary["findings"], key=repr)


@pytest.mark.slow
def test_lanes_fragments_and_declarations_follow_from_the_messages(all_captures: Any) -> None:
    """In captures without damage: what lanes there are, what was put together, what was declared and asked."""
    folder = all_captures[0]
    found = {table: lying_in(folder, table) for table in TABLES}
    for path in captures():
        truth = truth_of(path)
        if truth.get("damage") or truth.get("capture_started_ns") or truth["capture"].get("snaplen"):
            continue
        name = name_in(next(file for file in all_captures[2] if file.name == path.name))
        messages = found["messages"][name].to_pylist() if name in found["messages"] else []
        lanes = {(row["session"], row["zid"]) for row in found["lanes"].get(name, [])}
        with_sn = [row for row in messages if row["kind"] in ("frame", "fragment") and row["src_zid"]]
        assert lanes >= {(row["session"], row["src_zid"]) for row in with_sn}
        assert not any(row["missing"] for row in found["lanes"].get(name, []))
        whole = Counter(row["fragments"] for row in messages if row["fragments"])
        chains = found["fragments"].get(name, [])
        assert Counter(row["fragments"] for row in chains if row["complete"]) == whole, path.name
        declared = sum(row["kind"] == "declare" and row["body"].startswith("declare_") and row["entity_id"] is not None
                       for row in messages)  # fmt: skip
        rows = found["declarations"].get(name, [])
        assert sum(row["declared_row"] is not None for row in rows) == declared
        asked = sorted(row["row"] for row in messages if row["kind"] == "request")
        assert sorted(row["asked_row"] for row in found["queries"].get(name, [])) == asked
        for row in found["queries"].get(name, []):
            assert messages[row["asked_row"]]["key"] == row["key"]


@pytest.mark.slow
def test_report_counts_the_rows_of_every_table_and_spark_reads_them(all_captures: Any, spark: Any) -> None:
    folder, report, _ = all_captures
    assert leftovers(folder) == []
    read = read_tables(spark, folder)
    assert list(read) == list(TABLES)
    written = {table: sum(map(len, lying_in(folder, table).values())) for table in TABLES}
    assert {table: report.rows[table] for table in TABLES} == written
    assert {table: rows.count() for table, rows in read.items()} == written
    assert {table for table, count in written.items() if not count} <= {"fragments", "findings"}
    assert spark.sql("SELECT count(*) AS n FROM messages WHERE fault IS NOT NULL").first().n == written["faults"]
    dates = read["messages"].where("date != to_date(time_utc)").count()
    assert dates == 0


@pytest.mark.slow
def test_columns_are_explained_in_the_files(all_captures: Any, spark: Any) -> None:
    folder = all_captures[0]
    for table, columns in TABLES.items():
        about = {column.name: column.about for column in columns}
        path = next((folder / table).rglob("*.parquet"), None)
        if path is None:
            assert table in ("fragments", "findings")
            continue
        schema = spark.read.parquet(tables.literal(path)).schema
        assert {field.name: field.metadata.get("comment") for field in schema} == about
        fields = {field.name: (field.metadata or {}).get(b"comment", b"").decode() for field in pq.read_schema(path)}
        assert fields == about
        assert not any("uint" in str(field.type) for field in pq.read_schema(path))


# --- however it is cut ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", [{"partitions": 2}, {"partitions": 7}, {"partitions": 64}, {"split": 2000}], ids=str)
def test_rows_are_the_same_for_any_number_of_tasks(
    size: Any, few: Path, of_few: Any, spark: Any, tmp_path: Path
) -> None:
    report = write_tables(spark, [few], tmp_path / "t", **size)
    assert report.tasks >= size.get("partitions", 40) / 2
    assert changed(everything(tmp_path / "t"), of_few) == []


@pytest.mark.slow
def test_rows_are_the_same_on_one_core(few: Path, of_few: Any, spark_ready: None, tmp_path: Path) -> None:
    arguments = [str(few), "-o", "t", "--master", "local[1]", "--partitions", "5"]
    done = run(sys.executable, "-m", "scapy_zenoh", "tables", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert changed(everything(tmp_path / "t"), of_few) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["t"]


@pytest.mark.slow
def test_recording_in_several_files_has_the_rows_of_one_file(spark: Any, tmp_path: Path) -> None:
    """Also the tables that Spark makes: queries that are asked in one file and answered in the next."""
    (one,) = in_pieces(capture("s04_query"), tmp_path / "one", 0)
    in_pieces(capture("s04_query"), tmp_path / "many", 9)
    write_tables(spark, tmp_path / "one", tmp_path / "a")
    write_tables(spark, tmp_path / "many", tmp_path / "b", recording=True, partitions=12)
    for table in ("declarations", "queries", "sessions", "links", "lanes"):
        (expected,), (found,) = (lying_in(tmp_path / folder, table).values() for folder in "ab")
        assert found == expected and found
    (told,) = lying_in(tmp_path / "b", "captures").values()
    assert sorted((row["ordinal"], row["capture"]) for row in told) == [(i, f"{i:03}.pcap") for i in range(9)]


# --- again, and more ------------------------------------------------------------------------------


@pytest.mark.slow
def test_rerun_replaces_new_captures_add_and_names_may_repeat(spark: Any, tmp_path: Path) -> None:
    first, second, folder = tmp_path / "1" / "c.pcapng", tmp_path / "2" / "c.pcapng", tmp_path / "t"
    for path, name in ((first, "s06_declared"), (second, "s04_query")):
        path.parent.mkdir()
        shutil.copy(capture(name), path)
    write_tables(spark, first, folder)
    before = everything(folder)
    write_tables(spark, [first], folder, split=2000)
    assert changed(everything(folder), before) == []
    write_tables(spark, [second], folder)
    both = everything(folder)
    assert changed({key: rows for key, rows in both.items() if key[1] == name_in(first)}, before) == []
    assert {name for _, name in both} == {name_in(first), name_in(second)}
    write_tables(spark, [first.parent, second.parent], folder)
    assert changed(everything(folder), both) == []
    shutil.copy(capture("s17_routers"), first)  # the file has other content now: its old rows go
    write_tables(spark, [first], folder)
    found = everything(folder)
    assert {name for _, name in changed(found, both)} == {name_in(first)}
    assert difference(as_json(found["messages", name_in(first)], NAMES), dissected(first)[0]) is None
    assert leftovers(folder) == []


@pytest.mark.slow
def test_captures_that_become_one_recording_are_not_there_twice(spark: Any, tmp_path: Path) -> None:
    source, folder = tmp_path / "c", tmp_path / "t"
    in_pieces(capture("s06_declared"), source, 3)
    rows = len(dissected(capture("s06_declared"))[0])

    def paths() -> list[str]:
        return sorted(Path(row["path"]).name for told in lying_in(folder, "captures").values() for row in told)

    write_tables(spark, source, folder)
    assert len(lying_in(folder, "captures")) == 3 and paths() == ["000.pcap", "001.pcap", "002.pcap"]
    write_tables(spark, source, folder, recording=True)
    assert len(lying_in(folder, "captures")) == 1 and paths() == ["000.pcap", "001.pcap", "002.pcap"]
    assert [len(found) for found in lying_in(folder, "messages").values()] == [rows]
    (source / "003.pcap").write_bytes(b"")
    write_tables(spark, source, folder, recording=True)  # one more: the same recording
    assert paths() == ["000.pcap", "001.pcap", "002.pcap", "003.pcap"]
    write_tables(spark, [source / "003.pcap"], folder)  # part of it: it goes as a whole
    assert paths() == ["003.pcap"]


# --- workers --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_job_survives_workers_that_are_killed_in_the_middle(
    few: Path, of_few: Any, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While cutting, and while writing, with files half written. What a killed attempt wrote is nowhere."""
    deaths = tmp_path / "deaths"
    deaths.mkdir()

    def dying(work: Any, options: Options, **more: Any) -> Any:
        import os
        import signal

        from pyspark import TaskContext

        from scapy_zenoh.pipeline import stretch, writing

        if TaskContext.get().attemptNumber():
            do: Any = stretch.in_stretches if "every" in more else writing.write
            return do(work, options, **more)
        if "every" not in more:
            read = writing.read

            def some(*arguments: Any) -> Iterator[Any]:
                yield next(read(*arguments))
                die()

            writing.read = some

        def die() -> None:
            (deaths / f"{'cut' if 'every' in more else 'write'}{os.getpid()}").write_text("")
            os.kill(os.getpid(), signal.SIGKILL)

        if "every" in more:
            die()
        return writing.write(work, options, **more)

    monkeypatch.setattr(stretch, "in_stretches", dying)
    monkeypatch.setattr(tables, "write", dying)
    write_tables(spark, [few], tmp_path / "t", partitions=5)
    assert {path.name[:3] for path in deaths.iterdir()} == {"cut", "wri"}
    assert changed(everything(tmp_path / "t"), of_few) == []
    assert leftovers(tmp_path / "t") == []


#: A program that writes tables on a cluster, where a worker dies in the middle of writing, once.
ON_CLUSTER = """
import json, os, sys
from pathlib import Path
from scapy_zenoh.pipeline import session, tables

master, source, folder, mark = sys.argv[1:]
write = tables.write

def dying(work, options, staging):
    import os, signal
    from pyspark import TaskContext
    from scapy_zenoh.pipeline import writing
    if TaskContext.get().partitionId() == 0 and not os.path.exists(mark):
        read = writing.read
        def some(*arguments):
            yield next(read(*arguments))
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        writing.read = some
    return writing.write(work, options, staging)

tables.write = dying
conf = {"spark.driver.host": "127.0.0.1", "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
        "spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
report = tables.write_tables(session(master, **conf), [source], folder, partitions=5)
print(json.dumps(report.rows))
"""


@pytest.mark.slow
def test_job_on_a_cluster_survives_a_worker_that_is_killed_in_the_middle(
    cluster: Cluster, few: Path, of_few: Any, tmp_path: Path
) -> None:
    arguments = [cluster.master, str(few), str(tmp_path / "t"), str(tmp_path / "died")]
    done = run(sys.executable, "-c", ON_CLUSTER, *arguments, cwd=tmp_path, SPARK_SUBMIT_OPTS=HASTE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "died").exists()
    assert changed(everything(tmp_path / "t"), of_few) == []
    assert leftovers(tmp_path / "t") == []
    assert json.loads(done.stdout)["messages"] == sum(len(rows) for (t, _), rows in of_few.items() if t == "messages")


def test_workers_import_neither_scapy_nor_message_classes(few: Path, spark: Any, tmp_path: Path) -> None:
    def loaded(stretches: Any) -> list[str]:
        from scapy_zenoh.pipeline.writing import write

        assert write(stretches, Options(), str(tmp_path)).rows["messages"] > 0
        return sorted(sys.modules)

    stretches = [Stretch(captures) for captures in places.each(places.find(few))]
    (modules,) = run_job(spark, loaded, [stretches])
    assert "scapy_zenoh.pipeline.writing" in modules
    unwanted = {"scapy_zenoh." + name for name in ("message", "layers", "network", "transport", "fields", "link")}
    assert [name for name in modules if name.partition(".")[0] == "scapy" or name in unwanted] == []


def test_work_is_done_in_its_order_each_piece_by_itself(spark: Any) -> None:
    def twice(number: int) -> tuple[int, int]:
        from pyspark import TaskContext

        return 2 * number, TaskContext.get().partitionId()

    done = run_job(spark, twice, [5, 3, 4])
    assert [number for number, _ in done] == [10, 6, 8]
    assert len({task for _, task in done}) == 3
    assert run_job(spark, twice, []) == []


# --- TLS ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.tshark
def test_key_log_opens_tls_and_damaged_files_beside_do_no_harm(spark: Any, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("no tshark")
    for path in captures():
        if not (keylog := truth_of(path).get("keylog")):
            continue
        damaged(tmp_path / "c")
        tls = Path(shutil.copy(path, tmp_path / "c"))
        keys = path.with_name(keylog)
        write_tables(spark, tmp_path / "c", tmp_path / "t", Options(keylog=str(keys)), split=1000)
        rows, summary = dissected(tls, keys)
        found = as_json(lying_in(tmp_path / "t", "messages")[name_in(tls)], NAMES)
        assert difference(found, rows) is None and rows
        (told,) = lying_in(tmp_path / "t", "captures")[name_in(tls)]
        assert {name: told[name] for name in COUNTS[:-1]} == {name: summary[name] for name in COUNTS[:-1]}


# --- reading --------------------------------------------------------------------------------------


def test_folder_without_tables_is_told(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="there are no tables here"):
        read_tables(spark, tmp_path)


def test_literal_paths_are_what_they_were(tmp_path: Path) -> None:
    assert tables.literal("/plain/path-1.parquet") == "/plain/path-1.parquet"
    assert tables.literal(Path("/a[1]*?{b}\\")) == "/a\\[1\\]\\*\\?\\{b\\}\\\\"
