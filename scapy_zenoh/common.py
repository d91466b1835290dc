"""Groups of fields that several messages share."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from scapy_zenoh.enums import Encoding, Mapping, WhatAmI
from scapy_zenoh.expr import Expr, From, When
from scapy_zenoh.fields import (
    AutoFlag,
    Bits,
    CountBits,
    LocatorText,
    Repeat,
    Reserved,
    VLECount,
    VLEField,
    VLEFlag,
    VLELen,
    VLEPart,
    ZidOf,
    counted,
    opt,
    vle_bits,
)
from scapy_zenoh.values import encoding_from_text, encoding_to_text, ntp64_of, ntp64_to_text

DEFAULT_ZID = "1"

# --- ids ----------------------------------------------------------------------------------------


def zid_byte(*low: Bits) -> list[Any]:
    """A byte with the length of an id in its high half and ``low`` in the other, then the id."""
    return [CountBits("zid_len", of="zid", size=4, bias=1), *low, ZidOf("zid", DEFAULT_ZID, From("zid_len") + 1)]


def whatami_and_zid() -> list[Any]:
    """Role and id of a node, as in INIT, JOIN and HELLO."""
    return zid_byte(Reserved("reserved", 2), Bits("whatami", WhatAmI.PEER, 2, enum=WhatAmI, closed=True))


def entity_id() -> list[Any]:
    """Id of an entity anywhere in the network: the id of its node and a number there."""
    return [*zid_byte(Reserved("reserved", 4)), VLEField("entity", 0, bits=32)]


# --- key expressions ----------------------------------------------------------------------------


def wire_expr_flags() -> list[Any]:
    """Header bits 6 and 5: whose table the scope belongs to, and whether a suffix follows."""
    return [Bits("M", Mapping.SENDER, 1, enum=Mapping), AutoFlag("N", of="suffix")]


def wire_expr() -> list[Any]:
    """A key expression on the wire: a number that stands for a prefix, and the rest as text."""
    return [VLEField("scope", 0, bits=16), *opt(When("N"), *counted("suffix", bits=16, text=True))]


# --- timestamps ---------------------------------------------------------------------------------


class Ntp64Field(VLEField):
    """A time; takes the NTP64 number, a ``datetime`` or ISO 8601 text, and shows UTC."""

    __slots__: list[str] = []

    def any2i(self, pkt: Any, x: Any) -> Any:
        if isinstance(x, str):
            x = datetime.fromisoformat(x[:-1] + "+00:00" if x.endswith("Z") else x)
        return ntp64_of(x) if isinstance(x, datetime) else x

    def i2repr(self, pkt: Any, x: Any) -> str:
        return f"{ntp64_to_text(x)} ({x!r})" if isinstance(x, int) else repr(x)


def timestamp() -> list[Any]:
    """A time and the id of the node whose clock it is."""
    return [
        Ntp64Field("ts_time", None, bits=64),
        VLELen("ts_id_len", of="ts_id", bits=8, most=16),
        ZidOf("ts_id", None, From("ts_id_len")),
    ]


# --- encodings ----------------------------------------------------------------------------------


def encoding(condition: Expr | None = None) -> list[Any]:
    """What the payload is: a number, whose lowest bit says whether a schema follows."""
    number = vle_bits(VLEFlag("S", of="schema"), VLEPart("encoding_id", None, 31, enum=Encoding), bits=32)
    with_schema = When("S") if condition is None else condition & When("S")
    fields = number if condition is None else opt(condition, *number)
    return [*fields, *opt(with_schema, *counted("schema", bits=8, text=True, lax=True))]


class EncodingText:
    """Gives a message with ``encoding_id`` and ``schema`` the property ``encoding``, as text."""

    __slots__ = ()
    virtual: ClassVar[tuple[str, ...]] = ("encoding",)

    @property
    def encoding(self) -> str:
        """The encoding as Zenoh prints it; the default when none is on the wire."""
        me: Any = self
        return encoding_to_text(me.getfieldval("encoding_id"), me.getfieldval("schema"))

    @encoding.setter
    def encoding(self, text: str) -> None:
        me: Any = self
        me.encoding_id, me.schema = encoding_from_text(text)


# --- locators -----------------------------------------------------------------------------------


def locators() -> list[Any]:
    """Addresses of a node: ``tcp/192.168.1.7:7447``."""
    return [
        VLECount("locators_count", of="locators"),
        Repeat("locators", LocatorText("locator", bits=8), From("locators_count")),
    ]


def counted_zid(name: str) -> list[Any]:
    """An id with its length in front as a number."""
    return [VLELen(f"{name}_len", of=name, bits=8, most=16), ZidOf(name, None, From(f"{name}_len"))]
