"""Files that arrive in a folder, as a stream of Spark: which there are, in which order, and when each is finished.

Rotating captures lie in a folder, or in a folder for each machine inside it. Those of one folder are one recording in
the order of their names, numbers in names counted as numbers. Files whose names differ only in the counter or the time
that a rotation adds are a *series*. Its newest may still be written: it waits until there is a newer one, or nobody
has it open for writing and it has not changed for a while (it is *settled*). One that somebody is seen writing waits
too, and so do all behind it. Compressed files come from elsewhere, so each waits until it is settled.

A file is *late* if one behind it in its series was taken before it, or if other content under its name was. What is
remembered by then belongs behind it, so it is read alone, as a recording of its own, once it is settled.

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
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from scapy_zenoh.pipeline.captures import find, name_of, order
from scapy_zenoh.pipeline.errors import PipelineError

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1, which then asks once

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""


MOST_FILES = 256  # of one batch
HEAD = 4096  # bytes by which a file is known again
GZIP, ZSTD = ".gz", ".zst"


class Arrival(NamedTuple):
    """A file to be read."""

    recording: str
    ordinal: int  # in the ledger
    path: str
    late: bool
    bytes: int  # of the file when it was taken
    changed: int  # when it was changed last, in ns since 1970
    head: str  # a hash of its first bytes


class Name(NamedTuple):
    """What the name of a file says."""

    file: str  # its path before it was compressed
    series: tuple[str, str, str]  # what it has in common with those that follow it
    place: tuple[Any, str]  # among them


class Ledger:
    """The files that were taken so far. Lines are only added to it, so each is read once."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.named: dict[str, Arrival] = {}  # the last one of each name
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
                self.named[name.file] = arrival
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
    for path in paths:
        file, series, place = _name(path)
        before = ledger.named.get(file)
        with suppress(OSError):  # it is gone
            there = os.stat(path)
            if before is not None and not _was_replaced(path, there, before):
                continue
            late = before is not None or place < ledger.reached.get(series, place)
            if not late and series in held:
                continue
            waits = late or path != file or path == newest[series]
            if waits and now - there.st_mtime < settle or (there.st_dev, there.st_ino) in written():
                if not late:
                    held.add(series)
                continue
            ordinal, head = known + len(found), _head(path, there.st_size)
            alone = name_of(path, None if before is None else f"{path}\0{ordinal}")
            recording = alone if late else name_of(os.path.dirname(path))
            found.append(Arrival(recording, ordinal, path, late, there.st_size, there.st_mtime_ns, head))
    return found


def grown(known: Sequence[Arrival]) -> dict[Arrival, int]:
    """Files to which something was added since they were taken, and their size by now."""
    found = {}
    for arrival in known:
        with suppress(OSError):
            size = os.path.getsize(arrival.path)
            if size > arrival.bytes and not is_another(arrival.path, arrival.bytes, arrival.head):
                found[arrival] = size
    return found


def is_another(path: str, size: int, head: str) -> bool:
    """Whether a file is not the one that had this size and head, or that one with more at its end."""
    try:
        return os.path.getsize(path) < size or _head(path, size) != head
    except OSError:  # there is none
        return False


def found_at(path: str) -> str:
    """Where a file is that was taken: it may have been compressed since."""
    packed = [path + GZIP, path + ZSTD]
    return path if os.path.exists(path) else next(filter(os.path.exists, packed), path)


def _was_replaced(path: str, there: os.stat_result, before: Arrival) -> bool:
    if path != before.path:  # compressed since
        return False
    untouched = (there.st_size, there.st_mtime_ns) == (before.bytes, before.changed)
    return not untouched and is_another(path, before.bytes, before.head)


def _head(path: str, size: int) -> str:
    """A hash of the first bytes of a file that had so many: times of packets are among them."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(min(size, HEAD))).hexdigest()[:16]


def _files(folder: str) -> list[str]:
    """The files in a folder, in order. Of one and its compressed copy the former, which is whole."""
    try:
        found = sorted(path for path in find([folder]) if os.path.isfile(path))
    except PipelineError:  # empty, so far
        return []
    once = {_name(path).file: path for path in reversed(found)}
    return sorted(once.values(), key=lambda path: (os.path.dirname(path), _name(path).place))


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
