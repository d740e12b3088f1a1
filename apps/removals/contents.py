"""What a namespace and an account hold, counted by kind: for the preview of a removal, and for its report.

Not here: what of it stays (`preview`, `worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import CharField, Count, QuerySet, Sum, Value
from django.utils import timezone

from apps.accounts.browsers import browsers_of
from apps.accounts.models import Browser, PersonalToken, User
from apps.code.selectors import CODE
from apps.connections.models import DataConnection
from apps.datasets.selectors import DATASETS
from apps.environments.models import Environment
from apps.jobs.models import Volume
from apps.jobs.selectors import jobs_in
from apps.namespaces.models import Invitation, Membership, Namespace
from apps.namespaces.service_accounts import service_accounts_of
from apps.registry.selectors import models_in
from apps.removals.models import Removal
from apps.schedules.models import JobTemplate, Schedule
from apps.secrets.selectors import secrets_of
from apps.uploads.selectors import storage_used, uploads_in
from apps.webhooks.models import Webhook
from apps.workbench.models import Home, WorkbenchSession
from yardmaster.lifecycle.phases import FINAL

KINDS = {
    "unfinished_jobs": "Jobs that have not ended",
    "jobs": "Jobs, with logs and outputs",
    "datasets": "Datasets",
    "code": "Code",
    "models": "Models",
    "uploads": "Uploads",
    "bytes": "Stored data",
    "secrets": "Secrets",
    "connections": "Data connections",
    "environments": "Environments",
    "templates": "Job templates",
    "schedules": "Schedules",
    "volumes": "Volumes on engines",
    "sessions": "Sessions of the workbench",
    "homes": "Homes of Jupyters",
    "homes_in_teams": "Homes of Jupyters in teams",
    "webhooks": "Webhooks",
    "service_accounts": "Service accounts",
    "members": "Members of the team",
    "memberships": "Memberships of teams",
    "tokens": "Personal tokens",
    "browsers": "Browsers that are signed in",
    "invitations": "Invitations",
}
"""What is counted, in words. `bytes` is an amount of bytes, everything else a count."""


def namespace_contents(
    namespace: Namespace, phases: Mapping[str, int] | None = None, beside: Mapping[str, QuerySet[Any]] | None = None
) -> dict[str, int]:
    """What the namespace holds, by kind, and how many rows `beside` has. `phases`: what `jobs_by_phase` said. Three
    statements."""
    phases = jobs_by_phase(namespace) if phases is None else phases
    team: dict[str, QuerySet[Any]] = (
        {
            "service_accounts": service_accounts_of(namespace),
            "members": Membership.objects.filter(namespace=namespace, user__is_service=False),
        }
        if namespace.owner_id is None
        else {}
    )
    rest = _counts(
        {
            "datasets": DATASETS.collections.objects.filter(namespace=namespace),
            "code": CODE.collections.objects.filter(namespace=namespace),
            "models": models_in(namespace),
            "uploads": uploads_in(namespace),
            "secrets": secrets_of(namespace),
            "connections": DataConnection.objects.filter(namespace=namespace),
            "environments": Environment.objects.filter(namespace=namespace),
            "templates": JobTemplate.objects.filter(namespace=namespace),
            "schedules": Schedule.objects.filter(namespace=namespace),
            "volumes": Volume.objects.filter(namespace=namespace),
            "sessions": WorkbenchSession.objects.filter(namespace=namespace),
            "homes": Home.objects.filter(namespace=namespace),
            "webhooks": Webhook.objects.filter(namespace=namespace),
            **team,
            **(beside or {}),
        }
    )
    return {
        "unfinished_jobs": sum(count for phase, count in phases.items() if phase not in FINAL),
        "jobs": sum(phases.values()),
        "bytes": storage_used(namespace).used,
        **rest,
    }


def account_contents(user: User) -> dict[str, int]:
    """What goes with the account alone, by kind. Two statements."""
    return _counts(of_account(user))


def of_account(user: User) -> dict[str, QuerySet[Any]]:
    """The rows that go with the account alone, by kind."""
    return {
        "memberships": Membership.objects.filter(user=user, namespace__owner=None),
        "tokens": PersonalToken.objects.filter(user=user),
        "browsers": Browser.objects.filter(pk__in=[one.id for one in browsers_of(user, None, timezone.now())]),
        "invitations": Invitation.objects.filter(created_by=user),
        "homes_in_teams": Home.objects.filter(owner=user, namespace__owner=None),
    }


def _counts(queries: Mapping[str, QuerySet[Any]]) -> dict[str, int]:
    """How many rows each has, in one statement."""
    parts = [
        query.order_by()
        .annotate(counted=Value(name, CharField()))
        .values("counted")
        .annotate(rows=Count("pk"))
        .values_list("counted", "rows")
        for name, query in queries.items()
    ]
    return dict.fromkeys(queries, 0) | dict(parts[0].union(*parts[1:], all=True))


def contents_now(removal: Removal) -> dict[str, int]:
    """What there is of both by now; nothing where both are gone."""
    namespace = Namespace.objects.filter(pk=removal.namespace_id).first()
    user = User.objects.filter(pk=removal.user_id).first() if removal.user_id else None
    found = namespace_contents(namespace) if namespace is not None else {}
    return {**found, **(account_contents(user) if user is not None else {})}


def jobs_by_phase(namespace: Namespace) -> dict[str, int]:
    """How many jobs are in each phase that any is in."""
    rows = jobs_in(namespace).order_by().values_list("phase").annotate(count=Count("pk"))
    return dict(rows)


def volume_bytes(namespace: Namespace) -> int:
    """How large the volumes on engines are together."""
    return Volume.objects.filter(namespace=namespace).aggregate(size=Sum("size"))["size"] or 0


def removed_of(found: Mapping[str, int], kept: Mapping[str, int]) -> dict[str, int]:
    """What has gone, by kind; jobs that were stopped are among the jobs. Pure."""
    kinds = [kind for kind in found if kind != "unfinished_jobs"]
    return {kind: found[kind] - kept.get(kind, 0) for kind in kinds if found[kind] > kept.get(kind, 0)}
