"""A folder of tables: who may write it, and how what a job made takes its place in it, all or nothing.

Tasks write Parquet files to a place of their own inside the folder, under names that no other attempt uses. The
driver decides which of them count: a commit first writes down what goes and what comes (the *journal*), then does it.
Whoever opens the folder after a crash does what a journal says to its end, and throws away what no journal names.
Old files go before new ones come, so a reader that looks in between may miss rows but sees none twice.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow.parquet as pq

from scapy_zenoh.pipeline.captures import local
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.primitives import as_utf8
from scapy_zenoh.schema.tables import OF_MESSAGES, TABLES

MARK, LOCK, JOURNAL, STAGING = "_scapy_zenoh.json", "_lock", "_journal", "_staging"
FORMAT = 1

#: The note that the commits of a stream leave, which has more to remember than the tables say.
STREAM = "stream"


@dataclass(frozen=True)
class File:
    """A file of a table, where it will be: a path inside the folder."""

    table: str
    recording: str
    staged: str  # where it is until then
    name: str
    date: str | None = None  # of tables of messages

    @property
    def place(self) -> str:
        """Where it belongs."""
        return place_of(self.table, self.recording, self.name, self.date)


def place_of(table: str, recording: str, name: str, date: str | None = None) -> str:
    """Where a file of a table belongs."""
    day = f"date={date}/" if date is not None else ""
    return f"{table}/{day}recording={recording}/{name}"


class Store:
    """An output folder that is ours: ``with Store(path) as store:`` nobody else writes it meanwhile."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(local(str(path), "tables")).absolute()
        self._lock: int | None = None

    def __enter__(self) -> Store:
        self.check()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(self.path / MARK, {"format": FORMAT, "tables": list(TABLES)})
            for table in TABLES:
                (self.path / table).mkdir(exist_ok=True)
            self._recover()
        except BaseException as error:
            self._unlock()
            if isinstance(error, BlockingIOError):
                raise PipelineError(f"{self.path}: another process is writing these tables") from None
            if isinstance(error, OSError):
                raise PipelineError(f"{self.path}: {error.strerror or error}") from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._discard(self.path / STAGING)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def is_there(self) -> bool:
        """Whether it is a folder of tables already."""
        return (self.path / MARK).is_file()

    def check(self) -> None:
        """Complain about a folder that is not ours to write; nothing is written."""
        mark = self.path / MARK
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise PipelineError(f"{self.path}: not a folder")
        try:
            strange = [entry for entry in os.listdir(self.path) if entry not in (LOCK, _new(mark).name)]
            known = json.loads(mark.read_text()) if mark.exists() else None
        except (OSError, ValueError) as error:
            raise PipelineError(f"{mark}: {error}") from None
        if known is None and strange:
            raise PipelineError(f"{self.path}: the folder has other things in it ({strange[0]}); name a new one")
        if known is not None and known.get("format") != FORMAT:
            raise PipelineError(f"{self.path}: the tables are of format {known.get('format')}, not {FORMAT}")

    # -- one job --

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A place for the files of a job, until they are committed or given up."""
        place = self.path / STAGING / uuid.uuid4().hex[:12]
        place.mkdir(parents=True)
        try:
            yield place
        finally:
            self._discard(place)

    def _discard(self, staged: Path) -> None:
        """Throw staged files away, unless a commit did not come to its end: it needs them."""
        if not self._journals():
            shutil.rmtree(staged, ignore_errors=True)

    def _journals(self) -> list[Path]:
        return sorted((self.path / JOURNAL).glob("*.json"))

    def commit(self, moves: Sequence[tuple[str, str]], gone: Sequence[str], note: dict[str, Any] | None = None) -> None:
        """Let files take their places (staged path, path inside the folder), and those in ``gone`` go.

        ``note`` is kept under its name ``note["name"]``, with the commit, and replaced by the next one of that name.
        """
        inside = [(str(Path(staged).relative_to(self.path)), place) for staged, place in moves]
        journal = self.path / JOURNAL / f"{uuid.uuid4().hex}.json"
        journal.parent.mkdir(exist_ok=True)
        _write(journal, {"gone": list(gone), "moves": inside, "note": note})
        self._carry_out(journal)

    def files_of(self, recordings: Sequence[str], tables: Sequence[str] = tuple(TABLES)) -> list[str]:
        """The files of some recordings, as paths inside the folder."""
        wanted = {f"recording={recording}" for recording in recordings}
        found = []
        for table in tables:
            days = sorted((self.path / table).glob("date=*")) if table in OF_MESSAGES else [self.path / table]
            for day in days:
                for name in sorted(wanted.intersection(os.listdir(day))):
                    found += [str(path.relative_to(self.path)) for path in sorted((day / name).glob("*.parquet"))]
        return found

    def recordings_of(self, paths: Sequence[str]) -> list[str]:
        """The recordings that have some of these captures, of which names that are not UTF-8 cannot be told apart."""
        wanted = {path for path in paths if as_utf8(path) == path}
        found = []
        for folder in sorted((self.path / "captures").glob("recording=*")):
            files = (pq.ParquetFile(file).read(["path"])["path"] for file in folder.glob("*.parquet"))
            if any(wanted.intersection(column.to_pylist()) for column in files):
                found.append(folder.name.partition("=")[2])
        return found

    def note(self, name: str) -> dict[str, Any] | None:
        """What the newest commit with a note of this name noted."""
        path = self.path / f"_{name}.json"
        found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
        return found

    # -- carrying out --

    def repair(self) -> None:
        """Bring a commit that was interrupted to its end, for readers; unless somebody is at it."""
        if self._journals():
            with suppress(PipelineError), self:
                pass

    def _recover(self) -> None:
        for journal in self._journals():
            self._carry_out(journal)
        shutil.rmtree(self.path / JOURNAL, ignore_errors=True)
        shutil.rmtree(self.path / STAGING, ignore_errors=True)

    def _carry_out(self, journal: Path) -> None:
        """Do what a journal says; what is done already is passed over."""
        planned = json.loads(journal.read_text())
        for place in planned["gone"]:
            (self.path / place).unlink(missing_ok=True)
        for staged, place in planned["moves"]:
            target = self.path / place
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(self.path / staged, target)
            except FileNotFoundError:
                if not target.exists():
                    raise PipelineError(f"{self.path / staged}: gone before it was committed") from None
        for place in planned["gone"]:
            _remove_empty((self.path / place).parent, self.path)
        if planned["note"]:
            _write(self.path / f"_{planned['note']['name']}.json", planned["note"])
        journal.unlink()


def _remove_empty(folder: Path, top: Path) -> None:
    while folder.parent != top:  # the folders of tables stay
        try:
            folder.rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise
            if error.errno != errno.ENOENT:
                return
        folder = folder.parent


def _write(path: Path, value: Any) -> None:
    """Write a small file so that it is there with all its content or not at all."""
    with open(_new(path), "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(_new(path), path)


def _new(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")
