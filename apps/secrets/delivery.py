"""Giving the values of secrets to the tasks of a job: which jobs name which secrets, and opening them.

No row, event, error or log line contains a value: it is in the answer to the task alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.audit.services import record
from apps.errors import Conflict, NotFound
from apps.namespaces.models import Namespace
from apps.secrets.models import Kind, Secret, SecretUse
from apps.secrets.sealing import unseal

LARGEST_OF_JOB = 512 << 10
"""Bytes of all values of one job: Linux bounds what a program is started with."""


def secrets_of_job_write(namespace: Namespace, job_id: UUID, names: Sequence[str]) -> None:
    """Write which secrets the job's specification names, in the place of those of an earlier one."""
    SecretUse.objects.filter(job_id=job_id).exclude(secret__name__in=names).delete()
    if not names:
        return
    found = Secret.objects.filter(namespace=namespace, name__in=names)
    SecretUse.objects.bulk_create([SecretUse(secret=one, job_id=job_id) for one in found], ignore_conflicts=True)


def secrets_of_job_forget(job_id: UUID) -> None:
    """The job is gone."""
    SecretUse.objects.filter(job_id=job_id).delete()


def values_for_job(namespace: Namespace, job_id: UUID, names: Sequence[str]) -> dict[str, str]:
    """The values for a task of this job, by name. The first use by each job is in the audit. Raises `NotFound` where
    one was deleted, `CannotOpen` where one does not open, `Conflict` where they have become too large together."""
    given = Secret.objects.filter(namespace=namespace, name__in=names, kind=Kind.TEXT)
    found = {one.name: one for one in given}
    for name in names:
        if name not in found:
            raise NotFound(
                f"The secret {name} of this job no longer exists.",
                "secret_missing",
                remedy=f"Create the secret {name} in {namespace.slug} again, then retry the job.",
            )
    if sum(one.size for one in found.values()) > LARGEST_OF_JOB:
        raise Conflict(f"The secrets of this job have more than {LARGEST_OF_JOB >> 10} KiB.", "secret_too_large")
    values = {name: opened(one).decode() for name, one in found.items()}
    _note_use(namespace, job_id, list(found.values()), timezone.now())
    return values


def opened(secret: Secret) -> bytes:
    """The value itself. Raises `CannotOpen`."""
    return unseal(bytes(secret.sealed), secret.key_id, belongs_to(secret), secret.name)


def secret_used(secret: Secret, now: datetime) -> None:
    """The portal itself has used it."""
    Secret.objects.filter(pk=secret.pk).update(last_used_at=now)


def _note_use(namespace: Namespace, job_id: UUID, secrets: Sequence[Secret], now: datetime) -> None:
    with transaction.atomic():
        for one in secrets:
            SecretUse.objects.bulk_create([SecretUse(secret=one, job_id=job_id)], ignore_conflicts=True)
            mine = SecretUse.objects.filter(secret=one, job_id=job_id, first_used_at__isnull=True)
            if mine.update(first_used_at=now):
                secret_used(one, now)
                record(None, "secret.use", f"secret:{one.pk}", namespace=namespace, name=one.name, job=str(job_id))


def belongs_to(secret: Secret) -> str:
    """What its value is sealed for: this row."""
    return f"{secret.namespace_id}/{secret.pk}"
