"""Slow and many requests at once hold nothing that others need."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.hostile.conftest import connected, http, in_browser
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

OPEN, AT_ONCE, EXPENSIVE = 80, 30, 2


@pytest.fixture(scope="module")
def narrow() -> Iterator[Scene]:
    told = {
        "YARDMASTER_RATE_USER": OPEN, "YARDMASTER_AT_ONCE": AT_ONCE, "YARDMASTER_EXPENSIVE_AT_ONCE": EXPENSIVE,
        "YARDMASTER_EXPENSIVE_IN_ALL": EXPENSIVE, "YARDMASTER_WEB_THREADS": 4,
    }  # fmt: skip
    with scene(LIGHT, {name: str(value) for name, value in told.items()}) as one:
        yield one


@contextlib.contextmanager
def without_a_body(url: str, path: str, headers: dict[str, str]) -> Iterator[socket.socket]:
    """A request whose body never comes."""
    with connected(url) as one:
        lines = [f"POST {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}", "Content-Length: 10"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        one.sendall("\r\n".join([*lines, "", ""]).encode())
        yield one


@pytest.mark.parametrize("who", ["strangers", "a member"])
def test_requests_whose_bodies_never_come_hold_no_place_of_what_all_share(narrow: Scene, who: str):
    url = narrow.portal.url
    headers = {"Authorization": f"Bearer {narrow.portal.token_of('slow')}"} if who == "a member" else {}
    narrow.portal.token_of("seeker")  # the account
    with contextlib.ExitStack() as held, in_browser(url, "seeker") as seeker:
        for path in ("/find/", "/jobs/compare/", "/api/v1/jobs/check/") * EXPENSIVE:
            held.enter_context(without_a_body(url, path, headers))
        assert seeker.get("/find/?q=a").status_code == 200
        if headers:
            with http(url, headers["Authorization"].split()[1]) as slow:
                assert slow.get("/api/v1/me/").status_code == 200


def test_files_that_are_not_there_are_counted_and_the_keeper_is_answered_meanwhile(narrow: Scene):
    url = narrow.portal.url
    with http(url) as stranger, http(url, narrow.portal.token_of("neighbour")) as known:
        found = Counter(stranger.get(f"/static/nothing-{number}").status_code for number in range(2 * OPEN))
        assert found[429] >= OPEN / 2
        assert OPEN <= found[404] <= 1.5 * OPEN
        assert known.get("/api/v1/me/").status_code == 200
        assert {stranger.get("/healthz").status_code for _ in range(2 * OPEN)} == {200}
