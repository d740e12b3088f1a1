"""Whatever happens, in any order, at any time: what must hold of every job. Most assertions are the simulator's."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.unit.core.generators import NOW, clocks, make_spec, observations, plain_specs
from tests.unit.core.simulator import NEEDS_THE_ENGINE, Health, World
from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.strategy import never_ending_roles, only_serves
from yardmaster.lifecycle.hindrances import Rivals
from yardmaster.lifecycle.phases import MOVES, Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import (
    Admit,
    Discard,
    FreeQuota,
    GiveBack,
    Move,
    Remembered,
    Step,
    Submit,
    TakeBack,
    Wait,
    plan,
)


@st.composite
def memories(draw: st.DrawFn, spec: TrainingSpec) -> Remembered:
    """Anything that might be remembered, sensible or not, with times in any order."""
    times = {
        name: draw(st.none() | clocks)
        for name in (
            "admitted_at", "started_at", "stop_sent_at", "decided_at", "released_at", "cleaned_up_at", "submitted_at",
            "failing_since", "held_back_until", "image_failing_since",
        )
    }  # fmt: skip
    reserved = draw(st.frozensets(st.sampled_from(list(spec.roles))))
    phase, wanted = draw(st.sampled_from(Phase)), draw(st.sampled_from(Wanted))
    returns = draw(st.integers(0, 20))
    rivals = Rivals(draw(st.booleans()), draw(st.none() | clocks))
    more = {"returns": returns, "refusals": draw(st.integers(0, 20)), "rivals": rivals}
    return Remembered(spec, phase, wanted, queued_at=draw(clocks), reserved=reserved, **more, **times)


@settings(max_examples=200)
@given(st.data())
def test_any_memory_any_observation_and_any_clock_give_a_legal_step(data: st.DataObject) -> None:
    spec = data.draw(plain_specs())
    job, seen, now = data.draw(memories(spec)), data.draw(st.none() | observations(spec)), data.draw(clocks)
    step = plan(job, seen, now)
    assert isinstance(step, Step)
    if seen is None and job.phase is not Phase.QUEUED:
        assert not isinstance(step, NEEDS_THE_ENGINE)
    if isinstance(step, Move):
        assert step.phase in MOVES[job.phase]
        assert step.verdict is not None or step.phase not in (Phase.SUCCEEDED, Phase.FAILED)
    if isinstance(step, FreeQuota):
        assert step.roles
        assert step.roles <= job.reserved
    if isinstance(step, Wait) and step.until is not None:
        assert step.until > now
    if job.phase.is_final:
        assert not isinstance(step, (Move, Submit, Admit))
    assert plan(job, seen, now) == step


class JobLife(RuleBasedStateMachine):
    """One job, a user, an engine and a clock, each doing as it likes; the reconciler may die at any step."""

    @initialize(spec=plain_specs(most=3))
    def begin(self, spec: TrainingSpec) -> None:
        self.world = World(spec)
        self.verdict = None

    @rule(crash=st.booleans(), twice=st.booleans())
    def reconcile(self, crash: bool, twice: bool) -> None:
        self.world.step(crash=crash, twice=twice)

    @rule()
    def reconcile_until_it_waits(self) -> None:
        for _ in range(20):
            if isinstance(self.world.step(), (Wait, Admit)) or self.world.job.failing_since is not None:
                return
        raise AssertionError(f"turns without end: {self.world.steps[-3:]}")

    @rule(seconds=st.sampled_from([0, 1, 14, 15, 30, 31, 40, 600, 1800, 7200, -1, -30, -3600]))
    def time_passes_or_is_set_back(self, seconds: int) -> None:
        self.world.now += timedelta(seconds=seconds)

    @rule()
    def a_user_stops_it(self) -> None:
        self.world.stop()

    @rule(has_space=st.booleans())
    def room_comes_and_goes(self, has_space: bool) -> None:
        self.world.has_space = has_space

    @precondition(lambda self: self.world.engine.tasks)
    @rule(data=st.data(), phase=st.sampled_from([TaskPhase.RUNNING, TaskPhase.SUCCEEDED, TaskPhase.FAILED]))
    def a_task_changes(self, data: st.DataObject, phase: TaskPhase) -> None:
        key = data.draw(st.sampled_from(self.world.spec.tasks()))
        self.world.engine.turn(key, phase, data.draw(st.none() | clocks))

    @precondition(lambda self: self.world.engine.tasks)
    @rule()
    def every_task_begins(self) -> None:
        for key in self.world.spec.tasks():
            self.world.engine.turn(key, TaskPhase.RUNNING)

    @precondition(lambda self: self.world.engine.tasks)
    @rule(data=st.data())
    def a_task_restarts(self, data: st.DataObject) -> None:
        """On the engine's own account: it waits, then runs again."""
        key = data.draw(st.sampled_from(self.world.spec.tasks()))
        self.world.engine.turn(key, TaskPhase.PENDING)

    @precondition(lambda self: self.world.engine.tasks)
    @rule(data=st.data())
    def a_task_is_stopped_from_outside(self, data: st.DataObject) -> None:
        self.world.engine.turn(data.draw(st.sampled_from(self.world.spec.tasks())), TaskPhase.RELEASED)

    @precondition(lambda self: self.world.engine.tasks)
    @rule()
    def a_task_is_lost_without_which_the_others_cannot_go_on(self) -> None:
        self.world.engine.lose_one()

    @rule(health=st.sampled_from(Health))
    def the_engine_falls_ill_or_recovers(self, health: Health) -> None:
        self.world.engine.turns(health)

    @rule(refuses=st.booleans())
    def the_engine_has_no_place_for_what_has_not_begun(self, refuses: bool) -> None:
        self.world.engine.refuses_since = self.world.now if refuses else None

    @rule()
    def the_engine_obeys(self) -> None:
        self.world.engine.obeys()

    @precondition(lambda self: self.world.engine.tasks)
    @rule()
    def the_engine_loses_the_run(self) -> None:
        self.world.engine.clean_up()

    @invariant()
    def a_verdict_never_changes(self) -> None:
        if not hasattr(self, "world") or not self.world.job.phase.is_final:
            return
        now = (self.world.job.phase, self.world.verdict)
        assert self.verdict in (None, now)
        self.verdict = now

    def teardown(self) -> None:
        """Once every task that can has ended, the job ends, is removed, and holds no quota; nothing of it is left."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.has_space = True
        world.engine.turns(Health.WELL)
        world.engine.refuses_since = None
        ends = [key for key in world.spec.tasks() if key[0] not in never_ending_roles(world.spec.strategy)]
        world.now = max(world.now, NOW + timedelta(days=1))
        for _ in range(8):
            if isinstance(step := world.step(), Wait) and step.until is not None:
                world.now = max(world.now, step.until)
            for key in ends:
                world.engine.turn(key, TaskPhase.RUNNING)
                world.engine.turn(key, TaskPhase.SUCCEEDED, world.now)
        if only_serves(world.spec.strategy) and world.spec.max_runtime is None:
            world.stop()
        world.drive()
        assert world.is_done()
        assert world.engine.tasks is None
        if world.job.phase is Phase.STOPPED:
            assert world.job.wanted is Wanted.STOP or only_serves(world.spec.strategy)


TestJobLife = JobLife.TestCase
TestJobLife.settings = settings(settings(), max_examples=80, stateful_step_count=30)


@st.composite
def sound_memories(draw: st.DrawFn, spec: TrainingSpec) -> Remembered:
    """What a job may remember at NOW: whatever happened to it happened before, and in its phase."""
    job, long_ago = draw(memories(spec)), NOW - timedelta(days=draw(st.integers(0, 9)))
    times = ("admitted_at", "started_at", "stop_sent_at", "released_at", "submitted_at")
    past = {name: long_ago for name in times if getattr(job, name) is not None}
    past |= {name: None for name in times if name not in past}
    return replace(
        job,
        **past,
        queued_at=long_ago,
        wanted=Wanted.STOP if job.phase is Phase.STOPPING else job.wanted,
        decided_at=long_ago if job.phase.is_final else None,
        cleaned_up_at=long_ago if job.phase.is_final and job.cleaned_up_at is not None else None,
        failing_since=draw(st.none() | st.just(long_ago)),
        held_back_until=None if job.phase is not Phase.QUEUED else job.held_back_until,
        reserved=frozenset() if job.phase is Phase.QUEUED else job.reserved,
    )


ILL = st.sampled_from([Health.AWAY, Health.REFUSES])


@given(st.data())
def test_on_an_engine_that_stays_away_any_job_ends_and_holds_no_quota_and_leaves_nothing_when_it_is_back(
    data: st.DataObject,
) -> None:
    """From any memory, at any time, wanted or not: with an engine that may have taken it or not."""
    world = World(data.draw(plain_specs(most=2)))
    world.job = data.draw(sound_memories(world.spec))
    if world.job.phase is not Phase.QUEUED and world.job.cleaned_up_at is None and data.draw(st.booleans()):
        world.engine.submit()
    world.engine.turns(Health.AWAY)
    world.wait_for_an_engine_that_stays_as_it_is(4000)
    world.engine.turns(Health.WELL)
    world.drive(200)
    assert world.is_done()
    assert world.engine.tasks is None


@given(plain_specs(most=2), st.integers(0, 8), ILL, st.booleans(), st.booleans())
def test_an_engine_that_fails_at_any_point_and_for_good_holds_no_quota(
    spec: TrainingSpec, steps: int, health: Health, running: bool, wanted: bool
) -> None:
    """A job whose tasks run goes on for as long as its engine says so: it is no other's quota that it holds."""
    world = World(spec)
    for _ in range(steps):
        world.step()
        if running:
            for key in spec.tasks():
                world.engine.turn(key, TaskPhase.RUNNING)
    world.engine.turns(health)
    runs_on = health is Health.REFUSES and running and steps >= 2 and spec.max_runtime is None
    if not wanted or runs_on:
        world.stop()
    world.wait_for_an_engine_that_stays_as_it_is()
    world.engine.turns(Health.WELL)
    world.drive()
    assert world.is_done()
    assert world.engine.tasks is None


