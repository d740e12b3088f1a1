"""The stores of this process, as the settings name them: of objects, and of log lines; and telling the followers of a
log that lines have come.

Not here: how nudges are sent (`apps.api.nudging`), and listening to them (`apps.logs.tails`).
"""

from __future__ import annotations

import uuid
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.core.signals import setting_changed

from apps.api.nudging import Nudger, tell
from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.store import LogStore
from yardmaster.storage.base import Storage
from yardmaster.storage.divided import Divided
from yardmaster.storage.mounted import Mounted
from yardmaster.storage.registry import storage_from

PICTURES_FROM = "yardmaster.pictures_from"
"""In a request's `META`: the origin of another server whose pictures its page shows (`portal.content_policy`). No
header of a request has such a name there."""


IGNITE = "ignite/"
"""How the keys of what lies in the store in Apache Ignite begin: checkpoints and outputs of jobs that ask for it."""


@cache
def own_storage() -> Storage:
    """The store of the setting `YARDMASTER_STORAGE` alone. Raises `Misconfigured`."""
    return storage_from(settings.YARDMASTER_STORAGE)


@cache
def storage() -> Storage:
    """The same, and in it the store in Apache Ignite and the registered buckets. Raises `Misconfigured`."""
    from apps.buckets.access import PREFIX, place_of  # its models are there when the apps are loaded

    ignite = storage_from(settings.YARDMASTER_IGNITE) if has_ignite() else None
    divided = cast(Storage, Divided(own_storage(), IGNITE, ignite, "YARDMASTER_IGNITE_STORE"))
    return cast(Storage, Mounted(divided, PREFIX, place_of))


def has_ignite() -> bool:
    """Whether jobs may keep checkpoints and outputs in Apache Ignite."""
    return bool(settings.YARDMASTER_IGNITE)


def store_named(name: str) -> Storage:
    """One of those in `YARDMASTER_STORES`, used or not. Raises `Misconfigured`."""
    return storage_from(settings.YARDMASTER_STORES[name])


def _forget(*, setting: str, **rest: Any) -> None:
    if setting in ("YARDMASTER_STORAGE", "YARDMASTER_IGNITE"):
        storage.cache_clear()
        own_storage.cache_clear()


setting_changed.connect(_forget)


@cache
def log_store() -> LogStore:
    """The store under `settings.YARDMASTER_LOGS_ROOT`. It holds no open file, so every thread may use it."""
    return LogStore(settings.YARDMASTER_LOGS_ROOT)


def counted_log() -> LogStore:
    """The same streams for what tasks write: counted and bounded. A write may ask for a grant (`jobs.log_charges`)."""
    return _counted(log_store().root, settings.YARDMASTER_LOG_LIMIT)


@lru_cache(maxsize=4)
def _counted(root: Path, limit: int) -> LogStore:
    return LogStore(root, limit)


def group_of(job_id: uuid.UUID) -> str:
    """The Channels group of all followers of a job's logs."""
    return f"logs.{job_id.hex}"


def log_moved(job_id: uuid.UUID, role: Role, index: int, next_line: int) -> None:
    """Nudge the followers of this stream soon. Returns at once and never raises. A lost nudge costs them a second: they
    poll, too."""
    _nudger.add((job_id, role, index), next_line)


async def _send(moved: dict[tuple[uuid.UUID, Role, int], int]) -> None:
    for (job_id, role, index), next_line in moved.items():
        message = {"type": "log.moved", "role": role.value, "index": index, "next_line": next_line}
        await tell(group_of(job_id), message)


_nudger = Nudger("logs", _send)


def open_line_show(stream: StreamKey, line: int, text: str) -> None:
    """Show the followers of this stream the line that its task has not finished. Returns at once and never raises; what
    is lost is not missed, for the next one takes its place."""
    _open_lines.add(stream, (line, text))


async def _send_open(lines: dict[StreamKey, tuple[int, str]]) -> None:
    for stream, (line, text) in lines.items():
        message = {"type": "log.open", "role": stream.role.value, "index": stream.index, "attempt": stream.attempt}
        await tell(group_of(stream.job_id), message | {"line": line, "text": text})


_open_lines = Nudger("unfinished lines", _send_open)
