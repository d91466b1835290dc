"""What Scapy users do with packets works on Zenoh's: look, copy, edit at any depth, break, match answers."""

from __future__ import annotations

import json
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet, explore, fuzz, ls, rfc

import scapy_zenoh as z
from scapy_zenoh import parse, rebuild
from scapy_zenoh.message import Message
from tests.examples import MESSAGES, examples

NAMES = vars(z)
CLASSES = [c for n, c in NAMES.items() if n.startswith("Zenoh") and isinstance(c, type) and issubclass(c, Packet)]

each_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
each_message = pytest.mark.parametrize("layer, cls", MESSAGES, ids=lambda v: v if isinstance(v, str) else v.__name__)


def read(text: str, layer: str = "transport") -> Any:
    """A good message from hexadecimal text."""
    packet, rest = parse(bytes.fromhex(text), layer)
    assert (packet.fault, rest) == (None, b"")
    return packet


def good(layer: str, cls: type[Message]) -> list[Any]:
    """The vectors of a class as packets."""
    return [parse(data, layer)[0] for data in examples(layer, cls)]


# --- looking ------------------------------------------------------------------------------------


@each_class
def test_default_packet_can_be_looked_at(cls: type[Packet], capsys: pytest.CaptureFixture[str]) -> None:
    packet = cls()
    packet.show()
    packet.show2()
    ls(cls)
    ls(packet)
    rfc(cls)
    assert capsys.readouterr().out
    assert packet.summary()
    assert repr(packet)
    assert isinstance(json.loads(packet.json()), dict)


@each_message
def test_real_packet_can_be_looked_at(layer: str, cls: type[Message]) -> None:
    for packet in good(layer, cls):
        assert packet.name in packet.show(dump=True)
        assert packet.show2(dump=True) == packet.show(dump=True)
        assert packet.summary()
        assert isinstance(json.loads(packet.json()), dict)


@pytest.mark.parametrize("layer", ["zenoh", sys.modules["scapy.layers.zenoh"]], ids=["by name", "by module"])
def test_explore_lists_every_class(layer: Any, capsys: pytest.CaptureFixture[str]) -> None:
    explore(layer)
    listed = capsys.readouterr().out
    assert [cls.__name__ for cls in CLASSES if cls.__name__ not in listed] == []


def test_fields_show_names_not_numbers() -> None:
    shown = read("c1 09 12 0b0b 0a c8ff 81 27 01").show(dump=True)
    assert "whatami   = client" in shown
    assert "zid       = b0b" in shown
    shown = read("22 e18096fc819fccfe6a 02 0b0b", "data").show(dump=True)
    assert "2026-11-18T05:00:40.123130" in shown


