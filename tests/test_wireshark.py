"""The plugin finds its way into Wireshark, and what it sees into Python."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lua_bridge
from scapy_zenoh import __version__, wireshark
from scapy_zenoh.cli import main
from scapy_zenoh.wireshark import WiresharkError, find_owner, install, open_capture, plugin_folder, zenoh_fields
from tests.conftest import LAB
from tests.streams import truth

needs_tshark = [
    pytest.mark.tshark,
    pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed"),
]
QUERIES = LAB / "captures" / "s04_query.pcapng"
ENCODINGS = LAB / "captures" / "s13_encodings.pcapng"

PERSONAL = Path(".local", "lib", "wireshark", "plugins")
FOREIGN = 'local p = Proto("zenoh", "Somebody else\'s Zenoh")\n'

# One field of every type, on the first byte of whatever goes to port 7447.
KINDS = r"""
local p = Proto("kinds", "Every kind of field")
local f = {
  text = ProtoField.string("kinds.text", "t"), wide = ProtoField.uint64("kinds.wide", "w"),
  hex = ProtoField.uint16("kinds.hex", "h", base.HEX),
  named = ProtoField.uint8("kinds.named", "n", base.DEC, {[7] = "g"}),
  signed = ProtoField.int32("kinds.signed", "s"), flag = ProtoField.bool("kinds.flag", "f", 8, nil, 0x20),
  bytes = ProtoField.bytes("kinds.bytes", "b"), frame = ProtoField.framenum("kinds.frame", "f"),
  real = ProtoField.double("kinds.real", "r"), took = ProtoField.relative_time("kinds.took", "t"),
  at = ProtoField.absolute_time("kinds.at", "a", base.UTC), here = ProtoField.absolute_time("kinds.here", "h"),
  ip = ProtoField.ipv4("kinds.ip", "i"),
}
p.fields = f
local wrong = ProtoExpert.new("kinds.wrong", "Wrong", expert.group.MALFORMED, expert.severity.ERROR)
p.experts = {wrong}
function p.dissector(tvb, pinfo, tree)
  local t, first = tree:add(p, tvb()), tvb(0, 1)
  t:add(f.text, "a/<b>&\"'\\/é€"); t:add(f.text, string.rep("k", 5000)); t:add(f.text, "")
  t:add(f.wide, first, UInt64.new(0xffffffff, 0xffffffff)); t:add(f.wide, first, UInt64.new(0, 0))
  t:add(f.hex, first, 31); t:add(f.named, first, 7); t:add(f.signed, first, -3)
  t:add(f.flag, first, 0x20); t:add(f.flag, first, 0)
  t:add(f.bytes, ByteArray.new("00ff10"):tvb("x")()); t:add(f.bytes, tvb(0, 0))
  t:add(f.bytes, ByteArray.new(string.rep("ab", 70000)):tvb("x")())
  t:add(f.frame, 3); t:add(f.real, first, 1.5)
  t:add(f.took, NSTime.new(1, 123456789)); t:add(f.took, NSTime.new(0, 5)); t:add(f.took, NSTime.new(0, -5))
  t:add(f.at, NSTime.new(1794978899, 203685941)); t:add(f.here, NSTime.new(1794978899, 5))
  t:add(f.ip, Address.ip("10.0.0.1"))
  t:add_proto_expert_info(wrong)
  local again = tree:add(p, tvb())
  again:add(f.text, "second")
end
DissectorTable.get("tcp.port"):add(7447, p)
"""
KIND_VALUES: dict[str, list[wireshark.Value]] = {
    "kinds.text": ["a/<b>&\"'\\/é€", "k" * 5000, "", "second"],
    "kinds.wide": [2**64 - 1, 0],
    "kinds.hex": [31],
    "kinds.named": [7],
    "kinds.signed": [-3],
    "kinds.flag": [True, False],
    "kinds.bytes": [b"\x00\xff\x10", b"", b"\xab" * 70000],
    "kinds.frame": [3],
    "kinds.real": [1.5],
    "kinds.took": [1_123_456_789, 5, -5],
    "kinds.at": [1794978899_203685941],
    "kinds.here": [1794978899_000000005],
    "kinds.ip": ["10.0.0.1"],
    "kinds.wrong": [True],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user who has no plugins yet."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WIRESHARK_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin with one field of every type, under the name ``kinds``."""
    monkeypatch.setattr(lua_bridge, "plugin", lambda name: KINDS)


