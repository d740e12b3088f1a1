"""Batch inference as the job that it is: workers that run the program `predict` on a version of a model and one of a
dataset, and publish what the model says as a dataset. Starting it is a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.accounts.models import User
from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from apps.jobs.services import job_launch
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Namespace
from apps.registry.models import ModelVersion
from yardmaster.code.findings import Finding
from yardmaster.job.programs import PREDICT

_LONGEST_NAME = 100


@dataclass(frozen=True)
class BatchInference:
    """What is asked for. `options` are those of the program; None: as much as a model server has."""

    dataset: str
    note: str = ""
    workers: int = 1
    cpu: Any = None
    memory: Any = None
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def batch_spec(version: ModelVersion, data: DatasetVersion, wanted: BatchInference) -> dict[str, Any]:
    """The specification as JSON, with whatever is wrong with what was asked for still in it."""
    model, dataset = version.parent.name, data.parent.name
    usual = settings.YARDMASTER_SERVING
    asked = {"cpu": (wanted.cpu, usual["CPU"]), "memory": (wanted.memory, usual["MEMORY"])}
    resources = {name: default if value is None else value for name, (value, default) in asked.items()}
    words = f"Predictions of {model} version {version.number} for {dataset} version {data.number}."
    return {
        "name": wanted.name or f"{model[:45]} on {dataset[:45]}"[:_LONGEST_NAME].strip(),
        "strategy": "batch",
        "roles": {"worker": {"replicas": wanted.workers, **resources}},
        "program": PREDICT,
        "options": dict(wanted.options),
        "inputs": [
            {"model_version": str(version.pk), "name": "model"},
            {"dataset_version": str(data.pk), "name": "data"},
        ],
        "publishes": {"dataset": wanted.dataset, "note": wanted.note or words},
    }


def batch_launch(
    *,
    user: User,
    version: ModelVersion,
    data: DatasetVersion,
    namespace: Namespace,
    wanted: BatchInference,
    engine: str | None = None,
    request_key: str | None = None,
    accept_never_fits: bool = False,
    confirmed: bool = False,
) -> tuple[Job, list[Finding]]:
    """Launch the job. Raises as `job_launch` does, and `SpecRejected` with what is wrong with the options."""
    return job_launch(
        user=user, namespace=namespace, spec=asked_spec(batch_spec(version, data, wanted)), engine=engine,
        request_key=request_key, accept_never_fits=accept_never_fits, confirm_foreign_model=confirmed,
    )  # fmt: skip
