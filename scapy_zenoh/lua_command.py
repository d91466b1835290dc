"""``scapy-zenoh lua``: the Wireshark plugin, printed, written or installed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lua_bridge
from scapy_zenoh.wireshark import WiresharkError, find_tshark, install


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``lua``."""
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it to this file")
    parser.add_argument("--install", action="store_true", help="put it into the personal plugin folder of Wireshark")
    parser.add_argument(
        "--name", default="zenoh", help="call the protocol and its filters this, if another plugin has zenoh already"
    )


def run(args: argparse.Namespace) -> int:
    """Print the plugin, or put it where it was asked for and say so."""
    try:
        text = lua_bridge.plugin(args.name)
    except ValueError as error:
        raise WiresharkError(f"--name {error}") from None
    if args.output is not None:
        try:
            args.output.write_text(text, "utf-8", newline="\n")
        except OSError as error:
            raise WiresharkError(f"{args.output}: {error.strerror or error}") from None
        print(f"wrote {args.output}", file=sys.stderr)
    if args.install:
        path = install(text, args.name)
        print(f"installed {path}")
        if find_tshark() is None:
            print("There is no tshark to ask; this is the folder that Wireshark usually reads.")
        print(f"Restart Wireshark, or press Ctrl+Shift+L in it; then filter for {args.name}.")
    if args.output is None and not args.install:
        sys.stdout.write(text)
    return 0
