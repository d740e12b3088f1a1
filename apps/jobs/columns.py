"""Which further columns a user has chosen for their list of jobs, and which there are to choose from.

Kept for each namespace, and once for the list of all of them. Not here: how columns are written
(`yardmaster.job.list_columns`) and what stands in them (`list_values`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from apps.accounts.models import User
from apps.errors import Invalid
from apps.jobs.models import Job, JobColumns, JobMetric
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespaces_visible
from yardmaster.job.list_columns import (
    NEWEST,
    Column,
    NotAColumn,
    Ordering,
    column_of,
    columns_of_texts,
    ordering_of,
)

NEWEST_JOBS = 100
"""Of which the names of metrics and parameters are offered."""
MOST_OFFERED = 60


@dataclass(frozen=True)
class Chosen:
    """What one user sees in one list. `ordering` None: the newest first."""

    columns: tuple[Column, ...] = ()
    ordering: Ordering | None = None


def columns_chosen(user: User, namespace: Namespace | None) -> Chosen:
    """What the user has chosen for this namespace, or (None) for all. What a release no longer knows is left out."""
    row = JobColumns.objects.filter(user=user, namespace=namespace).first()
    if row is None:
        return Chosen()
    return Chosen(tuple(known_columns(row.columns)), known_ordering(row.ordering))


def known_columns(texts: Iterable[str]) -> list[Column]:
    """Those that are columns, each once; the others are passed over."""
    found: dict[Column, None] = {}
    for text in texts:
        try:
            found[column_of(text)] = None
        except NotAColumn:
            continue
    return list(found)


def known_ordering(text: str) -> Ordering | None:
    """None: it is the usual one, or none at all."""
    try:
        order = ordering_of(text)
    except NotAColumn:
        return None
    return None if order.is_newest else order


def columns_choose(user: User, namespace: Namespace | None, columns: Iterable[str], ordering: str) -> Chosen:
    """Keep the user's choice, in the place of the last one. Raises `Invalid`. May be repeated."""
    try:
        found, order = columns_of_texts(columns), ordering_of(ordering)
    except NotAColumn as error:
        raise Invalid([error.problem]) from error
    key = "" if order.key == NEWEST else order.key
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # of two at once the second changes the first's
        JobColumns.objects.update_or_create(
            user=user, namespace=namespace, defaults={"columns": [one.key for one in found], "ordering": key}
        )
    return Chosen(found, None if order.is_newest else order)


@dataclass(frozen=True)
class Offered:
    """The names that the newest jobs have, in order."""

    metrics: list[str]
    parameters: list[str]


def columns_offered(user: User, namespace: Namespace | None) -> Offered:
    """Which metrics and parameters there are to choose from. Two statements."""
    jobs = Job.objects.filter(deleted_at__isnull=True)
    jobs = jobs.filter(namespace=namespace) if namespace else jobs.filter(namespace__in=namespaces_visible(user))
    newest = jobs.order_by("-place").values_list("pk", "named_values")[:NEWEST_JOBS]
    found = list(newest)
    ids = [pk for pk, _ in found]
    metrics = JobMetric.objects.filter(job__in=ids).order_by("name").values_list("name", flat=True).distinct()
    parameters = sorted({name for _, values in found for name in values})
    return Offered(list(metrics[:MOST_OFFERED]), parameters[:MOST_OFFERED])
