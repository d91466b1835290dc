"""The vectors of another implementation, wrapped into captures: the plugin reads the values and gives the verdicts.

Values and verdicts are those of the rows; Scapy has no part in them. Every row travels on a link of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.message import NETWORK
from scapy_zenoh.schema.names import filter_of, record_filter
from tests.conftest import vector_rows
from tests.vectors.mapping import Wanted, wanted
from tests.vectors.test_damaged import Case, case_of, complaint
from tests.wire import UDP, ethernet, ipv4, pcap, record, udp
from tests.wireshark.expected import Item, Message, shown_text
from tests.wireshark.tshark import tshark, tshark_available

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.slow,
    pytest.mark.skipif(not tshark_available(), reason="tshark is not installed"),
]

Row = dict[str, Any]

ZENOH, SCOUTING = 7447, 7446
#: INIT of version 9: a client whose id is one byte. It shows that the link is Zenoh.
INIT = bytes.fromhex("0109027a")
#: FRAME 1, reliable.
FRAME = bytes.fromhex("2501")
DECLARE = bytes.fromhex("1e")
#: PUSH, REQUEST 1 and RESPONSE 1 with the empty key, by the id of the body they hold.
PUSH, REQUEST, RESPONSE = bytes.fromhex("5d00"), bytes.fromhex("5c0100"), bytes.fromhex("5b0100")
AROUND = {0x01: PUSH, 0x02: PUSH, 0x03: REQUEST, 0x04: RESPONSE, 0x05: RESPONSE}

NETWORK_KINDS = {record_filter(cls.__name__) for cls in NETWORK.members.values()}


# --- rows as packets ----------------------------------------------------------------------------


def looked_at(name: str) -> list[Row]:
    """The rows of a file. On the port of scouting, only datagrams of three bytes with version 9 are taken for Zenoh."""
    rows = vector_rows(name)
    kept = [row for row in rows if row["layer"] != "scouting" or len(row["hex"]) >= 6 and row["hex"][2:4] == "09"]
    assert len(kept) > 0.95 * len(rows)
    return kept


def wrapped(row: Row) -> bytes:
    """The bytes of a row inside what such bytes stand in."""
    data = bytes.fromhex(row["hex"])
    match row["layer"]:
        case "network":
            return FRAME + data
        case "declare":
            return FRAME + DECLARE + data
        case "data":
            return FRAME + AROUND.get(data[0] & 0x1F if data else 0, PUSH) + data
    return data


def write(rows: list[Row], path: Path) -> dict[int, Row]:
    """A capture of these rows; returns which packet holds which row."""
    packets: list[bytes] = []
    places = {}
    for number, row in enumerate(rows):
        ends = f"10.0.{number >> 8}.{number & 0xFF}", "10.1.0.1"
        port = SCOUTING if row["layer"] == "scouting" else ZENOH
        for data in [*([INIT] if port == ZENOH else []), wrapped(row)]:
            packets.append(ethernet(ipv4(*ends, UDP, udp(50000, port, data))))
        places[len(packets)] = row
    path.write_bytes(pcap([record(10**9 + n, packet) for n, packet in enumerate(packets)]))
    return places


def shown(rows: list[Row], folder: Path) -> Iterator[tuple[Row, list[Message]]]:
    """Each row with the messages that tshark shows of it, without those that are around it."""
    path = folder / "vectors.pcap"
    places = write(rows, path)
    messages: dict[int, list[Message]] = defaultdict(list)
    for message in tshark(path, most=max(places)).messages:
        messages[message.frame].append(message)
    for place, row in places.items():
        inside = row["layer"] not in ("scouting", "transport")
        yield row, messages[place][inside:]


# --- values -------------------------------------------------------------------------------------


def records_of(items: list[Item], skip: str) -> list[tuple[str, dict[str, list[Item]]]]:
    """The records of a message in wire order, each with its fields; ``skip`` is one that is around the row."""
    found: list[tuple[str, dict[str, list[Item]]]] = []
    for item in items:
        if not item.raw and not item.value and ("." not in item.name or item.name.count(".") == 1 and _is_record(item)):
            found.append((item.name, defaultdict(list)))
            continue
        owner = item.name.rpartition(".")[0]
        home = next(fields for name, fields in reversed(found) if name == owner or owner == "ext" == name[:3])
        home[item.name].append(item)
    return [entry for entry in found if entry[0] != skip]


def _is_record(item: Item) -> bool:
    return item.name.startswith(("ext.", "auth."))


def flat(want: Wanted) -> Iterator[Wanted]:
    """A packet, its extensions and its body, in wire order."""
    yield want
    for ext in want.exts:
        yield from flat(ext)
    if want.body is not None:
        yield from flat(want.body)


def text_of(name: str, value: Any) -> list[str]:
    """A value of a row as tshark shows it; of bytes the hexadecimal."""
    if value is None or name == "reserved" and not value:
        return []
    if isinstance(value, list):
        return [text for element in value for text in text_of(name, element)]
    if isinstance(value, bytes):
        return [value.hex()]
    if name == "ts_time":  # NTP64: seconds and a binary fraction
        return [str((value >> 32) * 10**9 + ((value & 0xFFFFFFFF) * 10**9 >> 32))]
    return [shown_text(value) if isinstance(value, str) else str(int(value))]


def differences(message: Message, want: Wanted, around: str) -> Iterator[str]:
    """Where a message is not what a row describes."""
    if message.faults:
        yield f"faults {message.faults}"
    wants, records = list(flat(want)), records_of(message.items, around)
    names = [record_filter(one.cls.__name__) for one in wants]
    if names != [name for name, _ in records]:
        yield f"shown {[name for name, _ in records]}, the row says {names}"
        return
    for one, (_, fields) in zip(wants, records, strict=True):
        flags = {"Z": int(bool(one.exts))} if "Z" in {field.name for field in one.cls.fields_desc} else {}
        for name, value in (one.values | flags | one.derived).items():
            items = fields.get(filter_of(one.cls.__name__, name), [])
            found = [item.raw if isinstance(value, bytes) else item.value for item in items]
            if found != text_of(name, value):
                yield f"{one.cls.__name__}.{name}: shown {found}, the row says {value!r}"


def test_tshark_shows_the_values_that_went_in(tmp_path: Path) -> None:
    wrong = []
    for row, messages in shown(looked_at("zenoh-pico-valid.jsonl"), tmp_path):
        want = wanted(row)
        around = {"declare": "declare", "data": messages[0].items[0].name if messages else ""}.get(row["layer"], "")
        for one, message in zip([want, *(want.msgs or ())], messages, strict=False):
            wrong += [f"{row['id']}: {line}" for line in differences(message, one, around)]
        if len(messages) < 1 + len(want.msgs or ()):
            wrong.append(f"{row['id']}: shown {[message.kind for message in messages]}")
    assert not wrong, "\n".join(wrong[:20])


# --- verdicts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told(Case):
    """A row with the verdict of tshark in place of Scapy's."""

    verdict: bool

    @property
    def good(self) -> bool:
        return self.verdict


def accepted(row: Row, messages: list[Message]) -> bool:
    """Whether the message of a row is there without a fault; what follows it does not count."""
    if not messages:
        return False
    first, *others = messages
    if row["layer"] != "transport" and row["layer"] != "scouting" and first.kind not in NETWORK_KINDS:
        return False  # the FRAME has ended before it
    mine = [first]
    if first.kind == "frame":
        for message in others:
            if message.kind not in NETWORK_KINDS and message.kind != "unknown":
                break
            mine.append(message)
    return not any(fault.kind != "trailing_bytes" for message in mine for fault in message.faults)


def test_the_verdict_of_tshark_is_that_of_the_nodes(tmp_path: Path) -> None:
    wrong = []
    for row, messages in shown(looked_at("zenoh-pico-damaged.jsonl"), tmp_path):
        read = case_of(row)
        told = Told(read.row, read.data, read.packet, read.rest, accepted(row, messages))
        if told.good != read.good:
            faults = [fault for message in messages for fault in message.faults]
            wrong.append(f"Scapy says the opposite: {told}, shown {faults}")
        elif complaint(told):
            wrong.append(str(complaint(told)))
    assert not wrong, "\n".join(wrong[:20])
