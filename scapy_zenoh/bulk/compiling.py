"""How the functions of this package are compiled: the one place that knows Numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function when it is first called and keep the result on disk.

    It works on arrays and scalars only, without the lock of the interpreter, and divides as C does: a
    division by zero does not raise.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
