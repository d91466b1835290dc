"""Generated captures, read in three ways, show what their truth files tell: all of it, and nothing else.

The truth file is turned into the network messages that must be on the wire, and those are compared with what each
reader shows, as multisets: rows of plain Python, rows of compiled code, and what tshark prints with the plugin. Every
operation is there on its way to the router and from there. What nodes do by themselves (asking who subscribes, giving
numbers to keys) is no operation; ``unprompted`` says what of it is allowed.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scapy_zenoh.generate import Shape, generate
from scapy_zenoh.recording import Recording
from tests.bulk.conftest import compiled as compiled  # one worker compiles, the others wait
from tests.rows.judge import EMPTY, KINDS, PRIORITY, missing, unexplained, utc
from tests.wireshark.expected import Message
from tests.wireshark.tshark import tshark, tshark_available

Event = dict[str, Any]

NETWORK = ("push", "request", "response", "response_final", "declare", "interest", "network_oam")
EVERYTHING: dict[str, Any] = {
    "queries": 0.2,
    "deletes": 0.1,
    "declarations": 0.1,
    "attachments": 0.3,
    "encodings": ("zenoh/bytes", "text/plain;utf-8", "application/json", "my/own"),
    "priorities": (1, 2, 5, 7),
    "congestion": ("drop", "block", "block_first"),
    "express": 0.2,
    "best_effort": 0.3,
}

SHAPES = {
    "default": Shape(messages=300),
    "queries": Shape(messages=200, queries=0.6, sessions=5),
    "declarations": Shape(messages=300, declarations=0.6, sessions=4),
    "fragments": Shape(messages=80, batch_size=2000, large=0.2, large_payload=(3000, 9000), priorities=(4, 5)),
    "large payloads": Shape(messages=30, large=0.3),
    "low latency": Shape(messages=150, low_latency=True, qos=False, queries=0.2, attachments=0.2),
    "low latency, udp": Shape(messages=100, low_latency=True, qos=False, transport="udp"),
    "compression": Shape(messages=250, compression=True, large=0.02, queries=0.2),
    "udp": Shape(messages=200, transport="udp", batch_size=1400, large=0.05, large_payload=(2000, 6000)),
    "udp, compression": Shape(messages=150, transport="udp", compression=True, sessions=3),
    "sn of 8 bits": Shape(messages=300, sn_bits=8, per_batch=1),
    "sn of 16 bits": Shape(messages=200, sn_bits=16, per_batch=2, segment=200),
    "declared keys": Shape(messages=250, key_form="declared", keys=60, queries=0.3, timestamps="source"),
    "whole keys": Shape(messages=150, key_form="text", timestamps="none", queries=0.3),
    "everything": Shape(messages=400, sessions=5, **EVERYTHING),
    "everything, one lane": Shape(messages=200, qos=False, timestamps="source", **EVERYTHING),
    "20 sessions": Shape(messages=300, sessions=20, queries=0.2, declarations=0.1),
}
HEAVY = {
    "20 sessions": Shape(messages=12_000, sessions=20, seed=1),
    "everything": Shape(messages=6_000, sessions=20, seed=2, large=0.01, **EVERYTHING),
}
REPEATED = Shape(messages=400, sessions=4, seed=3, reorder=0.05, duplicate=0.05, queries=0.2, large=0.05)
DAMAGED = {
    "loss": Shape(messages=400, sessions=4, loss=0.03, queries=0.2, declarations=0.2),
    "reorder": Shape(messages=400, sessions=4, reorder=0.05, queries=0.2, declarations=0.2),
    "everything": Shape(messages=400, sessions=4, loss=0.02, reorder=0.05, duplicate=0.03, **EVERYTHING),
    "compression": Shape(messages=400, compression=True, loss=0.03, reorder=0.03, large=0.05),
    "udp": Shape(messages=300, transport="udp", loss=0.05, reorder=0.05, batch_size=1400, large=0.05),
    "low latency": Shape(messages=300, low_latency=True, qos=False, loss=0.03, reorder=0.03),
    "sn of 8 bits": Shape(messages=400, sn_bits=8, per_batch=1, loss=0.03, batch_size=500, large=0.1,
                          large_payload=(600, 3000)),
}  # fmt: skip


# --- network messages ---------------------------------------------------------------------------


class Sight(NamedTuple):
    """A network message between two nodes, as far as a truth file tells it; None is what it has not."""

    src: str | None
    dst: str | None
    kind: str
    body: str | None = None
    key: str | None = None
    payload: str | None = None  # its digest
    size: int | None = None
    encoding: str | None = None
    stamp: tuple[int, str] | None = None
    attachment: str | None = None
    quality: tuple[int, str, bool] | None = None
    parameters: str | None = None
    settings: tuple[str, str, int] | None = None  # target, consolidation and timeout in ms
    responder: str | None = None


class Asked(NamedTuple):
    """A query on one link with all that came back."""

    request: Sight
    responses: frozenset[tuple[Sight, int]]
    finals: int


class Seen(NamedTuple):
    """A message as a reader shows it."""

    sight: Sight
    request_id: int | None
    time: int | None  # tshark is not asked for it


@dataclass
class Reading:
    """The network messages that a reader shows."""

    messages: list[Seen] = field(default_factory=list)
    fragments: int = 0

    @cached_property
    def sights(self) -> Counter[Sight]:
        """How often there is what."""
        return Counter(seen.sight for seen in self.messages)

    def asked(self) -> Counter[Asked]:
        """Queries, put together by their ids."""
        requests: dict[Any, Sight] = {}
        answers: dict[Any, Counter[Sight]] = defaultdict(Counter)
        for sight, number, _ in self.messages:
            if sight.kind == "request":
                assert (sight.src, sight.dst, number) not in requests, "an id is used twice"
                requests[sight.src, sight.dst, number] = sight
            elif sight.kind in ("response", "response_final"):
                assert (sight.dst, sight.src, number) in requests, "an answer comes before its question"
                answers[sight.dst, sight.src, number][sight] += 1
        return Counter(_asked(request, answers[place]) for place, request in requests.items())


def _asked(request: Sight, answers: Counter[Sight]) -> Asked:
    responses = frozenset((sight, count) for sight, count in answers.items() if sight.kind == "response")
    return Asked(request, responses, sum(n for sight, n in answers.items() if sight.kind == "response_final"))


# --- what a truth file tells --------------------------------------------------------------------


def _quality(event: Event) -> tuple[int, str, bool]:
    priority, congestion = event.get("priority", "DATA"), event.get("congestion", "DROP")
    return PRIORITY[priority], congestion.lower(), event.get("express", False)


def _stamp(event: Event) -> tuple[int, str] | None:
    return utc(event["timestamp"]) if "timestamp" in event else None


def _content(payload: dict[str, Any] | None, event: Event) -> dict[str, Any]:
    """Payload, encoding and attachment."""
    attached = {"attachment": event.get("attachment")}
    if payload is None:
        return attached
    encoding = event.get("encoding", "zenoh/bytes")
    return {**attached, "payload": payload["sha256"], "size": payload["len"], "encoding": encoding}


class Truth:
    """A truth file as messages."""

    def __init__(self, truth: dict[str, Any]) -> None:
        self.truth = truth
        self.zids: dict[str, str] = {name: node["zid"] for name, node in truth["nodes"].items()}
        self.router: str = self.zids["router"]
        self.asked: Counter[Asked] = Counter()
        self.sights: Counter[Sight] = Counter(self._sights())
        self.keys = {(s.src, s.dst, s.key) for s in self.sights}
        self.subscribed: set[str | None] = {e["key"] for e in self.of("declare_subscriber")}

    def of(self, *ops: str) -> Iterator[Event]:
        """The events of these kinds."""
        return (e for e in self.truth["events"] if e["op"] in ops)

    def _sights(self) -> Iterator[Sight]:
        for e in self.of("put", "delete"):
            yield self._sample(self.zids[e["node"]], self.router, e, e["op"] == "put")
        for s in self.truth["rx_samples"]:
            yield self._sample(self.router, self.zids[s["node"]], s, s["kind"] == "PUT")
        for e in self.of("get"):
            yield from self._get(e)
        declared: dict[tuple[str, str], Event] = {}
        for e in self.truth["events"]:
            if e["op"].startswith("declare_"):
                declared[e["node"], e["id"]] = e
                yield self._declaration(e, e["op"], e["key"])
            elif e["op"] == "undeclare":
                yield self._declaration(e, f"undeclare_{KINDS[e['kind']]}", declared.pop((e["node"], e["id"]))["key"])

    def _sample(self, src: str, dst: str, e: Event, put: bool) -> Sight:
        content = _content(e["payload"] if put else None, e)
        body = "put" if put else "del"
        return Sight(src, dst, "push", body, e["key"], stamp=_stamp(e), quality=_quality(e), **content)

    def _declaration(self, e: Event, body: str, key: str) -> Sight:
        return Sight(self.zids[e["node"]], self.router, "declare", body, key)

    def _get(self, e: Event) -> Iterator[Sight]:
        """A query to the router and from there to each who replies, and all that comes back."""
        mine = self.zids[e["node"]]
        key, _, parameters = e["selector"].partition("?")
        settings = e["target"].lower(), e["consolidation"].lower(), e["timeout_s"] * 1000
        asked = Sight(mine, self.router, "request", "query", key, quality=_quality(e), parameters=parameters,
                      settings=settings, **_content(e.get("payload"), e))  # fmt: skip
        back = Counter(self._reply(a, self.router, mine, key, e) for a in e["replies"])
        yield from self._conversation(asked, back)
        for a in e["replies"]:
            hop = asked._replace(src=self.router, dst=a["replier"])
            yield from self._conversation(hop, Counter([self._reply(a, a["replier"], self.router, key, e)]))

    def _conversation(self, request: Sight, responses: Counter[Sight]) -> Iterator[Sight]:
        final = Sight(request.dst, request.src, "response_final")
        self.asked[_asked(request, responses + Counter([final]))] += 1
        yield request
        yield from responses.elements()
        yield final

    def _reply(self, a: Event, src: str, dst: str, key: str, query: Event) -> Sight:
        if "err" in a:  # its quality is that of the query
            return Sight(src, dst, "response", "err", key, quality=_quality(query), responder=a["replier"],
                         **_content(a["err"], a))  # fmt: skip
        put = a["kind"] == "PUT"
        content = _content(a["payload"] if put else None, a)
        return Sight(src, dst, "response", "reply_put" if put else "reply_del", a["key"], stamp=_stamp(a),
                     quality=_quality(a), responder=a["replier"], **content)  # fmt: skip

    def unprompted(self, sight: Sight) -> bool:
        """A node does this by itself: a publisher asks who subscribes, a router answers, keys in use get numbers."""
        from_router = sight.src == self.router
        match sight.kind, sight.body:
            case "interest", None:
                return not from_router and sight.key in self.subscribed
            case "declare", "declare_subscriber":
                return from_router and sight.key in self.subscribed
            case "declare", "declare_final":
                return from_router
            case "declare", "declare_keyexpr":
                return (sight.src, sight.dst, sight.key) in self.keys
        return False


# --- three readers ------------------------------------------------------------------------------


def _of_row(row: dict[str, Any]) -> Sight:
    kind, body = row["kind"], row["body"]
    told = kind in ("push", "request", "response")
    return Sight(
        row["src_zid"], row["dst_zid"], kind, body, row["key"],
        None if row["payload_len"] is None else hashlib.sha256(row["payload"]).hexdigest(),
        row["payload_len"], row["encoding"],
        None if row["timestamp_time"] is None else (row["timestamp_time"], row["timestamp_id"]),
        None if row["attachment"] is None else row["attachment"].hex(),
        (row["priority"], row["congestion"], row["express"]) if told else None,
        (row["parameters"] or "") if body == "query" else None,
        (row["target"], row["consolidation"], row["timeout_ms"]) if body == "query" else None,
        row["responder_zid"],
    )  # fmt: skip


TARGETS = ("best_matching", "all", "all_complete")
CONSOLIDATIONS = ("auto", "none", "monotonic", "latest")


def _of_tshark(message: Message, src: str | None, dst: str | None) -> Sight:
    items = {item.name: item for item in message.items}

    def number(name: str, default: int = 0) -> int:
        return int(items[name].value) if name in items else default

    def first(*names: str) -> str | None:
        return next((items[name].raw for name in names if name in items), None)

    congestion = "block" if number("ext.qos.block") else "block_first" if number("ext.qos.block_first") else "drop"
    quality = number("ext.qos.priority", 5), congestion, bool(number("ext.qos.express"))
    time = next((items[name].value for name in ("put.ts_time", "del.ts_time") if name in items), None)
    maker = next((items[name].value for name in ("put.ts_id", "del.ts_id") if name in items), "")
    settings = (
        TARGETS[number("ext.query_target.target")], CONSOLIDATIONS[number("query.consolidation")],
        number("ext.timeout.timeout"),
    )  # fmt: skip
    query = message.body == "query"
    responder = items.get("ext.responder_id.zid")
    return Sight(
        src, dst, message.kind, message.body, message.key,
        None if message.payload_len is None else hashlib.sha256(bytes.fromhex(message.payload or "")).hexdigest(),
        None if message.payload_len is None else int(message.payload_len), message.encoding,
        None if time is None else (int(time), maker),
        first("ext.attachment.data", "ext.del_attachment.data", "ext.query_attachment.data"),
        quality if message.kind in ("push", "request", "response") else None,
        (items["query.parameters"].value if "query.parameters" in items else "") if query else None,
        settings if query else None,
        responder.value if responder else None,
    )  # fmt: skip


def _one(zids: set[str]) -> str | None:
    assert len(zids) < 2, "one packet, one sender"
    return next(iter(zids), None)


@dataclass
class Made:
    """A generated capture, read in any way once."""

    path: Path
    shape: Shape
    truth: dict[str, Any] = field(repr=False)
    readings: dict[str, Reading] = field(default_factory=dict, repr=False)
    recordings: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = field(default_factory=dict, repr=False)

    @cached_property
    def told(self) -> Truth:
        """What the truth file tells."""
        return Truth(self.truth)

    def recorded(self, reader: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Rows and summary."""
        if reader not in self.recordings:
            recording = Recording([self.path], compiled=reader == "compiled")
            self.recordings[reader] = list(recording), recording.summary()
        return self.recordings[reader]

    def rows(self, reader: str) -> list[dict[str, Any]]:
        """All rows."""
        return self.recorded(reader)[0]

    def reading(self, reader: str) -> Reading:
        """Network messages without a fault."""
        if reader not in self.readings:
            self.readings[reader] = self._tshark(reader) if reader.startswith("tshark") else self._rows(reader)
        return self.readings[reader]

    def _rows(self, reader: str) -> Reading:
        rows = self.rows(reader)
        network = [row for row in rows if row["layer"] == "network" and row["fault"] is None]
        seen = [Seen(_of_row(row), row["request_id"], row["time"]) for row in network]
        return Reading(seen, sum(row["kind"] == "fragment" for row in rows))

    def _tshark(self, reader: str) -> Reading:
        preferences = {"tcp.reassemble_out_of_order": str("in order" in reader).upper()}
        shown = tshark(self.path, preferences, most=1 << 30)
        reading = Reading(fragments=sum(message.kind == "fragment" for message in shown.messages))
        for message in shown.messages:
            if message.kind in NETWORK and not message.faults and not message.malformed:
                ends = (_one(zids.get(message.frame, set())) for zids in (shown.sources, shown.destinations))
                number = None if message.rid is None else int(message.rid)
                reading.messages.append(Seen(_of_tshark(message, *ends), number, None))
        return reading


