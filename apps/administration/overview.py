"""What the first page of the admin area shows: a few counts, and the holds that keep jobs from starting."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.urls import reverse

from apps.accounts.models import User
from apps.jobs.engines.configured import engine_names
from apps.jobs.models import Cause, Hold, Job
from apps.namespaces.models import Namespace
from yardmaster.lifecycle.phases import Phase

MOST_HOLDS = 50
_RUNNING = urlencode({"where": "all", "phase": [Phase.STARTING.value, Phase.RUNNING.value]}, doseq=True)
"""The filters of the list of jobs that are counted as running."""


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
        Figure(jobs["running"], "jobs running", f"{reverse('jobs_page')}?{_RUNNING}"),
        Figure(jobs["waiting"], "jobs waiting", reverse("admin_queue_page")),
    ]


@dataclass(frozen=True)
class HoldShown:
    """A hold in words. `url` leads to what is held, `name` is its name. `can_release`: an administrator made it; that
    of a budget ends with the budget."""

    hold: Hold
    kind: str
    name: str
    url: str

    @property
    def can_release(self) -> bool:
        return self.hold.cause == Cause.ADMINISTRATOR


def holds_shown() -> list[HoldShown]:
    """The newest first."""
    rows = Hold.objects.select_related("namespace", "job", "by").order_by("-at")[:MOST_HOLDS]
    return [_shown(one) for one in rows]


def _shown(hold: Hold) -> HoldShown:
    if hold.namespace is not None:
        url = reverse("namespace_page", args=[hold.namespace_id])
        return HoldShown(hold, "Namespace", hold.namespace.slug, url)
    if hold.job is not None:
        return HoldShown(hold, "Job", hold.job.name, reverse("job_page", args=[hold.job_id]))
    # One that is no longer in the settings may have no page of its own.
    is_known = hold.engine in engine_names()
    url = reverse("admin_engine_page", args=[hold.engine]) if is_known else reverse("admin_engines_page")
    return HoldShown(hold, "Engine", hold.engine, url)
