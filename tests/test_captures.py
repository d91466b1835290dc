"""Real traffic is read to the last byte and rebuilt from field values alone.

What must be found in it comes from the truth files, which the applications wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lz4.block
import pytest
from scapy.packet import NoPayload

import scapy_zenoh
from scapy_zenoh import parse, rebuild
from scapy_zenoh.message import Record
from tests.conftest import captures
from tests.streams import Unit, reassembled, truth, undamaged, units

SLOW_BYTES = 400_000  # captures above this size take some seconds
NAMES = vars(scapy_zenoh)
INTRODUCTIONS = ("ZenohInit", "ZenohJoin", "ZenohHello")
READ = 65535  # no batch is larger, also after decompression (links.md)


def each_capture() -> list[Any]:
    """The whole captures, the large ones marked slow."""
    return [
        pytest.param(p, id=p.name.split(".")[0], marks=[pytest.mark.slow] if p.stat().st_size > SLOW_BYTES else [])
        for p in captures()
        if undamaged(p)
    ]


@dataclass
class Traffic:
    """A capture, read."""

    capture: Path

    @cached_property
    def truth(self) -> dict[str, Any]:
        """What the applications did."""
        return truth(self.capture)

    @cached_property
    def decoded(self) -> list[tuple[Unit, Any]]:
        """Every unit with the packet it is read as."""
        return [(unit, unit.read()) for unit in units(self.capture)]

    @cached_property
    def messages(self) -> list[Any]:
        """SCOUT, HELLO and transport messages (in low latency also network messages)."""
        return [m for _, p in self.decoded for m in (p.msgs if "msgs" in p.default_fields else [p])]

    @cached_property
    def fragmented(self) -> list[bytes]:
        """The network messages that came in FRAGMENTs."""
        return reassembled([(unit.src, unit.dst, packet) for unit, packet in self.decoded])

    def network_messages(self) -> Iterator[Any]:
        """Network messages in FRAMEs, bare in low latency, and put together from FRAGMENTs."""
        for message in self.messages:
            if type(message).__name__ == "ZenohFrame":
                yield from message.msgs
            elif message.family is scapy_zenoh.LAYERS["network"]:
                yield message
        for data in self.fragmented:
            yield parse(data, "network")[0]

    def puts(self) -> Iterator[Any]:
        """The PUTs whose payload is on the wire."""
        for message in self.network_messages():
            last = message.lastlayer()
            if type(last).__name__ == "ZenohPut" and last.data is not None:
                yield last


@pytest.fixture(scope="module", params=each_capture())
def traffic(request: pytest.FixtureRequest) -> Traffic:
    """Each whole capture in turn, read once for all tests."""
    return Traffic(request.param)


def test_there_are_whole_captures() -> None:
    assert len(each_capture()) >= 15


def test_every_unit_is_read_to_its_last_byte(traffic: Traffic) -> None:
    assert traffic.decoded
    for unit, packet in traffic.decoded:
        assert isinstance(packet, Record), f"{len(unit.wire)} bytes at the end of {unit.src} are no whole batch"
        assert packet.fault is None, (unit.wire.hex(), [(type(p).__name__, str(f)) for p, f in packet.faults()])
        assert isinstance(packet.payload, NoPayload), unit.wire.hex()


def test_units_are_rebuilt_from_their_fields(traffic: Traffic) -> None:
    """All of them, or of a burst every n-th."""
    for unit, packet in traffic.decoded[:: 1 + len(traffic.decoded) // 5_000]:
        assert rebuild(packet) == unit.wire


def plain(batch: bytes) -> bytes:
    """The messages in a batch with a compression header, as on the wire before compression."""
    if not batch[2] & 1:
        return batch[3:]
    return bytes(lz4.block.decompress(batch[3:], uncompressed_size=READ))


def test_compressed_batches_built_anew_hold_the_same_messages(traffic: Traffic) -> None:
    for unit, packet in traffic.decoded:
        if unit.kind is not scapy_zenoh.link.ZenohCompressedBatch:
            continue
        fresh = eval(packet.command(), NAMES)
        assert plain(bytes(fresh)) == plain(unit.wire)
        assert b"".join(rebuild(m) for m in packet.msgs) == plain(unit.wire)


def test_fragments_make_whole_network_messages(traffic: Traffic) -> None:
    for data in traffic.fragmented:
        packet, rest = parse(data, "network")
        assert (packet.fault, rest) == (None, b"")
        assert rebuild(packet) == data


def test_the_nodes_of_the_truth_file_introduce_themselves(traffic: Traffic) -> None:
    told = traffic.truth
    nodes = {node.get("zid") for node in told["nodes"].values()} | {event.get("zid") for event in told["events"]}
    nodes.discard(None)  # a program that keeps no log, or a session that was refused
    introduced = {m.zid for m in traffic.messages if type(m).__name__ in INTRODUCTIONS}
    assert nodes
    assert nodes <= introduced


def crossed(told: dict[str, Any]) -> set[tuple[str, int]]:
    """Hash and length of what one node put and another received, shared memory apart."""
    received = {(s["payload"]["sha256"], s["key"], s["node"]) for s in told["rx_samples"] if s.get("payload")}
    return {
        (event["payload"]["sha256"], event["payload"]["len"])
        for event in told["events"]
        if event["op"] == "put" and "shm" not in event
        if any(h == event["payload"]["sha256"] and k == event["key"] and n != event["node"] for h, k, n in received)
    }


def test_payloads_that_arrived_are_on_the_wire(traffic: Traffic) -> None:
    seen = {(hashlib.sha256(put.data).hexdigest(), len(put.data)) for put in traffic.puts()}
    assert crossed(traffic.truth) <= seen


def test_most_captures_carry_payloads_that_arrived() -> None:
    proven = [p for p in captures() if undamaged(p) and crossed(truth(p))]
    assert len(proven) >= len(each_capture()) // 2


def test_encodings_that_arrived_are_on_the_wire(traffic: Traffic) -> None:
    """By payload, because a schema makes few of them equal."""
    told = traffic.truth
    arrived = crossed(told)
    wanted = {
        (event["payload"]["sha256"], event["encoding"])
        for event in told["events"]
        if event["op"] == "put"
        and "encoding" in event
        and (event["payload"]["sha256"], event["payload"]["len"]) in arrived
    }
    seen = {(hashlib.sha256(put.data).hexdigest(), put.encoding) for put in traffic.puts()}
    assert wanted <= seen


def test_scouting_finds_what_the_applications_were_told(traffic: Traffic) -> None:
    hellos = {m.zid for m in traffic.messages if type(m).__name__ == "ZenohHello"}
    for event in traffic.truth["events"]:
        if event["op"] == "scout":
            assert {hello["zid"] for hello in event["hellos_unique"]} <= hellos
