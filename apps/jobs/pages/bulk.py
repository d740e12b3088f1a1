"""The same action for many jobs: what was done, and what was not and why. A refusal for one job affects no
other.

Not here: what the actions do (`services`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.accounts.models import User
from apps.errors import DomainError
from apps.jobs.labels import job_change, job_pin, job_unpin, pins_of
from apps.jobs.models import Job
from apps.jobs.services import job_delete, job_stop
from apps.namespaces.selectors import namespaces_visible
from yardmaster.lifecycle.phases import Phase, Wanted

MOST_AT_ONCE = 200


@dataclass(frozen=True)
class Outcome:
    """What became of the chosen jobs. `kept` has the reason beside each job that was left as it was."""

    done: tuple[Job, ...]
    kept: tuple[tuple[Job, str], ...]

    def reasons(self) -> list[tuple[str, int]]:
        """Why some were left as they were, the commonest reason first."""
        return Counter(reason for _, reason in self.kept).most_common()


def jobs_chosen(user: User, ids: Iterable[str], *, with_spec: bool = False) -> list[Job]:
    """Those of these jobs that the user may see, newest first; at most `MOST_AT_ONCE`. What is no id is passed over.
    `with_spec` is for few of them."""
    keys = {key for key in map(_key, ids) if key is not None}
    jobs = Job.objects.defer("waiting") if with_spec else Job.objects.for_lists()
    found = jobs.select_related("namespace", "owner").filter(pk__in=sorted(keys)[:MOST_AT_ONCE])
    return list(found.filter(namespace__in=namespaces_visible(user), deleted_at__isnull=True).order_by("-pk"))


def jobs_stop(user: User, jobs: Sequence[Job]) -> Outcome:
    """Want each of these jobs stopped. Ended ones, and those that stop already, stay as they are."""

    def stop(job: Job) -> None:
        job_stop(user=user, job=job)

    return _each(jobs, why_not_stopped, stop)


def jobs_delete(user: User, jobs: Sequence[Job]) -> Outcome:
    """Delete each of these jobs that is over."""

    def delete(job: Job) -> None:
        job_delete(user=user, job=job)

    return _each(jobs, why_not_deleted, delete)


def jobs_archive(user: User, jobs: Sequence[Job], *, archived: bool) -> Outcome:
    """Archive each of these jobs that has ended, or show them in lists again."""

    def archive(job: Job) -> None:
        job_change(user=user, job=job, archived=archived)

    return _each(jobs, lambda job: _why_not_archived(job, archived), archive)


def jobs_pin(user: User, jobs: Sequence[Job]) -> str:
    """Pin these jobs to the top of the user's list; where all are pinned, unpin them. Returns what was done."""
    mine = set(pins_of(user).values_list("job_id", flat=True))
    rest = [job for job in jobs if job.pk not in mine]
    with transaction.atomic():
        for job in rest or jobs:
            (job_pin if rest else job_unpin)(user=user, job=job)
    number = len(rest or jobs)
    return f"{'Pinned' if rest else 'Unpinned'} {number} job{'' if number == 1 else 's'}."


def _why_not_archived(job: Job, archived: bool) -> str:
    if (job.archived_at is not None) == archived:
        return "was already archived" if archived else "was not archived"
    return "" if Phase(job.phase).is_final or not archived else "has not ended: stop it first"


def why_not_stopped(job: Job) -> str:
    """Why stopping would do nothing; empty where it would."""
    if Phase(job.phase).is_final:
        return "had already ended"
    return "was already stopping" if job.wanted == Wanted.STOP.value else ""


def why_not_deleted(job: Job) -> str:
    """Why the job cannot be deleted now; empty where it can."""
    if not Phase(job.phase).is_final:
        return "has not ended: stop it first"
    return "" if job.is_over else "is still being cleaned up: try again in a minute"


def _each(jobs: Sequence[Job], why_not: Callable[[Job], str], do: Callable[[Job], None]) -> Outcome:
    done, kept = [], []
    for job in jobs:
        reason = why_not(job)
        if not reason:
            try:
                do(job)
            except DomainError as problem:
                reason = problem.detail
        if reason:
            kept.append((job, reason))
        else:
            done.append(job)
    return Outcome(tuple(done), tuple(kept))


def _key(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
