"""The table of quotas: what jobs reserve before they run, sorted by each figure, and names that engines offer."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.administration.quota_table import Wanted, quota_table
from apps.administration.quota_warnings import quota_warnings_sweep
from apps.audit.models import AuditEvent
from apps.jobs.engines.configured import engine_names
from apps.jobs.models import EngineNow, Reservation
from apps.namespaces.models import Namespace, Quota
from apps.uploads.models import StorageAccount
from tests.integration.model_versions import job_of

pytestmark = pytest.mark.django_db
MIG = "nvidia.com/mig-1g.5gb"


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


def holding(owner, namespace, phase, cpu="1", extended=None):
    """A job of the namespace that holds so much."""
    spec = {"name": "digits", "strategy": "single", "roles": {"worker": {"replicas": 1}}, "entry_point": "a.py"}
    job = job_of(owner, spec=spec, needs={}, strategy="single", namespace=namespace, phase=phase)
    Reservation.objects.create(
        job=job, namespace=namespace, engine="local", attempt=1, role="worker", tasks=1, cpu=cpu, memory=1 << 30,
        gpus=0, extended=extended or {}, reserved_at=timezone.now(),
    )  # fmt: skip
    return job


def cells_of(office, slug):
    rows = office.get("/api/v1/quotas/", {"search": slug}).json()["results"]
    return next(one["resources"] for one in rows if one["slug"] == slug)


def names(office, sort):
    found = office.get("/api/v1/quotas/", {"kind": "team", "sort": sort})
    return [row["slug"] for row in found.json()["results"]]


def knows(amounts):
    """Every engine of the settings has answered, with these amounts."""
    now = timezone.now()
    for name in engine_names():
        row = {"answers": True, "answered_at": now, "asked_at": now, "total": amounts, "next_at": now}
        EngineNow.objects.update_or_create(engine=name, defaults=row)


def test_used_is_of_jobs_that_run_and_reserved_of_jobs_that_start(ada, office, desk):
    vision = team("vision", cpu=8, running_jobs=5)
    holding(ada, vision, "RUNNING", "0.3", {MIG: 1})
    holding(ada, vision, "STOPPING", "2")
    holding(ada, vision, "STARTING", "0.1", {MIG: 2})
    cells = cells_of(office, "vision")
    assert cells["cpu"] == {"used": 2.3, "reserved": 0.1, "hard": 8}
    assert (cells["memory"]["used"], cells["memory"]["reserved"]) == (2 << 30, 1 << 30)
    assert (cells[MIG]["used"], cells[MIG]["reserved"]) == (1, 2)
    assert (cells["running_jobs"]["used"], cells["running_jobs"]["reserved"]) == (2, 1)
    text = desk.get("/admin/quotas/").content.decode()
    assert "+ 0.1 reserved" in text
    assert "Reserved is what starting jobs hold" in text


def test_both_count_against_the_limit_to_a_thousandth(ada):
    vision = team("vision", cpu="0.3")
    holding(ada, vision, "RUNNING", "0.1")
    holding(ada, vision, "STARTING", "0.2")
    cell = next(one for one in quota_table(Wanted()).rows if one.slug == "vision").cells["cpu"]
    assert (cell.share, cell.is_above) == (1.0, False)


def test_it_sorts_by_used_reserved_and_part_each_for_itself(ada, office, desk):
    for slug, cpu, used, reserved in (("a", 10, 1, 6), ("b", 100, 5, 0), ("c", 4, 2, 1), ("d", None, 3, 2)):
        one = team(slug, cpu=cpu)
        holding(ada, one, "RUNNING", used)
        if reserved:
            holding(ada, one, "STARTING", reserved)
    assert names(office, "-cpu.used") == ["b", "d", "c", "a"]
    assert names(office, "-cpu.reserved") == ["a", "d", "c", "b"]
    assert names(office, "cpu.reserved") == ["b", "c", "d", "a"]
    assert names(office, "-cpu.share") == ["c", "a", "b", "d"]
    page = desk.get("/admin/quotas/", {"kind": "team", "sort": "-cpu.reserved"})
    text = page.content.decode()
    assert re.findall(r'aria-label="Select ([^"]+)"', text) == ["a", "d", "c", "b"]
    assert text.count('aria-sort="descending"') == 1
    links = {sort.words: sort.url for sort in page.context["headings"][0].sorts}
    assert list(links) == ["used", "reserved", "limit", "part"]
    by_part = desk.get(links["part"]).content.decode()
    assert re.findall(r'aria-label="Select ([^"]+)"', by_part) == ["c", "a", "b", "d"]
    storage = team("e", storage=10)
    StorageAccount.objects.create(namespace=storage, used=1, reserved=7)
    assert names(office, "-storage.reserved")[0] == "e"


def test_managers_are_warned_of_all_that_is_held_also_of_what_is_only_reserved(ada):
    vision = team("vision", cpu=10, storage=10)
    holding(ada, vision, "RUNNING", 5)
    holding(ada, vision, "STARTING", 5)
    StorageAccount.objects.create(namespace=vision, used=1, reserved=9)
    quota_warnings_sweep(timezone.now())
    told = AuditEvent.objects.filter(action="quota.warn", namespace_id=vision.pk)
    assert {(one.facts["resource"], one.facts["level"], one.facts["used"]) for one in told} == {("cpu", 100, 10.0)}


def test_names_that_engines_have_are_suggested_though_no_one_has_a_limit(desk):
    team("vision", cpu=1)
    knows({"cpu": 64, "memory": 1 << 40, "gpus": 8, MIG: 7, "rdma/hca": 0})
    desk.get("/admin/quotas/")
    with CaptureQueriesContext(connection) as seen:
        text = desk.get("/admin/quotas/").content.decode()
    assert f'<option value="{MIG}="></option>' in text
    assert 'list="resource-names"' in text
    assert f'<code class="text-break">{MIG}</code>' in text
    assert "rdma/hca=" not in text.split("<datalist")[1].split("</datalist>")[0], "there is none of it"
    assert len(seen) <= 8, "as every list"


def test_the_preview_says_that_no_engine_has_a_name_and_the_change_can_be_made(desk, office):
    vision = team("vision", cpu=1, extended={"gone.example/card": 1})
    knows({"cpu": 64, MIG: 7})
    typo = "nvidia.com/mig-1g.5g"
    typed = {"namespace": str(vision.pk), "extended": f"{typo}=2, {MIG}=2, gone.example/card=unlimited", "reason": "x"}
    text = " ".join(desk.post("/admin/quotas/edit/", typed).content.decode().split())
    assert text.count("No engine has a resource of this name.") == 1
    assert f'<bdi class="text-break">{typo}</bdi></strong>: No engine has' in text
    desk.post("/admin/quotas/edit/", typed | {"apply": "1"})
    assert Quota.objects.get(pk=vision.pk).extended == {typo: 2, MIG: 2}
    body = {"namespaces": [str(vision.pk)], "changes": {"extended": {typo: 3}}, "reason": "x", "preview": True}
    assert office.post("/api/v1/quotas/bulk/", body, format="json").json()["unknown"] == [typo]


def test_nothing_is_said_while_an_engine_has_never_answered(desk):
    vision = team("vision", cpu=1)
    EngineNow.objects.all().delete()
    typed = {"namespace": str(vision.pk), "extended": "amd.com/gpu=2", "reason": "x"}
    text = desk.post("/admin/quotas/edit/", typed).content.decode()
    assert "amd.com/gpu" in text
    assert "No engine has a resource" not in text
