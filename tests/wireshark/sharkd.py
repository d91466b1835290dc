"""Protocol trees of the installed Wireshark with a Lua plugin: a client of sharkd, the daemon with Wireshark's eyes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from tests.wireshark.node import WANTED, Dissection, Frame, Node, WiresharkError, name_and_value, row


def sharkd_available() -> bool:
    """Whether sharkd is installed; Debian has it in wireshark-common."""
    return shutil.which("sharkd") is not None


def dissect(
    capture: Path,
    plugin: Path | None,
    prefs: Mapping[str, str] = {},  # noqa: B006, nobody changes it
    order: Sequence[int] | None = None,
    filters: Sequence[str] = (),
    wanted: Sequence[str] = WANTED,
) -> Dissection:
    """Dissect a capture as `node.dissect` does."""
    # Text from the network may be no UTF-8, and sharkd writes some of it as it is.
    text: Any = {"encoding": "utf-8", "errors": "replace"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with _home(plugin, prefs) as environment, tempfile.TemporaryFile("w+", **text) as printed:
        with subprocess.Popen(["sharkd", "-"], env=environment, **pipes, stderr=printed, **text) as process:
            assert process.stdin and process.stdout
            server = _Server(process.stdin, process.stdout)
            for name, value in prefs.items():  # set already; this refuses wrong ones
                server.ask("setconf", name=name, value=value)
            server.ask("load", file=str(capture.absolute()))
            numbers = range(1, server.ask("status")["frames"] + 1) if order is None else order
            frames = tuple(_frame(n, server.ask("frame", frame=n, proto=True, bytes=True), wanted) for n in numbers)
            found = {f: tuple(row(r["num"], r["c"]) for r in server.ask("frames", filter=f)) for f in filters}
            server.ask("bye")
        printed.seek(0)
        return Dissection(frames, found, (*server.log, *printed.read().splitlines()))


@contextmanager
def _home(plugin: Path | None, prefs: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """An environment whose only plugin and preferences of the user are the given ones."""
    with tempfile.TemporaryDirectory() as home:
        plugins = Path(home, "plugins")
        plugins.mkdir()
        if plugin is not None:
            shutil.copy(plugin, plugins)
        # The request setconf does not tell a plugin that its preferences have changed; this file does.
        Path(home, "preferences").write_text("".join(f"{name}: {value}\n" for name, value in prefs.items()))
        # Wireshark has two folders for plugins of a user: one below its configuration, one below the home.
        yield {**os.environ, "WIRESHARK_CONFIG_DIR": home, "HOME": home}


class _Server:
    """The two pipes of sharkd. It answers each request with a line; Lua may print others in between, which are kept."""

    def __init__(self, requests: IO[str], answers: IO[str]) -> None:
        self.requests, self.answers = requests, answers
        self.ids = count(1)
        self.log: list[str] = []

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        request = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params}
        try:
            self.requests.write(json.dumps(request) + "\n")
            self.requests.flush()
        except BrokenPipeError:
            raise WiresharkError(f"{method}: sharkd has ended") from None
        for line in self.answers:
            if not line.startswith('{"jsonrpc":'):
                self.log.append(line.rstrip("\n"))
                continue
            answer = json.loads(line)
            if "error" in answer:
                raise WiresharkError(f"{method} {params}: {answer['error']['message']}")
            return answer["result"]
        raise WiresharkError(f"{method} {params}: sharkd has ended")


def _frame(number: int, result: dict[str, Any], wanted: Sequence[str]) -> Frame:
    nodes = tuple(_tree(node) for node in result["tree"] if node.get("f", "").startswith(tuple(wanted)))
    data = base64.b64decode(result["bytes"])
    others = tuple((source["name"], base64.b64decode(source["bytes"])) for source in result.get("ds", ()))
    return Frame(number, nodes, ((f"Frame ({len(data)} bytes)", data), *others))


def _tree(node: dict[str, Any]) -> Node:
    abbrev, value = name_and_value(node.get("f", ""))
    start, length = node.get("h", (0, 0))
    children = tuple(map(_tree, node.get("n", ())))
    return Node(abbrev, node["l"], value, start, length, node.get("ds", 0), node.get("s", ""), children)
