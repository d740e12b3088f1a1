"""What a namespace's jobs are doing now, and what became of those of the last day. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Five statements at most; what ended before the last day is not looked at."""
    jobs = Job.objects.for_lists().filter(namespace=namespace, deleted_at__isnull=True)
    lately = now - LATELY
    counts = _counts(jobs, lately)
    running = jobs.filter(phase__in=ON_THE_ENGINE).order_by("-place")
    queued = jobs.filter(phase=Phase.QUEUED.value)
    waiting = queued.exclude(reason__in=REASONS).order_by(F("position").asc(nulls_last=True), "-priority", "place")
    never = queued.filter(IS_NEVER).order_by("-place")
    ended: Iterable[Job] = ()
    if counts.keys() & VERDICTS:
        ended = _first_of_each_phase(jobs.filter(decided_at__gte=lately, phase__in=VERDICTS))

    def group(found: Iterable[Job], *phases: str) -> Group:
        count = sum(counts.get(phase, 0) for phase in phases)
        return Group(rows_of(found, now) if count else [], count)

    return Overview(
        running=group(running.select_related("namespace", "owner")[:ROWS], *ON_THE_ENGINE),
        waiting=group(waiting.select_related("namespace", "owner")[:ROWS], Phase.QUEUED.value),
        never=group(never.select_related("namespace", "owner")[:ROWS], NEVER),
        failed=group((job for job in ended if job.phase == Phase.FAILED.value), Phase.FAILED.value),
        succeeded=group((job for job in ended if job.phase == Phase.SUCCEEDED.value), Phase.SUCCEEDED.value),
    )


def has_jobs(namespace: Namespace) -> bool:
    """Whether there is any job, however old."""
    return Job.objects.filter(namespace=namespace, deleted_at__isnull=True).exists()


def _first_of_each_phase(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """The newest few of each phase, so that many of one do not hide the other."""
    place = Window(RowNumber(), partition_by=F("phase"), order_by=F("decided_at").desc())
    few = jobs.annotate(place_in_phase=place).filter(place_in_phase__lte=ROWS)
    return few.select_related("namespace", "owner").order_by("-decided_at")


def _counts(jobs: QuerySet[Job], lately: datetime) -> dict[str, int]:
    recent = jobs.filter(Q(phase__in=UNFINISHED) | Q(decided_at__gte=lately))
    kind = Case(When(IS_NEVER, then=Value(NEVER)), default=F("phase"))
    return dict(recent.order_by().values_list(kind).annotate(count=Count("pk")))
