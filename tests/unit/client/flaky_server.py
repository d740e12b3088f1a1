"""An HTTP server that answers what a test tells it to, one answer per request, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    peer: int = 0
    """The client's port."""


@dataclass(frozen=True)
class Cut:
    """An answer of which the first `sent` bytes come, and then nothing more."""

    data: bytes
    sent: int


@dataclass
class FlakyServer:
    """`answers` are (status, JSON); None closes the connection without an answer. The last one is given for ever."""

    answers: list[tuple[int, Any] | None] = field(default_factory=lambda: [(200, {})])
    by_path: Callable[[Asked], tuple[int, Any] | None] | None = None
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    """Of every answer."""

    def answer(self, asked: Asked) -> tuple[int, Any] | None:
        self.asked.append(asked)
        if self.by_path is not None:
            return self.by_path(asked)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextlib.contextmanager
def flaky_server() -> Iterator[FlakyServer]:
    state = FlakyServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = state.answer(Asked(self.command, self.path, headers, body, self.client_address[1]))
            if answer is None:
                self.close_connection = True
                self.connection.close()
                return
            status, value = answer
            if isinstance(value, Cut):
                self.send_response(status)
                for name, text in state.headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(value.data)))
                self.end_headers()
                self.wfile.write(value.data[: value.sent])
                self.close_connection = True
                return
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in state.headers.items():
                self.send_header(name, text)
            if 300 <= status < 400:
                self.send_header("Location", value.decode())
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _any

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
