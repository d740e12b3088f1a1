"""Pages and API of use: who sees what, and that the figures are those of the ledger."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounting.budgets import budget_set
from apps.accounting.models import Budget
from apps.accounting.rollup import usage_sweep
from apps.accounts.models import User
from apps.jobs.models import Reservation
from apps.namespaces.models import Membership, Namespace
from yardmaster.accounting.prices import price_list
from yardmaster.ids import new_id

HOUR = timedelta(hours=1)
PRICES = {"currency": "EUR", "prices": [{"from": "2020-01-01", "cpu": "0.50", "device/a100": "2"}]}


@pytest.fixture
def team(ada, bob) -> Namespace:
    made = Namespace.objects.create(slug="vision")
    Membership.objects.create(namespace=made, user=ada, role="manager")
    Membership.objects.create(namespace=made, user=bob, role="member")
    return made


def held(namespace: Namespace, owner: User, hours: float, *, ago: timedelta = HOUR * 0, name: str = "train", **more):
    """Two cores and 4 GiB, released so long ago."""
    end = timezone.now().replace(microsecond=0) - ago
    job_id = more.pop("job_id", None) or new_id()
    return Reservation.objects.create(
        job_id=job_id, job_name=name, namespace_id=namespace.pk, namespace_slug=namespace.slug, owner_id=owner.pk,
        owner_name=owner.username, engine="local", attempt=1, role=more.pop("role", "worker"), tasks=1, cpu=2,
        memory=4 << 30, gpus=0, extended=more.pop("extended", {}), reserved_at=end - hours * HOUR, released_at=end,
    )  # fmt: skip


def asked(user: User, **query):
    client = APIClient()
    client.force_authenticate(user)
    return client.get("/api/v1/usage/", {"from": (timezone.now() - timedelta(days=30)).isoformat(), **query})


def test_use_is_grouped_as_was_asked(team, ada, bob):
    held(team, ada, 3, extended={"device/a100": 2})
    held(team, bob, 5, role="ps")
    by_role = asked(ada, namespace="vision", group_by="role").json()
    assert {row["role"]: row["cpu_hours"] for row in by_role["results"]} == {"ps": 10, "worker": 6}
    assert by_role["total"]["device_hours"] == {"device/a100": 6}
    assert by_role["total"]["jobs"] == 2
    by_job = asked(ada, namespace="vision", group_by="job,user").json()["results"]
    assert [(row["username"], row["cpu_hours"], row["jobs"]) for row in by_job] == [("bob", 10, 1), ("ada", 6, 1)]
    by_day = asked(ada, namespace="vision", group_by="day").json()
    assert sum(row["cpu_hours"] for row in by_day["results"]) == by_day["total"]["cpu_hours"] == 16
    assert asked(ada, namespace="vision", group_by="month").json()["total"]["cpu_hours"] == 16


@pytest.mark.parametrize("group", ["day,month", "job,day", "colour", "role,role"])
def test_groups_that_make_no_sense_are_refused(ada, group):
    answer = asked(ada, group_by=group)
    assert answer.status_code == 400
    assert [one["field"] for one in answer.json()["errors"]] == ["group_by"]


def test_members_see_their_own_use_and_managers_that_of_all(team, ada, bob):
    held(team, ada, 3)
    held(team, bob, 5)
    assert asked(bob, namespace="vision").status_code == 403
    mine = asked(bob, namespace="vision", mine=True).json()["results"]
    assert [(row["username"], row["cpu_hours"]) for row in mine] == [("bob", 10)]
    assert asked(bob, mine=True).json()["total"]["cpu_hours"] == 10
    assert asked(ada).json()["total"]["cpu_hours"] == 16


def test_a_foreign_namespace_and_a_foreign_job_are_not_found(team, world, ada, bob):
    stranger = User.objects.create_user("eve", "eve@example.org", "correct horse battery")
    assert asked(stranger, namespace="vision").status_code == 404
    assert asked(stranger, namespace="vision", mine=True).status_code == 404
    job = world.launch(ada)
    client = APIClient()
    client.force_authenticate(stranger)
    assert client.get(f"/api/v1/jobs/{job.pk}/usage/").status_code == 404
    client.force_login(stranger)
    assert client.get(f"/jobs/{job.pk}/hours/").status_code == 404


def test_a_file_has_no_formula(team, ada, settings):
    settings.YARDMASTER_PRICES = price_list(PRICES)
    held(team, ada, 3, name="=HYPERLINK(1)")
    client = APIClient()
    client.force_authenticate(ada)
    begin = (timezone.now() - timedelta(days=2)).isoformat()
    answer = client.get("/api/v1/usage/usage.csv", {"group_by": "job", "namespace": "vision", "from": begin})
    assert answer["Content-Type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert row["job_name"] == "'=HYPERLINK(1)"
    assert (Decimal(row["cpu_hours"]), row["cost"], row["currency"]) == (6, "3.00", "EUR")


def test_the_price_of_the_day_counts_also_for_a_job_that_ran_over_its_change(team, ada, settings):
    row = held(team, ada, 48)
    change = (row.reserved_at + timedelta(days=1)).date()
    prices = [{"from": "2020-01-01", "cpu": "1"}, {"from": f"{change}", "cpu": "3"}]
    settings.YARDMASTER_PRICES = price_list({"currency": "EUR", "prices": prices})
    before = 24 - (row.reserved_at.hour + row.reserved_at.minute / 60 + row.reserved_at.second / 3600)
    for again in (False, True):
        found = asked(ada, namespace="vision", to=timezone.now().isoformat()).json()["total"]
        assert float(found["cost"]) == pytest.approx(2 * before + 2 * 3 * (48 - before), abs=0.01)
        if not again:
            usage_sweep(timezone.now())


def test_a_jobs_hours_are_on_its_page_and_address(client, world, ada):
    job = world.launch(ada)
    world.until_running(job)
    world.now += HOUR
    world.engine.succeed(job)
    world.until_quiet()
    api = APIClient()
    api.force_authenticate(ada)
    found = api.get(f"/api/v1/jobs/{job.pk}/usage/").json()
    assert {row["role"] for row in found["results"]} == {"ps", "worker"}
    assert found["total"]["cpu_hours"] == pytest.approx(3, abs=0.2)
    client.force_login(ada)
    assert "CPU hours" in client.get(f"/jobs/{job.pk}/hours/").content.decode()


def test_people_see_their_own_use_by_month(client, team, ada, bob, django_assert_max_num_queries):
    held(team, ada, 1, name="ada's job")
    held(team, bob, 1, name="bob's job")
    client.force_login(bob)
    with django_assert_max_num_queries(12):
        text = client.get("/usage/").content.decode()
    assert "bob&#x27;s job" in text
    assert "ada&#x27;s job" not in text
    assert client.get("/usage/?month=1999-01").status_code == 404


@pytest.fixture
def administrator(client, admin):
    client.force_login(admin)
    return client


def test_dashboards_are_for_administrators(client, ada):
    client.force_login(ada)
    for path in ("/admin/usage/", "/admin/usage/use.csv", "/admin/usage/2026-11/", "/admin/budgets/"):
        assert client.get(path).status_code == 403


def test_the_dashboard_sums_draws_and_asks_little(administrator, team, ada, bob, django_assert_max_num_queries):
    held(team, ada, 30)
    held(bob.personal_namespace, bob, 2, extended={"device/a100": 1})
    usage_sweep(timezone.now())
    since = (timezone.now() - timedelta(days=20)).date()
    for step in ("day", "week", "month"):
        with django_assert_max_num_queries(12):
            text = administrator.get("/admin/usage/", {"since": since, "step": step}).content.decode()
        assert "64.0" in text
        assert "use-series-1" in text
    text = administrator.get(
        "/admin/usage/", {"since": since, "by": "user", "resource": "device/a100"}
    ).content.decode()
    assert "device/a100 hours" in text
    answer = administrator.get("/admin/usage/use.csv", {"since": since, "step": "month", "by": "namespace"})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert sum(Decimal(row["cpu_hours"]) for row in rows) == 64


@pytest.mark.parametrize("query", ["since=2020-01-01", "since=2027-01-01&until=2026-01-01", "since=x", "step=hour"])
def test_a_range_that_makes_no_sense_is_refused(administrator, query):
    assert administrator.get(f"/admin/usage/?{query}").status_code == 400


def test_a_months_report_has_totals_and_a_file(administrator, team, ada, django_assert_max_num_queries):
    row = held(team, ada, 1)
    month = f"{row.reserved_at:%Y-%m}"
    with django_assert_max_num_queries(12):
        text = administrator.get(f"/admin/usage/{month}/").content.decode()
    assert "vision" in text
    last = administrator.get(f"/admin/usage/{month}/use.csv").content.decode().strip().splitlines()[-1]
    assert last.startswith("total,")
    by_user = administrator.get(f"/admin/usage/{month}/use.csv?by=user").content.decode().strip().splitlines()
    assert by_user[0].startswith("namespace,user,cpu_hours,")
    assert by_user[1].startswith("vision,ada,")
    for wrong in ("2026-13", "9999-01", "x", "1969-01"):
        assert administrator.get(f"/admin/usage/{wrong}/").status_code == 404


def test_a_months_report_says_who_used_how_much_of_which_budget(
    administrator, team, ada, bob, django_assert_max_num_queries
):
    mine, _ = held(team, ada, 4), held(team, bob, 2)
    month = f"{mine.released_at:%Y-%m}"
    file = f"/admin/usage/{month}/use.csv"
    limits = dict.fromkeys(("gpu_hours", "memory_gib_hours", "money")) | {"cpu_hours": Decimal(100)}
    budget_set(namespace=team, limits=limits, actor=ada)
    total = Decimal(administrator.get(file).content.decode().splitlines()[1].split(",")[1])
    with django_assert_max_num_queries(12):
        page = administrator.get(f"/admin/usage/{month}/").content.decode()
    assert f"of 100.0 ({int(total)} %)" in page
    assert page.index("<bdi>ada</bdi>") < page.index("<bdi>bob</bdi>"), "the most first"
    lines = administrator.get(file).content.decode().splitlines()
    assert lines[0].endswith(",budget_percent")
    assert lines[1].startswith("vision,")
    assert lines[1].endswith(f",{int(total)}")
    rows = administrator.get(f"{file}?by=user").content.decode().splitlines()
    assert [row.split(",")[:2] for row in rows[1:]] == [["vision", "ada"], ["vision", "bob"], ["total", ""]]
    assert sum(Decimal(row.split(",")[2]) for row in rows[1:3]) == total


def test_bounds_that_are_typed_count_although_the_box_of_the_default_is_left_on(administrator, team):
    page, typed = f"/admin/budgets/{team.pk}/", {"cpu_hours": "2", "is_default": "on"}
    assert administrator.post(page, typed).status_code == 302
    assert Budget.objects.get(namespace=team).cpu_hours == 2
    wrong = administrator.post(page, typed | {"cpu_hours": "3"})
    assert wrong.status_code == 400, "the box was off, and is on now"
    assert "Either change limits, or use the default budget." in wrong.content.decode()
    assert administrator.post(page, typed).status_code == 302
    assert not Budget.objects.filter(namespace=team).exists(), "the default again"


def test_little_use_does_not_read_as_none(administrator, team, ada):
    held(team, ada, 0.01)
    page = administrator.get("/admin/usage/").content.decode()
    assert "highest: 0.02 CPU hours" in page
    assert '<td class="number">0.02</td><td class="number">0.04</td><td class="number">0.0</td>' in page


@pytest.mark.parametrize(
    ("begin", "end"),
    [("", "9999-12-31T12:00:00Z"), ("0001-01-01T00:00:00Z", "0001-03-01T00:00:00Z"), ("", "9999-12-31T23:59:59-12:00")],
)
def test_times_at_the_ends_of_the_calendar_are_refused_in_words(ada, signed_in, begin, end):
    asked = {"mine": "true", "to": end} | ({"from": begin} if begin else {})
    for address in ("/api/v1/usage/", "/api/v1/usage/usage.csv"):
        assert signed_in(ada).get(address, asked).status_code == 400
