"""Generates the Wireshark dissector from the message classes of ``scapy_zenoh``."""

from __future__ import annotations

from typing import Any


def scapy_ext(ext: Any) -> None:
    """Scapy asks every top-level package of an extension; the layers are in ``scapy_zenoh``."""
    from scapy_zenoh import __version__

    ext.config("Zenoh", __version__)
