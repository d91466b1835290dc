"""Sessions followed by hand: plain records in, names and findings out."""

from __future__ import annotations

from typing import Any

import pytest

from scapy_zenoh.session.record import MessageRecord, Offer
from scapy_zenoh.session.tracker import Limits, Link, Tracker

A, B = "aa", "bb"  # A opens, B accepts


def message(kind: str, **values: Any) -> MessageRecord:
    transport = kind.startswith(("init", "open", "close", "join", "frame", "fragment", "keep"))
    return MessageRecord("transport" if transport else "network", kind, **values)


class Talk:
    """A link between two nodes; direction 0 is from A."""

    def __init__(self, tracker: Tracker, name: str = "tcp/1-2#0", **options: Any) -> None:
        self.tracker, self.clock = tracker, 0
        self.link = tracker.open_link(Link(name, "tcp", **{"ordered": True, **options}))

    def say(self, direction: int, kind: str, **values: Any) -> MessageRecord:
        self.clock += 1
        record = message(kind, **values)
        self.tracker.message(self.link, direction, record, self.clock)
        return record

    def handshake(self, syn: Offer | None = None, ack: Offer | None = None, sns: tuple[int, int] = (0, 0)) -> Talk:
        self.say(0, "init_syn", zid=A, whatami="client", offer=syn or Offer())
        self.say(1, "init_ack", zid=B, whatami="router", offer=ack or syn or Offer())
        self.say(0, "open_syn", offer=Offer(lease_ms=10_000, initial_sn=sns[0]))
        self.say(1, "open_ack", offer=Offer(lease_ms=10_000, initial_sn=sns[1]))
        return self

    def key(self, direction: int, number: int, name: str) -> MessageRecord:
        return self.say(direction, "declare", body="declare_keyexpr", entity_id=number, key_scope=0, key_suffix=name)

    def push(self, direction: int, scope: int, suffix: str | None = None, mapping: str = "sender") -> str | None:
        return self.say(direction, "push", body="put", key_scope=scope, key_suffix=suffix, key_mapping=mapping).key


@pytest.fixture
def tracker() -> Tracker:
    return Tracker()


# --- who talks to whom --------------------------------------------------------------------------


def test_ids_are_known_as_they_are_told(tracker: Tracker) -> None:
    talk = Talk(tracker)
    syn = talk.say(0, "init_syn", zid=A, whatami="client", offer=Offer())
    assert (syn.src_zid, syn.dst_zid, syn.session) == (A, None, "?tcp/1-2#0")
    ack = talk.say(1, "init_ack", zid=B, whatami="router", offer=Offer())
    assert (ack.src_zid, ack.dst_zid, ack.session) == (B, A, "aa-bb#0")
    opened = talk.say(0, "open_syn", offer=Offer(initial_sn=1))
    assert (opened.src_zid, opened.dst_zid, opened.link) == (A, B, "tcp/1-2#0")


def test_lower_id_comes_first_whoever_opens(tracker: Tracker) -> None:
    talk = Talk(tracker)
    talk.say(0, "init_syn", zid="f0", offer=Offer())
    assert talk.say(1, "init_ack", zid="9", offer=Offer()).session == "9-f0#0"
    talk.key(0, 1, "of f0")
    assert talk.push(0, 1) == "of f0"
    assert talk.say(1, "keep_alive").src_zid == "9"


def test_connecting_again_is_a_new_session_with_empty_tables(tracker: Tracker) -> None:
    old = Talk(tracker).handshake()
    old.key(0, 1, "demo")
    tracker.close_link(old.link, 100)
    new = Talk(tracker, "tcp/1-2#1").handshake()
    assert new.link.session.id == "aa-bb#1"
    assert new.push(0, 1, "/x") is None


def test_connecting_again_while_the_old_link_lingers_is_a_new_session(tracker: Tracker) -> None:
    Talk(tracker).handshake().key(0, 1, "demo")
    new = Talk(tracker, "tcp/1-3#0").handshake()
    assert new.link.session.id == "aa-bb#1" and new.push(0, 1) is None


def test_several_links_are_one_session_if_both_ends_agreed(tracker: Tracker) -> None:
    one = Talk(tracker).handshake(Offer(multilink=True))
    two = Talk(tracker, "tcp/1-3#0").handshake(Offer(multilink=True))
    assert one.link.session is two.link.session and two.link.session.id == "aa-bb#0"
    one.key(1, 4, "demo")
    assert two.push(0, 4, "/x", "receiver") == "demo/x"
    tracker.close_link(one.link, 50)
    assert one.link.session.closed is None
    tracker.close_link(two.link, 60)
    assert one.link.session.closed == 60


