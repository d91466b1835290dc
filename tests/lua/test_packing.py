"""The Lua that unpacks blocks, frames and texts gives what Python gives, for good input and bad."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from random import Random

import lz4.block
import pytest
from cobs import cobs

from scapy_zenoh.link import ZenohCompressedBatch, serial_crc
from scapy_zenoh.primitives import zid_from_wire
from scapy_zenoh.values import MAX_BATCH
from tests.streams import units

ROOT = Path(__file__).parents[2]
COMPRESSED = ROOT / "tests/data/captures/s09_compression_head.pcap"

# In the plugin other parts follow the chunk. Here a loop does, which answers each "function size\n" and bytes with
# "size\n" and bytes, or "nil\n".
LOOP = """
local calls = {
  lz4_block = function(data) return lz4_block(data, 65535) end, cobs_decode = cobs_decode, serial_crc = serial_crc,
  utf8_valid = utf8_valid, utf8_shown = utf8_shown, zid_text = zid_text,
}
for line in io.lines() do
  local name, size = line:match("^(%S+) (%d+)$")
  local result = calls[name](size == "0" and "" or io.read(tonumber(size)))
  if result == nil then io.write("nil\\n") else
    result = tostring(result)
    io.write(#result, "\\n", result)
  end
end
"""

Call = Callable[[str, Iterable[bytes]], list[bytes | None]]


def interpreters() -> list[str]:
    """One name for each Lua on the path."""
    found: dict[str, str] = {}
    for name in ("lua5.2", "lua5.3", "lua5.4", "lua"):
        if path := shutil.which(name):
            found.setdefault(os.path.realpath(path), name)
    return list(found.values())


def call(script: Path, lua: str, name: str, inputs: Iterable[bytes]) -> list[bytes | None]:
    """What a function of the chunk returns for each input, as text; None for nil."""
    asked = b"".join(b"%s %d\n%s" % (name.encode(), len(data), data) for data in inputs)
    run = subprocess.run([lua, str(script)], input=asked, capture_output=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, b"")
    results: list[bytes | None] = []
    rest = memoryview(run.stdout)
    while rest:
        line = bytes(rest[:16]).partition(b"\n")[0]
        size = 0 if line == b"nil" else int(line)
        start = len(line) + 1
        results.append(None if line == b"nil" else bytes(rest[start : start + size]))
        rest = rest[start + size :]
    return results


@pytest.fixture(params=interpreters() or [None])
def lua(request: pytest.FixtureRequest, tmp_path: Path) -> Call:
    """Calls into the chunk, run by each interpreter in turn."""
    if request.param is None:
        pytest.skip("no lua on the path")
    script = tmp_path / "packing.lua"
    script.write_text((ROOT / "lua_bridge/packing.lua").read_text() + LOOP)
    return partial(call, script, request.param)


def assert_same(lua: Call, name: str, expected: Callable[[bytes], bytes | None], inputs: list[bytes]) -> None:
    """The function of the chunk agrees with the Python one on each input."""
    results = lua(name, inputs)
    assert len(results) == len(inputs)
    for data, result in zip(inputs, results, strict=True):
        # Without pytest's comparison of both, which takes long for 64 kB.
        if result != expected(data):
            pytest.fail(f"{name} of {data.hex()[:2000]} is {str(result)[:2000]}, not {str(expected(data))[:2000]}")


def damaged(r: Random, data: bytes) -> bytes:
    """A copy cut short, with a byte changed, taken out or put in."""
    i = r.randrange(len(data) + 1)
    rest, put_in = r.choice(((b"", 0), (data[i + 1 :], 0), (data[i + 1 :], 1), (data[i:], 1)))
    return data[:i] + r.randbytes(put_in) + rest


# --- LZ4 ----------------------------------------------------------------------------------------


def unpacked(block: bytes) -> bytes | None:
    """What liblz4 makes of a block."""
    try:
        return bytes(lz4.block.decompress(block, uncompressed_size=MAX_BATCH))
    except lz4.block.LZ4BlockError:
        return None


def more(length: int) -> bytes:
    """The bytes of a length after the four bits in the token."""
    return b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255]) if length >= 15 else b""


def sequence(literals: bytes, offset: int, length: int) -> bytes:
    """Literals and a match of ``length`` bytes, four or more."""
    size, match = len(literals), length - 4
    token = min(size, 15) << 4 | min(match, 15)
    return bytes([token]) + more(size) + literals + offset.to_bytes(2, "little") + more(match)


def last(literals: bytes) -> bytes:
    """The sequence that ends a block."""
    return bytes([min(len(literals), 15) << 4]) + more(len(literals)) + literals


def handmade(r: Random) -> bytes:
    """A block with the lengths and offsets that decoders check."""
    block, out = b"", 0
    for _ in range(r.randrange(6)):
        literals = r.randbytes(r.choice((0, 0, 1, 4, 5, 8, r.randrange(40), 13, 14, 15, 16, 269, 270, 271)))
        length = r.choice((4, 5, r.randrange(4, 40), 18, 19, 20, 273, 274, 275))
        out += len(literals)
        near, far = r.choice((0, 1, 2, 7, 8, 9, r.randrange(40))), r.choice((out - 1, out, out + 1))
        offset = min(out, near) if r.random() < 0.8 else max(0, far)
        block += sequence(literals, min(offset, 65535), length)
        out += length
    return block + r.choice((b"", last(r.randbytes(r.randrange(24))), last(b""), last(r.randbytes(5))))


def handmade_to_the_limit(r: Random) -> bytes:
    """A block of about as many bytes as are allowed, the last of its matches near to the end."""
    room, size, after = r.randrange(9, 50), r.choice((r.randrange(17), 13, 14)), r.randrange(14)
    match = sequence(r.randbytes(size), r.choice((1, 7, 8, 9)), max(4, room - size - after))
    final = r.choice((0, after - 1, after, after, after + 1))
    return sequence(b"a", 1, MAX_BATCH - room - 1) + match + last(r.randbytes(max(0, final)))


def contents(r: Random) -> list[bytes]:
    """Data that compresses well, badly and not at all."""
    words = [r.randbytes(r.randrange(3, 9)) for _ in range(200)]
    messages = b"".join(b"\x1d\x00\x00demo/example/%d" % i + r.randbytes(6) for i in range(3000))
    text = (ROOT / "scapy_zenoh/link.py").read_bytes()
    long = [b"", b"a", bytes(MAX_BATCH), bytes(MAX_BATCH + 1), r.randbytes(MAX_BATCH), messages[:MAX_BATCH], text]
    mixed = [b"".join(r.choices(words, k=r.randrange(1, 300))) for _ in range(60)]
    repeated = [r.randbytes(r.randrange(1, 20)) * r.randrange(1, 300) for _ in range(60)]
    return long + mixed + repeated


def test_blocks_of_real_batches(lua: Call) -> None:
    batches = [u.wire for u in units(COMPRESSED) if u.kind is ZenohCompressedBatch]
    blocks = [batch[3:] for batch in batches if batch[2] & 1]
    assert len(blocks) >= 10 and all(unpacked(block) for block in blocks)
    r = Random(1)
    assert_same(lua, "lz4_block", unpacked, blocks + [damaged(r, r.choice(blocks)) for _ in range(1000)])


def test_blocks_of_an_encoder(lua: Call) -> None:
    r = Random(2)
    blocks = [lz4.block.compress(data, store_size=False) for data in contents(r)]
    small = [block for block in blocks if len(block) < 2000]
    assert_same(lua, "lz4_block", unpacked, blocks + [damaged(r, r.choice(small)) for _ in range(1000)])


def test_blocks_that_break_rules(lua: Call) -> None:
    r = Random(3)
    for make, count in ((handmade, 2000), (handmade_to_the_limit, 1000)):
        blocks = [make(r) for _ in range(count)]
        assert 0.2 * count < sum(unpacked(block) is not None for block in blocks) < 0.8 * count
        assert_same(lua, "lz4_block", unpacked, blocks)


def test_blocks_of_few_bytes(lua: Call) -> None:
    r = Random(4)
    blocks = [b"", *(bytes([i]) for i in range(256)), *(r.randbytes(r.randrange(2, 30)) for _ in range(1000))]
    assert_same(lua, "lz4_block", unpacked, blocks)


NINE, FOURTEEN = b"123456789", b"12345678abcdef"

# What tells liblz4 from other decoders.
EDGES = {
    "no bytes": (b"", None),
    "nothing": (b"\x00", b""),
    "a match announced by the last token": (b"\x0f", b""),
    "a plain match": (sequence(NINE, 9, 4) + last(b"abcde"), NINE + b"1234" + b"abcde"),
    "an offset to before the start": (sequence(NINE, 10, 4) + last(b"abcde"), None),
    "the offset 0": (sequence(NINE, 0, 4) + last(b"abcde"), NINE + bytes(4) + b"abcde"),
    "four literals at the end": (sequence(NINE, 9, 4) + last(b"abcd"), None),
    "none, with 17 bytes after the token before": (sequence(FOURTEEN, 8, 4) + last(b""), FOURTEEN + b"78ab"),
    "none, with 16 bytes after it": (sequence(FOURTEEN[1:], 8, 4) + last(b""), None),
    "all bytes that fit": (sequence(b"a", 1, MAX_BATCH - 6) + last(b"12345"), b"a" * (MAX_BATCH - 5) + b"12345"),
    "a byte more": (sequence(b"a", 1, MAX_BATCH - 6) + last(b"123456"), None),
    "a match up to the last byte that fits": (
        sequence(b"a", 1, MAX_BATCH - 33) + sequence(FOURTEEN, 8, 18) + last(b""),
        b"a" * (MAX_BATCH - 32) + FOURTEEN + b"78abcdef78abcdef78",
    ),
    "the same with an offset below 8": (
        sequence(b"a", 1, MAX_BATCH - 33) + sequence(FOURTEEN, 7, 18) + last(b""),
        None,
    ),
}


@pytest.mark.parametrize("edge", EDGES)
def test_blocks_at_the_edge(lua: Call, edge: str) -> None:
    block, content = EDGES[edge]
    assert unpacked(block) == content
    assert lua("lz4_block", [block]) == [content]


# --- serial lines -------------------------------------------------------------------------------


def unstuffed(frame: bytes) -> bytes | None:
    """What the cobs package makes of a frame."""
    try:
        return bytes(cobs.decode(frame))
    except cobs.DecodeError:
        return None


def test_frames(lua: Call) -> None:
    r = Random(5)
    sizes = [*range(20), *range(250, 260), *range(505, 515), *(r.randrange(1500) for _ in range(50))]
    data = [bytes(r.choices(r.choice((b"\0", b"a", b"\0abc", bytes(range(256)))), k=size)) for size in sizes * 5]
    frames = [cobs.encode(d) for d in data]
    bad = [damaged(r, r.choice(frames)) for _ in range(1500)] + [r.randbytes(r.randrange(6)) for _ in range(500)]
    assert_same(lua, "cobs_decode", unstuffed, frames + bad)


def test_checksum_of_frames(lua: Call) -> None:
    r = Random(6)
    data = [b"", *(bytes([i]) for i in range(256)), *(r.randbytes(r.randrange(200)) for _ in range(100))]
    assert_same(lua, "serial_crc", lambda d: b"%d" % serial_crc(d), [*data, bytes(1500), b"\xff" * 1500])


# --- texts and ids ------------------------------------------------------------------------------


def texts(r: Random) -> list[bytes]:
    """Texts of all kinds of characters, damaged copies, and bytes at the bounds of UTF-8."""
    chars = "\0a~\x7f\x80\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U000fffff\U0010ffffdemo/é/я/漢/🦀"
    good = ["".join(r.choices(chars, k=r.randrange(12))).encode() for _ in range(500)]
    bounds = bytes.fromhex("00 41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f7 f8 fe ff")
    pairs = [bytes([a, b]) for a in range(0x7F, 0x100) for b in bounds]
    random = [bytes(r.choices(bounds, k=r.randrange(9))) for _ in range(3000)]
    return good + [damaged(r, r.choice(good)) for _ in range(1000)] + pairs + random + [b"", b"a" * MAX_BATCH]


def is_text(data: bytes) -> bytes:
    """Whether Python decodes these bytes, in the words of Lua."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return b"false"
    return b"true"


def test_what_is_a_text(lua: Call) -> None:
    assert_same(lua, "utf8_valid", is_text, texts(Random(7)))


def test_what_is_shown_of_a_text(lua: Call) -> None:
    assert_same(lua, "utf8_shown", lambda data: data.decode(errors="replace").encode(), texts(Random(8)))


def test_ids(lua: Call) -> None:
    r = Random(9)
    ends = [b"", b"\0", b"\1", b"\x0f", b"\x10", b"\xa0", b"\n", b"%", b"\0\0"]
    ids = [r.randbytes(size) + end for size in range(16) for end in ends]
    assert_same(lua, "zid_text", lambda data: zid_from_wire(data).encode(), ids)
