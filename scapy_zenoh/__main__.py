"""``python -m scapy_zenoh`` is the command ``scapy-zenoh``."""

from __future__ import annotations

import sys

from scapy_zenoh.cli import main

if __name__ == "__main__":
    sys.exit(main())
