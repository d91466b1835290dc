"""Which files of a folder are read, when, and in which order; nothing here starts Spark."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import zstandard  # noqa: E402
from pyspark.sql.types import Row  # noqa: E402

from scapy_zenoh.pipeline import arrivals, stream  # noqa: E402
from scapy_zenoh.pipeline.arrivals import Arrival, ArrivalReader, Ledger, Taken, grown, new_files  # noqa: E402
from scapy_zenoh.pipeline.captures import name_of  # noqa: E402
from scapy_zenoh.pipeline.store import Store  # noqa: E402
from scapy_zenoh.pipeline.stretch import Options  # noqa: E402
from scapy_zenoh.recording import Checkpoint  # noqa: E402
from tests.conftest import captures  # noqa: E402
from tests.wire import UDP, ipv4, pcap, record, udp  # noqa: E402

NOW = 1_700_000_000.0
SETTLE = 10.0


def content(number: int = 0) -> bytes:
    """A capture of one packet."""
    return pcap([record(number * 10**9, ipv4("10.0.0.1", "10.0.0.2", UDP, udp(1, 2, b"x")))], 101)


def put(folder: Path, *names: str, age: float = 1000.0, number: int = 0) -> None:
    """Captures that were changed last so many seconds ago; those of another number have another content."""
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack.get(path.suffix, bytes)(content(number)))
        os.utime(path, (NOW - age, NOW - age))


class Watch:
    """A folder that is looked at again and again."""

    def __init__(self, folder: Path, ledger: Path) -> None:
        self.folder, self.ledger = folder, Ledger(ledger)

    @property
    def known(self) -> list[Arrival]:
        return list(self.ledger.arrivals())

    def look(self, now: float = NOW) -> list[Arrival]:
        found = new_files(str(self.folder), SETTLE, self.ledger, now)
        self.ledger.take(found)
        return found

    def names(self, now: float = NOW) -> list[str]:
        return [os.path.relpath(arrival.path, self.folder) for arrival in self.look(now)]


@contextmanager
def opened(path: Path, mode: str) -> Iterator[None]:
    """While another process has a file open."""
    code = "import sys; file = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"
    arguments = [sys.executable, "-c", code, str(path), mode]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        yield
        other.communicate()


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    (tmp_path / "in").mkdir()
    return Watch(tmp_path / "in", tmp_path / "watched")


def test_empty_and_missing_folders_have_no_files_yet(watch: Watch, tmp_path: Path) -> None:
    assert watch.look() == []
    assert new_files(str(tmp_path / "nowhere"), SETTLE, watch.ledger, NOW) == []


def test_newest_file_waits_until_it_is_old_or_there_is_a_newer_one(watch: Watch) -> None:
    put(watch.folder, "a_00001_20260101120000.pcapng", "a_00002_20260101120100.pcapng", age=1)
    assert watch.names() == ["a_00001_20260101120000.pcapng"]
    assert watch.names(NOW + 8.9) == []
    put(watch.folder, "a_00003_20260101120200.pcapng", age=1)
    assert watch.names() == ["a_00002_20260101120100.pcapng"]
    assert watch.names(NOW + 9) == ["a_00003_20260101120200.pcapng"]
    assert watch.names(NOW + 99) == []


def test_file_with_a_time_to_come_waits_for_it(watch: Watch) -> None:
    put(watch.folder, "a.pcap", age=-100)
    assert watch.names() == []
    assert watch.names(NOW + 110) == ["a.pcap"]


def test_file_that_a_process_is_writing_waits_however_old_it_is(watch: Watch) -> None:
    put(watch.folder, "a.pcap")
    with opened(watch.folder / "a.pcap", "r+b"):
        assert watch.names() == []
    with opened(watch.folder / "a.pcap", "rb"):
        assert watch.names() == ["a.pcap"]


def test_numbers_in_names_are_numbers(watch: Watch) -> None:
    put(watch.folder, "a.pcap10", "a.pcap9", "a.pcap", "a.pcap100")
    assert watch.names() == ["a.pcap", "a.pcap9", "a.pcap10", "a.pcap100"]


def test_dumpcap_that_was_started_again_goes_on(watch: Watch) -> None:
    """Its number begins anew, and after 99999 as well; the time does not."""
    put(watch.folder, "a_00007_20260101120000.pcapng", "a_99999_20260101120500.pcapng")
    assert watch.names() == ["a_00007_20260101120000.pcapng", "a_99999_20260101120500.pcapng"]
    put(watch.folder, "a_00000_20260101120600.pcapng", "a_00001_20260102080000.pcapng")
    found = watch.look()
    assert [Path(arrival.path).name[:7] for arrival in found] == ["a_00000", "a_00001"]
    assert not any(arrival.late for arrival in found)
    put(watch.folder, "a_00002_20260101110000.pcapng")
    assert [arrival.late for arrival in watch.look()] == [True]


def test_file_before_one_that_was_read_is_late_and_a_recording_of_its_own(watch: Watch) -> None:
    put(watch.folder, "a_1.pcap", "a_3.pcap")
    first = watch.look()
    put(watch.folder, "a_2.pcap", "a_4.pcap", "a_0.pcap")
    later = watch.look()
    assert [(Path(a.path).name, a.late) for a in first + later] == [
        ("a_1.pcap", False), ("a_3.pcap", False), ("a_0.pcap", True), ("a_2.pcap", True), ("a_4.pcap", False),
    ]  # fmt: skip
    folder = name_of(str(watch.folder))
    own = [name_of(str(watch.folder / name)) for name in ("a_0.pcap", "a_2.pcap")]
    assert [a.recording for a in first + later] == [folder, folder, *own, folder]
    assert [a.ordinal for a in first + later] == [0, 1, 2, 3, 4]
    assert len({folder, *own}) == 3


def test_late_is_what_comes_late_in_its_own_folder(watch: Watch) -> None:
    put(watch.folder, "b/a_5.pcap", "c/a_5.pcap", "a_5.pcap")
    put(watch.folder, ".hidden/a.pcap", "_ours/a.pcap", ".a.pcap", "_a.pcap")
    assert watch.names() == ["a_5.pcap", "b/a_5.pcap", "c/a_5.pcap"]
    assert [a.recording for a in watch.known] == [name_of(str(watch.folder / place)) for place in ("", "b", "c")]
    put(watch.folder, "b/a_6.pcap", "c/a_4.pcap", "d/a_1.pcap")
    assert [(Path(a.path).parent.name, a.late) for a in watch.look()] == [("b", False), ("c", True), ("d", False)]


def test_newest_file_of_each_folder_and_of_each_name_waits(watch: Watch) -> None:
    """Two machines, and two interfaces of one, that are all still writing."""
    names = ["b/eth0_1.pcap", "b/eth0_2.pcap", "b/eth1_1.pcap", "c/eth0_1.pcap"]
    put(watch.folder, *names, age=1)
    assert watch.names() == ["b/eth0_1.pcap"]
    assert sorted(watch.names(NOW + 9)) == names[1:]


def test_another_series_of_a_folder_is_not_late(watch: Watch) -> None:
    put(watch.folder, "eth1_1.pcap", "eth1_2.pcap")
    assert watch.names() == ["eth1_1.pcap", "eth1_2.pcap"]
    put(watch.folder, "eth0_1.pcap", "eth0_2.pcap", "eth1_0.pcap")
    assert [(Path(a.path).name, a.late) for a in watch.look()] == [
        ("eth0_1.pcap", False), ("eth0_2.pcap", False), ("eth1_0.pcap", True),
    ]  # fmt: skip


def test_name_that_a_ring_uses_again_is_a_recording_of_its_own(watch: Watch) -> None:
    put(watch.folder, "a_0.pcap", "a_1.pcap")
    first = watch.look()
    (watch.folder / "a_0.pcap").write_bytes(b"another day")
    os.utime(watch.folder / "a_0.pcap", (NOW - 1, NOW - 1))
    assert watch.look() == []  # it may still be written
    (again,) = watch.look(NOW + 10)
    assert (Path(again.path).name, again.late, again.ordinal) == ("a_0.pcap", True, 2)
    assert again.recording not in {a.recording for a in first}
    assert watch.look(NOW + 20) == []
    (watch.folder / "a_0.pcap").write_bytes(b"the day after")
    (third,) = watch.look(NOW * 2)
    assert third.recording not in {a.recording for a in watch.known[:-1]}


def test_name_that_a_ring_uses_again_is_known_by_its_content_compressed_or_not(watch: Watch) -> None:
    put(watch.folder, "a_0.pcap.gz", "a_1.pcap")
    assert watch.names() == ["a_0.pcap.gz", "a_1.pcap"]
    put(watch.folder, "a_0.pcap", number=5)  # gzip does not overwrite: both stay
    (again,) = watch.look()
    assert (Path(again.path).name, again.late) == ("a_0.pcap", True)
    assert watch.look(NOW * 2) == []
    (watch.folder / "a_1.pcap").unlink()
    put(watch.folder, "a_1.pcap.zst", number=6)
    assert [(Path(a.path).name, a.late) for a in watch.look()] == [("a_1.pcap.zst", True)]
    assert watch.look(NOW * 2) == []


def test_other_captures_of_one_name_are_both_read_the_older_one_first(watch: Watch) -> None:
    put(watch.folder, "a_0.pcap.gz", "a_1.pcap")
    put(watch.folder, "a_0.pcap", age=500, number=5)
    found = watch.look()
    assert [(Path(a.path).name, a.late) for a in found] == [
        ("a_0.pcap.gz", False), ("a_0.pcap", True), ("a_1.pcap", False),
    ]  # fmt: skip
    assert watch.look(NOW * 2) == []


def test_file_without_packets_proves_nothing(watch: Watch) -> None:
    """What is behind its header may be that file going on, or another one."""
    put(watch.folder, "a_0.pcap", "a_1.pcap")
    (watch.folder / "a_0.pcap").write_bytes(content()[:24])
    (watch.folder / "a_1.pcap").write_bytes(b"")
    assert [a.bytes for a in watch.look(NOW * 2)] == [24, 0]
    assert watch.look(NOW * 2) == []
    put(watch.folder, "a_0.pcap", "a_1.pcap")
    assert [a.late for a in watch.look(NOW * 2)] == [True, True]
    assert watch.look(NOW * 2) == []


def test_file_that_is_compressed_while_somebody_looks_is_not_late(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(watch.folder, "a_0.pcap", "a_1.pcap", "a_2.pcap")
    known = arrivals._files(str(watch.folder))
    (watch.folder / "a_0.pcap").unlink()
    put(watch.folder, "a_0.pcap.gz")
    with monkeypatch.context() as patch:
        patch.setattr(arrivals, "_files", lambda _: known)
        assert watch.look() == []
    assert watch.names() == ["a_0.pcap.gz", "a_1.pcap", "a_2.pcap"]
    assert not any(arrival.late for arrival in watch.known)


def test_links_stand_for_themselves(watch: Watch, tmp_path: Path) -> None:
    put(tmp_path / "archive", "x_7.pcap", "y_3.pcap")
    (watch.folder / "a_1.pcap").symlink_to(tmp_path / "archive" / "y_3.pcap")
    (watch.folder / "a_2.pcap").symlink_to(tmp_path / "archive" / "x_7.pcap")
    assert watch.names() == ["a_1.pcap", "a_2.pcap"]
    assert {a.recording for a in watch.known} == {name_of(str(watch.folder))}


def test_file_that_goes_on_is_told_and_not_read_again(watch: Watch) -> None:
    put(watch.folder, "a.pcap", "b.pcap")
    assert watch.names() == ["a.pcap", "b.pcap"]
    assert grown(watch.known) == {}
    with (watch.folder / "b.pcap").open("ab") as file:
        file.write(b"more")
    (watch.folder / "a.pcap").unlink()
    assert watch.look(NOW * 2) == []
    assert {file.path: size for file, size in grown(watch.known).items()} == {
        str(watch.folder / "b.pcap"): len(content()) + 4
    }


def test_compressed_copy_is_the_same_file(watch: Watch) -> None:
    put(watch.folder, "a_1.pcap", "a_2.pcap")
    assert watch.names() == ["a_1.pcap", "a_2.pcap"]
    (watch.folder / "a_1.pcap").unlink()
    put(watch.folder, "a_1.pcap.gz", "a_3.pcap", "a_3.pcap.zst", "a_4.pcap")
    assert watch.names() == ["a_3.pcap", "a_4.pcap"]
    (watch.folder / "a_3.pcap").unlink()
    put(watch.folder, "a_4.pcap.gz")
    assert watch.names() == []


def test_file_that_is_being_compressed_is_read_and_not_its_copy(watch: Watch) -> None:
    put(watch.folder, "a_2.pcap", "a_4.pcap")
    put(watch.folder, "a_2.pcap.gz", "a_3.pcap.gz", age=0)
    assert watch.names() == ["a_2.pcap"]
    assert watch.names(NOW + 9) == []  # a_4 would make a_3 late
    with opened(watch.folder / "a_3.pcap.gz", "r+b"):
        assert watch.names(NOW + 10) == []
    assert watch.names(NOW + 10) == ["a_3.pcap.gz", "a_4.pcap"]
    assert not any(arrival.late for arrival in watch.known)


def test_compressed_files_have_the_order_that_they_had_before(watch: Watch) -> None:
    put(watch.folder, "a.pcap.gz", "a.pcap1.zst")
    assert watch.names() == ["a.pcap.gz", "a.pcap1.zst"]
    put(watch.folder, "a.pcap2")
    assert [arrival.late for arrival in watch.look()] == [False]


def test_late_file_waits_until_it_is_whole(watch: Watch) -> None:
    put(watch.folder, "a_1.pcap", "a_3.pcap")
    assert watch.names() == ["a_1.pcap", "a_3.pcap"]
    put(watch.folder, "a_2.pcap", "a_4.pcap", "a_5.pcap", age=0)
    assert watch.names() == ["a_4.pcap"]  # which is held back by nothing
    with opened(watch.folder / "a_2.pcap", "r+b"):
        assert watch.names(NOW + 10) == ["a_5.pcap"]
    assert [(Path(a.path).name, a.late) for a in watch.look(NOW + 10)] == [("a_2.pcap", True)]


def test_file_that_is_being_written_holds_back_those_behind_it(watch: Watch) -> None:
    put(watch.folder, *(f"a_{number}.pcap" for number in range(5)), "b_1.pcap")
    with opened(watch.folder / "a_2.pcap", "r+b"):
        assert watch.names() == ["a_0.pcap", "a_1.pcap", "b_1.pcap"]
        assert watch.names() == []
    assert watch.names() == ["a_2.pcap", "a_3.pcap", "a_4.pcap"]
    assert not any(arrival.late for arrival in watch.known)


def test_processes_are_asked_once_for_all_files_and_only_for_new_ones(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def being_written() -> set[tuple[int, int]]:
        asked.append(1)
        return set()

    monkeypatch.setattr(arrivals, "_being_written", being_written)
    put(watch.folder, *(f"a_{number}.pcap" for number in range(9)))
    put(watch.folder, "a_9.pcap", age=0)
    assert len(watch.names()) == 9
    assert watch.names() == []
    assert len(asked) == 1


def test_head_is_that_of_the_bytes_that_are_told(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the file grows in between: then it is known again."""
    put(watch.folder, "a.pcap")
    path = watch.folder / "a.pcap"
    monkeypatch.setattr(arrivals, "_being_written", lambda: [path.write_bytes(content() + b"more")] and set())
    (arrival,) = watch.look()
    assert arrival.bytes == len(content())
    assert watch.look(NOW * 2) == []
    assert list(grown(watch.known).values()) == [len(content()) + 4]


