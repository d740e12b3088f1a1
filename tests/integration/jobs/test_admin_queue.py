"""The queue in the admin area: a stuck queue is explained, and freed, by the page and by the API."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.audit.models import AuditEvent
from apps.jobs.models import Hold, Job, JobEvent
from apps.jobs.worker.queue_pass import admit_queue
from tests.integration.jobs.test_queue_pass import fill
from yardmaster.job.spec import Resources


@pytest.fixture
def desk(admin, client):
    client.force_login(admin)
    return client


@pytest.fixture
def office(admin, signed_in):
    return signed_in(admin)


def decide(world):
    admit_queue("staged", clock=world.clock)


def room_for_one(world, job):
    room = Resources(cpu=job.needs["cpu"], memory=64 << 30)
    world.engine._capacity = type(world.engine._capacity)(room, room, room)


def one_at_a_time(world, ada, count=4):
    """The engine has room for the first; the others wait, each in a namespace of its own."""
    jobs = fill(world, ada, count, namespaces=count)
    room_for_one(world, jobs[0])
    decide(world)
    return jobs


def order(office):
    return [row["name"] for row in office.get("/api/v1/queue/").json()["results"]]


def test_others_are_refused(world, ada, client, signed_in):
    client.force_login(ada)
    assert client.get("/admin/queue/").status_code == 403
    assert client.post("/admin/queue/act/", {"action": "drain"}).status_code == 403
    assert signed_in(ada).get("/api/v1/queue/").status_code == 403
    assert signed_in(ada).post("/api/v1/queue/actions/", {"action": "drain"}, format="json").status_code == 403


def test_a_look_says_who_waits_for_what_and_who_holds_it(world, ada, desk, office):
    one_at_a_time(world, ada)
    rows = office.get("/api/v1/queue/").json()["results"]
    assert [(one["name"], one["position"]) for one in rows] == [("job 1", 0), ("job 2", 1), ("job 3", 2)]
    assert rows[0]["reason"] == "WaitingForCapacity"
    assert rows[0]["holders"][0]["name"] == "job 0"
    assert rows[0]["asked"]["cpu"] > 0
    text = " ".join(desk.get("/admin/queue/").content.decode().split())
    assert "<strong>3</strong> jobs wait for CPU" in text
    assert "job 0" in text


def test_a_thousand_jobs_are_paged_and_cost_twelve_queries_at_most(world, ada, desk):
    fill(world, ada, 1_000, namespaces=20)
    decide(world)
    desk.get("/admin/queue/")
    with CaptureQueriesContext(connection) as seen:
        answer = desk.get("/admin/queue/?page=2")
    assert answer.content.decode().count('name="job"') == 50
    assert len(seen) <= 12, [one["sql"][:100] for one in seen.captured_queries]


def test_a_job_is_moved_to_the_front_and_its_owner_reads_why(world, ada, admin, office):
    jobs = one_at_a_time(world, ada)
    body = {"action": "front", "jobs": [str(jobs[3].pk)], "reason": "A deadline at noon"}
    assert office.post("/api/v1/queue/actions/", body, format="json").json() == {"count": 1}
    decide(world)
    assert order(office) == ["job 3", "job 1", "job 2"]
    assert "A deadline at noon" in JobEvent.objects.get(job=jobs[3], kind="moved").message
    facts = AuditEvent.objects.get(action="job.move").facts
    assert facts["reason"] == "A deadline at noon"
    assert {"turn_at", "turn_at_before", "priority", "priority_before"} <= facts.keys()


def test_a_job_is_moved_to_the_end_and_a_pass_decides_it_last(world, ada, office):
    jobs = one_at_a_time(world, ada)
    body = {"action": "end", "jobs": [str(jobs[1].pk)], "reason": "It can wait until the night"}
    assert office.post("/api/v1/queue/actions/", body, format="json").json() == {"count": 1}
    decide(world)
    assert order(office) == ["job 2", "job 3", "job 1"]
    assert "to the end of the queue" in JobEvent.objects.get(job=jobs[1], kind="moved").message
    facts = AuditEvent.objects.get(action="job.move").facts
    assert facts["reason"] == "It can wait until the night"
    assert facts["turn_at"] == facts["place_at"]
    assert {"turn_at_before", "place_at_before", "priority_before"} <= facts.keys()


@pytest.mark.parametrize("namespaces", [1, 2])
def test_the_end_is_behind_the_jobs_of_the_same_namespace_in_the_order_they_were_chosen(
    world, ada, office, namespaces
):  # fmt: skip
    jobs = fill(world, ada, 6, namespaces=namespaces)
    room_for_one(world, jobs[0])
    Job.objects.filter(pk__in=[jobs[2].pk, jobs[3].pk]).update(priority=5)
    decide(world)
    chosen = [one.pk for one in Job.objects.waiting().order_by("position")][:2][::-1]
    body = {"action": "end", "jobs": [str(one) for one in chosen], "reason": "Last"}
    assert office.post("/api/v1/queue/actions/", body, format="json").status_code == 200
    decide(world)
    assert [one.pk for one in Job.objects.waiting().order_by("position")][-2:] == chosen


def test_a_job_at_the_end_is_moved_to_the_front_again_by_the_page(world, ada, desk, office):
    jobs = one_at_a_time(world, ada)
    assert "Move to the end" in desk.get("/admin/queue/").content.decode()
    chosen = {"engine": "staged", "job": str(jobs[1].pk), "reason": "Not now"}
    desk.post("/admin/queue/act/", chosen | {"action": "end"})
    decide(world)
    assert order(office)[-1] == "job 1"
    desk.post("/admin/queue/act/", chosen | {"action": "front"})
    decide(world)
    assert order(office)[0] == "job 1"


def test_the_front_is_before_the_jobs_of_the_same_namespace_also_where_they_share_turns(world, ada, office):
    jobs = fill(world, ada, 5, namespaces=1)
    room_for_one(world, jobs[0])
    Job.objects.filter(pk=jobs[2].pk).update(priority=5)
    decide(world)
    waiting = [one.pk for one in Job.objects.waiting().order_by("position")]
    body = {"action": "front", "jobs": [str(waiting[-1]), str(waiting[-2])], "reason": "First"}
    assert office.post("/api/v1/queue/actions/", body, format="json").status_code == 200
    decide(world)
    assert {one.pk for one in Job.objects.waiting().order_by("position")[:2]} == set(waiting[-2:])


def test_a_priority_is_set_and_one_out_of_range_is_refused(world, ada, office):
    jobs = one_at_a_time(world, ada)
    body = {"action": "priority", "jobs": [str(jobs[3].pk)], "reason": "Later"}
    assert office.post("/api/v1/queue/actions/", body, format="json").json()["errors"][0]["field"] == "priority"
    assert office.post("/api/v1/queue/actions/", body | {"priority": -5}, format="json").status_code == 200
    assert Job.objects.get(pk=jobs[3].pk).priority == -5
    assert office.post("/api/v1/queue/actions/", body | {"priority": 5000}, format="json").status_code == 400


def test_one_that_does_not_wait_any_more_leaves_all_where_they_were(world, ada, office):
    jobs = one_at_a_time(world, ada)
    body = {"action": "front", "jobs": [str(jobs[3].pk), str(jobs[0].pk)], "reason": "Both"}
    answer = office.post("/api/v1/queue/actions/", body, format="json")
    assert (answer.status_code, answer.json()["code"]) == (409, "not_waiting")
    assert not Job.objects.exclude(turn_at=None).exists()


@pytest.mark.parametrize(("do", "undo"), [("hold", "release"), ("hold_namespaces", "release_namespaces")])
def test_jobs_and_their_namespaces_are_held_with_a_reason_and_released(world, ada, desk, do, undo):
    jobs = one_at_a_time(world, ada)
    chosen = {"engine": "staged", "job": str(jobs[1].pk)}
    desk.post("/admin/queue/act/", chosen | {"action": do})
    assert not Hold.objects.exists(), "without a reason"
    desk.post("/admin/queue/act/", chosen | {"action": do, "reason": "The data are wrong"})
    decide(world)
    assert "The data are wrong" in Job.objects.get(pk=jobs[1].pk).message
    assert "held</span>" in desk.get("/admin/queue/").content.decode()
    desk.post("/admin/queue/act/", chosen | {"action": undo})
    assert not Hold.objects.exists()


def test_an_engine_is_drained_and_started_again(world, ada, desk):
    one_at_a_time(world, ada)
    desk.post("/admin/queue/act/", {"engine": "staged", "action": "drain", "reason": "New disks until 18:00"})
    assert "New disks until 18:00" in desk.get("/admin/queue/").content.decode()
    decide(world)
    assert set(Job.objects.waiting().values_list("reason", flat=True)) == {"Suspended"}
    desk.post("/admin/queue/act/", {"engine": "staged", "action": "undrain"})
    decide(world)
    assert not Job.objects.waiting().filter(reason="Suspended").exists()
    answer = desk.post("/admin/queue/act/", {"engine": "nowhere", "action": "drain", "reason": "x"}, follow=True)
    assert "no such engine" in answer.content.decode()


def test_what_blocks_is_stopped_and_the_next_starts(world, ada, office):
    jobs = one_at_a_time(world, ada)
    body = {"action": "stop", "jobs": [str(jobs[1].pk)], "reason": "Abandoned"}
    assert office.post("/api/v1/queue/actions/", body, format="json").status_code == 200
    assert Job.objects.get(pk=jobs[1].pk).wanted == "STOP"
    assert order(office) == ["job 2", "job 3"]


def test_members_read_on_their_namespace_that_it_is_held_and_why(world, ada, client, office):
    job = world.launch(ada)
    body = {"action": "hold_namespaces", "jobs": [str(job.pk)], "reason": "The invoice is open"}
    assert office.post("/api/v1/queue/actions/", body, format="json").status_code == 200
    client.force_login(ada)
    text = client.get(f"/namespaces/{job.namespace_id}/").content.decode()
    assert "An administrator holds this namespace" in text
    assert "The invoice is open" in text
