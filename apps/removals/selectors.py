"""Questions about removals. Administrators see all of them; nobody else any."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.errors import NotFound
from apps.removals.models import Removal


def removals() -> QuerySet[Removal]:
    """All, also those that have ended. Whether the caller may see them is the caller's to check."""
    return Removal.objects.all()


def removal_by_id(removal_id: UUID) -> Removal:
    """404 where there is none."""
    removal = removals().filter(pk=removal_id).first()
    if removal is None:
        raise NotFound("There is no such removal.")
    return removal
