"""Analytics against what applications say of real captures, and against tables made by hand.

All are computed once, over some captures and the cases of ``HAND`` together: each case is a recording.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.keyexpr import intersects
from tests.conftest import captures
from tests.pipeline.conftest import Row, name_of, rows_of
from tests.rows.judge import utc
from tests.rows.test_truth import truth_of, undamaged

pytest.importorskip("pyspark")

from scapy_zenoh.pipeline import analytics, derived  # noqa: E402

MS, SECOND = 10**6, 10**9

CHOSEN = (
    "s01_pubsub_tcp", "s02_peer_udp", "s03_scouting", "s04_query", "s06_declared", "s07c_fragments_udp", "s08_qos",
    "s09_compression_head", "s10_lowlatency_head", "s12_usrpwd", "s12c_multilink_prio", "s13_encodings",
    "s14b_mcast_qos", "s15c_quic", "s16_closing", "s17_routers", "s19_late_joiner", "s20_ipv6", "s25g_udp_loss",
    "s26_ports", "s26c_cooked",
)  # fmt: skip
PATHS = {name_of(path): path for path in captures() if name_of(path) in CHOSEN}
TRUTHS = {name: truth_of(path) for name, path in PATHS.items() if undamaged(path)}
#: Whole captures in which applications publish; what they put is on the wire.
PUBLISH = sorted({"s01_pubsub_tcp", "s06_declared", "s08_qos", "s12_usrpwd", "s12c_multilink_prio", "s13_encodings",
                  "s17_routers", "s20_ipv6", "s26_ports", "s26c_cooked", "s02_peer_udp"} & set(TRUTHS))  # fmt: skip
ALL = sorted(
    set(PUBLISH) | {"s03_scouting", "s04_query", "s14b_mcast_qos", "s16_closing", "s19_late_joiner"} & set(TRUTHS)
)


def truths(*names: str) -> Any:
    """Those of these captures that the collection has; without any there is no test."""
    there = sorted(name for name in names if name in PATHS)  # in the same order for all who share the tests
    return pytest.mark.parametrize("name", there) if there else lambda test: None


def zids(name: str) -> dict[str, str]:
    """The ids of the nodes that have one."""
    return {node: told["zid"] for node, told in TRUTHS[name]["nodes"].items() if told.get("zid")}


def events(name: str, *ops: str) -> Iterator[Row]:
    return (event for event in TRUTHS[name]["events"] if event["op"] in ops)


def received(name: str) -> dict[tuple[str, str, str], int]:
    """Samples by node, subscriber and key, but for those that need not come over the wire, and liveliness."""
    own = {(e["node"], e["key"]) for e in events(name, "put", "delete")}
    live = {(e["node"], e["id"]) for e in events(name, "declare_liveliness_subscriber")}
    return {
        (node, sub, key): told["count"]
        for node, subs in TRUTHS[name].get("received", {}).items()
        for sub, keys in subs.items()
        for key, told in keys.items()
        if (node, key) not in own and (node, sub) not in live
    }


# --- cases made by hand ---------------------------------------------------------------------------

HAND: dict[str, list[Row]] = defaultdict(list)


def add(recording: str, kind: str, body: str | None = None, **more: Any) -> None:
    HAND["messages"].append({"recording": recording, "kind": kind, "body": body, "time": 0, "layer": "network", **more})


def way(session: str, sender: str | None, receiver: str | None) -> Row:
    return {"session": session, "src_zid": sender, "dst_zid": receiver}


def put(recording: str, session: str, sender: str | None, receiver: str | None, key: str, **more: Any) -> None:
    add(recording, "push", more.pop("body", "put"), key=key, **way(session, sender, receiver), **more)


def declare(recording: str, session: str, node: str, other: str | None, what: str, number: int, key: str | None = None,
            time: int = 0) -> None:  # fmt: skip
    add(recording, "declare", what, entity_id=number, key=key, time=time, **way(session, node, other))


def met(recording: str, session: str, *roles: tuple[str, str]) -> None:
    """A handshake in which nodes tell their roles."""
    for kind, (zid, role) in zip(("init_syn", "init_ack"), roles, strict=False):
        add(recording, kind, session=session, src_zid=zid, whatami=role, layer="transport")


def _rates() -> None:
    """a and b talk through the router r under one key; p sends to two others; u passes on, its role is unknown."""
    met("rates", "ar", ("a", "client"), ("r", "router"))
    met("rates", "br", ("b", "client"), ("r", "router"))
    met("rates", "pq", ("p", "peer"), ("q", "peer"))
    for number, (body, size) in enumerate((("put", 10), ("del", None), ("put", 30))):
        for session, sender, receiver in (("ar", "a", "r"), ("br", "r", "b")):
            put("rates", session, sender, receiver, "k", body=body, payload_len=size, time=number * SECOND)
    for session, sender, receiver in (("br", "b", "r"), ("ar", "r", "a")):
        put("rates", session, sender, receiver, "k", payload_len=5, time=1500 * MS)
    for number in range(3):
        put("rates", "pq", "p", "q", "x", payload_len=1, time=number * SECOND)
    put("rates", "ps", "p", "s", "x", payload_len=1, time=2 * SECOND)
    put("rates", "qs", "q", "s", "x", payload_len=1, time=2 * SECOND)  # q is a peer: it does not forward
    put("rates", "tu", "t", "u", "y", payload_len=1)
    put("rates", "uv", "u", "v", "y", payload_len=1)


_rates()


def _again() -> None:
    """a comes back in another session: two samples in the first one, three in the second, all of them also to b."""
    for number in range(5):
        session = f"ar#{number // 2 and 1}"
        put("again", session, "a", "r", "k", payload_len=10, time=number * SECOND)
        put("again", "ab#0", "a", "b", "k", payload_len=10, time=number * SECOND)


_again()


def _clock() -> None:
    """A clock that is 1 ms behind and loses 100 us in each second; every second sample is held up on its way."""
    for number in range(10):
        for since, late in ((0, 0), (500 * MS, 3 * MS)):
            stamp = number * SECOND + since - MS - number * 100_000
            time = number * SECOND + since + late
            put("clock", "ar", "a", "r", "k", time=time, timestamp_id="c", timestamp_time=stamp)
            put("clock", "br", "r", "b", "k", time=time + 5 * MS, timestamp_id="c", timestamp_time=stamp)
    put("clock", "ar", "a", "r", "k", time=0)
    for number in range(1, 11):
        put("delays", "ar", "a", "r", "k", time=SECOND, timestamp_id="a", timestamp_time=SECOND - number * MS)


_clock()


def _hops() -> None:
    """Through two routers; the first one gives timestamps to samples that have none."""
    stamp = {"timestamp_id": "a", "timestamp_time": 7}
    source = {"source_zid": "a", "source_eid": 1, "source_sn": 9}
    for time, session, sender, receiver in ((100, "a1", "a", "r1"), (130, "12", "r1", "r2"), (190, "2b", "r2", "b")):
        put("hops", session, sender, receiver, "stamped", time=time, **stamp)
        later = {} if session == "a1" else {"timestamp_id": "r1", "timestamp_time": 8}
        put("hops", session, sender, receiver, "source", time=2 * time, **source, **later)
        put("hops", session, sender, receiver, "stamped on the way", time=time, **later)
        put("hops", session, sender, receiver, "nothing", time=time)
    put("hops", "2b", "r2", "b", "stamped other", time=300, **stamp)
    put("hops", "r1c", "r1", "c", "stamped", time=150, **stamp)


_hops()

for asked, first, last, finished, replies, errors, outcome in (
    (0, 10, 20, 30, 2, 0, "answered"),
    (100, 140, 140, 150, 0, 1, "answered"),
    (200, None, None, 300, 0, 0, "empty"),
    (300, None, None, None, 0, 0, "unfinished"),
    (400, 410, 5_000_410, 5_000_420, 1, 1, "answered"),
    (500, 600, None, None, 1, 0, "unfinished"),
):
    HAND["queries"].append(
        {"recording": "queries", "session": "s", "zid": "a", "peer_zid": "b", "key": "k", "asked": asked,
         "asked_row": asked, "first_reply": first, "last_reply": last, "finished": finished, "replies": replies,
         "errors": errors, "reply_bytes": replies, "outcome": outcome, "timeout_ms": 5}
    )  # fmt: skip

for zid, missing, repeated in (("a", 3, 1), ("b", 0, 0), (None, 1, 0), (None, 2, 0)):
    HAND["lanes"].append({"recording": "lanes", "session": "s", "zid": zid, "priority": 5, "reliable": False,
                          "missing": missing, "repeated": repeated})  # fmt: skip
for number in range(10):
    for kind, zid, fault in (("frame", "a", None), ("fragment", None, None), ("frame", "b", "truncated"),
                             ("push", "a", None)):  # fmt: skip
        add("lanes", kind, session="s", src_zid=zid, sn=number, priority=5, reliable=False, fault=fault)

for missing, began, ended, size in ((None, 0, 10, 100), (None, 0, 30, 100), ("rest", 0, 50, 7), ("beginning", 0, 0, 3),
                                    ("too long", 0, 0, 1)):  # fmt: skip
    HAND["fragments"].append(
        {"recording": "chains", "session": "s", "zid": "a", "kind": "push", "key": "k", "fragments": 2, "bytes": size,
         "complete": missing is None, "missing": missing, "began": began, "ended": ended}
    )  # fmt: skip

#: What design calls each kind of message for.
CLASS_OF = {
    "scout": "scouting", "hello": "scouting", "init_syn": "handshake", "init_ack": "handshake",
    "open_syn": "handshake", "open_ack": "handshake", "close": "handshake", "join": "handshake",
    "keep_alive": "keep_alive", "frame": "framing", "fragment": "framing", "transport_oam": "routing",
    "network_oam": "routing", "push": "data", "request": "queries", "response": "queries", "response_final": "queries",
    "declare": "declarations", "interest": "declarations", "unknown": "unknown",
}  # fmt: skip
for kind in CLASS_OF:
    stranger = kind in ("init_syn", "init_ack")
    add("classes", kind, session="?l" if stranger else "ab", link="l")
add("classes", "push", session="ab", link="l", payload_len=10, attachment=b"1234", key_suffix="/ü")
add("classes", "push", session="ab", link="l", payload_len=999, shm=True)
add("classes", "request", session="ab", link="l", key_suffix="k", parameters="a=1")
HAND["sessions"].append({"recording": "classes", "session": "ab", "low_bytes": 60, "high_bytes": 40})

# Bytes of the protocol's own examples: 7d 00 06 "demo/a", 5d 01, 3d 01 02 "/x".
for key, scope, suffix in (("demo/p", 0, "demo/p"),) * 3 + (("one", 1, None), ("r/x", 1, "/x"), ("big", 200, "")):
    add("keys", "push", "put", key=key, key_scope=scope, key_suffix=suffix, **way("ab", "a", "b"))
add("keys", "response", "err", key="", key_scope=0, **way("ab", "a", "b"))
add("keys", "response_final", **way("ab", "a", "b"))


def _lease() -> None:
    def say(
        zid: str | None, ms: int, kind: str = "frame", msg: int = 0, link: str = "l", recording: str = "lease"
    ) -> None:
        HAND["messages"].append(
            {"recording": recording, "session": "ab" if zid else "?n", "link": link, "src_zid": zid,
             "src": zid or "?", "sport": 1, "kind": kind, "msg": msg, "time": ms * MS, "layer": "transport"}
        )  # fmt: skip

    for zid, times in (("a", (0, 400, 1900)), ("b", (0, 300))):
        for ms in times:
            say(zid, ms)
            say(zid, ms, "push", 1)
    for ms in (500, 750, 1000):
        say("a", ms, "keep_alive", link="m")
    for ms, kind in ((0, "init_syn"), (10, "frame"), (60, "frame")):
        say(None, ms, kind, link="n")
    about = {"recording": "lease", "session": "ab", "multicast": False}
    HAND["sessions"].append({**about, "low_zid": "a", "high_zid": "b", "low_lease_ms": 1000, "high_lease_ms": 2000,
                             "closed": 2000 * MS, "last": 1900 * MS})  # fmt: skip
    HAND["links"].append({"recording": "lease", "link": "m", "proto": "tcp", "session": "ab", "closed": 1600 * MS})
    for ms in range(0, 5001, 500):  # r gives c up at 2.5 s and says no more, c goes on at 6 s
        if ms <= 2500:
            say("r", ms, "keep_alive", recording="frozen")
        if ms <= 1000:
            say("c", ms, "keep_alive", recording="frozen")
    say("c", 6000, "keep_alive", recording="frozen")
    HAND["sessions"].append({**about, "recording": "frozen", "low_zid": "c", "high_zid": "r", "low_lease_ms": 1500,
                             "high_lease_ms": 3000, "closed": 6100 * MS})  # fmt: skip
    say("c", 0, recording="forever")
    HAND["sessions"].append({**about, "recording": "forever", "low_zid": "c", "low_lease_ms": (1 << 64) - 1})


_lease()


def _declared() -> None:
    """The numbers tell the cases: those from 100 on are of no use to anybody."""
    d = "declared"
    for number in (1, 2, 100, 101, 103):
        declare(d, "ab", "a", "b", "declare_keyexpr", number, f"k{number}")
    declare(d, "ab", "b", "a", "declare_keyexpr", 1, "other")
    declare(d, "ab", "a", "b", "declare_keyexpr", 3, "k3")
    add(d, "declare", "declare_keyexpr", entity_id=104, key="k3/x", key_scope=3, **way("ab", "a", "b"))  # whose 3 it is
    put(d, "ab", "a", "b", "k1/x", key_scope=1, key_suffix="/x", key_mapping="sender")
    put(d, "ab", "b", "a", "k2", key_scope=2, key_mapping="receiver")
    put(d, "xy", "a", "b", "k100", key_scope=100, key_mapping="sender")  # another session
    put(d, "ab", "b", "a", "k101", key_scope=101, key_mapping="sender")  # the number of the other side
    for number, key in ((11, "used/**"), (111, "idle/**"), (113, "gone"), (114, "back"), (115, "us$*/e")):
        declare(d, "ab", "a", "b", "declare_subscriber", number, key)
    declare(d, "ab", "a", "b", "undeclare_subscriber", 113)
    put(d, "ab", "b", "a", "used")
    put(d, "ab", "b", "a", "late")
    put(d, "ab", "b", "a", "gone")
    put(d, "ab", "a", "b", "back")  # the other way
    declare(d, "ab", "a", "b", "declare_subscriber", 112, "late")
    declare(d, "ab", "a", "b", "declare_queryable", 21, "q/a")
    declare(d, "ab", "a", "b", "declare_queryable", 121, "q/@a")
    declare(d, "ab", "a", "b", "declare_token", 131, "t")
    add(d, "request", "query", key="q/*", **way("ab", "b", "a"))
    for node in ("a", "b"):
        session = f"{node}@224.0.0.1:7446#0"
        declare(d, session, node, None, "declare_subscriber", 31 if node == "a" else 131, f"group/{node}")
    for key in ("group/a", "group/b"):  # b sends, and does not hear itself
        put(d, "b@224.0.0.1:7446#0", "b", None, key)


_declared()


def _routes() -> None:
    """a publishes through the router r to b, c and d; e is told of, but gets nothing."""
    for node in "abcde":
        met("routes", f"{node}r", (node, "client"), ("r", "router"))
    declare("routes", "br", "b", "r", "declare_subscriber", 1, "demo/**", time=10)
    declare("routes", "ar", "r", "a", "declare_subscriber", 1, "demo/**", time=11)  # passed on to a
    declare("routes", "ar", "a", "r", "declare_subscriber", 5, "demo/*", time=12)
    declare("routes", "cr", "c", "r", "declare_subscriber", 1, "demo/x", time=200)
    declare("routes", "dr", "d", "r", "declare_subscriber", 1, "*/x", time=20)
    declare("routes", "dr", "d", "r", "undeclare_subscriber", 1, time=150)
    declare("routes", "er", "e", "r", "declare_subscriber", 1, "demo/$*/**", time=30)
    declare("routes", "er", "e", "r", "declare_token", 2, "demo/x", time=31)
    for time, to in ((100, "bd"), (300, "bc")):
        put("routes", "ar", "a", "r", "demo/x", time=time)
        for node in to:
            put("routes", f"{node}r", "r", node, "demo/x", time=time + 1)
    put("routes", "ar", "a", "r", "lonely", time=100)
    HAND["sessions"].append({"recording": "routes", "session": "er", "closed": 90})
    for node in "pq":
        declare("group", f"{node}@group:1#0", node, None, "declare_subscriber", 1, "group/*", time=1)
    put("group", "p@group:1#0", "p", None, "group/x", time=50)


_routes()


# --- tables and answers ---------------------------------------------------------------------------

OTHERS = ("sessions", "links", "lanes", "fragments")


@pytest.fixture(scope="session")
def tables(spark: Any, read: tuple[Path, Any], table: Callable[..., Any]) -> dict[str, Any]:
    """Tables of the captures and cases."""
    from scapy_zenoh.pipeline import stretch
    from scapy_zenoh.pipeline.captures import Captures
    from scapy_zenoh.pipeline.schema import of_table

    def by_hand(of: str) -> list[Row]:
        """Rows with numbers of 64 bits as Spark takes them."""
        wide = {field.name for field in of_table(of) if field.dataType.typeName() == "decimal"}
        return [{k: Decimal(v) if k in wide and v is not None else v for k, v in row.items()} for row in HAND[of]]

    found: dict[str, list[Row]] = defaultdict(list)
    for name, path in PATHS.items():
        for of, batch in stretch.read(stretch.Stretch(Captures(name, (str(path),))), stretch.Options(payload=False)):
            if of in OTHERS:
                found[of] += [{"recording": name, **row} for row in batch.to_pylist()]
    made = {of: table(of, found[of] + by_hand(of)).coalesce(1).cache() for of in OTHERS}
    files = [str(file) for name in PATHS if (file := read[0] / f"{name}.parquet").exists()]
    real = spark.read.schema(of_table("messages")).parquet(*files).coalesce(1).cache()
    made["messages"] = real.unionByName(table("messages", by_hand("messages")).coalesce(1)).cache()
    made["declarations"] = derived.declarations(made["messages"]).coalesce(1).cache()
    made["queries"] = derived.queries(real).unionByName(table("queries", by_hand("queries"))).coalesce(1).cache()
    return made


@pytest.fixture(scope="session")
def answers(tables: dict[str, Any]) -> Callable[..., list[Row]]:
    """The rows of an analytic for one recording; each is computed once."""
    known: dict[str, dict[str, list[Row]]] = {}

    def ask(name: str, recording: str, *, of: tuple[str, ...] = ("messages",), **options: Any) -> list[Row]:
        if (label := f"{name} {options}") not in known:
            by = known[label] = defaultdict(list)
            for row in rows_of(getattr(analytics, name)(*(tables[each] for each in of), **options)):
                by[row.pop("recording")].append(row)
        return known[label][recording]

    return ask


Answers = Callable[..., list[Row]]


def only(rows: list[Row], **values: Any) -> Row:
    """The one row with these values."""
    (found,) = (row for row in rows if all(row[name] == value for name, value in values.items()))
    return found


def picked(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


# --- rates ------------------------------------------------------------------------------------------


@truths(*PUBLISH)
def test_key_rates_are_what_applications_put(name: str, answers: Answers) -> None:
    """Samples, deletions and bytes of each key, counted once however many routers forward them."""
    expected = {}
    for key in {event["key"] for event in events(name, "put", "delete")}:
        of = [event for event in events(name, "put", "delete") if event["key"] == key]
        puts = [event["payload"]["len"] for event in of if event["op"] == "put"]
        nodes = len({event["node"] for event in of})
        expected[key] = (len(of), len(puts), sum(puts), min(puts, default=None), max(puts, default=None), nodes)
    columns = ("samples", "puts", "bytes", "payload_min", "payload_max", "publishers")
    rows = answers("key_rates", name)
    assert {row["key"]: picked(row, *columns) for row in rows} == expected
    for row in rows:
        times = [event["t"] for event in events(name, "put", "delete") if event["key"] == row["key"]]
        assert 0 <= row["first"] - min(times) < 100 * MS and 0 <= row["last"] - max(times) < 100 * MS


@truths(*PUBLISH)
def test_publishers_are_those_that_put(name: str, answers: Answers) -> None:
    expected = Counter((zids(name)[event["node"]], event["key"]) for event in events(name, "put", "delete"))
    rows = answers("publisher_rates", name)
    assert {(row["publisher"], row["key"]): row["samples"] for row in rows} == expected
    role = {zid: TRUTHS[name]["nodes"][node]["role"] for node, zid in zids(name).items()}
    assert all(row["role"] == role[row["publisher"]] for row in rows)


@truths(*(name for name in PUBLISH if "s02" not in name))
def test_routers_pass_on(name: str, answers: Answers) -> None:
    role = {zid: TRUTHS[name]["nodes"][node]["role"] for node, zid in zids(name).items()}
    rows = answers("sample_flows", name)
    assert {(row["sender"], row["passed_on"]) for row in rows} == {
        (row["sender"], role[row["sender"]] == "router") for row in rows
    }


def test_rates_by_hand(answers: Answers) -> None:
    columns = ("samples", "puts", "deletes", "bytes", "payload_min", "payload_mean", "payload_max", "first", "last")
    of_key = {row["key"]: row for row in answers("key_rates", "rates")}
    assert picked(of_key["k"], *columns) == (4, 3, 1, 45, 5, 15.0, 30, 0, 2 * SECOND)
    assert picked(of_key["k"], "publishers", "hops", "per_second", "bytes_per_second") == (2, 8, 1.5, 1.5 * 45 / 4)
    assert picked(of_key["x"], "samples", "publishers", "hops", "per_second") == (4, 2, 5, 1.5)
    assert picked(of_key["y"], "samples", "publishers", "hops", "per_second") == (1, 1, 2, None)
    publishers = answers("publisher_rates", "rates")
    assert {(row["publisher"], row["key"], row["samples"], row["copies"], row["receivers"]) for row in publishers} == {
        ("a", "k", 3, 3, 1), ("b", "k", 1, 1, 1), ("p", "x", 3, 4, 2), ("q", "x", 1, 1, 1), ("t", "y", 1, 1, 1),
    }  # fmt: skip
    row = only(publishers, publisher="a")
    assert picked(row, *columns, "per_second", "role") == (3, 2, 1, 40, 10, 20.0, 30, 0, 2 * SECOND, 1.0, "client")
    flows = answers("sample_flows", "rates")
    assert only(flows, session="ar", sender="r")["samples"] == 1
    assert {row["sender"] for row in flows if row["passed_on"]} == {"r", "u"}


def test_sessions_that_follow_each_other_add_up(answers: Answers) -> None:
    (publisher,) = answers("publisher_rates", "again")
    assert picked(publisher, "samples", "bytes", "per_second", "copies", "receivers") == (5, 50, 1.0, 10, 2)
    (key,) = answers("key_rates", "again")
    assert picked(key, "samples", "bytes", "per_second", "hops") == (5, 50, 1.0, 10)
    assert sum(row["samples"] for row in answers("key_rates", "again", window=2.0)) == 5


def test_windows_by_hand(answers: Answers) -> None:
    rows = [row for row in answers("key_rates", "rates", window=1.0) if row["key"] == "k"]
    columns = ("window", "samples", "bytes", "publishers", "per_second", "bytes_per_second")
    assert sorted(picked(row, *columns) for row in rows) == [
        (0, 1, 10, 1, 1.0, 10.0),
        (SECOND, 2, 5, 2, 2.0, 5.0),
        (2 * SECOND, 1, 30, 1, 1.0, 30.0),
    ]


# --- latency ----------------------------------------------------------------------------------------


def stamped(name: str, maker: str) -> list[Row]:
    """Samples that subscribers got with a timestamp of this node."""
    return [
        sample for sample in TRUTHS[name]["rx_samples"]
        if sample.get("timestamp") and utc(sample["timestamp"])[1] == zids(name)[maker]
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "maker"), [("s13_encodings", "pub"), ("s17_routers", "router1")])
def test_samples_are_delivered_between_timestamp_and_reception(name: str, maker: str, answers: Answers) -> None:
    """The application sees a sample after it was captured: its own clock gives the longest delay there can be."""
    node, longest = zids(name), defaultdict[Any, list[int]](list)
    for sample in stamped(name, maker):
        longest[node[sample["node"]], sample["key"]].append(sample["t"] - utc(sample["timestamp"])[0])
    rows = [row for row in answers("delivery_latency", name) if row["receiver"] in {zid for zid, _ in longest}]
    assert {(row["receiver"], row["key"]): row["samples"] for row in rows} == {
        key: len(delays) for key, delays in longest.items()
    }
    for row in rows:
        assert row["timestamp_id"] == node[maker]
        assert 0 <= row["delay_min_ns"] <= row["delay_p50_ns"] <= row["delay_max_ns"]
        assert row["delay_max_ns"] <= max(longest[row["receiver"], row["key"]])


def test_delivery_by_hand(answers: Answers) -> None:
    (row,) = answers("delivery_latency", "delays")
    names = ("samples", *(f"delay_{what}_ns" for what in ("min", "mean", "p50", "p90", "p99", "max")))
    assert picked(row, *names) == (10, MS, 5.5 * MS, 5 * MS, 9 * MS, 10 * MS, 10 * MS)


@pytest.mark.parametrize(("name", "node", "sender", "receiver", "maker"), [
    ("s13_encodings", "router", "pub", "sub", "pub"), ("s17_routers", "router3", "router1", "client3", "router1"),
])  # fmt: skip
def test_routers_keep_samples_for_less_than_they_take(
    name: str, node: str, sender: str, receiver: str, maker: str, answers: Answers
) -> None:
    """Every sample that has a timestamp on both sides of a router, between the call and its reception."""
    ids, samples = zids(name), stamped(name, maker)
    rows = answers("hop_latency", name)
    assert {picked(row, "node", "sender", "receiver") for row in rows} == {(ids[node], ids[sender], ids[receiver])}
    # In s13 two samples have no timestamp but source info; those count as well.
    with_source = sum(bool(s.get("source_info")) and s not in samples for s in TRUTHS[name]["rx_samples"])
    assert sum(row["samples"] for row in rows) == len(samples) + with_source
    for row in rows:
        of = [s["t"] - utc(s["timestamp"])[0] for s in samples if s["key"] == row["key"]]
        assert of and 0 < row["kept_min_ns"] <= row["kept_max_ns"] < max(of)


def test_hops_by_hand(answers: Answers) -> None:
    rows = answers("hop_latency", "hops")
    columns = ("key", "node", "sender", "session_in", "receiver", "session_out", "samples", "kept_max_ns")
    assert {picked(row, *columns) for row in rows} == {
        ("stamped", "r1", "a", "a1", "r2", "12", 1, 30),
        ("stamped", "r1", "a", "a1", "c", "r1c", 1, 50),
        ("stamped", "r2", "r1", "12", "b", "2b", 1, 60),
        ("source", "r1", "a", "a1", "r2", "12", 1, 60),
        ("source", "r2", "r1", "12", "b", "2b", 1, 120),
        ("stamped on the way", "r2", "r1", "12", "b", "2b", 1, 60),
    }


@truths("s04_query")
def test_queries_end_as_the_one_who_asked_says(name: str, answers: Answers) -> None:
    node, keys = zids(name), defaultdict[str, Counter[str]](Counter)
    for get in events(name, "get"):
        errors = [reply["err"] for reply in get["replies"] if "err" in reply]
        of = keys[get["selector"].partition("?")[0]]
        of["queries"] += 1
        of["answered" if get["replies"] else "empty"] += 1
        of["errors"] += len(errors)
        of["timed_out"] += any(error.get("hex") == b"Timeout".hex() for error in errors)
    asked = [row for row in answers("query_latency", name, of=("queries",)) if row["zid"] == node["getter"]]
    names = ("queries", "answered", "empty", "errors", "timed_out")
    found = {row["key"]: picked(row, *names) for row in asked}
    assert found == {key: tuple(of[name] for name in names) for key, of in keys.items()}
    assert sum(row["timed_out"] for row in asked) == 1
    # One of the two slow queries gives up after half a second, the other one waits for the reply.
    slow = only(asked, key="demo/query/slow")
    assert 500 * MS <= slow["finished_min_ns"] < 600 * MS
    reply = max(e["t"] for e in events(name, "reply") if e["key"] == "demo/query/slow")
    call = max(e["t"] for e in events(name, "get") if e["selector"] == "demo/query/slow")
    assert abs(slow["first_reply_max_ns"] - (reply - call)) < 100 * MS


def test_queries_by_hand(answers: Answers) -> None:
    (row,) = answers("query_latency", "queries", of=("queries",))
    names = ("queries", "answered", "empty", "unfinished", "timed_out", "failed", "replies", "errors")
    assert picked(row, *names) == (6, 3, 1, 2, 1, 1, 4, 2)
    assert picked(row, "first_reply_min_ns", "first_reply_mean_ns", "first_reply_p50_ns", "first_reply_max_ns") == (
        10, 40.0, 10, 100,
    )  # fmt: skip
    assert picked(row, "last_reply_max_ns", "finished_min_ns", "finished_p50_ns", "finished_max_ns") == (
        5_000_010, 30, 50, 5_000_020,
    )  # fmt: skip
    times = answers("query_times", "queries", of=("queries",))
    assert {row["asked"]: row["ending"] for row in times} == {
        0: "answered", 100: "error", 200: "empty", 300: "unfinished", 400: "timeout", 500: "unfinished",
    }  # fmt: skip


@truths("s13_encodings", "s17_routers", "s01_pubsub_tcp", "s12_usrpwd")
def test_clocks_of_this_machine_do_not_run_away(name: str, answers: Answers) -> None:
    """All nodes and the capture have one clock: no timestamp is later than its capture, or much earlier."""
    longest, every = {}, defaultdict[str, set[str]](set)
    for sample in TRUTHS[name]["rx_samples"]:
        if sample.get("timestamp"):
            time, maker = utc(sample["timestamp"])
            every[maker].add(sample["timestamp"])
            longest[maker] = min(longest.get(maker, SECOND), sample["t"] - time)
    receivers = {zids(name)[sample["node"]] for sample in TRUTHS[name]["rx_samples"]}
    rows = {row["timestamp_id"]: row for row in answers("clock_drift", name)}
    assert set(rows) - receivers == set(every) - receivers  # a receiver gives a timestamp to what has none
    for maker, row in rows.items():
        assert row["samples"] >= len(every[maker]) and 0 <= row["offset_ns"] <= longest[maker]


def test_drift_by_hand(answers: Answers) -> None:
    row = only(answers("clock_drift", "clock"), timestamp_id="c")
    assert picked(row, "samples", "windows", "first", "last", "offset_ns") == (20, 10, 0, 9 * SECOND + 503 * MS, MS)
    assert row["span_s"] == 9.503 and row["drift_ppm"] == pytest.approx(100, abs=0.01)


# --- loss -------------------------------------------------------------------------------------------


@truths(*ALL)
def test_undamaged_captures_lose_nothing(name: str, answers: Answers) -> None:
    rows = answers("lane_loss", name, of=("lanes", "messages"))
    assert rows or name == "s10_lowlatency_head"
    assert all(row["missing"] == 0 and row["loss"] in (0.0, None) for row in rows)
    assert all(row["incomplete"] == 0 for row in answers("incomplete_fragments", name, of=("fragments",)))


@truths("s25g_udp_loss")
def test_damage_is_lost_and_repeated_numbers(name: str, answers: Answers, tables: dict[str, Any]) -> None:
    """Of what was removed and doubled some packets may carry no number: it is never more than that."""
    damage = Counter(change["action"] for change in truth_of(PATHS[name])["damage"])
    rows = answers("lane_loss", name, of=("lanes", "messages"))
    assert sum(row["missing"] for row in rows) <= damage["drop"]
    assert 0 < sum(row["repeated"] for row in rows) <= damage["dup"]
    assert all(row["expected"] == row["seen"] - row["repeated"] + row["missing"] for row in rows)


@truths("s07c_fragments_udp", "s14b_mcast_qos")
def test_large_samples_are_chains(name: str, answers: Answers) -> None:
    """What is larger than a datagram can only come in fragments."""
    large = Counter(e["key"] for e in events(name, "put") if e["payload"]["len"] > 66_000)
    rows = answers("incomplete_fragments", name, of=("fragments",))
    assert large and {row["key"]: row["chains"] for row in rows} == large


def test_loss_by_hand(answers: Answers) -> None:
    rows = answers("lane_loss", "lanes", of=("lanes", "messages"))
    names = ("seen", "repeated", "missing", "expected", "loss")
    assert {row["zid"]: picked(row, *names) for row in rows} == {
        "a": (10, 1, 3, 12, 0.25),
        "b": (0, 0, 0, 0, None),
        None: (10, 0, 3, 13, pytest.approx(3 / 13)),
    }
    (row,) = answers("incomplete_fragments", "chains", of=("fragments",))
    names = ("chains", "incomplete", "beginning_missing", "rest_missing", "too_long", "fragments", "bytes",
             "bytes_lost", "duration_mean_ns", "duration_max_ns", "loss")  # fmt: skip
    assert picked(row, *names) == (5, 3, 1, 1, 1, 10, 211, 11, 20.0, 30, 0.6)


@truths("s16_closing")
def test_only_the_frozen_node_lets_its_lease_expire(name: str, answers: Answers) -> None:
    node, config = zids(name), TRUTHS[name]["nodes"]
    rows = answers("lease_margins", name, of=("messages", "sessions", "links"))
    for client in ("polite", "killed", "frozen", "watch"):
        of = [row for row in rows if row["zid"] == node[client]]
        lease = config[client]["config"]["transport/link/tx/lease"]
        assert of and {int(row["lease_ms"]) for row in of} == {lease}
        assert any(row["expired"] for row in of) == (client == "frozen")
        assert all(row["margin_ns"] == lease * MS - row["silence_ns"] for row in of)
        if client != "frozen":  # as often in a lease as the configuration says, and a little
            times = config[client]["config"]["transport/link/tx/keep_alive"]
            assert all(row["silence_ns"] < lease * MS / times * 1.2 for row in of)
            assert all(lease * MS / times <= row["keep_alive_mean_ns"] for row in of if row["keep_alives"] > 1)


def test_lease_by_hand(answers: Answers) -> None:
    rows = answers("lease_margins", "lease", of=("messages", "sessions", "links"))
    names = ("link", "zid", "batches", "keep_alives", "keep_alive_mean_ns", "silence_ns", "silent_from", "until",
             "margin_ns", "expired")  # fmt: skip
    assert {picked(row, *names) for row in rows} == {
        ("l", "a", 3, 0, None, 1500 * MS, 400 * MS, 2000 * MS, -500 * MS, True),
        ("l", "b", 2, 0, None, 1100 * MS, 300 * MS, 1400 * MS, 900 * MS, False),  # a was silent too long by 1400
        ("m", "a", 3, 3, 250 * MS, 600 * MS, 1000 * MS, 1600 * MS, 400 * MS, False),
        ("n", None, 2, 0, None, 50 * MS, 10 * MS, 60 * MS, None, None),
    }
    frozen = {row["zid"]: row for row in answers("lease_margins", "frozen", of=("messages", "sessions", "links"))}
    names = ("silence_ns", "silent_from", "until", "margin_ns", "expired")
    assert picked(frozen["c"], *names) == (5000 * MS, 1000 * MS, 6000 * MS, -3500 * MS, True)
    assert picked(frozen["r"], *names) == (500 * MS, 2000 * MS, 2500 * MS, 2500 * MS, False)
    (forever,) = answers("lease_margins", "forever", of=("messages", "sessions", "links"))
    assert picked(forever, "lease_ms", "margin_ns", "expired") == ((1 << 64) - 1, None, None)


# --- traffic ----------------------------------------------------------------------------------------


@truths("s04_query", "s12_usrpwd", "s17_routers", "s20_ipv6")
def test_classes_count_what_applications_did(name: str, answers: Answers) -> None:
    """Data: each sample on each hop, with its bytes; nothing asks or replies unless the applications do."""
    rows = answers("traffic_classes", name)
    by = {c: [row for row in rows if row["class"] == c] for c in {row["class"] for row in rows}}
    hops = {row["key"]: row["hops"] for row in answers("key_rates", name)}
    puts = [(event["key"], event.get("payload", {}).get("len", 0)) for event in events(name, "put", "delete")]
    count = Counter(key for key, _ in puts)
    assert sum(row["messages"] for row in by.get("data", [])) == sum(hops.values())
    if name == "s17_routers":
        assert hops == {key: 3 for key in count}  # client, router, router, client
        assert sum(row["payload_bytes"] for row in by["data"]) == 3 * sum(size for _, size in puts)
    assert ("queries" in by) == any(events(name, "get", "querier_get"))
    assert "scouting" not in by and "unknown" not in by
    strangers = {row["session"] for row in rows if (row["session"] or "?").startswith("?")}
    assert not strangers


@truths("s03_scouting")
def test_scouting_belongs_to_no_session(name: str, answers: Answers) -> None:
    row = only(answers("traffic_classes", name), **{"class": "scouting"})
    hellos = sum(len(event["hellos_unique"]) for event in events(name, "scout"))
    assert row["session"] is None and row["messages"] >= hellos + sum(1 for _ in events(name, "scout"))


def test_classes_by_hand(answers: Answers) -> None:
    rows = answers("traffic_classes", "classes")
    expected = Counter(CLASS_OF.values()) + Counter({"data": 2, "queries": 1})
    found = {row["class"]: row for row in rows}
    assert len(rows) == len(found) and {name: row["messages"] for name, row in found.items()} == expected
    assert {row["session"] for name, row in found.items() if name != "scouting"} == {"ab"}
    assert picked(found["data"], "payload_bytes", "name_bytes") == (14, 3)
    assert picked(found["queries"], "payload_bytes", "name_bytes") == (0, 4)
    (row,) = answers("wire_overhead", "classes", of=("messages", "sessions"))
    names = ("bytes", "payload_bytes", "name_bytes", "overhead_bytes", "overhead")
    assert picked(row, *names) == (100, 14, 7, 79, 0.79)


@truths("s12_usrpwd", "s17_routers")
def test_overhead_is_what_is_left(name: str, answers: Answers) -> None:
    """Where a client only publishes, all payload bytes are its own; the rest is at least a header for each sample."""
    clients = {zids(name)[e["node"]] for e in events(name, "put")}
    of = [row for row in answers("wire_overhead", name, of=("messages", "sessions")) if clients & set(
        row["session"].partition("#")[0].split("-"))]  # fmt: skip
    puts = [event["payload"]["len"] for event in events(name, "put")]
    replies = [event["payload"]["len"] for event in events(name, "reply")]
    assert sum(row["payload_bytes"] for row in of) == sum(puts) + sum(replies)
    for row in of:
        assert row["bytes"] == row["payload_bytes"] + row["name_bytes"] + row["overhead_bytes"]
        assert 4 * len(puts) < row["overhead_bytes"] < row["bytes"]


def test_key_overhead_by_hand(answers: Answers) -> None:
    """A declaration is `9e 21 08 20 id 00 length text`, a message with its number has one byte less than with 128."""
    names = ("messages", "suffix_bytes", "key_bytes", "numbered", "declared_bytes", "saved_bytes")
    assert {row["key"]: picked(row, *names) for row in answers("key_overhead", "keys")} == {
        "demo/p": (3, 18, 24, False, 13 + 3, 8),
        "one": (1, 0, 1, True, 10 + 1, 0),
        "r/x": (1, 2, 4, False, 10 + 1, -7),
        "big": (1, 0, 3, False, 10 + 1, -8),
    }


@truths("s01_pubsub_tcp", "s12_usrpwd", "s20_ipv6", "s26_ports")
def test_publishers_that_only_publish_send_whole_keys(name: str, answers: Answers) -> None:
    """A number for the key, the length of the text, and the text."""
    node, puts = zids(name), ("put", "delete")
    others = {event["node"] for event in TRUTHS[name]["events"] if event["op"] not in (*puts, "open", "info", "close")}
    count = Counter((node[e["node"]], e["key"]) for e in events(name, *puts) if e["node"] not in others)
    rows = {(row["sender"], row["key"]): row for row in answers("key_overhead", name)}
    assert count
    for (sender, key), times in count.items():
        row = rows[sender, key]
        assert row["messages"] == times and row["suffix_bytes"] == times * len(key.encode())
        assert row["key_bytes"] >= row["suffix_bytes"] + 2 * times and not row["numbered"]


# --- topology ---------------------------------------------------------------------------------------


@truths(*ALL)
def test_nodes_are_those_that_took_part(name: str, answers: Answers) -> None:
    """With their roles. Who was refused, and who only scouts, has no id in the truth file."""
    told = {zids(name)[node]: TRUTHS[name]["nodes"][node]["role"] for node in zids(name)}
    rows = answers("nodes", name, of=("sessions", "messages"))
    met = {row["zid"]: row["role"] for row in rows if {"session", "multicast"} & set(row["known_by"])}
    nameless = sum(node.get("zid") is None and node.get("role") is not None for node in TRUTHS[name]["nodes"].values())
    assert told.items() <= met.items() and len(met) == len(told) + nameless


@truths("s03_scouting")
def test_scouted_nodes_tell_their_locators(name: str, answers: Answers) -> None:
    hellos = {hello["zid"]: hello for event in events(name, "scout") for hello in event["hellos_unique"]}
    rows = {row["zid"]: row for row in answers("nodes", name, of=("sessions", "messages"))}
    assert hellos
    for zid, hello in hellos.items():
        assert "hello" in rows[zid]["known_by"] and set(hello["locators"]) <= set(rows[zid]["locators"])


def linked(name: str) -> set[frozenset[str]]:
    """Who connects to whom by configuration."""
    listens = {}
    for node, told in TRUTHS[name]["nodes"].items():
        for place in told["config"].get("listen/endpoints", []):
            listens[place.partition("?")[0]] = node
    return {
        frozenset((zids(name)[node], zids(name)[listens[place.partition("?")[0]]]))
        for node, told in TRUTHS[name]["nodes"].items()
        for place in told["config"].get("connect/endpoints", [])
        if node in zids(name)
    }


@truths("s01_pubsub_tcp", "s02_peer_udp", "s04_query", "s12_usrpwd", "s12c_multilink_prio", "s16_closing",
        "s17_routers")  # fmt: skip
def test_edges_are_the_connections_that_were_configured(name: str, answers: Answers) -> None:
    rows = answers("edges", name, of=("sessions", "links"))
    known = set(zids(name).values())
    found = {frozenset((row["low_zid"], row["high_zid"])) for row in rows}
    assert {edge for edge in found if edge <= known} == linked(name)
    protocols = {"s02_peer_udp": ["udp"], "s12c_multilink_prio": ["tcp", "udp"]}.get(name, ["tcp"])
    assert all(row["protocols"] == protocols and not row["opaque"] and row["bytes"] > 0 for row in rows)
    assert all(row["messages"] == row["low_messages"] + row["high_messages"] > 0 for row in rows)


OPTIONS = {"s09_compression_head": "compression", "s10_lowlatency_head": "low_latency", "s12_usrpwd": "auth",
           "s12c_multilink_prio": "multilink", "s08_qos": "qos"}  # fmt: skip


@truths(*OPTIONS)
def test_edges_have_the_options_that_were_negotiated(name: str, answers: Answers) -> None:
    option = OPTIONS[name]
    rows = answers("edges", name, of=("sessions", "links"))
    assert rows and all(row[option] is True for row in rows)
    for other in {"compression", "low_latency", "auth", "multilink"} - {option}:
        assert not any(row[other] for row in rows)


@truths("s14b_mcast_qos")
def test_a_group_has_an_edge_from_each_member(name: str, answers: Answers) -> None:
    rows = answers("edges", name, of=("sessions", "links"))
    assert {(row["low_zid"], row["high_zid"]) for row in rows} == {(zid, None) for zid in zids(name).values()}
    endpoints = [p for node in TRUTHS[name]["nodes"].values() for p in node["config"]["listen/endpoints"]]
    assert {row["group"] for row in rows} == {place.partition("/")[2].partition("#")[0] for place in endpoints}


@truths("s15c_quic")
def test_what_cannot_be_read_is_an_edge_without_nodes(name: str, answers: Answers) -> None:
    rows = answers("edges", name, of=("sessions", "links"))
    assert rows and all(row["opaque"] and row["low_zid"] is None and row["protocols"] == ["quic"] for row in rows)


# --- declarations -----------------------------------------------------------------------------------


@truths("s01_pubsub_tcp", "s04_query", "s06_declared", "s08_qos", "s12_usrpwd", "s13_encodings", "s16_closing",
        "s17_routers", "s20_ipv6", "s26_ports", "s02_peer_udp")  # fmt: skip
def test_unused_are_those_that_no_application_got_anything_by(name: str, answers: Answers) -> None:
    """Of clients and peers; what routers pass on is not theirs."""
    node = zids(name)
    got = {(n, sub) for n, sub, _ in received(name)} | {(e["node"], e["qable"]) for e in events(name, "rx_query")}
    expected = Counter(
        (node[e["node"]], e["op"].removeprefix("declare_"), e["key"])
        for e in events(name, "declare_subscriber", "declare_queryable")
        if (e["node"], e["id"]) not in got
    )
    routers = {zid for n, zid in node.items() if TRUTHS[name]["nodes"][n]["role"] == "router"}
    rows = answers("unused_declarations", name, of=("declarations", "messages"))
    found = Counter(picked(row, "zid", "entity", "key") for row in rows if row["entity"] != "keyexpr")
    assert {what: n for what, n in found.items() if what[0] not in routers} == expected


def test_unused_by_hand(answers: Answers) -> None:
    rows = answers("unused_declarations", "declared", of=("declarations", "messages"))
    assert Counter(picked(row, "entity", "zid", "entity_id") for row in rows) == Counter(
        [
            *(("keyexpr", "a", number) for number in (100, 101, 103, 104)),
            ("keyexpr", "b", 1),
            *(("subscriber", "a", number) for number in (111, 112, 113, 114, 115)),
            ("subscriber", "b", 131),
            ("queryable", "a", 121),
        ]
    )


EXPRESSIONS = (
    "a", "a/b", "a/b/c", "ab", "abc", "abcd", "a/**", "a/*", "a/*/c", "ab/**", "ab/*", "ab$*", "ab$*cd", "a$*/b", "*",
    "**", "*/b", "**/b", "**/c/**", "x/$*abc", "x/abc$*", "@a", "@a/**", "@a/*/b", "a/@b", "a/**/@b",
)  # fmt: skip


def test_keys_that_meet_are_found_though_few_are_asked_about(spark: Any) -> None:
    from scapy_zenoh.pipeline.analytics.joining import where_keys_meet

    pairs = [(one, other) for one in EXPRESSIONS for other in EXPRESSIONS]
    found = where_keys_meet(spark.createDataFrame(pairs, "one string, other string"), "one", "other").collect()
    assert {tuple(row) for row in found} == {pair for pair in pairs if intersects(*pair)}


ROUTING = ("messages", "declarations", "sessions")


@truths(*(set(ALL) - {"s04_query", "s16_closing"}))
def test_routing_delivers_what_subscribers_got(name: str, answers: Answers) -> None:
    node = zids(name)
    counts = defaultdict[tuple[str, str], list[int]](list)
    for (receiver, _, key), count in received(name).items():
        counts[node[receiver], key].append(count)
    # A sample comes once for all subscribers of a node; in s19 they follow one another.
    expected = {at: sum(of) if name == "s19_late_joiner" else max(of) for at, of in counts.items()}
    rows = answers("routing", name, of=ROUTING)
    found = {(row["subscriber"], row["key"]): row["delivered"] for row in rows if row["delivered"]}
    assert found == expected and found


@truths(*(set(ALL) - {"s04_query", "s19_late_joiner"}))
def test_routing_tells_what_nobody_subscribed_to(name: str, answers: Answers) -> None:
    """A client sends what it puts even if nobody wants it."""
    got = {key for _, _, key in received(name)}
    roles = {n: told["role"] for n, told in TRUTHS[name]["nodes"].items()}
    expected = {e["key"] for e in events(name, "put", "delete") if roles[e["node"]] == "client"} - got
    rows = answers("routing", name, of=ROUTING)
    assert {row["key"] for row in rows if row["subscriber"] is None} == expected
    assert {row["key"] for row in rows if row["subscriber"] is not None} == got


def test_routing_by_hand(answers: Answers) -> None:
    rows = answers("routing", "routes", of=ROUTING)
    names = ("key", "samples", "subscriber", "subscription", "declared", "ended", "delivered", "late", "left")
    assert {picked(row, *names) for row in rows} == {
        ("demo/x", 2, "b", "demo/**", 10, None, 2, False, False),
        ("demo/x", 2, "c", "demo/x", 200, None, 1, True, False),
        ("demo/x", 2, "d", "*/x", 20, 150, 1, False, True),
        ("lonely", 1, None, None, None, None, None, None, None),
    }
    (row,) = answers("routing", "group", of=ROUTING)
    assert picked(row, *names) == ("group/x", 1, "q", "group/*", 1, None, 1, False, False)


# --- all of them ------------------------------------------------------------------------------------


def test_every_function_takes_tables_and_is_documented(table: Callable[..., Any]) -> None:
    inputs = {name: table(name, []) for name in ("messages", "sessions", "links", "lanes", "fragments", "declarations",
                                                 "queries")}  # fmt: skip
    import inspect

    for name in analytics.__all__:
        function = getattr(analytics, name)
        takes = [p for p in inspect.signature(function).parameters if p in inputs]
        made = function(*(inputs[parameter] for parameter in takes))
        assert "recording" in made.columns and len(set(made.columns)) == len(made.columns)
        assert len(function.__doc__.splitlines()) > 1 or name == "samples"
