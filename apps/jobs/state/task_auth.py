"""How a job's own tasks prove who they are: a token per attempt, good for that attempt's data and nothing else.

The token is derived from the secret key, so it is stored nowhere, and submitting an attempt again after a crash gives
its tasks the same one. It is good until ten minutes after the attempt was cleaned up: the last log lines may come late.
"""

from __future__ import annotations

import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone
from django.utils.crypto import salted_hmac
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.jobs.models import JobAttempt

PREFIX = "ymt"
AFTER_CLEANUP = timedelta(minutes=10)


@dataclass(frozen=True)
class TaskIdentity:
    """Which attempt a token speaks for."""

    job_id: uuid.UUID
    attempt: int
    namespace_id: uuid.UUID
    replicas: Mapping[str, int] = field(default_factory=dict)
    """How many tasks each role has."""

    def has_task(self, role: str, index: int) -> bool:
        """Whether the attempt's specification has this task."""
        return 0 <= index < self.replicas.get(role, 0)


def token_of(job_id: uuid.UUID, attempt: int) -> str:
    """The token of one attempt: always the same, and unknown to anyone without the secret key."""
    return f"{PREFIX}.{job_id.hex}.{attempt}.{_signature(job_id, attempt, settings.SECRET_KEY)}"


def identity_of(token: str, now: datetime) -> TaskIdentity | None:
    """Whose token this is, or None when it is none, forged or outlived. One query."""
    try:
        prefix, job_hex, number, signature = token.encode("ascii").decode().split(".")
        job_id, attempt = uuid.UUID(hex=job_hex), int(number)
    except ValueError:
        return None
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    if prefix != PREFIX or not any(hmac.compare_digest(_signature(job_id, attempt, key), signature) for key in keys):
        return None
    known = JobAttempt.objects.filter(job_id=job_id, number=attempt, job__deleted_at__isnull=True)
    row = known.values_list("job__namespace_id", "cleaned_up_at", "spec__roles").first()
    if row is None or (row[1] is not None and row[1] + AFTER_CLEANUP < now):
        return None
    return TaskIdentity(job_id, attempt, row[0], {role: one.get("replicas", 0) for role, one in (row[2] or {}).items()})


def _signature(job_id: uuid.UUID, attempt: int, key: str | bytes) -> str:
    return salted_hmac("yardmaster.task-token", f"{job_id.hex}:{attempt}", secret=key, algorithm="sha256").hexdigest()


class TaskTokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <job token>`; `request.auth` is a `TaskIdentity`, `request.user` stays anonymous."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, TaskIdentity] | None:
        kind, _, token = get_authorization_header(request).decode("latin-1").partition(" ")
        if kind.lower() != "bearer":
            return None
        identity = identity_of(token.strip(), timezone.now())
        if identity is None:
            raise AuthenticationFailed("This job token is invalid or has expired.")
        return AnonymousUser(), identity

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class IsTask(BasePermission):
    """Only a job's own tasks."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.auth, TaskIdentity)
