"""What the first page of the admin area shows: a few counts, and the holds that keep jobs from starting."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q
from django.urls import reverse

from apps.accounts.models import User
from apps.jobs.models import Hold, Job
from apps.namespaces.models import Namespace
from yardmaster.lifecycle.phases import Phase

MOST_HOLDS = 50


@dataclass(frozen=True)
class Figure:
    """A count, and where to see more of it (empty: nowhere)."""

    count: int
    words: str
    url: str = ""


def figures() -> list[Figure]:
    """Three statements, however much there is."""
    users = User.objects.filter(is_service=False).aggregate(
        active=Count("pk", filter=Q(is_active=True)), locked=Count("pk", filter=Q(is_active=False))
    )
    teams = Namespace.objects.filter(owner=None, closed_at=None).count()
    jobs = Job.objects.filter(phase__in=(Phase.QUEUED, Phase.STARTING, Phase.RUNNING)).aggregate(
        waiting=Count("pk", filter=Q(phase=Phase.QUEUED)), running=Count("pk", filter=~Q(phase=Phase.QUEUED))
    )
    return [
        Figure(users["active"], "active users", reverse("admin_users_page")),
        Figure(users["locked"], "locked users", f"{reverse('admin_users_page')}?state=locked"),
        Figure(teams, "teams", reverse("admin_teams_page")),
        Figure(jobs["running"], "jobs running"),
        Figure(jobs["waiting"], "jobs waiting"),
    ]


@dataclass(frozen=True)
class HoldShown:
    """A hold in words. `url` leads to what is held, or is empty."""

    hold: Hold
    what: str
    url: str


def holds_shown() -> list[HoldShown]:
    """The newest first."""
    rows = Hold.objects.select_related("namespace", "job", "by").order_by("-at")[:MOST_HOLDS]
    return [_shown(one) for one in rows]


def _shown(hold: Hold) -> HoldShown:
    if hold.namespace is not None:
        return HoldShown(hold, f"Namespace {hold.namespace.slug}", reverse("namespace_page", args=[hold.namespace_id]))
    if hold.job is not None:
        return HoldShown(hold, f"Job {hold.job.name}", reverse("job_page", args=[hold.job_id]))
    return HoldShown(hold, f"Engine {hold.engine}", reverse("engines_page"))
