"""A real portal, and the people who mean it harm: tenants with a token of their own, and a stranger without any.

One portal serves every file of this folder that leaves it alive and with its default limits. A test that lowers a
limit or breaks a process for good starts one of its own (`tests.real.scene.scene`, with settings). Not here: attacks.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.real.scene import Scene, scene


@pytest.fixture(scope="session")
def _attacked() -> Iterator[Scene]:
    with scene() as one:
        yield one


@pytest.fixture
def attacked(_attacked: Scene) -> Scene:
    """The portal with all of its processes running, whatever an earlier test did to them; seen by its administrator."""
    _attacked.portal.start_stopped()
    return _attacked


@pytest.fixture
def tenant(attacked: Scene) -> Iterator[Callable[[str], httpx2.Client]]:
    """An HTTP client with the token of this user, who is made when there is none and is no administrator."""
    clients: list[httpx2.Client] = []

    def sign_in(name: str) -> httpx2.Client:
        clients.append(http(attacked.portal.url, attacked.portal.token_of(name)))
        return clients[-1]

    yield sign_in
    for client in clients:
        client.close()


@pytest.fixture
def stranger(attacked: Scene) -> Iterator[httpx2.Client]:
    """An HTTP client without any credential."""
    with http(attacked.portal.url) as client:
        yield client


def http(url: str, token: str = "") -> httpx2.Client:
    """A plain client of the portal at `url`."""
    return httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=60)


def connected(url: str, source: str = "") -> socket.socket:
    """A plain connection to the portal at `url`, for what no HTTP client would send; from this address, if any."""
    place = urlsplit(url)
    return socket.create_connection((place.hostname, place.port), 60, (source, 0) if source else None)


def until_closed(client: socket.socket) -> bytes:
    """What the portal says before it closes the connection. Raises TimeoutError where it does not within a minute."""
    heard = b""
    try:
        while more := client.recv(1 << 16):
            heard += more
    except ConnectionError:
        pass  # closed all the same, under bytes that it left unread
    return heard


@contextlib.contextmanager
def in_browser(url: str, name: str, password: str = "correct horse battery") -> Iterator[httpx2.Client]:
    """A client that has signed in on the page, as browsers do, and sends the CSRF token with every request."""
    with http(url) as client:
        client.get("/accounts/login/")
        form = {"login": name, "password": password, "csrfmiddlewaretoken": client.cookies["yardmaster_csrf"]}
        answer = client.post("/accounts/login/", data=form, headers={"Referer": url})
        assert answer.status_code == 302, answer.text[:500]
        client.headers |= {"X-CSRFToken": client.cookies["yardmaster_csrf"], "Referer": url}
        yield client
