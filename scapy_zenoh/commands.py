"""``scapy-zenoh dissect`` and ``summary``: captures in, lines out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from scapy_zenoh import compilation
from scapy_zenoh.capture import CaptureError
from scapy_zenoh.keyexpr import canonize, intersects
from scapy_zenoh.piece import Check
from scapy_zenoh.recording import Recording
from scapy_zenoh.story import line, overview


def capture_arguments(
    parser: argparse.ArgumentParser, what: str = "pcap or pcapng, also .gz and .zst; - is stdin"
) -> None:
    """What every command that reads captures takes."""
    parser.add_argument("captures", nargs="+", metavar="CAPTURE", help=what)
    port_argument(parser)
    parser.add_argument("--keylog", metavar="FILE", help="TLS key log (SSLKEYLOGFILE) to decrypt TLS links with")


def port_argument(parser: argparse.ArgumentParser) -> None:
    """On which ports Zenoh is."""
    parser.add_argument("--port", type=_port, nargs="+", default=[], metavar="N", help="read these ports as Zenoh too")


def dissect_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``dissect``."""
    capture_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per message")
    parser.add_argument("--parquet", metavar="FILE", help="write the rows to this file instead")
    parser.add_argument("--no-payload", action="store_true", help="leave payloads and attachments out")
    parser.add_argument("--key", metavar="EXPR", help="only messages whose key intersects this key expression")
    parser.add_argument("--kind", metavar="K", action="append", help="only messages of this kind or body, e.g. push")
    parser.add_argument("--zid", metavar="Z", help="only messages from or to the node whose id begins with this")


def summary_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``summary``."""
    capture_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")


def dissect(args: argparse.Namespace) -> int:
    """Print or write every message."""
    checks = _checks(args)
    recording = _recording(args)
    colour = sys.stdout.isatty()
    start: int | None = None
    with ExitStack() as stack:
        parquet = _parquet(args.parquet, stack)
        for piece in recording.pieces(payload=not args.no_payload):
            if parquet is not None:
                parquet(piece.only(checks).batch())
                continue
            if start is None:
                start = next(piece.rows())["time"]
            wanted = piece.only(checks)
            if args.json:
                lines = wanted.json_lines()
            else:
                lines = (line(row, start or 0, colour).encode("utf-8", "replace").decode() for row in wanted.rows())
            for text in lines:
                print(text)
    return 0


def summary(args: argparse.Namespace) -> int:
    """Print the accounting and the sessions."""
    recording = _recording(args)
    for _ in recording.pieces(columns=False, payload=False):
        pass
    if args.json:
        print(json.dumps(recording.summary()))
    else:
        for text in overview(recording.summary(), recording.ladders):
            print(text)
    return 0


def _recording(args: argparse.Namespace) -> Recording:
    recording = Recording(args.captures, args.port, args.keylog, progress=_progress())
    if recording.compiled and not compilation.is_ready() and sys.stderr.isatty():
        print("Compiling the decoder for large captures, which takes a minute once.", file=sys.stderr)
    return recording


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _parquet(path: str | None, stack: ExitStack) -> Callable[[Any], None] | None:
    if path is None:
        return None
    try:
        from scapy_zenoh.parquet import ParquetFile

        return stack.enter_context(ParquetFile(path)).add
    except ImportError:
        raise CaptureError("--parquet needs pyarrow: pip install 'scapy-zenoh[tables]'") from None
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}") from None


def _checks(args: argparse.Namespace) -> list[Check]:
    checks: list[Check] = []
    if args.key is not None:
        try:
            expression = canonize(args.key)
        except ValueError as error:
            raise CaptureError(f"--key {args.key}: {error}") from None
        checks.append(Check(("key",), lambda key: bool(key) and _intersects(key or "", expression)))
    if args.kind:
        checks.append(Check(("kind", "body"), lambda kind: kind in args.kind))
    if args.zid is not None:
        zid = args.zid.lower()
        checks.append(Check(("src_zid", "dst_zid"), lambda text: (text or "").startswith(zid)))
    return checks


def _intersects(key: str, expression: str) -> bool:
    try:
        return intersects(key, expression)
    except ValueError:
        return False


def _progress() -> Callable[[int, int | None], None] | None:
    """A bar on a terminal, nothing in a pipe."""
    if not sys.stderr.isatty():
        return None
    shown = [-1]

    def show(read: int, total: int | None) -> None:
        if not total or total < 1 << 22:
            return
        percent = min(100, 100 * read // total)
        if percent != shown[0]:
            shown[0] = percent
            bar = ("#" * (percent // 4)).ljust(25, ".")
            print(f"\r{bar} {percent:>3} %", end="\n" if percent == 100 else "", file=sys.stderr, flush=True)

    return show
