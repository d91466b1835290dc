"""Rows as Arrow record batches, and back; needs the extra ``tables``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from scapy_zenoh.piece import Check
from scapy_zenoh.primitives import as_utf8
from scapy_zenoh.rows import Row
from scapy_zenoh.schema.columns import COLUMNS, Column, Type

TEXT = pa.dictionary(pa.int32(), pa.string())
NUMBER = pa.decimal128(20, 0)  # 64 bits without sign

_TYPES: dict[Type, Any] = {
    "text": TEXT,
    "texts": pa.list_(pa.string()),
    "bytes": pa.binary(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "number": NUMBER,
    "instant": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}


def type_of(column: Column) -> Any:
    """The type of a column."""
    return _TYPES[column.type]


@cache
def schema(columns: tuple[Column, ...] = COLUMNS) -> Any:
    """The schema of rows with these columns, with what each column means."""
    return pa.schema([pa.field(c.name, type_of(c), metadata={"comment": c.about}) for c in columns])


def batch_of(rows: Sequence[Row], columns: tuple[Column, ...] = COLUMNS) -> Any:
    """A record batch of these rows."""
    arrays = [_array([row[column.name] for row in rows], column.type) for column in columns]
    return pa.record_batch(arrays, schema=schema(columns))


def _array(values: list[Any], kind: Type) -> Any:
    if kind == "text":
        return pa.array([_text(value) for value in values], pa.string()).dictionary_encode()
    if kind == "texts":
        values = [None if texts is None else [_text(text) for text in texts] for texts in values]
    elif kind == "number":
        absent = np.array([value is None for value in values], bool)
        return numbers(np.array([value or 0 for value in values], np.uint64), absent)
    return pa.array(values, _TYPES[kind])


def _text(value: str | None) -> str | None:
    """Text as Arrow takes it."""
    return None if value is None else as_utf8(value)


def numbers(values: Any, absent: Any) -> Any:
    """A column of numbers of 64 bits without sign."""
    wide = np.zeros((len(values), 2), np.uint64)
    wide[:, 0] = values
    valid = pa.py_buffer(np.packbits(~absent, bitorder="little")) if absent.any() else None
    return pa.Array.from_buffers(NUMBER, len(values), [valid, pa.py_buffer(wide)])


def encoded(table: Any) -> Any:
    """The same table with its columns of text as dictionaries, as all are here."""
    columns = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def instants(nanoseconds: Any) -> Any:
    """A column of times in ns since 1970 as timestamps."""
    absent = nanoseconds.is_null().to_numpy(zero_copy_only=False) if nanoseconds.null_count else None
    values = nanoseconds.fill_null(0) if nanoseconds.null_count else nanoseconds
    return pa.array(values.to_numpy() // 1000, pa.int64(), mask=absent).view(_TYPES["instant"])


def merged(columns: Any, single: Any, numbers: Sequence[int]) -> Any:
    """Two batches as one; ``numbers`` says before which row of the first each row of the second stands."""
    places = np.concatenate([2 * np.arange(columns.num_rows) + 1, 2 * np.array(numbers, np.int64)])
    table = pa.Table.from_batches([columns, single]).unify_dictionaries().combine_chunks()
    return table.take(pa.array(np.argsort(places, kind="stable"))).to_batches()[0]


def only(batch: Any, checks: Sequence[Check]) -> tuple[Any, Any]:
    """The rows of a batch that please all checks, and how many of them stand before each old row."""
    mask = np.ones(batch.num_rows, bool)
    for check in checks:
        mask &= np.logical_or.reduce([pleases(batch.column(name), check.wanted) for name in check.columns])
    return batch.filter(pa.array(mask)), np.concatenate([[0], np.cumsum(mask)])


def pleases(array: Any, wanted: Callable[[str | None], bool]) -> Any:
    """Which rows of a column of texts are wanted; each text is asked once."""
    answers = np.array([*(wanted(text) for text in array.dictionary.to_pylist()), wanted(None)], bool)
    return answers[array.indices.fill_null(-1).to_numpy()]


# --- back to rows --------------------------------------------------------------------------------


def rows_of(batch: Any) -> Iterator[Row]:
    """The rows of a record batch, with plain values."""
    names = batch.schema.names
    for values in zip(*(values_of(batch.column(i)) for i in range(batch.num_columns)), strict=True):
        yield dict(zip(names, values, strict=True))


def values_of(array: Any) -> list[Any]:
    """The values of a column. ``to_pylist`` takes ten times as long."""
    if array.null_count == len(array):
        return [None] * len(array)
    if pa.types.is_dictionary(array.type):
        texts = [*array.dictionary.to_pylist(), None]  # -1 is the last one
        return [texts[code] for code in array.indices.fill_null(-1).to_numpy().tolist()]
    if array.type == NUMBER:
        halves = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)
        values: list[Any] = halves[array.offset : array.offset + len(array), 0].tolist()
    elif pa.types.is_integer(array.type) or pa.types.is_boolean(array.type):
        plain = array.fill_null(False if pa.types.is_boolean(array.type) else 0) if array.null_count else array
        values = plain.to_numpy(zero_copy_only=False).tolist()
    else:
        return list(array.to_pylist())
    if array.null_count:
        there = array.is_valid().to_numpy(zero_copy_only=False).tolist()
        values = [value if valid else None for value, valid in zip(values, there, strict=True)]
    return values


# --- as JSON -------------------------------------------------------------------------------------


def json_lines(batch: Any) -> Iterator[str]:
    """The rows of a record batch as ``rows.to_json`` writes them: what a column always says is written once."""
    fixed, varying = [], []
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        texts = _json_values(array)
        if isinstance(texts, str):
            fixed.append(f"{json.dumps(name)}:{texts}".replace("%", "%%"))
        else:
            fixed.append(f"{json.dumps(name)}:%s")
            varying.append(texts)
    template = "{" + ",".join(fixed) + "}"
    if not varying:
        return iter([template % ()] * batch.num_rows)
    return (template % values for values in zip(*varying, strict=True))


def _json_values(array: Any) -> str | list[Any]:
    """The values of a column as JSON, or the one that all rows have."""
    if array.null_count == len(array):
        return "null"
    if pa.types.is_dictionary(array.type):
        texts = [*(json.dumps(text) for text in array.dictionary.to_pylist()), "null"]
        codes = array.indices.fill_null(-1).to_numpy()
        if (codes == codes[0]).all():
            return str(texts[codes[0]])
        return [texts[code] for code in codes.tolist()]
    values = values_of(array)
    if pa.types.is_boolean(array.type):
        return [_JSON_FLAGS[value] for value in values]
    if pa.types.is_binary(array.type):
        return ["null" if value is None else f'"{value.hex()}"' for value in values]
    if pa.types.is_list(array.type):
        return [json.dumps(value, separators=(",", ":")) for value in values]
    return ["null" if value is None else value for value in values] if array.null_count else values


_JSON_FLAGS = {None: "null", False: "false", True: "true"}
