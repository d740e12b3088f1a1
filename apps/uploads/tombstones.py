"""Places of the object store that were removed, and are removed again for as long as a late writer may come.

A write that was under way when its job or upload was deleted is refused or undone where it happens; this is for writers
that died between the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from apps.stores.objects import storage
from apps.uploads.limits import ADDRESS_LIFE
from apps.uploads.models import Tombstone

_AGAIN_AFTER = (timedelta(minutes=1), timedelta(minutes=10), 2 * ADDRESS_LIFE, timedelta(hours=24))
"""After the removal: a signed address is good for an hour, a lease of a worker for a minute."""
AT_ONCE = 100


def tombstones_set(prefixes: Iterable[str], now: datetime) -> None:
    """Belongs into the transaction that forgets what lay there. Only of places where nothing is ever put again."""
    rows = [Tombstone(prefix=prefix, removed_at=now, again_at=now + _AGAIN_AFTER[0]) for prefix in prefixes]
    Tombstone.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["prefix"], update_fields=["removed_at", "again_at"]
    )


def tombstones_sweep(now: datetime) -> None:
    """Remove what late writers left, some at a time. Raises `Unavailable`."""
    for stone in Tombstone.objects.filter(again_at__lte=now).order_by("again_at")[:AT_ONCE]:
        storage().delete_prefix(stone.prefix)
        mine = Tombstone.objects.filter(pk=stone.pk, again_at=stone.again_at)
        following = [stone.removed_at + wait for wait in _AGAIN_AFTER if stone.removed_at + wait > now]
        if following:
            mine.update(again_at=following[0])
        else:
            mine.delete()
