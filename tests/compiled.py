"""Compiling takes the better part of a minute: one worker does it, the others wait and load what it made."""

from __future__ import annotations

import tempfile
from pathlib import Path

from scapy_zenoh import compilation
from scapy_zenoh.recording import Recording
from tests.conftest import captures


def compile_once() -> None:
    """All functions that captures need are compiled."""
    try:
        from fcntl import LOCK_EX, flock
    except ImportError:  # there every worker compiles for itself
        return
    name = f"scapy-zenoh-{compilation.sources()[:16]}.lock"
    with (Path(tempfile.gettempdir()) / name).open("w") as file:
        flock(file, LOCK_EX)
        for path in captures():
            if path.name.startswith(("s04", "s06", "s10", "s21")):
                list(Recording([path], compiled=True))
