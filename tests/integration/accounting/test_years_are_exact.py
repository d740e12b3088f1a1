"""Months, days and counts of jobs say what the ledger says at every moment: between sweeps, whatever comes late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.accounting import rollup
from apps.accounting.models import JobCount, UsageDay, UsageMonth, UsageState
from apps.accounting.rollup import usage_rebuild, usage_sweep
from apps.accounting.use import jobs_held, use
from apps.jobs.models import Reservation
from yardmaster.accounting.calendar import DAY, begin_of, day_of, days, month_of

BEGIN = datetime(2026, 10, 28, tzinfo=UTC)
LAST = 37 * 48
"""Half hours: from the end of October into December."""
QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.explicit, Phase.generate]}


def at(slot: int, part: float = 0.0) -> datetime:
    return BEGIN + timedelta(minutes=30 * slot, seconds=part)


@dataclass
class Held:
    job: int
    role: str
    since: datetime
    until: datetime | None
    pk: int

    @property
    def namespace(self) -> str:
        return ("red", "blue")[self.job % 2]

    @property
    def user(self) -> str:
        return f"user {self.job % 3}"

    def seconds(self, begin: datetime, end: datetime) -> int:
        until = min(end, self.until or end).replace(microsecond=0)
        return max(0, int((until - max(begin, self.since.replace(microsecond=0))).total_seconds()))

    def is_present(self, begin: datetime, end: datetime) -> bool:
        return self.since < end and (self.since >= begin or self.until is None or self.until > begin)


@dataclass
class Ledger:
    """Beside the portal's own: what was written, as a list."""

    rows: list[Held] = field(default_factory=list)

    def add(self, given: tuple[int, str, int, float, int | None]) -> None:
        job, role, slot, part, length = given
        since, until = at(slot, part), None if length is None else at(slot + length, part)
        one = Held(job, role, since, until, 0)
        one.pk = Reservation.objects.create(
            job_id=UUID(int=job), job_name=f"job {job}", namespace_id=UUID(int=job % 2), namespace_slug=one.namespace,
            owner_id=UUID(int=job % 3), owner_name=one.user, engine="local", attempt=len(self.rows), role=role,
            tasks=1, cpu=1, memory=1 << 10, gpus=0, reserved_at=since, released_at=until,
        ).pk  # fmt: skip
        self.rows.append(one)

    def close(self, given: tuple[int, int]) -> None:
        number, slot = given
        still = [one for one in self.rows if one.until is None]
        if still:
            one = still[number % len(still)]
            one.until = at(slot)
            Reservation.objects.filter(pk=one.pk).close(one.until)

    def sweep(self, slot: int) -> None:
        usage_sweep(at(slot), longest=600)

    def amounts(self, begin: datetime, end: datetime, key: Callable[[Held, date], Any]) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for day in days(day_of(begin), day_of(end) + DAY):
            low, high = max(begin, begin_of(day)), min(end, begin_of(day + DAY))
            for one in self.rows:
                found[key(one, day)] += one.seconds(low, high) * 1000 if low < high else 0
        return +found

    def jobs(self, begin: datetime, end: datetime, key: Callable[[Held], Any]) -> dict[Any, int]:
        found: dict[Any, set[int]] = {}
        for one in self.rows:
            if one.is_present(begin, end):
                found.setdefault(key(one), set()).add(one.job)
        return {name: len(jobs) for name, jobs in found.items()}

    def check(self, begin: datetime, end: datetime) -> None:
        assert cpu(use(begin, end, ["namespace", "role"], step="month")) == self.amounts(
            begin, end, lambda one, day: (UUID(int=one.job % 2), one.namespace, one.role, month_of(day))
        )
        assert cpu(use(begin, end, ["user"])) == self.amounts(
            begin, end, lambda one, day: (UUID(int=one.job % 3), one.user)
        )
        assert jobs_held(begin, end, ()).get((), 0) == self.jobs(begin, end, lambda one: ()).get((), 0)
        assert jobs_held(begin, end, ["role"]) == self.jobs(begin, end, lambda one: (one.role,))
        assert jobs_held(begin, end, ["user"]) == self.jobs(
            begin, end, lambda one: (UUID(int=one.job % 3), one.user)
        )  # fmt: skip


def cpu(found: dict[Any, Counter[str]]) -> Counter[Any]:
    return Counter({key: amounts["cpu"] for key, amounts in found.items() if amounts["cpu"]})


slots = st.integers(0, LAST)
added = st.tuples(
    st.integers(0, 5), st.sampled_from(["ps", "worker"]), slots, st.sampled_from([0, 0.5]),
    st.none() | st.integers(-3, 100) | st.integers(0, 1500),
)  # fmt: skip
steps = st.lists(
    st.tuples(st.just("add"), added)
    | st.tuples(st.just("close"), st.tuples(st.integers(0, 9), slots))
    | st.tuples(st.just("sweep"), slots),
    min_size=2,
    max_size=10,
)
windows = st.tuples(slots, st.sampled_from([0, 0, 24, 48 * 3]), st.integers(1, LAST))


