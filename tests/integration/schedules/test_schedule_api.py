"""Schedules over the API: who may, what is refused, and the next times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.schedules.models import Schedule
from tests.integration.schedules.conftest import schedule_of, template_of

pytestmark = pytest.mark.django_db
URL = "/api/v1/schedules/"


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


def codes(answer) -> set[tuple[str, str]]:
    return {(one["field"], one["code"]) for one in answer.json()["errors"]}


def test_a_schedule_is_made_changed_paused_resumed_run_and_removed(world, ada, me):
    template = template_of(world, ada)
    body = {"template": str(template.pk), "name": "nightly", "cron": "0 2 * * *", "time_zone": "Europe/Berlin"}
    made = me.post(URL, body | {"parameters": {"lr": "0.5"}}, format="json")
    assert made.status_code == 201, made.json()
    found = made.json()
    assert (found["owner"], found["parameters"], found["overlap"]) == ("ada", {"lr": 0.5}, "skip")
    assert len(found["next_times"]) == 5
    assert found["next_times"][0][11:16] == "02:00"
    address = f"{URL}{found['id']}/"
    assert me.patch(address, {"overlap": "queue", "grace": 0}, format="json").json()["overlap"] == "queue"
    assert me.post(f"{address}pause/").json()["next_at"] is None
    assert me.post(f"{address}resume/").json()["paused_at"] is None
    run = me.post(f"{address}run/")
    assert run.status_code == 201, run.json()
    (listed,) = me.get(f"{address}runs/").json()["results"]
    assert (listed["job"], listed["is_asked_for"], listed["phase"]) == (run.json()["id"], True, "QUEUED")
    assert me.get(URL, {"name": "nightly"}).json()["results"][0]["id"] == found["id"]
    assert me.delete(f"/api/v1/job-templates/{template.pk}/").json()["code"] == "template_in_use"
    assert me.delete(address).status_code == 204
    assert me.get(address).status_code == 404


def test_what_is_wrong_is_named(world, ada, me):
    body = {"template": str(template_of(world, ada).pk), "name": "x", "cron": "* * * * *", "time_zone": "Mars"}
    assert codes(me.post(URL, body, format="json")) == {("time_zone", "unknown_time_zone")}
    answer = me.post(URL, body | {"time_zone": "UTC"}, format="json")
    assert codes(answer) == {("cron", "too_often")}
    body |= {"time_zone": "UTC", "cron": "0 2 * * *"}
    answer = me.post(URL, body | {"parameters": {"rate": 1, "lr": 7}}, format="json")
    assert codes(answer) == {("parameters.rate", "unknown_parameter"), ("parameters.lr", "out_of_range")}
    late = {"starts_at": "2027-02-02T00:00:00Z", "ends_at": "2027-02-01T00:00:00Z"}
    assert codes(me.post(URL, body | late, format="json")) == {("ends_at", "bad_range")}
    assert not Schedule.objects.exists()


def test_the_interval_is_a_setting(world, ada, me, settings):
    bounds = settings.YARDMASTER_SCHEDULES
    settings.YARDMASTER_SCHEDULES = replace(bounds, interval=bounds.interval * 24, schedules=1)
    template = template_of(world, ada)
    body = {"template": str(template.pk), "name": "x", "cron": "*/30 * * * *"}
    assert codes(me.post(URL, body, format="json")) == {("cron", "too_often")}
    assert me.post(URL, body | {"cron": "0 */2 * * *"}, format="json").status_code == 201
    answer = me.post(URL, body | {"cron": "0 3 * * *", "name": "y"}, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_schedules")


def test_times_can_be_looked_at_before(ada, me):
    answer = me.post(f"{URL}times/", {"cron": "30 2 * * 1", "time_zone": "Asia/Tokyo"}, format="json")
    assert [one[11:] for one in answer.json()["next_times"]] == ["02:30:00+09:00"] * 5
    assert me.post(f"{URL}times/", {"cron": "x", "time_zone": "UTC"}, format="json").status_code == 400


def test_strangers_know_nothing_and_viewers_change_nothing(world, ada, bob, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=ada)
    template = template_of(world, ada, team)
    schedule = schedule_of(template, ada)
    his, address = signed_in(bob), f"{URL}{schedule.pk}/"
    assert his.get(address).status_code == 404
    assert his.post(f"{address}run/").status_code == 404
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    assert his.get(address).status_code == 200
    body = {"template": str(template.pk), "name": "x", "cron": "0 2 * * *"}
    refused = [his.post(URL, body, format="json"), his.patch(address, {"name": "y"}), his.delete(address)]
    refused += [his.post(f"{address}{what}/") for what in ("pause", "resume", "run")]
    assert {one.status_code for one in refused} == {403}


@pytest.mark.parametrize("field", ["starts_at", "ends_at"])
@pytest.mark.parametrize("year", ["0001", "1999", "2201", "9999"])
def test_days_that_no_clock_can_show_are_refused(world, ada, me, field, year):
    body = {"template": str(template_of(world, ada).pk), "name": "x", "cron": "0 2 * * *", "time_zone": "UTC"}
    assert (field, "out_of_range") in codes(me.post(URL, body | {field: f"{year}-01-01T00:00:00Z"}, format="json"))
