"""Stretches of recordings: what a task reads, and the rows of all tables that come of it. Nothing here needs Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from scapy_zenoh import arrow, compilation
from scapy_zenoh.capture import GZIP_MAGIC, ZSTD_MAGIC, CaptureError, Part, Source
from scapy_zenoh.pipeline.captures import Captures
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.primitives import as_utf8
from scapy_zenoh.recording import COUNTS, Checkpoint, Recording
from scapy_zenoh.schema.columns import Column
from scapy_zenoh.schema.tables import TABLES
from scapy_zenoh.session.tracker import Session
from scapy_zenoh.tls import Decryptor

#: Bytes of captures for one task: a task costs Spark a tenth of a second, and these take it seconds.
SPLIT = 64 << 20
#: Most cuts in a compressed file. Unpacking takes a tenth of the time that the tables take, so it takes half as much.
MOST_UNPACKED = 8

#: Rows of a table that leave together.
Rows = tuple[str, Any]

#: What ``map`` is: all results of a function.
Each = Callable[[Callable[[Captures], "list[Stretch]"], Sequence[Captures]], "Iterable[list[Stretch]]"]


@dataclass(frozen=True)
class Options:
    """How captures are read."""

    ports: tuple[int, ...] = ()
    keylog: str | None = None
    payload: bool = True

    def checked(self) -> Options:
        """The same as every task can use it, or a complaint."""
        if isinstance(self.ports, (int, str)) or not all(
            type(port) is int and 0 < port < 1 << 16 for port in self.ports
        ):
            raise PipelineError(f"ports: {self.ports!r} are no port numbers, as (7447, 9000) are")
        if self.keylog is None:
            return self
        try:
            Decryptor([], self.keylog)
            open(self.keylog).close()
        except CaptureError as error:
            raise PipelineError(str(error)) from None
        except OSError as error:
            raise PipelineError(f"{self.keylog}: {error.strerror}") from None
        return replace(self, keylog=os.path.abspath(self.keylog))


@dataclass(frozen=True)
class Stretch:
    """A recording, or what lies between two checkpoints of it. The last one ends the recording."""

    captures: Captures  # only those that are read
    begin: Checkpoint | None = None
    end: Checkpoint | None = None
    last: bool = True

    def sources(self) -> list[Source]:
        """What is to be read."""
        sources: list[Source] = list(self.captures.paths)
        if self.end is not None and self.end.place is not None:
            sources[-1] = Part(self.captures.paths[-1], None, self.end.place.offset)
        if self.begin is not None and self.begin.place is not None:
            path, _, end = sources[0] if isinstance(sources[0], Part) else Part(str(sources[0]))
            sources[0] = Part(path, self.begin.place, end)
        return sources


# --- cutting ------------------------------------------------------------------------------------


def cut(captures: Captures, options: Options, every: int, begin: Checkpoint | None = None) -> list[Stretch]:
    """A recording in stretches of about so many bytes, from ``begin`` on; none of them ends it.

    To know what is remembered at each cut, all of it is gone through, but no rows are made, which takes a tenth of
    the time that the tables take. Of their ends only the last one has a memory.
    """
    stretches = []
    compiled = True if captures.bytes > every else None
    stops = _recording(Stretch(captures, begin), options, compiled).checkpoints(every)
    for source, inside in groupby(stops, lambda stop: stop.source):
        for stop in _few(list(inside)) if _is_packed(captures.paths[source:]) else inside:
            stretches.append(_between(captures, begin, stop))
            begin = stop
    end = stretches[-1].end
    assert end is not None and begin is not None
    stretches[-1] = replace(stretches[-1], end=end._replace(memory=begin.memory))
    return stretches


def _between(captures: Captures, begin: Checkpoint | None, end: Checkpoint) -> Stretch:
    """What lies between two checkpoints, with the files in it and no others: of one recording there may be many."""
    first, behind = begin.source if begin is not None else 0, end.source + (end.place is not None)
    part = replace(captures, paths=captures.paths[first:behind])
    begin = begin._replace(source=0) if begin is not None else None
    return Stretch(part, begin, Checkpoint(end.source - first, end.place, b""), last=False)


def _few(stops: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
    """Some of the stops in a compressed file: whoever begins at one has to unpack all that is before it."""
    step = -(-len(stops) // MOST_UNPACKED)
    return stops[step - 1 :: step]


def _is_packed(paths: Sequence[str]) -> bool:
    """Whether the first of these files, if there is one, is compressed."""
    try:
        with open(paths[0], "rb") as file:
            return file.read(4).startswith((GZIP_MAGIC, ZSTD_MAGIC))
    except (IndexError, OSError):
        return False


def ended(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The same, but the last one ends the recording."""
    return [*stretches[:-1], Stretch(stretches[-1].captures, stretches[-1].begin)]


