"""Declarations and queries, made from messages: all at once and piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import captures
from tests.pipeline.conftest import Row, name_of, rows_of
from tests.rows.test_truth import truth_of, undamaged

pytest.importorskip("pyspark")

from scapy_zenoh.pipeline import derived  # noqa: E402
from scapy_zenoh.pipeline.derived import declarations, queries  # noqa: E402

TRUTHS = {name_of(path): truth_of(path) for path in captures() if undamaged(path)}


@pytest.fixture(scope="session")
def declared(messages: Any) -> list[Row]:
    return rows_of(declarations(messages))


@pytest.fixture(scope="session")
def asked(messages: Any) -> list[Row]:
    return rows_of(queries(messages))


# --- against what the applications say ------------------------------------------------------------


def zids(name: str) -> dict[str, str]:
    return {node: told["zid"] for node, told in TRUTHS[name]["nodes"].items()}


@pytest.mark.parametrize("name", ["s04_query", "s05_liveliness", "s06_declared", "s17_routers"])
def test_what_clients_declare_and_undeclare_is_a_row_each(name: str, declared: list[Row]) -> None:
    """Liveliness subscribers are interests, publishers and queriers are not declared: three entities are left."""
    expected, ids = Counter[Any](), {}
    for event in TRUTHS[name]["events"]:
        entity = {f"declare_{e}": e for e in ("subscriber", "queryable", "token")}.get(event["op"])
        if entity:
            ids[event["node"], event["id"]] = (zids(name)[event["node"]], entity, event["key"])
            expected[(*ids[event["node"], event["id"]], False)] += 1
        if event["op"] == "undeclare" and (event["node"], event["id"]) in ids:
            expected[(*ids[event["node"], event["id"]], False)] -= 1
            expected[(*ids[event["node"], event["id"]], True)] += 1
    clients = {told["zid"] for told in TRUTHS[name]["nodes"].values() if told["role"] == "client"}
    found = Counter(
        (row["zid"], row["entity"], row["key"], row["withdrawn"] is not None)
        for row in declared
        if row["recording"] == name and row["zid"] in clients and row["entity"] != "keyexpr"
    )
    assert found == +expected and found
    assert all(row["declared"] is not None for row in declared if row["recording"] == name)


def test_times_are_those_of_the_calls(declared: list[Row]) -> None:
    """The message is captured within a tenth of a second after the call."""
    for event in TRUTHS["s06_declared"]["events"]:
        if event["op"] == "declare_subscriber":
            row = next(
                r for r in declared
                if r["recording"] == "s06_declared" and r["entity"] == "subscriber" and r["key"] == event["key"]
                and r["zid"] == zids("s06_declared")["sub"]
            )  # fmt: skip
            assert 0 <= row["declared"] - event["t"] < 100_000_000


def test_withdrawals_between_routers_find_their_declaration_by_key(declared: list[Row]) -> None:
    """All have the number 0 there. When client3 leaves, router3 takes back all that it told router1 in its name."""
    node = zids("s17_routers")
    found = {
        row["entity"]: (row["entity_id"], row["key"], row["declared"] < row["withdrawn"])
        for row in declared
        if row["recording"] == "s17_routers" and (row["zid"], row["peer_zid"]) == (node["router3"], node["router1"])
        and row["entity"] != "keyexpr"
    }  # fmt: skip
    assert found == {
        "subscriber": (0, "demo/rt/**", True),
        "queryable": (0, "demo/rt/q/*", True),
        "token": (0, "demo/rt/tok", True),
    }


def test_every_get_is_a_query_and_every_reply_is_counted(asked: list[Row]) -> None:
    """What the three queryables of s04 say they got and replied; the router passes on one query for each node."""
    node, events = zids("s04_query"), TRUTHS["s04_query"]["events"]
    of = [row for row in asked if row["recording"] == "s04_query"]
    gets = sum(event["op"] == "get" for event in events)
    assert sum(row["zid"] == node["getter"] and row["peer_zid"] == node["router"] for row in of) == gets == 20
    for name in ("q1", "q2"):
        done = Counter(event["op"] for event in events if event["node"] == name)
        told = [row for row in of if row["peer_zid"] == node[name]]
        assert len(told) == done["rx_query"]
        assert sum(row["replies"] for row in told) == done["reply"] + done["reply_del"]
        assert sum(row["errors"] for row in told) == done["reply_err"]
    first = next(row for row in of if row["zid"] == node["getter"] and row["key"] == "demo/query/a")
    assert first["asked"] < first["first_reply"] <= first["last_reply"] <= first["finished"]


def test_gets_without_an_answer_are_empty(asked: list[Row]) -> None:
    """In s04 the getter got nothing for some selectors: then no reply may be in the row."""
    node, events = zids("s04_query"), TRUTHS["s04_query"]["events"]
    silent = sum(event["op"] == "get" and not event["replies"] for event in events)
    of = [r for r in asked if r["recording"] == "s04_query" and r["zid"] == node["getter"]]
    assert silent == sum(row["outcome"] == "empty" for row in of) > 0
    assert all(row["replies"] == row["errors"] == 0 for row in of if row["outcome"] == "empty")


def test_outcomes_are_those_that_the_session_tracker_counts(
    asked: list[Row], summaries: dict[str, dict[str, Any]]
) -> None:
    """The tracker counts while it reads. No capture asks with a number in use, which alone could make a difference."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in asked:
        found.setdefault((row["recording"], row["session"]), Counter())[row["outcome"]] += 1
    assert found == {
        (name, session["session"]): session["queries"]
        for name, summary in summaries.items()
        for session in summary["sessions"]
        if session["queries"]
    }


