"""Who holds what of a namespace's quota now, by person. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Sum

from apps.jobs.models import Reservation
from apps.namespaces.models import Namespace


@dataclass(frozen=True)
class Holding:
    """What one person's admitted jobs hold together."""

    username: str
    jobs: int
    cpu: float
    memory: int
    gpus: int


def holdings_in(namespace: Namespace) -> list[Holding]:
    """Everybody who holds anything, the most cores first. One query."""
    held = Reservation.objects.filter(namespace=namespace, released_at__isnull=True)
    rows = held.values("job__owner__username").annotate(
        jobs=Count("job", distinct=True), cpu=Sum("cpu"), memory=Sum("memory"), gpus=Sum("gpus")
    )
    return [
        Holding(row["job__owner__username"], row["jobs"], float(row["cpu"]), row["memory"], row["gpus"])
        for row in rows.order_by("-cpu", "job__owner__username")
    ]
