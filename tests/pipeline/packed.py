"""Packages for the workers of a cluster, packed as docs/cluster.md says, but from what is installed here."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
#: What makes up a good part of the packages, and nobody imports.
UNUSED = ("__pycache__", "tests", "include")


def pack(archive: Path) -> None:
    """A tar of what ``pip install --target`` of the extra ``cluster`` brings; Spark is not in it."""
    with tarfile.open(archive, "w") as tar:
        for name in sorted(_wanted("scapy-zenoh", "cluster") - {"scapy-zenoh"}):
            for file in distribution(name).files or []:
                if not {"..", *UNUSED} & set(file.parts):
                    tar.add(os.path.realpath(str(file.locate())), str(file))
        tar.add(ROOT / "scapy_zenoh", "scapy_zenoh")  # with what is compiled
        tar.add(ROOT / "lua_bridge", "lua_bridge")


def _wanted(name: str, extra: str = "") -> set[str]:
    """A distribution and what it requires."""
    found = {name}
    for required in _requirements(name, extra):
        for inner in ("", *required.extras):
            if inner or required.name not in found:
                found |= _wanted(required.name, inner)
    return found


def _requirements(name: str, extra: str) -> Iterator[Requirement]:
    for text in requires(name) or []:
        required = Requirement(text)
        if required.marker is None or required.marker.evaluate({"extra": extra}):
            yield required
