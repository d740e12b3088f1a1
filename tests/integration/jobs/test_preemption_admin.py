"""Allowing preemption on an engine, by page and by API; who sees what was preempted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.audit.models import AuditEvent
from apps.jobs.models import PreemptionPolicy
from apps.namespaces.models import PriorityClass
from tests.integration.jobs.test_preemptions import running
from yardmaster.job.spec import Resources

PAGE, API = "/admin/preemption/", "/api/v1/preemption/"


@pytest.fixture
def console(client, admin):
    client.force_login(admin)
    return client


def test_it_is_off_until_an_administrator_allows_it(world, console, admin, signed_in):
    api = signed_in(admin)
    usual = {"engine": "staged", "is_on": False, "least_minutes": 10, "most_a_day": 3}
    assert api.get(API).json() == [usual]
    assert "No job was preempted" in console.get(PAGE).content.decode()
    said = {"engine": "staged", "is_on": "on", "least_minutes": "30", "most_a_day": "2"}
    assert console.post(PAGE, said).status_code == 302
    assert api.get(API).json() == [{"engine": "staged", "is_on": True, "least_minutes": 30, "most_a_day": 2}]
    told = AuditEvent.objects.get(action="preemption.change")
    assert (told.facts["is_on_before"], told.facts["is_on"], told.facts["least_minutes_before"]) == (False, True, 10)
    answer = api.patch(f"{API}staged/", {"most_a_day": 1}, format="json")
    assert answer.json() == {"engine": "staged", "is_on": True, "least_minutes": 30, "most_a_day": 1}


@pytest.mark.parametrize(("field", "value"), [("least_minutes", 0), ("most_a_day", 101), ("least_minutes", 10**6)])
def test_what_is_out_of_bounds_is_refused_with_its_field(world, console, admin, signed_in, field, value):
    answer = signed_in(admin).patch(f"{API}staged/", {field: value}, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field
    said = {"engine": "staged", "least_minutes": "10", "most_a_day": "3", field: str(value)}
    assert console.post(PAGE, said).status_code == 400
    assert not PreemptionPolicy.objects.exists()


def test_an_engine_that_is_not_there_is_not_found_and_users_may_not_ask(world, ada, admin, signed_in, client):
    assert signed_in(admin).patch(f"{API}nowhere/", {"is_on": True}, format="json").status_code == 404
    assert signed_in(ada).get(API).status_code == 403
    client.force_login(ada)
    assert client.get(PAGE).status_code == 403


def test_a_class_says_whether_it_takes_places_and_is_spared(world, console, admin, signed_in):
    said = {"name": "urgent", "value": "100", "users": "everyone", "preempts": "on"}
    assert console.post("/admin/priority-classes/", said).status_code == 302
    made = PriorityClass.objects.get()
    assert (made.preempts, made.is_preemptible) == (True, False)
    answer = signed_in(admin).patch("/api/v1/priority-classes/urgent/", {"is_preemptible": True}, format="json")
    assert (answer.json()["preempts"], answer.json()["is_preemptible"]) == (True, True)
    told = AuditEvent.objects.filter(action="priority_class.change").latest("pk").facts
    assert (told["is_preemptible_before"], told["is_preemptible"]) == (False, True)
    assert "preempts" in console.get("/admin/priority-classes/").content.decode()


def test_the_owner_reads_on_the_page_who_needed_the_place_and_the_administrator_in_the_list(
    world, ada, bob, console, client, django_assert_max_num_queries
):
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=4, memory=64 << 30)] * 3)
    PreemptionPolicy.objects.create(engine="staged", is_on=True)
    PriorityClass.objects.create(name="urgent", value=500, preempts=True)
    old = running(world, bob)
    urgent = world.launch(ada, priority_class="urgent")
    world.settle()
    assert world.again(old).attempt == 2
    with django_assert_max_num_queries(12):
        page = console.get(PAGE).content.decode()
    assert f"a job of {urgent.namespace.slug}" in page
    assert "class urgent" in page
    client.force_login(bob)
    page = client.get(f"/jobs/{old.pk}/").content.decode()
    words = f"A job of the namespace {urgent.namespace.slug}, whose priority class urgent is higher, needed its place."
    assert page.count(words) >= 2, "beside the state and in the events"
    world.engine.succeed(urgent)
    world.now += timedelta(seconds=30)
    world.passes(60)
    assert world.again(old).phase == "RUNNING"
    page = client.get(f"/jobs/{old.pk}/").content.decode()
    assert page.count(words) == 2, "in the events and of the attempt that ended"
