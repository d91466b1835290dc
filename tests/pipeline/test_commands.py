"""``scapy-zenoh tables`` as a user meets it. Whatever is wrong is one line, and nothing is written."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.cli import main
from scapy_zenoh.schema.tables import TABLES
from tests.conftest import captures
from tests.pipeline.conftest import name_of
from tests.pipeline.results import damaged, dissected

pytest.importorskip("pyspark")

Said = tuple[int, list[str], list[str]]


@pytest.fixture
def tables(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command; gives its exit code and the lines of stdout and stderr."""

    def run(*arguments: Any) -> Said:
        try:
            code = main(["tables", *map(str, arguments)])
        except SystemExit as exit:
            code = int(exit.code or 0)
        shown = capsys.readouterr()
        return code, shown.out.splitlines(), shown.err.splitlines()

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a capture in a folder in it."""
    (tmp_path / "c").mkdir()
    (tmp_path / "empty").mkdir()
    shutil.copy(capture(), tmp_path / "c" / "a.pcapng")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def capture() -> Path:
    return next(path for path in captures() if name_of(path) == "s26_ports")


def listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in (folder, *folder.rglob("*")))


# --- wrong use ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nowhere -o t", "nowhere: no such file or folder"),
        ("c nowhere.pcap -o t", "nowhere.pcap: no such file or folder"),
        ("c/*.cap -o t", "c/*.cap: matches no file"),
        ("empty -o t", "empty: there are no files in it"),
        ("s3://bucket/c -o t", "captures have to be files that all nodes see"),
        ("c", "the following arguments are required: -o/--output"),
        ("-o t", "the following arguments are required: CAPTURE"),
        ("c -o c", "the folder has other things in it (a.pcapng); name a new one"),
        ("c -o c/a.pcapng", "a.pcapng: not a folder"),
        ("c -o c/t", "c/t: the tables cannot be in what is read (c)"),
        (". -o t", "t: the tables cannot be in what is read (.)"),
        ("c -o t --master nix", "'nix' is no Spark master"),
        ("c -o t --master spark://127.0.0.1:1", "the Spark master spark://127.0.0.1:1 cannot be reached"),
        ("c -o s3://bucket/t", "s3://bucket/t: tables have to be files that all nodes see"),
        ("c -o hdfs:/t", "hdfs:/t: tables have to be files that all nodes see"),
        ("c -o t --master local[0]", "'local[0]' is no Spark master"),
        ("c -o t --split much", "'much' is no size, such as 500000, 500K, 64M or 1G"),
        ("c -o t --split 1.5M", "'1.5M' is no size"),
        ("c -o t --split 0", "'0' is no size"),
        ("c -o t --split -5M", "--split"),
        ("c -o t --partitions 0", "'0' is no number from 1 on"),
        ("c -o t --split 1M --partitions 3", "--partitions: not allowed with argument --split"),
        ("c -o t --keylog no.keys", "no.keys: no such key log"),
        ("c -o t --keylog c", "c: no such key log"),
        ("c -o t --port 70000", "'70000' is no port"),
    ],
)
def test_wrong_use_is_one_line_and_nothing_is_written(
    arguments: str, said: str, tables: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scapy_zenoh.pipeline.spark._active", lambda: None)  # as in a process of its own
    before = listing(folder)
    code, out, err = tables(*arguments.split())
    assert (code, out, len(err)) == (2, [], 1)
    assert said in err[0] and err[0].startswith("scapy-zenoh")
    assert listing(folder) == before


@pytest.mark.parametrize("module", ["pyspark", "pyarrow"])
def test_missing_module_is_told_with_the_extra_that_brings_it(
    module: str, tables: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    before = listing(folder)
    told = f"scapy-zenoh: tables on Spark need {module}: pip install 'scapy-zenoh[spark]'"
    assert tables("c", "-o", "t") == (2, [], [told])
    assert listing(folder) == before


def test_key_log_without_permission_is_told(tables: Any, folder: Path) -> None:
    keys = folder / "keys"
    keys.write_text("")
    keys.chmod(0)
    if os.access(keys, os.R_OK) or shutil.which("tshark") is None:
        return  # root may read everything
    assert tables("c", "-o", "t", "--keylog", "keys") == (2, [], ["scapy-zenoh: keys: Permission denied"])


# --- right use ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["tables c -o t", "stream c -o t"])
def test_folder_that_may_not_be_looked_into_is_a_line(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(store: Any) -> None:
        raise PermissionError(13, "Permission denied", str(store.path))

    monkeypatch.setattr("scapy_zenoh.pipeline.store.Store.check", denied)  # to root nothing is denied
    assert main(command.split()) == 2
    assert capsys.readouterr().err.endswith(f"failed: [Errno 13] Permission denied: '{folder / 't'}'\n")


@pytest.mark.spark
def test_it_says_what_it_read_what_there_is_and_what_was_wrong(spark: Any, tables: Any, folder: Path) -> None:
    said = damaged(folder / "bad")
    code, out, err = tables("c", "bad", "-o", "t")
    assert code == 0
    assert out[0] == f"{1 + len(said)} files read, {len(said)} of them not to their end. Tables in t:"
    rows = {line.split()[0]: int(line.split()[1].replace(",", "")) for line in out[1:]}
    assert list(rows) == list(TABLES)
    assert rows["captures"] == 1 + len(said)
    assert rows["messages"] >= len(dissected(capture())[0])
    assert len(err) == len(said) and not any("Traceback" in line for line in err)
    for name, what in said.items():
        assert any(line.startswith(f"{folder / 'bad' / name}: ") and what in line for line in err), name


@pytest.mark.spark
def test_many_bad_files_are_not_all_told(spark: Any, tables: Any, folder: Path) -> None:
    for number in range(13):
        (folder / "c" / f"{number:02}.txt").write_text("text")
    code, out, err = tables("c", "-o", "t", "--no-payload")
    assert (code, len(err)) == (0, 11)
    assert err[-1] == "and 3 more: see error in the table captures"
    assert tables("c/a.pcapng", "-o", "t")[1][0] == "1 file read. Tables in t:"


@pytest.mark.spark
def test_failure_of_the_job_is_one_line_and_leaves_no_rows(
    spark: Any, tables: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("scapy_zenoh.pipeline.tables.write", full)
    code, out, err = tables("c", "-o", "t")
    assert (code, out) == (2, [])
    assert err[-1] == "scapy-zenoh: the job failed: OSError: [Errno 28] No space left on device"
    assert list((folder / "t").rglob("*.parquet")) == []
