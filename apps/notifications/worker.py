"""Send the mails that are due. A mail server that is away only delays them; nothing waits for it but the worker.

Of any number of workers one sends a notice: it moves `due_at` ahead, by conditional update, before it speaks to the
mail server, and it never does that inside a transaction. Where a worker is killed between the server's yes and its own
note of it, the mail goes once more after `ON_THE_WAY`, under the same Message-ID: mail programs know it for the same.
"""

from __future__ import annotations

import logging
import smtplib
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F, QuerySet
from django.urls import reverse
from django.utils import timezone

from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import SEND_ANNOUNCEMENT, SEND_NOTICE, enqueue
from apps.jobs.models import OF_GROUP, Job, JobAttempt
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.announcements import webhooks_off_note
from apps.notifications.choosing import choices_of
from apps.notifications.digests import digests_note
from apps.notifications.letter import Facts, Letter, letter, off_line
from apps.notifications.models import Announcement, Event, Notice, WaitLimit
from apps.notifications.services import kind_of, notice_write, verdicts_note
from apps.notifications.unsubscribing import unsubscribe_url
from apps.stores import log_store
from yardmaster.backoff import delay
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role, known_role
from yardmaster.lifecycle.phases import Phase
from yardmaster.lifecycle.tracebacks import explain_traceback
from yardmaster.logs.keys import StreamKey
from yardmaster_runner.noise import is_noise

log = logging.getLogger(__name__)

Mail = Notice | Announcement

ON_THE_WAY = timedelta(minutes=10)
"""Longer than any conversation with a mail server takes, and than a message of the broker stays unacknowledged."""
FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=2)
LAST_LINES = 20
READ_LINES = 60
"""More than the mail has: what frameworks write at every start is left out."""
AT_ONCE = 200


def notices_sweep(now: datetime) -> None:
    """Write notices of verdicts whose message was lost and of jobs that wait for long, and wake what is due and was not
    sent: what messages lose, and what the mail server refused for now."""
    verdicts_note()
    webhooks_off_note()
    for limit in WaitLimit:
        _note_waiting(limit, now)
    digests_note(now)
    for notice_id in due(Notice.objects.all(), "due_at", now).values_list("pk", flat=True)[:AT_ONCE]:
        enqueue(SEND_NOTICE, notice_id)
    for mail_id in due(Announcement.objects.all(), "due_at", now).values_list("pk", flat=True)[:AT_ONCE]:
        enqueue(SEND_ANNOUNCEMENT, mail_id)


def _note_waiting(limit: WaitLimit, now: datetime) -> None:
    notified = Notice.objects.filter(event=Event.WAITS, attempt=F("job__attempt")).values("job_id")
    waiting = (
        Job.objects.filter(
            phase=Phase.QUEUED.value,
            deleted_at__isnull=True,
            queued_at__lte=now - timedelta(minutes=limit),
            owner__mail_choices__on_wait=True,
            owner__mail_choices__wait_minutes=limit,
            owner__is_active=True,
        )
        .exclude(request_key__startswith=OF_GROUP, request_key__isnull=False)
        .select_related("namespace")
    )
    for job in waiting.exclude(pk__in=notified).order_by("queued_at")[:AT_ONCE]:
        notice_write(job, Event.WAITS, now)


def notice_send(notice_id: uuid.UUID, *, clock: Callable[[], datetime] = timezone.now) -> None:
    """Send one notice, if it is due and no other worker is sending it. Repeats harmlessly."""
    now = clock()
    if claim_due(Notice.objects.filter(pk=notice_id), "due_at", now, ON_THE_WAY, tries=F("tries") + 1) is None:
        return
    notice = Notice.objects.select_related("job__namespace", "user").filter(pk=notice_id).first()
    if notice is None:
        return  # its job was removed this moment
    if reason := _needless(notice):
        _close(notice, problem=reason)
        return
    _send(notice, lambda: _message(notice, letter(facts_of(notice, now))), clock)


def announcement_send(announcement_id: uuid.UUID, *, clock: Callable[[], datetime] = timezone.now) -> None:
    """Send one announcement, if it is due and no other worker is sending it. Repeats harmlessly."""
    rows = Announcement.objects.filter(pk=announcement_id)
    if claim_due(rows, "due_at", clock(), ON_THE_WAY, tries=F("tries") + 1) is None:
        return
    mail = rows.select_related("user").first()
    if mail is None:
        return  # its user was removed this moment
    if not (mail.user.is_active and mail.user.email):
        _close(mail, problem="You no longer have an e-mail address.")
        return
    _send(mail, lambda: _announced(mail), clock)


def _send(notice: Mail, message: Callable[[], EmailMessage], clock: Callable[[], datetime]) -> None:
    try:
        message().send()
    except smtplib.SMTPRecipientsRefused as error:
        _refused(notice, error, clock())
    except (smtplib.SMTPException, OSError) as error:
        _later(notice, str(error) or type(error).__name__, clock())
    except Exception:  # the top of the task: a mail that cannot be written must not be tried for ever, nor unseen
        log.exception("Mail %s could not be written", notice.pk)
        _later(notice, "The portal could not create this e-mail. See its log.", clock())
    else:
        _close(notice, sent_at=clock())


