"""What is tested here is compiled code."""

from __future__ import annotations

import pytest

from tests.compiled import compile_once


@pytest.fixture(autouse=True, scope="session")
def compiled() -> None:
    """All functions that captures need are compiled."""
    compile_once()
