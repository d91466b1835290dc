"""The schema describes every class, and refuses what a generator could not read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scapy.fields import ByteField, ConditionalField

import scapy_zenoh as z
from scapy_zenoh.enums import Named
from scapy_zenoh.expr import From, When
from scapy_zenoh.fields import AutoFlag, Bits, BytesOf, MessageId, Reserved, UInt, VLEField, counted, opt
from scapy_zenoh.message import TRANSPORT, Message, Record
from scapy_zenoh.schema.docs import messages_md
from scapy_zenoh.schema.extract import SchemaError, record_of, schema
from scapy_zenoh.schema.model import Bits as BitsItem
from scapy_zenoh.schema.model import Exts


def test_every_message_and_extension_class_is_described() -> None:
    described = set(schema().records)
    declared = {name for name in z.__all__ if name.startswith("Zenoh")}
    others = {name for name in declared if getattr(z, name).__module__.endswith((".link", ".scapy_session"))}
    assert declared - others == described


def test_names_refer_to_records() -> None:
    all_of = schema()
    for record in all_of.records.values():
        assert record.body is None or record.body in all_of.families
        for item in record.items:
            if isinstance(item, Exts):
                assert all(name in all_of.records for _, table in item.cases for name in table.extensions)
    for family in all_of.families.values():
        assert all(name in all_of.records for _, name in family.members)


# Every row of the extension table of the specification: message, header, name of the class.
KNOWN_EXTENSIONS = {
    "ZenohInit": "01 21 42 43 44 05 06 27 48",
    "ZenohOpen": "01 22 42 43 44 04 05 06 27",
    "ZenohFrame": "31",
    "ZenohFragment": "31 02 03",
    "ZenohJoin": "51 52 27",
    "ZenohTransportOam": "31",
    "ZenohPush": "21 42 33 47",
    "ZenohRequest": "21 42 34 25 26 33 47",
    "ZenohResponse": "21 42 43 47",
    "ZenohResponseFinal": "21 42",
    "ZenohDeclare": "21 42 33",
    "ZenohInterest": "21 42 33",
    "ZenohNetworkOam": "21 42",
    "ZenohDeclareQueryable": "21",
    "ZenohUndeclareSubscriber": "5f",
    "ZenohUndeclareQueryable": "5f",
    "ZenohUndeclareToken": "5f",
    "ZenohPut": "41 12 43",
    "ZenohDel": "41 42",
    "ZenohQuery": "41 04 43 45",
    "ZenohErr": "41 12",
}


def test_extension_tables_hold_every_known_extension_and_no_other() -> None:
    all_of = schema()
    for record in all_of.records.values():
        if record.family is None:
            continue
        headers = {
            all_of.records[name].identity
            for item in record.items
            if isinstance(item, Exts)
            for _, table in item.cases
            for name in table.extensions
        }
        assert headers == set(bytes.fromhex(KNOWN_EXTENSIONS.get(record.name, ""))), record.name


def test_bits_fill_their_carrier() -> None:
    for record in schema().records.values():
        for item in record.items:
            if isinstance(item, BitsItem):
                assert sum(part.size for part in item.parts) == item.bits, record.name


class ToyId(Named):
    """An id nobody uses."""

    TOY = 0x15


@pytest.fixture
def toy() -> Iterator[type[Message]]:
    class ZenohToy(Message):
        """A message that only this test knows."""

        name = "Zenoh TOY"
        family = TRANSPORT
        fields_desc = [
            AutoFlag("Z", of="exts_text"), Reserved("X", 2), MessageId("mid", ToyId.TOY),
            VLEField("number", 7, bits=16),
            *opt(When("Z"), *counted("exts_text", bits=8, text=True)),
        ]  # fmt: skip

    yield ZenohToy
    del TRANSPORT.members[ToyId.TOY]


def test_a_new_class_is_dispatched_described_and_documented(toy: type[Message]) -> None:
    data = bytes.fromhex("95 ac02 02 6869")
    packet, rest = z.parse(data, "transport")
    assert type(packet) is toy and rest == b"" and packet.fault is None
    assert (packet.number, packet.exts_text) == (300, "hi")
    assert bytes(toy(number=300, exts_text="hi")) == data
    assert z.ZenohDatagram(data).msgs[0].number == 300
    assert (0x15, "ZenohToy") in schema().families["transport"].members
    text = messages_md()
    assert "### ZenohToy" in text and "A message that only this test knows." in text and "|Z| x |   TOY   |" in text


def refused(fields: list[object], words: str) -> None:
    cls = type("_Refused", (Record,), {"fields_desc": fields, "__doc__": "Refused."})
    with pytest.raises(SchemaError, match=words):
        record_of(cls)


def test_opaque_declarations_are_refused_with_advice() -> None:
    refused([UInt("a", 0), ConditionalField(UInt("b", 0), lambda pkt: pkt.a)], r"_Refused\.b: .*write it with When")
    refused([UInt("a", 0), BytesOf("b", b"", lambda pkt: 3)], r"_Refused\.b: the length .*write From")  # type: ignore[arg-type]
    refused([ByteField("a", 0)], r"_Refused\.a: no generator knows ByteField; use .*UInt")
    refused([Bits("a", 0, 3), UInt("b", 0)], r"_Refused\.a: 3 bits; consecutive Bits must fill one byte")


def test_expressions_refuse_python_operators() -> None:
    with pytest.raises(TypeError, match="combine with & | ~"):
        opt(When("a") and From("b"), UInt("c", 0))


def test_names_that_belong_to_scapy_are_refused() -> None:
    with pytest.raises(TypeError, match=r"_Named\.payload: .*belongs to"):
        type("_Named", (Record,), {"fields_desc": [UInt("payload", 0)]})
