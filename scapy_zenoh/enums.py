"""Every number of the protocol that has a name.

Members are written the way people read them: ``whatami = router``. ``labels()`` gives the text of a
member; encodings have the text that Zenoh's own interfaces use (``text/plain``).
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache


@cache
def _labels(enum: type[Named]) -> dict[int, str]:
    return {int(member): member.label for member in enum}


class Named(IntEnum):
    """An enumeration whose members have a text for people."""

    @property
    def label(self) -> str:
        """The text shown for this member."""
        return self.name.lower()

    @classmethod
    def labels(cls) -> dict[int, str]:
        """Number -> text."""
        return _labels(cls)

    @classmethod
    def describe(cls, number: int) -> str:
        """The text of a number, or the number itself when it has none."""
        number = int(number)
        return cls.labels().get(number, str(number))


class ScoutingId(Named):
    """Ids of scouting messages."""

    SCOUT = 0x01
    HELLO = 0x02


class TransportId(Named):
    """Ids of transport messages."""

    OAM = 0x00
    INIT = 0x01
    OPEN = 0x02
    CLOSE = 0x03
    KEEP_ALIVE = 0x04
    FRAME = 0x05
    FRAGMENT = 0x06
    JOIN = 0x07


class NetworkId(Named):
    """Ids of network messages."""

    INTEREST = 0x19
    RESPONSE_FINAL = 0x1A
    RESPONSE = 0x1B
    REQUEST = 0x1C
    PUSH = 0x1D
    DECLARE = 0x1E
    OAM = 0x1F


class DataId(Named):
    """Ids of the bodies of PUSH, REQUEST, RESPONSE and REPLY."""

    PUT = 0x01
    DEL = 0x02
    QUERY = 0x03
    REPLY = 0x04
    ERR = 0x05


class DeclareId(Named):
    """Ids of the declarations inside DECLARE."""

    DECLARE_KEYEXPR = 0x00
    UNDECLARE_KEYEXPR = 0x01
    DECLARE_SUBSCRIBER = 0x02
    UNDECLARE_SUBSCRIBER = 0x03
    DECLARE_QUERYABLE = 0x04
    UNDECLARE_QUERYABLE = 0x05
    DECLARE_TOKEN = 0x06
    UNDECLARE_TOKEN = 0x07
    DECLARE_FINAL = 0x1A


class WhatAmI(Named):
    """Role of a node in INIT, JOIN and HELLO; 3 is refused by nodes."""

    ROUTER = 0
    PEER = 1
    CLIENT = 2


class WhatAmIBit(Named):
    """Role of a node as a bitmap: what SCOUT asks for, and in link states."""

    ROUTER = 1
    PEER = 2
    CLIENT = 4


class ExtEncoding(Named):
    """How the value of an extension, or the body of an OAM, is written (bits 6:5 of the header)."""

    UNIT = 0
    Z64 = 1
    ZBUF = 2


class Resolution(Named):
    """Width of sequence numbers and request ids; the counters really have 7, 14, 28 and 32 bits."""

    BITS_8 = 0
    BITS_16 = 1
    BITS_32 = 2
    BITS_64 = 3

    @property
    def label(self) -> str:
        return f"{self.name[5:]} bit"

    @property
    def mask(self) -> int:
        """The largest sequence number."""
        return (0x7F, 0x3FFF, 0x0FFFFFFF, 0xFFFFFFFF)[self]


class CloseReason(Named):
    """Why a link or session is closed."""

    GENERIC = 0x00
    UNSUPPORTED = 0x01
    INVALID = 0x02
    MAX_SESSIONS = 0x03
    MAX_LINKS = 0x04
    EXPIRED = 0x05
    UNRESPONSIVE = 0x06
    CONNECTION_TO_SELF = 0x07


class Priority(Named):
    """Priority of a message; also the lane of a FRAME or FRAGMENT."""

    CONTROL = 0
    REAL_TIME = 1
    INTERACTIVE_HIGH = 2
    INTERACTIVE_LOW = 3
    DATA_HIGH = 4
    DATA = 5
    DATA_LOW = 6
    BACKGROUND = 7


class Mapping(Named):
    """Whose key table a scope refers to (flag M)."""

    RECEIVER = 0
    SENDER = 1


class QueryTarget(Named):
    """Which queryables a query goes to; other numbers are refused by nodes."""

    BEST_MATCHING = 0
    ALL = 1
    ALL_COMPLETE = 2


class Consolidation(Named):
    """How replies of one key are merged. zenoh-pico numbers them one lower; these are the reference's names."""

    AUTO = 0
    NONE = 1
    MONOTONIC = 2
    LATEST = 3


