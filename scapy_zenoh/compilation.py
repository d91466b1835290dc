"""When compiled code is worth it, and whether it is there already; importing this does not import Numba.

Compiling takes the better part of a minute, once for each version of the sources; loading what was compiled, a
second. Plain Python reads a megabyte in about a third of a second.

``python -m scapy_zenoh.compilation`` compiles now what the first large capture would compile: for environments that
are packed or copied to where nobody should wait for it, as containers and clusters.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

ENOUGH_READY = 4 << 20  # bytes of captures from which loading pays
ENOUGH_COLD = 32 << 20  # and from which compiling does, at the latest with the next capture
BLOCK = 4 << 20  # bytes of a capture that are gone through at once: half as many took 7 % longer

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


def compile_all() -> str:
    """Compile everything that captures may need; says where it is kept."""
    from tempfile import TemporaryDirectory

    from scapy_zenoh.bulk import engine
    from scapy_zenoh.generate import generate
    from scapy_zenoh.recording import Recording
    from scapy_zenoh.synthetic.shape import Shape

    with TemporaryDirectory() as folder:
        capture = Path(folder) / "all.pcap"
        generate(Shape(messages=4_000, sessions=20, queries=0.2), capture)
        for _ in Recording([capture], compiled=True).batches():
            pass
    _compile_rare()
    run: Any = engine.run
    return str(run._cache.cache_path)


def _compile_rare() -> None:
    """What is only called for messages that are not regular, and when there are very many names."""
    import numpy as np

    from scapy_zenoh.bulk.declarations import DeclarationTable
    from scapy_zenoh.bulk.queries import QueryTable, SideQueries
    from scapy_zenoh.session.tracker import Limits

    declared, asked = DeclarationTable(Limits()), SideQueries(QueryTable(Limits()), 0)
    declared.declare(0, "keyexpr", 1, "a")
    declared.name(0, 1)
    declared.withdraw(0, "keyexpr", 1)
    declared.names.keep(np.zeros(0, np.int64))
    asked.ask(1)
    asked.reply(1)
    asked.finish(1)


if __name__ == "__main__":
    import time

    began = time.monotonic()
    print(f"compiled code in {compile_all()}, after {time.monotonic() - began:.1f} s")