def test_an_engine_that_is_away_for_an_hour_costs_a_job_its_place_in_no_queue_and_no_quota() -> None:
    world = World(make_spec())
    assert world.step() == Admit()
    world.engine.turns(Health.AWAY)
    begun, held = world.now, timedelta()
    while world.now < begun + timedelta(hours=1):
        step = world.step()
        held += timedelta(seconds=15) if world.job.reserved else timedelta()
        world.now = max(
            world.now + timedelta(seconds=15), step.until if isinstance(step, Wait) and step.until else world.now
        )
    assert world.job.phase is Phase.QUEUED
    assert world.job.queued_at == NOW
    assert held <= timedelta(minutes=6)
    world.engine.turns(Health.WELL)
    while world.job.phase is not Phase.STARTING:
        world.step()
        world.now += timedelta(minutes=1)
    assert isinstance(world.step(), Submit)


def test_a_job_that_its_engine_never_takes_fails_after_its_returns() -> None:
    world = World(make_spec())
    world.step()
    world.engine.turns(Health.REFUSES)
    gone_back = 0
    while not world.job.phase.is_final:
        step = world.step()
        if isinstance(step, GiveBack):
            gone_back += 1
        if isinstance(step, Discard):  # this one gets through
            world.engine.turns(Health.WELL)
            world.step()
            world.engine.turns(Health.REFUSES)
        world.now += timedelta(minutes=1)
    assert (world.job.phase, gone_back) == (Phase.FAILED, 12)
    assert world.verdict is not None
    assert world.verdict.reason == "EngineUnavailable"
    world.wait_for_an_engine_that_stays_as_it_is()


