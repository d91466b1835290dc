"""Reads captures as one recording: the rows of all messages, and afterwards the accounting and the sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from scapy_zenoh import compilation
from scapy_zenoh.capture import CaptureError, CaptureReader
from scapy_zenoh.codec import Codec
from scapy_zenoh.follow import Follower
from scapy_zenoh.piece import Piece
from scapy_zenoh.rows import Row
from scapy_zenoh.session.tracker import Limits, Session, Side, Tracker
from scapy_zenoh.tls import Decryptor

if TYPE_CHECKING:
    from scapy_zenoh.bulk.packets import PacketBlocks

#: Rows that leave together where they are made one by one.
PIECE_ROWS = 1_000

Source = str | Path | BinaryIO


class Recording:
    """Several files are one recording in their order. Iterate over it once, then ask for ``summary()``.

    Large files go through compiled code (``compiled`` decides otherwise), small ones, pipes and those with a
    key log through plain Python; ``codec`` is the decoder of the latter. The rows are the same.
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
    ) -> None:
        self._sources, self._progress = list(sources), progress
        decryptor = Decryptor(_files(sources), keylog) if keylog is not None else None
        self.follower = Follower(ports, Tracker(limits), decryptor, codec)
        self.reader: CaptureReader | PacketBlocks = CaptureReader(self._sources)
        self.ladders: dict[str, list[tuple[int, str, str]]] = {}
        possible = codec is None and decryptor is None
        self.compiled = possible and (self._is_worth_compiling() if compiled is None else compiled)

    def _is_worth_compiling(self) -> bool:
        if any(not isinstance(source, (str, Path)) or str(source) == "-" for source in self._sources):
            return False
        if not all(_is_utf8(str(source)) for source in self._sources):  # which columns of text have to be
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
        for piece in self._compiled(columns, payload) if self.compiled else self._plain(payload):
            for _, row in piece.singles:
                self._remember(row)
            yield piece

    def _plain(self, payload: bool) -> Iterator[Piece]:
        assert isinstance(self.reader, CaptureReader)
        live = self.reader.total_bytes is None  # a pipe: rows leave at once
        rows: list[Row] = []
        try:
            for number, packet in enumerate(self.reader):
                if self._progress is not None and number % 1000 == 0:
                    self._progress(self.reader.bytes_read, self.reader.total_bytes)
                rows += self.follower.feed(packet)
                if len(rows) >= PIECE_ROWS or live and rows:
                    yield _piece(rows, payload)
                    rows = []
        except CaptureError:
            if rows:
                yield _piece(rows, payload)
            raise
        rows += self.follower.finish()
        if rows:
            yield _piece(rows, payload)

    def _compiled(self, columns: bool, payload: bool) -> Iterator[Piece]:
        from scapy_zenoh.bulk.follower import BulkFollower
        from scapy_zenoh.bulk.packets import PacketBlocks

        blocks = self.reader = PacketBlocks(_files(self._sources), compilation.BLOCK)
        bulk = BulkFollower(self.follower, columns, payload)
        try:
            for block in blocks:
                yield from bulk.feed(block)
                compilation.mark_ready()
                if self._progress is not None:
                    self._progress(blocks.bytes_read, blocks.total_bytes)
        except CaptureError:
            bulk.stop()
            raise
        yield from bulk.finish()

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


def _is_utf8(name: str) -> bool:
    return name.isascii() or name == name.encode("utf-8", "replace").decode()


def _piece(rows: list[Row], payload: bool) -> Piece:
    if not payload:
        for row in rows:
            row["payload"] = row["attachment"] = None
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
        "sn_bits": (8, 16, 32, 64)[session.resolution & 3],
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
        "keys": {str(number): name for number, name in side.keys.names.items()},
    }


def _files(sources: Sequence[Source]) -> list[str | Path]:
    """The sources as files, which can be read more than once."""
    files = [source for source in sources if isinstance(source, (str, Path)) and source != "-"]
    if len(files) < len(sources):
        raise CaptureError("a key log works with files only, not with standard input")
    return files
