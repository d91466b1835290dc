"""Links made by hand: what the plugin knows at each packet, what it notes, and that hostile bytes do not harm it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lz4.block
import pytest

from scapy_zenoh.wireshark import isolated
from tests.wire import ACK, PSH, SYN, TCP, Record, ethernet, ipv4, pcap, record, tcp
from tests.wireshark.tshark import plugin_file

pytestmark = pytest.mark.tshark

# Client 0b0b and router a1b2c3, whose cookie is one byte; patch 1.
INIT_SYN = bytes.fromhex("c1 09 12 0b0b 0a c8ff 27 01")
INIT_ACK = bytes.fromhex("e1 09 20 c3b2a1 0a 00c0 01 99 27 01")
OPEN_SYN = bytes.fromhex("42 0a 00 01 99")
OPEN_ACK = bytes.fromhex("62 0a 00")
COMPRESSION = b"\x86"  # before Patch in the chain


def vle(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def frame(sn: int, *messages: bytes) -> bytes:
    return b"\x25" + vle(sn) + b"".join(messages)


def put(key: bytes, data: bytes = b"x") -> bytes:
    return b"\x7d\x00" + vle(len(key)) + key + b"\x01" + vle(len(data)) + data


class Link:
    """A TCP connection; batches go from the client (0) or the router (1), a millisecond apart."""

    def __init__(self, client: int = 50000, server: int = 7447) -> None:
        self.ports, self.seq, self.time = (client, server), [1000, 2000], 10**18
        self.records: list[Record] = []

    def connect(self) -> Link:
        """Begin a connection, also another one between the same ends."""
        self.seq = [self.seq[0] + 10**8, self.seq[1] + 10**8]
        self.send(0, b"", flags=SYN)
        self.seq[0] += 1
        self.send(1, b"", flags=SYN | ACK)
        self.seq[1] += 1
        return self

    def send(self, direction: int, data: bytes, after: int = 10**6, flags: int = ACK | PSH) -> Link:
        ends, ports = ("10.0.0.1", "10.0.0.2"), self.ports
        if direction:
            ends, ports = ends[::-1], ports[::-1]
        self.time += after
        segment = tcp(*ports, data, seq=self.seq[direction], ack=self.seq[1 - direction], flags=flags)
        self.records.append(record(self.time, ethernet(ipv4(*ends, TCP, segment))))
        self.seq[direction] += len(data)
        return self

    def batch(self, direction: int, content: bytes, after: int = 10**6) -> Link:
        data = len(content).to_bytes(2, "little") + content
        for start in range(0, len(data), 1400):
            self.send(direction, data[start : start + 1400], after)
        return self

    def opened(self, option: bytes = b"") -> Link:
        for direction, content in enumerate((INIT_SYN, INIT_ACK)):
            self.batch(direction, content[:-2] + option + content[-2:])
        return self.batch(0, OPEN_SYN).batch(1, OPEN_ACK)

    def write(self, folder: Path) -> Path:
        path = folder / "crafted.pcap"
        path.write_bytes(pcap(self.records, nano=True))
        return path


def tshark(path: Path, *options: str) -> str:
    """What tshark prints; complaints and mistakes of ours are failures. Nothing here may take long."""
    command = ["tshark", "-n", "-X", f"lua_script:{plugin_file()}", "-r", str(path), *options]
    done = subprocess.run(command, capture_output=True, env=isolated(path.parent), timeout=100)
    complaints = [line for line in done.stderr.decode().splitlines() if line and not line.startswith("Running as user")]
    shown = done.stdout.decode("utf-8", "replace")
    assert complaints == [] and "Lua Error" not in shown
    return shown


def fields(path: Path, *names: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    """The values of some fields, packet by packet, where there are any."""
    printed = [part for name in names for part in ("-e", f"zenoh.{name}")]
    lines = tshark(path, "-T", "fields", *printed, *options).split("\n")
    return [line.split("\t") for line in lines if line.strip()]


# --- what is known ------------------------------------------------------------------------------


def test_answers_lead_to_their_request(tmp_path: Path) -> None:
    ask, answer, final = b"\x7c\x05\x00\x01q\x03", b"\x7b\x05\x00\x01q\x04" + b"\x01\x01x", b"\x1a\x05"
    link = Link().opened().batch(0, frame(0, ask)).batch(1, frame(0, answer), after=10**9)
    path = link.batch(1, frame(1, final), after=500_000_000).write(tmp_path)
    found = fields(path, "msg", "rid", "request_in", "response_time", options=("-Y", "zenoh.rid"))
    assert found[0] == ["frame,request,query", "5", "", ""]
    assert found[1] == ["frame,response,reply_put", "5", "5", "1.000000000"]
    assert found[2] == ["frame,response_final", "5", "5", "1.500000000"]
    (forward,) = fields(path, "response_in", "final_in", options=("-2", "-Y", "zenoh.request"))
    assert forward == ["6", "7"]


def test_number_leads_to_its_declaration(tmp_path: Path) -> None:
    declare, push = bytes.fromhex("1e 20 07 00 04") + b"demo", bytes.fromhex("7d 07 02") + b"/a" + b"\x01\x01x"
    path = Link().opened().batch(0, frame(0, declare)).batch(0, frame(1, push)).write(tmp_path)
    found = fields(path, "keyexpr", "declared_in", "srczid", "dstzid", options=("-Y", "zenoh.push"))
    assert found == [["demo/a", "5", "b0b", "a1b2c3"]]


def test_fragments_lead_to_their_message(tmp_path: Path) -> None:
    whole = put(b"big", b"A" * 40)
    link = Link().opened().batch(0, b"\xe6\x00\x02" + whole[:20]).batch(0, b"\x26\x01" + whole[20:])
    path = link.write(tmp_path)
    assert fields(path, "keyexpr", "payload_len", "fragment_in", options=("-Y", "zenoh.push")) == [["big", "40", "5,6"]]
    assert fields(path, "reassembled_in", options=("-2", "-Y", "zenoh.fragment")) == [["6"], ["6"]]


def test_findings_are_noted_once_and_where_they_are(tmp_path: Path) -> None:
    ask = b"\x7c\x05\x00\x01q\x03"
    link = Link().opened().batch(0, frame(0, put(b"a"))).batch(0, frame(3, put(b"a"))).batch(0, frame(4, ask))
    path = link.batch(0, frame(5, b"\x5d\x09\x01\x01\x78")).batch(0, b"\x03\x00").batch(0, b"\x03\x00").write(tmp_path)
    found = fields(path, "msg", "note", options=("-Y", "zenoh.note"))
    assert found == [
        ["frame,push,put", "sequence_gap"],
        ["frame,push,put", "unresolved_key"],
        ["close", "final_missing"],
    ]


def test_capture_that_begins_late_says_so_once(tmp_path: Path) -> None:
    link = Link()
    for sn in range(3):
        link.batch(0, frame(sn, put(b"a")))
    assert [note for _, note in fields(link.write(tmp_path), "msg", "note")] == ["late_capture", "", ""]


def test_stray_fragment_is_no_message(tmp_path: Path) -> None:
    """The lane marks first fragments, so one that is not marked does not begin a message."""
    link = Link().opened().batch(0, b"\xe6\x00\x02" + put(b"big", b"A" * 40)[:20]).batch(0, frame(1, put(b"a")))
    path = link.batch(0, b"\x26\x02" + put(b"fake")).write(tmp_path)
    assert fields(path, "keyexpr") == [["a"]]


@pytest.mark.parametrize("before", [b"GET / HTTP/1.1\r\n\r\n", b"junk that is nothing"], ids=["http", "junk"])
@pytest.mark.parametrize("port", [7447, 9000])
def test_ends_are_used_again(before: bytes, port: int, tmp_path: Path) -> None:
    link = Link(server=port).connect().send(0, before).send(1, b"HTTP/1.1 200 OK\r\n\r\n")
    path = link.connect().opened().batch(0, frame(0, put(b"a"))).batch(0, frame(1, put(b"a"))).write(tmp_path)
    assert fields(path, "msg")[-1] == ["frame,push,put"]


def test_second_handshake_counts(tmp_path: Path) -> None:
    link = Link().batch(0, INIT_SYN).batch(1, INIT_ACK)
    packed = b"\x01" + lz4.block.compress(frame(0, put(b"a", b"x" * 200)), store_size=False)
    path = link.opened(COMPRESSION).batch(0, packed).write(tmp_path)
    assert fields(path, "msg", "payload_len")[-1] == ["frame,push,put", "200"]


# --- what the user decides ----------------------------------------------------------------------


def test_decode_as_takes_the_port_away(tmp_path: Path) -> None:
    path = Link().opened().write(tmp_path)
    assert fields(path, "msg", options=("-d", "tcp.port==7447,data", "-o", "zenoh.heuristics:FALSE")) == []


@pytest.mark.parametrize("pattern", ["**/pose", "a/**/b", "x/**", "*/y"])
def test_payload_goes_to_the_dissector_of_its_key(pattern: str, tmp_path: Path) -> None:
    keys = {"**/pose": (b"pose", b"r/pose"), "a/**/b": (b"a/b", b"a/c/d/b"), "x/**": (b"x", b"x/1/2"), "*/y": (b"1/y",)}
    link = Link().opened()
    for sn, key in enumerate((*keys[pattern], b"other")):
        link.batch(0, frame(sn, put(key, b'{"a":1}')))
    option = f"zenoh.payload_dissectors:{pattern}=json"
    found = fields(link.write(tmp_path), "keyexpr", options=("-o", option, "-Y", "json"))
    assert found == [[key.decode()] for key in keys[pattern]]


def test_payload_that_leads_back_here_is_left_alone(tmp_path: Path) -> None:
    path = Link().opened().batch(0, frame(0, put(b"a", INIT_SYN), put(b"b"))).write(tmp_path)
    found = fields(path, "keyexpr", options=("-o", "zenoh.payload_dissectors:**=zenoh"))
    assert found == [["a,b"]]


def test_serial_line_in_a_user_link_type(tmp_path: Path) -> None:
    """Connecting, KEEP_ALIVE, CLOSE, an idle line, and a frame whose checksum is wrong."""
    wires = ["0201010101010101 00", "0203010101010101 00", "01020106 04ba6c6af8 00", "0102020203 05ec577bf8 00", "00",
             "01020106 04ba6c6af9 00"]  # fmt: skip
    path = tmp_path / "line.pcap"
    path.write_bytes(pcap([record(10**18 + i, bytes.fromhex(wire)) for i, wire in enumerate(wires)], 147, nano=True))
    option = 'uat:user_dlts:"User 0 (DLT=147)","zenoh_serial","0","","0",""'
    found = fields(path, "serial.init", "serial.ack", "msg", options=("-o", option, "-e", "zenoh.fault.bad_checksum"))
    assert [row[:3] for row in found] == [
        ["1", "0", ""],
        ["1", "1", ""],
        ["0", "0", "keep_alive"],
        ["0", "0", "close"],
        ["0", "0", "keep_alive"],
    ]
    assert [bool(row[3]) for row in found] == [False] * 4 + [True]
    assert "serial INIT+ACK" in tshark(path, "-o", option)


# --- hostile bytes ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False], ids=["open", "undecided"])
def test_zeros_end(known: bool, tmp_path: Path) -> None:
    link = Link()
    if known:
        link.opened()
        link.seq[0] += 5000  # a hole
    for _ in range(40):
        link.send(0, b"\x09" + bytes(1399))
    assert "frame" not in str(fields(link.write(tmp_path), "msg")[4:])


def test_many_closes_are_told_of_briefly(tmp_path: Path) -> None:
    link = Link().opened()
    for sn in range(2):
        link.batch(0, frame(sn, *(b"\x5c" + vle(1000 * sn + i) + b"\x00\x03" for i in range(1000))))
    path = link.batch(0, b"\x03\x00" * 200).write(tmp_path)
    notes = [note for _, note in fields(path, "msg", "note") if note]
    assert notes == ["final_missing"]


@pytest.mark.slow
def test_packet_with_more_than_wireshark_takes_ends_in_a_fault(tmp_path: Path) -> None:
    bomb = b"\x01" + lz4.block.compress(b"\x84" + b"\x80" * 65000 + b"\x00", store_size=False)
    size = len(bomb).to_bytes(2, "little")
    link = Link().opened(COMPRESSION).send(0, (size + bomb) * 3).batch(0, b"\x00" + frame(0, put(b"after")))
    found = fields(link.write(tmp_path), "fault", "keyexpr")
    assert "limit" in found[-2][0] and found[-1][1] == "after"


@pytest.mark.parametrize("length", [2**33, 2**64 - 1])
def test_announced_length_can_be_any_number(length: int, tmp_path: Path) -> None:
    number = vle(length) if length < 2**56 else b"\xff" * 9
    piece = number + b"\x01\x01\x01"
    shared = b"\x5d\x00\x81\x12\x01\x01" + vle(len(piece)) + piece
    path = Link().opened().batch(0, frame(0, shared, put(b"b"))).write(tmp_path)
    assert fields(path, "msg")[-1] == ["frame,push,put,push,put"]
