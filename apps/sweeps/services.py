"""What people do with sweeps: create one, pause, resume, stop and delete it.

Not here: launching its trials (`worker`), which is done with the rights that its owner has then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.api.allowances import take
from apps.audit.services import record
from apps.errors import Conflict, Invalid, TooMany
from apps.jobs.checking import accepted_or_refused, launch_checked
from apps.jobs.engines.configured import engine_chosen, refuse_unrunnable
from apps.jobs.models import Job
from apps.jobs.services import job_delete, job_stop
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import refuse_closed, require_role
from apps.sweeps.models import Sweep, SweepTrial
from yardmaster.allowances import Allowance, Taking
from yardmaster.code.findings import Finding
from yardmaster.errors import Problem
from yardmaster.ids import new_id
from yardmaster.sweeps.assigning import assigned, require_assignable
from yardmaster.sweeps.decision import SweepState, TrialState
from yardmaster.sweeps.plan import plan_from_json, plan_to_json
from yardmaster.sweeps.space import SpaceRejected
from yardmaster.sweeps.trials import Values

LONGEST_NAME = 150
CREATIONS, _MINUTE = 20, 60
"""How often a user may create a sweep in a minute."""
MOST_KEPT = 1_000
"""Sweeps of a namespace, ended ones with them."""
MOST_BYTES = 1 << 20
"""Of the values of all trials together, as JSON."""


def sweep_create(
    *,
    user: User,
    namespace: Namespace,
    base: object,
    plan: object,
    engine: str | None = None,
    request_key: str | None = None,
    accept_never_fits: bool = False,
) -> tuple[Sweep, list[Finding]]:
    """Make a sweep of a job's specification, whose trials are launched soon after; with what may go wrong in the code.
    A `request_key` that made a sweep before gives that one again.

    The first trial is checked as a launch checks a job. Raises `Invalid` with every problem of the plan, `SpecRejected`
    with those of the job, `NeverFits`, `Conflict` where the namespace has as many sweeps as it may, and `TooMany`.
    """
    require_role(user, namespace, Role.MEMBER)
    refuse_closed(namespace)
    if earlier := _of_request(request_key):
        return earlier, []
    _refuse_often(user)
    chosen = engine_chosen(user, engine)
    said, values = planned(plan, base)
    assert isinstance(base, Mapping)
    warnings = _first_checked(user, namespace, assigned(base, values[0], _name_of(base)), chosen, accept_never_fits)
    now = timezone.now()
    with transaction.atomic():
        Namespace.objects.select_for_update(no_key=True).get(pk=namespace.pk)
        if earlier := _of_request(request_key):
            return earlier, []
        _refuse_too_many(namespace)
        sweep = Sweep.objects.create(
            id=new_id(), namespace=namespace, owner=user, name=_name_of(base), engine=chosen, base=base,
            plan=plan_to_json(said), count=len(values), accept_never_fits=accept_never_fits, request_key=request_key,
            created_at=now, failures_from=now, next_look_at=now,
        )  # fmt: skip
        rows = [SweepTrial(sweep=sweep, number=number, values=one) for number, one in enumerate(values, 1)]
        SweepTrial.objects.bulk_create(rows, batch_size=200)
        facts = {"name": sweep.name, "trials": sweep.count, "method": said.method.value}
        record(user, "sweep.create", f"sweep:{sweep.pk}", namespace=namespace, **facts)
    return sweep, warnings


def planned(plan: object, base: object) -> tuple[Any, list[Values]]:
    """The plan, and the values of each trial. Raises `Invalid`."""
    limits = settings.YARDMASTER_SWEEPS
    if not isinstance(base, Mapping):
        raise Invalid([Problem("spec", "wrong_type", "Expected a job's specification.", "Send an object.")])
    try:
        said = plan_from_json(plan, most_trials=limits.trials, most_parallel=limits.parallel)
        require_assignable(base, [one.name for one in said.space])
        values = said.values(limits.trials)
    except SpaceRejected as wrong:
        raise Invalid(wrong.problems) from wrong
    if (size := sum(len(json.dumps(one)) for one in values)) > MOST_BYTES:
        message = f"The values of all trials together have {MOST_BYTES} bytes at most, and these have {size}."
        problem = Problem("parameters", "too_large", message, "Use shorter values, or fewer trials.", str(size))
        raise Invalid([problem])
    return said, values


def _name_of(base: Mapping[str, Any]) -> str:
    name = base.get("name")
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= LONGEST_NAME:
        message = f"A sweep's job has a name of 1 to {LONGEST_NAME} characters: numbers are appended to it."
        raise Invalid([Problem("name", "bad_value", message, "Give it a short name.", str(name)[:80])])
    return name.strip()


def trial_name(name: str, number: int) -> str:
    """What the job of a trial is called."""
    return f"{name}-{number:03d}"


def _first_checked(
    user: User, namespace: Namespace, first: dict[str, Any], engine: str, accept_never_fits: bool
) -> list[Finding]:
    spec = asked_spec(first)
    refuse_unrunnable(engine, spec)
    spec, warnings = launch_checked(user, namespace, spec, engine)
    accepted_or_refused(spec, namespace, engine, timezone.now(), accept=accept_never_fits)
    return warnings


def _of_request(key: str | None) -> Sweep | None:
    return Sweep.objects.filter(request_key=key).first() if key else None


def _refuse_often(user: User) -> None:
    outcome = take([Taking(Allowance("sweeps", CREATIONS, _MINUTE), f"user {user.pk}")])
    if outcome.over is not None:
        raise TooMany(f"You may create {CREATIONS} sweeps a minute.", "rate_limited", wait=_MINUTE)


def _refuse_too_many(namespace: Namespace) -> None:
    most = settings.YARDMASTER_SWEEPS.per_namespace
    mine = Sweep.objects.filter(namespace=namespace)
    if mine.count() >= MOST_KEPT:
        message = f"The namespace {namespace.slug} has {MOST_KEPT} sweeps, as many as are kept."
        raise Conflict(message, "too_many_sweeps", remedy="Delete some that have ended.")
    if mine.exclude(state=SweepState.ENDED.value).count() >= most:
        message = f"The namespace {namespace.slug} has {most} sweeps that have not ended, as many as it may."
        remedy = "Stop one, or ask an administrator to raise YARDMASTER_SWEEPS_PER_NAMESPACE."
        raise Conflict(message, "too_many_sweeps", remedy=remedy)


def sweep_pause(*, user: User, sweep: Sweep) -> Sweep:
    """Launch no more trials; those that run continue. Paused already, or over: nothing changes."""
    reason = f"Paused by {user.username}."
    return _moved(user, sweep, "sweep.pause", [SweepState.RUNNING], state=SweepState.PAUSED.value, reason=reason)


def sweep_resume(*, user: User, sweep: Sweep) -> Sweep:
    """Launch trials again; failures of before count no more. Raises `Conflict` where it has ended."""
    require_role(user, sweep.namespace, Role.MEMBER)
    if sweep.state in (SweepState.ENDED.value, SweepState.STOPPING.value):
        raise Conflict("The sweep was stopped or has ended.", "sweep_ended", remedy="Create another one.")
    changes = {"state": SweepState.RUNNING.value, "reason": "", "waiting": "", "failures_from": timezone.now()}
    return _moved(user, sweep, "sweep.resume", [SweepState.PAUSED], **changes)


def sweep_stop(*, user: User, sweep: Sweep) -> Sweep:
    """Launch no more trials, and stop those that run. Over already: nothing changes."""
    states = [SweepState.RUNNING, SweepState.PAUSED]
    reason = f"Stopped by {user.username}."
    sweep = _moved(user, sweep, "sweep.stop", states, state=SweepState.STOPPING.value, reason=reason, waiting="")
    if sweep.state == SweepState.STOPPING.value:
        active = sweep.trials.filter(state=TrialState.ACTIVE.value).values("job_id")
        for job in Job.objects.for_lists().select_related("namespace").filter(pk__in=active, deleted_at__isnull=True):
            job_stop(user=user, job=job, reason=reason)
    sweep.refresh_from_db()
    return sweep


def sweep_delete(*, user: User, sweep: Sweep, with_jobs: bool) -> None:
    """Delete a sweep that has ended, and its jobs where that is asked for. Raises `Conflict` where it has not ended, or
    something of its jobs still runs."""
    require_role(user, sweep.namespace, Role.MEMBER)
    with transaction.atomic():
        locked = Sweep.objects.select_for_update(no_key=True).get(pk=sweep.pk)
        if not locked.is_ended:
            raise Conflict("The sweep has not ended, so it cannot be deleted.", remedy="Stop it first.")
        jobs = Job.objects.filter(pk__in=locked.trials.values("job_id"), deleted_at__isnull=True)
        count = 0
        if with_jobs:
            for job in jobs.select_related("namespace"):
                job_delete(user=user, job=job)
                count += 1
        facts = {"name": sweep.name, "jobs_deleted": count}
        record(user, "sweep.delete", f"sweep:{sweep.pk}", namespace=sweep.namespace, **facts)
        locked.delete()


def _moved(user: User, sweep: Sweep, action: str, states: list[SweepState], **changes: Any) -> Sweep:
    """Write the changes where it is in one of these states."""
    require_role(user, sweep.namespace, Role.MEMBER)
    with transaction.atomic():
        locked = Sweep.objects.select_for_update(no_key=True).get(pk=sweep.pk)
        if locked.state in [one.value for one in states]:
            facts = {"name": locked.name, "state": changes["state"], "state_before": locked.state}
            Sweep.objects.filter(pk=sweep.pk).update(**changes, next_look_at=timezone.now())
            record(user, action, f"sweep:{sweep.pk}", namespace=sweep.namespace, **facts)
    sweep.refresh_from_db()
    return sweep
