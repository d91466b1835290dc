"""The command line as a user meets it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scapy_zenoh
from scapy_zenoh import demo
from scapy_zenoh.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}  # this checkout, wherever the command runs


def run(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scapy_zenoh", *args]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=ENVIRONMENT)


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The one line that a wrong command gives."""
    try:
        code = main(args)
    except SystemExit as exit:
        code = exit.code
    assert code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    return lines[0]


def test_version_is_that_of_the_package() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"scapy-zenoh {scapy_zenoh.__version__}\n")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(command.help in shown for command in COMMANDS.values())


@pytest.mark.parametrize("args", [[], ["bogus"], ["demo", "--bogus"], ["demo", "a", "b"]])
def test_wrong_use_is_one_line_and_code_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, *args).startswith("scapy-zenoh")


@pytest.mark.spark
@pytest.mark.slow
def test_demo_shows_all_there_is(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    done = run("demo", cwd=tmp_path)  # finds the samples of the checkout
    assert (done.returncode, done.stderr) == (0, "")
    for capture in SAMPLES.glob("*.pcapng"):
        assert f"\n{capture.name} (" in done.stdout
    read, look, craft, broken, tables = done.stdout.split("\n=")[1:]
    # what the applications of samples/record.py did
    assert "PUSH demo/room/1/temperature PUT 4 B text/plain" in read
    assert "REQUEST #2 demo/store/** QUERY ?item=pears" in read
    assert "RESPONSE #4 demo/store/** ERR 11 B text/plain" in read
    assert "HELLO router" in read
    assert "PUSH demo/text PUT 960 B" in read  # compressed
    assert "  <- " not in read  # no faults in real traffic
    assert "data      = b'unit=lamp'" in look
    assert "17 64 65 6D 6F 2F" in craft  # the counted key
    assert "PUSH demo/room/1/temperature PUT 4 B text/plain" in craft
    assert "fault:      bad_length" in broken
    assert "same bytes: True" in broken
    assert re.search(
        r"demo/room/2/temperature *\|1 *\|5 *\|60 *\|10 ", tables
    )  # one publisher, five samples, two links
    assert "answered|0      |" in tables  # by an error
    assert "only showing" in tables and "To keep them" in tables


def test_demo_shows_the_beginning_of_a_long_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(SAMPLES / "login.pcapng", tmp_path)
    monkeypatch.setattr(demo, "MOST_LINES", 4)
    monkeypatch.setattr(demo, "_tables", lambda captures: None)  # which takes time
    assert main(["demo", str(tmp_path)]) == 0
    assert "... and 6 more" in capsys.readouterr().out


def test_demo_says_that_samples_are_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("scapy_zenoh.demo.shipped_samples", lambda: None)
    assert "scapy-zenoh demo FOLDER" in complaint(capsys, "demo")


def test_demo_of_what_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a folder" in complaint(capsys, "demo", str(tmp_path / "missing"))


def test_demo_of_a_folder_without_captures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "holds no captures" in complaint(capsys, "demo", str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"no capture at all, only words"])
def test_demo_of_what_is_no_capture(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.pcap").write_bytes(content)
    assert "x.pcap" in complaint(capsys, "demo", str(tmp_path))


def test_a_reader_that_stops_early_is_no_error() -> None:
    command = [sys.executable, "-m", "scapy_zenoh", "demo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 0)