SUMMARIES = {
    "01 09 03": ("scouting", "SCOUT for router|peer"),
    "01 09 1f 0b0b": ("scouting", "SCOUT for router|peer|client from b0b"),
    "22 09 20 c3b2a1 01 13 7463702f3132372e302e302e313a3237373630": (
        "scouting",
        "HELLO router a1b2c3 at tcp/127.0.0.1:27760",
    ),
    "01 09 11 0b0b": ("transport", "INIT syn peer b0b"),
    "a1 09 20 c3b2a1 02 0102 05": ("transport", "INIT ack router a1b2c3"),
    "42 0a d6d8fc0b 00": ("transport", "OPEN syn lease 10 s sn 25111638"),
    "22 90 4e 7f": ("transport", "OPEN ack lease 10000 ms sn 127"),
    "23 05": ("transport", "CLOSE session expired"),
    "03 02": ("transport", "CLOSE link invalid"),
    "04": ("transport", "KEEP_ALIVE"),
    "66 d7d8fc0b edeeeff0": ("transport", "FRAGMENT 25111639: 4 B"),
    "26 dad8fc0b d8d9da": ("transport", "FRAGMENT 25111642: 3 B (last)"),
    "47 09 10 0b0b 0a 0010 e807 00 00": ("transport", "JOIN router b0b"),
    "25 c1af803c 7d 00 06 64656d6f2f61 01 05 68656c6c6f": ("transport", "FRAME 125835201: PUSH demo/a PUT 5 B"),
    "7d 00 06 64656d6f2f61 41 08 0c 68656c6c6f2068656c6c6f21": ("network", "PUSH demo/a PUT 12 B text/plain"),
    "7d 00 06 64656d6f2f61 41 09 05 7574662d38 02 6869": ("network", "PUSH demo/a PUT 2 B text/plain;utf-8"),
    "3d 01 02 2f78 02": ("network", "PUSH #1/x DEL"),
    "fc 07 00 03 712f61 21 0d 63 03 03 613d31": ("network", "REQUEST #7 q/a QUERY ?a=1"),
    "fb 02 00 03 712f62 21 0d 04 02": ("network", "RESPONSE #2 q/b REPLY DEL"),
    "7b 03 00 03 712f62 45 08 03 626164": ("network", "RESPONSE #3 q/b ERR 3 B text/plain"),
    "1a 07": ("network", "RESPONSE_FINAL #7"),
    "9e 21 08 20 01 00 06 64656d6f2f70": ("network", "DECLARE keyexpr 1 = demo/p"),
    "be 01 21 08 62 01 00 07 64656d6f2f2a2a": ("network", "DECLARE subscriber 1 demo/** for interest 1"),
    "9e 21 08 87 01 5f 02 00 00": ("network", "UNDECLARE token 1"),
    "f9 01 53 01 21 08": ("network", "INTEREST 1 current+future keyexprs|subscribers #1"),
}


@pytest.mark.parametrize("text", SUMMARIES)
def test_summary_says_what_a_message_is(text: str) -> None:
    layer, summary = SUMMARIES[text]
    assert read(text, layer).summary() == summary


def test_summary_of_a_packet_has_addresses_and_message() -> None:
    push = z.ZenohPush(suffix="demo/a") / z.ZenohPut(data=12 * b"x", encoding="text/plain")
    packet = IP(src="10.0.0.2", dst="10.0.0.1") / TCP(sport=5000) / z.ZenohBatch(msgs=[z.ZenohFrame(sn=3, msgs=[push])])
    assert "10.0.0.2:5000 > 10.0.0.1:7447" in packet.summary()
    assert packet.summary().endswith("FRAME 3: PUSH demo/a PUT 12 B text/plain")


# --- copies -------------------------------------------------------------------------------------


@each_class
def test_command_of_a_default_packet_makes_it_again(cls: type[Packet]) -> None:
    packet = cls()
    again = eval(packet.command(), NAMES)
    assert again == packet
    assert bytes(again) == bytes(packet)


@each_message
def test_command_makes_the_packet_again(layer: str, cls: type[Message]) -> None:
    for packet in good(layer, cls):
        again = eval(packet.command(), NAMES)
        assert again == packet
        assert bytes(again) == bytes(packet)


@each_message
def test_copy_and_pickle_give_the_same_packet(layer: str, cls: type[Message]) -> None:
    for packet in good(layer, cls):
        for again in (packet.copy(), pickle.loads(pickle.dumps(packet))):
            assert type(again) is cls
            assert again == packet
            assert bytes(again) == rebuild(again) == bytes(packet)


def test_pickle_and_copy_keep_faults() -> None:
    packet, _ = parse(bytes.fromhex("7d 00 06 6465"), "network")
    for again in (packet.copy(), pickle.loads(pickle.dumps(packet))):
        assert again.fault == packet.fault
        assert bytes(again) == bytes(packet)


def test_copy_is_independent_at_any_depth() -> None:
    batch = z.ZenohBatch(bytes.fromhex("1400 25 c1af803c 7d 00 06 64656d6f2f61 01 04 68656c6c"))
    wire = bytes(batch)
    other = batch.copy()
    other.msgs[0].msgs[0].suffix = "elsewhere"
    other.msgs[0].msgs[0].payload.data = b"!"
    other.msgs.append(z.ZenohKeepAlive())
    assert bytes(batch) == wire != bytes(other)


