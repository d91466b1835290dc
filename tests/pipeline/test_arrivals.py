"""Which files of a folder are read, when, and in which order; nothing here starts Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from scapy_zenoh.pipeline.arrivals import Arrival, ArrivalReader, Ledger, Taken, grown, new_files  # noqa: E402
from scapy_zenoh.pipeline.captures import name_of  # noqa: E402

NOW = 1_700_000_000.0
SETTLE = 10.0


def put(folder: Path, *names: str, age: float = 1000.0) -> None:
    """Files that were changed last so many seconds ago."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (NOW - age, NOW - age))


class Watch:
    """A folder that is looked at again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: list[Arrival] = []

    def look(self, now: float = NOW) -> list[Arrival]:
        found = new_files(str(self.folder), SETTLE, self.known, now)
        self.known += found
        return found

    def names(self, now: float = NOW) -> list[str]:
        return [os.path.relpath(arrival.path, self.folder) for arrival in self.look(now)]


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    (tmp_path / "in").mkdir()
    return Watch(tmp_path / "in")


def test_empty_and_missing_folders_have_no_files_yet(watch: Watch, tmp_path: Path) -> None:
    assert watch.look() == []
    assert new_files(str(tmp_path / "nowhere"), SETTLE, [], NOW) == []


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
    path = watch.folder / "a.pcap"
    code = "import sys; file = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"
    for mode, expected in (("r+b", []), ("rb", ["a.pcap"])):
        arguments = [sys.executable, "-c", code, str(path), mode]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            assert watch.names() == expected, mode
            other.communicate()


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
    put(watch.folder, "a1.pcap", "a3.pcap")
    first = watch.look()
    put(watch.folder, "a2.pcap", "a4.pcap", "a0.pcap")
    later = watch.look()
    assert [(Path(a.path).name, a.late) for a in first + later] == [
        ("a1.pcap", False), ("a3.pcap", False), ("a0.pcap", True), ("a2.pcap", True), ("a4.pcap", False),
    ]  # fmt: skip
    folder = name_of(str(watch.folder))
    own = [name_of(str(watch.folder / name)) for name in ("a0.pcap", "a2.pcap")]
    assert [a.recording for a in first + later] == [folder, folder, *own, folder]
    assert [a.ordinal for a in first + later] == [0, 1, 2, 3, 4]
    assert len({folder, *own}) == 3


def test_late_is_what_comes_late_in_its_own_folder(watch: Watch) -> None:
    put(watch.folder, "b/a5.pcap", "c/a5.pcap", "a5.pcap")
    put(watch.folder, ".hidden/a.pcap", "_ours/a.pcap", ".a.pcap", "_a.pcap")
    assert watch.names() == ["a5.pcap", "b/a5.pcap", "c/a5.pcap"]
    assert [a.recording for a in watch.known] == [name_of(str(watch.folder / place)) for place in ("", "b", "c")]
    put(watch.folder, "b/a6.pcap", "c/a4.pcap", "d/a1.pcap")
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
    put(watch.folder, "a0.pcap", "a1.pcap")
    first = watch.look()
    (watch.folder / "a0.pcap").write_bytes(b"another day")
    os.utime(watch.folder / "a0.pcap", (NOW - 1, NOW - 1))
    assert watch.look() == []  # it may still be written
    (again,) = watch.look(NOW + 10)
    assert (Path(again.path).name, again.late, again.ordinal) == ("a0.pcap", True, 2)
    assert again.recording not in {a.recording for a in first}
    assert watch.look(NOW + 20) == []
    (watch.folder / "a0.pcap").write_bytes(b"the day after")
    (third,) = watch.look(NOW * 2)
    assert third.recording not in {a.recording for a in watch.known[:-1]}


def test_file_that_goes_on_is_told_and_not_read_again(watch: Watch) -> None:
    put(watch.folder, "a.pcap", "b.pcap")
    assert watch.names() == ["a.pcap", "b.pcap"]
    assert grown(watch.known) == []
    with (watch.folder / "b.pcap").open("ab") as file:
        file.write(b"more")
    (watch.folder / "a.pcap").unlink()
    assert watch.look(NOW * 2) == []
    assert grown(watch.known) == [str(watch.folder / "b.pcap")]


def test_compressed_copy_is_the_same_file(watch: Watch) -> None:
    put(watch.folder, "a1.pcap", "a2.pcap")
    assert watch.names() == ["a1.pcap", "a2.pcap"]
    (watch.folder / "a1.pcap").unlink()
    put(watch.folder, "a1.pcap.gz", "a3.pcap", "a3.pcap.zst", "a4.pcap")
    assert watch.names() == ["a3.pcap.zst", "a4.pcap"]


NAMES = [
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
    os.mkfifo(watch.folder / "a1.pcap")
    (watch.folder / "a2.pcap").symlink_to(watch.folder / "nowhere")
    put(watch.folder, "a3.pcap")
    assert watch.names() == ["a3.pcap"]


# --- the ledger, and what Spark asks ----------------------------------------------------------------


def test_line_of_the_ledger_that_was_cut_short_has_not_been_taken(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.arrivals() == []
    one, two, three = (Arrival("r", number, f"/in/{number}", False, 1, 2, "00") for number in range(3))
    ledger.take([one])
    whole = ledger.path.read_bytes()
    line = (json.dumps(two._asdict()) + "\n").encode()
    for end in range(len(line)):
        ledger.path.write_bytes(whole + line[:end])
        assert ledger.arrivals() == [one]
        ledger.take([two, three])
        assert ledger.arrivals() == [one, two, three]


def reader(watch: Watch, tmp_path: Path, most: int = 256) -> ArrivalReader:
    return ArrivalReader(str(watch.folder), str(tmp_path / "ledger"), SETTLE, most)


def read(source: ArrivalReader, start: dict[str, int], end: dict[str, int]) -> list[str]:
    """The names of the files between two offsets."""
    (part,) = source.partitions(start, end)
    assert isinstance(part, Taken)
    return [os.path.basename(path).decode() for _, _, path, _ in source.read(part)]


def test_files_between_two_offsets_stay_the_same(watch: Watch, tmp_path: Path) -> None:
    """A batch that is done again has its files, whatever came since, also from a new process."""
    put(watch.folder, "a1.pcap", "a2.pcap")
    source = reader(watch, tmp_path)
    nothing = source.initialOffset()
    first = source.latestOffset(nothing)
    assert source.latestOffset(first) == first
    assert source.partitions(first, first) == []
    put(watch.folder, "a0.pcap", "a3.pcap")
    again = reader(watch, tmp_path)
    second = again.latestOffset(first)
    assert read(again, nothing, first) == ["a1.pcap", "a2.pcap"]
    assert read(again, first, second) == ["a0.pcap", "a3.pcap"]
    (watch.folder / "a1.pcap").unlink()
    assert read(again, nothing, first) == ["a1.pcap", "a2.pcap"]


def test_many_files_are_several_batches(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, *(f"a{number}.pcap" for number in range(7)))
    source = reader(watch, tmp_path, most=3)
    offsets = [source.initialOffset()]
    while (newer := source.latestOffset(offsets[-1])) != offsets[-1]:
        offsets.append(newer)
    found = [read(source, start, end) for start, end in zip(offsets, offsets[1:], strict=False)]
    assert found == [["a0.pcap", "a1.pcap", "a2.pcap"], ["a3.pcap", "a4.pcap", "a5.pcap"], ["a6.pcap"]]


def test_reading_what_is_there_stops_although_more_comes(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, *(f"a{number}.pcap" for number in range(5)))
    source = reader(watch, tmp_path, most=3)
    source.prepareForTriggerAvailableNow()
    put(watch.folder, "a9.pcap")
    ends = [source.latestOffset({"files": start}) for start in (0, 3, 5)]
    assert ends == [{"files": 3}, {"files": 5}, {"files": 5}]
    assert reader(watch, tmp_path).latestOffset({"files": 5}) == {"files": 6}


def test_spark_that_does_not_tell_the_start_gets_all(watch: Watch, tmp_path: Path) -> None:
    put(watch.folder, "a1.pcap", "a2.pcap", "a3.pcap")
    assert reader(watch, tmp_path, most=2).latestOffset() == {"files": 3}
