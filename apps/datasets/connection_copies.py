"""Copies of caches and queries of a data connection into versions of datasets: asked for, listed, cancelled. No cluster
is connected to here: a worker copies (`connection_copying`)."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.connections.selectors import connection_named
from apps.datasets.models import ConnectionCopy, DatasetVersion
from apps.dispatch.messages import COPY_CONNECTION, enqueue
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import refuse_closed, require_role
from apps.uploads.versioned.services import checked_name
from yardmaster.errors import Problem
from yardmaster.job.spec_connection import LONGEST_CACHE
from yardmaster.job.spec_limits import is_text, shorten

AT_ONCE = 4
"""That are under way in one namespace."""
LONGEST_QUERY = 10_000
State = ConnectionCopy.State


def copy_ask(
    *, namespace: Namespace, connection: str, actor: User, dataset: str, cache: str = "", query: str = ""
) -> ConnectionCopy:
    """Have a worker copy the cache, or what the query finds, into a new version of the dataset of this name, which is
    made where there is none. Raises `Invalid`, `NotFound`, `Conflict`."""
    require_role(actor, namespace, Role.MEMBER)
    name = _checked(dataset, cache, query)
    found = connection_named(namespace, connection)
    with transaction.atomic():
        refuse_closed(Namespace.objects.select_for_update().get(pk=namespace.pk))
        if ConnectionCopy.objects.filter(namespace=namespace, state=State.COPYING).count() >= AT_ONCE:
            detail = f"{namespace.slug} already runs {AT_ONCE} copies."
            raise Conflict(detail, "too_many_copies", remedy="Wait until one of them has ended, or cancel one.")
        made = ConnectionCopy(
            namespace=namespace, connection=found.name, cache=cache, query=query, dataset=name, asked_by=actor,
            started_at=timezone.now(),
        )  # fmt: skip
        made.save(force_insert=True)
        facts = {"name": found.name, "cache": cache, "query": shorten(query), "dataset": name}
        record(actor, "connection.copy", f"connection:{found.pk}", namespace=namespace, **facts)
        enqueue(COPY_CONNECTION, made.pk)
    return made


def copy_cancel(*, copy: ConnectionCopy, actor: User) -> ConnectionCopy:
    """End it; nothing is left of it. One that has ended stays as it is."""
    with transaction.atomic():
        rows = ConnectionCopy.objects.filter(pk=copy.pk, state=State.COPYING)
        if rows.update(state=State.CANCELLED, ended_at=timezone.now()):
            facts = {"name": copy.connection, "dataset": copy.dataset}
            subject = f"connection_copy:{copy.pk}"
            record(actor, "connection.copy_cancel", subject, namespace=copy.namespace, **facts)
            # Where no worker has it, one removes what an earlier try has left.
            enqueue(COPY_CONNECTION, copy.pk)
    copy.refresh_from_db()
    return copy


def copies_of(namespace: Namespace, connection: str) -> QuerySet[ConnectionCopy]:
    """Those from one connection."""
    rows = ConnectionCopy.objects.filter(namespace=namespace, connection=connection)
    return rows.select_related("namespace", "asked_by")


def copy_of(namespace: Namespace, connection: str, copy_id: uuid.UUID) -> ConnectionCopy:
    """One of them. Raises `NotFound`."""
    found = copies_of(namespace, connection).filter(pk=copy_id).first()
    if found is None:
        raise NotFound()
    return found


def version_copied(copy: ConnectionCopy) -> DatasetVersion | None:
    """The version, where it was made and is still there."""
    if copy.version_id is None:
        return None
    return DatasetVersion.objects.select_related("parent").filter(pk=copy.version_id).first()


def _checked(dataset: str, cache: str, query: str) -> str:
    """The name of the dataset in its normal form. Raises `Invalid` with all that is wrong."""
    found: list[Problem] = []
    name = ""
    try:
        name = checked_name(dataset)
    except Invalid as error:
        found += [Problem("dataset", one.code, one.message, one.remedy, shorten(one.value)) for one in error.errors]
    if bool(cache) == bool(query):
        message = "A copy needs either a cache or a query."
        found.append(Problem("cache", "conflict" if cache else "missing", message, "Give either cache or query."))
    if len(cache) > LONGEST_CACHE or not is_text(cache) or (cache and not cache.isprintable()):
        message = f"The name of a cache can have at most {LONGEST_CACHE} printable characters."
        remedy = "Copy it from the connection's page."
        found.append(Problem("cache", "invalid", message, remedy, shorten(cache)))
    if len(query) > LONGEST_QUERY or not is_text(query):
        message = f"A query can have at most {LONGEST_QUERY:,} characters."
        found.append(
            Problem("query", "invalid", message, "Shorten the query, or create a view in the cluster.", shorten(query))
        )
    if found:
        raise Invalid(found)
    return name
