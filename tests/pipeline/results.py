"""Tables as values to compare: what the stretches of recordings give, and what lies in a folder of tables."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from scapy_zenoh.pipeline.captures import Captures
from scapy_zenoh.pipeline.stretch import Options, Stretch, cut, ended, plain, read
from scapy_zenoh.recording import Recording
from scapy_zenoh.schema.tables import OF_MESSAGES, TABLES
from tests.conftest import captures
from tests.rows.files import load
from tests.rows.test_truth import truth_of

Row = dict[str, Any]
Tables = dict[str, Any]  # of Arrow


def small(size: int = 1 << 18) -> list[Path]:
    """The captures of at most so many bytes that need no key log."""
    return [path for path in captures() if path.stat().st_size <= size and not truth_of(path).get("keylog")]


def whole(recording: Captures, options: Options = Options()) -> Tables:  # noqa: B008
    """All rows of a recording that is read in one go, packet by packet."""
    return together(batch for batch in read(Stretch(recording), options, compiled=False))


def in_stretches(recording: Captures, every: int, options: Options = Options()) -> tuple[Tables, int]:  # noqa: B008
    """All rows of a recording that is read in stretches, each by itself and the last one first; how many there are."""
    stretches = ended(cut(recording, options, every))
    return together(rows for stretch in reversed(stretches) for rows in read(stretch, options)), len(stretches)


def together(rows: Iterable[tuple[str, Any]]) -> Tables:
    """Rows as they come, as a table each; those of messages in their order, all others sorted."""
    found: dict[str, list[Any]] = {}
    for table, batch in rows:
        if batch.num_rows:
            found.setdefault(table, []).append(plain(batch))
    return {table: in_order(table, pa.Table.from_batches(batches)) for table, batches in sorted(found.items())}


def in_order(table: str, rows: Any) -> Any:
    """The rows of messages by their number, those of other tables by all they say."""
    if table in OF_MESSAGES:
        return rows.sort_by("row").combine_chunks()
    return sorted(rows.to_pylist(), key=repr)


def unequal(one: Tables, other: Tables, but: Sequence[str] = ()) -> list[str]:
    """Which tables and columns differ; ``but`` these columns."""
    found = [f"{table} is in one only" for table in sorted({*one} ^ {*other})]
    for table in sorted({*one} & {*other}):
        a, b = one[table], other[table]
        if isinstance(a, list):
            a, b = ([{name: row[name] for name in row if name not in but} for row in rows] for rows in (a, b))
            found += [] if a == b else [f"{table}: {[row for row in a if row not in b]} {[r for r in b if r not in a]}"]
            continue
        if len(a) != len(b):
            found.append(f"{table}: {len(a)} and {len(b)} rows")
        found += [f"{table}.{c}" for c in a.column_names if c not in but and not a[c].equals(b[c])]
        found += [] if a.column_names == b.column_names else [f"{table}: other columns"]
    return found


# --- a folder of tables -----------------------------------------------------------------------------


def lying_in(folder: Path, table: str) -> dict[str, Any]:
    """The rows of a table for each recording, read without Spark. The names of folders are left out."""
    found: dict[str, list[Any]] = {}
    for path in sorted((folder / table).rglob("*.parquet")):
        found.setdefault(path.parent.name.removeprefix("recording="), []).append(pq.ParquetFile(path).read())
    plain = {name: pa.concat_tables(map(_plain, parts)) for name, parts in found.items()}
    return {name: in_order(table, rows) for name, rows in plain.items()}


def everything(folder: Path) -> dict[tuple[str, str], Any]:
    """All rows in a folder of tables, by table and recording."""
    return {(table, name): rows for table in TABLES for name, rows in lying_in(folder, table).items()}


def changed(one: dict[tuple[str, str], Any], other: dict[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Which tables of which recordings are not the same."""
    return [key for key in sorted({*one, *other}) if key not in one or key not in other or one[key] != other[key]]


