"""What the tasks of a role really used: of one job, or of the newest jobs that ran a script of the same code.

Not here: what fits such a use (`yardmaster.usage`), and where it is offered (the launch form, the page of a job).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from apps.code.models import CodeVersion
from apps.jobs.models import Job, JobInput, TaskFact
from apps.namespaces.models import Namespace
from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.usage import Sample, cores_for, cpu_use, memory_for

JOBS_READ = 10
TASKS_READ = 60
MUCH_LESS = 0.6
"""An offer is made where it asks for at most this share of the memory, or of the cores."""


@dataclass(frozen=True)
class Used:
    """The most that a task of the role used."""

    memory: int
    cores: float | None
    """None: too short a time to tell."""

    @property
    def fits(self) -> Resources:
        """What a task needs that uses so much, with some to spare."""
        return Resources(cpu=0.0 if self.cores is None else cores_for(self.cores), memory=memory_for(self.memory))

    def smaller(self, asked: Resources) -> Resources | None:
        """What is worth asking for instead of this; None where that is not much less. GPUs and other devices stay."""
        fits = self.fits
        cpu = min(asked.cpu, fits.cpu or asked.cpu)
        memory = min(asked.memory, fits.memory)
        if memory > MUCH_LESS * asked.memory and cpu > MUCH_LESS * asked.cpu:
            return None
        return Resources(cpu=cpu, memory=memory, gpus=asked.gpus, extended=asked.extended)


def used_by_role(facts: Iterable[TaskFact]) -> dict[str, Used]:
    """By role, of those whose memory was measured."""
    found: dict[str, Used] = {}
    for fact in facts:
        peak = fact.peak_memory or fact.usage.get("peak_memory")
        if not peak:
            continue
        cores = [use.cores for use in cpu_use([Sample(*one) for one in fact.usage_samples])]
        one = Used(int(peak), max(cores, default=None))
        before = found.get(fact.role)
        found[fact.role] = one if before is None else _larger(before, one)
    return found


def _larger(one: Used, other: Used) -> Used:
    known = [cores for cores in (one.cores, other.cores) if cores is not None]
    return Used(max(one.memory, other.memory), max(known, default=None))


@dataclass(frozen=True)
class SmallerSize:
    """A role that asked for much more than its tasks used."""

    role: Role
    used: Used
    asked: Resources
    offered: Resources

    @property
    def saves_memory(self) -> bool:
        return self.offered.memory < self.asked.memory

    @property
    def saves_cores(self) -> bool:
        return self.offered.cpu < self.asked.cpu


def smaller_sizes(spec: TrainingSpec, facts: Iterable[TaskFact]) -> list[SmallerSize]:
    """What the job could have asked for, by role, where that is much less."""
    used = used_by_role(facts)
    found = []
    for role, one in spec.roles.items():
        offered = used[role.value].smaller(one.resources) if role.value in used else None
        if offered is not None:
            found.append(SmallerSize(role, used[role.value], one.resources, offered))
    return found


def as_used(spec: TrainingSpec, facts: Iterable[TaskFact]) -> TrainingSpec:
    """The same specification with these smaller sizes."""
    offered = {one.role: one.offered for one in smaller_sizes(spec, facts)}
    roles = {role: replace(one, resources=offered.get(role, one.resources)) for role, one in spec.roles.items()}
    return replace(spec, roles=roles)


def used_before(namespace: Namespace, code_version: str, entry_point: str) -> Mapping[str, Used]:
    """By role, in the newest jobs of the namespace that ran this script in any version of the code. In two queries."""
    try:
        version = uuid.UUID(code_version)
    except ValueError:
        return {}
    same_code = CodeVersion.objects.filter(parent__versions=version).values("pk")
    jobs = Job.objects.filter(namespace=namespace, deleted_at__isnull=True, spec__entry_point=entry_point)
    jobs = jobs.filter(pk__in=JobInput.objects.filter(version__in=same_code).values("job"))
    attempts = dict(jobs.order_by("-place").values_list("pk", "attempt")[:JOBS_READ])
    if not attempts:
        return {}
    facts = TaskFact.objects.filter(job__in=attempts).order_by("-job_id", "role", "index")
    read = facts.only("job", "attempt", "role", "peak_memory", "usage", "usage_samples")[: TASKS_READ * 2]
    return used_by_role([fact for fact in read if fact.attempt == attempts[fact.job_id]][:TASKS_READ])
