"""A receiver of messages in the test's own process, over HTTP or TLS: it keeps what it gets, and answers as it is told.

`slow`: it sends one byte of its answer at a time, as long as anyone reads.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CERTIFICATE = Path(__file__).parents[1] / "unit" / "client" / "store.test.pem"
"""For the name store.test, signed by itself."""


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    port: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b"ok"
    slow: bool = False
    got: list[Received] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def url(self, host: str = "127.0.0.1", scheme: str = "http", path: str = "/hook") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.append(Received(self.path, dict(self.headers.items()), body))
            if receiver.slow:
                self._drip()
                return
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            with suppress(OSError):  # it was cut off
                self.wfile.write(receiver.answer)

        def _drip(self) -> None:
            with suppress(OSError):  # the portal has hung up
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not receiver.ended.wait(0.02):
                    self.wfile.write(b"x")

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def receiver_on(*, tls: bool = False) -> Iterator[Receiver]:
    receiver = Receiver()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver)) as server:
        server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        receiver.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield receiver
        receiver.ended.set()
        server.shutdown()
