"""The personal token that a Jupyter session is signed in with: its owner's, made when the task asks for its order, and
revoked when the session ends.

It may do what its owner may with jobs and data, and nothing else: it makes no other token and administers nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from apps.accounts.models import PersonalToken
from apps.accounts.services import token_create, token_lifetime_default, token_revoke
from apps.jobs.models import Job
from apps.jobs.selectors import UNFINISHED
from apps.jobs.task_api.orders import order_secrets
from apps.workbench.models import Kind, WorkbenchSession

SCOPES = ["read", "jobs", "data"]
VARIABLE = "YARDMASTER_TOKEN"
LONGEST = timedelta(days=30)
"""A session that runs for longer is started again."""


@receiver(order_secrets)
def _signed_in(job: Job, **facts: object) -> list[dict[str, str]]:
    """The value for the task of a Jupyter; a task that starts again gets another one, and the last one ends."""
    session = WorkbenchSession.objects.select_related("owner").filter(job=job, kind=Kind.JUPYTER).first()
    if session is None:
        return []
    return [{"name": VARIABLE, "env": VARIABLE, "file": "", "value": _token(session)}]


def _token(session: WorkbenchSession) -> str:
    with transaction.atomic():
        token_forget(session)
        token, secret = token_create(
            user=session.owner,
            name=f"Jupyter session {str(session.pk)[:8]}",
            scopes=SCOPES,
            expires_in=min(LONGEST, token_lifetime_default()),
        )
        WorkbenchSession.objects.filter(pk=session.pk).update(token=token)
        return secret


def token_forget(session: WorkbenchSession) -> None:
    """Revoke the session's token. None there: nothing happens."""
    token = PersonalToken.objects.filter(pk=session.token_id).select_related("user").first()
    if token is not None:
        token_revoke(token=token, actor=token.user)


def tokens_clean() -> None:
    """Revoke the tokens of sessions that have ended, however that came."""
    left: Any = WorkbenchSession.objects.filter(token__isnull=False).exclude(
        job__phase__in=UNFINISHED, job__deleted_at__isnull=True
    )
    for session in left:
        token_forget(session)
