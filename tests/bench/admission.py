"""A pass over a long queue on a real PostgreSQL: how long it takes, with how many statements, and whether it says of
each job what it would be told alone.

Half of the jobs are small, some are large, some have priorities, a hundred have waited longer than the patience; a few
hundred run. The pass that is measured is the dearest one: no reason is written yet.
"""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from tests.bench.lines import Line, median
from tests.real.postgres import programs, running_cluster

FEW, MANY, NAMESPACES = 1_000, 10_000, 200
ROUNDS = {FEW: 7, MANY: 3}
SAMPLE = 60
WINDOWS = 20
GI = 1 << 30


def measure() -> Iterable[Line]:
    if programs() is None:
        return
    with running_cluster() as cluster:
        cluster.create("bench")
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        os.environ["YARDMASTER_DATABASE_URL"] = cluster.url("bench")
        os.environ["YARDMASTER_SECRET_KEY"] = "only-for-measurements-" + "x" * 40
        os.environ["YARDMASTER_LOG_LEVEL"] = "ERROR"
        import django

        django.setup()
        yield from _lines()


def _lines() -> Iterator[Line]:
    from django.core.management import call_command
    from django.test import override_settings

    call_command("migrate", verbosity=0, interactive=False)
    engine = {"class": "yardmaster.engines.fake.FakeEngine", "options": {"total": _engine_size()}}
    with override_settings(YARDMASTER_ENGINES={"bench": engine}, CELERY_BROKER_URL="memory://"):
        few, statements, wrong = _measured(FEW)
        yield Line(f"a pass over {FEW} jobs of {NAMESPACES} namespaces, nothing written yet", few, "s", at_most=1.0)
        yield Line("... statements", statements, "", at_most=20)
        yield Line(f"... of {SAMPLE} jobs, answers that differ from the one given alone", wrong, "", at_most=0)
        again = _again()
        yield Line("... and once more, when nothing has changed", again, "s")
        yield from _by_shares()
        many, statements, wrong = _measured(MANY)
        yield Line(f"a pass over {MANY} jobs of {NAMESPACES} namespaces, nothing written yet", many, "s", at_most=10.0)
        yield Line("... statements", statements, "")
        yield Line(f"... of {SAMPLE} jobs, answers that differ from the one given alone", wrong, "", at_most=0)
        yield Line("... and once more, when nothing has changed", _again(), "s")
        yield Line(f"... against {MANY // FEW} times {FEW} jobs", many / (few * MANY / FEW), "", at_most=1.5)


def _by_shares() -> Iterator[Line]:
    """The same with a tree of shares, guarantees and classes of priority; then without them again."""
    from apps.namespaces.models import ShareNode

    _tree()
    took, statements, wrong = _measured(FEW, settled=True)
    yield Line(f"a pass by shares over {FEW} jobs of {NAMESPACES} namespaces in 20 groups", took, "s", at_most=1.0)
    yield Line("... statements", statements, "", at_most=20)
    yield Line(f"... of {SAMPLE} jobs, answers that differ from the one given alone", wrong, "", at_most=0)
    _windows_and_preemption()
    took, statements, _ = _measured(FEW)
    words = f"... with {WINDOWS} reservations and preemption allowed"
    yield Line(words, took, "s", at_most=1.0, note=f"load {os.getloadavg()[0]:.1f}")
    yield Line("... statements", statements, "", at_most=20)
    _no_windows()
    ShareNode.objects.exclude(namespace=None).delete()
    ShareNode.objects.exclude(parent=None).delete()
    ShareNode.objects.all().delete()


def _tree() -> None:
    """Five groups of four groups of ten namespaces each, of different weights, some with guarantees."""
    from apps.namespaces.models import Namespace, ShareNode

    chance = random.Random(11)
    outer = [ShareNode.objects.create(name=f"outer-{n}", weight=n + 1) for n in range(5)]
    inner = [
        ShareNode.objects.create(
            name=f"inner-{n}", parent=outer[n % 5], weight=chance.choice([0, 1, 2]),
            guaranteed=chance.choice([{}, {"cpu": 10}]),
        )
        for n in range(20)
    ]  # fmt: skip
    for at, space in enumerate(Namespace.objects.filter(owner=None)):
        ShareNode.objects.create(namespace=space, parent=inner[at % 20], guaranteed=chance.choice([{}, {}, {"cpu": 2}]))


def _windows_and_preemption() -> None:
    """Amounts reserved for namespaces, half of them now and half in an hour, and a class of priority that preempts."""
    from django.utils import timezone

    from apps.jobs.models import AdvanceReservation, PreemptionPolicy
    from apps.namespaces.models import Namespace, PriorityClass

    PriorityClass.objects.create(name="urgent", value=3, preempts=True)
    PreemptionPolicy.objects.create(engine="bench", is_on=True, least_minutes=1)
    now = timezone.now()
    for at, space in enumerate(Namespace.objects.filter(owner=None)[:WINDOWS]):
        begins = now + timedelta(hours=at % 2)
        AdvanceReservation.objects.create(
            engine="bench", namespace=space, amounts={"cpu": 4, "gpus": 1}, begins_at=begins,
            ends_at=begins + timedelta(hours=8),
        )  # fmt: skip


def _no_windows() -> None:
    from apps.jobs.models import AdvanceReservation, Preemption, PreemptionPolicy
    from apps.namespaces.models import PriorityClass

    for kind in (AdvanceReservation, Preemption, PreemptionPolicy, PriorityClass):
        kind.objects.all().delete()


