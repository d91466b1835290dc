"""Tables of rotating captures are those of the whole recording, whenever the stream is stopped, however hard."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.cli import main
from tests.conftest import captures
from tests.pipeline.cluster import environment
from tests.pipeline.results import everything, leftovers
from tests.rows.files import load
from tests.wire import Record, enhanced, interface, option, pcap, section

pytest.importorskip("pyspark")

from pyspark.sql.types import Row  # noqa: E402

from scapy_zenoh.pipeline import arrivals, stream  # noqa: E402
from scapy_zenoh.pipeline.captures import name_of  # noqa: E402
from scapy_zenoh.pipeline.errors import PipelineError  # noqa: E402
from scapy_zenoh.pipeline.store import STREAM, Store  # noqa: E402
from scapy_zenoh.pipeline.stream import stream_tables  # noqa: E402
from scapy_zenoh.pipeline.stretch import SPLIT, Options  # noqa: E402
from scapy_zenoh.pipeline.tables import read_tables, write_tables  # noqa: E402
from scapy_zenoh.recording import Checkpoint  # noqa: E402

PATIENCE = 300.0  # seconds for what takes ten on an idle machine

#: Queries and declarations that stay open, fragments, several links, WebSocket, bytes that are lost, changed or late.
KINDS = ("s02", "s04", "s06", "s07c", "s08_", "s12c", "s14b", "s15b", "s16", "s24_", "s25d", "s25f", "s25i", "s34")

Frame = tuple[int, Record]  # with its link type


def frames(*kinds: str) -> list[Frame]:
    """The packets of captures, one capture behind the other."""
    found = [load(path) for path in captures() if path.name.startswith(kinds)]
    return [(raw.linktype, record) for raw in found for record in raw.records]


def write(path: Path, packets: Sequence[Frame]) -> Path:
    """A capture file: pcapng, or pcap if that is its name and all packets are of one kind of link."""
    links = sorted({link for link, _ in packets}) or [1]
    if path.suffix == ".pcap" and len(links) == 1:
        path.write_bytes(pcap([record for _, record in packets], links[0], nano=True, snaplen=1 << 18))
        return path
    nano = option(9, b"\x09")
    blocks = [section(), *(interface(link, options=nano) for link in links)]
    blocks += [enhanced(links.index(link), when, data, length) for link, (when, data, length) in packets]
    path.write_bytes(b"".join(blocks))
    return path


def rotate(packets: Sequence[Frame], folder: Path, files: int) -> list[Path]:
    """Cut a recording into files as ``dumpcap -b`` does, in pcap and pcapng."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [len(packets) * number // files for number in range(files + 1)]
    return [
        write(folder / f"lo_{i + 1:05}_{20260101120000 + i}.pcap{'ng' * (i % 3 > 0)}", packets[ends[i] : ends[i + 1]])
        for i in range(files)
    ]


def same(output: Path, expected: Path) -> None:
    """All tables have the same rows in all columns, for the same recordings."""
    told, wanted = everything(output), everything(expected)
    assert sorted(told) == sorted(wanted)
    for key, rows in wanted.items():
        if isinstance(rows, list):
            assert told[key] == rows, key
        else:
            assert told[key].schema.names == rows.schema.names
            assert [name for name in rows.schema.names if not told[key][name].equals(rows[name])] == [], key
    assert set(leftovers(output)) <= {"_stream", "_stream.json", os.path.join("_stream", "files.jsonl")} | {
        str(path.relative_to(output)) for path in (output / "_stream").rglob("*")
    }


# --- stopped hard ---------------------------------------------------------------------------------

#: Streams what is there, and is killed at a moment of a batch; tells the process of Java before.
KILLED = """
import os, signal, sys
from scapy_zenoh.pipeline import store, stream
from scapy_zenoh.pipeline.spark import session

folder, output, moment, batch = sys.argv[1:]
replace, commit, write = os.replace, store.Store.commit, stream._Batches._write

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def killed_write(self, spark, number, *others):
    if number == int(batch) and moment == "staged":
        stream.derive_tables = die  # messages are written, declarations are not
    return write(self, spark, number, *others)

def killed_commit(self, moves, gone, note=None):
    due = note is not None and note["batch"] == int(batch)
    done = []
    def killed_replace(*paths):
        replace(*paths)
        done.append(paths)
        if len(done) == 5:  # the journal and four files
            die()
    if due and moment == "committing":
        os.replace = killed_replace
    commit(self, moves, gone, note)
    if due and moment == "committed":
        die()

store.Store.commit, stream._Batches._write = killed_commit, killed_write
spark = session("local[2,4]", **{"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"})
print(spark.sparkContext._gateway.proc.pid, flush=True)
stream.stream_tables(spark, folder, output, once=True, settle=0, most=5)
"""


