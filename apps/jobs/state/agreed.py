"""What the tasks of an attempt agree on: the first value that one of them gives under a name counts for all, also for
those that start again later. It is for decisions that must be the same everywhere and follow from facts that change."""

from __future__ import annotations

from django.db import transaction

from apps.errors import Conflict
from apps.jobs.models import Job, JobAttempt

MOST = 64
LONGEST_NAME, LONGEST_VALUE = 64, 256 << 10
LONGEST_IN_ALL = 256 << 10
"""Characters of all values: they are in the attempt's row."""


def agreed_take(job: Job, name: str, value: str) -> str:
    """The value under this name. Raises `Conflict` where the attempt keeps none, or no more."""
    with transaction.atomic():
        attempt = JobAttempt.objects.select_for_update().only("agreed").get(job=job, number=job.attempt)
        known = attempt.agreed
        if known is None:
            raise Conflict("This attempt began before tasks could agree.", "not_agreed")
        if name not in known:
            if len(known) >= MOST:
                raise Conflict(f"The tasks of an attempt agree on {MOST} things at most.", "not_agreed")
            if len(value) + sum(map(len, known.values())) > LONGEST_IN_ALL:
                message = f"What the tasks of an attempt agree on has {LONGEST_IN_ALL} characters at most."
                raise Conflict(message, "not_agreed")
            known[name] = value
            attempt.save(update_fields=["agreed"])
        return str(known[name])