# --- what real traffic seldom does ----------------------------------------------------------------

Table = Callable[..., Any]


def test_declarations_made_by_hand(table: Table) -> None:
    """Each session is a case."""

    def declare(session: str, body: str, number: int | None, key: str | None = None, **more: Any) -> Row:
        origin = {"src_zid": "a", "dst_zid": "b", "src": "x", "sport": 1, "dst": "y", "dport": 2, "time": 100}
        return {"session": session, "kind": "declare", "body": body, "entity_id": number, "key": key, **origin, **more}

    messages = [
        declare("again", "declare_queryable", 1, "k1"),  # row 0
        declare("again", "declare_queryable", 1, "k2"),  # 1: replaces it
        declare("again", "undeclare_queryable", 1, "k2"),  # 2: ends the second
        declare("again", "undeclare_queryable", 1),  # 3: ends nothing
        declare("kinds", "declare_subscriber", 1, "s"),  # 4
        declare("kinds", "undeclare_token", 1),  # 5: another kind, so another number
        declare("sides", "declare_token", 1, "t"),  # 6
        declare("sides", "undeclare_token", 1, src_zid="b", dst_zid="a"),  # 7: the other side's number
        declare("addresses", "declare_token", 1, "t", src_zid=None, dst_zid=None),  # 8
        declare("addresses", "undeclare_token", 1, src_zid=None, dst_zid=None, src="y", sport=2),  # 9: the other side
        declare("addresses", "undeclare_token", 1, src_zid=None, dst_zid=None),  # 10
        declare("zero", "declare_subscriber", 0, "k1"),  # 11
        declare("zero", "declare_subscriber", 0, "k2"),  # 12
        declare("zero", "undeclare_subscriber", 0, "k1"),  # 13: not the newer one
        declare("unknown key", "declare_token", 5, interest_id=7),  # 14
        declare("unknown key", "undeclare_token", 5, "told at the end"),  # 15
        declare("cut", "declare_token", None),  # 16: a fault before the number
        declare("final", "declare_final", None, interest_id=7),  # 17
    ]
    found = [
        (r["session"], r["entity"], r["zid"], r["key"], r["interest_id"], r["declared_row"], r["withdrawn_row"])
        for r in rows_of(declarations(table("messages", messages)))
    ]
    assert sorted(found, key=str) == sorted(
        [
            ("again", "queryable", "a", "k1", None, 0, None),
            ("again", "queryable", "a", "k2", None, 1, 2),
            ("again", "queryable", "a", None, None, None, 3),
            ("kinds", "subscriber", "a", "s", None, 4, None),
            ("kinds", "token", "a", None, None, None, 5),
            ("sides", "token", "a", "t", None, 6, None),
            ("sides", "token", "b", None, None, None, 7),
            ("addresses", "token", None, "t", None, 8, 10),
            ("addresses", "token", None, None, None, None, 9),
            ("zero", "subscriber", "a", "k1", None, 11, 13),
            ("zero", "subscriber", "a", "k2", None, 12, None),
            ("unknown key", "token", "a", "told at the end", 7, 14, 15),
        ],
        key=str,
    )


