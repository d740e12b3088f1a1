"""The one log store of this process."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from yardmaster.logs.store import LogStore


@cache
def log_store() -> LogStore:
    """The store under `settings.YARDMASTER_LOGS_ROOT`. It holds no open file, so every thread may use it."""
    return LogStore(settings.YARDMASTER_LOGS_ROOT)
