"""Remove what ended jobs left when it is older than the rules say: one pass, over some jobs of each namespace.

What goes is decided in one transaction for each namespace, with the jobs locked: who pins one of them meanwhile is
waited for, or finds it gone. There, too, is the audit event with the counts, so that a crash neither loses nor repeats
one. The bytes go afterwards: what is interrupted, the next pass continues. A whole job goes as one that is deleted by
hand (`removal`). Not here: what a rule means (`yardmaster.lifecycle.retention`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.audit.services import record
from apps.jobs.models import Job, JobCleared, JobEvent, JobOutput
from apps.jobs.services import job_delete_unused
from apps.jobs.state.log_charges import log_release
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.results import checkpoints_drop
from apps.jobs.state.retention import FILES, OVER, Candidate, Rules, due, rules_locked
from apps.namespaces.models import Namespace
from apps.stores import log_store
from apps.uploads.services import uploads_discard_files
from yardmaster.errors import Unavailable
from yardmaster.lifecycle.retention import Kind, Rule
from yardmaster.logs.expiry import attempts_delete

log = logging.getLogger(__name__)
T = TypeVar("T")

AT_ONCE = 200
"""Jobs of one namespace and kind in one pass: all of it is one transaction."""
LOOKED_AT = 5_000
"""Jobs that go by what the database says, in one pass over a namespace."""
SECONDS = 40.0
"""After which a pass ends; the next one continues."""
FIRST_SECONDS = 15.0
"""Of these, for the bytes of earlier decisions, before anything else is decided."""
DECIDING_SECONDS = 15.0
TURN_SECONDS = 300
"""About one pass: with each, another kind and another namespace is the first."""
PAGE = 500
ROWS_AT_ONCE = 2_000
UPLOADS_AT_ONCE = 200
NAMED = 20


def retention_sweep(now: datetime) -> int:
    """One pass: remove the bytes of what earlier passes decided, decide what else goes, and begin to remove that.
    Returns how many jobs something was decided for. May be repeated, and run twice at once. What fails with one
    namespace or job is logged, and ends nothing else."""
    begun, turn = time.monotonic(), int(now.timestamp()) // TURN_SECONDS
    retention_continue(begun + FIRST_SECONDS, turn)
    count = _decide_all(time.monotonic() + DECIDING_SECONDS, turn, now)
    if count:
        retention_continue(begun + SECONDS, turn)
    return count


def retention_continue(ends: float, turn: int = 0) -> None:
    """Remove the bytes of what passes have decided, until the moment `ends`: in one turn the oldest decision first, in
    the next the newest, so that those which fail, or take long, do not keep others for ever."""
    for kind in _turned([Kind.LOGS, Kind.FILES], turn):
        finish = _finish_logs if kind is Kind.LOGS else _finish_files
        for row in _undone(kind, is_newest_first=turn // 2 % 2 == 1):
            if time.monotonic() > ends:
                return
            try:
                finish(row)
            except Exception:
                log.exception("The %s of job %s are removed later.", kind.value, row.job_id)


def _decide_all(ends: float, turn: int, now: datetime) -> int:
    """Decide for some jobs of each namespace, until the moment `ends`. Returns for how many."""
    rules, count = Rules(), 0
    for kind in _turned(list(Kind), turn) if rules else ():
        for namespace in _turned(_met(rules, kind, now), turn // len(Kind)):
            if time.monotonic() > ends:
                return count
            try:
                count += _decide(namespace, kind, rules, now)
            except Exception:
                log.exception("What goes of the %s of namespace %s is decided later.", kind.value, namespace.pk)
    return count


def _turned(all_of_it: Sequence[T], turn: int) -> Sequence[T]:
    """In an order of which the first changes from turn to turn: a pass that ends early does not always leave out the
    same."""
    at = turn % max(1, len(all_of_it))
    return [*all_of_it[at:], *all_of_it[:at]]


def _met(rules: Rules, kind: Kind, now: datetime) -> list[Namespace]:
    """The namespaces that a rule meets and that have a job which may be old enough."""
    days = rules.fewest_days(kind)
    if days is None:
        return []
    old = Job.objects.filter(namespace=OuterRef("pk"), decided_at__lte=now - timedelta(days=days))
    return list(rules.met(kind).filter(Exists(old)).order_by("pk"))


def _decide(namespace: Namespace, kind: Kind, rules: Rules, now: datetime) -> int:
    """Decide for some jobs of the namespace, and write it down. Returns for how many."""
    rule = rules.of(namespace, kind)
    jobs = Job.objects.filter(namespace=namespace)
    ids = [one.pk for one in _chosen(jobs, rule, namespace, now)] if rule else []
    if not ids:
        return 0
    with transaction.atomic():
        # Not by what the pass has read at its begin: a rule that was reset meanwhile removes nothing more.
        now_there, rules = rules_locked(namespace.pk, kind)
        rule = rules.of(now_there, kind) if now_there else None
        if now_there is None or rule is None:
            return 0
        locked = Job.objects.select_for_update(no_key=True, skip_locked=True).filter(OVER, pk__in=ids)
        mine = list(locked.order_by("pk").values_list("pk", flat=True))
        # Once more, now that no one can pin, retry or delete them: what was read before may have changed.
        going = _chosen(jobs.filter(pk__in=mine), rule, now_there, now)
        return _write(now_there, kind, going, rules.words(now_there, kind), now) if going else 0


def _chosen(jobs: QuerySet[Job], rule: Rule, namespace: Namespace, now: datetime) -> list[Candidate]:
    found: list[Candidate] = []
    for one in due(jobs, rule, [namespace.pk], now, LOOKED_AT):
        found.append(one)
        if len(found) == AT_ONCE:
            break
    return found


def _write(namespace: Namespace, kind: Kind, going: Sequence[Candidate], words: str, now: datetime) -> int:
    """Belongs into the transaction that has the jobs locked. Returns for how many."""
    rows = Job.objects.for_lists().select_related("namespace").in_bulk([one.pk for one in going])
    if kind is Kind.JOBS:
        going = [one for one in going if _deleted(rows[one.pk])]
    jobs = [rows[one.pk] for one in going]
    if jobs:
        names = [job.name[:80] for job in jobs[:NAMED]]
        facts = {"kind": kind.value, "jobs": len(jobs), "bytes": sum(one.size for one in going), "names": names}
        record(None, "retention.remove", f"namespace:{namespace.pk}", namespace=namespace, rule=words, **facts)
    if kind is not Kind.JOBS:
        _clear(jobs, kind, words, now)
    return len(jobs)


def _deleted(job: Job) -> bool:
    """Delete the whole job. False where that fails: the others of its namespace go all the same."""
    try:
        with transaction.atomic():
            return job_delete_unused(job)
    except Exception:
        log.exception("The job %s is removed later.", job.pk)
        return False


def _clear(jobs: Sequence[Job], kind: Kind, words: str, now: datetime) -> None:
    """Write down that the log or the files of the jobs go: from now on no one is shown them."""
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


def _undone(kind: Kind, *, is_newest_first: bool) -> Iterator[JobCleared]:
    """Each decision of which bytes are left, once, page by page: none takes the places of others."""
    name = f"{kind.value}_at"
    rows = JobCleared.objects.filter(**{f"{name}__isnull": False, f"{kind.value}_done_at": None})
    rows = rows.select_related("job").order_by(*([f"-{name}", "-pk"] if is_newest_first else [name, "pk"]))
    beyond, after = "lt" if is_newest_first else "gt", Q()
    while page := list(rows.filter(after)[:PAGE]):
        yield from page
        at = getattr(page[-1], name)
        after = Q(**{f"{name}__{beyond}": at}) | Q(**{name: at, f"pk__{beyond}": page[-1].pk})


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