def test_several_links_after_the_session_ended_are_a_new_one(tracker: Tracker) -> None:
    one = Talk(tracker).handshake(Offer(multilink=True))
    tracker.close_link(one.link, 50)
    two = Talk(tracker, "tcp/1-3#0").handshake(Offer(multilink=True))
    assert two.link.session.id == "aa-bb#1"


def test_close_of_the_session_ends_all_links(tracker: Tracker) -> None:
    one = Talk(tracker).handshake(Offer(multilink=True))
    two = Talk(tracker, "tcp/1-3#0").handshake(Offer(multilink=True))
    one.say(0, "close", reason="generic", whole_session=True)
    assert two.link.closed is not None and one.link.session.close_reason == "generic"


def test_init_that_comes_after_its_answer_still_names_the_session(tracker: Tracker) -> None:
    """Packets of a damaged capture may be read late."""
    talk = Talk(tracker)
    talk.say(1, "init_ack", zid=B, whatami="router", offer=Offer())
    talk.say(0, "init_syn", zid=A, whatami="client", offer=Offer())
    assert talk.say(0, "open_syn", offer=Offer(initial_sn=0)).session == "aa-bb#0"


def test_late_init_of_a_second_link_joins_the_session(tracker: Tracker) -> None:
    one = Talk(tracker).handshake(Offer(multilink=True))
    one.key(1, 4, "demo")
    two = Talk(tracker, "tcp/1-3#0")
    two.say(1, "init_ack", zid=B, offer=Offer(multilink=True))
    two.say(0, "init_syn", zid=A, offer=Offer(multilink=True))
    assert two.push(0, 4, "/x", "receiver") == "demo/x"


# --- what was agreed ----------------------------------------------------------------------------


@pytest.mark.parametrize("option, framing", [("compression", "compressed"), ("low_latency", "lowlatency")])
def test_each_direction_switches_after_its_open(tracker: Tracker, option: str, framing: str) -> None:
    talk = Talk(tracker)
    offer = Offer(**{option: True})
    talk.say(0, "init_syn", zid=A, offer=offer)
    talk.say(1, "init_ack", zid=B, offer=offer)
    assert [talk.link.framing(d) for d in (0, 1)] == ["plain", "plain"]
    talk.say(0, "open_syn", offer=Offer(initial_sn=0))
    assert [talk.link.framing(d) for d in (0, 1)] == [framing, "plain"]
    talk.say(1, "open_ack", offer=Offer(initial_sn=0))
    assert [talk.link.framing(d) for d in (0, 1)] == [framing, framing]


@pytest.mark.parametrize("option", ["compression", "low_latency"])
def test_what_only_one_end_wants_is_off(tracker: Tracker, option: str) -> None:
    talk = Talk(tracker).handshake(Offer(**{option: True}), Offer())
    assert [talk.link.framing(d) for d in (0, 1)] == ["plain", "plain"]


def test_answer_alone_tells_the_mode(tracker: Tracker) -> None:
    talk = Talk(tracker)
    talk.say(1, "init_ack", zid=B, offer=Offer(compression=True))
    talk.say(1, "open_ack", offer=Offer(initial_sn=0))
    assert talk.link.framing(1) == "compressed"


@pytest.mark.parametrize("option, framing", [("compression", "compressed"), ("low_latency", "lowlatency")])
def test_answer_tells_the_mode_when_the_offer_was_cut(tracker: Tracker, option: str, framing: str) -> None:
    """What is missing of an INIT syn was not refused: the answer repeats only what was asked for."""
    talk = Talk(tracker)
    talk.say(0, "init_syn", zid=A, offer=Offer(), fault="gap")
    talk.say(1, "init_ack", zid=B, offer=Offer(**{option: True}))
    talk.say(1, "open_ack", offer=Offer(initial_sn=0))
    assert talk.link.framing(1) == framing


def test_resolution_is_that_of_the_answer(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(sn_resolution=2), Offer(sn_resolution=0))
    assert talk.link.session.mask == 0x7F


# --- keys ---------------------------------------------------------------------------------------


