"""What is declared and withdrawn: compiled code remembers of it what the session does, whatever happens in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scapy_zenoh as z
from scapy_zenoh.bulk import declarations, names
from scapy_zenoh.bulk.declarations import DeclarationTable
from scapy_zenoh.session.entities import Entities
from scapy_zenoh.session.keyspace import KeyTable
from scapy_zenoh.session.tracker import Limits, Side
from tests.bulk.compare import ODD, SMALL, TINY, USUAL, Cut, Read, agree, plain, scapy
from tests.bulk.disturb import as_pcap
from tests.bulk.talk import KINDS, Datagrams, Group, Link, Session, Stream, Wire, declaring
from tests.bulk.test_talk import ask, declare, fragments, frame, opened, push
from tests.wire import RST

CUTS = (USUAL, SMALL, ODD, TINY, Cut(1 << 16, 1))
FEW = Limits(keys=2, entities=2, requests=1, findings=30)


def entity(number: int, what: str = "Subscriber", interest: int | None = None, **key: Any) -> bytes:
    """The declaration of an entity."""
    head = z.ZenohDeclare() if interest is None else z.ZenohDeclare(interest_id=interest)
    return bytes(head / getattr(z, f"ZenohDeclare{what}")(id=number, **key))


def gone(number: int, what: str = "Subscriber", **key: Any) -> bytes:
    """Its withdrawal, with its key in an extension if that is given."""
    exts = [z.ZenohExtWireExpr(**key)] if key else []
    return bytes(z.ZenohDeclare() / getattr(z, f"ZenohUndeclare{what}")(id=number, exts=exts))


def forget(number: int) -> bytes:
    return bytes(z.ZenohDeclare() / z.ZenohUndeclareKeyexpr(expr_id=number))


def below(number: int, scope: int, suffix: str) -> bytes:
    """A key that begins with another one."""
    return bytes(z.ZenohDeclare() / z.ZenohDeclareKeyexpr(expr_id=number, scope=scope, suffix=suffix))


def check(wire: Wire, folder: Path, *cuts: Cut, limits: Limits | None = None) -> Read:
    """Both ways tell the same; returns what."""
    path = folder / "talk.pcap"
    path.write_bytes(as_pcap(1, wire.records))
    reference = scapy([path]) if limits is None else plain([path], limits=limits)
    agree(reference, [path], *(cuts or CUTS), limits=limits)
    return reference


def keys(told: Read, *kinds: str) -> list[str | None]:
    """The keys of messages of some kinds, or with some bodies."""
    return [row["key"] for row in told.rows if row["kind"] in kinds or row["body"] in kinds]


def interrupted(link: Link, direction: int = 0) -> None:
    """Something that compiled code leaves to plain Python, which then looks at what was declared before."""
    link.send(direction, frame(link, direction, bytes(z.ZenohInterest(id=9, mode=1, K=1, scope=1, M=1, R=1))))


# --- by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Stream, Datagrams, Group])
@pytest.mark.parametrize("between", [False, True])
def test_id_declared_again_has_the_newer_key(kind: type[Any], between: bool, tmp_path: Path) -> None:
    link = opened(kind)
    for what in ("Subscriber", "Queryable", "Token"):
        for key in ("old", "new"):
            link.send(0, frame(link, 0, entity(1, what, suffix=key)))
            if between:
                interrupted(link)
        link.send(0, frame(link, 0, gone(1, what), gone(1, what), gone(7, what)))
    told = check(link.wire, tmp_path)
    assert (
        keys(told, *(f"undeclare_{what}" for what in ("subscriber", "queryable", "token"))) == ["new", None, None] * 3
    )


@pytest.mark.parametrize("kind", [Stream, Datagrams, Group])
def test_key_declared_again_changes_what_comes_after_it(kind: type[Any], tmp_path: Path) -> None:
    link = opened(kind)
    one = [declare(1, "a"), push(1), entity(1, scope=1, M=1, suffix="/x"), declare(1, "b"), push(1)]
    link.send(0, frame(link, 0, *one))
    link.send(
        0, frame(link, 0, gone(1), entity(2, scope=1, M=1), forget(1), push(1), forget(1), gone(2), declare(1, "c"))
    )
    interrupted(link)
    link.send(0, frame(link, 0, push(1), below(2, 1, "/y"), forget(1), bytes(z.ZenohPush(scope=2, M=1) / z.ZenohDel())))
    told = check(link.wire, tmp_path)
    assert keys(told, "push") == ["a", "b", None, "c", "c/y"]
    assert keys(told, "undeclare_subscriber") == ["a/x", "b"]
    assert keys(told, "undeclare_keyexpr") == ["b", None, "c"]


def test_scope_in_the_table_of_either_side(tmp_path: Path) -> None:
    link = opened()
    link.send(0, frame(link, 0, declare(1, "mine")))
    link.send(1, frame(link, 1, declare(1, "theirs"), declare(2, "only theirs")))
    for mapping in (0, 1):
        link.send(0, frame(link, 0, *(entity(n, "Token", scope=n, M=mapping, suffix="/x") for n in (1, 2))))
        link.send(0, frame(link, 0, *(gone(n, "Token") for n in (1, 2))))
        link.send(0, frame(link, 0, *(gone(n, "Token", scope=n, M=mapping, suffix="/y") for n in (1, 2))))
    link.send(0, frame(link, 0, below(3, 1, "/z"), below(4, 2, "/z"), below(5, 9, "/z"), push(3), push(4), push(5)))
    told = check(link.wire, tmp_path)
    tokens = ["theirs/x", "only theirs/x", "mine/x", None]
    assert keys(told, "declare_token") == tokens
    assert keys(told, "undeclare_token") == [*tokens[:2], "theirs/y", "only theirs/y", *tokens[2:], "mine/y", None]
    assert keys(told, "push") == ["theirs/z", "only theirs/z", None]


def test_scope_of_a_group_is_the_senders(tmp_path: Path) -> None:
    link = opened(Group)
    link.send(0, frame(link, 0, declare(1, "mine"), below(2, 1, "/x"), push(2), push(2, mapping=0)))
    link.send(1, frame(link, 1, push(1), entity(1, scope=1, M=0), gone(1)))
    told = check(link.wire, tmp_path)
    assert keys(told, "push") == ["mine/x", None, None]


def test_what_an_interest_is_answered_with_can_be_withdrawn(tmp_path: Path) -> None:
    link = opened()
    interrupted(link)
    final = bytes(z.ZenohDeclare(interest_id=9) / z.ZenohDeclareFinal())
    link.send(1, frame(link, 1, entity(5, interest=9, suffix="a"), final, gone(5)))
    assert keys(check(link.wire, tmp_path), "declare") == ["a", None, "a"]


@pytest.mark.parametrize("kind", [Stream, Datagrams])
def test_declarations_in_fragments_stand_between_the_others(kind: type[Any], tmp_path: Path) -> None:
    link = opened(kind)
    link.send(0, frame(link, 0, entity(1, suffix="a")))
    for message in (entity(1, suffix="b"), declare(1, "k"), entity(2, scope=1, M=1, suffix="/x")):
        for piece in fragments(link, 0, message):
            link.send(0, piece, hold=kind is Stream)
    link.send(0, frame(link, 0, gone(1), gone(2), push(1)))
    for piece in fragments(link, 0, forget(1)):
        link.send(0, piece)
    link.send(0, frame(link, 0, push(1)))
    told = check(link.wire, tmp_path)
    assert keys(told, "undeclare_subscriber", "push") == ["b", "k/x", "k", None]


def test_tables_at_their_limit(tmp_path: Path) -> None:
    """What is known already can change, new ones are not remembered; findings stand in their order."""
    link = opened()
    for number in (1, 2, 3):
        link.send(0, frame(link, 0, entity(number, suffix=f"e{number}"), ask(number), declare(number, f"k{number}")))
    link.send(0, frame(link, 0, entity(2, suffix="other"), declare(2, "other"), *(push(n) for n in (1, 2, 3))))
    link.send(0, frame(link, 0, gone(1), gone(2), gone(3), entity(3, "Token", suffix="t"), entity(3, suffix="s")))
    interrupted(link)
    for number in (4, 5):
        link.send(0, frame(link, 0, entity(number, suffix="e"), ask(number), declare(number, "k")))
    link.send(
        0, frame(link, 0, forget(1), declare(6, "six"), forget(6), declare(1, "again"), gone(3), gone(3, "Token"))
    )
    told = check(link.wire, tmp_path, limits=FEW)
    assert keys(told, "undeclare_subscriber") == ["e1", "other", None, "s"]
    assert keys(told, "push") == ["k1", "other", None]
    entity_full, request = "entity table full", "request {} not remembered: too many are open".format
    said = [finding["detail"] for finding in told.summary["findings"]]
    assert said[:6] == [request(2), entity_full, request(3), entity_full, request(4), entity_full]
    assert "key table full" in said
    nodes = {node["zid"]: node for node in told.summary["sessions"][0]["nodes"]}
    assert nodes["a1b2c3"]["declared"] == {"subscriber": 7, "token": 1}
    assert list(nodes["a1b2c3"]["keys"].items()) == [("2", "other"), ("1", "again")]


def test_keys_stand_in_the_order_of_their_first_declaration(tmp_path: Path) -> None:
    link = opened()
    link.send(0, frame(link, 0, *(declare(number, f"k{number}") for number in (3, 1, 2))))
    interrupted(link)
    link.send(0, frame(link, 0, declare(1, "new"), forget(3), declare(4, "k4"), declare(3, "again")))
    node = next(n for n in check(link.wire, tmp_path).summary["sessions"][0]["nodes"] if n["zid"] == "a1b2c3")
    assert list(node["keys"].items()) == [("1", "new"), ("2", "k2"), ("4", "k4"), ("3", "again")]


def test_entities_are_forgotten_when_a_session_is_over_while_one_of_its_links_goes_on(tmp_path: Path) -> None:
    wire, session = Wire(), Session(several=True)
    one, other = (Stream(wire, session, 50000 + number) for number in range(2))
    third = Stream(wire, Session(zids=("0d", "0e")), 50009)
    for link in (one, other, third):
        link.start()
        link.handshake()
    other.send(0, frame(other, 0, declare(1, "k"), entity(1, suffix="a"), entity(2, suffix="b")))
    one.send(0, bytes(z.ZenohClose(S=1)))
    one.segment(0, flags=RST)
    for _ in range(3):
        wire.time += 10**9
        third.send(0, frame(third, 0, push(1)))
    other.send(0, frame(other, 0, gone(1), entity(2, suffix="c"), gone(2), gone(2), push(1)))
    told = check(wire, tmp_path)
    assert keys(told, "undeclare_subscriber") == [None, "c", None]


def test_names_beyond_what_is_kept_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST", 2000)
    link = opened()
    link.send(0, frame(link, 0, declare(1, "kept/" + "x" * 300), entity(1, scope=1, M=1), entity(2, scope=7, M=1)))
    for number in range(60):
        extra = [declare(2, f"name/{number}/" + "y" * 90), entity(9, scope=2, M=1, suffix="/z"), push(2)]
        link.send(0, frame(link, 0, *extra, gone(9), push(1)))
        interrupted(link)
    link.send(0, frame(link, 0, gone(1), gone(2)))
    told = check(link.wire, tmp_path, Cut(3000, 10), ODD, USUAL)
    assert keys(told, "undeclare_subscriber")[-2:] == ["kept/" + "x" * 300, None]


def test_long_names_made_of_names(tmp_path: Path) -> None:
    """Each is longer than all room there was before."""
    link = opened()
    link.send(0, frame(link, 0, declare(1, "a" * 5000)))
    for number in range(2, 12):
        link.send(0, frame(link, 0, below(number, number - 1, "b" * 5000), push(number)))
    assert [len(key or "") for key in keys(check(link.wire, tmp_path, USUAL, ODD), "push")] == [
        5000 * number for number in range(2, 12)
    ]


# --- at random ----------------------------------------------------------------------------------

relaxed = settings(deadline=None, suppress_health_check=[*HealthCheck])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("declarations")


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(relaxed, max_examples=25)
def test_declarations_at_random(kind: type[Any], data: st.DataObject, folder: Path) -> None:
    """Many in a FRAME, in both directions, with now and then something irregular, and with small tables."""
    link = opened(kind)
    for _ in range(data.draw(st.integers(1, 8))):
        direction = data.draw(st.integers(0, 1))
        link.send(direction, frame(link, direction, *data.draw(st.lists(declaring(), min_size=1, max_size=12))))
        match data.draw(st.integers(0, 5)):
            case 0:
                interrupted(link, direction)
            case 1:
                for piece in fragments(link, direction, data.draw(declaring())):
                    link.send(direction, piece)
    limits = data.draw(st.sampled_from([FEW, Limits(), Limits(keys=1, entities=4)]))
    check(link.wire, folder, data.draw(st.sampled_from(CUTS)), limits=limits)


STEPS = st.tuples(
    st.sampled_from(["declare", "declare", "declare", "withdraw", "withdraw", "resolve", "clear"]),
    st.integers(0, 1),
    st.sampled_from(declarations.WHATS),
    st.integers(0, 5),
    st.sampled_from(["", "a", "a/b", "é" * 40]),
)


@given(steps=st.lists(STEPS, max_size=60), before=st.integers(0, 20))
@settings(relaxed, max_examples=100)
def test_table_behaves_as_those_of_the_session(steps: list[Any], before: int) -> None:
    """The same steps with plain tables, and with those that are taken over after some of them and given back."""
    limits = Limits(keys=3, entities=4)
    ways = [[Side(keys=KeyTable(3), entities=Entities(4)) for _ in "ab"] for _ in "12"]
    table, told = DeclarationTable(limits), []
    for number, step in enumerate(steps):
        if number == before:
            for side, taken in enumerate(ways[1]):
                table.adopt(side, taken)
        told.append([_do(sides[step[1]], step) for sides in ways])
    if len(steps) > before:
        table.give_back(ways[1])
    assert [one for one, _ in told] == [other for _, other in told]
    for one, other in zip(*ways, strict=True):
        assert (one.keys, one.entities) == (other.keys, other.entities)
        assert list(one.keys.names().items()) == list(other.keys.names().items())


def _do(side: Side, step: Any) -> Any:
    happens, _, what, number, key = step
    match happens, what:
        case "declare", "keyexpr":
            return side.keys.declare(number, key), side.keys.full
        case "withdraw", "keyexpr":
            return side.keys.undeclare(number), dict(side.keys.names())
        case "declare", _:
            return side.entities.declare(what, number, key or None)
        case "withdraw", _:
            return side.entities.withdraw(what, number)
        case "resolve", _:
            return side.keys.resolve(number, key)
    return side.entities.clear()


def test_many_declarations_need_a_larger_table() -> None:
    table, side = DeclarationTable(Limits()), Side()
    table.adopt(0, side)
    for number in range(30_000):
        side.entities.declare("token", number, str(number))
        if number % 3:
            assert side.entities.withdraw("token", number) == str(number)
    assert [side.entities.withdraw("token", number) for number in range(0, 30_000, 3)] == [
        str(number) for number in range(0, 30_000, 3)
    ]
