"""What messages say about declarations and queries: two tables made from ``messages``.

Both are made alike, and piece by piece. The messages that matter are *events*. Events of the same thing (what one node
told or asked in one session, by its number) are put next to each other in the order of their rows; what stands
behind what tells which of them belong together. A row to which something may still happen is *open*: it is an event
among those of the next piece. So the rows are the same wherever the pieces are cut, and memory is for open ones only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from scapy_zenoh import arrow
from scapy_zenoh.pipeline.schema import of_table
from scapy_zenoh.schema.tables import RECORDING, TABLES

#: The messages that matter, and what of them.
KINDS = ("declare", "request", "response", "response_final")
EVENTS = (
    "row", "time", "session", "src", "sport", "src_zid", "dst", "dport", "dst_zid", "kind", "body", "key", "entity_id",
    "interest_id", "request_id", "parameters", "target", "consolidation", "timeout_ms", "payload_len",
)  # fmt: skip

ENOUGH = 1 << 16  # events that are taken together
_NEVER, _LONG_AGO = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def events(messages: Any) -> Any:
    """The events among a batch of messages as they leave the decoder."""
    matters = arrow.pleases(messages.column("kind"), KINDS.__contains__)
    return messages.select(EVENTS).filter(pa.array(matters))


class Making:
    """The rows of a table in the making, from events that come in the order of their rows.

    ``waiting`` are rows that an earlier one left open, as it had them.
    """

    table: ClassVar[str]
    keys: ClassVar[tuple[str, ...]]  # what events of the same thing have in common

    def __init__(self, waiting: Any = None) -> None:
        self.waiting = waiting
        self._new: list[Any] = []
        self._count = 0

    def add(self, found: Any) -> list[Any]:
        """Take events; gives rows that are over. Looks only when as much is new as is open, which would take long."""
        told = self._told(pa.Table.from_batches([found]))
        self._new.append(told)
        self._count += told.num_rows
        most = 0 if self.waiting is None else self.waiting.num_rows
        return [self.over()] if self._count >= max(ENOUGH, most) else []

    def over(self) -> Any:
        """The rows that are over now."""
        rows, is_open, self.waiting = self._rows(self._all())
        self._new, self._count = [], 0
        return rows.filter(pa.array(~is_open))

    def open(self) -> Any:
        """The others, as they would be if nothing else came."""
        rows, is_open, _ = self._rows(self._all())
        return rows.filter(pa.array(is_open))

    def settle(self, sessions: Sequence[str]) -> Any:
        """The open rows of sessions of which no more will come: they are over. Call it behind ``over``."""
        gone = pc.is_in(self.waiting["session"], pa.array(sessions, pa.string()))
        rest = self.waiting.filter(pc.invert(gone))
        self.waiting = self.waiting.filter(gone)
        rows, self.waiting = self.open(), rest
        return rows

    def _all(self) -> Any:
        parts = [*([] if self.waiting is None else [self.waiting]), *self._new]
        return pa.concat_tables(parts) if parts else self._told(_none())

    def _told(self, found: Any) -> Any:
        """What events tell of the rows of this table."""
        raise NotImplementedError

    def _rows(self, told: Any) -> tuple[Any, Any, Any]:
        """Rows of what was told; which of them are open; and what was told of those, in the same order."""
        raise NotImplementedError

    def _in_order(self, told: Any) -> tuple[Any, Any]:
        """What was told of the same thing behind each other, and where another thing begins."""
        codes = [_codes(told[key]) for key in (RECORDING.name, *self.keys) if key in told.column_names]
        order = np.lexsort((told["row"].to_numpy(), *codes))
        first = np.ones(len(order), bool)
        if len(order):
            first[1:] = np.logical_or.reduce([code[order[1:]] != code[order[:-1]] for code in codes])
        return told.take(pa.array(order)), first

    def _finished(self, columns: dict[str, Any]) -> Any:
        """Columns as rows of the table, with the types that it has."""
        texts = {"text": pa.string()}
        wanted = [column for column in (*TABLES[self.table], RECORDING) if column.name in columns]
        kinds = [texts.get(column.type) or arrow.type_of(column) for column in wanted]
        arrays = [columns[column.name] for column in wanted]
        arrays = [a if isinstance(a, pa.ChunkedArray) else pa.chunked_array([a]) for a in arrays]
        names = [column.name for column in wanted]
        return pa.table([array.cast(kind) for array, kind in zip(arrays, kinds, strict=True)], names=names)


class Declarations(Making):
    """One row for each time that something was declared, or withdrawn without that.

    A declaration is over with the next withdrawal of its number. A number that is declared again while it is in use
    gives another row, and the one before stays without end. The number 0 stands for many things at once, which their
    keys tell apart (between routers, towards a group, and in answers to an interest).
    """

    table = "declarations"
    keys = ("session", "sender", "entity", "entity_id", "named")

    def _told(self, found: Any) -> Any:
        body = pc.replace_substring_regex(found["body"].cast(pa.string()), "^(un)?declare_", "")
        matters = pc.and_(pc.equal(found["kind"].cast(pa.string()), "declare"), pc.is_valid(found["entity_id"]))
        matters = pc.fill_null(pc.and_(matters, pc.not_equal(body, "final")), False)
        found, body = _plain(found.filter(matters)), body.filter(matters)
        named = pc.if_else(
            pc.equal(found["entity_id"], 0), pc.fill_null(found["key"], ""), pa.scalar(None, pa.string())
        )
        return _table(
            found,
            sender=_end(found, "src"),
            entity=body,
            entity_id=found["entity_id"],
            named=named,
            opens=pc.starts_with(found["body"], "declare_"),
            zid=found["src_zid"],
            peer_zid=found["dst_zid"],
            key=found["key"],
            interest_id=found["interest_id"],
            time=found["time"],
        )

    def _rows(self, told: Any) -> tuple[Any, Any, Any]:
        told, first = self._in_order(told)
        opens = _flags(told["opens"])
        last = np.append(first[1:], True)[: len(first)]
        ended = opens & ~last & ~np.append(opens[1:], True)[: len(first)]
        stray = ~opens & (first | ~np.append(False, opens[:-1])[: len(first)])
        made = np.flatnonzero(opens | stray)
        ends = np.where(ended[made], made + 1, made)
        end = told.take(pa.array(ends, mask=opens[made] & ~ended[made]))
        rows = told.take(pa.array(made))

        def declared(name: str) -> Any:
            return pc.if_else(rows["opens"], rows[name], pa.scalar(None, rows[name].type))

        done = self._finished(
            {name: rows[name] for name in told.column_names}
            | {
                "key": pc.coalesce(rows["key"], end["key"]),
                "interest_id": declared("interest_id"),
                "declared": declared("time"),
                "declared_row": declared("row"),
                "withdrawn": end["time"],
                "withdrawn_row": end["row"],
            }
        )
        is_open = (opens & last)[made]
        return done, is_open, rows.filter(pa.array(is_open))


class Queries(Making):
    """One row for each REQUEST, with what is known of its answers.

    An answer belongs to the newest request before it with its number, in its session, from the node that it goes to;
    answers to requests that were not seen are left out, and so are replies behind the RESPONSE_FINAL (they are among
    the findings).
    """

    table = "queries"
    keys = ("session", "sender", "request_id")
    _asked = ("key", "parameters", "target", "consolidation", "timeout_ms")

    def _told(self, found: Any) -> Any:
        matters = pc.and_(pc.not_equal(found["kind"].cast(pa.string()), "declare"), pc.is_valid(found["request_id"]))
        found = _plain(found.filter(matters))
        asks, replies = pc.equal(found["kind"], "request"), pc.equal(found["kind"], "response")
        is_reply, time = _flags(replies), found["time"].to_numpy()
        values = pc.is_in(found["body"], pa.array(["reply_put", "reply_del"]))
        size = pc.fill_null(found["payload_len"], 0).to_numpy()
        return _table(
            found,
            sender=pc.if_else(asks, _end(found, "src"), _end(found, "dst")),
            request_id=found["request_id"],
            opens=asks,
            ends=pc.equal(found["kind"], "response_final"),
            zid=found["src_zid"],
            peer_zid=found["dst_zid"],
            **{name: found[name] for name in self._asked},
            time=time,
            first_reply=np.where(is_reply, time, _NEVER),
            last_reply=np.where(is_reply, time, _LONG_AGO),
            replies=(is_reply & _flags(values)).astype(np.int64),
            errors=(is_reply & _flags(pc.fill_null(pc.equal(found["body"], "err"), False))).astype(np.int64),
            reply_bytes=np.where(is_reply, size, 0),
        )

    def _rows(self, told: Any) -> tuple[Any, Any, Any]:
        told, first = self._in_order(told)
        opens, ends, time = _flags(told["opens"]), _flags(told["ends"]), told["time"].to_numpy()
        begins = opens | first
        starts = np.flatnonzero(begins)
        request = np.cumsum(begins) - 1
        ended = np.cumsum(ends) - ends  # before each event
        counts = ended == ended[starts][request]
        finished = _each(np.minimum, np.where(ends & counts, time, _NEVER), starts)
        sums: dict[str, Any] = {
            name: _each(how, np.where(counts, told[name].to_numpy(), nothing), starts)
            for name, how, nothing in (
                ("first_reply", np.minimum, _NEVER),
                ("last_reply", np.maximum, _LONG_AGO),
                ("replies", np.add, 0),
                ("errors", np.add, 0),
                ("reply_bytes", np.add, 0),
            )
        }
        newest = np.append(first[starts[1:]], True)[: len(starts)]
        seen = opens[starts]
        rows, newest, finished = told.take(pa.array(starts[seen])), newest[seen], finished[seen]
        sums = {name: values[seen] for name, values in sums.items()}
        answered = sums["first_reply"] != _NEVER
        outcome = np.where(finished == _NEVER, "unfinished", np.where(answered, "answered", "empty"))
        replied = {name: pa.array(sums[name], mask=~answered) for name in ("first_reply", "last_reply")}
        done = self._finished(
            {name: rows[name] for name in told.column_names}
            | {name: pa.array(values) for name, values in sums.items()}
            | replied
            | {
                "asked": rows["time"],
                "asked_row": rows["row"],
                "finished": pa.array(finished, mask=finished == _NEVER),
                "outcome": pa.array(outcome, pa.string()),
            }
        )
        is_open = newest & (finished == _NEVER)
        for name, values in sums.items():
            rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
        return done, is_open, rows.filter(pa.array(is_open))


#: The tables that are made from messages.
DERIVED: dict[str, type[Making]] = {making.table: making for making in (Declarations, Queries)}


# --- columns --------------------------------------------------------------------------------------


def _none() -> Any:
    """No events."""
    columns = {column.name: column for column in TABLES["messages"]}
    return pa.table({name: pa.array([], arrow.type_of(columns[name])) for name in EVENTS})


def _table(found: Any, **columns: Any) -> Any:
    """What events tell, with what says which they are."""
    kept = [name for name in (RECORDING.name, "session", "row") if name in found.column_names]
    return pa.table({**{name: found[name] for name in kept}, **columns})


def _plain(table: Any) -> Any:
    """The same with texts of one kind: Spark may have them as large ones, the decoder as dictionaries."""
    columns = [c.cast(pa.string()) if _is_text(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_large_string(kind))


def _end(found: Any, side: str) -> Any:
    """One end of messages: the id of the node, or its address while that is unknown."""
    address = pc.binary_join_element_wise(found[side], found[f"{side[0]}port"].cast(pa.string()), ":")
    return pc.coalesce(found[f"{side}_zid"], address)


def _codes(column: Any) -> Any:
    """Numbers that are equal where the values are."""
    if pa.types.is_integer(column.type):
        return column.to_numpy()
    return column.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()


def _flags(column: Any) -> Any:
    return column.to_numpy().astype(bool)


def _each(how: Any, values: Any, starts: Any) -> Any:
    """Values of each request as one."""
    return how.reduceat(values, starts) if len(starts) else values[:0]


# --- as DataFrames ----------------------------------------------------------------------------------


def declarations(messages: DataFrame) -> DataFrame:
    """The table ``declarations`` of messages that Spark has: those of the format ``zenoh``, or of a catalogue."""
    return _of_frame(Declarations, messages)


def queries(messages: DataFrame) -> DataFrame:
    """The table ``queries`` of messages that Spark has."""
    return _of_frame(Queries, messages)


def _of_frame(making: type[Making], messages: DataFrame) -> DataFrame:
    found = messages.where(F.col("kind").isin(*KINDS)).select(RECORDING.name, *EVENTS)
    in_order = found.repartition(RECORDING.name, "session").sortWithinPartitions(RECORDING.name, "row")
    schema = of_table(making.table)

    def make(batches: Iterator[Any]) -> Iterator[Any]:
        rows = making()
        for batch in batches:
            for over in rows.add(batch):
                yield from given(over)
        yield from given(rows.over())
        yield from given(rows.open())

    def given(rows: Any) -> Iterator[Any]:
        return (batch.select(schema.names) for batch in rows.to_batches() if batch.num_rows)

    return in_order.mapInArrow(make, schema)
