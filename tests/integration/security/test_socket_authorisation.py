"""The authorisation matrix of WebSockets: every route, opened by everyone, answers as `socket_authorisation.txt` says,
and a new route has no line there, so that the build fails until someone has looked at it. See `matrix.py`.

    YARDMASTER_MATRIX=write pytest tests/integration/security/test_socket_authorisation.py

writes the lines again. `A`: it opens, and is served. `B`: the caller may, and the state of things speaks against it.
`F` forbidden, `H` hidden, `L` not signed in.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.routing import URLRouter
from django.conf import settings as portal_settings

from apps.accounts import sockets
from apps.api.allowances import forget_all
from portal.asgi import application
from tests.integration.logs.socket_client import SocketClient
from tests.integration.security.matrix import WHO, table_read, table_write
from tests.integration.security.populated import Populated

FILE = Path(__file__).with_name("socket_authorisation.txt")


def router_within(app: Any) -> URLRouter:
    """What is behind all that stands around it."""
    while not isinstance(app, URLRouter):
        app = app._inner
    return app


ROUTES = sorted(f"SOCKET /{one.pattern}" for one in router_within(application.application_mapping["websocket"]).routes)
_LETTERS = {sockets.NOT_SIGNED_IN: "L", sockets.NOT_FOUND: "H", 4403: "F"}
_WRITES = os.environ.get("YARDMASTER_MATRIX", "")


@pytest.fixture
def populated(transactional_db, admin, settings, tmp_path) -> Populated:
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    return Populated(admin)


def headers_of(populated: Populated, who: str) -> list[tuple[bytes, bytes]]:
    """What the browser or the program of this one sends."""
    client = populated.client_of(who)
    cookies = "; ".join(f"{name}={one.value}" for name, one in client.cookies.items())
    found = [(b"origin", portal_settings.PUBLIC_URL.encode()), (b"cookie", cookies.encode())]
    if token := client._credentials.get("HTTP_AUTHORIZATION"):
        found.append((b"authorization", token.encode()))
    return found


def address_of(populated: Populated, route: str) -> str:
    known = {**populated.ids, "task": "worker-0", "shell_id": populated.team.pk}
    return re.sub(r"<\w+:(\w+)>", lambda found: str(known[found[1]]), route.removeprefix("SOCKET "))


async def letter_of(address: str, headers: list[tuple[bytes, bytes]]) -> str:
    socket = SocketClient(application, address, headers)
    if not await socket.connect():
        return "L"
    message: dict[str, Any] = await socket.receive_output()
    if '"ended"' in message.get("text", ""):  # a terminal says in words why, and then by the code
        message = await socket.receive_output()
    if message["type"] == "websocket.close":
        return _LETTERS.get(message["code"], "B")
    await socket.disconnect()
    return "A"


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_everyone_gets_at_every_socket_what_is_written_down(populated):
    came: dict[str, dict[str, str]] = {}
    for who in WHO:
        headers = await database_sync_to_async(headers_of)(populated, who)
        for route in ROUTES:
            forget_all()
            came.setdefault(route, {})[who] = await letter_of(address_of(populated, route), headers)
    if _WRITES:
        table_write(came, FILE)
        return
    assert came == table_read(FILE)


def test_every_socket_has_a_line_and_no_line_is_for_none():
    assert sorted(table_read(FILE)) == ROUTES


@pytest.mark.parametrize("route", ROUTES)
def test_what_is_written_down_keeps_the_rules(route: str):
    row = table_read(FILE)[route]
    assert row["anonymous"] == "L", "no one listens unknown"
    if "/task/" in route:
        assert set(row.values()) == {"L"}, "tasks alone come here, with tokens of their own"
        return
    if "job_id" in route or "uuid:id" in route:
        assert row["stranger"] in "FH", "what belongs to others is hidden"
    assert row["data"] == "L", "a token for data hears nothing of jobs"
    order = [row[one] for one in ("viewer", "member", "manager")]
    assert not any(before in "AB" and after in "FHL" for before, after in pairwise(order))
    assert row["service"] == row["member"] or row["service"] in "FHL", "a service account is no more than a member"
