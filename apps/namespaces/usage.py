"""What a namespace may hold and what it holds now, put together from those who keep the books."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from apps.jobs.selectors import resources_used
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from apps.uploads.selectors import storage_used

COUNTED = ("cpu", "memory", "gpus", "storage", "running_jobs")


@dataclass(frozen=True)
class Usage:
    """By the names in `COUNTED`. `hard` None: unlimited. `reserved`: set aside for uploads that are on their way."""

    hard: dict[str, float | None]
    used: dict[str, float]
    reserved: dict[str, float]
    logs: int = 0
    """Bytes: the part of the storage in use that is what tasks printed."""
    priority_ceiling: int = 0


def usage_of(namespace: Namespace) -> Usage:
    """The namespace's limits and what it holds."""
    quota = quota_of(namespace)
    held = resources_used(namespace)
    stored = storage_used(namespace)
    return Usage(
        hard={name: _plain(getattr(quota, name)) for name in COUNTED},
        used={name: held.get(name, 0) for name in COUNTED} | {"storage": stored.used},
        reserved=dict.fromkeys(COUNTED, 0.0) | {"storage": stored.reserved},
        logs=stored.logs,
        priority_ceiling=quota.priority_ceiling,
    )


def _plain(value: Decimal | int | None) -> float | None:
    return float(value) if isinstance(value, Decimal) else value
