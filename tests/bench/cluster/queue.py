"""Jobs through a whole portal whose tasks are pods: launched at once, and awaited until nothing is left of them.

A job is one task whose script ends at once, so that what is measured is Yardmaster and the cluster, not training.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from tests.bench.bench_portal import BenchPortal
from yardmaster_client import Job

SCRIPT = 'print("done")\n'
PATIENCE = 300.0
"""Seconds in which at least one job must get on, else the queue is stuck."""
_LOOK_EVERY = 2.0


def ready(portal: BenchPortal, at_once: int) -> dict[str, Any]:
    """Let `at_once` jobs run at a time, and run one, so that namespace and connections are there. Returns the spec."""
    namespace = next(iter(portal.client.namespaces())).id
    limits = {"cpu": None, "memory": None, "gpus": None, "storage": None, "running_jobs": at_once}
    portal.client.transport.put(f"namespaces/{namespace}/quota/", limits)
    spec = {
        "name": "bench", "strategy": "single", "code": portal.put_script("bench", SCRIPT), "entry_point": "main.py",
        "paths": {"data_flag": "", "log_flag": ""}, "reclaim_delay": 0, "grace_period": 1, "retries": 0,
        "roles": {"worker": {"replicas": 1, "cpu": 0.05, "memory": "64Mi"}},
    }  # fmt: skip
    (job,) = settle(portal, launch(portal, spec, 1))
    if job.phase != "SUCCEEDED":
        raise RuntimeError(f"the first job ended as {job.phase}: {job.message}")
    return spec


def launch(portal: BenchPortal, spec: dict[str, Any], number: int) -> list[str]:
    """One request after the other; the ids."""
    return [portal.client.jobs.launch(spec).id for _ in range(number)]


def settle(portal: BenchPortal, ids: Collection[str]) -> list[Job]:
    """The jobs, when all have ended and nothing of them is left on the cluster; those that never do, as they are."""
    wanted, left, moved_at = set(ids), len(ids), time.monotonic()
    while True:
        jobs = [job for job in portal.client.jobs.list() if job.id in wanted]
        still = sum(job.cleaned_up_at is None for job in jobs)
        if still < left:
            left, moved_at = still, time.monotonic()
        if not still or time.monotonic() > moved_at + PATIENCE:
            return jobs
        time.sleep(_LOOK_EVERY)
