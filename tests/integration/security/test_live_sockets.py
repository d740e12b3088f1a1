"""A socket that is open does not outlive the right to open it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.test import Client
from django.utils import timezone

from apps.accounts import sockets
from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create, user_change
from apps.accounts.websocket_auth import TokenOrSession, still_signed_in
from apps.jobs import consumers
from portal.asgi import application
from tests.integration.logs.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _quick(settings, monkeypatch):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    monkeypatch.setattr(consumers, "PING_EVERY", 0.05)


async def opened(path: str, header: tuple[bytes, bytes]) -> SocketClient:
    socket = SocketClient(application, path, [header, (b"origin", b"http://127.0.0.1:8080")])
    assert await socket.connect()
    assert "ready" in (await socket.receive_output())["text"]
    return socket


async def code_at_the_end(socket: SocketClient) -> int:
    for _ in range(100):
        message = await socket.receive_output()
        if message["type"] == "websocket.close":
            return message["code"]
        assert "ping" in message["text"]
    raise AssertionError("the socket stays open")


async def check_handshake(socket: SocketClient, opens: bool) -> None:
    """Leaves no question to the database behind, which would hold its tables when the test's rows are removed."""
    assert await socket.connect() is opens
    if opens:
        assert "ready" in (await socket.receive_output())["text"]
    await socket.disconnect()


@pytest.fixture
def seldom(monkeypatch) -> None:
    """Nothing is asked while a socket ends."""
    monkeypatch.setattr(consumers, "PING_EVERY", 60.0)


@pytest.fixture
def token(transactional_db, ada) -> tuple[PersonalToken, tuple[bytes, bytes]]:
    made, secret = token_create(user=ada, name="x", scopes=["read"], expires_in=timedelta(hours=1))
    return made, (b"authorization", f"Bearer {secret}".encode())


async def test_a_revoked_token_hears_no_more(token):
    socket = await opened("/ws/jobs/", token[1])
    await PersonalToken.objects.all().adelete()
    assert await code_at_the_end(socket) == sockets.NOT_SIGNED_IN


async def test_an_expired_token_hears_no_more(token):
    socket = await opened("/ws/jobs/", token[1])
    await PersonalToken.objects.aupdate(expiry=timezone.now())
    assert await code_at_the_end(socket) == sockets.NOT_SIGNED_IN


async def test_who_is_locked_out_hears_no_more(token, ada, admin):
    socket = await opened("/ws/jobs/", token[1])
    await database_sync_to_async(user_change)(user=ada, actor=admin, is_active=False)
    assert await code_at_the_end(socket) == sockets.NOT_SIGNED_IN


async def test_who_is_no_longer_an_administrator_hears_no_more_of_everybody(admin):
    _, secret = await database_sync_to_async(token_create)(user=admin, name="x", scopes=[], expires_in=None)
    socket = await opened("/ws/jobs/", (b"authorization", f"Bearer {secret}".encode()))
    await User.objects.filter(pk=admin.pk).aupdate(is_staff=False)
    assert await code_at_the_end(socket) == consumers.TRY_AGAIN_LATER


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


async def test_who_has_signed_out_hears_no_more(ada):
    client = await database_sync_to_async(signed_in)(ada)
    cookie = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    socket = await opened("/ws/jobs/", (b"cookie", cookie.encode()))
    await database_sync_to_async(client.logout)()
    assert await code_at_the_end(socket) == sockets.NOT_SIGNED_IN


async def test_a_token_alone_counts_where_token_and_cookie_come_together(token, bob):
    seen: list[Any] = []

    async def inner(scope, receive, send):
        seen.append(await database_sync_to_async(still_signed_in)(scope))

    client = await database_sync_to_async(signed_in)(bob)
    cookie = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    scope = {"type": "websocket", "path": "/", "headers": [token[1], (b"cookie", cookie.encode())]}
    await TokenOrSession(inner)(scope, None, None)
    assert [one.username for one in seen] == ["ada"]


@pytest.mark.parametrize(
    ("host", "origin", "opens"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080", True),
        ("localhost:8080", "http://localhost:8080", True),
        ("localhost:8080", "http://127.0.0.1:8080", True),
        ("LOCALHOST:80", "http://localhost", True),
        ("127.0.0.1:8080", "https://evil.example", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8081", False),
        ("127.0.0.1:8080", "http://localhost:8080", False),
        ("127.0.0.1:8080", "https://127.0.0.1:8080", False),
        ("127.0.0.1:8080", "http://127.0.0.1", False),
        ("127.0.0.1:8080", "http://127.0.0.1:8080.evil.example", False),
        ("127.0.0.1:8080", "http://[::1", False),
        ("127.0.0.1:8080", "null", False),
        ("127.0.0.1:8080", "", False),
        ("evil.example", "http://evil.example", False),
    ],
)
async def test_the_cookie_counts_from_pages_of_this_origin_alone(ada, seldom, host, origin, opens):
    client = await database_sync_to_async(signed_in)(ada)
    cookie = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    headers = [(b"cookie", cookie.encode()), (b"host", host.encode()), (b"origin", origin.encode())]
    socket = SocketClient(application, "/ws/jobs/", headers)
    await check_handshake(socket, opens)


@pytest.mark.parametrize(("said", "opens"), [(b"https", True), (b"http", False), (b"", False)])
async def test_a_trusted_proxy_says_whether_the_page_came_over_tls(ada, seldom, settings, said, opens):
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    client = await database_sync_to_async(signed_in)(ada)
    cookie = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    headers = [(b"cookie", cookie.encode()), (b"host", b"localhost"), (b"origin", b"https://localhost")]
    socket = SocketClient(application, "/ws/jobs/", [*headers, (b"x-forwarded-proto", said)])
    await check_handshake(socket, opens)
