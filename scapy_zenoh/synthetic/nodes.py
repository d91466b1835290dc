"""Who takes part in made traffic, and what they deal with: clients, keys, payloads, qualities."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

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


class Quality(NamedTuple):
    """Priority and the like of a message, ready for use."""

    byte: int
    priority: int
    express: bool
    told: str  # as the truth file tells it


def quality(priority: int, congestion: str, express: bool) -> Quality:
    """Priority, congestion control and express together."""
    told = f'"priority": "{PRIORITY_NAMES[priority]}", "congestion": "{congestion.upper()}", '
    told += f'"express": {"true" if express else "false"}'
    return Quality(priority | CONGESTION_BITS[congestion] | (EXPRESS_BIT if express else 0), priority, express, told)


class Encoding(NamedTuple):
    """An encoding on the wire and in the truth file, where defaults are left out."""

    wire: bytes
    told: str
    optional: str


def encoding(text: str) -> Encoding:
    """An encoding from its name."""
    told = f', "encoding": {json.dumps(text)}'
    data = wire.encoding(*encoding_from_text(text))
    return Encoding(data, told, told if data else "")


class Payloads:
    """Payloads of any size, each with a number in front so that no two are the same."""

    POOL = 1 << 20

    def __init__(self, shape: Shape, random: Random) -> None:
        words = " ".join(
            f"{random.random():.3f} {w}" for w in ("volt", "ampere", "kelvin", "pascal") for _ in range(40)
        )
        self._random = random.random
        self._text = (words.encode() * (self.POOL // len(words) + 1))[: self.POOL]
        self._noise = random.randbytes(self.POOL)
        self._share = shape.text
        self._count = 0

    def take(self, size: int) -> bytes:
        """The next payload."""
        self._count += 1
        chance = self._random()
        pool = self._text if chance < self._share else self._noise
        number = b"%08x" % self._count
        if size <= 8:
            return number[8 - size :]
        start = int(self._random() * 65_536)
        rest = size - 8
        if start + rest <= self.POOL:
            return number + pool[start : start + rest]
        return number + (pool * (rest // self.POOL + 1))[:rest]


# --- nodes --------------------------------------------------------------------------------------


class Client:
    """A client and its link to the router."""

    def __init__(self, name: str, zid: str, link: TcpLink | UdpLink, up: Sender, down: Sender) -> None:
        self.name, self.zid, self.zid_wire = name, zid, wire.zid_bytes(zid)
        self.link, self.ways = link, (up, down)
        self.last = [0, 0]  # when each side sent something
        self.requests = [0, 0]  # the last request id of each side
        self.extras: deque[tuple[str, int, str]] = deque()
        self.extra_count = 0

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


class KeyName(NamedTuple):
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
        self.heads: dict[tuple[int, int], bytes] = {}  # (key, quality) -> PUSH up to its body, from the router
        self.declared: dict[int, int] = {}  # key -> id in the router's table
        self.received: dict[int, Received] = {}
        self.samples = 0

    def head(self, index: int, key: KeyName, qos: int) -> bytes:
        """PUSH up to its body; the first one of a key may need a declaration."""
        return wire.push(*self.expression(index, key), qos)

    def expression(self, index: int, key: KeyName) -> tuple[int, str, bool]:
        """Scope, suffix and mapping by which the router names a key on this link."""
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
        self.heads: dict[tuple[int, int], bytes] = {}
        self.declared: set[int] = set()

    def name_key(self, index: int, shape: Shape) -> KeyName:
        """A key of the publisher: the first ones to publish on, those after them to ask about."""
        form = ("text", "prefix", "declared")[index % 3] if shape.key_form == "mixed" else shape.key_form
        if index < shape.keys:
            what = "température" if index % 7 == 3 else "sensor"
            prefix, suffix, prefix_id = f"plant/{self.name}", f"/{what}/{index}", PREFIX
        else:
            prefix, suffix, prefix_id = f"ask/{self.name}", f"/item/{index - shape.keys}", QUESTIONS
        told = json.dumps(prefix + suffix, ensure_ascii=False)
        key = self.keys[index] = KeyName(prefix, suffix, form, FIRST_KEY + index, prefix_id, told)
        return key

    def head(self, index: int, key: KeyName, qos: int) -> bytes:
        """PUSH up to its body."""
        return wire.push(*self.expression(index, key), qos)

    def expression(self, index: int, key: KeyName) -> tuple[int, str, bool]:
        """Scope, suffix and mapping by which the publisher names a key."""
        if key.form == "text":
            return 0, key.text, True
        if key.form == "prefix":
            return key.prefix_id, key.suffix, True
        if index not in self.declared:
            self.declared.add(index)
            self.up.declare(wire.declare_keyexpr(key.number, key.text))
        return key.number, "", True


@dataclass(frozen=True)
class Extra:
    """A kind of declaration that comes and goes."""

    declare: Callable[[int, str], bytes]
    undeclare: Callable[[int], bytes]
    kind: str


EXTRA = {
    "token": Extra(lambda n, key: wire.declare_token(n, 0, key, True), wire.undeclare_token, "LivelinessToken"),
    "subscriber": Extra(
        lambda n, key: wire.declare_subscriber(n, 0, key, True), wire.undeclare_subscriber, "Subscriber"
    ),
    "queryable": Extra(
        lambda n, key: wire.declare_queryable(n, 0, key, True, False), wire.undeclare_queryable, "Queryable"
    ),
    "keyexpr": Extra(wire.declare_keyexpr, wire.undeclare_keyexpr, "KeyExpr"),
}
