"""What things are called outside Python: Wireshark filters, and the columns that say the same.

``filter_of("ZenohExtQoS", "priority")`` is ``ext.qos.priority``, to be put behind the name of the protocol.
"""

from __future__ import annotations

import re

#: Columns of a row and the short filters that show the same value of each message.
SHORT_FILTERS = {
    "key": "keyexpr",
    "src_zid": "srczid",
    "dst_zid": "dstzid",
    "sn": "sn",
    "request_id": "rid",
    "payload": "payload",
    "payload_len": "payload_len",
    "encoding": "encoding",
}

#: The fields that every extension begins with; they have one filter for all extensions.
EXTENSION_HEADER = ("more", "enc", "mandatory", "eid")

_GROUPS = (("ZenohExt", "ext."), ("ZenohAuth", "auth."), ("Zenoh", ""))
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z][A-Z])(?=[A-Z][a-z])")


def record_filter(record: str) -> str:
    """``ZenohResponseFinal`` -> ``response_final``, ``ZenohExtQoSLink`` -> ``ext.qos_link``."""
    for prefix, group in _GROUPS:
        if record.startswith(prefix):
            return group + _WORD_START.sub("_", record[len(prefix) :]).lower()
    raise ValueError(f"{record}: the name of a message or extension begins with Zenoh")


def filter_of(record: str, field: str) -> str:
    """``ZenohPush``, ``N`` -> ``push.n``."""
    if record.startswith(("ZenohExt", "ZenohAuth")) and field in EXTENSION_HEADER:
        return f"ext.{field}"
    return f"{record_filter(record)}.{field.lower()}"