def test_compressed_batch_survives_copy_and_pickle() -> None:
    """Zenoh's LZ4 block (links.md) is not the one other packers make, so it must be remembered."""
    wire = bytes.fromhex("1c00 01 ff00 25d6d8fc0b7d0003632f7801c801410100ae60414141414141")
    batch = z.ZenohCompressedBatch(wire)
    assert batch.fault is None
    assert batch.msgs[0].msgs[0].payload.data == 200 * b"A"
    for again in (batch, batch.copy(), pickle.loads(pickle.dumps(batch))):
        assert bytes(again) == rebuild(again) == wire
        assert again == batch


# --- finding ------------------------------------------------------------------------------------


def test_layers_are_found_by_class() -> None:
    push = read("fd 00 06 64656d6f2f61 21 19 01 02 6869", "network")
    assert push[z.ZenohPut].data == b"hi"
    assert push.getlayer(z.ZenohPut) is push.payload
    assert z.ZenohPut in push
    assert z.ZenohDel not in push
    assert push.getlayer(z.ZenohDel) is None
    with pytest.raises(IndexError):
        push[z.ZenohDel]


def test_layers_are_found_inside_lists() -> None:
    wire = bytes.fromhex("1600 25 c1af803c fd 00 06 64656d6f2f61 21 19 01 04 68656c6c")
    packet = IP() / TCP(dport=7447) / z.ZenohStream(wire)
    again = IP(bytes(packet))
    assert again[z.ZenohPut].data == b"hell"
    assert again[z.ZenohPush].suffix == "demo/a"
    assert again[z.ZenohExtQoS].priority == 1
    assert z.ZenohFrame in again


# --- fuzz ---------------------------------------------------------------------------------------


@each_class
def test_fuzzed_packet_builds_and_can_be_looked_at(cls: type[Packet]) -> None:
    random.seed(1)
    for _ in range(10):
        packet = fuzz(cls())
        assert isinstance(bytes(packet), bytes)
        assert packet.summary()


@each_message
def test_fuzz_leaves_ids_alone_and_changes_the_rest(layer: str, cls: type[Message]) -> None:
    random.seed(1)
    made = {bytes(fuzz(cls())) for _ in range(50)}
    assert {data[0] & 0x1F for data in made} == {cls.message_id()}
    # Scapy leaves alone what has no default, and what a condition leaves out.
    there = [f for f in cls.fields_desc if not f.isconditional or f._evalcond(cls())]
    fuzzed = [f for f in there if f.default is not None and f.randval() is not None]
    assert (len(made) > 1) == bool(fuzzed)


EXTENSIONS = [cls for cls in CLASSES if issubclass(cls, z.extension.Extension)]


@pytest.mark.parametrize("cls", EXTENSIONS, ids=lambda c: c.__name__)
def test_fuzz_leaves_the_identity_of_an_extension_alone(cls: Any) -> None:
    random.seed(1)
    assert {bytes(fuzz(cls()))[0] & 0x7F for _ in range(20)} == {cls.identity()}


def test_fuzzed_layers_inside_a_packet_build() -> None:
    random.seed(1)
    packet = IP(dst="127.0.0.1") / TCP(dport=7447) / z.ZenohBatch(msgs=[fuzz(z.ZenohClose()), fuzz(z.ZenohFragment())])
    for _ in range(10):
        assert z.ZenohStream in IP(bytes(packet))


# --- answers ------------------------------------------------------------------------------------