@contextmanager
def started(*command: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A program in a process group of its own, which ends with the context."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=cwd, env=environment(), start_new_session=True, **pipes)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(what: Callable[[], bool], alive: Callable[[], bool] = lambda: True) -> None:
    """Look until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert alive() and time.monotonic() < deadline
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_lost_and_nothing_comes_twice(spark: Any, tmp_path: Path) -> None:
    folder, output, expected = tmp_path / "in", tmp_path / "out", tmp_path / "expected"
    files = rotate(frames(*KINDS), folder, 20)
    write_tables(spark, [str(folder)], expected, recording=True)
    assert {"messages", "queries", "declarations", "links"} <= {table for table, _ in everything(expected)}
    for moment, batch, done in (("staged", 0, -1), ("committing", 1, 0), ("committed", 2, 2), ("none", 9, 3)):
        arguments = [str(folder), str(output), moment, str(batch)]
        with started(sys.executable, "-c", KILLED, *arguments, cwd=tmp_path) as process:
            told, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == (0 if moment == "none" else -signal.SIGKILL), errors
        java = int(told)
        wait_for(lambda pid=java: not is_running(pid))  # type: ignore[misc]
        note = Store(output).note("stream")
        assert note is not None and note["batch"] == done, moment
        if moment != "staged":  # what was committed is not needed any more; Spark does the batch again nevertheless
            for path in files[batch * 5 : batch * 5 + 5]:
                path.unlink()
    same(output, expected)


# --- in one process ---------------------------------------------------------------------------------


def once(spark: Any, folder: Path, output: Path, **more: Any) -> list[tuple[int, Any]]:
    """Read what is there; gives what was told of each batch."""
    told: list[tuple[int, Any]] = []
    stream_tables(spark, str(folder), output, once=True, settle=0, told=lambda *batch: told.append(batch), **more)
    return told


@pytest.mark.slow
def test_folders_of_machines_late_foreign_and_missing_files(spark: Any, tmp_path: Path) -> None:
    folder, output, expected, later = (tmp_path / name for name in ("in", "out", "expected", "later"))
    folder.mkdir()
    assert once(spark, folder, output) == []  # empty so far
    one, two = folder / "one", folder / "two ' machines*"
    rotate(frames("s04"), later, 8)
    of_one = sorted(later.iterdir())
    packets = frames("s06")
    names = ["1 a.pcap", "2ä{}.pcap", os.fsdecode(b"3\xff.pcap"), "4%\n.pcapng"]
    one.mkdir()
    two.mkdir()

    def arrive(paths: Sequence[Path]) -> None:
        for path in paths:
            path.rename(one / path.name)

    arrive([of_one[0], of_one[1], of_one[3]])
    write(two / names[0], packets[:20])
    write(two / names[1], packets[20:21])
    ((number, report),) = once(spark, folder, output)
    assert (report.captures, report.unread) == (5, [])
    arrive([of_one[2], *of_one[4:7]])  # the first of them is late
    (one / "lo_00007_20260101120006.txt").write_text("not a capture, but as long as the header of one is")
    write(two / names[2], packets[21:90])
    write(two / names[3], packets[90:])
    batches = once(spark, folder, output, most=4)
    assert [later for later, _ in batches] == [number + 1, number + 2]
    assert sum(report.captures for _, report in batches) == 7
    ((path, error),) = [unread for _, report in batches for unread in report.unread]
    assert path.endswith(".txt") and "not a capture" in error
    arrive(of_one[7:])
    assert len(once(spark, folder, output)) == 1
    before = sorted(path for path in output.rglob("*.parquet"))
    assert once(spark, folder, output) == []
    assert sorted(path for path in output.rglob("*.parquet")) == before

    late = one / of_one[2].name
    write_tables(spark, [str(late)], expected)
    late.rename(tmp_path / "late")
    write_tables(spark, [str(one)], expected, recording=True)
    write_tables(spark, [str(two)], expected, recording=True)
    (tmp_path / "late").rename(late)
    told, wanted = everything(output), everything(expected)
    assert sorted(told) == sorted(wanted)
    own = name_of(str(late))
    assert [row["late"] for row in told["captures", own]] == [True]
    for row in told["captures", own]:
        row["late"] = False
    for key, rows in wanted.items():
        assert told[key] == rows if isinstance(rows, list) else told[key].equals(rows), key


@pytest.mark.slow
@pytest.mark.parametrize("split", [SPLIT, 3000])
def test_files_that_change_while_they_are_read_give_what_they_are_in_the_end(
    split: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is deleted and one grows between counting its rows and writing them."""
    folder, output, expected = tmp_path / "in", tmp_path / "out", tmp_path / "expected"
    packets = frames("s04")
    some = len(packets) - 20
    files = rotate(packets[:some], folder, 4)
    write_stretches, changes = stream.write_stretches, [lambda: grow(files[3]), files[1].unlink]

    def grow(path: Path) -> None:
        write(path, packets[some * 3 // 4 :])

    def changing(*arguments: Any) -> Any:
        if changes:
            changes.pop()()
        return write_stretches(*arguments)

    monkeypatch.setattr(stream, "write_stretches", changing)
    ((_, report),) = once(spark, folder, output, split=split)
    assert changes == []
    assert report.unread == [(str(files[1]), f"{files[1]}: No such file or directory")]
    files[1].symlink_to("nowhere")
    write_tables(spark, [str(folder)], expected, recording=True)
    same(output, expected)
    tables = read_tables(spark, output)
    assert tables["messages"].count() == tables["captures"].agg({"rows": "sum"}).first()[0] > 0


@pytest.mark.slow
def test_files_that_are_replaced_while_they_are_read_are_not_taken_for_others(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring overwrites one, by as many messages, and another one is compressed."""
    folder, output, later = tmp_path / "in", tmp_path / "out", 10**12
    packets = frames("s04")
    files = rotate(packets, folder, 3)
    write_stretches, changes = stream.write_stretches, [0]

    def changing(*arguments: Any) -> Any:
        if changes:
            changes.pop()
            third = packets[len(packets) // 3 : len(packets) * 2 // 3]
            write(files[1], [(link, (when + later, *rest)) for link, (when, *rest) in third])  # type: ignore[arg-type]
            subprocess.run(["gzip", str(files[2])], check=True)
        return write_stretches(*arguments)

    monkeypatch.setattr(stream, "write_stretches", changing)
    ((_, report),) = once(spark, folder, output)
    assert report.unread == [(str(files[1]), f"{files[1]}: overwritten before it was read")]
    ((_, report),) = once(spark, folder, output)
    assert report.captures == 1
    tables = read_tables(spark, output)
    told = {row.path: row for row in tables["captures"].collect() if row.error is None}
    assert {path: row.late for path, row in told.items()} == {
        str(files[0]): False, str(files[1]): True, f"{files[2]}.gz": False,
    }  # fmt: skip
    begin = packets[0][1][0] + later
    assert tables["messages"].where(f"time >= {begin}").count() == told[str(files[1])].rows > 100
    assert tables["messages"].count() == sum(row.rows for row in told.values())
    assert once(spark, folder, output) == []


def test_memory_that_is_not_whole_is_told(tmp_path: Path) -> None:
    """Nothing is read then: Spark would pass over files, or over batches."""
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    with Store(output) as store:
        store.commit([], [], {"name": STREAM, "batch": 1, "source": str(folder)})
    offsets = output / "_stream" / "checkpoint" / "offsets"

    def complaint() -> str:
        with pytest.raises(PipelineError) as caught:
            stream.check(str(folder), output)
        return str(caught.value)

    assert "checkpoint: what the stream remembers is gone" in complaint()
    offsets.mkdir(parents=True)
    assert "checkpoint: what the stream remembers is gone" in complaint()
    (offsets / "0").write_text('v1\n{}\n{"files": 1}')
    assert "checkpoint: what the stream remembers is gone" in complaint()
    (offsets / "1").write_text('v1\n{}\n{"files": 2}')
    assert "files.jsonl: files that were read are missing here" in complaint()
    taken = [arrivals.Arrival("r", number, "a.pcap", False, 0, 0, "0:") for number in range(2)]
    arrivals.Ledger(output / "_stream" / "files.jsonl").take(taken)
    stream.check(str(folder), output)


# --- as a user meets it -----------------------------------------------------------------------------


@pytest.mark.slow
def test_command_follows_a_folder_until_it_is_interrupted(spark: Any, tmp_path: Path) -> None:
    folder, output, expected, later = (tmp_path / name for name in ("in", "out", "expected", "later"))
    folder.mkdir()
    files = rotate(frames("s04", "s08_"), later, 6)
    command = [sys.executable, "-m", "scapy_zenoh", "stream", "in", "-o", "out", "--settle", "0.5"]
    commits = output / "_stream" / "checkpoint" / "commits"

    def arrive(some: Sequence[Path]) -> None:
        for path in some:
            path.rename(folder / path.name)

    def seen() -> int:
        return sum(len(rows) for (table, _), rows in everything(output).items() if table == "captures")

    with started(*command, cwd=tmp_path) as process:
        wait_for(lambda: (output / "_stream").is_dir(), lambda: process.poll() is None)
        arrive(files[:2])
        wait_for((commits / "0").exists, lambda: process.poll() is None)
        arrive(files[2:4])
        os.killpg(process.pid, signal.SIGKILL)
    with started(*command, cwd=tmp_path) as process:
        wait_for(lambda: seen_is(seen, 4), lambda: process.poll() is None)
        arrive(files[4:])
        wait_for(lambda: seen_is(seen, 6), lambda: process.poll() is None)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        told, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert told.splitlines()[0] == "following in, until you press Ctrl+C"
    assert re.fullmatch(r"(batch \d+: [1-4] files?, [\d,]+ messages\n)+", told.partition("\n")[2])
    write_tables(spark, [str(folder)], expected, recording=True)
    same(output, expected)


def seen_is(seen: Callable[[], int], number: int) -> bool:
    """Whether so many captures are in the tables; files come and go while somebody looks."""
    try:
        return seen() == number
    except OSError:
        return False


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The one line that a wrong command gives."""
    try:
        code: Any = main(["stream", *args])
    except SystemExit as error:
        code = error.code
    told = capsys.readouterr()
    assert (code, told.out, len(told.err.splitlines())) == (2, "", 1)
    return told.err


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with captures, and the current one beside it; Spark cannot start."""

    def session(*_: Any, **__: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("scapy_zenoh.pipeline.spark.session", session)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "one").mkdir(parents=True)
    return tmp_path


def stored(output: str, source: str | None, batch: int = -1) -> None:
    """A folder of tables, empty; of a stream, if it has a source."""
    with Store(output) as store:
        if source is not None:
            store.commit([], [], {"name": STREAM, "batch": batch, "source": str(Path(source).resolve())})


def test_folder_must_be_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere: no such folder" in complaint(capsys, "nowhere", "-o", "out")
    (place / "file").write_text("")
    assert "file: no such folder" in complaint(capsys, "file", "-o", "out")
    assert sorted(os.listdir()) == ["file", "in"]


@pytest.mark.parametrize("output", ["in", "in/out", "in/one/out", "in/../in/one"])
def test_tables_cannot_be_in_the_folder_that_is_read(
    output: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "in" / "one" / "a.pcap").write_bytes(b"x")
    complaint(capsys, "in", "-o", output)
    (place / "link").symlink_to("in")
    complaint(capsys, "in", "-o", output.replace("in/", "link/", 1))
    assert [name for _, folders, files in os.walk("in") for name in folders + files] == ["one", "a.pcap"]


def test_tables_go_to_a_folder_that_is_ours(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "out").mkdir()
    (place / "out" / "thesis.txt").write_text("mine")
    assert "other things in it (thesis.txt)" in complaint(capsys, "in", "-o", "out")
    assert os.listdir("out") == ["thesis.txt"]
    assert "not a folder" in complaint(capsys, "in", "-o", "out/thesis.txt")


def test_tables_of_one_folder_do_not_follow_another(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored("out", "in/one")
    assert "follow another folder" in complaint(capsys, "in", "-o", "out")


def test_stream_without_its_memory_does_not_begin_anew(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would count batches from 0 again, and take them for done."""
    stored("out", "in", batch=3)
    assert "is gone" in complaint(capsys, "in", "-o", "out")


def test_tables_of_jobs_are_left_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored("out", None)
    stream.check("in", "out")  # as long as there are none
    (place / "out" / "links" / "recording=a").mkdir()
    (place / "out" / "links" / "recording=a" / "a.parquet").write_bytes(b"")
    assert "not written by a stream" in complaint(capsys, "in", "-o", "out")


def test_jobs_leave_tables_of_streams_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored("out", "in")
    (place / "a.pcap").write_bytes(b"x")
    assert main(["tables", "a.pcap", "-o", "out"]) == 2
    assert "a stream writes these tables" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1", "soon", "nan", "inf", ""])
def test_settle_is_a_time(value: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no time in seconds" in complaint(capsys, "in", "-o", "out", f"--settle={value}")
    assert os.listdir() == ["in"]


def test_key_logs_are_for_whole_recordings(place: Path) -> None:
    with pytest.raises(PipelineError, match="key log"):
        stream_tables(None, "in", "out", Options(keylog="keys"))  # type: ignore[arg-type]
    assert os.listdir() == ["in"]


# --- what is remembered -----------------------------------------------------------------------------


def moved(packets: Sequence[Frame], by: int) -> list[Frame]:
    """The same conversations later, from other ports."""
    found = []
    for link, (when, data, length) in packets:
        ports = bytearray(data[34:38])
        for at in (0, 2):
            port = int.from_bytes(ports[at : at + 2], "big")
            if port != 7447:
                ports[at : at + 2] = (port ^ by).to_bytes(2, "big")
        found.append((link, (when + by * 10**12, data[:34] + bytes(ports) + data[38:], length)))
    return found


class Remembered:
    """State as Spark keeps it for a key."""

    def __init__(self) -> None:
        self.value: Any = None

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> Any:
        return self.value

    def update(self, value: Any) -> None:
        self.value = value


def follow(path: Path, number: int, memory: Remembered, kept: Path, late: bool = False) -> stream.Work:
    """What a new file brings to a recording."""
    following = stream.Following(Options(), 1 << 40, str(kept))
    following.memory = memory  # type: ignore[assignment]
    head = arrivals._head(arrivals._start(str(path), path.stat().st_size))
    arrival = Row(recording="r", ordinal=number, path=os.fsencode(path), late=late, bytes=0, head=head)
    (row,) = following.handleInputRows(("r",), iter([arrival]), None)
    work = pickle.loads(row.work)
    assert isinstance(work, stream.Work)
    return work


def test_what_is_over_takes_a_row_of_memory_for_each_session(tmp_path: Path) -> None:
    """Declarations, queries and names go; sessions, links and files are rows of tables, and stay."""
    packets, memory, sizes = frames("s06"), Remembered(), []
    for number in range(12):
        work = follow(write(tmp_path / f"{number}.pcap", moved(packets, number)), number, memory, tmp_path)
        assert len(work.over) == 3  # the sessions of this file
        (known,) = memory.value
        sizes.append(len(known))
        sessions = stream._recording(Checkpoint(0, None, known)).follower.tracker.sessions
        assert len(sessions) == 3 * (number + 1)
        for side in (side for session in sessions for side in session.sides):
            tables = (side.keys.known, side.entities.known, side.queries.known, side.interests, side.lanes)
            assert not any(tables)
    grown = [after - before for before, after in zip(sizes[4:], sizes[5:], strict=False)]
    assert max(grown) < 300 * 3, sizes


def test_ends_of_udp_that_are_used_again_have_left_nothing_open(tmp_path: Path) -> None:
    """A handshake between the same ends: of the session before it nothing more can come."""
    packets, memory = frames("s02_peer_udp"), Remembered()
    first = follow(write(tmp_path / "0.pcap", packets), 0, memory, tmp_path)
    later = [(link, (when + 10**12, data, length)) for link, (when, data, length) in packets]
    second = follow(write(tmp_path / "1.pcap", later), 1, memory, tmp_path)
    (known,) = memory.value
    sessions = [s for s in stream._recording(Checkpoint(0, None, known)).follower.tracker.sessions if not s.multicast]
    assert first.over == [] and len(second.over) == len(sessions) // 2 > 0
    assert sorted(session.id for session in sessions if session.settled) == second.over


def test_late_file_leaves_nothing_behind(tmp_path: Path) -> None:
    memory = Remembered()
    work = follow(write(tmp_path / "a.pcap", frames("s06")), 7, memory, tmp_path, late=True)
    assert work.rows > 100 and work.captures.late
    assert memory.value is None
