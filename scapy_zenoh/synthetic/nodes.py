"""Who takes part in made traffic, and what they deal with: clients, keys, payloads, qualities."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from scapy_zenoh.synthetic import wire
from scapy_zenoh.synthetic.recorder import TcpLink, UdpLink
from scapy_zenoh.synthetic.sender import Sender
from scapy_zenoh.synthetic.shape import Shape
from scapy_zenoh.synthetic.truth import Received
from scapy_zenoh.values import encoding_from_text

PRIORITY_NAMES = ("CONTROL", "REAL_TIME", "INTERACTIVE_HIGH", "INTERACTIVE_LOW", "DATA_HIGH", "DATA", "DATA_LOW",
                  "BACKGROUND")  # fmt: skip
CONGESTION_BITS = {"drop": 0x00, "block": 0x08, "block_first": 0x20}
EXPRESS_BIT = 0x10

UP, DOWN = 0, 1  # from the client to the router, and back

PREFIX, QUESTIONS = 1, 2  # ids by which clients declare the two prefixes of their keys
FIRST_KEY = 3  # and those of whole keys
QUERYABLE_ENTITY = 6
TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class Quality:
    """Priority and the like of a message, ready for use."""

    byte: int
    priority: int
    express: bool
    told: str  # as the truth file tells it
    optional: str  # the same where defaults are left out


def quality(priority: int, congestion: str, express: bool) -> Quality:
    """Priority, congestion control and express together."""
    told = f'"priority": "{PRIORITY_NAMES[priority]}", "congestion": "{congestion.upper()}", '
    told += f'"express": {"true" if express else "false"}'
    byte = priority | CONGESTION_BITS[congestion] | (EXPRESS_BIT if express else 0)
    return Quality(byte, priority, express, told, "" if byte == wire.DEFAULT_QOS else f", {told}")


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding on the wire and in the truth file, where defaults are left out."""

    wire: bytes
    put: bytes  # a PUT of this encoding up to the length of its payload
    stamped: bytes  # header of a PUT with timestamp
    told: str
    optional: str


def encoding(text: str) -> Encoding:
    """An encoding from its name."""
    told = f', "encoding": {json.dumps(text)}'
    data = wire.encoding(*encoding_from_text(text))
    header = wire.put_header(bool(data))
    return Encoding(data, header + data, wire.put_header(bool(data), stamped=True), told, told if data else "")


POOL = 1 << 20


