"""What somebody without any credential gets from a running portal: nothing but the way in."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import psutil
import pytest

from tests.hostile.conftest import connected, http, until_closed
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene, until

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


PROBE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_connections_that_fall_silent_are_closed(attacked: Scene):
    begun = [b"", b"GET /healthz HT", PROBE[:-2], b"\r\n", PROBE + b"\r\n", PROBE + PROBE[:-2]]
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(connected(attacked.portal.url)) for _ in begun]
        for client, bytes_ in zip(clients, begun, strict=True):
            client.sendall(bytes_)
        heard = [until_closed(client).count(b"HTTP/1.1 200") for client in clients]
    assert heard == [one.count(PROBE) for one in begun]


def test_many_silent_connections_leave_a_place_for_others():
    told = {
        "YARDMASTER_HEAD_PATIENCE": "600", "YARDMASTER_CONNECTIONS": "40", "YARDMASTER_CONNECTIONS_PER_ADDRESS": "10",
    }  # fmt: skip
    with scene(LIGHT, told) as narrow, contextlib.ExitStack() as held:
        url = narrow.portal.url
        web = psutil.Process(narrow.portal.running["web"].pid)
        before = web.num_fds()

        def hold(number: int, source: str) -> list[socket.socket]:
            return [held.enter_context(connected(url, source)) for _ in range(number)]

        of_one = hold(100, "127.0.0.1")
        assert [until_closed(client) for client in of_one[:90]] == [b""] * 90, "the oldest of this address go"
        until(lambda: web.num_fds() <= before + 10, what="their descriptors")
        of_all = [one for number in range(2, 12) for one in hold(10, f"127.0.0.{number}")]
        assert [until_closed(client) for client in of_all[:60]] == [b""] * 60, "the oldest of all go"
        until(lambda: web.num_fds() <= before + 40, what="their descriptors")
        for source in ("127.0.0.1", "127.0.0.11", "127.0.0.200"):
            with connected(url, source) as client:
                client.sendall(PROBE)
                assert client.recv(100).startswith(b"HTTP/1.1 200"), source


ME = b"GET /api/v1/me/ HTTP/1.1\r\nHost: 127.0.0.1\r\n%b\r\n"


def answers(client: socket.socket, number: int) -> list[bytes]:
    """So many answers that follow each other on a connection, each with its body."""
    found, read = [], b""
    while len(found) < number:
        head, end, body = read.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0) if end else 0
        if not end or len(body) < length:
            piece = client.recv(65_536)
            assert piece, f"closed after {found} and {read!r}"
            read += piece
            continue
        found.append(head)
        read = body[length:]
    return found


def good_of(portal: Scene, name: str) -> bytes:
    """The header of a token that the portal has not seen."""
    return b"Authorization: Bearer %b\r\n" % portal.portal.token_of(name).encode()


def statuses(client: socket.socket, number: int) -> list[bytes]:
    return [one.split(b" ")[1] for one in answers(client, number)]


FORGED = b"Authorization: Bearer ym_%b\r\n" % (b"5" * 64)


def test_on_one_connection_strangers_are_refused_and_who_is_known_is_let_in_in_their_order(attacked: Scene):
    good = good_of(attacked, "someone-known")
    with connected(attacked.portal.url) as client:
        for header, status in ((b"", b"401"), (FORGED, b"401"), (good, b"200"), (FORGED, b"401"), (good, b"200")):
            client.sendall(ME % header)
            assert statuses(client, 1) == [status], header
        client.sendall(b"".join(ME % one for one in (b"", good, FORGED, good, b"")))
        assert statuses(client, 5) == [b"401", b"200", b"401", b"200", b"401"]
        client.sendall(b"POST /api/v1/jobs/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n{}\n" + ME % good)
        assert statuses(client, 1) == [b"401"]


def test_a_request_is_one_however_it_is_cut(attacked: Scene):
    """Between two reads the server may know nothing of a token yet, or all."""
    for cut in (30, -4, -3, -2, -1):
        good = good_of(attacked, "someone-known")
        whole = ME % good
        with connected(attacked.portal.url) as client:
            for _ in range(2):
                client.sendall(whole[:cut])
                time.sleep(0.05)  # so that it is read by itself
                client.sendall(whole[cut:] + ME % FORGED)
                assert statuses(client, 2) == [b"200", b"401"], cut
        within = b"GET /api/v1/me/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Note: "
        with connected(attacked.portal.url) as client:
            client.sendall(within)
            time.sleep(0.05)
            client.sendall(b"GET /api/v1/namespaces/ HTTP/1.1\r\n" + good_of(attacked, "someone-known") + b"\r\n")
            [head] = answers(client, 1)
            assert head.startswith(b"HTTP/1.1 200")


def test_no_answer_overtakes_that_to_a_request_for_a_head(attacked: Scene):
    good = good_of(attacked, "someone-known")
    for _ in range(200):
        with connected(attacked.portal.url) as client:
            client.sendall((ME % good).replace(b"GET", b"HEAD"))
            client.sendall(ME % b"")
            read = b""
            while read.count(b"HTTP/1.1 ") < 2:
                read += client.recv(65_536)
            assert read.startswith(b"HTTP/1.1 200"), read[:200]


def test_ten_thousand_requests_in_a_row_hold_no_one_up(attacked: Scene, stranger: httpx2.Client):
    with connected(attacked.portal.url) as client, contextlib.suppress(ConnectionError):
        client.sendall((ME % b"") * 10_000)
        assert stranger.get("/healthz").elapsed.total_seconds() < 5
        client.shutdown(socket.SHUT_WR)
        assert until_closed(client).count(b"HTTP/1.1 401") <= 20, "more than a few wait behind another: it is closed"