def plan(recordings: Sequence[Captures], options: Options, every: int, each: Each = map) -> list[Sequence[Stretch]]:
    """What each task reads, about so many bytes: stretches of large recordings, then small ones, the largest first.

    ``each`` is how all large ones are cut: it does what ``map`` does.
    """
    large, small = too_large(recordings, options, every)
    cut_up = each(partial(in_stretches, options=options, every=every), large)
    tasks: list[Sequence[Stretch]] = [[stretch] for stretches in cut_up for stretch in stretches]
    return tasks + sorted(pack(small, every), key=lambda task: -sum(stretch.captures.bytes for stretch in task))


def in_stretches(captures: Captures, options: Options, every: int) -> list[Stretch]:
    """All of a recording in stretches."""
    return ended(cut(captures, options, every))


def can_be_cut(captures: Captures, options: Options) -> bool:
    """A key log needs whole files, and so do names that are not UTF-8."""
    return options.keylog is None and all(as_utf8(path) == path for path in captures.paths)


def too_large(recordings: Sequence[Captures], options: Options, every: int) -> tuple[list[Captures], list[Captures]]:
    """Recordings that are to be cut, and those that are not."""
    large: list[Captures] = []
    small: list[Captures] = []
    for captures in recordings:
        (large if captures.bytes > every and can_be_cut(captures, options) else small).append(captures)
    return large, small


def pack(recordings: Sequence[Captures], every: int) -> list[list[Stretch]]:
    """Whole recordings for tasks of about so many bytes each."""
    tasks: list[list[Stretch]] = []
    room = 0
    for captures in recordings:
        size = captures.bytes
        if not tasks or size > room:
            tasks.append([])
            room = every
        tasks[-1].append(Stretch(captures))
        room -= size
    return tasks


