"""What a task is ordered to do: the spec, and where its code, inputs and checkpoint are to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from uuid import UUID

from django.conf import settings
from django.dispatch import Signal

from apps.code.models import CodeVersion
from apps.connections.selectors import connection_named, secrets_needed
from apps.datasets.models import DatasetVersion
from apps.errors import Conflict, NotFound
from apps.jobs.models import Job, JobAttempt
from apps.jobs.spark_clusters import facts_for_driver
from apps.jobs.state.results import newest_checkpoint
from apps.jobs.state.task_auth import TaskIdentity
from apps.registry.models import ModelVersion
from apps.registry.selectors import MODELS
from apps.secrets.delivery import values_for_job
from apps.stores import log_store, storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned.models import Version
from apps.uploads.versioned.selectors import files_of
from yardmaster.errors import Unavailable
from yardmaster.job.spec import DatasetInput, InputSource, Role, SecretInput, Strategy, TrainingSpec
from yardmaster.job.spec_connection import connection_secrets, connection_variables
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.working_share import share_of
from yardmaster.logs.keys import StreamKey
from yardmaster.storage.base import Audience

LINE_BYTES = 65_536
SPOOL_BYTES = 64 << 20
order_secrets = Signal()
"""Asks the apps above, for the order of a service's task, which values it gets beside those of its specification:
`[{"name", "env", "file", "value"}]`."""
FILES_AT_ONCE = 1_000
"""With signed addresses; half a megabyte."""


def order_for(identity: TaskIdentity, role: str, index: int) -> dict[str, Any]:
    """The order of one task. The owner's right to see code and data was checked at the launch; a job that runs keeps
    what it was launched with. Raises a 404 problem for a task that the spec does not have."""
    job = job_of(identity)
    attempt = JobAttempt.objects.get(job=job, number=identity.attempt)
    spec = stored_spec(attempt.spec)
    if not 0 <= index < spec.replicas(Role(role)):
        raise NotFound(f"The job has no task {role}-{index}.")
    spec, secrets = _connected(job, spec)
    cluster = facts_for_driver(spec, job.namespace, job.engine)
    return {
        **({} if cluster is None else {"spark": cluster}),
        "job": str(job.pk),
        "attempt": identity.attempt,
        "spec": spec_to_json(spec),
        "code": None if spec.code_version is None else _first_page(_code(spec.code_version)),
        "inputs": [_first_page(_input(one)) for one in spec.inputs],
        "secrets": [*_secrets(job, [*spec.secrets, *secrets]), *_secrets_of_service(job)],
        "checkpoint": _checkpoint(job),
        "limits": {
            "line_bytes": LINE_BYTES,
            "spool_bytes": SPOOL_BYTES,
            "away_seconds": settings.YARDMASTER_LOG_WAIT,
            "stream_bytes": settings.YARDMASTER_STREAM_CACHE,
            **_of_working_folder(spec, Role(role), index),
        },
        "agrees": attempt.agreed is not None,
        "was_cut_off": _was_cut_off(StreamKey(job.pk, job.attempt, Role(role), index)),
    }


def _of_working_folder(spec: TrainingSpec, role: Role, index: int) -> dict[str, int]:
    """What a task may keep of its working folder, so that all tasks together keep to the limits of the settings."""
    share = share_of(spec, role, index)
    limits = (settings.YARDMASTER_WORKING_FOLDER_LIMIT, settings.YARDMASTER_WORKING_FOLDER_FILES)
    size, files = (max(1, int(limit * share)) for limit in limits)
    return {"working_bytes": size, "working_files": files}


def files_for(identity: TaskIdentity, version_id: UUID, after: str, most: int = FILES_AT_ONCE) -> dict[str, Any]:
    """The files behind this path of a version that the job uses, at most so many, and the path behind which more stand.
    Raises a 404 problem for any other version."""
    job = job_of(identity)
    spec = stored_spec(JobAttempt.objects.get(job=job, number=identity.attempt).spec)
    if version_id not in {spec.code_version, *(one.version for one in spec.inputs)}:
        raise NotFound("The job has no such version.")
    kinds: tuple[type[Version], ...] = (DatasetVersion, CodeVersion, ModelVersion)
    found = (one for kind in kinds if (one := kind._default_manager.filter(pk=version_id).first()) is not None)
    version = next(found, None)
    if version is None:
        raise NotFound("The version no longer exists.")
    return _first_page({"files": remote_files(files_of(version, after), most)}, most)


def _first_page(bundle: dict[str, Any], most: int = FILES_AT_ONCE) -> dict[str, Any]:
    """As many files as are given at once, and the path behind which the others stand: of a million files neither the
    portal nor the task holds the list."""
    files = bundle["files"][:most]
    return bundle | {"files": files, "next": files[-1]["path"] if len(bundle["files"]) > len(files) else None}


def _was_cut_off(stream: StreamKey) -> bool:
    """Whether an earlier start of the task sent lines and never said that they were all: it was killed. A log store
    that does not answer holds no task up."""
    try:
        head = log_store().head(stream)
    except Unavailable:
        return False
    return head.next_line > 0 and not head.ended


def job_of(identity: TaskIdentity) -> Job:
    """The job of a task. Raises `Conflict` where the task belongs to an earlier attempt."""
    job = Job.objects.select_related("namespace").get(pk=identity.job_id)
    if job.attempt != identity.attempt:
        raise Conflict("This attempt of the job is over.", "attempt_over")
    return job


def _code(version_id: UUID) -> dict[str, Any]:
    version = CodeVersion.objects.filter(pk=version_id).first()
    if version is None:
        raise NotFound("The code version of this job no longer exists.")
    return {"version": str(version_id), "files": remote_files(files_of(version))}


def _input(one: DatasetInput) -> dict[str, Any]:
    if one.model_version is not None:
        return _model(one.model_version, one)
    version = DatasetVersion.objects.filter(pk=one.version).select_related("parent").first()
    if version is None:
        raise NotFound(f"The dataset version {one.dataset_version} no longer exists.")
    is_on_volume = one.source is InputSource.VOLUME
    return {
        "version": str(one.dataset_version),
        "name": one.name,
        "dataset": version.parent.name,
        "mode": one.mode.value,
        "share": one.share.value,
        "stands_for": one.stands_for,
        "source": one.source.value,
        "files": [] if is_on_volume else remote_files(files_of(version)),
    }


def _connected(job: Job, spec: TrainingSpec) -> tuple[TrainingSpec, list[SecretInput]]:
    """The spec with the variables of its data connection, as that is now, and the secrets that its tasks get for it.
    Raises `NotFound` where it was deleted."""
    if spec.connection is None:
        return spec, []
    found = connection_named(job.namespace, spec.connection.name)
    variables = connection_variables(found.hosts, spec.connection.cache)
    return replace(spec, environment={**spec.environment, **variables}), connection_secrets(secrets_needed(found))


def _secrets(job: Job, wanted: Sequence[SecretInput]) -> list[dict[str, str]]:
    """With their values: the one place where these leave the portal. They are in no row of the job and in no log."""
    if not wanted:
        return []
    values = values_for_job(job.namespace, job.pk, sorted({one.name for one in wanted}))
    return [{"name": one.name, "env": one.env, "file": one.file, "value": values[one.name]} for one in wanted]


def _secrets_of_service(job: Job) -> list[dict[str, str]]:
    if job.strategy != Strategy.SERVICE.value:
        return []
    answers: list[tuple[Any, Any]] = order_secrets.send(Job, job=job)
    return [one for _, some in answers for one in some]


def _model(version_id: UUID, one: DatasetInput) -> dict[str, Any]:
    version = ModelVersion.objects.filter(MODELS.live_versions, pk=version_id).first()
    if version is None:
        raise NotFound(f"The model version {version_id} no longer exists.")
    said = {"version": str(version_id), "name": one.name, "stands_for": one.stands_for}
    return {**said, "files": remote_files(files_of(version))}


def _checkpoint(job: Job) -> dict[str, Any] | None:
    newest = newest_checkpoint(job)
    if newest is None:
        return None
    files = [{**one, "url": _url(one["key"])} for one in newest.files]
    return {"step": newest.step, "files": [{k: v for k, v in one.items() if k != "key"} for one in files]}


def remote_files(files: Iterable[StoredFile], most: int = FILES_AT_ONCE) -> list[dict[str, Any]]:
    """The first of them, and one more where there are more."""
    some = islice(files, most + 1)
    return [{"path": one.path, "size": one.size, "sha256": one.sha256, "url": _url(one.key)} for one in some]


def _url(key: str) -> str:
    return storage().read_url(key, ADDRESS_LIFE, audience=Audience.TASKS)
