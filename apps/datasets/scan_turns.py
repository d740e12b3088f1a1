"""Whose turn it is to have a registered bucket scanned: namespaces take turns, whichever workers scan."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import F, Max, Min

from apps.buckets.models import Bucket, ScanTurn, State

_CANDIDATES = 10
"""Namespaces of which one takes its turn: workers that choose at the same moment each get another."""


def scan_in_turn(now: datetime) -> UUID | None:
    """The scan that is taken up next: the oldest that is due of the namespace whose last turn, in any worker, is the
    longest ago, however many buckets another has. None: none is due, or others take up all that are."""
    rows = Bucket.objects.filter(state=State.SCANNING, next_look_at__lte=now)
    waiting = rows.values("namespace_id").annotate(
        last=Max("namespace__scan_turn__taken_at"), first=Min("next_look_at")
    )
    for one in waiting.order_by(F("last").asc(nulls_first=True), "first")[:_CANDIDATES]:
        if _turn_take(one["namespace_id"], one["last"], now):
            mine = rows.filter(namespace_id=one["namespace_id"])
            return mine.order_by("next_look_at").values_list("pk", flat=True).first()
    return None


def _turn_take(namespace_id: UUID, last: datetime | None, now: datetime) -> bool:
    """Whether this process has the turn: another may have taken it since `last` was read."""
    ScanTurn.objects.get_or_create(namespace_id=namespace_id)
    return bool(ScanTurn.objects.filter(namespace_id=namespace_id, taken_at=last).update(taken_at=now))