ROTATIONS = [
    ["site_00001_20260101120000.pcapng", "site_00002_20260101120100.pcap", "site_99999_20260102120100.pcapng.gz"],
    ["site_20260101120000_00001.pcapng", "site_20260101120100_00002.pcapng"],  # dumpcap -b nametimenum:2
    ["node1.pcap", "node1.pcap1", "node1.pcap12.zst"],
    ["eth0.pcap00", "eth0.pcap11"],
    ["s-2026-01-01_12:00:00.pcap", "s-2026-01-01_13:00:00.pcap", "s-2027-02-01_00:00:00.pcap3"],
    ["s-2026-01-01T12:00:00Z.pcap", "s-2026-01-02T12:00:00+0100.pcap", "s-20260103T120000.pcap"],
    ["trace20260101120000.pcap", "trace20260101120100.pcap"],
    ["node-1_2026-01-01.pcap", "node-1_2026-01-02.pcap"],
    ["node-1.0001.pcap", "node-1.0002.pcap"],
    ["node-2_00001", "node-2_00002"],
    ["s_1767268800.cap", "s_1767268860.cap"],
    ["1.pcap", "20.pcap", "20260101.pcap"],
]

APART = [
    ["eth0.pcap", "eth1.pcap", "a/eth0.pcap"],
    ["eth0.pcap1", "eth1.pcap1"],
    ["eth0_1.pcap", "eth1_1.pcap", "wlan_1.pcap"],
    ["node-1_00001.pcap", "node-2_00001.pcap"],
    ["node-1_20260101120000.pcap", "node-2_20260101120000.pcap"],
    ["1 a.pcap", "2 a.pcap"],
    ["ä1.pcap", "ä2.pcap"],
    ["node1", "node2"],
    ["site.node1", "site.node2"],
    ["site_00001_20260101120000.pcapng", "site_00002_20260101120100.txt"],
]


