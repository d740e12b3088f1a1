"""The job list on a real PostgreSQL: a page must cost the same with a hundred thousand jobs as with a thousand."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.lines import Line, interleaved, median
from tests.real.postgres import Cluster, _stand_in, programs

FEW, MANY = 1_000, 100_000
ROUNDS = 60
FAR = 1_000


def measure() -> Iterable[Line]:
    bin_folder = programs()
    if bin_folder is None:
        return
    with cluster(bin_folder) as database:
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        os.environ["YARDMASTER_DATABASE_URL"] = database.url("bench")
        os.environ["YARDMASTER_SECRET_KEY"] = "only-for-measurements-" + "x" * 40
        os.environ["YARDMASTER_LOG_LEVEL"] = "WARNING"
        import django

        django.setup()
        yield from _lines()


def _lines() -> Iterable[Line]:
    from django.core.management import call_command
    from django.test import override_settings

    call_command("migrate", verbosity=0, interactive=False)
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        people = {size: _person(f"with-{size}", size) for size in (FEW, MANY)}
        _analyze()
        first = {size: _page(person) for size, person in people.items()}
        yield from _queries(people[MANY])
        few, many = interleaved(
            lambda: _timed(people[FEW], first[FEW]), lambda: _timed(people[MANY], first[MANY]), ROUNDS
        )
        yield Line(f"job list, first page with {FEW} jobs", median(few) * 1e3, "ms")
        yield Line(f"... with {MANY} jobs, ratio", median(many) / median(few), "", at_most=1.3)
        far = _page(people[MANY], FAR)
        near, away = interleaved(lambda: _timed(people[MANY], first[MANY]), lambda: _timed(people[MANY], far), ROUNDS)
        yield Line(f"job list, page {FAR} of {MANY} jobs, times page 1", median(away) / median(near), "", at_most=1.3)


def _person(name: str, jobs: int) -> Any:
    """A client signed in as a user who sees exactly this many jobs, in three namespaces of very different size."""
    from rest_framework.test import APIClient

    from apps.accounts.services import user_create
    from apps.namespaces.models import Membership, Namespace, Role

    user = user_create(username=name, password="correct horse battery")
    team = Namespace.objects.create(slug=f"team-{name}")
    small = Namespace.objects.create(slug=f"small-{name}")
    for namespace in (team, small):
        Membership.objects.create(namespace=namespace, user=user, role=Role.MEMBER)
    shares = [(user.personal_namespace, jobs * 9 // 10), (team, jobs // 10 - 5), (small, 5)]
    for namespace, count in shares:
        _fill(user, namespace, count)
    client = APIClient()
    client.force_login(user)
    return client


def _fill(user: Any, namespace: Any, count: int) -> None:
    from django.utils import timezone

    from apps.jobs.models import Job
    from yardmaster.ids import new_id

    spec = {"version": 1, "name": "x", "strategy": "single", "roles": {"worker": {"replicas": 1}}}
    spec |= {"code": str(new_id()), "entry_point": "main.py"}
    now = timezone.now()
    phases = ["SUCCEEDED", "FAILED", "STOPPED"]
    rows = (
        Job(namespace=namespace, owner=user, name=f"job {n}", engine="local", strategy="single", spec=spec,
            needs={"cpu": 1.0, "memory": 1, "gpus": 0, "extended": {}}, replicas={"worker": 1}, phase=phases[n % 3],
            queued_at=now, decided_at=now, cleaned_up_at=now)
        for n in range(count)
    )  # fmt: skip
    Job.objects.bulk_create(rows, batch_size=2_000)


def _analyze() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _page(client: Any, number: int = 1) -> str:
    """The address of a page, reached by following `next` as a browser would."""
    address = "/api/v1/jobs/"
    for _ in range(number - 1):
        address = client.get(address).json()["next"]
    return address


def _timed(client: Any, address: str) -> float:
    begun = time.perf_counter()
    answer = client.get(address)
    took = time.perf_counter() - begun
    if answer.status_code != 200 or len(answer.json()["results"]) != 50:
        raise RuntimeError(f"{address} answered {answer.status_code}")
    return took


def _queries(client: Any) -> Iterator[Line]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        client.get(_page(client, 3))
    statements = [query["sql"].upper() for query in captured.captured_queries]
    yield Line("job list: queries for a page (three pages asked)", len(statements) / 3, "", at_most=8)
    bad = sum("COUNT(" in sql or " OFFSET " in sql for sql in statements)
    yield Line("job list: queries with COUNT or OFFSET", bad, "", at_most=0)


@contextmanager
def cluster(bin_folder: Path) -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="yardmaster-pg-"))
    if not os.getuid():
        os.chown(folder, _stand_in().pw_uid, _stand_in().pw_gid)
    one = Cluster(folder, bin_folder)
    try:
        one.start()
        one.create("bench")
        yield one
    finally:
        one.stop()
        shutil.rmtree(folder, ignore_errors=True)
