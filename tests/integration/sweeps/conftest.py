"""The world of jobs, and sweeps in it that move when a test says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.models import Job, ScalarPoint
from apps.namespaces.models import Namespace
from apps.sweeps.models import Sweep, SweepTrial
from apps.sweeps.services import sweep_create
from apps.sweeps.worker import sweep_look
from tests.integration.jobs.conftest import engine_settings, postgres_cluster, postgres_db, stores, world
from tests.integration.jobs.world import World
from yardmaster.job.spec import Role

__all__ = ["engine_settings", "postgres_cluster", "postgres_db", "stores", "world"]

PLAN: dict[str, Any] = {"parameters": {"lr": [0.1, 0.01, 0.001]}, "metric": {"tag": "loss"}, "parallel": 2}


class Swept:
    """A sweep, and what a test does with its trials."""

    def __init__(self, world: World, sweep: Sweep) -> None:
        self.world = world
        self.sweep = sweep

    def look(self, times: int = 1) -> Sweep:
        """Look at it now, whenever it is due; the jobs come to rest before and after."""
        for _ in range(times):
            Sweep.objects.filter(pk=self.sweep.pk, next_look_at__isnull=False).update(next_look_at=timezone.now())
            sweep_look(self.sweep.pk)
            Job.objects.filter(next_look_at__isnull=False).update(next_look_at=self.world.now)
            self.world.settle()
        self.sweep = Sweep.objects.select_related("namespace", "owner").get(pk=self.sweep.pk)
        return self.sweep

    def trial(self, number: int) -> SweepTrial:
        return SweepTrial.objects.select_related("job").get(sweep=self.sweep, number=number)

    def job(self, number: int) -> Job:
        found = self.trial(number).job
        assert found is not None
        return found

    def states(self) -> list[str]:
        return list(self.sweep.trials.order_by("number").values_list("state", flat=True))

    def reports(self, number: int, *values: float | None, tag: str = "loss", first: int = 1) -> None:
        job = self.job(number)
        ScalarPoint.objects.bulk_create(
            ScalarPoint(job=job, attempt=job.attempt, run="train", tag=tag, step=step, time=step, value=value)
            for step, value in enumerate(values, first)
        )

    def ends(self, number: int, *, well: bool = True) -> None:
        job = self.world.again(self.job(number))
        if well:
            self.world.engine.succeed(job)
        else:
            self.world.engine.set(job, Role.WORKER, 0, _failed(), exit_code=1, reason="Error")
        Job.objects.filter(next_look_at__isnull=False).update(next_look_at=self.world.now)
        self.world.settle()
        self.world.passes(60)


def _failed() -> Any:
    from yardmaster.lifecycle.phases import TaskPhase

    return TaskPhase.FAILED


@pytest.fixture
def base(world, ada) -> dict[str, Any]:
    roles = {"worker": {"replicas": 1, "cpu": 1, "memory": "1Gi"}}
    return world.spec_json(ada, strategy="single", roles=roles, retries=0)


@pytest.fixture
def make(world, ada, base):
    def made(user: User | None = None, namespace: Namespace | None = None, spec: Any = None, **plan: Any) -> Swept:
        user = user or ada
        namespace = namespace or Namespace.objects.get(owner=user)
        sweep, _ = sweep_create(user=user, namespace=namespace, base=spec or base, plan=PLAN | plan)
        return Swept(world, sweep)

    return made
