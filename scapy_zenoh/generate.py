"""Synthetic captures: traffic of a described shape, the same for the same seed, with its truth file.

``generate(Shape(messages=10_000, sessions=8), "x.pcap")`` writes ``x.pcap`` and ``x.truth.json``, which
tells what the applications did in the form of the recorded captures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from random import Random
from typing import Any

from scapy_zenoh.synthetic.recorder import Damage, Recorder
from scapy_zenoh.synthetic.shape import (
    CONGESTION,
    KEY_FORMS,
    SN_BITS,
    STAMPS,
    TRANSPORTS,
    Shape,
)
from scapy_zenoh.synthetic.traffic import START, Traffic
from scapy_zenoh.synthetic.truth import SAMPLES_PER_NODE, TruthFile

__all__ = ["Shape", "add_arguments", "generate", "run", "truth_path"]

BUFFER = 1 << 20


def truth_path(capture: Path) -> Path:
    """Where the truth file of a capture is."""
    return capture.with_name(capture.name.split(".")[0] + ".truth.json")


def generate(shape: Shape, pcap_path: Path | str, progress: Callable[[int], object] | None = None) -> Path:
    """Write a capture of that shape and its truth file, whose path is returned.

    Both are written as the traffic is made; ``progress`` is called with the number of messages done.
    When something goes wrong on the way, neither file is left behind.
    """
    capture = Path(pcap_path)
    told = truth_path(capture)
    if told == capture:
        raise ValueError(f"{capture} is the name of a truth file; name the capture x.pcap")
    try:
        _write(shape, capture, told, progress)
    except BaseException:
        capture.unlink(missing_ok=True)
        told.unlink(missing_ok=True)
        raise
    return told


def _write(shape: Shape, capture: Path, told: Path, progress: Callable[[int], object] | None) -> None:
    damaged = bool(shape.loss or shape.reorder or shape.duplicate)
    traffic = Traffic(shape)
    with capture.open("wb", buffering=BUFFER) as file:
        truth = TruthFile(told, _head(shape, capture, traffic))
        try:
            damage = None
            if damaged:
                random = Random(f"{shape.seed}/damage")
                damage = Damage(random, truth.damage, shape.loss, shape.reorder, shape.duplicate)
            recorder = Recorder(file, START, damage)
            traffic.run(recorder, truth, progress)
            truth.close(_tail(traffic, recorder), damaged)
        finally:
            truth.abandon()


def _head(shape: Shape, capture: Path, traffic: Traffic) -> dict[str, Any]:
    notes = []
    if shape.events is not None:
        notes.append(f"events tells the first {shape.events} operations, received counts all")
    if shape.qos and len(set(shape.priorities)) > 1:
        notes.append("samples of a key are told in the order of their puts; higher priorities overtake on the wire")
    if shape.loss or shape.reorder or shape.duplicate:
        notes.append("the capture was damaged afterwards; the events are those of the undamaged run")
    limit = f"rx_samples holds at most {SAMPLES_PER_NODE} records per node; 'received' counts everything"
    return {
        "name": capture.name.split(".")[0],
        "file": capture.name,
        "what": f"synthetic: {shape.sessions} clients and a router, {shape.messages} messages, seed {shape.seed}",
        "link": shape.transport,
        "zenoh_versions": ["synthetic"],
        "shape": asdict(shape),
        "nodes": traffic.nodes(),
        "notes": notes,
        "rx_samples_note": limit,
    }


def _tail(traffic: Traffic, recorder: Recorder) -> dict[str, Any]:
    return {
        "received": traffic.received(),
        "messages": traffic.messages,
        "wire": asdict(traffic.counts),
        "capture": {
            "tool": "scapy-zenoh generate",
            "interface": None,
            "snaplen": None,
            "filter": None,
            "dropped": 0,
            "packets": recorder.packets,
            "linktype": "ether",
            "file_bytes": recorder.bytes,
        },
    }


# --- command line -------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``scapy-zenoh generate``."""
    usual = Shape()
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="capture to write (pcap)")

    def number(name: str, text: str, kind: type = int) -> None:
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=kind, default=getattr(usual, name), metavar="N", help=f"{text} (%(default)s)")

    def share(name: str, text: str) -> None:
        number(name, f"share of {text}, 0 to 1", float)

    def sizes(name: str, text: str) -> None:
        flag, value = "--" + name.replace("_", "-"), getattr(usual, name)
        text = f"{text}, from MIN to MAX bytes ({value[0]} {value[1]})"
        parser.add_argument(flag, type=int, nargs=2, default=value, metavar=("MIN", "MAX"), help=text)

    def switch(flag: str, name: str, text: str) -> None:
        parser.add_argument(flag, dest=name, action="store_const", const=not getattr(usual, name), help=text,
                            default=getattr(usual, name))  # fmt: skip

    def word(name: str, known: tuple[Any, ...], text: str, several: bool = False) -> None:
        value = getattr(usual, name)
        shown = " ".join(map(str, value)) if several else value
        flag, text = "--" + name.replace("_", "-"), f"{text} ({shown})"
        parser.add_argument(flag, type=type(known[0]), choices=known, nargs="+" if several else None, default=value,
                            help=text)  # fmt: skip

    number("messages", "puts, deletions, queries and declarations")
    number("sessions", "clients of the router; half of them publish, half subscribe")
    number("seed", "the same seed gives the same capture")
    share("queries", "queries")
    share("deletes", "deletions")
    share("declarations", "declarations that come and go")
    number("keys", "keys per publisher")
    word("key_form", KEY_FORMS, "how keys are sent: whole, after a declared prefix, declared, or all of these")
    sizes("payload", "payloads")
    share("large", "puts with a large payload")
    sizes("large_payload", "large payloads, which travel in fragments")
    share("text", "payloads that can be compressed")
    parser.add_argument("--encodings", nargs="+", default=usual.encodings, metavar="E",
                        help="encodings of payloads, such as text/plain;utf-8 (zenoh/bytes)")  # fmt: skip
    share("attachments", "messages with an attachment")
    word("timestamps", STAMPS, "who stamps samples")
    switch("--no-qos", "qos", "one lane for all priorities")
    word("priorities", tuple(range(1, 8)), "priorities of messages", several=True)
    word("congestion", CONGESTION, "congestion control of samples", several=True)
    share("express", "express messages")
    share("best_effort", "best-effort samples")
    number("per_batch", "messages per batch, at most")
    number("batch_size", "bytes per batch, at most")
    word("sn_bits", tuple(SN_BITS), "resolution of sequence numbers")
    switch("--compression", "compression", "compress batches")
    switch("--low-latency", "low_latency", "no frames and no lanes; implies --no-qos")
    word("transport", TRANSPORTS, "links")
    number("segment", "bytes per TCP segment")
    number("rate", "messages per second of captured time", float)
    share("loss", "packets missing in the capture")
    share("reorder", "packets that the following one overtakes")
    share("duplicate", "packets that are there twice")
    parser.add_argument("--events", type=int, metavar="N", help="operations told one by one in the truth file (all)")


def shape_of(options: argparse.Namespace) -> Shape:
    """The shape that the arguments describe; a ValueError says why there is none."""
    values = {field.name: getattr(options, field.name) for field in fields(Shape)}
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = tuple(value)
    if values["low_latency"]:
        values["qos"] = False
    return Shape(**values)


def run(options: argparse.Namespace) -> int:
    """Do what ``scapy-zenoh generate`` is asked for; the exit code."""
    try:
        shape = shape_of(options)
        told = generate(shape, options.output, _progress(shape) if sys.stderr.isatty() else None)
    except (ValueError, OSError) as error:
        print(f"scapy-zenoh generate: {error}", file=sys.stderr)
        return 2
    print(f"{options.output}: {shape.messages} messages, {options.output.stat().st_size} bytes; truth in {told}")
    return 0


def _progress(shape: Shape) -> Callable[[int], None]:
    shown = 0.0

    def show(done: int) -> None:
        nonlocal shown
        if done == shape.messages or time.monotonic() - shown > 0.2:
            shown = time.monotonic()
            end = "\n" if done == shape.messages else ""
            print(f"\r{done} of {shape.messages} messages", end=end, file=sys.stderr, flush=True)

    return show
