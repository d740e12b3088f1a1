"""Jobs that their engine takes and has no place for: back to the queue, whole, with the reason, and never in turns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

import pytest

from apps.jobs.engines.configured import engine_named
from apps.jobs.models import JobEvent, Reservation, TaskFact
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, Refused, TaskPhase

WORDS = "0/2 nodes are available: 2 Insufficient cpu."


class Crowded(StagedEngine):
    """Counts more room than it has: `slots` tasks find a place, each as soon as one is free."""

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name)
        self.begin_at_once = False
        self.slots = 2
        self.clock = datetime.now
        self.since: dict[JobKey, datetime] = {}
        self.is_growing = False

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        self._place()
        found = dict(super().observe(keys))
        for key, seen in found.items():
            if any(one.phase is TaskPhase.PENDING for one in seen.tasks):
                self.since.setdefault(key, self.clock())
                found[key] = replace(seen, refused=Refused(self.since[key], WORDS, self.is_growing))
            else:
                self.since.pop(key, None)
        return found

    def _place(self) -> None:
        """First one task of each run, as a scheduler may that looks at pods one by one."""
        tasks = [(key, one) for key, run in self._runs.items() for one in run.tasks.values()]
        free = self.slots - sum(one.phase is TaskPhase.RUNNING for _, one in tasks)
        waiting = [(key, one) for key, one in tasks if one.phase is TaskPhase.PENDING]
        for key, one in sorted(waiting, key=lambda of: (of[1].role.value, of[1].index)):
            is_placed, free = free > 0, free - 1
            phase = TaskPhase.RUNNING if is_placed else TaskPhase.PENDING
            reason, message = ("", "") if is_placed else ("Unschedulable", WORDS)
            self.set_task(key, one.role, one.index, phase=phase, reason=reason, message=message)


@pytest.fixture
def crowded(db, stores, settings) -> World:
    """A world with this engine."""
    settings.YARDMASTER_ENGINES = {"crowded": {"class": f"{__name__}.Crowded", "options": {}}}
    settings.YARDMASTER_DEFAULT_ENGINE = "crowded"
    engine = engine_named("crowded")
    engine.before_verb = refuses_transactions()
    found = World(engine)
    engine.clock = found.clock
    return found


def pair(world, user, name: str = "pair"):
    return world.launch(user, name=name, strategy="multi_worker_mirrored",
                        roles={"worker": {"replicas": 2, "cpu": 1, "memory": "1Gi"}})  # fmt: skip


def test_a_job_that_has_no_place_goes_back_whole_after_a_minute_and_frees_its_quota(crowded: World, ada):
    crowded.engine.slots = 1
    job = pair(crowded, ada)
    crowded.settle()
    assert (crowded.again(job).phase, crowded.again(job).reason) == ("STARTING", "Unschedulable")
    crowded.passes(70)
    job = crowded.again(job)
    assert (job.phase, job.reason, job.refusals) == ("QUEUED", "Unschedulable", 1)
    assert WORDS in job.message
    assert job.remedy
    assert not crowded.engine.has(job)
    assert not Reservation.objects.filter(job=job, released_at__isnull=True).exists()
    assert set(TaskFact.objects.filter(job=job).values_list("phase", "node", "reason")) == {("", "", "")}
    back = JobEvent.objects.filter(job=job, phase_from="STARTING", phase_to="QUEUED").get()
    assert WORDS in back.message


def test_it_holds_up_no_other_meanwhile_and_starts_when_there_is_room(crowded: World, ada):
    crowded.engine.slots = 1
    job = pair(crowded, ada)
    crowded.passes(70)
    other = crowded.launch(ada, name="small", strategy="single", roles={"worker": {"replicas": 1, "cpu": 1,
                                                                                   "memory": "1Gi"}})  # fmt: skip
    crowded.settle()
    assert crowded.again(other).phase == "RUNNING"
    crowded.engine.slots = 3
    crowded.passes(90)
    job = crowded.again(job)
    assert (job.phase, job.reason, job.hindered_since) == ("RUNNING", "", None)


def test_two_jobs_of_which_each_has_half_never_take_turns_blocking_each_other(crowded: World, ada):
    crowded.engine.slots = 0
    first = pair(crowded, ada, "first")
    second = pair(crowded, ada, "second")
    crowded.settle()
    crowded.engine.slots = 2
    crowded.settle()
    assert [crowded.again(one).phase for one in (first, second)] == ["STARTING", "STARTING"]
    assert {len(crowded.engine.alive(one)) for one in (first, second)} == {2}
    crowded.passes(80)
    assert [crowded.again(one).phase for one in (first, second)] == ["RUNNING", "QUEUED"]
    assert crowded.engine.submits == [first.key, second.key], "the first was begun twice"
    crowded.engine.succeed(crowded.again(first))
    crowded.passes(200)
    assert crowded.again(second).phase == "RUNNING"


def test_a_machine_that_is_being_added_is_waited_for_and_a_stop_is_not_kept(crowded: World, ada):
    crowded.engine.slots, crowded.engine.is_growing = 1, True
    job = pair(crowded, ada)
    crowded.passes(300)
    assert crowded.again(job).phase == "STARTING"
    crowded.engine.slots = 2
    crowded.passes(20)
    assert crowded.again(job).phase == "RUNNING"


def test_a_running_job_whose_task_waits_for_a_place_stays_with_its_words(crowded: World, ada):
    job = pair(crowded, ada)
    crowded.settle()
    assert crowded.again(job).phase == "RUNNING"
    crowded.engine.slots = 1
    crowded.engine.set(job, Role.WORKER, 1, TaskPhase.PENDING, restarts=1)
    crowded.passes(300)
    job = crowded.again(job)
    assert (job.phase, job.reason, job.message) == ("RUNNING", "Unschedulable", f"Worker 1: {WORDS}")
    crowded.engine.slots = 2
    crowded.passes(20)
    assert (crowded.again(job).reason, crowded.again(job).message) == ("", "")
