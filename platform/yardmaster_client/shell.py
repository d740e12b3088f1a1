"""A terminal in a running task, or one command without a terminal, over a WebSocket (docs/protocols.md, section 7).

Not here: the terminal that it is shown in (`cli.shell`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.transport import Transport

WINDOW, LEAST, LONGEST_MESSAGE = 128 << 10, 1 << 10, 16 << 10
"""What may be on its way unread, what a message counts as at least, and how long one is at most."""
STDOUT, STDERR = 1, 2
SAID_AFTER = 32 << 10
"""Of what was read, the portal is told when it is this much: a message each time would double their number."""
HEARTBEAT_TIMEOUT = 60.0
_REFUSALS = {
    4401: (401, "not_authenticated"),
    4403: (403, "permission_denied"),
    4404: (404, "not_found"),
    4409: (409, "conflict"),
}


class Shell:
    """A terminal in one task, or with `command` that command with its arguments, without a terminal. A context
    manager; `send`, `resize` and `end_input` may be called from another thread than `output` is read in.

    Raises:
        PortalError: on entering, where there can be no terminal, and says why.
        NotReachable: when the portal does not answer.
    """

    def __init__(self, transport: Transport, job_id: str, task: str, command: Sequence[str] = ()) -> None:
        self._address = f"{transport.url.replace('http', 'ws', 1)}/ws/jobs/{job_id}/tasks/{task}/shell/"
        self._command = json.dumps({"command": list(command)}) if command else ""
        self._address += "?command=1" if command else ""
        if len(self._command) > LONGEST_MESSAGE:
            raise ValueError(f"The command is too long: {LONGEST_MESSAGE} characters are the most. Put it into a file.")
        self._headers = {"Authorization": f"Bearer {transport.token}"} if transport.token else {}
        self._socket: ClientConnection | None = None
        self._life = ExitStack()
        self._unread = self._unsaid = 0
        self._may_send = threading.Condition()
        self.was_closed = False
        self.why = ""
        """Once it is over: why."""
        self.exit_code: int | None = None
        """Once it is over: what the shell or the command itself ended with; None where something else ended it."""

    def __enter__(self) -> Shell:
        try:
            opened = connect(
                self._address, additional_headers=self._headers, compression=None, ping_interval=25,
                ping_timeout=HEARTBEAT_TIMEOUT,
            )  # fmt: skip
            self._socket = self._life.enter_context(opened)
        except InvalidStatus as refused:
            raise PortalError.from_answer(refused.response.status_code, None) from refused
        except (WebSocketException, OSError, TimeoutError) as error:
            raise NotReachable(f"The portal does not open a WebSocket: {error}.") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._life.close()

    def close(self) -> None:
        """End it. May be called from any thread."""
        self.was_closed = True
        if self._socket is not None:
            self._socket.close()

    def wait_until_open(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Return when something can be typed. `waiting` is called when the task has been asked for a shell."""
        for message in self._messages():
            state = message.get("state") if isinstance(message, dict) else None
            if state == "waiting":
                waiting()
            elif state == "open":
                if self._command:
                    self._send(self._command)
                return
        raise NotReachable(f"The terminal was not opened: {self.why}")

    def output(self) -> Iterator[bytes]:
        """What is printed in a terminal, until that is over. What was yielded counts as read when the next is asked
        for."""
        for message in self._messages():
            if isinstance(message, bytes):
                yield message
                self._say_read(max(LEAST, len(message)))

    def printed(self) -> Iterator[tuple[int, bytes]]:
        """What the command prints, each piece with `STDOUT` or `STDERR`; as `output`."""
        for message in self.output():
            yield message[0], message[1:]

    def end_input(self) -> None:
        """The command gets no more input."""
        self._send(json.dumps({"input": None}))

    def send(self, typed: bytes) -> None:
        """Type. Waits while the task does not read; what is typed after the end is dropped."""
        for at in range(0, len(typed), LONGEST_MESSAGE):
            self._send(typed[at : at + LONGEST_MESSAGE])

    def resize(self, rows: int, columns: int) -> None:
        self._send(json.dumps({"rows": max(1, min(rows, 1000)), "columns": max(1, min(columns, 1000))}))

    def _send(self, content: bytes | str) -> None:
        with self._may_send:
            self._may_send.wait_for(lambda: self._unread < WINDOW or self.why)
            self._unread += max(LEAST, len(content))
        self._write(content)

    def _write(self, content: bytes | str) -> None:
        try:
            if self._socket is not None:
                self._socket.send(content)
        except (ConnectionClosed, OSError):
            pass  # `output` says why

    def _say_read(self, amount: int) -> None:
        self._unsaid += amount
        if self._unsaid >= SAID_AFTER:
            self._write(json.dumps({"read": self._unsaid}))
            self._unsaid = 0

    def _messages(self) -> Iterator[bytes | dict[str, Any]]:
        assert self._socket is not None, "it is a context manager"
        try:
            while not self.why:
                message = self._socket.recv()
                if isinstance(message, str):
                    self._hear(json.loads(message))
                    yield json.loads(message)
                else:
                    yield message
            self._socket.recv()  # its close code
        except ConnectionClosed as closed:
            self._over(closed.rcvd.code if closed.rcvd else 1006)
        except (OSError, ValueError) as error:
            raise NotReachable(f"The connection to the portal was lost: {error}.") from error

    def _hear(self, message: dict[str, Any]) -> None:
        with self._may_send:
            self._unread -= int(message.get("read", 0))
            if "ended" in message:
                self.why, self.exit_code = str(message["ended"]) or "It has ended.", message.get("exit_code")
            self._may_send.notify_all()

    def _over(self, code: int) -> None:
        with self._may_send:
            self.why = self.why or "The connection to the portal was lost."
            self._may_send.notify_all()
        if code in _REFUSALS:
            raise PortalError(*_REFUSALS[code], self.why)
