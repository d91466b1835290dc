"""The plain text of TLS connections, given the key log of one side; tshark does the decryption."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scapy_zenoh.capture import CaptureError
from scapy_zenoh.wireshark import isolated

_FIELDS = ("frame.number", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "data.data")


class Plain(NamedTuple):
    """What one packet brought to one direction of a connection."""

    frame: int
    src: tuple[str, int]
    dst: tuple[str, int]
    data: bytes


class Decryptor:
    """Reads files beside the capture reader; ``at`` must be asked in the order of the recording."""

    def __init__(self, sources: Sequence[str | Path], keylog: str | Path) -> None:
        if not Path(keylog).is_file():
            raise CaptureError(f"{keylog}: no such key log")
        self._tshark = shutil.which("tshark")
        if self._tshark is None:
            raise CaptureError("a key log needs tshark, which is not installed")
        self._keylog = keylog
        self._files = {Path(source).name: Path(source) for source in sources}
        self._current = ""
        self._lines: Iterator[Plain] = iter(())
        self._next: Plain | None = None

    def at(self, capture: str, frame: int) -> list[Plain]:
        """The plain text that became readable with this packet."""
        if capture != self._current:
            self._current = capture
            self._lines = self._run(self._files[capture]) if capture in self._files else iter(())
            self._next = next(self._lines, None)
        found = []
        while self._next is not None and self._next.frame <= frame:
            found.append(self._next)
            self._next = next(self._lines, None)
        return found

    def _run(self, path: Path) -> Iterator[Plain]:
        command = [str(self._tshark), "-n", "-r", str(path), "-o", f"tls.keylog_file:{self._keylog}", "-Y", "data.data"]
        command += ["-T", "fields", *(part for name in _FIELDS for part in ("-e", name))]
        with tempfile.TemporaryDirectory() as no_profile:  # plugins of the user would take the data
            environment = isolated(Path(no_profile))
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    plain = _plain(line)
                    if plain is not None:
                        yield plain


def _plain(line: str) -> Plain | None:
    number, src4, src6, sport, dst4, dst6, dport, data = line.rstrip("\n").split("\t")
    if not sport or not data:
        return None  # UDP, or nothing
    content = b"".join(bytes.fromhex(part.replace(":", "")) for part in data.split(","))
    return Plain(int(number), (src4 or src6, int(sport)), (dst4 or dst6, int(dport)), content)
