"""What people read beside a value: the names of fields in words."""

from __future__ import annotations

from scapy_zenoh.schema.model import Part

_WORDS = {
    "mid": "Message id",
    "eid": "Id",
    "enc": "Encoding",
    "exts": "extensions",
    "sn": "Sequence number",
    "initial_sn": "Initial sequence number",
    "next_sns": "Next sequence number",
    "next_sn_reliable": "Next sequence number, reliable",
    "next_sn_best_effort": "Next sequence number, best effort",
    "zid": "ZID",
    "zid_len": "ZID length less one",
    "whatami": "Role",
    "what": "Roles asked for",
    "ts_time": "Timestamp",
    "ts_id": "Timestamp ZID",
    "ts_id_len": "Timestamp ZID length",
    "expr_id": "Expression id",
    "psid": "Node number",
    "locators": "Locator",
    "counters": "Counter",
    "links": "Link",
    "weights": "Weight",
}

#: Flags whose letter stands for something that their fields do not say.
_FLAGS = {
    ("ZenohInit", "A"): "ack",
    ("ZenohInit", "S"): "sizes",
    ("ZenohJoin", "S"): "sizes",
    ("ZenohOpen", "A"): "ack",
    ("ZenohOpen", "T"): "lease in seconds",
    ("ZenohJoin", "T"): "lease in seconds",
    ("ZenohClose", "S"): "whole session",
    ("ZenohFrame", "R"): "reliable",
    ("ZenohFragment", "R"): "reliable",
    ("ZenohFragment", "M"): "more follow",
    ("ZenohPut", "T"): "timestamp",
    ("ZenohDel", "T"): "timestamp",
    ("ZenohPut", "E"): "encoding",
    ("ZenohErr", "E"): "encoding",
    ("ZenohInterest", "R"): "key expression",
    ("ZenohInterest", "K"): "key expressions",
    ("ZenohInterest", "S"): "subscribers",
    ("ZenohInterest", "Q"): "queryables",
    ("ZenohInterest", "T"): "tokens",
    ("ZenohInterest", "A"): "aggregate",
    ("ZenohLinkState", "GWY"): "gateway",
}


def label(record: str, name: str, part: Part | None = None) -> str:
    """The name of a field in words; a flag keeps its letter."""
    if (record, name) in _FLAGS:
        return f"{name} ({_FLAGS[record, name]})"
    if part is not None and part.presence and len(name) <= 3 and name.isupper():
        return f"{name} ({words(part.presence[0][0])})"
    return name if name.isupper() else words(name, first=True)


def words(name: str, first: bool = False) -> str:
    """``suffix_len`` -> ``suffix length``."""
    text = _WORDS.get(name)
    if text is None:
        text = " ".join({"len": "length", "zid": "ZID"}.get(word, word) for word in name.split("_"))
        text = text[:1].upper() + text[1:] if first else text
    return text
