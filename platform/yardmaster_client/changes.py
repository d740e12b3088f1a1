"""Waiting until a job has changed: the portal says so over WebSocket, and what has changed is read over HTTP.

A hint, never needed: behind a proxy that lets no WebSocket through, the job is looked at twice a second.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from yardmaster_client.transport import Transport

LOOK_EVERY = 0.5
"""Seconds between two looks where the portal cannot be listened to."""
LISTEN_FOR = 5.0
"""Seconds that a hint is waited for: one may have been lost."""
_TRY_AGAIN_AFTER = 10.0
_HINTS = ("ready", "job")
"""`ready` is one: what happened before the portal listened was not told."""


class Changes:
    """What the portal says about one job. A context manager.

    Without `details` a hint that only its progress, its tasks or its results have changed is passed over: each look
    costs the portal, and the job's own tasks beside it on one machine, 10 ms.
    """

    def __init__(self, transport: Transport, job_id: str, *, details: bool = True) -> None:
        self._transport = transport
        self._details = details
        self._address = f"{transport.url.replace('http', 'ws', 1)}/ws/jobs/{job_id}/"
        self._socket: ClientConnection | None = None
        self._life = ExitStack()
        self._not_before = 0.0

    def __enter__(self) -> Changes:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def wait(self, at_most: float = LISTEN_FOR) -> None:
        """Return when the job may have changed, or when it is time to look. Never raises."""
        until = time.monotonic() + at_most
        if self._socket is None:
            self._open()
        try:
            while self._socket is not None and (left := until - time.monotonic()) > 0:
                if self._is_hint(json.loads(self._socket.recv(timeout=left))):
                    self._drop_what_else_came()
                    return
        except TimeoutError:
            return
        except (WebSocketException, OSError, ValueError, KeyError, TypeError):  # cut, or answered by another program
            self._close()
        time.sleep(max(0.0, min(LOOK_EVERY, until - time.monotonic())))

    def _is_hint(self, message: dict[str, Any]) -> bool:
        return message["type"] in _HINTS and (self._details or message.get("about") != "details")

    def _drop_what_else_came(self) -> None:
        """One look answers them all."""
        while self._socket is not None:
            try:
                self._socket.recv(timeout=0)
            except TimeoutError:
                return

    def _open(self) -> None:
        if time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _TRY_AGAIN_AFTER
        headers = {"Authorization": f"Bearer {self._transport.token}"} if self._transport.token else {}
        try:
            opened = connect(self._address, additional_headers=headers, open_timeout=5, compression=None)
            self._socket = self._life.enter_context(opened)
        except (WebSocketException, OSError, TimeoutError):
            self._socket = None

    def _close(self) -> None:
        if self._socket is not None:
            self._socket = None
            self._life.close()
