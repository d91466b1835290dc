"""Reads captures as one recording: the rows of all messages, and afterwards the accounting and the sessions."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scapy_zenoh import compilation
from scapy_zenoh.capture import CaptureError, CaptureReader, Part, Place, Source, name_of
from scapy_zenoh.codec import Codec
from scapy_zenoh.follow import Follower
from scapy_zenoh.piece import Piece
from scapy_zenoh.primitives import as_utf8
from scapy_zenoh.rows import Row
from scapy_zenoh.session.tracker import Limits, Session, Side, Tracker
from scapy_zenoh.tls import Decryptor

if TYPE_CHECKING:
    from scapy_zenoh.bulk.packets import PacketBlocks

#: Rows that leave together where they are made one by one.
PIECE_ROWS = 1_000

#: What is added up over a recording, and told of each of its captures.
COUNTS = (
    "packets", "zenoh_packets", "zenoh_bytes", "decoded_bytes", "undecoded_bytes", "missing_bytes", "messages",
    "faults", "rows",
)  # fmt: skip


class Checkpoint(NamedTuple):
    """A recording between two packets: another one can go on there."""

    source: int  # ordinal of the source that is being read
    place: Place | None  # in it, None: its start
    memory: bytes  # what is remembered


class Recording:
    """Several files are one recording in their order. Iterate over it once, then ask for ``summary()``.

    Large files go through compiled code (``compiled`` decides otherwise), small ones, pipes and those with a
    key log through plain Python; ``codec`` is the decoder of the latter. The rows are the same.

    ``memory`` is that of a checkpoint: the recording goes on from there, and with the ports of that one too. Unless
    ``finish``, it may go on behind its last source. ``tolerant``: a file that cannot be read (on) does not
    raise but is told of in ``captures()``, and the next one is read; a part that cannot be read to its end raises.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        ports: Sequence[int] = (),
        keylog: str | Path | None = None,
        limits: Limits | None = None,
        progress: Callable[[int, int | None], None] | None = None,
        compiled: bool | None = None,
        codec: Codec | None = None,
        memory: bytes | None = None,
        finish: bool = True,
        tolerant: bool = False,
    ) -> None:
        self._sources, self._progress = list(sources), progress
        self._finish, self._tolerant = finish, tolerant
        self._captures: list[dict[str, Any]] = []  # those that are over, with what was counted until then
        self._noted = 0  # sources that are over
        decryptor = Decryptor(_files(sources), keylog) if keylog is not None else None
        self._reader_memory: Any = None
        if memory is None:
            self.follower = Follower(ports, Tracker(limits), decryptor, codec)
        else:
            self.follower, self._reader_memory, self._captures = pickle.loads(zlib.decompress(memory))
            self.follower.add_ports(ports)
        self.reader: CaptureReader | PacketBlocks = CaptureReader(self._sources)
        self._remind()
        self.ladders: dict[str, list[tuple[int, str, str]]] = {}
        possible = codec is None and decryptor is None
        self.compiled = possible and (self._is_worth_compiling() if compiled is None else compiled)

    def _remind(self) -> None:
        """Tell a new reader where an earlier recording stopped."""
        if self._reader_memory is not None:
            self.reader.remember(self._reader_memory)

    def _is_worth_compiling(self) -> bool:
        if any(not isinstance(source, (str, Path, Part)) or str(source) == "-" for source in self._sources):
            return False
        if not all(_is_utf8(str(path)) for path in _files(self._sources)):  # which columns of text have to be
            return False
        enough = compilation.ENOUGH_READY if compilation.is_ready() else compilation.ENOUGH_COLD
        return (self.reader.total_bytes or 0) >= enough and all(find_spec(name) for name in ("numba", "pyarrow"))

    def __iter__(self) -> Iterator[Row]:
        """The rows, as their messages are completed."""
        for piece in self.pieces():
            yield from piece.rows()

    def batches(self, payload: bool = True) -> Iterator[Any]:
        """The rows as Arrow record batches; ``payload``: whether payloads and attachments are wanted."""
        for piece in self.pieces(payload=payload):
            yield piece.batch()

    def pieces(self, columns: bool = True, payload: bool = True) -> Iterator[Piece]:
        """The rows as they come. Without ``columns`` only the accounting, and rows that are not in columns."""
        for piece in self._compiled(columns, payload) if self.compiled else self._plain():
            for _, row in piece.singles:
                self._remember(row)
                if not payload:
                    row["payload"] = row["attachment"] = None
            yield piece

    def checkpoints(self, every: int) -> Iterator[Checkpoint]:
        """Go through the recording, and stop whenever so many bytes lie behind; the last stop is its end.

        There are no rows, and the recording is not finished.
        """
        self._finish = False
        if self.compiled:
            cuts = _Cuts(every)
            for _ in self._compiled(columns=False, payload=False, cuts=cuts):
                yield from self._stops(cuts)
            yield from self._stops(cuts)
        else:  # which cannot begin in the middle of a file
            for _ in self._plain():
                pass
        yield Checkpoint(len(self._sources), None, self.memory())

    def _stops(self, cuts: _Cuts) -> Iterator[Checkpoint]:
        yield from cuts.made
        cuts.made.clear()

    def memory(self) -> bytes:
        """What is remembered between two packets, for a recording that goes on there."""
        if self.follower.tracker.chains:
            self.follower.tracker.chains = []
        remembered = self.follower, self.reader.memory(), self._captures
        return zlib.compress(pickle.dumps(remembered, pickle.HIGHEST_PROTOCOL), 1)

    def _plain(self) -> Iterator[Piece]:
        reader = self.reader
        assert isinstance(reader, CaptureReader)
        live = reader.total_bytes is None  # a pipe: rows leave at once
        rows: list[Row] = []
        while True:
            error: CaptureError | None = None
            try:
                for number, packet in enumerate(reader):
                    if reader.ended != self._noted:
                        self._note_ended()
                    if self._progress is not None and number % 1000 == 0:
                        self._progress(reader.bytes_read, reader.total_bytes)
                    rows += self.follower.feed(packet)
                    if len(rows) >= PIECE_ROWS or live and rows:
                        yield _piece(rows)
                        rows = []
            except CaptureError as problem:
                error = problem
            self._note_ended(error)
            if error is None or not self._tolerant:
                break
        if self._finish:
            rows += self.follower.finish()
            self._note_end()
        if rows:
            yield _piece(rows)
        if error is not None:
            raise error

    def _compiled(self, columns: bool, payload: bool, cuts: _Cuts | None = None) -> Iterator[Piece]:
        from scapy_zenoh.bulk.follower import BulkFollower
        from scapy_zenoh.bulk.packets import PacketBlocks

        size = compilation.BLOCK if cuts is None else min(compilation.BLOCK, cuts.every)
        blocks = self.reader = PacketBlocks(self._sources, size)  # type: ignore[arg-type]
        self._remind()
        bulk = BulkFollower(self.follower, columns, payload)
        while True:
            error: CaptureError | None = None
            try:
                for block in blocks:
                    if blocks.ended != self._noted:
                        bulk.stop()
                        self._note_ended()
                    yield from bulk.feed(block)
                    compilation.mark_ready()
                    if self._progress is not None:
                        self._progress(blocks.bytes_read, blocks.total_bytes)
                    if cuts is not None and cuts.is_due(blocks.ended, blocks.place):
                        bulk.stop()
                        cuts.made.append(Checkpoint(blocks.ended, blocks.place, self.memory()))
            except CaptureError as problem:
                error = problem
            bulk.stop()
            self._note_ended(error)
            if error is None or not self._tolerant:
                break
        if self._finish:
            yield from bulk.finish()
            self._note_end()
        if error is not None:
            raise error

    # -- the captures --

    def _note_ended(self, error: CaptureError | None = None) -> None:
        """Sources are over: remember what was counted until now."""
        while self._noted < self.reader.ended:
            source, packets = self._sources[self._noted], self.reader.packets_until[self._noted]
            self._noted += 1
            last = error is not None and self._noted == self.reader.ended
            if isinstance(source, Part) and source.end is not None:  # it goes on elsewhere
                if error is not None and last:  # when its end was found, all before it could be read
                    raise error
                continue
            told = {"path": name_of(source), "bytes": _size(source), "error": str(error) if last else None}
            self._captures.append(told | self._counts() | {"packets": packets})

    def _note_end(self) -> None:
        """The recording is over, which may have brought more rows: they are those of its last capture."""
        for detail in self._unread():
            self.follower.tracker.find("unread", detail)
        if self._captures:
            self._captures[-1].update(self._counts())

    def _unread(self) -> Iterator[str]:
        """What was passed over."""
        for linktype, packets in sorted(self.reader.unknown_linktypes.items()):
            yield f"{packets} packets of link type {linktype}, which is not known"
        streams = self.follower.streams
        for count, what in (
            (self.reader.lost_fragments, "IP fragments of which the rest is missing"),
            (streams.strays, "packets with numbers far from those of their connection"),
            (streams.late_bytes, "bytes that came after their connection was closed"),
            (streams.dropped, "connections that were given up, since there were too many"),
            (self.follower.tracker.findings_dropped, "findings more than are kept"),
        ):
            if count:
                yield f"{count} {what}"

    def _counts(self) -> dict[str, int]:
        account = self.follower.accounting
        return {"packets": self.reader.packets} | {name: getattr(account, name) for name in COUNTS[1:]}

    def captures(self) -> list[dict[str, Any]]:
        """What became of each capture that is over: its path, why it could not be read (on), and what was counted."""
        before = dict.fromkeys(COUNTS, 0)
        told = []
        for capture in self._captures:
            told.append({**capture, **{name: capture[name] - before[name] for name in COUNTS}})
            before = capture
        return told

    def _remember(self, row: Row) -> None:
        """Keep the steps of handshakes."""
        if row["kind"] in ("init_syn", "init_ack", "open_syn", "open_ack", "close"):
            steps = self.ladders.setdefault(row["link"], [])
            if len(steps) < 16:
                steps.append((row["time"], f"{row['src']}:{row['sport']}", step_text(row)))

    def summary(self) -> dict[str, Any]:
        """The accounting, and what is known of each session, as plain values."""
        account, tracker = self.follower.accounting, self.follower.tracker
        return {
            "packets": self.reader.packets,
            "zenoh_packets": account.zenoh_packets,
            "zenoh_bytes": account.zenoh_bytes,
            "decoded_bytes": account.decoded_bytes,
            "undecoded_bytes": account.undecoded_bytes,
            "missing_bytes": account.missing_bytes,
            "messages": account.messages,
            "faults": account.faults,
            "fault_kinds": dict(account.fault_kinds),
            "sessions": [_session(s) for s in tracker.sessions],
            "links": [
                *({"link": link.id, "proto": link.proto, "session": link.session.id} for link in self.follower.links),
                *({**entry, "opaque": True} for entry in self.follower.opaque.values()),
            ],
            "gaps": list(self.follower.gaps),
            "findings": [
                {"kind": f.kind, "session": f.session, "link": f.link, "detail": f.detail} for f in tracker.findings
            ],
        }


