"""Which jobs a TensorBoard or a Spark history shows, and which of their event files its task has not yet seen.

Each file stands below a folder of its job, and of its attempt if that is not the first. A file's bytes are those of its
segments one after the other (`apps.jobs.state.outputs`), so what was fetched once is only added to.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.errors import Invalid
from apps.jobs.models import Job, JobOutput
from apps.jobs.selectors import UNFINISHED
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.workbench.models import Kind, WorkbenchSession
from yardmaster.errors import Problem
from yardmaster.job.spec import Strategy
from yardmaster.storage.base import Audience
from yardmaster_runner.spark.cluster import EVENTS

MOST_JOBS = 200
"""That one TensorBoard shows: of a namespace with more, the newest ones with event files."""
FILES_AT_ONCE = 200
WAIT = 2.0
"""Seconds until the task asks again."""
OVERLAP = timedelta(seconds=5)
"""Files written by transactions that began earlier and were committed later are found by looking back so far."""
WATCHED = timedelta(seconds=30)
_RENEWED = timedelta(seconds=15)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Cursor:
    """Up to where files were listed: those written after `at`, and at that moment those behind `pk`."""

    at: datetime
    pk: int = 0

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(f"{self.at.timestamp():.6f} {self.pk}".encode()).decode()


START = Cursor(datetime(2000, 1, 1, tzinfo=UTC))


def cursor_in(text: str) -> Cursor:
    """The cursor that an earlier answer gave; an empty text is the start. Raises `Invalid`."""
    if not text:
        return START
    try:
        at, pk = base64.b64decode(text[:100], altchars=b"-_", validate=True).decode("ascii").split(" ")
        return Cursor(datetime.fromtimestamp(float(at), UTC), int(pk))
    except (binascii.Error, ValueError, OverflowError, OSError) as error:
        message = "This is not a cursor of an earlier answer."
        raise Invalid([Problem("cursor", "invalid", message, "Leave it out to start again.", text[:100])]) from error


def jobs_shown(session: WorkbenchSession) -> list[Job]:
    """The jobs of a TensorBoard that are there; of a whole namespace those with event files, and those that may come to
    have some. The latter take no place of the former, so that a long queue hides no curves."""
    jobs = Job.objects.for_lists().filter(namespace=session.namespace_id)
    if session.job_ids:
        return list(jobs.filter(pk__in=session.job_ids, deleted_at__isnull=True).order_by("-pk")[:MOST_JOBS])
    begun = jobs.filter(_MAY_SHOW, ~_HAS_EVENTS, phase__in=UNFINISHED)
    return [job for rows in (jobs.filter(_SHOWN), begun) for job in rows.order_by("-place")[:MOST_JOBS]]


_MAY_SHOW = Q(deleted_at__isnull=True) & ~Q(strategy=Strategy.SERVICE.value)
_HAS_EVENTS = Q(Exists(JobOutput.objects.filter(job=OuterRef("pk"), has_events=True)))
_SHOWN = _MAY_SHOW & _HAS_EVENTS
_READS = {
    Kind.TENSORBOARD.value: Q(has_events=True),
    # The second where the tasks of a job share no log directory: then an output has its task's name in front.
    Kind.SPARK_HISTORY.value: Q(name__startswith=f"{EVENTS}/") | Q(name__startswith=f"driver-0/{EVENTS}/"),
}


@dataclass(frozen=True)
class Selection:
    """A TensorBoard of a whole namespace that has more jobs with event files than one shows."""

    jobs: int
    of: int

    @property
    def message(self) -> str:
        return f"Shows the newest {self.jobs} of {self.of} jobs. Choose jobs in the list of jobs to compare others."


def selections(sessions: Iterable[WorkbenchSession]) -> Mapping[uuid.UUID, Selection]:
    """Which of these sessions show a part of their jobs, by their IDs. One query at most."""
    whole = [one for one in sessions if not one.is_personal and not one.job_ids]
    if not whole:
        return {}
    rows: QuerySet[Job] = Job.objects.filter(_SHOWN, namespace__in={one.namespace_id for one in whole})
    found = rows.order_by().values("namespace").annotate(count=Count("pk")).filter(count__gt=MOST_JOBS)
    counts = dict(found.values_list("namespace", "count"))
    return {one.pk: Selection(MOST_JOBS, counts[one.namespace_id]) for one in whole if one.namespace_id in counts}


def folder_of(job: Job) -> str:
    """The job's folder: its name and the end of its ID, in characters that paths of every kind may have."""
    name = _UNSAFE.sub("-", job.name).strip("-.")[:60] or "job"
    return f"{name}-{job.pk.hex[-6:]}"


def listing(session: WorkbenchSession, cursor: Cursor, now: datetime, only: Collection[str] = ()) -> dict[str, Any]:
    """What the session's task is told: all folders that are shown now, and the files that changed after the cursor.
    `only` names folders, whose files alone are listed. `selection`, what it says of jobs that are left out, comes at
    the start of all alone: it costs a count."""
    folders = {job.pk: folder_of(job) for job in jobs_shown(session)}
    listed = [job for job, folder in folders.items() if not only or folder in only]
    files = JobOutput.objects.filter(_READS[session.kind], job__in=listed)
    behind = Q(updated_at__gt=cursor.at) | Q(updated_at=cursor.at, pk__gt=cursor.pk)
    page = list(files.filter(behind).order_by("updated_at", "pk")[: FILES_AT_ONCE + 1])
    has_more = len(page) > FILES_AT_ONCE
    page = page[:FILES_AT_ONCE]
    reached = Cursor(page[-1].updated_at, page[-1].pk) if page else cursor
    if not has_more and reached.at > now - OVERLAP:
        reached = Cursor(now - OVERLAP)
    return {
        "cursor": str(reached),
        "more": has_more,
        "wait": WAIT,
        "selection": getattr(selections([session]).get(session.pk), "message", "")
        if cursor == START and not only
        else "",
        "folders": sorted(folders.values()),
        "files": [_file(one, folders) for one in page],
    }


def _file(output: JobOutput, folders: Mapping[uuid.UUID, str]) -> dict[str, Any]:
    parts = [folders[output.job_id], *([f"attempt-{output.attempt}"] if output.attempt != 1 else []), output.name]
    return {"path": "/".join(parts), "size": output.size, "segments": _segments(output.segments)}


def _segments(segments: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    def url(key: str) -> str:
        return storage().read_url(key, ADDRESS_LIFE, audience=Audience.TASKS)

    return [{"start": one["start"], "size": one["size"], "url": url(one["key"])} for one in segments]


def watch(session: WorkbenchSession, now: datetime | None = None) -> None:
    """Note that the jobs which run are looked at: their tasks then upload event files more often. Of many calls few
    write."""
    now = now or timezone.now()
    running = Job.objects.filter(namespace=session.namespace_id, phase__in=UNFINISHED)
    if session.job_ids:
        running = running.filter(pk__in=session.job_ids)
    stale = Q(watched_until__isnull=True) | Q(watched_until__lt=now + _RENEWED)
    running.filter(_MAY_SHOW, stale).update(watched_until=now + WATCHED)
