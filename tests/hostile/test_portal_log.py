"""A stranger cannot fill the disk through the portal's own log, write lines of their own into it, or hide in it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.real.scene import until
from tests.real.up import Up, running_up

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20
KEEP = 10 * MIB
PER_MINUTE = 5
SHORT_MINUTES = {"DJANGO_SETTINGS_MODULE": "tests.real.settings_of_short_minutes"}
SENT = 100


@pytest.fixture(scope="module")
def quiet() -> Iterator[Up]:
    """It writes five errors of clients a minute, and its minutes are short."""
    told = {"YARDMASTER_LOG_CLIENT_ERRORS": str(PER_MINUTE), **SHORT_MINUTES}
    with running_up(told) as one:
        yield one


@pytest.fixture(scope="module")
def chatty() -> Iterator[Up]:
    """It writes every request, and keeps 10 MiB of it."""
    told = {"YARDMASTER_LOG_REQUESTS": "1", "YARDMASTER_LOG_KEEP": "10Mi", "YARDMASTER_RATE_STRANGER": "65535"}
    with running_up(told) as one:
        yield one


def log_of(up: Up, name: str = "web") -> str:
    return (up.home / "log" / f"{name}.log").read_text(errors="replace")


def raw(up: Up, data: bytes) -> bytes:
    """What the portal answers to these bytes."""
    host, _, port = up.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(data)
        answer = b""
        while more := client.recv(1 << 16):
            answer += more
        return answer


@pytest.mark.long
def test_a_flood_of_client_errors_is_a_few_short_lines_and_a_count(quiet: Up):
    with http(quiet.url) as stranger:
        for number in range(SENT):
            assert stranger.get(f"/nowhere/{number}/{'a' * 4000}").status_code == 404
        for host in ("evil.example", "x" * 3000):
            assert stranger.get("/", headers={"Host": host}).status_code == 400
    assert b"400 Bad Request" in raw(quiet, b"NO HTTP AT ALL\r\n\r\n")
    raw(quiet, b"GET /ws/x HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    until(lambda: log_of(quiet).count("/nowhere/") >= PER_MINUTE, what="the lines, which the keeper writes")
    written = log_of(quiet).splitlines()
    assert len([line for line in written if "/nowhere/" in line]) == PER_MINUTE
    assert all("[info" in line and len(line) < 400 for line in written), max(written, key=len)
    assert len(written) < 3 * PER_MINUTE
    counted = until(lambda: re.search(r"(\d+) more errors of clients", log_of(quiet)), 90, "the count")
    assert int(counted[1]) >= SENT - PER_MINUTE
    assert sum(len(log_of(quiet, name)) for name in ("worker", "beat", "conductor", "valkey")) < MIB


def test_what_a_client_sends_begins_no_line_of_the_log(chatty: Up):
    forged = "2026-01-01T00:00:00Z [error    ] all is lost"
    with http(chatty.url) as stranger:
        stranger.get(f"/a%0A{forged.replace(' ', '%20')}", headers={"X-Request-ID": "r" * 5000})
        stranger.get("/%1b[2J%9b")
    until(lambda: "all is lost" in log_of(chatty), what="the line")
    written = log_of(chatty)
    assert not any(line.startswith(forged[:20]) for line in written.splitlines())
    assert "\x1b" not in written
    assert "\x9b" not in written
    assert "r" * 300 not in written


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/x?" + "a" * 9_000, 414),
        ("/" + "a" * 60_000, 414),
        ("/api/v1/jobs/00000000-0000-7000-8000-000000000000/logs/lines/?after=" + "a" * 60_000, 401),
    ],
)
def test_the_target_of_a_request_is_bounded(quiet: Up, target: str, status: int):
    with http(quiet.url) as stranger:
        answer = stranger.get(target)
    assert answer.status_code == status
    if status == 414:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "target_too_long"


def test_a_head_without_end_is_refused_before_it_fills_memory(quiet: Up):
    host, _, port = quiet.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        with pytest.raises(OSError, match=r"reset|pipe|abort"):  # the portal has hung up
            client.sendall(b"x" * (128 << 20))
    assert quiet.answers()


@pytest.mark.long
def test_the_log_is_rotated_while_the_portal_runs_and_bounded_in_total(chatty: Up):
    """Three times as much as one file holds, so that there would be more without a second rotation."""

    def ask(_: int) -> int:
        with http(chatty.url) as stranger:
            return sum(stranger.get(f"/nowhere/{'b' * 190}").status_code == 404 for _ in range(200))

    file = chatty.home / "log" / "web.log.1"
    with ThreadPoolExecutor(8) as pool:
        until(lambda: all(pool.map(ask, range(8))) and file.exists(), 200, "a rotation")
        first = file.stat().st_mtime_ns
        until(lambda: all(pool.map(ask, range(8))) and file.stat().st_mtime_ns != first, 200, "another")
    sizes = [one.stat().st_size for one in (chatty.home / "log").iterdir()]
    assert sum(sizes) <= KEEP
    assert max(sizes) <= KEEP // 10 + 1024
    old, new = file.read_text().splitlines(), log_of(chatty).splitlines()
    assert "[" in old[0]
    assert all(line[:4].isdigit() for line in old + new), "no line is torn at the seam"
    assert httpx2.get(f"{chatty.url}/healthz", timeout=60).status_code == 200
