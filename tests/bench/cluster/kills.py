"""Launches through a portal whose worker process is killed again and again, at times drawn from a seed.

Lost is a job that does not succeed, doubled one of which the cluster ever made a second pod: scripts end at once and
well, so one pod is what each needs. Pods are counted from the cluster's own watch, beside the portal.
YARDMASTER_BENCH_LAUNCHES says how many, where 500 take too long.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterable

import psutil
from kubernetes import client, watch

from tests.bench.bench_portal import BenchPortal
from tests.bench.cluster.ground import Ground, ground, portal_on
from tests.bench.cluster.queue import launch, ready, settle
from tests.bench.lines import Line
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.render import names

LAUNCHES = 500
AT_ONCE = 12
SEED = 2011
PAUSES = (4.0, 25.0)
"""Seconds that a worker lives until it is killed, drawn evenly. `up` starts it again, after ten seconds at most."""
LEASE = "5"
"""Seconds that a job rests whose worker was killed: a minute by default, in which this would measure patience."""


def measure() -> Iterable[Line]:
    number = int(os.environ.get("YARDMASTER_BENCH_LAUNCHES", LAUNCHES))
    with ground() as here, portal_on(here, YARDMASTER_JOB_LEASE=LEASE) as portal:
        spec = ready(portal, AT_ONCE)
        with PodCount(here) as pods, Killer(portal) as killer:
            begun = time.monotonic()
            ids = launch(portal, spec, number)
            jobs = settle(portal, ids)
            took = time.monotonic() - begun
        known = {job.id for job in portal.client.jobs.list()}
        left = [one for name in here.namespaces() for one in _left_in(here, name)]
    lost = number - sum(job.phase == "SUCCEEDED" and job.cleaned_up_at is not None for job in jobs)
    doubled = sum(len(pods.of[one]) > 1 for one in ids)
    more = len(known) - number - 1  # that of `ready`
    fewer = "" if number == LAUNCHES else f" instead of {LAUNCHES}"
    note = f"of {number}{fewer} in {took:.0f} s, {killer.kills} kills, seed {SEED}"
    yield Line("launches lost while the worker is killed", lost, at_most=0.0, note=note)
    yield Line("launches doubled", doubled + more, at_most=0.0, note="second pods, and jobs that no client launched")
    # Where the watch beside the portal missed pods, the line above would say nothing.
    yield Line("launches whose pod was not seen", sum(not pods.of[one] for one in ids), at_most=0.0)
    yield Line("objects left on the cluster", len(left), at_most=0.0)


def _left_in(here: Ground, namespace: str) -> list[str]:
    kinds = "configmaps,secrets,services,jobs,statefulsets,pods"
    return here.cluster.kubectl("get", kinds, "-n", namespace, "-l", names.RUN, "-o", "name").split()


class Killer:
    """Kills the worker with SIGKILL whenever it has lived for as long as the dice say; a context."""

    def __init__(self, portal: BenchPortal) -> None:
        self._portal, self._dice, self._ends = portal, random.Random(SEED), threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self.kills = 0

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _go(self) -> None:
        pause = self._dice.uniform(*PAUSES)
        while not self._ends.wait(0.1):
            # It may be gone, or not be written down again yet.
            with contextlib.suppress(psutil.NoSuchProcess):
                worker = self._portal.process("worker")
                if worker.status() != psutil.STATUS_ZOMBIE and time.time() > worker.create_time() + pause:
                    worker.kill()
                    self.kills += 1
                    pause = self._dice.uniform(*PAUSES)


class PodCount:
    """The uids of all pods that each job ever had, from the cluster's own watch; a context."""

    def __init__(self, here: Ground) -> None:
        self.of: defaultdict[str, set[str]] = defaultdict(set)
        self._core = client.CoreV1Api(connect(here.cluster.kubeconfig))
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def __enter__(self) -> PodCount:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _go(self) -> None:
        seen = watch.Watch()
        while not self._ends.is_set():
            try:  # one stream after the other, each from where the last one ended
                for event in seen.stream(
                    self._core.list_pod_for_all_namespaces, label_selector=names.ours(), timeout_seconds=5
                ):
                    found = event["object"].metadata
                    self.of[found.labels.get(names.JOB_ID, "")].add(found.uid)
            except client.ApiException:  # it was too long ago: from now on
                seen = watch.Watch()
