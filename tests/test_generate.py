"""Made captures hold what their truth files tell, read with the layers and a resolver of its own."""

from __future__ import annotations

import argparse
import hashlib
import json
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from scapy_zenoh import parse, rebuild
from scapy_zenoh.generate import Shape, add_arguments, generate, run, shape_of
from scapy_zenoh.link import ZenohCompressedBatch
from tests.streams import Address, Unit, lane_of, segments, units

EVERYTHING = {
    "queries": 0.2,
    "deletes": 0.1,
    "declarations": 0.1,
    "attachments": 0.3,
    "encodings": ("zenoh/bytes", "text/plain;utf-8", "application/json", "my/own"),
    "congestion": ("drop", "block", "block_first"),
    "express": 0.2,
    "best_effort": 0.3,
}

SHAPES = {
    "plain": Shape(messages=150),
    "everything": Shape(messages=250, sessions=5, priorities=(1, 5, 7), **EVERYTHING),  # type: ignore[arg-type]
    "text keys": Shape(messages=80, key_form="text", timestamps="none"),
    "declared keys": Shape(messages=120, key_form="declared", timestamps="source", keys=60, queries=0.3),
    "prefixes": Shape(messages=80, key_form="prefix", sessions=4, queries=0.3),
    "no lanes": Shape(messages=120, qos=False, priorities=(2, 5), **EVERYTHING),  # type: ignore[arg-type]
    "fragments": Shape(messages=60, batch_size=2000, large=0.2, large_payload=(3000, 9000), priorities=(4, 5)),
    "tiny batches": Shape(messages=40, batch_size=64, sn_bits=8),
    "compressed": Shape(messages=150, compression=True, large=0.05, batch_size=4096, large_payload=(5000, 20000)),
    "low latency": Shape(messages=80, low_latency=True, qos=False, best_effort=0.2),
    "low latency, compressed": Shape(messages=40, low_latency=True, qos=False, compression=True),
    "udp": Shape(messages=100, transport="udp", batch_size=1400, large=0.05, large_payload=(2000, 6000)),
    "udp, compressed": Shape(messages=80, transport="udp", compression=True, sessions=3),
    "udp, low latency": Shape(messages=40, transport="udp", low_latency=True, qos=False),
    "one by one": Shape(messages=60, per_batch=1, segment=64, sn_bits=16),
    "nothing": Shape(messages=0),
}


# --- reading back -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """A network message of a capture: between which nodes, with its key, and how it travelled."""

    src: str
    dst: str
    packet: Any
    key: str | None
    lane: tuple[int, int] | None

    @property
    def last(self) -> Any:
        """The data or declaration in it."""
        return self.packet.lastlayer()


