"""``python -m scapy_zenoh`` is the command ``scapy-zenoh``; for ``spark-submit`` this file is it."""

from __future__ import annotations

import sys

if not __package__:  # run as a file: its folder is where modules are looked for, instead of the one above
    from pathlib import Path

    sys.path[0] = str(Path(__file__).resolve().parents[1])

from scapy_zenoh.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
