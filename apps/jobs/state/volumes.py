"""The rows of volumes, and of what was published to them: which a job may use, who uses one, and what becomes of them
when a job or a volume ends. Not here: what managers want and engines have (`apps.jobs.engines.volumes`), and the jobs
that publish and remove (`apps.jobs.volume_copies`)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import BigIntegerField, Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce

from apps.audit.services import record
from apps.jobs.models import Job, TaskFact, Volume, VolumeCopy, VolumeLeftover
from apps.namespaces.models import Namespace
from apps.uploads.storage_ledger import give_back
from yardmaster.errors import Problem, SpecRejected, SpecUnreadable
from yardmaster.job.programs import VOLUME_COPY, VOLUME_REMOVE
from yardmaster.job.spec import InputSource, LogDir, TrainingSpec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.volumes import VolumeKind, kinds_used
from yardmaster.lifecycle.phases import Phase
from yardmaster_runner.volume_remove import left_of

MOST_NAMED = 20
_COPY_KEY = "volume-copy"


def volumes_of(namespace: Namespace) -> QuerySet[Volume]:
    """Those that it has or is to have, and those that go."""
    return Volume.objects.filter(namespace=namespace).order_by("engine", "kind")


def with_amounts(volumes: QuerySet[Volume]) -> QuerySet[Volume]:
    """The volumes with `copied` (bytes of what is published to each) and `leftover_count` (deleted jobs whose log
    directories are still on it)."""
    copies = VolumeCopy.objects.filter(volume=OuterRef("pk")).order_by().values("volume")
    left = VolumeLeftover.objects.filter(volume=OuterRef("pk")).order_by().values("volume")
    return volumes.annotate(
        copied=Coalesce(Subquery(copies.annotate(all=Sum("bytes")).values("all")), 0, output_field=BigIntegerField()),
        leftover_count=Coalesce(Subquery(left.annotate(all=Count("pk")).values("all")), 0),
    )


def volume_for(namespace_id: uuid.UUID, engine: str, kind: VolumeKind) -> Volume | None:
    """The one that jobs there use; None where there is none, or it goes."""
    return Volume.objects.filter(namespace_id=namespace_id, engine=engine, kind=kind.value, goes=False).first()


def volume_problems(namespace: Namespace, engine: str, spec: TrainingSpec) -> list[Problem]:
    """What the job asks of volumes that the namespace does not have there."""
    data = [
        (f"inputs.{n}.source", one) for n, one in enumerate(spec.inputs) if one.source is InputSource.VOLUME
    ]  # fmt: skip
    found = []
    if data and (volume := volume_for(namespace.pk, engine, VolumeKind.DATA)) is None:
        found += [_no_volume(namespace, engine, VolumeKind.DATA, field) for field, _ in data]
    elif data and volume is not None:
        ready = volume.copies.filter(state=VolumeCopy.State.READY)
        there = set(ready.filter(version__in=[one.version for _, one in data]).values_list("version", flat=True))
        found += [_not_on_volume(field, one.version) for field, one in data if one.version not in there]
    if spec.log_dir is LogDir.VOLUME and volume_for(namespace.pk, engine, VolumeKind.LOG) is None:
        found.append(_no_volume(namespace, engine, VolumeKind.LOG, "log_dir"))
    return found + _own_problems(namespace, engine, spec)


def volumes_lock(namespace_id: uuid.UUID) -> None:
    """Who removes a volume, or something from one, first makes all others who do, and launches of the namespace, wait:
    a launch that came before is then found (`jobs_using`), and one that waits is refused (`volumes_require`). In the
    running transaction; no other row may be locked before."""
    Namespace.objects.select_for_update(no_key=True).get(pk=namespace_id)


def volumes_require(namespace: Namespace, engine: str, spec: TrainingSpec) -> None:
    """What was true when the job was checked may have changed since. With the namespace locked, in the transaction of
    the launch. Raises `SpecRejected`."""
    if problems := volume_problems(namespace, engine, spec):
        raise SpecRejected(problems)


def _own_problems(namespace: Namespace, engine: str, spec: TrainingSpec) -> list[Problem]:
    """The same for the portal's own jobs: what they write or remove is still to be written or removed."""
    if spec.program not in (VOLUME_COPY, VOLUME_REMOVE):
        return []
    volumes = [(kind, volume_for(namespace.pk, engine, kind)) for kind in kinds_used(spec)]
    missing = [_no_volume(namespace, engine, kind, "program") for kind, volume in volumes if volume is None]
    if missing or "jobs" in spec.options:
        return missing
    is_copying = spec.program == VOLUME_COPY
    version = spec.inputs[0].version if is_copying else uuid.UUID(str(spec.options["version"]))
    state = VolumeCopy.State.COPYING if is_copying else VolumeCopy.State.REMOVING
    if VolumeCopy.objects.filter(volume=volumes[0][1], version=version, state=state).exists():
        return []
    message = "The version is not to be published or removed any more."
    return [Problem("program", "not_on_volume", message, "Reload the page and try again.", spec.program)]


