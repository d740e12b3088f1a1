"""Engines in the admin area: what a worker has kept of them is shown, bounded, and no page asks an engine."""

from __future__ import annotations

import re
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.jobs.engines import snapshots
from apps.jobs.engines.snapshots import KEPT, MOST_MACHINES, SAMPLE_EVERY, engines_look, measured_on
from apps.jobs.models import EngineNow, EngineSample, Hold, TaskFact
from apps.jobs.worker.queue_pass import admit_queue
from celery_worker.tasks import look_at_engines
from tests.integration.jobs.test_queue_pass import fill
from yardmaster.engines.base import Machine, MachineState
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Resources
from yardmaster.queueing.placement import Bound, Node

GPU_NODE = Resources(16, 64 << 30, 4, {"nvidia.com/mig-1g.5gb": 2, "rdma/hca": 1})


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(admin, signed_in):
    return signed_in(admin)


def look(world, after: timedelta = timedelta()) -> int:
    return engines_look(clock=lambda: world.now + after)


def text_of(answer) -> str:
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.content.decode()))


def test_others_are_refused(world, ada, client, signed_in):
    client.force_login(ada)
    for path in ("/admin/engines/", "/admin/engines/staged/"):
        assert client.get(path).status_code == 403
    assert client.post("/admin/engines/staged/drain/", {"reason": "x"}).status_code == 403
    for path in ("", "staged/", "staged/machines/"):
        assert signed_in(ada).get(f"/api/v1/admin/engines/{path}").status_code == 403


def test_before_a_worker_has_asked_the_page_says_so(world, desk, office):
    assert "Not checked yet" in text_of(desk.get("/admin/engines/"))
    assert office.get("/api/v1/admin/engines/").json()["results"][0]["state"] == "unknown"


def test_an_engine_has_its_figures_of_every_resource_side_by_side(world, ada, desk, office):
    node = Node("gpu-1", GPU_NODE, Resources(12, 64 << 30, 4, {"nvidia.com/mig-1g.5gb": 2, "rdma/hca": 1}))
    world.engine.set_nodes(node)
    job = world.launch(ada)
    admit_queue("staged", clock=world.clock)
    assert look(world) == 1
    found = office.get("/api/v1/admin/engines/staged/").json()
    assert found["state"] == "answers"
    assert found["machine_count"] == 1
    assert found["running_jobs"] == 1
    assert found["running_tasks"] == 3
    amounts = {one["name"]: one for one in found["amounts"]}
    assert list(amounts) == ["cpu", "memory", "gpus", "nvidia.com/mig-1g.5gb", "rdma/hca"]
    asked = job.needs["cpu"]
    assert amounts["cpu"] == {
        "name": "cpu", "total": 16, "reserved": asked, "others": 4, "free": 12 - asked, "used": 0,
    }  # fmt: skip
    assert amounts["rdma/hca"]["used"] is None
    shown = text_of(desk.get("/admin/engines/"))
    assert "nvidia.com/mig-1g.5gb" in shown
    assert "3 tasks of 1 job hold resources" in shown


def test_no_page_asks_the_engine(world, desk, office, monkeypatch):
    look(world)
    calls = []
    world.engine.before_verb = calls.append
    for path in ("/admin/engines/", "/admin/engines/staged/", "/api/v1/admin/engines/staged/machines/"):
        assert desk.get(path).status_code == 200
    assert calls == []


def test_one_that_does_not_answer_is_said_since_when_and_what_to_check(world, desk, office):
    look(world)
    world.engine.error = Unavailable("The cluster does not answer: timed out.", remedy="See whether it runs.")
    look(world, timedelta(minutes=1))
    first = office.get("/api/v1/admin/engines/staged/").json()
    look(world, timedelta(minutes=2))
    row = EngineNow.objects.get()
    assert row.since == world.now + timedelta(minutes=1)
    assert row.asked_at == world.now + timedelta(minutes=2)
    assert first["state"] == "silent"
    assert first["amounts"]  # what it had when it answered last
    shown = text_of(desk.get("/admin/engines/"))
    assert "Does not answer" in shown
    assert "timed out. See whether it runs." in shown
    assert "What to check" in shown
    world.engine.error = None
    look(world, timedelta(minutes=3))
    row.refresh_from_db()
    assert (row.answers, row.message) == (True, "")
    assert row.since == world.now + timedelta(minutes=3)


def test_without_workers_the_figures_are_said_to_be_old(world, desk, office):
    engines_look(clock=lambda: timezone.now() - timedelta(minutes=6))
    assert office.get("/api/v1/admin/engines/staged/").json()["state"] == "stale"
    assert "Not checked for a while" in text_of(desk.get("/admin/engines/staged/"))


def test_it_is_asked_when_due_and_by_one_worker(world):
    assert look(world) == 1
    assert look(world, timedelta(seconds=5)) == 0
    assert look(world, timedelta(seconds=31)) == 1
    EngineNow.objects.update(next_at=world.now)
    look_at_engines()
    assert EngineNow.objects.get().asked_at is not None


