"""Bytes of the messages that made traffic consists of, written directly.

One function per message, for the forms that are sent; the tests read them back with the Scapy layers.
Extensions stand in the order in which nodes write them, and defaults are left out as nodes do.
"""

from __future__ import annotations

from collections.abc import Sequence

VERSION = 0x09
DEFAULT_QOS = 0x05  # data, drop, not express: the extension is left out
CONTROL_QOS = 0x08  # control, block: of all declarations
DATA = 5  # the priority of a lane without extension
CONTROL = 0

ROUTER, CLIENT = 0, 2
DEFAULT_RESOLUTION, DEFAULT_BATCH = 0x0A, 0xFFFF

KEEP_ALIVE = b"\x04"
CLOSE = b"\x03\x00"
FINAL_DECLARATION = b"\x1a"

EXT_LANES, EXT_LOW_LATENCY, EXT_COMPRESSION = b"\x01", b"\x05", b"\x06"
EXT_PATCH = b"\x27\x01"

# --- primitives ---------------------------------------------------------------------------------

_PAIRS = tuple(bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(1 << 14))
_SHORT = tuple(bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(1 << 14))


def vle(value: int) -> bytes:
    """A number in as few bytes as it takes, seven bits each; a ninth byte carries eight."""
    if value < 1 << 14:
        return _SHORT[value]
    if value < 1 << 28:
        return _PAIRS[value & 0x3FFF] + _SHORT[value >> 14]
    out = bytearray()
    while value > 0x7F and len(out) < 8:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def counted(data: bytes) -> bytes:
    """Bytes with their number in front."""
    return vle(len(data)) + data


def zid_bytes(text: str) -> bytes:
    """The id of a node as it is on the wire: little-endian, without zero bytes at the end."""
    number = int(text, 16)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def packed_zid(zid: bytes, low: int = 0) -> bytes:
    """A byte with the length of an id in its high half, then the id."""
    return bytes(((len(zid) - 1) << 4 | low,)) + zid


def ntp64(ns: int) -> int:
    """Nanoseconds since 1970 as NTP64."""
    return (ns << 32) // 1_000_000_000


def timestamp(ntp: int, zid: bytes) -> bytes:
    """A time (NTP64, after 1970 by more than 2^24 s, so always nine bytes) and whose clock it is."""
    return _PAIRS[ntp & 0x3FFF] + _PAIRS[ntp >> 14 & 0x3FFF] + _timestamp_end(ntp >> 28, zid)


