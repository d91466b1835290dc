"""Captures as Arrow tables: for pandas, Polars, DuckDB and whatever else reads Arrow; needs the extra ``tables``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from scapy_zenoh.recording import Recording

Paths = str | Path | Sequence[str | Path]


def read_capture(
    path: Paths, *, ports: Sequence[int] = (), keylog: str | Path | None = None, payload: bool = True
) -> Iterator[Any]:
    """The messages of a capture as record batches (``pyarrow.RecordBatch``), one row each, as they are read.

    Several paths are one recording in that order. ``ports`` are read as Zenoh besides the default ones,
    ``keylog`` decrypts TLS; without ``payload`` the payloads and attachments are null. A file that cannot be
    read (on) raises ``scapy_zenoh.capture.CaptureError``, after the messages before the damage.
    """
    _want_pyarrow()
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    return Recording(paths, ports, keylog).batches(payload)


def to_table(path: Paths, *, ports: Sequence[int] = (), keylog: str | Path | None = None, payload: bool = True) -> Any:
    """All messages of a capture as one table (``pyarrow.Table``); see ``read_capture``."""
    _want_pyarrow()
    import pyarrow as pa

    from scapy_zenoh import arrow

    batches = read_capture(path, ports=ports, keylog=keylog, payload=payload)
    return pa.Table.from_batches(batches, arrow.schema()).unify_dictionaries()


def _want_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError("tables need pyarrow: pip install 'scapy-zenoh[tables]'") from error
