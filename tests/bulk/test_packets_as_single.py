"""The tests of the reader of single packets, with the packets of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from scapy_zenoh.bulk.packets import BLOCK, PacketBlocks
from scapy_zenoh.capture import Packet
from tests import test_capture

pytestmark = pytest.mark.slow  # the same tests as for single packets, twice

ELSEWHERE = {
    "test_pipe_gives_packets_while_it_is_written",  # blocks come when they are full
    "test_standard_input",
    "test_number_of_packets_is_that_of_the_truth_file",  # real captures: blocks are compared with single packets
    "test_packets_are_those_scapy_finds",
    "test_packets_are_those_tshark_finds",
}


@pytest.fixture(autouse=True, scope="module", params=[300, BLOCK])
def reader(request: pytest.FixtureRequest) -> Iterator[None]:
    class Single(PacketBlocks):
        """Gives packets and takes the place of CaptureReader."""

        def __init__(self, sources: Sequence[Any]) -> None:
            super().__init__(sources, request.param)

        def __iter__(self) -> Iterator[Packet]:  # type: ignore[override]
            for block in super().__iter__():
                yield from (block.packet(i) for i in range(block.count))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_capture, "CaptureReader", Single)
        yield


for name, test in vars(test_capture).items():
    if name.startswith("test_") and name not in ELSEWHERE:
        globals()[name] = test
