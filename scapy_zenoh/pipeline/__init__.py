"""Captures in, tables out, on Spark; needs the extra ``spark``.

``register(spark)`` lets Spark read captures: ``spark.read.format("zenoh").load("captures/")``. ``write_tables`` writes
the tables of captures to a folder, ``read_tables`` reads them, ``stream_tables`` keeps them up to date while files
arrive, and ``session`` starts a Spark for this machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scapy_zenoh.pipeline.source import register as register
    from scapy_zenoh.pipeline.spark import session as session
    from scapy_zenoh.pipeline.stream import stream_tables as stream_tables
    from scapy_zenoh.pipeline.stretch import Options as Options
    from scapy_zenoh.pipeline.tables import read_tables as read_tables
    from scapy_zenoh.pipeline.tables import write_tables as write_tables

__all__ = ["Options", "read_tables", "register", "session", "stream_tables", "write_tables"]

#: Names, and the modules they are in, which are loaded when they are needed: Spark takes a second.
_NAMES = {
    "Options": "stretch",
    "read_tables": "tables",
    "register": "source",
    "session": "spark",
    "stream_tables": "stream",
    "write_tables": "tables",
}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
