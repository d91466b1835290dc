"""Rows as people read them: one line per message, and the overview of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from scapy_zenoh.rows import Row

_COLOURS = {
    "fault": "31", "push": "32", "declare": "34", "interest": "34", "request": "35", "response": "35",
    "response_final": "35", "init_syn": "36", "init_ack": "36", "open_syn": "36", "open_ack": "36", "join": "36",
    "close": "33", "frame": "2", "fragment": "2", "keep_alive": "2",
}  # fmt: skip


def message_text(row: Row) -> str:
    """What a message says: ``PUSH demo/a PUT 12 B text/plain``."""
    kind, body = row["kind"], row["body"]
    told: list[Any] = [kind.replace("_", " ") if kind == "unknown" else _name(kind)]
    match kind:
        case "push" | "request" | "response":
            told += [f"#{row['request_id']}" if kind != "push" else None, _key(row), _body(row)]
        case "response_final":
            told += [f"#{row['request_id']}"]
        case "declare":
            happens, _, what = (body or "declare").partition("_")
            told = [happens.upper(), what, row["entity_id"], _key(row) if row["key"] is not None else None]
            told += [f"for interest {row['interest_id']}" if row["interest_id"] is not None else None]
        case "interest":
            told += [row["interest_id"], row["interest_mode"], row["interest_options"], row["key"]]
        case "scout":
            told += ["for", row["whatami"] or "nobody"]
        case "hello" | "init_syn" | "init_ack" | "join":
            told += [row["whatami"], row["src_zid"], " ".join(row["locators"] or ())]
        case "frame" | "fragment":
            lane = f"priority {row['priority']}" if row["priority"] != 5 else None
            told += [row["sn"], "reliable" if row["reliable"] else "best effort", lane]
        case "close":
            told += [row["reason"]]
    if row["fragments"]:
        told.append(f"({row['fragments']} fragments)")
    if row["fault"]:
        told.append(f"!{row['fault']}")
    return " ".join(str(part) for part in told if part not in (None, ""))


def _name(kind: str) -> str:
    head, _, step = kind.partition("_")
    return f"{head.upper()} {step}" if step in ("syn", "ack") else kind.upper()


def _key(row: Row) -> str:
    if row["key"] is not None:
        return str(row["key"])
    return f"#{row['key_scope']}{row['key_suffix'] or ''}" if row["key_scope"] is not None else ""


def _body(row: Row) -> str:
    body = row["body"]
    if body is None:
        return ""
    told = [body.replace("_", " ").upper()]
    if row["parameters"]:
        told.append(f"?{row['parameters']}")
    if row["payload_len"] is not None:
        told.append(f"{row['payload_len']} B{' shm' if row['shm'] else ''}")
    if row["encoding"] not in (None, "zenoh/bytes"):
        told.append(row["encoding"])
    return " ".join(told)


def line(row: Row, start: int, colour: bool) -> str:
    """One line: packet, seconds since the start, from whom to whom, and the message."""
    text = message_text(row)
    if row["layer"] == "network":
        text = "  " + text
    if colour:
        code = _COLOURS.get("fault" if row["fault"] else row["kind"])
        text = f"\x1b[{code}m{text}\x1b[0m" if code else text
    seconds = (row["time"] - start) / 1e9
    ends = f"{_end(row, 'src', 'sport'):>21} > {_end(row, 'dst', 'dport'):<21}"
    return f"{row['frame']:>6} {seconds:>11.6f} {ends} {text}"


def _end(row: Row, address: str, port: str) -> str:
    """A short id where it is known, else the address."""
    zid = row["src_zid" if address == "src" else "dst_zid"]
    return f"{zid[:12]}" if zid else f"{row[address]}:{row[port]}"


# --- the overview -------------------------------------------------------------------------------


def overview(summary: dict[str, Any], ladders: dict[str, list[tuple[int, str, str]]]) -> Iterator[str]:
    """The lines of ``scapy-zenoh summary``."""
    yield (
        f"{summary['packets']:,} packets, {summary['zenoh_packets']:,} of them Zenoh: {summary['messages']:,} messages "
        f"in {summary['zenoh_bytes']:,} bytes"
    )
    lost = [(summary["undecoded_bytes"], "bytes could not be read"), (summary["missing_bytes"], "bytes are missing")]
    for count, what in lost:
        if count:
            yield f"{count:,} {what}"
    if summary["faults"]:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(summary["fault_kinds"].items()))
        yield f"{summary['faults']:,} faults: {kinds}"
    for session in summary["sessions"]:
        yield ""
        yield from _session(session, ladders)
    opaque = [link for link in summary["links"] if link.get("opaque")]
    if opaque:
        yield ""
        yield "Links that cannot be read:"
        for link in opaque:
            yield f"  {link['link']}  {link['bytes']:,} bytes of {link['proto'].upper()}"
    if summary["gaps"]:
        yield ""
        yield "Missing in the capture:"
        for gap in summary["gaps"][:10]:
            yield f"  {gap['bytes']:,} bytes from {gap['src']} after the first {gap['offset']:,} ({gap['link']})"
        if len(summary["gaps"]) > 10:
            yield f"  ... {len(summary['gaps']) - 10} more"
    if summary["findings"]:
        yield ""
        yield "Findings:"
        for finding in summary["findings"][:20]:
            where = finding["session"] or finding["link"]
            yield f"  {finding['kind']}: {finding['detail']}" + (f" ({where})" if where else "")
        if len(summary["findings"]) > 20:
            yield f"  ... {len(summary['findings']) - 20} more"


def _session(session: dict[str, Any], ladders: dict[str, list[tuple[int, str, str]]]) -> Iterator[str]:
    yield f"Session {session['session']}"
    for node in session["nodes"]:
        told = [node["whatami"] or "node", node["zid"] or "(unknown)"]
        if node["region"]:
            told.append(f"in region {node['region']}")
        if node["lease_ms"]:
            told.append(f"lease {node['lease_ms'] / 1000:g} s")
        told.append(f"sent {node['messages']:,} messages")
        yield f"  {' '.join(told)}"
    options = ("qos", "compression", "low_latency", "multilink", "shared_memory", "auth")
    on = [name.replace("_", " ") for name in options if session[name]]
    size = f", batches up to {session['batch_size']:,} bytes" if session["batch_size"] else ""
    if session["qos"] is None:
        yield "  what was negotiated is not in the capture"
    else:
        yield f"  {', '.join(on) or 'no options'}; {session['sn_bits']}-bit numbers{size}, patch {session['patch']}"
    if session["opened"] is not None:
        end = "open at the end" if session["closed"] is None else f"closed ({session['close_reason'] or 'link ended'})"
        yield f"  from {_utc(session['opened'])}, {end}"
    for link in session["links"]:
        yield f"  {link}"
        steps = ladders.get(link, [])
        for time, who, what in steps:
            yield f"    {(time - steps[0][0]) / 1e6:>9.3f} ms  {who:>21}  {what}"
    counts = sorted(session["messages"].items(), key=lambda item: -item[1])
    yield "  " + ", ".join(f"{count:,} {kind}" for kind, count in counts)
    for node in session["nodes"]:
        for number, name in list(node["keys"].items())[:10]:
            yield f"    key {number} of {(node['zid'] or '?')[:12]} = {name}"
        if len(node["keys"]) > 10:
            yield f"    ... {len(node['keys']) - 10} more keys"


def _utc(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
