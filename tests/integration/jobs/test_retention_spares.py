"""What spares old jobs: pins, what other parts of the portal refer to, and that neither takes the places of others."""

from __future__ import annotations

from django.db.models import QuerySet
from django.utils import timezone

from apps.jobs.labels import job_pin
from apps.jobs.models import Job, jobs_in_use
from apps.jobs.state.retention import fates_of
from apps.jobs.worker.retention import retention_sweep
from apps.workbench.models import WorkbenchSession
from tests.integration.jobs.test_retention_pass import MONTH, ended, joins, rule
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
    with django_assert_max_num_queries(5):
        assert fates_of(shown, timezone.now())[Kind.LOGS].spared is Spared.IN_USE