def payloads(shape: Shape, random: Random) -> Callable[[int], bytes]:
    """What makes payloads of any size, each with a number in front so that no two are the same."""
    words = " ".join(f"{random.random():.3f} {w}" for w in ("volt", "ampere", "kelvin", "pascal") for _ in range(40))
    text = (words.encode() * (POOL // len(words) + 1))[:POOL]
    noise = random.randbytes(POOL)
    chance, share, next_number = random.random, shape.text, _numbers().__next__

    def take(size: int) -> bytes:
        number = next_number()
        pool = text if chance() < share else noise
        if size <= 8:
            return number[8 - size :]
        start = int(chance() * 65_536)
        end = start + size - 8
        if end <= POOL:
            return number + pool[start:end]
        return number + (pool * (size // POOL + 1))[: size - 8]

    return take


def _numbers() -> Iterator[bytes]:
    """00000001, 00000002 and so on; the last two digits come from a table, which halves the time."""
    pairs = [b"%02x" % n for n in range(256)]
    for high in count():
        front = b"%06x" % high
        for low in pairs if high else pairs[1:]:
            yield front + low


# --- nodes --------------------------------------------------------------------------------------


class Client:
    """A client and its link to the router."""

    def __init__(self, name: str, zid: str, link: TcpLink | UdpLink, up: Sender, down: Sender) -> None:
        self.name, self.zid, self.zid_wire = name, zid, wire.zid_bytes(zid)
        self.link, self.ways = link, (up, down)
        self.last = [0, 0]  # when each side sent something
        self.requests = [0, 0]  # the last request id of each side
        self.extras: deque[tuple[Extra, bytes, int]] = deque()  # kind, id on the wire, number
        self.extra_count = 0
        self.control = up.lane(wire.CONTROL).add

    @property
    def up(self) -> Sender:
        """What the client sends."""
        return self.ways[UP]

    @property
    def down(self) -> Sender:
        """What the router sends to it."""
        return self.ways[DOWN]

    def next_request(self, way: int) -> int:
        """A new request id."""
        self.requests[way] += 1
        return self.requests[way]


@dataclass(frozen=True, slots=True)
class KeyName:
    """A key: the prefix that clients declare, what follows it, how it is sent, and its text in JSON."""

    prefix: str
    suffix: str
    form: str
    number: int  # the id by which it is declared as a whole
    prefix_id: int
    told: str

    @property
    def text(self) -> str:
        """The whole key."""
        return self.prefix + self.suffix


class Subscriber(Client):
    """A client that subscribes to all keys of a publisher and answers its questions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.declared: dict[int, int] = {}  # key -> id in the router's table
        self.received: dict[int, Received] = {}
        self.samples = 0

    def expression(self, index: int, key: KeyName) -> tuple[int, str, bool]:
        """Scope, suffix and mapping by which the router names a key on this link; it may have to declare it."""
        if key.form == "text":
            return 0, key.text, True
        if key.form == "prefix":
            return key.prefix_id, key.suffix, False
        number = self.declared.get(index)
        if number is None:  # ids of the router begin at 1 like those of the client: only M tells them apart
            number = self.declared[index] = len(self.declared) + 1
            self.down.declare(wire.declare_keyexpr(number, key.text))
        return number, "", True


class Publisher(Client):
    """A client that puts, deletes and asks."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.subscribers: list[Subscriber] = []
        self.keys: dict[int, KeyName] = {}
        self.declared: set[int] = set()
        self.flows: dict[int, dict[int, Flow]] = {}  # quality -> key
        self.questions: dict[tuple[int, int], Question] = {}  # (key, priority)

    def key(self, index: int, shape: Shape) -> KeyName:
        """A key of the publisher: the first ones to publish on, those after them to ask about."""
        if index in self.keys:
            return self.keys[index]
        form = ("text", "prefix", "declared")[index % 3] if shape.key_form == "mixed" else shape.key_form
        if index < shape.keys:
            what = "température" if index % 7 == 3 else "sensor"
            prefix, suffix, prefix_id = f"plant/{self.name}", f"/{what}/{index}", PREFIX
        else:
            prefix, suffix, prefix_id = f"ask/{self.name}", f"/item/{index - shape.keys}", QUESTIONS
        told = json.dumps(prefix + suffix, ensure_ascii=False)
        key = self.keys[index] = KeyName(prefix, suffix, form, FIRST_KEY + index, prefix_id, told)
        return key

    def expression(self, index: int, key: KeyName) -> tuple[int, str, bool]:
        """Scope, suffix and mapping by which the publisher names a key; it may have to declare it."""
        if key.form == "text":
            return 0, key.text, True
        if key.form == "prefix":
            return key.prefix_id, key.suffix, True
        if index not in self.declared:
            self.declared.add(index)
            self.up.declare(wire.declare_keyexpr(key.number, key.text))
        return key.number, "", True


# --- what does not change from one message to the next -------------------------------------------


class Delivery:
    """What a subscriber gets of a flow."""

    __slots__ = ("head", "lane", "received", "subscriber")

    def __init__(self, subscriber: Subscriber, index: int, key: KeyName, qos: Quality) -> None:
        self.subscriber = subscriber
        self.head = wire.push(*subscriber.expression(index, key), qos.byte)  # up to its body
        self.lane = subscriber.down.lane(qos.priority)
        self.received = subscriber.received.setdefault(index, Received())


class Flow:
    """The samples of a publisher on one key at one quality."""

    __slots__ = ("deletion", "deliveries", "head", "key", "lane", "optional", "put", "qos")

    def __init__(self, publisher: Publisher, index: int, key: KeyName, qos: Quality) -> None:
        self.key, self.qos = key, qos
        self.head = wire.push(*publisher.expression(index, key), qos.byte)  # up to its body
        self.lane = publisher.up.lane(qos.priority)
        self.deliveries = [Delivery(s, index, key, qos) for s in publisher.subscribers]
        self.put = f'"node": "{publisher.name}", "op": "put", "key": {key.told}, "payload": '  # how events begin
        self.deletion = f'"node": "{publisher.name}", "op": "delete", "key": {key.told}'
        self.optional = qos.optional


class Hop:
    """A question on its way to one subscriber, and the answers on their way back.

    Pairs of bytes are what is before and after the id of a message.
    """

    __slots__ = ("answer", "ask", "back", "requests", "subscriber", "there")

    def __init__(self, subscriber: Subscriber, index: int, key: KeyName, qos: Quality) -> None:
        self.subscriber = subscriber
        self.ask, self.answer = subscriber.down.lane(qos.priority).add, subscriber.up.lane(qos.priority).add
        self.requests = requests(subscriber.expression(index, key), qos)
        if key.form == "prefix":
            there, back = (key.prefix_id, key.suffix, True), (key.prefix_id, key.suffix, False)
        else:
            there = back = (0, key.text, True)
        by = subscriber.zid_wire, QUERYABLE_ENTITY
        self.there = wire.around_id(wire.response(0, *there, qos.byte, *by))
        self.back = wire.around_id(wire.response(0, *back, qos.byte, *by))


class Question:
    """What a publisher asks about one key at one priority."""

    __slots__ = ("_about", "_publisher", "answer", "ask", "final", "hops", "key", "qos", "requests")

    def __init__(self, publisher: Publisher, index: int, key: KeyName, priority: int) -> None:
        self.key, self.qos = key, quality(priority, "block", False)
        self.ask, self.answer = publisher.up.lane(priority).add, publisher.down.lane(priority).add
        self.requests = requests(publisher.expression(index, key), self.qos)
        self.final = wire.around_id(wire.response_final(0, self.qos.byte))
        self.hops: list[Hop] = []
        self._publisher, self._about = publisher, (index, key, self.qos)

    def to(self, everyone: bool) -> list[Hop]:
        """The ways to all subscribers, or to the first; they are made when they are needed."""
        subscribers = self._publisher.subscribers
        wanted = len(subscribers) if everyone else 1
        while len(self.hops) < wanted:
            self.hops.append(Hop(subscribers[len(self.hops)], *self._about))
        return self.hops if len(self.hops) == wanted else self.hops[:wanted]


def requests(expression: tuple[int, str, bool], qos: Quality) -> list[tuple[bytes, bytes]]:
    """What is before and after the id of a REQUEST, for each target."""
    return [wire.around_id(wire.request(0, *expression, qos.byte, target, TIMEOUT_MS)) for target in (0, 1)]


class Extra:
    """A kind of declaration that comes and goes: what is around its id, and how the truth file tells it."""

    __slots__ = ("after", "before", "declares", "kind", "more", "name", "op")

    def __init__(self, name: str, kind: str, declaration: bytes, withdrawal: bytes, more: str = "") -> None:
        self.name, self.kind, self.more = name, kind, more
        self.op = f"declare_{name}"
        self.declares = wire.declare(wire.around_id(declaration)[0])  # up to its id; the key follows that
        before, self.after = wire.around_id(withdrawal)
        self.before = wire.declare(before)


EXTRA = (
    Extra("token", "LivelinessToken", wire.declare_token(0, 0, "x", True), wire.undeclare_token(0)),
    Extra("subscriber", "Subscriber", wire.declare_subscriber(0, 0, "x", True), wire.undeclare_subscriber(0)),
    Extra("queryable", "Queryable", wire.declare_queryable(0, 0, "x", True, False), wire.undeclare_queryable(0),
          ', "complete": false'),
    Extra("keyexpr", "KeyExpr", wire.declare_keyexpr(0, "x"), wire.undeclare_keyexpr(0)),
)  # fmt: skip
KEYEXPR = EXTRA[-1]
