"""Binds the ports of Zenoh when Scapy's TCP and UDP come into the process, and not before.

``import scapy_zenoh`` shall make Scapy dissect Zenoh, whichever of the two is imported first. It shall
not import Scapy by itself: that takes up to a second, which every worker process of a data pipeline
would pay without ever using it. So, where Scapy is not there yet, a finder waits on ``sys.meta_path``
for the one module that has TCP and UDP, lets the others find and run it, and then loads the layers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Where Scapy has TCP and UDP.
AWAITED = "scapy.layers.inet"


def bind_with_scapy() -> None:
    """Load the layers now if TCP and UDP are there, else with them."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    if sys.modules.get(AWAITED) is not None:
        _load_layers()


def _load_layers() -> None:
    # A new list, because another thread may be walking the old one.
    sys.meta_path = [finder for finder in sys.meta_path if finder is not _finder]
    # The statement, not import_module: where two threads wait for each other, it alone lets one go on.
    import scapy_zenoh.layers  # noqa: F401


class _Finder(MetaPathFinder):
    """Finds the awaited module as the finders after this one do, to be run by ``_ThenLayers``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != AWAITED:
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _ThenLayers(spec.loader)
                return spec
        return None


class _ThenLayers(Loader):
    """Runs a module with its own loader, and loads the layers when that has succeeded."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        self._own.exec_module(module)
        _load_layers()


_finder = _Finder()
