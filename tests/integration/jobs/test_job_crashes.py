"""Kill the worker at every point of a job's life: after each write to the database, before and after each deed.

A crash is a BaseException that nothing catches, so that what it interrupts ends there, as under SIGKILL: an open
transaction is rolled back, a lease stays. Then the sweep goes on alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest
from django.db import connection

from apps.jobs import services
from apps.jobs.models import Job, JobEvent, Reservation
from tests.integration.jobs.world import World
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase


class Killed(BaseException):
    """The worker is gone."""


class Killer:
    """Counts points at which a worker can be killed, and kills it at one of them."""

    def __init__(self, world: World, at: int | None) -> None:
        self.points = 0
        self._at = at
        self._world = world
        self._check = world.engine.before_verb

    def point(self, *_: object) -> None:
        self.points += 1
        if self.points == self._at:
            raise Killed

    def statement(self, execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if sql.startswith(("INSERT", "UPDATE", "DELETE", "RELEASE")):
            self.point()
        return result

    def before_verb(self, verb: str) -> None:
        self._check(verb)
        self.point()

    def sweep(self) -> None:
        """One round of the sweep, in a worker that may be killed."""
        engine = self._world.engine
        with ExitStack() as stack:
            engine.before_verb, engine.after_verb = self.before_verb, self.point
            stack.callback(setattr, engine, "before_verb", self._check)
            stack.callback(setattr, engine, "after_verb", lambda verb: None)
            stack.enter_context(connection.execute_wrapper(self.statement))
            try:
                self._world.sweep()
            except Killed:
                return


def go_on(world: World, killer: Killer, job: Job, until: Callable[[Job], bool]) -> Job:
    """Let the sweep work, and time pass, until the job is where it should be."""
    for _ in range(200):
        killer.sweep()
        job = world.again(job)
        if until(job):
            return job
        assert job.next_look_at is not None, f"nobody will ever look at {job.phase} again"
        world.now = max(world.now + timedelta(seconds=2), job.next_look_at)
    raise AssertionError(f"stuck as {job.phase} {job.reason}")


def succeed(world: World, killer: Killer, job: Job) -> Job:
    job = go_on(world, killer, job, lambda one: one.phase == "RUNNING")
    world.engine.succeed(job)
    return go_on(world, killer, job, lambda one: one.is_over and not one.lease_owner)


def fail(world: World, killer: Killer, job: Job) -> Job:
    job = go_on(world, killer, job, lambda one: one.phase == "RUNNING")
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    return go_on(world, killer, job, lambda one: one.is_over and not one.lease_owner)


def stop(world: World, killer: Killer, job: Job) -> Job:
    job = go_on(world, killer, job, lambda one: one.phase == "RUNNING")
    services.job_stop(user=job.owner, job=job)
    return go_on(world, killer, job, lambda one: one.is_over and not one.lease_owner)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("live", "last"),
    [
        (succeed, ["RUNNING", "SUCCEEDED"]),
        pytest.param(fail, ["RUNNING", "FAILED"], marks=pytest.mark.long),
        pytest.param(stop, ["RUNNING", "STOPPING", "STOPPED"], marks=pytest.mark.long),
    ],
)
def test_a_worker_killed_anywhere_loses_doubles_and_sticks_nothing(world, ada, live, last):
    code = str(world.code_version(ada).pk)
    point, points = 0, 1
    while point <= points:
        job = world.launch(ada, code=code)
        killer = Killer(world, point)
        job = live(world, killer, job)
        points = max(points, killer.points) if point == 0 else points
        seen = f"killed at point {point} of {points}"
        events = JobEvent.objects.filter(job=job).order_by("pk")
        phases = [event.phase_to for event in events if event.kind == "phase"]
        assert phases == ["QUEUED", "STARTING", *last], seen
        assert [event.kind for event in events].count("cleaned_up") == 1, seen
        assert world.engine.submits.count(job.key) == 1, seen
        assert not world.engine.has(job), seen
        assert not Reservation.objects.filter(released_at__isnull=True).exists(), seen
        assert job.next_look_at is None, seen
        point += 1
    assert points > 20
