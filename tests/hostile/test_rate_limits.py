"""One tenant asks for more than a share: over time, at a time, with many tokens, over WebSockets. Others notice none of
it."""

from __future__ import annotations

import contextlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from redis import Redis
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from portal.env import socket_folder
from tests.hostile.conftest import http, in_browser
from tests.real.portal import EXACT, LIGHT
from tests.real.scene import Scene, scene, until
from yardmaster_client.transport import Transport

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

USER, STRANGER, EXPENSIVE, LAUNCHES, SOCKETS = 60, 40, 8, 5, 3
DISGUISES = {"masked": "Basic x", "hooded": "Bearer ym_wrong", "veiled": f"Bearer ymt.{'0' * 32}.1.x"}
"""What people with a session send beside it, by their names."""


COUNTERS = "yardmaster:allowance:*"
"""Their keys in the message server."""


@pytest.fixture(scope="module")
def narrow() -> Iterator[Scene]:
    told = {
        "YARDMASTER_RATE_USER": USER, "YARDMASTER_RATE_STRANGER": STRANGER, "YARDMASTER_RATE_EXPENSIVE": EXPENSIVE,
        "YARDMASTER_RATE_LAUNCHES": LAUNCHES, "YARDMASTER_RATE_UPLOADS": LAUNCHES, "YARDMASTER_SOCKETS": SOCKETS,
        "YARDMASTER_EXPENSIVE_AT_ONCE": 1,
    }  # fmt: skip
    with scene(LIGHT, {**EXACT, **{name: str(value) for name, value in told.items()}}) as one:
        yield one


@pytest.fixture(scope="module", autouse=True)
def browsers(narrow: Scene) -> Iterator[dict[str, httpx2.Client]]:
    """People who signed in on the page before a stranger used up what this address may ask for."""
    with contextlib.ExitStack() as clients:
        found = {}
        for name in ("seeker", "crowd", *DISGUISES):
            narrow.portal.token_of(name)
            found[name] = clients.enter_context(in_browser(narrow.portal.url, name))
        yield found


@pytest.fixture
def tenant(narrow: Scene) -> Iterator[Callable[[str], httpx2.Client]]:
    with contextlib.ExitStack() as clients:
        yield lambda name: clients.enter_context(http(narrow.portal.url, narrow.portal.token_of(name)))


def counters_of(narrow: Scene) -> contextlib.closing[Redis]:
    """The message server, which has them."""
    return contextlib.closing(Redis(unix_socket_path=str(socket_folder(narrow.portal.home) / "valkey.sock")))


def asked(client: httpx2.Client, times: int, path: str = "/api/v1/me/", method: str = "GET") -> Counter[int]:
    body = {"json": {}} if method == "POST" else {}
    return Counter(client.request(method, path, **body).status_code for _ in range(times))


def test_a_user_has_one_allowance_whatever_tokens_are_used(narrow: Scene, tenant: Callable[[str], httpx2.Client]):
    tokens = [tenant("greedy"), tenant("greedy")]
    found = sum((asked(one, USER) for one in tokens), Counter())
    assert set(found) == {200, 429}
    assert USER <= found[200] <= 1.5 * USER  # a part comes back while it is asked for
    refused = until(lambda: _refused(tokens[0].get("/api/v1/me/")), what="a refusal")
    assert (refused.json()["code"], refused.headers["RateLimit-Limit"]) == ("rate_limited", str(USER))
    assert refused.headers["RateLimit-Remaining"] == "0"
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    other = tenant("modest").get("/api/v1/me/")
    assert other.status_code == 200
    assert int(other.headers["RateLimit-Remaining"]) > 0


def _refused(answer: httpx2.Response) -> httpx2.Response | None:
    return answer if answer.status_code == 429 else None