@dataclass
class Capture:
    """A made capture with its truth file, read once."""

    path: Path
    shape: Shape
    truth: dict[str, Any]
    lanes: dict[Any, list[tuple[int, bool]]] = field(default_factory=lambda: defaultdict(list))

    @cached_property
    def units(self) -> list[tuple[Unit, Any]]:
        """Batches as packets."""
        return [(unit, unit.read()) for unit in units(self.path)]

    @cached_property
    def zids(self) -> dict[Address, str]:
        """Who is where, from INIT."""
        inits = ((u, m) for u, p in self.units for m in p.msgs if type(m).__name__ == "ZenohInit")
        return {unit.src: message.zid for unit, message in inits}

    @cached_property
    def opens(self) -> dict[tuple[str, str], int]:
        """The first sequence number of each direction."""
        opens = ((u, m) for u, p in self.units for m in p.msgs if type(m).__name__ == "ZenohOpen")
        return {(self.zids[u.src], self.zids[u.dst]): m.initial_sn for u, m in opens}

    def raw(self) -> Iterator[tuple[str, str, Any, tuple[int, int] | None]]:
        """Network messages in the order in which each direction sent them, fragments put together."""
        begun: dict[Any, bytes] = {}
        for unit, packet in self.units:
            way = self.zids[unit.src], self.zids[unit.dst]
            for message in packet.msgs:
                kind = type(message).__name__
                if kind == "ZenohFrame":
                    lane = lane_of(message)
                    self.lanes[way, lane].append((message.sn, False))
                    for inner in message.msgs:
                        yield *way, inner, lane
                elif kind == "ZenohFragment":
                    lane = lane_of(message)
                    self.lanes[way, lane].append((message.sn, not message.M))
                    if any(type(e).__name__ == "ZenohExtFirst" for e in message.exts or ()):
                        assert (way, lane) not in begun
                        begun[way, lane] = b""
                    begun[way, lane] += message.data
                    if not message.M:
                        whole, rest = parse(begun.pop((way, lane)), "network")
                        assert (whole.fault, rest) == (None, b"")
                        yield *way, whole, lane
                elif message.mid >= 0x19:
                    yield *way, message, None
        assert not begun

    @cached_property
    def seen(self) -> list[Seen]:
        """All network messages; ids of the sender must have been declared before they are used."""
        messages = list(self.raw())
        tables: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
        for src, dst, packet, _ in messages:
            if type(packet.payload).__name__ == "ZenohDeclareKeyexpr":
                tables[src, dst].setdefault(packet.payload.expr_id, packet.payload.suffix)
        known: dict[tuple[str, str], set[int]] = defaultdict(set)
        found = []
        for src, dst, packet, lane in messages:
            named = packet if "scope" in packet.default_fields else packet.payload
            key = None
            if type(named).__name__ == "ZenohDeclareKeyexpr":
                known[src, dst].add(named.expr_id)
                key = named.suffix
            elif "scope" in getattr(named, "default_fields", ()):
                key = named.suffix or ""
                if named.scope and named.M:
                    assert named.scope in known[src, dst], "used before it was declared"
                    key = tables[src, dst][named.scope] + key
                elif named.scope:
                    key = tables[dst, src][named.scope] + key
            found.append(Seen(src, dst, packet, key, lane))
        return found

    def zid(self, node: str) -> str:
        """The id of a node of the truth file."""
        return str(self.truth["nodes"][node]["zid"])

    def events(self, *ops: str) -> list[dict[str, Any]]:
        """The events of some kinds."""
        return [e for e in self.truth["events"] if e["op"] in ops]

    def of(self, *kinds: str) -> list[Seen]:
        """The network messages of some classes."""
        return [s for s in self.seen if type(s.packet).__name__ in kinds]

    def served_by(self, publisher: str) -> list[str]:
        """The subscribers of a publisher, by what they declare."""
        wanted = f"plant/{publisher}/**"
        return [e["node"] for e in self.events("declare_subscriber") if e["key"] == wanted]


def make(folder: Path, shape: Shape, name: str = "made") -> Capture:
    path = folder / f"{name}.pcap"
    told = generate(shape, path)
    assert told == folder / f"{name}.truth.json"
    return Capture(path, shape, json.loads(told.read_text(encoding="utf-8")))


@pytest.fixture(scope="module", params=list(SHAPES))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """Each shape in turn, made and read once for all tests."""
    return make(tmp_path_factory.mktemp("made"), SHAPES[request.param])


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def extension(packet: Any, *names: str) -> Any:
    return next((e for e in packet.exts or () if type(e).__name__ in names), None)


def attachment(data: Any) -> str:
    found = extension(data, "ZenohExtAttachment", "ZenohExtDelAttachment", "ZenohExtQueryAttachment")
    return found.data.hex() if found else ""


def quality(packet: Any) -> tuple[int, str, bool]:
    found = extension(packet, "ZenohExtQoS")
    return (int(found.priority), found.congestion(), bool(found.express)) if found else (5, "drop", False)


PRIORITIES = {"REAL_TIME": 1, "INTERACTIVE_HIGH": 2, "DATA_HIGH": 4, "DATA": 5, "BACKGROUND": 7}


def told_quality(event: dict[str, Any]) -> tuple[int, str, bool]:
    priority = PRIORITIES[event.get("priority", "DATA")]
    return priority, event.get("congestion", "DROP").lower(), event.get("express", False)


def stamp(data: Any) -> str:
    return f"{int(data.ts_time)}/{data.ts_id}" if data.T else ""


# --- the wire -----------------------------------------------------------------------------------


def test_every_batch_is_good_and_rebuilt_from_its_fields(made: Capture) -> None:
    assert made.units
    for unit, packet in made.units:
        assert packet.fault is None, (unit.wire.hex(), [str(f) for _, f in packet.faults()])
        assert rebuild(packet) == unit.wire


