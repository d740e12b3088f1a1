"""What becomes of a namespace's limits by scheduled changes, in words for its members. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from apps.administration.usage import NAMES_OF_CHANGES
from apps.namespaces.models import Namespace, Quota
from apps.namespaces.quota_limits import open_schedules, scheduled_of, usual_limits
from yardmaster.queueing.scheduled_limits import Step, outlook


@dataclass(frozen=True)
class Until:
    """A limit (None: unlimited) and when the next one takes its place. `until` None: not as far as is known."""

    limit: float | int | None
    until: datetime | None


@dataclass(frozen=True)
class Outlook:
    """`8 until Friday, then 2`: one limit, with what it is now first. `key`: a field of the quota, or a resource."""

    key: str
    name: str
    unit: str
    steps: Sequence[Until]


def quota_outlook(namespace: Namespace, quota: Quota) -> list[Outlook]:
    """Of each limit that changes by itself. One statement."""
    scheduled = scheduled_of(open_schedules([namespace.pk]).get(namespace.pk, []))
    if not scheduled:
        return []
    found = outlook(usual_limits(quota), scheduled, timezone.now())
    return [Outlook(key, *NAMES_OF_CHANGES.get(key, (key, "")), _until(steps)) for key, steps in found.items()]


def _until(steps: Sequence[Step]) -> list[Until]:
    ends = [step.since for step in steps[1:]] + [None]
    return [Until(step.limit, end) for step, end in zip(steps, ends, strict=True)]
