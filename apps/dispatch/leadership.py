"""Let one of several equal processes lead, and another take over when its lease runs out."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from apps.dispatch.models import Leadership

LASTS = timedelta(seconds=15)


def lead(post: str, holder: str, now: datetime) -> bool:
    """Take the post, or renew it. False: another process holds it."""
    free = Q(holder=holder) | Q(until__isnull=True) | Q(until__lte=now)
    claim = {"holder": holder, "until": now + LASTS}
    if Leadership.objects.filter(free, post=post).update(**claim):
        return True
    Leadership.objects.get_or_create(post=post)
    return bool(Leadership.objects.filter(free, post=post).update(**claim))


def resign(post: str, holder: str) -> None:
    """Give the post up, so that the next one need not wait."""
    Leadership.objects.filter(post=post, holder=holder).update(until=None)
