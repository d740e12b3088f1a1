"""Where connections to a Git host lead: to an address that was checked, under the host's own name, and nowhere else."""

from __future__ import annotations

import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import urllib3

from tests.real.git_server import git_host
from yardmaster.git import connections
from yardmaster.git.connections import GitPool, connected
from yardmaster.git.hosts import GitHost
from yardmaster.git.refusals import Refused

CERTIFICATE = Path(__file__).parents[1] / "client" / "store.test.pem"
PUBLIC, OTHER = "140.82.121.3", "140.82.121.4"


@pytest.fixture
def dialed(monkeypatch):
    """The addresses that were connected to; none answers."""
    found = []

    def dial(address, timeout):
        found.append(address[0])
        raise ConnectionRefusedError("no one answers")

    monkeypatch.setattr(connections.socket, "create_connection", dial)
    return found


def refused(pool, url="https://git.example.org/a"):
    with pytest.raises(Refused) as caught:
        pool.request("GET", url)
    return caught.value.reason


def test_one_internal_address_among_public_ones_is_enough_to_refuse(dialed):
    with pytest.raises(Refused) as caught:
        connected("git.example.org", 443, is_internal=False, resolve=lambda host, port: [PUBLIC, "10.0.0.1"])
    assert (caught.value.reason.code, caught.value.reason.value) == ("git_address_not_allowed", "10.0.0.1")
    assert dialed == []


def test_a_name_that_changes_its_address_gains_nothing(dialed):
    answers = iter([[PUBLIC, OTHER], ["127.0.0.1"]])
    pool = GitPool(GitHost("https://git.example.org"), resolve=lambda host, port: next(answers))
    with pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", "https://git.example.org/a")
    assert dialed == [PUBLIC, OTHER]  # those of the one answer that was checked
    assert refused(pool).code == "git_address_not_allowed"
    assert dialed == [PUBLIC, OTHER]


def test_a_name_that_is_not_found_is_said(dialed):
    def none(host, port):
        raise socket.gaierror("unknown")

    reason = refused(GitPool(GitHost("https://git.example.org"), resolve=none))
    assert (reason.code, reason.value) == ("git_unreachable", "git.example.org")


@pytest.mark.parametrize(
    "place",
    ["http://169.254.169.254/latest/meta-data/", "https://git.example.org/x", "http://127.0.0.1:1/x", "file:///etc/x",
     "http://me@{here}/x", "//127.0.0.2/x"],
)  # fmt: skip
def test_a_redirect_to_elsewhere_is_refused_before_it_is_asked(tmp_path, place):
    with git_host(tmp_path) as host:
        place = place.format(here=host.origin.partition("//")[2])
        host.answers["/a"] = (302, {"Location": place}, b"")
        reason = refused(GitPool(GitHost(host.origin, True)), f"{host.origin}/a")
        assert reason.code == "git_redirect"
        assert len(host.requests) == 1


def test_a_redirect_within_the_host_is_followed_and_not_without_end(tmp_path):
    with git_host(tmp_path) as host:
        host.answers |= {
            "/a": (301, {"Location": "/b"}, b""),
            "/b": (200, {}, b"there"),
            "/c": (302, {"Location": "/c"}, b""),
        }
        pool = GitPool(GitHost(host.origin, True))
        assert pool.request("GET", f"{host.origin}/a").data == b"there"
        assert refused(pool, f"{host.origin}/c").code == "git_redirect"
        host.answers["/d"] = (307, {"Location": "/b"}, b"")
        with pytest.raises(Refused):
            pool.request("POST", f"{host.origin}/d", body=b"x")


def test_the_proxy_of_the_environment_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with git_host(tmp_path) as host:
        host.answers["/b"] = (200, {}, b"there")
        assert GitPool(GitHost(host.origin, True)).request("GET", f"{host.origin}/b").data == b"there"


class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def port():
    """Of a server with a certificate for store.test."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    server = HTTPServer(("127.0.0.1", 0), Hello)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_the_certificate_must_be_of_the_name_and_not_of_the_address(port):
    def ask(name, cafile):
        host = GitHost(f"https://{name}:{port}", True)
        pool = GitPool(host, cafile=cafile, resolve=lambda host, port: ["127.0.0.1"])
        return pool.request("GET", f"https://{name}:{port}/").status

    assert ask("store.test", str(CERTIFICATE)) == 200
    for name, cafile in (("other.test", str(CERTIFICATE)), ("store.test", None)):
        with pytest.raises(urllib3.exceptions.SSLError):
            ask(name, cafile)
