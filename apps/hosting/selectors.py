"""Which of what is hosted runs, for all users. Reads only. Who may see what: the app of each kind."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Q, QuerySet

from apps.hosting.models import Hosted
from apps.jobs.models import Job
from apps.jobs.selectors import UNFINISHED
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase, Wanted

H = TypeVar("H", bound=Hosted)

INTERRUPTED = timedelta(minutes=2)
"""After so long a start that wrote no row down is over."""
NOT_ENDED = Q(job__phase__in=UNFINISHED, job__deleted_at__isnull=True)
"""Rows that run, or are to, or are stopping."""


def running(kind: type[H]) -> QuerySet[H]:
    """All of a kind that run now, of every namespace."""
    return (
        kind._default_manager.filter(job__phase=Phase.RUNNING.value, job__wanted=Wanted.RUN.value)
        .select_related("job")
        .defer("job__waiting")
    )


def jobs_without_row(kind: type[Hosted], now: datetime) -> QuerySet[Job]:
    """Jobs that were started for a row of this kind, and that none has: the process that started them was killed."""
    known = kind._default_manager.filter(job__isnull=False).values("job")
    jobs = Job.objects.for_lists().filter(
        strategy=Strategy.SERVICE.value, request_key__startswith=f"{kind.KIND}:", phase__in=UNFINISHED,
        wanted=Wanted.RUN.value,
    )  # fmt: skip
    return jobs.filter(created_at__lt=now - INTERRUPTED).exclude(pk__in=known).select_related("namespace")
