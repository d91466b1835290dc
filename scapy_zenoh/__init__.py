"""Zenoh for Scapy: every message as a layer, dissected on TCP and UDP 7447 and UDP 7446.

``import scapy_zenoh`` binds the ports; ``bind(19999)`` adds another. ``parse`` and ``rebuild`` work on
single messages. ``read_capture`` and ``to_table`` turn captures into tables.

The import is cheap: Scapy and the message classes come with the first name that needs them, and the
ports are bound as soon as the process has Scapy's TCP and UDP, however they got there. What reads
captures into tables never needs Scapy.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from scapy_zenoh import binding

if TYPE_CHECKING:
    from scapy_zenoh.layers import *  # noqa: F403

__version__ = "0.1.0"

#: Names that do without Scapy, and the modules they are in.
_PLAIN = {
    "Fault": "fault",
    "FaultKind": "fault",
    "VLE": "primitives",
    "WideText": "primitives",
    "read_capture": "tables",
    "to_table": "tables",
}
#: Names of ``layers``, besides the classes called Zenoh-something. Any other name must not load it:
#: pickle, for one, asks every module for the name of what it packs.
_OF_LAYERS = ("LAYERS", "Malformed", "Message", "Record", "__all__", "bind", "parse", "rebuild", "scapy_ext")


def __getattr__(name: str) -> Any:
    if name in _PLAIN:
        return getattr(import_module(f"{__name__}.{_PLAIN[name]}"), name)
    if name in _OF_LAYERS or name.startswith("Zenoh"):
        return getattr(_layers(name), name)
    if name.isidentifier() and not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _layers(name: str) -> Any:
    """The module that has all that needs Scapy."""
    try:
        return import_module(f"{__name__}.layers")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "scapy":
            raise
        raise ImportError(f"{__name__}.{name} needs Scapy: {error}", name=error.name, path=error.path) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLAIN, *__getattr__("__all__")})


# After what the layers need of this module, for they are loaded here if Scapy is there already.
binding.bind_with_scapy()
