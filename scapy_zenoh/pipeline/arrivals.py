"""Files that arrive in a folder, as a stream of Spark: which there are, in which order, and when each is finished.

Rotating captures lie in a folder, or in a folder for each machine inside it. Those of one folder are one recording in
the order of their names, numbers in names counted as numbers. Files whose names differ only in the counter or the time
that a rotation adds are a *series*. Its newest may still be written: it waits until there is a newer one, or nobody
has it open for writing and it has not changed for a while (it is *settled*). One that somebody is seen writing waits
too, and so do all behind it. Compressed files come from elsewhere, so each waits until it is settled.

A file is *late* if one behind it in its series was taken before it, or if other content under its name was. What is
remembered by then belongs behind it, so it is read alone, as a recording of its own, once it is settled. Content is
known again by its first bytes, unpacked; by those of a file without packets nothing is.

Files that were taken stand in a ledger, one line each. An offset of the stream is a number of lines, so that a batch
that is done again after a crash has the same files. Until a file is read it may be compressed, then that one is read,
or overwritten, then it is gone.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from scapy_zenoh.capture import CaptureError, CaptureReader, unpacked
from scapy_zenoh.pipeline.captures import find, name_of, order
from scapy_zenoh.pipeline.errors import PipelineError

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1, which then asks once

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""


MOST_FILES = 256  # of one batch
HEAD = 4096  # bytes by which the content of a file is known again
MOST_PACKED = 1 << 16  # bytes of a compressed file that are read for them
GZIP, ZSTD = ".gz", ".zst"


class Arrival(NamedTuple):
    """A file to be read."""

    recording: str
    ordinal: int  # in the ledger
    path: str
    late: bool
    bytes: int  # of the file when it was taken
    changed: int  # when it was changed last, in ns since 1970
    head: str  # of its content: how many of its first bytes, and a hash of them


class Name(NamedTuple):
    """What the name of a file says."""

    file: str  # its path before it was compressed
    series: tuple[str, str, str]  # what it has in common with those that follow it
    place: tuple[Any, str]  # among them


class Ledger:
    """The files that were taken so far. Lines are only added to it, so each is read once."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.named: dict[str, list[Arrival]] = {}  # of each name, a ring may use it again
        self.seen: set[tuple[str, int, int]] = set()  # files as they were when nothing was new in them
        self.reached: dict[tuple[str, str, str], tuple[Any, str]] = {}  # the last place in each series
        self._arrivals: list[Arrival] = []
        self._end = 0  # of the lines that were read

    def arrivals(self) -> Sequence[Arrival]:
        """All of them. A line that was cut short by a crash has not been taken."""
        with suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(self._end)
            for line in file.read().split(b"\n")[:-1]:
                arrival = Arrival(**json.loads(line))
                name = _name(arrival.path)
                self.named.setdefault(name.file, []).append(arrival)
                if not arrival.late:
                    self.reached[name.series] = name.place
                self._arrivals.append(arrival)
                self._end += len(line) + 1
        return self._arrivals

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Add files."""
        self.arrivals()
        with open(self.path, "ab") as file:
            file.truncate(self._end)
            file.write("".join(json.dumps(arrival._asdict()) + "\n" for arrival in arrivals).encode())
            file.flush()
            os.fsync(file.fileno())


class Overwritten:
    """A capture that another file has the name of by now: whoever reads it, as a file, gets an error."""

    def __init__(self, path: str) -> None:
        self.name = path

    def read(self, _: int = -1) -> bytes:
        raise OSError(errno.ESTALE, "overwritten before it was read")


def new_files(folder: str, settle: float, ledger: Ledger, now: float) -> list[Arrival]:
    """The files in a folder that are finished and not taken yet, in their order."""
    known, paths = len(ledger.arrivals()), _files(folder)
    newest = {_name(path).series: path for path in paths}
    held = set()  # series with a file that is not finished: those behind it would make it late
    written = cache(_being_written)  # looked for once, and only if it matters
    found: list[Arrival] = []
    named: dict[str, list[Arrival]] = {}  # those of these
    for path in paths:
        file, series, place = _name(path)
        before = [*ledger.named.get(file, []), *named.get(file, [])]
        try:
            there = os.stat(path)
            seen = path, there.st_size, there.st_mtime_ns
            if seen in ledger.seen:
                continue
            if before and not _was_replaced(path, there, before):
                ledger.seen.add(seen)
                continue
            late = bool(before) or place < ledger.reached.get(series, place)
            if not late and series in held:
                continue
            waits = late or path != file or path == newest[series]
            if waits and now - there.st_mtime < settle or (there.st_dev, there.st_ino) in written():
                if not late:
                    held.add(series)
                continue
            head = _head(_start(path, there.st_size))
        except OSError:  # it is gone, or compressed by now: then it is found at the next look
            if not before:
                held.add(series)
            continue
        ordinal = known + len(found)
        alone = name_of(path, f"{path}\0{ordinal}" if before else None)
        recording = alone if late else name_of(os.path.dirname(path))
        found.append(Arrival(recording, ordinal, path, late, there.st_size, there.st_mtime_ns, head))
        named.setdefault(file, []).append(found[-1])
    return found


def grown(known: Sequence[Arrival]) -> dict[Arrival, int]:
    """Files to which something was added since they were taken, and their size by now."""
    found = {}
    for arrival in known:
        with suppress(OSError):
            size = os.path.getsize(arrival.path)
            if size > arrival.bytes and not is_another(arrival.path, arrival):
                found[arrival] = size
    return found


def is_another(path: str, taken: Arrival) -> bool:
    """Whether a file is not the one that was taken, or that one with more at its end, or compressed."""
    try:
        there = os.stat(path)
        start = _start_at(path, there.st_size, there.st_mtime_ns)
    except OSError:  # there is none
        return False
    if path == taken.path and there.st_size < taken.bytes:
        return True
    size = int(taken.head.partition(":")[0])
    return _head(start[:size]) != taken.head or len(start) > size and not _has_packets(start[:size])


def may_be_misread(path: str, taken: Arrival) -> bool:
    """Whether somebody who went through the file under this path until now may have missed it, or seen another."""
    now = found_at(taken.path)
    return now != path and os.path.exists(now) or is_another(path, taken)


def found_at(path: str) -> str:
    """Where a file is that was taken: it may have been compressed since."""
    packed = [path + GZIP, path + ZSTD]
    return path if os.path.exists(path) else next(filter(os.path.exists, packed), path)


def _was_replaced(path: str, there: os.stat_result, before: Sequence[Arrival]) -> bool:
    """Whether the content of a file is none of those that were taken under its name."""
    now = path, there.st_size, there.st_mtime_ns
    if any(now == (taken.path, taken.bytes, taken.changed) for taken in reversed(before)):
        return False
    return all(is_another(path, taken) for taken in reversed(before))


def _head(start: bytes) -> str:
    """How many bytes these are, and a hash of them: times of packets are among them."""
    return f"{len(start)}:{hashlib.sha256(start).hexdigest()[:16]}"


def _start(path: str, size: int) -> bytes:
    """The first bytes of the content of a file, of which so many are there."""
    start = b""
    with open(path, "rb") as file, suppress(CaptureError):  # what is damaged may still be told apart
        for piece in unpacked(iter([file.read(min(size, MOST_PACKED))]), path):
            start += piece
            if len(start) >= HEAD:
                break
    return start[:HEAD]


@lru_cache(1 << 12)  # asked for at every look
def _start_at(path: str, size: int, changed: int) -> bytes:
    return _start(path, size)


def _has_packets(start: bytes) -> bool:
    with suppress(CaptureError):
        return any(True for _ in CaptureReader([BytesIO(start)]))
    return False


def _files(folder: str) -> list[str]:
    """The files in a folder, in order. Of one and its compressed copy the former, which is whole."""
    try:
        found = sorted(path for path in find([folder], real=False) if os.path.isfile(path))
    except PipelineError:  # empty, so far
        return []
    kept: dict[str, list[str]] = {}
    for path in found:  # the compressed ones come later
        others = kept.setdefault(_name(path).file, [])
        if not any(_are_alike(path, other) for other in others):
            others.append(path)
    return sorted(chain(*kept.values()), key=lambda path: (os.path.dirname(path), _name(path).place, _changed(path)))


def _are_alike(one: str, other: str) -> bool:
    """Whether the content of two files begins alike, as far as it is there."""
    starts = []
    for path in (one, other):
        try:
            there = os.stat(path)
            starts.append(_start_at(path, there.st_size, there.st_mtime_ns))
        except OSError:  # it is gone
            return True
    size = min(map(len, starts))
    return starts[0][:size] == starts[1][:size]


def _changed(path: str) -> int:
    """When a file was changed last, of those that are there."""
    with suppress(OSError):
        return os.stat(path).st_mtime_ns
    return 0


@lru_cache(1 << 17)  # every file of the folder is asked about every time
def _name(path: str) -> Name:
    file = path.removesuffix(GZIP).removesuffix(ZSTD)
    folder, name = os.path.split(file)
    ending = re.search(r"(\.(pcap|pcapng|cap)[0-9]*|\.[A-Za-z]+)?\Z", name)
    assert ending is not None
    kind = ending[0].rstrip("0123456789").replace(".pcapng", ".pcap")  # tcpdump counts behind it
    return Name(file, (folder, _ROTATION.sub("", name[: ending.start()]), kind), order(name))


#: What a rotation adds to a name: NAME_00001_20260101120000, NAME-2026-01-01_12:00:00, NAME.0001; eth0 is a name.
_TIME = r"(?:19|20)[0-9]{2}(?:[-_.:T ]?[0-9]{2}){2,5}(?:Z|[-+][0-9]{2}:?[0-9]{2})?"
_ROTATION = re.compile(
    rf"(?:(?<![^\W_])[0-9]{{5,}}_[0-9]{{14}}|(?<![0-9]){_TIME}(?:[-_. ][0-9]+)?|(?<![^\W_])[0-9]+)\Z"
)


def _being_written() -> set[tuple[int, int]]:
    """Files that processes have open for writing, as far as this one may see: a quiet network writes little."""
    found = set()
    with suppress(OSError):  # not Linux
        for process in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):  # it has ended, or is somebody else's
                for entry in os.scandir(f"/proc/{process}/fd"):
                    with suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_mode & stat.S_IWUSR:  # what it was opened for
                            there = entry.stat()
                            found.add((there.st_dev, there.st_ino))
    return found


# --- as Spark sees it ---------------------------------------------------------------------------


def register(spark: SparkSession) -> None:
    """Let Spark know the format ``zenoh_arrivals``."""
    spark.dataSource.register(ArrivalSource)


class ArrivalSource(DataSource):
    """Files as they arrive in a folder. Options: folder, ledger, settle, most (files of one batch)."""

    @classmethod
    def name(cls) -> str:
        return "zenoh_arrivals"

    def schema(self) -> str:
        return "recording string, ordinal long, path binary, late boolean, bytes long, head string"  # names are bytes

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        most = int(self.options.get("most", MOST_FILES))
        return ArrivalReader(self.options["folder"], self.options["ledger"], float(self.options["settle"]), most)


class Taken(InputPartition):
    """Files of one batch."""

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self.arrivals = arrivals


class ArrivalReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is how many lines of the ledger were given out."""

    def __init__(self, folder: str, ledger: str, settle: float, most: int = MOST_FILES) -> None:
        self.folder, self.settle, self.ledger, self.most = folder, settle, Ledger(ledger), most
        self._last: int | None = None  # with the trigger that reads what is there and stops

    def initialOffset(self) -> dict[str, int]:
        return {"files": 0}

    def prepareForTriggerAvailableNow(self) -> None:
        self._last = self._look()

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:
        last = self._look() if self._last is None else self._last
        if start is None:  # Spark 4.1 does not tell
            return {"files": last}
        return {"files": max(start["files"], min(last, start["files"] + self.most))}

    def _look(self) -> int:
        """Take what is new, and say how many were taken so far."""
        found = new_files(self.folder, self.settle, self.ledger, time.time())
        if found:
            self.ledger.take(found)
        return len(self.ledger.arrivals())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        arrivals = self.ledger.arrivals()[start["files"] : end["files"]]
        return [Taken(arrivals)] if arrivals else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Taken)
        return (
            (file.recording, file.ordinal, os.fsencode(file.path), file.late, file.bytes, file.head)
            for file in partition.arrivals
        )
