"""Holds of namespaces and engines by themselves: made and released by page and API, also where no job waits."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.audit.models import AuditEvent
from apps.jobs.models import Cause, Hold
from apps.jobs.state.holds import hold
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for

ACTIONS = "/api/v1/queue/actions/"


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(admin, signed_in):
    return signed_in(admin)


@pytest.fixture
def vision(db):
    return Namespace.objects.create(slug="vision", title="Vision")


def hold_on(page):
    return page.content.decode().split('aria-labelledby="hold-title"')[1].split("</section>")[0]


@pytest.mark.parametrize("by", ["slug", "pk"])
def test_a_namespace_without_jobs_is_held_and_released_by_its_name_or_id(vision, office, by):
    name = str(getattr(vision, by))
    body = {"action": "hold", "namespaces": [name], "reason": "The invoice is open"}
    assert office.post(ACTIONS, body, format="json").json() == {"count": 1}
    assert Hold.objects.get().namespace == vision
    assert office.post(ACTIONS, {"action": "release", "namespaces": [name]}, format="json").json() == {"count": 1}
    assert not Hold.objects.exists()
    told = AuditEvent.objects.filter(action__startswith="hold.", namespace_id=vision.pk).order_by("pk")
    assert [one.action for one in told] == ["hold.set", "hold.lift"]
    assert told[0].facts["reason"] == "The invoice is open"


def test_jobs_and_namespaces_are_held_with_one_action(world, ada, vision, office):
    job = world.launch(ada)
    body = {"action": "hold", "jobs": [str(job.pk)], "namespaces": ["vision"], "reason": "Both"}
    assert office.post(ACTIONS, body, format="json").json() == {"count": 2}
    assert {one.job_id or one.namespace_id for one in Hold.objects.all()} == {job.pk, vision.pk}
    body = {"action": "release_namespaces", "jobs": [str(job.pk)], "namespaces": [vision.slug]}
    assert office.post(ACTIONS, body, format="json").json() == {"count": 1}
    assert Hold.objects.get().job_id == job.pk, "its namespace was not held"


@pytest.mark.parametrize("unknown", ["nowhere", str(uuid.UUID(int=7))])
def test_an_unknown_namespace_is_named_and_nothing_is_held(vision, office, unknown):
    body = {"action": "hold", "namespaces": ["vision", unknown], "reason": "x"}
    answer = office.post(ACTIONS, body, format="json")
    assert answer.status_code == 400
    assert (answer.json()["errors"][0]["field"], answer.json()["errors"][0]["value"]) == ("namespaces", unknown)
    assert unknown in answer.json()["errors"][0]["message"]
    assert not Hold.objects.exists()


def test_what_can_not_be_done_with_namespaces_is_refused(vision, office):
    for action in ("stop", "front", "end", "drain"):
        body = {"action": action, "namespaces": ["vision"], "reason": "x", "engine": "staged"}
        assert office.post(ACTIONS, body, format="json").json()["errors"][0]["field"] == "namespaces"
    without = office.post(ACTIONS, {"action": "hold", "namespaces": ["vision"]}, format="json")
    assert without.json()["errors"][0]["field"] == "reason"
    assert office.post(ACTIONS, {"action": "hold", "reason": "x"}, format="json").json()["errors"][0]["field"] == "jobs"


def test_an_administrator_holds_a_namespace_on_its_page_and_releases_it(world, ada, desk, client):
    mine = namespace_for(ada, None)
    address = f"/namespaces/{mine.pk}/"
    desk.get(address)
    with CaptureQueriesContext(connection) as free:
        page = desk.get(address)
    assert "Hold the namespace" in hold_on(page)
    desk.post(f"{address}hold/", {"action": "hold"})
    assert not Hold.objects.exists(), "without a reason"
    desk.post(f"{address}hold/", {"action": "hold", "reason": "Ask first"})
    job = world.launch(ada)
    admit_queue("staged", clock=world.clock)
    job.refresh_from_db()
    assert (job.phase, job.reason) == ("QUEUED", "Suspended")
    desk.get(address)  # shows what was done, once
    with CaptureQueriesContext(connection) as held:
        page = desk.get(address)
    assert "Release" in hold_on(page)
    assert len(held) <= len(free), "the form asks for nothing more"
    client.force_login(ada)
    text = client.get(address).content.decode()
    assert "Ask first" in text
    assert 'id="hold-title"' not in text, "only administrators release it"


def test_releasing_on_the_page_lets_jobs_start_again(world, ada, desk):
    mine = namespace_for(ada, None)
    desk.post(f"/namespaces/{mine.pk}/hold/", {"action": "hold", "reason": "Ask first"})
    job = world.launch(ada)
    desk.post(f"/namespaces/{mine.pk}/hold/", {"action": "release"})
    admit_queue("staged", clock=world.clock)
    job.refresh_from_db()
    assert job.phase == "STARTING"
    again = desk.post(f"/namespaces/{mine.pk}/hold/", {"action": "release"}, follow=True)
    assert "released already" in again.content.decode()


def test_a_budgets_hold_is_not_released_by_an_administrator(vision, desk):
    of_budget = hold(vision, reason="", actor=None, cause=Cause.BUDGET)
    assert "Hold the namespace" in desk.get(f"/namespaces/{vision.pk}/").content.decode()
    assert f"/admin/holds/{of_budget.pk}/release/" not in desk.get("/admin/").content.decode()
    desk.post(f"/admin/holds/{of_budget.pk}/release/")
    assert Hold.objects.filter(pk=of_budget.pk).exists()


def test_the_overview_releases_engines_namespaces_and_jobs(world, ada, admin, vision, desk):
    job = world.launch(ada)
    held = [hold(one, reason="Why", actor=admin) for one in ("staged", vision, job)]
    text = desk.get("/admin/").content.decode()
    assert 'href="/admin/engines/staged/"' in text
    assert 'href="/engines/"' not in text.split('id="holds-title"')[1].split("</section>")[0]
    for one in held:
        address = f"/admin/holds/{one.pk}/release/"
        assert f'action="{address}"' in text
        assert desk.get(address).status_code == 405
        assert desk.post(address)["Location"] == "/admin/#holds-title"
        assert not Hold.objects.filter(pk=one.pk).exists()
    assert AuditEvent.objects.filter(action="hold.lift").count() == 3
    again = desk.post(f"/admin/holds/{held[0].pk}/release/", follow=True)
    assert "released already" in again.content.decode()
    assert "Nothing is held" in again.content.decode()


def test_the_drain_of_an_engine_that_left_the_settings_can_be_ended(admin, desk, office):
    of_engine = hold("gone", reason="Sold", actor=admin)
    assert 'href="/admin/engines/gone/"' not in desk.get("/admin/").content.decode(), "it has no page"
    desk.post(f"/admin/holds/{of_engine.pk}/release/")
    assert not Hold.objects.exists()
    assert office.post(ACTIONS, {"action": "undrain", "engine": "gone"}, format="json").status_code == 404


def test_the_figures_lead_to_the_jobs_that_they_count(world, ada, desk):
    waiting, running = world.launch(ada), world.launch(ada)
    running.__class__.objects.filter(pk=running.pk).update(phase="RUNNING")
    page = desk.get("/admin/")
    urls = {one.words: one.url for one in page.context["figures"]}
    listed = desk.get(urls["jobs running"]).content.decode()
    assert f"/jobs/{running.pk}/" in listed
    assert f"/jobs/{waiting.pk}/" not in listed
    assert f"/jobs/{waiting.pk}/" in desk.get(urls["jobs waiting"]).content.decode()


def test_others_neither_hold_nor_release(ada, admin, vision, client):
    held = hold(vision, reason="Why", actor=admin)
    vision.memberships.create(user=ada, role="manager")
    client.force_login(ada)
    assert client.post(f"/namespaces/{vision.pk}/hold/", {"action": "release"}).status_code == 403
    assert client.post(f"/admin/holds/{held.pk}/release/").status_code == 403
    assert Hold.objects.filter(pk=held.pk).exists()
