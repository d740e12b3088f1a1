"""The list of jobs that a person may see, newest first: a page costs the same with a hundred jobs as with a million.

With several namespaces one ordered scan over all of them is slow where theirs are few among many, and sorting all of
theirs is slow where they are many. So each namespace gives its own newest, from its own part of an index, and the
newest of those are the page.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.api.paging import Cursor
from apps.jobs.explanations.waiting_words import IS_NEVER, NEVER, REASONS
from apps.jobs.models import Job, JobTag
from apps.jobs.state.list_sort import sorted_ids, with_conditions, with_gpu_time
from apps.namespaces.models import Namespace, is_uuid
from apps.namespaces.selectors import namespace_for, namespaces_visible
from yardmaster.job.list_columns import GPU_HOURS, Column, Condition, Ordering
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase


@dataclass(frozen=True)
class JobFilters:
    """What to list. None: all that the user may see."""

    namespace: str | None = None
    phases: tuple[Phase, ...] = ()
    strategy: Strategy | None = None
    owner: str | None = None
    """A name or an id."""
    search: str | None = None
    """Part of the name."""
    queue_state: str | None = None
    """Of queued jobs: `waiting` or `never_fits`."""
    reason: str | None = None
    tags: tuple[str, ...] = ()
    """Every one of them."""
    archived: bool = False
    """Only those that are archived; else only those that are not."""
    conditions: tuple[Condition, ...] = ()
    """What their metrics must be, all of them."""


@dataclass(frozen=True)
class JobList:
    """Jobs by filters, and the namespaces to look in (None: everywhere)."""

    jobs: QuerySet[Job]
    namespaces: tuple[uuid.UUID, ...] | None
    order: Ordering | None = None
    """What it is sorted by, where that is not its age."""

    columns: tuple[Column, ...] = ()
    """What is shown of them further."""

    @property
    def is_sorted(self) -> bool:
        return self.order is not None

    def part(self, start: int, end: int, at: datetime) -> list[Job]:
        """The jobs at these places of the sorted list, as it is with times up to `at`. Two to four statements."""
        assert self.order is not None
        ids = sorted_ids(self.jobs, self.namespaces, self.order, at, start, end)
        rows = self._rows(at).in_bulk(ids)
        return [rows[one] for one in ids if one in rows]

    def page(self, cursor: Cursor | None, limit: int) -> list[Job]:
        """Up to `limit` jobs from the cursor on, in the direction it reads. Two statements."""
        rows = self._rows(timezone.now()).filter(pk__in=self._ids(cursor, limit))
        return list(rows.order_by("pk" if _is_newer(cursor) else "-pk"))

    def _rows(self, now: datetime) -> QuerySet[Job]:
        rows = Job.objects.for_lists().select_related("namespace", "owner")
        return with_gpu_time(rows, now) if GPU_HOURS in self.columns else rows

    def _ids(self, cursor: Cursor | None, limit: int) -> list[uuid.UUID]:
        if self.namespaces is None:
            return list(self._ordered(cursor).values_list("pk", flat=True)[:limit])
        if len(self.namespaces) == 1 or connection.vendor != "postgresql":
            theirs = self._ordered(cursor).filter(namespace_id__in=self.namespaces)
            return list(theirs.values_list("pk", flat=True)[:limit])
        return self._merged(self.namespaces, cursor, limit)

    def _ordered(self, cursor: Cursor | None) -> QuerySet[Job]:
        """Everywhere by the primary key; in namespaces by the column that only their indexes have."""
        column = "pk" if self.namespaces is None else "place"
        if cursor is None:
            return self.jobs.order_by(f"-{column}")
        if cursor.newer:
            return self.jobs.filter(**{f"{column}__gt": cursor.at}).order_by(column)
        return self.jobs.filter(**{f"{column}__lt": cursor.at}).order_by(f"-{column}")

    def _merged(self, namespaces: Sequence[uuid.UUID], cursor: Cursor | None, limit: int) -> list[uuid.UUID]:
        from django.contrib.postgres.expressions import ArraySubquery  # asks for PostgreSQL's driver

        own = self._ordered(cursor).filter(namespace_id=OuterRef("pk")).values("pk")[:limit]
        each = Namespace.objects.filter(pk__in=namespaces).annotate(first=ArraySubquery(own))
        ids = (job_id for first in each.values_list("first", flat=True) for job_id in first)
        return heapq.nsmallest(limit, ids) if _is_newer(cursor) else heapq.nlargest(limit, ids)


def _is_newer(cursor: Cursor | None) -> bool:
    return cursor is not None and cursor.newer


def job_list(
    user: User,
    filters: JobFilters,
    within: Namespace | None = None,
    order: Ordering | None = None,
    columns: tuple[Column, ...] = (),
) -> JobList:
    """What the user may see of jobs. Raises a 404 problem for a namespace that is unknown or foreign. `within`: the
    namespace of the filters, where the caller has already asked whether the user may see it."""
    order = None if order is None or order.is_newest else order
    jobs = Job.objects.filter(deleted_at__isnull=True)
    if filters.phases:
        jobs = jobs.filter(phase__in=[phase.value for phase in filters.phases])
    if filters.strategy is not None:
        jobs = jobs.filter(strategy=filters.strategy.value)
    else:
        jobs = jobs.exclude(strategy=Strategy.SERVICE.value)  # shown with what they serve, and where they are asked for
    if filters.owner:
        jobs = jobs.filter(owner_id__in=_owners(filters.owner))
    if filters.search:
        jobs = jobs.filter(name__icontains=filters.search)
    if filters.queue_state is not None:
        jobs = jobs.filter(phase=Phase.QUEUED.value)
        jobs = jobs.filter(IS_NEVER) if filters.queue_state == NEVER else jobs.exclude(reason__in=REASONS)
    if filters.reason:
        jobs = jobs.filter(reason=filters.reason)
    for tag in filters.tags:
        jobs = jobs.filter(Exists(JobTag.objects.filter(job=OuterRef("pk"), name=tag.casefold())))
    jobs = with_conditions(jobs.filter(archived_at__isnull=not filters.archived), filters.conditions)
    if filters.namespace:
        return JobList(jobs, ((within or namespace_for(user, filters.namespace)).pk,), order, columns)
    if user.is_staff:
        return JobList(jobs, None, order, columns)
    return JobList(jobs, tuple(namespaces_visible(user).values_list("pk", flat=True)), order, columns)


def _owners(owner: str) -> list[uuid.UUID]:
    named = Q(username=owner) | Q(pk=uuid.UUID(owner)) if is_uuid(owner) else Q(username=owner)
    return list(User.objects.filter(named).values_list("pk", flat=True))
