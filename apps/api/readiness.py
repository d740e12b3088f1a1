"""How a process of the portal says that it is ready and alive, and how anybody asks whether the portal is well."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from http import HTTPStatus

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from redis import Redis
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

ALIVE_EVERY = 2.0


def report_ready(name: str) -> None:
    """Leave `run/<name>.ready` in the home, where there is one; `portal.up` waits for it. May be repeated."""
    folder = settings.HOME / "run"
    if folder.is_dir():
        (folder / f"{name}.ready").touch()


def report_alive(name: str) -> None:
    """Touch `run/<name>.alive`, which `portal.up` looks at: to be called every few seconds."""
    with contextlib.suppress(OSError):
        (settings.HOME / "run" / f"{name}.alive").touch()


def keep_reporting(name: str) -> None:
    """Have a thread of this process say that it is alive, for processes whose main loop waits for others. It falls
    silent when the process is stopped, or when something holds Python's lock for good."""

    def report() -> None:
        while True:
            report_alive(name)
            time.sleep(ALIVE_EVERY)

    threading.Thread(target=report, name="alive", daemon=True).start()


def healthz(request: HttpRequest) -> JsonResponse:
    """This process answers. Nothing else is asked, so that a slow database restarts no web process."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, else 503. A broker that is away is reported, but only delays things."""
    parts = {"database": _database_answers(), "broker": _broker_answers()}
    status = HTTPStatus.OK if parts["database"] else HTTPStatus.SERVICE_UNAVAILABLE
    return JsonResponse({name: "ok" if well else "away" for name, well in parts.items()}, status=status)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        logger.warning("the database does not answer", exc_info=True)
        return False
    return True


def _broker_answers() -> bool:
    try:
        with Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1) as client:
            return bool(client.ping())
    except RedisError:
        logger.warning("the broker does not answer", exc_info=True)
        return False