def _needless(notice: Notice) -> str:
    """Why the mail is not to be sent any more; empty where it is."""
    if not (notice.user.is_active and notice.user.email):
        return "You no longer have an e-mail address."
    if not namespaces_visible(notice.user).filter(pk=notice.job.namespace_id).exists():
        return "You no longer have access to the job."  # the mail has its name, and lines of its log
    if notice.job.deleted_at is not None:
        return "The job was deleted."
    waits = notice.job.phase == Phase.QUEUED.value and notice.job.attempt == notice.attempt
    return "The job is no longer queued." if notice.event == Event.WAITS and not waits else ""


def _message(notice: Notice, text: Letter) -> EmailMessage:
    off = _off_headers(_off_url(notice))
    return _addressed(notice, text, {"X-Yardmaster-Job": str(notice.job_id), **off})


def _off_url(notice: Notice) -> str:
    return unsubscribe_url(notice.user, [kind_of(notice.job, Event(notice.event))])


def _announced(mail: Announcement) -> EmailMessage:
    """With the link that switches its kinds off, where it is of any."""
    if not mail.kinds:
        return _addressed(mail, Letter(mail.subject, mail.body))
    kinds = mail.kinds.split(",")
    url = unsubscribe_url(mail.user, kinds)
    body = f"{mail.body.rstrip()}\n{off_line(url, len(kinds))}\n"
    return _addressed(mail, Letter(mail.subject, body), _off_headers(url))


def _off_headers(url: str) -> dict[str, str]:
    """RFC 8058: a mail program's own button switches it off with one request."""
    return {"List-Unsubscribe": f"<{url}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}


def _addressed(notice: Mail, text: Letter, more: Mapping[str, str] = MappingProxyType({})) -> EmailMessage:
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    headers = {
        "Message-ID": f"<{notice.pk}@{host}>",
        "Auto-Submitted": "auto-generated",  # so that no absence notice is sent to the portal
        **more,
    }
    return EmailMessage(text.subject, text.body, to=[notice.user.email], headers=headers)


def _refused(notice: Mail, error: smtplib.SMTPRecipientsRefused, now: datetime) -> None:
    """The mail server does not take this address: for good (5xx), or for now (grey lists)."""
    code, words = next(iter(error.recipients.values()))
    said = f"The mail server refused your address: {code} {words.decode(errors='replace')}"
    if 500 <= code < 600:
        _close(notice, problem=said)
    else:
        _later(notice, said, now)


def _later(notice: Mail, problem: str, now: datetime) -> None:
    log.warning("Mail %s could not be sent: %s", notice.pk, problem)
    if now - notice.created_at >= GIVE_UP_AFTER:
        _close(notice, problem=problem)
        return
    pause = delay(notice.tries - 1, FIRST_PAUSE, LONGEST_PAUSE)
    _mine(notice).update(due_at=now + pause, problem=problem[:300])


def _close(notice: Mail, *, sent_at: datetime | None = None, problem: str = "") -> None:
    _mine(notice).update(due_at=None, sent_at=sent_at, problem=problem[:300])


def _mine(notice: Mail) -> QuerySet[Any]:
    """The row, as long as no other worker has tried again meanwhile."""
    return type(notice)._default_manager.filter(pk=notice.pk, tries=notice.tries, sent_at__isnull=True)


def facts_of(notice: Notice, now: datetime) -> Facts:
    """What the mail tells, as it is in the database and the log now."""
    job, event = notice.job, Event(notice.event)
    attempt = JobAttempt.objects.get(job=job, number=notice.attempt)
    waits = event is Event.WAITS
    task, lines = ("", []) if waits or not choices_of(notice.user).with_log else _last_lines(job, attempt)
    explained = explain_traceback(lines) if event is Event.FAILED else None
    took = now - job.queued_at if waits else _took(attempt)
    return Facts(
        event=event,
        name=job.name,
        attempt=notice.attempt,
        namespace=job.namespace.slug,
        took=took,
        reason=job.reason if waits else attempt.reason,
        message=job.message if waits else attempt.message,
        remedy=job.remedy if waits else attempt.remedy,
        explanation=explained.message if explained else "",
        help=explained.remedy if explained else "",
        task=task,
        last_lines=lines,
        job_url=f"{settings.PUBLIC_URL}{reverse('job_page', args=[job.pk])}",
        choices_url=f"{settings.PUBLIC_URL}{reverse('notifications_page')}",
        off_url=_off_url(notice),
    )


def _took(attempt: JobAttempt) -> timedelta | None:
    if attempt.started_at is None or attempt.decided_at is None:
        return None
    return attempt.decided_at - attempt.started_at


def _last_lines(job: Job, attempt: JobAttempt) -> tuple[str, list[str]]:
    """The end of the log of the task that decided, else of the one that leads. Nothing while no log answers."""
    stream = _telling_stream(job, attempt)
    try:
        page = log_store().read(stream, -READ_LINES, READ_LINES)
    except Unavailable as error:
        log.warning("A mail goes without the log of job %s: %s", attempt.job_id, error)
        return "", []
    lines = [line.text.decode(errors="replace") for line in page.lines]
    return stream.name, [line for line in lines if not is_noise(line)][-LAST_LINES:]


def _telling_stream(job: Job, attempt: JobAttempt) -> StreamKey:
    role = known_role(attempt.role)
    if role is not None:
        return StreamKey(attempt.job_id, attempt.number, role, attempt.index or 0)
    leader = next((role for role in (Role.CHIEF, Role.DRIVER) if role.value in job.replicas), Role.WORKER)
    return StreamKey(attempt.job_id, attempt.number, leader, 0)
