"""Whether two packets are the same in everything that reading decides."""

from __future__ import annotations

from typing import Any

from scapy.packet import Packet

from scapy_zenoh.message import Faulty


def differences(a: Any, b: Any, path: str = "") -> list[str]:
    """What differs between two packets or values: class, fields that are set, faults, payload, order of lists."""
    if type(a) is not type(b):
        return [f"{path}: {type(a).__name__} and {type(b).__name__}"]
    if isinstance(a, list):
        found = [] if len(a) == len(b) else [f"{path}: {len(a)} and {len(b)} elements"]
        for i, (x, y) in enumerate(zip(a, b, strict=False)):
            found += differences(x, y, f"{path}[{i}]")
        return found
    if not isinstance(a, Packet):
        return [] if a == b and repr(a) == repr(b) else [f"{path}: {a!r} and {b!r}"]
    found = []
    if isinstance(a, Faulty) and (a._faults, a._stop) != (b._faults, b._stop):
        found.append(f"{path}: faults {a._faults} {a._stop} and {b._faults} {b._stop}")
    if set(a.fields) != set(b.fields):
        found.append(f"{path}: fields {sorted(a.fields)} and {sorted(b.fields)}")
    for name in a.fields:
        found += differences(a.fields[name], b.fields.get(name), f"{path}.{name}")
    if a.explicit != b.explicit:
        found.append(f"{path}: explicit {a.explicit} and {b.explicit}")
    if a.payload or b.payload:
        found += differences(a.payload, b.payload, f"{path}/")
    return found
