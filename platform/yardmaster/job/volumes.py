"""The volumes that a namespace may have on a cluster, and what of them the tasks of a job see. Pure.

A data volume holds versions of datasets, below `datasets/<version id>`; a log volume holds log directories, below
`jobs/<job id>/<attempt>`. Each task gets the folders that its job needs and no other, and no text of a user is in the
name of one, so that none can lead elsewhere. Not here: the claims (`engines.kubernetes`), and who may publish to one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.job.programs import VOLUME_COPY, VOLUME_REMOVE
from yardmaster.job.spec import InputMode, InputSource, LogDir, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits
from yardmaster.job.strategy import only_serves


class VolumeKind(StrEnum):
    """What a volume is for."""

    DATA = "data"
    LOG = "log"


ROOTS = {VolumeKind.DATA: "/data", VolumeKind.LOG: "/log"}
"""Where tasks see them."""
DATASETS, JOBS = "datasets", "jobs"


@dataclass(frozen=True)
class Mount:
    """A folder of a volume as the tasks of a job see it."""

    kind: VolumeKind
    folder: str
    """Below the top of the volume."""
    path: str
    read_only: bool


def version_folder(version: uuid.UUID) -> str:
    """Where a version of a dataset lies on the data volume."""
    return f"{DATASETS}/{version}"


def log_folder(key: JobKey) -> str:
    """Where the log directory of an attempt lies on the log volume: all of its tasks share it."""
    return f"{JOBS}/{key.job_id}/{key.attempt}"


def mounts_of(spec: TrainingSpec, key: JobKey) -> tuple[Mount, ...]:
    """What each task of the run sees of its namespace's volumes."""
    found: dict[str, Mount] = {}
    if spec.program == VOLUME_REMOVE and "jobs" in spec.options:
        found[JOBS] = Mount(VolumeKind.LOG, JOBS, f"{ROOTS[VolumeKind.LOG]}/{JOBS}", read_only=False)
    elif spec.program == VOLUME_REMOVE:
        found[DATASETS] = _data(DATASETS, read_only=False)
    for one in spec.inputs:
        writes = spec.program == VOLUME_COPY
        if writes or one.source is InputSource.VOLUME:
            folder = version_folder(one.version)
            found[folder] = _data(folder, read_only=not writes)
    if spec.log_dir is LogDir.VOLUME:
        folder = log_folder(key)
        found[folder] = Mount(VolumeKind.LOG, folder, ROOTS[VolumeKind.LOG], read_only=False)
    return tuple(found.values())


def kinds_used(spec: TrainingSpec) -> frozenset[VolumeKind]:
    """Which volumes of its namespace a job needs."""
    return frozenset(one.kind for one in mounts_of(spec, _ANY))


def where_there_are_none(spec: TrainingSpec) -> list[Problem]:
    """What is wrong with the job on an engine that has no volumes."""
    message = "This engine has no volumes."
    found = [
        Problem(f"inputs.{n}.source", "no_volumes", message, "Write store, or remove source.", one.source.value)
        for n, one in enumerate(spec.inputs)
        if one.source is InputSource.VOLUME
    ]
    if spec.log_dir is LogDir.VOLUME:
        remedy = "Write disk, or remove log_dir."
        found.append(Problem("log_dir", "no_volumes", message, remedy, spec.log_dir.value))
    return found


_ANY = JobKey(uuid.UUID(int=0), uuid.UUID(int=0), 1)


def _data(folder: str, *, read_only: bool) -> Mount:
    return Mount(VolumeKind.DATA, folder, f"{ROOTS[VolumeKind.DATA]}/{folder}", read_only)


def volume_problems(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """What is wrong with what the job asks of volumes (`spec_rules`)."""
    for index, one in enumerate(spec.inputs):
        if one.source is not InputSource.VOLUME:
            continue
        field = f"inputs.{index}"
        if one.model_version is not None:
            message = "Only versions of datasets are published to a volume."
            yield Problem(f"{field}.source", "conflict", message, "Write store, or remove source.", one.source.value)
        if one.mode is InputMode.STREAM:
            message = "The files of a volume are read in place: nothing is streamed."
            yield Problem(f"{field}.mode", "conflict", message, "Write folder, or remove mode.", one.mode.value)
        if spec.program == VOLUME_COPY:
            message = f"The program {spec.program} copies from the store to the volume."
            yield Problem(f"{field}.source", "conflict", message, "Remove source.", one.source.value)
    if spec.program == VOLUME_REMOVE and len({"version", "jobs"} & set(spec.options)) != 1:
        message = f"The program {spec.program} removes a version, or log directories of jobs."
        yield Problem("options.version", "missing", message, "Add options.version or options.jobs.")
    if spec.log_dir is LogDir.VOLUME and (only_serves(spec.strategy) or spec.program in (VOLUME_COPY, VOLUME_REMOVE)):
        message = "The job runs no script that writes to a log directory."
        yield Problem("log_dir", "conflict", message, "Write disk, or remove log_dir.", spec.log_dir.value)
