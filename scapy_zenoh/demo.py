"""What the package does, shown once from start to end: read captures, look inside, craft, break, make tables."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.metadata import PackageNotFoundError, files
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scapy.error import Scapy_Exception
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet
from scapy.sendrecv import sniff
from scapy.utils import hexdump

import scapy_zenoh
from scapy_zenoh.data import ZenohPut
from scapy_zenoh.message import Faulty
from scapy_zenoh.network import ZenohPush
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.scapy_session import ZenohSession

#: Lines shown of one capture; the shipped samples are shorter.
MOST_LINES = 40
#: Characters of a summary.
WIDTH = 110

#: What is crafted: shown and evaluated, so that the reader sees what was run.
CRAFTED = """\
IP(dst="127.0.0.1") / TCP(sport=50000, flags="PA") / ZenohBatch(msgs=[
    ZenohFrame(sn=1, msgs=[
        ZenohPush(suffix="demo/room/1/temperature") / ZenohPut(data=b"22.0", encoding="text/plain"),
    ]),
])"""
BROKEN = """\
ZenohPush(suffix="demo/room/1/temperature", suffix_len=99) / ZenohPut(data=b"22.0")"""


#: What is asked of the tables: shown and evaluated as well.
QUESTIONS = {
    "What was published, samples on several links counted once?": """\
key_rates(tables["messages"]) \\
    .select("key", "publishers", "samples", "bytes", "hops") \\
    .orderBy("bytes", ascending=False)""",
    "How long did queries take, on each link?": """\
spark.sql('''
  SELECT substr(zid, 1, 8) AS asker, substr(peer_zid, 1, 8) AS asked, key, outcome, replies, errors,
         round((finished - asked) / 1e6, 2) AS ms
  FROM queries ORDER BY asked''')""",
    "Who talked to whom, and how was the session set up?": """\
