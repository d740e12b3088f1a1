"""Names, notes, tags, pins and the archive: what people write on jobs, by the API and the pages."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.jobs import labels
from apps.jobs.labels import MOST_PINS, job_pin
from apps.jobs.models import Job, JobEvent, JobPin, JobTag
from apps.jobs.services import job_retry
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


def ended(world, owner, **changes) -> Job:
    job = world.launch(owner, **changes)
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    return world.again(job)


def address(job: Job, more: str = "") -> str:
    return f"/api/v1/jobs/{job.pk}/{more}"


def listed(me, **query) -> list[str]:
    answer = me.get("/api/v1/jobs/", query)
    assert answer.status_code == 200, answer.json()
    return [one["name"] for one in answer.json()["results"]]


def test_a_job_is_renamed_tagged_and_noted_with_before_and_after_in_the_audit(world, ada, me):
    job = world.launch(ada)
    body = {"name": "baseline", "note": "Compare with\r\nthe old one.", "tags": ["Paper", " paper ", "run 7"]}
    answer = me.patch(address(job), body, format="json")
    assert answer.status_code == 200, answer.json()
    found = answer.json()
    assert (found["name"], found["tags"]) == ("baseline", ["paper", "run 7"])
    assert found["note"] == "Compare with\nthe old one."
    event = AuditEvent.objects.get(action="job.change")
    assert (event.facts["name_before"], event.facts["name"]) == (job.name, "baseline")
    assert (event.facts["tags_before"], event.facts["tags"]) == ([], ["paper", "run 7"])
    assert "renamed" in set(JobEvent.objects.filter(job=job).values_list("kind", flat=True))
    me.patch(address(job), body, format="json")
    assert AuditEvent.objects.filter(action="job.change").count() == 1, "nothing changed"


def test_what_is_given_wrong_changes_nothing_and_each_problem_is_named(world, ada, me):
    job = world.launch(ada)
    body = {"name": " \t ", "tags": ["a,b", "fine"], "note": "kept?"}
    answer = me.patch(address(job), body, format="json")
    assert answer.status_code == 400
    assert {one["field"] for one in answer.json()["errors"]} >= {"name"}
    answer = me.patch(address(job), {"name": "good", "tags": ["a,b"]}, format="json")
    assert answer.status_code == 400
    assert "comma" in answer.json()["errors"][0]["message"]
    assert me.patch(address(job), {"tags": [str(n) for n in range(21)]}, format="json").status_code == 400
    job.refresh_from_db()
    assert (job.name, job.note, job.tags) == (world.again(job).spec["name"], "", [])


def test_the_list_finds_jobs_by_all_their_tags_and_leaves_out_archived_ones(world, ada, me):
    first, second = ended(world, ada, name="first"), world.launch(ada, name="second")
    me.patch(address(first), {"tags": ["paper", "gpu"]}, format="json")
    me.patch(address(second), {"tags": ["paper"]}, format="json")
    assert listed(me, tag="PAPER") == ["second", "first"]
    assert listed(me, tag=["paper", "gpu"]) == ["first"]
    assert listed(me, tag="other") == []
    assert me.patch(address(second), {"archived": True}, format="json").status_code == 409, "it has not ended"
    assert me.patch(address(first), {"archived": True}, format="json").json()["archived_at"]
    assert listed(me) == ["second"]
    assert listed(me, archived="true") == ["first"]
    me.patch(address(first), {"archived": False}, format="json")
    assert listed(me) == ["second", "first"]


def test_a_retry_keeps_the_new_name_and_leaves_the_archive(world, ada, me):
    job = ended(world, ada)
    me.patch(address(job), {"name": "renamed", "archived": True}, format="json")
    job_retry(user=ada, job=world.again(job))
    job = world.again(job)
    assert (job.name, job.archived_at) == ("renamed", None)


def test_viewers_and_strangers_change_nothing(world, ada, bob, signed_in, admin):
    team = team_create(slug="vision", title="", actor=admin, manager=ada)
    job = world.launch(ada, team)
    assert signed_in(bob).patch(address(job), {"name": "mine"}, format="json").status_code == 404
    assert signed_in(bob).put(address(job, "pin/")).status_code == 404
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    assert signed_in(bob).patch(address(job), {"name": "mine"}, format="json").status_code == 403
    assert signed_in(bob).put(address(job, "pin/")).status_code == 204, "a pin is one's own"
    assert world.again(job).name != "mine"


def test_pins_are_each_users_own_and_bounded(world, ada, bob, me):
    job = world.launch(ada)
    for _ in range(2):
        assert me.put(address(job, "pin/")).status_code == 204
    assert JobPin.objects.get().user == ada
    JobPin.objects.all().delete()
    jobs = [Job(**{**_copied(job), "name": f"copy {n}"}) for n in range(MOST_PINS)]
    Job.objects.bulk_create(jobs)
    for one in jobs:
        job_pin(user=ada, job=one)
    refused = me.put(address(job, "pin/"))
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_pins")
    assert me.delete(address(jobs[0], "pin/")).status_code == 204
    assert me.put(address(job, "pin/")).status_code == 204


def _copied(job: Job) -> dict[str, object]:
    names = ("namespace_id", "owner_id", "engine", "spec", "strategy", "needs", "queued_at")
    return {name: getattr(job, name) for name in names}


def test_tags_go_with_their_job(world, ada, me):
    job = ended(world, ada)
    me.patch(address(job), {"tags": ["paper"]}, format="json")
    me.put(address(job, "pin/"))
    assert me.delete(address(job)).status_code == 204
    world.until_quiet()
    assert not Job.objects.filter(pk=job.pk).exists()
    assert not JobTag.objects.exists()
    assert not JobPin.objects.exists()


def test_the_audit_keeps_the_beginning_of_a_long_note_and_how_long_it_is(world, ada, me):
    job = world.launch(ada)
    assert me.patch(address(job), {"note": "n" * 3_000}, format="json").status_code == 200
    facts = AuditEvent.objects.get(action="job.change").facts
    assert facts["note"] == "n" * 100 + "… (3000 characters)"
    assert facts["note_before"] == ""
    assert world.again(job).note == "n" * 3_000


def test_changes_of_jobs_have_a_rate(world, ada, me, monkeypatch):
    monkeypatch.setattr(labels, "CHANGES_PER_MINUTE", 3)
    job = world.launch(ada)
    answers = [me.patch(address(job), {"note": f"note {n}"}, format="json").status_code for n in range(4)]
    assert answers == [200, 200, 200, 429]
