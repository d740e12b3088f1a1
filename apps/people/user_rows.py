"""Users and teams as lists of administrators show them: with what they hold, in any of their orders, in one query.

Not here: search and filters of users (`apps.accounts.user_list`).
"""

from __future__ import annotations

from django.db.models import BigIntegerField, Count, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from apps.accounts.models import User
from apps.accounts.user_list import LONGEST_SEARCH, ORDERS, users_found
from apps.api.sorted_list import SortedList, order_of
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Namespace
from apps.uploads.models import StorageAccount
from yardmaster.lifecycle.phases import Phase

USER_ORDERS = {**ORDERS, "jobs": "running_jobs", "storage": "stored"}
TEAM_ORDERS = {
    "name": "slug",
    "created": "created_at",
    "members": "members",
    "jobs": "running_jobs",
    "storage": "stored",
}
_RUNNING = (Phase.STARTING.value, Phase.RUNNING.value)


def user_rows(search: str, state: str, order: str) -> SortedList:
    """Users with `running_jobs`, and `stored` (bytes of the personal namespace). Raises `Invalid` for an order that is
    not in `USER_ORDERS`."""
    by, falls = order_of(order, USER_ORDERS, "-joined")
    running = Job.objects.filter(owner=OuterRef("pk"), phase__in=_RUNNING, deleted_at__isnull=True)
    rows = users_found(search, state).annotate(
        running_jobs=_count(running, "owner"),
        stored=_amount(StorageAccount.objects.filter(namespace__owner=OuterRef("pk"))),
    )
    return SortedList(rows, by, falls)


def team_rows(search: str, order: str) -> SortedList:
    """Teams with `members`, `running_jobs` and `stored`; also closed ones. Raises `Invalid` as above."""
    by, falls = order_of(order, TEAM_ORDERS, "name")
    running = Job.objects.filter(namespace=OuterRef("pk"), phase__in=_RUNNING, deleted_at__isnull=True)
    rows = _teams_found(search).annotate(
        members=_count(Membership.objects.filter(namespace=OuterRef("pk"), user__is_service=False), "namespace"),
        running_jobs=_count(running, "namespace"),
        stored=_amount(StorageAccount.objects.filter(namespace=OuterRef("pk"))),
    )
    return SortedList(rows, by, falls)


def _teams_found(search: str) -> QuerySet[Namespace]:
    text = search.strip()[:LONGEST_SEARCH]
    rows = Namespace.objects.filter(owner=None)
    if "\0" in text:
        return rows.none()
    return rows.filter(slug__icontains=text) | rows.filter(title__icontains=text) if text else rows


def _count(rows: QuerySet[Job] | QuerySet[Membership], by: str) -> Coalesce:
    counted = rows.order_by().values(by).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted, output_field=IntegerField()), Value(0))


def _amount(rows: QuerySet[StorageAccount]) -> Coalesce:
    return Coalesce(Subquery(rows.values("used")[:1], output_field=BigIntegerField()), Value(0))


def waiting_and_running(user: User) -> dict[str, int]:
    """How many of the user's jobs, in every namespace, are in each phase that any is in."""
    rows = Job.objects.filter(owner=user, deleted_at__isnull=True).order_by().values_list("phase")
    return dict(rows.annotate(count=Count("pk")))