def test_each_side_has_its_own_numbers(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    talk.key(0, 1, "of/a")
    talk.key(1, 1, "of/b")
    assert talk.push(0, 1, "/x", "sender") == "of/a/x"
    assert talk.push(0, 1, "/x", "receiver") == "of/b/x"
    assert talk.push(1, 1, "/x", "sender") == "of/b/x"
    assert talk.push(1, 1, "/x", "receiver") == "of/a/x"


def test_key_without_number_is_its_text(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    assert talk.push(0, 0, "demo/a") == "demo/a"
    assert talk.push(0, 0, None) == ""
    assert talk.push(0, 7, "/x") is None


def test_withdrawn_number_is_unknown_until_it_is_used_again(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    talk.key(0, 1, "old")
    assert talk.say(0, "declare", body="undeclare_keyexpr", entity_id=1).key == "old"
    assert talk.push(0, 1) is None
    talk.key(0, 1, "new")
    assert talk.push(0, 1) == "new"


def test_scoped_declaration_is_tried_in_the_receivers_table_first(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    talk.key(0, 1, "of/a")
    scoped = {"body": "declare_keyexpr", "key_scope": 1, "key_suffix": "/x"}
    assert talk.say(0, "declare", entity_id=2, **scoped).key == "of/a/x"
    talk.key(1, 1, "of/b")
    assert talk.say(0, "declare", entity_id=3, **scoped).key == "of/b/x"


def test_withdrawal_has_the_key_of_what_it_withdraws(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    for what in ("subscriber", "queryable", "token"):
        up = talk.say(
            0, "declare", body=f"declare_{what}", entity_id=1, key_scope=0, key_suffix=what, key_mapping="sender"
        )
        assert up.key == what
    for what in ("subscriber", "queryable", "token"):  # the same number, three kinds
        assert talk.say(0, "declare", body=f"undeclare_{what}", entity_id=1).key == what
    assert talk.say(0, "declare", body="undeclare_token", entity_id=1).key is None


def test_number_0_is_withdrawn_by_key_if_there_is_one_else_by_number(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    for key in ("one", "two"):
        talk.say(0, "declare", body="declare_token", entity_id=0, key_scope=0, key_suffix=key, key_mapping="sender")
    named = {"key_scope": 0, "key_suffix": "one", "key_mapping": "sender"}
    assert talk.say(0, "declare", body="undeclare_token", entity_id=0, **named).key == "one"
    talk.say(0, "declare", body="declare_subscriber", entity_id=0, key_scope=0, key_suffix="s", key_mapping="sender")
    assert talk.say(0, "declare", body="undeclare_subscriber", entity_id=0).key == "s"


def test_withdrawing_one_token_of_number_0_keeps_the_other(tracker: Tracker) -> None:
    """Between routers all have number 0: the key in the withdrawal says which one it is."""
    talk = Talk(tracker).handshake()
    for key in ("one", "two"):
        talk.say(0, "declare", body="declare_token", entity_id=0, key_scope=0, key_suffix=key, key_mapping="sender")
    for key in ("one", "two"):
        named = {"key_scope": 0, "key_suffix": key, "key_mapping": "sender"}
        assert talk.say(0, "declare", body="undeclare_token", entity_id=0, **named).key == key


def test_final_interest_has_the_key_of_the_interest(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    wanted = {"key_scope": 0, "key_suffix": "demo/**", "key_mapping": "sender"}
    talk.say(0, "interest", interest_id=3, interest_mode="current_future", **wanted)
    assert talk.say(0, "interest", interest_id=3, interest_mode="final").key == "demo/**"


def test_full_key_table_is_a_finding() -> None:
    tracker = Tracker(Limits(keys=2))
    talk = Talk(tracker).handshake()
    for number in (1, 2, 3):
        talk.key(0, number, f"k{number}")
    assert talk.push(0, 3) is None
    tracker.finish()
    assert [finding.kind for finding in tracker.findings] == ["limit"]


# --- multicast ----------------------------------------------------------------------------------


def test_join_names_the_session_of_a_node_towards_a_group(tracker: Tracker) -> None:
    talk = Talk(tracker, "udp/1-g#0", multicast=True, group="224.0.0.225:7451", ordered=False)
    joined = talk.say(0, "join", zid=A, whatami="peer", offer=Offer(next_sns=(5, 5)))
    assert (joined.src_zid, joined.dst_zid, joined.session) == (A, None, "aa@224.0.0.225:7451#0")
    talk.key(0, 1, "demo")
    assert talk.push(0, 1, "/x") == "demo/x"
    assert talk.push(0, 1, "/x", "receiver") is None
    again = talk.say(0, "join", zid=A, whatami="peer", offer=Offer(next_sns=(9, 5)))
    assert again.session == joined.session


def test_node_that_comes_back_to_a_group_has_a_new_session(tracker: Tracker) -> None:
    talk = Talk(tracker, "udp/1-g#0", multicast=True, group="g:1", ordered=False)
    talk.say(0, "join", zid=A, offer=Offer())
    talk.key(0, 1, "demo")
    talk.say(0, "close", reason="generic")
    assert talk.say(0, "join", zid=A, offer=Offer()).session == "aa@g:1#1"
    assert talk.push(0, 1) is None
    assert talk.say(0, "join", zid=B, offer=Offer()).session == "bb@g:1#0"


# --- numbers and fragments ----------------------------------------------------------------------


def frame(talk: Talk, direction: int, sn: int, priority: int = 5, reliable: bool = True) -> None:
    talk.say(direction, "frame", sn=sn, priority=priority, reliable=reliable)


def gaps(tracker: Tracker) -> list[str]:
    tracker.finish()
    return [finding.detail for finding in tracker.findings if finding.kind == "sequence_gap"]


def test_every_lane_begins_with_the_announced_number(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(lanes=True), sns=(10, 20))
    for priority in (5, 7):
        for reliable in (True, False):
            frame(talk, 0, 10, priority, reliable)
            frame(talk, 1, 20, priority, reliable)
            frame(talk, 0, 11, priority, reliable)
    assert gaps(tracker) == []


def test_missing_number_is_a_finding_of_its_lane(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(lanes=True), sns=(10, 20))
    frame(talk, 0, 10, 5)
    frame(talk, 0, 12, 5)
    frame(talk, 0, 10, 6)
    assert gaps(tracker) == ["1 numbers missing from aa priority 5 reliable"]


def test_without_lanes_all_priorities_count_together(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(lanes=False), sns=(10, 20))
    frame(talk, 0, 10, 5)
    frame(talk, 0, 11, 5)
    assert gaps(tracker) == []


def test_two_links_share_the_numbers_of_a_lane(tracker: Tracker) -> None:
    one = Talk(tracker).handshake(Offer(multilink=True), sns=(10, 20))
    two = Talk(tracker, "tcp/1-3#0").handshake(Offer(multilink=True), sns=(10, 20))
    for number, talk in ((10, one), (12, two), (11, one), (13, two)):
        frame(talk, 0, number)
    assert gaps(tracker) == []


def fragment(talk: Talk, sn: int, data: bytes, **marks: bool) -> tuple[bytes, int] | None:
    record = talk.say(0, "fragment", sn=sn, priority=5, reliable=True, slice=data, **marks)
    return talk.tracker.fragment(talk.link, 0, record, time=0, peek=lambda data: MessageRecord("push"))


def test_fragments_are_put_together_and_the_number_after_them_is_free(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(patch=1), sns=(10, 0))
    assert fragment(talk, 10, b"ab", first=True, more=True) is None
    assert fragment(talk, 11, b"c") == (b"abc", 2)
    frame(talk, 0, 13)
    assert gaps(tracker) == []


def test_lost_fragment_is_two_findings(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake(Offer(patch=1), sns=(10, 0))
    fragment(talk, 10, b"ab", first=True, more=True)
    assert fragment(talk, 12, b"c") is None
    tracker.finish()
    assert [finding.kind for finding in tracker.findings] == ["sequence_gap", "incomplete_fragments"]


# --- queries ------------------------------------------------------------------------------------


def test_replies_are_counted_for_their_request(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    key = {"key_scope": 0, "key_suffix": "q", "key_mapping": "sender"}
    for request in (1, 2, 3):
        talk.say(0, "request", request_id=request, body="query", **key)
    talk.say(1, "response", request_id=1, body="reply_put", **key)
    talk.say(1, "response_final", request_id=1)
    talk.say(1, "response_final", request_id=2)
    tracker.finish()
    assert dict(talk.link.session.queries_done) == {"answered": 1, "empty": 1, "unfinished": 1}
    assert tracker.findings == []


def test_reply_after_the_end_is_a_finding(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    key = {"key_scope": 0, "key_suffix": "q", "key_mapping": "sender"}
    talk.say(0, "request", request_id=1, body="query", **key)
    talk.say(1, "response_final", request_id=1)
    talk.say(1, "response", request_id=1, body="reply_put", **key)
    assert [finding.kind for finding in tracker.findings] == ["reply_after_final"]


def test_both_sides_number_their_requests(tracker: Tracker) -> None:
    talk = Talk(tracker).handshake()
    key = {"key_scope": 0, "key_suffix": "q", "key_mapping": "sender"}
    talk.say(0, "request", request_id=1, body="query", **key)
    talk.say(1, "request", request_id=1, body="query", **key)
    talk.say(1, "response_final", request_id=1)
    talk.say(0, "response", request_id=1, body="reply_put", **key)
    talk.say(0, "response_final", request_id=1)
    tracker.finish()
    assert dict(talk.link.session.queries_done) == {"empty": 1, "answered": 1} and tracker.findings == []
