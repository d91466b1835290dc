"""Links and sessions: who talks to whom, what was negotiated, and which names numbers stand for.

``Tracker.message`` takes the messages of a link in order and fills in what the session knows. One table,
``_TRANSITIONS``, says what each kind of message does. Every table has a limit; a full one is a finding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scapy_zenoh.session.entities import Entities
from scapy_zenoh.session.fragments import About, Assembler
from scapy_zenoh.session.keyspace import KeyTable
from scapy_zenoh.session.lanes import Lane
from scapy_zenoh.session.queries import Outcome, Queries
from scapy_zenoh.session.record import MessageRecord, Offer

MASKS = (0x7F, 0x3FFF, 0x0FFFFFFF, 0xFFFFFFFF)
DEFAULT_LANE = 5

#: A key expression on the wire: scope, suffix and whose scope it is; None in its place when it could not be read whole.
Expression = tuple[int | None, str | None, str | None]


@dataclass(frozen=True)
class Limits:
    """How much is remembered, per session and side where nothing else is said."""

    keys: int = 100_000
    entities: int = 100_000
    requests: int = 10_000
    answered: int = 256
    sessions: int = 100_000  # of the whole recording
    reassembly: int = 64 << 20
    findings: int = 10_000


@dataclass(frozen=True)
class Finding:
    """Something worth telling that is no fault of a single message."""

    kind: str
    session: str | None
    link: str | None
    detail: str


@dataclass(slots=True, eq=False)
class Side:
    """What one end of a session has said."""

    zid: str | None = None
    whatami: str | None = None
    lease_ms: int | None = None
    initial_sn: int | None = None
    region: str | None = None
    keys: KeyTable = field(default_factory=lambda: KeyTable(Limits.keys))
    entities: Entities = field(default_factory=lambda: Entities(Limits.entities))
    declared: Counter[str] = field(default_factory=Counter)
    queries: Queries = field(default_factory=lambda: Queries(Limits.requests, Limits.answered))
    interests: dict[int, str | None] = field(default_factory=dict)
    lanes: dict[tuple[int, bool], Lane] = field(default_factory=dict)
    assemblers: dict[tuple[int, bool], Assembler] = field(default_factory=dict)
    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class LaneCount:
    """What a lane came to."""

    zid: str | None
    priority: int
    reliable: bool
    missing: int
    repeated: int


@dataclass(slots=True, eq=False)
class Session:
    """Two nodes over one or several links, or one node towards a multicast group."""

    id: str
    sides: tuple[Side, Side]
    known: bool  # both ends have told their id
    multicast: bool = False
    links: list[Link] = field(default_factory=list)
    qos: bool | None = None
    compression: bool = False
    low_latency: bool = False
    multilink: bool = False
    shared_memory: bool = False
    auth: bool = False
    patch: int = 0
    resolution: int = 2
    batch_size: int | None = None
    opened: int | None = None
    last: int | None = None
    closed: int | None = None
    close_reason: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    queries_done: Counter[str] = field(default_factory=Counter)
    settled: bool = False  # over, and what it waited for is counted
    lanes: list[LaneCount] = field(default_factory=list)  # of a settled session

    def negotiate(self, syn: Offer, ack: Offer) -> None:
        """An option is on when both INITs have it; the rest is what the answer says."""
        self.qos = syn.lanes and ack.lanes
        self.compression = syn.compression and ack.compression
        self.low_latency = syn.low_latency and ack.low_latency
        self.multilink = syn.multilink and ack.multilink
        self.shared_memory = syn.shared_memory and ack.shared_memory
        self.auth = syn.auth and ack.auth
        self.patch, self.resolution, self.batch_size = ack.patch, ack.sn_resolution, ack.batch_size

    @property
    def mask(self) -> int:
        """The largest sequence number."""
        return MASKS[self.resolution & 3]

    @property
    def sn_bits(self) -> int:
        """What nodes call the resolution of sequence numbers, which have fewer bits than that."""
        return (8, 16, 32, 64)[self.resolution & 3]

    @property
    def ordered(self) -> bool:
        """True when numbers of a lane cannot overtake each other."""
        return len(self.links) < 2 and all(link.ordered for link in self.links)


@dataclass(slots=True, eq=False)
class Link:
    """One TCP connection, UDP conversation, WebSocket...; direction 0 is from its first end."""

    id: str
    proto: str
    ordered: bool
    multicast: bool = False
    group: str = ""  # address:port of a multicast group
    session: Session = field(init=False)
    side_of: tuple[int, int] = (0, 1)  # direction -> side of the session
    offers: list[Offer | None] = field(default_factory=lambda: [None, None])
    answer: Offer | None = None  # that of the INIT ack
    zids: list[str | None] = field(default_factory=lambda: [None, None])
    roles: list[str | None] = field(default_factory=lambda: [None, None])
    switched: list[bool] = field(default_factory=lambda: [False, False])  # OPEN was sent in this direction
    opened: int | None = None
    closed: int | None = None
    handshake: bool = False  # INITs of both ends were seen
    framing_override: str | None = None  # worked out from the bytes, when the handshake was not seen
    bytes: int = 0

    def add_bytes(self, direction: int, count: int) -> None:
        """Bytes of a direction were seen."""
        self.bytes += count
        self.session.sides[self.side_of[direction]].bytes += count

    def framing(self, direction: int) -> str:
        """``plain``, ``compressed`` or ``lowlatency``: how the next batch of a direction is written."""
        if self.framing_override is not None:
            return self.framing_override
        if not self.switched[direction] or not self.handshake:
            return "plain"
        if self.session.low_latency:
            return "lowlatency"
        return "compressed" if self.session.compression else "plain"


class Tracker:
    """Everything remembered about the links of a recording."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.sessions: list[Session] = []
        self.findings: list[Finding] = []
        self.findings_dropped = 0
        #: Messages that were sent in fragments, complete or not, if somebody wants to know.
        self.chains: list[dict[str, Any]] | None = None
        self._current: dict[tuple[str, str], Session] = {}  # ids of the ends -> newest session
        self._epochs: Counter[tuple[str, str]] = Counter()

    # -- links --

    def open_link(self, link: Link) -> Link:
        """A new link; until its ends are known it is a session of its own."""
        link.session = self._new_session(f"?{link.id}", known=False, multicast=link.multicast)
        link.session.links.append(link)
        return link

    def close_link(self, link: Link, time: int | None, reason: str | None = None) -> None:
        """A link is over; with its last link the session is."""
        if link.closed is not None:
            return
        link.closed = time
        session = link.session
        if all(other.closed is not None for other in session.links) and session.closed is None:
            session.closed, session.close_reason = time, session.close_reason or reason

    def forget_link(self, link: Link) -> None:
        """No more messages of a closed link will come; a session without open links can be settled."""
        if all(other.closed is not None for other in link.session.links):
            self._settle(link.session)

    def finish(self) -> None:
        """The recording is over: what is still awaited is missing."""
        for session in self.sessions:
            self._settle(session)

    def _settle(self, session: Session) -> None:
        """Tell what is missing, and free what is not needed any more."""
        if session.settled:
            return
        session.settled = True
        for side in session.sides:
            for (priority, reliable), lane in side.lanes.items():
                lost = lane.finish()
                session.lanes.append(LaneCount(side.zid, priority, reliable, lost, lane.repeated))
                if lost:
                    where = f"{side.zid or '?'} priority {priority} {'reliable' if reliable else 'best effort'}"
                    self._find("sequence_gap", session, None, f"{lane.missing} numbers missing from {where}")
            for lane_key, assembler in side.assemblers.items():
                given_up = assembler.finish()
                self._tell_chains(session, None, side, lane_key, assembler)
                if given_up:
                    self._find("incomplete_fragments", session, None, f"{assembler.given_up} messages")
                if assembler.over_limit:
                    self._find("limit", session, None, f"{assembler.over_limit} messages too long to put together")
            unfinished = side.queries.unfinished()
            if unfinished:
                session.queries_done[Outcome.UNFINISHED.value] += unfinished
            if side.keys.full:
                self._find("limit", session, None, "key table full")
            for table in (side.lanes, side.assemblers, side.interests, side.entities, side.queries):
                table.clear()

    # -- messages --

    def message(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        """Take one message and fill in link, session, both ids and the key."""
        handler = _TRANSITIONS.get(record.kind)
        if handler is not None:
            handler(self, link, direction, record, time)
        session, side = link.session, self._side(link, direction)
        record.link, record.session = link.id, session.id
        record.src_zid = side.zid
        record.dst_zid = None if link.multicast else self._side(link, 1 - direction).zid
        if record.kind == "init_syn":
            record.dst_zid = None
        session.counts[record.body or record.kind] += 1
        if session.last is None or time > session.last:
            session.last = time
        side.messages += 1

    def fragment(
        self, link: Link, direction: int, record: MessageRecord, time: int, peek: Callable[[bytes], MessageRecord]
    ) -> tuple[bytes, int] | None:
        """Take the slice of a FRAGMENT; returns the whole message and its number of fragments when complete.

        ``peek`` tells what the beginning of a message is about.
        """
        if record.sn is None or record.fault:
            return None
        session, side = link.session, self._side(link, direction)
        lane = lane_of(session, record)
        assembler = side.assemblers.get(lane)
        if assembler is None:
            assembler = side.assemblers[lane] = Assembler(session.mask, self.limits.reassembly)
            assembler.marked = session.patch >= 1
        about = None
        if self.chains is not None and assembler.begins(record.sn, record.first) and not record.drop:
            message = peek(record.slice)
            about = About(message.kind, self._resolve(link, direction, _expression(message)))
        whole = assembler.add(record.sn, record.slice, record.more, record.first, record.drop, time, about)
        self._tell_chains(session, link, side, lane, assembler)
        return whole

    def _tell_chains(
        self, session: Session, link: Link | None, side: Side, lane: tuple[int, bool], assembler: Assembler
    ) -> None:
        """Messages in fragments have come to an end."""
        if self.chains is not None:
            for chain in assembler.ended:
                told = {"session": session.id, "link": link and link.id, "zid": side.zid}
                self.chains.append({**told, "priority": lane[0], "reliable": lane[1], **chain.told()})
        assembler.ended.clear()

    # -- transport --

    def _init(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        if record.zid is None or record.offer is None:
            return
        link.offers[direction], link.zids[direction] = record.offer, record.zid
        link.roles[direction] = record.whatami
        link.opened = link.opened if link.opened is not None else time
        own = self._side(link, direction)
        own.zid, own.whatami, own.region = record.zid, record.whatami, record.offer.region
        if record.kind == "init_ack":
            link.answer = record.offer
        elif record.fault:
            link.offers[direction] = None  # what it asked for is known from the answer
        if link.answer is None or link.session.known:
            return
        if None in link.zids:  # an INIT ack repeats only what was asked for: it is enough to know the mode
            link.session.negotiate(link.answer, link.answer)
            link.handshake = True
        else:
            asked = link.offers[0] if link.offers[1] is link.answer else link.offers[1]
            self._join_session(link, asked or link.answer, link.answer, time)

    def _join_session(self, link: Link, syn: Offer, ack: Offer, time: int) -> None:
        zids = [zid or "" for zid in link.zids]
        low = 0 if _rank(zids[0]) <= _rank(zids[1]) else 1
        pair = (zids[low], zids[1 - low])
        provisional = link.session
        ends = (provisional.sides[low], provisional.sides[1 - low])
        session = self._current.get(pair)
        multilink = syn.multilink and ack.multilink
        if session is None or session.closed is not None or not (multilink and session.multilink):
            session = self._new_session(f"{pair[0]}-{pair[1]}#{self._epochs[pair]}", known=True, sides=ends)
            self._epochs[pair] += 1
            self._current[pair] = session
            session.opened = time
            session.negotiate(syn, ack)
        else:
            for side, end in zip(session.sides, ends, strict=True):
                side.messages += end.messages
                side.bytes += end.bytes
                for number, name in end.keys.names().items():
                    side.keys.declare(number, name)
        session.counts.update(provisional.counts)
        if provisional in self.sessions:
            self.sessions.remove(provisional)
        session.links.append(link)
        link.session, link.handshake = session, True
        link.side_of = (0, 1) if low == 0 else (1, 0)

    def _open(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        side = self._side(link, direction)
        if record.offer is not None and not record.fault:
            side.lease_ms = record.offer.lease_ms
            if side.initial_sn is None:
                side.initial_sn = record.offer.initial_sn
            link.switched[direction] = True

    def _join(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        if record.zid is None or record.offer is None:
            return
        if link.zids[direction] != record.zid or link.session.closed is not None:
            self._join_group(link, record, time)
        side = link.session.sides[0]
        side.lease_ms = record.offer.lease_ms
        session = link.session
        session.qos, session.patch = record.offer.lanes, record.offer.patch
        session.resolution, session.batch_size = record.offer.sn_resolution, record.offer.batch_size

    def _join_group(self, link: Link, record: MessageRecord, time: int) -> None:
        zid = record.zid or ""
        pair = (zid, link.group)
        provisional = link.session
        session = self._new_session(f"{zid}@{link.group}#{self._epochs[pair]}", known=True, multicast=True)
        self._epochs[pair] += 1
        session.opened = time
        session.links.append(link)
        session.sides[0].zid, session.sides[0].whatami = zid, record.whatami
        if not provisional.known:
            session.counts.update(provisional.counts)
            self.sessions.remove(provisional)
        link.zids[0], link.session, link.closed = zid, session, None

    def _close(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        session = link.session
        session.close_reason = session.close_reason or record.reason
        for other in list(session.links) if record.whole_session else [link]:
            self.close_link(other, time, record.reason)

    def _carrier(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        """FRAME and FRAGMENT: a sequence number has come."""
        if record.sn is None or record.fault:
            return
        session, side = link.session, self._side(link, direction)
        key = lane_of(session, record)
        lane = side.lanes.get(key)
        if lane is None:
            lane = side.lanes[key] = Lane(session.mask)
            if side.initial_sn is not None and session.known:
                lane.expect(side.initial_sn & session.mask)
        if record.sn > session.mask:
            self._find("sn_over_resolution", session, link, f"sequence number {record.sn}")
        lane.see(record.sn, record.kind == "fragment" and not record.more)
        if record.kind == "frame" and key in side.assemblers:
            side.assemblers[key].frame(session.ordered)
            self._tell_chains(session, link, side, key, side.assemblers[key])

    # -- network --

    def _keyed(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        record.key = self._resolve(link, direction, _expression(record))

    def _request(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        self._keyed(link, direction, record, time)
        if record.request_id is not None and not self._side(link, direction).queries.ask(record.request_id):
            self.too_many(link, record.request_id)

    def too_many(self, link: Link, number: int) -> None:
        """A request came while as many are open as are remembered."""
        self._find("limit", link.session, link, f"request {number} not remembered: too many are open")

    def _response(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        self._keyed(link, direction, record, time)
        if record.request_id is not None and self._side(link, 1 - direction).queries.reply(record.request_id):
            self.too_late(link, record.request_id)

    def too_late(self, link: Link, number: int) -> None:
        """A reply came after the end of the replies."""
        self._find("reply_after_final", link.session, link, f"request {number}")

    def _response_final(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        if record.request_id is not None:
            outcome = self._side(link, 1 - direction).queries.finish(record.request_id)
            if outcome is not None:
                link.session.queries_done[outcome.value] += 1

    def _interest(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        side = self._side(link, direction)
        if record.key_scope is not None:
            record.key = self._resolve(link, direction, _expression(record))
        if record.interest_id is None:
            return
        if record.interest_mode == "final":
            record.key = side.interests.pop(record.interest_id, None)
        elif len(side.interests) < self.limits.entities:
            side.interests[record.interest_id] = record.key

    def _declare(self, link: Link, direction: int, record: MessageRecord, time: int) -> None:
        if record.body is not None and record.entity_id is not None and not record.fault:
            record.key = self._declared(link, direction, record.body, record.entity_id, _expression(record))

    def _declared(
        self, link: Link, direction: int, body: str, number: int, expression: Expression | None
    ) -> str | None:
        """A declaration or its withdrawal; returns the key expression of what it is about."""
        side = self._side(link, direction)
        happens, _, what = body.partition("_")
        if what == "keyexpr":
            if happens == "undeclare":
                return side.keys.undeclare(number)
            key = self._declared_key(link, direction, expression)
            if key is not None:
                side.keys.declare(number, key)
            return key
        if happens == "declare":
            key = self._resolve(link, direction, expression)
            if not side.entities.declare(what, number, key):
                self.too_many_entities(link)
            side.declared[what] += 1
            return key
        known = side.entities.withdraw(what, number)
        named = expression is None or expression[0] is not None  # the extension says what is withdrawn
        return self._resolve(link, direction, expression) if named else known

    def too_many_entities(self, link: Link) -> None:
        """Something was declared while as much is remembered as may be."""
        self._find("limit", link.session, link, "entity table full")

    def _declared_key(self, link: Link, direction: int, expression: Expression | None) -> str | None:
        """D_KEYEXPR has no mapping flag: a scope is the receiver's, else the sender's."""
        if expression is None:
            return None
        scope, suffix, _ = expression
        if not scope:
            return suffix or ""
        theirs = self._side(link, 1 - direction).keys.resolve(scope, suffix)
        if theirs is not None and not link.multicast:
            return theirs
        return self._side(link, direction).keys.resolve(scope, suffix)

    def _resolve(self, link: Link, direction: int, expression: Expression | None) -> str | None:
        if expression is None or expression[0] is None:
            return None
        scope, suffix, mapping = expression
        if not scope:
            return suffix or ""
        if mapping == "receiver":
            if link.multicast:
                return None
            direction = 1 - direction
        return self._side(link, direction).keys.resolve(scope, suffix)

    # -- helpers --

    def _side(self, link: Link, direction: int) -> Side:
        return link.session.sides[link.side_of[direction]]

    def _new_session(
        self, name: str, known: bool, multicast: bool = False, sides: tuple[Side, Side] | None = None
    ) -> Session:
        sides = sides or (self._new_side(), self._new_side())
        session = Session(name, sides, known, multicast)
        if len(self.sessions) >= self.limits.sessions:
            self.sessions = [old for old in self.sessions if not old.settled]
            self._find("limit", None, None, "sessions that are over were forgotten")
        self.sessions.append(session)
        return session

    def _new_side(self) -> Side:
        limits = self.limits
        queries = Queries(limits.requests, limits.answered)
        return Side(keys=KeyTable(limits.keys), entities=Entities(limits.entities), queries=queries)

    def find(self, kind: str, detail: str) -> None:
        """Tell of something that is of no session; it is kept however many there are."""
        self.findings.append(Finding(kind, None, None, detail))

    def _find(self, kind: str, session: Session | None, link: Link | None, detail: str) -> None:
        if len(self.findings) >= self.limits.findings:
            self.findings_dropped += 1
            return
        self.findings.append(Finding(kind, session.id if session else None, link.id if link else None, detail))


def lane_of(session: Session, record: MessageRecord) -> tuple[int, bool]:
    """The lane of a FRAME or FRAGMENT: priority and reliability; one priority when lanes were not agreed."""
    priority = DEFAULT_LANE if session.qos is False or record.priority is None else record.priority
    return priority, bool(record.reliable)


def _expression(record: MessageRecord) -> Expression | None:
    return (record.key_scope, record.key_suffix, record.key_mapping) if record.key_whole else None


def _rank(zid: str) -> int:
    return int(zid, 16) if zid else 0


Handler = Callable[[Tracker, Link, int, MessageRecord, int], None]

#: What each kind of message does to what is remembered.
_TRANSITIONS: dict[str, Handler] = {
    "init_syn": Tracker._init,
    "init_ack": Tracker._init,
    "open_syn": Tracker._open,
    "open_ack": Tracker._open,
    "join": Tracker._join,
    "close": Tracker._close,
    "frame": Tracker._carrier,
    "fragment": Tracker._carrier,
    "push": Tracker._keyed,
    "request": Tracker._request,
    "response": Tracker._response,
    "response_final": Tracker._response_final,
    "interest": Tracker._interest,
    "declare": Tracker._declare,
}
