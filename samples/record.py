"""Records the captures of this folder again: real nodes on 127.0.0.1, watched by dumpcap.

Needs `pip install eclipse-zenoh==1.10.2`, dumpcap and editcap (they come with tshark) and the right to capture on `lo`:

    python samples/record.py [NAME ...]          # pubsub, query, login, compression, low_latency
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import zenoh

ENDPOINT = "tcp/127.0.0.1:7447"
HERE = Path(__file__).parent
SETTLE = 0.3  # seconds: for declarations to arrive before what depends on them, and samples before the end


def node(mode: str, **settings: Any) -> zenoh.Session:
    """A router that listens, or a client that connects to it; ``settings`` are keys of Zenoh's configuration."""
    config = zenoh.Config()
    config.insert_json5("mode", json.dumps(mode))
    where = "listen" if mode == "router" else "connect"
    config.insert_json5(f"{where}/endpoints", json.dumps([ENDPOINT]))
    config.insert_json5("scouting/multicast/enabled", "false")
    for key, value in settings.items():
        config.insert_json5(key.replace("__", "/"), json.dumps(value))
    return zenoh.open(config)


def pubsub() -> None:
    """A subscriber and a publisher behind a router: encodings, attachment, priority, deletion."""
    with node("router"), node("client") as listener, node("client") as speaker:
        subscriber = listener.declare_subscriber("demo/room/**")
        time.sleep(SETTLE)
        speaker.put("demo/room/1/temperature", "21.5", encoding=zenoh.Encoding.TEXT_PLAIN)
        speaker.put("demo/room/1/light", b"\x01", attachment=b"unit=lamp", priority=zenoh.Priority.REAL_TIME)
        publisher = speaker.declare_publisher("demo/room/2/temperature", encoding=zenoh.Encoding.APPLICATION_JSON)
        time.sleep(SETTLE)
        for value in (19.0, 19.5, 20.0):
            publisher.put(json.dumps({"celsius": value}))
        publisher.put("<c>20</c>", encoding="application/xml;v1", attachment=b"last")
        publisher.delete()
        speaker.delete("demo/room/1/light")
        time.sleep(SETTLE)
        publisher.undeclare()
        subscriber.undeclare()
        time.sleep(SETTLE)


def query() -> None:
    """Queries with parameters and a payload; answers, an error and a deletion."""

    def answer(asked: zenoh.Query) -> None:
        with asked:
            wanted = asked.parameters.get("item")
            if wanted is None:
                asked.reply_err("which item?", encoding=zenoh.Encoding.TEXT_PLAIN)
            elif wanted == "gone":
                asked.reply_del("demo/store/gone")
            else:
                asked.reply(f"demo/store/{wanted}", asked.payload or b"5", encoding=zenoh.Encoding.TEXT_PLAIN)

    with node("router"), node("client") as server, node("client") as asker:
        queryable = server.declare_queryable("demo/store/**", answer, complete=True)
        time.sleep(SETTLE)
        for wanted, options in (
            ("?item=apples", {}),
            ("?item=pears", {"payload": "set to 7", "attachment": b"by=clerk"}),
            ("?item=gone", {"target": zenoh.QueryTarget.ALL}),
            ("", {"consolidation": zenoh.ConsolidationMode.NONE, "timeout": 2.0}),
        ):
            list(asker.get(f"demo/store/**{wanted}", **options))  # one after the other, not in one batch
        queryable.undeclare()
        time.sleep(SETTLE)


def login() -> None:
    """A router that wants user and password: one client knows them, one does not."""
    with TemporaryDirectory() as folder:
        users = Path(folder) / "users.txt"
        users.write_text("alice:secret\n")
        with node("router", transport__auth__usrpwd={"dictionary_file": str(users)}):
            with node("client", transport__auth__usrpwd={"user": "alice", "password": "secret"}) as alice:
                alice.put("demo/hello", "from alice")
                time.sleep(SETTLE)
            try:
                node("client", transport__auth__usrpwd={"user": "alice", "password": "guess"}, connect__timeout_ms=500)
            except zenoh.ZError:
                return
    raise AssertionError("the router let a wrong password in")


def compression() -> None:
    """Batches as LZ4 blocks, where that makes them smaller."""
    on = {"transport__unicast__compression__enabled": True}
    with node("router", **on), node("client", **on) as listener, node("client", **on) as speaker:
        subscriber = listener.declare_subscriber("demo/**")
        time.sleep(SETTLE)
        speaker.put("demo/text", "the same words again and again, " * 30)
        time.sleep(SETTLE)
        speaker.put("demo/noise", bytes(i * i * 31 % 251 for i in range(40)))
        time.sleep(SETTLE)
        subscriber.undeclare()


def low_latency() -> None:
    """Bare network messages without FRAMEs or lanes."""
    on = {"transport__unicast__lowlatency": True, "transport__unicast__qos__enabled": False}
    with node("router", **on), node("client", **on) as listener, node("client", **on) as speaker:
        subscriber = listener.declare_subscriber("demo/**")
        time.sleep(SETTLE)
        for i in range(3):
            speaker.put("demo/tick", str(i))
        time.sleep(SETTLE)
        subscriber.undeclare()


SCENES = {scene.__name__: scene for scene in (pubsub, query, login, compression, low_latency)}


@contextmanager
def recording(path: Path) -> Iterator[None]:
    """Records what happens on the endpoint's port into ``path``."""
    with TemporaryDirectory() as folder:
        raw, bare = Path(folder) / "raw.pcapng", Path(folder) / "bare.pcap"
        with _dumpcap(raw):
            yield
            time.sleep(SETTLE)
        # By way of a format that has no room for what dumpcap notes about the machine.
        subprocess.run(["editcap", "-F", "nsecpcap", raw, bare], check=True)
        subprocess.run(["editcap", "-F", "pcapng", bare, path], check=True)


@contextmanager
def _dumpcap(path: Path) -> Iterator[None]:
    command = ["dumpcap", "-q", "-i", "lo", "-f", "tcp port 7447", "-w", str(path)]
    watcher = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert watcher.stderr is not None
    for line in watcher.stderr:
        if line.startswith("File:"):
            break
    else:
        raise SystemExit(f"dumpcap ended with {watcher.wait()} before it recorded anything")
    try:
        yield
    finally:
        watcher.terminate()
        watcher.communicate()


def main(names: list[str]) -> None:
    """Records the scenes with these names, or all."""
    for name in names or SCENES:
        path = HERE / f"{name}.pcapng"
        with recording(path):
            SCENES[name]()
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
