"""The personal token that a Jupyter session is signed in with: its owner's, made when the task asks for its order, and
revoked when the session ends.

It may do what its owner may with jobs and data, and nothing else: it makes no other token and administers nothing.
A session has one token at a time. Once its user has revoked it, there is none until the session is started again.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.dispatch import receiver

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create, token_lifetime_default, token_revoke
from apps.hosting.services import runs
from apps.jobs.models import Job
from apps.jobs.selectors import UNFINISHED
from apps.jobs.task_api.orders import order_secrets
from apps.workbench.models import Kind, WorkbenchSession
from yardmaster.errors import Unavailable

SCOPES = ["read", "jobs", "data"]
VARIABLE = "YARDMASTER_TOKEN"
LONGEST = timedelta(days=30)
"""A session that runs for longer is started again."""


@receiver(order_secrets)
def _signed_in(job: Job, **facts: object) -> list[dict[str, str]]:
    """The value for the task of a Jupyter; a task that starts again gets another one, and the last one ends. A task may
    ask before the start of its session is written down: it asks again then."""
    session = WorkbenchSession.objects.filter(job=job, kind=Kind.JUPYTER).first()
    if session is None and job.spec.get("program") == Kind.JUPYTER and runs(job):
        raise Unavailable("The start of this session is not written down yet.")
    secret = None if session is None else _token(session, job)
    return [] if secret is None else [{"name": VARIABLE, "env": VARIABLE, "file": "", "value": secret}]


def _token(session: WorkbenchSession, job: Job) -> str | None:
    """Another token in the place of the last one. None where the job is not to run any more, is no longer that of the
    session, or where the last token of this start is gone: its user revoked it."""
    with transaction.atomic():
        owner = User.objects.select_for_update(no_key=True).get(pk=session.owner_id)
        now = WorkbenchSession.objects.select_for_update(no_key=True).filter(pk=session.pk, job=job).first()
        if now is None or not owner.is_active or not runs(Job.objects.filter(pk=job.pk).first()):
            return None
        if now.token_start == now.starts and now.token_id is None:
            return None
        _revoke(now)
        token, secret = token_create(
            user=owner,
            name=f"Jupyter session {str(session.pk)[:8]}",
            scopes=SCOPES,
            expires_in=min(LONGEST, token_lifetime_default()),
        )
        WorkbenchSession.objects.filter(pk=session.pk).update(token=token, token_start=F("starts"))
        return secret


def token_forget(session: WorkbenchSession) -> None:
    """Revoke the session's token, and wait for one that is being made. None there: nothing happens."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=session.owner_id)
        now = WorkbenchSession.objects.select_for_update(no_key=True).filter(pk=session.pk).first()
        if now is not None:
            _revoke(now)


def _revoke(session: WorkbenchSession) -> None:
    token = PersonalToken.objects.filter(pk=session.token_id).select_related("user").first()
    if token is not None:
        token_revoke(token=token, actor=token.user)


def tokens_clean() -> None:
    """Revoke the tokens of sessions that have ended, however that came."""
    left = WorkbenchSession.objects.filter(token__isnull=False).exclude(
        job__phase__in=UNFINISHED, job__deleted_at__isnull=True
    )
    for session in left:
        _revoke(session)