ANSWERS = {
    "INIT": ("transport", "01 09 11 0b0b", "a1 09 20 c3b2a1 02 0102 05"),
    "OPEN": ("transport", "42 0a d6d8fc0b 02 0102", "62 0a bf80b349"),
    "REQUEST, RESPONSE": ("network", "fc 07 00 03 712f61 21 0d 03", "fb 07 00 03 712f61 21 0d 04 02"),
    "REQUEST, ERR": ("network", "fc 07 00 03 712f61 21 0d 03", "5b 07 00 05 00"),
    "REQUEST, RESPONSE_FINAL": ("network", "fc 07 00 03 712f61 21 0d 03", "9a 07 21 0d"),
    "SCOUT": ("scouting", "01 09 03", "02 09 11 0b0b"),
}
NO_ANSWERS = {
    "INIT to INIT syn": ("transport", "01 09 11 0b0b", "01 09 11 0b0c"),
    "OPEN to INIT": ("transport", "01 09 11 0b0b", "62 0a bf80b349"),
    "INIT ack to OPEN": ("transport", "42 0a d6d8fc0b 02 0102", "a1 09 20 c3b2a1 02 0102 05"),
    "RESPONSE to another id": ("network", "fc 07 00 03 712f61 21 0d 03", "fb 08 00 03 712f61 21 0d 04 02"),
    "RESPONSE_FINAL to another id": ("network", "fc 07 00 03 712f61 21 0d 03", "1a 08"),
    "HELLO of a role not asked for": ("scouting", "01 09 01", "02 09 11 0b0b"),
}
each_answer = pytest.mark.parametrize("layer, asked, answer", ANSWERS.values(), ids=ANSWERS)
each_no_answer = pytest.mark.parametrize("layer, asked, answer", NO_ANSWERS.values(), ids=NO_ANSWERS)


def on_wire(layer: str, message: Any, proto: type[Packet], back: bool) -> Any:
    """A message in an IP packet, read from its bytes: from 10.0.0.1 to 10.0.0.2, or ``back``."""
    ip = IP(src="10.0.0.2", dst="10.0.0.1") if back else IP(src="10.0.0.1", dst="10.0.0.2")
    content = [z.ZenohFrame(sn=1, msgs=[message])] if layer == "network" else [message]
    if layer == "scouting":
        # the answer to a SCOUT comes from a port that nobody knows
        udp = UDP(sport=40000, dport=5000) if back else UDP(sport=5000, dport=7446)
        return IP(bytes(ip / udp / message))
    ports = {"sport": 7447, "dport": 5000} if back else {"sport": 5000, "dport": 7447}
    if proto is UDP:
        return IP(bytes(ip / UDP(**ports) / z.ZenohDatagram(msgs=content)))
    batch = z.ZenohBatch(msgs=content)
    tcp = TCP(**ports, flags="PA", seq=900 if back else 100, ack=100 if back else 900)
    return IP(bytes(ip / tcp / batch))


@each_answer
def test_answer_is_recognised(layer: str, asked: str, answer: str) -> None:
    question, reply = read(asked, layer), read(answer, layer)
    assert reply.answers(question)
    assert not question.answers(reply)
    assert reply.hashret() == question.hashret()


@each_no_answer
def test_what_is_no_answer_is_not_taken_for_one(layer: str, asked: str, answer: str) -> None:
    assert not read(answer, layer).answers(read(asked, layer))


@pytest.mark.parametrize("proto", [TCP, UDP], ids=["TCP", "UDP"])
@each_answer
def test_answer_is_recognised_through_ip(layer: str, asked: str, answer: str, proto: type[Packet]) -> None:
    question = on_wire(layer, read(asked, layer), proto, back=False)
    reply = on_wire(layer, read(answer, layer), proto, back=True)
    assert reply.hashret() == question.hashret()
    assert reply.answers(question)


@each_no_answer
def test_what_is_no_answer_is_not_taken_for_one_through_ip(layer: str, asked: str, answer: str) -> None:
    """On UDP. Scapy's TCP looks at ports and sequence numbers only."""
    question = on_wire(layer, read(asked, layer), UDP, back=False)
    reply = on_wire(layer, read(answer, layer), UDP, back=True)
    assert not reply.answers(question)


def test_answers_to_several_requests_are_told_apart_on_tcp() -> None:
    hashes = set()
    for rid in (7, 8):
        question = on_wire("network", z.ZenohRequest(request_id=rid, suffix="q") / z.ZenohQuery(), TCP, back=False)
        reply = on_wire("network", z.ZenohResponseFinal(request_id=rid), TCP, back=True)
        assert reply.hashret() == question.hashret()
        hashes.add(question.hashret())
    assert len(hashes) == 2


