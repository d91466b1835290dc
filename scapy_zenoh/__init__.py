"""Zenoh for Scapy: every message as a layer, dissected on TCP and UDP 7447 and UDP 7446.

``import scapy_zenoh`` binds the ports; ``bind(19999)`` adds another. ``parse`` and ``rebuild`` work on
single messages.
"""

from __future__ import annotations

import sys
from typing import Any

import scapy.layers
from scapy.config import conf

from scapy_zenoh import (
    common,
    data,
    declare,
    enums,
    extension,
    link,
    network,
    scouting,
    transport,
)
from scapy_zenoh.fault import Fault, FaultKind
from scapy_zenoh.link import bind
from scapy_zenoh.message import Malformed, Message, Record
from scapy_zenoh.parsing import LAYERS, parse, rebuild
from scapy_zenoh.primitives import VLE, WideText
from scapy_zenoh.scapy_session import ZenohSession

__version__ = "0.1.0"

_LAYER_MODULES = (scouting, transport, network, declare, data, extension, link)

# The classes are what people type; one list of them would only repeat their declarations.
for _module in _LAYER_MODULES:
    for _name, _value in vars(_module).items():
        if _name.startswith("Zenoh"):
            globals()[_name] = _value

__all__ = [
    "LAYERS",
    "VLE",
    "Fault",
    "FaultKind",
    "Malformed",
    "Message",
    "Record",
    "WideText",
    "ZenohSession",
    "bind",
    "common",
    "enums",
    "parse",
    "rebuild",
    "scapy_ext",
]
__all__ += sorted(name for name in globals() if name.startswith("Zenoh") and name not in __all__)


def _join_scapys_layers() -> None:
    """List the classes where Scapy looks for layers: ``explore("zenoh")``, ``explore(scapy_zenoh)``."""
    module = sys.modules[__name__]
    scapy.layers.zenoh = module  # type: ignore[attr-defined]
    ours = [name for name in conf.layers.ldict if name.startswith(f"{__name__}.")]
    classes = [cls for name in ours for cls in conf.layers.ldict.pop(name)]
    for name in ("zenoh", __name__):
        sys.modules[f"scapy.layers.{name}"] = module
        conf.layers.ldict[f"scapy.layers.{name}"] = classes


_join_scapys_layers()


def scapy_ext(ext: Any) -> None:
    """Called by Scapy's ``conf.exts.load("scapy-zenoh")``; the import has done the work."""
    ext.config("Zenoh", __version__)
