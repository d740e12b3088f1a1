"""Remove what ended jobs left when it is older than the rules say: one pass, over some jobs of each namespace.

What goes is decided in one transaction for each namespace, with the jobs locked: who pins one of them meanwhile is
waited for, or finds it gone. There, too, is the audit event with the counts, so that a crash neither loses nor repeats
one. The bytes go afterwards: what is interrupted, the next pass continues. A whole job goes as one that is deleted by
hand (`removal`). Not here: what a rule means (`yardmaster.lifecycle.retention`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from apps.audit.services import record
from apps.jobs.models import Job, JobCleared, JobEvent, JobOutput
from apps.jobs.services import job_delete_unused
from apps.jobs.state.log_charges import log_release
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.results import checkpoints_drop
from apps.jobs.state.retention import FILES, OVER, Candidate, Rules, due
from apps.namespaces.models import Namespace
from apps.stores import log_store
from apps.uploads.services import uploads_discard_files
from yardmaster.errors import Unavailable
from yardmaster.lifecycle.retention import Kind, Rule
from yardmaster.logs.expiry import attempts_delete

log = logging.getLogger(__name__)

AT_ONCE = 200
"""Jobs of one namespace and kind in one pass: all of it is one transaction."""
LOOKED_AT = 5_000
"""Jobs that are old enough, of which so many may be spared, in one pass over a namespace."""
SECONDS = 40.0
"""After which a pass ends; the next one continues."""
CONTINUED = 500
ROWS_AT_ONCE = 2_000
UPLOADS_AT_ONCE = 200
NAMED = 20


def retention_sweep(now: datetime) -> int:
    """One pass: decide what goes, and remove the bytes of what was decided, now or in an earlier pass. Returns how many
    jobs something was decided for. May be repeated, and run twice at once."""
    ends, count = time.monotonic() + SECONDS, 0
    rules = Rules()
    for kind in Kind if rules else ():
        for namespace in _in_turn(rules, kind, now):
            if time.monotonic() > ends:
                break
            count += _decide(namespace, kind, rules, now)
    retention_continue(ends)
    return count


def retention_continue(ends: float) -> None:
    """Remove the bytes of what passes have decided, the oldest decision first, until the moment `ends`."""
    for row in _undone(Kind.LOGS):
        if time.monotonic() > ends:
            return
        _finish_logs(row)
    for row in _undone(Kind.FILES):
        if time.monotonic() > ends:
            return
        _finish_files(row)


def _in_turn(rules: Rules, kind: Kind, now: datetime) -> Iterable[Namespace]:
    """The namespaces that a rule meets and that have a job which may be old enough, in an order of which the first
    changes from pass to pass: a pass that ends early does not always leave out the same."""
    days = rules.fewest_days(kind)
    if days is None:
        return []
    old = Job.objects.filter(namespace=OuterRef("pk"), decided_at__lte=now - timedelta(days=days))
    found = list(rules.met(kind).filter(Exists(old)).order_by("pk"))
    at = int(now.timestamp() // 60) % max(1, len(found))
    return found[at:] + found[:at]


def _decide(namespace: Namespace, kind: Kind, rules: Rules, now: datetime) -> int:
    """Decide for some jobs of the namespace, and write it down. Returns for how many."""
    rule = rules.of(namespace, kind)
    if rule is None:
        return 0
    ids = [one.pk for one in _chosen(Job.objects.filter(namespace=namespace), rule, namespace, now)]
    if not ids:
        return 0
    with transaction.atomic():
        locked = Job.objects.select_for_update(no_key=True, skip_locked=True).filter(OVER, pk__in=ids)
        mine = list(locked.order_by("pk").values_list("pk", flat=True))
        # Once more, now that no one can pin, retry or delete them: what was read before may have changed.
        going = _chosen(Job.objects.filter(pk__in=mine), rule, namespace, now)
        if going:
            _write(namespace, kind, going, rules.words(namespace, kind), now)
    return len(going)


def _chosen(jobs: QuerySet[Job], rule: Rule, namespace: Namespace, now: datetime) -> list[Candidate]:
    found: list[Candidate] = []
    for one in due(jobs, rule, [namespace.pk], now, LOOKED_AT):
        found.append(one)
        if len(found) == AT_ONCE:
            break
    return found


def _write(namespace: Namespace, kind: Kind, going: Sequence[Candidate], words: str, now: datetime) -> None:
    """Belongs into the transaction that has the jobs locked."""
    rows = Job.objects.for_lists().select_related("namespace").in_bulk([one.pk for one in going])
    jobs = [rows[one.pk] for one in going]
    names = [job.name[:80] for job in jobs[:NAMED]]
    facts = {"kind": kind.value, "jobs": len(jobs), "bytes": sum(one.size for one in going), "names": names}
    record(None, "retention.remove", f"namespace:{namespace.pk}", namespace=namespace, rule=words, **facts)
    if kind is Kind.JOBS:
        for job in jobs:
            job_delete_unused(job)
        return
    fields = [f"{kind.value}_{name}" for name in ("at", "attempt", "rule", "done_at")]
    cleared = [JobCleared(job=job, **dict(zip(fields, (now, job.attempt, words, None), strict=True))) for job in jobs]
    JobCleared.objects.bulk_create(cleared, update_conflicts=True, unique_fields=["job"], update_fields=fields)
    message = f"{kind.value.capitalize()} are {words}."
    JobEvent.objects.bulk_create(
        JobEvent(job=job, at=now, attempt=job.attempt, kind=f"{kind.value}_removed", message=message) for job in jobs
    )
    if kind is Kind.FILES:
        checkpoints_drop([job.pk for job in jobs])
    for job in jobs:
        job_changed(job, is_detail=True)


def _undone(kind: Kind) -> list[JobCleared]:
    rows = JobCleared.objects.filter(**{f"{kind.value}_at__isnull": False, f"{kind.value}_done_at": None})
    return list(rows.select_related("job").order_by(f"{kind.value}_at", "pk")[:CONTINUED])


def _finish_logs(row: JobCleared) -> None:
    try:
        attempts_delete(log_store(), row.job_id, row.logs_attempt)
    except Unavailable as error:
        log.warning("The log of job %s is removed later: %s", row.job_id, error)
        return
    with transaction.atomic():
        log_release(row.job_id, row.job.namespace_id, row.logs_attempt)
        _done(row, Kind.LOGS)


def _finish_files(row: JobCleared) -> None:
    """First what is shown of them, then their bytes: what is named is always there."""
    rows = JobOutput.objects.filter(job=row.job_id, attempt__lte=row.files_attempt)
    ids = list(rows.values_list("pk", flat=True)[:ROWS_AT_ONCE])
    JobOutput.objects.filter(pk__in=ids).delete()
    if len(ids) == ROWS_AT_ONCE or row.files_at is None:
        return
    try:
        is_done = uploads_discard_files(row.job_id, FILES, row.files_at, UPLOADS_AT_ONCE)
    except Unavailable as error:
        log.warning("The files of job %s are removed later: %s", row.job_id, error)
        return
    if is_done:
        _done(row, Kind.FILES)


def _done(row: JobCleared, kind: Kind) -> None:
    """Unless more was decided meanwhile: then the next pass continues."""
    name = kind.value
    mine = JobCleared.objects.filter(pk=row.pk, **{f"{name}_attempt": getattr(row, f"{name}_attempt")})
    mine.update(**{f"{name}_done_at": timezone.now()})
