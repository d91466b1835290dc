"""Transport messages: opening, keeping and closing a session, and what carries network messages."""

from __future__ import annotations

from typing import Any

from scapy_zenoh.common import whatami_and_zid
from scapy_zenoh.enums import (
    CloseReason,
    ExtEncoding,
    Priority,
    RemoteBound,
    Resolution,
    TransportId,
    WhatAmI,
)
from scapy_zenoh.expr import When, lift
from scapy_zenoh.extension import (
    ExtChain,
    Extension,
    ExtTable,
    HandshakeExtension,
    ZBufExtension,
    unit,
    z64,
    zbuf,
)
from scapy_zenoh.fields import (
    AutoBits,
    AutoFlag,
    Bits,
    MessageId,
    Repeat,
    Reserved,
    RestBytes,
    RestText,
    UInt,
    VLEField,
    VLEPart,
    VLEReserved,
    VLEWindow,
    counted,
    opt,
    vle_bits,
)
from scapy_zenoh.message import NETWORK, TRANSPORT, Message, MessageList
from scapy_zenoh.values import PROTOCOL_VERSION

# --- extensions of the handshake ----------------------------------------------------------------


class ZenohExtLanes(Extension):
    """Asks for a lane per priority."""

    name = "QoS"
    fields_desc = unit(0x1)


class ZenohExtQoSLink(Extension):
    """Asks for lanes, and says which priorities and reliability this link is for."""

    name = "QoSLink"
    fields_desc = z64(
        0x1,
        *vle_bits(
            VLEPart("lanes", 0, 1),
            VLEPart("has_priorities", 0, 1),
            VLEPart("has_reliability", 0, 1),
            VLEPart("first_priority", 0, 8, enum=Priority),
            VLEPart("last_priority", 0, 8, enum=Priority),
            VLEPart("reliable", 0, 1),
            VLEReserved("reserved", 44),
        ),
    )


class ZenohExtInitSynShm(HandshakeExtension):
    """Offers shared memory: the segment that proves access."""

    name = "Shm"
    fields_desc = zbuf(0x2, VLEField("segment", 0, bits=32))


class ZenohExtInitAckShm(HandshakeExtension):
    """Accepts shared memory: what was read in the offered segment, and the own segment."""

    name = "Shm"
    fields_desc = zbuf(0x2, VLEField("challenge", 0), VLEField("segment", 0, bits=32))


class ZenohExtOpenShmNumber(Extension):
    """Proves (syn) and confirms (ack, 1) shared memory, as nodes up to 1.9 do."""

    name = "Shm"
    fields_desc = z64(0x2, VLEField("value", 1))


def _shm_counters() -> list[Any]:
    """Whether shared memory is on, and then the id of a counter for each priority."""
    return [
        UInt("status", 0),
        *opt(When("status"), Repeat("counters", VLEField("counter", 0, bits=16), lift(8))),
    ]


class ZenohExtOpenSynShm(HandshakeExtension):
    """Proves shared memory since 1.10, and gives the counters of the sender."""

    name = "Shm"
    fields_desc = zbuf(0x2, VLEField("challenge", 0), *_shm_counters())


class ZenohExtOpenAckShm(HandshakeExtension):
    """Confirms shared memory since 1.10."""

    name = "Shm"
    fields_desc = zbuf(0x2, *_shm_counters())


def _rsa_key() -> list[Any]:
    """A public RSA key, little-endian."""
    return [*counted("modulus", b""), *counted("exponent", b"\x01\x00\x01")]


class ZenohExtInitSynMultiLink(HandshakeExtension):
    """Offers several links for one session: the key that will prove who opens them."""

    name = "MultiLink"
    fields_desc = zbuf(0x4, *_rsa_key())


class ZenohExtInitAckMultiLink(HandshakeExtension):
    """Accepts several links: the own key, and a nonce only the initiator can read."""

    name = "MultiLink"
    fields_desc = zbuf(0x4, *_rsa_key(), *counted("nonce", b""))


class ZenohExtOpenSynMultiLink(HandshakeExtension):
    """Returns the nonce, encrypted for the responder."""

    name = "MultiLink"
    fields_desc = zbuf(0x4, *counted("nonce", b""))


