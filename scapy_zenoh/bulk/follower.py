"""Blocks of packets in, rows out: what is regular goes through the compiled engine, the rest through ``follow``.

A flow is *steady* while the engine may take its packets: then the engine's tables hold its state. At anything
irregular the state is handed back to the objects of ``follow``, which decide, and the flow becomes steady again
as soon as it can. Packets are taken in their order throughout, so both ways see the same recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from scapy_zenoh.bulk import declarations, engine, joining, queries
from scapy_zenoh.bulk.columns import Columns, Ends, Source, Store
from scapy_zenoh.bulk.packets import PacketBlock
from scapy_zenoh.bulk.queries import QueryTable
from scapy_zenoh.capture import Packet
from scapy_zenoh.codec import PREFIX
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode import records
from scapy_zenoh.decode.runtime import BATCH, BODY, KIND, MSG, STRIDE, VALUES
from scapy_zenoh.follow import Follower
from scapy_zenoh.follow.datagram import DatagramLink
from scapy_zenoh.follow.stream import StreamLink
from scapy_zenoh.follow.tape import Where
from scapy_zenoh.framing import MAX_UNIT
from scapy_zenoh.piece import Piece
from scapy_zenoh.rows import Row
from scapy_zenoh.session.lanes import Lane
from scapy_zenoh.session.queries import Outcome
from scapy_zenoh.session.record import MessageRecord
from scapy_zenoh.session.tracker import Side
from scapy_zenoh.streams import LINGER_TIME

RUN = 1 << 11  # rows that are read at once: what is done with them finds them in the cache of a core
ENOUGH = 1 << 16  # rows that become columns together, if a block has as many
MOST_SINGLE = 1 << 13  # rows of ``follow`` that are collected
MOST_FLOWS = 1 << 16  # directions of connections and conversations that have a number
SPILL = 8 << 20  # bytes of batches that lie in several packets

_NEVER, _LONG_AGO = np.iinfo(np.int64).max, np.iinfo(np.int64).min
_COUNTERS = joining.counter_names()
_DECLARED = {_COUNTERS.index(f"declare_{what}"): what for what in declarations.WHATS if what != "keyexpr"}
_OF_ROW = [engine.FLOW_OF, engine.PACKET_OF, engine.SPILLED_OF]


@dataclass(slots=True)
class Steady:
    """A flow whose state the engine has."""

    source: StreamLink | DatagramLink
    direction: int
    connection: Any = None  # of TCP: the connection and both directions
    half: Any = None
    pieces: list[tuple[int, Where]] = field(default_factory=list)  # what waited when the block began: bytes, packet
    session: str = ""  # its name


class _Lanes(dict[tuple[int, bool], Lane]):
    """The lanes of a side. The engine may have their newest numbers, which come back when somebody asks."""

    def __init__(self, known: dict[tuple[int, bool], Lane], bring_back: Callable[[Any], None]) -> None:
        super().__init__(known)
        self.bring_back = bring_back  # one lane, or all

    def get(self, key: tuple[int, bool], default: Any = None) -> Any:
        self.bring_back(key)
        return super().get(key, default)

    def items(self) -> Any:
        self.bring_back(None)
        return super().items()

    def clear(self) -> None:
        self.bring_back(None)
        super().clear()


class BulkFollower:
    """Follows the links of blocks of packets.

    ``columns``: whether regular rows are wanted at all, or only what is remembered of them; ``payload``:
    whether payloads and attachments are.
    """

    def __init__(self, follower: Follower, columns: bool = True, payload: bool = True) -> None:
        self.follower, self.columns, self.payload = follower, columns, payload
        self._rows = np.empty((RUN + engine.RESERVE + 1) * STRIDE, np.int64)
        self._listed = np.empty(RUN + engine.RESERVE, np.int32)
        self._turned = np.empty(RUN + engine.RESERVE, np.int64)
        room = ENOUGH + RUN + engine.RESERVE
        self._columns, self._store = Columns(room), Store(room)
        self._batches = np.empty((room, engine.BATCH_COLUMNS), np.int64)
        self._spill = np.empty(SPILL, np.uint8)
        self._state = np.zeros(engine.STATE, np.int64)
        self._state[engine.ENOUGH] = RUN
        self._flow_table = np.full((1 << 5, 6), -1, np.int64)
        self._known = 0
        self._addresses: list[str] = []
        self._flows = np.zeros((1 << 8, engine.FLOW), np.int64)
        self._joined = np.zeros((1 << 8, joining.JOINED), np.int64)
        self._counts = np.zeros((1 << 8, joining.COUNTERS), np.int64)
        self._steady: dict[int, Steady] = {}
        self._of_session: dict[str, set[int]] = {}  # steady flows
        self._ends: list[Ends] = []
        self._ends_number: dict[Ends, int] = {}
        self._number_sides()
        self._singles: list[tuple[int, Row]] = []
        self._files: list[str] = []
        self._order = follower.streams.fed
        self._block: PacketBlock
        self._flow = np.empty(0, np.int32)
        self._before = np.empty(0, np.int32)

    # -- blocks --

    def feed(self, block: PacketBlock) -> Iterator[Piece]:
        """The rows that a block completes."""
        self._begin(block)
        state = self._state
        while True:
            why = self._run()
            if state[engine.ROWS]:
                self._join(int(state[engine.ROWS]))
                state[engine.ROWS] = 0
            match why:
                case engine.DONE:
                    break
                case engine.AT_PACKET:
                    self._single_packet(int(state[engine.AT]))
                    state[engine.AT] += 1
                case engine.AT_BATCH:
                    self._irregular_batch(int(state[engine.AT]) - 1)
                case engine.SPILL_FULL:
                    yield from self._take()
                    self._move_waiting()
            if len(self._singles) >= MOST_SINGLE or self._store.count >= ENOUGH:
                yield from self._take()
        yield from self._take()
        self._end()

    def stop(self) -> None:
        """What is remembered is now that of ``follow``. More blocks may come."""
        for flow in list(self._steady):
            self._hand_back(flow)
        self._declared.give_back(self._side_list)
        self._queries.give_back(self._side_list)
        for side in self._side_list:
            side.lanes = dict(side.lanes.items())
        self._number_sides()
        self.follower.streams.fed = self._order

    def finish(self) -> Iterator[Piece]:
        """The recording is over; the rows that were waiting for more."""
        self.stop()
        self._add_singles(self.follower.finish())
        yield from self._take()

    def _run(self) -> int:
        block, state = self._block, self._state
        lingering = self.follower.streams.lingering_since()
        state[engine.DEADLINE] = _NEVER if lingering is None else lingering + 2 * LINGER_TIME
        return engine.run(
            block.data, block.start, block.size, block.missing, block.seq, block.ack, block.flags, block.frame,
            block.time, self._flow, self._before, self._flows, self._spill, self._rows, self._batches, state,
        )  # fmt: skip

    def _begin(self, block: PacketBlock) -> None:
        if self._known > MOST_FLOWS or block.addresses is not self._addresses:
            self._forget_flows()
        self._addresses = block.addresses
        self._declared.forget_names()
        self._block = block
        if not self._files or self._files[-1] != block.capture:
            self._files.append(block.capture)
        state = self._state
        state[engine.AT], state[engine.COUNT], state[engine.ORDER] = 0, block.count, self._order
        state[engine.FILE] = len(self._files) - 1
        if len(self._flow) < block.count:
            self._flow = np.empty(block.count, np.int32)
            self._before = np.empty(block.count, np.int32)
        done = 0
        while done < block.count:
            done, self._known = engine.assign(
                block.src, block.sport, block.dst, block.dport, block.proto, done, block.count, self._flow_table,
                self._known, self._flow,
            )  # fmt: skip
            if done < block.count:
                larger = np.full((2 * len(self._flow_table), 6), -1, np.int64)
                engine.enter_all(self._flow_table, larger)
                self._flow_table = larger
        while len(self._flows) < self._known:
            self._flows, self._joined, self._counts = (
                np.concatenate([table, np.zeros_like(table)]) for table in (self._flows, self._joined, self._counts)
            )
        self._flows[: self._known, engine.LAST_DATA] = -1

    def _forget_flows(self) -> None:
        """Begin anew with the numbers of flows; those that are still in use get new ones."""
        for flow in list(self._steady):
            self._hand_back(flow)
        self._flow_table = np.full((1 << 5, 6), -1, np.int64)
        self._known = 0
        self._flows[:] = 0

    def _end(self) -> None:
        """The block goes: keep who brought what still waits."""
        for flow in np.flatnonzero(self._flows[: self._known, engine.WAITING]).tolist():
            self._steady[flow].pieces = self._pieces(flow, int(self._flows[flow, engine.WAITING]))
        self._flows[: self._known, engine.LAST_DATA] = -1
        self._order += self._block.count
        self._move_waiting()

    def _move_waiting(self) -> None:
        """Free the spill but for the batches that still wait, and make sure that there is room."""
        flows = self._flows
        waiting = np.flatnonzero(flows[: self._known, engine.WAITING]).tolist()
        kept = [(flow, self._waiting(flow)) for flow in waiting]
        for flow in waiting:
            flows[flow, engine.WAITING] = 0
        self._state[engine.SPILLED] = 0
        for flow, data in kept:
            self._wait(flow, data)
        self._reserve(engine.SPILL_RESERVE)

    def _reserve(self, size: int) -> None:
        """Room in the spill; what is in it stays where it is."""
        used = int(self._state[engine.SPILLED])
        if used + size > len(self._spill):
            larger = np.empty(2 * (used + size), np.uint8)
            larger[:used] = self._spill[:used]
            self._spill = larger

    def _waiting(self, flow: int) -> bytes:
        at, size = self._flows[flow, engine.PENDING], self._flows[flow, engine.WAITING]
        return self._spill[at : at + size].tobytes()

    def _wait(self, flow: int, data: bytes) -> None:
        """Put the beginning of a batch into the spill, with room for all of it."""
        prefix = 4 if self._flows[flow, engine.BARE] else 2
        whole = prefix + int.from_bytes(data[:prefix], "little") if len(data) >= prefix else 4
        self._reserve(whole + engine.SPILL_RESERVE)
        at = int(self._state[engine.SPILLED])
        self._spill[at : at + len(data)] = np.frombuffer(data, np.uint8)
        self._flows[flow, engine.PENDING], self._flows[flow, engine.WAITING] = at, len(data)
        self._state[engine.SPILLED] += whole

    # -- output --

    def _add_singles(self, found: list[Row]) -> None:
        self._singles.extend((self._store.count, row) for row in found)
        for row in found:
            if row["kind"] in ("init_syn", "init_ack"):
                self._hand_back_session(row["session"])

    def _take(self) -> Iterator[Piece]:
        """The rows so far."""
        store, columns = self._store, None
        if store.count and self.columns:
            batches = self._batches[: self._state[engine.FOUND]]
            source = Source(batches, self._block, self._spill, self._ends, self._declared.names, self.payload)
            columns = self._columns.batch(store, source)
        if columns is not None or self._singles:
            yield Piece(columns, self._singles)
        self._singles = []
        store.clear()
        self._state[engine.FOUND] = 0

    # -- what is not regular --

    def _single_packet(self, k: int) -> None:
        """A packet that ``follow`` has to look at."""
        packet, flow, streams = self._block.packet(k), int(self._flow[k]), self.follower.streams
        streams.fed = self._order + k
        if flow in self._steady:
            self._hand_back(flow)
        if streams.is_full():  # the oldest connections go, and which those are must be known
            for other in list(self._steady):
                self._hand_back(other)
        self._add_singles(self.follower.feed(packet))
        self._make_steady(flow, packet)

    def _irregular_batch(self, k: int) -> None:
        """A batch in the middle of a stream that ``follow`` has to read, and the rest of its packet."""
        flow, state, steady = int(self._flow[k]), self._state, self._steady[int(self._flow[k])]
        at, size = int(state[engine.BATCH_AT]), int(state[engine.BATCH_SIZE])
        begun = (self._spill if state[engine.BATCH_SPILLED] else self._block.data)[at : at + size].tobytes()
        end = int(self._block.start[k] + self._block.size[k])
        data = begun + self._block.data[int(state[engine.REST]) : end].tobytes()
        pieces = self._pieces(flow, len(data))
        self._hand_back(flow)
        source = steady.source
        assert isinstance(source, StreamLink)
        source.tapes[steady.direction].restore(data, pieces)
        self._add_singles(self.follower.go_on(source, steady.direction))
        self._make_steady(flow, self._block.packet(k))

    def _pieces(self, flow: int, size: int) -> list[tuple[int, Where]]:
        """Who brought the newest ``size`` bytes of a flow: how many of them, and the packet."""
        block, k = self._block, int(self._flows[flow, engine.LAST_DATA])
        order = self._steady[flow].connection.packets  # before all of them, which are in order
        found: list[tuple[int, Where]] = []
        while size and k >= 0:
            some = min(size, int(block.size[k]))
            found.append((some, Where(order, block.capture, int(block.frame[k]), int(block.time[k]))))
            size, k = size - some, int(self._before[k])
        for some, where in reversed(self._steady[flow].pieces):
            if size:
                found.append((min(some, size), where))
                size -= min(some, size)
        return found[::-1]

    # -- becoming steady --

    def _make_steady(self, flow: int, packet: Packet) -> None:
        """Give a flow and its opposite to the engine, if both are regular."""
        if packet.proto == "udp":
            source = self.follower.datagram_link(packet)
            if source is not None and source.link is not None and not source.quic:
                own = 0 if (packet.src, packet.sport) == source.ends.low else 1
                self._start(flow, Steady(source, own), engine.DATAGRAM)
                self._start(flow ^ 1, Steady(source, 1 - own), engine.DATAGRAM)
            return
        found = self.follower.streams.regular(packet)
        stream = None if found is None else self.follower.stream_link(found[0].link)
        if found is None or stream is None or stream.inside is not None:
            return
        mode = engine.OTHER if stream.kind in ("other", "opaque") else engine.STREAM
        if mode == engine.STREAM and not _is_regular(stream):
            return
        connection, half, peer = found
        for number, side in ((flow, half), (flow ^ 1, peer)):
            row = self._flows[number]
            row[engine.NEXT], row[engine.TOP], row[engine.ACKED] = side.next, side.end, side.acked
            self._start(number, Steady(stream, side.direction, connection, side), mode)

    def _start(self, flow: int, steady: Steady, mode: int) -> None:
        row, source, direction = self._flows[flow], steady.source, steady.direction
        row[engine.MODE], row[engine.LAST_DATA], row[engine.WAITING], row[engine.LAST_ORDER] = mode, -1, 0, -1
        row[[engine.PACKETS, engine.DATA_PACKETS, engine.PAYLOAD, engine.DECODED]] = 0
        self._steady[flow] = steady
        link = source.link
        if mode == engine.OTHER or link is None:
            return
        row[engine.BARE] = link.framing(direction) == "lowlatency"
        row[engine.PACKED] = link.framing(direction) == "compressed"
        row[engine.BATCHES] = source.batches[direction]
        row[engine.ENDS] = self._ends_of(source, direction)
        session = link.session
        steady.session = session.id
        self._of_session.setdefault(session.id, set()).add(flow)
        own, other = (self._side(session.sides[link.side_of[d]]) for d in (direction, 1 - direction))
        self._joined[flow] = (own, other, link.multicast, session.mask, session.qos is not False, _LONG_AGO)
        if isinstance(source, StreamLink) and source.tapes[direction].data:
            tape = source.tapes[direction]
            steady.pieces = tape.pieces()
            self._wait(flow, tape.take(len(tape.data)))

    def _ends_of(self, source: StreamLink | DatagramLink, direction: int) -> int:
        link = source.link
        assert link is not None
        session = link.session
        origin = source.ends.origin(direction, Where(0, "", 0, 0), source.proto)
        own, other = (session.sides[link.side_of[d]].zid for d in (direction, 1 - direction))
        ends = Ends(
            origin.src, origin.sport, origin.dst, origin.dport, origin.proto, link.id, session.id,
            own, None if link.multicast else other, link.framing(direction) == "lowlatency",
        )  # fmt: skip
        number = self._ends_number.setdefault(ends, len(self._ends))
        if number == len(self._ends):
            self._ends.append(ends)
        return number

    # -- handing back --

    def _hand_back(self, flow: int) -> None:
        """Give a flow and its opposite back to ``follow``."""
        for number in (flow, flow ^ 1):
            steady = self._steady.get(number)
            if steady is not None:
                self._stop(number, steady)
                del self._steady[number]
                flows = self._of_session.get(steady.session, set())
                flows.discard(number)
                if not flows:
                    self._of_session.pop(steady.session, None)

    def _hand_back_session(self, name: str) -> None:
        """Give all links of a session back: a node may have told another id."""
        for flow in list(self._of_session.get(name, ())):
            self._hand_back(flow)

    def _stop(self, flow: int, steady: Steady) -> None:
        row, source, direction = self._flows[flow], steady.source, steady.direction
        mode, payload = int(row[engine.MODE]), int(row[engine.PAYLOAD])
        row[engine.MODE] = engine.SLOW
        if steady.connection is not None:
            self._return_numbers(row, steady)
        if mode == engine.OTHER:
            if isinstance(source, StreamLink) and source.kind == "opaque":
                self.follower.mark_opaque(source.name, source.proto, payload)
            return
        self.follower.accounting.zenoh_packets += int(row[engine.DATA_PACKETS])
        source.account(direction, int(row[engine.DECODED]))
        source.batches[direction] = int(row[engine.BATCHES])
        if isinstance(source, StreamLink):
            source.place[direction] += payload
            waiting = self._waiting(flow)
            source.tapes[direction].restore(waiting, self._pieces(flow, len(waiting)))
            row[engine.WAITING] = 0
        self._return_counts(flow, source, direction)
        self._return_lanes(int(self._joined[flow, joining.SIDE]))

    def _return_numbers(self, row: Any, steady: Steady) -> None:
        """The state of TCP."""
        connection, half = steady.connection, steady.half
        half.next, half.end, half.acked = (int(row[i]) for i in (engine.NEXT, engine.TOP, engine.ACKED))
        connection.packets += int(row[engine.PACKETS])
        connection.data = connection.data or bool(row[engine.DATA_PACKETS])
        order = int(row[engine.LAST_ORDER])
        if order >= connection.touched:
            connection.touched = order
            capture = self._files[row[engine.LAST_FILE]]
            connection.last = (capture, int(row[engine.LAST_FRAME]), int(row[engine.LAST_TIME]))

    def _return_counts(self, flow: int, source: StreamLink | DatagramLink, direction: int) -> None:
        """Messages by kind."""
        link, counts = source.link, self._counts[flow]
        assert link is not None
        session, side = link.session, link.session.sides[link.side_of[direction]]
        for number in np.flatnonzero(counts[: joining.OUTCOMES]).tolist():
            session.counts[_COUNTERS[number]] += int(counts[number])
            side.messages += int(counts[number])
            if number in _DECLARED:
                side.declared[_DECLARED[number]] += int(counts[number])
        for outcome, number in ((Outcome.ANSWERED, queries.ANSWERED), (Outcome.EMPTY, queries.EMPTY)):
            if counts[joining.OUTCOMES + number]:
                session.queries_done[outcome.value] += int(counts[joining.OUTCOMES + number])
        counts[:] = 0
        last = int(self._joined[flow, joining.LAST_MESSAGE])
        if last != _LONG_AGO and (session.last is None or last > session.last):
            session.last = last

    def _return_lanes(self, side: int) -> None:
        """The newest sequence numbers of a side."""
        first = 16 * side
        for lane in np.flatnonzero(self._lanes[first : first + 16] == joining.REGULAR).tolist():
            self._return_lane(first + lane)

    def _bring_back(self, side: int, key: tuple[int, bool] | None) -> None:
        """Somebody asks the session for a lane of a side, or all."""
        if key is None:
            self._return_lanes(side)
        elif self._lanes[lane := 16 * side + 2 * key[0] + key[1]] == joining.REGULAR:
            self._return_lane(lane)

    def _return_lane(self, lane: int) -> None:
        self._side_list[lane >> 4].lanes[lane >> 1 & 7, bool(lane & 1)].last = int(self._last[lane])
        self._lanes[lane] = joining.IN_SESSION

    def _take_lane(self, lane: int) -> None:
        """Follow a lane here from now on, if its numbers go up by one and nothing is awaited."""
        side, key = self._side_list[lane >> 4], (lane >> 1 & 7, bool(lane & 1))
        known, assembler = side.lanes.get(key), side.assemblers.get(key)
        busy = assembler is not None and (assembler.runs or assembler.waiting)
        self._lanes[lane] = joining.IN_SESSION
        if known is not None and known.last is not None and known.is_regular() and not busy:
            self._lanes[lane], self._last[lane] = joining.REGULAR, known.last

    # -- what the session knows --

    def _number_sides(self) -> None:
        """Begin anew with the numbers of sides: none has one, and all is remembered by ``session``."""
        limits = self.follower.tracker.limits
        self._sides: dict[int, int] = {}  # id of the object -> its number
        self._side_list: list[Side] = []
        self._lanes = np.zeros(16 << 8, np.int8)
        self._last = np.zeros(16 << 8, np.int64)
        self._declared = declarations.DeclarationTable(limits)
        self._queries = QueryTable(limits)

    def _side(self, side: Side) -> int:
        """The number of a side."""
        number = self._sides.get(id(side))
        if number is not None:
            return number
        number = self._sides[id(side)] = len(self._side_list)
        self._side_list.append(side)
        if 16 * (number + 1) > len(self._lanes):
            self._lanes, self._last = (np.concatenate([a, np.zeros_like(a)]) for a in (self._lanes, self._last))
        self._declared.adopt(number, side)
        side.queries = self._queries.adopt(number, side.queries)
        side.lanes = _Lanes(side.lanes, partial(self._bring_back, number))
        return number

    def _join(self, count: int) -> None:
        """Let the session see what may change it, give all rows their names, and store them."""
        r, batches, asked, store = self._rows, self._batches, self._queries, self._store
        asked.reserve(count)
        done = present = 0
        while done < count:
            begin = done
            found, turned, seen, done = joining.survey(
                r, batches, self._joined, self._counts, self._block.time, self._last, self._lanes, asked.keys,
                asked.values, asked.sides, asked.done, asked.limit, done, count, self._listed, self._turned,
            )  # fmt: skip
            present |= seen
            listed = self._declared.resolve(
                r, batches, self._joined, self._block.data, self._spill, begin, done, store.names, store.count,
                self._listed, found,
            )  # fmt: skip
            if listed > found:
                self._listed[:listed].sort()
            if listed:
                lanes = self._turned[:turned].tolist()
                for lane in lanes:
                    if lane < 0:
                        self._return_lane(-1 - lane)
                keys = asked.keys
                self._tell_session(self._listed[:listed])
                if asked.keys is not keys:  # a message that was put together took of the room
                    asked.reserve(count - done)
                for lane in lanes:
                    self._take_lane(lane if lane >= 0 else -1 - lane)
        self.follower.accounting.messages += count
        if self.columns:
            store.add(r, count, present)

    def _tell_session(self, listed: Any) -> None:
        """Let the session see rows, oldest first."""
        tracker, block = self.follower.tracker, self._block
        r, data, spill = (memoryview(cast(Any, array)) for array in (self._rows, block.data, self._spill))
        for i in listed.tolist():
            o = i * STRIDE
            flow, packet, spilled = self._batches[r[o + BATCH], _OF_ROW].tolist()
            steady, kind = self._steady[flow], r[o + KIND]
            link = steady.source.link
            assert link is not None
            if kind == joining.REQUEST:
                tracker.too_many(link, r[o + VALUES + g.REQUEST_ID])
            elif kind == joining.RESPONSE:
                tracker.too_late(link, r[o + VALUES + g.REQUEST_ID])
            elif kind == joining.DECLARE:
                if records.body_name(r[o + BODY]) == "declare_keyexpr":
                    self._side_list[self._joined[flow, joining.SIDE]].keys.full = True
                else:
                    tracker.too_many_entities(link)
            else:
                record = records.record_of(spill if spilled else data, r, o)
                tracker.message(link, steady.direction, record, int(block.time[packet]))
                if kind == joining.FRAGMENT:
                    self._put_together(i, steady, packet, record)

    def _put_together(self, i: int, steady: Steady, k: int, record: MessageRecord) -> None:
        """A FRAGMENT may complete a message: a single row behind it, which moves the others of its batch on."""
        source, r = steady.source, self._rows
        batch, ordinal = r[i * STRIDE + BATCH], int(r[i * STRIDE + MSG]) + 1
        record.batch = int(self._batches[batch, engine.ORDINAL_OF])
        where = Where(0, self._block.capture, int(self._block.frame[k]), int(self._block.time[k]))
        framing = "compressed" if self._batches[batch, engine.COMPRESSED_OF] else "plain"
        if self._flows[self._batches[batch, engine.FLOW_OF], engine.BARE]:
            framing = "lowlatency"
        made = self.follower.reassembled(source, steady.direction, record, where, ordinal, framing)
        if made:
            i += 1
            self._singles.extend((self._store.count + i, row) for row in made)
            while i < self._state[engine.ROWS] and r[i * STRIDE + BATCH] == batch:
                r[i * STRIDE + MSG] += 1
                i += 1


def _is_regular(stream: StreamLink) -> bool:
    """True when the next batch of each direction is known to begin where its bytes begin."""
    if stream.kind != "zenoh" or stream.link is None or any(stream.lost) or any(stream.skip):
        return False
    for direction, tape in enumerate(stream.tapes):
        framing = stream.link.framing(direction)
        prefix = PREFIX[framing]
        size = int.from_bytes(tape.data[:prefix], "little") if len(tape.data) >= prefix else 0
        if size > MAX_UNIT:
            return False
    return True
