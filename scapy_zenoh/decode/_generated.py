"""Readers of all messages, generated from the classes by scapy_zenoh.decode.generator; do not edit."""

# mypy: ignore-errors
# ruff: noqa

from typing import Any

from scapy_zenoh.decode.runtime import (
    BAD_LENGTH, BAD_UTF8, BAD_VALUE, BODY, BODY_MISSING, CHAIN_CUT, EXTENSIONS, FAULT, FAULT_OFFSET, KIND, LENGTHS,
    LIMIT, PRESENT, RESERVED_ENCODING, STOP, STRIDE, TRUNCATED, UNKNOWN_MESSAGE, VALUES,
    clear, is_utf8, little, note, numbers, peek_byte, peek_vles, short, stop, texts, unknown_extension, vle,
)

# Slots: their numbers, where a row keeps them, and the bits that say so. Spans come first.
SUFFIX, AT_SUFFIX, LEN_SUFFIX, HAS_SUFFIX = 0, VALUES + 0, LENGTHS + 0, 1 << 0
DATA, AT_DATA, LEN_DATA, HAS_DATA = 1, VALUES + 1, LENGTHS + 1, 1 << 1
SCHEMA, AT_SCHEMA, LEN_SCHEMA, HAS_SCHEMA = 2, VALUES + 2, LENGTHS + 2, 1 << 2
TS_ID, AT_TS_ID, LEN_TS_ID, HAS_TS_ID = 3, VALUES + 3, LENGTHS + 3, 1 << 3
SOURCE_ZID, AT_SOURCE_ZID, LEN_SOURCE_ZID, HAS_SOURCE_ZID = 4, VALUES + 4, LENGTHS + 4, 1 << 4
ATTACHMENT, AT_ATTACHMENT, LEN_ATTACHMENT, HAS_ATTACHMENT = 5, VALUES + 5, LENGTHS + 5, 1 << 5
PARAMETERS, AT_PARAMETERS, LEN_PARAMETERS, HAS_PARAMETERS = 6, VALUES + 6, LENGTHS + 6, 1 << 6
RESPONDER_ZID, AT_RESPONDER_ZID, LEN_RESPONDER_ZID, HAS_RESPONDER_ZID = 7, VALUES + 7, LENGTHS + 7, 1 << 7
ZID, AT_ZID, LEN_ZID, HAS_ZID = 8, VALUES + 8, LENGTHS + 8, 1 << 8
REGION, AT_REGION, LEN_REGION, HAS_REGION = 9, VALUES + 9, LENGTHS + 9, 1 << 9
LOCATORS, AT_LOCATORS, LEN_LOCATORS, HAS_LOCATORS = 10, VALUES + 10, LENGTHS + 10, 1 << 10
STATES, AT_STATES, LEN_STATES, HAS_STATES = 11, VALUES + 11, LENGTHS + 11, 1 << 11
SLICES, AT_SLICES, LEN_SLICES, HAS_SLICES = 12, VALUES + 12, LENGTHS + 12, 1 << 12
SLICED_SCHEMA, AT_SLICED_SCHEMA, LEN_SLICED_SCHEMA, HAS_SLICED_SCHEMA = 13, VALUES + 13, LENGTHS + 13, 1 << 13
PIECE, AT_PIECE, LEN_PIECE, HAS_PIECE = 14, VALUES + 14, LENGTHS + 14, 1 << 14
NEXT_SNS, AT_NEXT_SNS, LEN_NEXT_SNS, HAS_NEXT_SNS = 15, VALUES + 15, LENGTHS + 15, 1 << 15
SCOPE, AT_SCOPE, HAS_SCOPE = 16, VALUES + 16, 1 << 16
MAPPING, AT_MAPPING, HAS_MAPPING = 17, VALUES + 17, 1 << 17
NAMED, AT_NAMED, HAS_NAMED = 18, VALUES + 18, 1 << 18
SN, AT_SN, HAS_SN = 19, VALUES + 19, 1 << 19
RELIABLE, AT_RELIABLE, HAS_RELIABLE = 20, VALUES + 20, 1 << 20
PRIORITY, AT_PRIORITY, HAS_PRIORITY = 21, VALUES + 21, 1 << 21
BLOCK, AT_BLOCK, HAS_BLOCK = 22, VALUES + 22, 1 << 22
EXPRESS, AT_EXPRESS, HAS_EXPRESS = 23, VALUES + 23, 1 << 23
BLOCK_FIRST, AT_BLOCK_FIRST, HAS_BLOCK_FIRST = 24, VALUES + 24, 1 << 24
ENTITY_ID, AT_ENTITY_ID, HAS_ENTITY_ID = 25, VALUES + 25, 1 << 25
REQUEST_ID, AT_REQUEST_ID, HAS_REQUEST_ID = 26, VALUES + 26, 1 << 26
INTEREST_ID, AT_INTEREST_ID, HAS_INTEREST_ID = 27, VALUES + 27, 1 << 27
ENCODING_ID, AT_ENCODING_ID, HAS_ENCODING_ID = 28, VALUES + 28, 1 << 28
TS_TIME, AT_TS_TIME, HAS_TS_TIME = 29, VALUES + 29, 1 << 29
SOURCE_EID, AT_SOURCE_EID, HAS_SOURCE_EID = 30, VALUES + 30, 1 << 30
SOURCE_SN, AT_SOURCE_SN, HAS_SOURCE_SN = 31, VALUES + 31, 1 << 31
TARGET, AT_TARGET, HAS_TARGET = 32, VALUES + 32, 1 << 32
CONSOLIDATION, AT_CONSOLIDATION, HAS_CONSOLIDATION = 33, VALUES + 33, 1 << 33
TIMEOUT, AT_TIMEOUT, HAS_TIMEOUT = 34, VALUES + 34, 1 << 34
BUDGET, AT_BUDGET, HAS_BUDGET = 35, VALUES + 35, 1 << 35
RESPONDER_EID, AT_RESPONDER_EID, HAS_RESPONDER_EID = 36, VALUES + 36, 1 << 36
MORE, AT_MORE, HAS_MORE = 37, VALUES + 37, 1 << 37
MODE, AT_MODE, HAS_MODE = 38, VALUES + 38, 1 << 38
KEYEXPRS, AT_KEYEXPRS, HAS_KEYEXPRS = 39, VALUES + 39, 1 << 39
SUBSCRIBERS, AT_SUBSCRIBERS, HAS_SUBSCRIBERS = 40, VALUES + 40, 1 << 40
QUERYABLES, AT_QUERYABLES, HAS_QUERYABLES = 41, VALUES + 41, 1 << 41
TOKENS, AT_TOKENS, HAS_TOKENS = 42, VALUES + 42, 1 << 42
AGGREGATE, AT_AGGREGATE, HAS_AGGREGATE = 43, VALUES + 43, 1 << 43
REASON, AT_REASON, HAS_REASON = 44, VALUES + 44, 1 << 44
WHOLE_SESSION, AT_WHOLE_SESSION, HAS_WHOLE_SESSION = 45, VALUES + 45, 1 << 45
VERSION, AT_VERSION, HAS_VERSION = 46, VALUES + 46, 1 << 46
WHATAMI, AT_WHATAMI, HAS_WHATAMI = 47, VALUES + 47, 1 << 47
WHAT, AT_WHAT, HAS_WHAT = 48, VALUES + 48, 1 << 48
ANSWER, AT_ANSWER, HAS_ANSWER = 49, VALUES + 49, 1 << 49
SN_RESOLUTION, AT_SN_RESOLUTION, HAS_SN_RESOLUTION = 50, VALUES + 50, 1 << 50
BATCH_SIZE, AT_BATCH_SIZE, HAS_BATCH_SIZE = 51, VALUES + 51, 1 << 51
PATCH, AT_PATCH, HAS_PATCH = 52, VALUES + 52, 1 << 52
LINK_LANES, AT_LINK_LANES, HAS_LINK_LANES = 53, VALUES + 53, 1 << 53
LINK_PRIORITIES, AT_LINK_PRIORITIES, HAS_LINK_PRIORITIES = 54, VALUES + 54, 1 << 54
LINK_RELIABILITY, AT_LINK_RELIABILITY, HAS_LINK_RELIABILITY = 55, VALUES + 55, 1 << 55
LEASE, AT_LEASE, HAS_LEASE = 56, VALUES + 56, 1 << 56
LEASE_SECONDS, AT_LEASE_SECONDS, HAS_LEASE_SECONDS = 57, VALUES + 57, 1 << 57
INITIAL_SN, AT_INITIAL_SN, HAS_INITIAL_SN = 58, VALUES + 58, 1 << 58
NEXT_RELIABLE, AT_NEXT_RELIABLE, HAS_NEXT_RELIABLE = 59, VALUES + 59, 1 << 59
NEXT_BEST_EFFORT, AT_NEXT_BEST_EFFORT, HAS_NEXT_BEST_EFFORT = 60, VALUES + 60, 1 << 60
SLICED_ENCODING_ID, AT_SLICED_ENCODING_ID, HAS_SLICED_ENCODING_ID = 61, VALUES + 61, 1 << 61
SHM_LENGTH, AT_SHM_LENGTH, HAS_SHM_LENGTH = 62, VALUES + 62, 1 << 62