# --- editing ------------------------------------------------------------------------------------


def segment() -> Any:
    """A packet read from bytes: QoS extension in PUSH in FRAME in a batch in a stream in TCP."""
    batch = bytes.fromhex("1600 25 c1af803c fd 00 06 64656d6f2f61 21 19 01 04 68656c6c")
    return IP(bytes(IP() / TCP(dport=7447) / z.ZenohStream(batch)))


Edit = Callable[[Any], Any]
EDITS: dict[str, tuple[Edit, str]] = {
    "a field of a FRAME": (
        lambda frame: setattr(frame, "sn", 5),
        "1300 25 05 fd 00 06 64656d6f2f61 21 19 01 04 68656c6c",
    ),
    "a text two lists deep": (
        lambda frame: setattr(frame.msgs[0], "suffix", "x"),
        "1100 25 c1af803c fd 00 01 78 21 19 01 04 68656c6c",
    ),
    "a body": (
        lambda frame: setattr(frame.msgs[0].payload, "data", b""),
        "1200 25 c1af803c fd 00 06 64656d6f2f61 21 19 01 00",
    ),
    "an extension three lists deep": (
        lambda frame: setattr(frame.msgs[0].exts[0], "priority", 7),
        "1600 25 c1af803c fd 00 06 64656d6f2f61 21 1f 01 04 68656c6c",
    ),
    "an extension appended in place": (
        lambda frame: frame.msgs[0].exts.append(z.ZenohExtNodeId(node=2)),
        "1800 25 c1af803c fd 00 06 64656d6f2f61 a1 19 33 02 01 04 68656c6c",
    ),
    "all extensions removed in place": (
        lambda frame: frame.msgs[0].exts.clear(),
        "1400 25 c1af803c 7d 00 06 64656d6f2f61 01 04 68656c6c",
    ),
    "an extension for a body": (
        lambda frame: setattr(frame.msgs[0].payload, "exts", [z.ZenohExtAttachment(data=b"a")]),
        "1900 25 c1af803c fd 00 06 64656d6f2f61 21 19 81 43 01 61 04 68656c6c",
    ),
    "a first extension for a FRAME": (
        lambda frame: setattr(frame, "exts", [z.ZenohExtLane(priority="control")]),
        "1800 a5 c1af803c 31 00 fd 00 06 64656d6f2f61 21 19 01 04 68656c6c",
    ),
    "a message appended in place": (
        lambda frame: frame.msgs.append(z.ZenohResponseFinal(request_id=7)),
        "1800 25 c1af803c fd 00 06 64656d6f2f61 21 19 01 04 68656c6c 1a 07",
    ),
    "a message removed in place": (lambda frame: frame.msgs.pop(), "0500 25 c1af803c"),
    "a message put first": (
        lambda frame: frame.msgs.insert(0, z.ZenohPush(suffix="b") / z.ZenohDel()),
        "1b00 25 c1af803c 7d 00 01 62 02 fd 00 06 64656d6f2f61 21 19 01 04 68656c6c",
    ),
    "another body": (
        lambda frame: (frame.msgs[0].remove_payload(), frame.msgs[0].add_payload(z.ZenohDel())),
        "1100 25 c1af803c fd 00 06 64656d6f2f61 21 19 02",
    ),
    "a field that was absent": (
        lambda frame: setattr(frame.msgs[0].payload, "encoding", "text/plain"),
        "1700 25 c1af803c fd 00 06 64656d6f2f61 21 19 41 08 04 68656c6c",
    ),
    "a field made absent": (
        lambda frame: delattr(frame.msgs[0], "suffix"),
        "0f00 25 c1af803c dd 00 21 19 01 04 68656c6c",
    ),
}


