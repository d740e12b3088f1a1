"""Following a log over WebSocket. No cut loses or doubles a line: the cursor is the number after the last line seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.models import LogGap, LogLine
from yardmaster_client.transport import Transport

_REFUSALS = {
    4400: (400, "invalid", "The portal does not know such a part of the log."),
    4401: (401, "not_authenticated", "The token is unknown, expired or revoked."),
    4404: (404, "not_found", "There is no such job, or it is not visible to you."),
}
_QUIET = 3.0
"""Parameter servers live on for a while after the verdict; who follows need not wait for them."""
_HEARTBEAT_TIMEOUT = 60.0
"""The server pings every 25 s; after this long without a word the connection is dead, whatever TCP says."""
_PAUSE = 0.5


@dataclass(frozen=True)
class OpenLine:
    """What a task has written of a line that it has not finished. Empty text: nothing any more."""

    role: str
    index: int
    number: int
    text: str


@dataclass
class _Place:
    """Which part of which log is followed, and how far it was read."""

    role: str | None
    index: int | None
    attempt: int | None
    start: int
    next_lines: dict[str, int] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    is_complete: bool = False
    """The attempt is over and everything was sent."""

    def query(self) -> str:
        """The address's query from here on."""
        values = {"attempt": self.attempt, "role": self.role, "index": self.index, "from": self._from()}
        return urlencode({name: value for name, value in values.items() if value is not None})

    def _from(self) -> str:
        if self.role is not None:
            return str(self.next_lines.get(f"{self.role}-{self.index or 0}", self.start))
        return json.dumps(self.next_lines) if self.next_lines else str(self.start)

    def take(self, message: dict[str, Any]) -> Iterator[LogLine | LogGap]:
        """What a message brings; moves on with every line that was taken."""
        kind = message["type"]
        if kind == "end" and "role" not in message:
            self.is_complete = True
        elif kind in ("lines", "gap", "end"):
            role, index = message["role"], message["index"]
            name = f"{role}-{index}"
            if kind == "end":
                self.next_lines.setdefault(name, 0)
                self.ended.add(name)
            elif kind == "gap":
                self.next_lines[name] = message["first"] + message["count"]
                yield LogGap(role, index, message["first"], message["count"], message.get("detail", ""))
            else:
                self.ended.discard(name)
                for number, (when, text) in enumerate(message["lines"], message["first"]):
                    self.next_lines[name] = number + 1
                    yield LogLine(role, index, number, datetime.fromtimestamp(when / 1000, UTC), text)

    @property
    def all_ended(self) -> bool:
        return bool(self.next_lines) and self.ended.issuperset(self.next_lines)


def follow(
    transport: Transport,
    job_id: str,
    *,
    role: str | None = None,
    index: int | None = None,
    attempt: int | None = None,
    start: int = 0,
    is_over: Callable[[], bool] = lambda: True,
    give_up_after: float = 300.0,
    on_open: Callable[[OpenLine], None] = lambda line: None,
) -> Iterator[LogLine | LogGap]:
    """Lines of one task, or of all tasks, as they come: until the attempt is over, or until `is_over()` and every
    stream has ended or fallen silent. A negative `start` counts from the end. `on_open` is given what tasks have
    written of the lines that they have not finished, such as progress bars.

    Raises:
        PortalError: there is no such job for this user. NotReachable: cut off for longer than `give_up_after` seconds.
    """
    place = _Place(role, index, attempt, start)
    address = f"{transport.url.replace('http', 'ws', 1)}/ws/jobs/{job_id}/logs/"
    deadline = time.monotonic() + give_up_after
    while True:
        try:
            with _open(transport, f"{address}?{place.query()}") as socket:
                for message in _messages(socket, lambda quiet: (place.all_ended or quiet >= _QUIET) and is_over()):
                    deadline = time.monotonic() + give_up_after
                    if message["type"] == "open":
                        on_open(OpenLine(message["role"], message["index"], message["line"], message["text"]))
                    yield from place.take(message)
                    if place.is_complete:
                        return
                return
        except (WebSocketException, OSError, TimeoutError) as error:
            refusal = _refusal(error)
            if refusal is not None:
                raise refusal from error
            if time.monotonic() > deadline:
                raise NotReachable(f"{transport.url} does not answer: {error}") from error
        time.sleep(_PAUSE)


def _open(transport: Transport, address: str) -> ClientConnection:
    headers = {"Authorization": f"Bearer {transport.token}"} if transport.token else {}
    return connect(address, additional_headers=headers, max_size=16 << 20, open_timeout=20, compression=None)


def _messages(socket: ClientConnection, is_finished: Callable[[float], bool]) -> Iterator[dict[str, Any]]:
    """Messages until `is_finished(seconds without lines)` says so. Raises `TimeoutError` when the server is silent."""
    received_at = spoken = time.monotonic()
    while True:
        try:
            message = json.loads(socket.recv(timeout=1.0))
        except TimeoutError:
            if is_finished(time.monotonic() - spoken):
                return
            if time.monotonic() - received_at > _HEARTBEAT_TIMEOUT:
                raise
            continue
        received_at = time.monotonic()
        if message["type"] == "ping":
            continue
        spoken = spoken if message["type"] == "open" else received_at
        yield message
        if message["type"] == "end" and is_finished(0.0):
            return


def _refusal(error: Exception) -> PortalError | None:
    """What will not get better by trying again."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None and error.rcvd.code in _REFUSALS:
        return PortalError(*_REFUSALS[error.rcvd.code])
    if isinstance(error, InvalidStatus) and error.response.status_code in (401, 403, 404):
        return PortalError(error.response.status_code, "not_found", "The portal has no log to follow at this address.")
    return None
