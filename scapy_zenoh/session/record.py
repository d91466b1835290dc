"""One message as plain values: what a decoder knows of it, and what the session adds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Offer:
    """What INIT, OPEN and JOIN say about the session to come."""

    lanes: bool = False
    compression: bool = False
    low_latency: bool = False
    multilink: bool = False
    shared_memory: bool = False
    auth: bool = False
    patch: int = 0
    sn_resolution: int = 2  # code of enums.Resolution; the default is 32 bit
    batch_size: int | None = None
    lease_ms: int | None = None
    initial_sn: int | None = None
    next_sns: tuple[int, ...] = ()  # JOIN: reliable and best effort, per priority with lanes
    region: str | None = None
    version: int | None = None


@dataclass(slots=True)
class MessageRecord:
    """A message. The first part is read from its bytes, the second is filled in by the session."""

    layer: str
    kind: str
    body: str | None = None
    sn: int | None = None
    reliable: bool | None = None
    priority: int | None = None
    congestion: str | None = None
    express: bool | None = None
    key_scope: int | None = None
    key_suffix: str | None = None
    key_mapping: str | None = None
    #: False when the suffix that was announced could not be read: then the key is not known.
    key_whole: bool = True
    entity_id: int | None = None
    request_id: int | None = None
    interest_id: int | None = None
    encoding: str | None = None
    payload_len: int | None = None
    payload: bytes | None = None
    timestamp_time: int | None = None
    timestamp_id: str | None = None
    attachment: bytes | None = None
    source_zid: str | None = None
    source_eid: int | None = None
    source_sn: int | None = None
    parameters: str | None = None
    target: str | None = None
    consolidation: str | None = None
    timeout_ms: int | None = None
    budget: int | None = None
    whatami: str | None = None
    locators: list[str] | None = None
    reason: str | None = None
    responder_zid: str | None = None
    responder_eid: int | None = None
    interest_mode: str | None = None
    interest_options: str | None = None
    shm: bool = False
    fault: str | None = None

    #: Id of the sender, in SCOUT, HELLO, INIT and JOIN.
    zid: str | None = None
    offer: Offer | None = None
    #: FRAGMENT: its marks and its slice.
    more: bool = False
    first: bool = False
    drop: bool = False
    slice: bytes = b""
    #: Addresses in link states (gossip): where other nodes listen.
    gossip: list[str] = field(default_factory=list)
    #: CLOSE: of the whole session.
    whole_session: bool = False
    #: Where its fault stands, counted from the start of the message (or of the extension) that has it.
    fault_offset: int | None = None

    # -- filled in by the session --
    link: str | None = None
    session: str | None = None
    src_zid: str | None = None
    dst_zid: str | None = None
    key: str | None = None
    fragments: int | None = None
    compressed: bool = False
    lowlatency: bool = False
    batch: int = 0
    msg: int = 0
    #: Of a FRAGMENT that completes a message: that message, as the decoder gave it.
    whole: object = None
