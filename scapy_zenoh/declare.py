"""What a DECLARE carries: key expressions, subscribers, queryables and liveliness tokens, and their withdrawal."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.common import wire_expr, wire_expr_flags
from scapy_zenoh.enums import DeclareId, Mapping
from scapy_zenoh.expr import When
from scapy_zenoh.extension import (
    ExtChain,
    Extension,
    ExtTable,
    ZBufExtension,
    z64,
    zbuf,
)
from scapy_zenoh.fields import (
    AutoFlag,
    Bits,
    MessageId,
    Reserved,
    RestText,
    VLEField,
    VLEPart,
    VLEReserved,
    opt,
    vle_bits,
)
from scapy_zenoh.message import DECLARATION, Message
from scapy_zenoh.values import key_text


class ZenohExtQueryableInfo(Extension):
    """Whether a queryable has all the data of its key, and how many hops away it is."""

    name = "QueryableInfo"
    fields_desc = z64(
        0x1,
        *vle_bits(
            VLEPart("complete", 0, 1),
            VLEReserved("reserved", 7),
            VLEPart("distance", 0, 16),
            VLEReserved("reserved_high", 40),
        ),
    )


class ZenohExtWireExpr(ZBufExtension):
    """The key of what is withdrawn. Without scope and suffix it says nothing, and the id counts."""

    name = "WireExpr"
    fields_desc = zbuf(
        0xF,
        Reserved("reserved", 6), Bits("M", Mapping.RECEIVER, 1, enum=Mapping), AutoFlag("N", of="suffix"),
        VLEField("scope", 0, bits=16),
        *opt(When("N"), RestText("suffix")),
        mandatory=True,
    )  # fmt: skip


NOTHING_KNOWN = ExtTable()
WITHDRAWN = ExtTable(ZenohExtWireExpr)


def _declaration(member: DeclareId, *fields: Any, keyed: bool, table: ExtTable = NOTHING_KNOWN) -> list[Any]:
    flags = wire_expr_flags() if keyed else [Reserved("X", 2)]
    return [
        AutoFlag("Z", of="exts"), *flags, MessageId("mid", member),
        *fields,
        *(wire_expr() if keyed else []),
        *opt(When("Z"), ExtChain("exts", table)),
    ]  # fmt: skip


def _entity(member: DeclareId, keyed: bool, table: ExtTable = NOTHING_KNOWN) -> list[Any]:
    return _declaration(member, VLEField("id", 0, bits=32), keyed=keyed, table=table)


class _Declaration(Message):
    """What declarations share: a summary that begins with what happens to what."""

    def mysummary(self) -> str:
        happens, _, what = DeclareId(self.message_id()).label.partition("_")
        interest = getattr(self.underlayer, "interest_id", None)
        told = [happens.upper(), what, self.about(), f"for interest {int(interest)}" if interest is not None else ""]
        return " ".join(filter(None, told))

    def about(self) -> str:
        """Id and key of what is declared."""
        key = key_text(self.scope, self.suffix) if "scope" in self.default_fields else ""
        return f"{int(self.id)} {key}".rstrip()


class ZenohDeclareKeyexpr(_Declaration):
    """Gives a number to a key expression, to be used as scope from now on."""

    name = "Zenoh DECLARE KEYEXPR"
    family = DECLARATION
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), AutoFlag("N", of="suffix"),
        MessageId("mid", DeclareId.DECLARE_KEYEXPR),
        VLEField("expr_id", 1, bits=16),
        *wire_expr(),
        *opt(When("Z"), ExtChain("exts", NOTHING_KNOWN)),
    ]  # fmt: skip

    def about(self) -> str:
        return f"{int(self.expr_id)} = {key_text(self.scope, self.suffix)}"


class ZenohUndeclareKeyexpr(_Declaration):
    """Takes the number of a key expression back."""

    name = "Zenoh UNDECLARE KEYEXPR"
    family = DECLARATION
    fields_desc = _declaration(DeclareId.UNDECLARE_KEYEXPR, VLEField("expr_id", 1, bits=16), keyed=False)

    def about(self) -> str:
        return str(int(self.expr_id))


class ZenohDeclareSubscriber(_Declaration):
    """Somebody wants the samples of a key expression."""

    name = "Zenoh DECLARE SUBSCRIBER"
    family = DECLARATION
    fields_desc = _entity(DeclareId.DECLARE_SUBSCRIBER, keyed=True)


class ZenohUndeclareSubscriber(_Declaration):
    """A subscriber is gone."""

    name = "Zenoh UNDECLARE SUBSCRIBER"
    family = DECLARATION
    fields_desc = _entity(DeclareId.UNDECLARE_SUBSCRIBER, keyed=False, table=WITHDRAWN)


class ZenohDeclareQueryable(_Declaration):
    """Somebody answers queries on a key expression."""

    name = "Zenoh DECLARE QUERYABLE"
    family = DECLARATION
    fields_desc = _entity(DeclareId.DECLARE_QUERYABLE, keyed=True, table=ExtTable(ZenohExtQueryableInfo))


class ZenohUndeclareQueryable(_Declaration):
    """A queryable is gone."""

    name = "Zenoh UNDECLARE QUERYABLE"
    family = DECLARATION
    fields_desc = _entity(DeclareId.UNDECLARE_QUERYABLE, keyed=False, table=WITHDRAWN)


class ZenohDeclareToken(_Declaration):
    """A liveliness token exists."""

    name = "Zenoh DECLARE TOKEN"
    family = DECLARATION
    fields_desc = _entity(DeclareId.DECLARE_TOKEN, keyed=True)


class ZenohUndeclareToken(_Declaration):
    """A liveliness token is gone."""

    name = "Zenoh UNDECLARE TOKEN"
    family = DECLARATION
    fields_desc = _entity(DeclareId.UNDECLARE_TOKEN, keyed=False, table=WITHDRAWN)


class ZenohDeclareFinal(_Declaration):
    """All current declarations for an interest were sent."""

    name = "Zenoh DECLARE FINAL"
    family = DECLARATION
    fields_desc = _declaration(DeclareId.DECLARE_FINAL, keyed=False)

    def about(self) -> str:
        return ""
