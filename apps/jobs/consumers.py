"""WebSockets that say "this job has changed": `/ws/jobs/?namespace=` and `/ws/jobs/<id>/`. What has is read over HTTP.

Not here: how a socket runs (`apps.accounts.sockets`), and log lines (`apps.logs`).
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from channels.layers import get_channel_layer
from django.urls import URLPattern, path
from redis.exceptions import RedisError

from apps.accounts.models import User
from apps.accounts.sockets import NOT_FOUND, TRY_AGAIN_LATER, Receive, Refused, Scope, Send, SendText, caller, run
from apps.errors import DomainError
from apps.jobs.selectors import job_for
from apps.jobs.state.nudges import ALL_JOBS, group_of_job, group_of_namespace
from apps.namespaces.selectors import namespace_for, namespaces_visible

PING_EVERY = 25.0
"""Proxies cut connections that are silent for 30 s or more."""
Groups = list[str]

log = logging.getLogger(__name__)


async def watch_job(scope: Scope, receive: Receive, send: Send) -> None:
    """One job."""
    look = _looking(_of_one_job)
    await run(scope, receive, send, look=look, follow=_pass_on, every=PING_EVERY, again=_ping)


async def watch_jobs(scope: Scope, receive: Receive, send: Send) -> None:
    """All jobs of a namespace, or of every namespace that the user may see."""
    look = _looking(_of_namespaces)
    await run(scope, receive, send, look=look, follow=_pass_on, every=PING_EVERY, again=_ping)


def _looking(groups_for: Callable[[Scope, User], Groups]) -> Callable[[Scope], Groups]:
    def look(scope: Scope) -> Groups:
        user = caller(scope, "jobs")
        try:
            return groups_for(scope, user)
        except DomainError as problem:
            raise Refused(NOT_FOUND) from problem

    return look


def _of_one_job(scope: Scope, user: User) -> Groups:
    return [group_of_job(job_for(user, scope["url_route"]["kwargs"]["job_id"]).pk)]


def _of_namespaces(scope: Scope, user: User) -> Groups:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    if wanted := query.get("namespace"):
        return [group_of_namespace(namespace_for(user, wanted[0]).pk)]
    if user.is_staff:
        return [ALL_JOBS]
    return [group_of_namespace(pk) for pk in namespaces_visible(user).values_list("pk", flat=True)]


async def _pass_on(groups: Groups, send: SendText) -> int:
    """Join the groups and send what comes, for as long as the socket is open."""
    layer = get_channel_layer()
    joined: Groups = []
    channel = await layer.new_channel()
    try:
        await _join(layer, channel, groups, joined)
        await send(json.dumps({"type": "ready"}))
        while True:
            await send(_as_text(await layer.receive(channel)))
    finally:
        with contextlib.suppress(RedisError, OSError):  # a server that is away has forgotten the groups anyhow
            for group in joined:
                await layer.group_discard(group, channel)


async def _join(layer: Any, channel: str, groups: Groups, joined: Groups) -> None:
    """Adds to `joined` what it joins. Raises `Refused` while the message server is unavailable."""
    try:
        for group in groups:
            await layer.group_add(group, channel)
            joined.append(group)
    except (RedisError, OSError) as error:
        log.warning("Jobs cannot be watched while the message server is unavailable: %s", error)
        raise Refused(TRY_AGAIN_LATER) from error


def _as_text(message: dict[str, Any]) -> str:
    about = {"about": message["about"]} if "about" in message else {}
    return json.dumps({"type": "job", "id": message["id"], **about})


async def _ping(before: Groups, now: Groups, send: SendText) -> None:
    if not set(before) <= set(now):
        raise Refused(TRY_AGAIN_LATER)  # a namespace is no longer visible: reconnecting, it follows the others
    await send(json.dumps({"type": "ping"}))


websocket_urlpatterns: list[URLPattern] = [
    path("ws/jobs/", watch_jobs),  # type: ignore[arg-type]
    path("ws/jobs/<uuid:job_id>/", watch_job),  # type: ignore[arg-type]
]