#: Messages, as KIND says them.
KINDS = ("unknown", "scout", "hello", "transport_oam", "init", "open", "close", "keep_alive", "frame", "fragment",
    "join", "interest", "response_final", "response", "request", "push", "declare", "network_oam",)

#: Bodies, as BODY says them.
BODIES = ("", "reply", "put", "del", "err", "query", "declare_keyexpr", "undeclare_keyexpr", "declare_subscriber",
    "undeclare_subscriber", "declare_queryable", "undeclare_queryable", "declare_token", "undeclare_token",
    "declare_final",)

# Extensions that messages know: one bit each.
EXT_LANE = 1 << 0
EXT_LANES = 1 << 1
EXT_QOS_LINK = 1 << 2
EXT_INIT_ACK_SHM = 1 << 3
EXT_INIT_ACK_AUTH = 1 << 4
EXT_INIT_ACK_MULTI_LINK = 1 << 5
EXT_LOW_LATENCY = 1 << 6
EXT_COMPRESSION = 1 << 7
EXT_PATCH = 1 << 8
EXT_REGION_NAME = 1 << 9
EXT_INIT_SYN_SHM = 1 << 10
EXT_INIT_SYN_AUTH = 1 << 11
EXT_INIT_SYN_MULTI_LINK = 1 << 12
EXT_OPEN_SHM_NUMBER = 1 << 13
EXT_OPEN_ACK_SHM = 1 << 14
EXT_OPEN_ACK_AUTH = 1 << 15
EXT_OPEN_ACK_MULTI_LINK = 1 << 16
EXT_REMOTE_BOUND = 1 << 17
EXT_OPEN_SYN_SHM = 1 << 18
EXT_OPEN_SYN_AUTH = 1 << 19
EXT_OPEN_SYN_MULTI_LINK = 1 << 20
EXT_QOS = 1 << 21
EXT_TIMESTAMP = 1 << 22
EXT_NODE_ID = 1 << 23
EXT_RESPONDER_ID = 1 << 24
EXT_TS_STACK = 1 << 25
EXT_SOURCE_INFO = 1 << 26
EXT_PUT_SHM = 1 << 27
EXT_ATTACHMENT = 1 << 28
EXT_DEL_ATTACHMENT = 1 << 29
EXT_ERR_SHM = 1 << 30
EXT_QUERY_TARGET = 1 << 31
EXT_BUDGET = 1 << 32
EXT_TIMEOUT = 1 << 33
EXT_QUERY_SHM = 1 << 34
EXT_QUERY_BODY = 1 << 35
EXT_QUERY_BODY_SLICED = 1 << 36
EXT_QUERY_ATTACHMENT = 1 << 37
EXT_WIRE_EXPR = 1 << 38
EXT_QUERYABLE_INFO = 1 << 39
EXT_FIRST = 1 << 40
EXT_DROP = 1 << 41
EXT_JOIN_LANES = 1 << 42
EXT_JOIN_SHM = 1 << 43



