"""Which sweeps a person may see, and what their trials have come to. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from django.db.models import Count, Max, Min, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.errors import NotFound
from apps.jobs.models import OF_GROUP, Job
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for, namespaces_visible, reading_note, require_role
from apps.sweeps.models import Sweep, SweepTrial
from yardmaster.lifecycle.phases import Phase
from yardmaster.sweeps.decision import TrialState
from yardmaster.sweeps.plan import Metric, Plan, plan_from_json

_ANY = 1_000_000
"""Bounds of what was stored: today's settings are for new ones."""
_RUNS = (Phase.RUNNING.value, Phase.STOPPING.value)


def plan_of(sweep: Sweep) -> Plan:
    """As it was stored."""
    return plan_from_json(sweep.plan, most_trials=_ANY, most_parallel=_ANY)


def sweeps_visible(user: User, namespace: str | None = None) -> QuerySet[Sweep]:
    """The newest first. Raises a 404 problem for a namespace that is unknown or foreign."""
    rows = Sweep.objects.select_related("namespace", "owner").defer("base").order_by("-pk")
    if namespace:
        return rows.filter(namespace=namespace_for(user, namespace))
    return rows.filter(namespace__in=namespaces_visible(user))


def sweep_for(user: User, sweep_id: UUID, *, at_least: Role = Role.VIEWER) -> Sweep:
    """The sweep, if the user may see it. Unknown or foreign: the same 404."""
    found = Sweep.objects.select_related("namespace", "owner").filter(pk=sweep_id)
    sweep = found.filter(namespace__in=namespaces_visible(user)).first()
    if sweep is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, sweep.namespace, at_least)
    reading_note(user, "sweep", sweep.pk, sweep.namespace)
    return sweep


_NOT_OF_JOB = ("spec", "waiting", "note", "needs", "message", "remedy")


def trials_with_jobs(sweep: Sweep) -> QuerySet[SweepTrial]:
    """With what lists show of their jobs."""
    return sweep.trials.select_related("job").defer(*(f"job__{one}" for one in _NOT_OF_JOB))


def trial_of(job: Job) -> SweepTrial | None:
    """The trial whose job this is, with its sweep. The key of its launch says whether that is to be looked up. One
    query, or none."""
    if not (job.request_key or "").startswith(OF_GROUP):
        return None
    found = SweepTrial.objects.filter(job=job).select_related("sweep").defer("curve", "sweep__base", "sweep__plan")
    return found.first()


def trials_of(sweep: Sweep) -> list[SweepTrial]:
    """All of them by number. One query."""
    return list(trials_with_jobs(sweep).order_by("number"))


def counts_of(sweeps: Sequence[Sweep]) -> dict[UUID, Counter[str]]:
    """How many trials of each are in each state. One query."""
    rows = SweepTrial.objects.filter(sweep__in=sweeps).order_by().values_list("sweep", "state")
    found: dict[UUID, Counter[str]] = {one.pk: Counter() for one in sweeps}
    for sweep, state, count in rows.annotate(count=Count("pk")):
        found[sweep][state] = count
    return found


def bests_of(sweeps: Sequence[Sweep]) -> dict[UUID, float]:
    """The best value of each that has any. One query."""
    metrics = {one.pk: metric for one in sweeps if (metric := plan_of(one).metric)}
    rows = SweepTrial.objects.filter(sweep__in=metrics, best__isnull=False).order_by().values_list("sweep")
    found: dict[UUID, float] = {}
    for sweep, low, high in rows.annotate(low=Min("best"), high=Max("best")):
        found[sweep] = metrics[sweep].best([low, high])
    return found


@dataclass(frozen=True)
class Standing:
    """How far a sweep is, of its trials."""

    sweep: Sweep
    plan: Plan
    trials: list[SweepTrial]

    @cached_property
    def counts(self) -> dict[str, int]:
        """`waiting` (not launched), `queued`, `running`, `succeeded`, `failed`, `stopped`, `stopped_early`."""
        return dict(Counter(state_of(one) for one in self.trials))

    @property
    def metric(self) -> Metric | None:
        return self.plan.metric

    @property
    def ended(self) -> int:
        return sum(1 for one in self.trials if one.ended_at is not None)

    @property
    def percent(self) -> int:
        return 100 * self.ended // max(1, len(self.trials))

    @cached_property
    def best(self) -> SweepTrial | None:
        return next(iter(self.ranked), None)

    @cached_property
    def ranked(self) -> list[SweepTrial]:
        """Those with a value, the best first."""
        metric = self.metric
        if metric is None:
            return []
        known = [one for one in self.trials if one.best is not None]
        sign = 1 if metric.is_better(0, 1) else -1
        return sorted(known, key=lambda one: (sign * (one.best or 0), one.number))


def standing(sweep: Sweep) -> Standing:
    """Of its trials as they are now. One query."""
    return Standing(sweep, plan_of(sweep), trials_of(sweep))


def state_of(trial: SweepTrial) -> str:
    """The state in a word: of an active trial whether its job is queued or runs."""
    if trial.state != TrialState.ACTIVE.value or trial.job is None:
        return trial.state
    return "running" if trial.job.phase in _RUNS or Phase(trial.job.phase).is_final else "queued"


def took(trial: SweepTrial) -> timedelta | None:
    """From its first task's start to its end, or until now."""
    if trial.started_at is None:
        return None
    return (trial.ended_at or timezone.now()) - trial.started_at
