"""A packet that is missing is told as so many bytes at that place, and a fault with its offset."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from scapy_zenoh.capture import CaptureReader, Packet
from scapy_zenoh.follow import Follower
from tests.conftest import LAB

CAPTURE = next((LAB / "captures").glob("s04_query.pcap*"))


def followed(packets: list[Packet]) -> tuple[Follower, list[dict[str, Any]]]:
    follower = Follower()
    rows = [row for packet in packets for row in follower.feed(packet)]
    return follower, rows + follower.finish()


@pytest.mark.parametrize("nth", [0, 3, 20, 60])
def test_missing_packet_is_a_gap_of_its_size_at_its_place(nth: int) -> None:
    packets = list(CaptureReader([str(CAPTURE)]))
    with_data = [p for p in packets if p.proto == "tcp" and p.payload]
    lost = with_data[nth]
    before: dict[tuple[str, int, str, int], int] = defaultdict(int)
    for packet in with_data[:nth]:
        before[packet[3:7]] += len(packet.payload)
    follower, _ = followed([p for p in packets if p.frame != lost.frame])
    (gap,) = follower.gaps
    assert (gap["src"], gap["offset"], gap["bytes"]) == (
        f"{lost.src}:{lost.sport}",
        before[lost[3:7]],
        len(lost.payload),
    )
    assert follower.accounting.missing_bytes == len(lost.payload)


def test_fault_says_where_it_is() -> None:
    packets = list(CaptureReader([str(CAPTURE)]))
    at = next(i for i, p in enumerate(packets) if b"demo/query/a" in p.payload and p.payload[2] & 0x1F == 5)
    data = packets[at].payload
    broken = data.replace(b"demo/query/a", b"demo/quer\xff/a")
    packets[at] = packets[at]._replace(payload=broken)
    _, rows = followed(packets)
    (row,) = [row for row in rows if row["fault"]]
    # the key is declared first: header, number, scope and length are a byte each, then the suffix begins
    assert (row["body"], row["fault"], row["fault_offset"]) == ("declare_keyexpr", "bad_utf8", 4)
