"""Zenoh as layers of Scapy: importing this declares every message and binds the ports.

``scapy_zenoh`` gives all names of this module as its own, and loads it when one is asked for or
when Scapy's TCP and UDP come into the process.
"""

from __future__ import annotations

import sys
from typing import Any

import scapy.layers.inet
from scapy.config import conf

import scapy_zenoh
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


def scapy_ext(ext: Any) -> None:
    """Called by Scapy's ``conf.exts.load("scapy-zenoh")``; the import has done the work."""
    ext.config("Zenoh", scapy_zenoh.__version__)


def _join_scapys_layers() -> None:
    """List the classes where Scapy looks for layers: ``explore("zenoh")``, ``explore(scapy_zenoh)``."""
    scapy.layers.zenoh = scapy_zenoh  # type: ignore[attr-defined]
    layers = conf.layers.ldict
    ours = [name for name in layers if name.startswith("scapy_zenoh.")]
    classes = [*layers.get("scapy.layers.zenoh", ()), *(cls for name in ours for cls in layers.pop(name))]
    for name in ("zenoh", "scapy_zenoh"):
        sys.modules[f"scapy.layers.{name}"] = scapy_zenoh
        layers[f"scapy.layers.{name}"] = classes


link.bind_defaults()
_join_scapys_layers()
# Scapy looks into the dictionary of a layer's module, and so do people who evaluate ``packet.command()``.
vars(scapy_zenoh).update({name: globals()[name] for name in __all__}, __all__=__all__)
