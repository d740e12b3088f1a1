"""Choosing which mails one gets, recording that one is due, and what was sent.

Verdicts are events of the outbox, so that those who write them know nothing of mail. Not here: sending (`worker`).
"""

from __future__ import annotations

from datetime import datetime

from apps.accounts.models import User
from apps.dispatch.messages import SEND_NOTICE, enqueue
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import ATTEMPT_DECIDED, deliver
from apps.jobs.models import OF_GROUP, Job
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.models import Event, MailChoices, Notice, WaitLimit
from yardmaster.ids import new_id
from yardmaster.lifecycle.phases import Phase


def choices_of(user: User) -> MailChoices:
    """The user's choices; the defaults, unsaved, where none were made."""
    return MailChoices.objects.filter(user=user).first() or MailChoices(user=user)


def notices_of(user: User, most: int) -> list[Notice]:
    """The newest mails to the user, with their jobs."""
    visible = Notice.objects.filter(
        user=user, job__deleted_at__isnull=True, job__namespace__in=namespaces_visible(user)
    )
    return list(visible.select_related("job").defer("job__spec", "job__waiting").order_by("-pk")[:most])


_EVENT_OF = {Phase.SUCCEEDED: Event.SUCCEEDED, Phase.FAILED: Event.FAILED, Phase.STOPPED: Event.STOPPED}


def choices_set(
    *,
    user: User,
    on_success: bool,
    on_failure: bool,
    on_stop: bool,
    on_wait: bool,
    wait_minutes: int,
    with_log: bool,
) -> MailChoices:
    """What the user wants to be notified of from now on."""
    choices, _ = MailChoices.objects.update_or_create(
        user=user,
        defaults={
            "on_success": on_success,
            "on_failure": on_failure,
            "on_stop": on_stop,
            "on_wait": on_wait,
            "wait_minutes": WaitLimit(wait_minutes),
            "with_log": with_log,
        },
    )
    return choices


def verdicts_note() -> int:
    """Write a notice for each verdict since the last call whose owner wants one. Returns how many verdicts there were;
    may be repeated."""
    return deliver(ATTEMPT_DECIDED, _note_verdict)


def _note_verdict(verdict: OutboxEvent) -> None:
    job = Job.objects.for_lists().filter(pk=verdict.subject).first()
    # Else it was deleted since; of one of a group its owner hears with the group.
    if job is not None and not (job.request_key or "").startswith(OF_GROUP):
        job.attempt = verdict.facts["attempt"]  # the owner may have begun another since
        notice_write(job, _EVENT_OF[Phase(verdict.facts["phase"])], datetime.fromisoformat(verdict.facts["at"]))


def notice_write(job: Job, event: Event, now: datetime) -> None:
    """Notify the job's owner of the event, once per attempt, if they can and want to be notified."""
    owner = User.objects.filter(pk=job.owner_id, is_active=True).exclude(email="").first()
    if owner is None or not choices_of(owner).wants(event):
        return
    notice = Notice(
        id=new_id(), user=owner, job_id=job.pk, attempt=job.attempt, event=event, created_at=now, due_at=now
    )
    # The constraint decides who was first: writing it twice is no error, and does not happen.
    Notice.objects.bulk_create([notice], ignore_conflicts=True)
    enqueue(SEND_NOTICE, notice.pk)
