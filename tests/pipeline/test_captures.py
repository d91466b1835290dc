"""Which files are captures, and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scapy_zenoh.pipeline.captures import each, find, name_of, together
from scapy_zenoh.pipeline.errors import PipelineError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "a.pcap",
        "b/a.pcap",
        "b/c/d.pcapng",
        "b/.hidden",
        "b/_temporary/e.pcap",
        ".git/f",
        "[x].pcap",
        "x.pcap",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "b" / "newest.pcap").symlink_to("../a.pcap")
    os.mkfifo(tmp_path / "b" / "pipe")  # whoever opened it would wait
    (tmp_path / "empty").mkdir()
    return tmp_path


def found(folder: Path, *places: str | Path) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in find([str(folder / place) for place in places])]


def test_files_folders_and_globs_are_found_once_each(folder: Path) -> None:
    every = ["[x].pcap", "a.pcap", "x.pcap", "b/a.pcap", "b/c/d.pcapng"]  # and a link to one of them
    assert found(folder, ".") == every
    assert found(folder, "b", "a.pcap", "b/c") == ["b/a.pcap", "a.pcap", "b/c/d.pcapng"]
    assert found(folder, "*.pcap") == ["[x].pcap", "a.pcap", "x.pcap"]
    assert found(folder, "**/*.pcap*") == ["[x].pcap", "a.pcap", "b/a.pcap", "b/c/d.pcapng", "x.pcap"]
    assert found(folder, "[x].pcap") == ["[x].pcap"]  # which is there under this name
    assert find(folder / "a.pcap") == find(str(folder / "a.pcap")) == find(f"file://{folder}/a.pcap")


def test_paths_are_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "b")
    assert find(["a.pcap", "../a.pcap"]) == [str(folder / "b/a.pcap"), str(folder / "a.pcap")]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere", "no such file or folder"),
        ("no*", "matches no file"),
        ("empty", "there are no files in it"),
        ("b/pipe", "there are no files in it"),
        ("hdfs://host/a.pcap", "have to be files that all nodes see"),
        ("s3a://bucket/a.pcap", "have to be files that all nodes see"),
    ],
)
def test_places_without_files_are_one_line(folder: Path, place: str, said: str) -> None:
    path = place if "://" in place else str(folder / place)
    with pytest.raises(PipelineError) as caught:
        find([str(folder / "a.pcap"), path])
    assert str(caught.value).startswith(f"{path}: ") and said in str(caught.value)


def test_no_places_are_no_captures() -> None:
    with pytest.raises(PipelineError, match="there are no captures"):
        find([])


@pytest.mark.parametrize(
    ("place", "apart"), [(".", "out"), (".", "."), ("*", "empty"), ("b/c", "b"), ("b/a.pcap", "b")]
)
def test_tables_are_not_among_captures_nor_captures_among_tables(folder: Path, place: str, apart: str) -> None:
    with pytest.raises(PipelineError, match="the tables cannot be in what is read"):
        find([str(folder / place)], apart=folder / apart)


def test_tables_beside_captures_are_fine(folder: Path) -> None:
    assert find([str(folder / "b")], apart=folder / "bb") and find([str(folder / "*.pcap")], apart=folder / "out")


def test_names_are_readable_and_different_for_every_path(folder: Path) -> None:
    one, other = (captures.name for captures in each([str(folder / "a.pcap"), str(folder / "b/a.pcap")]))
    assert one != other and one.startswith("a.pcap-") and other.startswith("a.pcap-")
    assert name_of("/c/we ird=näme/%.pcap") == name_of("/c/we ird=näme/%.pcap") != name_of("/d/%.pcap")
    for path in ("/c/we ird=näme", "/c/_x", "/c/..", "/c/\udce9", "/", "/c/" + "x" * 300):
        name = name_of(path)
        assert name[0] not in "._" and len(name) < 100 and not set(name) & set("/=%: "), name


def test_recording_is_named_after_its_folder_or_its_files(folder: Path) -> None:
    """Other files of the same folder are another recording."""
    whole = together(find(folder / "b"), folder / "b")
    assert whole.paths == tuple(find(folder / "b")) and whole.name == name_of(str(folder / "b"))
    one, other = (together(find(folder / name), [folder / name]) for name in ("a.pcap", "x.pcap"))
    assert len({one.name, other.name, together(find(folder), folder).name}) == 3
    assert one.name == together(find(folder / "a.pcap"), str(folder / "a.pcap")).name
