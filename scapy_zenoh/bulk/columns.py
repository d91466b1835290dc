"""From rows of the decoder to Arrow columns, all messages of a block at once.

What a single message says is the question of ``decode.records``; here the same is said of many. All rows
are without a fault, and none is of a handshake: those go through ``follow``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from scapy_zenoh import arrow
from scapy_zenoh.bulk import joining
from scapy_zenoh.bulk.engine import COMPRESSED_OF, ENDS_OF, ORDINAL_OF, PACKET_OF, SPILLED_OF
from scapy_zenoh.bulk.names import Names
from scapy_zenoh.bulk.packets import PacketBlock
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.records import DEFAULT_PRIORITY, LAYERS, Row, body_name, pieces_of, zid_text
from scapy_zenoh.decode.runtime import BATCH, BODY, EXTENSIONS, KIND, LENGTHS, MSG, PRESENT, STRIDE, VALUES
from scapy_zenoh.enums import Consolidation, Mapping, QueryTarget
from scapy_zenoh.primitives import zid_from_wire
from scapy_zenoh.schema.columns import COLUMNS
from scapy_zenoh.schema.slots import NUMBERS, SPANS
from scapy_zenoh.values import encoding_to_text

_NETWORK = np.array([LAYERS.get(kind) == "network" for kind in g.KINDS])
_SEQUENCED = _NETWORK.copy()
_SEQUENCED[[joining.FRAME, joining.FRAGMENT]] = True
_LAYER = np.where(_NETWORK, 1, 0).astype(np.int32)  # transport or network
_REPLY = g.BODIES.index("reply") << 6
_BODY_NAMES = {reply | code: body_name(reply | code) for reply in (0, _REPLY) for code in range(1, len(g.BODIES))}
_BODIES = sorted(name for name in _BODY_NAMES.values() if name is not None)
_BODY = np.full(1 << 12, -1, np.int32)  # number of the body that a code means
_BODY[[*_BODY_NAMES]] = [-1 if name is None else _BODIES.index(name) for name in _BODY_NAMES.values()]
_CONGESTION = ("drop", "block", "block_first")
_WITH_ENCODING = np.isin(_BODY, [_BODIES.index(name) for name in ("put", "err", "reply_put")])
_QUERY = g.BODIES.index("query")
_UNDECLARATIONS = [g.BODIES.index(name) for name in g.BODIES if name.startswith("undeclare")]
_HEAD = np.array([KIND, BODY, BATCH, MSG, EXTENSIONS])
_UNTURNED = (g.NAMED, g.MORE)  # slots without a column
_PIECES = g.EXT_PUT_SHM | g.EXT_QUERY_BODY_SLICED
_CONSOLIDATIONS = sorted(set(Consolidation.labels().values()))
_CONSOLIDATION = np.array(  # 0 is "auto", which unknown numbers are taken for
    [_CONSOLIDATIONS.index(Consolidation.labels().get(number, "auto")) for number in range(8)]
)
_TARGETS = [QueryTarget.labels()[number] for number in sorted(QueryTarget.labels())]


@dataclass(frozen=True, slots=True)
class Ends:
    """What rows of a flow have in common."""

    src: str
    sport: int
    dst: str
    dport: int
    proto: str
    link: str
    session: str
    src_zid: str | None
    dst_zid: str | None
    lowlatency: bool


_SLOTS = len(SPANS) + len(NUMBERS)


@lru_cache(1 << 10)
def _slots(present: int) -> tuple[Any, Any]:
    """The slots of a mask, without those that have no column: of spans and of numbers."""
    slots = [slot for slot in range(_SLOTS) if present >> slot & 1 and slot not in _UNTURNED]
    spans = [slot for slot in slots if slot < len(SPANS)]
    return np.array(spans, np.int64), np.array(slots[len(spans) :], np.int64)


class Store:
    """Rows that wait to become columns, turned already; the memory is used again."""

    def __init__(self, room: int) -> None:
        # A row goes to the same place of many columns. Were these a multiple of 4 kB apart, the cache could keep few.
        room += 512 + 72 - room % 512
        self.count = 0
        self.any = 0  # slots that some row has
        self.tops = np.empty((len(_HEAD), room), np.int64)
        self.has = np.zeros((_SLOTS, room), bool)
        self.values = np.zeros((_SLOTS, room), np.int64)  # 0 where nothing is
        self.lengths = np.zeros((len(SPANS), room), np.int64)
        self.names = np.empty(room, np.int64)  # numbers of names, as ``declarations.resolve`` says

    def add(self, r: Any, count: int, present: int) -> None:
        """Take rows of the decoder; ``present`` are the slots that some of them have."""
        spans, numbers = _slots(present)
        joining.turn(r, count, _HEAD, spans, numbers, self.count, self.tops, self.has, self.values, self.lengths)
        self.count += count
        self.any |= present

    def clear(self) -> None:
        """Forget all rows."""
        for slot in np.concatenate(_slots(self.any)).tolist():
            self.has[slot, : self.count] = False
            self.values[slot, : self.count] = 0
            if slot < len(SPANS):
                self.lengths[slot, : self.count] = 0
        self.count = self.any = 0


@dataclass(slots=True)
class Source:
    """What the rows in a store refer to."""

    batches: Any
    block: PacketBlock
    spill: Any
    ends: Sequence[Ends]
    names: Names
    payload: bool = True  # whether payloads and attachments are wanted


class Columns:
    """Makes columns; its tables are used again for the next rows."""

    def __init__(self, room: int) -> None:
        self._table = np.empty(max(joining.SMALL, 1 << (2 * room).bit_length()), np.int32)
        self._hashes = np.empty(room, np.int64)
        self._codes = np.empty(room, np.int32)
        self._firsts = np.empty(room, np.int32)

    def batch(self, store: Store, source: Source) -> Any:
        """The record batch of these rows."""
        return _Batch(self, store, source).build()

    def intern(self, *texts: Any) -> tuple[Any, Any]:
        """Number different texts: the number of each row, and the first row of each number."""
        known = _any(joining.intern)(*texts, self._table, self._hashes, self._codes, self._firsts)
        return self._codes[: len(texts[-1])].copy(), self._firsts[:known].copy()


class _Batch:
    """The columns of some rows. Each is a method or follows from a slot."""

    def __init__(self, columns: Columns, store: Store, source: Source) -> None:
        self.columns, self.store, self.source = columns, store, source
        count = self.count = store.count
        self.kind, self.body, self.of, self.ordinal, self.extensions = store.tops[:, :count]
        slots = np.concatenate(_slots(store.any)).tolist()
        self.has = {slot: store.has[slot, :count] for slot in slots}
        self.values = {slot: store.values[slot, :count] for slot in slots}
        self.lengths = {slot: store.lengths[slot, :count] for slot in slots if slot < len(SPANS)}
        self.nowhere, self.zeros = np.zeros(count, bool), np.zeros(count, np.int64)
        self.kinds = np.bincount(self.kind, minlength=len(g.KINDS))
        self.network = _NETWORK[self.kind]
        used, self.flow = np.unique(source.batches[:, ENDS_OF], return_inverse=True)
        self.ends = [source.ends[number] for number in used.tolist()]
        self.packet = source.batches[:, PACKET_OF]
        self.spilled = source.batches[:, SPILLED_OF][self.of].astype(np.uint8)
        self.bytes = memoryview(_any(source.block.data)), memoryview(source.spill)
        self.pieces: list[int] = []  # rows with a payload in pieces
        if g.SLICES in self.has:
            self.pieces = np.flatnonzero(self.extensions & _PIECES).tolist()

    def build(self) -> Any:
        """All columns."""
        self._unsaid()
        made = {column.name: getattr(self, f"column_{column.name}", None) for column in COLUMNS}
        schema = arrow.schema()
        arrays = [
            pa.nulls(self.count, kind) if make is None else make()
            for make, kind in zip(made.values(), schema.types, strict=True)
        ]
        return pa.record_batch(arrays, schema=schema)

    def _unsaid(self) -> None:
        """An undeclaration whose extension has neither scope nor suffix says nothing of a key."""
        if self.kinds[joining.DECLARE] and g.SCOPE in self.has:
            rows = np.flatnonzero(self.kind == joining.DECLARE)
            withdrawn = np.isin(self.body[rows], _UNDECLARATIONS)
            silent = rows[withdrawn & (self.values[g.SCOPE][rows] == 0) & (self._length(g.SUFFIX)[rows] == 0)]
            for slot in (g.SCOPE, g.SUFFIX):
                if slot in self.has:
                    self.has[slot][silent] = False

    # -- ways to make a column --

    def _has(self, slot: int) -> Any:
        return self.has.get(slot, self.nowhere)

    def _value(self, slot: int) -> Any:
        """What is in a slot, 0 where nothing is."""
        return self.values.get(slot, self.zeros)

    def _length(self, slot: int) -> Any:
        """Of a span; 0 where there is none."""
        return self.lengths.get(slot, self.zeros)

    def _intern(self, slot: int, salt: Any) -> tuple[Any, Any]:
        """Number the different texts in a slot, of rows whose salt is not below 0."""
        at, length, data, spill = self._value(slot), self._length(slot), self.source.block.data, self.source.spill
        rows = np.flatnonzero(salt >= 0)
        if 4 * len(rows) > self.count:
            return self.columns.intern(data, spill, self.spilled, at, length, salt)
        some, firsts = self.columns.intern(data, spill, self.spilled[rows], at[rows], length[rows], salt[rows])
        codes = np.full(self.count, -1, np.int32)
        codes[rows] = some
        return codes, rows[firsts]

    def _number(self, slot: int, kind: Any) -> Any:
        if slot not in self.has:
            return pa.nulls(self.count, kind)
        return _filled(self.values[slot].astype(kind.to_pandas_dtype()), kind, self.has[slot])

    def _wide(self, slot: int) -> Any:
        if slot not in self.has:
            return pa.nulls(self.count, arrow.NUMBER)
        return arrow.numbers(self.values[slot].view(np.uint64), ~self.has[slot])

    def _coded(self, codes: Any, texts: Any, whole: bool = False) -> Any:
        """A column of texts by number, -1 for none; ``whole`` when every row has one."""
        indices = _filled(codes.astype(np.int32, copy=False), pa.int32(), None if whole else codes >= 0)
        if not isinstance(texts, pa.Array):
            texts = pa.array(texts, pa.string())
        return pa.DictionaryArray.from_arrays(indices, texts, safe=False)

    def _coded_in(self, rows: Any, codes: Any, texts: Any) -> Any:
        """A column of texts by number in some rows."""
        if not len(rows):
            return self._none()
        everywhere = np.full(self.count, -1, np.int32)
        everywhere[rows] = codes
        return self._coded(everywhere, texts)

    def _none(self) -> Any:
        return pa.nulls(self.count, arrow.TEXT)

    def _of_flow(self, texts: list[str | None]) -> Any:
        """A text for each flow."""
        known = list(dict.fromkeys(text for text in texts if text is not None))
        number = {text: i for i, text in enumerate(known)}
        codes = np.array([-1 if text is None else number[text] for text in texts], np.int32)
        return self._coded(codes[self.flow][self.of], known, None not in texts)

    def _bytes(self, slot: int) -> Any:
        if slot not in self.has:
            return pa.nulls(self.count, pa.binary())
        return self._gathered(slot, pa.binary(), slice(None), self.has[slot])

    def _gathered(self, slot: int, kind: Any, rows: Any, there: Any) -> Any:
        """The spans of some rows as a column."""
        lengths = self.lengths[slot][rows]
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        out = np.empty(offsets[-1], np.uint8)
        at = np.ascontiguousarray(self.values[slot][rows])
        joining.gather(self.source.block.data, self.source.spill, self.spilled[rows], at, offsets, out)
        return pa.Array.from_buffers(kind, len(lengths), [_valid(there), pa.py_buffer(offsets), pa.py_buffer(out)])

    def _spans(self, slot: int) -> Any:
        """The texts of a slot."""
        if slot not in self.has:
            return self._none()
        codes, firsts = self._intern(slot, np.where(self.has[slot], 0, -1))
        return self._coded(codes, self._gathered(slot, pa.string(), firsts, np.ones(len(firsts), bool)))

    def _ids(self, slot: int, text: Callable[[bytes], str | None]) -> Any:
        """The ids of a slot, as people read them."""
        if slot not in self.has:
            return self._none()
        return self._texts(slot, np.where(self.has[slot], 0, -1), lambda row: text(self._span(slot, row)))

    def _texts(self, slot: int, salt: Any, text: Callable[[int], str | None]) -> Any:
        """A text for each row whose salt is not below 0, made once for those with equal salt and bytes."""
        codes, firsts = self._intern(slot, salt)
        texts = [text(first) for first in firsts.tolist()]
        known = list(dict.fromkeys(one for one in texts if one is not None))
        if len(known) != len(texts):  # different bytes, equal texts; or none
            number: dict[str | None, int] = {one: i for i, one in enumerate(known)}
            number[None] = -1
            codes = np.array([*(number[one] for one in texts), -1], np.int32)[codes]
        return self._coded(codes, known)

    def _span(self, slot: int, i: int) -> bytes:
        """The bytes of one row in a slot."""
        at = int(self.values[slot][i])
        return bytes(self.bytes[self.spilled[i]][at : at + int(self.lengths[slot][i])])

    def _row(self, i: int) -> Row:
        """One row as the decoder had it."""
        row = [0] * STRIDE
        row[EXTENSIONS] = int(self.extensions[i])
        for slot, has in self.has.items():
            if has[i]:
                row[PRESENT] |= 1 << slot
                row[VALUES + slot] = int(self.values[slot][i])
                if slot < len(SPANS):
                    row[LENGTHS + slot] = int(self.lengths[slot][i])
        return Row(self.bytes[self.spilled[i]], row, 0)

    # -- where it was seen --

    def column_capture(self) -> Any:
        return self._coded(np.zeros(self.count, np.int32), [self.source.block.capture], True)

    def column_frame(self) -> Any:
        return pa.array(self.source.block.frame[self.packet][self.of])

    def column_time(self) -> Any:
        return pa.array(self.source.block.time[self.packet][self.of])

    def column_src(self) -> Any:
        return self._of_flow([ends.src for ends in self.ends])

    def column_sport(self) -> Any:
        return pa.array(np.array([ends.sport for ends in self.ends], np.int32)[self.flow][self.of])

    def column_dst(self) -> Any:
        return self._of_flow([ends.dst for ends in self.ends])

    def column_dport(self) -> Any:
        return pa.array(np.array([ends.dport for ends in self.ends], np.int32)[self.flow][self.of])

    def column_proto(self) -> Any:
        return self._of_flow([ends.proto for ends in self.ends])

    def column_link(self) -> Any:
        return self._of_flow([ends.link for ends in self.ends])

    def column_session(self) -> Any:
        return self._of_flow([ends.session for ends in self.ends])

    def column_src_zid(self) -> Any:
        return self._of_flow([ends.src_zid for ends in self.ends])

    def column_dst_zid(self) -> Any:
        return self._of_flow([ends.dst_zid for ends in self.ends])

    def column_batch(self) -> Any:
        return pa.array(self.source.batches[:, ORDINAL_OF][self.of])

    def column_msg(self) -> Any:
        return pa.array(self.ordinal.astype(np.int32))

    # -- what it is --

    def column_layer(self) -> Any:
        return self._coded(_LAYER[self.kind], ["transport", "network"], True)

    def column_kind(self) -> Any:
        return self._coded(self.kind, g.KINDS, True)

    def column_body(self) -> Any:
        return self._coded(_BODY[self.body], _BODIES)

    def column_sn(self) -> Any:
        return self._wide(g.SN)

    def column_reliable(self) -> Any:
        return self._number(g.RELIABLE, pa.bool_())

    def column_priority(self) -> Any:
        values = np.where(self._has(g.PRIORITY), self._value(g.PRIORITY), DEFAULT_PRIORITY).astype(np.int8)
        return _filled(values, pa.int8(), _SEQUENCED[self.kind])

    def column_congestion(self) -> Any:
        codes = np.where(self.network, 0, np.int32(-1))
        for slot, code in ((g.BLOCK_FIRST, 2), (g.BLOCK, 1)):
            if slot in self.values:
                codes[(self.values[slot] != 0) & self.network] = code
        return self._coded(codes, _CONGESTION)

    def column_express(self) -> Any:
        return _filled(self._value(g.EXPRESS) != 0, pa.bool_(), self.network)

    # -- keys --

    def column_key_scope(self) -> Any:
        return self._number(g.SCOPE, pa.int64())

    def column_key_suffix(self) -> Any:
        if g.SUFFIX not in self.has:
            return self._none()
        codes, firsts = self.suffixes
        codes = codes if self.has[g.SUFFIX].all() else np.where(self.has[g.SUFFIX], codes, -1)
        return self._coded(codes, self._gathered(g.SUFFIX, pa.string(), firsts, np.ones(len(firsts), bool)))

    @cached_property
    def suffixes(self) -> tuple[Any, Any]:
        """The different suffixes, by number."""
        return self._intern(g.SUFFIX, np.where(self._has(g.SUFFIX), 0, -1))

    def column_key_mapping(self) -> Any:
        known = self._has(g.SCOPE) & self._has(g.MAPPING)
        labels = [Mapping.describe(0), Mapping.describe(1)]
        return self._coded(np.where(known, self._value(g.MAPPING), -1), labels)

    def column_key(self) -> Any:
        source, names = self.source, self.store.names[: self.count]
        data, spill, known = source.block.data, source.spill, source.names
        salt = np.where(names < 0, -1, names << 32 | self.suffixes[0] + 1)
        codes, firsts = self.columns.intern(data, spill, self.spilled, self.zeros, self.zeros, salt)
        number, at, spilled = names[firsts], self._value(g.SUFFIX)[firsts], self.spilled[firsts]
        offsets = np.zeros(len(firsts) + 1, np.int32)
        sizes = known.starts[number + 1] - known.starts[number] + self._length(g.SUFFIX)[firsts]
        np.cumsum(sizes, out=offsets[1:])
        out = np.empty(offsets[-1], np.uint8)
        joining.append(known.bytes, known.starts, number, data, spill, spilled, at, offsets, out)
        # One key may be cut in different ways.
        at, spilled, salt = offsets[:-1].astype(np.int64), np.zeros_like(spilled), np.zeros(len(firsts), np.int64)
        same, different = self.columns.intern(out, out, spilled, at, sizes, salt)
        keys = pa.Array.from_buffers(pa.string(), len(firsts), [None, pa.py_buffer(offsets), pa.py_buffer(out)])
        if len(different) < len(firsts):
            codes = np.append(same, np.int32(-1))[codes]
            keys = keys.take(pa.array(different))
        return self._coded(codes, keys)

    # -- ids --

    def column_entity_id(self) -> Any:
        return self._number(g.ENTITY_ID, pa.int64())

    def column_request_id(self) -> Any:
        return self._number(g.REQUEST_ID, pa.int64())

    def column_interest_id(self) -> Any:
        return self._number(g.INTEREST_ID, pa.int64())

    # -- data --

    def column_encoding(self) -> Any:
        exts = self.extensions
        with_one = _WITH_ENCODING[self.body] | (exts & g.EXT_QUERY_BODY != 0)
        if g.ENCODING_ID not in self.has and g.SLICES not in self.has:
            return self._coded(np.where(with_one, 0, -1), [encoding_to_text(None, None)])
        if g.SCHEMA in self.has:
            salt = np.where(with_one, self._value(g.ENCODING_ID) << 1 | self.has[g.SCHEMA], -1)
            column = self._texts(g.SCHEMA, salt, lambda row: _encoding(self._row(row)))
        else:
            used, codes = _numbered(self._value(g.ENCODING_ID))
            column = self._coded(np.where(with_one, codes, -1), [encoding_to_text(number, None) for number in used])
        sliced = np.flatnonzero((exts & g.EXT_QUERY_BODY == 0) & (exts & g.EXT_QUERY_BODY_SLICED != 0))
        if not len(sliced):
            return column
        texts = column.to_pylist()
        for i in sliced.tolist():
            row = self._row(i)
            texts[i] = encoding_to_text(row.number(g.SLICED_ENCODING_ID), row.text(g.SLICED_SCHEMA))
        return pa.array(texts, pa.string()).dictionary_encode()

    def column_payload_len(self) -> Any:
        has, values = self._has(g.DATA), self._length(g.DATA).copy()
        if self.kinds[joining.FRAGMENT]:  # there the slot is that of the slice
            has = self.has[g.DATA] = has & (self.kind != joining.FRAGMENT)
        if self.pieces:
            has = has.copy()
            for i in self.pieces:
                values[i], has[i] = pieces_of(self._row(i))[0], True
        return _filled(values, pa.int64(), has)

    def column_payload(self) -> Any:
        if not self.source.payload:
            return pa.nulls(self.count, pa.binary())
        if self.kinds[joining.FRAGMENT]:
            self.lengths[g.DATA][self.kind == joining.FRAGMENT] = 0
        column = self._bytes(g.DATA)
        if not len(self.pieces):
            return column
        values = column.to_pylist()
        for i in self.pieces:
            values[i] = pieces_of(self._row(i))[1]
        return pa.array(values, pa.binary())

    def column_shm(self) -> Any:
        values = np.zeros(self.count, bool)
        for i in self.pieces:
            values[i] = pieces_of(self._row(i))[2]
        return pa.array(values)

    def column_timestamp_time(self) -> Any:
        if g.TS_TIME not in self.has:
            return pa.nulls(self.count, pa.int64())
        ntp = self.values[g.TS_TIME].view(np.uint64)
        fraction = (ntp & np.uint64(0xFFFFFFFF)) * np.uint64(10**9) >> np.uint64(32)
        ns = (ntp >> np.uint64(32)) * np.uint64(10**9) + fraction
        return _filled(ns.view(np.int64), pa.int64(), self.has[g.TS_TIME])

    def column_timestamp_id(self) -> Any:
        return self._ids(g.TS_ID, lambda data: zid_from_wire(data).lstrip("0") or None)

    def column_attachment(self) -> Any:
        return self._bytes(g.ATTACHMENT) if self.source.payload else pa.nulls(self.count, pa.binary())

    def column_source_zid(self) -> Any:
        return self._ids(g.SOURCE_ZID, zid_text)

    def column_source_eid(self) -> Any:
        return self._number(g.SOURCE_EID, pa.int64())

    def column_source_sn(self) -> Any:
        return self._number(g.SOURCE_SN, pa.int64())

    # -- queries --

    def column_parameters(self) -> Any:
        return self._spans(g.PARAMETERS)

    def column_target(self) -> Any:
        requests = np.flatnonzero(self.kind == joining.REQUEST)
        return self._coded_in(requests, self._value(g.TARGET)[requests], _TARGETS)

    def column_consolidation(self) -> Any:
        queries = np.flatnonzero(self.body == _QUERY)
        values = self._value(g.CONSOLIDATION)[queries]
        known = (values >= 0) & (values < len(_CONSOLIDATION))
        return self._coded_in(queries, _CONSOLIDATION[np.where(known, values, 0)], _CONSOLIDATIONS)

    def column_timeout_ms(self) -> Any:
        return self._wide(g.TIMEOUT)

    def column_budget(self) -> Any:
        return self._wide(g.BUDGET)

    def column_responder_zid(self) -> Any:
        return self._ids(g.RESPONDER_ZID, zid_text)

    def column_responder_eid(self) -> Any:
        return self._number(g.RESPONDER_EID, pa.int64())

    # -- the rest --

    def column_compressed(self) -> Any:
        return pa.array(self.source.batches[:, COMPRESSED_OF][self.of].astype(bool))

    def column_lowlatency(self) -> Any:
        return pa.array(np.array([ends.lowlatency for ends in self.ends], bool)[self.flow][self.of])


def _numbered(values: Any) -> tuple[list[int], Any]:
    """The different numbers among some that are not negative, and which of them each is."""
    if values.max() >= 1 << 12:
        different, codes = np.unique(values, return_inverse=True)
        return different.tolist(), codes
    there = np.zeros(1 << 12, bool)
    there[values] = True
    return np.flatnonzero(there).tolist(), (np.cumsum(there) - 1)[values]


def _filled(values: Any, kind: Any, there: Any) -> Any:
    """A column of fixed width that keeps ``values``, null where nothing is there (None: always something is).

    Faster than ``pa.array``.
    """
    count = len(values)
    if pa.types.is_boolean(kind):
        values = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(kind, count, [_valid(there), pa.py_buffer(values)])


def _valid(there: Any) -> Any:
    return None if there is None or there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))


def _any(value: Any) -> Any:
    """For mypy: arrays are buffers."""
    return value


def _encoding(row: Row) -> str:
    return encoding_to_text(row.number(g.ENCODING_ID), row.text(g.SCHEMA))
