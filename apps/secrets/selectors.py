"""Which secrets a namespace has: names and facts, never values."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import QuerySet

from apps.errors import NotFound
from apps.namespaces.models import Namespace
from apps.secrets.models import Kind, Secret, SecretUse


def secrets_of(namespace: Namespace) -> QuerySet[Secret]:
    """All of them, without what is sealed."""
    return Secret.objects.filter(namespace=namespace).defer("sealed").select_related("created_by", "changed_by")


def secret_names(namespace: Namespace) -> list[str]:
    """The names of those that tasks may have."""
    return list(secrets_of(namespace).filter(kind=Kind.TEXT).order_by("name").values_list("name", flat=True))


def secret_named(namespace: Namespace, name: str) -> Secret:
    """One of them. Raises `NotFound`."""
    found = secrets_of(namespace).select_related("namespace").filter(name=name).first()
    if found is None:
        raise NotFound(f"{namespace.slug} has no secret of this name.", "secret_missing")
    return found


def secret_sizes(namespace: Namespace, names: Sequence[str]) -> dict[str, int]:
    """The bytes of those that tasks may have, by name; what is not there is left out."""
    found = Secret.objects.filter(namespace=namespace, name__in=names, kind=Kind.TEXT)
    return dict(found.values_list("name", "size"))


def jobs_using(secret: Secret) -> list[UUID]:
    """The jobs that name it, whatever has become of them."""
    return list(SecretUse.objects.filter(secret=secret).values_list("job_id", flat=True))
