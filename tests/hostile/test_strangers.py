"""What somebody without any credential gets from a running portal: nothing but the way in."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.hostile.conftest import connected, http, until_closed
from tests.real.scene import Scene

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


@pytest.mark.parametrize("path", ["jobs", "datasets", "code", "models", "namespaces", "users", "audit", "uploads"])
def test_every_list_of_the_api_asks_who_is_there(stranger: httpx2.Client, path: str):
    answer = stranger.get(f"/api/v1/{path}/")
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


UPGRADE = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
LARGEST = (8 << 10) - 2


def asked_raw(url: str, path: str, *headers: str) -> bytes:
    """What the portal answers to a request with these headers, the last of its connection."""
    kind = "Upgrade" if any("websocket" in one for one in headers) else "close"
    lines = [f"GET {path} HTTP/1.1", f"Host: {url.partition('//')[2]}", f"Connection: {kind}", *headers, "", ""]
    with connected(url) as client:
        with contextlib.suppress(ConnectionError):  # it has been refused; the answer may be there
            client.sendall("\r\n".join(lines).encode())
        return until_closed(client)


def cookie(size: int) -> str:
    """A header `Cookie` of this size, whose value takes Python's own reader a time that grows with its square."""
    start, end = 'Cookie: yardmaster_session="', '"'
    return start + "\\" * (size - len(start) - len(end)) + end


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/", [cookie(300_000)], {431}),
        ("/", [cookie(LARGEST)], {302}),
        ("/api/v1/me/", [cookie(LARGEST)] * 3, {401}),
        ("/ws/jobs/", [*UPGRADE.split("\r\n")[:-1], cookie(LARGEST)], {403}),
        ("/ws/jobs/", [*UPGRADE.split("\r\n")[:-1], cookie(300_000)], {431}),
        ("/", ["X-Long: " + "x" * (9 << 10)], {431}),
        ("/", [f"X-{number}: {'x' * 4000}" for number in range(10)], {431}),
        ("/", [f"X-{number}: x" for number in range(200)], {431}),
    ],
)
def test_no_header_holds_the_portal_up(stranger: httpx2.Client, path: str, headers: list[str], expected: set[int]):
    url = str(stranger.base_url).rstrip("/")
    with ThreadPoolExecutor(10) as pool:
        pending = [pool.submit(asked_raw, url, path, *headers) for _ in range(10)]
        with http(url) as prober:
            while not all(one.done() for one in pending):
                assert prober.get("/healthz", timeout=15).status_code == 200
    assert {int(one.result().split(b" ", 2)[1]) for one in pending} <= expected


def test_what_is_quoted_in_a_cookie_is_nothing_that_the_database_fails_at(attacked: Scene, stranger: httpx2.Client):
    before = len(attacked.portal.log_of("web"))
    values = ['"aaaaaaaaa\\000"', '"aaaaaaaaa\\377"', "a" * 4000, '"', "\xe9" * 32, "../../../../etc/passwd"]
    for number in range(300):
        path = ("/", "/api/v1/me/", "/accounts/login/", "/find/?q=a")[number % 4]
        cookies = f"yardmaster_session={values[number % len(values)]}; yardmaster_csrf={values[number % 2]}"
        answer = stranger.get(path, headers={"Cookie": cookies.encode("latin-1")})
        assert answer.status_code in (200, 302, 401, 403), (path, cookies)
    assert len(attacked.portal.log_of("web")) - before < 50 << 10