def test_samples_are_taken_now_and_then_and_forgotten(world, ada, desk):
    world.launch(ada)
    admit_queue("staged", clock=world.clock)
    begin = timezone.now() - timedelta(minutes=31)
    EngineSample.objects.create(engine="staged", at=begin - KEPT)
    for minute in range(31):
        engines_look(clock=lambda at=begin + timedelta(minutes=minute): at)
    times = list(EngineSample.objects.order_by("at").values_list("at", flat=True))
    assert len(times) == 4
    assert {later - one for one, later in pairwise(times)} == {SAMPLE_EVERY}
    shown = desk.get("/admin/engines/staged/?resource=memory&span=week").content.decode()
    assert shown.count("<polyline") == 3
    assert "As a table" in shown
    assert desk.get("/admin/engines/staged/?resource=nonsense&span=year").status_code == 200


def test_what_running_tasks_use_is_measured_from_their_last_two_samples(world, job):
    TaskFact.objects.filter(job=job).update(reported_at=world.now, phase="RUNNING", usage={"memory": 1 << 30})
    assert TaskFact.objects.filter(job=job).count() == 3
    fact = TaskFact.objects.filter(job=job).first()
    fact.usage_samples = [[0, 0, 0], [10, 1, 5], [20, 16, 5]]
    fact.save()
    found = measured_on("staged", world.now)
    assert (found.cpu, found.memory) == (1.5, 3 << 30)
    assert measured_on("staged", world.now + timedelta(minutes=10)).memory == 0


def machines(job_id, count: int) -> list[Machine]:
    bound = (Bound(job_id, "worker", Resources(1, 1 << 30)),) * 2
    return [
        Machine(
            f"node-{n:04}", MachineState.CORDONED if n == 7 else MachineState.READY, GPU_NODE, GPU_NODE,
            bound if n == 1 else (), "NVIDIA-H100" if n < 3 else "", {"zone": f"z{n % 2}"},
        )
        for n in range(count)
    ]  # fmt: skip


def test_a_thousand_machines_are_kept_paged_searched_and_cost_twelve_queries(world, ada, desk, office, monkeypatch):
    job = fill(world, ada, 1)[0]
    monkeypatch.setattr(world.engine, "machines", lambda: machines(job.pk, MOST_MACHINES + 5))
    look(world)
    row = EngineNow.objects.get()
    assert row.machine_count == MOST_MACHINES + 5
    assert len(row.machines) == MOST_MACHINES
    desk.get("/admin/engines/staged/")
    with CaptureQueriesContext(connection) as seen:
        shown = text_of(desk.get("/admin/engines/staged/"))
    assert len(seen) <= 12, [one["sql"][:100] for one in seen.captured_queries]
    assert "node-0049" in shown
    assert "node-0050" not in shown
    assert "job 0" in shown
    assert "node-0050" in text_of(desk.get("/admin/engines/staged/?page=2"))
    assert "node-0007" in text_of(desk.get("/admin/engines/staged/?state=cordoned"))
    found = office.get("/api/v1/admin/engines/staged/machines/?search=h100").json()["results"]
    assert [one["name"] for one in found] == ["node-0000", "node-0001", "node-0002"]
    assert found[1]["jobs"] == [str(job.pk)]
    assert found[1]["held"]["cpu"] == 2
    with CaptureQueriesContext(connection) as seen:
        desk.get("/admin/engines/")
    assert len(seen) <= 12, [one["sql"][:100] for one in seen.captured_queries]


def test_one_machine_that_leaves_its_jobs_to_the_portal_shows_them(world, ada, desk):
    job = world.launch(ada)
    admit_queue("staged", clock=world.clock)
    look(world)
    shown = desk.get("/admin/engines/staged/").content.decode()
    assert f"/jobs/{job.pk}/" in shown


def test_a_drain_is_a_click_and_so_is_its_end(world, desk):
    answer = desk.post("/admin/engines/staged/drain/", {"action": "drain", "reason": "New disks"})
    assert answer.headers["Location"] == "/admin/engines/staged/"
    assert Hold.objects.get(engine="staged").reason == "New disks"
    assert "New disks" in text_of(desk.get("/admin/engines/"))
    desk.post("/admin/engines/staged/drain/", {"action": "undrain"})
    assert not Hold.objects.exists()
    desk.post("/admin/engines/staged/drain/", {"action": "drain", "reason": ""})
    assert not Hold.objects.exists()
    assert desk.post("/admin/engines/unknown/drain/", {"reason": "x"}).headers["Location"] == "/admin/engines/"


def test_an_unknown_engine_is_none(world, desk, office):
    assert desk.get("/admin/engines/unknown/").status_code == 404
    assert office.get("/api/v1/admin/engines/unknown/").status_code == 404
    assert office.get("/api/v1/admin/engines/unknown/machines/").status_code == 404


def test_an_engine_that_the_settings_lost_is_shown_while_jobs_wait_for_it(world, ada, desk, settings):
    fill(world, ada, 2)
    settings.YARDMASTER_ENGINES = {"other": settings.YARDMASTER_ENGINES["staged"]}
    settings.YARDMASTER_DEFAULT_ENGINE = "other"
    assert "No longer in the settings" in text_of(desk.get("/admin/engines/staged/"))


def test_a_worker_that_fails_to_ask_is_followed_by_another(world, monkeypatch):
    monkeypatch.setattr(snapshots, "_said", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        look(world)
    assert look(world) == 0
    monkeypatch.undo()
    assert look(world, snapshots.LEASE + timedelta(seconds=1)) == 1