spark.sql('''
  SELECT substr(low_zid, 1, 8) AS low, low_whatami, substr(high_zid, 1, 8) AS high, high_whatami,
         compression, low_latency, low_bytes + high_bytes AS bytes
  FROM sessions WHERE high_zid IS NOT NULL ORDER BY opened''')""",
}
MOST_ROWS = 8  # shown of an answer


class Unreadable(Exception):
    """A folder or file in which there is nothing to show."""


def shipped_samples() -> Path | None:
    """The folder of the samples: beside the package in a checkout, else where they were installed."""
    beside = Path(__file__).parents[1] / "samples"
    if any(beside.glob("*.pcap*")):
        return beside
    try:
        installed = files("scapy-zenoh") or []
    except PackageNotFoundError:
        return None
    places = [Path(str(f.locate())) for f in installed if f.parent.name == "samples" and f.suffix == ".pcapng"]
    return places[0].resolve().parent if places else None


def demo(folder: Path) -> None:
    """Print the whole tour of the captures in ``folder``."""
    if not folder.is_dir():
        raise Unreadable(f"{folder} is not a folder")
    stories = _stories(folder / "README.md")
    captures = {p.name: p for p in sorted(folder.glob("*.pcap*")) if p.is_file()}
    if not captures:
        raise Unreadable(f"{folder} holds no captures (*.pcap, *.pcapng)")

    _title("1. Read: one line for each packet with Zenoh in it")
    in_order = [name for name in stories if name in captures] + [name for name in captures if name not in stories]
    packets = [packet for name in in_order for packet in _read(captures[name], stories.get(name, ""))]
    _title("2. Look inside: one message with all its fields")
    _look_inside(packets)
    _title("3. Craft: flags, lengths and ids follow from what is set")
    _craft()
    _title("4. Break: every computed field can be set, also to nonsense")
    _break()
    _title("5. Tables: all captures as Parquet, written and queried with Spark")
    _tables(list(captures.values()))


def _title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}")


# --- reading ------------------------------------------------------------------------------------


def _stories(readme: Path) -> dict[str, str]:
    """What the captures of a folder show, in the order in which its README lists them."""
    text = readme.read_text("utf-8") if readme.is_file() else ""
    return dict(re.findall(r"^- `(\S+)`: (.+)$", text, re.MULTILINE))


def _read(capture: Path, story: str) -> list[Packet]:
    """Print the Zenoh packets of a capture and return them."""
    try:
        everything = sniff(offline=str(capture), session=ZenohSession)
    except (OSError, EOFError, Scapy_Exception) as error:
        raise Unreadable(f"{capture}: {error}") from error
    packets = [packet for packet in everything if _zenoh(packet) is not None]
    print(f"\n{capture.name} ({len(packets)} of {len(everything)} packets)")
    if story:
        print(f"{story[0].upper()}{story[1:]}")
    for packet in packets[:MOST_LINES]:
        print(f"  {_line(packet, everything[0].time)}")
    if len(packets) > MOST_LINES:
        print(f"  ... and {len(packets) - MOST_LINES} more")
    return packets


def _zenoh(packet: Packet) -> Faulty | None:
    """The outermost Zenoh layer of a packet."""
    for lower in (TCP, UDP):
        inside = packet[lower].payload if lower in packet else None
        if isinstance(inside, Faulty):
            return inside
    return None


def _line(packet: Packet, start: Any) -> str:
    zenoh: Any = _zenoh(packet)
    ports = zenoh.underlayer
    ends = packet[IPv6] if IPv6 in packet else packet[IP]
    wrong = f"  <- {zenoh.fault}" if zenoh.fault else ""
    where = f"{ends.src}:{ports.sport} > {ends.dst}:{ports.dport}"
    text = textwrap.shorten(zenoh.summary(), WIDTH, placeholder=" ...")
    return f"{float(packet.time - start):6.3f} s  {where:33}  {text}{wrong}"


# --- looking inside -----------------------------------------------------------------------------


def _look_inside(packets: list[Packet]) -> None:
    samples = [message for packet in packets for message in _pushed(packet)]
    if not samples:
        print("These captures hold no sample to look at.")
        return
    richest = max(samples, key=lambda message: len(message.payload.exts or ()))
    _show(richest)


def _pushed(packet: Packet) -> Iterator[Packet]:
    """The samples that a packet carries."""
    zenoh: Any = _zenoh(packet)
    for message in zenoh.carried() if hasattr(zenoh, "carried") else ():
        for inner in getattr(message, "msgs", None) or (message,):
            if isinstance(inner, ZenohPush) and ZenohPut in inner:
                yield inner


def _show(packet: Packet) -> None:
    print(textwrap.indent(str(packet.show(dump=True)).rstrip(), "  "))


# --- crafting -----------------------------------------------------------------------------------


def _evaluate(code: str) -> Any:
    print(textwrap.indent(code, "  ") + "\n")
    return eval(code, {**vars(scapy_zenoh), "IP": IP, "TCP": TCP})


def _craft() -> None:
    packet = _evaluate(CRAFTED)
    print("is on the wire, after the headers of IP and TCP:\n")
    print(textwrap.indent(str(hexdump(packet[TCP].payload, dump=True)), "  "))
    print("\nand reads back as:\n")
    print(f"  {IP(bytes(packet)).summary()}")


def _break() -> None:
    data = bytes(_evaluate(BROKEN))
    packet, _ = scapy_zenoh.parse(data, "network")
    print(f"announces a key of 99 bytes where {len(packet.lastlayer().load)} are left. Reading it does not raise:\n")
    _show(packet)
    ((owner, fault),) = packet.faults()
    print(f"\n  fault:      {packet.fault}, found in {owner.name} at byte {fault.offset}, field {fault.field}")
    print(f"  same bytes: {bytes(packet) == data}")


# --- tables -------------------------------------------------------------------------------------


def _tables(captures: list[Path]) -> None:
    print("Spark starts, which takes some seconds.", flush=True)
    try:
        from scapy_zenoh.pipeline import analytics
        from scapy_zenoh.pipeline.spark import session
        from scapy_zenoh.pipeline.tables import read_tables, write_tables

        spark = session()
    except (ImportError, PipelineError) as error:
        print(f"Not shown: {error}")
        return
    with TemporaryDirectory() as folder:
        output = Path(folder) / "tables"
        report = write_tables(spark, [str(path) for path in captures], output)
        print(f"{report.captures} captures became {report.rows['messages']} messages. The folder has these tables:")
        print("  " + " ".join(sorted(path.name for path in output.iterdir() if path.name[0] != "_")))
        names = {**vars(analytics), "spark": spark, "tables": read_tables(spark, output)}
        for question, code in QUESTIONS.items():
            print(f"\n{question}\n\n{textwrap.indent(code, '  ')}\n")
            _show_rows(eval(code, names))
    print("\nTo keep them: scapy-zenoh tables CAPTURE... -o FOLDER; docs/tables.md tells more.")


def _show_rows(rows: Any) -> None:
    shown = StringIO()
    with redirect_stdout(shown):
        rows.show(MOST_ROWS, truncate=False)
    print(textwrap.indent(shown.getvalue().rstrip(), "  "))
