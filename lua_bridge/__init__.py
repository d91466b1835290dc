"""Generates the Wireshark dissector from the message classes of ``scapy_zenoh``."""

from __future__ import annotations

from typing import Any


def plugin(name: str = "zenoh") -> str:
    """The dissector for a protocol called ``name``, which all its filters begin with."""
    from lua_bridge import generate  # imports all messages

    return generate.plugin(name)


def scapy_ext(ext: Any) -> None:
    """Scapy asks every top-level package of an extension; the layers are in ``scapy_zenoh``."""
    from scapy_zenoh import __version__

    ext.config("Zenoh", __version__)
