"""Scouting: how nodes find each other. One message per UDP datagram."""

from __future__ import annotations

from typing import Any

from scapy.config import conf

from scapy_zenoh.common import locators, whatami_and_zid
from scapy_zenoh.enums import ScoutingId, WhatAmI, WhatAmIBit
from scapy_zenoh.expr import From, When
from scapy_zenoh.extension import ExtChain, ExtTable
from scapy_zenoh.fault import FaultKind
from scapy_zenoh.fields import (
    AutoFlag,
    Bits,
    CountBits,
    MessageId,
    Reserved,
    UInt,
    ZidOf,
    opt,
)
from scapy_zenoh.message import SCOUTING, Message
from scapy_zenoh.values import PROTOCOL_VERSION

#: Nothing is defined, and nodes skip whatever comes.
SCOUTING_EXTENSIONS = ExtTable(lenient=True)


class _Scouting(Message):
    """What both share: nothing may follow in the same datagram."""

    def dissect(self, s: bytes) -> None:
        Message.dissect(self, s)
        last = self.lastlayer()
        if self.underlayer is not None and isinstance(last, conf.padding_layer):
            self.note(FaultKind.TRAILING_BYTES, offset=len(s) - len(last.load))

    def hashret(self) -> bytes:
        return b"zenoh-scouting"


class ZenohScout(_Scouting):
    """Asks who is there: sent to a multicast group, answered by HELLO."""

    name = "Zenoh SCOUT"
    family = SCOUTING
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("reserved", 2), MessageId("mid", ScoutingId.SCOUT),
        UInt("version", PROTOCOL_VERSION),
        CountBits("zid_len", of="zid", size=4, bias=1), AutoFlag("I", of="zid"), Bits("what", 0b111, 3),
        *opt(When("I"), ZidOf("zid", None, From("zid_len") + 1)),
        *opt(When("Z"), ExtChain("exts", SCOUTING_EXTENSIONS)),
    ]  # fmt: skip

    def mysummary(self) -> str:
        roles = [bit.label for bit in WhatAmIBit if int(self.what) & bit] or ["nobody"]
        return f"SCOUT for {'|'.join(roles)}" + (f" from {self.zid}" if self.zid else "")


class ZenohHello(_Scouting):
    """Answers a SCOUT: who the node is and where it listens."""

    name = "Zenoh HELLO"
    family = SCOUTING
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), AutoFlag("L", of="locators"), MessageId("mid", ScoutingId.HELLO),
        UInt("version", PROTOCOL_VERSION),
        *whatami_and_zid(),
        *opt(When("L"), *locators()),
        *opt(When("Z"), ExtChain("exts", SCOUTING_EXTENSIONS)),
    ]  # fmt: skip

    def mysummary(self) -> str:
        places = f" at {', '.join(self.locators)}" if self.locators else ""
        return f"HELLO {WhatAmI.describe(self.whatami)} {self.zid}{places}"

    def answers(self, other: Any) -> int:
        return int(isinstance(other, ZenohScout) and bool(other.what & 1 << self.whatami))
