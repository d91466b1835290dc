"""Byte vectors for tests: messages written out in the specification, and messages harvested from captures.

Those of the specification were seen from real nodes or computed there from its rules; the few that
it does not have are put together here by the same rules and say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from scapy_zenoh.message import Family, Message
from scapy_zenoh.parsing import LAYERS
from tests.conftest import captures
from tests.streams import undamaged, units

#: Messages of the specification, by layer.
SPECIFIED: dict[str, list[str]] = {
    "scouting": [
        "01 09 03",
        "01 09 07",
        "01 09 1f 0b0b",
        "81 09 02 2e 05",
        "22 09 20 c3b2a1 01 13 7463702f3132372e302e302e313a3237373630",
        "02 09 11 0b0b",
        "22 09 22 c3b2a1 02 11 7463702f31302e302e302e313a37343437 11 7463702f31302e302e302e323a37343437",
    ],
    "transport": [
        "c1 09 12 0b0b 0a c8ff 81 27 01",
        "e1 09 20 c3b2a1 0a 00c0 21 20f02b7cef7f637f2a9fc764e6eb1233c373da38591e540f1280e24851e8fbf302 81 27 01",
        "01 09 11 0b0b",
        "c1 09 11 0b0b 0a c8ff 81 a7 01 48 04 77657374",
        "42 0a d6d8fc0b 21 20f02b7cef7f637f2a9fc764e6eb1233c373da38591e540f1280e24851e8fbf302",
        "62 0a bf80b349",
        "22 90 4e 7f",
        # INIT and OPEN with the Auth of extensions.md 3.2, QoSLink of 3.1 and counters of 3.4, put together here
        "81 09 11 0b0b c3 01 02 21 8a 30",
        "a1 09 20 c3b2a1 02 0102 43 0a 22 d1c0affa8888afd6f9",
        "82 0a 00 00 43 29 42 27 05 7573657231 20 699ae1ba15317cf729d14c2863e998e2b1c908d821d33096d322522cf7be6076",
        "a2 0a 00 c3 01 02 42 09 01 0001020304050607",
        "82 0a 00 00 42 12 dd9fa3e3fcf6a6cdc1 01 0001020304050607",
        "03 00",
        "03 02",
        "23 05",
        "83 00 2e 05",  # put together: CLOSE with the unknown extension of the SCOUT example
        "04",
        "84 0e",  # put together: KEEP_ALIVE with an unknown Unit extension
        "25 c1af803c 7d 00 06 64656d6f2f61 01 05 68656c6c6f",
        "a5 c1af803c 31 00 9e 21 08 20 01 00 06 64656d6f2f70 f9 01 53 01 21 08",
        "05 bf80b349 3d 01 02 2f78 01 02 6265",
        "e6 d6d8fc0b 02 7d 00 05 6269672f78 01 8020 00010203",
        "66 d7d8fc0b edeeeff0",
        "26 dad8fc0b d8d9da",
        "a6 d8d8fc0b 03",
        "a7 09 21 c3b2a1 0a cce0d45b fbdec244 27 01",
        "47 09 10 0b0b 0a 0010 e807 00 00",
        "00 05",
        "20 05 2a",
        "40 05 03 616263",
        "a0 05 31 00 2a",
    ],
    "network": [
        "7d 00 06 64656d6f2f61 01 05 68656c6c6f",
        "fd 00 06 64656d6f2f61 21 19 c1 09 05 7574662d38 43 03 617474 02 6869",
        "5d 01 41 0a 02 7b7d",
        "3d 01 02 2f78 01 02 6265",
        "9d 02 33 02 21 a099b187a5cdccfe6a 02 0c0c 06 66726f6d2063",
        # PUSH with the TsStack of extensions.md 3.6 and a Timestamp, put together here
        "dd 01 c2 0c 80eaaac4cdaaccfe6a 02 0b0b 47 1e 07 02 01 0c e0f7b6bcdcdbccfe6a 02 0b0b"
        " 02 0c f0ecc9bcdcdbccfe6a 02 0b0b 02",
        "fc 01 00 03 712f61 a1 0d 26 d00f 23 03",
        "fc 02 00 03 712f2a a1 0d b4 01 26 c413 e3 01 0a 6b3d763b5f616e796b65 c3 03 08504c 45 02 4154",
        "bc 01 01 04 2f657272 a1 0d 26 d00f 23 03",
        "9c 01 03 a1 0d a6 e807 33 02 23 03",
        "fc 05 00 01 61 25 0a 03",
        "fb 01 00 03 712f61 a1 0d 43 05 20c3b2a106 04 81 43 01 78 02 5231",
        "fb 02 00 03 712f62 a1 0d 43 05 20c3b2a106 04 02",
        "fb 03 00 05 712f657272 a1 0d 43 05 20c3b2a106 45 08 03 626164",
        "9a 01 21 0d",
        "1a 07",
        "9e 21 08 20 01 00 06 64656d6f2f70",
        "be 01 21 08 62 01 00 07 64656d6f2f2a2a",
        "be 01 21 08 1a",
        "9e a1 08 33 02 42 00 01",
        "f9 01 53 01 21 08",
        "b9 03 79 03 03 2f2a2a 21 08",
        "99 01 21 08",
        "59 02 0f",
        "f9 05 55 05 21 08",
        "df 01 21 08 28 02 07 00 02 02 0b0b 01 01 13 7463702f3132372e302e302e313a3237363232 01 01"
        " 03 01 00 03 c3b2a1 01 00",
        "df 01 21 08 01 00",
        "1f 05",  # put together as the transport OAMs of the specification
        "3f 05 2a",
        "5f 05 03 616263",
    ],
    "declare": [
        "20 01 00 06 64656d6f2f70",
        "20 02 01 04 2f666f6f",
        "00 03 01",
        "01 01",
        "62 01 00 07 64656d6f2f2a2a",
        "62 01 01 03 2f2a2a",
        "42 00 01",
        "03 01",
        "83 00 5f 05 03 01 2f2a2a",
        "64 01 01 03 2f2a2a",
        "e4 03 00 04 712f2a2a 21 01",
        "85 03 5f 02 00 00",
        "46 02 02",
        "06 00 02",
        "66 00 00 06 6c6976652f61",
        "87 01 5f 02 00 00",
        "1a",
    ],
    "data": [
        "01 05 68656c6c6f",
        "c1 09 05 7574662d38 43 03 617474 02 6869",
        "61 e18096fc819fccfe6a 10 100f0e0d0c0b0a090807060504030211 0a 02 7b7d",
        "81 41 06 20c3b2a10607 02 7369",
        "81 12 01 01 07 80089ce7020000",
        "01 00",
        "02",
        "22 e18096fc819fccfe6a 02 0b0b",
        "82 42 01 78",
        "23 03",
        "03",
        "63 03 03 613d31",
        "e3 01 0a 6b3d763b5f616e796b65 c3 03 08504c 45 02 4154",
        "83 43 03 08 504c",
        "a3 03 84 43 42 00 01 01 06 40 9ce702 01 00",
        "04 81 43 01 78 02 5231",
        "04 02",
        "24 01 01 01 61",
        "45 08 03 626164",
        "05 00",
        "c5 08 41 05 10 0b0b 01 02 00",
    ],
}

MESSAGES = [(layer, cls) for layer, family in LAYERS.items() for cls in family.members.values()]
HARVEST_BYTES = 130_000  # larger captures have no other kinds of message
LONGEST = 150


def specified(layer: str, cls: type[Message] | None = None) -> list[bytes]:
    """The messages of the specification for a layer, or those of one class."""
    found = [bytes.fromhex(text) for text in SPECIFIED[layer]]
    return [data for data in found if cls is None or data[0] & 0x1F == cls.message_id()]


def _inside(message: Any) -> Iterator[Any]:
    """A message, the messages in it, and their bodies."""
    while isinstance(message, Message):
        yield message
        for inner in message.fields.get("msgs", ()):
            yield from _inside(inner)
        message = message.payload


def _shape(packet: Any) -> tuple[Any, ...]:
    """What makes two messages of a class different in kind: the fields that are there, the extensions, the body."""
    chain = tuple(type(ext).__name__ for ext in packet.fields.get("exts", ()))
    return (type(packet).__name__, tuple(packet.fields), chain, type(packet.payload).__name__)


@lru_cache(maxsize=1)
def harvest() -> dict[tuple[str, str], list[bytes]]:
    """Layer and class -> messages of real traffic, one of each shape, short ones preferred."""
    layers: dict[Family | None, str] = {family: layer for layer, family in LAYERS.items()}
    found: dict[tuple[Any, ...], tuple[str, str, bytes]] = {}
    for capture in captures():
        if not undamaged(capture) or capture.stat().st_size > HARVEST_BYTES:
            continue
        for unit in units(capture):
            packet = unit.read()
            for top in packet.msgs if "msgs" in packet.default_fields else [packet]:
                for message in _inside(top):
                    data = bytes(message)
                    shape = _shape(message)
                    known = found.get(shape)
                    if len(data) <= LONGEST and (known is None or len(data) < len(known[2])):
                        found[shape] = layers[message.family], type(message).__name__, data
    gathered: dict[tuple[str, str], list[bytes]] = {}
    for layer, name, data in found.values():
        gathered.setdefault((layer, name), []).append(data)
    return gathered


def examples(layer: str, cls: type[Message]) -> list[bytes]:
    """All vectors of a class."""
    return list(dict.fromkeys([*specified(layer, cls), *harvest().get((layer, cls.__name__), [])]))
