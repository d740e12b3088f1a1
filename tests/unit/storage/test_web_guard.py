"""Files from the web: from public addresses over https, or from the server that the administrator has named."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from yardmaster.storage import web_guard
from yardmaster.storage.web_guard import WebRefused, is_public, pieces


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "10.0.0.7", "192.168.1.1", "169.254.169.254", "::1", "fd00::1", "fe80::1", "::ffff:10.0.0.7",
     "64:ff9b::10.0.0.7", "2002:a00:7::", "100.64.0.1", "0.0.0.0", "168.63.129.16"],
)  # fmt: skip
def test_addresses_inside_are_not_public(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_addresses_of_the_internet_are(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


class _Server(BaseHTTPRequestHandler):
    to: str

    def do_GET(self) -> None:
        if self.path == "/file":
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"data")
            return
        target = {"/moved": "/file", "/round": "/round"}.get(self.path, self.to)
        self.send_response(302 if self.path != "/absent" else 404)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[_Server]]]:
    class Handler(_Server):
        to = ""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as one:
        threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{one.server_address[1]}", Handler
        one.shutdown()


def read(address: str, **more: object) -> bytes:
    bounds = {"most": 100, "seconds": 20.0} | more
    return b"".join(pieces(address, **bounds))  # type: ignore[arg-type]


def test_the_named_server_may_be_inside_and_lead_within_itself(server: tuple[str, type[_Server]]) -> None:
    url, _ = server
    assert read(f"{url}/file", named=f"{url}/folder") == b"data"
    assert read(f"{url}/moved", named=url) == b"data"


@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        ("/absent", "", "answers 404"),
        ("/round", "", "redirects more than"),
        ("/other", "http://169.254.169.254/latest", "not asked over https"),
        ("/other", "https://127.0.0.1:9/x", "it accepts no connection"),
        ("/other", "file:///etc/passwd", "not asked over https"),
    ],
)
def test_where_a_redirect_may_not_lead(server: tuple[str, type[_Server]], path: str, to: str, words: str) -> None:
    url, handler = server
    handler.to = to
    with pytest.raises(WebRefused, match=words):
        read(url + path, named=url)


def test_an_address_that_no_one_has_named_is_https_alone(server: tuple[str, type[_Server]]) -> None:
    url, _ = server
    with pytest.raises(WebRefused, match="not asked over https"):
        read(f"{url}/file")
    with pytest.raises(WebRefused, match="not asked over https"):
        read(f"{url}/file", named="http://127.0.0.1:1/other-port")


def test_an_inner_address_is_refused_before_anything_is_sent(server: tuple[str, type[_Server]]) -> None:
    url, _ = server
    with pytest.raises(WebRefused, match="not allowed"):
        read(f"{url.replace('http', 'https')}/file")


def test_size_and_time_are_bounded(server: tuple[str, type[_Server]]) -> None:
    url, _ = server
    with pytest.raises(WebRefused, match="more than 3 bytes"):
        read(f"{url}/file", named=url, most=3)
    with pytest.raises(WebRefused, match="more than -1 seconds"):
        read(f"{url}/file", named=url, seconds=-1.0)
    assert web_guard.REDIRECTS == 5
