"""How the functions of this package are compiled: the one place that knows Numba."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba

from scapy_zenoh.compilation import sources

njit: Any = numba.njit  # its types do not know all options
F = TypeVar("F", bound=Callable[..., object])

#: Without counting references to arrays: nothing here makes any, and counting would take most of the time.
_OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def compiled(function: F) -> F:
    """Compile a function when it is first called and keep the result on disk.

    It works on arrays and scalars only, without the lock of the interpreter, and divides as C does: a
    division by zero does not raise.
    """
    try:
        dispatcher: Any = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder can be written: every process compiles anew
        return cast(F, njit(**_OPTIONS)(function))
    of_function = dispatcher._cache._index_key
    dispatcher._cache._index_key = lambda *args: (*of_function(*args), sources())
    return cast(F, dispatcher)


def part(function: F, in_place: bool = False) -> F:
    """Compile a function that only compiled functions call; it is kept on disk as part of them.

    ``in_place``: its code stands wherever it is called.
    """
    options = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": in_place}
    return cast(F, njit(**options)(function))


def twins(*modules: ModuleType, instead: dict[str, str], in_place: tuple[str, ...]) -> dict[str, Any]:
    """The functions of plain modules as parts of compiled ones, each calling the twins of those before it.

    ``instead`` gives a name another function's twin; ``in_place`` names those whose code stands where they are called.
    """
    made: dict[str, Any] = {}
    for module in modules:
        names = {**vars(module), **made}
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                twin = FunctionType(function.__code__, names, name)
                twin.__module__ = module.__name__
                names[name] = made[name] = part(twin, name in in_place)
        made.update({name: made[other] for name, other in instead.items() if other in made})
    return made