def test_a_job_that_its_engine_has_no_place_for_waits_in_the_queue_for_ever_longer_and_begins_when_there_is_one() -> (
    None
):
    world = World(make_spec())
    world.engine.refuses_since = NOW
    held, rests = timedelta(), []
    while world.now < NOW + timedelta(hours=6):
        step = world.step()
        held += timedelta(seconds=15) if world.job.reserved else timedelta()
        if isinstance(step, TakeBack):
            rests.append((step.until - world.now).total_seconds() / 60)
            assert world.engine.tasks is None
            assert not world.job.reserved
        world.now += timedelta(seconds=15)
    assert rests[:6] == [1, 2, 4, 8, 16, 30]
    assert set(rests[6:]) == {30}
    assert held < timedelta(hours=6) / 10, "it holds the room that it cannot use for most of the time"
    assert world.job.queued_at == NOW, "it lost its place in the queue"
    world.engine.refuses_since = None
    while not isinstance(world.step(), Submit):
        world.now += timedelta(minutes=1)
    for key in world.spec.tasks():
        world.engine.turn(key, TaskPhase.RUNNING)
    assert world.step() == Move(Phase.RUNNING)


@given(plain_specs().filter(lambda spec: not only_serves(spec.strategy)), st.booleans())
def test_a_job_left_alone_succeeds_and_its_servers_go_after_the_delay(spec: TrainingSpec, twice: bool) -> None:
    world = World(replace(spec, max_runtime=None))
    for _ in range(2):
        world.step(twice=twice)
    for key in spec.tasks():
        world.engine.turn(key, TaskPhase.RUNNING)
    assert world.step(twice=twice) == Move(Phase.RUNNING)
    for key in spec.tasks():
        if key[0] not in (*never_ending_roles(spec.strategy), Role.EVALUATOR):
            world.engine.turn(key, TaskPhase.SUCCEEDED, world.now)
    world.drive()
    assert world.job.phase is Phase.SUCCEEDED
    assert world.is_done()


@given(plain_specs(), st.integers(0, 6), st.booleans())
def test_a_stop_at_any_point_ends_stopped_unless_the_verdict_was_there_before(
    spec: TrainingSpec, steps: int, running: bool
) -> None:
    world = World(spec)
    for _ in range(steps):
        world.step()
        if running:
            for key in spec.tasks():
                world.engine.turn(key, TaskPhase.RUNNING)
    world.stop()
    world.drive()
    assert world.job.phase is Phase.STOPPED
    assert world.is_done()


def test_an_engine_that_never_obeys_is_made_to() -> None:
    world = World(make_spec(Strategy.PARAMETER_SERVER))
    for _ in range(2):
        world.step()
    for key in world.spec.tasks():
        world.engine.turn(key, TaskPhase.RUNNING)
    world.step()
    world.stop()
    for _ in range(20):
        step = world.step()
        if isinstance(step, Wait) and step.until is not None:
            world.now = step.until
    assert world.job.phase is Phase.STOPPED
    assert world.engine.tasks is None