@pytest.mark.parametrize("edit, wire", EDITS.values(), ids=EDITS)
def test_edit_at_any_depth_shows_in_the_bytes(edit: Edit, wire: str) -> None:
    packet = segment()
    before = bytes(packet[TCP].payload)
    edit(packet[z.ZenohFrame])
    after = bytes(packet[TCP].payload)
    assert after == bytes.fromhex(wire) != before
    assert bytes(packet).endswith(after)
    assert rebuild(packet).endswith(after)
    again = z.ZenohStream(after)
    assert again.fault is None
    assert again == packet[z.ZenohStream]


def test_batch_appended_in_place_shows_in_the_bytes() -> None:
    packet = segment()
    before = bytes(packet[TCP].payload)
    packet[z.ZenohStream].batches.append(z.ZenohBatch(msgs=[z.ZenohKeepAlive()]))
    assert bytes(packet[TCP].payload) == before + bytes.fromhex("0100 04")


def test_edit_in_a_compressed_batch_is_packed_again() -> None:
    wire = bytes.fromhex("1c00 01 ff00 25d6d8fc0b7d0003632f7801c801410100ae60414141414141")
    batch = z.ZenohCompressedBatch(wire)
    batch.msgs[0].msgs[0].payload.data = 300 * b"B"
    again = z.ZenohCompressedBatch(bytes(batch))
    assert again.fault is None
    assert again.msgs[0].msgs[0].payload.data == 300 * b"B"


def test_edit_of_a_locator_list_shows_in_the_bytes() -> None:
    hello = read("22 09 20 c3b2a1 01 03 612f62", "scouting")
    hello.locators.append("c/d")
    assert bytes(hello) == bytes.fromhex("22 09 20 c3b2a1 02 03 612f62 03 632f64")
    hello.locators = []
    assert bytes(hello) == bytes.fromhex("02 09 20 c3b2a1")


def test_edit_of_a_link_state_shows_in_the_bytes() -> None:
    oam = read("df 01 21 08 0a 01 03 01 00 03 c3b2a1 01 00", "network")
    oam.states[0].links.append(5)
    assert bytes(oam) == bytes.fromhex("df 01 21 08 0b 01 03 01 00 03 c3b2a1 01 01 05")


# --- building -----------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[], Packet], str]] = {
    "scope of 17 bits": (lambda: z.ZenohPush(scope=70000), "ZenohPush.scope: 70000 does not fit in 16 bits"),
    "negative number": (lambda: z.ZenohFrame(sn=-1), "ZenohFrame.sn: -1 "),
    "number beyond 64 bits": (lambda: z.ZenohFrame(sn=1 << 64), "ZenohFrame.sn: 18446744073709551616 "),
    "text for a number": (lambda: z.ZenohFrame(sn="a"), "ZenohFrame.sn: 'a' "),
    "byte above 255": (lambda: z.ZenohClose(reason=300), "ZenohClose.reason: 300 does not fit in 8 bits"),
    "u16 above 65535": (lambda: z.ZenohInit(batch_size=65536), "ZenohInit.batch_size: 65536 does not fit in 16 bits"),
    "bits": (lambda: z.ZenohExtQoS(priority=9), "ZenohExtQoS.priority: 9 does not fit in 3 bits"),
    "name nobody knows": (lambda: z.ZenohInit(whatami="king"), "ZenohInit.whatami: 'king' "),
    "number for a text": (lambda: z.ZenohPush(suffix=3), "ZenohPush.suffix: 3 "),
    "number for bytes": (lambda: z.ZenohPut(data=3), "ZenohPut.data: 3 "),
    "id that is not hexadecimal": (lambda: z.ZenohInit(zid="xyz"), "ZenohInit.zid: 'xyz' "),
    "id of 17 bytes": (lambda: z.ZenohInit(zid=34 * "1"), "ZenohInit.zid"),
    "suffix of 70,000 bytes": (lambda: z.ZenohPush(suffix=70000 * "a"), "ZenohPush.suffix"),
    "locator of 300 bytes": (lambda: z.ZenohHello(locators=[300 * "a"]), "ZenohHello.locator"),
    "number for a locator": (lambda: z.ZenohHello(locators=[3]), "ZenohHello.locator"),
    "batch of 70,000 bytes": (
        lambda: z.ZenohBatch(msgs=[z.ZenohFragment(data=bytes(70000))]),
        "ZenohBatch.size: ",
    ),
    "number for a message": (lambda: z.ZenohFrame(msgs=[3]), "ZenohFrame.msgs"),
    "text for a message": (lambda: z.ZenohFrame(msgs=["push"]), "ZenohFrame.msgs"),
    "number for an extension": (lambda: z.ZenohPush(exts=[3]), "ZenohPush.exts"),
}