def test_batches_keep_to_the_size_agreed(made: Capture) -> None:
    compressed = made.shape.compression and not made.shape.low_latency
    for unit, packet in made.units:
        if any(type(m).__name__ in ("ZenohInit", "ZenohOpen") for m in packet.msgs):
            continue
        prefix = 4 if made.shape.low_latency else 2
        limit = made.shape.batch_size + (prefix - 2 if made.shape.transport == "tcp" else 0)
        assert len(unit.wire) <= limit
        if compressed:
            plain = 1 + sum(len(rebuild(m)) for m in packet.msgs)
            assert plain <= made.shape.batch_size


def test_no_batch_has_more_messages_than_asked_for(made: Capture) -> None:
    for _, packet in made.units:
        inside = [len(m.msgs) for m in packet.msgs if type(m).__name__ == "ZenohFrame"]
        assert sum(inside) <= made.shape.per_batch


def test_sequence_numbers_of_each_lane_have_no_gap(made: Capture) -> None:
    assert made.seen
    mask = {8: 0x7F, 16: 0x3FFF, 32: 0x0FFFFFFF}[made.shape.sn_bits]
    for (way, _), numbers in made.lanes.items():
        expected = made.opens[way]
        for sn, last_fragment in numbers:
            assert sn == expected
            expected = (sn + (2 if last_fragment else 1)) & mask
    if not made.shape.low_latency:
        assert made.lanes


def test_lanes_are_those_of_the_messages(made: Capture) -> None:
    for seen in made.seen:
        priority = quality(seen.packet)[0]
        if seen.lane is None:
            assert made.shape.low_latency
        else:
            assert seen.lane[0] == (priority if made.shape.qos else 5)


def test_every_link_opens_lives_and_closes(made: Capture) -> None:
    kinds: dict[tuple[str, str], list[str]] = defaultdict(list)
    for unit, packet in made.units:
        kinds[made.zids[unit.src], made.zids[unit.dst]] += [type(m).__name__ for m in packet.msgs]
    router = made.zid("router")
    clients = [n for n in made.truth["nodes"] if n != "router"]
    assert len(clients) == made.shape.sessions
    for client in map(made.zid, clients):
        there, back = kinds[client, router], kinds[router, client]
        assert there[:2] == back[:2] == ["ZenohInit", "ZenohOpen"]
        assert there[-1] == "ZenohClose"
        assert "ZenohKeepAlive" in there
        assert "ZenohKeepAlive" in back


def test_accounting_of_the_truth_file(made: Capture) -> None:
    told = made.truth["wire"]
    assert told["network_messages"] == len(made.seen)
    assert told["batches"] == len(made.units)
    assert told["link_bytes"] == sum(len(unit.wire) for unit, _ in made.units)
    assert told["fragments"] == sum(type(m).__name__ == "ZenohFragment" for _, p in made.units for m in p.msgs)
    assert made.truth["capture"]["file_bytes"] == made.path.stat().st_size
    assert made.truth["capture"]["packets"] == sum(1 for _ in RawPcapReader(str(made.path)))


def test_packets_are_right_and_in_time(made: Capture) -> None:
    before, idents = 0, set()
    for number, (data, meta) in enumerate(RawPcapReader(str(made.path))):
        assert meta.wirelen == len(data)
        now = meta.sec * 10**9 + meta.usec  # of a file with nanoseconds
        assert now > before
        before = now
        idents.add(data[18:20])
        if number % 7:
            continue
        packet = Ether(data)
        layer = packet.getlayer(TCP) or packet.getlayer(UDP)
        told = packet[IP].chksum, layer.chksum
        assert packet[IP].len == len(data) - 14
        del packet[IP].chksum, layer.chksum
        again = Ether(bytes(packet))
        assert told == (again[IP].chksum, (again.getlayer(TCP) or again.getlayer(UDP)).chksum)
    assert len(idents) > 1


