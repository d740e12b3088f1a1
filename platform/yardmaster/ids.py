"""Identifiers. Ids are UUID version 7 (RFC 9562): made in time order, so that a primary key is also the order of
creation and one index serves every "newest first" page. Names of outside things come from ids, never from user text.
"""

from __future__ import annotations

import base64
import os
import threading
import time
import uuid
from dataclasses import dataclass
from functools import lru_cache

_lock = threading.Lock()
_last = 0


def new_id() -> uuid.UUID:
    """A new UUIDv7. Within one process later calls give greater ids (12 bits of sub-millisecond order)."""
    global _last
    with _lock:
        # 48 bits of milliseconds, 12 of their fraction; stepped by one when the clock stands still or goes back.
        ticks = time.time_ns() * 4096 // 1_000_000
        _last = ticks = max(ticks, _last + 1)
    milliseconds, fraction = ticks >> 12, ticks & 0xFFF
    tail = int.from_bytes(os.urandom(8), "big") & ((1 << 62) - 1)
    return uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | tail)


@lru_cache(maxsize=8192)
def short(value: uuid.UUID) -> str:
    """26 characters of lower-case base 32: safe as a folder, DNS label or object key; order is kept."""
    return base64.b32hexencode(value.bytes).decode().rstrip("=").lower()


@dataclass(frozen=True, order=True)
class JobKey:
    """What an engine knows a run by: one attempt of one job, in one namespace."""

    namespace_id: uuid.UUID
    job_id: uuid.UUID
    attempt: int

    @property
    def name(self) -> str:
        """A DNS label of at most 34 characters, the same for ever: `j<26 characters>-<attempt>`."""
        return f"j{short(self.job_id)}-{self.attempt}"


NAMESPACES = "namespaces"


def folder_of(namespace_id: uuid.UUID) -> str:
    """The folder of the object store that holds everything of a namespace. An S3 server may keep each in a bucket of
    its own (`storage.s3`)."""
    return f"{NAMESPACES}/{namespace_id}"