@pytest.mark.parametrize("make, error", REFUSED.values(), ids=REFUSED)
def test_wrong_value_is_refused_by_the_name_of_its_field(make: Callable[[], Packet], error: str) -> None:
    with pytest.raises(ValueError) as raised:
        bytes(make())
    assert str(raised.value).startswith(error)


def test_wrong_value_deep_inside_is_refused_by_the_name_of_its_field() -> None:
    push = z.ZenohPush(exts=[z.ZenohExtQoS(priority=8)]) / z.ZenohDel()
    packet = IP() / TCP() / z.ZenohBatch(msgs=[z.ZenohFrame(msgs=[push])])
    with pytest.raises(ValueError, match=r"ZenohExtQoS\.priority: 8 does not fit in 3 bits"):
        bytes(packet)


BUILT: dict[str, tuple[Packet, str]] = {
    "PUSH": (z.ZenohPush(suffix="demo/a") / z.ZenohPut(data="hello"), "7d 00 06 64656d6f2f61 01 05 68656c6c6f"),
    "PUSH of the receiver's table": (
        z.ZenohPush(M="receiver", scope=1, suffix="/x") / z.ZenohPut(data=b"be"),
        "3d 01 02 2f78 01 02 6265",
    ),
    "INIT": (
        z.ZenohInit(whatami="client", zid="b0b", batch_size=65480, exts=[z.ZenohExtLanes(), z.ZenohExtPatch(patch=1)]),
        "c1 09 12 0b0b 0a c8ff 81 27 01",
    ),
    "OPEN ack": (z.ZenohOpen(lease=10, initial_sn=153927743), "62 0a bf80b349"),
    "OPEN syn": (z.ZenohOpen(lease=10, initial_sn=25111638, cookie=b"\1\2"), "42 0a d6d8fc0b 02 0102"),
    "SCOUT": (z.ZenohScout(what=3), "01 09 03"),
    "HELLO": (z.ZenohHello(whatami="peer", zid="b0b"), "02 09 11 0b0b"),
    "RESPONSE_FINAL": (z.ZenohResponseFinal(request_id=1, exts=[z.ZenohExtQoS(block=1)]), "9a 01 21 0d"),
    "PUT with encoding and attachment": (
        z.ZenohPut(encoding="text/plain;utf-8", exts=[z.ZenohExtAttachment(data=b"att")], data=b"hi"),
        "c1 09 05 7574662d38 43 03 617474 02 6869",
    ),
    "DECLARE": (
        z.ZenohDeclare(interest_id=1, exts=[z.ZenohExtQoS(priority="control", block=1)]) / z.ZenohDeclareFinal(),
        "be 01 21 08 1a",
    ),
    "D_SUBSCRIBER": (z.ZenohDeclareSubscriber(id=1, suffix="demo/**"), "62 01 00 07 64656d6f2f2a2a"),
    "U_QUERYABLE": (z.ZenohUndeclareQueryable(id=3, exts=[z.ZenohExtWireExpr()]), "85 03 5f 02 00 00"),
    "INTEREST": (z.ZenohInterest(id=2, mode="future", S=1, Q=1, T=1), "59 02 0f"),
    "INTEREST final": (
        z.ZenohInterest(id=1, mode="final", exts=[z.ZenohExtQoS(priority="control", block=1)]),
        "99 01 21 08",
    ),
    "shared memory": (
        z.ZenohPut(exts=[z.ZenohExtPutShm()], slices=[z.ZenohSliceShm(data_len=1024, segment=45980)]),
        "81 12 01 01 07 80089ce7020000",
    ),
}