def test_acknowledgements_never_run_ahead(made: Capture) -> None:
    sent: dict[tuple[Any, Any], int] = {}
    acknowledgements = 0
    for data, _ in RawPcapReader(str(made.path)):
        if made.shape.transport == "udp":
            break
        tcp = Ether(data)[TCP]
        way = (data[26:30], tcp.sport), (data[30:34], tcp.dport)
        size = len(data) - 54 + (1 if tcp.flags.S or tcp.flags.F else 0)
        assert tcp.seq == sent.get(way, tcp.seq)
        sent[way] = (tcp.seq + size) % (1 << 32)
        if tcp.flags.A:
            acknowledgements += 1
            assert (sent[way[::-1]] - tcp.ack) % (1 << 32) < 1 << 17
    assert acknowledgements or made.shape.transport == "udp"


# --- what the applications did ------------------------------------------------------------------


def test_every_put_is_on_both_links_with_its_key(made: Capture) -> None:
    router = made.zid("router")
    by_router = made.shape.timestamps == "router"
    found: Counter[Any] = Counter()
    for seen in made.of("ZenohPush"):
        data = seen.last
        kind = type(data).__name__
        content = (digest(data.data), data.encoding) if kind == "ZenohPut" else ("", "")
        found[seen.src, seen.dst, seen.key, kind, content, attachment(data), quality(seen.packet)] += 1
        assert bool(data.T) == (made.shape.timestamps != "none" and (seen.src == router or not by_router))
    expected: Counter[Any] = Counter()
    for event in made.events("put", "delete"):
        put = event["op"] == "put"
        content = (event["payload"]["sha256"], event.get("encoding", "zenoh/bytes")) if put else ("", "")
        kind = "ZenohPut" if put else "ZenohDel"
        rest = event["key"], kind, content, event.get("attachment", ""), told_quality(event)
        source = made.zid(event["node"])
        expected[(source, router, *rest)] += 1
        for subscriber in made.served_by(event["node"]):
            expected[(router, made.zid(subscriber), *rest)] += 1
    assert found == expected


def test_samples_are_what_subscribers_are_sent(made: Capture) -> None:
    arrived: dict[tuple[str, str | None], list[Any]] = defaultdict(list)
    for seen in made.of("ZenohPush"):
        arrived[seen.dst, seen.key].append(seen)
    samples: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for sample in made.truth["rx_samples"]:
        samples[made.zid(sample["node"]), sample["key"]].append(sample)
    told = {(made.zid(n), key): v for n, subs in made.truth["received"].items() for key, v in subs["s1"].items()}
    assert set(samples) == set(told)
    for where, seen_here in arrived.items():
        if where[0] == made.zid("router"):
            continue
        puts = [s.last.data for s in seen_here if type(s.last).__name__ == "ZenohPut"]
        assert told[where]["count"] == len(seen_here)  # type: ignore[index]
        assert told[where]["kinds"].get("PUT", 0) == len(puts)  # type: ignore[index]
        assert told[where]["bytes"] == sum(map(len, puts))  # type: ignore[index]
        stamps = Counter(stamp(s.last) for s in seen_here)
        assert stamps == Counter(s.get("timestamp", "") for s in samples[where])  # type: ignore[index]
        if len({s.lane for s in seen_here}) == 1:  # other lanes overtake
            assert told[where]["sha256_concat"] == digest(b"".join(puts))  # type: ignore[index]


