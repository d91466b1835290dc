"""Files that arrive in a folder, as a stream of Spark: which there are, in which order, and when each is finished.

Rotating captures lie in a folder, or in a folder for each machine inside it. Those of one folder are one recording in
the order of their names, numbers in names counted as numbers. The newest may still be written: it waits until there
is a newer one, or nobody has it open for writing and it has not changed for a while. A file that comes before one that
was read already is *late*: it is read as a recording of its own.

Files that were taken stand in a ledger, one line each. An offset of the stream is a number of lines, so that a batch
that is done again after a crash has the same files.
"""

from __future__ import annotations

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

from scapy_zenoh.pipeline.captures import find, name_of
from scapy_zenoh.pipeline.errors import PipelineError

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1, which then asks once

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""


MOST_FILES = 256  # of one batch


class Arrival(NamedTuple):
    """A file to be read."""

    recording: str
    ordinal: int  # in the ledger
    path: str
    late: bool


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
    taken = {_unpacked(arrival.path) for arrival in known}
    newest_taken: dict[str, Any] = {}
    for arrival in known:
        if not arrival.late:
            newest_taken[os.path.dirname(arrival.path)] = _order(arrival.path)
    of_folder: dict[str, list[str]] = {}
    for path in _files(folder):
        of_folder.setdefault(os.path.dirname(path), []).append(path)
    found: list[Arrival] = []
    for place, paths in sorted(of_folder.items()):
        paths.sort(key=_order)
        newest = {_series(path): path for path in paths}
        for path in paths:
            if _unpacked(path) in taken or path == newest[_series(path)] and not _is_settled(path, settle, now):
                continue
            late = place in newest_taken and _order(path) < newest_taken[place]
            found.append(Arrival(name_of(path if late else place), len(known) + len(found), path, late))
    return found


def _files(folder: str) -> list[str]:
    """The files in a folder; not those of which there is a compressed copy: they may soon be gone."""
    try:
        found = [path for path in find([folder]) if os.path.isfile(path)]
    except PipelineError:  # empty, so far
        return []
    packed = {_unpacked(path) for path in found if _unpacked(path) != path}
    return [path for path in found if path not in packed]


def _unpacked(path: str) -> str:
    """The name that a compressed file had before."""
    return re.sub(r"\.(gz|zst)$", "", path)


def _order(path: str) -> list[Any]:
    """Sorts names with numbers: file9 before file10.

    Names of dumpcap (``eth0_00012_20260131235959.pcapng``) sort by the time in them: its number begins anew when it is
    started again.
    """
    name = re.sub(r"_([0-9]{5,})_([0-9]{14})(?![0-9])", r"_\2_\1", os.path.basename(path))
    return [int(part) if odd % 2 else part for odd, part in enumerate(re.split(r"([0-9]+)", name))]


def _series(path: str) -> str:
    """What the names of files have in common that follow each other: all but their numbers, yet eth0 is not eth1."""
    name = os.path.basename(path)
    alone = re.sub(r"(?<![A-Za-z0-9])[0-9]+(T[0-9]+)?", "0", name)
    return alone if alone != name else re.sub(r"[0-9]+", "0", name)


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
