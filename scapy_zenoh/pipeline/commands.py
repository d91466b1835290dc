"""``scapy-zenoh tables`` and ``stream``: captures in, a folder of tables out. Spark is loaded when they run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scapy_zenoh import commands
from scapy_zenoh.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from scapy_zenoh.pipeline.tables import Report

MOST_TOLD = 10  # captures that could not be read


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder of the tables")
    parser.add_argument("--master", metavar="URL", help="where Spark runs, e.g. spark://host:7077 (this machine)")
    parser.add_argument("--no-payload", action="store_true", help="leave payloads and attachments out")


def _split_argument(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--split", type=_size, metavar="BYTES", help="what one task reads: 500K, 64M (the default), 1G")


def tables_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``tables``."""
    commands.capture_arguments(parser, "pcap or pcapng, also .gz and .zst: files, folders, globs")
    _common_arguments(parser)
    parser.add_argument("--recording", action="store_true", help="all captures are one recording in that order")
    size = parser.add_mutually_exclusive_group()
    _split_argument(size)
    size.add_argument("--partitions", type=_count, metavar="N", help="about so many tasks, instead of --split")


def stream_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``stream``."""
    parser.add_argument("folder", metavar="DIR", help="folder of rotating captures, or of such folders")
    commands.port_argument(parser)
    _common_arguments(parser)
    _split_argument(parser)
    parser.add_argument("--once", action="store_true", help="read what is there and stop")
    parser.add_argument(
        "--settle", type=_seconds, default=10.0, metavar="S", help="read the newest file S s after its last change (10)"
    )


def tables(args: argparse.Namespace) -> int:
    """Write the tables of captures."""
    with _in_a_line("the job"):
        from scapy_zenoh.pipeline.interrupts import until_interrupted
        from scapy_zenoh.pipeline.spark import session
        from scapy_zenoh.pipeline.stretch import Options
        from scapy_zenoh.pipeline.tables import check, write_tables

        options = Options(tuple(args.port), args.keylog, not args.no_payload)
        check(args.captures, args.output, options)  # complain before Spark starts, which takes seconds
        spark = session(args.master)
        how = {"recording": args.recording, "split": args.split, "partitions": args.partitions}
        report = until_interrupted(spark, lambda: write_tables(spark, args.captures, args.output, options, **how))
    bad = f", {len(report.unread):,} of them not to their end" if report.unread else ""
    print(f"{_files(report)} read{bad}. Tables in {args.output}:")
    _tell(report)
    return 0


def stream(args: argparse.Namespace) -> int:
    """Keep the tables of a folder up to date."""

    def told(number: int, report: Report) -> None:
        print(f"batch {number}: {_files(report)}, {report.rows['messages']:,} messages", flush=True)
        _tell_unread(report)

    with _in_a_line("the stream"), suppress(KeyboardInterrupt):
        from scapy_zenoh.pipeline.spark import session
        from scapy_zenoh.pipeline.stream import check, stream_tables
        from scapy_zenoh.pipeline.stretch import SPLIT, Options

        check(args.folder, args.output)
        options = Options(tuple(args.port), None, not args.no_payload)
        spark = session(args.master)
        if not args.once:
            print(f"following {args.folder}, until you press Ctrl+C", flush=True)
        stream_tables(
            spark,
            args.folder,
            args.output,
            options,
            once=args.once,
            settle=args.settle,
            split=args.split or SPLIT,
            told=told,
        )
    return 0


@contextmanager
def _in_a_line(what: str) -> Iterator[None]:
    """Whatever goes wrong is told in a line, of Spark that is missing and files that may not be read too."""
    for name in ("pyarrow", "pyspark"):
        if find_spec(name) is None:
            raise PipelineError(f"tables on Spark need {name}: pip install 'scapy-zenoh[spark]'")
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    from scapy_zenoh.pipeline.spark import one_line

    try:
        yield
    except BrokenPipeError:  # whoever reads what is told has seen enough
        raise
    except (PySparkException, Py4JError, OSError) as error:
        raise PipelineError(f"{what} failed: {one_line(error)}") from error


def _files(report: Report) -> str:
    return "1 file" if report.captures == 1 else f"{report.captures:,} files"


def _tell(report: Report) -> None:
    from scapy_zenoh.schema.tables import TABLES

    for table in TABLES:
        print(f"  {table:<12} {report.rows[table]:>12,} rows")
    sys.stdout.flush()
    _tell_unread(report)


def _tell_unread(report: Report) -> None:
    for path, error in report.unread[:MOST_TOLD]:
        print(error if error.startswith(path) else f"{path}: {error}", file=sys.stderr)
    if len(report.unread) > MOST_TOLD:
        print(f"and {len(report.unread) - MOST_TOLD} more: see error in the table captures", file=sys.stderr)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _size(text: str) -> int:
    """Bytes: ``1000000``, ``500K``, ``64M``, ``1G``."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    digits = text[:-1] if unit else text
    if not digits.isdigit() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size, such as 500000, 500K, 64M or 1G")
    return int(digits) << unit


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds
