"""What people write on a job: its name, a note, tags; whether it is archived; and what each of them has pinned.

None of it changes what runs. Not here: where it is shown (`job_list`, the pages).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.api.allowances import take
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound, TooMany
from apps.jobs.models import Job, JobEvent, JobPin, JobTag
from apps.jobs.selectors import refuse_personal
from apps.jobs.state.nudges import job_changed
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, require_role
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem
from yardmaster.lifecycle.phases import FINAL, Phase

MOST_TAGS = 20
LONGEST_TAG = 40
LONGEST_NOTE = 4_000
MOST_PINS = 50
MOST_SUGGESTED = 100
CHANGES_PER_MINUTE = 600
NOTED = 100
"""Characters of a note that the audit keeps."""


def job_change(
    *,
    user: User,
    job: Job,
    name: str | None = None,
    note: str | None = None,
    tags: Iterable[str] | None = None,
    archived: bool | None = None,
) -> Job:
    """Change what is given; None leaves a value as it is. Members may. May be repeated.

    Raises `Invalid` with every problem found, and `Conflict` where a job that has not ended would be archived.
    """
    require_role(user, job.namespace, Role.MEMBER)
    refuse_personal(user, job)
    _refuse_often(user)
    wanted = _checked(name, note, tags)
    with transaction.atomic():
        locked = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
        if archived and Phase(locked.phase) not in FINAL:
            raise Conflict("The job has not ended, so it cannot be archived.", remedy="Stop it first, or wait.")
        facts = _fields_written(locked, wanted, archived)
        if facts:
            record(user, "job.change", f"job:{job.pk}", namespace=job.namespace, **facts)
            job_changed(job)
        if "name" in facts:
            message = f"{user.username} renamed the job from {facts['name_before']} to {facts['name']}."
            JobEvent.objects.create(job=job, at=timezone.now(), attempt=locked.attempt, kind="renamed", message=message)
    job.refresh_from_db()
    return job


def _fields_written(job: Job, wanted: dict[str, Any], archived: bool | None) -> dict[str, Any]:
    """Write the columns that change. Returns what they are and were."""
    facts: dict[str, Any] = {}
    for field in ("name", "note", "tags"):
        if field in wanted and wanted[field] != getattr(job, field):
            facts |= {field: _noted(field, wanted[field]), f"{field}_before": _noted(field, getattr(job, field))}
            setattr(job, field, wanted[field])
    if archived is not None and archived != (job.archived_at is not None):
        facts |= {"archived": archived, "archived_before": not archived}
        job.archived_at = timezone.now() if archived else None
    job.save(update_fields=["name", "note", "tags", "archived_at"])
    if "tags" in facts:
        JobTag.objects.filter(job=job).delete()
        JobTag.objects.bulk_create([JobTag(job=job, namespace_id=job.namespace_id, name=one) for one in job.tags])
    return facts


def _noted(field: str, value: Any) -> Any:
    """As the audit has it: of a long note the beginning and how long it is."""
    if field == "note" and len(value) > NOTED:
        return f"{value[:NOTED]}… ({len(value)} characters)"
    return value


def _refuse_often(user: User) -> None:
    """Raises `TooMany`. Archiving all that a page can choose is allowed, several times over."""
    taken = take([Taking(Allowance("job changes", CHANGES_PER_MINUTE, 60), f"user {user.pk}")])
    if taken.over is not None:
        detail = f"You may change {CHANGES_PER_MINUTE} jobs a minute."
        raise TooMany(detail, "rate_limited", wait=60)


def _checked(name: str | None, note: str | None, tags: Iterable[str] | None) -> dict[str, Any]:
    """What is given, as it is stored. Raises `Invalid`."""
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    if name is not None:
        found["name"], longest = name.strip(), settings.YARDMASTER_SPEC_LIMITS.name
        if not 1 <= len(found["name"]) <= longest or not found["name"].isprintable():
            message = f"A name has 1 to {longest} printable characters, not only spaces."
            problems.append(Problem("name", "bad_value", message, "Give the job a short name.", name[:longest]))
    if note is not None:
        found["note"] = note.replace("\r\n", "\n").strip()
        if len(found["note"]) > LONGEST_NOTE:
            message = f"A note has {LONGEST_NOTE} characters at most, this one {len(found['note'])}."
            problems.append(Problem("note", "too_long", message, "Shorten it.", ""))
    if tags is not None:
        found["tags"], wrong = tags_checked(tags)
        problems += wrong
    if problems:
        raise Invalid(problems)
    return found


def tags_checked(tags: Iterable[str]) -> tuple[list[str], list[Problem]]:
    """The tags in small letters, each once, in order; and what is wrong with them."""
    found, problems = sorted({one.strip().casefold() for one in tags if one.strip()}), []
    for one in found:
        if len(one) > LONGEST_TAG or not one.isprintable() or "," in one:
            message = f"A tag has 1 to {LONGEST_TAG} printable characters and no comma."
            problems.append(Problem("tags", "bad_value", message, "Shorten it.", one[:LONGEST_TAG]))
    if len(found) > MOST_TAGS:
        message = f"A job has {MOST_TAGS} tags at most, and {len(found)} are given."
        problems.append(Problem("tags", "too_many", message, "Leave some out.", str(len(found))))
    return found, problems


def tags_known(namespace: Namespace) -> list[str]:
    """The tags that jobs of the namespace have, the commonest first."""
    rows = JobTag.objects.filter(namespace=namespace).values("name").annotate(count=Count("pk"))
    return [row["name"] for row in rows.order_by("-count", "name")[:MOST_SUGGESTED]]


def job_pin(*, user: User, job: Job) -> None:
    """Show it on top of the user's own list, and keep it from being removed for its age. May be repeated. Raises
    `Conflict` where too many are pinned, and `NotFound` where it was deleted meanwhile."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        # A pass that removes old jobs locks them: it sees the pin, or has decided before it.
        living = Job.objects.select_for_update(no_key=True).filter(pk=job.pk, deleted_at=None)
        if living.values_list("pk", flat=True).first() is None:
            raise NotFound()
        if pins_of(user).filter(job=job).exists():
            return
        if pins_of(user).count() >= MOST_PINS:
            raise Conflict(
                f"You have pinned {MOST_PINS} jobs, as many as are allowed.", "too_many_pins", remedy="Unpin some."
            )
        JobPin.objects.create(user=user, job=job)


def job_unpin(*, user: User, job: Job) -> None:
    """Not pinned: nothing changes."""
    pins_of(user).filter(job=job).delete()


def pins_of(user: User) -> QuerySet[JobPin]:
    """The user's own."""
    return JobPin.objects.filter(user=user)


def pinned(user: User, namespace_id: uuid.UUID | None) -> list[Job]:
    """What the user has pinned and may see, in one namespace or (None) in all, the newest job first."""
    jobs = Job.objects.for_lists().select_related("namespace", "owner").filter(pins__user=user, deleted_at=None)
    jobs = jobs.filter(namespace__in=namespaces_visible(user))
    jobs = jobs.filter(archived_at=None)
    if namespace_id is not None:
        jobs = jobs.filter(namespace_id=namespace_id)
    return list(jobs.order_by("-pk")[:MOST_PINS])
