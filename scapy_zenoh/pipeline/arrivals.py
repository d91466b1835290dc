"""Files that arrive in a folder, as a stream of Spark: which there are, in which order, and when each is finished.

Rotating captures lie in a folder, or in a folder for each machine inside it. Those of one folder are one recording in
the order of their names, numbers in names counted as numbers. Files whose names differ in numbers only are a *series*.
Its newest may still be written: it waits until there is a newer one, or nobody has it open for writing and it has
not changed for a while. A file that comes before one of its series that was read already is *late*: it is read as a
recording of its own. So is one that has another content by now, as when a ring begins anew.

Files that were taken stand in a ledger, one line each. An offset of the stream is a number of lines, so that a batch
that is done again after a crash has the same files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
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


class Arrival(NamedTuple):
    """A file to be read."""

    recording: str
    ordinal: int  # in the ledger
    path: str
    late: bool
    bytes: int  # of the file when it was taken
    changed: int  # when it was changed last, in ns since 1970
    head: str  # a hash of its first bytes


class Ledger:
    """The files that were taken so far."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def arrivals(self) -> list[Arrival]:
        """All of them. A line that was cut short by a crash has not been taken."""
        if not self.path.exists():
            return []
        lines = self.path.read_text().split("\n")[:-1]
        return [Arrival(**json.loads(line)) for line in lines]

    def take(self, arrivals: Sequence[Arrival]) -> None:
        """Add files."""
        whole = self.path.read_bytes() if self.path.exists() else b""
        with open(self.path, "r+b" if whole else "wb") as file:
            file.truncate(file.seek(whole.rfind(b"\n") + 1))
            file.write("".join(json.dumps(arrival._asdict()) + "\n" for arrival in arrivals).encode())
            file.flush()
            os.fsync(file.fileno())


def new_files(folder: str, settle: float, known: Sequence[Arrival], now: float) -> list[Arrival]:
    """The files in a folder that are finished and not known yet, in their order."""
    taken = {_unpacked(arrival.path): arrival for arrival in known}
    newest_taken = {_series(arrival.path): _order(arrival.path) for arrival in known if not arrival.late}
    paths = _files(folder)
    newest = {_series(path): path for path in paths}
    found: list[Arrival] = []
    for path in paths:
        before = taken.get(_unpacked(path))
        if before is not None and not _is_another(path, before):
            continue
        if (before is not None or path == newest[_series(path)]) and not _is_settled(path, settle, now):
            continue
        late = before is not None or _series(path) in newest_taken and _order(path) < newest_taken[_series(path)]
        ordinal = len(known) + len(found)
        alone = name_of(path, None if before is None else f"{path}\0{ordinal}")
        recording = alone if late else name_of(os.path.dirname(path))
        with suppress(OSError):  # it is gone
            there = os.stat(path)
            found.append(Arrival(recording, ordinal, path, late, there.st_size, there.st_mtime_ns, _head(path)))
    return found


def grown(known: Sequence[Arrival]) -> list[str]:
    """Files to which something was added since they were taken."""
    found = []
    for arrival in known:
        with suppress(OSError):
            if os.path.getsize(arrival.path) > arrival.bytes and not _is_another(arrival.path, arrival):
                found.append(arrival.path)
    return found


def _is_another(path: str, before: Arrival) -> bool:
    """Whether a file has another content than when it was taken, beyond what was added at its end."""
    if path != before.path:  # compressed by now
        return False
    try:
        there = os.stat(path)
        if (there.st_size, there.st_mtime_ns) == (before.bytes, before.changed):
            return False
        return there.st_size < before.bytes or _head(path, before.bytes) != before.head
    except OSError:
        return False


def _head(path: str, most: int = HEAD) -> str:
    """A hash of the first bytes of a file: times of packets are among them."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(min(most, HEAD))).hexdigest()[:16]


def _files(folder: str) -> list[str]:
    """The files in a folder, in order; not those of which there is a compressed copy: they may soon be gone."""
    try:
        found = [path for path in find([folder]) if os.path.isfile(path)]
    except PipelineError:  # empty, so far
        return []
    packed = {_unpacked(path) for path in found if _unpacked(path) != path}
    return sorted(
        (path for path in found if path not in packed), key=lambda path: (os.path.dirname(path), _order(path))
    )


def _unpacked(path: str) -> str:
    """The name that a compressed file had before."""
    return re.sub(r"\.(gz|zst)$", "", path)


def _order(path: str) -> tuple[Any, str]:
    return order(os.path.basename(path))


def _series(path: str) -> tuple[str, str]:
    """What files have in common that follow each other: folder and name but for numbers, yet eth0 is not eth1."""
    folder, name = os.path.split(_unpacked(path))
    name = name.replace(".pcapng", ".pcap")
    alone = re.sub(r"(?<![A-Za-z0-9])[0-9]+(T[0-9]+)?", "", name)
    return folder, alone if alone != name else re.sub(r"[0-9]+", "", name)


def _is_settled(path: str, settle: float, now: float) -> bool:
    try:
        return now - os.path.getmtime(path) >= settle and not _is_being_written(path)
    except OSError:
        return False


def _is_being_written(path: str) -> bool:
    """Whether a process has a file open for writing, as far as this process may see: a quiet network writes little."""
    there = os.stat(path)
    with suppress(OSError):  # not Linux
        for process in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):  # it has ended, or is somebody else's
                for number in os.listdir(f"/proc/{process}/fd"):
                    with suppress(OSError):
                        if not os.path.samestat(os.stat(f"/proc/{process}/fd/{number}"), there):
                            continue
                        told = Path(f"/proc/{process}/fdinfo/{number}").read_text()
                        flags = re.search(r"^flags:\s*([0-7]+)", told, re.MULTILINE)
                        if flags and int(flags[1], 8) & os.O_ACCMODE != os.O_RDONLY:
                            return True
    return False


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
        return "recording string, ordinal long, path binary, late boolean"  # names of files are bytes

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
        known = self.ledger.arrivals()
        found = new_files(self.folder, self.settle, known, time.time())
        if found:
            self.ledger.take(found)
        return len(known) + len(found)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        arrivals = self.ledger.arrivals()[start["files"] : end["files"]]
        return [Taken(arrivals)] if arrivals else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Taken)
        return iter([(a.recording, a.ordinal, os.fsencode(a.path), a.late) for a in partition.arrivals])
