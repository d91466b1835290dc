"""Links in their regular state, compiled: packets in order, batches that are whole, messages without a fault.

``run`` goes through the packets of a block as long as each does what packets of its flow nearly always do, and
leaves the messages as rows. Whatever is not regular it leaves to ``follow`` and says where it stopped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scapy_zenoh.bulk.compiling import compiled, part, twins
from scapy_zenoh.bulk.lz4 import unpack
from scapy_zenoh.decode import _generated, reading, runtime
from scapy_zenoh.decode._generated import HAS_SCHEMA, HAS_SLICED_SCHEMA, SCHEMA, SLICED_SCHEMA
from scapy_zenoh.decode.runtime import BATCH, FAULT, LENGTHS, PRESENT, STRIDE, VALUES
from scapy_zenoh.enums import TransportId
from scapy_zenoh.framing import MAX_UNIT
from scapy_zenoh.streams import ACK, FIN, REACH, RST, SYN
from scapy_zenoh.values import MAX_BATCH

_decoder = twins(
    runtime,
    _generated,
    reading,
    instead={"family_transport": "steady_transport", "family_network": "steady_network"},
    in_place=("vle", "clear", "stop", "short"),
)
read_batch, is_utf8 = _decoder["read_batch"], _decoder["is_utf8"]

# --- flows: one row for each direction; the opposite one has the number with the last bit flipped -----------

(
    MODE,  # what may be done with its packets here
    NEXT,  # TCP: position of the next byte
    TOP,  # TCP: behind the last byte on the wire
    ACKED,  # TCP: what the other side has
    BARE,  # 1: low latency
    PACKED,  # 1: compression was agreed
    ENDS,  # number of what its rows have in common
    PENDING,  # where the beginning of a batch waits in the spill
    WAITING,  # how much of it there is
    LAST_DATA,  # number in the block of the last packet with data, -1: none
    BATCHES,  # ordinal of the next batch
    PACKETS,  # since it became steady: packets,
    DATA_PACKETS,  # packets with data,
    PAYLOAD,  # bytes,
    DECODED,  # bytes of whole batches
    LAST_FRAME,  # the newest packet: its number, time, file,
    LAST_TIME,
    LAST_FILE,
    LAST_ORDER,  # and number in the recording
    FLOW,
) = range(20)

SLOW, STREAM, OTHER, DATAGRAM = range(4)  # modes; of OTHER only the numbers of TCP are followed

# --- the state of a run --------------------------------------------------------------------------

(
    AT,  # next packet
    COUNT,  # packets in the block
    ORDER,  # of the first packet of the block in the recording
    FILE,  # number of the file
    DEADLINE,  # time from which ``follow`` has to look at connections that linger
    ROWS,  # rows so far
    ENOUGH,  # rows after which the run ends
    FOUND,  # batches so far
    SPILLED,  # bytes of the spill in use
    BATCH_AT,  # an irregular batch: where it begins,
    BATCH_SIZE,  # how much of it there is,
    BATCH_SPILLED,  # whether in the spill,
    REST,  # and where the packet goes on behind it
    STATE,
) = range(14)

# why a run ended
DONE, AT_PACKET, AT_BATCH, FULL, SPILL_FULL = range(5)

#: Rows there must be room for behind ENOUGH: no packet has more bytes, nor so many messages.
RESERVE = 1 << 17
#: Room that one packet may need in the spill.
SPILL_RESERVE = 4 * MAX_UNIT

# batches: columns
FLOW_OF, ENDS_OF, PACKET_OF, ORDINAL_OF, SPILLED_OF, COMPRESSED_OF, BATCH_COLUMNS = range(7)

_MASK = 0xFFFFFFFF
_HALF = 0x80000000
_CONTROL = FIN | SYN | RST
_INIT = int(TransportId.INIT)
_TEXTS = HAS_SCHEMA | HAS_SLICED_SCHEMA


@part
def _tcp(F: Any, f: int, seq: int, ack: int, flags: int, size: int) -> bool:
    """Follow the numbers of a segment; False when it is not the next one, or not only data."""
    if flags & _CONTROL != 0 or (seq - F[f, NEXT]) & _MASK != 0:
        return False
    g = f ^ 1
    ahead = (ack - F[g, ACKED]) & _MASK
    if ahead != 0 and ahead < _HALF and flags & ACK != 0:
        near = max(F[g, TOP], F[g, ACKED])
        place = near + ((ack - near + _HALF) & _MASK) - _HALF
        if F[g, ACKED] < place <= max(near, F[g, NEXT]) + REACH:
            F[g, ACKED] = place
    if size > 0:
        F[f, NEXT] += size
        if F[f, NEXT] > F[f, TOP]:
            F[f, TOP] = F[f, NEXT]
    return True


@part
def _size_at(b: Any, p: int, bare: int) -> int:
    """The length of the batch at ``p``, its size included."""
    size: int = b[p] + 0 | (b[p + 1] + 0) << 8
    if bare:
        size |= (b[p + 2] + 0) << 16 | (b[p + 3] + 0) << 24
        return 4 + size
    return 2 + size


@part
def copy(source: Any, at: int, target: Any, to: int, size: int) -> None:
    """Copy bytes. Numbers without sign: of others the compiler asks whether they count from the end."""
    here, there = np.uint64(at), np.uint64(to)
    for i in range(np.uint64(size)):
        target[there + i] = source[here + i]


@part
def _all_text(b: Any, r: Any, o: int) -> bool:
    """Whether the texts that may be anything are UTF-8, as columns of text want it."""
    for slot in (SCHEMA, SLICED_SCHEMA):
        if r[o + PRESENT] >> slot & 1:
            at = r[o + VALUES + slot]
            if not is_utf8(b, at, at + r[o + LENGTHS + slot]):
                return False
    return True


@part
def _take(
    b: Any, p: int, total: int, spilled: int, F: Any, f: int, spill: Any, r: Any, B: Any, s: Any, k: int, prefix: int
) -> bool:
    """Read a batch into rows; False when it is not regular."""
    if total > prefix:
        e = p + total
        p += prefix
        packed = 0
        if F[f, PACKED]:
            packed = b[p] & 1
            p += 1
            if packed:
                if s[SPILLED] + MAX_BATCH > spill.size:
                    return False
                size = unpack(b, p, e, spill, s[SPILLED])
                if size < 0:
                    return False
                b, p, spilled = spill, s[SPILLED], 1
                e = p + size
                s[SPILLED] = e
        o = s[ROWS] * STRIDE
        found = read_batch(b, p, e, r, o, RESERVE, F[f, BARE] != 0)
        if found <= 0:
            return False
        for i in range(o, o + found * STRIDE, STRIDE):
            if r[i + FAULT] != 0 or r[i + PRESENT] & _TEXTS != 0 and not _all_text(b, r, i):
                return False
        m = s[FOUND]
        B[m, FLOW_OF] = f
        B[m, ENDS_OF] = F[f, ENDS]
        B[m, PACKET_OF] = k
        B[m, ORDINAL_OF] = F[f, BATCHES]
        B[m, SPILLED_OF] = spilled
        B[m, COMPRESSED_OF] = packed
        for i in range(found):
            r[o + i * STRIDE + BATCH] = m
        s[FOUND] += 1
        s[ROWS] += found
    F[f, BATCHES] += 1
    F[f, DECODED] += total
    return True


@part
def _irregular(s: Any, at: int, size: int, spilled: int, rest: int) -> int:
    s[BATCH_AT] = at
    s[BATCH_SIZE] = size
    s[BATCH_SPILLED] = spilled
    s[REST] = rest
    return AT_BATCH


@part
def _stream(data: Any, p: int, e: int, F: Any, f: int, spill: Any, r: Any, B: Any, s: Any, k: int) -> int:
    """Read the batches that the bytes of a segment complete."""
    bare = F[f, BARE]
    prefix = 4 if bare else 2
    while p < e:
        waiting = F[f, WAITING]
        if waiting == 0 and e - p >= prefix:
            total = _size_at(data, p, bare)
            if total <= min(e - p, MAX_UNIT):
                if not _take(data, p, total, 0, F, f, spill, r, B, s, k, prefix):
                    return _irregular(s, p, total, 0, p + total)
                p += total
                continue
        # The batch goes on in a later packet: what is there of it moves to the spill, its size first.
        if waiting == 0:
            F[f, PENDING] = s[SPILLED]
            s[SPILLED] += 4
        if waiting < prefix:
            moved = min(prefix - waiting, e - p)
            copy(data, p, spill, F[f, PENDING] + waiting, moved)
            p += moved
            waiting += moved
            F[f, WAITING] = waiting
            if waiting < prefix:
                return DONE
            total = _size_at(spill, F[f, PENDING], bare)
            if total > MAX_UNIT:
                F[f, WAITING] = 0
                return _irregular(s, F[f, PENDING], waiting, 1, p)
            copy(spill, F[f, PENDING], spill, s[SPILLED], prefix)
            F[f, PENDING] = s[SPILLED]
            s[SPILLED] += total
        total = _size_at(spill, F[f, PENDING], bare)
        moved = min(total - waiting, e - p)
        copy(data, p, spill, F[f, PENDING] + waiting, moved)
        p += moved
        F[f, WAITING] = waiting + moved
        if waiting + moved == total:
            F[f, WAITING] = 0
            if not _take(spill, F[f, PENDING], total, 1, F, f, spill, r, B, s, k, prefix):
                return _irregular(s, F[f, PENDING], total, 1, p)
    return DONE


@part
def _datagram(data: Any, p: int, n: int, F: Any, f: int, spill: Any, r: Any, B: Any, s: Any, k: int) -> bool:
    """Read the batch that a datagram is; False when it is not regular, or perhaps begins a new link."""
    if data[p] & 0x1F == _INIT or not _take(data, p, n, 0, F, f, spill, r, B, s, k, 0):
        return False
    F[f, PACKETS] += 1
    F[f, DATA_PACKETS] += 1
    F[f, PAYLOAD] += n
    return True


@compiled
def run(
    data: Any,
    start: Any,
    size: Any,
    missing: Any,
    seq: Any,
    ack: Any,
    flags: Any,
    frame: Any,
    time: Any,
    flow: Any,
    before: Any,
    F: Any,
    spill: Any,
    r: Any,
    B: Any,
    s: Any,
) -> int:
    """Go on from packet ``s[AT]``; returns why it stopped there, ``AT_BATCH`` behind the packet of the batch."""
    for k in range(s[AT], s[COUNT]):
        s[AT] = k
        f = flow[k]
        mode = F[f, MODE]
        n = size[k]
        if mode == SLOW or time[k] >= s[DEADLINE] or missing[k] != 0 or n + F[f, WAITING] > RESERVE:
            return AT_PACKET
        if s[ROWS] >= s[ENOUGH]:
            return FULL
        if s[SPILLED] + SPILL_RESERVE > spill.size:
            return SPILL_FULL
        if mode == DATAGRAM:
            if n > 0 and not _datagram(data, start[k], n, F, f, spill, r, B, s, k):
                return AT_PACKET
            continue
        if not _tcp(F, f, seq[k], ack[k], flags[k], n):
            return AT_PACKET
        F[f, PACKETS] += 1
        F[f, LAST_FRAME] = frame[k]
        F[f, LAST_TIME] = time[k]
        F[f, LAST_FILE] = s[FILE]
        F[f, LAST_ORDER] = s[ORDER] + k
        if n == 0:
            continue
        F[f, PAYLOAD] += n
        F[f, DATA_PACKETS] += 1
        if mode == OTHER:
            continue
        before[k] = F[f, LAST_DATA]
        F[f, LAST_DATA] = k
        if _stream(data, start[k], start[k] + n, F, f, spill, r, B, s, k) != DONE:
            s[AT] = k + 1
            return AT_BATCH
    s[AT] = s[COUNT]
    return DONE


# --- which flow a packet belongs to --------------------------------------------------------------


@part
def _slot(table: Any, src: int, sport: int, dst: int, dport: int, proto: int) -> int:
    """The slot of a flow, or the free one where it belongs."""
    mask = table.shape[0] - 1
    mixed: int = (src * 0x9E3779B1 ^ dst * 0x85EBCA77 ^ (sport << 20) ^ (dport << 2) ^ proto) * 0x27D4EB2F165667C5
    i: int = (mixed >> 29) & mask
    while table[i, 0] >= 0 and not (
        table[i, 1] == src
        and table[i, 2] == dst
        and table[i, 3] == sport
        and table[i, 4] == dport
        and table[i, 5] == proto
    ):
        i = (i + 1) & mask
    return i


@part
def _enter(table: Any, i: int, f: int, src: int, sport: int, dst: int, dport: int, proto: int) -> None:
    table[i, 0] = f
    table[i, 1] = src
    table[i, 2] = dst
    table[i, 3] = sport
    table[i, 4] = dport
    table[i, 5] = proto


@compiled
def assign(
    src: Any, sport: Any, dst: Any, dport: Any, proto: Any, begin: int, end: int, table: Any, known: int, flow: Any
) -> tuple[int, int]:
    """Give each packet the number of its flow; returns how far it came before the table is full, and the flows known.

    A new flow gets a number for each of its directions.
    """
    for k in range(begin, end):
        if 10 * known > 7 * table.shape[0]:
            return k, known
        a, ap, b, bp, kind = src[k] + 0, sport[k] + 0, dst[k] + 0, dport[k] + 0, proto[k] + 0
        i = _slot(table, a, ap, b, bp, kind)
        if table[i, 0] < 0:
            _enter(table, i, known, a, ap, b, bp, kind)
            i = _slot(table, a, ap, b, bp, kind)
            j = _slot(table, b, bp, a, ap, kind)
            if table[j, 0] < 0:  # else it talks to itself
                _enter(table, j, known + 1, b, bp, a, ap, kind)
            known += 2
        flow[k] = table[i, 0]
    return end, known


@compiled
def enter_all(old: Any, table: Any) -> None:
    """Move all flows to a larger table."""
    for i in range(old.shape[0]):
        if old[i, 0] >= 0:
            j = _slot(table, old[i, 1], old[i, 3], old[i, 2], old[i, 4], old[i, 5])
            _enter(table, j, old[i, 0], old[i, 1], old[i, 3], old[i, 2], old[i, 4], old[i, 5])
