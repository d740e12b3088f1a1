"""The networks that an account has signed in from, so that guesses of strangers do not lock its owner out.

In the database and exact: a table of counters, whose collisions only make a limit stricter, would here loosen one. Not
here: what is counted (`attempts`).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from apps.accounts.models import KnownNetwork, User

LASTS = timedelta(days=30)
MOST = 20
"""Networks of one account: the last ones count."""


def network_note(user: User, network: str, now: datetime) -> None:
    """Remember that the account has just signed in from here, and forget its oldest networks."""
    known = KnownNetwork.objects.filter(user=user)
    if known.filter(network=network).update(seen_at=now):
        return
    KnownNetwork.objects.bulk_create([KnownNetwork(user=user, network=network, seen_at=now)], ignore_conflicts=True)
    newest = known.order_by("-seen_at", "-pk").values_list("pk", flat=True)[:MOST]
    known.exclude(pk__in=list(newest)).delete()


def is_seen_from(network: str, account: str, now: datetime) -> bool:
    """Whether the account with this id signed in from this network lately. What is no id has never."""
    try:
        user_id = UUID(account)
    except ValueError:
        return False
    seen = KnownNetwork.objects.filter(user_id=user_id, network=network, seen_at__gt=now - LASTS)
    return seen.exists()


def networks_clean(now: datetime) -> None:
    """Forget networks that no longer count."""
    KnownNetwork.objects.filter(seen_at__lte=now - LASTS).delete()
