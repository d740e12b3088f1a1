"""Let one of several equal processes lead, and another take over when its lease runs out."""

from __future__ import annotations

from datetime import datetime, timedelta

from apps.dispatch.leases import Leases
from apps.dispatch.models import Leadership

LASTS = timedelta(seconds=15)
_POSTS = Leases("holder", "until")


def lead(post: str, holder: str, now: datetime) -> bool:
    """Take the post, or renew it. False: another process holds it."""
    rows = Leadership.objects.filter(post=post)
    if _POSTS.claim(rows, holder, now, LASTS) is not None:
        return True
    Leadership.objects.get_or_create(post=post)
    return _POSTS.claim(rows, holder, now, LASTS) is not None


def resign(post: str, holder: str) -> None:
    """Give the post up, so that the next one need not wait."""
    _POSTS.release(Leadership.objects.filter(post=post), holder)
