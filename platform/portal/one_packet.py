"""The head of an answer goes with the beginning of its body, in one write: each write of few bytes costs the process
more than the bytes do, and uvicorn writes both for itself."""

from __future__ import annotations

import asyncio

_CONTINUE = b"HTTP/1.1 100 "


class OnePacket:
    """What one answer is written through, in place of the connection's transport. What is held of it is written before
    the event loop waits again: a body that comes later holds up no head."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: bytes | None = None
        self._has_begun = False

    def write(self, data: bytes) -> None:
        if not self._has_begun and not data.startswith(_CONTINUE):
            self._has_begun, self._held = True, data
            self._loop.call_soon(self._flush)
            return
        held, self._held = self._held, None
        self._transport.write(held + data if held is not None else data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._transport.is_closing():
            self._transport.write(held)
