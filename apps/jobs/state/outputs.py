"""Outputs: the files that tasks write below their log directory, event files among them. They come in uploads of some
files each, and are shown when all bytes of an upload are there.

An event file grows, so its bytes may lie in several segments, each of another upload; any other file is one segment. A
newer segment takes the place of those that begin where it begins or later. What was replaced is removed, and its
storage returned, when no signed address can write it any more.

The upload comes first, its row here second; what is in an upload becomes visible in one transaction when it is
complete. Cut off anywhere, `outputs_sweep` continues.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from apps.errors import Conflict, Invalid, QuotaExceeded
from apps.jobs.models import Job, JobOutput, OutputUpload, ReplacedOutputs
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.results import ended, in_steps, kept_folder, lock_job, others_continue
from apps.uploads.file_blocks import manifest_of
from apps.uploads.models import State, Upload
from apps.uploads.removal import files_remove
from apps.uploads.selectors import stored_files
from apps.uploads.services import upload_abort, upload_begin, upload_use, uploads_discard
from yardmaster.errors import Problem, Unavailable
from yardmaster.ids import new_id
from yardmaster.quantity import format_bytes
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.spark.cluster import EVENTS, RUNS

log = logging.getLogger(__name__)

MOST_FILES = 20_000
"""Of one attempt."""
MOST_SEGMENTS = 64
"""Of one file."""
OUTPUTS_AT_ONCE = 500
Segment = dict[str, Any]


def name_of(task: str, path: str) -> str:
    """What a file is called: the files of tasks with log directories of their own lie in folders named after them."""
    return f"{task}/{path}" if task else path


def is_event_file(path: str) -> bool:
    return "tfevents" in path.rpartition("/")[2]


def outputs_begin(
    *, job: Job, attempt: int, task: str, files: Sequence[ListedFile], starts: Sequence[int] = ()
) -> Upload:
    """Begin to upload some outputs of a task (empty: of the folder that all tasks share). What the same task has begun
    before and not completed is given up. `starts`: per file the byte with which its upload begins.

    Raises `Invalid`, `QuotaExceeded` (the namespace's storage, or the limits of a job's outputs), and `Conflict`
    `past_the_end` where a file does not continue what is there.
    """
    begins = _starts(files, starts)
    known = {
        one.name: one
        for one in JobOutput.objects.filter(
            job=job, attempt=attempt, name__in=[name_of(task, file.path) for file in files]
        )
    }
    for file in files:
        start = begins.get(file.path, 0)
        if start and not _continues(known.get(name_of(task, file.path)), start):
            raise Conflict(f"{file.path} does not continue at byte {start} what is stored of it.", "past_the_end")
    _refuse_too_much(job, attempt, files, known.values(), begins)
    _give_up_earlier(job, attempt, task)
    place = f"{kept_folder(job, attempt)}/outputs/{new_id()}"
    upload = upload_begin(
        namespace=job.namespace, actor=None, kind="output", files=files, job_id=job.pk, key_prefix=place,
        lock=lambda: lock_job(job.pk),
    )  # fmt: skip
    OutputUpload.objects.create(job=job, attempt=attempt, task=task, upload_id=upload.pk, starts=begins)
    return upload


def _starts(files: Sequence[ListedFile], starts: Sequence[int]) -> dict[str, int]:
    if len(files) > OUTPUTS_AT_ONCE:
        message = f"At most {OUTPUTS_AT_ONCE} outputs are uploaded at once, not {len(files)}."
        raise Invalid([Problem("files", "invalid", message, "Upload them in several steps.", str(len(files)))])
    if starts and len(starts) != len(files):
        message = "There must be one start for each file, or none at all."
        raise Invalid([Problem("starts", "invalid", message, "", str(len(starts)))])
    found = {file.path: start for file, start in zip(files, starts, strict=False) if start}
    for path, start in found.items():
        if not is_event_file(path):
            message = f"{path} is not an event file, so its upload begins with its first byte."
            raise Invalid([Problem("starts", "invalid", message, "", str(start))])
    return found


def _continues(known: JobOutput | None, start: int) -> bool:
    """Whether a segment may begin here: where one ends or begins, unless there are too many before it. Who joins them
    as the runner does has a few; each costs a reader of the file a request."""
    if known is None or start not in {one["start"] for one in known.segments} | {known.size}:
        return False
    return len(_split(known.segments, start)[0]) < MOST_SEGMENTS


def _refuse_too_much(
    job: Job, attempt: int, files: Sequence[ListedFile], known: Collection[JobOutput], starts: Mapping[str, int]
) -> None:
    count = JobOutput.objects.filter(job=job, attempt=attempt).count() + len(files) - len(known)
    if count > MOST_FILES:
        raise QuotaExceeded(
            f"The outputs of an attempt are at most {MOST_FILES:,} files, and these would make {count:,}.",
            remedy="Write fewer files below the log directory, or pack small files into one.",
        )
    stored = JobOutput.objects.filter(job=job).aggregate(size=Sum("size"))["size"] or 0
    size = stored - sum(one.size for one in known)
    size += sum(starts.get(file.path, 0) + file.size for file in files)
    limit = settings.YARDMASTER_OUTPUT_LIMIT
    if size > limit:
        raise QuotaExceeded(
            f"The outputs of a job are at most {format_bytes(limit)}, and these would make {format_bytes(size)}.",
            remedy="Write less below the log directory, or ask an administrator for a higher limit.",
        )


def _give_up_earlier(job: Job, attempt: int, task: str) -> None:
    """A task uploads one thing after the other: what is still open is of an upload that it has given up."""
    for row in OutputUpload.objects.filter(job=job, attempt=attempt, task=task):
        upload = Upload.objects.filter(pk=row.upload_id).first()
        if upload is not None and upload.state in (State.COMPLETING, State.COMPLETE):
            continue
        with suppress(Conflict):
            if upload is not None:
                upload_abort(upload)
            row.delete()


def outputs_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Show the files of the upload if it is complete; forget its row if it is gone. Repeats harmlessly."""
    row = OutputUpload.objects.select_related("job").filter(upload_id=upload_id).first()
    if row is None:
        return
    upload = Upload.objects.filter(pk=upload_id).first()
    if upload is None or upload.state in (State.FAILED, State.DELETING):
        row.delete()
    elif upload.state == State.COMPLETE:
        with transaction.atomic():
            lock_job(row.job_id)  # two uploads of one job come one after the other
            if OutputUpload.objects.filter(pk=row.pk).delete()[0]:
                upload_use(upload)
                replaced = _show(row, upload, now)
                for replaced_upload, paths in replaced.items():
                    _note_replaced(replaced_upload, paths, now)
                job_changed(row.job, is_detail=True)