def _no_volume(namespace: Namespace, engine: str, kind: VolumeKind, field: str) -> Problem:
    message = f"The namespace {namespace.slug} has no {kind} volume on the engine {engine}."
    instead = "store" if kind is VolumeKind.DATA else "disk"
    remedy = f"A manager can create one on the namespace's page. Or write {instead}."
    return Problem(field, "no_volume", message, remedy, "volume")


def _not_on_volume(field: str, version: uuid.UUID) -> Problem:
    message = f"The dataset version {version} is not on the data volume."
    return Problem(field, "not_on_volume", message, "Publish it to the volume first, or write store.", "volume")


def jobs_using(volume: Volume, version: uuid.UUID | None = None) -> list[str]:
    """The names of the jobs that are not over and use the volume; with `version` those that read that from it. Of many
    the first."""
    rows = Job.objects.filter(namespace_id=volume.namespace_id, engine=volume.engine, cleaned_up_at__isnull=True)
    if version is not None:
        rows = rows.filter(inputs__version=version)
    found = []
    for job in rows.filter(deleted_at__isnull=True).only("name", "spec").iterator(chunk_size=100):
        if _uses(job, VolumeKind(volume.kind), version):
            found.append(job.name)
        if len(found) == MOST_NAMED:
            break
    return found


def _uses(job: Job, kind: VolumeKind, version: uuid.UUID | None) -> bool:
    try:
        spec = stored_spec(job.spec)
    except SpecUnreadable:
        return False
    if version is None:
        return kind in kinds_used(spec)
    return any(one.version == version and one.source is InputSource.VOLUME for one in spec.inputs)


def volumes_gone(rows: Iterable[Volume]) -> None:
    """The engine has nothing left of these: their bytes are free again."""
    for row in rows:
        with transaction.atomic():
            if Volume.objects.filter(pk=row.pk).delete()[0]:
                give_back(row.namespace_id, used=row.size, reserved=0)
                facts = {"engine": row.engine, "kind": row.kind}
                record(None, "volume.removed", f"volume:{row.pk}", namespace=row.namespace, **facts)


def volume_emptied(row: Volume, now: datetime) -> None:
    """What was on it is gone without the portal: its storage was lost, or its engine made it again. Repeating it
    changes nothing."""
    with transaction.atomic():
        volumes_lock(row.namespace_id)
        there = row.copies.filter(state__in=(VolumeCopy.State.READY, VolumeCopy.State.COPYING))
        copies = there.update(state=VolumeCopy.State.FAILED, changed_at=now)
        leftovers, _ = row.leftovers.all().delete()
        if copies or leftovers:
            facts = {"engine": row.engine, "kind": row.kind, "versions": copies}
            record(None, "volume.emptied", f"volume:{row.pk}", namespace=row.namespace, **facts)


def leftover_note(job: Job) -> None:
    """The job is being deleted: what any of its attempts left on the log volume is to be removed. In the running
    transaction."""
    if not job.attempts.filter(spec__log_dir=LogDir.VOLUME.value).exists():
        return
    if (volume := volume_for(job.namespace_id, job.engine, VolumeKind.LOG)) is not None:
        VolumeLeftover.objects.get_or_create(volume=volume, job_id=job.pk)


def copy_key(copy: VolumeCopy) -> str:
    """The request key of the job that is launched for the copy now: the job's way back to it."""
    return f"{_COPY_KEY}:{copy.pk}:{copy.launches}"


def copies_settle(job: Job, phase: Phase, now: datetime) -> None:
    """The job has its verdict, however it came to it: what it published is there, or what it removed is gone; or
    neither can be said. In the running transaction. Reads no specification: also one that is unreadable may end."""
    kind, *of = (job.request_key or "").split(":")
    is_well = phase is Phase.SUCCEEDED
    if kind == _COPY_KEY:
        _copy_settle(VolumeCopy.objects.filter(pk=of[0], launches=int(of[1])), is_well, now)
    elif asked := _cleaned(job):
        left = [] if is_well else _left_by(job, asked)
        of_volume = {"volume__namespace_id": job.namespace_id, "volume__engine": job.engine}
        VolumeLeftover.objects.filter(job_id__in=set(asked) - set(left), **of_volume).delete()


def _left_by(job: Job, asked: list[str]) -> list[str]:
    """What a failed task says that it could not remove. Where it says nothing, that is all."""
    facts = TaskFact.objects.filter(job=job, attempt=job.attempt)
    said = [left_of(str(reported.get("message", "")), asked) for reported in facts.values_list("reported", flat=True)]
    return next((left for left in said if left is not None), asked)


def _cleaned(job: Job) -> list[str]:
    """The jobs whose log directories it removes; none where its specification is unreadable."""
    spec = job.spec if isinstance(job.spec, dict) else {}
    options = spec.get("options")
    if spec.get("program") != VOLUME_REMOVE or not isinstance(options, dict) or "jobs" not in options:
        return []
    return str(options["jobs"]).split(",")


def _copy_settle(rows: QuerySet[VolumeCopy], is_well: bool, now: datetime) -> None:
    removing, copying = rows.filter(state=VolumeCopy.State.REMOVING), rows.filter(state=VolumeCopy.State.COPYING)
    if is_well:
        removing.delete()
        copying.update(state=VolumeCopy.State.READY, changed_at=now)
    else:
        (removing | copying).update(state=VolumeCopy.State.FAILED, changed_at=now)