def test_every_query_is_answered_to_the_end(made: Capture) -> None:
    router = made.zid("router")
    asked: dict[tuple[str, str, int], Seen] = {}
    for seen in made.of("ZenohRequest"):
        way = seen.src, seen.dst, seen.packet.request_id
        assert way not in asked
        asked[way] = seen
    answers: dict[tuple[str, str, int], list[Seen]] = defaultdict(list)
    finals: Counter[tuple[str, str, int]] = Counter()
    for seen in made.of("ZenohResponse", "ZenohResponseFinal"):
        way = seen.dst, seen.src, seen.packet.request_id
        assert way in asked
        assert not finals[way]
        if type(seen.packet).__name__ == "ZenohResponse":
            assert seen.key == asked[way].key
            answers[way].append(seen)
        else:
            finals[way] += 1
    assert all(finals[way] == 1 for way in asked)

    def told(node: str, event: dict[str, Any]) -> tuple[Any, ...]:
        key, _, parameters = event["selector"].partition("?")
        payload = event.get("payload", {}).get("sha256")
        return node, key, parameters, payload, event.get("encoding", "zenoh/bytes"), event.get("attachment", "")

    def read(node: str, seen: Seen) -> tuple[Any, ...]:
        query, body = seen.last, extension(seen.last, "ZenohExtQueryBody")
        payload, encoding = (digest(body.data), body.encoding) if body else (None, "zenoh/bytes")
        return node, seen.key, query.parameters or "", payload, encoding, attachment(query)

    gets = Counter(told(made.zid(e["node"]), e) for e in made.events("get"))
    received = Counter(told(made.zid(e["node"]), e) for e in made.events("rx_query"))
    assert gets == Counter(read(s.src, s) for s in asked.values() if s.dst == router)
    assert received == Counter(read(s.dst, s) for s in asked.values() if s.src == router)

    def replied(reply: dict[str, Any]) -> tuple[Any, ...]:
        if "err" in reply:
            return "err", reply["err"]["sha256"], reply["encoding"], "", reply["replier"]
        if reply["kind"] == "DELETE":
            return "del", "", "", "", reply["replier"]
        return "put", reply["payload"]["sha256"], reply["encoding"], reply.get("attachment", ""), reply["replier"]

    def answered(seen: Seen) -> tuple[Any, ...]:
        data, by = seen.last, extension(seen.packet, "ZenohExtResponderId").zid
        kind = {"ZenohErr": "err", "ZenohDel": "del", "ZenohPut": "put"}[type(data).__name__]
        content = (digest(data.data), data.encoding) if kind != "del" else ("", "")
        return kind, *content, attachment(data) if kind != "err" else "", by

    wanted = Counter((made.zid(e["node"]), *replied(r)) for e in made.events("get") for r in e["replies"])
    both = [Counter(), Counter()]  # type: list[Counter[Any]]
    for way, responses in answers.items():
        for seen in responses:
            to_router = way[1] == router
            both[to_router][(way[0] if to_router else "any", *answered(seen))] += 1
    assert both[True] == wanted
    assert both[False] == sum((Counter({("any", *w[1:]): n}) for w, n in wanted.items()), Counter())
    replies = made.events("reply", "reply_err", "reply_del")
    assert len(replies) == sum(wanted.values())


def test_declarations_are_on_the_wire(made: Capture) -> None:
    declared = Counter((s.src, type(s.last).__name__, s.key) for s in made.of("ZenohDeclare"))
    names = {
        "declare_subscriber": "ZenohDeclareSubscriber",
        "declare_queryable": "ZenohDeclareQueryable",
        "declare_token": "ZenohDeclareToken",
        "declare_keyexpr": "ZenohDeclareKeyexpr",
    }
    for event in made.events(*names):
        assert declared[made.zid(event["node"]), names[event["op"]], event["key"]] == 1
    undeclared = [s for s in made.of("ZenohDeclare") if type(s.last).__name__.startswith("ZenohUndeclare")]
    assert len(undeclared) == len(made.events("undeclare"))


def test_events_are_in_time_order_and_counted(made: Capture) -> None:
    times = [event["t"] for event in made.truth["events"]]
    assert times == sorted(times)
    sent = made.events("put", "delete", "get")
    moved = [e for e in made.events("undeclare", "declare_subscriber", "declare_queryable", "declare_token",
                                    "declare_keyexpr") if e["id"].startswith("x")]  # fmt: skip
    assert len(sent) + len(moved) == made.shape.messages
    replies = sum(len(e["replies"]) for e in made.events("get"))
    assert made.truth["messages"] == made.shape.messages + replies


# --- each option --------------------------------------------------------------------------------


def pushes(capture: Capture) -> list[Seen]:
    return capture.of("ZenohPush")


def puts(capture: Capture) -> list[Any]:
    return [s.last for s in pushes(capture) if type(s.last).__name__ == "ZenohPut"]


def scopes(capture: Capture) -> set[tuple[bool, bool, int]]:
    """Of samples: whether there is a scope, whether there is a suffix, and whose id it is."""
    return {(bool(s.packet.scope), bool(s.packet.suffix), s.packet.M) for s in pushes(capture)}