class ZenohExtOpenAckMultiLink(Extension):
    """Several links are accepted."""

    name = "MultiLink"
    fields_desc = unit(0x4)


class ZenohExtLowLatency(Extension):
    """Asks for bare messages without FRAMEs."""

    name = "LowLatency"
    fields_desc = unit(0x5)


class ZenohExtCompression(Extension):
    """Asks for compressed batches."""

    name = "Compression"
    fields_desc = unit(0x6)


class ZenohExtPatch(Extension):
    """Level of small additions to the protocol: 1 knows the marks of first and dropped fragments."""

    name = "Patch"
    fields_desc = z64(0x7, VLEField("patch", 1))


class ZenohExtRegionName(ZBufExtension):
    """The region of the network to which the node belongs."""

    name = "RegionName"
    fields_desc = zbuf(0x8, RestText("region", ""))


class ZenohExtRemoteBound(Extension):
    """On which side of a region boundary the sender sees the other node."""

    name = "RemoteBound"
    fields_desc = z64(0x7, VLEField("bound", 0, enum=RemoteBound))


# --- authentication: a chain inside an extension ------------------------------------------------


class ZenohAuthInitSynKey(ZBufExtension):
    """Public key of the initiator."""

    name = "public key"
    fields_desc = zbuf(0x1, *_rsa_key())


class ZenohAuthInitAckKey(ZBufExtension):
    """Public key of the responder, and a nonce only the initiator can read."""

    name = "public key"
    fields_desc = zbuf(0x1, *_rsa_key(), *counted("nonce", b""))


class ZenohAuthOpenSynKey(ZBufExtension):
    """The nonce, encrypted for the responder."""

    name = "public key"
    fields_desc = zbuf(0x1, *counted("nonce", b""))


class ZenohAuthOpenAckKey(Extension):
    """The key is accepted."""

    name = "public key"
    fields_desc = unit(0x1)


class ZenohAuthUser(Extension):
    """The initiator has a user name (INIT syn), or it is accepted (OPEN ack)."""

    name = "user/password"
    fields_desc = unit(0x2)


class ZenohAuthUserNonce(Extension):
    """The number that the password is to be mixed with."""

    name = "user/password"
    fields_desc = z64(0x2, VLEField("nonce", 0))


class ZenohAuthUserProof(ZBufExtension):
    """The user, and HMAC-SHA3-256 of the password with the nonce as key."""

    name = "user/password"
    fields_desc = zbuf(0x2, *counted("user", b""), *counted("hmac", b""))


def _auth(*methods: type[Extension]) -> list[Any]:
    return zbuf(0x3, ExtChain("exts", ExtTable(*methods)))


class ZenohExtInitSynAuth(HandshakeExtension):
    """Authentication methods that the initiator offers."""

    name = "Auth"
    fields_desc = _auth(ZenohAuthInitSynKey, ZenohAuthUser)


class ZenohExtInitAckAuth(HandshakeExtension):
    """Challenges of the responder."""

    name = "Auth"
    fields_desc = _auth(ZenohAuthInitAckKey, ZenohAuthUserNonce)


class ZenohExtOpenSynAuth(HandshakeExtension):
    """Proofs of the initiator."""

    name = "Auth"
    fields_desc = _auth(ZenohAuthOpenSynKey, ZenohAuthUserProof)


class ZenohExtOpenAckAuth(HandshakeExtension):
    """Authentication is accepted."""

    name = "Auth"
    fields_desc = _auth(ZenohAuthOpenAckKey, ZenohAuthUser)


# --- the handshake ------------------------------------------------------------------------------


SIZES = ("batch_size", "sn_resolution", "request_resolution")


def _sizes(batch_size: int) -> list[Any]:
    """Widths of counters and largest batch; absent means 32 bit and ``batch_size``."""
    return opt(
        When("S"),
        Reserved("resolution_reserved", 4),
        Bits("request_resolution", None, 2, enum=Resolution, missing=Resolution.BITS_32),
        Bits("sn_resolution", None, 2, enum=Resolution, missing=Resolution.BITS_32),
        UInt("batch_size", None, size=2, missing=batch_size),
    )


