"""The table of quotas on a real PostgreSQL: what starts is reserved, what runs is used, and what is stored, in a fixed
number of statements."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.administration.quota_table import Wanted, quota_table
from apps.jobs.models import Job
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Namespace
from apps.uploads.models import StorageAccount
from tests.integration.jobs.test_queue_pass import fill, statements
from yardmaster.job.spec import Resources


@pytest.mark.postgres
def test_what_starts_is_reserved_and_what_runs_is_used(postgres_world):
    world = postgres_world
    carl = User.objects.create_user("carl", "carl@example.org", "correct horse battery")
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=1000, memory=1 << 50)] * 3)
    jobs = fill(world, carl, 40, namespaces=20)
    admit_queue("staged", clock=world.clock)
    admitted = Job.objects.filter(phase="STARTING")
    runs = {job.namespace_id: job.needs["cpu"] for job in jobs[:5] if admitted.filter(pk=job.pk).exists()}
    assert len(runs) == 5
    Job.objects.filter(pk__in=[job.pk for job in jobs[:5]]).update(phase="RUNNING")
    stored = Namespace.objects.get(pk=jobs[0].namespace_id)
    StorageAccount.objects.update_or_create(namespace=stored, defaults={"used": 1 << 40, "reserved": 5, "files": 7})
    rows = {row.pk: row.cells for row in quota_table(Wanted(kind="team", sort="-cpu.reserved")).rows}
    for job in jobs[:20]:
        cells, is_running = rows[job.namespace_id], job.namespace_id in runs
        total = cells["cpu"].used + cells["cpu"].reserved
        assert total > 0
        assert (cells["cpu"].used > 0) == is_running
        assert cells["running_jobs"].used == int(is_running)
        assert cells["running_jobs"].held == admitted.filter(namespace_id=job.namespace_id).count() + int(is_running)
    cells = rows[stored.pk]
    assert (cells["storage"].used, cells["storage"].reserved, cells["files"].used) == (1 << 40, 5, 7)
    assert len(statements(lambda: quota_table(Wanted()))) <= 5
