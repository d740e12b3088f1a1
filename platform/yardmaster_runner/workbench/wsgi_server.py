"""A WSGI server on a unix socket: HTTP/1.1, with connections that carry many requests, in a bounded number of threads.

Behind the gate, so all requests come from the portal: bodies are bounded, and nothing else is expected to be hostile.
Not here: the application.
"""

from __future__ import annotations

import io
import socket
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn
from typing import Any, Callable, Dict, List, Tuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

THREADS = 64
"""Requests and idle connections at once; more wait until one ends."""
CROWDED = THREADS // 2
"""From this many on, a connection is closed after its request, so that the idle ones leave threads to others."""
IDLE = 30.0
"""Seconds in which a connection must send its next request, or take some of its answer."""
MOST_BODY = 8 << 20
PIECE = 64 << 10
"""Bytes of an answer that must go within `IDLE` seconds: the time of a `sendall` counts for all that it sends."""
BODY_PATIENCE = 30.0
"""Seconds in which a body must arrive, in all."""
NO_CONTENT = (204, 304)


class Server(ThreadingMixIn, WSGIServer):
    """Listens on the socket `path` when it is made. Its threads end with the process."""

    address_family = socket.AF_UNIX
    request_queue_size = 128
    daemon_threads = True

    def __init__(self, path: str, application: Callable[..., Any]) -> None:
        self._free = threading.BoundedSemaphore(THREADS)
        self.busy = 0
        super().__init__(path, Handler)  # type: ignore[arg-type] # the address of its family
        self.set_app(application)

    def server_bind(self) -> None:
        """A unix socket has no name and no port."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 80
        self.setup_environ()

    def get_request(self) -> Tuple[socket.socket, Tuple[str, int]]:
        return self.socket.accept()[0], ("local", 0)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        self.busy += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.busy -= 1
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no event."""

    def answer(self, environment: Dict[str, Any]) -> Tuple[str, List[Tuple[str, str]], bytes]:
        """What the application says. Never raises: what it raises is a line of the log and status 500."""
        said: List[Any] = ["500 Internal Server Error", []]
        written: List[bytes] = []

        def start(status: str, headers: List[Tuple[str, str]], problem: Any = None) -> Callable[[bytes], None]:
            said[:] = [status, headers]
            return written.append

        try:
            pieces = self.get_app()(environment, start)  # type: ignore[misc]
            try:
                written.extend(pieces)
            finally:
                getattr(pieces, "close", lambda: None)()
        except Exception:  # noqa: BLE001 - a request of a user must not end the thread without an answer
            sys.stderr.write("A request failed:\n" + traceback.format_exc(limit=-3))
            return "500 Internal Server Error", [("Content-Type", "text/plain")], b"The request failed. See the log."
        return said[0], said[1], b"".join(written)


class Handler(WSGIRequestHandler):
    """One connection. A body is read whole before the application is asked, so that the next request can follow."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE
    server: Server
    handle = BaseHTTPRequestHandler.handle

    def do_GET(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdigit() or len(length) > 15:
            return self._refuse(411, "Send the body with its Content-Length.")
        if int(length) > MOST_BODY:
            return self._refuse(413, "The body has %s bytes; the most is %d." % (length, MOST_BODY))
        body = self._body(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None  # the client went away
        environment = self.get_environ()
        environment.update(
            {
                "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body),
                "wsgi.errors": sys.stderr, "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
            }
        )  # fmt: skip
        status, headers, data = self.server.answer(environment)
        return self._send(int(status[:3]), status[4:], headers, data)

    def _body(self, length: int) -> bytes:
        """Less than so many bytes if the client went away. Raises TimeoutError: the connection ends."""
        pieces: List[bytes] = []
        until, left = time.monotonic() + BODY_PATIENCE, length
        while left:
            self.connection.settimeout(max(until - time.monotonic(), 0.001))
            piece = self.rfile.read1(min(left, 64 << 10))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        self.connection.settimeout(IDLE)
        return b"".join(pieces)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET

    def log_message(self, format: str, *words: Any) -> None:
        """A request is no event."""

    def _refuse(self, status: int, message: str) -> None:
        self.close_connection = True
        self._send(status, "", [("Content-Type", "text/plain")], message.encode())

    def _send(self, status: int, reason: str, headers: List[Tuple[str, str]], data: bytes) -> None:
        self.send_response_only(status, reason or None)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection"):
                self.send_header(name, value)
        if status not in NO_CONTENT:
            self.send_header("Content-Length", str(len(data)))
        if self.close_connection or self.server.busy > CROWDED:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD" and status not in NO_CONTENT:
            for begin in range(0, len(data), PIECE):
                self.wfile.write(data[begin : begin + PIECE])