def _show(row: OutputUpload, upload: Upload, now: datetime) -> Mapping[uuid.UUID, set[str]]:
    """Write the files' rows. Returns what no file consists of any more, by upload."""
    files = list(stored_files(upload))
    names = [name_of(row.task, file.path) for file in files]
    known = {one.name: one for one in JobOutput.objects.filter(job=row.job, attempt=row.attempt, name__in=names)}
    replaced: dict[uuid.UUID, set[str]] = defaultdict(set)
    shown = []
    for name, file in zip(names, files, strict=True):
        start = row.starts.get(file.path, 0)
        before = known[name].segments if name in known else []
        kept, gone = _split(before, start)
        if sum(one["size"] for one in kept) != start:  # what it continued was replaced meanwhile
            replaced[upload.pk].add(file.path)
            continue
        for one in gone:
            replaced[uuid.UUID(one["upload"])].add(one["path"])
        new = {"start": start, "size": file.size, "key": file.key, "upload": str(upload.pk), "path": file.path}
        shown.append(
            JobOutput(
                job=row.job,
                attempt=row.attempt,
                name=name,
                task=row.task,
                size=start + file.size,
                has_events=is_event_file(file.path),
                segments=[*kept, new],
                updated_at=now,
            )
        )
    _drop_clashing(row, set(names) - known.keys(), replaced)
    _drop_running_logs(row, set(names), replaced)
    JobOutput.objects.bulk_create(
        shown, update_conflicts=True, unique_fields=["job", "attempt", "name"],
        update_fields=["size", "segments", "updated_at"],
    )  # fmt: skip
    return replaced


