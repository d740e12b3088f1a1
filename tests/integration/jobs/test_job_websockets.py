"""The WebSockets that nudge."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser

from apps.accounts import sockets
from apps.accounts.models import User
from apps.jobs import consumers
from apps.jobs.consumers import websocket_urlpatterns
from apps.jobs.models import Job
from apps.jobs.state import nudges
from apps.namespaces.models import Membership, Namespace
from tests.integration.jobs.world import World
from tests.integration.logs.socket_client import SocketClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _layer_in_memory(settings):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


class Setting:
    """Ada's job, and Bob, who is a stranger."""

    def __init__(self, world: World) -> None:
        self.ada = User.objects.create_user("ada", "ada@example.org", "correct horse battery")
        self.bob = User.objects.create_user("bob", "bob@example.org", "correct horse battery")
        self.root = User.objects.create_user("root", "root@example.org", "correct horse battery", is_staff=True)
        self.home = Namespace.objects.get(owner=self.ada)
        self.job: Job = world.launch(self.ada)


@pytest.fixture
async def scene(transactional_db, world, monkeypatch) -> Setting:
    """No one is told of the launch: a thread of its own would do it, at some time in the middle of a test."""
    with monkeypatch.context() as quiet:
        for one in (nudges._nudger, nudges._details):
            quiet.setattr(one, "add", lambda thing, news: None)
        return await database_sync_to_async(Setting)(world)


async def connect(path: str, user: object, auth: object = None) -> SocketClient:
    async def with_user(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await URLRouter(websocket_urlpatterns)({**scope, "user": user, "auth": auth}, receive, send)

    socket = SocketClient(with_user, path, [])
    assert await socket.connect()
    return socket


async def heard(socket: SocketClient) -> dict[str, Any]:
    message = await socket.receive_output()
    assert message["type"] == "websocket.send", message
    return json.loads(message["text"])


async def closing_code(socket: SocketClient) -> int:
    message = await socket.receive_output()
    assert message["type"] == "websocket.close", message
    return message["code"]


async def nudge(job: Job, *, is_detail: bool = False) -> None:
    await nudges.send({nudges.Change(job.pk, is_detail): job.namespace_id})


async def test_a_change_of_a_job_reaches_those_who_watch_it(scene):
    nudged = {"type": "job", "id": str(scene.job.pk)}
    sockets = [
        await connect(f"/ws/jobs/{scene.job.pk}/", scene.ada),
        await connect("/ws/jobs/?namespace=ada", scene.ada),
        await connect("/ws/jobs/", scene.ada),
        await connect("/ws/jobs/", scene.root),
    ]
    for socket in sockets:
        assert await heard(socket) == {"type": "ready"}
    await nudge(scene.job)
    for socket in sockets:
        assert await heard(socket) == nudged
        await socket.disconnect()


async def test_a_detail_is_told_as_one(scene):
    nudged = {"type": "job", "id": str(scene.job.pk)}
    socket = await connect(f"/ws/jobs/{scene.job.pk}/", scene.ada)
    assert await heard(socket) == {"type": "ready"}
    await nudge(scene.job, is_detail=True)
    assert await heard(socket) == {**nudged, "about": "details"}
    await nudge(scene.job)
    assert await heard(socket) == nudged
    await socket.disconnect()


async def test_a_stranger_is_told_that_there_is_no_such_job(scene):
    for path in (f"/ws/jobs/{scene.job.pk}/", f"/ws/jobs/{uuid.uuid4()}/", "/ws/jobs/?namespace=ada"):
        assert await closing_code(await connect(path, scene.bob)) == sockets.NOT_FOUND


async def test_a_stranger_hears_nothing_of_anybody_elses_jobs(scene):
    socket = await connect("/ws/jobs/", scene.bob)
    assert await heard(socket) == {"type": "ready"}
    await nudge(scene.job)
    assert await socket.receive_nothing(0.1)
    await socket.disconnect()


async def test_a_viewer_watches_too(scene):
    await Membership.objects.acreate(namespace=scene.home, user=scene.bob, role="viewer")
    socket = await connect(f"/ws/jobs/{scene.job.pk}/", scene.bob)
    assert await heard(socket) == {"type": "ready"}
    await socket.disconnect()


async def test_who_is_not_signed_in_is_turned_away(scene):
    assert await closing_code(await connect("/ws/jobs/", AnonymousUser())) == sockets.NOT_SIGNED_IN


async def test_a_token_without_the_scope_is_turned_away(scene):
    class Token:
        scopes = ("data",)

    assert await closing_code(await connect("/ws/jobs/", scene.ada, Token())) == sockets.NOT_SIGNED_IN


async def test_a_silent_socket_is_pinged(scene, monkeypatch):
    """odh-dashboard#8703: a side-car proxy closed watch sockets every 30 s."""
    assert consumers.PING_EVERY <= 25
    monkeypatch.setattr(consumers, "PING_EVERY", 0.01)
    socket = await connect("/ws/jobs/", scene.ada)
    assert await heard(socket) == {"type": "ready"}
    assert await heard(socket) == {"type": "ping"}
    await socket.disconnect()


async def test_what_the_other_side_sends_is_passed_over(scene):
    socket = await connect("/ws/jobs/", scene.ada)
    assert await heard(socket) == {"type": "ready"}
    for text in ("not json", "[1]", '{"type": "job.changed"}'):
        await socket.send_input({"type": "websocket.receive", "text": text})
    await socket.send_input({"type": "websocket.receive", "bytes": b"\x00"})
    await nudge(scene.job)
    assert (await heard(socket))["type"] == "job"
    await socket.disconnect()


async def test_who_leaves_is_out_of_the_groups(scene):
    socket = await connect(f"/ws/jobs/{scene.job.pk}/", scene.ada)
    await heard(socket)
    await socket.disconnect()
    assert nudges.group_of_job(scene.job.pk) not in get_channel_layer().groups
