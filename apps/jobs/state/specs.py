"""A job's specification: checked when people send it, decoded when it was stored, done without when it is unreadable.

Rules are applied at the edges alone (a launch, a check, a retry), so that a release or a setting that tightens one
changes nothing for a job that is there. Not here: which rules there are (`yardmaster.job.spec_rules`).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.conf import settings

from apps.connections.selectors import secrets_of_connection
from apps.jobs.models import Job, JobAttempt, JobInput, TaskFact
from apps.jobs.state import ledger
from apps.secrets.delivery import secrets_of_job_write
from yardmaster.errors import Problem, SpecRejected, SpecUnreadable
from yardmaster.job.named_values import named_values
from yardmaster.job.programs import PROGRAMS
from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import remains_of, stored_form, stored_spec
from yardmaster.job.strategy import is_service
from yardmaster.lifecycle.failures import Blame, Verdict
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.lifecycle.plan import Move
from yardmaster.queueing.needs import needs_of

_STRATEGIES = frozenset(one.value for one in Strategy)


def asked_spec(data: object) -> TrainingSpec:
    """The specification that a user sends, under today's rules. Raises `SpecRejected` with every problem."""
    spec = spec_from_json(data, settings.YARDMASTER_SPEC_LIMITS)
    if is_service(spec.strategy):
        message, remedy = "A service is no job of its own.", "Start it with POST /api/v1/services/, or on its page."
        raise SpecRejected([Problem("strategy", "not_launched", message, remedy, spec.strategy.value)])
    _refuse_alone(spec)
    return spec


def _refuse_alone(spec: TrainingSpec) -> None:
    """A program that writes where others read is launched by the portal, which counts what it writes."""
    if spec.program and PROGRAMS[spec.program].is_alone:
        message = f"The program {spec.program} is no job of its own."
        remedy = "Publish the version to the data volume on its page, or with `yardmaster datasets publish`."
        raise SpecRejected([Problem("program", "not_launched", message, remedy, spec.program)])


def columns_of(spec: TrainingSpec) -> dict[str, Any]:
    """What the job's row repeats of its specification, and the specification itself."""
    return {
        "name": spec.name,
        "strategy": spec.strategy.value,
        "priority": spec.priority,
        "priority_class": spec.priority_class,
        "needs": needs_of(spec),
        "replicas": {role.value: one.replicas for role, one in spec.roles.items()},
        "named_values": named_values(spec),
        "reclaim_delay": int(spec.reclaim_delay.total_seconds()),
        "spec": stored_form(spec),
    }


def inputs_write(job: Job, spec: TrainingSpec) -> None:
    """Write which code, data, models and secrets the job's specification names, in the place of those of an earlier
    one."""
    named = {one.version for one in spec.inputs}
    if spec.code_version is not None:
        named.add(spec.code_version)
    JobInput.objects.filter(job=job).exclude(version__in=named).delete()
    JobInput.objects.bulk_create([JobInput(job=job, version=one) for one in named], ignore_conflicts=True)
    needed = secrets_of_connection(job.namespace, spec.connection.name) if spec.connection else []
    secrets_of_job_write(job.namespace, job.pk, [*(one.name for one in spec.secrets), *needed])


def asked_again(spec: TrainingSpec) -> TrainingSpec:
    """A specification that was stored and is to begin a new attempt. Raises `SpecRejected` with what today's rules say
    of it."""
    found = spec_from_json(spec_to_json(spec), settings.YARDMASTER_SPEC_LIMITS)
    _refuse_alone(found)
    return found


def spec_or_remains(job: Job, attempt: JobAttempt | None = None) -> tuple[TrainingSpec, SpecUnreadable | None]:
    """The stored specification of the job, or of an attempt of it; where it is unreadable what is left of it, and
    why."""
    spec, number = (job.spec, job.attempt) if attempt is None else (attempt.spec, attempt.number)
    try:
        return stored_spec(spec), None
    except SpecUnreadable as error:
        return remains_of(spec, strategy_of(job), _tasks_known(job, number)), error


def images_shown(spec: TrainingSpec) -> list[dict[str, Any]]:
    """The images that were pinned at the launch, each with the roles whose tasks run in it."""
    return [
        {
            "name": one.name,
            "reference": one.reference,
            "digest": one.digest,
            "roles": [role.value for role in spec.roles if spec.image_of(role) == one],
        }
        for one in spec.pinned_images
    ]


def strategy_of(job: Job) -> Strategy:
    """The strategy in the job's row; where this release does not know it the simplest one."""
    return Strategy(job.strategy) if job.strategy in _STRATEGIES else Strategy.SINGLE


def step_without_spec(job: Job, error: SpecUnreadable) -> Move | None:
    """How a job ends whose specification is unreadable; None where what is left of it says enough to continue: it is
    stopping, or over."""
    phase = Phase(job.phase)
    if phase.is_final or phase is Phase.STOPPING:
        return None
    if job.wanted == Wanted.STOP.value:
        return Move(Phase.STOPPED if phase is Phase.QUEUED else Phase.STOPPING)
    message = f"The job's stored specification cannot be read: {error.message}."
    remedy = "Launch it as a new job. Ask an administrator to check why the stored one is damaged."
    return Move(Phase.FAILED, Verdict("SpecUnreadable", message, remedy, Blame.PLATFORM))


def _tasks_known(job: Job, attempt: int) -> dict[Role, int]:
    """The roles that hold quota, each with as many tasks as were ever seen of it. Unknown ones are passed over."""
    seen = Counter(TaskFact.objects.filter(job=job, attempt=attempt).values_list("role", flat=True))
    held = ledger.held_roles(job)
    return {role: max(1, seen[role.value]) for role in Role if role in held or seen[role.value]}