class ZenohInit(Message):
    """First step of a handshake: who each side is and what it can do. With a cookie it is the answer."""

    name = "Zenoh INIT"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), AutoFlag("S", of=SIZES), AutoFlag("A", of="cookie"),
        MessageId("mid", TransportId.INIT),
        UInt("version", PROTOCOL_VERSION),
        *whatami_and_zid(),
        *_sizes(65535),
        *opt(When("A"), *counted("cookie", bits=16)),
        *opt(When("Z"), ExtChain(
            "exts",
            (When("A"), ExtTable(
                ZenohExtLanes, ZenohExtQoSLink, ZenohExtInitAckShm, ZenohExtInitAckAuth, ZenohExtInitAckMultiLink,
                ZenohExtLowLatency, ZenohExtCompression, ZenohExtPatch, ZenohExtRegionName,
            )),
            ExtTable(
                ZenohExtLanes, ZenohExtQoSLink, ZenohExtInitSynShm, ZenohExtInitSynAuth, ZenohExtInitSynMultiLink,
                ZenohExtLowLatency, ZenohExtCompression, ZenohExtPatch, ZenohExtRegionName,
            ),
        )),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"INIT {'ack' if self.A else 'syn'} {WhatAmI.describe(self.whatami)} {self.zid}"

    def hashret(self) -> bytes:
        return b"zenoh-init"

    def answers(self, other: Any) -> int:
        return int(isinstance(other, ZenohInit) and bool(self.A) and not other.A)


class ZenohOpen(Message):
    """Second step of a handshake: lease and first sequence number. With the cookie of INIT it is the request."""

    name = "Zenoh OPEN"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), Bits("T", 1, 1), AutoBits("A", 1, [("cookie", 0), ("lease", 1)]),
        MessageId("mid", TransportId.OPEN),
        VLEField("lease", 10),
        VLEField("initial_sn", 0),
        *opt(~When("A"), *counted("cookie")),
        *opt(When("Z"), ExtChain(
            "exts",
            (When("A"), ExtTable(
                ZenohExtLanes, ZenohExtOpenShmNumber, ZenohExtOpenAckShm, ZenohExtOpenAckAuth,
                ZenohExtOpenAckMultiLink, ZenohExtLowLatency, ZenohExtCompression, ZenohExtRemoteBound,
            )),
            ExtTable(
                ZenohExtLanes, ZenohExtOpenShmNumber, ZenohExtOpenSynShm, ZenohExtOpenSynAuth,
                ZenohExtOpenSynMultiLink, ZenohExtLowLatency, ZenohExtCompression, ZenohExtRemoteBound,
            ),
        )),
    ]  # fmt: skip

    def mysummary(self) -> str:
        lease = f"{int(self.lease)} {'s' if self.T else 'ms'}"
        return f"OPEN {'ack' if self.A else 'syn'} lease {lease} sn {int(self.initial_sn)}"

    def hashret(self) -> bytes:
        return b"zenoh-open"

    def answers(self, other: Any) -> int:
        return int(isinstance(other, ZenohOpen) and bool(self.A) and not other.A)


class ZenohClose(Message):
    """Ends a link, or the whole session."""

    name = "Zenoh CLOSE"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), Bits("S", 0, 1), MessageId("mid", TransportId.CLOSE),
        UInt("reason", CloseReason.GENERIC, enum=CloseReason),
        *opt(When("Z"), ExtChain("exts", ExtTable())),
    ]  # fmt: skip

    def mysummary(self) -> str:
        reason = CloseReason.describe(self.reason)
        return f"CLOSE {'session' if self.S else 'link'} {reason}"


class ZenohKeepAlive(Message):
    """Says that the sender is still there."""

    name = "Zenoh KEEP_ALIVE"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 2), MessageId("mid", TransportId.KEEP_ALIVE),
        *opt(When("Z"), ExtChain("exts", ExtTable())),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return "KEEP_ALIVE"


# --- carrying network messages ------------------------------------------------------------------


