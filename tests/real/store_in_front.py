"""An S3 server behind a proxy that a test can put in trouble: it answers 503, says that addresses have expired, or
hangs up. It keeps what it was asked for, with what signed it.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HANGS_UP = 0
"""In the place of a status."""
_SAYS = {503: ("SlowDown", "Please reduce your request rate."), 403: ("AccessDenied", "Request has expired")}


@dataclass
class StoreInFront:
    """`asked` are the methods and targets of all requests so far."""

    url: str
    behind: str
    trouble: int | None = None
    methods: tuple[str, ...] = ("GET", "PUT", "POST", "HEAD", "DELETE")
    """Of the requests that meet the trouble."""
    besides: str = ""
    """In the path of those that do not."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    met: int = 0
    """Requests that have met a trouble so far."""

    @contextmanager
    def in_trouble(self, status: int, *methods: str, besides: str = "") -> Iterator[None]:
        """Answers `status` to requests of these methods, or of all; `HANGS_UP`: nothing. Not where the path has
        `besides`."""
        self.methods, self.besides = methods or StoreInFront.methods, besides
        self.trouble = status
        try:
            yield
        finally:
            self.trouble = None


@contextmanager
def store_in_front(server: str) -> Iterator[StoreInFront]:
    """In front of the server at this address, until the end."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    listening.daemon_threads = True
    front = StoreInFront(f"http://127.0.0.1:{listening.server_port}", urlsplit(server).netloc)
    listening.front = front  # type: ignore[attr-defined]
    serving = threading.Thread(target=listening.serve_forever, daemon=True)
    serving.start()
    try:
        yield front
    finally:
        listening.shutdown()
        listening.server_close()
        serving.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        front: StoreInFront = self.server.front  # type: ignore[attr-defined]
        front.asked.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble, is_spared = front.trouble, front.besides and front.besides in self.path
        if trouble is None or self.command not in front.methods or is_spared:
            self._pass_on(front.behind, body)
            return
        front.met += 1
        if trouble == HANGS_UP:
            self.close_connection = True
        else:
            code, message = _SAYS[trouble]
            said = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
            self._send(trouble, [("Content-Type", "application/xml")], said)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def _pass_on(self, server: str, body: bytes) -> None:
        with closing(http.client.HTTPConnection(server, timeout=60)) as connection:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():  # the Host, too, which is under the signature
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OF_THE_WAY]
            length = answer.headers.get("Content-Length") if self.command == "HEAD" else None
            self._send(answer.status, headers, answer.read(), length)

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes, length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


_OF_THE_WAY = ("content-length", "transfer-encoding", "connection", "date", "server")
