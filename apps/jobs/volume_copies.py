"""Publishing versions of datasets to the data volume of their namespace, and removing them from it: as jobs of the
portal's own programs. Not here: how a volume comes to be (`engines.volumes`)."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Sum
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.datasets.models import DatasetVersion
from apps.errors import Conflict, NotFound, QuotaExceeded
from apps.jobs.models import Job, Volume, VolumeCopy
from apps.jobs.services import job_launch
from apps.jobs.state.volumes import copy_key, jobs_using, volume_for, volumes_lock
from apps.namespaces.models import Role
from apps.namespaces.selectors import require_role
from yardmaster.job.programs import VOLUME_COPY, VOLUME_REMOVE
from yardmaster.job.spec import DatasetInput, Option, Resources, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec import Role as TaskRole
from yardmaster.job.volumes import VolumeKind
from yardmaster.quantity import format_bytes

RESOURCES = Resources(cpu=0.5, memory=512 << 20)
"""Of the one task that copies or removes."""
RESTARTS = 3
_AT_ONCE = 250
"""Deleted jobs whose log directories one job removes."""
_STATE = VolumeCopy.State


def bytes_on(volume: Volume) -> int:
    """What was published to the volume, or is on its way there or away. No statement for one that was read with it
    (`with_amounts`)."""
    known: int | None = getattr(volume, "copied", None)
    if known is not None:
        return known
    found: int = volume.copies.aggregate(all=Sum("bytes"))["all"] or 0
    return found


def copies_of(version: DatasetVersion) -> list[VolumeCopy]:
    """Where the version is published, or is on its way there or away, in its namespace."""
    rows = VolumeCopy.objects.filter(version=version.pk, volume__namespace=version.parent.namespace)
    return list(rows.select_related("volume", "job").order_by("volume__engine"))


def copy_on(volume: Volume, version_id: uuid.UUID) -> VolumeCopy:
    """A version on this volume, whether the portal still has it or not. Raises a 404 problem where it is not there."""
    found = volume.copies.filter(version=version_id).select_related("volume", "job").first()
    if found is None:
        raise NotFound("The version is not on this volume.")
    return found


def copy_of(version: DatasetVersion, engine: str | None = None) -> VolumeCopy:
    """The one on this engine's volume. Raises a 404 problem where there is none."""
    chosen = engine or settings.YARDMASTER_DEFAULT_ENGINE
    found = next((one for one in copies_of(version) if one.volume.engine == chosen), None)
    if found is None:
        raise NotFound("The version is not on the data volume.", remedy="Publish it first.")
    return found


def version_publish(*, user: User, version: DatasetVersion, engine: str | None = None) -> tuple[VolumeCopy, bool]:
    """Publish the version to the data volume of its dataset's namespace. Returns the copy and whether a job was
    launched for it now: one that is there, or on its way, is returned as it is. Raises what a launch raises, `Conflict`
    where there is no volume, and `QuotaExceeded` where it has no space left."""
    namespace = version.parent.namespace
    require_role(user, namespace, Role.MEMBER)
    volume = _volume_of(version, engine)
    begun = _copy_begin(volume, version, timezone.now())
    if begun is None:
        return copy_of(version, volume.engine), False
    options: dict[str, Option] = {"files": version.file_count, "bytes": version.size}
    spec = _spec(f"publish {version.parent.name[:80]}", VOLUME_COPY, options, (DatasetInput(version.pk),))
    return _launched(user, *begun, spec, "volume.publish"), True


def version_unpublish(*, user: User, copy: VolumeCopy) -> tuple[VolumeCopy, bool]:
    """Remove the version from the volume. Returns the same. Raises `Conflict` while jobs read it from there, and while
    it is being published."""
    require_role(user, copy.volume.namespace, Role.MEMBER)
    begun = _removal_begin(copy, timezone.now())
    if begun is None:
        return VolumeCopy.objects.select_related("volume", "job").get(pk=copy.pk), False
    spec = _spec(f"remove {copy.dataset[:80]}", VOLUME_REMOVE, {"version": str(copy.version)}, ())
    return _launched(user, *begun, spec, "volume.unpublish"), True


def leftovers_remove(*, user: User, volume: Volume) -> Job:
    """Remove the log directories of deleted jobs from the volume, some at a time: by one job, which is returned as it
    is while it is not over. Raises what a launch raises, and `Conflict` where there are none."""
    require_role(user, volume.namespace, Role.MANAGER)
    prefix = f"volume-clean:{volume.pk}:"
    last = Job.objects.filter(request_key__startswith=prefix).order_by("pk").last()
    if last is not None and _runs(last):
        return last
    jobs = [str(one) for one in volume.leftovers.order_by("pk").values_list("job_id", flat=True)[:_AT_ONCE]]
    if not jobs:
        raise Conflict("No deleted job has left anything on this volume.", "nothing_left")
    spec = _spec("remove logs of deleted jobs", VOLUME_REMOVE, {"jobs": ",".join(jobs)}, ())
    key = f"{prefix}{last.pk if last else ''}"  # of two requests at once both get the same job
    try:
        job, _ = job_launch(user=user, namespace=volume.namespace, spec=spec, engine=volume.engine, request_key=key)
    except IntegrityError:
        return Job.objects.get(request_key=key)
    facts = {"engine": volume.engine, "jobs": len(jobs)}
    record(user, "volume.clean", f"volume:{volume.pk}", namespace=volume.namespace, **facts)
    return job