def split_size(recordings: Sequence[Captures], split: int | None, partitions: int | None) -> int:
    """How many bytes a task takes: so many, or that there are about so many tasks."""
    if split is not None and partitions is not None:
        raise PipelineError("split and partitions exclude each other")
    for name, number in (("split", split), ("partitions", partitions)):
        if number is not None and (type(number) is not int or number < 1):
            raise PipelineError(f"{name}: {number!r} is no number from 1 on")
    if partitions is None:
        return SPLIT if split is None else split
    return max(1, -(-sum(captures.bytes for captures in recordings) // partitions))


# --- reading ------------------------------------------------------------------------------------


def read(stretch: Stretch, options: Options, compiled: bool | None = None) -> Iterator[Rows]:
    """The rows of all tables that a stretch brings."""
    recording = _recording(stretch, options, compiled)
    account, tracker = recording.follower.accounting, recording.follower.tracker
    row = account.rows
    for batch in recording.batches(options.payload):
        messages = _messages(batch, row)
        row += batch.num_rows
        yield "messages", messages
        if batch.column("fault").null_count < batch.num_rows:
            yield "faults", messages.filter(pc.is_valid(messages.column("fault"))).select(_names("faults"))
        chains, tracker.chains = tracker.chains or [], []
        if chains:
            yield _rows("fragments", chains)
    if tracker.chains:
        yield _rows("fragments", tracker.chains)
    if stretch.last:
        yield from _at_the_end(recording, stretch.captures)


def _recording(stretch: Stretch, options: Options, compiled: bool | None) -> Recording:
    begin = stretch.begin
    recording = Recording(
        stretch.sources(),
        options.ports,
        options.keylog,
        memory=begin.memory if begin else None,
        finish=stretch.last,
        tolerant=True,
        compiled=True if _is_part(stretch) else compiled,
    )
    if recording.follower.tracker.chains is None:
        recording.follower.tracker.chains = []
    return recording


def _is_part(stretch: Stretch) -> bool:
    return any(stop is not None and stop.place is not None for stop in (stretch.begin, stretch.end))


def worth_compiling(stretches: Sequence[Stretch], options: Options) -> bool | None:
    """Whether all of them are read by compiled code: it is loaded once. None: each decides for itself."""
    size = sum(stretch.captures.bytes for stretch in stretches)
    fit = all(can_be_cut(stretch.captures, options) for stretch in stretches)
    return True if fit and size >= compilation.ENOUGH_READY and compilation.is_ready() else None


def _messages(batch: Any, first: int) -> Any:
    """Rows of messages as the table has them."""
    numbers = pa.array(np.arange(first, first + batch.num_rows))
    times = (arrow.instants(batch.column(name)) for name in ("time", "timestamp_time"))
    return pa.record_batch([numbers, *batch.columns, *times], schema=arrow.schema(TABLES["messages"]))


def plain(batch: Any) -> Any:
    """A batch without dictionaries, as Spark takes it."""
    arrays = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    return pa.record_batch(arrays, names=batch.schema.names)


def _names(table: str) -> list[str]:
    return [column.name for column in TABLES[table]]


def _rows(table: str, rows: Sequence[dict[str, Any]]) -> Rows:
    return table, arrow.batch_of(rows, TABLES[table])


# --- what is known at the end of a recording --------------------------------------------------------


def _at_the_end(recording: Recording, captures: Captures) -> Iterator[Rows]:
    follower, tracker = recording.follower, recording.follower.tracker
    yield _rows("sessions", [_session(session) for session in tracker.sessions])
    links = [
        {"link": link.id, "proto": link.proto, "session": link.session.id, "opaque": False, "bytes": link.bytes,
         "opened": link.opened, "closed": link.closed}
        for link in follower.links
    ]  # fmt: skip
    unread = [{**entry, "session": None, "opaque": True, "opened": None, "closed": None} for entry in
              follower.opaque.values()]  # fmt: skip
    yield _rows("links", [*links, *unread])
    lanes = [(session, lane) for session in tracker.sessions for lane in session.lanes]
    yield _rows("lanes", [{"session": session.id, **_fields(lane, TABLES["lanes"][1:])} for session, lane in lanes])
    yield _rows("findings", [_fields(finding, TABLES["findings"]) for finding in tracker.findings])
    yield _rows("captures", list(_captures(recording, captures)))


def _captures(recording: Recording, captures: Captures) -> Iterator[dict[str, Any]]:
    for ordinal, told in enumerate(recording.captures()):
        path = told["path"]
        counts = {name: told[name] for name in COUNTS}
        name = path.rpartition("/")[2]
        file = {"capture": name, "path": path, "ordinal": ordinal, "bytes": told["bytes"], "late": captures.late}
        yield {**file, "error": told["error"], **counts}


def _session(session: Session) -> dict[str, Any]:
    told = _fields(session, [column for column in TABLES["sessions"] if hasattr(session, column.name)])
    for side, whose in zip(session.sides, ("low", "high"), strict=True):
        for name in ("zid", "whatami", "region", "lease_ms", "initial_sn", "messages", "bytes"):
            told[f"{whose}_{name}"] = getattr(side, name)
    told |= {f"queries_{name}": session.queries_done[name] for name in ("answered", "empty", "unfinished")}
    links = [link.id for link in session.links]
    return told | {"session": session.id, "links": links, "messages": session.counts.total()}


def _fields(thing: Any, columns: Sequence[Column]) -> dict[str, Any]:
    return {column.name: getattr(thing, column.name) for column in columns}
