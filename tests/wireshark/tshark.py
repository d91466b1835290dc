"""What tshark with the plugin shows of a capture, in the shape of `tests/wireshark/expected.py`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from xml.parsers import expat

from lua_bridge.generate import plugin
from scapy_zenoh.schema import model
from scapy_zenoh.schema.extract import schema
from scapy_zenoh.schema.names import filter_of, record_filter
from scapy_zenoh.wireshark import isolated
from tests.wireshark.expected import MESSAGES, MOST, Item, Message, Reading, Shown, blanks

#: What the plugin adds to the fields of messages and rows have too; more of it leads from packet to packet.
SHORT = {"keyexpr": "key", "sn": "sn", "rid": "rid", "encoding": "encoding", "payload_len": "payload_len"}

#: Frames that are looked at: those of Zenoh, and those in which Wireshark met a mistake of ours.
FRAMES = "zenoh || _ws.lua || _ws.malformed"


class TsharkError(AssertionError):
    """tshark complains, or a mistake of the plugin shows in its output."""


def tshark_available() -> bool:
    """Whether tshark is installed."""
    return shutil.which("tshark") is not None


@cache
def plugin_file() -> Path:
    """The plugin as a file, for as long as the tests run."""
    path = Path(tempfile.mkdtemp()) / "zenoh.lua"
    path.write_text(plugin(), "utf-8")
    return path


def tshark(capture: Path, prefs: Mapping[str, str] = {}, most: int = MOST) -> Reading:  # noqa: B006, nobody changes it
    """The first packets of a capture as tshark shows them."""
    command = ["tshark", "-n", "-X", f"lua_script:{plugin_file()}", "-r", str(capture), "-c", str(most)]
    command += ["-T", "pdml", "-Y", FRAMES]
    for name, value in prefs.items():
        command += ["-o", f"{name}:{value}"]
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile("w+") as complaints:
        environment = isolated(Path(home))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, env=environment) as process:
            assert process.stdout is not None
            reader = _Pdml()
            while lines := process.stdout.readlines(1 << 20):  # whole tags: expat is slow on pieces of large ones
                reader.parser.Parse(b"".join(lines))
        complaints.seek(0)
        said = [line for line in complaints.read().splitlines() if line and not line.startswith("Running as user")]
    if process.returncode or said or reader.mistakes:
        raise TsharkError(f"{capture.name}: {[*said, *reader.mistakes][:5]}")
    return reader.reading


@dataclass
class _Open:
    """A message whose element has not ended."""

    depth: int
    message: Message
    start: int | None = None

    def place(self, pos: int) -> int:
        """A position counted from the start of the message.

        That is where its first item is: for the message itself PDML gives the start of its parent if that is later,
        also when the parent lies in other bytes.
        """
        if self.start is None:
            self.start = pos
        return pos - self.start


class _Pdml:
    """Takes PDML as it comes and keeps the messages."""

    def __init__(self) -> None:
        self.reading = Reading()
        self.mistakes: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.frame = 0
        self.depth = 0
        self.open: list[_Open] = []
        self.foreign = 0  # depth of a payload that another dissector shows
        self.expert = 0  # place of the expert information

    def start(self, element: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        self.depth += 1
        name, shown = attributes.get("name", ""), blanks(attributes.get("show", ""))
        if self.foreign:
            return
        if name.startswith("zenoh."):
            self.item(name[6:], shown, attributes)
        elif name == "num" and element == "field" and not self.open:
            self.frame = int(shown)
        elif name == "_ws.expert":
            self.expert = int(attributes["pos"])
        elif self.open and element == "proto" and not name.startswith("_ws"):
            self.foreign = self.depth
        text = shown + attributes.get("showname", "")
        if "Lua Error" in text or "Dissector bug" in text or "[Malformed Packet: Z" in text:
            self.mistakes.append(f"frame {self.frame}: {text}")

    def end(self, element: str) -> None:
        """An element ends."""
        if self.foreign == self.depth:
            self.foreign = 0
        if self.open and self.open[-1].depth == self.depth:
            self.open.pop()
        self.depth -= 1

    def item(self, name: str, shown: str, attributes: dict[str, str]) -> None:
        """An item of the plugin."""
        if name in ("srczid", "dstzid"):
            zids = self.reading.sources if name == "srczid" else self.reading.destinations
            zids.setdefault(self.frame, set()).add(shown)
            return
        if name in MESSAGES:
            self.open.append(_Open(self.depth, Message(self.frame, "")))
            self.reading.messages.append(self.open[-1].message)
            self.open[-1].message.items.append(Item(name, 0, int(attributes["size"]), "", ""))
            return
        if not self.open:
            if name in _kinds():
                self.mistakes.append(f"frame {self.frame}: {name} outside of a message")
            return
        opened = self.open[-1]
        message = opened.message
        if name == "msg":
            if message.kind:
                message.body = shown
            else:
                message.kind = shown
        elif name in SHORT:
            setattr(message, SHORT[name], shown)
        elif name == "payload":
            message.payload = (message.payload or "") + attributes.get("value", "")
        elif name == "malformed":
            message.malformed = True
        elif name.startswith("fault."):
            message.faults.append(Shown(name[6:], opened.place(self.expert)))
        elif name in _kinds():
            raw = attributes.get("unmaskedvalue") or attributes.get("value", "")
            at, size = opened.place(int(attributes["pos"])), int(attributes["size"])
            message.items.append(Item(name, at, size, _value(name, shown), raw))


# --- values -------------------------------------------------------------------------------------


@cache
def _kinds() -> dict[str, str]:
    """Every field and record of the messages: bytes, text, time or number."""
    found = {}
    for record in schema().records.values():
        found[record_filter(record.name)] = "record"
        for item in record.items:
            for name in model.item_name(item).split("/"):
                found[filter_of(record.name, name)] = _kind(item)
    return found


def _kind(item: model.Item) -> str:
    match item:
        case model.Bytes(form="bytes"):
            return "bytes"
        case model.Bytes() | model.Repeat(element=model.Text()):
            return "text"
        case model.Vle(time=True):
            return "time"
    return "number"


def _value(name: str, shown: str) -> str:
    match _kinds()[name]:
        case "text":
            return shown
        case "bytes":
            return ""
        case "time":
            return _nanoseconds(shown)
    return {"True": "1", "False": "0"}.get(shown, shown)  # as Wireshark says since 4.2


def _nanoseconds(shown: str) -> str:
    """``Nov 18, 2026 05:14:59.203685941 UTC``, since Wireshark 4.4 ``2026-11-18T05:14:59.203685941Z``."""
    seconds, _, fraction = shown.removesuffix("Z").removesuffix(" UTC").partition(".")
    form = "%b %d, %Y %H:%M:%S" if "," in seconds else "%Y-%m-%dT%H:%M:%S"
    moment = datetime.strptime(seconds, form).replace(tzinfo=timezone.utc)
    return str(int(moment.timestamp()) * 10**9 + int(fraction))