class ZenohExtLane(Extension):
    """The lane of a FRAME or FRAGMENT; absent means data."""

    name = "QoS"
    fields_desc = z64(
        0x1,
        *vle_bits(VLEPart("priority", Priority.DATA, 3, enum=Priority), VLEReserved("reserved", 61)),
        mandatory=True,
    )


class ZenohExtFirst(Extension):
    """Marks the first fragment of a message."""

    name = "First"
    fields_desc = unit(0x2)


class ZenohExtDrop(Extension):
    """Says that the rest of a message will not come."""

    name = "Drop"
    fields_desc = unit(0x3)


def told(messages: list[Any]) -> str:
    """What a list of messages says, in one line."""
    shown = " | ".join(m.summary() for m in messages[:3])
    return shown + (f" | {len(messages) - 3} more" if len(messages) > 3 else "")


class ZenohFrame(Message):
    """Carries whole network messages, with one sequence number for all of them."""

    name = "Zenoh FRAME"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), Reserved("X", 1), Bits("R", 1, 1), MessageId("mid", TransportId.FRAME),
        VLEField("sn", 0),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtLane))),
        MessageList("msgs", NETWORK, until=TRANSPORT),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"FRAME {int(self.sn)}: {told(self.msgs)}" if self.msgs else f"FRAME {int(self.sn)}"

    def hashret(self) -> bytes:
        return b"".join(message.hashret() for message in self.msgs[:1])

    def answers(self, other: Any) -> int:
        if not isinstance(other, ZenohFrame):
            return 0
        return int(any(mine.answers(theirs) for mine in self.msgs for theirs in other.msgs))


class ZenohFragment(Message):
    """Carries a slice of one network message."""

    name = "Zenoh FRAGMENT"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), Bits("M", 0, 1), Bits("R", 1, 1), MessageId("mid", TransportId.FRAGMENT),
        VLEField("sn", 0),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtLane, ZenohExtFirst, ZenohExtDrop))),
        RestBytes("data"),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"FRAGMENT {int(self.sn)}: {len(self.data)} B{'' if self.M else ' (last)'}"


class ZenohExtJoinLanes(ZBufExtension):
    """Next sequence numbers of all lanes: reliable and best effort of priority 0, then of 1, up to 7."""

    name = "QoS"
    fields_desc = zbuf(0x1, Repeat("next_sns", VLEField("next_sn", 0), lift(16)), mandatory=True)


class ZenohExtJoinShm(ZBufExtension):
    """Shared memory on multicast; no node sends it."""

    name = "Shm"
    fields_desc = zbuf(0x2, RestBytes("data"), mandatory=True)


class ZenohJoin(Message):
    """On multicast, instead of a handshake: who the sender is and where its sequence numbers are."""

    name = "Zenoh JOIN"
    family = TRANSPORT
    fields_desc = [
        AutoFlag("Z", of="exts"), AutoFlag("S", of=SIZES), Bits("T", 1, 1),
        MessageId("mid", TransportId.JOIN),
        UInt("version", PROTOCOL_VERSION),
        *whatami_and_zid(),
        *_sizes(8192),
        VLEField("lease", 10),
        VLEField("next_sn_reliable", 0),
        VLEField("next_sn_best_effort", 0),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtJoinLanes, ZenohExtJoinShm, ZenohExtPatch))),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"JOIN {WhatAmI.describe(self.whatami)} {self.zid}"


class ZenohTransportOam(Message):
    """Operation and maintenance of a link; no ids are defined."""

    name = "Zenoh OAM (transport)"
    family = TRANSPORT
    window = "size"
    fields_desc = [
        AutoFlag("Z", of="exts"),
        AutoBits("enc", 2, [("value", ExtEncoding.Z64), ("data", ExtEncoding.ZBUF)], enum=ExtEncoding),
        MessageId("mid", TransportId.OAM),
        VLEField("id", 0, bits=16),
        *opt(When("Z"), ExtChain("exts", ExtTable(ZenohExtLane))),
        *opt(When("enc") == ExtEncoding.Z64, VLEField("value", None)),
        *opt(When("enc") == ExtEncoding.ZBUF, VLEWindow("size"), RestBytes("data", None)),
    ]  # fmt: skip

    def mysummary(self) -> str:
        return f"OAM {int(self.id)} (transport)"
