"""The report of a month and the dashboard over the API: the figures of the pages, for administrators' tokens alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounting.budgets import budget_set
from apps.accounting.month_report import month_of_use
from apps.namespaces.models import Namespace
from tests.integration.accounting.test_dashboard import NOON, attempt, filled, held, rows_of
from yardmaster.ids import new_id

MONTH, DASHBOARD = "/api/v1/admin/usage/2020-02/", "/api/v1/admin/dashboard/"
HOUR = timedelta(hours=1)
MIDNIGHT = "T00:00:00.000000Z"
FIRST = datetime(2020, 2, 1, tzinfo=UTC)
IN_MONTH = datetime(2020, 2, 10, 12, tzinfo=UTC)


@pytest.fixture
def team(db) -> Namespace:
    return Namespace.objects.create(slug="vision")


@pytest.fixture
def token(admin, with_token):
    return with_token(admin, "admin")


@pytest.fixture
def month(team, ada, admin) -> None:
    """Ada 8 core-hours of the team and 1 of a namespace that is gone, Bob 4 of the team; a budget of 24."""
    limits = dict.fromkeys(("gpu_hours", "memory_gib_hours", "money"))
    held(IN_MONTH, IN_MONTH + 4 * HOUR, namespace_id=team.pk, owner_id=ada.pk)
    devices = {"device/a100": 3}
    held(IN_MONTH, IN_MONTH + 2 * HOUR, user="bob", namespace_id=team.pk, owner_id=new_id(), extended=devices)
    held(FIRST - HOUR, FIRST + HOUR / 2, slug="gone", owner_id=ada.pk)
    budget_set(namespace=team, limits=limits | {"cpu_hours": Decimal(24)}, actor=admin)


def test_a_token_reads_the_report_of_a_month(token, month):
    answer = token.get(MONTH)
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert (found["month"], found["from"], found["to"]) == ("2020-02", f"2020-02-01{MIDNIGHT}", f"2020-03-01{MIDNIGHT}")
    assert (found["is_over"], found["currency"]) == (True, "")
    team, gone = found["namespaces"]
    assert (team["namespace"], team["cpu_hours"], team["memory_gib_hours"], team["gpu_hours"]) == ("vision", 12, 24, 6)
    assert (team["device_hours"], team["cost"], team["budget_percent"]) == ({"device/a100": 6}, None, 50)
    assert team["budget"] == [{"name": "cpu_hours", "used": "12.000000", "limit": "24.000", "percent": 50}]
    assert (gone["namespace"], gone["cpu_hours"], gone["budget_percent"], gone["budget"]) == ("gone", 1, None, [])
    assert [(one["username"], one["cpu_hours"]) for one in found["users"]] == [("ada", 9), ("bob", 4)]
    pairs = [(one["namespace"], one["username"], one["cpu_hours"]) for one in found["namespace_users"]]
    assert pairs == [("vision", "ada", 8), ("vision", "bob", 4), ("gone", "ada", 1)]
    assert found["total"]["cpu_hours"] == 13
    assert found["left_out"] == {"namespaces": 0, "users": 0, "namespace_users": 0}


def test_the_file_is_that_of_the_page(token, month, admin, client):
    client.force_login(admin)
    for query, name in (("", "use-2020-02"), ("&by=user", "use-2020-02-by-user")):
        answer = token.get(f"{MONTH}?as=csv{query}")
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{name}.csv"'
        assert answer.content == client.get(f"/admin/usage/2020-02/use.csv?{query}").content
        assert answer.content.decode().splitlines()[1].startswith("vision,")


def test_the_month_that_runs_ends_now_and_lists_are_bounded(token, team, ada, monkeypatch):
    held(timezone.now() - HOUR, None, namespace_id=team.pk, owner_id=ada.pk)
    held(timezone.now() - HOUR, None, slug="audio", owner_id=ada.pk)
    monkeypatch.setattr("apps.accounting.month_views.MOST_ROWS", 1)
    now = timezone.now()
    found = token.get(f"/api/v1/admin/usage/{now:%Y-%m}/").json()
    assert found["is_over"] is False
    assert now <= datetime.fromisoformat(found["to"]) <= timezone.now()
    assert (len(found["namespaces"]), found["left_out"]["namespaces"]) == (1, 1)
    assert found["total"]["cpu_hours"] == pytest.approx(
        float(month_of_use(now.date().replace(day=1), timezone.now()).total.hours["cpu"]), abs=0.1
    )


@pytest.mark.parametrize("wrong", ["2020-13", "9999-01", "x", "1969-01"])
def test_what_is_no_month_that_has_begun_is_not_found(token, wrong):
    assert token.get(f"/api/v1/admin/usage/{wrong}/").status_code == 404


@pytest.mark.parametrize("query", ["as=xml", "by=job", "as=csv&by=engine"])
def test_an_unknown_form_of_the_report_is_refused(token, query):
    assert token.get(f"{MONTH}?{query}").status_code == 400


def test_both_are_for_administrators_with_the_scope_of_administration(admin, ada, with_token):
    for url in (MONTH, DASHBOARD):
        assert with_token(ada, "admin").get(url).status_code == 403
        assert with_token(admin, "jobs").get(url).status_code == 403
        assert with_token(admin, "read").get(url).status_code == 200
        assert with_token(admin, "admin").post(url).status_code == 405


def test_both_cost_at_most_twelve_statements(token, month, ada, team):
    filled(ada, team)
    quarter = f"{DASHBOARD}?period=quarter&namespace=vision&engine=local&resource=memory"
    for url in (MONTH, f"{MONTH}?as=csv&by=user", DASHBOARD, f"{DASHBOARD}?period=day&by=role", quarter):
        with CaptureQueriesContext(connection) as seen:
            assert token.get(url).status_code == 200
        assert len(seen) <= 12, "\n".join(one["sql"][-260:] for one in seen.captured_queries)


def test_the_dashboard_has_the_figures_of_the_page_and_its_files(token, admin, client, ada, team):
    filled(ada, team)
    client.force_login(admin)
    found = token.get(DASHBOARD).json()
    assert (found["step"], found["by"], found["resource"]) == ("day", "namespace", "cpu")
    assert {"cpu", "memory", "gpus"} <= set(found["resources"])
    of_file = [row for row in rows_of(client, "use")[1:] if row[2] == "cpu" and row[1] == "'=cmd|calc"]
    assert [one["name"] for one in found["use"]] == ["vision", "=cmd|calc"]
    steps = found["use"][1]["steps"]
    assert [(one["begin"][:10], one["hours"]) for one in steps] == [(row[0], float(row[3])) for row in of_file]
    assert found["use"][1]["hours"] == 4
    (waste,) = found["waste_by_namespace"]
    assert (waste["namespace"], waste["held_cpu_hours"], waste["used_cpu_hours"]) == ("vision", 4, 1)
    assert (waste["cpu_percent"], waste["memory_percent"]) == (25, 25)
    assert found["waste_by_day"][0]["day"] == f"{timezone.now() - timedelta(days=1):%Y-%m-%d}"
    causes = {one["reason"]: one for one in found["failures"]}
    assert set(causes) == {"OutOfMemory", "<b>Odd"}
    assert (causes["<b>Odd"]["attempts"], causes["<b>Odd"]["steps"][0]["attempts"]) == (1, 1)
    assert causes["OutOfMemory"]["title"] != "OutOfMemory"
    (waits,) = found["waiting_times"]
    assert (waits["attempts"], waits["median_seconds"], waits["ninetieth_percentile_seconds"]) == (2, 180, 180)
    (idle,) = found["idle_servers"]
    assert (idle["namespace"], idle["username"], idle["cpu"], idle["memory"]) == ("vision", "ada", 2, 4 << 30)
    assert found["idle_server_hours"] == []


def test_the_dashboard_has_the_filters_of_the_page(token, ada, team):
    filled(ada, team)

    def names(**query: Any) -> list[str]:
        return [one["name"] for one in token.get(DASHBOARD, query).json()["use"]]

    assert names(by="role") == ["ps", "worker"]
    assert names(namespace="vision") == ["vision"]
    assert names(engine="other") == []
    assert names(resource="no-such") == []
    by_hour = token.get(DASHBOARD, {"period": "day", "resource": "memory"}).json()
    assert (by_hour["step"], by_hour["resource"]) == ("hour", "memory")
    assert by_hour["use"][0]["hours"] == pytest.approx(20, abs=0.1)
    assert len({one["begin"] for one in by_hour["use"][0]["steps"]}) in (5, 6)
    assert by_hour["failures"] == []


def test_failures_of_an_hour_are_told_by_the_hour(token, ada, monkeypatch):
    monkeypatch.setattr("apps.accounting.dashboard_views.timezone.now", lambda: NOON)
    for hours in (3, 3, 5):
        attempt(ada, NOON - hours * HOUR, reason="OutOfMemory")
    (cause,) = token.get(DASHBOARD, {"period": "day"}).json()["failures"]
    steps = [(one["begin"], one["attempts"]) for one in cause["steps"]]
    assert steps == [("2026-11-20T08:00:00.000000Z", 1), ("2026-11-20T10:00:00.000000Z", 2)]


@pytest.mark.parametrize("query", ["period=year", "by=colour", "namespace=no-such", f"engine={'x' * 64}"])
def test_filters_that_make_no_sense_are_refused(token, query):
    assert token.get(f"{DASHBOARD}?{query}").status_code == 400