def _measured(count: int, *, settled: bool = False) -> tuple[float, int, int]:
    """Seconds and statements of a pass over this many jobs, and how many of a sample were told something else.
    `settled`: after one more pass, as the order by shares depends on what has started."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from apps.jobs.worker.queue_pass import _claim, _pass

    took = []
    for seed in range(ROUNDS[count]):
        now = _fill(count, seed)
        lease = _claim("bench", now)
        if lease is None:
            raise RuntimeError("somebody else decides the queue")
        begun = time.perf_counter()
        _pass(lease, now)
        took.append(time.perf_counter() - begun)
    if settled:
        _again()
    wrong = _wrong(now)
    now = _fill(count, seed)
    lease = _claim("bench", now)
    with CaptureQueriesContext(connection) as found:
        _pass(lease, now)
    return median(took), len(found) + 2, wrong  # with the lease taken and given back


def _again() -> float:
    from django.utils import timezone

    from apps.jobs.worker.queue_pass import _claim, _pass

    begun = time.perf_counter()
    _pass(_claim("bench", timezone.now() + timedelta(minutes=10)), timezone.now())
    return time.perf_counter() - begun


def _wrong(now: Any) -> int:
    """Of a sample of the jobs that wait: how many have another reason, message, position or list than `admit` gives."""
    from django.conf import settings

    from apps.jobs.engines.configured import engine_named
    from apps.jobs.models import Job
    from apps.jobs.state.books import books_of, queued_on
    from yardmaster.queueing.admission import Fit, admit

    queue = [one.candidate for one in queued_on("bench", engine_named("bench").capacity())]
    books = books_of("bench", engine_named("bench").capacity(), {one.namespace_id for one in queue})
    wrong = 0
    for one in random.Random(7).sample(queue, SAMPLE):
        said = admit(one, queue, books, now, settings.YARDMASTER_PASSING_LIMIT)
        job = Job.objects.get(pk=one.job_id)
        ahead = [str(job_id) for job_id in said.ahead] if said.fit is Fit.WAITS else []
        position = said.position if said.fit is Fit.WAITS else None
        told = (job.reason, job.message, job.position, job.waiting["ahead"])
        wrong += told != (said.code.value, said.message, position, ahead)
    return wrong


def _engine_size() -> Any:
    from yardmaster.job.spec import Resources

    return Resources(cpu=400, memory=1600 * GI, gpus=40)


def _fill(count: int, seed: int) -> Any:
    """This many jobs that wait, 300 that run, in namespaces of different quotas."""
    from django.db import connection
    from django.utils import timezone

    from apps.accounts.models import User
    from apps.jobs.models import AdmissionLock, Job, QueuePass, Reservation
    from apps.namespaces.models import Namespace, Quota

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE jobs_job, jobs_reservation, jobs_queuepass CASCADE")
    AdmissionLock.objects.get_or_create(pk=1)
    QueuePass.objects.create(engine="bench")
    owner, _ = User.objects.get_or_create(username="bench")
    chance, now = random.Random(seed), timezone.now()
    while Namespace.objects.count() < NAMESPACES + 1:
        space = Namespace.objects.create(slug=f"team-{uuid.uuid4().hex[:12]}")
        Quota.objects.create(
            namespace=space, cpu=chance.choice([4, 8, 16, None]), running_jobs=chance.choice([None, 2]),
            priority_ceiling=chance.choice([0, 0, 5]),
        )  # fmt: skip
    spaces = list(Namespace.objects.filter(owner=None))
    running = [_job(chance, spaces, owner, now, phase="RUNNING") for _ in range(300)]
    step = 600 / (count - 100)
    waiting = [_job(chance, spaces, owner, now - timedelta(seconds=(count - n) * step)) for n in range(count)]
    Job.objects.bulk_create([*running, *waiting], batch_size=2_000)
    Reservation.objects.bulk_create(
        Reservation(
            job=job, namespace=job.namespace, engine="bench", attempt=1, role=role, cpu=amount["cpu"],
            memory=amount["memory"], gpus=amount["gpus"], reserved_at=now,
        )
        for job in running
        for role, amount in job.needs["roles"].items()
    )  # fmt: skip
    return now


def _job(chance: random.Random, spaces: list[Any], owner: Any, queued_at: Any, phase: str = "QUEUED") -> Any:
    from apps.jobs.models import Job
    from yardmaster.ids import new_id
    from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
    from yardmaster.queueing.needs import needs_of

    size = Resources(chance.choice([0.5, 0.5, 1, 2]), chance.choice([1, 2, 4]) * GI, chance.choice([0, 0, 0, 1]))
    roles = {Role.WORKER: RoleSpec(chance.choice([1, 1, 2, 4]), size), Role.PS: RoleSpec(1, Resources(0.5, GI))}
    priority = chance.choice([0, 0, 0, 0, 3, 1000])
    spec = TrainingSpec(
        name="bench", strategy=Strategy.BETWEEN_GRAPH, roles=roles, code_version=new_id(), entry_point="main.py",
        priority=priority,
    )  # fmt: skip
    return Job(
        id=new_id(), namespace=chance.choice(spaces), owner=owner, name="bench", engine="bench", phase=phase,
        strategy="between_graph", priority=priority, priority_class="urgent" if priority == 3 else "", spec={},
        needs=needs_of(spec), queued_at=queued_at,
        started_at=queued_at - timedelta(hours=1) if phase == "RUNNING" else None,
    )  # fmt: skip
