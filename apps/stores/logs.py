"""The log store of this process, and the same as tasks write to it."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings

from yardmaster.logs.store import LogStore


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
