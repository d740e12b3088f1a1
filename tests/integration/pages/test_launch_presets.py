"""Presets of the launch form: made by administrators, offered on the launch page, listed by the API."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.audit.models import AuditEvent
from apps.images.models import Image
from apps.jobs.models import LaunchPreset
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.form_of_page import form_of
from tests.integration.pages.test_launch_page import code, rows
from tests.integration.security.filled import filled

__all__ = ["code", "engine_settings", "stores", "world"]
pytestmark = pytest.mark.django_db
URL = "/api/v1/launch-presets/"
SMALL = {
    "name": "Small", "description": "1 PS, 2 workers, 2 CPU",
    "spec": {
        "strategy": "between_graph", "max_runtime": 7200,
        "roles": {"ps": {"replicas": 1, "cpu": 1}, "worker": {"replicas": 3, "cpu": 2, "memory": "2Gi"}},
    },
}  # fmt: skip


@pytest.fixture
def office(world, admin, signed_in):
    return signed_in(admin)


@pytest.fixture
def small(office):
    return office.post(URL, SMALL, format="json").json()


@pytest.fixture
def desk(world, admin, client):
    client.force_login(admin)
    return client


def test_the_page_makes_one_in_order_and_the_launch_form_is_filled_in_from_it(desk, small, code, ada, client):
    typed = {
        "name": "Large", "description": "Many workers", "strategy": "between_graph", "max_runtime": "1d",
        "engine": "staged", "roles-worker-replicas": "8", "roles-worker-cpu": "4", "roles-ps-replicas": "2",
    }  # fmt: skip
    assert desk.post("/admin/presets/new/", typed).status_code == 302
    large = LaunchPreset.objects.get(name="Large")
    assert large.spec == {
        "strategy": "between_graph", "max_runtime": 86400,
        "roles": {"worker": {"replicas": 8, "cpu": 4}, "ps": {"replicas": 2}},
    }  # fmt: skip
    desk.post(f"/admin/presets/{large.pk}/move/", {"to": "0"})
    assert [one["name"] for one in desk.get(URL).json()] == ["Large", "Small"]
    client.force_login(ada)
    page = client.get("/jobs/launch/").content.decode()
    assert page.index(">Large<") < page.index(">Small<")
    sent = {"take": f"fill:{small['id']}", "name": "mine", "strategy": "single", "code": str(code.pk)}
    sent |= {"roles-worker-replicas": "1", **rows("inputs"), **rows("environment")}
    filled_in = client.post("/jobs/launch/", sent)
    form = form_of(filled_in.content.decode())
    assert form["strategy"] == "between_graph"
    assert (form["roles-worker-replicas"], form["roles-worker-cpu"], form["roles-worker-memory"]) == ("3", "2", "2Gi")
    assert (form["roles-ps-replicas"], form["max_runtime"], form["name"]) == ("1", "2h", "mine")
    assert "Filled in from the preset Small." in filled_in.content.decode()
    part = client.post("/jobs/launch/", sent, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert 'aria-pressed="true"' in part


def test_what_is_wrong_is_said_at_its_field_by_the_rules_of_a_launch(desk, office):
    typed = {"name": "Bad", "strategy": "single", "roles-worker-replicas": "2", "roles-worker-cpu": "many"}
    answer = desk.post("/admin/presets/new/", typed)
    assert answer.status_code == 400
    assert answer.context["form"]["name"].value() == "Bad"
    assert "cpu" in {name for form in answer.context["form"].roles for name in form.errors}
    typed["roles-worker-cpu"] = "2"
    answer = desk.post("/admin/presets/new/", typed)
    assert "replicas" in {name for form in answer.context["form"].roles for name in form.errors}
    refused = office.post(URL, SMALL | {"engine": "gone", "spec": SMALL["spec"] | {"image": "gone"}}, format="json")
    assert {one["field"] for one in refused.json()["errors"]} == {"engine", "image"}
    for spec in ({"strategy": []}, {"strategy": "between_graph", "roles": 1}, {"code": "x"}, {"roles": {"worker": 1}}):
        assert office.post(URL, SMALL | {"spec": spec}, format="json").status_code == 400
    assert not LaunchPreset.objects.exists()


def test_one_whose_image_is_gone_says_so_and_is_not_offered(desk, office, small, ada, client):
    image = filled(Image, name="tensorflow", reference="registry/image:1")
    body = {**SMALL, "spec": SMALL["spec"] | {"image": "tensorflow"}}
    assert office.put(f"{URL}{small['id']}/", body, format="json").status_code == 200
    image.delete()
    listed = office.get(URL).json()[0]
    assert [(one["field"], one["code"]) for one in listed["problems"]] == [("image", "unknown_image")]
    assert "not offered" in desk.get("/admin/presets/").content.decode()
    assert "does not offer this preset" in desk.get(f"/admin/presets/{small['id']}/").content.decode()
    client.force_login(ada)
    assert "Small" not in client.get("/jobs/launch/").content.decode()


def test_a_name_is_taken_once_and_each_change_is_recorded(office, small):
    twice = office.post(URL, SMALL, format="json")
    assert [(one["field"], one["code"]) for one in twice.json()["errors"]] == [("name", "unique")]
    address = f"{URL}{small['id']}/"
    assert office.put(address, SMALL | {"name": "Tiny"}, format="json").json()["name"] == "Tiny"
    assert office.put(f"{address}place/", {"to": 3}, format="json").status_code == 200
    assert office.delete(address).status_code == 204
    assert office.get(address).status_code == 404
    actions = AuditEvent.objects.filter(action__startswith="preset.").order_by("pk").values_list("action", "facts")
    assert [one for one, _ in actions] == ["preset.create", "preset.change", "preset.move", "preset.remove"]
    assert (actions[1][1]["before"]["name"], actions[1][1]["after"]["name"]) == ("Small", "Tiny")


def test_others_read_and_change_nothing(small, ada, signed_in, client):
    api = signed_in(ada)
    assert [one["name"] for one in api.get(URL).json()] == ["Small"]
    assert api.post(URL, SMALL, format="json").status_code == 403
    assert api.delete(f"{URL}{small['id']}/").status_code == 403
    client.force_login(ada)
    for address in ("/admin/presets/", "/admin/presets/new/", f"/admin/presets/{small['id']}/"):
        assert client.get(address).status_code == 403
    assert client.post(f"/admin/presets/{small['id']}/remove/").status_code == 403


def test_many_cost_the_page_no_more_queries(desk, office, small):
    def queries():
        with CaptureQueriesContext(connection) as seen:
            assert desk.get("/admin/presets/").status_code == 200
        return len(seen)

    queries()
    few = queries()
    for number in range(10):
        office.post(URL, SMALL | {"name": f"Preset {number}"}, format="json")
    assert queries() <= few <= 12