def refused_of(client: httpx2.Client, path: str, allowance: int, **headers: str) -> httpx2.Response:
    """A refusal where the allowance is used up: of requests fewer than it, since the first may get a place that has
    come back meanwhile."""
    answers = [client.get(path, headers=headers) for _ in range(allowance // 2)]
    found = [one for one in answers if one.status_code == 429]
    assert found, f"{path} was let through {len(answers)} times"
    return found[0]


def test_a_strangers_address_is_counted_and_those_who_are_known_are_not_held_to_it(
    narrow: Scene, tenant: Callable[[str], httpx2.Client]
):
    known = tenant("neighbour")
    with http(narrow.portal.url) as stranger:
        wrong = [{}, {"Authorization": "Bearer ym_wrong"}, {"Cookie": "yardmaster_session=wrong"}]
        codes = Counter(
            stranger.get("/api/v1/me/", headers=wrong[number % 3]).status_code for number in range(3 * STRANGER)
        )
        page = refused_of(stranger, "/nowhere", 3 * STRANGER, Accept="text/html")
        assert stranger.get("/healthz").status_code == 200
    # What is refused before Django sees it is counted by the process alone, all else of strangers by all together.
    assert codes[401] <= 2.5 * STRANGER
    assert codes[429] > 0
    assert "too many requests" in page.text
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
    assert known.get("/api/v1/me/").status_code == 200


def test_launches_and_uploads_have_allowances_of_their_own(tenant: Callable[[str], httpx2.Client]):
    client = tenant("launcher")
    for path in ("/api/v1/jobs/", "/api/v1/uploads/"):
        found = asked(client, 3 * LAUNCHES, path, "POST")
        assert found[429] >= LAUNCHES, found
        assert 0 < found[400] + found[422] <= 1.5 * LAUNCHES
    assert client.get("/api/v1/jobs/").status_code == 200


def test_searches_and_comparisons_are_few(browsers: dict[str, httpx2.Client]):
    client = browsers["seeker"]
    found = asked(client, 3 * EXPENSIVE, "/find/?q=a")
    assert found[429] >= EXPENSIVE
    assert client.get("/jobs/").status_code == 200
    part = refused_of(client, "/find/?q=a", EXPENSIVE, **{"HX-Request": "true"})
    assert part.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("path", ["/find/?q=a", f"/api/v1/jobs/{'0' * 32}/logs/search/?q=a"], ids=["page", "api"])
def test_another_credential_beside_the_session_hides_nobody(browsers: dict[str, httpx2.Client], name: str, path: str):
    client = browsers[name]
    for _ in range(2 * EXPENSIVE):
        client.get(path, headers={"Authorization": DISGUISES[name]})
    refused = refused_of(client, path, EXPENSIVE)
    assert refused.headers["RateLimit-Limit"] == str(EXPENSIVE)


def test_sockets_of_one_user_are_few_and_a_closed_one_gives_its_place_back(narrow: Scene):
    url = narrow.portal.url.replace("http", "ws") + "/ws/jobs/"
    headers = {"Authorization": f"Bearer {narrow.portal.token_of('sockets')}"}
    with contextlib.ExitStack() as held:
        open_ones = [held.enter_context(connect(url, additional_headers=headers)) for _ in range(SOCKETS)]
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=headers)
        assert refused.value.response.status_code == 429
        open_ones[0].close()
        held.enter_context(until(lambda: _opened(url, headers), what="a place"))


def _opened(url: str, headers: dict[str, str]) -> ClientConnection | None:
    try:
        return connect(url, additional_headers=headers)
    except InvalidStatus:
        return None


def test_the_client_waits_as_long_as_it_is_asked_to(narrow: Scene):
    """The time that it waits passes in a moment: the counters of that time go."""
    token, paused = narrow.portal.token_of("patient"), []

    def wait(seconds: float) -> None:
        paused.append(seconds)
        with counters_of(narrow) as server:
            server.delete(*server.scan_iter(COUNTERS))

    transport = Transport(narrow.portal.url, token, sleep=wait)
    try:
        for _ in range(2 * USER):
            transport.get("me/")  # is never refused
            if paused:
                break
    finally:
        transport.close()
    assert len(paused) == 1
    assert 1 <= paused[0] <= 60


def test_without_the_message_server_requests_are_let_through_and_still_counted(
    narrow: Scene, tenant: Callable[[str], httpx2.Client]
):
    client = tenant("lonely")
    before = len(narrow.portal.log_of("web"))
    narrow.portal.kill("valkey", signal.SIGKILL)
    try:
        found = asked(client, 2 * USER)
        assert USER <= found[200] <= 1.5 * USER
        assert found[200] + found[429] == 2 * USER
        assert narrow.portal.log_of("web")[before:].count("Limits are counted in this process alone") == 1
    finally:
        narrow.portal.start("valkey")


def test_counters_take_a_bounded_memory(narrow: Scene):
    with http(narrow.portal.url) as stranger, counters_of(narrow) as server:
        found = until(lambda: (stranger.get("/nowhere"), list(server.scan_iter(COUNTERS)))[1])
        rows = [(server.ttl(key), server.memory_usage(key)) for key in found]
    assert all(0 < ttl <= 60 * 86_400 and memory <= 200_000 for ttl, memory in rows)
    assert len(rows) < 40


def test_many_at_once_wait_for_one_another_and_nobody_else_does(
    browsers: dict[str, httpx2.Client], tenant: Callable[[str], httpx2.Client]
):
    modest = tenant("modest")
    with ThreadPoolExecutor(6) as pool:
        pending = [pool.submit(browsers["crowd"].get, "/find/?q=a") for _ in range(6)]
        assert modest.get("/api/v1/me/").status_code == 200
        assert {one.result().status_code for one in pending} <= {200, 429}