@pytest.mark.parametrize("names", ROTATIONS, ids=lambda names: names[0])
def test_counters_and_times_of_a_rotation_make_a_series(names: list[str]) -> None:
    assert len({arrivals._name(f"/in/{name}").series for name in names}) == 1


@pytest.mark.parametrize("names", APART, ids=lambda names: names[0])
def test_numbers_that_are_names_tell_series_apart(names: list[str]) -> None:
    assert len({arrivals._name(f"/in/{name}").series for name in names}) == len(names)


def test_interfaces_that_are_recorded_side_by_side_do_not_wait_for_each_other(watch: Watch) -> None:
    put(watch.folder, "eth0.pcap", "eth0.pcap1", "eth1.pcap", "eth1.pcap1", age=0)
    assert watch.names() == ["eth0.pcap", "eth1.pcap"]
    put(watch.folder, "eth1.pcap2", age=0)
    assert watch.names() == ["eth1.pcap1"]
    put(watch.folder, "eth0.pcap2", age=0)
    assert [(Path(a.path).name, a.late) for a in watch.look()] == [("eth0.pcap1", False)]


NAMES: list[str | bytes] = [
    "a b.pcap",
    "ä.pcap",
    "²3.pcap",
    "٣.pcap",
    "new\nline.pcap",
    "100%{[*?]}.pcap",
    '"q"\\.pcap',
    "1",
    b"\xff\xfe.pcap",
]