def assert_exact_at_every_moment(steps, window):
    slot, shift, length = window
    begin = at(slot // 48 * 48 + shift)
    with transaction.atomic():
        ledger = Ledger()
        for name, given_to in steps:
            getattr(ledger, name)(given_to)
            ledger.check(begin, begin + timedelta(minutes=30 * length))
        ledger.sweep(LAST + 60)
        ledger.check(begin, begin + timedelta(minutes=30 * length))
        ledger.check(at(0), at(LAST))
        transaction.set_rollback(True)


@settings(max_examples=10, **QUICK)
@given(steps=steps, window=windows)
def test_sums_and_counts_are_those_of_the_ledger_at_every_moment(db, steps, window):
    assert_exact_at_every_moment(steps, window)


@pytest.mark.postgres
@settings(max_examples=5, **QUICK)
@given(steps=steps, window=windows)
def test_the_same_of_a_year_on_postgresql(postgres_db, steps, window):
    assert_exact_at_every_moment(steps, window)


def test_a_job_over_two_months_is_one_job_and_counts_in_both(db):
    ledger = Ledger()
    ledger.add((1, "worker", 10, 0, 48 * 10))
    ledger.add((1, "worker", 48 * 20, 0, 4))  # again, after days without it
    ledger.add((1, "ps", 48 * 20, 0, 4))
    ledger.sweep(LAST)
    assert UsageState.objects.get().jobs_upto == date(2026, 12, 3)
    assert [one.month for one in UsageMonth.objects.filter(resource="cpu", role="worker").order_by("month")] == [
        date(2026, 10, 1), date(2026, 11, 1),
    ]  # fmt: skip
    months = JobCount.objects.filter(is_month=True, role="").order_by("begin")
    assert [(one.begin, one.before, one.jobs) for one in months] == [
        (date(2026, 10, 1), None, 1), (date(2026, 11, 1), date(2026, 10, 31), 1),
    ]  # fmt: skip
    ledger.check(at(0), at(LAST))
    ledger.check(begin_of(date(2026, 11, 1)), begin_of(date(2026, 12, 1)))


def test_a_correction_counts_before_a_sweep_has_found_it(db):
    ledger = Ledger()
    ledger.add((1, "worker", 0, 0, None))
    ledger.add((2, "ps", 0, 0, 10))
    ledger.sweep(LAST)
    whole = Reservation.objects.filter(released_at=None).get()
    ledger.close((0, 48 * 6))
    assert whole.pk == ledger.rows[0].pk
    ledger.check(at(0), at(LAST))
    assert UsageDay.objects.filter(day=date(2026, 11, 20)).exists(), "the sums are not yet right"
    ledger.add((3, "ps", 5, 0, 10))
    ledger.check(at(0), at(LAST))
    ledger.sweep(LAST)
    assert not UsageDay.objects.filter(day=date(2026, 11, 20)).exists()
    ledger.check(at(0), at(LAST))


def test_days_that_were_summed_before_there_were_months_are_summed_in_the_background(db, monkeypatch):
    ledger = Ledger()
    ledger.add((1, "worker", 0, 0, 48 * 36))
    ledger.add((2, "ps", 48 * 12, 0, 400))
    ledger.sweep(LAST)
    # As an earlier release left it.
    UsageMonth.objects.all().delete()
    JobCount.objects.all().delete()
    UsageState.objects.update(months_upto=None, jobs_upto=None)
    ledger.check(at(0), at(LAST))
    for _ in range(10):
        before = UsageState.objects.values_list("months_upto", "jobs_upto").get()
        usage_sweep(at(LAST), longest=0)
        ledger.check(at(0), at(LAST))
        if UsageState.objects.values_list("months_upto", "jobs_upto").get() == before:
            break
    assert before == (date(2026, 12, 1), date(2026, 12, 3))


def test_a_step_that_breaks_off_leaves_what_was_and_is_done_again(db, monkeypatch):
    ledger = Ledger()
    ledger.add((1, "worker", 0, 0, 48 * 30))
    written = rollup._carry

    def broken(*_: Any) -> None:
        raise ConnectionError("the database is gone")

    monkeypatch.setattr(rollup, "_carry", broken)
    with pytest.raises(ConnectionError):
        ledger.sweep(LAST)
    assert not UsageDay.objects.exists()
    ledger.check(at(0), at(LAST))
    monkeypatch.setattr(rollup, "_carry", written)
    ledger.sweep(LAST)
    ledger.check(at(0), at(LAST))
    usage_rebuild()
    assert not UsageMonth.objects.exists()
    assert not JobCount.objects.exists()
    ledger.check(at(0), at(LAST))