def frames(capture: Capture) -> list[int]:
    return [len(m.msgs) for _, p in capture.units for m in p.msgs if type(m).__name__ == "ZenohFrame"]


def init(capture: Capture) -> Any:
    return next(m for _, p in capture.units for m in p.msgs if type(m).__name__ == "ZenohInit" and m.A)


ONLY_PUTS: dict[str, Any] = {"messages": 60, "queries": 0, "deletes": 0, "declarations": 0}

OPTIONS: list[tuple[str, dict[str, Any], Callable[[Capture], bool]]] = [
    ("messages", {**ONLY_PUTS, "messages": 33}, lambda c: len(puts(c)) == 66),
    ("sessions", {**ONLY_PUTS, "sessions": 9}, lambda c: len(c.zids) == 10 and len(c.served_by("pub0")) == 2),
    ("queries", {**ONLY_PUTS, "queries": 1.0}, lambda c: not pushes(c) and len(c.events("get")) == 60),
    ("deletes", {**ONLY_PUTS, "deletes": 1.0}, lambda c: not puts(c) and len(pushes(c)) == 120),
    ("declarations", {**ONLY_PUTS, "declarations": 1.0}, lambda c: not pushes(c) and bool(c.events("undeclare"))),
    ("keys", {**ONLY_PUTS, "keys": 4}, lambda c: len({s.key for s in pushes(c)}) == 4),
    ("text", {**ONLY_PUTS, "key_form": "text"}, lambda c: scopes(c) == {(False, True, 1)}),
    ("prefix", {**ONLY_PUTS, "key_form": "prefix"}, lambda c: scopes(c) == {(True, True, 1), (True, True, 0)}),
    ("declared", {**ONLY_PUTS, "key_form": "declared"}, lambda c: scopes(c) == {(True, False, 1)}),
    ("mixed", ONLY_PUTS, lambda c: len(scopes(c)) == 4),
    ("payload", {**ONLY_PUTS, "payload": (5, 7)}, lambda c: {len(p.data) for p in puts(c)} == {5, 6, 7}),
    ("empty payload", {**ONLY_PUTS, "payload": (0, 0)}, lambda c: {len(p.data) for p in puts(c)} == {0}),
    (
        "large",
        {**ONLY_PUTS, "large": 0.5, "large_payload": (60_000, 70_000), "messages": 12},
        lambda c: c.truth["wire"]["fragments"] >= 8 and 4 < sum(len(p.data) >= 60_000 for p in puts(c)) < 20,
    ),
    (
        "encodings",
        {**ONLY_PUTS, "encodings": ("image/png", "a/b;c")},
        lambda c: len({p.encoding for p in puts(c)}) == 2,
    ),
    ("attachments", {**ONLY_PUTS, "attachments": 1.0}, lambda c: all(attachment(p) for p in puts(c))),
    ("no stamps", {**ONLY_PUTS, "timestamps": "none"}, lambda c: not any(p.T for p in puts(c))),
    ("router stamps", ONLY_PUTS, lambda c: {p.ts_id for p in puts(c)} == {None, c.zid("router")}),
    ("source stamps", {**ONLY_PUTS, "timestamps": "source"}, lambda c: {p.ts_id for p in puts(c)} == {c.zid("pub0")}),
    ("lanes", ONLY_PUTS, lambda c: extension(init(c), "ZenohExtLanes") is not None),
    ("no lanes", {**ONLY_PUTS, "qos": False}, lambda c: extension(init(c), "ZenohExtLanes") is None),
    (
        "priorities",
        {**ONLY_PUTS, "priorities": (1, 6)},
        lambda c: {s.lane for s in pushes(c)} == {(1, 1), (6, 1)},
    ),
    (
        "congestion",
        {**ONLY_PUTS, "congestion": ("block", "block_first")},
        lambda c: {quality(s.packet)[1] for s in pushes(c)} == {"block", "block_first"},
    ),
    ("express", {**ONLY_PUTS, "express": 1.0}, lambda c: set(frames(c)) == {1}),
    ("best effort", {**ONLY_PUTS, "best_effort": 1.0}, lambda c: {s.lane for s in pushes(c)} == {(5, 0)}),
    ("per batch", {**ONLY_PUTS, "per_batch": 20, "key_form": "text"}, lambda c: frames(c).count(20) == 6),
    ("batch size", {**ONLY_PUTS, "batch_size": 500}, lambda c: init(c).batch_size == 500),
    ("sn bits", {**ONLY_PUTS, "sn_bits": 16}, lambda c: init(c).sn_resolution == 1),
    (
        "compression",
        {**ONLY_PUTS, "compression": True},
        lambda c: any(isinstance(p, ZenohCompressedBatch) and p.C for _, p in c.units),
    ),
    (
        "noise is not compressed",
        {**ONLY_PUTS, "compression": True, "text": 0.0, "payload": (500, 600), "per_batch": 1},
        lambda c: not any(isinstance(p, ZenohCompressedBatch) and p.C for _, p in c.units),
    ),
    ("low latency", {**ONLY_PUTS, "low_latency": True, "qos": False}, lambda c: not frames(c) and len(puts(c)) == 120),
    ("udp", {**ONLY_PUTS, "transport": "udp"}, lambda c: {s.proto for s in segments(c.path)} == {"udp"}),
    ("segment", {**ONLY_PUTS, "segment": 100}, lambda c: max(len(s.data) for s in segments(c.path)) == 100),
    (
        "rate",
        {**ONLY_PUTS, "rate": 10.0},
        lambda c: 4.7e9 < c.events("put")[-1]["t"] - c.events("put")[0]["t"] < 7e9,
    ),
    ("events", {**ONLY_PUTS, "events": 7}, lambda c: len(c.events("put")) == 7 and len(puts(c)) == 120),
]


