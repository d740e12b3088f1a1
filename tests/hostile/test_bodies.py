"""Bodies that are too large, too deep, too slow or too many, from strangers and from tenants."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.hostile.conftest import connected, http, until_closed
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20
LARGE = 16 * MIB
GROWTH = 200 * MIB
"""What the web process may grow by while it is attacked with sixteen times 16 MiB; such a body once cost 1.1 GiB."""


def pieces(total: int) -> Iterator[bytes]:
    """A JSON array of empty arrays, the JSON that costs most once it is read, without saying how long it is."""
    yield b"[[]"
    for _ in range(total // 65_536):
        yield b",[]" * (65_536 // 3)
    yield b"]"


def memory_of(portal: Scene) -> int:
    return int(psutil.Process(portal.portal.running["web"].pid).memory_info().rss)


def sent_in_vain(url: str, path: str, headers: dict[str, str], total: int = LARGE) -> tuple[int, int]:
    """(status, bytes that were taken) of a body that is sent piece by piece until there is an answer."""
    place = urlsplit(url)
    lines = [f"POST {path} HTTP/1.1", f"Host: {place.netloc}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()] + ["Transfer-Encoding: chunked", "", ""]
    taken = 0
    with socket.create_connection((place.hostname, place.port), timeout=60) as client:
        client.sendall("\r\n".join(lines).encode())
        try:
            for piece in pieces(total):
                client.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                taken += len(piece)
        except OSError:
            pass  # it has been refused; the answer may be there
        try:
            head = client.recv(4096)
        except OSError:
            head = b""
    return int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/") else 0, taken


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer ym_wrong"},
        {"Authorization": "Bearer ymt.0.1.x"},
        {"Cookie": "yardmaster_session=x"},
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/jobs/", "/api/v1/uploads/", "/api/v1/task/model/"])
def test_a_stranger_is_refused_before_the_body_is_read(attacked: Scene, path: str, headers: dict[str, str]):
    length = {"Content-Length": str(LARGE), "Content-Type": "application/json"}
    place = urlsplit(attacked.portal.url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as client:
        lines = [f"POST {path} HTTP/1.1", f"Host: {place.netloc}"]
        lines += [f"{name}: {value}" for name, value in (headers | length).items()]
        client.sendall("\r\n".join([*lines, "", ""]).encode())  # and not a byte of the body
        assert client.recv(4096).startswith(b"HTTP/1.1 401")


def test_a_body_that_does_not_say_how_long_it_is_is_cut_off(attacked: Scene):
    before = memory_of(attacked)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: sent_in_vain(attacked.portal.url, "/api/v1/jobs/", {}), range(16)))
    assert {status for status, _ in found} <= {401, 0}
    assert max(taken for _, taken in found) < LARGE, "the whole body was taken"
    assert memory_of(attacked) - before < GROWTH


def test_a_tenant_sends_no_more_than_the_address_takes(attacked: Scene, tenant: Callable[[str], httpx2.Client]):
    mallory = tenant("mallory")
    before = memory_of(attacked)
    limits = {
        "/api/v1/tokens/": 256 << 10,
        "/api/v1/code/": 256 << 10,
        "/api/v1/jobs/": MIB,
        "/api/v1/jobs/check/": MIB,
    }
    for path, limit in limits.items():
        answer = mallory.post(path, json={"name": "x" * (limit + 1000)})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large"), path
        assert str(limit) in answer.json()["detail"]
    assert memory_of(attacked) - before < GROWTH


def test_a_manifest_of_millions_of_values_costs_no_gigabyte(attacked: Scene, tenant: Callable[[str], httpx2.Client]):
    mallory = tenant("mallory")
    before = memory_of(attacked)
    body = b'{"kind": "dataset", "files": ' + b"".join(pieces(15 * MIB)) + b"}"
    peaks = []
    with ThreadPoolExecutor(4) as pool:
        pending = [
            pool.submit(mallory.post, "/api/v1/uploads/", content=body, headers={"Content-Type": "application/json"})
            for _ in range(8)
        ]
        until(lambda: peaks.append(memory_of(attacked)) or all(one.done() for one in pending), 120, "the answers")
    for one in pending:
        assert (one.result().status_code, one.result().json()["code"]) == (400, "invalid")
    assert max(peaks) - before < 2 * GROWTH


@pytest.mark.parametrize(
    "value",
    ["[" * 100_000, "1" + "0" * 200_000, "-" + "9" * 41, "1e999", '{"a":' * 50_000, "[" * 70 + "]" * 70],
    ids=["open", "digits", "41 digits", "infinite", "nested", "deep"],
)
def test_json_that_is_hard_to_read_is_refused(tenant: Callable[[str], httpx2.Client], value: str):
    answer = tenant("mallory").post(
        "/api/v1/jobs/", content=f'{{"name": {value}}}', headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


def drowned(client: ClientConnection, message: str) -> None:
    """Send it and read until the other side has enough."""
    client.send(message)
    while True:
        client.recv(timeout=60)


def test_a_socket_takes_no_large_message(attacked: Scene):
    url = attacked.portal.url.replace("http", "ws") + "/ws/jobs/"
    headers = {"Authorization": f"Bearer {attacked.token}"}
    with connect(url, additional_headers=headers) as client, pytest.raises(ConnectionClosed) as closed:
        drowned(client, "x" * MIB)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.fixture(scope="module")
def impatient() -> Iterator[Scene]:
    told = {"YARDMASTER_BODY_PATIENCE": "2", "YARDMASTER_BODIES_TOTAL": str(MIB)}
    with scene(LIGHT, told) as one:
        yield one


def opened(portal: Scene, length: int, sent: int) -> socket.socket:
    """A request with a token whose body of this length stops after some bytes."""
    place = urlsplit(portal.portal.url)
    client = socket.create_connection((place.hostname, place.port), timeout=60)
    head = (
        f"POST /api/v1/jobs/ HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {portal.token}\r\nContent-Length: {length}\r\n\r\n"
    )
    client.sendall(head.encode() + b" " * sent)
    return client


def test_a_body_that_stops_is_given_up(impatient: Scene):
    with opened(impatient, 1000, 10) as client:
        answer = client.recv(4096)
    assert answer.startswith(b"HTTP/1.1 408")
    assert json.loads(answer.partition(b"\r\n\r\n")[2] or b'{"code": "too_slow"}')["code"] == "too_slow"


def test_many_slow_bodies_fill_no_more_than_their_share(impatient: Scene):
    clients = [opened(impatient, 200_000, 190_000) for _ in range(12)]
    answers = [client.recv(4096).split(b" ", 2)[1] for client in clients]
    for client in clients:
        client.close()
    assert set(answers) == {b"408", b"503"}, answers
    with http(impatient.portal.url, impatient.token) as client:
        until(lambda: client.post("/api/v1/jobs/", json={"name": "x" * 200_000}).status_code < 500)


CHUNKED = b"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
FIRST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def poured(url: str, head: bytes, piece: bytes, total: int) -> tuple[int, bytes]:
    """(bytes that were taken, what was said) of a piece that is sent again and again, until the connection closes."""
    taken = 0
    with connected(url) as client:
        try:
            client.sendall(head)
            while taken < total:
                client.sendall(piece)
                taken += len(piece)
        except ConnectionError:
            pass
        return taken, until_closed(client)


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (CHUNKED + b"0\r\n", b"a:b\r\n" * 10_000),
        (CHUNKED + b"0\r\na: ", b"b" * 65_536),
        (CHUNKED + b"0\r\n", b"a" * 65_536),
        (CHUNKED + b"5;", b"a" * 65_536),
        (CHUNKED, b"0" * 65_536),
        (FIRST, b"\r\n" * 32_768),
        (FIRST + CHUNKED + b"0\r\n", b"a:b\r\n" * 10_000),
    ],
    ids=["short trailers", "long trailer", "long name", "extension", "zeros", "blank lines", "pipelined trailers"],
)
def test_what_is_neither_head_nor_body_has_an_end(attacked: Scene, head: bytes, piece: bytes):
    before = memory_of(attacked)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: poured(attacked.portal.url, head, piece, 64 * MIB), range(4)))
    assert max(taken for taken, _ in found) < 64 * MIB, "it was taken without end"
    assert memory_of(attacked) - before < GROWTH


def test_one_trailer_is_refused(attacked: Scene):
    with connected(attacked.portal.url) as client:
        client.sendall(CHUNKED + b"5\r\nhello\r\n0\r\nX-Late: yes\r\n\r\n")
        answer = until_closed(client)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"trailers_refused" in answer


def test_few_requests_wait_behind_one_another_on_a_connection(attacked: Scene):
    before = memory_of(attacked)
    with ThreadPoolExecutor(20) as pool:
        found = list(
            pool.map(lambda _: poured(attacked.portal.url, b"", PROBE * 10_000, len(PROBE) * 10_000), range(20))
        )
    assert max(said.count(b"HTTP/1.1 ") for _, said in found) <= 20
    assert memory_of(attacked) - before < GROWTH // 2
    with connected(attacked.portal.url) as client:
        client.sendall(PROBE * 4 + PROBE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert until_closed(client).count(b"HTTP/1.1 200 ") == 5, "a few are answered, in their order"
