"""Over any course of events: limits hold, jobs start whole, nobody starves, more room never gives a smaller shape."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, make_spec, one_task, plain_specs, resources, specs
from yardmaster.job.spec import NOTHING, Resources, Role, TrainingSpec
from yardmaster.queueing.admission import Candidate, EngineCapacity, Fit, Ledger, Quota, Usage, admit
from yardmaster.queueing.fitting import check, largest_fit
from yardmaster.queueing.placement import Node
from yardmaster.queueing.resources import units_of

GI = 1 << 30
NAMESPACES = tuple(uuid.UUID(int=n) for n in (1, 2, 3))
ENGINE = Resources(cpu=10, memory=64 * GI, gpus=4)


def total_of(jobs: Iterable[Candidate]) -> Resources:
    found = NOTHING
    for one in jobs:
        found += one.total
    return found


@dataclass
class Yard:
    """An engine, its queue and what runs. `admit_one` does what the reconciler of one job does."""

    quotas: dict[uuid.UUID, Quota]
    now: datetime = NOW
    waiting: dict[uuid.UUID, Candidate] = field(default_factory=dict)
    running: dict[uuid.UUID, Candidate] = field(default_factory=dict)
    _ids: int = 0

    def add(self, cpu: float, gpus: int, namespace: uuid.UUID, priority: int = 0) -> Candidate:
        self._ids += 1
        size = Resources(cpu, GI, gpus)
        one = Candidate(uuid.UUID(int=self._ids), namespace, self.now, priority, size, one_task(size))
        self.waiting[one.job_id] = one
        return one

    def ledger(self) -> Ledger:
        mine = {n: [one for one in self.running.values() if one.namespace_id == n] for n in NAMESPACES}
        usage = {n: Usage(total_of(jobs), len(jobs)) for n, jobs in mine.items()}
        return Ledger(EngineCapacity(ENGINE, ENGINE, ENGINE, total_of(self.running.values())), self.quotas, usage)

    def admit_one(self, job_id: uuid.UUID) -> None:
        one = self.waiting[job_id]
        if admit(one, self.waiting.values(), self.ledger(), self.now).fit is Fit.FITS_NOW:
            self.running[job_id] = self.waiting.pop(job_id)
        self.is_within_limits()

    def is_within_limits(self) -> None:
        books = self.ledger()
        assert all(need <= units_of(ENGINE)[name] for name, need in units_of(books.capacity.reserved).items())
        for namespace, quota in self.quotas.items():
            used = books.usage[namespace].amounts()
            assert all(used[name] <= limit for name, limit in quota.limits().items())


_quotas = st.builds(
    Quota,
    cpu=st.none() | st.integers(0, 10),
    gpus=st.none() | st.integers(0, 4),
    running_jobs=st.none() | st.integers(0, 4),
)
_events = st.lists(
    st.tuples(st.sampled_from(["add", "ask", "end", "time"]), st.integers(0, 10**6), st.integers(0, 2)), max_size=60
)


@given(st.tuples(_quotas, _quotas, _quotas), _events)
def test_no_course_of_events_promises_more_than_there_is(quotas: tuple[Quota, ...], events: list[tuple]) -> None:  # type: ignore[type-arg]
    yard = Yard(dict(zip(NAMESPACES, quotas, strict=True)))
    for what, number, which in events:
        if what == "add":
            yard.add(number % 12000 / 1000 + 0.001, number % 5, NAMESPACES[which], priority=number % 3)
        elif what == "ask" and yard.waiting:
            yard.admit_one(list(yard.waiting)[number % len(yard.waiting)])
        elif what == "end" and yard.running:
            yard.running.pop(list(yard.running)[number % len(yard.running)])
        elif what == "time":
            yard.now += timedelta(seconds=number % 900)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_nobody_starves_behind_a_stream_of_smaller_jobs(seed: int) -> None:
    """The big job needs the whole engine; small ones keep coming, as many as would fill it for ever."""
    chance = random.Random(seed)
    yard = Yard({})
    for _ in range(8):
        yard.add(chance.choice([0.5, 1, 2]), chance.randint(0, 1), chance.choice(NAMESPACES))
    for job_id in list(yard.waiting):
        yard.admit_one(job_id)
    big = yard.add(10, 4, NAMESPACES[0])
    for _ in range(40):
        yard.now += timedelta(minutes=1)
        for job_id in [one for one in yard.running if chance.random() < 0.3]:
            yard.running.pop(job_id)
        while len(yard.waiting) < 8:
            yard.add(chance.choice([0.5, 1, 2]), chance.randint(0, 1), chance.choice(NAMESPACES))
        ids = list(yard.waiting)
        chance.shuffle(ids)
        for job_id in ids:
            yard.admit_one(job_id)
        if big.job_id in yard.running:
            return
    raise AssertionError("the big job never started")


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 4)), min_size=1, max_size=8), st.integers(0, 10**6))
def test_volcano_3373_jobs_that_only_half_fit_together_never_lock_each_other_out(
    sizes: list[tuple[int, int]], seed: int
) -> None:
    """However often and in whatever order they are asked: whenever nothing runs, something can start."""
    yard, chance = Yard({}), random.Random(seed)
    for cpu, gpus in sizes:
        yard.add(cpu, gpus, chance.choice(NAMESPACES), chance.randint(0, 1))
    while yard.waiting:
        ids = list(yard.waiting)
        chance.shuffle(ids)
        for job_id in ids:
            yard.admit_one(job_id)
        assert yard.running
        yard.running.pop(chance.choice(list(yard.running)))


@given(st.data())
def test_asking_twice_gives_the_same_answer_and_its_numbers_are_true(data: st.DataObject) -> None:
    yard = Yard({n: data.draw(_quotas) for n in NAMESPACES})
    for _ in range(data.draw(st.integers(1, 6))):
        cpu, gpus = data.draw(st.integers(1, 12000)) / 1000, data.draw(st.integers(0, 5))
        yard.add(cpu, gpus, data.draw(st.sampled_from(NAMESPACES)))
    for job_id in data.draw(st.permutations(list(yard.waiting))):
        if data.draw(st.booleans()):
            yard.admit_one(job_id)
    yard.now += timedelta(seconds=data.draw(st.integers(0, 2000)))
    for one in yard.waiting.values():
        decision = admit(one, yard.waiting.values(), yard.ledger(), yard.now)
        assert decision == admit(one, reversed(list(yard.waiting.values())), yard.ledger(), yard.now)
        if decision.fit is not Fit.FITS_NOW:
            assert all(short.short_by > 0 and short.needs > short.unused for short in decision.numbers)
        if decision.fit is Fit.WAITS:
            assert decision.numbers or decision.ahead
            assert len(decision.ahead) <= decision.position


# The dry run and the largest shape.


def candidate_of(spec: TrainingSpec) -> Candidate:
    return Candidate.of(spec, job_id=uuid.UUID(int=1), namespace_id=NAMESPACES[0], queued_at=NOW)


def books_of(free: Resources, quota: Quota = Quota(), usage: Usage = Usage()) -> Ledger:
    return Ledger(EngineCapacity(free, free, free), {NAMESPACES[0]: quota}, {NAMESPACES[0]: usage})


def fit(spec: TrainingSpec, books: Ledger, *queue: Candidate) -> dict[Role, int] | None:
    return largest_fit(spec, candidate_of(spec), queue, books, NOW)


def test_the_largest_fit_keeps_every_role_and_has_as_many_workers_as_possible() -> None:
    spec = make_spec(shape={Role.WORKER: 8, Role.PS: 3}, resources=Resources(1, GI))
    assert fit(spec, books_of(Resources(6, 64 * GI))) == {Role.WORKER: 5, Role.PS: 1}
    assert fit(spec, books_of(Resources(10, 64 * GI))) == {Role.WORKER: 8, Role.PS: 2}
    assert fit(spec, books_of(Resources(99, 64 * GI))) == {Role.WORKER: 8, Role.PS: 3}
    assert fit(spec, books_of(Resources(1, 64 * GI))) is None


def test_quota_and_running_jobs_bound_the_largest_fit_as_well() -> None:
    spec = make_spec(shape={Role.WORKER: 8, Role.PS: 1}, resources=Resources(1, GI))
    free = Resources(99, 64 * GI)
    assert fit(spec, books_of(free, Quota(cpu=4), Usage(Resources(1, 0), 1))) == {Role.WORKER: 2, Role.PS: 1}
    assert fit(spec, books_of(free, Quota(running_jobs=1), Usage(Resources(1, 0), 1))) is None


def test_the_largest_fit_counts_what_is_promised_to_those_before() -> None:
    spec = make_spec(shape={Role.WORKER: 8, Role.PS: 1}, resources=Resources(1, GI))
    before = Candidate(uuid.UUID(int=9), NAMESPACES[1], NOW - timedelta(seconds=1), 0, Resources(4, GI), ())
    assert fit(spec, books_of(Resources(8, 64 * GI)), before) == {Role.WORKER: 3, Role.PS: 1}


def test_kueue_15614_a_dry_run_says_now_later_or_never_and_what_would_fit() -> None:
    spec = make_spec(shape={Role.WORKER: 4, Role.PS: 1}, resources=Resources(1, GI))
    free = Resources(99, 64 * GI)
    one = candidate_of(spec)
    now = check(spec, one, (), books_of(free), NOW)
    assert (now.fit, now.code, now.largest_fit) == (Fit.FITS_NOW, None, {Role.WORKER: 4, Role.PS: 1})
    later = check(spec, one, (), books_of(free, Quota(cpu=6), Usage(Resources(3, 0), 1)), NOW)
    assert (later.fit, later.code) == (Fit.WAITS, "WaitingForQuota")
    assert later.largest_fit == {Role.WORKER: 2, Role.PS: 1}
    never = check(spec, one, (), books_of(free, Quota(cpu=3)), NOW)
    assert (never.fit, never.code) == (Fit.NEVER_FITS, "ExceedsMaxQuota")
    assert never.largest_fit == {Role.WORKER: 2, Role.PS: 1}
    assert never.numbers[0].needs == 5
    assert all(found.message and found.remedy for found in (later, never))


def with_shape(spec: TrainingSpec, shape: dict[Role, int]) -> TrainingSpec:
    return make_spec(spec.strategy, shape, spec.roles[Role.WORKER].resources, priority=spec.priority)


@given(plain_specs(most=6), st.integers(0, 12000), st.integers(0, 6000))
def test_more_room_never_gives_a_smaller_shape_and_every_shape_given_starts(
    spec: TrainingSpec, free: int, more: int
) -> None:
    small, large = (books_of(Resources(cpu / 1000, 64 * GI)) for cpu in (free, free + more))
    first, second = fit(spec, small), fit(spec, large)
    if first is None:
        return
    assert second is not None
    assert [second.get(role, 0) for role in (Role.WORKER, Role.PS)] >= [
        first.get(role, 0) for role in (Role.WORKER, Role.PS)
    ]
    assert first.keys() == spec.roles.keys()
    assert all(count <= spec.replicas(role) for role, count in first.items())
    assert admit(candidate_of(with_shape(spec, first)), (), small, NOW).fit is Fit.FITS_NOW
    wider = {**first, Role.WORKER: first[Role.WORKER] + 1}
    if first[Role.WORKER] < spec.replicas(Role.WORKER):
        least = {**wider, **({Role.PS: 1} if Role.PS in wider else {})}
        assert admit(candidate_of(with_shape(spec, least)), (), small, NOW).fit is not Fit.FITS_NOW


def test_the_largest_fit_is_one_that_has_a_place_on_the_nodes() -> None:
    spec = make_spec(shape={Role.WORKER: 8, Role.PS: 1}, resources=Resources(1.2, GI))
    two = Resources(2, 16 * GI)
    nodes = tuple(Node(name, two, two) for name in "abcd")
    books = Ledger(EngineCapacity(two * 4, two * 4, two, nodes=nodes))
    assert fit(spec, books) == {Role.WORKER: 3, Role.PS: 1}
    asked = check(spec, candidate_of(spec), (), books, NOW)
    assert (asked.fit, asked.code) == (Fit.NEVER_FITS, "ExceedsCapacity")


def test_a_task_that_no_single_machine_takes_never_fits_though_each_amount_is_somewhere() -> None:
    spec = make_spec(shape={Role.WORKER: 1}, resources=Resources(8, GI, 1))
    large, gpus = Resources(16, 64 * GI), Resources(2, 64 * GI, 4)
    books = Ledger(
        EngineCapacity(
            large + gpus,
            large + gpus,
            Resources(16, 64 * GI, 4),
            nodes=(Node("a", large, large), Node("b", gpus, gpus)),
        )
    )
    found = check(spec, candidate_of(spec), (), books, NOW)
    assert (found.fit, found.code) == (Fit.NEVER_FITS, "NoMatchingFlavor")
    assert [(one.pool, one.resource, one.limit) for one in found.numbers] == [("machine", "cpu", 2)]


@settings(max_examples=60)
@given(specs(), resources(), resources())
def test_the_dry_run_agrees_with_admission(spec: TrainingSpec, free: Resources, held: Resources) -> None:
    books = Ledger(EngineCapacity(free * 8, free * 8, free, held))
    found = check(spec, candidate_of(spec), (), books, NOW)
    decision = admit(candidate_of(spec), (), books, NOW)
    assert found.fit is decision.fit
    if found.fit is Fit.FITS_NOW:
        assert found.largest_fit == {role: one.replicas for role, one in spec.roles.items()}
        assert fit(spec, books) == found.largest_fit
