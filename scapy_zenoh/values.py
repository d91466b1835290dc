"""Values of the protocol as people and tables write them: time, encodings, keys; and its fixed numbers.

Nothing here needs Scapy: the message classes and the readers that do without them share it.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from scapy_zenoh.enums import Encoding

# --- fixed numbers ------------------------------------------------------------------------------

PROTOCOL_VERSION = 9

TCP_PORTS = (7447,)
UDP_PORTS = (7447,)
SCOUTING_PORTS = (7446,)

#: No batch is larger, also after decompression.
MAX_BATCH = 65535

#: The largest length and the longest time that rows can have: 63 and 64 bits. Messages can announce more.
MAX_LENGTH = (1 << 63) - 1
MAX_LEASE = (1 << 64) - 1

# --- key expressions ----------------------------------------------------------------------------


def key_text(scope: int, suffix: str | None) -> str:
    """A wire expression as people write it when the number cannot be resolved: ``demo/a``, ``#3/x``."""
    return (f"#{int(scope)}" if scope else "") + (suffix or "")


# --- timestamps ---------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def ntp64_to_ns(ntp: int) -> int:
    """Nanoseconds since 1970 of an NTP64 value (seconds in the high half, fraction in the low), rounded down."""
    return (ntp >> 32) * 10**9 + ((ntp & 0xFFFFFFFF) * 10**9 >> 32)


def ntp64_to_text(ntp: int) -> str:
    """An NTP64 value as UTC time."""
    ns = ntp64_to_ns(ntp)
    moment = _EPOCH + timedelta(seconds=ns // 10**9)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09d}Z"


def ntp64_of(moment: datetime) -> int:
    """The NTP64 value of a moment; one without a time zone is taken as UTC."""
    delta = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)) - _EPOCH
    micros = (delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds
    seconds, fraction = divmod(micros, 10**6)
    return seconds << 32 | -(-(fraction << 32) // 10**6)  # rounded up, so that the microsecond comes back


def lease_in_ms(lease: int | None, in_seconds: bool) -> int | None:
    """A lease as messages have it, in milliseconds."""
    return None if lease is None else min(lease * 1000 if in_seconds else lease, MAX_LEASE)


# --- encodings ----------------------------------------------------------------------------------


def encoding_to_text(number: int | None, schema: str | None) -> str:
    """Id and schema as Zenoh prints them: ``text/plain;utf-8``."""
    number = number or 0
    if number == Encoding.CUSTOM and schema is not None:
        return schema
    text = Encoding.labels().get(number, f"unknown({int(number)})")
    return text if schema is None else f"{text};{schema}"


def encoding_from_text(text: str) -> tuple[int, str | None]:
    """Id and schema of an encoding given as text; a text nobody knows is a custom encoding."""
    name, separator, rest = text.partition(";")
    schema = rest if separator else None
    for number, label in Encoding.labels().items():
        if name == label and number != Encoding.CUSTOM:
            return number, schema
    if name.startswith("unknown(") and name.endswith(")") and name[8:-1].isdigit():
        return int(name[8:-1]), schema
    return int(Encoding.CUSTOM), text