class InterestMode(Named):
    """What an INTEREST asks for: what is declared now, what will be, both, or the end of it."""

    FINAL = 0
    CURRENT = 1
    FUTURE = 2
    CURRENT_FUTURE = 3


class OamId(Named):
    """Ids of network OAM messages."""

    LINKSTATE = 0x0001


class RemoteBound(Named):
    """On which side of a region boundary the peer is."""

    NORTH = 0
    SOUTH = 1


class SliceKind(Named):
    """What a slice of a shared-memory payload holds."""

    RAW = 0
    SHM = 1


class StampPoint(Named):
    """Where a record of a timestamp stack was made."""

    SEND = 1
    ROUTE = 2
    RECEIVE = 4


class Encoding(Named):
    """Predefined encodings; any other text travels as CUSTOM with the text in the schema."""

    text: str

    def __new__(cls, value: int, text: str) -> Encoding:
        member = int.__new__(cls, value)
        member._value_ = value
        member.text = text
        return member

    @property
    def label(self) -> str:
        return self.text

    ZENOH_BYTES = 0, "zenoh/bytes"
    ZENOH_STRING = 1, "zenoh/string"
    ZENOH_SERIALIZED = 2, "zenoh/serialized"
    APPLICATION_OCTET_STREAM = 3, "application/octet-stream"
    TEXT_PLAIN = 4, "text/plain"
    APPLICATION_JSON = 5, "application/json"
    TEXT_JSON = 6, "text/json"
    APPLICATION_CDR = 7, "application/cdr"
    APPLICATION_CBOR = 8, "application/cbor"
    APPLICATION_YAML = 9, "application/yaml"
    TEXT_YAML = 10, "text/yaml"
    TEXT_JSON5 = 11, "text/json5"
    APPLICATION_PYTHON_SERIALIZED_OBJECT = 12, "application/python-serialized-object"
    APPLICATION_PROTOBUF = 13, "application/protobuf"
    APPLICATION_JAVA_SERIALIZED_OBJECT = 14, "application/java-serialized-object"
    APPLICATION_OPENMETRICS_TEXT = 15, "application/openmetrics-text"
    IMAGE_PNG = 16, "image/png"
    IMAGE_JPEG = 17, "image/jpeg"
    IMAGE_GIF = 18, "image/gif"
    IMAGE_BMP = 19, "image/bmp"
    IMAGE_WEBP = 20, "image/webp"
    APPLICATION_XML = 21, "application/xml"
    APPLICATION_X_WWW_FORM_URLENCODED = 22, "application/x-www-form-urlencoded"
    TEXT_HTML = 23, "text/html"
    TEXT_XML = 24, "text/xml"
    TEXT_CSS = 25, "text/css"
    TEXT_JAVASCRIPT = 26, "text/javascript"
    TEXT_MARKDOWN = 27, "text/markdown"
    TEXT_CSV = 28, "text/csv"
    APPLICATION_SQL = 29, "application/sql"
    APPLICATION_COAP_PAYLOAD = 30, "application/coap-payload"
    APPLICATION_JSON_PATCH_JSON = 31, "application/json-patch+json"
    APPLICATION_JSON_SEQ = 32, "application/json-seq"
    APPLICATION_JSONPATH = 33, "application/jsonpath"
    APPLICATION_JWT = 34, "application/jwt"
    APPLICATION_MP4 = 35, "application/mp4"
    APPLICATION_SOAP_XML = 36, "application/soap+xml"
    APPLICATION_YANG = 37, "application/yang"
    AUDIO_AAC = 38, "audio/aac"
    AUDIO_FLAC = 39, "audio/flac"
    AUDIO_MP4 = 40, "audio/mp4"
    AUDIO_OGG = 41, "audio/ogg"
    AUDIO_VORBIS = 42, "audio/vorbis"
    VIDEO_H261 = 43, "video/h261"
    VIDEO_H263 = 44, "video/h263"
    VIDEO_H264 = 45, "video/h264"
    VIDEO_H265 = 46, "video/h265"
    VIDEO_H266 = 47, "video/h266"
    VIDEO_MP4 = 48, "video/mp4"
    VIDEO_OGG = 49, "video/ogg"
    VIDEO_RAW = 50, "video/raw"
    VIDEO_VP8 = 51, "video/vp8"
    VIDEO_VP9 = 52, "video/vp9"
    CUSTOM = 0xFFFF, "custom"
