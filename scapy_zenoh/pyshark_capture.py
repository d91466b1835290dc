"""A capture of pyshark that runs tshark itself.

pyshark 0.6 starts tshark through asyncio, which works neither inside a running event loop nor on Python 3.14. It gives
tshark no environment of its own, and with ``only_summaries`` loses all packets but the first. Its packets are fine.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from typing import IO, Any

from pyshark import FileCapture
from pyshark.capture.capture import StopCapture
from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet, psml_structure_from_xml

from scapy_zenoh.wireshark import WiresharkError, complaint, script


class ZenohCapture(FileCapture):  # type: ignore[misc] # pyshark has no types
    """What ``open_capture`` returns; every iteration reads the file anew."""

    def __init__(self, plugin: str, **options: Any) -> None:
        super().__init__(eventloop=_NO_LOOP, **options)
        self._plugin = plugin

    def _packets_from_tshark_sync(
        self, packet_count: int | None = None, existing_process: None = None
    ) -> Generator[Any, None, None]:
        with script(self._plugin) as (options, environment), tempfile.TemporaryFile() as stderr:
            form = "psml" if self._only_summaries else "pdml"
            command = [str(self.tshark_path), "-l", "-n", "-T", form, *options, *self.get_parameters(packet_count)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)
            assert process.stdout is not None
            try:
                yield from _packets(process.stdout)
                if process.wait():
                    stderr.seek(0)
                    _tell(complaint(stderr.read().decode("utf-8", "replace")))
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def apply_on_packets(
        self, callback: Callable[[Any], object], timeout: None = None, packet_count: int | None = None
    ) -> None:
        with suppress(StopCapture), closing(self._packets_from_tshark_sync(packet_count)) as packets:
            for packet in packets:
                callback(packet)

    def close(self) -> None:
        """End tshark if ``next`` or an index started it; an iteration ends it by itself."""
        self._packet_generator.close()


_NO_LOOP = object()  # pyshark makes an event loop if it is given none


def _packets(output: IO[bytes]) -> Iterator[Any]:
    lines: list[bytes] = []
    structure = None
    for line in output:
        tag = line.strip()
        if tag in (b"<packet>", b"<structure>"):
            lines.clear()
        lines.append(line)
        if tag == b"</structure>":
            structure = psml_structure_from_xml(b"".join(lines))
        elif tag == b"</packet>":
            yield packet_from_xml_packet(b"".join(lines), psml_structure=structure)


def _tell(problem: str) -> None:
    if "cut short" not in problem:
        raise WiresharkError(problem)
    warnings.warn(problem, stacklevel=3)
