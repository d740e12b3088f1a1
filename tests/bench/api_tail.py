"""How evenly the API answers: eight clients at once, each with the requests of a person at the portal, on PostgreSQL
with a hundred thousand jobs."""

from __future__ import annotations

import http.client
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench.job_list import cluster
from tests.bench.lines import Line, median
from tests.real.portal import LIGHT, real_portal
from tests.real.postgres import programs

JOBS, CLIENTS, WARMING, REQUESTS = 100_000, 8, 60, 400
SEED = 20261122

FILL = """
import sys, json
import django
django.setup()
from django.db import connection
from django.utils import timezone
from apps.accounts.models import User
from apps.jobs.models import Job, JobAttempt, JobEvent, ScalarPoint, TaskFact
from apps.stores import log_store
from tests.bench.job_list import _fill
from yardmaster.logs.keys import StreamKey
from yardmaster.job.spec import Role
user, now = User.objects.get(username="admin"), timezone.now()
_fill(user, user.personal_namespace, int(sys.argv[1]))
Job.objects.filter(owner=user).update(attempt=1)
jobs = list(Job.objects.filter(owner=user).order_by("-pk")[:50])
for job in jobs:
    JobAttempt.objects.create(job=job, number=1, spec=job.spec, phase=job.phase, queued_at=now, cleaned_up_at=now)
    TaskFact.objects.create(job=job, attempt=1, role="worker", index=0, phase="SUCCEEDED", started_at=now)
    JobEvent.objects.bulk_create([
        JobEvent(job=job, at=now, attempt=1, kind="phase", message=f"{n}") for n in range(12)
    ])
    ScalarPoint.objects.bulk_create([
        ScalarPoint(job=job, attempt=1, run="train", tag=tag, step=step, time=float(step), value=1.0 / (1 + step))
        for tag in ("loss", "accuracy") for step in range(200)
    ])
    text = b"".join(b"step %d of 1000, loss %.4f\\n" % (n, 1 / (n + 1)) for n in range(1000))
    log_store().append(StreamKey(job.pk, 1, Role.WORKER, 0), 0, text, [(0, 1_700_000_000_000)])
with connection.cursor() as cursor:
    cursor.execute("VACUUM ANALYZE")
print(json.dumps([str(job.pk) for job in jobs]))
"""


def measure() -> Iterable[Line]:
    bin_folder = programs()
    if bin_folder is None:
        raise RuntimeError("no PostgreSQL programs on this machine")
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as home, cluster(bin_folder) as database:
        told = {"YARDMASTER_DATABASE_URL": database.url("bench")}
        with real_portal(Path(home), LIGHT, told) as portal:
            token = portal.token_of("admin", is_staff=True)
            jobs = json.loads(portal.script(FILL, str(JOBS)).splitlines()[-1])
            before = portal.processor_seconds("web")
            with get_context("spawn").Pool(1) as apart:  # the clients' work is not the portal's
                times = apart.apply(ask_all, (portal.url, token, jobs))
            worked = (portal.processor_seconds("web") - before) / (CLIENTS * (WARMING + REQUESTS))
    half, most = median(times), sorted(times)[int(len(times) * 0.99)]
    note = f"{len(times)} requests, {worked * 1e3:.1f} ms of the web process each"
    yield Line(f"API, {CLIENTS} clients, {JOBS} jobs: half of all answers within", half * 1e3, "ms", note=note)
    yield Line("... 99 of 100 within, ratio to the median", most / half, "", at_most=3.0, note=f"{most * 1e3:.0f} ms")


def ask_all(url: str, token: str, jobs: list[str]) -> list[float]:
    """How long each request of all clients took, in seconds, once they are warm."""
    results: list[list[float]] = [[] for _ in range(CLIENTS)]
    threads = [
        threading.Thread(target=_client, args=(url, token, jobs, number, results[number])) for number in range(CLIENTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(len(one) != REQUESTS for one in results):
        raise RuntimeError("a client gave up")
    return [one for times in results for one in times]


def _client(url: str, token: str, jobs: list[str], number: int, times: list[float]) -> None:
    draw = random.Random(SEED + number)
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    for asked in range(WARMING + REQUESTS):
        address = _address(draw, jobs)
        begun = time.perf_counter()
        connection.request("GET", address, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        took = time.perf_counter() - begun
        if answer.status != 200:
            raise RuntimeError(f"{address} answered {answer.status}: {body[:200]!r}")
        if asked >= WARMING:
            times.append(took)


def _address(draw: Any, jobs: list[str]) -> str:
    """What a person at the portal asks for, as often."""
    job = f"/api/v1/jobs/{draw.choice(jobs)}/"
    addresses = [
        "/api/v1/jobs/", "/api/v1/jobs/?phase=FAILED", job, job, f"{job}events/", f"{job}tasks/",
        f"{job}logs/lines/?role=worker&index=0&limit=100", f"{job}scalars/", "/api/v1/me/",
        "/api/v1/namespaces/", "/api/v1/datasets/",
    ]  # fmt: skip
    return str(draw.choice(addresses))
