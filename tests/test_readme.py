"""The README tells the truth: its examples run, and its list of faults is the one of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from scapy_zenoh import FaultKind

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_python_examples_give_what_is_shown(tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5 and all(block.startswith(">>> ") for block in blocks)
    examples = tmp_path / "README.txt"
    examples.write_text("\n".join(blocks), "utf-8")
    # A process of its own: the examples load all of Scapy and bind a port.
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "doctest", str(examples)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_fault_is_explained() -> None:
    rows = [f"| `{kind}` | {kind.about} | {'noted' if kind.noted else ''} |" for kind in FaultKind]
    assert "\n".join(rows) in README
