"""A folder of tables: all of a commit or nothing, nothing twice, one writer, and never somebody else's folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from scapy_zenoh.pipeline.errors import PipelineError  # noqa: E402
from scapy_zenoh.pipeline.store import File, Store  # noqa: E402
from tests.pipeline.cluster import ROOT  # noqa: E402
from tests.pipeline.results import leftovers  # noqa: E402

OLD = ["messages/date=2026-01-01/recording=r/old-0.parquet", "messages/date=2026-01-02/recording=r/old-1.parquet",
       "sessions/recording=r/old-2.parquet"]  # fmt: skip
NEW = ["messages/date=2026-01-01/recording=r/new-0.parquet", "sessions/recording=r/new-1.parquet"]
OTHER = ["messages/date=2026-01-01/recording=other/x.parquet", "sessions/recording=other/y.parquet"]

#: A program that does a commit in as many copies of a folder as it takes, and is killed in each at another operation
#: of the file system, until one commit comes to its end. Says how many there are.
KILLED = f"""
import os, shutil, signal, sys
from pathlib import Path
from scapy_zenoh.pipeline.store import Store

old, new, left = {OLD!r}, {NEW!r}, 0

def operation(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "open"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

for number in range(1000):
    copy = Path(sys.argv[1]) / str(number)
    shutil.copytree(sys.argv[2], copy)
    child = os.fork()
    if not child:
        with Store(copy) as store, store.staging() as staging:
            moves = []
            for place in new:
                (staging / place).parent.mkdir(parents=True)
                (staging / place).write_text("new")
                moves.append((str(staging / place), place))
            left = number
            sys.addaudithook(operation)
            store.commit(moves, old, {{"name": "stream", "batch": 7}})
            os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        print(number)
        break
"""


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.glob("[a-z]*/**/*.parquet")}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with the files of two recordings."""
    with Store(tmp_path / "made") as store, store.staging() as staging:
        moves = []
        for place in (*OLD, *OTHER):
            (staging / place).parent.mkdir(parents=True, exist_ok=True)
            (staging / place).write_text("old")
            moves.append((str(staging / place), place))
        store.commit(moves, [], {"name": "stream", "batch": 6})
    return tmp_path / "made"


def commit(store: Store, staging: Path) -> None:
    moves = []
    for place in NEW:
        (staging / place).parent.mkdir(parents=True, exist_ok=True)
        (staging / place).write_text("new")
        moves.append((str(staging / place), place))
    store.commit(moves, OLD, {"name": "stream", "batch": 7})


# --- commits --------------------------------------------------------------------------------------


def test_recordings_of_a_capture_are_found_by_its_path(tmp_path: Path) -> None:
    """Tables have \ufffd or ? for what is not UTF-8 in names, so those of others might be taken for these."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for recording, path in (("one", "/c/caf\xe9.pcap"), ("two", "/c/caf?.pcap")):
        folder = tmp_path / "captures" / f"recording={recording}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"path": [path, "/c/other.pcap"]}), folder / "a.parquet")
    store = Store(tmp_path)
    assert store.recordings_of(["/c/caf\xe9.pcap"]) == ["one"]
    assert store.recordings_of(["/c/other.pcap"]) == ["one", "two"]
    assert store.recordings_of([os.fsdecode(b"/c/caf\xe8.pcap"), "/c/new.pcap"]) == []


def test_commit_replaces_what_it_names_and_leaves_the_rest(made: Path) -> None:
    assert files(made) == {*OLD, *OTHER}
    with Store(made) as store, store.staging() as staging:
        assert sorted(store.files_of(["r"])) == sorted(OLD)
        assert store.files_of(["r"], ["sessions"]) == ["sessions/recording=r/old-2.parquet"]
        commit(store, staging)
        assert store.note("stream") == {"name": "stream", "batch": 7}
    assert files(made) == {*NEW, *OTHER}
    assert not (made / "messages/date=2026-01-02").exists(), "an empty folder is left"
    assert leftovers(made) == ["_stream.json"]


def test_what_was_not_committed_leaves_nothing(made: Path) -> None:
    with pytest.raises(RuntimeError), Store(made) as store, store.staging() as staging:
        (staging / "messages").mkdir()
        raise RuntimeError
    assert files(made) == {*OLD, *OTHER}
    assert leftovers(made) == ["_stream.json"]


def test_killed_anywhere_in_a_commit_all_of_it_happens_or_nothing(made: Path, tmp_path: Path) -> None:
    """Whoever writes next repairs; who reads meanwhile sees nothing twice."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "copies"), str(made)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    count = int(done.stdout)
    assert count > len(OLD) + len(NEW) + 4, "not every operation was interrupted"
    happened = []
    for number in range(count):
        copy = tmp_path / "copies" / str(number)
        seen = files(copy)
        assert not (seen & set(OLD) and seen & set(NEW)), f"{number}: old and new rows at the same time"
        assert set(OTHER) <= seen
        Store(copy).repair() if number % 2 else Store(copy).__enter__().__exit__(None, None, None)
        after, note = files(copy), Store(copy).note("stream")
        assert (after, note and note["batch"]) in (({*OLD, *OTHER}, 6), ({*NEW, *OTHER}, 7)), number
        happened.append(after != {*OLD, *OTHER})
        if happened[-1]:
            assert leftovers(copy) == ["_stream.json"], number
    assert happened == sorted(happened) and happened[0] is False and happened[-1] is True


def test_commit_that_fails_is_carried_out_by_whoever_comes_next(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the disk is full for a moment."""
    replace, left = os.replace, [2]  # the journal itself, and one file

    def full(old: Any, new: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(old, new)

    with pytest.raises(OSError, match="No space"), Store(made) as store, store.staging() as staging:
        monkeypatch.setattr(os, "replace", full)
        commit(store, staging)
    monkeypatch.undo()
    assert files(made) == {NEW[0], *OTHER}
    with Store(made):
        assert files(made) == {*NEW, *OTHER}
    assert leftovers(made) == ["_stream.json"]


def test_reader_repairs_what_a_crash_left_unless_somebody_writes(made: Path) -> None:
    staged = made / "_staging" / "job" / NEW[1]
    staged.parent.mkdir(parents=True)
    staged.write_text("new")
    (made / "_journal").mkdir(exist_ok=True)
    journal = {"gone": OLD, "moves": [[str(staged.relative_to(made)), NEW[1]]], "note": None}
    (made / "_journal" / "a.json").write_text(json.dumps(journal))
    with open(made / "_lock") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        Store(made).repair()
        assert files(made) == {*OLD, *OTHER}
    Store(made).repair()
    assert files(made) == {NEW[1], *OTHER}
    assert leftovers(made) == ["_stream.json"]


def test_commit_whose_files_are_gone_is_told(made: Path) -> None:
    (made / "_journal").mkdir(exist_ok=True)
    journal = {"gone": [], "moves": [["_staging/job/x.parquet", NEW[1]]], "note": None}
    (made / "_journal" / "a.json").write_text(json.dumps(journal))
    for _ in range(2):  # and the folder is not left locked
        with pytest.raises(PipelineError, match="gone before it was committed"), Store(made):
            pass


# --- who may write --------------------------------------------------------------------------------


def test_second_writer_is_refused_while_the_first_one_writes(made: Path) -> None:
    code = (
        "import sys\nfrom scapy_zenoh.pipeline.store import PipelineError, Store\n"
        "try:\n    Store(sys.argv[1]).__enter__()\n    print('ok')\nexcept PipelineError as error:\n    print(error)\n"
    )

    def second() -> str:
        command = [sys.executable, "-c", code, str(made)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True).stdout

    with Store(made) as store, store.staging() as staging:
        (staging / "mine").write_text("")
        assert second() == f"{made}: another process is writing these tables\n"
        assert (staging / "mine").exists(), "the second one threw away what the first one was writing"
    assert second() == "ok\n"


def strange(folder: Path) -> dict[str, Any]:
    """Places that are not ours to write, and what is said of them."""
    for name in ("used", "newer", "broken"):
        (folder / name).mkdir()
    (folder / "used" / "letter.txt").write_text("dear")
    (folder / "newer" / "_scapy_zenoh.json").write_text('{"format": 99}')
    (folder / "broken" / "_scapy_zenoh.json").write_text("{")
    (folder / "file").write_text("")
    return {"used": "has other things in it (letter.txt)", "newer": "of format 99, not 1", "broken": "Expecting",
            "file": "not a folder"}  # fmt: skip


def test_folder_that_is_not_ours_is_refused_and_left_alone(tmp_path: Path) -> None:
    for name, said in strange(tmp_path).items():
        before = sorted(str(path) for path in tmp_path.rglob("*"))
        for refuse in (Store(tmp_path / name).check, Store(tmp_path / name).__enter__):
            with pytest.raises(PipelineError) as caught:
                refuse()
            assert said in str(caught.value) and str(tmp_path / name) in str(caught.value)
        assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_check_writes_nothing_and_an_empty_folder_is_fine(tmp_path: Path) -> None:
    Store(tmp_path / "new").check()
    assert list(tmp_path.iterdir()) == []
    with Store(tmp_path) as store:
        assert store.is_there()


def test_folder_that_a_crash_left_at_its_beginning_is_ours(made: Path, tmp_path: Path) -> None:
    """Only the lock, and perhaps the mark that was being written."""
    (tmp_path / "young").mkdir()
    shutil.copy(made / "_lock", tmp_path / "young")
    (tmp_path / "young" / "._scapy_zenoh.json.new").write_text('{"fo')
    with Store(tmp_path / "young") as store:
        assert store.is_there()
    assert leftovers(tmp_path / "young") == []


def test_place_of_a_file() -> None:
    assert File("messages", "r", "/s", "f.parquet", "2026-01-01").place == OLD[0].replace("old-0", "f")
    assert File("sessions", "r", "/s", "f.parquet").place == "sessions/recording=r/f.parquet"
