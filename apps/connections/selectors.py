"""Which data connections a namespace has, and which secrets they need."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from apps.connections.models import DataConnection
from apps.errors import NotFound
from apps.namespaces.models import Namespace

SECRETS = ("certificate", "certificate_password", "ca", "username", "password")
"""The columns that name secrets."""


def connections_of(namespace: Namespace) -> QuerySet[DataConnection]:
    """All of them, without what was found in them."""
    rows = DataConnection.objects.filter(namespace=namespace).defer("found")
    return rows.select_related("created_by", "asked_by", "namespace")


def connection_named(namespace: Namespace, name: str) -> DataConnection:
    """One of them, with what was found. Raises `NotFound`."""
    rows = DataConnection.objects.select_related("created_by", "asked_by", "namespace")
    found = rows.filter(namespace=namespace, name=name).first()
    if found is None:
        raise NotFound(
            f"{namespace.slug} has no data connection of this name.",
            "connection_missing",
            remedy="Register it on the page Data connections of the namespace, or use the name of another one.",
        )
    return found


def connection_names(namespace: Namespace) -> list[str]:
    """For a select."""
    return list(DataConnection.objects.filter(namespace=namespace).order_by("name").values_list("name", flat=True))


def secrets_needed(connection: DataConnection) -> dict[str, str]:
    """The names of its secrets, by what they are for."""
    return {column: name for column in SECRETS if (name := getattr(connection, column))}


def secrets_of_connection(namespace: Namespace, name: str) -> list[str]:
    """The names of the secrets that the connection of this name needs; none where there is no such connection."""
    found = connections_of(namespace).filter(name=name).first()
    return [] if found is None else list(secrets_needed(found).values())


def connections_using(namespace: Namespace, secret: str) -> list[str]:
    """The names of connections that need this secret."""
    named = Q()
    for column in SECRETS:
        named |= Q(**{column: secret})
    rows = DataConnection.objects.filter(named, namespace=namespace)
    return list(rows.order_by("name").values_list("name", flat=True)[:50])
