"""Recorded sessions of real nodes: every batch holds the messages it is said to hold, and comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import scapy_zenoh as z
from tests.conftest import LAB

LOW_LATENCY_PREFIX = 4

NAMES = {
    z.ZenohClose: "CLOSE",
    z.ZenohKeepAlive: "KEEP_ALIVE",
    z.ZenohFragment: "FRAGMENT",
    z.ZenohJoin: "JOIN",
    z.ZenohTransportOam: "OAM",
    z.ZenohPush: "PUSH",
    z.ZenohRequest: "REQUEST",
    z.ZenohResponse: "RESPONSE",
    z.ZenohResponseFinal: "RESPONSE_FINAL",
    z.ZenohInterest: "INTEREST",
    z.ZenohDeclare: "DECLARE",
    z.ZenohNetworkOam: "OAM",
    z.ZenohPut: "PUT",
    z.ZenohDel: "DEL",
    z.ZenohQuery: "QUERY",
    z.ZenohReply: "REPLY",
    z.ZenohErr: "ERR",
    z.ZenohDeclareKeyexpr: "D_KEYEXPR",
    z.ZenohUndeclareKeyexpr: "U_KEYEXPR",
    z.ZenohDeclareSubscriber: "D_SUBSCRIBER",
    z.ZenohUndeclareSubscriber: "U_SUBSCRIBER",
    z.ZenohDeclareQueryable: "D_QUERYABLE",
    z.ZenohUndeclareQueryable: "U_QUERYABLE",
    z.ZenohDeclareToken: "D_TOKEN",
    z.ZenohUndeclareToken: "U_TOKEN",
    z.ZenohDeclareFinal: "D_FINAL",
}


@dataclass(frozen=True)
class Batch:
    """A batch without its length prefix, and the layer that its place in the session asks for."""

    place: str
    layer: type[Any]
    data: bytes
    messages: list[str]
    plain: bytes | None


def batches() -> Iterator[Batch]:
    """Every batch of every recorded session. What was negotiated holds once OPEN was answered."""
    for session in json.loads((LAB / "protocol" / "vectors.json").read_text())["sessions"]:
        layer: type[Any] = z.ZenohDatagram
        for i, batch in enumerate(session["batches"]):
            data, plain = bytes.fromhex(batch["batch"]), batch.get("plain")
            yield Batch(
                f"{session['name']}, batch {i}",
                layer,
                data,
                batch["messages"],
                None if plain is None else bytes.fromhex(plain),
            )
            if "OPEN_ACK" in batch["messages"]:
                layer = negotiated(session)


def negotiated(session: dict[str, Any]) -> type[Any]:
    """How batches look after the handshake; those of low latency have no compression header."""
    if session["prefix_bytes_after_handshake"] == LOW_LATENCY_PREFIX:
        return z.ZenohLowLatencyDatagram
    return z.ZenohCompressedDatagram if session["compression"] else z.ZenohDatagram


def name_of(message: Any) -> str:
    """``FRAME[PUSH/PUT, INTEREST]``: a message with its body and what it carries."""
    if isinstance(message, (z.ZenohInit, z.ZenohOpen)):
        return f"{'INIT' if isinstance(message, z.ZenohInit) else 'OPEN'}_{'ACK' if message.A else 'SYN'}"
    if isinstance(message, z.ZenohFrame):
        return f"FRAME[{', '.join(map(name_of, message.msgs))}]"
    name = NAMES[type(message)]
    return f"{name}/{name_of(message.payload)}" if message.payload else name


BATCHES = list(batches())

each_batch = pytest.mark.parametrize("batch", BATCHES, ids=[batch.place for batch in BATCHES])


@each_batch
def test_a_batch_holds_the_messages_that_were_sent(batch: Batch) -> None:
    packet = batch.layer(batch.data)
    assert packet.fault is None, [f"{type(p).__name__}: {fault}" for p, fault in packet.faults()]
    assert [name_of(message) for message in packet.msgs] == batch.messages
    assert not packet.payload


@each_batch
def test_a_batch_is_rebuilt_from_its_values(batch: Batch) -> None:
    packet = batch.layer(batch.data)
    assert bytes(packet) == batch.data
    assert z.rebuild(packet) == batch.data


@each_batch
def test_the_messages_of_a_batch_are_its_plain_bytes(batch: Batch) -> None:
    header = batch.layer is z.ZenohCompressedDatagram
    assert (batch.plain is not None) == header, "only batches with a compression header have a plain form"
    messages = b"".join(z.rebuild(message) for message in batch.layer(batch.data).msgs)
    assert messages == (batch.plain if header else batch.data)