def test_queries_made_by_hand(table: Table) -> None:
    """Each session is a case; the time of a row is ten times its number."""
    rows: list[Row] = []

    def add(session: str, kind: str, body: str | None = None, number: int | None = 1, asker: str = "a") -> None:
        one, other = {"zid": "a", "": "x", "port": 1}, {"zid": "b", "": "y", "port": 2}
        if (asker == "a") != (kind == "request"):
            one, other = other, one
        rows.append(
            {"session": session, "kind": kind, "body": body, "request_id": number, "time": 10 * len(rows),
             "key": f"{session}{len(rows)}", "payload_len": 4 if body in ("reply_put", "err") else None,
             "src_zid": one["zid"], "src": one[""], "sport": one["port"],
             "dst_zid": other["zid"], "dst": other[""], "dport": other["port"]}
        )  # fmt: skip

    add("normal", "request", "query")  # row 0
    add("normal", "response", "reply_put")  # 1
    add("normal", "response", "reply_del")  # 2
    add("normal", "response", "err")  # 3
    add("normal", "response_final")  # 4
    add("normal", "response_final")  # 5: again, does not count
    add("late", "request", "query")  # 6
    add("late", "response_final")  # 7
    add("late", "response", "reply_put")  # 8: does not count
    add("again", "request", "query")  # 9
    add("again", "response", "reply_put")  # 10
    add("again", "request", "query")  # 11: the same number
    add("again", "response_final")  # 12: of the second
    add("sides", "request", "query")  # 13
    add("sides", "request", "query", asker="b")  # 14: the same number, other side
    add("sides", "response", "err", asker="b")  # 15
    add("sides", "response_final", asker="b")  # 16
    add("unseen", "response", "reply_put")  # 17: nobody asked
    add("unseen", "response_final")  # 18
    add("unseen", "request", "query")  # 19
    add("cut", "request", number=None)  # 20: a fault before the number
    columns = ("session", "zid", "asked", "first_reply", "last_reply", "finished", "replies", "errors", "reply_bytes")
    found = {(*(row[name] for name in columns), row["outcome"]) for row in rows_of(queries(table("messages", rows)))}
    assert found == {
        ("normal", "a", 0, 10, 30, 40, 2, 1, 8, "answered"),
        ("late", "a", 60, None, None, 70, 0, 0, 0, "empty"),
        ("again", "a", 90, 100, 100, None, 1, 0, 4, "unfinished"),
        ("again", "a", 110, None, None, 120, 0, 0, 0, "empty"),
        ("sides", "a", 130, None, None, None, 0, 0, 0, "unfinished"),
        ("sides", "b", 140, 150, 150, 160, 0, 1, 4, "answered"),
        ("unseen", "a", 190, None, None, None, 0, 0, 0, "unfinished"),
    }


def test_columns_are_those_of_the_tables(table: Table) -> None:
    from scapy_zenoh.pipeline.schema import of_table

    nothing = table("messages", [])
    for name, make in (("declarations", declarations), ("queries", queries)):
        made = make(nothing)
        assert [(f.name, f.dataType) for f in made.schema] == [(f.name, f.dataType) for f in of_table(name)]
        assert made.collect() == []


# --- piece by piece -------------------------------------------------------------------------------

CUT = [
    name_of(path)
    for path in captures()
    if path.name.startswith(("s04_", "s05_", "s06_", "s14c", "s17_", "s24_", "s30_", "s32_"))
]
EVERY = {"s14c_mcast_subscriber": 400}  # rows between cuts; a declaration storm of thousands of rows


def events_of(folder: Path, name: str) -> Any:
    """The events of a capture."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    messages = pq.read_table(folder / f"{name}.parquet")
    return messages.filter(pc.is_in(messages["kind"], pa.array(derived.KINDS))).select(derived.EVENTS)


def made(making: type[derived.Making], pieces: Sequence[Any], batch: int = 1 << 20) -> list[Row]:
    """The rows of a table; what one piece leaves open goes to the next, as bytes."""
    rows, waiting = [], None
    for piece in pieces:
        one = making(waiting)
        for events in piece.to_batches(batch):
            for over in one.add(events):
                rows += over.to_pylist()
        rows += one.over().to_pylist()
        waiting, shown = one.waiting, one.open()
        assert waiting.num_rows == shown.num_rows
    return sorted(rows + shown.to_pylist(), key=repr)


@pytest.mark.parametrize("making", derived.DERIVED.values(), ids=derived.DERIVED)
@pytest.mark.parametrize("name", CUT)
def test_pieces_give_the_same_rows_as_the_whole(making: Any, name: str, read: tuple[Path, Any]) -> None:
    """Cut in three, at many places."""
    events = events_of(read[0], name)
    whole = made(making, [events])
    assert whole or making is derived.Queries and name not in ("s04_query", "s17_routers")
    for one in range(0, events.num_rows + 1, EVERY.get(name, 7)):
        assert made(making, [events[:one], events[one : one + 9], events[one + 9 :]]) == whole


@pytest.mark.parametrize("making", derived.DERIVED.values(), ids=derived.DERIVED)
def test_batches_that_are_taken_at_once_or_one_by_one_give_the_same_rows(
    making: Any, read: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_of(read[0], "s04_query")
    whole = made(making, [events])
    monkeypatch.setattr(derived, "ENOUGH", 1)
    for size in (1, 3, 50):
        assert made(making, [events], size) == whole


def test_rows_of_sessions_that_are_over_are_not_kept(read: tuple[Path, Any]) -> None:
    rows = derived.Declarations()
    for batch in events_of(read[0], "s06_declared").to_batches():
        rows.add(batch)
    rows.over()
    shown = rows.open().to_pylist()
    sessions = {row["session"] for row in shown}
    assert len(sessions) > 1
    some = sessions.pop()
    settled = rows.settle([some]).to_pylist()
    assert settled == [row for row in shown if row["session"] == some] != []
    assert rows.open().to_pylist() == [row for row in shown if row["session"] != some]
    assert rows.settle([some]).num_rows == 0