def test_names_of_any_kind_go_through_the_ledger(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, *(os.fsdecode(name) for name in NAMES))
    ledger = Ledger(tmp_path / "ledger")
    found = watch.look()
    ledger.take(found)
    assert sorted(os.path.basename(os.fsencode(a.path)) for a in found) == sorted(map(os.fsencode, NAMES))
    assert ledger.arrivals() == found
    assert watch.look() == []


def test_what_is_no_file_is_passed_over(watch: Watch) -> None:
    os.mkfifo(watch.folder / "a_1.pcap")
    (watch.folder / "a_2.pcap").symlink_to(watch.folder / "nowhere")
    put(watch.folder, "a_3.pcap")
    assert watch.names() == ["a_3.pcap"]


# --- the ledger, and what Spark asks ----------------------------------------------------------------


def test_line_of_the_ledger_that_was_cut_short_has_not_been_taken(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert Ledger(path).arrivals() == []
    one, two, three = (Arrival("r", number, f"/in/{number}", False, 1, 2, "00") for number in range(3))
    Ledger(path).take([one])
    whole = path.read_bytes()
    line = (json.dumps(two._asdict()) + "\n").encode()
    for end in range(len(line)):
        path.write_bytes(whole + line[:end])
        ledger = Ledger(path)
        assert ledger.arrivals() == [one]
        ledger.take([two, three])
        assert ledger.arrivals() == Ledger(path).arrivals() == [one, two, three]


def test_ledger_that_another_process_adds_to_is_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is parsed once, and half a line not yet."""
    ours, theirs = Ledger(tmp_path / "ledger"), Ledger(tmp_path / "ledger")
    parsed: list[bytes] = []
    loads = json.loads

    def counted(line: bytes) -> Any:
        parsed.append(line)
        return loads(line)

    monkeypatch.setattr(json, "loads", counted)
    one, two, three = (Arrival("r", number, f"/in/a_{number}", False, 1, 2, "00") for number in range(3))
    theirs.take([one])
    assert ours.arrivals() == [one]
    with ours.path.open("ab") as file:
        file.write(b'{"recording": "r", "ord')
    assert ours.arrivals() == [one]
    theirs.take([two, three])
    parsed.clear()
    assert ours.arrivals() == ours.arrivals() == [one, two, three]
    assert len(parsed) == 2


def reader(watch: Watch, tmp_path: Path, most: int = 256) -> ArrivalReader:
    return ArrivalReader(str(watch.folder), str(tmp_path / "ledger"), SETTLE, most)


def read(source: ArrivalReader, start: dict[str, int], end: dict[str, int]) -> list[str]:
    """The names of the files between two offsets."""
    (part,) = source.partitions(start, end)
    assert isinstance(part, Taken)
    return [os.path.basename(path).decode() for _, _, path, *_ in source.read(part)]


def test_files_between_two_offsets_stay_the_same(watch: Watch, tmp_path: Path) -> None:
    """A batch that is done again has its files, whatever came since, also from a new process."""
    put(watch.folder, "a_1.pcap", "a_2.pcap")
    source = reader(watch, tmp_path)
    nothing = source.initialOffset()
    first = source.latestOffset(nothing)
    assert source.latestOffset(first) == first
    assert source.partitions(first, first) == []
    put(watch.folder, "a_0.pcap", "a_3.pcap")
    again = reader(watch, tmp_path)
    second = again.latestOffset(first)
    assert read(again, nothing, first) == ["a_1.pcap", "a_2.pcap"]
    assert read(again, first, second) == ["a_0.pcap", "a_3.pcap"]
    (watch.folder / "a_1.pcap").unlink()
    assert read(again, nothing, first) == ["a_1.pcap", "a_2.pcap"]


def test_many_files_are_several_batches(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, *(f"a_{number}.pcap" for number in range(7)))
    source = reader(watch, tmp_path, most=3)
    offsets = [source.initialOffset()]
    while (newer := source.latestOffset(offsets[-1])) != offsets[-1]:
        offsets.append(newer)
    found = [read(source, start, end) for start, end in zip(offsets, offsets[1:], strict=False)]
    assert found == [["a_0.pcap", "a_1.pcap", "a_2.pcap"], ["a_3.pcap", "a_4.pcap", "a_5.pcap"], ["a_6.pcap"]]


def test_reading_what_is_there_stops_although_more_comes(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, *(f"a_{number}.pcap" for number in range(5)))
    source = reader(watch, tmp_path, most=3)
    source.prepareForTriggerAvailableNow()
    put(watch.folder, "a_9.pcap")
    ends = [source.latestOffset({"files": start}) for start in (0, 3, 5)]
    assert ends == [{"files": 3}, {"files": 5}, {"files": 5}]
    assert reader(watch, tmp_path).latestOffset({"files": 5}) == {"files": 6}


def test_spark_that_does_not_tell_the_start_gets_all(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, "a_1.pcap", "a_2.pcap", "a_3.pcap")
    assert reader(watch, tmp_path, most=2).latestOffset() == {"files": 3}


# --- files that change between being taken and being read --------------------------------------------


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


def follow(found: list[Arrival], memory: Remembered, kept: Path) -> tuple[stream.Work, list[dict[str, Any]]]:
    """What new files bring to a recording, and what it tells of its captures by then."""
    following = stream.Following(Options(), 1 << 40, str(kept))
    following.memory = memory  # type: ignore[assignment]
    rows = [Row(**file._asdict() | {"path": os.fsencode(file.path)}) for file in found]
    (row,) = following.handleInputRows((found[0].recording,), iter(rows), None)
    work = pickle.loads(row.work)
    assert isinstance(work, stream.Work)
    return work, stream._recording(Checkpoint(0, None, work.memory)).captures()


@pytest.fixture
def three(watch: Watch) -> list[Path]:
    """Captures in the folder, which have nothing to do with each other."""
    paths = [watch.folder / f"a_{number}.pcapng" for number in range(3)]
    for path, kind in zip(paths, ("s04", "s06", "s08_"), strict=True):
        path.write_bytes(next(found for found in captures() if found.name.startswith(kind)).read_bytes())
        os.utime(path, (NOW - 99, NOW - 99))
    return paths


def read_in(work: stream.Work) -> list[str]:
    """The names of the files that are read for the rows of messages."""
    return [os.path.basename(str(source)) for stretch in work.stretches for source in stretch.sources()]


def test_file_that_was_compressed_since_is_read_there(watch: Watch, three: list[Path], tmp_path: Path) -> None:
    found = watch.look()
    expected, told = follow(found, Remembered(), tmp_path)
    subprocess.run(["gzip", str(three[1])], check=True)
    work, captures = follow(found, Remembered(), tmp_path)
    assert [capture["error"] for capture in captures] == [None, None, None]
    assert [capture["rows"] for capture in captures] == [capture["rows"] for capture in told]
    assert read_in(work) == ["a_0.pcapng", "a_1.pcapng.gz", "a_2.pcapng"]
    assert work.rows == expected.rows > 100


@pytest.mark.parametrize("which", [[0], [1], [2], [0, 1], [0, 1, 2]])
def test_file_that_was_overwritten_is_an_error_and_the_new_one_is_late(
    which: list[int], watch: Watch, three: list[Path], tmp_path: Path
) -> None:
    found = watch.look()
    _, told = follow(found, Remembered(), tmp_path)
    for number in which:
        three[number].write_bytes(three[number].read_bytes()[::-1])
    memory = Remembered()
    work, captures = follow(found, memory, tmp_path)
    there = [number for number in range(3) if number not in which]
    assert read_in(work) == [three[number].name for number in there]
    assert work.captures.paths == tuple(map(str, three)) == tuple(capture["path"] for capture in captures)
    for number, capture in enumerate(captures):
        overwritten = f"{three[number]}: overwritten before it was read"
        assert capture["error"] == (overwritten if number in which else None)
        assert bool(capture["packets"]) == (number in there)
    assert work.rows == sum(told[number]["rows"] for number in there)
    again = watch.look(NOW * 2)
    assert [(Path(file.path), file.late) for file in again] == [(three[number], True) for number in which]
    put(watch.folder, "a_3.pcapng")
    _, captures = follow(watch.look(NOW * 2), memory, tmp_path)
    assert [Path(capture["path"]).name for capture in captures] == [f"a_{number}.pcapng" for number in range(4)]


def test_files_that_were_compressed_or_overwritten_while_they_were_read_may_be_misread(
    watch: Watch, three: list[Path], tmp_path: Path
) -> None:
    work, _ = follow(watch.look(), Remembered(), tmp_path)

    def misread() -> list[str]:
        return [Path(taken.path).name for path, taken in work.read if arrivals.may_be_misread(path, taken)]

    assert misread() == []
    three[0].unlink()
    assert misread() == []  # gone, for all that is known behind its reader
    three[1].write_bytes(three[1].read_bytes()[::-1])
    subprocess.run(["gzip", str(three[2])], check=True)
    assert misread() == ["a_1.pcapng", "a_2.pcapng"]


def test_file_that_grew_before_it_was_read_is_not_told(watch: Watch, tmp_path: Path) -> None:
    """Nor one that was taken but not read yet."""
    names = ["a_0.pcap", "a_1.pcap", os.fsdecode(b"a_2\xff.pcap"), "a_3.pcap"]
    put(watch.folder, *names)
    found = watch.look()
    with Store(tmp_path / "out") as store:
        batches = stream._Batches(store, str(watch.folder), Options(), None)
        batches.ledger = watch.ledger
        place = store.path / "captures" / f"recording={found[0].recording}"
        place.mkdir(parents=True)
        for name in names:
            (watch.folder / name).write_bytes(content() + b"more")
        size = len(content())
        assert batches._grown() == []
        paths = [file.path.replace("\udcff", "\ufffd") for file in found[:3]]
        pq.write_table(pa.table({"path": paths, "bytes": [size + 4, size, size]}), place / "a.parquet")
        assert sorted(batches._grown()) == [file.path for file in found[1:3]]
