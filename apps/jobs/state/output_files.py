"""Which outputs an attempt has, and where their bytes lie. Reads only; that the user may see the job was
checked before."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from apps.api.audience import audience
from apps.errors import NotFound
from apps.jobs.models import JobCleared, JobOutput
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.selectors import StoredFile
from yardmaster.formats.summaries import FOLDER, INDEX

_REMOVED = Exists(JobCleared.objects.filter(job=OuterRef("job"), files_attempt__gte=OuterRef("attempt")))


@dataclass(frozen=True)
class OutputsSummary:
    """How many files an attempt has, and how many bytes they are."""

    attempt: int
    files: int
    size: int
    has_summaries: bool = False
    """Whether there is more than scalars of `tf.summary`."""


def outputs_of(job_id: uuid.UUID, attempt: int) -> QuerySet[JobOutput]:
    """By name; none that a rule of retention removes, whose bytes may be gone already."""
    return JobOutput.objects.filter(~_REMOVED, job=job_id, attempt=attempt).order_by("name")


def first_outputs(job_id: uuid.UUID, attempt: int, most: int) -> list[JobOutput]:
    """Without what runners have taken out of event files, which is shown in another way."""
    return list(outputs_of(job_id, attempt).exclude(name__contains=f"{FOLDER}/")[:most])


def outputs_page(job_id: uuid.UUID, attempt: int, after: str, limit: int) -> tuple[list[JobOutput], str | None]:
    """Files whose names follow `after`, and the name to continue after (None: that was all)."""
    rows = list(outputs_of(job_id, attempt).filter(name__gt=after)[: limit + 1])
    page = rows[:limit]
    return page, page[-1].name if len(rows) > limit else None


def output_for(job_id: uuid.UUID, attempt: int, name: str) -> JobOutput:
    """One file. 404 where there is none."""
    found = JobOutput.objects.filter(job=job_id, attempt=attempt, name=name).first()
    if found is None:
        raise NotFound("This attempt of the job has no such output.", remedy="Its list of outputs names them.")
    return found


def event_files_of(job_id: uuid.UUID, attempt: int) -> list[JobOutput]:
    """The event files of all tasks, by name: what TensorBoard reads."""
    return list(outputs_of(job_id, attempt).filter(has_events=True))


def stored_file(output: JobOutput) -> StoredFile:
    """Where its bytes lie: in one object, or in several one after the other."""
    first, *more = [str(one["key"]) for one in output.segments]
    return StoredFile(output.name, output.size, "", first, tuple(more))


def stored_files(job_id: uuid.UUID, attempt: int) -> Iterator[StoredFile]:
    """All files of the attempt as they are now."""
    return map(stored_file, outputs_of(job_id, attempt).iterator(chunk_size=500))


def signed_address(output: JobOutput, *, content_type: str = "") -> str | None:
    """A short-lived address of its bytes; None where they lie in several objects, which only the portal puts
    together."""
    if len(output.segments) > 1:
        return None
    filename = output.name.rpartition("/")[2]
    return storage().read_url(
        output.segments[0]["key"], ADDRESS_LIFE, filename=filename, content_type=content_type, audience=audience()
    )


def outputs_summary(job_id: uuid.UUID) -> OutputsSummary | None:
    """Of the newest attempt that has any; None where none has. One query."""
    rows = JobOutput.objects.filter(~_REMOVED, job=job_id).values("attempt")
    indexes = Count("pk", filter=Q(name__endswith=f"{FOLDER}/{INDEX}"))
    counted = rows.annotate(files=Count("pk"), bytes=Sum("size"), indexes=indexes).order_by("-attempt").first()
    if counted is None:
        return None
    return OutputsSummary(counted["attempt"], counted["files"], counted["bytes"], counted["indexes"] > 0)
