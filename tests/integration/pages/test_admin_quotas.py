"""The table of all quotas: sorted, filtered and changed many at once, by the page and by the API."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.jobs.models import Reservation
from apps.namespaces.models import Namespace, Quota
from apps.notifications import broadcasts
from apps.uploads.models import StorageAccount

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(admin, signed_in):
    return signed_in(admin)


def team(slug, **limits):
    made = Namespace.objects.create(slug=slug)
    Quota.objects.create(namespace=made, **limits)
    return made


def hold_of(namespace, *, cpu=0, memory=0, gpus=0, extended=None):
    Reservation.objects.create(
        job_id=namespace.pk, namespace=namespace, engine="local", attempt=1, role="worker", tasks=1, cpu=cpu,
        memory=memory, gpus=gpus, extended=extended or {}, reserved_at=timezone.now(),
    )  # fmt: skip


def names(answer):
    return [row["slug"] for row in answer.json()["results"]]


def slugs_of(page):
    return re.findall(r'aria-label="Select ([^"]+)"', page.content.decode())


def test_others_are_refused(web, api):
    assert web.get("/admin/quotas/").status_code == 403
    assert web.post("/admin/quotas/edit/", {"cpu": "4"}).status_code == 403
    assert api.get("/api/v1/quotas/").status_code == 403
    assert api.post("/api/v1/quotas/bulk/", {}, format="json").status_code == 403


def test_each_resource_is_shown_by_name_with_what_is_used_reserved_and_allowed(desk, office):
    vision = team("vision", cpu=8, gpus=2, storage=1 << 40, extended={"rdma/hca": 2})
    hold_of(vision, cpu="2.5", memory=1 << 30, gpus=1, extended={"nvidia.com/mig-1g.5gb": 3})
    StorageAccount.objects.create(namespace=vision, used=1 << 30, reserved=1 << 20, files=7)
    row = next(one for one in office.get("/api/v1/quotas/").json()["results"] if one["slug"] == "vision")
    cells = row["resources"]
    assert cells["cpu"] == {"used": 2.5, "reserved": 0, "hard": 8}
    assert cells["storage"] == {"used": 1 << 30, "reserved": 1 << 20, "hard": 1 << 40}
    assert cells["files"] == {"used": 7, "reserved": 0, "hard": None}
    assert cells["rdma/hca"] == {"used": 0, "reserved": 0, "hard": 2}
    assert cells["nvidia.com/mig-1g.5gb"]["hard"] == 0, "a limit on GPUs is one on accelerators"
    text = desk.get("/admin/quotas/").content.decode()
    for words in ("rdma/hca", "nvidia.com/mig-1g.5gb", "1.0 TiB", "reserved"):
        assert words in text


def test_it_sorts_by_any_column_both_ways_and_equal_rows_stay_in_order(desk, office, admin):
    for slug, cpu, held in (("a", 4, 3), ("b", None, 1), ("c", 2, 3), ("d", 4, 0)):
        hold_of(team(slug, cpu=cpu), cpu=held)
    teams = {"kind": "team"}
    assert names(office.get("/api/v1/quotas/", teams | {"sort": "cpu.hard"})) == ["c", "a", "d", "b"]
    assert names(office.get("/api/v1/quotas/", teams | {"sort": "-cpu.hard"})) == ["b", "a", "d", "c"]
    assert names(office.get("/api/v1/quotas/", teams | {"sort": "-cpu.used"})) == ["a", "c", "b", "d"]
    assert names(office.get("/api/v1/quotas/", teams | {"sort": "-cpu.share"})) == ["c", "a", "b", "d"]
    assert names(office.get("/api/v1/quotas/", teams | {"sort": "-name"})) == ["d", "c", "b", "a"]
    assert names(office.get("/api/v1/quotas/", {"kind": "over"})) == ["c"]
    assert slugs_of(desk.get("/admin/quotas/", teams | {"sort": "-cpu.used"})) == ["a", "c", "b", "d"]
    refused = office.get("/api/v1/quotas/", {"sort": "colour.used"})
    assert refused.status_code == 400
    assert "no such column" in desk.get("/admin/quotas/", {"sort": "colour.used"}).content.decode()


def test_pages_follow_each_other_and_a_strange_cursor_is_refused(office):
    for at in range(5):
        team(f"t{at}")
    first = office.get("/api/v1/quotas/", {"kind": "team", "page_size": 2}).json()
    second = office.get(first["next"]).json()
    assert [one["slug"] for one in first["results"] + second["results"]] == ["t0", "t1", "t2", "t3"]
    assert office.get(second["previous"]).json()["results"] == first["results"]
    for cursor in ("x", "0" * 9 + "9" * 20, "99999999"):
        assert office.get("/api/v1/quotas/", {"cursor": cursor}).status_code == 400


def test_thousands_of_namespaces_cost_no_more_queries_than_ten(desk, monkeypatch):
    monkeypatch.setattr(broadcasts, "KEPT", 3600)  # else it is read again every ten seconds

    def queries():
        with CaptureQueriesContext(connection) as seen:
            assert desk.get("/admin/quotas/", {"sort": "-memory.used"}).status_code == 200
        return len(seen)

    desk.get("/admin/quotas/")
    few = queries()
    made = Namespace.objects.bulk_create(Namespace(slug=f"n{at}") for at in range(3_000))
    Quota.objects.bulk_create(Quota(namespace=one, cpu=4) for one in made)
    assert queries() <= few <= 8


def test_many_are_changed_at_once_after_a_preview_and_members_read_why(desk, ada, client):
    teams = [team(f"t{at}", cpu=at + 3, memory=1 << 30) for at in range(3)]
    hold_of(teams[2], cpu=3)
    chosen = [str(one.pk) for one in teams]
    typed = {"namespace": chosen, "cpu": "2", "extended": "amd.com/gpu=4", "reason": "The new cluster"}
    preview = desk.post("/admin/quotas/edit/", typed)
    text = preview.content.decode()
    assert "1 namespace a new limit is below" in text
    assert Quota.objects.get(pk=teams[0].pk).cpu == 3, "a preview changes nothing"
    seen = preview.context["plan"].seen
    applied = desk.post("/admin/quotas/edit/", typed | {"seen": seen, "apply": "1"})
    assert applied.status_code == 302
    for one in Quota.objects.filter(namespace__in=teams):
        assert (one.cpu, one.memory, one.extended) == (2, 1 << 30, {"amd.com/gpu": 4})
    event = AuditEvent.objects.filter(action="quota.set", namespace_id=teams[1].pk).get()
    assert event.facts["reason"] == "The new cluster"
    assert (event.facts["before"]["cpu"], event.facts["after"]["cpu"]) == (4, 2)
    teams[1].memberships.create(user=ada, role="viewer")
    client.force_login(ada)
    shown = client.get(f"/namespaces/{teams[1].pk}/holders/").content.decode()
    assert "The new cluster" in shown


def test_a_reason_is_required_and_what_is_wrong_keeps_what_was_typed(desk):
    one = team("vision", cpu=1)
    answer = desk.post("/admin/quotas/edit/", {"namespace": str(one.pk), "cpu": "four", "reason": "x"})
    assert "Expected a number of cores" in answer.content.decode()
    assert slugs_of(answer)
    assert "checked" in answer.content.decode()
    assert "required" in desk.post("/admin/quotas/edit/", {"namespace": str(one.pk), "cpu": "4"}).content.decode()
    nothing = desk.post("/admin/quotas/edit/", {"cpu": "4", "reason": "x"}).content.decode()
    assert "No namespace is selected" in nothing


def test_all_that_match_are_changed_and_no_others(desk):
    inside, outside = [team(f"vision-{at}") for at in range(60)], team("speech")
    typed = {"everything": "on", "search": "vision", "gpus": "1", "reason": "Fair", "apply": "1"}
    desk.post("/admin/quotas/edit/", typed)
    assert Quota.objects.filter(namespace__in=inside, gpus=1).count() == 60
    assert Quota.objects.get(pk=outside.pk).gpus is None


def test_an_edit_of_another_administrator_is_not_undone(office):
    one = team("vision", cpu=1)
    body = {"namespaces": [str(one.pk)], "changes": {"cpu": 4}, "reason": "More"}
    plan = office.post("/api/v1/quotas/bulk/", body | {"preview": True}, format="json").json()
    assert not plan["applied"]
    assert plan["changed"][0]["moved"][0]["after"] == 4
    Quota.objects.filter(pk=one.pk).update(gpus=7)
    late = office.post("/api/v1/quotas/bulk/", body | {"seen": plan["seen"]}, format="json")
    assert (late.status_code, late.json()["code"]) == (409, "quotas_changed")
    assert Quota.objects.get(pk=one.pk).cpu == 1
    assert office.post("/api/v1/quotas/bulk/", body, format="json").json()["applied"]
    assert Quota.objects.get(pk=one.pk).cpu == 4


def test_null_is_unlimited_and_what_is_omitted_stays(office):
    one = team("vision", cpu=1, gpus=3, extended={"amd.com/gpu": 1, "rdma/hca": 2})
    changes = {"cpu": None, "extended": {"amd.com/gpu": None}}
    body = {"namespaces": [str(one.pk)], "changes": changes, "reason": "No bounds"}
    assert office.post("/api/v1/quotas/bulk/", body, format="json").status_code == 200
    kept = Quota.objects.get(pk=one.pk)
    assert (kept.cpu, kept.gpus, kept.extended) == (None, 3, {"rdma/hca": 2})
    change = json.loads(json.dumps(list(Quota.history.filter(namespace=one).values_list("history_change_reason"))))
    assert change[0] == ["No bounds"]


def test_a_namespace_without_a_row_of_its_own_has_the_default_and_gets_one(office, settings):
    settings.YARDMASTER_DEFAULT_QUOTA = {**settings.YARDMASTER_DEFAULT_QUOTA, "cpu": 2}
    one = Namespace.objects.create(slug="bare")
    row = next(row for row in office.get("/api/v1/quotas/").json()["results"] if row["slug"] == "bare")
    assert row["resources"]["cpu"]["hard"] == 2
    body = {"namespaces": [str(one.pk)], "changes": {"gpus": 1}, "reason": "Begin"}
    assert office.post("/api/v1/quotas/bulk/", body, format="json").status_code == 200
    assert (Quota.objects.get(pk=one.pk).cpu, Quota.objects.get(pk=one.pk).gpus) == (2, 1)
