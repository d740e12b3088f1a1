"""Which jobs a person may see, and what jobs hold. Reads only."""

from __future__ import annotations

import uuid

from yardmaster.phases import FINAL, Phase

from apps.accounts.models import User
from apps.api.problems import NotFound
from apps.jobs import ledger
from apps.jobs.models import Job
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, require_role

UNFINISHED = [phase.value for phase in Phase if phase not in FINAL]
ON_THE_ENGINE = [Phase.STARTING.value, Phase.RUNNING.value, Phase.STOPPING.value]


def job_for(user: User, job_id: uuid.UUID | str, *, at_least: Role = Role.VIEWER) -> Job:
    """The job, if the user may see it. Unknown or foreign: the same 404. Seen, but the role is too low: 403."""
    try:
        key = job_id if isinstance(job_id, uuid.UUID) else uuid.UUID(job_id)
    except ValueError:
        raise NotFound() from None
    found = Job.objects.select_related("namespace", "owner").filter(pk=key, deleted_at__isnull=True)
    job = found.filter(namespace__in=namespaces_visible(user)).first()
    if job is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, job.namespace, at_least)
    return job


def resources_used(namespace: Namespace) -> dict[str, float]:
    """What the namespace's admitted jobs hold: `cpu`, `memory`, `gpus`, extended resources by name, `running_jobs`."""
    total = ledger.total_of(ledger.held_in([namespace.pk]))
    running = Job.objects.filter(namespace=namespace, phase__in=ON_THE_ENGINE).count()
    return {**total.as_amounts(), "running_jobs": running}


def version_in_use(version_id: uuid.UUID) -> bool:
    """Whether an unfinished job needs this code or dataset version."""
    wanted = str(version_id)
    jobs = Job.objects.filter(phase__in=UNFINISHED)
    specs = jobs.values_list("spec", flat=True).iterator()
    return any(
        spec.get("code") == wanted or any(one.get("dataset_version") == wanted for one in spec.get("inputs", ()))
        for spec in specs
    )
