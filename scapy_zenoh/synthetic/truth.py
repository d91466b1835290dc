"""The truth file of made traffic: what the applications did, in the form of the recorded captures.

Events are written as they happen, samples and damage to temporary files, and all is joined at the end:
memory grows with the number of sessions and keys, not with the number of messages.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any

SCHEMA = "zenoh-capture-truth/1"
SAMPLES_PER_NODE = 1500
HEX_UP_TO = 128

sha256 = hashlib.sha256


def described(payload: bytes) -> str:
    """A payload as JSON: length, hash, and the bytes if they are few."""
    size = len(payload)
    if size > HEX_UP_TO:
        return f'{{"len": {size}, "sha256": "{sha256(payload).hexdigest()}"}}'
    return f'{{"len": {size}, "sha256": "{sha256(payload).hexdigest()}", "hex": "{payload.hex()}"}}'


#: The payload and encoding of a deletion, as those who receive it tell them.
NOTHING = f'{described(b"")}, "encoding": "zenoh/bytes"'


class Received:
    """What one subscriber got on one key."""

    __slots__ = ("_hash", "bytes", "deletes", "puts")

    def __init__(self) -> None:
        self.puts = self.deletes = self.bytes = 0
        self._hash = sha256()

    def add(self, payload: bytes | None) -> None:
        """Count a put, or a deletion."""
        if payload is None:
            self.deletes += 1
        else:
            self.puts += 1
            self.bytes += len(payload)
            self._hash.update(payload)

    def summary(self) -> dict[str, Any]:
        """As the truth file has it."""
        kinds = {"PUT": self.puts, "DELETE": self.deletes}
        return {
            "count": self.puts + self.deletes,
            "bytes": self.bytes,
            "kinds": {kind: n for kind, n in kinds.items() if n},
            "sha256_concat": self._hash.hexdigest(),
        }


class _List:
    """A JSON list that is written some items at a time."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self._begun = False

    def add(self, lines: list[str]) -> None:
        if lines:
            self.file.write((",\n" if self._begun else "") + ",\n".join(lines))
            self._begun = True


class TruthFile:
    """Writes a truth file; ``close`` adds what is known only at the end."""

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._events = _List(self._file)
        self._samples = _List(tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent))
        self._damage = _List(tempfile.TemporaryFile("w+", encoding="utf-8", dir=path.parent))
        self._file.write(json.dumps({"schema": SCHEMA, **head}, ensure_ascii=False, indent=1)[:-2])
        self._file.write(',\n "events": [\n')

    def events(self, lines: list[str]) -> None:
        """Add events."""
        self._events.add(lines)

    def samples(self, lines: list[str]) -> None:
        """Add samples that subscribers received."""
        self._samples.add(lines)

    def damage(self, line: str) -> None:
        """Add a change that was made to the capture afterwards."""
        self._damage.add([line])

    def close(self, tail: dict[str, Any], damaged: bool) -> None:
        """Finish the file."""
        self._join("rx_samples", self._samples)
        if damaged:
            self._join("damage", self._damage)
        self._file.write("\n ],\n" + json.dumps(tail, ensure_ascii=False, indent=1)[2:] + "\n")
        self.abandon()

    def _join(self, name: str, spooled: _List) -> None:
        self._file.write(f'\n ],\n "{name}": [\n')
        spooled.file.seek(0)
        shutil.copyfileobj(spooled.file, self._file)

    def abandon(self) -> None:
        """Let go of all files."""
        for file in (self._file, self._samples.file, self._damage.file):
            file.close()
