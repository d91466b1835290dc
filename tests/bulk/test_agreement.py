"""Compiled code tells of a recording what Scapy tells: rows in order with all columns, accounting, sessions, errors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scapy_zenoh.generate import Shape, generate
from scapy_zenoh.session.tracker import Limits
from tests.bulk import disturb
from tests.bulk.compare import ODD, SMALL, TINY, USUAL, Cut, Read, agree, bulk, differences, plain, scapy
from tests.bulk.talk import Datagrams, Group, Stream, conversations
from tests.conftest import captures
from tests.rows.files import Raw, load
from tests.wire import Record
from tests.wireshark.damage import damaged

SLOW = 300_000  # bytes of a capture that takes seconds
VARIED = 130_000  # and of one that takes seconds when it is damaged, since then batches are looked for everywhere

CUTS = (TINY, Cut(300, 3), Cut(1000, 1 << 14), ODD, SMALL, Cut(1 << 21, 50), USUAL)


def each(paths: Sequence[Path]) -> pytest.MarkDecorator:
    """A test for each capture, the large ones marked slow."""
    params = [
        pytest.param(path, id=path.name.split(".")[0], marks=[pytest.mark.slow] if path.stat().st_size > SLOW else [])
        for path in paths
    ]
    return pytest.mark.parametrize("capture", params)


@cache
def reference(path: Path) -> Read:
    """What Scapy tells of a capture."""
    return scapy([path])


# --- whole captures -----------------------------------------------------------------------------


@each(captures())
def test_captures(capture: Path) -> None:
    cuts = (USUAL, ODD, SMALL) if capture.stat().st_size <= SLOW else (USUAL, ODD)
    agree(reference(capture), [capture], *cuts)


@each([path for path in captures() if path.stat().st_size <= VARIED])
def test_captures_in_the_smallest_blocks(capture: Path) -> None:
    agree(reference(capture), [capture], TINY)


def test_captures_as_one_recording() -> None:
    some = [path for path in captures() if path.stat().st_size <= VARIED]
    for paths in (some[:6], some[-6:], [some[0], some[1], some[0]]):
        agree(plain(paths), paths, USUAL, ODD)


@each([path for path in captures() if path.stat().st_size <= VARIED])
def test_small_limits(capture: Path) -> None:
    limits = Limits(keys=2, entities=2, requests=3, answered=2, reassembly=3000, findings=5)
    agree(plain([capture], limits=limits), [capture], ODD, USUAL, limits=limits)


# --- damaged captures ---------------------------------------------------------------------------

VARIABLE = [path for path in captures() if path.stat().st_size <= VARIED]


@cache
def raw(path: Path) -> Raw:
    """The packets of a capture."""
    return load(path)


def rough(seed: int, folder: Path) -> list[Path]:
    """A recording that had a rough journey: one capture, used again, beside itself or another, in several files."""
    dice = random.Random(seed)
    first = raw(dice.choice(VARIABLE))

    def journey(some: Raw) -> list[Record]:
        return disturb.disturbed(some, dice.choice(disturb.KINDS), dice)

    records = journey(first)
    match dice.choice(("alone", "alone", "used again", "beside itself", "beside another")):
        case "used again":
            records += journey(Raw(first.linktype, disturb.renumbered(first, dice.randrange(1 << 32))))
        case "beside itself":
            records = disturb.mixed(records, journey(Raw(first.linktype, disturb.elsewhere(first, 7))), dice)
        case "beside another":
            other = raw(dice.choice([path for path in VARIABLE if raw(path).linktype == first.linktype]))
            records = disturb.mixed(records, journey(other), dice)
    paths = disturb.files(first.linktype, records, folder, dice)
    if dice.random() < 0.15:
        path = dice.choice(paths)
        data = path.read_bytes()
        path.write_bytes(data[: dice.randrange(len(data) + 1)])
    return paths


@pytest.mark.parametrize("seed", range(4))
def test_rough_journeys(seed: int, tmp_path: Path) -> None:
    paths = rough(seed, tmp_path)
    agree(scapy(paths), paths, CUTS[seed % len(CUTS)])


@pytest.mark.parametrize("group", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 10))])
def test_many_rough_journeys(group: int, tmp_path: Path) -> None:
    """Against plain Python, of which other tests say that it agrees with Scapy."""
    for seed in range(100 + 20 * group, 120 + 20 * group):
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths = rough(seed, folder)
        found = differences(plain(paths), bulk(paths, random.Random(seed).choice(CUTS)))
        assert not found, f"seed {seed}: {found}"


@each(VARIABLE)
def test_damaged_content(capture: Path, tmp_path: Path) -> None:
    for seed, aligned in ((1, True), (2, False)):
        path = damaged(capture, seed, tmp_path / f"{seed}.pcap", share=0.2, aligned=aligned)
        agree(plain([path]), [path], ODD, USUAL)


@pytest.mark.slow
@each(VARIABLE)
def test_damaged_content_read_by_scapy(capture: Path, tmp_path: Path) -> None:
    path = damaged(capture, 3, tmp_path / "damaged.pcap", share=0.2, aligned=False)
    agree(scapy([path]), [path], SMALL)


def test_recording_that_ends_in_a_damaged_file_has_told_all_before(tmp_path: Path) -> None:
    some = VARIABLE[:3]
    cut = tmp_path / "cut.pcap"
    for size in (0, 10, 30, 3000, 10_000):
        cut.write_bytes(raw(some[1]).write(tmp_path / "whole.pcap").read_bytes()[:size])
        paths = [some[0], cut, some[2]]
        reference = plain(paths)
        assert reference.error
        agree(reference, paths, USUAL, ODD)


def test_files_of_one_name(tmp_path: Path) -> None:
    """Frames begin anew in each, which must not make them older than those of the file before."""
    for path in VARIABLE[:5]:
        records = raw(path).records
        for parts in (2, 3, 7):
            paths = []
            for number in range(parts):
                (tmp_path / str(number)).mkdir(exist_ok=True)
                some = records[len(records) * number // parts : len(records) * (number + 1) // parts]
                paths.append(raw(path).write(tmp_path / str(number) / "a.pcap", some))
            agree(scapy(paths), paths, USUAL, ODD)


# --- made traffic -------------------------------------------------------------------------------

SHAPES: dict[str, dict[str, Any]] = {
    "tcp": {"attachments": 0.3, "encodings": ("text/plain;utf-8", "zenoh/bytes"), "timestamps": "source"},
    "udp": {"transport": "udp", "batch_size": 1400},
    "low latency": {"low_latency": True, "qos": False},
    "large": {"large": 0.05, "large_payload": (1000, 90_000), "messages": 800},
    "large on udp": {"large": 0.05, "large_payload": (1000, 20_000), "transport": "udp", "batch_size": 1400},
    "no lanes": {"qos": False, "priorities": (1, 5, 7), "best_effort": 0.3},
    "8 bits": {"sn_bits": 8, "priorities": (1, 5, 7), "large": 0.05, "large_payload": (1000, 90_000), "messages": 800},
    "16 bits": {"sn_bits": 16, "per_batch": 1},
    "loss": {"loss": 0.02, "priorities": (2, 5), "best_effort": 0.2},
    "reorder": {"reorder": 0.05, "duplicate": 0.05},
    "loss on udp": {"transport": "udp", "batch_size": 1400, "loss": 0.02, "reorder": 0.05, "duplicate": 0.02},
    "queries": {"queries": 0.6, "loss": 0.002},
    "declarations": {"declarations": 0.6, "key_form": "mixed", "keys": 50},
    "many": {"sessions": 60, "queries": 0.2, "declarations": 0.2},
    "compressed": {"compression": True, "text": 0.9},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_made_traffic(shape: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "made.pcap"
    generate(Shape(**{"messages": 1000, "sessions": 6, "events": 0} | shape), path)
    agree(plain([path]), [path], USUAL, Cut(1 << 16, 1000))


# --- made-up conversations ----------------------------------------------------------------------

relaxed = settings(deadline=None, suppress_health_check=[*HealthCheck])
cuts = st.sampled_from([TINY, Cut(200, 2), ODD, SMALL, USUAL])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("talk")


def check(records: list[Record], cut: Cut, folder: Path) -> None:
    path = folder / "talk.pcap"
    path.write_bytes(disturb.as_pcap(1, records))
    agree(scapy([path]), [path], cut)


@pytest.mark.parametrize("kind", [Stream, Datagrams, Group])
@given(data=st.data())
@settings(relaxed, max_examples=12)
def test_made_up_conversations(kind: Any, data: st.DataObject, folder: Path) -> None:
    check(data.draw(conversations((kind,))), data.draw(cuts), folder)


@pytest.mark.slow
@given(records=conversations(), cut=cuts)
@settings(relaxed, max_examples=200)
def test_many_made_up_conversations(records: list[Record], cut: Cut, folder: Path) -> None:
    check(records, cut, folder)


@pytest.mark.slow
@given(records=conversations(), cut=cuts, seed=st.integers(0, 1 << 20))
@settings(relaxed, max_examples=150)
def test_disturbed_conversations(records: list[Record], cut: Cut, seed: int, folder: Path) -> None:
    dice = random.Random(seed)
    check(disturb.disturbed(Raw(1, records), dice.choice(disturb.KINDS), dice), cut, folder)
