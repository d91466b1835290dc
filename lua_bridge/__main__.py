"""``python -m lua_bridge`` is the command ``scapy-zenoh lua``."""

from __future__ import annotations

import sys

from scapy_zenoh.cli import main

if __name__ == "__main__":
    sys.exit(main(["lua", *sys.argv[1:]]))
