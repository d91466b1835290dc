"""The plugin as Wireshark sees it: it loads in silence, and a packet looks the same whenever it is dissected."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lua_bridge import plugin
from scapy_zenoh.recording import Recording
from scapy_zenoh.wireshark import isolated
from tests.conftest import captures, truth_path
from tests.rows.files import load
from tests.wire import pcap
from tests.wireshark import node, sharkd
from tests.wireshark.damage import damaged
from tests.wireshark.expected import MOST
from tests.wireshark.node import Frame, Node
from tests.wireshark.tshark import tshark

SAMPLE = Path(__file__).parents[2] / "samples" / "zenoh.lua"

#: Wireshark itself gives 19999 to TLS; what its other dissectors make of payloads is not compared.
PREFS = {"zenoh.tcp_ports": "7447,19999", "zenoh.payload_limit": "0"}


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugin") / "zenoh.lua"
    path.write_text(plugin())
    return path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    return path


def run(lua: Path, capture: Path, *options: str) -> str:
    """What tshark prints; it must not complain."""
    with tempfile.TemporaryDirectory() as home:
        command = ["tshark", "-n", "-X", f"lua_script:{lua}", "-r", str(capture), *options]
        done = subprocess.run(command, capture_output=True, env=isolated(Path(home)))
    complaints = [line for line in done.stderr.decode().splitlines() if line and not line.startswith("Running as user")]
    assert complaints == []
    return done.stdout.decode("utf-8", "replace")


def small(limit: int, rough: bool = True) -> list[Any]:
    """Captures whose packets can all be looked at twice; not ``rough``: only those without losses and disorder."""
    chosen = [p for p in captures() if p.stat().st_size < limit]
    calm = [p for p in chosen if rough or "damage" not in json.loads(truth_path(p).read_text())]
    return [pytest.param(p, id=p.name.split(".")[0]) for p in calm]


# --- loading ------------------------------------------------------------------------------------


def test_committed_plugin_is_fresh() -> None:
    """If this fails: scapy-zenoh lua -o samples/zenoh.lua."""
    assert SAMPLE.read_text() == plugin()


def test_header_names_version_and_schema() -> None:
    from lua_bridge.generate import schema_hash
    from scapy_zenoh import __version__

    head = plugin()[:500]
    assert f"scapy-zenoh {__version__}" in head and schema_hash() in head


@pytest.mark.tshark
def test_luacheck_finds_nothing(lua: Path) -> None:
    done = subprocess.run(["luacheck", "--no-color", "-q", str(lua)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.tshark
@pytest.mark.parametrize("wireshark", [node, sharkd], ids=["wireshark-4.4", "installed"])
def test_plugin_loads_without_a_word(wireshark: Any, lua: Path, empty: Path) -> None:
    loaded = wireshark.dissect(empty, lua, filters=["zenoh.push"])  # a filter that only the plugin makes possible
    assert loaded.log == wireshark.dissect(empty, None, filters=["frame"]).log


@pytest.mark.tshark
def test_every_field_is_registered_once(lua: Path) -> None:
    done = subprocess.run(["tshark", "-G", "fields", "-X", f"lua_script:{lua}"], capture_output=True, text=True)
    names = Counter(line.split("\t")[2] for line in done.stdout.splitlines() if "\tzenoh." in line and line[0] == "F")
    assert len(names) > 400
    assert [name for name, count in names.items() if count > 1] == []
    assert all(name == name.lower() for name in names)


@pytest.mark.tshark
def test_another_owner_of_the_name_is_said_clearly(lua: Path, empty: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.lua"
    other.write_text('local p = Proto("zenoh", "Zenoh Protocol")\n')
    command = ["tshark", "-r", str(empty), "-X", f"lua_script:{other}"]
    done = subprocess.run([*command, "-X", f"lua_script:{lua}"], capture_output=True, text=True)
    assert "another plugin already owns the name 'zenoh'" in done.stderr and "--name" in done.stderr
    renamed = tmp_path / "renamed.lua"
    renamed.write_text(plugin("zenoh2"))
    quiet = subprocess.run([*command, "-X", f"lua_script:{renamed}"], capture_output=True, text=True)
    alone = subprocess.run(["tshark", "-r", str(empty)], capture_output=True, text=True)
    assert quiet.stderr == alone.stderr


@pytest.mark.parametrize("name", ["", "Zenoh", "9z", "a b", "a.b"])
def test_name_that_wireshark_would_refuse_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="a protocol name is"):
        plugin(name)


# --- dissecting again ---------------------------------------------------------------------------


def errors(frames: tuple[Frame, ...]) -> list[str]:
    """Lua errors and bugs that trees tell of."""
    return [n.label for frame in frames for n in frame.nodes if "Lua Error" in n.label or "bug" in n.label.lower()]


@pytest.mark.tshark
@pytest.mark.slow
@pytest.mark.parametrize("capture", small(20_000))
@pytest.mark.parametrize("wireshark", [node, sharkd], ids=["wireshark-4.4", "installed"])
def test_packets_look_the_same_in_any_order(wireshark: Any, capture: Path, lua: Path) -> None:
    count = len(load(capture).records)
    order = [*range(1, count + 1), *range(1, count + 1)]
    random.Random(capture.name).shuffle(order)
    seen = wireshark.dissect(capture, lua, prefs=PREFS, order=order)
    assert errors(seen.frames) == []
    shows = any(node.abbrev == "zenoh" for frame in seen.frames for node in frame.nodes)
    assert shows or not list(Recording([capture]))
    looks: dict[int, Frame] = {}
    for frame in seen.frames:
        assert looks.setdefault(frame.number, frame) == frame


def values(nodes: tuple[Node, ...]) -> list[tuple[Any, ...]]:
    """What is in a tree, without the wording that differs between versions."""
    return [
        (n.abbrev, n.value, n.start, n.length, n.source, values(n.children)) for n in nodes if n.abbrev != "_ws.expert"
    ]


@pytest.mark.tshark
@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("capture", small(20_000, rough=False))
def test_both_wiresharks_agree(capture: Path, seed: int | None, lua: Path, tmp_path: Path) -> None:
    """Also on copies that are damaged anywhere. Lost segments are up to the TCP layer, which differs."""
    if seed is not None:
        capture = damaged(capture, seed, tmp_path / "damaged.pcap", aligned=False)
    old, new = (w.dissect(capture, lua, prefs=PREFS, wanted=("zenoh",)) for w in (sharkd, node))
    assert [f.number for f in old.frames] == [f.number for f in new.frames]
    for mine, theirs in zip(old.frames, new.frames, strict=True):
        assert values(mine.nodes) == values(theirs.nodes), f"frame {mine.number}"


@pytest.mark.tshark
@pytest.mark.slow
@pytest.mark.parametrize("capture", small(60_000))
def test_two_passes_show_what_one_does(capture: Path, lua: Path) -> None:
    once, twice = (zenoh_lines(run(lua, capture, "-V", *passes)) for passes in ((), ("-2",)))
    assert once == twice


def zenoh_lines(text: str) -> list[str]:
    """The lines of Zenoh in the output of tshark -V, without what only the rest of the capture can tell."""
    lines, inside = [], False
    for line in text.splitlines():
        if line[:1].strip():
            inside = line.startswith("Zenoh")
            lines += [line] if line.startswith("Frame ") else []
        forward = (
            "First response in: ",
            "Final in: ",
            "Reassembled in: ",
            "All current declarations sent by",
            "No RESPONSE_FINAL for this request",
            "[Note: final_missing]",
        )
        if inside and line[:1] != "F" and not any(words in line for words in forward):
            lines.append(line)
    return [line for line in lines if not line.strip().startswith(("[Severity level", "[Group"))]


# --- against what the applications did ----------------------------------------------------------


Samples = Counter[tuple[str, str, int]]  # key, kind, length of the payload


def delivered(truth: dict[str, Any]) -> dict[str, Samples]:
    """For each client that keeps a log: the samples that came to it over the wire, once for all its subscribers."""
    logs: dict[tuple[str, str], Samples] = {}
    tokens = {event["key"] for event in truth["events"] if "token" in event["op"] and "key" in event}
    prefix = "tenant/one/" if "namespace" in truth["what"] else ""
    for sample in truth.get("rx_samples", ()):
        node = truth["nodes"][sample["node"]]
        own = any(e["node"] == sample["node"] and e.get("key") == sample["key"] and e["op"] in ("put", "delete")
                  for e in truth["events"])  # fmt: skip
        if node.get("role") == "client" and sample["key"] not in tokens and not own:
            length = sample.get("payload", {}).get("len", 0)
            log = logs.setdefault((node["zid"], sample["sub"]), Counter())
            log[prefix + sample["key"], sample["kind"], length] += 1
    found: dict[str, Samples] = {}
    for (zid, _), log in logs.items():
        found[zid] = found.get(zid, Counter()) | log
    return found


def whole(capture: Path) -> bool:
    """The capture holds all that happened, as it was sent, and is soon read."""
    truth = json.loads(truth_path(capture).read_text())
    if truth.get("damage") or truth.get("capture_started_ns") or truth["capture"].get("snaplen"):
        return False
    return truth["link"] not in ("quic", "tls") and bool(delivered(truth)) and len(load(capture).records) <= MOST


DELIVERING = [pytest.param(p, id=p.name.split(".")[0]) for p in captures() if whole(p)]

#: Bodies of the messages that bring samples: of publications, and of replies for subscribers that ask for the past.
BODIES = {"put": "PUT", "del": "DELETE", "reply_put": "PUT", "reply_del": "DELETE"}


@pytest.mark.tshark
@pytest.mark.slow
@pytest.mark.parametrize("capture", DELIVERING)
def test_samples_that_were_delivered_are_shown(capture: Path) -> None:
    reading = tshark(capture, PREFS)
    shown: dict[str, Samples] = {}
    for message in reading.messages:
        if message.body in BODIES and message.key is not None:
            for receiver in reading.destinations.get(message.frame, ()):
                sample = message.key, BODIES[message.body], int(message.payload_len or 0)
                shown.setdefault(receiver, Counter())[sample] += 1
    for zid, samples in delivered(json.loads(truth_path(capture).read_text())).items():
        missing = {sample: count for sample, count in samples.items() if shown[zid][sample] < count}
        assert not missing, f"{zid}: {missing}"


@pytest.mark.tshark
def test_tools_are_there() -> None:
    """Everything above is only worth something where it runs."""
    assert shutil.which("tshark") and sharkd.sharkd_available() and node.wiregasm_available()
