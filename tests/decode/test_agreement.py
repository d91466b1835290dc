"""The generated decoder tells of any bytes what Scapy's classes tell: every value and every verdict.

Scapy is the reference here; that it is right is shown elsewhere, by vectors and truth files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import lz4.block
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scapy_zenoh.capture import CaptureReader
from scapy_zenoh.codec import PREFIX, Codec
from scapy_zenoh.decode.codec import PlainCodec
from scapy_zenoh.follow import Follower
from scapy_zenoh.message import NETWORK, SCOUTING, TRANSPORT, Family, Message
from scapy_zenoh.parsing import LAYERS
from scapy_zenoh.records import ScapyCodec
from scapy_zenoh.rows import Row
from tests.conftest import captures, vector_rows
from tests.decode.made import Place, bytes_of, bytes_with, filled, known_extensions, message_with, of_family, started
from tests.decode.readers import Both, Seen, disagreement, everywhere, sized
from tests.rows.files import load
from tests.wire import Record
from tests.wireshark.damage import damaged as damaged_copy

relaxed = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)

SLOW = 300_000  # bytes of a capture that takes seconds
VARIED = 130_000  # and of one that takes seconds when it is damaged, since then batches are looked for everywhere
LONGEST = 1500  # bytes of a batch that is varied


def each(paths: list[Path]) -> pytest.MarkDecorator:
    """A test for each capture, the large ones marked slow."""
    params = [
        pytest.param(path, id=path.name.split(".")[0], marks=[pytest.mark.slow] if path.stat().st_size > SLOW else [])
        for path in paths
    ]
    return pytest.mark.parametrize("capture", params)


# --- whole captures -----------------------------------------------------------------------------


def followed(path: Path, codec: Codec) -> tuple[list[Row], Any]:
    """The rows of a capture, and what the follower has counted and found."""
    follower = Follower(codec=codec)
    rows = [row for packet in CaptureReader([path]) for row in follower.feed(packet)]
    rows += follower.finish()
    return rows, (follower.accounting, list(follower.gaps), follower.opaque, follower.tracker.findings)


def agreed(path: Path) -> Both:
    """Follow a capture with both decoders; they agree on every batch, and so on all rows and figures."""
    both = Both()
    reference, plain = followed(path, both), followed(path, PlainCodec())
    assert both.differences[:5] == []
    for one, other in zip(reference[0], plain[0], strict=False):
        assert one == other
    assert len(reference[0]) == len(plain[0])
    assert reference[1] == plain[1]
    return both


@each(captures())
def test_captures_give_the_same_batches_rows_and_figures(capture: Path) -> None:
    agreed(capture)


def test_scapy_alone_gives_what_it_gives_beside_the_other() -> None:
    for capture in captures()[:4]:
        assert followed(capture, ScapyCodec()) == followed(capture, Both())


SMALL = [path for path in captures() if path.stat().st_size <= VARIED]


def disturbed(records: list[Record], dice: random.Random) -> Iterator[Record]:
    """Packets of which some are lost, seen twice, late or cut."""
    late: list[Record] = []
    for time, data, length in records:
        roll = dice.random()
        if roll < 0.02:
            continue
        if roll < 0.04:
            late.append((time, data, length))
            continue
        if roll < 0.06:
            data = data[: dice.randrange(30, 120)]
        yield time, data, length
        if roll > 0.98:
            yield time, data, length
        if late and dice.random() < 0.3:
            yield late.pop(0)
    yield from late


@each(SMALL)
def test_disturbed_captures_give_the_same_rows_and_figures(capture: Path, tmp_path: Path) -> None:
    raw = load(capture)
    for seed in (1, 2):
        agreed(raw.write(tmp_path / f"{seed}.pcap", list(disturbed(raw.records, random.Random(seed)))))


@each(SMALL)
def test_damaged_captures_give_the_same_rows_and_figures(capture: Path, tmp_path: Path) -> None:
    for seed, aligned in ((1, True), (2, False)):
        agreed(damaged_copy(capture, seed, tmp_path / f"{seed}.pcap", share=0.2, aligned=aligned))


@pytest.mark.slow
def test_captures_that_suffered_from_everything_give_the_same_rows_and_figures(tmp_path: Path) -> None:
    for capture in captures():
        for seed in (3, 4) if capture.stat().st_size <= SLOW else ():
            copy = damaged_copy(capture, seed, tmp_path / "damaged.pcap", share=0.3, aligned=bool(seed % 2))
            raw = load(copy)
            agreed(raw.write(tmp_path / "both.pcap", list(disturbed(raw.records, random.Random(seed)))))


# --- variations of real batches -----------------------------------------------------------------


@cache
def real() -> tuple[Seen, ...]:
    """What decoders are asked to read in captures, and the vectors of another implementation."""
    both = Both()
    for capture in SMALL:
        followed(capture, both)
    found = dict.fromkeys(seen for seen in both.seen if 0 < len(seen[0]) <= LONGEST)
    for name in ("zenoh-pico-valid.jsonl", "zenoh-pico-damaged.jsonl"):
        for row in vector_rows(name):
            data = bytes.fromhex(row["hex"])
            match row["layer"]:
                case "scouting":
                    found[data, "scouting", False] = None
                case "transport":
                    found[data, "plain", False] = None
                case "network":
                    found[data, "network", False] = None
                    found[b"\x25\x01" + data, "plain", False] = None
    return tuple(found)


def varied(seen: Seen, dice: random.Random) -> Seen:
    """The same with bits flipped, or bytes replaced, cut off, put in or taken out; its size is right again."""
    data, framing, with_size = seen
    start = PREFIX[framing] if with_size else 0
    content = bytearray(data[start:])
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if not content:
            break
        at = dice.randrange(min(len(content), 200))  # behind that there are payloads
        match dice.choice(("flip", "flip", "replace", "cut", "put in", "take out")):
            case "flip":
                content[at] ^= 1 << dice.randrange(8)
            case "replace":
                content[at] = dice.choice((0x00, 0x7F, 0x80, 0xFF, dice.randrange(256)))
            case "cut":
                del content[at:]
            case "put in":
                content[at:at] = dice.randbytes(dice.randrange(1, 12))
            case "take out":
                del content[at : at + dice.randrange(1, 6)]
    if not content:
        content += b"\x04"
    return sized(bytes(content), framing) if with_size else bytes(content), framing, with_size


def reframed(seen: Seen) -> list[Seen]:
    """The messages of a batch in every framing."""
    data, framing, with_size = seen
    content = data[PREFIX[framing] if with_size else 0 :]
    if framing == "compressed" and content:
        try:
            content = lz4.block.decompress(content[1:], uncompressed_size=65535) if content[0] & 1 else content[1:]
        except lz4.block.LZ4BlockError:
            return []
    return everywhere(content)


def check(some: list[Seen]) -> None:
    """The decoders agree on all of it."""
    for seen in some:
        found = disagreement(seen)
        assert not found, f"{seen[1]} {'sized' if seen[2] else 'unsized'} {seen[0].hex()}: {found}"


@pytest.mark.slow
def test_real_batches_read_in_every_framing_are_the_same() -> None:
    dice = random.Random(11)
    for seen in dice.sample(real(), min(600, len(real()))):
        if seen[1] in PREFIX:
            check(reframed(seen))


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 8))])
def test_varied_batches_are_read_the_same(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(6000):
        check([varied(dice.choice(real()), dice)])


@pytest.mark.slow
def test_batches_cut_at_any_byte_are_read_the_same() -> None:
    dice = random.Random(12)
    for data, framing, with_size in dice.sample(real(), min(150, len(real()))):
        start = PREFIX[framing] if with_size else 0
        for end in range(start + 1, min(len(data), 120)):
            content = data[start:end]
            check([(sized(content, framing) if with_size else content, framing, with_size)])


# --- made-up messages ---------------------------------------------------------------------------


def of(*families: Family) -> pytest.MarkDecorator:
    """A test for each class."""
    classes = [cls for family in families for _, cls in sorted(family.members.items())]
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


FRAME = bytes.fromhex("2501")  # number 1, reliable


def places(cls: type[Message], data: bytes) -> list[Seen]:
    """Wherever such a message may stand, and where it may not."""
    match cls.family:
        case family if family is SCOUTING:
            return [(data, "scouting", False), *everywhere(data)]
        case family if family is NETWORK:
            return [(data, "network", False), *everywhere(FRAME + data), (data, "lowlatency", False)]
    return everywhere(data)


@of(SCOUTING, TRANSPORT, NETWORK)
@given(data=st.data())
@settings(relaxed, max_examples=60)
def test_made_up_messages_are_read_the_same(cls: type[Message], data: st.DataObject) -> None:
    check(places(cls, data.draw(bytes_of(cls))))


@pytest.mark.slow
@of(SCOUTING, TRANSPORT, NETWORK)
@given(data=st.data())
@settings(relaxed, max_examples=200)
def test_many_made_up_messages_are_read_the_same(cls: type[Message], data: st.DataObject) -> None:
    check(places(cls, data.draw(bytes_of(cls)))[:3])


def in_network(cls: type[Message], data: bytes) -> bytes:
    """A message with the network message around it that its body may have; others as they are."""
    for host in NETWORK.members.values():
        if host.body is not None and cls in host.body.members.values():
            return bytes(host()) + data
    return data


KNOWN = [place for family in LAYERS.values() for cls in family.members.values() for place in known_extensions(cls)]


@pytest.mark.parametrize("place", KNOWN, ids=str)
@given(data=st.data())
@settings(relaxed, max_examples=30)
def test_made_up_extensions_are_read_the_same(place: Place, data: st.DataObject) -> None:
    message = in_network(place.cls, data.draw(bytes_with(place)))
    check([(message, "network", False), (message, "plain", False), (FRAME + message, "plain", False)])


@pytest.mark.parametrize("place", KNOWN, ids=str)
def test_repeated_extension_cut_at_any_byte_is_read_the_same(place: Place) -> None:
    """The last one of its kind counts, and nothing of those before it, also where it cannot be read."""
    for exts in ([filled(place.ext), place.ext()], [place.ext(), filled(place.ext)]):
        twice = in_network(place.cls, bytes(message_with(place, exts)))
        for end in range(1, len(twice) + 1):
            check([(twice[:end], "network", False), (twice[:end], "plain", False)])


@given(data=st.data())
@settings(relaxed, max_examples=100)
def test_made_up_batches_of_several_messages_are_read_the_same(data: st.DataObject) -> None:
    some = data.draw(st.lists(st.one_of(of_family(TRANSPORT), of_family(NETWORK)), min_size=2, max_size=5))
    check(everywhere(b"".join(map(bytes, some))))


@of(SCOUTING, TRANSPORT, NETWORK)
@given(data=st.data())
@settings(relaxed, max_examples=60)
def test_any_bytes_behind_a_header_are_read_the_same(cls: type[Message], data: st.DataObject) -> None:
    check(places(cls, data.draw(started(cls))))


@given(data=st.binary(min_size=1, max_size=80))
@settings(relaxed, max_examples=150)
def test_any_bytes_are_read_the_same(data: bytes) -> None:
    check([(data, "scouting", False), (data, "network", False), *everywhere(data)])


def test_no_bytes_are_read_the_same() -> None:
    check([(b"", "scouting", False), (b"", "network", False), *everywhere(b"")])


def test_more_messages_than_there_was_room_for_are_read_the_same() -> None:
    for count in (63, 64, 65, 128, 129, 1000):
        check(everywhere(b"\x04" * count))
        check(everywhere(FRAME + bytes.fromhex("1a07") * count))
