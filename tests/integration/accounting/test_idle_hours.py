"""What parameter servers held without progress is counted each minute: no time twice, and none before it was idle."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from apps.accounting.idle_hours import KEPT, idle_hours_sweep
from apps.accounting.models import IdleHour
from apps.accounting.trends import idle_over_time, scope_of
from apps.jobs.models import Job, Reservation
from apps.namespaces.models import Namespace
from tests.integration.model_versions import job_of

NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def team(db) -> Namespace:
    return Namespace.objects.create(slug="vision")


@pytest.fixture
def server(ada, team) -> Job:
    """A job that has held two cores for parameter servers since 10:00, and two for workers."""
    job = job_of(ada, name="serve", namespace=team)
    for role in ("ps", "worker"):
        Reservation.objects.create(
            job_id=job.pk, job_name="serve", namespace_id=team.pk, namespace_slug="vision", owner_name="ada",
            engine="local", attempt=1, role=role, tasks=1, cpu=2, memory=4 << 30, gpus=0, extended={},
            reserved_at=NOON - timedelta(hours=2, minutes=30),
        )  # fmt: skip
    return job


def counted(now: datetime, period: str = "day") -> dict[str, Decimal]:
    found = idle_over_time(scope_of(period, now))
    return {name: sum(steps.values(), Decimal()) for name, steps in found.items()}


def sweep_each_minute(begin: datetime, end: datetime) -> None:
    while begin <= end:
        idle_hours_sweep(begin)
        begin += MINUTE


def test_each_minute_counts_once_whoever_sweeps_and_by_the_hour(server):
    sweep_each_minute(NOON, NOON + 60 * MINUTE)
    idle_hours_sweep(NOON + 60 * MINUTE)
    idle_hours_sweep(NOON + 30 * MINUTE)
    assert counted(NOON + 61 * MINUTE) == {"vision": Decimal(2)}
    steps = idle_over_time(scope_of("day", NOON + 61 * MINUTE))["vision"]
    assert {f"{step:%H}": value for step, value in steps.items()} == {
        "12": Decimal("0.966667"),
        "13": Decimal("1.033333"),
    }


def test_only_the_time_counts_in_which_it_was_idle(server, settings):
    settings.YARDMASTER_IDLE_SERVERS_AFTER = timedelta(minutes=30)
    Job.objects.filter(pk=server.pk).update(progress_at=NOON - timedelta(minutes=28, seconds=30))
    sweep_each_minute(NOON, NOON + 3 * MINUTE)
    assert sum(IdleHour.objects.filter(resource="cpu").values_list("amount", flat=True)) == 2 * 1000 * 90
    Job.objects.filter(pk=server.pk).update(progress_at=NOON + 4 * MINUTE)
    sweep_each_minute(NOON + 4 * MINUTE, NOON + 6 * MINUTE)
    assert sum(IdleHour.objects.filter(resource="cpu").values_list("amount", flat=True)) == 2 * 1000 * 90


def test_a_pause_of_the_workers_is_not_guessed_and_what_is_old_goes(server):
    idle_hours_sweep(NOON)
    idle_hours_sweep(NOON + timedelta(hours=2))
    assert counted(NOON + timedelta(hours=2)) == {"vision": Decimal("0.166667")}
    idle_hours_sweep(NOON + KEPT + timedelta(hours=4))
    assert not IdleHour.objects.filter(begin__lt=NOON + timedelta(days=1)).exists()


def test_the_dashboard_shows_and_exports_it(server, admin, client):
    now = timezone.now()
    idle_hours_sweep(now - 2 * MINUTE)
    idle_hours_sweep(now - MINUTE)
    client.force_login(admin)
    page = client.get("/admin/dashboard/?period=day").content.decode()
    assert "No parameter server was idle" not in page
    assert 'aria-labelledby="idle-hours-title"' in page
    head, row = csv.reader(io.StringIO(client.get("/admin/dashboard/idle-hours.csv").content.decode()))
    assert head == ["begin", "namespace", "idle_cpu_hours"]
    assert row[1:] == ["vision", "0.033333"]
    assert "No parameter server was idle" in client.get("/admin/dashboard/?space=ada").content.decode()
