"""The messages in one direction of a WebSocket connection (RFC 6455), after the upgrade."""

from __future__ import annotations

from dataclasses import dataclass, field

UPGRADE_END = b"\r\n\r\n"
MAX_MESSAGE = 1 << 20
_CONTINUATION, _BINARY = 0x0, 0x2


@dataclass(slots=True)
class WebSocketReader:
    """Takes the bytes of a direction and gives whole binary messages."""

    buffer: bytearray = field(default_factory=bytearray)
    message: bytearray = field(default_factory=bytearray)
    broken: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete."""
        self.buffer += data
        messages: list[bytes] = []
        while not self.broken and (frame := self._frame()) is not None:
            final, opcode, payload = frame
            if opcode in (_BINARY, _CONTINUATION):
                self.message += payload
                if final:
                    messages.append(bytes(self.message))
                    self.message.clear()
            if len(self.message) > MAX_MESSAGE:
                self.broken = True
        return messages

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """The next frame, unmasked; None when it is not all there."""
        data = self.buffer
        if len(data) < 2:
            return None
        final, opcode, masked, size, pos = bool(data[0] & 0x80), data[0] & 0x0F, data[1] >> 7, data[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(data) < pos + width:
                return None
            size, pos = int.from_bytes(data[pos : pos + width], "big"), pos + width
        if size > MAX_MESSAGE:
            self.broken = True
            return None
        end = pos + 4 * masked + size
        if len(data) < end:
            return None
        payload = bytes(data[end - size : end])
        if masked:
            key = bytes(data[pos : pos + 4]) * (size // 4 + 1)
            payload = (int.from_bytes(payload, "big") ^ int.from_bytes(key[:size], "big")).to_bytes(size, "big")
        del data[:end]
        return final, opcode, payload
