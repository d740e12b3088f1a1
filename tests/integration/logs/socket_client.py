"""A WebSocket client without a network: it speaks ASGI to the application."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

from asgiref.testing import ApplicationCommunicator

PATIENCE = 20.0


class SocketClient(ApplicationCommunicator):
    """Channels has one of its own, which needs another web server to be installed."""

    def __init__(self, application: Any, address: str, headers: list[tuple[bytes, bytes]]) -> None:
        parts = urlsplit(address)
        super().__init__(
            application,
            {
                "type": "websocket",
                "path": unquote(parts.path),
                "query_string": parts.query.encode(),
                "headers": headers,
                "subprotocols": [],
            },
        )

    async def connect(self) -> bool:
        """Whether the handshake was accepted."""
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output())["type"] == "websocket.accept"

    async def receive_output(self, timeout: float = PATIENCE) -> Any:
        return await super().receive_output(timeout)

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(PATIENCE)
