"""What a namespace's jobs are doing now, and what became of those of the last day. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Case, Count, F, Q, QuerySet, Value, When, Window
from django.db.models.functions import RowNumber

from apps.jobs.explanations.row_words import Row, rows_of
from apps.jobs.explanations.waiting_words import IS_NEVER, NEVER, REASONS
from apps.jobs.models import Job
from apps.jobs.selectors import ON_THE_ENGINE, UNFINISHED
from apps.namespaces.models import Namespace
from yardmaster.lifecycle.phases import Phase

ROWS = 6
VERDICTS = {Phase.FAILED.value, Phase.SUCCEEDED.value}
LATELY = timedelta(days=1)
RUNNING = "on_the_engine"
_KIND = Case(When(IS_NEVER, then=Value(NEVER)), When(phase__in=ON_THE_ENGINE, then=Value(RUNNING)), default=F("phase"))
"""Which group a job belongs to."""


@dataclass(frozen=True)
class Group:
    """The first few jobs of one kind, and how many there are of it in all."""

    rows: list[Row]
    count: int

    @property
    def hidden(self) -> int:
        return max(0, self.count - len(self.rows))


@dataclass(frozen=True)
class Overview:
    """`failed` and `succeeded` are of the last day."""

    running: Group
    waiting: Group
    never: Group
    """Queued, and never to start as things are: not among those that wait."""
    failed: Group
    succeeded: Group

    @property
    def is_quiet(self) -> bool:
        return not (
            self.running.count or self.waiting.count or self.never.count or self.failed.count or self.succeeded.count
        )


def overview_of(namespace: Namespace, now: datetime) -> Overview:
    """Four statements at most; what ended before the last day is not looked at."""
    jobs = Job.objects.for_lists().filter(namespace=namespace, deleted_at__isnull=True).annotate(kind=_KIND)
    recent = Q(decided_at__gte=now - LATELY)
    counts = _counts(jobs.filter(Q(phase__in=UNFINISHED) | recent))
    queued = jobs.filter(phase=Phase.QUEUED.value).exclude(reason__in=REASONS)
    waiting = queued.order_by(F("position").asc(nulls_last=True), "-priority", "place")
    found: list[Job] = []
    if Phase.QUEUED.value in counts:
        found += waiting.select_related("namespace", "owner")[:ROWS]
    if counts.keys() & {RUNNING, NEVER}:
        found += _first_of_each_kind(jobs.filter(Q(phase__in=ON_THE_ENGINE) | IS_NEVER), "-place")
    if counts.keys() & VERDICTS:
        found += _first_of_each_kind(jobs.filter(recent, phase__in=VERDICTS), "-decided_at")

    def group(kind: str) -> Group:
        return Group(rows_of([job for job in found if vars(job)["kind"] == kind], now), counts.get(kind, 0))

    return Overview(
        running=group(RUNNING),
        waiting=group(Phase.QUEUED.value),
        never=group(NEVER),
        failed=group(Phase.FAILED.value),
        succeeded=group(Phase.SUCCEEDED.value),
    )


def has_jobs(namespace: Namespace) -> bool:
    """Whether there is any job, however old."""
    return Job.objects.filter(namespace=namespace, deleted_at__isnull=True).exists()


def _first_of_each_kind(jobs: QuerySet[Job], order: str) -> list[Job]:
    """The first few of each kind, so that many of one do not hide another."""
    row = Window(RowNumber(), partition_by=F("kind"), order_by=order)
    few = jobs.annotate(row_of_kind=row).filter(row_of_kind__lte=ROWS)
    return list(few.select_related("namespace", "owner").order_by(order))


def _counts(jobs: QuerySet[Job]) -> dict[str, int]:
    return dict(jobs.order_by().values_list(_KIND).annotate(count=Count("pk")))