_MADE: dict[Shape, Made] = {}


@pytest.fixture
def made(shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The capture of a shape, made once for all tests."""
    if shape not in _MADE:
        path = tmp_path_factory.mktemp("made") / "made.pcap"
        _MADE[shape] = Made(path, shape, json.loads(generate(shape, path).read_text(encoding="utf-8")))
    return _MADE[shape]


def each(shapes: dict[str, Shape], *marks: pytest.MarkDecorator) -> list[Any]:
    """Parameters."""
    return [pytest.param(shape, id=name, marks=marks) for name, shape in shapes.items()]


ALL = [*each(SHAPES), *each(HEAVY, pytest.mark.slow)]
ABSENT = pytest.mark.skipif(not tshark_available(), reason="tshark is not installed")
SHARK = (pytest.mark.tshark, pytest.mark.slow, ABSENT)
by_rows = pytest.mark.parametrize("reader", ["plain", "compiled"])


def or_by(name: str) -> pytest.MarkDecorator:
    """Rows, or tshark."""
    return pytest.mark.parametrize("reader", ["plain", "compiled", pytest.param(name, marks=SHARK)])


# --- entirely -----------------------------------------------------------------------------------


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_rows_show_what_happened_and_nothing_else(made: Made, reader: str) -> None:
    told, sights = made.told, made.reading(reader).sights
    assert list((told.sights - sights).elements()) == []
    others = sights - told.sights
    assert [sight for sight in others if not told.unprompted(sight)] == []
    assert [sight for sight, count in others.items() if count > 1] == []


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_answers_belong_to_their_questions(made: Made, reader: str) -> None:
    assert made.reading(reader).asked() == made.told.asked


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_messages_are_as_many_as_on_the_wire(made: Made, reader: str) -> None:
    reading, wire = made.reading(reader), made.truth["wire"]
    assert len(reading.messages) == wire["network_messages"]
    assert reading.fragments == wire["fragments"]


@pytest.mark.parametrize("shape", each(SHAPES, *SHARK))
def test_tshark_shows_what_happened_and_nothing_else(made: Made) -> None:
    """All of the above in one: reading takes seconds."""
    test_rows_show_what_happened_and_nothing_else(made, "tshark")
    test_answers_belong_to_their_questions(made, "tshark")
    test_messages_are_as_many_as_on_the_wire(made, "tshark")


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_accounting_is_that_of_the_truth_file(made: Made, reader: str) -> None:
    rows, summary = made.recorded(reader)
    wire = made.truth["wire"]
    assert len({(row["link"], row["src"], row["sport"], row["batch"]) for row in rows}) == wire["batches"]
    assert summary["zenoh_bytes"] == summary["decoded_bytes"] == wire["link_bytes"]
    assert (summary["missing_bytes"], summary["undecoded_bytes"], summary["faults"]) == (0, 0, 0)
    assert summary["packets"] == made.truth["capture"]["packets"]
    assert summary["messages"] == len(rows)


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_operations_are_counted(made: Made, reader: str) -> None:
    """Puts, deletions, queries, replies and declarations that come and go: each is once on its way to the router."""
    told, others = made.told, made.reading(reader).sights - made.told.sights
    sent = [seen.sight for seen in made.reading(reader).messages if seen.sight.dst == told.router]
    operations = sum(sight.kind in ("push", "request", "response", "declare") for sight in sent)
    numbers = sum(count for sight, count in others.items() if sight.kind == "declare" and sight.dst == told.router)
    first = sum(1 for e in told.of("declare_subscriber", "declare_queryable", "declare_keyexpr") if e["id"][0] in "sqk")
    assert operations - numbers - first == made.truth["messages"]


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_subscribers_received_what_is_in_the_rows(made: Made, reader: str) -> None:
    """Number and bytes of each key, and the order in which they came on each lane."""
    arrived: dict[Any, list[Any]] = defaultdict(list)
    for row in made.rows(reader):
        if row["kind"] == "push" and row["dst_zid"] != made.told.router:
            arrived[row["dst_zid"], row["key"]].append(row)
    told = {
        (made.told.zids[node], key): got
        for node, subscriptions in made.truth["received"].items()
        for key, got in subscriptions["s1"].items()
    }
    assert set(told) == set(arrived)
    samples = defaultdict(list)
    for sample in made.truth["rx_samples"]:
        samples[made.told.zids[sample["node"]], sample["key"]].append(sample)
    for place, rows in arrived.items():
        got = told[place]
        kinds = Counter({"put": "PUT", "del": "DELETE"}[row["body"]] for row in rows)
        assert (got["count"], got["kinds"]) == (len(rows), dict(kinds))
        payloads = {hashlib.sha256(row["payload"] or b"").hexdigest(): row["payload"] or b"" for row in rows}
        assert got["bytes"] == sum(len(row["payload"] or b"") for row in rows)
        # Those of a higher priority overtake; the truth file has all in the order in which they were put.
        in_order = b"".join(payloads[sample["payload"]["sha256"]] for sample in samples[place])
        assert got["sha256_concat"] == hashlib.sha256(in_order).hexdigest()
        for lane in {row["priority"] for row in rows}:
            came = [hashlib.sha256(row["payload"] or b"").hexdigest() for row in rows if row["priority"] == lane]
            assert came == [s["payload"]["sha256"] for s in samples[place] if PRIORITY[s["priority"]] == lane]


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_queryables_saw_and_answered_what_is_in_the_rows(made: Made, reader: str) -> None:
    """Their own records of it, beside those of the ones who asked."""
    told, sights = made.told, made.reading(reader).sights
    asked: Counter[Any] = Counter()
    answered: Counter[Any] = Counter()
    for sight, count in sights.items():
        content = (sight.payload, sight.encoding, sight.attachment)
        if sight.kind == "request" and sight.src == told.router:
            asked[(sight.dst, sight.key, sight.parameters, *content)] += count
        elif sight.kind == "response" and sight.dst == told.router:
            key = None if sight.body == "err" else sight.key
            answered[(sight.src, sight.body, key, *content, sight.stamp)] += count
    saw = Counter(
        (told.zids[e["node"]], e["key"], e["parameters"], *_texts(e.get("payload"), e)) for e in told.of("rx_query")
    )
    bodies = {"reply": "reply_put", "reply_del": "reply_del", "reply_err": "err"}
    gave = Counter(
        (told.zids[e["node"]], bodies[e["op"]], e.get("key"), *_texts(e.get("payload"), e), _stamp(e))
        for e in told.of(*bodies)
    )
    assert asked == saw
    assert answered == gave


def _texts(payload: dict[str, Any] | None, e: Event) -> tuple[Any, ...]:
    content = _content(payload, e)
    return content.get("payload"), content.get("encoding"), content["attachment"]


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_sessions_are_those_of_the_nodes(made: Made, reader: str) -> None:
    told = made.told
    clients = [zid for name, zid in told.zids.items() if name != "router"]
    sessions = {f"{'-'.join(sorted((zid, told.router)))}#0": {zid, told.router} for zid in clients}
    for row in made.rows(reader):
        if row["layer"] == "network":
            assert {row["src_zid"], row["dst_zid"]} == sessions[row["session"]]
    assert {entry["session"] for entry in made.recorded(reader)[1]["sessions"]} == set(sessions)
    roles = {name: node["role"] for name, node in made.truth["nodes"].items()}
    met = {(row["src_zid"], row["whatami"]) for row in made.rows(reader) if row["kind"].startswith("init")}
    assert met == {(told.zids[name], role) for name, role in roles.items()}
    closed = {row["src_zid"] for row in made.rows(reader) if row["kind"] == "close"} - {told.router}
    assert closed == {told.zids[e["node"]] for e in told.of("close") if e["node"] != "router"}


@by_rows
@pytest.mark.parametrize("shape", ALL)
def test_nothing_is_seen_before_it_happens(made: Made, reader: str) -> None:
    """A message is sent after its event, and a sample comes before the subscriber tells of it."""
    told = made.told
    seen: dict[Sight, list[int]] = defaultdict(list)
    for sight, _, time in made.reading(reader).messages:
        assert time is not None
        seen[sight].append(time)
    sent: dict[Sight, list[int]] = defaultdict(list)
    came: dict[Sight, list[int]] = defaultdict(list)
    for e in told.of("put", "delete"):
        sent[told._sample(told.zids[e["node"]], told.router, e, e["op"] == "put")].append(e["t"])
    for s in made.truth["rx_samples"]:
        came[told._sample(told.router, told.zids[s["node"]], s, s["kind"] == "PUT")].append(s["t"])
    assert all(a < b for sight, times in sent.items() for a, b in zip(sorted(times), sorted(seen[sight]), strict=True))
    assert all(a <= b for sight, times in came.items() for a, b in zip(sorted(seen[sight]), sorted(times), strict=True))


@by_rows
@pytest.mark.parametrize("shape", each(SHAPES))
def test_judge_of_recorded_captures_agrees(made: Made, reader: str) -> None:
    rows = made.rows(reader)
    assert missing(made.truth, rows) == []
    assert unexplained(made.truth, rows) == []


# --- damaged ------------------------------------------------------------------------------------


def untold(told: Truth, sights: Iterable[Sight]) -> list[Sight]:
    """What the truth file does not tell; a lost declaration leaves keys unknown, a lost INIT the ids of nodes."""
    left = told.sights.copy()
    wrong = []
    for sight in sorted(sights, key=lambda s: (s.key, s.src, s.dst).count(None)):
        found = sight if left[sight] else next((t for t, n in left.items() if n and _could_be(sight, t)), None)
        if found is not None:
            left[found] -= 1
        elif not any(told.unprompted(full) for full in _filled(told, sight)):
            wrong.append(sight)
    return wrong


def _could_be(sight: Sight, told: Sight) -> bool:
    """The same, as far as the key and the ends are known."""
    named = {name: getattr(told, name) for name in ("key", "src", "dst") if getattr(sight, name) is None}
    return bool(named) and sight._replace(**named) == told


def _filled(told: Truth, sight: Sight) -> Iterator[Sight]:
    """With every pair of nodes that it can be between, and every key."""
    for src in [sight.src] if sight.src else told.zids.values():
        for dst in [sight.dst] if sight.dst else told.zids.values():
            for key in [sight.key] if sight.key else (None, *told.subscribed):
                yield sight._replace(src=src, dst=dst, key=key)


@or_by("tshark")
@pytest.mark.parametrize("shape", each(DAMAGED))
def test_no_message_of_a_damaged_capture_is_wrong(made: Made, reader: str) -> None:
    reading = made.reading(reader)
    assert untold(made.told, reading.sights.elements()) == []
    assert len(reading.messages) >= 0.7 * made.truth["wire"]["network_messages"]


@or_by("tshark, in order")
@pytest.mark.parametrize("shape", each({"reorder": DAMAGED["reorder"], "duplicate": REPEATED}))
def test_nothing_is_missing_where_packets_only_moved_or_came_twice(made: Made, reader: str) -> None:
    """Wireshark puts segments in order when it is asked to; otherwise a plugin gets them as they come."""
    sights = made.reading(reader).sights
    assert list((made.told.sights - sights).elements()) == []
    assert untold(made.told, sights.elements()) == []
    assert made.reading(reader).asked() == made.told.asked
    assert sights.total() == made.truth["wire"]["network_messages"]


# --- the comparison itself ----------------------------------------------------------------------

CHANGES: dict[str, Callable[[Sight], Sight]] = {
    "key": lambda s: s._replace(key=f"{s.key}/x"),
    "payload": lambda s: s._replace(payload=EMPTY),
    "encoding": lambda s: s._replace(encoding="text/plain"),
    "attachment": lambda s: s._replace(attachment="00"),
    "quality": lambda s: s._replace(quality=(3, "drop", False)),
    "stamp": lambda s: s._replace(stamp=(1, "1")),
    "sender": lambda s: s._replace(src="1"),
}


@pytest.mark.parametrize("shape", each({"everything": SHAPES["everything"]}))
@pytest.mark.parametrize("change", list(CHANGES))
def test_a_wrong_value_is_noticed(made: Made, change: str) -> None:
    messages = list(made.reading("plain").messages)
    number = next(n for n, seen in enumerate(messages) if seen.sight.body == "put")
    messages[number] = messages[number]._replace(sight=CHANGES[change](messages[number].sight))
    changed = replace(made.reading("plain"), messages=messages)
    assert made.told.sights - changed.sights
    assert len(untold(made.told, changed.sights.elements())) == 1
