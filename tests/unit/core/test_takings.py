"""Who takes whose places in a pass: enough and no more, never twice, and never for ever."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, EngineCapacity, Fit, Holder, Ledger, Quota
from yardmaster.queueing.ledger import Code, Usage
from yardmaster.queueing.preemption import Rules, Running
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import Member, Shares
from yardmaster.queueing.takings import Present, takings, without
from yardmaster.queueing.windows import Booked, Window

SPACES = [uuid.UUID(int=n) for n in range(1, 5)]
URGENT = 100
NO_BOUND = Rules(timedelta(0), 10**6)


@dataclass
class Stage:
    """An engine on which no job ends by itself."""

    cores: int = 8
    guaranteed: dict[uuid.UUID, int] = field(default_factory=dict)
    by_priority: set[uuid.UUID] = field(default_factory=set)
    queue: dict[uuid.UUID, Candidate] = field(default_factory=dict)
    running: dict[uuid.UUID, Candidate] = field(default_factory=dict)
    ending: dict[uuid.UUID, Candidate] = field(default_factory=dict)
    claims: dict[uuid.UUID, int] = field(default_factory=dict)
    minutes: int = 0
    count: int = 0

    @property
    def now(self):
        return NOW + timedelta(minutes=self.minutes)

    def job(self, space: int, cores: int, level: int = 0, *, takes: bool = False) -> uuid.UUID:
        self.count += 1
        key, total = uuid.UUID(int=1000 + self.count), Resources(cores, 1)
        at = NOW + timedelta(seconds=self.count)
        self.queue[key] = Candidate(key, SPACES[space], at, level, total, one_task(total), is_granted=level != 0)
        if takes:
            self.by_priority.add(key)
        return key

    def ledger(self) -> Ledger:
        held = {**self.running, **self.ending}.values()
        total = Resources(self.cores, 1 << 40)
        shares = None
        if self.guaranteed:
            members = {key: Member(guaranteed={"cpu": 1000 * cores}) for key, cores in self.guaranteed.items()}
            by_space: dict[uuid.UUID, dict[str, int]] = {}
            for one in held:
                mine = by_space.setdefault(one.namespace_id, {})
                for name, units in units_of(one.total).items():
                    mine[name] = mine.get(name, 0) + units
            shares = Shares(members, by_space)
        return Ledger(
            EngineCapacity(total, total, total, sum((one.total for one in held), NOTHING)),
            holders=tuple(Holder(one.job_id, one.namespace_id, one.total) for one in held),
            shares=shares, claimants=dict(self.claims),
        )  # fmt: skip

    def present(self) -> Present:
        running = tuple(
            Running(
                key, one.namespace_id, one.priority, one.queued_at - timedelta(days=1), units_of(one.total), may_go=True
            )
            for key, one in self.running.items()
        )
        return Present(running, frozenset(self.ending), frozenset(self.by_priority))

    def decide(self):
        """One pass. Returns who took whose places."""
        ledger, queue = self.ledger(), dict(self.queue)
        found = decide_queue(queue.values(), ledger, self.now)
        for key, decision in found.decisions.items():
            if decision.fit is Fit.FITS_NOW:
                self.running[key] = self.queue.pop(key)
                self.claims.pop(key, None)
        took = takings(found, queue, ledger, self.present_before(found), self.now, NO_BOUND)
        for one in took:
            self.claims[one.candidate.job_id] = len(one.victims)
            for victim in one.victims:
                self.ending[victim.job_id] = self.running.pop(victim.job_id)
        return took

    def present_before(self, found) -> Present:
        started = {key for key, one in found.decisions.items() if one.fit is Fit.FITS_NOW}
        present = self.present()
        return replace(present, running=tuple(one for one in present.running if one.job_id not in started))

    def end(self, chance: random.Random | None = None) -> None:
        """Some of those that are ending, or all, are in the queue again."""
        for key in list(self.ending):
            if chance is None or chance.random() < 0.6:
                self.queue[key] = self.ending.pop(key)
        if not self.ending:
            self.claims.clear()

    def taken(self):
        return [(one.candidate.job_id, [each.job_id for each in one.victims]) for one in self.decide()]


def test_one_of_a_class_that_may_takes_the_lowest_and_newest_and_no_more_than_it_needs():
    stage = Stage()
    old, new = stage.job(0, 4), stage.job(1, 4)
    assert stage.taken() == []
    urgent = stage.job(2, 3, URGENT, takes=True)
    assert stage.taken() == [(urgent, [new])]
    assert old in stage.running


def test_a_pass_that_is_repeated_takes_no_further_job_and_no_later_job_gets_what_becomes_free():
    stage = Stage()
    stage.job(0, 2), stage.job(0, 2), stage.job(0, 2), stage.job(0, 2)
    stage.decide()
    urgent = stage.job(1, 4, URGENT, takes=True)
    ((_, gone),) = stage.taken()
    assert len(gone) == 2
    small = stage.job(2, 2)
    assert stage.taken() == []
    stage.queue[gone[0]] = stage.ending.pop(gone[0])
    assert stage.taken() == [], "half of it is free"
    assert small in stage.queue
    stage.end()
    stage.decide()
    assert urgent in stage.running
    assert small in stage.queue


def test_nothing_goes_for_one_that_lacks_its_own_quota_or_is_behind_one_that_gets_nothing():
    stage = Stage()
    stage.job(0, 8)
    stage.decide()
    stage.job(1, 4, URGENT - 1)
    urgent = stage.job(1, 4, URGENT, takes=True)
    ledger = replace(stage.ledger(), quotas={SPACES[1]: Quota(cpu=2 + 3)}, usage={SPACES[1]: Usage(Resources(2, 0), 1)})
    found = decide_queue(stage.queue.values(), ledger, stage.now)
    assert takings(found, stage.queue, ledger, stage.present(), stage.now, NO_BOUND) == []
    stage.job(2, 4, URGENT + 1)
    assert stage.taken() == [], "the one before it may not take, and would get what becomes free"
    assert urgent in stage.queue


def test_a_lender_takes_back_from_who_borrows_and_leaves_others_within_their_guarantee():
    stage = Stage(guaranteed={SPACES[0]: 4, SPACES[1]: 4})
    mine = [stage.job(0, 2) for _ in range(4)]
    stage.decide()
    lender = stage.job(1, 4)
    ((who, gone),) = stage.taken()
    assert who == lender
    assert len(gone) == 2
    assert set(gone) < set(mine)
    stage.end()
    stage.decide()
    assert lender in stage.running
    assert stage.taken() == [], "who gave back what was borrowed takes nothing back"


def test_priority_takes_nothing_that_is_guaranteed_to_another():
    stage = Stage(guaranteed={SPACES[0]: 8})
    stage.job(0, 8)
    stage.decide()
    foreign = stage.job(1, 4, URGENT, takes=True)
    assert stage.taken() == []
    del stage.queue[foreign]
    own = stage.job(0, 4, URGENT, takes=True)
    assert [who for who, _ in stage.taken()] == [own], "of its own namespace it does"


@pytest.mark.parametrize(
    ("reserved", "hours", "others_end", "count"),
    [(1, None, True, 1), (1, None, False, 2), (8, 1, False, 1), (7, None, True, 0), (7, None, False, 0)],
)
def test_what_is_reserved_for_later_stops_only_who_would_take_of_it(reserved, hours, others_end, count):
    stage = Stage()
    for _ in range(4):
        stage.job(0, 2)
    stage.decide()
    urgent = stage.job(1, 2, URGENT, takes=True)
    stage.queue[urgent] = replace(stage.queue[urgent], longest=hours and timedelta(hours=hours))
    begins = stage.now + timedelta(days=30)
    window = Window(SPACES[2], {"cpu": 1000 * reserved}, begins, begins + timedelta(hours=1))
    ends = {key: stage.now + timedelta(days=1) for key in stage.running} if others_end else {}
    ledger = replace(stage.ledger(), booked=Booked(stage.now, (window,), ends))
    found = decide_queue(stage.queue.values(), ledger, stage.now)
    taken = takings(found, stage.queue, ledger, stage.present(), stage.now, NO_BOUND)
    assert [len(one.victims) for one in taken] == [count] * bool(count)


def test_a_job_that_waits_for_the_end_of_a_window_keeps_no_later_one_from_taking_a_place():
    """The engine is full, so that it lacks capacity now; but no job that goes would let it start."""
    stage = Stage()
    for _ in range(4):
        stage.job(0, 2)
    stage.decide()
    endless = stage.job(1, 8, URGENT, takes=True)
    urgent = stage.job(1, 2, URGENT, takes=True)
    stage.queue[urgent] = replace(stage.queue[urgent], longest=timedelta(hours=1))
    begins = stage.now + timedelta(days=30)
    window = Window(SPACES[2], {"cpu": 1000}, begins, begins + timedelta(hours=1))
    ledger = replace(stage.ledger(), booked=Booked(stage.now, (window,)))
    found = decide_queue(stage.queue.values(), ledger, stage.now)
    assert found.decisions[endless].code is Code.WAITING_FOR_CAPACITY
    (taken,) = takings(found, stage.queue, ledger, stage.present(), stage.now, NO_BOUND)
    assert taken.candidate.job_id == urgent


def test_the_ledger_without_some_jobs_is_the_ledger_in_which_they_never_were():
    stage = Stage(guaranteed={SPACES[0]: 4})
    keys = [stage.job(0, 2), stage.job(1, 2)]
    stage.decide()
    gone = stage.running.pop(keys[0])
    less = stage.ledger()
    stage.running = {gone.job_id: gone, **stage.running}
    found = without(stage.ledger(), {keys[0]})
    assert found.capacity.reserved == less.capacity.reserved
    assert found.holders == less.holders
    assert found.shares is not None
    assert not any(found.shares.held[SPACES[0]].values())


_jobs = st.tuples(st.integers(0, 3), st.integers(1, 8), st.sampled_from([0, 0, 1, 50, URGENT]), st.booleans())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(_jobs, min_size=2, max_size=14),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.integers(0, 10**6),
)
def test_jobs_that_never_end_come_to_rest_and_no_one_goes_in_vain(jobs, guarantees, seed):
    """No two jobs take each other's place without end, with no bound but the rules of who may."""
    chance = random.Random(seed)
    stage = Stage(8, {SPACES[n]: cores for n, cores in enumerate(guarantees) if cores})
    for space, cores, level, takes in jobs:
        stage.job(space, cores, level, takes=takes and level > 0)
        if chance.random() < 0.5:
            stage.decide()
            stage.end(chance)
    quiet, rounds = 0, 0
    while quiet < 3:
        rounds += 1
        assert rounds < 40 * len(jobs), "they take each other's places without end"
        before = {*stage.running}
        took = stage.decide()
        assert sum(one.total.cpu for one in (*stage.running.values(), *stage.ending.values())) <= 8
        stage.end(chance)
        stage.minutes += 1
        quiet = quiet + 1 if not took and not stage.ending and before == {*stage.running} else 0


@pytest.mark.parametrize("seed", range(30))
def test_who_took_places_starts_as_soon_as_they_are_free(seed):
    chance = random.Random(seed)
    stage = Stage(16)
    for _ in range(12):
        stage.job(chance.randrange(4), chance.randint(1, 4), chance.choice([0, 0, 50]))
    stage.decide()
    for _ in range(3):
        stage.job(chance.randrange(4), chance.randint(2, 8), URGENT, takes=True)
    took = stage.decide()
    stage.job(0, 1, 70)
    while stage.ending:
        stage.end(chance)
        stage.decide()
    for one in took:
        assert one.candidate.job_id in stage.running
