"""Heal what events lose: wake every job whose time to be looked at has come, and have due queues decided.

Running jobs to which nothing has happened are found many at a time, so that thousands of them cost next to nothing. A
job whose observation is the one that is written down, and whose next step is to wait, needs no lease and no worker of
its own: only the time of its next look is moved. Every other is left to `reconcile`. Decides nothing itself.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q, QuerySet

from apps.dispatch.messages import RECONCILE, enqueue_now
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job, TaskFact
from apps.jobs.state import ledger, specs, task_facts
from apps.jobs.state.queue import sweep_queues
from apps.jobs.worker.reconcile import remembered
from yardmaster.errors import YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, Phase, Wanted
from yardmaster.lifecycle.plan import Wait, plan

log = logging.getLogger(__name__)

AT_ONCE = 100
"""Jobs whose specifications are in memory together."""


def quiet_put_off(ids: Sequence[uuid.UUID], claimed: datetime, now: datetime) -> set[uuid.UUID]:
    """Put off the next look at those of these jobs that are quiet, and are still to be looked at at `claimed`. Returns
    which."""
    put_off: set[uuid.UUID] = set()
    for at in range(0, len(ids), AT_ONCE):
        until_of: dict[datetime, list[uuid.UUID]] = defaultdict(list)
        for job_id, until in _quiet(ids[at : at + AT_ONCE], now):
            until_of[until].append(job_id)
        for until, some in until_of.items():
            free = _undisturbed(now).filter(pk__in=some, next_look_at=claimed)
            if free.update(next_look_at=until) == len(some):
                put_off.update(some)  # else all are read: the one that was disturbed is among them
    return put_off


def _undisturbed(now: datetime) -> QuerySet[Job]:
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    return Job.objects.filter(
        free, phase=Phase.RUNNING.value, wanted=Wanted.RUN.value, deleted_at__isnull=True, wake_again=False, setbacks=0,
        failing_since__isnull=True, reason="", message="", remedy="",
    )  # fmt: skip


def _quiet(ids: Sequence[uuid.UUID], now: datetime) -> Iterator[tuple[uuid.UUID, datetime]]:
    jobs = list(_undisturbed(now).filter(pk__in=ids))
    seen, facts, held = _observed(jobs), task_facts.facts_of(jobs), ledger.held_roles_of(jobs)
    for job in jobs:
        if job.key not in seen:
            continue
        try:
            until = _quiet_until(job, seen[job.key], facts.get(job.pk, []), held.get(job.pk, frozenset()), now)
        except Exception:  # one job's bug must not stop the sweep: the job is looked at by itself
            log.exception("Whether job %s is quiet could not be decided", job.pk)
            continue
        if until is not None:
            yield job.pk, until


def _quiet_until(
    job: Job, seen: Observation, facts: Collection[TaskFact], held: frozenset[Role], now: datetime
) -> datetime | None:
    """Until when there is nothing to do for the job; None where there is now, or its specification is unreadable."""
    spec, unreadable = specs.spec_or_remains(job)
    unchanged = None if unreadable is not None else task_facts.unchanged(job, seen, facts)
    if unchanged is None:
        return None
    step = plan(remembered(job, spec, held), unchanged, now, settings.YARDMASTER_TIMING)
    return step.until if isinstance(step, Wait) else None


def _observed(jobs: Sequence[Job]) -> Mapping[JobKey, Observation]:
    """What the engines have of these jobs; nothing of an engine that does not say."""
    by_engine: dict[str, list[JobKey]] = defaultdict(list)
    for job in jobs:
        by_engine[job.engine].append(job.key)
    seen: dict[JobKey, Observation] = {}
    for name, keys in by_engine.items():
        try:
            seen |= engine_named(name).observe(keys)
        except YardmasterError as error:
            log.info("Engine %s cannot be observed now; each of its jobs is looked at by itself: %s", name, error)
        except Exception:  # as in `reconcile`: a bug that one run meets must not stop the sweep
            log.exception("Engine %s could not be observed", name)
    return seen


_WOKEN_AT_ONCE = 500
AGAIN_AFTER = timedelta(seconds=10)
"""A job that was woken and not looked at is woken again after this long: a queue that is behind must not grow."""


def sweep(now: datetime) -> int:
    """Wake the jobs that are due, the longest overdue first, but for those that run and to which nothing happened; and
    send for passes over the queues that are due. Returns how many jobs were."""
    sweep_queues(now)
    due = Job.objects.filter(next_look_at__lte=now)
    ids = list(due.order_by("next_look_at").values_list("pk", flat=True)[:_WOKEN_AT_ONCE])
    claimed = now + AGAIN_AFTER
    due.filter(pk__in=ids).update(next_look_at=claimed)
    try:
        quiet = quiet_put_off(ids, claimed, now)
    except Exception:  # only a shortcut: without it every job is looked at
        log.exception("Quiet jobs could not be put off")
        quiet = set()
    for job_id in ids:
        if job_id not in quiet:
            enqueue_now(RECONCILE, job_id)
    return len(ids)
