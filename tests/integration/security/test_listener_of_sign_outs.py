"""Sign-outs are heard while any socket is open, whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError

from apps.accounts import open_sockets
from apps.accounts.open_sockets import OpenSocket, OpenSockets, sign_ins_changed
from apps.api.nudging import tell
from tests.real.scene import until

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_database_that_was_away_does_not_end_the_listening(settings: Any, monkeypatch: pytest.MonkeyPatch):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    monkeypatch.setattr(open_sockets, "DEAF", 0.01)
    user_id, asked, sent = uuid.uuid4(), [], []

    def still(scope: dict[str, Any]) -> None:
        asked.append(scope)
        if len(asked) == 1:
            raise OperationalError("the database is away")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "websocket.disconnect":
            pass

    socket = OpenSocket({"user": SimpleNamespace(pk=user_id)}, asyncio.Event().wait, send)  # type: ignore[arg-type]
    holding = asyncio.create_task(OpenSockets().hold(inner, socket, still))
    async with asyncio.timeout(20):
        while not holding.done():
            await tell("accounts.sign-ins", {"type": "sign_ins.changed", "user": str(user_id)})
            await asyncio.sleep(0.01)
    assert sent == [{"type": "websocket.close", "code": open_sockets.SIGNED_OUT}]
    assert len(asked) >= 2, "messages that were on their way are looked at too"


def test_a_message_server_that_stood_still_hears_of_a_sign_out_later(monkeypatch: pytest.MonkeyPatch):
    user_id, tried = uuid.uuid4(), []

    async def tell(group: str, message: dict[str, Any]) -> None:
        tried.append((group, message))
        if len(tried) == 1:
            raise TimeoutError

    monkeypatch.setattr(open_sockets, "tell", tell)
    sign_ins_changed(user_id)
    until(lambda: len(tried) == 2, 20, "a second message")
    assert tried[0] == tried[1] == ("accounts.sign-ins", {"type": "sign_ins.changed", "user": str(user_id)})
