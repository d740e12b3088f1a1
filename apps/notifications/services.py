"""Choosing which mails one gets, and writing down that one is due.

A notice joins the transaction of what it tells of: a verdict that is rolled back was never told. Not here: sending
(`sending`), so that those who write verdicts know nothing of mail.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from apps.accounts.models import User
from apps.jobs.wake import wake_notice
from apps.notifications.models import Event, MailChoices, Notice, WaitLimit
from apps.notifications.selectors import choices_of
from yardmaster.ids import new_id
from yardmaster.phases import Phase

if TYPE_CHECKING:
    from apps.jobs.models import Job

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
    """What the user wants to be told from now on."""
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


def attempt_ended(job: Job, phase: Phase, now: datetime) -> None:
    """The job's attempt has its verdict: whoever launched it is told, if they want to. In the verdict's transaction."""
    notice_write(job, _EVENT_OF[phase], now)


def notice_write(job: Job, event: Event, now: datetime) -> None:
    """Have the job's owner told of the event, once per attempt, if they can and want to be told."""
    owner = User.objects.filter(pk=job.owner_id, is_active=True).exclude(email="").first()
    if owner is None or not choices_of(owner).wants(event):
        return
    notice = Notice(
        id=new_id(), user=owner, job_id=job.pk, attempt=job.attempt, event=event, created_at=now, due_at=now
    )
    # The constraint decides who was first: telling somebody twice is never an error, and never happens.
    Notice.objects.bulk_create([notice], ignore_conflicts=True)
    wake_notice(notice.pk)
