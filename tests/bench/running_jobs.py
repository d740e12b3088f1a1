"""What it costs to keep many jobs that run: the processor time of all of the portal's processes, on PostgreSQL.

The jobs are rows, and the engine a stand-in on which all of them run: what an engine itself costs, and what tasks
send, is not in this figure.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.job_list import cluster
from tests.bench.lines import Line
from tests.real.portal import WHOLE, RealPortal, real_portal
from tests.real.postgres import programs

JOBS = 2_000
SETTLING, MEASURED = 45.0, 60.0
PARTS = ("worker", "beat", "conductor", "web", "valkey")

FILL = """
import sys
from datetime import timedelta
import django
django.setup()
from django.db import transaction
from django.utils import timezone
from apps.accounts.models import User
from apps.jobs.models import Job, JobAttempt, Reservation, TaskFact
from tests.bench.steady import BEGUN
from yardmaster.ids import new_id
transaction.set_autocommit(False)  # all of it is there before anybody looks
user = User.objects.get(username="admin")
namespace = user.personal_namespace
spec = {"version": 1, "name": "steady", "strategy": "single", "roles": {"worker": {"replicas": 1, "cpu": 0.01,
        "memory": "16Mi"}}, "code": str(new_id()), "entry_point": "main.py"}
now, count = timezone.now(), int(sys.argv[1])
jobs = [
    Job(namespace=namespace, owner=user, name=f"job {n}", engine="local", strategy="single", spec=spec, attempt=1,
        needs={"cpu": 0.01, "memory": 1 << 24, "gpus": 0, "extended": {}}, replicas={"worker": 1}, phase="RUNNING",
        queued_at=now, admitted_at=now, started_at=now, next_look_at=now + timedelta(seconds=15 * n / count))
    for n in range(count)
]
Job.objects.bulk_create(jobs, batch_size=500)
JobAttempt.objects.bulk_create(
    [JobAttempt(job=job, number=1, spec=spec, queued_at=now) for job in jobs], batch_size=500
)
Reservation.objects.bulk_create([
    Reservation(job=job, namespace=namespace, engine="local", attempt=1, role="worker", cpu=0.01, memory=1 << 24,
                gpus=0, extended={}, reserved_at=now)
    for job in jobs
], batch_size=500)
TaskFact.objects.bulk_create([
    TaskFact(job=job, attempt=1, role="worker", index=0, phase="RUNNING", started_at=BEGUN) for job in jobs
], batch_size=500)
transaction.commit()
"""
LOOKED_AT = """
import django
django.setup()
from django.utils import timezone
from apps.jobs.models import Job
print(Job.objects.filter(phase="RUNNING").count(), Job.objects.filter(next_look_at__lt=timezone.now()).count())
"""


def measure() -> Iterable[Line]:
    with _portal() as portal:
        portal.script(FILL, str(JOBS))
        time.sleep(SETTLING)
        before, begun = _used(portal), time.monotonic()
        time.sleep(MEASURED)
        after, took = _used(portal), time.monotonic() - begun
        running, overdue = (int(one) for one in portal.script(LOOKED_AT).split()[-2:])
    shares = {name: (after[name] - before[name]) / took for name in PARTS}
    note = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    yield Line(f"processors to keep {JOBS} running jobs", sum(shares.values()), "", at_most=0.5, note=note)
    yield Line("... of them still running", running, "", at_least=JOBS)
    yield Line("... not looked at in time", overdue, "", at_most=JOBS // 4)


def _used(portal: RealPortal) -> dict[str, float]:
    return {name: portal.processor_seconds(name) for name in PARTS}


@contextmanager
def _portal() -> Iterator[RealPortal]:
    bin_folder = programs()
    if bin_folder is None:
        raise RuntimeError("no PostgreSQL programs on this machine")
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home, cluster(bin_folder) as database:
        told = {
            "YARDMASTER_DATABASE_URL": database.url("bench"),
            "DJANGO_SETTINGS_MODULE": "tests.bench.stand_in_settings",
        }
        with real_portal(Path(home), WHOLE, told) as portal:
            portal.token_of("admin", is_staff=True)
            yield portal
