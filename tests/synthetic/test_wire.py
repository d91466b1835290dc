"""The direct encoders write what nodes write: bytes that were recorded, and what the layers read in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scapy_zenoh import parse, rebuild
from scapy_zenoh.synthetic import wire
from scapy_zenoh.values import ntp64_to_ns

B0B, ROUTER = wire.zid_bytes("b0b"), wire.zid_bytes("a1b2c3")
COOKIE = bytes.fromhex("20f02b7cef7f637f2a9fc764e6eb1233c373da38591e540f1280e24851e8fbf302")
OFFER = (wire.EXT_LANES, wire.EXT_PATCH)
PREDEFINED = {"text/plain": wire.encoding(4), "application/json": wire.encoding(5)}

# What was recorded from nodes (1.10.2), next to the call that must give the same.
RECORDED = [
    ("transport", "c10912 0b0b 0a c8ff 81 2701", wire.init(B0B, wire.CLIENT, 0x0A, 65480, *OFFER)),
    (
        "transport",
        f"e10920 c3b2a1 0a 00c0 21{COOKIE.hex()} 81 2701",
        wire.init(ROUTER, wire.ROUTER, 0x0A, 49152, *OFFER, cookie=COOKIE),
    ),
    (
        "transport",
        f"610920 c3b2a1 0a 00c0 21{COOKIE.hex()}",
        wire.init(ROUTER, wire.ROUTER, 0x0A, 49152, cookie=COOKIE),
    ),
    ("transport", f"42 0a d6d8fc0b 21{COOKIE.hex()}", wire.open_syn(10, 25111638, COOKIE)),
    ("transport", "62 0a bf80b349", wire.open_ack(10, 153927743)),
    ("transport", "0300", wire.CLOSE),
    ("transport", "04", wire.KEEP_ALIVE),
    (
        "transport",
        "25 c1af803c 7d00 06 64656d6f2f61 01 05 68656c6c6f",
        wire.frame(125835201, True) + wire.push(0, "demo/a", True) + wire.put(b"hello"),
    ),
    (
        "transport",
        "a5 c1af803c 3100 9e2108 2001 00 06 64656d6f2f70 f901530121 08",
        wire.frame(125835201, True, wire.CONTROL)
        + wire.declare(wire.declare_keyexpr(1, "demo/p"))
        + wire.interest_in_subscribers(1, 1, ""),
    ),
    (
        "transport",
        "05 bf80b349 3d01 02 2f78 01 02 6265",
        wire.frame(153927743, False) + wire.push(1, "/x", False) + wire.put(b"be"),
    ),
    ("transport", "e6 d6d8fc0b 02 7d0005", wire.fragment(25111638, True, True, True) + b"\x7d\x00\x05"),
    ("transport", "66 d7d8fc0b ed", wire.fragment(25111639, True, True, False) + b"\xed"),
    ("transport", "26 dad8fc0b d8", wire.fragment(25111642, True, False, False) + b"\xd8"),
    ("transport", "e6 d6d8fc0b b101 02 00", wire.fragment(25111638, True, True, True, 1) + b"\x00"),
    (
        "network",
        "fd00 06 64656d6f2f61 2119 c1 09 05 7574662d38 43 03 617474 02 6869",
        wire.push(0, "demo/a", True, 0x19) + wire.put(b"hi", wire.encoding(4, "utf-8"), attachment=b"att"),
    ),
    ("network", "5d01 41 0a 02 7b7d", wire.push(1, "", True) + wire.put(b"{}", PREDEFINED["application/json"])),
    ("network", "fc 01 00 03 712f61 a10d 26d00f 2303", wire.request(1, 0, "q/a", True, 0x0D, 0, 2000) + wire.query(3)),
    (
        "network",
        "fc 02 00 03 712f2a a10d b401 26c413 e3 01 0a 6b3d763b5f616e796b65 c3 03 08504c 45 02 4154",
        wire.request(2, 0, "q/*", True, 0x0D, 1, 2500)
        + wire.query(1, "k=v;_anyke", (PREDEFINED["text/plain"], b"PL"), b"AT"),
    ),
    (
        "network",
        "bc 01 01 04 2f657272 a10d 26d00f 2303",
        wire.request(1, 1, "/err", False, 0x0D, 0, 2000) + wire.query(3),
    ),
    (
        "network",
        "fb 01 00 03 712f61 a10d 43 05 20c3b2a106 04 81 43 01 78 02 5231",
        wire.response(1, 0, "q/a", True, 0x0D, ROUTER, 6) + wire.reply(wire.put(b"R1", attachment=b"x")),
    ),
    (
        "network",
        "fb 02 00 03 712f62 a10d 43 05 20c3b2a106 04 02",
        wire.response(2, 0, "q/b", True, 0x0D, ROUTER, 6) + wire.reply(wire.delete()),
    ),
    (
        "network",
        "fb 03 00 05 712f657272 a10d 43 05 20c3b2a106 45 08 03 626164",
        wire.response(3, 0, "q/err", True, 0x0D, ROUTER, 6) + wire.err(b"bad", PREDEFINED["text/plain"]),
    ),
    ("network", "9a 01 210d", wire.response_final(1, 0x0D)),
    ("network", "1a 07", wire.response_final(7)),
    (
        "network",
        "be 01 2108 62 01 00 07 64656d6f2f2a2a",
        wire.declare(wire.declare_subscriber(1, 0, "demo/**", True), 1),
    ),
    ("network", "be 01 2108 1a", wire.declare(wire.FINAL_DECLARATION, 1)),
    ("network", "f9 01 53 01 2108", wire.interest_in_subscribers(1, 1, "")),
    ("declare", "01 01", wire.undeclare_keyexpr(1)),
    ("declare", "62 01 01 03 2f2a2a", wire.declare_subscriber(1, 1, "/**", True)),
    ("declare", "03 01", wire.undeclare_subscriber(1)),
    ("declare", "64 01 01 03 2f2a2a", wire.declare_queryable(1, 1, "/**", True, False)),
    ("declare", "e4 03 00 04 712f2a2a 21 01", wire.declare_queryable(3, 0, "q/**", True, True)),
    ("declare", "85 03 5f 02 00 00", wire.undeclare_queryable(3)),
    ("declare", "46 02 02", wire.declare_token(2, 2, "", True)),
    ("declare", "06 00 02", wire.declare_token(0, 2, "", False)),
    ("declare", "66 00 00 06 6c6976652f61", wire.declare_token(0, 0, "live/a", True)),
    ("declare", "87 01 5f 02 00 00", wire.undeclare_token(1)),
    ("data", "01 05 68656c6c6f", wire.put(b"hello")),
    (
        "data",
        "61 e18096fc819fccfe6a 10 100f0e0d0c0b0a090807060504030211 0a 02 7b7d",
        wire.put(
            b"{}",
            PREDEFINED["application/json"],
            wire.timestamp(7709371979367022689, wire.zid_bytes("1102030405060708090a0b0c0d0e0f10")),
        ),
    ),
    ("data", "01 00", wire.put(b"")),
    ("data", "02", wire.delete()),
    ("data", "22 e18096fc819fccfe6a 02 0b0b", wire.delete(wire.timestamp(7709371979367022689, B0B))),
    ("data", "82 42 01 78", wire.delete(attachment=b"x")),
    ("data", "23 03", wire.query(3)),
    ("data", "03", wire.query(0)),
    ("data", "63 03 03 613d31", wire.query(3, "a=1")),
    ("data", "83 43 03 08 504c", wire.query(0, body=(PREDEFINED["text/plain"], b"PL"))),
    ("data", "05 00", wire.err(b"")),
]


@pytest.mark.parametrize(("layer", "recorded", "made"), RECORDED)
def test_bytes_are_those_of_a_node(layer: str, recorded: str, made: bytes) -> None:
    assert made.hex() == recorded.replace(" ", "")
    packet, rest = parse(made, layer)
    assert (packet.fault, rest) == (None, b"")
    assert rebuild(packet) == made


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (16383, "ff7f"), (16384, "808001"), (65535, "ffff03"),
        (2097151, "ffff7f"), (2097152, "80808001"), (2**28 - 1, "ffffff7f"), (2**28, "8080808001"),
        (2**32 - 1, "ffffffff0f"), (2**35, "808080808001"), (2**56 - 1, "ffffffffffffff7f"),
        (2**56, "808080808080808001"), (2**63, "808080808080808080"), (2**64 - 1, "ffffffffffffffffff"),
    ],
)  # fmt: skip
def test_numbers(value: int, expected: str) -> None:
    assert wire.vle(value).hex() == expected


@pytest.mark.parametrize(
    ("number", "schema", "expected"),
    [(0, None, ""), (4, None, "08"), (4, "utf-8", "0905" + b"utf-8".hex()), (64, None, "8001"),
     (0xFFFF, "my/enc", "ffff0706" + b"my/enc".hex()), (0, "", "0100")],
)  # fmt: skip
def test_encodings(number: int, schema: str | None, expected: str) -> None:
    assert wire.encoding(number, schema).hex() == expected


# --- any values ---------------------------------------------------------------------------------

ids = st.integers(0, 2**32 - 1)
scopes = st.integers(0, 65535)
suffixes = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
qualities = st.integers(0, 0x3F)
zids = st.integers(1, 2**128 - 1).map(lambda n: f"{n:x}")
times = st.integers(2**56, 2**63)
blobs = st.binary(max_size=300)
maybe_blobs = st.none() | blobs
encodings = st.tuples(st.integers(0, 65535), st.none() | st.text(st.characters(codec="ascii"), max_size=60))


def read(data: bytes, layer: str) -> Any:
    packet, rest = parse(data, layer)
    assert (packet.fault, rest) == (None, b""), data.hex()
    assert rebuild(packet) == data
    return packet


def ext(packet: Any, name: str) -> Any:
    return next((e for e in packet.exts or () if type(e).__name__ == name), None)


def told_qos(packet: Any) -> int:
    found = ext(packet, "ZenohExtQoS")
    if found is None:
        return wire.DEFAULT_QOS
    return int(found.priority | found.block << 3 | found.express << 4 | found.block_first << 5)


def key(packet: Any) -> tuple[int, str, bool]:
    return packet.scope, packet.suffix or "", bool(packet.M)


@given(scopes, suffixes, st.booleans(), qualities, blobs, encodings, st.none() | st.tuples(times, zids), maybe_blobs)
def test_push_of_any_values(
    scope: int, suffix: str, sender: bool, qos: int, payload: bytes, enc: tuple[int, str | None],
    stamp: tuple[int, str] | None, attachment: bytes | None,
) -> None:  # fmt: skip
    stamped = wire.timestamp(stamp[0], wire.zid_bytes(stamp[1])) if stamp else b""
    made = wire.push(scope, suffix, sender, qos) + wire.put(payload, wire.encoding(*enc), stamped, attachment)
    packet = read(made, "network")
    assert (key(packet), told_qos(packet)) == ((scope, suffix, sender), qos)
    put = packet.payload
    assert put.data == payload
    assert (put.encoding_id or 0, put.schema) == enc
    assert ((put.ts_time, put.ts_id) if put.T else None) == stamp
    assert (ext(put, "ZenohExtAttachment").data if put.exts else None) == attachment


@given(st.none() | st.tuples(times, zids), maybe_blobs)
def test_deletion_of_any_values(stamp: tuple[int, str] | None, attachment: bytes | None) -> None:
    stamped = wire.timestamp(stamp[0], wire.zid_bytes(stamp[1])) if stamp else b""
    packet = read(wire.delete(stamped, attachment), "data")
    assert ((packet.ts_time, packet.ts_id) if packet.T else None) == stamp
    assert (ext(packet, "ZenohExtDelAttachment").data if packet.exts else None) == attachment


@given(
    ids, scopes, suffixes, qualities, st.integers(0, 2), st.integers(0, 2**40), st.integers(0, 3), suffixes,
    st.none() | st.tuples(encodings, blobs), maybe_blobs,
)  # fmt: skip
def test_request_of_any_values(
    rid: int, scope: int, suffix: str, qos: int, target: int, timeout: int, mode: int, parameters: str,
    body: tuple[tuple[int, str | None], bytes] | None, attachment: bytes | None,
) -> None:  # fmt: skip
    content = (wire.encoding(*body[0]), body[1]) if body else None
    made = wire.request(rid, scope, suffix, True, qos, target, timeout)
    packet = read(made + wire.query(mode, parameters, content, attachment), "network")
    assert (packet.request_id, key(packet), told_qos(packet)) == (rid, (scope, suffix, True), qos)
    assert (ext(packet, "ZenohExtQueryTarget").target if target else 0) == target
    assert (ext(packet, "ZenohExtTimeout").timeout if timeout else 0) == timeout
    query = packet.payload
    assert ((query.consolidation if query.C else 0), query.parameters or "") == (mode, parameters)
    found = ext(query, "ZenohExtQueryBody")
    assert (((found.encoding_id or 0, found.schema), found.data) if found else None) == body
    assert (ext(query, "ZenohExtQueryAttachment").data if attachment is not None else None) == attachment


@given(ids, scopes, suffixes, st.booleans(), qualities, zids, ids, blobs, encodings)
def test_response_of_any_values(
    rid: int, scope: int, suffix: str, sender: bool, qos: int, zid: str, entity: int, payload: bytes,
    enc: tuple[int, str | None],
) -> None:  # fmt: skip
    head = wire.response(rid, scope, suffix, sender, qos, wire.zid_bytes(zid), entity)
    for body in (wire.reply(wire.put(payload, wire.encoding(*enc))), wire.err(payload, wire.encoding(*enc))):
        packet = read(head + body, "network")
        assert (packet.request_id, key(packet), told_qos(packet)) == (rid, (scope, suffix, sender), qos)
        responder = ext(packet, "ZenohExtResponderId")
        assert (responder.zid, responder.entity) == (zid, entity)
        last = packet.lastlayer()
        assert (last.data, last.encoding_id or 0, last.schema) == (payload, *enc)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(0, 7), st.booleans(), st.booleans(), blobs)
def test_frame_and_fragment_of_any_values(
    sn: int, reliable: bool, priority: int, more: bool, first: bool, data: bytes
) -> None:
    frame = read(wire.frame(sn, reliable, priority), "transport")
    fragment = read(wire.fragment(sn, reliable, more, first, priority) + data, "transport")
    for packet in (frame, fragment):
        lane = ext(packet, "ZenohExtLane")
        assert (packet.sn, packet.R, lane.priority if lane else wire.DATA) == (sn, reliable, priority)
    assert (fragment.M, ext(fragment, "ZenohExtFirst") is not None, fragment.data) == (more, first, data)


@given(ids, scopes, suffixes, st.booleans(), st.booleans())
def test_declarations_of_any_values(number: int, scope: int, suffix: str, sender: bool, complete: bool) -> None:
    for made in (
        wire.declare_subscriber(number, scope, suffix, sender),
        wire.declare_queryable(number, scope, suffix, sender, complete),
        wire.declare_token(number, scope, suffix, sender),
    ):
        packet = read(made, "declare")
        assert (packet.id, *key(packet)) == (number, scope, suffix, sender)
        info = ext(packet, "ZenohExtQueryableInfo") if type(packet).__name__ == "ZenohDeclareQueryable" else None
        assert info is None or bool(info.complete) is complete
    interest = read(wire.interest_in_subscribers(number, scope, suffix), "network")
    assert (interest.id, interest.scope, interest.suffix or "") == (number, scope, suffix)


@given(st.integers(0, 2**62))
def test_times_come_back_within_a_nanosecond(ns: int) -> None:
    assert 0 <= ns - ntp64_to_ns(wire.ntp64(ns)) <= 1


@given(st.integers(0, 10**11), st.integers(1, 10**9), st.integers(1, 40))
def test_timestamps_in_bulk_are_those_one_by_one(first: int, step: int, count: int) -> None:
    start = 1_767_225_600 * 10**9 + first
    times = range(start, start + count * step, step)
    ntps, stamps = wire.timestamps(times, b"\x01\x02")
    assert ntps == [wire.ntp64(t) for t in times]
    assert stamps == [wire.timestamp(ntp, b"\x01\x02") for ntp in ntps]


@pytest.mark.parametrize("attachment", [None, b"more"])
@pytest.mark.parametrize("enc", [b"", b"\x06"])
def test_timestamp_can_be_added_later(enc: bytes, attachment: bytes | None) -> None:
    stamp = wire.timestamp(wire.ntp64(1_767_225_600 * 10**9), b"\x01")
    assert wire.stamped(wire.put(b"abc", enc, b"", attachment), stamp) == wire.put(b"abc", enc, stamp, attachment)
    packet, rest = parse(wire.put(b"abc", enc, stamp, attachment), "data")
    assert (packet.fault, rest, packet.T, packet.ts_id) == (None, b"", 1, "1")
    packet, rest = parse(wire.stamped(wire.delete(b"", attachment), stamp), "data")
    assert (packet.fault, rest, packet.T, packet.ts_id) == (None, b"", 1, "1")
