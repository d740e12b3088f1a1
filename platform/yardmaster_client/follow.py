"""Following a log over WebSocket. No cut loses or doubles a line: the cursor is the number after the last line seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.models import LogGap, LogLine
from yardmaster_client.transport import Transport

_FOREIGN = 4404
_QUIET = 3.0
"""Parameter servers live on for a while after the verdict; who follows need not wait for them."""
_SILENCE = 60.0
"""The server pings every 25 s; after this long without a word the connection is dead, whatever TCP says."""


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
) -> Iterator[LogLine | LogGap]:
    """Lines of one task, or of all tasks, as they come, until `is_over()` and every stream has ended or fallen silent.

    Raises:
        PortalError: there is no such job for this user. NotReachable: cut off for longer than `give_up_after` seconds.
    """
    cursors: dict[str, int] = {}
    ended: set[str] = set()
    deadline = time.monotonic() + give_up_after
    while True:
        query = {"attempt": attempt, "role": role, "index": index, "from": _cursor(role, index, start, cursors)}
        address = f"{transport.url.replace('http', 'ws', 1)}/ws/jobs/{job_id}/logs/?{_query(query)}"
        try:
            with _open(transport, address) as socket:
                for message in _messages(socket, lambda quiet: _is_done(quiet, cursors, ended, is_over)):
                    deadline = time.monotonic() + give_up_after
                    yield from _read(message, cursors, ended)
                return
        except ConnectionClosed as error:
            if error.rcvd is not None and error.rcvd.code == _FOREIGN:
                raise PortalError(404, "not_found", "There is no such job.") from error
        except InvalidStatus as error:
            if error.response.status_code in (401, 403, 404):
                raise PortalError(error.response.status_code, "not_found", "There is no such job for you.") from error
        except (WebSocketException, OSError, TimeoutError) as error:
            if time.monotonic() > deadline:
                raise NotReachable(f"{transport.url} does not answer: {error}") from error
        if _is_done(0.0, cursors, ended, is_over):
            return
        time.sleep(0.5)


def _open(transport: Transport, address: str) -> ClientConnection:
    headers = {"Authorization": f"Bearer {transport.token}"} if transport.token else {}
    return connect(address, additional_headers=headers, max_size=16 << 20, open_timeout=20)


def _messages(socket: ClientConnection, finished: Callable[[float], bool]) -> Iterator[dict[str, Any]]:
    """Messages until `finished(seconds of silence)` says so."""
    heard = spoken = time.monotonic()
    while True:
        try:
            text = socket.recv(timeout=1.0)
        except TimeoutError:
            if finished(time.monotonic() - spoken):
                return
            if time.monotonic() - heard > _SILENCE:
                raise
            continue
        heard = time.monotonic()
        message = json.loads(text)
        if message["type"] == "ping":
            continue
        spoken = heard
        yield message
        if message["type"] == "end" and finished(0.0):
            return


def _read(message: dict[str, Any], cursors: dict[str, int], ended: set[str]) -> Iterator[LogLine | LogGap]:
    kind = message["type"]
    if kind not in ("lines", "gap", "end"):
        return
    role, index = message["role"], message["index"]
    name = f"{role}-{index}"
    cursors.setdefault(name, 0)
    if kind == "end":
        ended.add(name)
    elif kind == "gap":
        cursors[name] = message["first"] + message["count"]
        yield LogGap(role, index, message["first"], message["count"])
    else:
        ended.discard(name)
        for number, (when, text) in enumerate(message["lines"], message["first"]):
            cursors[name] = number + 1
            yield LogLine(role, index, number, datetime.fromtimestamp(when / 1000, UTC), text)


def _cursor(role: str | None, index: int | None, start: int, cursors: dict[str, int]) -> str:
    if role is not None:
        return str(cursors.get(f"{role}-{index}", start))
    return json.dumps(cursors) if cursors else str(start)


def _query(values: dict[str, Any]) -> str:
    return urlencode({name: value for name, value in values.items() if value is not None})


def _is_done(quiet: float, cursors: dict[str, int], ended: set[str], is_over: Callable[[], bool]) -> bool:
    """Everything was sent; or the job is over and only tasks that never end by themselves are left, saying nothing."""
    everything = bool(cursors) and ended.issuperset(cursors)
    return (everything or quiet >= _QUIET) and is_over()
