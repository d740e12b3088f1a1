"""Servers that others have named: no address of the link is connected to, and no redirect is followed."""

from __future__ import annotations

import ipaddress
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from yardmaster.errors import Unavailable
from yardmaster.storage import s3_guard
from yardmaster.storage.s3 import S3Storage
from yardmaster.storage.s3_guard import is_forbidden


@pytest.mark.parametrize(
    "text",
    ["169.254.169.254", "169.254.0.1", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.169.254",
     "100.100.100.200", "fd00:ec2::254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::", "2002:a9fe:a9fe:1::7",
     "64:ff9b::100.100.100.200", "::ffff:100.100.100.200"],
)  # fmt: skip
def test_addresses_that_offer_credentials_are_forbidden(text):
    assert is_forbidden(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "10.0.0.7", "192.168.1.1", "8.8.8.8", "::1", "fd00::1", "64:ff9b::8.8.8.8", "2002:808:808::1"]
)
def test_addresses_of_servers_are_not(text):
    assert not is_forbidden(ipaddress.ip_address(text))


class _Redirecting(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        type(self).asked.append(self.path)
        self.send_response(307)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    class Handler(_Redirecting):
        asked: list[str] = []

    with HTTPServer(("127.0.0.1", 0), Handler) as one:
        threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{one.server_address[1]}", Handler
        one.shutdown()


def test_a_redirect_is_not_followed(server):
    url, handler = server
    with pytest.raises(Unavailable):
        list(S3Storage(url, "bucket", "key", "secret", is_foreign=True).everything())
    assert handler.asked
    assert not any("elsewhere" in path for path in handler.asked)


def test_the_address_that_a_connection_has_reached_counts_not_its_name(server, monkeypatch):
    url, handler = server
    monkeypatch.setattr(s3_guard, "is_forbidden", lambda address: True)
    with pytest.raises(Unavailable):
        list(S3Storage(url, "bucket", "key", "secret", is_foreign=True).everything())
    assert handler.asked == []