@pytest.mark.parametrize("packet, wire", BUILT.values(), ids=BUILT)
def test_what_is_built_is_what_the_specification_writes(packet: Packet, wire: str) -> None:
    assert bytes(packet) == bytes.fromhex(wire)


BROKEN: dict[str, tuple[Packet, str]] = {
    "flag without suffix": (z.ZenohPush(N=1, scope=1) / z.ZenohDel(), "7d 01 00 02"),
    "suffix without flag": (z.ZenohPush(N=0, scope=1, suffix="x") / z.ZenohDel(), "5d 01 02"),
    "flag without extension": (z.ZenohKeepAlive(Z=1), "84"),
    "length too large": (z.ZenohPut(data=b"hi", data_len=200), "01 c801 6869"),
    "length too small": (z.ZenohPut(data=b"hi", data_len=1), "01 01 6869"),
    "length too wide": (z.ZenohPut(data=b"hi", data_len=z.VLE(2, width=3)), "01 828000 6869"),
    "wrong id": (z.ZenohKeepAlive(mid=0x1F), "1f"),
    "wrong version": (z.ZenohInit(version=8, zid="b0b"), "01 08 11 0b0b"),
    "role 3": (z.ZenohInit(whatami=3, zid="b0b"), "01 09 13 0b0b"),
    "id length": (z.ZenohInit(zid="b0b", zid_len=15), "01 09 f1 0b0b"),
    "reserved bits": (z.ZenohClose(X=1), "43 00"),
    "more extensions promised": (z.ZenohPush(exts=[z.ZenohExtNodeId(node=1, more=1)]) / z.ZenohDel(), "dd 00 b3 01 02"),
    "chain ended early": (
        z.ZenohPush(exts=[z.ZenohExtNodeId(node=1, more=0), z.ZenohExtNodeId(node=2)]) / z.ZenohDel(),
        "dd 00 33 01 33 02 02",
    ),
    "size of an extension": (z.ZenohPut(exts=[z.ZenohExtAttachment(size=9, data=b"a")]), "81 43 09 61 00"),
    "mandatory bit": (z.ZenohPush(exts=[z.ZenohExtQoS(mandatory=1)]) / z.ZenohDel(), "dd 00 31 05 02"),
    "batch size": (z.ZenohBatch(size=9, msgs=[z.ZenohKeepAlive()]), "0900 04"),
    "count of locators": (z.ZenohHello(zid="b0b", locators=["a/b"], locators_count=2), "22 09 11 0b0b 02 03 612f62"),
    "number too large for its field": (z.ZenohResponseFinal(request_id=z.VLE(1 << 32, width=5)), "1a 8080808010"),
    "wrong body": (z.ZenohPush(scope=1) / z.ZenohQuery(), "5d 01 03"),
    "no body": (z.ZenohPush(scope=1), "5d 01"),
    "text that is not UTF-8": (z.ZenohPush(suffix=b"\xff") / z.ZenohDel(), "7d 00 01 ff 02"),
}


@pytest.mark.parametrize("packet, wire", BROKEN.values(), ids=BROKEN)
def test_malformed_packets_can_be_built(packet: Packet, wire: str) -> None:
    assert bytes(packet) == bytes.fromhex(wire)
    assert packet.summary()
    assert packet.show(dump=True)
    packet.show2(dump=True)


def test_automatic_fields_say_what_will_be_on_the_wire() -> None:
    push = z.ZenohPush()
    assert (push.N, push.Z) == (0, 0)
    push.suffix = "abc"
    assert (push.N, push.suffix_len) == (1, 3)
    push.exts = [z.ZenohExtQoS()]
    assert push.Z == 1
    batch = z.ZenohBatch(msgs=[z.ZenohKeepAlive()])
    assert batch.size == 1