def _volume_of(version: DatasetVersion, engine: str | None) -> Volume:
    chosen = engine or settings.YARDMASTER_DEFAULT_ENGINE
    found = volume_for(version.parent.namespace_id, chosen, VolumeKind.DATA)
    if found is None:
        message = f"The namespace {version.parent.namespace.slug} has no data volume on the engine {chosen}."
        raise Conflict(message, "no_volume", remedy="A manager can create one on the namespace's page.")
    return found


def _copy_begin(volume: Volume, version: DatasetVersion, now: datetime) -> tuple[VolumeCopy, str] | None:
    """The row, with its bytes counted, and its state before (empty: it was not there); None where the version is there
    or on its way. Behind the lock: two at once can never both take the last byte."""
    with transaction.atomic():
        there_is = _locked(volume)
        there = VolumeCopy.objects.filter(volume=there_is, version=version.pk).select_related("job").first()
        if there is not None and there.state in (_STATE.READY, _STATE.COPYING):
            # A launch that was cut off left a row without a job: the next request continues it.
            is_cut_off = there.state == _STATE.COPYING and there.job is None
            return (there, "" if there.launches == 1 else _STATE.FAILED) if is_cut_off else None
        if there is not None and (there.state == _STATE.REMOVING or _runs(there.job)):
            raise _busy()
        if there is None:
            _refuse_full(there_is, version.size)
            there = VolumeCopy(
                volume=there_is, version=version.pk, dataset=version.parent.name, number=version.number,
                files=version.file_count, bytes=version.size,
            )  # fmt: skip
        return there, _begin(there, _STATE.COPYING, now)


def _removal_begin(copy: VolumeCopy, now: datetime) -> tuple[VolumeCopy, str] | None:
    """The row and its state before, which is not known of a launch that was cut off; None where a job is at it."""
    with transaction.atomic():
        there = copy_on(_locked(copy.volume), copy.version)
        if there.state == _STATE.REMOVING:
            return (there, _STATE.FAILED) if there.job_id is None else None
        if there.state == _STATE.COPYING or _runs(there.job):
            raise _busy()
        if users := jobs_using(there.volume, there.version):
            message = f"Jobs that are not over read this version from the volume: {', '.join(users)}."
            raise Conflict(message, "volume_in_use", remedy="Stop them, or wait until they have ended.")
        return there, _begin(there, _STATE.REMOVING, now)


def _locked(volume: Volume) -> Volume:
    """The volume as it is now, while no other can launch or change anything. Raises `Conflict` where it goes."""
    volumes_lock(volume.namespace_id)
    found = Volume.objects.filter(pk=volume.pk, goes=False).first()
    if found is None:
        raise Conflict("The volume is being removed.", "volume_goes", remedy="Create it again when it is gone.")
    return found


def _busy() -> Conflict:
    message = "A job is still publishing or removing this version, or has not been cleaned up."
    return Conflict(message, "volume_busy", remedy="Stop that job, or wait until it has ended.")


def _begin(copy: VolumeCopy, state: VolumeCopy.State, now: datetime) -> str:
    before = copy.state if copy.launches else ""
    copy.state, copy.changed_at, copy.launches, copy.job = state, now, copy.launches + 1, None
    copy.save()
    return before


def _refuse_full(volume: Volume, needed: int) -> None:
    held = bytes_on(volume)
    if held + needed > volume.size:
        left = max(0, volume.size - held)
        has = f"{format_bytes(left)} of the volume's {format_bytes(volume.size)} are left"
        detail = f"This needs {format_bytes(needed)}; {has}."
        raise QuotaExceeded(detail, "volume_full", remedy="Remove versions from the volume, or have it enlarged.")


def _launched(user: User, copy: VolumeCopy, before: str, spec: TrainingSpec, action: str) -> VolumeCopy:
    """Where the launch is refused, the copy is as it was before: as if it had not been asked for."""
    volume, key = copy.volume, copy_key(copy)
    try:
        job, _ = job_launch(
            user=user, namespace=volume.namespace, spec=spec, engine=volume.engine, request_key=key,
            accept_never_fits=False,
        )  # fmt: skip
    except IntegrityError:
        job = Job.objects.get(request_key=key)
    except Exception:
        _take_back(copy, before)
        raise
    VolumeCopy.objects.filter(pk=copy.pk, launches=copy.launches).update(job=job)
    facts: dict[str, Any] = {"dataset": copy.dataset, "number": copy.number, "engine": volume.engine}
    record(user, action, f"volume:{volume.pk}", namespace=volume.namespace, **facts)
    copy.job = job
    return copy


def _take_back(copy: VolumeCopy, before: str) -> None:
    """Not where another request for the same has launched a job in the meantime."""
    with transaction.atomic():
        volumes_lock(copy.volume.namespace_id)
        mine = VolumeCopy.objects.filter(pk=copy.pk, launches=copy.launches, job=None, state=copy.state)
        if Job.objects.filter(request_key=copy_key(copy)).exists():
            return
        if before:
            mine.update(state=before)
        else:
            mine.delete()


def _spec(name: str, program: str, options: dict[str, Option], inputs: tuple[DatasetInput, ...]) -> TrainingSpec:
    return TrainingSpec(
        name=name,
        strategy=Strategy.BATCH,
        roles={TaskRole.WORKER: RoleSpec(1, RESOURCES)},
        code_version=None,
        entry_point="",
        program=program,
        options=options,
        inputs=inputs,
        retries=RESTARTS,
        grace_period=timedelta(seconds=10),
        reclaim_delay=timedelta(0),
    )


def _runs(job: Job | None) -> bool:
    return job is not None and not job.is_over
