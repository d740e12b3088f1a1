"""Recording that the owner of a job is to be told of something, and what was sent.

Verdicts are events of the outbox, so that those who write them know nothing of mail. Not here: what people choose
(`choosing`), sending (`worker`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.dispatch.messages import SEND_NOTICE, enqueue
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import ATTEMPT_DECIDED, deliver
from apps.jobs.models import OF_GROUP, Job
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.choosing import KIND_OF
from apps.notifications.models import Event, Note, Notice
from apps.notifications.telling import how_notified, note_write
from apps.webhooks.fanout import body_of_event
from yardmaster.ids import new_id
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase
from yardmaster.outgoing.notices import Way


def notices_of(user: User, most: int) -> list[Notice]:
    """The newest mails to the user, with their jobs."""
    visible = Notice.objects.filter(
        user=user, job__deleted_at__isnull=True, job__namespace__in=namespaces_visible(user)
    ).exclude(sent_by="none")
    return list(visible.select_related("job").defer("job__spec", "job__waiting").order_by("-pk")[:most])


_EVENT_OF = {Phase.SUCCEEDED: Event.SUCCEEDED, Phase.FAILED: Event.FAILED, Phase.STOPPED: Event.STOPPED}


def verdicts_note() -> int:
    """Write a notice for each verdict since the last call whose owner wants one. Returns how many verdicts there were;
    may be repeated."""
    return deliver(ATTEMPT_DECIDED, _note_verdict)


def _note_verdict(verdict: OutboxEvent) -> None:
    job = Job.objects.for_lists().select_related("namespace").filter(pk=verdict.subject).first()
    # Else it was deleted since; of one of a group its owner hears with the group.
    if job is not None and not (job.request_key or "").startswith(OF_GROUP):
        job.attempt = verdict.facts["attempt"]  # the owner may have begun another since
        notice_write(job, _EVENT_OF[Phase(verdict.facts["phase"])], datetime.fromisoformat(verdict.facts["at"]))


def notice_write(job: Job, event: Event, now: datetime) -> None:
    """Tell the job's owner of the event, once per attempt, as they have chosen and if they can be told."""
    owner = User.objects.filter(pk=job.owner_id, is_active=True).first()
    if owner is None:
        return
    kind = kind_of(job, event)
    how = how_notified(owner, kind, job.namespace, now)
    if how is None:
        if event is Event.WAITS:  # it is looked for again and again (`worker`): this is noted, and told no one
            _notice_add(owner, job, event, now, sent_by="none")
        return
    is_mail = how.way is Way.MAIL and how.due is None
    sent_by = "" if is_mail else "digest" if how.due else "chat"
    with transaction.atomic():
        notice = _notice_add(owner, job, event, now, sent_by=sent_by)
        if is_mail:
            enqueue(SEND_NOTICE, notice.pk)
        else:
            key = f"{kind} {job.pk} {job.attempt}"
            note_write(owner, how, Note(key=key, kind=kind, namespace=job.namespace, body=_body(job, event, now)), now)


def _notice_add(owner: User, job: Job, event: Event, now: datetime, *, sent_by: str) -> Notice:
    notice = Notice(
        id=new_id(), user=owner, job_id=job.pk, attempt=job.attempt, event=event, created_at=now,
        due_at=None if sent_by else now, sent_by=sent_by,
    )  # fmt: skip
    # The constraint decides who was first: writing it twice is no error, and does not happen.
    Notice.objects.bulk_create([notice], ignore_conflicts=True)
    return notice


def kind_of(job: Job, event: Event) -> str:
    """What people choose for it. A service that ends without a failure is a session, or a served model."""
    is_session = job.strategy == Strategy.SERVICE.value and event in (Event.STOPPED, Event.SUCCEEDED)
    return "session.ended" if is_session else KIND_OF[event]


def _body(job: Job, event: Event, now: datetime) -> dict[str, Any]:
    """As a webhook of the job's namespace would be told."""
    about = {"name": job.name, "owner": job.owner_id, "attempt": job.attempt, "phase": job.phase}
    if event in (Event.FAILED, Event.WAITS):
        about |= {"reason": job.reason, "message": job.message, "remedy": job.remedy}
    facts = {"id": str(new_id()), "event": KIND_OF[event], "at": now.isoformat(), "kind": "job", "about": about}
    return body_of_event(job.pk, facts, job.namespace)
