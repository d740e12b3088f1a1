"""An HTTP server that a bad or slow client cannot block: threads, bytes and the time of each request are bounded.

A connection carries one request. One that finds every thread busy and the queue full is answered 503 at once; one that
is not through with its request in time is closed. Not here: what is answered (`api`).
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Callable, Dict, Optional, Tuple

THREADS = 8
WAITING = 32
"""Connections that may wait for a thread."""
TIME_TO_SEND = 20.0
"""Seconds in which the whole request must have come."""
TIME_TO_TAKE = 60.0
"""Seconds in which the answer must have been taken."""
PIECE = 1 << 20

Answer = Tuple[int, Dict[str, Any]]
BUSY_TEXT = b'{"error": "The server is busy. Send the request again."}'
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BUSY_TEXT), BUSY_TEXT)
)


class Deadlines:
    """Connections and the moment at which each is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: Dict[socket.socket, float] = {}

    def set(self, connection: socket.socket, seconds: Optional[float]) -> None:
        """None: it may take as long as it does."""
        with self._lock:
            if seconds is None:
                self._until.pop(connection, None)
            else:
                self._until[connection] = time.monotonic() + seconds

    def close_overdue(self) -> None:
        now = time.monotonic()
        with self._lock:
            overdue = [one for one, until in self._until.items() if until <= now]
            for one in overdue:
                del self._until[one]
        for one in overdue:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class Server(HTTPServer):
    """Listens on a unix socket. `answer` is called in one of the threads with method, path and body."""

    address_family = socket.AF_UNIX
    request_queue_size = 64

    def __init__(self, path: str, answer: Callable[[str, str, bytes], Answer], most_body: int) -> None:
        super().__init__(path, Handler)  # type: ignore[arg-type] # the address of its family
        self.answer = answer
        self.most_body = most_body
        self.deadlines = Deadlines()
        self._waiting: "queue.Queue[Any]" = queue.Queue(WAITING)
        for _ in range(THREADS):
            threading.Thread(target=self._work, daemon=True).start()

    def server_bind(self) -> None:
        """A unix socket has no name and no port."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "", 0

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            self._waiting.put_nowait((request, client_address))
        except queue.Full:
            request.settimeout(0.2)
            with contextlib.suppress(OSError):
                request.sendall(BUSY)
            self._end(request)

    def service_actions(self) -> None:
        self.deadlines.close_overdue()

    def drain(self, seconds: float) -> None:
        """Wait until the requests that came are answered, but not longer."""
        until = time.monotonic() + seconds
        while self._waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.02)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke is no event."""

    def _work(self) -> None:
        while True:
            request, client_address = self._waiting.get()
            self.deadlines.set(request, TIME_TO_SEND)
            try:
                self.finish_request(request, client_address)
            except OSError:
                pass  # it broke, or was closed because it was overdue
            except Exception as error:  # noqa: BLE001 - one request must not end a thread of all
                sys.stderr.write("A request failed: %s: %s\n" % (type(error).__name__, error))
            finally:
                self._end(request)
                self._waiting.task_done()

    def _end(self, request: Any) -> None:
        self.deadlines.set(request, None)
        self.shutdown_request(request)


class Handler(BaseHTTPRequestHandler):
    """One request. What it does not understand is answered as TensorFlow Serving answers it: `{"error": …}`."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "yardmaster-model-server", ""
    timeout = TIME_TO_TAKE
    server: Server

    def handle(self) -> None:
        self.close_connection = True
        self.handle_one_request()

    def do_GET(self) -> None:
        self._respond(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or len(length) > 15:
            return self.send(411, {"error": "Send the body with its Content-Length."})
        if int(length) > self.server.most_body:
            message = "The body has %s bytes; the most is %d. Send fewer examples per request."
            return self.send(413, {"error": message % (length, self.server.most_body)})
        body = bytearray()
        while len(body) < int(length):
            piece = self.rfile.read(min(PIECE, int(length) - len(body)))
            if not piece:
                return None  # the client went away
            body += piece
        return self._respond(bytes(body))

    def _respond(self, body: bytes) -> None:
        self.server.deadlines.set(self.connection, None)
        status, answer = self.server.answer(self.command, self.path, body)
        self.send(status, answer)

    def send(self, status: int, answer: Dict[str, Any]) -> None:
        data = json.dumps(answer).encode("utf-8")
        self.server.deadlines.set(self.connection, TIME_TO_TAKE)
        self.send_response_only(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """What the library itself refuses: a line too long, too many headers, an unknown method."""
        self.command = self.command or ""
        self.request_version = "HTTP/1.1"
        self.send(code, {"error": message or "The request cannot be read."})
