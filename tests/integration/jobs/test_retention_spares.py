"""What spares old jobs: pins, what other parts of the portal refer to, and that neither takes the places of others."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from apps.jobs.labels import job_change, job_pin
from apps.jobs.models import Hold, Job, jobs_in_use
from apps.jobs.state.retention import Rules, due, fates_of, newest_since, unspared
from apps.jobs.worker import retention
from apps.jobs.worker.retention import retention_sweep
from apps.workbench.models import WorkbenchSession
from tests.integration.jobs.test_retention_pass import MONTH, ended, joins, lines, of_a_model, rule
from yardmaster.lifecycle.retention import Kind, Spared


def test_the_pin_of_a_user_who_has_left_the_namespace_spares_nothing(world, ada, bob):
    job = ended(world, ada, files=False)
    member = joins(bob, job)
    job_pin(user=bob, job=job)
    rule("logs")
    assert retention_sweep(world.now + MONTH) == 0
    member.delete()
    assert retention_sweep(world.now + MONTH) == 1


def test_the_pins_of_the_owner_and_of_administrators_spare_without_a_membership(world, ada, admin):
    mine, seen = ended(world, ada, files=False), ended(world, ada, files=False, name="seen")
    mine.namespace.memberships.all().delete()
    job_pin(user=ada, job=mine)
    job_pin(user=admin, job=seen)
    rule("logs")
    assert retention_sweep(world.now + MONTH) == 0
    admin.is_staff = admin.is_superuser = False
    admin.save()
    assert retention_sweep(world.now + MONTH) == 1


def board(running: Job, *jobs: Job) -> WorkbenchSession:
    """A TensorBoard that is open, and shows these jobs."""
    return WorkbenchSession.objects.create(
        namespace=running.namespace, owner=running.owner, kind="tensorboard", subject=f"jobs:{running.pk.hex}",
        size="small", job=running, idle_seconds=600, started_at=timezone.now(),
         job_ids=[str(one.pk) for one in jobs],
    )  # fmt: skip


def test_who_is_asked_about_one_job_looks_for_that_one_alone(world, ada, bob, django_assert_max_num_queries):
    shown, other, foreign = (ended(world, owner, files=False) for owner in (ada, ada, bob))
    board(world.launch(ada), shown, other)
    board(world.launch(bob), foreign)
    answers = [ids for _, ids in jobs_in_use.send(sender=Job, job_ids=[shown.pk])]
    for ids in answers:
        if isinstance(ids, QuerySet):
            assert shown.pk.hex in str(ids.query).replace("-", ""), "not all schedules, services, trials and sessions"
        list(ids)
    assert [ids for ids in answers if isinstance(ids, list)] == [[shown.pk]]
    everything = [one for _, ids in jobs_in_use.send(sender=Job, job_ids=None) for one in ids]
    assert {shown.pk, other.pk, foreign.pk} <= set(everything)
    rule("logs")
    with django_assert_max_num_queries(5) as asked:
        assert fates_of(shown, timezone.now())[Kind.LOGS].spared is Spared.IN_USE
    assert other.pk.hex not in str(asked.captured_queries).replace("-", "")


def spared_by(why: str, ada, job: Job) -> dict[str, object]:
    """Make it so, of a job that is archived. Returns what the rule says."""
    if why == "pinned":
        job_pin(user=ada, job=job)
    elif why == "watched":
        Job.objects.filter(pk=job.pk).update(watched_until=timezone.now() + 9 * MONTH)
    elif why == "held":
        Hold.objects.create(job=job, at=timezone.now())
    elif why == "model":
        of_a_model(job)
    elif why == "tagged":
        job_change(user=ada, job=job, tags=["paper"])
        return {"tags": ["base", "paper"]}
    elif why == "not archived":
        job_change(user=ada, job=job, archived=False)
        return {"only_archived": True}
    return {}


@pytest.mark.parametrize("why", ["pinned", "board", "watched", "held", "model", "tagged", "not archived"])
def test_spared_jobs_take_no_places_of_later_ones(world, ada, monkeypatch, why):
    monkeypatch.setattr(retention, "AT_ONCE", 1)
    monkeypatch.setattr(retention, "LOOKED_AT", 1, raising=False)
    jobs = []
    for number in range(3):
        jobs.append(ended(world, ada, files=False, name=f"job {number}"))
        job_change(user=ada, job=jobs[-1], archived=True)
        world.now += timedelta(hours=1)
    said: dict[str, object] = {}
    for job in jobs[:2]:
        said = spared_by(why, ada, job)
    if why == "board":
        board(world.launch(ada), *jobs[:2])
    rule("logs", **said)
    assert retention_sweep(world.now + MONTH) == 1
    assert [bool(lines(job)) for job in jobs] == [True, True, False]
    assert retention_sweep(world.now + MONTH) == 0


def test_the_newest_take_no_places_either_and_the_preview_counts_the_same(world, ada, bob):
    for number in range(3):
        ended(world, ada, files=False, name=f"job {number}")
        world.now += timedelta(hours=1)
    other = ended(world, bob, files=False)
    rule("logs", newest=2)
    made = Rules().of(other.namespace, Kind.LOGS)
    found = list(due(Job.objects.all(), made, None, world.now + MONTH, 10))
    assert [one.pk for one in found] == [Job.objects.get(name="job 0").pk]
    for owner, ids in ((bob, []), (ada, [found[0].pk])):
        jobs = Job.objects.filter(owner=owner)
        since = newest_since(made, [owner.personal_namespace.pk])
        assert [row[0] for row in unspared(jobs, made, since, world.now + MONTH)] == ids, "the database itself"
