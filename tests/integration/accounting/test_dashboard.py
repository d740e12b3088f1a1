"""The dashboard of administrators: figures that are those of the ledger, the measurements and the attempts."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounting.models import MeasuredDay
from apps.accounting.trends import Scope, failures_over_time, scope_of, use_over_time, waits_over_time
from apps.jobs.models import JobAttempt, Reservation
from apps.namespaces.models import Namespace
from tests.integration.model_versions import job_of
from yardmaster.ids import new_id

NOON = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def team(db) -> Namespace:
    return Namespace.objects.create(slug="vision")


def held(begin, end, slug="vision", user="ada", **more):
    facts = {"namespace_id": new_id(), "role": "worker", "engine": "local", "extended": {}, "job_id": new_id(), **more}
    return Reservation.objects.create(
        job_name="train", namespace_slug=slug, owner_name=user, attempt=1, tasks=1, cpu=2,
        memory=4 << 30, gpus=1, reserved_at=begin, released_at=end, **facts,
    )  # fmt: skip


def attempt(owner, at, *, reason="", waited=None, **job):
    made = job_of(owner, **job)
    return JobAttempt.objects.create(
        job=made, number=1, spec={}, phase="FAILED" if reason else "SUCCEEDED", reason=reason, queued_at=at,
        started_at=None if waited is None else at + waited, decided_at=at + HOUR,
    )  # fmt: skip


def rows_of(desk, what: str, query: str = "") -> list[list[str]]:
    answer = desk.get(f"/admin/dashboard/{what}.csv{query}")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"] == f'attachment; filename="dashboard-{what}.csv"'
    return list(csv.reader(io.StringIO(answer.content.decode())))


def test_others_are_refused(ada, client):
    client.force_login(ada)
    assert client.get("/admin/dashboard/").status_code == 403
    assert client.get("/admin/dashboard/use.csv").status_code == 403


def test_use_of_a_day_is_by_the_hour(db):
    begin = NOON - 3 * HOUR
    held(begin, begin + HOUR)  # half of it in each of two hours
    held(NOON - timedelta(minutes=30), None, role="ps", extended={"rdma/hca": 2})
    held(NOON - 40 * HOUR, NOON - 30 * HOUR)  # before
    found = use_over_time(scope_of("day", NOON), "role")
    at = {step.hour: value for step, value in found["cpu"]["worker"].items()}
    assert at == {9: Decimal(1), 10: Decimal(1)}
    assert sum(found["cpu"]["ps"].values()) == 1
    assert sum(found["rdma/hca"]["ps"].values()) == 1
    assert set(scope_of("day", NOON).steps) >= set(found["cpu"]["worker"])


def test_a_row_from_before_the_day_counts_within_it_alone(db):
    held(NOON - 100 * HOUR, None)
    found = use_over_time(scope_of("day", NOON), "namespace")["cpu"]["vision"]
    assert len(found) == 24
    assert sum(found.values()) == Decimal("23.5") * 2


def test_use_of_days_is_that_of_the_ledger_and_may_be_narrowed(team):
    held(NOON - 30 * HOUR, NOON - 28 * HOUR, namespace_id=team.pk)
    held(NOON - 30 * HOUR, NOON - 29 * HOUR, slug="audio", engine="cluster")
    found = use_over_time(scope_of("week", NOON), "namespace")["gpus"]
    assert {name: sum(steps.values()) for name, steps in found.items()} == {"vision": 2, "audio": 1}
    of_team = use_over_time(scope_of("week", NOON, "vision"), "namespace")["gpus"]
    assert list(of_team) == ["vision"]
    of_engine = use_over_time(scope_of("week", NOON, "", "cluster"), "namespace")["gpus"]
    assert list(of_engine) == ["audio"]


def test_failures_are_counted_by_cause_and_day(ada, team):
    for hours in (3, 4, 30):
        attempt(ada, NOON - hours * HOUR, reason="OutOfMemory")
    attempt(ada, NOON - 3 * HOUR, reason="ScriptFailed", namespace=team, engine="cluster")
    attempt(ada, NOON - 3 * HOUR)
    attempt(ada, NOON - 300 * HOUR, reason="OutOfMemory")
    found = failures_over_time(scope_of("week", NOON))
    counts = {reason: {f"{step}": n for step, n in steps.items()} for reason, steps in found.items()}
    assert counts == {"OutOfMemory": {"2026-11-20": 2, "2026-11-19": 1}, "ScriptFailed": {"2026-11-20": 1}}
    assert list(failures_over_time(scope_of("week", NOON, "vision"))) == ["ScriptFailed"]
    assert list(failures_over_time(scope_of("week", NOON, "", "cluster"))) == ["ScriptFailed"]
    hourly = failures_over_time(scope_of("day", NOON))["OutOfMemory"]
    assert sorted(step.hour for step in hourly) == [9, 10]


def waiting(owner) -> Scope:
    for seconds in (10, 20, 30, 40, 1000):
        attempt(owner, NOON - 3 * HOUR, waited=timedelta(seconds=seconds))
    attempt(owner, NOON - 30 * HOUR, waited=timedelta(seconds=-1))
    attempt(owner, NOON - 30 * HOUR)
    return scope_of("week", NOON)


def check_waits(scope: Scope) -> None:
    first, second = waits_over_time(scope)
    assert (f"{first.step}", first.count, first.longest) == ("2026-11-19", 1, timedelta())
    assert second.count == 5
    assert second.median == timedelta(seconds=30)
    assert second.ninth == timedelta(seconds=1000)
    assert second.longest == timedelta(seconds=1000)


def test_waiting_times_are_median_and_ninetieth_percentile_of_each_day(ada):
    check_waits(waiting(ada))


def filled(ada, team) -> None:
    now = timezone.now()
    held(now - 30 * HOUR, now - 28 * HOUR, slug="=cmd|calc", namespace_id=team.pk)
    server = job_of(ada, name="serve", namespace=team)
    held(now - 5 * HOUR, None, slug="vision", namespace_id=team.pk, role="ps", job_id=server.pk)
    attempt(ada, now - 26 * HOUR, reason="OutOfMemory", waited=timedelta(minutes=3))
    attempt(ada, now - 26 * HOUR, reason="<b>Odd", waited=timedelta(minutes=3))
    for resource, used in (("cpu", 3_600_000), ("memory", 3600 << 20)):
        MeasuredDay.objects.create(
            day=(now - timedelta(days=1)).date(), namespace_id=team.pk, namespace_slug="vision", role="worker",
            engine="local", resource=resource, held=4 * used, used=used,
        )  # fmt: skip


def test_the_page_has_pictures_and_tables_and_costs_twelve_queries(ada, team, desk):
    filled(ada, team)
    desk.get("/admin/dashboard/")
    for query in ("", "?period=day&by=role", "?period=quarter&space=vision&engine=local&resource=memory"):
        with CaptureQueriesContext(connection) as seen:
            answer = desk.get(f"/admin/dashboard/{query}")
        assert answer.status_code == 200
        assert len(seen) <= 12, "\n".join(one["sql"][-260:] for one in seen.captured_queries)
    page = desk.get("/admin/dashboard/").content.decode()
    assert page.count('class="use-bars"') == 2
    assert page.count('class="plot-lines"') == 2
    assert "&lt;b&gt;Odd" in page
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert "vision 4.0 1.0 25" in text
    assert "3m" in text or "3 min" in text


def test_each_table_is_a_file_without_formulas(ada, team, desk):
    filled(ada, team)
    use = rows_of(desk, "use")
    assert use[0] == ["begin", "namespace", "resource", "hours"]
    assert {row[1] for row in use[1:]} == {"'=cmd|calc", "vision"}
    assert rows_of(desk, "waste")[1] == ["vision", "4.000000", "1.000000", "4.000000", "1.000000"]
    assert {row[1] for row in rows_of(desk, "failures")[1:]} == {"OutOfMemory", "<b>Odd"}
    assert rows_of(desk, "waits")[1][1:] == ["2", "180.0", "180.0", "180.0"]
    assert rows_of(desk, "idle")[1][3] == "train"
    assert rows_of(desk, "use", "?by=role&period=day")[0][1] == "role"
    assert desk.get("/admin/dashboard/nothing.csv").status_code == 404
    assert desk.get("/admin/dashboard/use.csv?period=year").status_code == 404


def test_nothing_yet_and_what_there_is_not(desk):
    page = desk.get("/admin/dashboard/").content.decode()
    assert "No attempt failed in this period" in page
    assert "Nothing was measured" in page
    wrong = desk.get("/admin/dashboard/?space=nothing")
    assert wrong.status_code == 400
    assert "There is no namespace nothing" in wrong.content.decode()
    assert desk.get("/admin/dashboard/?resource=nothing&engine=nothing").status_code == 200