@dataclass
class _Cuts:
    """Where a recording is to be cut: whenever ``every`` bytes lie behind."""

    every: int
    made: list[Checkpoint] = field(default_factory=list)
    _source: int = 0
    _offset: int = 0
    _gone: int = 0

    def is_due(self, source: int, place: Place | None) -> bool:
        """Whether to cut at this place."""
        if place is None:
            return False
        self._gone += place.offset - (self._offset if source == self._source else 0)
        self._source, self._offset = source, place.offset
        if self._gone < self.every:
            return False
        self._gone = 0
        return True


def _size(source: Source) -> int:
    """Bytes of a file; what is none, or gone, has none."""
    try:
        return os.path.getsize(name_of(source))
    except OSError:
        return 0


def _is_utf8(name: str) -> bool:
    return as_utf8(name) == name


def _piece(rows: list[Row]) -> Piece:
    return Piece(None, [(0, row) for row in rows])


def step_text(row: Row) -> str:
    """A step of a handshake as people say it."""
    kind = row["kind"].replace("_", " ").upper().replace("SYN", "syn").replace("ACK", "ack")
    told = [kind, row["whatami"], row["src_zid"] if "init" in row["kind"] else None, row["reason"]]
    return " ".join(filter(None, told))


def _session(session: Session) -> dict[str, Any]:
    return {
        "session": session.id,
        "nodes": [_side(side) for side in session.sides if side.zid or not session.multicast],
        "multicast": session.multicast,
        "links": [link.id for link in session.links],
        "qos": session.qos,
        "compression": session.compression,
        "low_latency": session.low_latency,
        "multilink": session.multilink,
        "shared_memory": session.shared_memory,
        "auth": session.auth,
        "patch": session.patch,
        "sn_bits": session.sn_bits,
        "batch_size": session.batch_size,
        "opened": session.opened,
        "last": session.last,
        "closed": session.closed,
        "close_reason": session.close_reason,
        "messages": dict(session.counts),
        "queries": dict(session.queries_done),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "zid": side.zid,
        "whatami": side.whatami,
        "region": side.region,
        "lease_ms": side.lease_ms,
        "initial_sn": side.initial_sn,
        "messages": side.messages,
        "declared": dict(side.declared),
        "keys": {str(number): name for number, name in side.keys.names().items()},
    }


def _files(sources: Sequence[Source]) -> list[str | Path]:
    """The sources as files, which can be read more than once."""
    files = [name_of(source) for source in sources if isinstance(source, (str, Path, Part)) and source != "-"]
    if len(files) < len(sources):
        raise CaptureError("a key log works with files only, not with standard input")
    return list(files)
