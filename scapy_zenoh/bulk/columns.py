"""From rows of the decoder to Arrow columns, all messages of a block at once.

What a single message says is the question of ``decode.records``; here the same is said of many. All rows
are without a fault, and none is of a handshake: those go through ``follow``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from scapy_zenoh import arrow
from scapy_zenoh.bulk import joining
from scapy_zenoh.bulk.engine import ENDS_OF, ORDINAL_OF, PACKET_OF, SPILLED_OF
from scapy_zenoh.bulk.packets import PacketBlock
from scapy_zenoh.decode import _generated as g
from scapy_zenoh.decode.records import DEFAULT_PRIORITY, LAYERS, OPTIONS, Row, body_name, pieces_of, zid_text
from scapy_zenoh.decode.runtime import BATCH, BODY, EXTENSIONS, KIND, LENGTHS, MSG, PRESENT, STRIDE, VALUES
from scapy_zenoh.enums import CloseReason, Consolidation, InterestMode, Mapping, QueryTarget
from scapy_zenoh.primitives import zid_from_wire
from scapy_zenoh.schema.columns import COLUMNS
from scapy_zenoh.values import encoding_to_text

_NETWORK = np.array([LAYERS.get(kind) == "network" for kind in g.KINDS])
_SEQUENCED = _NETWORK.copy()
_SEQUENCED[[joining.FRAME, joining.FRAGMENT]] = True
_LAYER = np.where(_NETWORK, 1, 0)  # transport or network
_REPLY = g.BODIES.index("reply") << 6
_BODY_NAMES = {reply | code: body_name(reply | code) for reply in (0, _REPLY) for code in range(1, len(g.BODIES))}
_BODIES = sorted(name for name in _BODY_NAMES.values() if name is not None)
_BODY = np.full(1 << 12, -1, np.int32)  # number of the body that a code means
_BODY[[*_BODY_NAMES]] = [-1 if name is None else _BODIES.index(name) for name in _BODY_NAMES.values()]
_CONGESTION = ("drop", "block", "block_first")
_WITH_ENCODING = np.isin(_BODY, [_BODIES.index(name) for name in ("put", "err", "reply_put")])
_QUERY = g.BODIES.index("query")
_UNDECLARATIONS = [g.BODIES.index(name) for name in g.BODIES if name.startswith("undeclare")]
_PIECES = g.EXT_PUT_SHM | g.EXT_QUERY_BODY_SLICED
_CONSOLIDATIONS = sorted(set(Consolidation.labels().values()))
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


@dataclass(slots=True)
class Messages:
    """Rows that wait to become columns, and what they refer to."""

    r: Any  # rows of the decoder, one after the other
    count: int
    B: Any  # their batches
    batches: int
    block: PacketBlock
    spill: Any
    ends: Sequence[Ends]  # that batches refer to
    names: Any  # number of the name for each row, as ``joining.resolve`` says
    texts: Sequence[str]  # the names
    keys: dict[int, str | None]  # rows whose key the session gave
    payload: bool = True  # whether payloads and attachments are wanted


class Columns:
    """Makes columns; its tables are used again for the next rows."""

    def __init__(self, room: int) -> None:
        size = 1 << (2 * room).bit_length()
        self._table = np.empty(size, np.int32)
        self._codes = np.empty(room, np.int32)
        self._firsts = np.empty(room, np.int32)

    def batch(self, messages: Messages) -> Any:
        """The record batch of these rows."""
        return _Batch(self, messages).build()

    def intern(self, m: Messages, slot: int, salt: Any) -> tuple[Any, Any]:
        """Number the different texts of a slot: the number of each row, and the first row of each number."""
        known = joining.intern(
            m.r, m.B, m.block.data, m.spill, m.count, slot, salt, self._table, self._codes, self._firsts
        )
        return self._codes[: m.count].copy(), self._firsts[:known].tolist()


class _Batch:
    """The columns of some rows. Each is a method or follows from a slot."""

    def __init__(self, columns: Columns, messages: Messages) -> None:
        self.columns, self.m = columns, messages
        count = self.count = messages.count
        self.rows = messages.r[: count * STRIDE].reshape(count, STRIDE)
        self.present = np.ascontiguousarray(self.rows[:, PRESENT])
        self.any = int(np.bitwise_or.reduce(self.present)) if count else 0
        self.kind = self.rows[:, KIND].astype(np.int32)
        self.kinds = np.bincount(self.kind, minlength=len(g.KINDS))
        self.body = self.rows[:, BODY].astype(np.int32)
        self.of = np.ascontiguousarray(self.rows[:, BATCH])  # the batch of each row
        used, self.flow = np.unique(messages.B[: messages.batches, ENDS_OF], return_inverse=True)
        self.ends = [messages.ends[number] for number in used.tolist()]
        self.packet = messages.B[: messages.batches, PACKET_OF]
        exts = self.rows[:, EXTENSIONS]
        self.pieces: list[int] = np.flatnonzero(exts & _PIECES).tolist() if self.any >> g.SLICES & 1 else []

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
        if self.kinds[joining.DECLARE]:
            silent = np.isin(self.body, _UNDECLARATIONS) & (self.present >> g.SCOPE & 1 == 1)
            silent &= self.rows[:, VALUES + g.SCOPE] == 0
            silent &= (self.present >> g.SUFFIX & 1 == 0) | (self.rows[:, LENGTHS + g.SUFFIX] == 0)
            if silent.any():
                self.present[silent] &= ~(1 << g.SCOPE | 1 << g.SUFFIX)

    # -- ways to make a column --

    def _has(self, slot: int) -> Any:
        return self.present >> slot & 1 == 1

    def _value(self, slot: int, default: int) -> Any:
        return np.where(self._has(slot), self.rows[:, VALUES + slot], default)

    def _number(self, slot: int, kind: Any) -> Any:
        if not self.any >> slot & 1:
            return pa.nulls(self.count, kind)
        values = self.rows[:, VALUES + slot].astype(kind.to_pandas_dtype())
        return pa.array(values, kind, mask=~self._has(slot))

    def _wide(self, slot: int) -> Any:
        if not self.any >> slot & 1:
            return pa.nulls(self.count, arrow.NUMBER)
        return arrow.numbers(self.rows[:, VALUES + slot].view(np.uint64), ~self._has(slot))

    def _coded(self, codes: Any, texts: Sequence[str]) -> Any:
        """A column of texts by number, -1 for none."""
        indices = pa.array(codes.astype(np.int32, copy=False), pa.int32(), mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.string()))

    def _none(self) -> Any:
        return pa.nulls(self.count, arrow.TEXT)

    def _of_flow(self, texts: list[str | None]) -> Any:
        """A text for each flow."""
        known = list(dict.fromkeys(text for text in texts if text is not None))
        number = {text: i for i, text in enumerate(known)}
        codes = np.array([-1 if text is None else number[text] for text in texts], np.int32)
        return self._coded(codes[self.flow][self.of], known)

    def _bytes(self, slot: int) -> Any:
        if not self.any >> slot & 1:
            return pa.nulls(self.count, pa.binary())
        m = self.m
        offsets = np.empty(self.count + 1, np.int32)
        out = np.empty(joining.measure(m.r, self.count, slot, offsets), np.uint8)
        joining.gather(m.r, m.B, m.block.data, m.spill, self.count, slot, offsets, out)
        has = self._has(slot)
        valid = None if has.all() else pa.py_buffer(np.packbits(has, bitorder="little"))
        return pa.Array.from_buffers(pa.binary(), self.count, [valid, pa.py_buffer(offsets), pa.py_buffer(out)])

    def _texts(self, slot: int, salt: Any, text: Callable[[Row], str | None]) -> Any:
        """A text for each row whose salt is not below 0, made once for those with equal salt and bytes."""
        codes, firsts = self.columns.intern(self.m, slot, salt)
        texts = [text(self._row(first)) for first in firsts]
        known = list(dict.fromkeys(one for one in texts if one is not None))
        if len(known) != len(texts):  # different bytes, equal texts; or none
            number: dict[str | None, int] = {one: i for i, one in enumerate(known)}
            number[None] = -1
            codes = np.array([*(number[one] for one in texts), -1], np.int32)[codes]
        return self._coded(codes, known)

    def _spans(self, slot: int, text: Callable[[Row], str | None]) -> Any:
        if not self.any >> slot & 1:
            return self._none()
        return self._texts(slot, np.where(self._has(slot), 0, -1), text)

    def _row(self, i: int) -> Row:
        spilled = self.m.B[self.of[i], SPILLED_OF]
        data: Any = self.m.spill if spilled else self.m.block.data
        return Row(memoryview(data), memoryview(self.m.r), i * STRIDE)

    # -- where it was seen --

    def column_capture(self) -> Any:
        return self._coded(np.zeros(self.count, np.int32), [self.m.block.capture])

    def column_frame(self) -> Any:
        return pa.array(self.m.block.frame[self.packet][self.of])

    def column_time(self) -> Any:
        return pa.array(self.m.block.time[self.packet][self.of])

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
        return pa.array(self.m.B[: self.m.batches, ORDINAL_OF][self.of])

    def column_msg(self) -> Any:
        return pa.array(self.rows[:, MSG].astype(np.int32))

    # -- what it is --

    def column_layer(self) -> Any:
        return self._coded(_LAYER[self.kind], ["transport", "network"])

    def column_kind(self) -> Any:
        return self._coded(self.kind, g.KINDS)

    def column_body(self) -> Any:
        return self._coded(_BODY[self.body], _BODIES)

    def column_sn(self) -> Any:
        return self._wide(g.SN)

    def column_reliable(self) -> Any:
        return self._number(g.RELIABLE, pa.bool_())

    def column_priority(self) -> Any:
        values = self._value(g.PRIORITY, DEFAULT_PRIORITY).astype(np.int8)
        return pa.array(values, pa.int8(), mask=~_SEQUENCED[self.kind])

    def column_congestion(self) -> Any:
        codes = np.where(self._value(g.BLOCK, 0) != 0, 1, np.where(self._value(g.BLOCK_FIRST, 0) != 0, 2, 0))
        return self._coded(np.where(_NETWORK[self.kind], codes, -1), _CONGESTION)

    def column_express(self) -> Any:
        return pa.array(self._value(g.EXPRESS, 0) != 0, pa.bool_(), mask=~_NETWORK[self.kind])

    # -- keys --

    def column_key_scope(self) -> Any:
        return self._number(g.SCOPE, pa.int64())

    def column_key_suffix(self) -> Any:
        return self._spans(g.SUFFIX, lambda row: row.text(g.SUFFIX))

    def column_key_mapping(self) -> Any:
        known = self._has(g.SCOPE) & self._has(g.MAPPING)
        labels = [Mapping.describe(0), Mapping.describe(1)]
        return self._coded(np.where(known, self.rows[:, VALUES + g.MAPPING], -1), labels)

    def column_key(self) -> Any:
        m, texts = self.m, self.m.texts
        names = m.names[: self.count]
        given = list(m.keys)
        names[given] = -1
        codes, firsts = self.columns.intern(m, g.SUFFIX, names)
        known = {texts[names[first]] + (self._row(first).text(g.SUFFIX) or ""): i for i, first in enumerate(firsts)}
        if len(known) != len(firsts):  # one key, cut in different ways
            every = [texts[names[first]] + (self._row(first).text(g.SUFFIX) or "") for first in firsts]
            known = {key: i for i, key in enumerate(dict.fromkeys(every))}
            codes = np.array([*(known[key] for key in every), -1], np.int32)[codes]
        for i, key in m.keys.items():
            codes[i] = -1 if key is None else known.setdefault(key, len(known))
        return self._coded(codes, list(known))

    # -- ids --

    def column_entity_id(self) -> Any:
        return self._number(g.ENTITY_ID, pa.int64())

    def column_request_id(self) -> Any:
        return self._number(g.REQUEST_ID, pa.int64())

    def column_interest_id(self) -> Any:
        return self._number(g.INTEREST_ID, pa.int64())

    # -- data --

    def column_encoding(self) -> Any:
        exts = self.rows[:, EXTENSIONS]
        with_one = _WITH_ENCODING[self.body] | (exts & g.EXT_QUERY_BODY != 0)
        salt = np.where(with_one, self._value(g.ENCODING_ID, 0) << 1 | self._has(g.SCHEMA), -1)
        column = self._texts(g.SCHEMA, salt, _encoding)
        sliced = np.flatnonzero((exts & g.EXT_QUERY_BODY == 0) & (exts & g.EXT_QUERY_BODY_SLICED != 0))
        if not len(sliced):
            return column
        texts = column.to_pylist()
        for i in sliced.tolist():
            row = self._row(i)
            texts[i] = encoding_to_text(row.number(g.SLICED_ENCODING_ID), row.text(g.SLICED_SCHEMA))
        return pa.array(texts, pa.string()).dictionary_encode()

    def column_payload_len(self) -> Any:
        has = self._has_payload()
        values = self.rows[:, LENGTHS + g.DATA].copy()
        for i in self.pieces:
            values[i], has[i] = pieces_of(self._row(i))[0], True
        return pa.array(values, pa.int64(), mask=~has)

    def _has_payload(self) -> Any:
        """The slot is also that of the slice in a FRAGMENT."""
        return self._has(g.DATA) & (self.kind != joining.FRAGMENT)

    def column_payload(self) -> Any:
        if not self.m.payload:
            return pa.nulls(self.count, pa.binary())
        fragments = self.kind == joining.FRAGMENT
        if self.kinds[joining.FRAGMENT]:
            self.rows[fragments, PRESENT] &= ~(1 << g.DATA)
            self.present[fragments] &= ~(1 << g.DATA)
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
        if not self.any >> g.TS_TIME & 1:
            return pa.nulls(self.count, pa.int64())
        ntp = self.rows[:, VALUES + g.TS_TIME].view(np.uint64)
        fraction = (ntp & np.uint64(0xFFFFFFFF)) * np.uint64(10**9) >> np.uint64(32)
        ns = (ntp >> np.uint64(32)) * np.uint64(10**9) + fraction
        return pa.array(ns.view(np.int64), pa.int64(), mask=~self._has(g.TS_TIME))

    def column_timestamp_id(self) -> Any:
        return self._spans(g.TS_ID, lambda row: zid_from_wire(row.bytes(g.TS_ID) or b"").lstrip("0") or None)

    def column_attachment(self) -> Any:
        return self._bytes(g.ATTACHMENT) if self.m.payload else pa.nulls(self.count, pa.binary())

    def column_source_zid(self) -> Any:
        return self._spans(g.SOURCE_ZID, lambda row: zid_text(row.bytes(g.SOURCE_ZID) or b""))

    def column_source_eid(self) -> Any:
        return self._number(g.SOURCE_EID, pa.int64())

    def column_source_sn(self) -> Any:
        return self._number(g.SOURCE_SN, pa.int64())

    # -- queries --

    def column_parameters(self) -> Any:
        return self._spans(g.PARAMETERS, lambda row: row.text(g.PARAMETERS))

    def column_target(self) -> Any:
        if not self.kinds[joining.REQUEST]:
            return self._none()
        return self._coded(np.where(self.kind == joining.REQUEST, self._value(g.TARGET, 0), -1), _TARGETS)

    def column_consolidation(self) -> Any:
        if not self.kinds[joining.REQUEST]:
            return self._none()
        values = self._value(g.CONSOLIDATION, 0)
        codes = np.full(self.count, -1, np.int32)
        for number in np.unique(values[self.body == _QUERY]).tolist():
            label = Consolidation.labels().get(number, "auto")
            codes[(self.body == _QUERY) & (values == number)] = _CONSOLIDATIONS.index(label)
        return self._coded(codes, _CONSOLIDATIONS)

    def column_timeout_ms(self) -> Any:
        return self._wide(g.TIMEOUT)

    def column_budget(self) -> Any:
        return self._wide(g.BUDGET)

    def column_responder_zid(self) -> Any:
        return self._spans(g.RESPONDER_ZID, lambda row: zid_text(row.bytes(g.RESPONDER_ZID) or b""))

    def column_responder_eid(self) -> Any:
        return self._number(g.RESPONDER_EID, pa.int64())

    # -- the rest --

    def column_reason(self) -> Any:
        return self._said(joining.CLOSE, lambda row: CloseReason.describe(row.value(g.REASON, 0)))

    def column_interest_mode(self) -> Any:
        return self._said(joining.INTEREST, lambda row: InterestMode.describe(row.value(g.MODE, 0)))

    def column_interest_options(self) -> Any:
        return self._said(joining.INTEREST, _options)

    def _said(self, kind: int, text: Callable[[Row], str | None]) -> Any:
        """A text for each row of a kind that is rare."""
        if not self.kinds[kind]:
            return self._none()
        texts: list[str | None] = [None] * self.count
        for i in np.flatnonzero(self.kind == kind).tolist():
            texts[i] = text(self._row(i))
        return pa.array(texts, pa.string()).dictionary_encode()

    def column_compressed(self) -> Any:
        return pa.array(np.zeros(self.count, bool))

    def column_lowlatency(self) -> Any:
        return pa.array(np.array([ends.lowlatency for ends in self.ends], bool)[self.flow][self.of])


def _encoding(row: Row) -> str:
    return encoding_to_text(row.number(g.ENCODING_ID), row.text(g.SCHEMA))


def _options(row: Row) -> str | None:
    if row.value(g.MODE, 0) == InterestMode.FINAL:
        return None
    return "|".join(text for slot, text in OPTIONS if row.value(slot, 0))