@pytest.fixture
def no_tshark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wireshark, "find_tshark", lambda: None)
    monkeypatch.setattr("scapy_zenoh.lua_command.find_tshark", lambda: None)


def complaint(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The one line that a failing command gives."""
    assert main(args) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    return line


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


# --- installing ---------------------------------------------------------------------------------


class TestInstall:
    pytestmark = needs_tshark

    def test_folder_is_the_one_wireshark_names(self, home: Path) -> None:
        assert plugin_folder() == home / PERSONAL

    def test_tshark_loads_what_was_installed(self, home: Path) -> None:
        path = install(lua_bridge.plugin())
        assert path == home / PERSONAL / "zenoh.lua"
        done = subprocess.run(["tshark", "-G", "protocols"], capture_output=True, text=True)
        assert "zenoh" in [line.split("\t")[2] for line in done.stdout.splitlines()]
        assert "Lua" not in done.stderr

    def test_an_older_version_of_ours_is_replaced(self, home: Path) -> None:
        text = lua_bridge.plugin()
        put(home / PERSONAL, "zenoh.lua", text.replace(__version__, "0.0.1"))
        assert install(text).read_text() == text

    def test_a_lua_plugin_with_the_same_name_is_noticed(self, home: Path) -> None:
        other = put(home / PERSONAL / "deep", "other.lua", FOREIGN)
        with pytest.raises(WiresharkError, match="--name") as raised:
            install(lua_bridge.plugin())
        assert str(raised.value).startswith(f"{other} has a protocol zenoh already")
        assert not (home / PERSONAL / "zenoh.lua").exists()
        assert install(lua_bridge.plugin("zenoh2"), "zenoh2").name == "zenoh2.lua"

    def test_a_name_that_a_plugin_computes_is_noticed(self, home: Path) -> None:
        put(home / PERSONAL, "other.lua", 'local name = "zen" .. "oh"\nlocal p = Proto(name, "Hidden")\n')
        with pytest.raises(WiresharkError, match="another of its plugins has a protocol zenoh already"):
            install(lua_bridge.plugin())

    def test_a_name_of_wireshark_itself_is_noticed(self, home: Path) -> None:
        with pytest.raises(WiresharkError, match="Wireshark .* has a protocol mqtt already"):
            install(lua_bridge.plugin("mqtt"), "mqtt")

    @pytest.mark.parametrize("text", ['-- Proto("zenoh", "x")\n', 'Proto("zenoh_old", "x")\n', 'print("hello")', ""])
    def test_what_claims_another_name_is_no_clash(self, text: str, home: Path) -> None:
        put(home / PERSONAL, "other.lua", text)
        (home / PERSONAL / "folder.lua").mkdir()
        (home / PERSONAL / "dangling.lua").symlink_to("nowhere")
        assert find_owner("zenoh", home / PERSONAL / "zenoh.lua") is None

    def test_what_would_not_load_is_not_installed(self, home: Path) -> None:
        put(home / PERSONAL, "other.lua", 'local p = Proto("other", "The same words")\n')
        with pytest.raises(WiresharkError, match="two protocols with the same description"):
            install('local p = Proto("zenoh", "The same words")\n')
        assert not (home / PERSONAL / "zenoh.lua").exists()

    def test_a_broken_plugin_of_somebody_else_is_no_obstacle(self, home: Path) -> None:
        put(home / PERSONAL, "broken.lua", "this is not Lua")
        assert install(lua_bridge.plugin()).exists()

    def test_a_file_of_somebody_else_is_not_overwritten(self, home: Path) -> None:
        other = put(home / PERSONAL, "zenoh.lua", FOREIGN)
        with pytest.raises(WiresharkError, match="is another plugin"):
            install(lua_bridge.plugin())
        assert other.read_text() == FOREIGN


@pytest.mark.parametrize(
    "platform, environment, expected",
    [
        ("linux", {"HOME": "/h"}, "/h/.local/lib/wireshark/plugins"),
        ("darwin", {"HOME": "/h"}, "/h/.local/lib/wireshark/plugins"),
        ("win32", {"APPDATA": "/roaming"}, "/roaming/Wireshark/plugins"),
        ("win32", {"APPDATA": "/roaming", "WIRESHARK_CONFIG_DIR": "/c"}, "/c/plugins"),
    ],
)
@pytest.mark.usefixtures("no_tshark")
def test_without_tshark_the_folder_is_the_usual_one(
    platform: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert plugin_folder(environment) == Path(expected)


# --- the command --------------------------------------------------------------------------------


def test_command_prints_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lua"]) == 0
    assert capsys.readouterr() == (lua_bridge.plugin(), "")


def test_command_writes_the_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "z.lua"
    assert main(["lua", "-o", str(file), "--name", "other"]) == 0
    assert capsys.readouterr() == ("", f"wrote {file}\n")
    assert file.read_text() == lua_bridge.plugin("other")


def test_module_is_the_same_command() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, "-m", "lua_bridge"], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, lua_bridge.plugin(), "")


@pytest.mark.usefixtures("no_tshark")
def test_command_installs_where_wireshark_usually_looks(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lua", "--install"]) == 0
    where, unsure, next_step = capsys.readouterr().out.splitlines()
    assert where == f"installed {home / PERSONAL / 'zenoh.lua'}"
    assert "no tshark" in unsure
    assert "Ctrl+Shift+L" in next_step
    assert (home / PERSONAL / "zenoh.lua").read_text() == lua_bridge.plugin()


@pytest.mark.usefixtures("no_tshark")
def test_folder_that_cannot_be_written(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home / PERSONAL.parent, "plugins", "a file in the way")
    assert str(home / PERSONAL) in complaint(capsys, "lua", "--install")


@pytest.mark.usefixtures("no_tshark")
def test_clash_is_one_line_that_names_the_way_out(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home / PERSONAL, "other.lua", FOREIGN)
    assert "--name" in complaint(capsys, "lua", "--install")


def test_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file or directory" in complaint(capsys, "lua", "-o", str(tmp_path / "missing" / "z.lua"))


@pytest.mark.parametrize("name", ["", "Zenoh", "7up", "a b", 'x"'])
def test_what_is_no_name_of_a_protocol(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--name" in complaint(capsys, "lua", "--name", name)


# --- reading captures ---------------------------------------------------------------------------


def sent(capture: Path) -> Iterator[tuple[str, bytes, str | None]]:
    """Key, payload and encoding of what the applications published and replied."""
    for event in truth(capture)["events"]:
        if event["op"] in ("put", "reply") and "hex" in event["payload"]:
            yield event["key"], bytes.fromhex(event["payload"]["hex"]), event.get("encoding")


def reads(read: Callable[[], Any]) -> str:
    """What a failing read complains about."""
    with pytest.raises(WiresharkError) as raised:
        read()
    return str(raised.value)


class TestCapture:
    pytestmark = needs_tshark

    @pytest.mark.usefixtures("kinds")
    def test_every_kind_of_field_has_its_type_and_all_its_values(self) -> None:
        packet = open_capture(QUERIES, display_filter="kinds", name="kinds")[0]
        found = zenoh_fields(packet, "kinds")
        assert found == KIND_VALUES
        assert [type(v) for vs in found.values() for v in vs] == [type(v) for vs in KIND_VALUES.values() for v in vs]

    @pytest.mark.parametrize("capture", [QUERIES, ENCODINGS], ids=lambda c: c.stem)
    def test_what_was_sent_is_found(self, capture: Path) -> None:
        with open_capture(capture, display_filter="zenoh") as packets:
            found = [zenoh_fields(packet) for packet in packets]
        expected = list(sent(capture))
        assert expected
        for key, payload, encoding in expected:
            assert any(
                key in fields.get("zenoh.keyexpr", [])
                and payload in fields.get("zenoh.payload", [])
                and (encoding is None or encoding in fields.get("zenoh.encoding", []))
                for fields in found
            ), (key, payload, encoding)
        zids = {zid for fields in found for zid in fields.get("zenoh.srczid", [])}
        assert zids == {node["zid"] for node in truth(capture)["nodes"].values()}

    def test_filters_follow_the_name(self) -> None:
        other = list(open_capture(QUERIES, name="other", display_filter='other.msg == "request"'))
        usual = list(open_capture(QUERIES, display_filter='zenoh.msg == "request"'))
        assert len(other) == len(usual) > 0
        assert zenoh_fields(other[0], "other")["other.rid"] == zenoh_fields(usual[0])["zenoh.rid"]

    def test_two_passes_know_the_future(self) -> None:
        asked = 'zenoh.msg == "request" and zenoh.response_in'
        for packet in open_capture(QUERIES, two_pass=True, display_filter=asked):
            assert all(isinstance(n, int) and n > int(packet.number) for n in zenoh_fields(packet)["zenoh.response_in"])
            break
        else:
            pytest.fail("no request knows its response")

    def test_plugins_of_the_user_play_no_part(self, home: Path) -> None:
        put(home / PERSONAL, "other.lua", FOREIGN)
        assert list(open_capture(QUERIES, display_filter="zenoh.msg"))

    def test_other_ports_are_read_too(self) -> None:
        capture = LAB / "captures" / "s26_ports.pcapng"
        assert list(open_capture(capture, ports=[19999], display_filter="zenoh.msg"))

    def test_all_that_pyshark_offers_without_an_event_loop(self) -> None:
        with open_capture(QUERIES) as capture:
            assert [capture.next().number, capture.next().number, capture[4].number] == ["1", "2", "5"]
        count = truth(QUERIES)["capture"]["packets"]
        assert len(list(capture)) == count
        assert len(list(open_capture(QUERIES, only_summaries=True))) == count
        capture = open_capture(QUERIES)
        capture.load_packets(3)
        assert len(capture) == 3

    def test_works_inside_an_event_loop(self) -> None:
        async def first() -> str:
            here = next(iter(open_capture(QUERIES))).number
            there = await asyncio.to_thread(lambda: next(iter(open_capture(QUERIES))).number)
            assert here == there
            return str(here)

        assert asyncio.run(first()) == "1"

    def test_what_cannot_be_read_says_so(self, tmp_path: Path) -> None:
        words = put(tmp_path, "words.pcap", "no capture at all, only words")
        assert "nosuch.field" in reads(lambda: list(open_capture(QUERIES, display_filter="nosuch.field")))
        assert "words.pcap" in reads(lambda: list(open_capture(words)))
        assert "missing.pcap" in reads(lambda: open_capture(tmp_path / "missing.pcap"))
        assert "keys.txt" in reads(lambda: open_capture(QUERIES, keylog=tmp_path / "keys.txt"))

    def test_a_capture_cut_short_is_read_to_its_end(self, tmp_path: Path) -> None:
        whole = QUERIES.read_bytes()
        cut = tmp_path / "cut.pcapng"
        cut.write_bytes(whole[: len(whole) // 2 + 1])
        with pytest.warns(UserWarning, match="cut short"):
            assert len(list(open_capture(cut))) > 50

    def test_a_plugin_that_does_not_load_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lua_bridge, "plugin", lambda name: "this is not Lua")
        assert "Lua: " in reads(lambda: open_capture(QUERIES, name="broken"))

    @pytest.mark.usefixtures("no_tshark")
    def test_without_tshark_it_says_so(self) -> None:
        assert "tshark is not installed" in reads(lambda: open_capture(QUERIES, name="nowhere"))

    def test_without_pyshark_it_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "scapy_zenoh.pyshark_capture", None)
        assert "scapy-zenoh[wireshark]" in reads(lambda: open_capture(QUERIES))
