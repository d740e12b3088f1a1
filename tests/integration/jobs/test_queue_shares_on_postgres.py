"""A pass by shares: who starts, what those who wait are told, what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.jobs.models import Job
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Namespace, Quota, ShareNode
from tests.integration.jobs.test_queue_pass import check_reasons, fill, statements
from yardmaster.job.spec import Resources


def tree(count: int) -> None:
    """Namespaces of the queue in two groups, of which the second has three times the weight."""
    red, blue = (ShareNode.objects.create(name=name, weight=weight) for name, weight in (("red", 1), ("blue", 3)))
    spaces = Namespace.objects.filter(slug__startswith="team-").order_by("pk")
    for at, one in enumerate(spaces[:count]):
        ShareNode.objects.create(namespace=one, parent=blue if at % 2 else red)


def held_of(group: str) -> int:
    return Job.objects.filter(phase="STARTING", namespace__share__parent__name=group).count()


@pytest.mark.postgres
def test_a_pass_by_shares_costs_no_more_statements_and_says_what_each_would_be_told(postgres_world):
    from apps.accounts.models import User

    world = postgres_world
    carl = User.objects.create_user("carl", "carl@example.org", "correct horse battery")
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=24, memory=64 << 30)] * 3)
    fill(world, carl, 60, namespaces=8)
    Quota.objects.update(cpu=64)
    tree(8)
    first = statements(lambda: admit_queue("staged", clock=world.clock))
    assert len(first) <= 21
    assert (held_of("red"), held_of("blue")) == (2, 6)
    world.now += timedelta(seconds=20)
    admit_queue("staged", clock=world.clock)
    check_reasons(world)


def test_who_waits_is_told_of_the_share_in_the_row(world, ada):
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=4, memory=64 << 30)] * 3)
    jobs = fill(world, ada, 2, namespaces=1)
    first = jobs[0].namespace
    Quota.objects.update(cpu=64)
    ShareNode.objects.create(namespace=first, parent=ShareNode.objects.create(name="red"))
    admit_queue("staged", clock=world.clock)
    fill(world, ada, 2, namespaces=1)
    world.now += timedelta(seconds=20)
    admit_queue("staged", clock=world.clock)
    waiting = Job.objects.waiting().get(namespace=first)
    assert "The group red of your namespace uses" in waiting.message
    assert "its share is 50%" in waiting.message


def test_a_namespace_without_a_place_counts_in_the_default_group(world, ada):
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=16, memory=64 << 30)] * 3)
    ShareNode.objects.create(name="everyone", is_default=True)
    fill(world, ada, 6, namespaces=1)
    late = fill(world, ada, 2, namespaces=2)
    admit_queue("staged", clock=world.clock)
    started = Job.objects.filter(phase="STARTING", pk__in=[one.pk for one in late]).count()
    assert started == 2, "by shares, although they came last"
