"""Reservations over random histories: what is reserved is there when its time begins, no job waits for ever because of
them, and a queue decided in one walk gets the answers that each job would get alone."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, make_spec, one_task
from tests.unit.core.test_queue_decision import NAMESPACES, PATIENCE, by_id, ledgers, queues, turn_of, with_started
from yardmaster.job.spec import NOTHING, Resources, Role
from yardmaster.queueing.admission import Decision, admit
from yardmaster.queueing.fitting import check
from yardmaster.queueing.ledger import Candidate, Code, EngineCapacity, Holder, Ledger, Quota, Usage
from yardmaster.queueing.pools import Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.shares import Member, Shares
from yardmaster.queueing.turns import in_order
from yardmaster.queueing.windows import Booked, Window

GROUP, MINE, MATE, THEIRS = (uuid.UUID(int=n) for n in (70, 71, 72, 73))
ABOVE = {MINE: (GROUP,), MATE: (GROUP,)}
CORES = 8
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def window(owner: uuid.UUID, cores: int, begins: float, ends: float) -> Window:
    return Window(owner, {"cpu": cores * 1000}, NOW + begins * HOUR, NOW + ends * HOUR, "a class")


def job(number: int, whose: uuid.UUID, cores: int, limit: float | None, queued_at: datetime = NOW) -> Candidate:
    total = Resources(cores, 1)
    longest = None if limit is None else limit * HOUR
    return Candidate(uuid.UUID(int=number), whose, queued_at, 0, total, one_task(total), longest=longest)


@dataclass
class Engine:
    """What runs, until when it really runs, and when it ends at the latest."""

    windows: tuple[Window, ...]
    quotas: dict[uuid.UUID, Quota] = field(default_factory=dict)
    now: datetime = NOW
    running: dict[uuid.UUID, tuple[Candidate, datetime, datetime | None]] = field(default_factory=dict)
    waiting: list[Candidate] = field(default_factory=list)

    def ledger(self) -> Ledger:
        total = Resources(CORES, 1 << 40)
        jobs = [one for one, _, _ in self.running.values()]
        usage = {
            key: Usage(sum((one.total for one in mine), NOTHING), len(mine))
            for key in {one.namespace_id for one in jobs}
            if (mine := [one for one in jobs if one.namespace_id == key])
        }
        ends = {key: latest for key, (_, _, latest) in self.running.items() if latest is not None}
        return Ledger(
            EngineCapacity(total, total, total, sum((one.total for one in jobs), NOTHING)),
            quotas=self.quotas, usage=usage, booked=Booked(self.now, self.windows, ends, above=ABOVE),
            holders=tuple(Holder(one.job_id, one.namespace_id, one.total) for one in jobs),
        )  # fmt: skip

    def go_to(self, at: datetime) -> None:
        self.now = at
        self.running = {key: one for key, one in self.running.items() if one[1] > at}

    def serve(self, lasts: dict[uuid.UUID, timedelta]) -> set[uuid.UUID]:
        """Start who may; `lasts`: how long each really runs, at most its limit."""
        found = decide_queue(self.waiting, self.ledger(), self.now, PATIENCE).decisions
        started = {one.job_id for one in self.waiting if found[one.job_id].code is None}
        for one in self.waiting:
            if one.job_id in started:
                latest = None if one.longest is None else self.now + one.longest
                self.running[one.job_id] = (one, self.now + lasts[one.job_id], latest)
        self.waiting = [one for one in self.waiting if one.job_id not in started]
        return started

    def held(self, *whose: uuid.UUID) -> float:
        return sum(one.total.cpu for one, _, _ in self.running.values() if one.namespace_id in whose)


_windows = st.lists(
    st.builds(
        window, st.sampled_from([GROUP, MINE, MATE, THEIRS]), st.integers(1, 4), st.sampled_from([1, 2.5, 4]),
        st.sampled_from([5, 6.5]),
    ),
    min_size=1, max_size=2,
)  # fmt: skip
_comings = st.lists(
    st.tuples(
        st.integers(0, 480), st.sampled_from([MINE, MATE, THEIRS]), st.integers(1, 8),
        st.sampled_from([None, 0.5, 1, 2]), st.sampled_from([0.3, 1.0]),
    ),
    max_size=14,
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(_windows, _comings, st.sampled_from([None, 5]))
def test_what_is_reserved_is_there_whatever_came_and_waits_and_every_job_starts_in_the_end(windows, comings, most):
    engine = Engine(tuple(windows), {} if most is None else {THEIRS: Quota(cpu=most)})
    jobs = {}
    for number, (minute, whose, cores, limit, part) in enumerate(comings, start=1):
        size = min(cores, most or cores) if whose == THEIRS else cores
        one = job(number, whose, size, limit, NOW + minute * MINUTE)
        jobs[one.job_id] = (one, (limit or 3) * HOUR * part)
    lasts = {key: time for key, (_, time) in jobs.items()}
    for minute in range(0, 30 * 60, 15):
        engine.go_to(NOW + minute * MINUTE)
        engine.waiting += [one for one, _ in jobs.values() if engine.now - 15 * MINUTE < one.queued_at <= engine.now]
        engine.serve(lasts)
        assert engine.held(MINE, MATE, THEIRS) <= CORES
        assert most is None or engine.held(THEIRS) <= most
        _all_have_what_is_reserved(engine)
    assert engine.waiting == [], "no job waits for ever"


def _all_have_what_is_reserved(engine: Engine) -> None:
    """A job of as much as is reserved for its namespace now, and not taken, would start at once."""
    books = engine.ledger()
    for whose in (MINE, MATE, THEIRS):
        room = Pools(books)._calendar.own_now(whose).get("cpu", 0) // 1000
        quota = engine.quotas.get(whose)
        if quota is not None and quota.cpu is not None:
            room = min(room, int(quota.cpu - engine.held(whose)))
        if room > 0:
            asked = job(900, whose, room, 0.01, engine.now)
            assert admit(asked, engine.waiting, books, engine.now, PATIENCE).code in (None, _OWN[whose](engine))


def _waits_behind_its_own(whose: uuid.UUID):
    """Another job of the same namespace, or group, may be before it: what is reserved is theirs as well."""
    mates = {whose, *(key for key, path in ABOVE.items() if set(path) & set(ABOVE.get(whose, ())))}

    def code(engine: Engine) -> Code | None:
        return Code.WAITING_FOR_TURN if any(one.namespace_id in mates for one in engine.waiting) else None

    return code


_OWN = {whose: _waits_behind_its_own(whose) for whose in (MINE, MATE, THEIRS)}


def test_a_job_of_others_that_has_waited_long_keeps_nothing_that_is_reserved_from_whom_it_is_for():
    """It lacks a core for an hour, so that no later job may take any: but for those of the class, in their time."""
    engine = Engine((window(MINE, 6, -1, 1),), waiting=[job(1, THEIRS, 2, None, NOW - HOUR)])
    engine.running[uuid.UUID(int=2)] = (job(2, THEIRS, 1, None), NOW + HOUR, None)
    assert admit(job(4, THEIRS, 1, 0.1), engine.waiting, engine.ledger(), NOW, PATIENCE).code is Code.WAITING_FOR_TURN
    asked = job(3, MINE, 6, None, NOW)
    assert admit(asked, engine.waiting, engine.ledger(), NOW, PATIENCE).code is None
    decided = decide_queue([*engine.waiting, asked], engine.ledger(), NOW, PATIENCE).decisions
    assert decided[asked.job_id].code is None


def test_a_job_that_waits_beside_a_window_is_not_passed_for_ever_by_smaller_ones():
    """Others leave half of the engine; jobs of one core come every ten minutes, and each runs for half an hour."""
    engine = Engine((window(MINE, 4, 3, 2_000),))
    large = job(1, THEIRS, 4, None)
    lasts = {large.job_id: HOUR}
    for step in range(60):
        engine.go_to(NOW + step * 10 * MINUTE)
        small = job(100 + step, MATE, 2, None, engine.now - MINUTE)
        lasts[small.job_id] = HOUR / 2
        engine.waiting += [small] if step else [small, large]
        if large.job_id in engine.serve(lasts):
            return
    raise AssertionError("it waits since ten hours")


def test_within_its_own_reservation_a_larger_job_is_not_passed_for_ever_by_smaller_ones():
    """Eight cores are reserved for a group; small jobs of both its members come, and the large one has waited long."""
    for whose in (MINE, MATE):
        engine = Engine((window(GROUP, 8, -100, 2_000),))
        large, lasts = job(1, MINE, 8, None), {uuid.UUID(int=1): HOUR}
        started = set()
        for step in range(60):
            engine.go_to(NOW + step * 10 * MINUTE)
            small = job(100 + step, whose, 3, None, engine.now - MINUTE)
            lasts[small.job_id] = HOUR / 2
            engine.waiting += [small] if step else [small, large]
            books = engine.ledger()
            decided = decide_queue(engine.waiting, books, engine.now, PATIENCE).decisions
            for one in engine.waiting:
                assert admit(one, engine.waiting, books, engine.now, PATIENCE).fit is decided[one.job_id].fit
            started |= engine.serve(lasts)
        assert large.job_id in started, whose


def test_a_job_that_waits_for_the_end_of_a_window_keeps_nothing_while_the_engine_is_full():
    """Else the engine would be emptied for it, again and again, and it could not start even then."""
    engine = Engine((window(MINE, 4, 3, 9),), waiting=[job(1, THEIRS, 8, None, NOW - HOUR)])
    engine.running[uuid.UUID(int=2)] = (job(2, THEIRS, 2, None), NOW + HOUR, None)
    small = job(3, THEIRS, 1, 1)
    assert admit(small, engine.waiting, engine.ledger(), NOW, PATIENCE).code is None


def test_a_job_that_waits_for_the_end_of_a_window_uses_up_no_share_of_its_namespace():
    """Else the short jobs of its namespace would come after all those of the others."""
    engine = Engine((window(GROUP, 4, 3, 9),))
    shares = Shares({THEIRS: Member(), MATE: Member()})
    queue = [job(1, THEIRS, 8, None), job(2, THEIRS, 2, 1), *(job(number, MATE, 2, 1) for number in range(3, 7))]
    books = replace(engine.ledger(), shares=shares)
    decided = decide_queue(queue, books, NOW, PATIENCE).decisions
    assert [number for number in range(1, 7) if decided[uuid.UUID(int=number)].code is None] == [2, 3, 4, 5]
    assert admit(queue[1], queue, books, NOW, PATIENCE).code is None


def test_a_group_shares_what_is_reserved_for_it_and_first_each_has_its_own():
    engine = Engine((window(GROUP, 4, -1, 1), window(MINE, 2, -1, 1)))
    assert admit(job(1, THEIRS, 3, 0.1), (), engine.ledger(), NOW).code is Code.RESERVED
    assert admit(job(1, MATE, 6, 0.1), (), engine.ledger(), NOW).code is None
    assert admit(job(1, MATE, 7, 0.1), (), engine.ledger(), NOW).code is Code.RESERVED, "two are for another of it"
    engine.running[uuid.UUID(int=2)] = (job(2, MINE, 3, None), NOW + HOUR, None)
    assert admit(job(1, MATE, 5, 0.1), (), engine.ledger(), NOW).code is None, "and the rest of the engine"
    assert admit(job(1, THEIRS, 2, 0.1), (), engine.ledger(), NOW).code is None
    assert admit(job(1, THEIRS, 3, 0.1), (), engine.ledger(), NOW).code is Code.RESERVED


def test_the_largest_shape_that_would_start_leaves_what_is_reserved():
    """Within a window, before one that it could reach, and before one that it ends ahead of."""
    size = Resources(1, 1)

    def largest(limit: timedelta | None, *windows: Window) -> int | None:
        spec = make_spec(shape={Role.WORKER: 7, Role.PS: 1}, resources=size, max_runtime=limit, grace_period=0 * HOUR)
        asked = Candidate.of(spec, job_id=uuid.UUID(int=1), namespace_id=THEIRS, queued_at=NOW)
        found = check(spec, asked, (), Engine(windows).ledger(), NOW)
        return None if found.largest_fit is None else found.largest_fit[Role.WORKER]

    assert largest(None, window(MINE, 6, -1, 1)) == 1
    assert largest(None, window(MINE, 7, -1, 1)) is None
    assert largest(None, window(MINE, 3, 2, 4)) == 4
    assert largest(3 * HOUR, window(MINE, 3, 2, 4)) == 4
    assert largest(1 * HOUR, window(MINE, 3, 2, 4)) == 7


@st.composite
def ledgers_with_windows(draw: st.DrawFn) -> Ledger:
    ledger = draw(ledgers())
    groups = {key: (uuid.UUID(int=500),) for key in NAMESPACES[:3]}
    windows = tuple(
        Window(
            draw(st.sampled_from([*NAMESPACES[:4], uuid.UUID(int=500)])),
            {"cpu": draw(st.integers(0, 8000)), **draw(st.sampled_from([{}, {"memory": 3 << 30}, {"gpus": 1}]))},
            NOW + begins * HOUR, NOW + (begins + 2) * HOUR, f"window {at}",
        )
        for at, begins in enumerate(draw(st.lists(st.sampled_from([-1, 0, 1, 3]), min_size=1, max_size=3)))
    )  # fmt: skip
    ends = {one.job_id: NOW + HOUR for one in ledger.holders if draw(st.booleans())}
    return replace(ledger, booked=Booked(NOW, windows, ends, HOUR / 4, MINUTE, groups))


@settings(max_examples=250, deadline=None)
@given(
    queues(25), ledgers_with_windows(), st.lists(st.sampled_from([None, HOUR / 2, 2 * HOUR]), min_size=25, max_size=25)
)
def test_with_windows_every_job_gets_the_answer_that_it_would_get_alone(queue, ledger, limits):
    queue = [replace(one, longest=limit) for one, limit in zip(queue, limits, strict=False)]
    decisions, turns = _one_by_one(queue, ledger)
    found = decide_queue(reversed(queue), ledger, NOW, PATIENCE)
    assert {key: one.code for key, one in found.decisions.items()} == {key: one.code for key, one in decisions.items()}
    assert found.decisions == decisions
    assert {key: found.turns.get(key, turn_of(one)) for key, one in by_id(queue).items() if key in turns} == turns


def _one_by_one(
    queue: Sequence[Candidate], ledger: Ledger
) -> tuple[dict[uuid.UUID, Decision], dict[uuid.UUID, datetime]]:
    """As of `test_queue_decision`, with when each of those that started ends at the latest."""
    waiting = {one.job_id: one for one in queue}
    decisions: dict[uuid.UUID, Decision] = {}
    while left := [
        turn for turn in in_order(waiting.values(), ledger, Pools(ledger)) if turn[0].job_id not in decisions
    ]:
        one, brought_by = left[0]
        decision = decisions[one.job_id] = admit(one, list(waiting.values()), ledger, NOW, PATIENCE)
        if decision.code is None:
            ends_by, booked = Pools(ledger).end_of(one), ledger.booked
            ledger = with_started(ledger, one)
            if ends_by is not None and booked is not None:
                ledger = replace(ledger, booked=replace(booked, ends={**booked.ends, one.job_id: ends_by}))
            waiting[brought_by] = replace(waiting[brought_by], turn_at=turn_of(one))
            del waiting[one.job_id]
    return decisions, {one.job_id: turn_of(one) for one in waiting.values()}
