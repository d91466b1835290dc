"""When compiled code is worth it, and whether it is there already; nothing here imports Numba.

Compiling takes the better part of a minute, once for each version of the sources; loading what was compiled, a
second. Plain Python reads a megabyte in about a third of a second.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

ENOUGH_READY = 4 << 20  # bytes of captures from which loading pays
ENOUGH_COLD = 32 << 20  # and from which compiling does, at the latest with the next capture
BLOCK = 2 << 20  # bytes of a capture that are gone through at once: they fit into the cache of a core

_PACKAGE = Path(__file__).parent


@cache
def sources() -> str:
    """Changes with any source that is compiled: what a compiled function calls becomes part of it."""
    paths = [path for folder in ("bulk", "decode") for path in sorted((_PACKAGE / folder).glob("*.py"))]
    return sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _mark() -> Path:
    return _PACKAGE / "bulk" / "__pycache__" / f"compiled-{sources()[:16]}"


def is_ready() -> bool:
    """Whether compiled code was made from these sources before."""
    return _mark().exists()


def mark_ready() -> None:
    """Remember that it was. Where the package cannot be written, every first look is that of a new machine."""
    try:
        if not _mark().exists():
            _mark().touch()
    except OSError:
        pass
