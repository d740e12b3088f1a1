"""WebSockets that say "this job has changed": `/ws/jobs/?namespace=` and `/ws/jobs/<id>/`. What has is read over HTTP.

Not here: who the caller is (`apps.accounts.websocket_auth`), and log lines (`apps.logs`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.urls import URLPattern, path
from redis.exceptions import RedisError

from apps.accounts.models import User
from apps.accounts.websocket_auth import reads, still_signed_in
from apps.errors import DomainError
from apps.jobs.selectors import job_for
from apps.jobs.state.nudges import ALL_JOBS, group_of_job, group_of_namespace
from apps.namespaces.selectors import namespace_for, namespaces_visible

PING_EVERY = 25.0
"""Proxies cut connections that are silent for 30 s or more."""
NOT_SIGNED_IN, NOT_FOUND, TRY_AGAIN_LATER = 4401, 4404, 1013

log = logging.getLogger(__name__)


class NudgeConsumer(AsyncJsonWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    """Joins groups, passes nudges on, pings, and with each ping looks whether it still may listen. Closes with 4401
    (not signed in) or 4404 (unknown or foreign)."""

    async def connect(self) -> None:
        self.joined: list[str] = []
        self.pinger: asyncio.Task[None] | None = None
        await self.accept()  # before any refusal: a browser receives the code of a close, not of a refused handshake
        if not reads(self.scope, "jobs"):
            await self.close(NOT_SIGNED_IN)
            return
        refusal, groups = await database_sync_to_async(self._looked)()
        if refusal is not None:
            await self.close(refusal)
            return
        try:
            for group in groups:
                await self.channel_layer.group_add(group, self.channel_name)
                self.joined.append(group)
        except (RedisError, OSError) as error:
            log.warning("Jobs cannot be watched while the message server is unavailable: %s", error)
            await self.close(TRY_AGAIN_LATER)
            return
        await self.send_json({"type": "ready"})
        self.pinger = asyncio.create_task(self._ping())

    def _looked(self) -> tuple[int | None, list[str]]:
        """The code to close with, or None and the groups to be in, as things are now."""
        user = still_signed_in(self.scope)
        if user is None:
            return NOT_SIGNED_IN, []
        try:
            return None, self.groups_for(user)
        except DomainError:
            return NOT_FOUND, []

    def groups_for(self, user: User) -> list[str]:
        """The groups to join. Raises a 404 problem for what the user may not see."""
        raise NotImplementedError  # a hook: every subclass has its own

    async def disconnect(self, code: int) -> None:
        if self.pinger is not None and self.pinger is not asyncio.current_task():
            self.pinger.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.pinger
        with contextlib.suppress(RedisError, OSError):  # a server that is away has forgotten the groups anyhow
            for group in self.joined:
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Nothing is expected from the other side, and whatever comes is passed over."""

    async def job_changed(self, message: dict[str, Any]) -> None:
        about = {"about": message["about"]} if "about" in message else {}
        await self.send_json({"type": "job", "id": message["id"], **about})

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_EVERY)
            refusal, groups = await database_sync_to_async(self._looked)()
            if refusal is None and not set(self.joined) <= set(groups):
                refusal = TRY_AGAIN_LATER  # a namespace is no longer visible: reconnecting, it follows the others
            if refusal is not None:
                await self.close(refusal)
                return
            await self.send_json({"type": "ping"})


class JobConsumer(NudgeConsumer):
    """One job."""

    def groups_for(self, user: User) -> list[str]:
        return [group_of_job(job_for(user, self.scope["url_route"]["kwargs"]["job_id"]).pk)]


class JobsConsumer(NudgeConsumer):
    """All jobs of a namespace, or of every namespace that the user may see."""

    def groups_for(self, user: User) -> list[str]:
        query = parse_qs(self.scope["query_string"].decode("latin-1"))
        if wanted := query.get("namespace"):
            return [group_of_namespace(namespace_for(user, wanted[0]).pk)]
        if user.is_staff:
            return [ALL_JOBS]
        return [group_of_namespace(pk) for pk in namespaces_visible(user).values_list("pk", flat=True)]


websocket_urlpatterns: list[URLPattern] = [
    path("ws/jobs/", JobsConsumer.as_asgi()),
    path("ws/jobs/<uuid:job_id>/", JobConsumer.as_asgi()),
]
