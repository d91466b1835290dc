"""Messages per second of tshark: without a plugin, with a minimal script written by hand, with the generated plugin.

    python benchmarks/lua.py [--messages N] [--rounds N]

The capture is publications only, N of them as FRAME/PUSH/PUT on TCP, half of them on the way to a router and half from
there with its timestamp. Every reader prints fields, so the tree is built: without a plugin the bytes of the TCP
segments, with either script number, scope, suffix and payload of every publication. What both print must be the same,
and as many PUSH as the truth file tells of. Processor time is measured, and readers take turns: the rates are medians
over the rounds, the ratios medians of the ratios within a round. Fails when the plugin is less than half as fast as
the script.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from lua_bridge.generate import plugin
from scapy_zenoh.generate import Shape, generate, truth_path
from scapy_zenoh.wireshark import find_tshark, isolated

MINIMAL = Path(__file__).with_name("minimal.lua")
FIELDS = ("frame.sn", "push.scope", "push.suffix", "put.data_len", "put.data")
SCOPE = 1 + FIELDS.index("push.scope")  # its column, after the number of the packet
WANTED = 0.5  # of the rate of the minimal script


@dataclass(frozen=True)
class Reader:
    """A way to read the capture: its name, the script that is loaded, and the fields that are printed."""

    name: str
    script: Path | None
    fields: tuple[str, ...]

    def command(self, tshark: str, capture: Path) -> list[str]:
        """The command line."""
        loaded = ["-X", f"lua_script:{self.script}"] if self.script else []
        printed = [word for field in ("frame.number", *self.fields) for word in ("-e", field)]
        return [tshark, "-n", "-r", str(capture), *loaded, "-T", "fields", *printed]


def processor_time(command: list[str], output: Path, home: Path) -> float:
    """Run a command and return its seconds of processor time, user and system."""
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.PIPE, env=isolated(home))
        assert process.stderr is not None
        said = process.stderr.read().decode()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or "Lua" in said:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n{said}")
    return usage.ru_utime + usage.ru_stime


def pushes_told(truth: Path) -> int:
    """PUSH messages in the capture: each operation on its way to the router, and each that a subscriber received."""
    told = json.loads(truth.read_text("utf-8"))
    received = (int(k["count"]) for node in told["received"].values() for sub in node.values() for k in sub.values())
    return int(told["messages"]) + sum(received)


def pushes_printed(output: Path) -> int:
    """PUSH messages in what a script printed: the scopes."""
    with output.open(encoding="utf-8", errors="replace") as lines:
        columns = (line.split("\t")[SCOPE] for line in lines)
        return sum(scopes.count(",") + 1 for scopes in columns if scopes)


def measure(readers: list[Reader], tshark: str, folder: Path, capture: Path, rounds: int) -> list[list[float]]:
    """Processor times by round and reader; ends the program when the scripts disagree with the truth file."""
    outputs = [folder / f"{reader.name}.txt" for reader in readers]
    expected = pushes_told(truth_path(capture))
    times = []
    for _ in range(rounds):
        turns = zip(readers, outputs, strict=True)
        times.append([processor_time(reader.command(tshark, capture), output, folder) for reader, output in turns])
        _, minimal, full = outputs
        for output in (minimal, full):
            found = pushes_printed(output)
            if found != expected:
                sys.exit(f"{output.stem} printed {found:,} PUSH messages, the truth file tells of {expected:,}")
        if not filecmp.cmp(minimal, full, shallow=False):
            sys.exit("minimal script and full plugin do not print the same values")
    return times


def main() -> None:
    """Make the capture, let the readers take turns, print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000, help="PUSH messages in the capture (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each reader has its turn (%(default)s)")
    options = parser.parse_args()
    tshark = find_tshark()
    if tshark is None:
        parser.error("tshark is not installed")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        capture, full = folder / "publications.pcap", folder / "zenoh.lua"
        full.write_text(plugin(), "utf-8")
        operations = options.messages // 2  # each is seen on its way to the router, and from there
        generate(Shape(messages=operations, sessions=10, queries=0, deletes=0, declarations=0, events=0), capture)
        print(f"{2 * operations:,} PUSH messages, {capture.stat().st_size / 1e6:.1f} MB, {options.rounds} rounds")
        readers = [
            Reader("tshark alone", None, ("tcp.payload",)),
            Reader("minimal script", MINIMAL, tuple(f"zmin.{field}" for field in FIELDS)),
            Reader("full plugin", full, tuple(f"zenoh.{field}" for field in FIELDS)),
        ]
        times = measure(readers, tshark, folder, capture, options.rounds)
    for number, reader in enumerate(readers):
        spent = median(row[number] for row in times)
        print(f"{reader.name:<16} {spent:>8.2f} s {2 * operations / spent:>10,.0f} messages/s")
    ratio = median(minimal / ours for _, minimal, ours in times)
    print(f"full / minimal   {ratio:>8.2f}   (at least {WANTED} is wanted)")
    print(f"full / alone     {median(alone / ours for alone, _, ours in times):>8.3f}")
    if ratio < WANTED:
        sys.exit(1)


if __name__ == "__main__":
    main()
