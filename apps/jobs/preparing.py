"""A preparation as the job that it is: a batch of workers that run the program `prepare` on a dataset version and
publish what they write. Makes specifications; launching them is `services`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.models import User
from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from apps.jobs.services import job_launch
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace
from yardmaster.code.findings import Finding
from yardmaster.job.programs import PREPARE

CPU, MEMORY = 1, "1536Mi"
"""Of one worker: TensorFlow takes most of the memory, and the input none."""
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Preparation:
    """What is asked for. `options` are those of the program; `code` is the id of the version that has the step."""

    dataset: str
    note: str = ""
    workers: int = 1
    cpu: Any = CPU
    memory: Any = MEMORY
    name: str = ""
    code: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def spec_of(version: DatasetVersion, wanted: Preparation) -> dict[str, Any]:
    """The specification as JSON, with whatever is wrong with what was asked for still in it."""
    name = wanted.name or f"prepare {version.parent.name}"[:_LONGEST_NAME]
    return {
        "name": name,
        "strategy": "batch",
        "roles": {"worker": {"replicas": wanted.workers, "cpu": wanted.cpu, "memory": wanted.memory}},
        "program": PREPARE,
        "options": dict(wanted.options),
        "code": wanted.code,
        "inputs": [{"dataset_version": str(version.pk)}],
        "publishes": {"dataset": wanted.dataset, "note": wanted.note},
    }


def preparation_launch(
    *,
    user: User,
    version: DatasetVersion,
    namespace: Namespace,
    wanted: Preparation,
    engine: str | None = None,
    request_key: str | None = None,
    accept_never_fits: bool = False,
) -> tuple[Job, list[Finding]]:
    """Launch the job. Raises as `job_launch` does, and `SpecRejected` with what is wrong with the options."""
    return job_launch(
        user=user,
        namespace=namespace,
        spec=asked_spec(spec_of(version, wanted)),
        engine=engine,
        request_key=request_key,
        accept_never_fits=accept_never_fits,
    )