def _plain(table: Any) -> Any:
    columns = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def leftovers(folder: Path) -> list[str]:
    """What lies in a folder of tables and is no part of them: half files, stages, journals."""
    known = {*TABLES, "_lock", "_scapy_zenoh.json"}
    odd = [path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".parquet", ".json")]
    found = [str(path.relative_to(folder)) for path in odd if path.name != "_lock"]
    journal = [str(path) for path in (folder / "_journal").rglob("*")]
    return [entry.name for entry in folder.iterdir() if entry.name not in {*known, "_journal"}] + found + journal


# --- what dissect and summary say -------------------------------------------------------------------


def dissected(path: Path, keylog: Path | None = None, compiled: bool | None = None) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a capture as ``dissect --json`` prints them, and what ``summary --json`` does.

    In tables, text that was not UTF-8 is replaced.
    """
    recording = Recording([path], keylog=keylog, compiled=compiled)
    rows = [_loaded(line) for piece in recording.pieces() for line in piece.json_lines()]
    return rows, _loaded(json.dumps(recording.summary()))


def _loaded(text: str) -> Any:
    def replaced(bytes_: re.Match[str]) -> str:
        return bytes.fromhex(bytes_[0].replace("\\udc", "")).decode("utf-8", "replace")

    return json.loads(re.sub(r"(\\udc[89a-f][0-9a-f])+", replaced, text))


def as_json(table: Any, columns: Iterable[str]) -> list[Row]:
    """Rows of Arrow as ``dissect --json`` prints them."""
    return [{name: json_value(row[name]) for name in columns} for row in table.to_pylist()]


def difference(found: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """The first row that differs, if any. Comparing long lists with assert would take minutes to say it."""
    for number, (one, other) in enumerate(zip(found, expected, strict=False)):
        if one != other:
            unequal = {name: (one.get(name), other.get(name)) for name in other if one.get(name) != other.get(name)}
            return f"row {number}: {unequal or sorted({*one} ^ {*other})}"
    return None if len(found) == len(expected) else f"{len(found)} rows, not {len(expected)}"


def json_value(value: Any) -> Any:
    """A value as it is in JSON."""
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return int(value) if isinstance(value, Decimal) else value


# --- captures for a folder --------------------------------------------------------------------------


def damaged(folder: Path) -> dict[str, str]:
    """Files that are no captures, or damaged ones; and a part of what is said of each."""
    folder.mkdir(parents=True, exist_ok=True)
    good = load(next(path for path in captures() if path.name.startswith("s26_ports"))).write(folder / "_good.pcap")
    data = good.read_bytes()
    good.unlink()
    packed = gzip.compress(data)
    files = {
        "empty.pcap": (b"", "the file is empty"),
        "text.pcap": (b"not a capture, but long enough to be one, if one does not look at it\n" * 10, "not a capture"),
        "foreign.png": (b"\x89PNG\r\n\x1a\n" + bytes(100), "not a capture file (it begins with 89 50 4e 47)"),
        "header.pcap": (data[:10], "in the middle of the file header"),
        "cut.pcap": (data[:-3], "in the middle of packet"),
        "cut.pcap.gz": (packed[:-20], "the gzip data ends too early"),
        "damaged.pcap.gz": (packed[:200] + bytes(20) + packed[220:], "the gzip data is damaged"),
        "length.pcap": (data[:32] + b"\xff" * 4 + data[36:], "cannot be 4294967295 bytes long"),
    }
    for name, (content, _) in files.items():
        (folder / name).write_bytes(content)
    (folder / "gone.pcap").symlink_to(folder / "nowhere")
    return {name: said for name, (_, said) in files.items()} | {"gone.pcap": "No such file"}


def in_pieces(path: Path, folder: Path, count: int) -> list[Path]:
    """A capture as so many files, cut between any two packets; ``count`` 0: as one, in the same format."""
    raw = load(path)
    folder.mkdir(parents=True, exist_ok=True)
    if not count:
        return [raw.write(folder / "whole.pcap")]
    ends = [len(raw.records) * number // count for number in range(count + 1)]
    pairs = list(zip(ends, ends[1:], strict=False))
    return [raw.write(folder / f"{i:03}.pcap", raw.records[a:b]) for i, (a, b) in enumerate(pairs)]
