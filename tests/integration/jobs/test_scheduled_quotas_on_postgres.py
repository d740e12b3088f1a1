"""Scheduled changes of quotas on a real PostgreSQL: two workers at once begin each one once, and a pass over the queue
of many namespaces costs no more statements while they are in force."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.quota_schedules import quota_schedules_sweep, schedules_create
from apps.audit.models import AuditEvent
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Namespace, Quota
from tests.integration.jobs.test_queue_pass import fill, statements
from yardmaster.job.spec import Resources

HOUR = timedelta(hours=1)


@pytest.mark.postgres
def test_two_sweeps_at_once_begin_each_once_and_a_pass_costs_the_same(postgres_world):
    world = postgres_world
    carl = User.objects.create_user("carl", "carl@example.org", "correct horse battery", is_staff=True)
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=1000, memory=1 << 50)] * 3)
    fill(world, carl, 1_000, namespaces=200)
    spaces = list(Namespace.objects.filter(slug__startswith="team-").values_list("pk", flat=True))
    now = timezone.now()
    schedules_create(
        namespace_ids=spaces, changes={"cpu": 2}, starts=now + HOUR, ends=now + 2 * HOUR, reason="x", actor=carl
    )

    def sweep(_):
        try:
            return quota_schedules_sweep(now + 1.5 * HOUR)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(sweep, range(2)))
    assert AuditEvent.objects.filter(action="quota.schedule_begin").count() == 200
    assert Quota.objects.filter(pk__in=spaces, cpu=2).count() == 200
    assert len(statements(lambda: admit_queue("staged", clock=world.clock))) <= 20
