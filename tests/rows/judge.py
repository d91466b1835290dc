"""What the nodes of a capture did, and whether rows tell exactly that: nothing missing, nothing invented.

A truth file is written by the applications. ``missing`` lists what they did or got that no row shows.
``unexplained`` lists the rows that nothing they did explains. Nodes also make messages by themselves;
``RULES`` says which, one predicate with its reason each, and a row must be explained by one of them.
Rows are counted: where an application put something once, the second such row of a session and
direction is not explained.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Row = dict[str, Any]
Event = dict[str, Any]

PRIORITIES = ("REAL_TIME", "INTERACTIVE_HIGH", "INTERACTIVE_LOW", "DATA_HIGH", "DATA", "DATA_LOW", "BACKGROUND")
PRIORITY = {name: number for number, name in enumerate(PRIORITIES, 1)}
EMPTY = hashlib.sha256(b"").hexdigest()
SECOND = 10**9
DECLARES = {
    "declare_subscriber": "subscriber",
    "declare_advanced_subscriber": "subscriber",
    "declare_queryable": "queryable",
    "declare_token": "token",
}
OWNED = {**DECLARES, "declare_keyexpr": "keyexpr"}
KINDS = {"Subscriber": "subscriber", "Queryable": "queryable", "LivelinessToken": "token", "KeyExpr": "keyexpr"}


def short(zid: str | None) -> str:
    """An id without leading zeros, however it was printed."""
    return (zid or "").lower().lstrip("0")


def content(row: Row) -> str:
    """The payload by its digest; in shared memory only its length is known."""
    if row["shm"] and row["payload"] is None:
        return f"{row['payload_len']} bytes elsewhere"
    return hashlib.sha256(row["payload"] or b"").hexdigest()


def utc(timestamp: str) -> tuple[int, str]:
    """A timestamp as Zenoh prints it: ns since 1970, and who made it."""
    time, _, maker = timestamp.partition("/")
    seconds, fraction = divmod(int(time), 1 << 32)
    return seconds * SECOND + (fraction * SECOND >> 32), short(maker)


def same_time(row: Row, timestamp: str) -> bool:
    """A row has this timestamp; the last digit may be rounded."""
    time, maker = utc(timestamp)
    return row["timestamp_time"] is not None and abs(row["timestamp_time"] - time) <= 1 and row["timestamp_id"] == maker


def burst(event: Event) -> Iterator[bytes]:
    """The payloads of a burst, by the rule that the truth file gives."""
    for i in range(event["start"], event["start"] + event["count"]):
        size = event["min_len"] + (7 * i) % (event["max_len"] - event["min_len"] + 1)
        text = b"%08d" % i + b"abcdefghijklmnopqrstuvwxyz0123456789" * (size // 36 + 1)
        yield text[:size]


class Made(NamedTuple):
    """What identifies a sample, a query or a reply, whoever forwards it."""

    key: str
    body: str
    content: str
    encoding: str | None
    attachment: str | None
    qos: tuple[Any, ...] = ()
    more: tuple[Any, ...] = ()


class World:
    """A truth file, asked for."""

    def __init__(self, truth: dict[str, Any], rows: list[Row]) -> None:
        self.truth, self.rows = truth, rows
        self.events: list[Event] = truth["events"]
        self.nodes: dict[str, Any] = truth["nodes"]
        self.node_of: dict[str, str] = {}
        self.fleet: dict[tuple[str, str], str] = {}
        for name, node in self.nodes.items():
            if node.get("zid"):
                self.node_of[short(node["zid"])] = name
        for e in self.events:
            if e["op"] in ("open", "fleet_open") and e.get("zid"):
                self.node_of[short(e["zid"])] = e["node"]
            if e["op"] == "fleet_open":
                self.fleet[e["node"], f"f{e['node'].removeprefix('fleet')}{e['index']}"] = short(e["zid"])
        self.entities = {(e["node"], e["id"]): e for e in self.events if "id" in e and e["op"].startswith("declare_")}
        self.head = any(note.startswith("the first ") for note in truth["notes"])
        self.down = any("session is down" in note for note in truth["notes"])
        self.stops = any("capture stops" in note for note in truth["notes"])
        for name, node in self.nodes.items():  # a node that was refused says no id; its name is the only one left
            if node.get("zid") is None and any(e["op"] == "failed" and e["node"] == name for e in self.events):
                strangers = {r["src_zid"] for r in rows if r["kind"] == "init_syn"} - set(self.node_of)
                self.node_of.update({zid: name for zid in strangers if zid})

    def zids(self, node: str, session: str | None = None) -> set[str]:
        """The ids of a node, or of one session of a fleet."""
        if (node, session) in self.fleet:
            return {self.fleet[node, session or ""]}
        return {zid for zid, name in self.node_of.items() if name == node}

    def role(self, zid: str | None) -> str:
        """The role of a node."""
        return self.nodes.get(self.node_of.get(zid or "", ""), {}).get("role") or ""

    def wire(self, node: str, key: str) -> str:
        """A key as it is on the wire: with the namespace of the node."""
        space = (self.nodes[node].get("config") or {}).get("namespace")
        return f"{space}/{key}" if space else key

    def of(self, *ops: str) -> Iterator[Event]:
        """The events of these kinds."""
        return (e for e in self.events if e["op"] in ops)

    def outlives(self, node: str, time: int) -> bool:
        """A node has not closed or died before."""
        return not any(e["node"] == node and e["t"] < time for e in self.of("close", "killed", "fleet_close"))


# --- what applications made ---------------------------------------------------------------------


def qos(event: Event, congestion: str = "DROP") -> tuple[int, str, bool]:
    """Priority, congestion control and express, with their defaults."""
    return (
        PRIORITY[event.get("priority") or "DATA"],
        (event.get("congestion") or congestion).lower(),
        bool(event.get("express")),
    )


def row_qos(row: Row) -> tuple[int, str, bool]:
    """The same of a row."""
    return row["priority"], row["congestion"], row["express"]


def hexed(data: bytes | None) -> str | None:
    """Bytes as truth files write them."""
    return data.hex() if data else None


def samples_of(world: World) -> Iterator[tuple[Event, str, Made]]:
    """Every sample that an application put: event, id of the session, identity."""
    for e in world.of("put", "delete", "burst"):
        merged = {**world.entities.get((e["node"], e.get("pub")), {}), **e}
        key, encoding = world.wire(e["node"], e["key"]), merged.get("encoding") or "zenoh/bytes"
        for zid in world.zids(e["node"], e.get("session")):
            if e["op"] == "burst":
                for data in burst(e):
                    yield e, zid, Made(key, "put", hashlib.sha256(data).hexdigest(), encoding, None, qos(merged))
            elif e["op"] == "put":
                for shown in (e["payload"]["sha256"], f"{e['payload']['len']} bytes elsewhere"):
                    yield e, zid, Made(key, "put", shown, encoding, e.get("attachment") or None, qos(merged))
            else:
                yield e, zid, Made(key, "del", EMPTY, None, e.get("attachment") or None, qos(merged))


def sample_of(row: Row) -> Made:
    """The identity of a PUSH."""
    return Made(row["key"], row["body"], content(row), row["encoding"], hexed(row["attachment"]), row_qos(row))


def consolidation(asked: str | None, parameters: str) -> str:
    """AUTO is decided by the one who asks: latest, but none for a query over a span of time."""
    if asked in (None, "AUTO"):
        return "none" if "_time=" in parameters else "latest"
    return asked.lower()


def query_events(world: World) -> Iterator[tuple[Event, str, str]]:
    """Every get: what was asked with (the querier's settings included), key, parameters."""
    for e in world.of("get", "querier_get"):
        key, _, parameters = e.get("selector", "").partition("?")
        if e["op"] == "querier_get":
            key, parameters = e["key"], e.get("parameters") or ""
        merged = {**world.entities.get((e["node"], e.get("querier")), {}), **e}
        yield merged, world.wire(e["node"], key), parameters


def query_of(row: Row) -> tuple[Any, ...]:
    """The identity of a REQUEST."""
    return (
        row["key"], row["parameters"] or "", content(row) if row["payload"] is not None else None, row["encoding"],
        hexed(row["attachment"]), row["target"], row["consolidation"], row["timeout_ms"], row_qos(row),
    )  # fmt: skip


def asked_as(event: Event, key: str, parameters: str) -> tuple[Any, ...]:
    """The identity of a get."""
    payload = event.get("payload")
    return (
        key, parameters, payload["sha256"] if payload else None,
        (event.get("encoding") or "zenoh/bytes") if payload else None, event.get("attachment") or None,
        (event.get("target") or "BEST_MATCHING").lower(), consolidation(event.get("consolidation"), parameters),
        round((event.get("timeout_s") or 10) * 1000), qos(event, "BLOCK"),
    )  # fmt: skip


def reply_of(row: Row) -> tuple[Any, ...]:
    """The identity of a RESPONSE; the key of an error is that of its query."""
    key = None if row["body"] == "err" else row["key"]
    return row["body"], key, content(row), row["encoding"], hexed(row["attachment"])


def replied_as(world: World, e: Event) -> tuple[Any, ...]:
    """The identity of a reply."""
    if e["op"] == "reply_del":
        return "reply_del", world.wire(e["node"], e["key"]), EMPTY, None, e.get("attachment") or None
    body = {"reply": "reply_put", "reply_err": "err"}[e["op"]]
    key = world.wire(e["node"], e["key"]) if body != "err" else None
    encoding = e.get("encoding") or "zenoh/bytes"
    return body, key, e["payload"]["sha256"], encoding, e.get("attachment") or None


# --- what is missing ----------------------------------------------------------------------------


def missing(truth: dict[str, Any], rows: list[Row]) -> list[str]:
    """What nodes did or got that no row shows."""
    world = World(truth, rows)
    found: list[str] = []
    for part in (_samples, _streams, _queries, _replies, _gets, _declared, _nodes, _closes):
        found += part(world)
    return found


def _rows_to(world: World, node: str, session: str | None, kinds: Iterable[str]) -> list[Row]:
    zids = world.zids(node, session)
    return [
        r for r in world.rows
        if r["kind"] in kinds and (r["dst_zid"] in zids or r["dst_zid"] is None and r["src_zid"] not in zids)
    ]  # fmt: skip


def _own(world: World) -> set[tuple[str, str]]:
    """What a node put itself is delivered inside it and need not come over the wire."""
    return {(e["node"], e["key"]) for e in world.of("put", "delete", "burst", "reply") if "session" not in e}


def _fits(sample: Event, row: Row, own: set[str]) -> bool:
    """A row shows a sample with everything that the receiver saw of it."""
    if row_qos(row) != (PRIORITY[sample["priority"]], sample["congestion"].lower(), sample["express"]):
        return False
    if sample["kind"] == "PUT" and row["encoding"] != sample["encoding"]:
        return False
    if (sample.get("attachment") or None) != hexed(row["attachment"]):
        return False
    info = sample.get("source_info")
    if info and (short(info["zid"]), info["eid"], info["sn"]) != (
        row["source_zid"], row["source_eid"], row["source_sn"],
    ):  # fmt: skip
        return False
    stamp = sample.get("timestamp")
    if not stamp:
        return row["timestamp_time"] is None
    return same_time(row, stamp) or row["timestamp_time"] is None and utc(stamp)[1] in own  # the receiver's clock


def _take(wanted: Event, candidates: list[Row], own: set[str]) -> bool:
    for number, row in enumerate(candidates):
        if _fits(wanted, row, own):
            del candidates[number]
            return True
    return False


def _samples(world: World) -> Iterator[str]:
    """Every sample that a subscriber received, each as a row of its own."""
    own = _own(world)
    live = {(e["node"], e["id"]) for e in world.of("declare_liveliness_subscriber")}
    advanced = {(e["node"], e["id"]) for e in world.of("declare_advanced_subscriber")}
    per_sub: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for s in world.truth.get("rx_samples", []):
        per_sub[s["node"], s["sub"]].append(s)
    for (node, sub), samples in per_sub.items():
        if (node, sub) in live:
            tokens = {(r["body"], r["key"]) for r in _rows_to(world, node, sub, ("declare",))}
            for s in samples:
                body = "declare_token" if s["kind"] == "PUT" else "undeclare_token"
                if (body, world.wire(node, s["key"])) not in tokens:
                    yield f"{node} saw the token {s['key']} {s['kind']}"
            continue
        kinds = ("push", "response") if (node, sub) in advanced else ("push",)
        table: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for r in _rows_to(world, node, sub, kinds):
            table[r["key"], (r["body"] or "").removeprefix("reply_"), content(r)].append(r)
        for s in samples:
            if (node, s["key"]) in own:
                continue
            key, body = world.wire(node, s["key"]), "put" if s["kind"] == "PUT" else "del"
            shapes = [s["payload"]["sha256"], f"{s['payload']['len']} bytes elsewhere"]
            if not any(_take(s, table[key, body, shape], world.zids(node)) for shape in shapes):
                yield f"{node} {sub} got {s['kind']} {s['key']} {shapes} at {s['t']}"


def _streams(world: World) -> Iterator[str]:
    """All that a subscriber received of a key, as one string of bytes: also what is not listed one by one."""
    own = _own(world)
    live = {(e["node"], e["id"]) for e in world.of("declare_liveliness_subscriber", "declare_advanced_subscriber")}
    for node, subs in world.truth.get("received", {}).items():
        for sub, keys in subs.items():
            for key, told in keys.items():
                if (node, key) in own or (node, sub) in live:
                    continue
                rows = [r for r in _rows_to(world, node, sub, ("push",)) if r["key"] == world.wire(node, key)]
                seen = Counter("PUT" if r["body"] == "put" else "DELETE" for r in rows)
                if world.truth["link"] == "tls":  # a relay: every message is there twice
                    seen = Counter({kind: count // 2 for kind, count in seen.items()})
                if any(seen[kind] < count for kind, count in told["kinds"].items()):
                    yield f"{node} {sub} got {told['kinds']} of {key}, the rows have {dict(seen)}"
                if sum(told["kinds"].values()) > 1000:
                    whole = hashlib.sha256(b"".join(r["payload"] or b"" for r in rows)).hexdigest()
                    if whole != told["sha256_concat"]:
                        yield f"{node} {sub} got other bytes of {key}"


def _queries(world: World) -> Iterator[str]:
    """Every query that a queryable saw."""
    per_node: dict[str, list[Event]] = defaultdict(list)
    for e in world.of("rx_query"):
        per_node[e["node"]].append(e)
    for node, events in per_node.items():
        rows = _rows_to(world, node, None, ("request",))
        for e in events:
            payload = e.get("payload")
            want = (
                world.wire(node, e["key"]), e.get("parameters") or "", payload["sha256"] if payload else None,
                (e.get("encoding") or "zenoh/bytes") if payload else None, e.get("attachment") or None,
            )  # fmt: skip
            if not any(query_of(r)[:5] == want and abs(r["time"] - e["t"]) < SECOND for r in rows):
                yield f"{node} was asked {want}"


def _replies(world: World) -> Iterator[str]:
    """Every reply that a getter got, each as a row of its own; tokens for a liveliness get."""
    for e in world.of("get", "querier_get"):
        node, own = e["node"], world.zids(e["node"])
        table: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for r in _rows_to(world, node, None, ("response",)):
            table[r["body"], None if r["body"] == "err" else r["key"], content(r)].append(r)
        for a in e["replies"]:
            if a.get("replier") and short(a["replier"]) in own:
                continue  # by the node itself
            if "err" in a:
                if not table["err", None, a["err"]["sha256"]]:
                    yield f"{node} got the error {a['err']}"
                continue
            key = world.wire(node, a["key"])
            deleted = a.get("kind") == "DELETE"
            rows = table["reply_del" if deleted else "reply_put", key, EMPTY if deleted else a["payload"]["sha256"]]
            rows = [r for r in rows if not a.get("replier") or r["responder_zid"] in (short(a["replier"]), None)]
            if not any(_fits(a, r, own) for r in rows):
                yield f"{node} got the reply {a['key']} {a.get('kind')} from {a.get('replier')}"
    for e in world.of("liveliness_get"):
        tokens = {r["key"] for r in _rows_to(world, e["node"], None, ("declare",)) if r["body"] == "declare_token"}
        for a in e["replies"]:
            if world.wire(e["node"], a["key"]) not in tokens:
                yield f"{e['node']} found the token {a['key']} alive"


def _gets(world: World) -> Iterator[str]:
    """Every get of a client, as it was asked."""
    asked = Counter((r["src_zid"], query_of(r)) for r in world.rows if r["kind"] == "request")
    for event, key, parameters in query_events(world):
        if world.nodes[event["node"]]["role"] != "client" or world.down and not event["replies"]:
            continue
        if not any(asked[zid, asked_as(event, key, parameters)] for zid in world.zids(event["node"])):
            yield f"{event['node']} asked {asked_as(event, key, parameters)}"


def _declared(world: World) -> Iterator[str]:
    """Every key, subscriber, queryable and token that was declared, and every one withdrawn."""
    seen = Counter((r["src_zid"], r["body"], r["key"]) for r in world.rows if r["kind"] == "declare")
    for e in world.of(*DECLARES):
        if world.nodes[e["node"]]["role"] == "router":
            continue  # a router declares to those that ask
        body = f"declare_{DECLARES[e['op']]}"
        if not any(seen[zid, body, world.wire(e["node"], e["key"])] for zid in world.zids(e["node"])):
            yield f"{e['node']}: {body} {e['key']}"
    # A key that an application declares gets its number when something is declared on it: the part before wildcards.
    for e in world.of("declare_publisher", "declare_querier", "declare_liveliness_subscriber", *DECLARES):
        key = world.wire(e["node"], e["key"]).partition("*")[0].rstrip("/")
        numbered = any(seen[zid, "declare_keyexpr", key] for zid in world.zids(e["node"]))
        made = world.nodes[e["node"]].get("implementation") == "scapy-zenoh generate"  # these declare by whole keys too
        if world.nodes[e["node"]]["role"] == "client" and key and not numbered and not made:
            yield f"{e['node']}: declare_keyexpr {key}"
    for e in world.of("undeclare"):
        entity = world.entities[e["node"], e["id"]]
        if KINDS.get(e["kind"], "keyexpr") == "keyexpr" or entity["op"] == "declare_liveliness_subscriber":
            continue  # nodes need not tell that a number is free again
        body = f"undeclare_{KINDS[e['kind']]}"
        if not any(seen[zid, body, world.wire(e["node"], entity["key"])] for zid in world.zids(e["node"])):
            yield f"{e['node']}: {body} {entity['key']}"
    for (node, session), zid in world.fleet.items():
        keys = [e["sub_key"] for e in world.of("fleet_open") if short(e["zid"]) == zid]
        if not all(seen[zid, "declare_subscriber", key] for key in keys):
            yield f"{node} {session}: declare_subscriber {keys}"


def _nodes(world: World) -> Iterator[str]:
    """The id and the role of every node, and what scouts heard."""
    met = {(r["src_zid"], r["whatami"]) for r in world.rows if r["kind"] in ("init_syn", "init_ack", "join")}
    for zid, node in world.node_of.items():
        if (zid, world.nodes[node]["role"]) not in met:
            yield f"the node {node} {zid}"
    heard = {(r["src_zid"], r["whatami"], tuple(r["locators"])) for r in world.rows if r["kind"] == "hello"}
    for e in world.of("scout"):
        for h in e["hellos_unique"]:
            if (short(h["zid"]), h["whatami"].lower(), tuple(h["locators"])) not in heard:
                yield f"the scout heard {h}"


def _closes(world: World) -> Iterator[str]:
    """A node that closes says so on every session that is still there."""
    if world.stops:
        return
    sessions: dict[str, set[str]] = defaultdict(set)
    first, over = {}, {}
    for r in world.rows:
        sessions[r["session"]] |= {r["src_zid"], r["dst_zid"]} - {None}
        first.setdefault(r["session"], r["time"])
        if r["kind"] == "close":
            over.setdefault(r["session"], (r["time"], r["src_zid"]))
    for e in world.of("close", "fleet_close"):
        for zid in world.zids(e["node"]):
            for session, ends in sessions.items():
                others = ends - {zid}
                alive = all(world.outlives(world.node_of.get(z, ""), e["t"]) for z in others)
                if zid not in ends or session.startswith("?") or not alive or first[session] > e["t"]:
                    continue
                time, who = over.get(session, (None, None))
                if time is None or who != zid and time > e["t"] + SECOND // 10:
                    yield f"{e['node']} closed {session}"


# --- what is not explained ----------------------------------------------------------------------


class Explainer(World):
    """Rows are explained in order; what can happen once is used up."""

    def __init__(self, truth: dict[str, Any], rows: list[Row]) -> None:
        super().__init__(truth, rows)
        self.made: dict[Any, Counter[str]] = defaultdict(Counter)  # identity -> who made it, how often
        self.stamps: dict[Any, list[Event]] = defaultdict(list)
        self.used: Counter[Any] = Counter()
        self.requests: dict[tuple[Any, ...], Row] = {}
        self.interests: set[tuple[Any, ...]] = set()
        self.entities_up: dict[tuple[Any, ...], str] = {}
        self.owners: dict[tuple[str, str], set[str]] = defaultdict(set)  # (what, key) -> ids
        self.keys: dict[str, set[str]] = defaultdict(set)  # keys that a node used
        for e, zid, made in samples_of(self):
            self.made[made][zid] += 1
            self.stamps[made].append(e)
        for event, key, parameters in query_events(self):
            for zid in self.zids(event["node"]):
                self.made[asked_as(event, key, parameters)][zid] += 1
        for e in self.of("reply", "reply_err", "reply_del"):
            for zid in self.zids(e["node"]):
                self.made[replied_as(self, e)][zid] += 1
                self.stamps[replied_as(self, e)].append(e)
        for e in self.of(*OWNED, "fleet_open"):
            what, key = OWNED.get(e["op"], "subscriber"), e.get("key") or e.get("sub_key")
            for zid in {short(e["zid"])} if "zid" in e else self.zids(e["node"]):
                self.owners[what, self.wire(e["node"], key)].add(zid)
        for e in self.events:
            key = e.get("key") or e.get("sub_key") or e.get("selector", "").partition("?")[0]
            for zid in self.zids(e["node"]):
                if key:
                    self.keys[zid].add(self.wire(e["node"], key))

    def once(self, row: Row, identity: Any) -> bool:
        """The sender, or behind a router anyone but the receiver, made this, and not all of it was seen here yet."""
        makers = self.made.get(identity, Counter())
        forwarded = self.role(row["src_zid"]) == "router"
        most = sum(n for zid, n in makers.items() if zid == row["src_zid"] or forwarded and zid != row["dst_zid"])
        place = (row["session"], row["src_zid"], identity)
        if self.used[place] >= most:
            return False
        self.used[place] += 1
        return True

    def stamped(self, row: Row, identity: Any) -> bool:
        """The timestamp is the application's, or was put on by the sender or a router."""
        events = self.stamps.get(identity, [])
        if any("timestamp" in e and same_time(row, e["timestamp"]) for e in events):
            return True
        if all("timestamp" in e for e in events):
            return False
        maker = row["timestamp_id"]
        return (
            row["timestamp_time"] is None
            or maker in (row["src_zid"], *self.made[identity])
            or (self.role(maker) == "router")
        )

    def request_of(self, row: Row) -> Row | None:
        """The REQUEST that a RESPONSE answers."""
        return self.requests.get((row["session"], row["dst_zid"], row["request_id"]))

    def advanced(self, zid: str | None) -> bool:
        """A node with an advanced publisher or subscriber, or a router before it."""
        nodes = {e["node"] for e in self.of("declare_advanced_publisher", "declare_advanced_subscriber")}
        return bool(nodes) and (self.node_of.get(zid or "") in nodes or self.role(zid) == "router")

    def owned(self, row: Row, what: str, key: str) -> bool:
        """The sender has declared this, or a router tells of someone else who has."""
        owners = self.owners.get((what, key), set())
        return row["src_zid"] in owners or self.role(row["src_zid"]) == "router" and bool(owners - {row["dst_zid"]})

    def gone(self, row: Row, what: str, key: str) -> bool:
        """Someone who had declared this has withdrawn it, or is gone."""
        for zid in self.owners.get((what, key), ()):
            node = self.node_of[zid]
            if zid != row["src_zid"] and not self.is_router(row):
                continue
            for e in self.of("undeclare", "close", "killed", "fleet_close"):
                if e["node"] != node or e["t"] > row["time"] + SECOND:
                    continue
                withdrawn = self.entities[node, e["id"]] if e["op"] == "undeclare" else None
                if withdrawn is None or (self.wire(node, withdrawn["key"]), KINDS.get(e["kind"])) == (key, what):
                    return True
            if any(r["kind"] == "init_syn" and r["src_zid"] == zid and r["time"] > row["time"] for r in self.rows):
                return True  # its session was over: it connects again
        return False

    def is_router(self, row: Row) -> bool:
        """The sender is a router."""
        return self.role(row["src_zid"]) == "router"

    def note(self, row: Row) -> None:
        """Remember what later rows answer to."""
        if row["kind"] == "request":
            self.requests[row["session"], row["src_zid"], row["request_id"]] = row
        elif row["kind"] == "interest":
            self.interests.add((row["session"], row["src_zid"], row["interest_id"]))
        elif row["kind"] == "declare" and row["body"].startswith("declare_"):
            what = row["body"].removeprefix("declare_")
            self.entities_up[row["session"], row["src_zid"], what, row["entity_id"]] = row["key"]


Predicate = Callable[[Explainer, Row], bool]


class Rule(NamedTuple):
    """Why a row of this kind is there."""

    kind: str
    reason: str
    holds: Predicate


def _push_of_application(world: Explainer, row: Row) -> bool:
    identity = sample_of(row)
    return world.stamped(row, identity) and world.once(row, identity)


def _heartbeat(world: Explainer, row: Row) -> bool:
    puts = sum(1 for _ in world.of("put"))
    return (
        "/@adv/pub/" in row["key"] and world.advanced(row["src_zid"])
        and len(row["payload"]) == 4 and int.from_bytes(row["payload"], "little") < puts
    )  # fmt: skip


def _response_of_application(world: Explainer, row: Row) -> bool:
    identity, request = reply_of(row), world.request_of(row)
    if request is None or row["body"] == "err" and row["key"] != request["key"]:
        return False
    makers = world.made.get(identity, ())
    if row["responder_zid"] is not None and row["responder_zid"] not in makers:
        return False
    return world.stamped(row, identity) and world.once(row, identity)


def _timeout(world: Explainer, row: Row) -> bool:
    return (row["body"], row["key"], row["payload"]) == ("err", "", b"Timeout") and world.request_of(row) is not None


def _admin_reply(world: Explainer, row: Row) -> bool:
    told = {
        (world.wire(e["node"], a["key"]), a["payload"]["sha256"])
        for e in world.of("get")
        for a in e["replies"]
        if "payload" in a
    }
    return row["key"].startswith("@/") and (row["key"], content(row)) in told and world.request_of(row) is not None


def _cached(world: Explainer, row: Row) -> bool:
    request = world.request_of(row)
    puts = {(e["key"], e["payload"]["sha256"]) for e in world.of("put")}
    return (
        request is not None and "/@adv/" in request["key"] and world.advanced(row["src_zid"])
        and (row["key"], content(row)) in puts
    )  # fmt: skip


def _answers_request(world: Explainer, row: Row) -> bool:
    return world.request_of(row) is not None


def _declared_by_application(world: Explainer, row: Row) -> bool:
    happens, _, what = row["body"].partition("_")
    return happens == "declare" and what != "keyexpr" and world.owned(row, what, row["key"])


def _withdrawn(world: Explainer, row: Row) -> bool:
    happens, _, what = row["body"].partition("_")
    place = (row["session"], row["src_zid"], what, row["entity_id"])
    if happens != "undeclare" or place not in world.entities_up:
        return False
    by_id = row["entity_id"] != 0  # with id 0 the key in the message tells
    return (not by_id or world.entities_up[place] == row["key"]) and world.gone(row, what, row["key"])


def _prefix(world: Explainer, row: Row) -> bool:
    if row["body"] != "declare_keyexpr" or not row["key"]:
        return False
    everyone = world.is_router(row)
    used = {key for zid, keys in world.keys.items() if everyone or zid == row["src_zid"] for key in keys}
    return any(key == row["key"] or key.startswith(f"{row['key']}/") for key in used)


def _declared_for_advanced(world: Explainer, row: Row) -> bool:
    return row["key"] is not None and "/@adv/" in row["key"] and world.advanced(row["src_zid"])


def _declared_for_admin(world: Explainer, row: Row) -> bool:
    return (row["key"] or "").startswith(f"@/{row['src_zid']}/")


def _end_of_current(world: Explainer, row: Row) -> bool:
    if row["body"] != "declare_final":
        return False
    initial = row["interest_id"] == 0 and world.role(row["src_zid"]) in ("peer", "router")
    return initial or (row["session"], row["dst_zid"], row["interest_id"]) in world.interests


def _storm(world: Explainer, row: Row) -> bool:
    happens, _, what = row["body"].partition("_")
    return world.truth["link"] == "udp multicast" and happens == "declare" and (
        bool(world.owners.get((what, row["key"]))) or what == "keyexpr" and any(
            key == row["key"] or key.startswith(f"{row['key']}/") for keys in world.keys.values() for key in keys
        )
    )  # fmt: skip


def _closed_by_application(world: Explainer, row: Row) -> bool:
    node = world.node_of.get(row["src_zid"])
    return any(e["node"] == node and abs(e["t"] - row["time"]) < SECOND for e in world.of("close", "fleet_close"))


def _answered_close(world: Explainer, row: Row) -> bool:
    before = [r for r in world.rows if r["session"] == row["session"] and 0 <= row["time"] - r["time"]]
    return any(r["lowlatency"] for r in before) and any(
        r["kind"] == "close" and row["time"] - r["time"] < SECOND for r in before if r is not row
    )


def _refused(world: Explainer, row: Row) -> bool:
    failed = {e["node"] for e in world.of("failed") if "failed_op" not in e}
    return world.is_router(row) and world.node_of.get(row["dst_zid"]) in failed


def _too_long(world: Explainer, row: Row) -> bool:
    node = world.node_of.get(row["dst_zid"])
    return row["lowlatency"] and any(e["node"] == node and e["payload"]["len"] > 49152 for e in world.of("put"))


RULES = (
    Rule("push", "an application put it, with these settings; a router forwards it once", _push_of_application),
    Rule("push", "an advanced publisher tells how far it has got", _heartbeat),
    Rule("request", "an application asked; a router forwards it once", lambda w, r: w.once(r, query_of(r))),
    Rule(
        "request",
        "an advanced subscriber asks for history",
        lambda w, r: "/@adv/" in r["key"] and w.advanced(r["src_zid"]),
    ),
    Rule("response", "an application replied to this request; a router passes it on once", _response_of_application),
    Rule("response", "the time for a query ran out", _timeout),
    Rule("response", "the admin space answered, and the getter says so", _admin_reply),
    Rule("response", "the cache of an advanced publisher holds what was put", _cached),
    Rule("response_final", "it ends a request of this session", _answers_request),
    Rule("declare", "an application declared it; a router tells others", _declared_by_application),
    Rule("declare", "who declared it withdrew it or is gone", _withdrawn),
    Rule("declare", "a number for the beginning of a key that the sender (a router: anyone) uses", _prefix),
    Rule("declare", "advanced publishers and subscribers find each other by @adv", _declared_for_advanced),
    Rule("declare", "a node answers for its own admin space", _declared_for_admin),
    Rule("declare", "all current declarations were sent, for an interest or at first", _end_of_current),
    Rule("declare", "peers on a multicast group repeat what others declare", _storm),
    Rule("close", "the application closed its session", _closed_by_application),
    Rule("close", "low latency: a CLOSE is answered with one", _answered_close),
    Rule("close", "a node was not let in", _refused),
    Rule("close", "low latency: a message that is too long ends the session", _too_long),
)


def unexplained(truth: dict[str, Any], rows: list[Row]) -> list[str]:
    """The rows that nothing explains."""
    world = Explainer(truth, rows)
    judged = {rule.kind for rule in RULES}
    found = []
    for row in rows:
        world.note(row)
        if row["kind"] in ("init_syn", "init_ack", "join", "hello") and world.role(row["src_zid"]) != row["whatami"]:
            found.append(f"frame {row['frame']}: {row['kind']} of {row['src_zid']} {row['whatami']}")
        if row["kind"] == "unknown" or row["fault"]:
            found.append(f"frame {row['frame']}: {row['kind']} {row['fault']}")
        elif row["kind"] in judged and not any(rule.holds(world, row) for rule in RULES if rule.kind == row["kind"]):
            found.append(
                f"frame {row['frame']}: {row['kind']} {row['body']} {row['key']} "
                f"{row['src_zid']} > {row['dst_zid']} {row['reason'] or ''}"
            )
    return found
