"""The vectors of another implementation, wrapped into captures, through the compiled reader alone.

Values and verdicts are those of the rows; Scapy's classes only lend their names to them.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from scapy_zenoh.recording import Recording
from scapy_zenoh.schema.columns import RECORD
from tests.bulk.compare import ODD, USUAL, Cut, cutting
from tests.decode.test_vectors import expected
from tests.vectors.test_damaged import case_of, complaint
from tests.wireshark.test_vectors import Row, Told, looked_at, write

#: What the session knows, or where a message stands; the rest is in its bytes.
ELSEWHERE = {"link", "session", "src_zid", "dst_zid", "batch", "msg", "key", "fragments", "compressed", "lowlatency"}
TOLD = [column.name for column in RECORD if column.name not in ELSEWHERE]


def shown(name: str, folder: Path, cut: Cut) -> tuple[list[tuple[Row, list[dict[str, Any]]]], int]:
    """Each vector with the rows of its messages, without those around it; and how many of all were in columns."""
    vectors = looked_at(name)
    path = folder / "vectors.pcap"
    places = write(vectors, path)
    messages: dict[int, list[dict[str, Any]]] = defaultdict(list)
    in_columns = 0
    with cutting(cut):
        for piece in Recording([path], compiled=True).pieces():
            in_columns += 0 if piece.columns is None else piece.columns.num_rows
            for row in piece.rows():
                if row["fragments"] is None:  # what was put together is no part of the vector
                    messages[row["frame"]].append(row)
    found = [(row, messages[at][row["layer"] not in ("scouting", "transport") :]) for at, row in places.items()]
    return found, in_columns


@pytest.mark.parametrize("cut", [USUAL, ODD])
def test_values_are_those_that_went_in(cut: Cut, tmp_path: Path) -> None:
    found, in_columns = shown("zenoh-pico-valid.jsonl", tmp_path, cut)
    wrong = []
    for vector, messages in found:
        wants = expected(vector)
        inside = vector["layer"] not in ("scouting", "transport")
        for want in wants:
            if inside:  # the FRAME around it
                want.sn, want.reliable = 1, True
        if [want.kind for want in wants] != [message["kind"] for message in messages]:
            wrong.append(f"{vector['id']}: {[message['kind'] for message in messages]}")
        for want, message in zip(wants, messages, strict=False):
            for name in TOLD:
                if message[name] != getattr(want, name):
                    wrong.append(f"{vector['id']}: {name} {message[name]!r}, the row says {getattr(want, name)!r}")
    assert not wrong, "\n".join(wrong[:20])
    assert in_columns > len(found)


def accepted(vector: Row, messages: list[dict[str, Any]]) -> bool:
    """Whether the message of a vector is there without a fault; what follows it does not count."""
    if not messages:
        return False
    first, *others = messages
    if vector["layer"] not in ("scouting", "transport") and first["layer"] != "network":
        return False  # the FRAME has ended before it
    mine = [first]
    if first["kind"] == "frame":
        for message in others:
            if message["layer"] != "network" and message["kind"] != "unknown":
                break
            mine.append(message)
    return not any(message["fault"] not in (None, "trailing_bytes") for message in mine)


def test_verdicts_are_those_of_the_nodes(tmp_path: Path) -> None:
    found, in_columns = shown("zenoh-pico-damaged.jsonl", tmp_path, USUAL)
    wrong = []
    for vector, messages in found:
        case = case_of(vector)
        told = Told(case.row, case.data, case.packet, case.rest, accepted(vector, messages))
        if told.good != case.good:
            wrong.append(f"Scapy says the opposite: {told}, shown {[message['fault'] for message in messages]}")
        elif complaint(told):
            wrong.append(str(complaint(told)))
    assert not wrong, "\n".join(wrong[:20])
    assert in_columns