def _drop_clashing(row: OutputUpload, new: set[str], replaced: dict[uuid.UUID, set[str]]) -> None:
    """Forget files whose names are now those of folders, and files in folders whose names are now those of files: no
    folder could hold both."""
    if not new:
        return
    folders = {folder for name in new for folder in _folders_of(name)}
    rows = JobOutput.objects.filter(job=row.job, attempt=row.attempt)
    clashing = [
        (pk, segments)
        for pk, name, segments in rows.values_list("pk", "name", "segments")
        if name in folders or any(folder in new for folder in _folders_of(name))
    ]
    _drop(clashing, replaced)


def _drop_running_logs(row: OutputUpload, names: set[str], replaced: dict[uuid.UUID, set[str]]) -> None:
    """Forget what the event logs of Spark applications were while these ran, where the whole logs are there now: Spark
    renames the file at the end."""
    running = {name + RUNS for name in names if PurePosixPath(name).parent.name == EVENTS}
    if running:
        rows = JobOutput.objects.filter(job=row.job, attempt=row.attempt, name__in=running)
        _drop(list(rows.values_list("pk", "segments")), replaced)


def _drop(rows: Sequence[tuple[Any, Sequence[Segment]]], replaced: dict[uuid.UUID, set[str]]) -> None:
    for _, segments in rows:
        for one in segments:
            replaced[uuid.UUID(one["upload"])].add(one["path"])
    JobOutput.objects.filter(pk__in=[pk for pk, _ in rows]).delete()


def _folders_of(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _split(segments: Sequence[Segment], start: int) -> tuple[list[Segment], list[Segment]]:
    """The segments that end at `start` or before, and the others."""
    kept = [one for one in segments if one["start"] < start and one["start"] + one["size"] <= start]
    return kept, [one for one in segments if one not in kept]


def _note_replaced(upload_id: uuid.UUID, paths: Iterable[str], now: datetime) -> None:
    """To be removed; the whole upload where nothing else of it is left. Belongs into the transaction that replaces."""
    upload = Upload.objects.filter(pk=upload_id).first()
    if upload is None:
        return
    earlier = ReplacedOutputs.objects.filter(pk=upload_id).first()
    gone = set(paths) | set(earlier.paths if earlier else ())
    if gone >= {file.path for file in manifest_of(upload_id)}:
        ReplacedOutputs.objects.filter(pk=upload_id).delete()
        uploads_discard([upload_id])
        return
    due = upload.writable_until if upload.writable_until and upload.writable_until > now else now
    ReplacedOutputs.objects.update_or_create(pk=upload_id, defaults={"paths": sorted(gone), "due_at": due})


def outputs_sweep(now: datetime) -> None:
    """Show what was complete and not shown, and remove what was replaced."""
    for one in in_steps(ended(OutputUpload.objects.only("upload_id"))):
        with others_continue("An upload of outputs", one.upload_id):
            outputs_settle(one.upload_id, now)
    for row in in_steps(ReplacedOutputs.objects.filter(due_at__lte=now)):
        try:
            files_remove(row.pk, set(row.paths))
        except Unavailable:
            log.warning("The object store does not answer; replaced outputs are removed later.", exc_info=True)
            return
        except Exception:
            log.exception("Replaced outputs were not removed (upload %s)", row.pk)
            continue
        with transaction.atomic():  # what was added meanwhile is removed the next time
            ReplacedOutputs.objects.filter(pk=row.pk, paths=row.paths).delete()


def event_files_of_task(job: Job, attempt: int, task: str) -> list[dict[str, Any]]:
    """The event files of a task's folder, for a runner that does not remember: their paths and sizes."""
    rows = JobOutput.objects.filter(job=job, attempt=attempt, task=task, has_events=True).order_by("name")
    before = len(task) + 1 if task else 0
    return [{"path": name[before:], "size": size} for name, size in rows.values_list("name", "size")[:MOST_FILES]]
