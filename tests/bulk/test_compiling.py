"""What is compiled: made anew when a source changes, and reading the same as the plain functions it was made from."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from array import array
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching

from scapy_zenoh import compilation
from scapy_zenoh.bulk import engine
from scapy_zenoh.bulk.compiling import compiled
from scapy_zenoh.codec import PREFIX, Batch
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.decode.reading import read_batch
from scapy_zenoh.decode.runtime import BATCH, KIND, LENGTHS, PRESENT, STRIDE, VALUES
from scapy_zenoh.recording import Recording
from scapy_zenoh.schema.slots import NUMBERS, SPANS
from tests.conftest import captures
from tests.decode.readers import Seen
from tests.decode.test_agreement import varied

# --- the key of the cache -----------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sources that are compiled."""
    for folder in ("bulk", "decode"):
        shutil.copytree(compilation._PACKAGE / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compilation, "_PACKAGE", tmp_path)
    compilation.sources.cache_clear()
    yield tmp_path
    compilation.sources.cache_clear()


def key() -> str:
    compilation.sources.cache_clear()
    return compilation.sources()


def test_code_is_compiled_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers whose packages and home cannot be written."""
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError):
        numba.njit(cache=True)(lambda number: number)
    assert compiled(lambda number: number + 1)(1) == 2


def test_a_change_of_any_source_is_a_change_of_the_key(package: Path) -> None:
    before = key()
    assert key() == before
    paths = [path for folder in ("bulk", "decode") for path in sorted((package / folder).glob("*.py"))]
    assert len(paths) > 10
    for path in paths:
        text = path.read_text()
        path.write_text(text + "\n")
        assert key() != before, path.name
        path.write_text(text)
    assert key() == before
    (package / "bulk" / "more.py").write_text("MORE = 1\n")
    assert key() != before


def test_what_was_compiled_is_ready_until_a_source_changes(package: Path) -> None:
    assert not compilation.is_ready()
    compilation.mark_ready()  # where there is no folder for it, nothing happens
    (package / "bulk" / "__pycache__").mkdir()
    compilation.mark_ready()
    assert compilation.is_ready()
    (package / "decode" / "runtime.py").write_text("# changed\n")
    compilation.sources.cache_clear()
    assert not compilation.is_ready()


def test_nothing_is_left_to_compile_for_a_capture() -> None:
    """What is packed with its compiled code goes to where none can be kept."""
    look = """
import importlib, pkgutil
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher
from scapy_zenoh import bulk, compilation
compilation.compile_all()
for found in pkgutil.iter_modules(bulk.__path__):
    for name, known in vars(importlib.import_module(f"{bulk.__name__}.{found.name}")).items():
        if isinstance(known, Dispatcher) and not isinstance(known._cache, NullCache):
            print(name, len(known.signatures))
"""
    told = subprocess.run([sys.executable, "-c", look], stdout=subprocess.PIPE, text=True, check=True).stdout
    counts = dict(line.split() for line in told.splitlines())
    assert len(counts) > 15
    assert {name for name, count in counts.items() if count != "1"} == set()


# --- the reader ---------------------------------------------------------------------------------
# Slow: for these tests the reader is compiled once more, on its own.


@compiled
def read_compiled(b: Any, p: int, e: int, r: Any, room: int, bare: bool) -> int:
    return engine.read_batch(b, p, e, r, 0, room, bare)


class Noting(PlainCodec):
    """Remembers what it was asked to read."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[Seen, None] = {}

    def batch(self, data: bytes, framing: str, sized: bool) -> Batch:
        if framing != "compressed" and len(data) < 3000:
            self.seen[bytes(data), framing, sized] = None
        return super().batch(data, framing, sized)


@cache
def batches() -> tuple[Seen, ...]:
    """The batches of captures."""
    codec = Noting()
    for path in captures():
        if path.stat().st_size < 130_000:
            list(Recording([path], codec=codec))
    return tuple(codec.seen)


NOT_COMPILED = {g.KINDS.index(name) for name in ("init", "open", "close", "join", "transport_oam", "network_oam",
                                                 "interest")}  # fmt: skip
ROOM = 4000
FOUND = np.zeros((ROOM + 1) * STRIDE, np.int64)
EXPECTED = array("q", bytes(8 * STRIDE * (ROOM + 1)))


def places(present: int) -> list[int]:
    """Where a row says something: its head, and the slots that are there."""
    slots = [slot for slot in range(len(SPANS) + len(NUMBERS)) if present >> slot & 1]
    return [*range(BATCH), *(VALUES + slot for slot in slots), *(LENGTHS + slot for slot in slots if slot < len(SPANS))]


def same(data: bytes, framing: str, with_size: bool) -> int:
    """Read in both ways; returns how many rows there are, -1 when not all of it is compiled."""
    start, bare = PREFIX[framing] if with_size else 0, framing == "lowlatency"
    found = read_compiled(np.frombuffer(data, np.uint8), start, len(data), FOUND, ROOM, bare)
    count = read_batch(data, start, len(data), EXPECTED, 0, ROOM, bare)
    kinds = [EXPECTED[o + KIND] for o in range(0, count * STRIDE, STRIDE)]
    if found == -1:
        assert NOT_COMPILED & {*kinds}, f"{framing} {data.hex()}"
        return -1
    assert found == count and not NOT_COMPILED & {*kinds}, f"{framing} {data.hex()}"
    for o in range(0, count * STRIDE, STRIDE):
        for place in places(EXPECTED[o + PRESENT]):
            assert FOUND[o + place] == EXPECTED[o + place], f"{framing} {data.hex()}: row {o // STRIDE}, {place}"
    return int(found)


@pytest.mark.slow
def test_batches_of_captures_leave_the_same_rows() -> None:
    counts = [same(*seen) for seen in batches()]
    assert sum(count > 0 for count in counts) > 1000 and -1 in counts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_varied_batches_leave_the_same_rows(seed: int) -> None:
    dice = random.Random(seed)
    counts = [same(*varied(dice.choice(batches()), dice)) for _ in range(10_000)]
    assert sum(count > 0 for count in counts) > 5000 and -1 in counts


@pytest.mark.slow
def test_batches_read_as_those_of_other_links_leave_the_same_rows() -> None:
    dice = random.Random(1)
    for data, framing, with_size in dice.sample(batches(), min(1000, len(batches()))):
        content = data[PREFIX[framing] if with_size else 0 :]
        for other in ("plain", "lowlatency"):
            same(content, other, False)
            same(content[: dice.randrange(len(content) + 1)], other, False)
