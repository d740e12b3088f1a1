"""What jobs cost the API server: requests that write over the life of a job, and what a look at running jobs asks.

Requests are counted where the engine's connection leaves the process, so that what others ask of the same server does
not count.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter as Tally
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from tests.bench.cluster.ground import NO_PORTAL, Ground, ground, new_key, shaped_namespace, spec_of
from tests.bench.lines import Line
from tests.cluster.account import portal_account, shaped
from tests.cluster.engine_on_cluster import PATIENCE, ClusterHarness, cluster_harness
from tests.cluster.reach import wait_for
from tests.contract.engine_harness import ACCESS, all_ended, wait_until
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.observe.store import KINDS
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.success import job_verdict
from yardmaster.queueing.ledger import Quota

MOST = 8.0
JOBS = 10
SECONDS = 30.0
EVERY = 1.0
"""Of looks at all jobs. The portal looks less often."""


def measure() -> Iterable[Line]:
    with ground() as here:
        yield from _writes(here)
        yield from _steady(here)


def _writes(here: Ground) -> Iterable[Line]:
    with (
        portal_account(here.cluster, f"yt-{secrets.token_hex(2)}-") as account,
        cluster_harness(here.cluster, account) as hand,
    ):
        lives = {workers: _life(here, hand, {Role.PS: 1, Role.WORKER: workers}) for workers in (2, 8)}
        for workers, life in lives.items():
            yield life.line(f"writes over the whole life of {workers} workers and a parameter server")
        more = lives[8].written - lives[2].written + lives[8].dry_runs - lives[2].dry_runs
        yield Line("... more with 8 workers than with 2, dry runs too", more, at_most=0.0)
        yield _life(here, hand, {Role.WORKER: 1}).line("... of a single task")
        coordinated = {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1}
        yield _life(here, hand, coordinated).line("... of a chief, 2 workers and a parameter server")
        every = {**coordinated, Role.EVALUATOR: 1}
        yield _life(here, hand, every).line("... of a chief, 2 workers, a parameter server and an evaluator")
        yield _life(here, hand, every, is_stopped=True).line("... of the same, stopped while it runs")


@dataclass(frozen=True)
class Life:
    """Requests that write, counted apart from dry runs: those persist nothing."""

    begun: int
    ended: int
    dry_runs: int

    @property
    def written(self) -> int:
        return self.begun + self.ended

    def line(self, name: str) -> Line:
        note = f"{self.begun} to start, {self.ended} to end; {self.dry_runs} dry runs besides, which persist nothing"
        return Line(name, self.written, at_most=MOST, note=note)


def _life(here: Ground, hand: ClusterHarness, replicas: dict[Role, int], *, is_stopped: bool = False) -> Life:
    """A run as the portal ends it. The tasks that decide end well by themselves, unless it is stopped; what then still
    runs is ended with the run, and all is cleaned up when nothing runs any more."""
    hand.engine, counter = here.engine(**hand.tasks)
    key, spec = hand.new_key(), _spec(replicas)
    shaped(hand.engine, key.namespace_id, Quota(), ACCESS.portal_url)
    counter.taken()
    hand.engine.submit(spec, key, ACCESS)
    begun = counter.taken()
    hand.let_begin(key)
    decides = Role.CHIEF if Role.CHIEF in replicas else Role.WORKER
    for index in range(0 if is_stopped else replicas[decides]):
        hand.let_end(key, decides, index, 0)
    seen = wait_until(hand.engine, key, lambda seen: is_stopped or job_verdict(spec, seen) is not None, PATIENCE)
    if not all_ended(seen):
        hand.engine.finish(key)
    wait_until(hand.engine, key, all_ended, PATIENCE)
    hand.engine.clean_up(key)
    ended = counter.taken()
    dry_runs = sum(one.is_dry_run for one in begun)
    return Life(sum(one.is_write for one in begun) - dry_runs, sum(one.is_write for one in ended), dry_runs)


def _spec(replicas: dict[Role, int]) -> TrainingSpec:
    """All workers count, as each is told to end."""
    strategy = Strategy.PARAMETER_SERVER if Role.CHIEF in replicas else Strategy.BETWEEN_GRAPH
    spec = spec_of(replicas, Strategy.SINGLE if len(replicas) == 1 else strategy)
    rule = SuccessRule.CHIEF if Role.CHIEF in replicas else SuccessRule.WORKERS
    return replace(spec, success_rule=rule, grace_period=timedelta(seconds=5))


def _steady(here: Ground) -> Iterable[Line]:
    """Running jobs, looked at again and again by one process that also listens for changes."""
    engine, counter = here.engine(watch=True)
    place = shaped_namespace(engine)
    keys = [new_key(place) for _ in range(JOBS)]
    threading.Thread(target=lambda: [None for _ in engine.changes()], daemon=True).start()
    for key in keys:
        engine.submit(spec_of({Role.WORKER: 1}, Strategy.SINGLE), key, NO_PORTAL)
    wait_for("all jobs to run", lambda: _all_run(engine, keys), 240)
    begun = Tally(one.resource for one in counter.taken() if one.verb == "watch")
    end = time.monotonic() + SECONDS
    looks = 0
    while time.monotonic() < end:
        time.sleep(EVERY)
        looks += _all_run(engine, keys)
    asked = counter.taken()
    engine.close()
    yield Line("watches of each kind in one process", max(begun.values()), at_most=1.0,
               note=f"{len(begun)} of {len(KINDS)} kinds: {', '.join(sorted(begun))}")  # fmt: skip
    lists = sum(one.verb == "list" for one in asked)
    yield Line(f"lists while {JOBS} running jobs are watched for {SECONDS:g} s", lists, at_most=0.0,
               note=f"{looks} looks at all of them, {len(asked)} requests of any kind")  # fmt: skip


def _all_run(engine: KubernetesEngine, keys: list[JobKey]) -> bool:
    seen = engine.observe(keys).values()
    return all(one.tasks and all(task.phase is TaskPhase.RUNNING for task in one.tasks) for one in seen)