def chain_scout(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        p = unknown_extension(b, p, e, r, o, True, False)
        if p < 0: return p
        if h < 128: return p


def read_scout(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh SCOUT: Asks who is there: sent to a multicast group, answered by HELLO."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_version = b[p] + 0
    p += 1
    if p >= e: return stop(r, o, TRUNCATED, p, start)
    h = b[p] + 0
    v_zid_len = h >> 4
    v_I = h >> 3 & 0x1
    r[o + AT_WHAT] = h & 0x7; r[o + PRESENT] |= HAS_WHAT
    p += 1
    if v_I != 0:
        size = v_zid_len + 1
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_ZID] = p; r[o + LEN_ZID] = size; r[o + PRESENT] |= HAS_ZID
        p += size
    if v_Z != 0:
        p = chain_scout(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_hello(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh HELLO: Answers a SCOUT: who the node is and where it listens."""
    start = p
    v_locators_count = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_L = h >> 5 & 0x1
    p += 1
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_version = b[p] + 0
    p += 1
    if p >= e: return stop(r, o, TRUNCATED, p, start)
    h = b[p] + 0
    if (h & 0x3) < 0 or (h & 0x3) > 2: return stop(r, o, BAD_VALUE, p, start)
    v_zid_len = h >> 4
    r[o + AT_WHATAMI] = h & 0x3; r[o + PRESENT] |= HAS_WHATAMI
    p += 1
    size = v_zid_len + 1
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_ZID] = p; r[o + LEN_ZID] = size; r[o + PRESENT] |= HAS_ZID
    p += size
    if v_L != 0:
        v_locators_count, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        if v_locators_count > 65536: return stop(r, o, LIMIT, p, start)
        p = q
        q, count, kind, good = texts(b, p, e, v_locators_count, 8, True)
        if not good: note(r, o, BAD_UTF8, p, start)
        r[o + AT_LOCATORS] = p; r[o + LEN_LOCATORS] = count; r[o + PRESENT] |= HAS_LOCATORS
        p = q
        if kind > 0: return stop(r, o, kind, p, start)
    if v_Z != 0:
        p = chain_scout(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_lane(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QoS: The lane of a FRAME or FRAGMENT; absent means data."""
    start = p
    p += 1
    h, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    r[o + AT_PRIORITY] = h & 0x7; r[o + PRESENT] |= HAS_PRIORITY
    p = q
    return p


def chain_transport_oam(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x31:
            r[o + EXTENSIONS] |= EXT_LANE
            r[o + PRESENT] &= ~(HAS_PRIORITY)
            p = read_ext_lane(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_transport_oam(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh OAM (transport): Operation and maintenance of a link; no ids are defined."""
    start = p
    v_size = 0
    outer, inside = e, False
    h = b[p] + 0
    if (h >> 5 & 0x3) < 0 or (h >> 5 & 0x3) > 2: return stop(r, o, RESERVED_ENCODING, p, start)
    v_Z = h >> 7
    v_enc = h >> 5 & 0x3
    p += 1
    v_id, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_Z != 0:
        p = chain_transport_oam(b, p, e, r, o, start)
        if p < 0: return p
    if v_enc == 1:
        v_value, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
    if v_enc == 2:
        v_size, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        e = p + v_size
        inside = True
        size = e - p
        p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_lanes(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QoS: Asks for a lane per priority."""
    start = p
    p += 1
    return p


def read_ext_qos_link(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QoSLink: Asks for lanes, and says which priorities and reliability this link is for."""
    start = p
    p += 1
    h, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    r[o + AT_LINK_LANES] = h & 0x1; r[o + PRESENT] |= HAS_LINK_LANES
    r[o + AT_LINK_PRIORITIES] = h >> 1 & 0x1; r[o + PRESENT] |= HAS_LINK_PRIORITIES
    r[o + AT_LINK_RELIABILITY] = h >> 2 & 0x1; r[o + PRESENT] |= HAS_LINK_RELIABILITY
    p = q
    return p


def read_ext_init_ack_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Accepts shared memory: what was read in the offered segment, and the own segment."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_challenge, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_segment, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_init_ack_key(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """public key: Public key of the responder, and a nonce only the initiator can read."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_modulus_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_modulus_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_exponent_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_exponent_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_nonce_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_nonce_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_user_nonce(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """user/password: The number that the password is to be mixed with."""
    start = p
    p += 1
    v_nonce, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def chain_ext_init_ack_auth(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            p = read_auth_init_ack_key(b, p, e, r, o)
        elif h & 0x7F == 0x22:
            p = read_auth_user_nonce(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, False, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_init_ack_auth(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Auth: Challenges of the responder."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    p = chain_ext_init_ack_auth(b, p, e, r, o, start)
    if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_init_ack_multi_link(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """MultiLink: Accepts several links: the own key, and a nonce only the initiator can read."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_modulus_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_modulus_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_exponent_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_exponent_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_nonce_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_nonce_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_low_latency(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """LowLatency: Asks for bare messages without FRAMEs."""
    start = p
    p += 1
    return p


def read_ext_compression(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Compression: Asks for compressed batches."""
    start = p
    p += 1
    return p


def read_ext_patch(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Patch: Level of small additions to the protocol: 1 knows the marks of first and dropped fragments."""
    start = p
    p += 1
    v_patch, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_PATCH] = v_patch; r[o + PRESENT] |= HAS_PATCH
    return p


def read_ext_region_name(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """RegionName: The region of the network to which the node belongs."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    size = e - p
    if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
    r[o + AT_REGION] = p; r[o + LEN_REGION] = size; r[o + PRESENT] |= HAS_REGION
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_init(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x01:
            r[o + EXTENSIONS] |= EXT_LANES
            p = read_ext_lanes(b, p, e, r, o)
        elif h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS_LINK
            r[o + PRESENT] &= ~(HAS_LINK_LANES | HAS_LINK_PRIORITIES | HAS_LINK_RELIABILITY)
            p = read_ext_qos_link(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_ack_shm(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_ACK_SHM
            p = q
        elif h & 0x7F == 0x43:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_ack_auth(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_ACK_AUTH
            p = q
        elif h & 0x7F == 0x44:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_ack_multi_link(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_ACK_MULTI_LINK
            p = q
        elif h & 0x7F == 0x05:
            r[o + EXTENSIONS] |= EXT_LOW_LATENCY
            p = read_ext_low_latency(b, p, e, r, o)
        elif h & 0x7F == 0x06:
            r[o + EXTENSIONS] |= EXT_COMPRESSION
            p = read_ext_compression(b, p, e, r, o)
        elif h & 0x7F == 0x27:
            r[o + EXTENSIONS] |= EXT_PATCH
            r[o + PRESENT] &= ~(HAS_PATCH)
            p = read_ext_patch(b, p, e, r, o)
        elif h & 0x7F == 0x48:
            r[o + EXTENSIONS] |= EXT_REGION_NAME
            r[o + PRESENT] &= ~(HAS_REGION)
            p = read_ext_region_name(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_init_syn_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Offers shared memory: the segment that proves access."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_segment, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_init_syn_key(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """public key: Public key of the initiator."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_modulus_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_modulus_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_exponent_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_exponent_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_user(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """user/password: The initiator has a user name (INIT syn), or it is accepted (OPEN ack)."""
    start = p
    p += 1
    return p


def chain_ext_init_syn_auth(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            p = read_auth_init_syn_key(b, p, e, r, o)
        elif h & 0x7F == 0x02:
            p = read_auth_user(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, False, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_init_syn_auth(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Auth: Authentication methods that the initiator offers."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    p = chain_ext_init_syn_auth(b, p, e, r, o, start)
    if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_init_syn_multi_link(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """MultiLink: Offers several links for one session: the key that will prove who opens them."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_modulus_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_modulus_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_exponent_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_exponent_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_init_1(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x01:
            r[o + EXTENSIONS] |= EXT_LANES
            p = read_ext_lanes(b, p, e, r, o)
        elif h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS_LINK
            r[o + PRESENT] &= ~(HAS_LINK_LANES | HAS_LINK_PRIORITIES | HAS_LINK_RELIABILITY)
            p = read_ext_qos_link(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_syn_shm(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_SYN_SHM
            p = q
        elif h & 0x7F == 0x43:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_syn_auth(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_SYN_AUTH
            p = q
        elif h & 0x7F == 0x44:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_init_syn_multi_link(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_INIT_SYN_MULTI_LINK
            p = q
        elif h & 0x7F == 0x05:
            r[o + EXTENSIONS] |= EXT_LOW_LATENCY
            p = read_ext_low_latency(b, p, e, r, o)
        elif h & 0x7F == 0x06:
            r[o + EXTENSIONS] |= EXT_COMPRESSION
            p = read_ext_compression(b, p, e, r, o)
        elif h & 0x7F == 0x27:
            r[o + EXTENSIONS] |= EXT_PATCH
            r[o + PRESENT] &= ~(HAS_PATCH)
            p = read_ext_patch(b, p, e, r, o)
        elif h & 0x7F == 0x48:
            r[o + EXTENSIONS] |= EXT_REGION_NAME
            r[o + PRESENT] &= ~(HAS_REGION)
            p = read_ext_region_name(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_init(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh INIT: First step of a handshake: who each side is and what it can do. With a cookie it is the answer."""
    start = p
    v_cookie_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_S = h >> 6 & 0x1
    v_A = h >> 5 & 0x1
    r[o + AT_ANSWER] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_ANSWER
    p += 1
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_version = b[p] + 0
    p += 1
    r[o + AT_VERSION] = v_version; r[o + PRESENT] |= HAS_VERSION
    if p >= e: return stop(r, o, TRUNCATED, p, start)
    h = b[p] + 0
    if (h & 0x3) < 0 or (h & 0x3) > 2: return stop(r, o, BAD_VALUE, p, start)
    v_zid_len = h >> 4
    r[o + AT_WHATAMI] = h & 0x3; r[o + PRESENT] |= HAS_WHATAMI
    p += 1
    size = v_zid_len + 1
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_ZID] = p; r[o + LEN_ZID] = size; r[o + PRESENT] |= HAS_ZID
    p += size
    if v_S != 0:
        if p >= e: return stop(r, o, TRUNCATED, p, start)
        h = b[p] + 0
        r[o + AT_SN_RESOLUTION] = h & 0x3; r[o + PRESENT] |= HAS_SN_RESOLUTION
        p += 1
        if p + 2 > e: return stop(r, o, TRUNCATED, p, start)
        v_batch_size = little(b, p, 2)
        p += 2
        r[o + AT_BATCH_SIZE] = v_batch_size; r[o + PRESENT] |= HAS_BATCH_SIZE
    if v_A != 0:
        v_cookie_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_cookie_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        p += size
    if v_Z != 0:
        p = chain_init(b, p, e, r, o, start) if v_A != 0 else chain_init_1(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_open_shm_number(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Proves (syn) and confirms (ack, 1) shared memory, as nodes up to 1.9 do."""
    start = p
    p += 1
    v_value, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def read_ext_open_ack_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Confirms shared memory since 1.10."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if p + 1 > e: return stop(r, o, BAD_LENGTH, p, start)
    v_status = b[p] + 0
    p += 1
    if v_status != 0:
        q, count, kind = numbers(b, p, e, 8, 16)
        p = q
        if kind > 0: return stop(r, o, short(kind), p, start)
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_open_ack_key(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """public key: The key is accepted."""
    start = p
    p += 1
    return p


def chain_ext_open_ack_auth(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x01:
            p = read_auth_open_ack_key(b, p, e, r, o)
        elif h & 0x7F == 0x02:
            p = read_auth_user(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, False, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_open_ack_auth(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Auth: Authentication is accepted."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    p = chain_ext_open_ack_auth(b, p, e, r, o, start)
    if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_open_ack_multi_link(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """MultiLink: Several links are accepted."""
    start = p
    p += 1
    return p


def read_ext_remote_bound(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """RemoteBound: On which side of a region boundary the sender sees the other node."""
    start = p
    p += 1
    v_bound, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def chain_open(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x01:
            r[o + EXTENSIONS] |= EXT_LANES
            p = read_ext_lanes(b, p, e, r, o)
        elif h & 0x7F == 0x22:
            r[o + EXTENSIONS] |= EXT_OPEN_SHM_NUMBER
            p = read_ext_open_shm_number(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_open_ack_shm(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_OPEN_ACK_SHM
            p = q
        elif h & 0x7F == 0x43:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_open_ack_auth(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_OPEN_ACK_AUTH
            p = q
        elif h & 0x7F == 0x04:
            r[o + EXTENSIONS] |= EXT_OPEN_ACK_MULTI_LINK
            p = read_ext_open_ack_multi_link(b, p, e, r, o)
        elif h & 0x7F == 0x05:
            r[o + EXTENSIONS] |= EXT_LOW_LATENCY
            p = read_ext_low_latency(b, p, e, r, o)
        elif h & 0x7F == 0x06:
            r[o + EXTENSIONS] |= EXT_COMPRESSION
            p = read_ext_compression(b, p, e, r, o)
        elif h & 0x7F == 0x27:
            r[o + EXTENSIONS] |= EXT_REMOTE_BOUND
            p = read_ext_remote_bound(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_open_syn_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Proves shared memory since 1.10, and gives the counters of the sender."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_challenge, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    if p + 1 > e: return stop(r, o, BAD_LENGTH, p, start)
    v_status = b[p] + 0
    p += 1
    if v_status != 0:
        q, count, kind = numbers(b, p, e, 8, 16)
        p = q
        if kind > 0: return stop(r, o, short(kind), p, start)
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_open_syn_key(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """public key: The nonce, encrypted for the responder."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_nonce_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_nonce_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_auth_user_proof(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """user/password: The user, and HMAC-SHA3-256 of the password with the nonce as key."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_user_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_user_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    v_hmac_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_hmac_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_ext_open_syn_auth(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            p = read_auth_open_syn_key(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            p = read_auth_user_proof(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, False, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_open_syn_auth(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Auth: Proofs of the initiator."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    p = chain_ext_open_syn_auth(b, p, e, r, o, start)
    if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_open_syn_multi_link(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """MultiLink: Returns the nonce, encrypted for the responder."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_nonce_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    size = v_nonce_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_open_1(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x01:
            r[o + EXTENSIONS] |= EXT_LANES
            p = read_ext_lanes(b, p, e, r, o)
        elif h & 0x7F == 0x22:
            r[o + EXTENSIONS] |= EXT_OPEN_SHM_NUMBER
            p = read_ext_open_shm_number(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_open_syn_shm(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_OPEN_SYN_SHM
            p = q
        elif h & 0x7F == 0x43:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_open_syn_auth(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_OPEN_SYN_AUTH
            p = q
        elif h & 0x7F == 0x44:
            fault, offset = r[o + FAULT], r[o + FAULT_OFFSET]
            q = read_ext_open_syn_multi_link(b, p, e, r, o)
            if q < 0:  # nodes pass it on unread: what cannot be read is no fault
                r[o + FAULT] = fault; r[o + FAULT_OFFSET] = offset; r[o + STOP] = -1
                q = unknown_extension(b, p, e, r, o, True, False)
            else: r[o + EXTENSIONS] |= EXT_OPEN_SYN_MULTI_LINK
            p = q
        elif h & 0x7F == 0x05:
            r[o + EXTENSIONS] |= EXT_LOW_LATENCY
            p = read_ext_low_latency(b, p, e, r, o)
        elif h & 0x7F == 0x06:
            r[o + EXTENSIONS] |= EXT_COMPRESSION
            p = read_ext_compression(b, p, e, r, o)
        elif h & 0x7F == 0x27:
            r[o + EXTENSIONS] |= EXT_REMOTE_BOUND
            p = read_ext_remote_bound(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_open(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh OPEN: Second step of a handshake: lease and first sequence number. With the cookie of INIT it is the request."""
    start = p
    v_cookie_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_LEASE_SECONDS] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_LEASE_SECONDS
    v_A = h >> 5 & 0x1
    r[o + AT_ANSWER] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_ANSWER
    p += 1
    v_lease, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_LEASE] = v_lease; r[o + PRESENT] |= HAS_LEASE
    v_initial_sn, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_INITIAL_SN] = v_initial_sn; r[o + PRESENT] |= HAS_INITIAL_SN
    if not (v_A != 0):
        v_cookie_len, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_cookie_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        p += size
    if v_Z != 0:
        p = chain_open(b, p, e, r, o, start) if v_A != 0 else chain_open_1(b, p, e, r, o, start)
        if p < 0: return p
    return p


def chain_close(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_close(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh CLOSE: Ends a link, or the whole session."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_WHOLE_SESSION] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_WHOLE_SESSION
    p += 1
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_reason = b[p] + 0
    p += 1
    r[o + AT_REASON] = v_reason; r[o + PRESENT] |= HAS_REASON
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_keep_alive(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh KEEP_ALIVE: Says that the sender is still there."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_frame(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh FRAME: Carries whole network messages, with one sequence number for all of them."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_RELIABLE] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_RELIABLE
    p += 1
    v_sn, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SN] = v_sn; r[o + PRESENT] |= HAS_SN
    if v_Z != 0:
        p = chain_transport_oam(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_qos(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QoS: Priority, congestion control and express; absent means data priority, drop, not express."""
    start = p
    p += 1
    h, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    r[o + AT_PRIORITY] = h & 0x7; r[o + PRESENT] |= HAS_PRIORITY
    r[o + AT_BLOCK] = h >> 3 & 0x1; r[o + PRESENT] |= HAS_BLOCK
    r[o + AT_EXPRESS] = h >> 4 & 0x1; r[o + PRESENT] |= HAS_EXPRESS
    r[o + AT_BLOCK_FIRST] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_BLOCK_FIRST
    p = q
    return p


def read_ext_timestamp(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Timestamp: When a network message was sent."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_ts_time, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_ts_id_len, q = vle(b, p, e, 8)
    if q < 0: return stop(r, o, short(-q), p, start)
    if v_ts_id_len > 16: return stop(r, o, BAD_LENGTH, p, start)
    p = q
    size = v_ts_id_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_node_id(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """NodeId: Between routers: the root of the distribution tree, as the sender numbers nodes in its link states."""
    start = p
    p += 1
    v_node, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def chain_interest(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS
            r[o + PRESENT] &= ~(HAS_PRIORITY | HAS_BLOCK | HAS_EXPRESS | HAS_BLOCK_FIRST)
            p = read_ext_qos(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_TIMESTAMP
            p = read_ext_timestamp(b, p, e, r, o)
        elif h & 0x7F == 0x33:
            r[o + EXTENSIONS] |= EXT_NODE_ID
            p = read_ext_node_id(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_interest(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh INTEREST: Asks the other side for its declarations, now, from now on, or no longer."""
    start = p
    v_N = v_R = v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_mode = h >> 5 & 0x3
    r[o + AT_MODE] = h >> 5 & 0x3; r[o + PRESENT] |= HAS_MODE
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_INTEREST_ID] = v_id; r[o + PRESENT] |= HAS_INTEREST_ID
    if v_mode != 0:
        if p >= e: return stop(r, o, TRUNCATED, p, start)
        h = b[p] + 0
        r[o + AT_AGGREGATE] = h >> 7; r[o + PRESENT] |= HAS_AGGREGATE
        r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
        v_N = h >> 5 & 0x1
        r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
        v_R = h >> 4 & 0x1
        r[o + AT_TOKENS] = h >> 3 & 0x1; r[o + PRESENT] |= HAS_TOKENS
        r[o + AT_QUERYABLES] = h >> 2 & 0x1; r[o + PRESENT] |= HAS_QUERYABLES
        r[o + AT_SUBSCRIBERS] = h >> 1 & 0x1; r[o + PRESENT] |= HAS_SUBSCRIBERS
        r[o + AT_KEYEXPRS] = h & 0x1; r[o + PRESENT] |= HAS_KEYEXPRS
        p += 1
    if (v_mode != 0 and v_R != 0):
        v_scope, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if ((v_mode != 0 and v_R != 0) and v_N != 0):
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_interest(b, p, e, r, o, start)
        if p < 0: return p
    return p


def chain_response_final(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS
            r[o + PRESENT] &= ~(HAS_PRIORITY | HAS_BLOCK | HAS_EXPRESS | HAS_BLOCK_FIRST)
            p = read_ext_qos(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_TIMESTAMP
            p = read_ext_timestamp(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_response_final(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh RESPONSE_FINAL: No more answers to a REQUEST will come."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    v_request_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_REQUEST_ID] = v_request_id; r[o + PRESENT] |= HAS_REQUEST_ID
    if v_Z != 0:
        p = chain_response_final(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_responder_id(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """ResponderId: Who answers a query."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if p >= e: return stop(r, o, BAD_LENGTH, p, start)
    h = b[p] + 0
    v_zid_len = h >> 4
    p += 1
    size = v_zid_len + 1
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_RESPONDER_ZID] = p; r[o + LEN_RESPONDER_ZID] = size; r[o + PRESENT] |= HAS_RESPONDER_ZID
    p += size
    v_entity, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_RESPONDER_EID] = v_entity; r[o + PRESENT] |= HAS_RESPONDER_EID
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_stamp(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """timestamp record: One record of a timestamp stack: where it was made and when."""
    start = p
    v_ts_id_len = 0
    outer, inside = e, False
    if p >= e: return stop(r, o, TRUNCATED, p, start)
    h = b[p] + 0
    v_custom = h >> 7
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if not (v_custom != 0):
        v_ts_time, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, short(-q), p, start)
        p = q
        v_ts_id_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, short(-q), p, start)
        if v_ts_id_len > 16: return stop(r, o, BAD_LENGTH, p, start)
        p = q
        size = v_ts_id_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        p += size
    if v_custom != 0:
        size = e - p
        p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_ts_stack(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """TsStack: Times taken on the way, when an application measures latency."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if p >= e: return stop(r, o, BAD_LENGTH, p, start)
    h = b[p] + 0
    p += 1
    v_stamps_count, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    if v_stamps_count > 65536: return stop(r, o, LIMIT, p, start)
    p = q
    for i in range(v_stamps_count):
        if p >= e: return stop(r, o, BAD_LENGTH, p, start)
        p = read_stamp(b, p, e, r, o)
        if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_response(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS
            r[o + PRESENT] &= ~(HAS_PRIORITY | HAS_BLOCK | HAS_EXPRESS | HAS_BLOCK_FIRST)
            p = read_ext_qos(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_TIMESTAMP
            p = read_ext_timestamp(b, p, e, r, o)
        elif h & 0x7F == 0x43:
            r[o + EXTENSIONS] |= EXT_RESPONDER_ID
            r[o + PRESENT] &= ~(HAS_RESPONDER_ZID | HAS_RESPONDER_EID)
            p = read_ext_responder_id(b, p, e, r, o)
        elif h & 0x7F == 0x47:
            r[o + EXTENSIONS] |= EXT_TS_STACK
            p = read_ext_ts_stack(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_source_info(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """SourceInfo: Who made a sample: the entity, and its number there."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if p >= e: return stop(r, o, BAD_LENGTH, p, start)
    h = b[p] + 0
    v_zid_len = h >> 4
    p += 1
    size = v_zid_len + 1
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_SOURCE_ZID] = p; r[o + LEN_SOURCE_ZID] = size; r[o + PRESENT] |= HAS_SOURCE_ZID
    p += size
    v_entity, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_SOURCE_EID] = v_entity; r[o + PRESENT] |= HAS_SOURCE_EID
    v_sn, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_SOURCE_SN] = v_sn; r[o + PRESENT] |= HAS_SOURCE_SN
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_put_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Marks a payload in pieces, some of which lie in shared memory."""
    start = p
    p += 1
    return p


def read_ext_attachment(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Attachment: Bytes that travel beside the payload of a PUT."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    size = e - p
    r[o + AT_ATTACHMENT] = p; r[o + LEN_ATTACHMENT] = size; r[o + PRESENT] |= HAS_ATTACHMENT
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_put(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            r[o + EXTENSIONS] |= EXT_SOURCE_INFO
            r[o + PRESENT] &= ~(HAS_SOURCE_ZID | HAS_SOURCE_EID | HAS_SOURCE_SN)
            p = read_ext_source_info(b, p, e, r, o)
        elif h & 0x7F == 0x12:
            r[o + EXTENSIONS] |= EXT_PUT_SHM
            p = read_ext_put_shm(b, p, e, r, o)
        elif h & 0x7F == 0x43:
            r[o + EXTENSIONS] |= EXT_ATTACHMENT
            r[o + PRESENT] &= ~(HAS_ATTACHMENT)
            p = read_ext_attachment(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_slice_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """shared-memory slice: A piece of a payload that lies in shared memory: where it is, and how long."""
    start = p
    outer, inside = e, False
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_kind = b[p] + 0
    if v_kind < 0 or v_kind > 1: return stop(r, o, BAD_VALUE, p, start)
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_data_len, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_SHM_LENGTH] = v_data_len; r[o + PRESENT] |= HAS_SHM_LENGTH
    v_segment, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_index, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_generation, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_slice_shm_old(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """shared-memory slice before 1.2: The same as nodes before 1.2.0 describe it."""
    start = p
    outer, inside = e, False
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_kind = b[p] + 0
    if v_kind < 0 or v_kind > 1: return stop(r, o, BAD_VALUE, p, start)
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    v_data_segment, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_chunk, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_chunk_len, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_protocol, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_data_len, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_SHM_LENGTH] = v_data_len; r[o + PRESENT] |= HAS_SHM_LENGTH
    v_watchdog_segment, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_watchdog_index, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_header_segment, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_header_index, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    v_generation, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_slice(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """slice: A piece of a payload as plain bytes, or a shared-memory descriptor nobody can read."""
    start = p
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_kind = b[p] + 0
    if v_kind < 0 or v_kind > 1: return stop(r, o, BAD_VALUE, p, start)
    p += 1
    v_data_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    size = v_data_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_PIECE] = p; r[o + LEN_PIECE] = size; r[o + PRESENT] |= HAS_PIECE
    p += size
    return p


def choice_slice(b: Any, p: int, e: int, r: Any, o: int) -> int:
    if (peek_byte(b, p + 0, e) == 1 and peek_vles(b, p + 1, e) == 4): return read_slice_shm(b, p, e, r, o)
    if (peek_byte(b, p + 0, e) == 1 and peek_vles(b, p + 1, e) == 10): return read_slice_shm_old(b, p, e, r, o)
    return read_slice(b, p, e, r, o)


def read_put(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh PUT: A value for a key."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 2
    v_ts_id_len = v_S = v_schema_len = v_data_len = v_slices_count = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_E = h >> 6 & 0x1
    v_T = h >> 5 & 0x1
    p += 1
    if v_T != 0:
        v_ts_time, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        r[o + AT_TS_TIME] = v_ts_time; r[o + PRESENT] |= HAS_TS_TIME
        v_ts_id_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        if v_ts_id_len > 16: return stop(r, o, BAD_LENGTH, p, start)
        p = q
        size = v_ts_id_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_TS_ID] = p; r[o + LEN_TS_ID] = size; r[o + PRESENT] |= HAS_TS_ID
        p += size
    if v_E != 0:
        h, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        v_S = h & 0x1
        r[o + AT_ENCODING_ID] = h >> 1; r[o + PRESENT] |= HAS_ENCODING_ID
        p = q
    if (v_E != 0 and v_S != 0):
        v_schema_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_schema_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_SCHEMA] = p; r[o + LEN_SCHEMA] = size; r[o + PRESENT] |= HAS_SCHEMA
        p += size
    if v_Z != 0:
        p = chain_put(b, p, e, r, o, start)
        if p < 0: return p
    if not (r[o + EXTENSIONS] & EXT_PUT_SHM != 0):
        v_data_len, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_data_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_DATA] = p; r[o + LEN_DATA] = size; r[o + PRESENT] |= HAS_DATA
        p += size
    if r[o + EXTENSIONS] & EXT_PUT_SHM != 0:
        v_slices_count, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        if v_slices_count > 65536: return stop(r, o, LIMIT, p, start)
        p = q
        r[o + AT_SLICES] = p; r[o + LEN_SLICES] = 0; r[o + PRESENT] |= HAS_SLICES
        for i in range(v_slices_count):
            if p >= e: return stop(r, o, TRUNCATED, p, start)
            r[o + LEN_SLICES] = i + 1
            p = choice_slice(b, p, e, r, o)
            if p < 0: return p
    return p


def read_ext_del_attachment(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Attachment: Bytes that travel with a DEL."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    size = e - p
    r[o + AT_ATTACHMENT] = p; r[o + LEN_ATTACHMENT] = size; r[o + PRESENT] |= HAS_ATTACHMENT
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_del(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            r[o + EXTENSIONS] |= EXT_SOURCE_INFO
            r[o + PRESENT] &= ~(HAS_SOURCE_ZID | HAS_SOURCE_EID | HAS_SOURCE_SN)
            p = read_ext_source_info(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_DEL_ATTACHMENT
            r[o + PRESENT] &= ~(HAS_ATTACHMENT)
            p = read_ext_del_attachment(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_del(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DEL: The deletion of a key."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 3
    v_ts_id_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_T = h >> 5 & 0x1
    p += 1
    if v_T != 0:
        v_ts_time, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        r[o + AT_TS_TIME] = v_ts_time; r[o + PRESENT] |= HAS_TS_TIME
        v_ts_id_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        if v_ts_id_len > 16: return stop(r, o, BAD_LENGTH, p, start)
        p = q
        size = v_ts_id_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_TS_ID] = p; r[o + LEN_TS_ID] = size; r[o + PRESENT] |= HAS_TS_ID
        p += size
    if v_Z != 0:
        p = chain_del(b, p, e, r, o, start)
        if p < 0: return p
    return p


def family_sample(b: Any, p: int, e: int, r: Any, o: int) -> int:
    h = b[p] & 0x1F
    if h == 0x01: return read_put(b, p, e, r, o)
    if h == 0x02: return read_del(b, p, e, r, o)
    return -2


def read_reply(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh REPLY: An answer to a query: a PUT or DEL."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 1
    h = b[p] + 0
    v_Z = h >> 7
    v_C = h >> 5 & 0x1
    p += 1
    if v_C != 0:
        v_consolidation, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    if p >= e: return stop(r, o, BODY_MISSING, p, start)
    q = family_sample(b, p, e, r, o)
    return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q


def read_ext_err_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: A mark without effect: the payload of an ERR is never in pieces."""
    start = p
    p += 1
    return p


def chain_err(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x41:
            r[o + EXTENSIONS] |= EXT_SOURCE_INFO
            r[o + PRESENT] &= ~(HAS_SOURCE_ZID | HAS_SOURCE_EID | HAS_SOURCE_SN)
            p = read_ext_source_info(b, p, e, r, o)
        elif h & 0x7F == 0x12:
            r[o + EXTENSIONS] |= EXT_ERR_SHM
            p = read_ext_err_shm(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_err(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh ERR: An error as answer to a query."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 4
    v_S = v_schema_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_E = h >> 6 & 0x1
    p += 1
    if v_E != 0:
        h, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        v_S = h & 0x1
        r[o + AT_ENCODING_ID] = h >> 1; r[o + PRESENT] |= HAS_ENCODING_ID
        p = q
    if (v_E != 0 and v_S != 0):
        v_schema_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_schema_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_SCHEMA] = p; r[o + LEN_SCHEMA] = size; r[o + PRESENT] |= HAS_SCHEMA
        p += size
    if v_Z != 0:
        p = chain_err(b, p, e, r, o, start)
        if p < 0: return p
    v_data_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    size = v_data_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_DATA] = p; r[o + LEN_DATA] = size; r[o + PRESENT] |= HAS_DATA
    p += size
    return p


def family_answer(b: Any, p: int, e: int, r: Any, o: int) -> int:
    h = b[p] & 0x1F
    if h == 0x04: return read_reply(b, p, e, r, o)
    if h == 0x05: return read_err(b, p, e, r, o)
    return -2


def read_response(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh RESPONSE: One answer to a REQUEST, on its way back."""
    start = p
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_request_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_REQUEST_ID] = v_request_id; r[o + PRESENT] |= HAS_REQUEST_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_response(b, p, e, r, o, start)
        if p < 0: return p
    if p >= e: return stop(r, o, BODY_MISSING, p, start)
    q = family_answer(b, p, e, r, o)
    return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q


def read_ext_query_target(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QueryTarget: Which queryables a query goes to; absent means the best matching."""
    start = p
    p += 1
    v_target, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    if v_target < 0 or v_target > 2: return stop(r, o, BAD_VALUE, p, start)
    p = q
    r[o + AT_TARGET] = v_target; r[o + PRESENT] |= HAS_TARGET
    return p


def read_ext_budget(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Budget: How many replies a query wants at most."""
    start = p
    p += 1
    v_budget, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_BUDGET] = v_budget; r[o + PRESENT] |= HAS_BUDGET
    return p


def read_ext_timeout(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Timeout: How long a query waits, in milliseconds."""
    start = p
    p += 1
    v_timeout, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_TIMEOUT] = v_timeout; r[o + PRESENT] |= HAS_TIMEOUT
    return p


def chain_request(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS
            r[o + PRESENT] &= ~(HAS_PRIORITY | HAS_BLOCK | HAS_EXPRESS | HAS_BLOCK_FIRST)
            p = read_ext_qos(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_TIMESTAMP
            p = read_ext_timestamp(b, p, e, r, o)
        elif h & 0x7F == 0x34:
            r[o + EXTENSIONS] |= EXT_QUERY_TARGET
            r[o + PRESENT] &= ~(HAS_TARGET)
            p = read_ext_query_target(b, p, e, r, o)
        elif h & 0x7F == 0x25:
            r[o + EXTENSIONS] |= EXT_BUDGET
            r[o + PRESENT] &= ~(HAS_BUDGET)
            p = read_ext_budget(b, p, e, r, o)
        elif h & 0x7F == 0x26:
            r[o + EXTENSIONS] |= EXT_TIMEOUT
            r[o + PRESENT] &= ~(HAS_TIMEOUT)
            p = read_ext_timeout(b, p, e, r, o)
        elif h & 0x7F == 0x33:
            r[o + EXTENSIONS] |= EXT_NODE_ID
            p = read_ext_node_id(b, p, e, r, o)
        elif h & 0x7F == 0x47:
            r[o + EXTENSIONS] |= EXT_TS_STACK
            p = read_ext_ts_stack(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_ext_query_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QueryShm: Marks a query body in pieces; QueryBody follows at once."""
    start = p
    p += 1
    return p


def read_ext_query_body(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QueryBody: The payload of a query."""
    start = p
    v_schema_len = 0
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    h, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, short(-q), p, start)
    v_S = h & 0x1
    r[o + AT_ENCODING_ID] = h >> 1; r[o + PRESENT] |= HAS_ENCODING_ID
    p = q
    if v_S != 0:
        v_schema_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, short(-q), p, start)
        p = q
        size = v_schema_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_SCHEMA] = p; r[o + LEN_SCHEMA] = size; r[o + PRESENT] |= HAS_SCHEMA
        p += size
    size = e - p
    r[o + AT_DATA] = p; r[o + LEN_DATA] = size; r[o + PRESENT] |= HAS_DATA
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_query_body_sliced(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QueryBody: The payload of a query in pieces; its announced size says nothing about the bytes that follow."""
    start = p
    v_schema_len = 0
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    h, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    v_S = h & 0x1
    r[o + AT_SLICED_ENCODING_ID] = h >> 1; r[o + PRESENT] |= HAS_SLICED_ENCODING_ID
    p = q
    if v_S != 0:
        v_schema_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_schema_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        r[o + AT_SLICED_SCHEMA] = p; r[o + LEN_SLICED_SCHEMA] = size; r[o + PRESENT] |= HAS_SLICED_SCHEMA
        p += size
    v_slices_count, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    if v_slices_count > 65536: return stop(r, o, LIMIT, p, start)
    p = q
    r[o + AT_SLICES] = p; r[o + LEN_SLICES] = 0; r[o + PRESENT] |= HAS_SLICES
    for i in range(v_slices_count):
        if p >= e: return stop(r, o, TRUNCATED, p, start)
        r[o + LEN_SLICES] = i + 1
        p = choice_slice(b, p, e, r, o)
        if p < 0: return p
    return p


def read_ext_query_attachment(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Attachment: Bytes that travel with a query."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    size = e - p
    r[o + AT_ATTACHMENT] = p; r[o + LEN_ATTACHMENT] = size; r[o + PRESENT] |= HAS_ATTACHMENT
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_query(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x43 and r[o + EXTENSIONS] & EXT_QUERY_SHM != 0:
            r[o + EXTENSIONS] |= EXT_QUERY_BODY_SLICED
            r[o + PRESENT] &= ~(HAS_SLICED_ENCODING_ID | HAS_SLICED_SCHEMA | HAS_SLICES)
            p = read_ext_query_body_sliced(b, p, e, r, o)
        elif h & 0x7F == 0x41:
            r[o + EXTENSIONS] |= EXT_SOURCE_INFO
            r[o + PRESENT] &= ~(HAS_SOURCE_ZID | HAS_SOURCE_EID | HAS_SOURCE_SN)
            p = read_ext_source_info(b, p, e, r, o)
        elif h & 0x7F == 0x04:
            r[o + EXTENSIONS] |= EXT_QUERY_SHM
            p = read_ext_query_shm(b, p, e, r, o)
        elif h & 0x7F == 0x43:
            r[o + EXTENSIONS] |= EXT_QUERY_BODY
            r[o + PRESENT] &= ~(HAS_ENCODING_ID | HAS_SCHEMA | HAS_DATA)
            p = read_ext_query_body(b, p, e, r, o)
        elif h & 0x7F == 0x45:
            r[o + EXTENSIONS] |= EXT_QUERY_ATTACHMENT
            r[o + PRESENT] &= ~(HAS_ATTACHMENT)
            p = read_ext_query_attachment(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_query(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh QUERY: The question inside a REQUEST."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 5
    v_parameters_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_P = h >> 6 & 0x1
    v_C = h >> 5 & 0x1
    p += 1
    if v_C != 0:
        v_consolidation, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        r[o + AT_CONSOLIDATION] = v_consolidation; r[o + PRESENT] |= HAS_CONSOLIDATION
    if v_P != 0:
        v_parameters_len, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_parameters_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_PARAMETERS] = p; r[o + LEN_PARAMETERS] = size; r[o + PRESENT] |= HAS_PARAMETERS
        p += size
    if v_Z != 0:
        p = chain_query(b, p, e, r, o, start)
        if p < 0: return p
    return p


def family_query_body(b: Any, p: int, e: int, r: Any, o: int) -> int:
    h = b[p] & 0x1F
    if h == 0x01: return read_put(b, p, e, r, o)
    if h == 0x02: return read_del(b, p, e, r, o)
    if h == 0x03: return read_query(b, p, e, r, o)
    return -2


def read_request(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh REQUEST: A query travelling to queryables."""
    start = p
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_request_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_REQUEST_ID] = v_request_id; r[o + PRESENT] |= HAS_REQUEST_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_request(b, p, e, r, o, start)
        if p < 0: return p
    if p >= e: return stop(r, o, BODY_MISSING, p, start)
    q = family_query_body(b, p, e, r, o)
    return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q


def chain_push(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QOS
            r[o + PRESENT] &= ~(HAS_PRIORITY | HAS_BLOCK | HAS_EXPRESS | HAS_BLOCK_FIRST)
            p = read_ext_qos(b, p, e, r, o)
        elif h & 0x7F == 0x42:
            r[o + EXTENSIONS] |= EXT_TIMESTAMP
            p = read_ext_timestamp(b, p, e, r, o)
        elif h & 0x7F == 0x33:
            r[o + EXTENSIONS] |= EXT_NODE_ID
            p = read_ext_node_id(b, p, e, r, o)
        elif h & 0x7F == 0x47:
            r[o + EXTENSIONS] |= EXT_TS_STACK
            p = read_ext_ts_stack(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_push(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh PUSH: A sample or deletion travelling from publisher to subscribers."""
    start = p
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_push(b, p, e, r, o, start)
        if p < 0: return p
    if p >= e: return stop(r, o, BODY_MISSING, p, start)
    q = family_sample(b, p, e, r, o)
    return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q


def read_declare_keyexpr(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE KEYEXPR: Gives a number to a key expression, to be used as scope from now on."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 6
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_expr_id, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_expr_id; r[o + PRESENT] |= HAS_ENTITY_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_undeclare_keyexpr(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh UNDECLARE KEYEXPR: Takes the number of a key expression back."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 7
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    v_expr_id, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_expr_id; r[o + PRESENT] |= HAS_ENTITY_ID
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_declare_subscriber(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE SUBSCRIBER: Somebody wants the samples of a key expression."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 8
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_wire_expr(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """WireExpr: The key of what is withdrawn. Without scope and suffix it says nothing, and the id counts."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    if p >= e: return stop(r, o, BAD_LENGTH, p, start)
    h = b[p] + 0
    r[o + AT_MAPPING] = h >> 1 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h & 0x1
    r[o + AT_NAMED] = h & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, short(-q), p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        size = e - p
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_undeclare_subscriber(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x5f:
            r[o + EXTENSIONS] |= EXT_WIRE_EXPR
            r[o + PRESENT] &= ~(HAS_MAPPING | HAS_NAMED | HAS_SCOPE | HAS_SUFFIX)
            p = read_ext_wire_expr(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_undeclare_subscriber(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh UNDECLARE SUBSCRIBER: A subscriber is gone."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 9
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    if v_Z != 0:
        p = chain_undeclare_subscriber(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_queryable_info(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QueryableInfo: Whether a queryable has all the data of its key, and how many hops away it is."""
    start = p
    p += 1
    h, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def chain_declare_queryable(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x21:
            r[o + EXTENSIONS] |= EXT_QUERYABLE_INFO
            p = read_ext_queryable_info(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_declare_queryable(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE QUERYABLE: Somebody answers queries on a key expression."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 10
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_declare_queryable(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_undeclare_queryable(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh UNDECLARE QUERYABLE: A queryable is gone."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 11
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    if v_Z != 0:
        p = chain_undeclare_subscriber(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_declare_token(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE TOKEN: A liveliness token exists."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 12
    v_suffix_len = 0
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MAPPING] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MAPPING
    v_N = h >> 5 & 0x1
    r[o + AT_NAMED] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_NAMED
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    v_scope, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SCOPE] = v_scope; r[o + PRESENT] |= HAS_SCOPE
    if v_N != 0:
        v_suffix_len, q = vle(b, p, e, 16)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        size = v_suffix_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        if not is_utf8(b, p, p + size): note(r, o, BAD_UTF8, p, start)
        r[o + AT_SUFFIX] = p; r[o + LEN_SUFFIX] = size; r[o + PRESENT] |= HAS_SUFFIX
        p += size
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_undeclare_token(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh UNDECLARE TOKEN: A liveliness token is gone."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 13
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    v_id, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_ENTITY_ID] = v_id; r[o + PRESENT] |= HAS_ENTITY_ID
    if v_Z != 0:
        p = chain_undeclare_subscriber(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_declare_final(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE FINAL: All current declarations for an interest were sent."""
    start = p
    r[o + BODY] = r[o + BODY] << 6 | 14
    h = b[p] + 0
    v_Z = h >> 7
    p += 1
    if v_Z != 0:
        p = chain_close(b, p, e, r, o, start)
        if p < 0: return p
    return p


def family_declaration(b: Any, p: int, e: int, r: Any, o: int) -> int:
    h = b[p] & 0x1F
    if h == 0x00: return read_declare_keyexpr(b, p, e, r, o)
    if h == 0x01: return read_undeclare_keyexpr(b, p, e, r, o)
    if h == 0x02: return read_declare_subscriber(b, p, e, r, o)
    if h == 0x03: return read_undeclare_subscriber(b, p, e, r, o)
    if h == 0x04: return read_declare_queryable(b, p, e, r, o)
    if h == 0x05: return read_undeclare_queryable(b, p, e, r, o)
    if h == 0x06: return read_declare_token(b, p, e, r, o)
    if h == 0x07: return read_undeclare_token(b, p, e, r, o)
    if h == 0x1a: return read_declare_final(b, p, e, r, o)
    return -2


def read_declare(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh DECLARE: A declaration, spontaneous or as answer to an INTEREST."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    v_I = h >> 5 & 0x1
    p += 1
    if v_I != 0:
        v_interest_id, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        r[o + AT_INTEREST_ID] = v_interest_id; r[o + PRESENT] |= HAS_INTEREST_ID
    if v_Z != 0:
        p = chain_interest(b, p, e, r, o, start)
        if p < 0: return p
    if p >= e: return stop(r, o, BODY_MISSING, p, start)
    q = family_declaration(b, p, e, r, o)
    return stop(r, o, UNKNOWN_MESSAGE, p, start) if q == -2 else q


def read_link_state(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """link state: What a router or peer says about one node of the network."""
    start = p
    v_zid_len = v_locators_count = 0
    h, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    v_PID = h & 0x1
    v_WAI = h >> 1 & 0x1
    v_LOC = h >> 2 & 0x1
    v_WGT = h >> 3 & 0x1
    p = q
    v_psid, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    v_sn, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_PID != 0:
        v_zid_len, q = vle(b, p, e, 8)
        if q < 0: return stop(r, o, -q, p, start)
        if v_zid_len > 16: return stop(r, o, BAD_LENGTH, p, start)
        p = q
        size = v_zid_len
        if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        p += size
    if v_WAI != 0:
        if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
        v_whatami = b[p] + 0
        p += 1
    if v_LOC != 0:
        v_locators_count, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        if v_locators_count > 65536: return stop(r, o, LIMIT, p, start)
        p = q
        q, count, kind, good = texts(b, p, e, v_locators_count, 8, True)
        if not good: note(r, o, BAD_UTF8, p, start)
        r[o + AT_LOCATORS] = p; r[o + LEN_LOCATORS] = count; r[o + PRESENT] |= HAS_LOCATORS
        p = q
        if kind > 0: return stop(r, o, kind, p, start)
    v_links_count, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    if v_links_count > 65536: return stop(r, o, LIMIT, p, start)
    p = q
    q, count, kind = numbers(b, p, e, v_links_count, 64)
    p = q
    if kind > 0: return stop(r, o, kind, p, start)
    if v_WGT != 0:
        q, count, kind = numbers(b, p, e, v_links_count, 16)
        p = q
        if kind > 0: return stop(r, o, kind, p, start)
    return p


def readable_states(b: Any, p: int, e: int, r: Any, o: int) -> bool:
    count, p = vle(b, p, e, 32)
    if p < 0 or count > 65536: return False
    for _ in range(count):
        if p >= e: return False
        clear(r, o, p)
        p = read_link_state(b, p, e, r, o)
        if p < 0 or r[o + FAULT] != 0: return False
    return p == e


def read_network_oam(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh OAM: Operation and maintenance: in practice the link states of routers, and gossip between peers."""
    start = p
    v_size = v_data = v_states_count = 0
    outer, inside = e, False
    h = b[p] + 0
    if (h >> 5 & 0x3) < 0 or (h >> 5 & 0x3) > 2: return stop(r, o, RESERVED_ENCODING, p, start)
    v_Z = h >> 7
    v_enc = h >> 5 & 0x3
    p += 1
    v_id, q = vle(b, p, e, 16)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_Z != 0:
        p = chain_response_final(b, p, e, r, o, start)
        if p < 0: return p
    if v_enc == 1:
        v_value, q = vle(b, p, e, 64)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
    if v_enc == 2:
        v_size, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, -q, p, start)
        p = q
        if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
        e = p + v_size
        inside = True
    if (v_enc == 2 and not ((v_id == 1 and readable_states(b, p, e, r, o + STRIDE)))):
        size = e - p
        v_data = 1
        p += size
    if (v_enc == 2 and not (v_data != 0)):
        v_states_count, q = vle(b, p, e, 32)
        if q < 0: return stop(r, o, short(-q), p, start)
        if v_states_count > 65536: return stop(r, o, LIMIT, p, start)
        p = q
        r[o + AT_STATES] = p; r[o + LEN_STATES] = 0; r[o + PRESENT] |= HAS_STATES
        for i in range(v_states_count):
            if p >= e: return stop(r, o, BAD_LENGTH, p, start)
            r[o + LEN_STATES] = i + 1
            p = read_link_state(b, p, e, r, o)
            if p < 0: return p
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_first(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """First: Marks the first fragment of a message."""
    start = p
    p += 1
    return p


def read_ext_drop(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Drop: Says that the rest of a message will not come."""
    start = p
    p += 1
    return p


def chain_fragment(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x31:
            r[o + EXTENSIONS] |= EXT_LANE
            r[o + PRESENT] &= ~(HAS_PRIORITY)
            p = read_ext_lane(b, p, e, r, o)
        elif h & 0x7F == 0x02:
            r[o + EXTENSIONS] |= EXT_FIRST
            p = read_ext_first(b, p, e, r, o)
        elif h & 0x7F == 0x03:
            r[o + EXTENSIONS] |= EXT_DROP
            p = read_ext_drop(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_fragment(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh FRAGMENT: Carries a slice of one network message."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    r[o + AT_MORE] = h >> 6 & 0x1; r[o + PRESENT] |= HAS_MORE
    r[o + AT_RELIABLE] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_RELIABLE
    p += 1
    v_sn, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_SN] = v_sn; r[o + PRESENT] |= HAS_SN
    if v_Z != 0:
        p = chain_fragment(b, p, e, r, o, start)
        if p < 0: return p
    size = e - p
    r[o + AT_DATA] = p; r[o + LEN_DATA] = size; r[o + PRESENT] |= HAS_DATA
    p += size
    return p


def read_ext_join_lanes(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """QoS: Next sequence numbers of all lanes: reliable and best effort of priority 0, then of 1, up to 7."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    q, count, kind = numbers(b, p, e, 16, 64)
    r[o + AT_NEXT_SNS] = p; r[o + LEN_NEXT_SNS] = count; r[o + PRESENT] |= HAS_NEXT_SNS
    p = q
    if kind > 0: return stop(r, o, short(kind), p, start)
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def read_ext_join_shm(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Shm: Shared memory on multicast; no node sends it."""
    start = p
    outer, inside = e, False
    p += 1
    v_size, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    if v_size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    e = p + v_size
    inside = True
    size = e - p
    p += size
    if inside and p != e: return stop(r, o, BAD_LENGTH, p, start)
    e = outer
    return p


def chain_join(b: Any, p: int, e: int, r: Any, o: int, start: int) -> int:
    while True:
        if p >= e: return stop(r, o, CHAIN_CUT, p, start)
        h = b[p] + 0
        if h & 0x7F == 0x51:
            r[o + EXTENSIONS] |= EXT_JOIN_LANES
            r[o + PRESENT] &= ~(HAS_NEXT_SNS)
            p = read_ext_join_lanes(b, p, e, r, o)
        elif h & 0x7F == 0x52:
            r[o + EXTENSIONS] |= EXT_JOIN_SHM
            p = read_ext_join_shm(b, p, e, r, o)
        elif h & 0x7F == 0x27:
            r[o + EXTENSIONS] |= EXT_PATCH
            r[o + PRESENT] &= ~(HAS_PATCH)
            p = read_ext_patch(b, p, e, r, o)
        elif h & 0x60 == 0x60: return stop(r, o, RESERVED_ENCODING, p, start)
        else: p = unknown_extension(b, p, e, r, o, True, True)
        if p < 0: return p
        if h < 128: return p


def read_join(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Zenoh JOIN: On multicast, instead of a handshake: who the sender is and where its sequence numbers are."""
    start = p
    h = b[p] + 0
    v_Z = h >> 7
    v_S = h >> 6 & 0x1
    r[o + AT_LEASE_SECONDS] = h >> 5 & 0x1; r[o + PRESENT] |= HAS_LEASE_SECONDS
    p += 1
    if p + 1 > e: return stop(r, o, TRUNCATED, p, start)
    v_version = b[p] + 0
    p += 1
    r[o + AT_VERSION] = v_version; r[o + PRESENT] |= HAS_VERSION
    if p >= e: return stop(r, o, TRUNCATED, p, start)
    h = b[p] + 0
    if (h & 0x3) < 0 or (h & 0x3) > 2: return stop(r, o, BAD_VALUE, p, start)
    v_zid_len = h >> 4
    r[o + AT_WHATAMI] = h & 0x3; r[o + PRESENT] |= HAS_WHATAMI
    p += 1
    size = v_zid_len + 1
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    r[o + AT_ZID] = p; r[o + LEN_ZID] = size; r[o + PRESENT] |= HAS_ZID
    p += size
    if v_S != 0:
        if p >= e: return stop(r, o, TRUNCATED, p, start)
        h = b[p] + 0
        r[o + AT_SN_RESOLUTION] = h & 0x3; r[o + PRESENT] |= HAS_SN_RESOLUTION
        p += 1
        if p + 2 > e: return stop(r, o, TRUNCATED, p, start)
        v_batch_size = little(b, p, 2)
        p += 2
        r[o + AT_BATCH_SIZE] = v_batch_size; r[o + PRESENT] |= HAS_BATCH_SIZE
    v_lease, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_LEASE] = v_lease; r[o + PRESENT] |= HAS_LEASE
    v_next_sn_reliable, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_NEXT_RELIABLE] = v_next_sn_reliable; r[o + PRESENT] |= HAS_NEXT_RELIABLE
    v_next_sn_best_effort, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    r[o + AT_NEXT_BEST_EFFORT] = v_next_sn_best_effort; r[o + PRESENT] |= HAS_NEXT_BEST_EFFORT
    if v_Z != 0:
        p = chain_join(b, p, e, r, o, start)
        if p < 0: return p
    return p


def read_ext_unit(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """unknown extension: An extension without value that this message does not know."""
    start = p
    p += 1
    return p


def read_ext_z64(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """unknown extension: An extension with a number that this message does not know."""
    start = p
    p += 1
    v_value, q = vle(b, p, e, 64)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    return p


def read_ext_zbuf(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """unknown extension: An extension with bytes that this message does not know."""
    start = p
    p += 1
    v_value_len, q = vle(b, p, e, 32)
    if q < 0: return stop(r, o, -q, p, start)
    p = q
    size = v_value_len
    if size > e - p: return stop(r, o, BAD_LENGTH, p, start)
    p += size
    return p


def family_scouting(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Read the message at ``p`` into a row; -2 when no message has this id."""
    h = b[p] & 0x1F
    if h == 0x01: r[o + KIND] = 1; return read_scout(b, p, e, r, o)
    if h == 0x02: r[o + KIND] = 2; return read_hello(b, p, e, r, o)
    return -2


def family_transport(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Read the message at ``p`` into a row; -2 when no message has this id."""
    h = b[p] & 0x1F
    if h == 0x00: r[o + KIND] = 3; return read_transport_oam(b, p, e, r, o)
    if h == 0x01: r[o + KIND] = 4; return read_init(b, p, e, r, o)
    if h == 0x02: r[o + KIND] = 5; return read_open(b, p, e, r, o)
    if h == 0x03: r[o + KIND] = 6; return read_close(b, p, e, r, o)
    if h == 0x04: r[o + KIND] = 7; return read_keep_alive(b, p, e, r, o)
    if h == 0x05: r[o + KIND] = 8; return read_frame(b, p, e, r, o)
    if h == 0x06: r[o + KIND] = 9; return read_fragment(b, p, e, r, o)
    if h == 0x07: r[o + KIND] = 10; return read_join(b, p, e, r, o)
    return -2


def family_network(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """Read the message at ``p`` into a row; -2 when no message has this id."""
    h = b[p] & 0x1F
    if h == 0x19: r[o + KIND] = 11; return read_interest(b, p, e, r, o)
    if h == 0x1a: r[o + KIND] = 12; return read_response_final(b, p, e, r, o)
    if h == 0x1b: r[o + KIND] = 13; return read_response(b, p, e, r, o)
    if h == 0x1c: r[o + KIND] = 14; return read_request(b, p, e, r, o)
    if h == 0x1d: r[o + KIND] = 15; return read_push(b, p, e, r, o)
    if h == 0x1e: r[o + KIND] = 16; return read_declare(b, p, e, r, o)
    if h == 0x1f: r[o + KIND] = 17; return read_network_oam(b, p, e, r, o)
    return -2


def steady_transport(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """The same without messages that links rarely carry, which are -3: they take long to compile."""
    h = b[p] & 0x1F
    if h == 0x00: return -3
    if h == 0x01: return -3
    if h == 0x02: return -3
    if h == 0x03: return -3
    if h == 0x04: r[o + KIND] = 7; return read_keep_alive(b, p, e, r, o)
    if h == 0x05: r[o + KIND] = 8; return read_frame(b, p, e, r, o)
    if h == 0x06: r[o + KIND] = 9; return read_fragment(b, p, e, r, o)
    if h == 0x07: return -3
    return -2


def steady_network(b: Any, p: int, e: int, r: Any, o: int) -> int:
    """The same without messages that links rarely carry, which are -3: they take long to compile."""
    h = b[p] & 0x1F
    if h == 0x19: return -3
    if h == 0x1a: r[o + KIND] = 12; return read_response_final(b, p, e, r, o)
    if h == 0x1b: r[o + KIND] = 13; return read_response(b, p, e, r, o)
    if h == 0x1c: r[o + KIND] = 14; return read_request(b, p, e, r, o)
    if h == 0x1d: r[o + KIND] = 15; return read_push(b, p, e, r, o)
    if h == 0x1e: r[o + KIND] = 16; return read_declare(b, p, e, r, o)
    if h == 0x1f: return -3
    return -2
