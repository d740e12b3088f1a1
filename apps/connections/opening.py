"""What a worker needs to open a cluster, the values of a connection's secrets, and why it did not, as it is kept for
people. For workers alone."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.audit.services import record
from apps.connections.models import DataConnection
from apps.connections.selectors import secrets_needed
from apps.errors import DomainError, NotFound, Unprocessable
from apps.secrets.delivery import opened, secret_used
from apps.secrets.models import Kind, Secret
from yardmaster.errors import SpecRejected, YardmasterError
from yardmaster.ignite.refusals import NotLooked


def secret_values(one: DataConnection) -> dict[str, str]:
    """The values of its secrets, by what they are for. Raises `NotFound`, `CannotOpen`."""
    found = {}
    for column, name in secrets_needed(one).items():
        secret = Secret.objects.filter(namespace=one.namespace_id, name=name, kind=Kind.TEXT).first()
        if secret is None:
            remedy = f"Create the secret {name} in {one.namespace.slug} again, or change the connection."
            raise NotFound(f"The secret {name} of this connection no longer exists.", "secret_missing", remedy=remedy)
        found[column] = opened(secret).decode()
        if column in ("username", "password", "certificate_password"):
            found[column] = found[column].strip("\r\n")
        with transaction.atomic():
            secret_used(secret, timezone.now())
            facts = {"name": name, "connection": one.name}
            record(None, "secret.use_connection", f"secret:{secret.pk}", namespace=one.namespace, **facts)
    return found


def in_words(error: Exception) -> DomainError:
    """The error as it is kept for people."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, NotLooked):
        return Unprocessable(
            error.problem.message, error.problem.code, remedy=error.problem.remedy, errors=[error.problem]
        )  # fmt: skip
    if isinstance(error, SpecRejected):
        first = error.problems[0]
        return Unprocessable(first.message, first.code, remedy=first.remedy, errors=list(error.problems))
    assert isinstance(error, YardmasterError)
    return Unprocessable(error.message, error.code, remedy=error.remedy or "Try again in a moment.")
