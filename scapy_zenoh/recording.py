"""Reads captures as one recording: the rows of all messages, and afterwards the accounting and the sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from scapy_zenoh.capture import CaptureError, CaptureReader
from scapy_zenoh.follow import Follower
from scapy_zenoh.rows import Row
from scapy_zenoh.session.tracker import Limits, Session, Side, Tracker
from scapy_zenoh.tls import Decryptor


class Recording:
    """Several files are one recording in their order. Iterate over it once, then ask for ``summary()``."""

    def __init__(
        self,
        sources: Sequence[str | Path | BinaryIO],
        ports: Sequence[int] = (),
        keylog: str | Path | None = None,
        limits: Limits | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        self.reader = CaptureReader(sources)
        decryptor = Decryptor(_files(sources), keylog) if keylog is not None else None
        self.follower = Follower(ports, Tracker(limits), decryptor)
        self._progress = progress
        self.ladders: dict[str, list[tuple[int, str, str]]] = {}

    def __iter__(self) -> Iterator[Row]:
        """The rows, as their messages are completed."""
        for number, packet in enumerate(self.reader):
            if self._progress is not None and number % 1000 == 0:
                self._progress(self.reader.bytes_read, self.reader.total_bytes)
            for row in self.follower.feed(packet):
                self._remember(row)
                yield row
        for row in self.follower.finish():
            self._remember(row)
            yield row

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


def _files(sources: Sequence[str | Path | BinaryIO]) -> list[str | Path]:
    """The sources as files, which tshark can read as well."""
    files = [source for source in sources if isinstance(source, (str, Path)) and source != "-"]
    if len(files) < len(sources):
        raise CaptureError("a key log works with files only, not with standard input")
    return files
