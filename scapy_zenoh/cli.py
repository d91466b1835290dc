"""The command ``scapy-zenoh``.

A command is a module that does the work, and here one function that declares its arguments and one
that hands them over. What a user can get wrong is a ``UserError``: one line on stderr, exit code 2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from scapy_zenoh import __version__, commands, generate, lua_command
from scapy_zenoh.capture import CaptureError
from scapy_zenoh.pipeline import commands as pipeline
from scapy_zenoh.pipeline.errors import PipelineError
from scapy_zenoh.wireshark import WiresharkError


class UserError(Exception):
    """Wrong use, or input that cannot be read."""


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class Command(NamedTuple):
    """One subcommand: its line of help, its arguments, and what runs it and returns the exit code."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


# --- demo ---------------------------------------------------------------------------------------


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="captures to read instead of the samples"
    )


def _demo(args: argparse.Namespace) -> int:
    from scapy_zenoh.demo import Unreadable, demo, shipped_samples  # loads Scapy

    folder = args.folder or shipped_samples()
    if folder is None:
        raise UserError("the samples are not installed here; name a folder of captures: scapy-zenoh demo FOLDER")
    try:
        demo(folder)
    except Unreadable as error:
        raise UserError(str(error)) from error
    return 0


# --- all of them --------------------------------------------------------------------------------

COMMANDS = {
    "dissect": Command("every message of captures, one line each", commands.dissect_arguments, commands.dissect),
    "summary": Command("sessions, accounting and findings of captures", commands.summary_arguments, commands.summary),
    "tables": Command("captures as a folder of tables, with Spark", pipeline.tables_arguments, pipeline.tables),
    "stream": Command("tables of captures as they are recorded", pipeline.stream_arguments, pipeline.stream),
    "generate": Command("a synthetic capture with its truth file", generate.add_arguments, generate.run),
    "lua": Command("the Wireshark plugin, generated from the messages", lua_command.add_arguments, lua_command.run),
    "demo": Command("read the shipped samples, craft, break, make tables", _demo_arguments, _demo),
}


def parser() -> Parser:
    """The parser of the whole command line."""
    top = Parser(prog="scapy-zenoh", description="Zenoh traffic: dissect it, craft it, break it.")
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}.")
        command.arguments(sub)
        sub.set_defaults(run=command.run)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 2 wrong use or unreadable input, 130 interrupted."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
        sys.stdout.flush()
    except (UserError, CaptureError, PipelineError, WiresharkError) as error:
        sys.stdout.flush()
        print(f"scapy-zenoh: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:  # as of a program that the signal ends
        return 130
    return code