@pytest.mark.parametrize(("values", "holds"), [o[1:] for o in OPTIONS], ids=[o[0] for o in OPTIONS])
def test_option(values: dict[str, Any], holds: Callable[[Capture], bool], tmp_path: Path) -> None:
    assert holds(make(tmp_path, Shape(**values)))


# --- damage, seeds, memory ----------------------------------------------------------------------


def records(path: Path) -> list[bytes]:
    return [data for data, _ in RawPcapReader(str(path))]


def test_damage_is_told(tmp_path: Path) -> None:
    whole = make(tmp_path, Shape(messages=300), "whole")
    shape = Shape(messages=300, loss=0.05, reorder=0.05, duplicate=0.05)
    bad = make(tmp_path, shape, "bad")
    assert "damage" not in whole.truth
    assert {d["action"] for d in bad.truth["damage"]} == {"drop", "dup", "reorder"}
    frames = records(whole.path)
    missing = {d["frame"] for d in bad.truth["damage"] if d["action"] != "dup"}
    left = [f for number, f in enumerate(frames, 1) if number not in missing]
    added = sorted((d["out"], d["frame"]) for d in bad.truth["damage"] if "out" in d)
    for out, frame in added:
        left.insert(out - 1, frames[frame - 1])
    assert left == records(bad.path)
    assert bad.truth["capture"]["packets"] == len(left)
    assert bad.truth["events"] == whole.truth["events"]


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    def content(name: str, seed: int) -> tuple[bytes, bytes]:
        shape = Shape(messages=200, sessions=6, seed=seed, compression=True, loss=0.01, reorder=0.01, attachments=0.5)
        path = tmp_path / name / "x.pcap"
        path.parent.mkdir()
        return path.read_bytes() if generate(shape, path).exists() else b"", (path.parent / "x.truth.json").read_bytes()

    assert content("a", 1) == content("b", 1)
    assert content("c", 1) != content("d", 2)


def test_memory_does_not_grow_with_messages(tmp_path: Path) -> None:
    def peak(messages: int) -> int:
        tracemalloc.start()
        try:
            generate(Shape(messages=messages, keys=5), tmp_path / "x.pcap")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is made once
    assert peak(6_000) < peak(1_000) + 300_000  # the files grow by 3 MB


def test_files_are_written_as_traffic_is_made(tmp_path: Path) -> None:
    path, sizes = tmp_path / "x.pcap", []
    generate(Shape(messages=3000, payload=(1000, 1000)), path, lambda done: sizes.append(path.stat().st_size))
    assert sizes[0] < sizes[len(sizes) // 2] < sizes[-1]


def test_nothing_is_left_when_it_fails(tmp_path: Path) -> None:
    def fail(done: int) -> None:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        generate(Shape(), tmp_path / "x.pcap", fail)
    assert not list(tmp_path.iterdir())


# --- impossible shapes and the command line -----------------------------------------------------

IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"messages": -1}, "messages must be between 0"),
    ({"sessions": 1}, "sessions must be between 2"),
    ({"keys": 0}, "keys must be between 1"),
    ({"keys": 40_000}, "40000 keys cannot be declared"),
    ({"queries": 1.5}, "queries is a share between 0 and 1"),
    ({"queries": 0.6, "deletes": 0.3, "declarations": 0.2}, "more than 1 together"),
    ({"payload": (9, 8)}, "payload sizes must rise"),
    ({"large_payload": (1, 1 << 30)}, "large_payload sizes must rise"),
    ({"batch_size": 10}, "batch_size must be between 64"),
    ({"batch_size": 65_535, "transport": "udp"}, "a batch on udp has at most 65487"),
    ({"low_latency": True}, "low latency excludes the lanes"),
    ({"low_latency": True, "qos": False, "payload": (0, 60_000)}, "needs? a batch_size of at least 60600"),
    ({"priorities": (0,)}, "priorities of applications"),
    ({"priorities": ()}, "priorities of applications"),
    ({"congestion": ("never",)}, "congestion control is one of"),
    ({"encodings": ()}, "at least one encoding"),
    ({"encodings": ("x" * 256,)}, "longer than 255 bytes"),
    ({"key_form": "short"}, "key_form is one of text, prefix"),
    ({"timestamps": "me"}, "timestamps is one of"),
    ({"transport": "tls"}, "transport is one of tcp, udp"),
    ({"sn_bits": 64}, "sn_bits is one of 8, 16, 32"),
    ({"rate": 0}, "rate must be above 0"),
    ({"loss": -0.1}, "loss is a share"),
    ({"events": -1}, "events cannot be negative"),
]


@pytest.mark.parametrize(("values", "reason"), IMPOSSIBLE)
def test_impossible_shape_is_refused(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Shape(**values)


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(arguments)


def test_arguments_default_to_the_usual_shape() -> None:
    assert shape_of(options("-o", "x.pcap")) == Shape()


def test_every_field_of_a_shape_is_an_argument() -> None:
    given = options(
        *"-o x.pcap --messages 1 --sessions 4 --seed 5 --queries .2 --deletes .1 --declarations .3 --keys 7".split(),
        *"--key-form text --payload 1 2 --large .5 --large-payload 3 4 --text .1 --attachments .2".split(),
        *"--encodings text/plain a/b --timestamps none --no-qos --priorities 1 2 --congestion block".split(),
        *"--express .1 --best-effort .2 --per-batch 3 --batch-size 2000 --sn-bits 8".split(),
        *"--compression --low-latency --transport udp --segment 99 --rate 7".split(),
        *"--loss .1 --reorder .2 --duplicate .3 --events 4".split(),
    )
    assert shape_of(given) == Shape(
        messages=1, sessions=4, seed=5, queries=0.2, deletes=0.1, declarations=0.3, keys=7, key_form="text",
        payload=(1, 2), large=0.5, large_payload=(3, 4), text=0.1, attachments=0.2, encodings=("text/plain", "a/b"),
        timestamps="none", qos=False, priorities=(1, 2), congestion=("block",), express=0.1, best_effort=0.2,
        per_batch=3, batch_size=2000, sn_bits=8, compression=True, low_latency=True, transport="udp", segment=99,
        rate=7.0, loss=0.1, reorder=0.2, duplicate=0.3, events=4,
    )  # fmt: skip


def test_command_writes_both_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.pcap"
    assert run(options("-o", str(path), "--messages", "5")) == 0
    said = capsys.readouterr()
    assert str(path) in said.out
    assert said.err == ""
    assert path.exists()
    assert (tmp_path / "x.truth.json").exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["-o", "x.pcap", "--sessions", "1"], "sessions must be between 2"),
        (["-o", "missing/x.pcap"], "missing"),
        (["-o", "x.truth.json"], "is the name of a truth file"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(options(*arguments)) == 2
    said = capsys.readouterr()
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
