"""Which captures there are: files, folders and globs, and what of them is one recording."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from scapy_zenoh.pipeline.errors import PipelineError

#: One place, or several.
Places = str | Path | Sequence[str | Path]

_ELSEWHERE = re.compile(r"(?!file:)([A-Za-z][A-Za-z0-9+.-]+://|(hdfs|s3|s3a|dbfs|abfss?|gs|viewfs|wasbs?):/)")


@dataclass(frozen=True)
class Captures:
    """Files that are one recording in their order, and the name of that recording."""

    name: str
    paths: tuple[str, ...]
    late: bool = False  # it came after newer ones of its series, or under a name that was read before

    @cached_property
    def bytes(self) -> int:
        """Size of the files when it was first asked for; one that is gone has none."""
        return sum(os.path.getsize(path) for path in self.paths if os.path.isfile(path))


def find(places: Places, apart: Path | None = None, real: bool = True) -> list[str]:
    """The files that places name: a file itself, all files in a folder, all that a glob matches; each once.

    Links to files stand for these (``real``), or for themselves. Those to folders are passed over.

    As Spark does, it passes over files and folders whose name begins with a dot or an underscore. Those of a folder
    or glob come in the order of their names (``order``). ``apart`` is a folder that must not be among them, nor they
    in it.
    """
    found: dict[str, None] = {}
    for place in [places] if isinstance(places, (str, Path)) else places:
        files = []
        for match in _matches(str(place)):
            if apart is not None and (_is_inside(apart, match) or _is_inside(match, apart)):
                raise PipelineError(f"{apart}: the tables cannot be in what is read ({place}), nor that in them")
            files += [os.path.realpath(path) if real and os.path.exists(path) else path for path in _files(match)]
        if not files:
            raise PipelineError(f"{place}: there are no files in it")
        found.update(dict.fromkeys(files))
    if not found:
        raise PipelineError("there are no captures: name files, folders or globs")
    return list(found)


def local(place: str, what: str) -> str:
    """The path that a place is, which may be a URL of a file."""
    if _ELSEWHERE.match(place):
        raise PipelineError(f"{place}: {what} have to be files that all nodes see under the same path")
    return place.removeprefix("file://").removeprefix("file:")


def _matches(place: str) -> list[Path]:
    path = local(place, "captures")
    matches = [path] if os.path.exists(path) else _globbed(path)
    if not matches:
        wild = glob.has_magic(path)
        raise PipelineError(f"{place}: {'matches no file' if wild else 'no such file or folder'}")
    return [Path(match).resolve() for match in matches]


def _globbed(path: str) -> list[str]:
    asked = Path(path).parts
    matches = sorted(glob.glob(path, recursive=True), key=lambda match: [order(part) for part in Path(match).parts])
    return [m for m in matches if not any(p.startswith((".", "_")) and p not in asked for p in Path(m).parts)]


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _files(path: Path) -> list[str]:
    if path.is_file():
        return [str(path)]
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = sorted((name for name in folders if not name.startswith((".", "_"))), key=order)
        for name in sorted(files, key=order):
            file = os.path.join(folder, name)
            if name.startswith((".", "_")) or os.path.exists(file) and not os.path.isfile(file):
                continue  # whoever opens a pipe waits
            found.append(file)
    return found


def order(name: str) -> tuple[Any, str]:
    """Sorts the names of rotating files: numbers count as numbers, file9 comes before file10.

    Names of dumpcap (``eth0_00012_20260131235959.pcapng``) sort by the time in them: its number begins anew when it is
    started again.
    """
    told = re.sub(r"_([0-9]{5,})_([0-9]{14})(?![0-9])", r"_\2_\1", name)
    return [int(part) if odd % 2 else part for odd, part in enumerate(re.split(r"([0-9]+)", told))], name


def each(paths: Sequence[str]) -> list[Captures]:
    """Every file is a recording of its own."""
    return [Captures(name_of(path), (path,)) for path in paths]


def together(paths: Sequence[str], places: Places) -> Captures:
    """All files are one recording: the folder, if just one was named, or these files of it."""
    named = [places] if isinstance(places, (str, Path)) else places
    matches = [match for place in named for match in _matches(str(place))]
    if len(matches) == 1 and matches[0].is_dir():
        return Captures(name_of(str(matches[0])), tuple(paths))
    folder = os.path.commonpath([os.path.dirname(path) for path in paths])
    return Captures(name_of(folder, "\0".join(paths)), tuple(paths))


def name_of(path: str, told: str | None = None) -> str:
    """The name of a recording, which is that of a folder as well: readable, and another one for every path.

    What ``told`` says it is of, if that is more than the path.
    """
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", os.path.basename(path)).strip("._")[:80]
    return f"{readable or 'captures'}-{sha256(os.fsencode(told or path)).hexdigest()[:8]}"
