"""Sums of the ledger equal what a slow count says, whatever was summed before and whatever was corrected since."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.accounting.models import UsageDay, UsageState
from apps.accounting.rollup import usage_rebuild, usage_sweep
from apps.accounting.shown import job_hours
from apps.accounting.use import use
from apps.jobs.models import Job, Reservation
from apps.jobs.services import job_delete, job_retry, job_stop
from tests.integration.accounting.history import BEGIN, History, Row, at, rows, steps
from yardmaster.accounting.amounts import Amounts, total
from yardmaster.accounting.calendar import month_of
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

ONE = Row(10, 0.5, 0, 1, "worker", 2000, 1 << 30, 1, 1)
QUICK = {"deadline": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.explicit, Phase.generate]}
END = 340
"""Half hours: a week, and over the end of a month."""


def assert_sums(history: History, begin: int, end: int) -> None:
    now = at(end)
    owner = {0: None, 1: UUID(int=1), 2: UUID(int=2)}
    by_all = use(at(begin), now, ["namespace", "user", "role"])
    assert by_all == history.counted(
        begin, end, lambda row, day: (
            UUID(int=row.namespace), ("red", "blue")[row.namespace], owner[row.owner], f"user {row.owner}", row.role
        ),
    )  # fmt: skip
    assert use(at(begin), now, ["role"], step="day") == history.counted(begin, end, lambda row, day: (row.role, day))
    assert use(at(begin), now, [], step="month") == history.counted(begin, end, lambda row, day: (month_of(day),))
    blue = use(at(begin), now, ["engine"], {"namespace_id": UUID(int=1)})
    assert blue.get(("local",), Counter()) == history.counted(
        begin, end, lambda row, day: row.namespace
    ).get(1, Counter())  # fmt: skip
    everything: Amounts = total(by_all.values())
    for by in (["namespace"], ["user"], ["role"], ["engine"], []):
        assert total(use(at(begin), now, by).values()) == everything
    for step in ("day", "week", "month"):
        assert total(use(at(begin), now, [], step=step).values()) == everything


@settings(max_examples=25, **QUICK)
@given(steps=steps, begin=st.integers(0, END), length=st.integers(1, END))
def test_what_is_summed_and_what_is_live_are_together_what_a_slow_count_says(db, steps, begin, length):
    assert_exact(steps, begin, min(begin + length, END))


@pytest.mark.postgres
@settings(max_examples=12, **QUICK)
@given(steps=steps, begin=st.integers(0, END), length=st.integers(1, END))
def test_the_same_on_postgresql(postgres_db, steps, begin, length):
    assert_exact(steps, begin, min(begin + length, END))


def assert_exact(steps, begin, end):
    with transaction.atomic():
        history = History()
        history.play(steps)
        usage_sweep(at(END))  # what was closed late is found by now, and what is to come is live
        assert_sums(history, begin, max(end, begin + 1))
        transaction.set_rollback(True)


def test_a_row_over_many_days_counts_on_each_and_is_closed_later(db):
    history = History()
    history.add(ONE)
    usage_sweep(at(200))
    assert UsageState.objects.get().upto == date(2026, 11, 2)
    assert UsageDay.objects.filter(resource="cpu").count() == 4
    history.close((0, 250, 0.0))
    assert_sums(history, 0, END)
    usage_sweep(at(END))
    assert_sums(history, 0, END)


def test_summing_again_and_rebuilding_change_nothing(db):
    history = History()
    history.play([("add", ONE), ("close", (0, 150, 0.2)), ("add", ONE), ("sweep", END)])
    before = list(UsageDay.objects.order_by("day", "resource").values_list("day", "resource", "amount"))
    assert usage_sweep(at(END)) == 0
    usage_rebuild(date(2026, 10, 31))
    assert UsageDay.objects.filter(day__gte=date(2026, 10, 31)).count() == 0
    assert_sums(history, 0, END)
    assert usage_sweep(at(END)) > 0
    usage_rebuild()
    assert not UsageDay.objects.exists()
    usage_sweep(at(END))
    assert list(UsageDay.objects.order_by("day", "resource").values_list("day", "resource", "amount")) == before


def test_a_day_is_summed_an_hour_after_its_end_and_no_row_is_needed(db):
    assert usage_sweep(at(END)) == 0
    History().add(ONE)
    assert usage_sweep(at(49)) == 0
    assert usage_sweep(at(50)) == 1


def test_a_row_that_ends_before_it_begins_holds_nothing(db):
    history = History()
    history.play([("add", ONE), ("close", (0, 3, 0.0)), ("sweep", END)])
    assert use(BEGIN, at(END), ["role"]) == {}


def test_a_clock_that_was_set_back_takes_the_sums_back(db):
    history = History()
    history.play([("add", ONE), ("sweep", 200), ("sweep", 100)])
    assert UsageState.objects.get().upto == date(2026, 10, 31)
    assert_sums(history, 0, 100)


class Meter:
    """Counts by itself what is held, as time passes: five seconds, and what is held in them, again and again."""

    def __init__(self, world) -> None:
        self.world = world
        self.held: Counter[str] = Counter()

    def passes(self, seconds: int) -> None:
        for _ in range(seconds // 5):
            for row in Reservation.objects.filter(released_at=None):
                self.held[row.role] += int(row.cpu * 1000) * 5
            self.world.passes(5)

    def until(self, phase: str, job) -> None:
        for _ in range(200):
            if (found := self.world.again(job)).phase == phase and (phase == "RUNNING" or found.cleaned_up_at):
                return
            self.passes(5)
        raise AssertionError(f"still {found.phase} {found.reason}")


def test_a_jobs_use_is_exact_over_a_restart_a_retry_and_its_deletion(world, ada, admin):
    job, meter = world.launch(ada), Meter(world)
    meter.until("RUNNING", job)
    meter.passes(3_600)
    first = world.again(job)
    world.engine.set(first, Role.WORKER, 0, TaskPhase.RUNNING, restarts=1, reason="OutOfMemory")
    meter.passes(600)
    world.engine.set(first, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    meter.until("FAILED", job)
    job_retry(user=ada, job=world.again(job))
    Job.objects.filter(pk=job.pk).update(next_look_at=world.now)
    meter.until("RUNNING", job)
    meter.passes(1_800)
    assert world.again(job).attempt == first.attempt + 1
    job_stop(user=ada, job=world.again(job))
    Job.objects.filter(pk=job.pk).update(next_look_at=world.now)
    meter.until("STOPPED", job)
    assert min(meter.held.values()) > 6_000 * 1000, "more than an hour and a half"
    assert {one.role: one.use.amounts["cpu"] for one in job_hours(world.again(job), world.now).roles} == meter.held
    job_delete(user=ada, job=world.again(job))
    meter.passes(3_600)
    begin = Reservation.objects.order_by("reserved_at").first().reserved_at
    slug, name = ada.personal_namespace.slug, ada.username
    by_all = use(begin, world.now, ["namespace", "user", "role"])
    assert {key[-1]: amounts["cpu"] for key, amounts in by_all.items()} == meter.held
    assert {(key[1], key[3]) for key in by_all} == {(slug, name)}
    usage_sweep(world.now + timedelta(days=2))
    assert {key[0]: amounts["cpu"] for key, amounts in use(begin, world.now, ["role"]).items()} == meter.held


@given(st.lists(rows, max_size=3))
def test_the_slow_count_counts_something(found):
    assert all(row.cpu > 0 for row in found)


def test_the_command_sums_all_days_again(db, capsys):
    history = History()
    history.play([("add", ONE), ("close", (0, 150, 0.2)), ("sweep", END)])
    days = UsageDay.objects.values("day").distinct().count()
    call_command("rebuild_usage", "--since", "2026-10-31")
    assert "days summed" in capsys.readouterr().out
    assert UsageDay.objects.values("day").distinct().count() == days
    with pytest.raises(CommandError):
        call_command("rebuild_usage", "--since", "May")