def timestamps(times: Sequence[int], zid: bytes) -> tuple[list[int], list[bytes]]:
    """Rising times in nanoseconds as NTP64, and as timestamps of one node: in bulk, half the time of one by one."""
    pairs = _PAIRS
    ntps = [(ns << 32) // 1_000_000_000 for ns in times]
    if ntps[0] >> 28 != ntps[-1] >> 28:
        return ntps, [timestamp(ntp, zid) for ntp in ntps]
    end = _timestamp_end(ntps[0] >> 28, zid)
    return ntps, [pairs[ntp & 0x3FFF] + pairs[ntp >> 14 & 0x3FFF] + end for ntp in ntps]


def _timestamp_end(sixteenths: int, zid: bytes) -> bytes:
    """What is the same for all timestamps of a node in a sixteenth of a second."""
    pairs = _PAIRS[sixteenths & 0x3FFF] + _PAIRS[sixteenths >> 14 & 0x3FFF]
    return pairs + bytes((sixteenths >> 28, len(zid))) + zid


def encoding(number: int, schema: str | None = None) -> bytes:
    """What a payload is; empty for the default, which is left out."""
    if schema is None:
        return vle(number << 1) if number else b""
    return vle(number << 1 | 1) + counted(schema.encode())


def _chain(*extensions: bytes) -> bytes:
    """Extensions in a row: all but the last say that another one follows."""
    present = [e for e in extensions if e]
    if len(present) < 2:
        return present[0] if present else b""
    return b"".join([bytes((e[0] | 0x80,)) + e[1:] for e in present[:-1]]) + present[-1]


def _qos(byte: int) -> bytes:
    return b"" if byte == DEFAULT_QOS else b"\x21" + bytes((byte,))


def whole_key(key: str) -> bytes:
    """A key without any id, as it follows the id of a declaration."""
    text = key.encode()
    return b"\x00" + vle(len(text)) + text


def _wire_expr(scope: int, suffix: str) -> bytes:
    return vle(scope) + (counted(suffix.encode()) if suffix else b"")


def _key_flags(suffix: str, sender: bool) -> int:
    return (0x20 if suffix else 0) | (0x40 if sender else 0)


# --- transport ----------------------------------------------------------------------------------


def init(
    zid: bytes, whatami: int, resolution: int, batch_size: int, *exts: bytes, cookie: bytes | None = None
) -> bytes:
    """INIT: the first message each way; with a cookie it is the answer."""
    sized = (resolution, batch_size) != (DEFAULT_RESOLUTION, DEFAULT_BATCH)
    chain = _chain(*exts)
    header = 0x01 | (0x20 if cookie is not None else 0) | (0x40 if sized else 0) | (0x80 if chain else 0)
    size = bytes((resolution,)) + batch_size.to_bytes(2, "little") if sized else b""
    answer = counted(cookie) if cookie is not None else b""
    return bytes((header, VERSION)) + packed_zid(zid, whatami) + size + answer + chain


def open_syn(lease_s: int, initial_sn: int, cookie: bytes) -> bytes:
    """OPEN of the side that connects."""
    return b"\x42" + vle(lease_s) + vle(initial_sn) + counted(cookie)


def open_ack(lease_s: int, initial_sn: int) -> bytes:
    """OPEN of the side that listens."""
    return b"\x62" + vle(lease_s) + vle(initial_sn)


def frame(sn: int, reliable: bool, priority: int = DATA) -> bytes:
    """A FRAME up to its messages."""
    header = 0x25 if reliable else 0x05
    if priority == DATA:
        return bytes((header,)) + vle(sn)
    return bytes((header | 0x80,)) + vle(sn) + bytes((0x31, priority))


def fragment(sn: int, reliable: bool, more: bool, first: bool, priority: int = DATA) -> bytes:
    """A FRAGMENT up to its data."""
    chain = _chain(b"" if priority == DATA else bytes((0x31, priority)), b"\x02" if first else b"")
    header = 0x06 | (0x20 if reliable else 0) | (0x40 if more else 0) | (0x80 if chain else 0)
    return bytes((header,)) + vle(sn) + chain


# --- network ------------------------------------------------------------------------------------


def push(scope: int, suffix: str, sender: bool, qos: int = DEFAULT_QOS) -> bytes:
    """PUSH up to its body."""
    chain = _qos(qos)
    header = 0x1D | _key_flags(suffix, sender) | (0x80 if chain else 0)
    return bytes((header,)) + _wire_expr(scope, suffix) + chain


def request(
    rid: int, scope: int, suffix: str, sender: bool, qos: int = DEFAULT_QOS, target: int = 0, timeout_ms: int = 0
) -> bytes:
    """REQUEST up to its body."""
    chain = _chain(
        _qos(qos), b"\x34" + vle(target) if target else b"", b"\x26" + vle(timeout_ms) if timeout_ms else b""
    )
    header = 0x1C | _key_flags(suffix, sender) | (0x80 if chain else 0)
    return bytes((header,)) + vle(rid) + _wire_expr(scope, suffix) + chain


def response(rid: int, scope: int, suffix: str, sender: bool, qos: int, responder: bytes, entity: int) -> bytes:
    """RESPONSE up to its body; an empty key is what an ERR of a router has."""
    chain = _chain(_qos(qos), b"\x43" + counted(packed_zid(responder) + vle(entity)))
    return bytes((0x9B | _key_flags(suffix, sender),)) + vle(rid) + _wire_expr(scope, suffix) + chain


def around_id(message: bytes) -> tuple[bytes, bytes]:
    """What is before and after the number in a message that begins with one and was made with number 0."""
    return message[:1], message[2:]


def response_final(rid: int, qos: int = DEFAULT_QOS) -> bytes:
    """RESPONSE_FINAL."""
    chain = _qos(qos)
    return bytes((0x1A | (0x80 if chain else 0),)) + vle(rid) + chain


_DECLARE = b"\x9e" + _qos(CONTROL_QOS)


def declare(declaration: bytes, interest_id: int | None = None) -> bytes:
    """DECLARE with its declaration; with an id it answers that interest."""
    if interest_id is None:
        return _DECLARE + declaration
    return b"\xbe" + vle(interest_id) + _qos(CONTROL_QOS) + declaration


def interest_in_subscribers(number: int, scope: int, suffix: str) -> bytes:
    """INTEREST in the subscribers on a key, those there are and those to come."""
    options = 0x53 | (0x20 if suffix else 0)
    return b"\xf9" + vle(number) + bytes((options,)) + _wire_expr(scope, suffix) + _qos(CONTROL_QOS)


# --- declarations -------------------------------------------------------------------------------


def declare_keyexpr(number: int, key: str) -> bytes:
    """D_KEYEXPR with the whole key."""
    return b"\x20" + vle(number) + _wire_expr(0, key)


def undeclare_keyexpr(number: int) -> bytes:
    """U_KEYEXPR."""
    return b"\x01" + vle(number)


def declare_subscriber(number: int, scope: int, suffix: str, sender: bool) -> bytes:
    """D_SUBSCRIBER."""
    return bytes((0x02 | _key_flags(suffix, sender),)) + vle(number) + _wire_expr(scope, suffix)


def undeclare_subscriber(number: int) -> bytes:
    """U_SUBSCRIBER."""
    return b"\x03" + vle(number)


def declare_queryable(number: int, scope: int, suffix: str, sender: bool, complete: bool) -> bytes:
    """D_QUERYABLE."""
    chain = b"\x21\x01" if complete else b""
    header = 0x04 | _key_flags(suffix, sender) | (0x80 if chain else 0)
    return bytes((header,)) + vle(number) + _wire_expr(scope, suffix) + chain


def undeclare_queryable(number: int) -> bytes:
    """U_QUERYABLE, with the empty key that nodes write."""
    return b"\x85" + vle(number) + b"\x5f\x02\x00\x00"


def declare_token(number: int, scope: int, suffix: str, sender: bool) -> bytes:
    """D_TOKEN."""
    return bytes((0x06 | _key_flags(suffix, sender),)) + vle(number) + _wire_expr(scope, suffix)


def undeclare_token(number: int) -> bytes:
    """U_TOKEN, with the empty key that nodes write."""
    return b"\x87" + vle(number) + b"\x5f\x02\x00\x00"


# --- data ---------------------------------------------------------------------------------------

_STAMPED = tuple(bytes((n | 0x20,)) for n in range(256))


def put_header(encoded: bool, stamped: bool = False, extended: bool = False) -> bytes:
    """The header byte of a PUT: whether it has an encoding, a timestamp, extensions."""
    return bytes((0x01 | (0x20 if stamped else 0) | (0x40 if encoded else 0) | (0x80 if extended else 0),))


def put(payload: bytes, enc: bytes = b"", stamp: bytes = b"", attachment: bytes | None = None) -> bytes:
    """PUT; ``enc`` and ``stamp`` as the functions above make them."""
    size = len(payload)
    length = _SHORT[size] if size < 1 << 14 else vle(size)
    if attachment is None:
        sample = (b"\x41" if enc else b"\x01") + enc + length + payload
    else:
        sample = put_header(bool(enc), extended=True) + enc + b"\x43" + counted(attachment) + length + payload
    return stamped(sample, stamp) if stamp else sample


def stamped(sample: bytes, stamp: bytes) -> bytes:
    """A PUT or DEL that had no timestamp, with one."""
    return _STAMPED[sample[0]] + stamp + sample[1:]


def delete(stamp: bytes = b"", attachment: bytes | None = None) -> bytes:
    """DEL."""
    sample = b"\x02" if attachment is None else b"\x82\x42" + counted(attachment)
    return stamped(sample, stamp) if stamp else sample


def query(
    consolidation: int, parameters: str = "", body: tuple[bytes, bytes] | None = None, attachment: bytes | None = None
) -> bytes:
    """QUERY; the body is an encoding (empty for the default) and a payload."""
    chain = _chain(
        b"\x43" + counted((body[0] or b"\x00") + body[1]) if body else b"",
        b"\x45" + counted(attachment) if attachment is not None else b"",
    )
    header = 0x03 | (0x20 if consolidation else 0) | (0x40 if parameters else 0) | (0x80 if chain else 0)
    text = counted(parameters.encode()) if parameters else b""
    return bytes((header,)) + (vle(consolidation) if consolidation else b"") + text + chain


def reply(sample: bytes) -> bytes:
    """REPLY around a PUT or DEL."""
    return b"\x04" + sample


def err(payload: bytes, enc: bytes = b"") -> bytes:
    """ERR."""
    return bytes((0x45 if enc else 0x05,)) + enc + counted(payload)
