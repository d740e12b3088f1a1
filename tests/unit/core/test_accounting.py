"""Amounts, months, prices and budgets: the pure part of accounting."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.accounting.amounts import hours, hours_of, total
from yardmaster.accounting.budgets import change_of_hold, standing, warnings_due
from yardmaster.accounting.calendar import (
    day_of,
    earlier_months,
    month_named,
    month_of,
    next_month,
    step_of,
    steps_between,
)
from yardmaster.accounting.prices import NotPrices, cost, price_list
from yardmaster.usage import Sample, spent

DAYS = st.dates(date(2000, 1, 1), date(2090, 1, 1))


def test_amounts_become_hours_of_cores_gib_and_pieces() -> None:
    amounts = {"cpu": 3600 * 1500, "memory": 3600 << 21, "device/a100": 7200}
    assert hours_of(amounts) == {"cpu": Decimal("1.5"), "memory": 2, "gpus": 0, "device/a100": 2}
    assert hours("cpu", 1) == Decimal("0")
    assert total([amounts, {"cpu": 1}])["cpu"] == amounts["cpu"] + 1


@given(DAYS)
def test_every_day_is_in_one_month_and_one_week(day: date) -> None:
    assert month_of(day) <= day < next_month(day)
    assert month_named(f"{day:%Y-%m}") == month_of(day)
    assert 0 <= (day - step_of(day, "week")).days < 7
    assert steps_between(day, next_month(day), "month") == [month_of(day)]


def test_days_are_those_of_utc() -> None:
    assert day_of(datetime.fromisoformat("2026-12-01T00:30:00+02:00")) == date(2026, 11, 30)
    assert day_of(datetime(2026, 12, 1, tzinfo=UTC)) == date(2026, 12, 1)
    assert earlier_months(date(2026, 1, 31), 3) == [date(2026, 1, 1), date(2025, 12, 1), date(2025, 11, 1)]


@pytest.mark.parametrize("text", ["2026-13", "2026-1", "26-11", "2026-11-01", "0000-01", ""])
def test_what_is_no_month_is_none(text: str) -> None:
    assert month_named(text) is None


PRICES = {
    "currency": "EUR",
    "prices": [
        {"from": "2026-03-01", "cpu": "0.20", "device/a100": "2.5"},
        {"from": "2026-01-01", "cpu": "0.10", "memory": "0.01"},
    ],
}


def test_the_price_that_was_valid_on_the_day_counts() -> None:
    prices = price_list(PRICES)
    assert prices.at(date(2025, 12, 31)) == {}
    assert prices.at(date(2026, 2, 28))["cpu"] == Decimal("0.10")
    assert prices.at(date(2026, 3, 1)) == {"cpu": Decimal("0.20"), "device/a100": Decimal("2.5")}
    assert prices.parts(date(2026, 2, 1), date(2026, 4, 1)) == [
        (date(2026, 2, 1), date(2026, 3, 1)), (date(2026, 3, 1), date(2026, 4, 1)),
    ]  # fmt: skip
    assert cost({"cpu": 3 * 3600 * 1000, "gpus": 5}, prices.at(date(2026, 2, 1))) == Decimal("0.3")


@pytest.mark.parametrize(
    "given",
    [
        {"currency": "EUR"},
        {"currency": "", "prices": []},
        {"currency": "EUR", "prices": [{"cpu": "1"}]},
        {"currency": "EUR", "prices": [{"from": "May", "cpu": "1"}]},
        {"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": 0.1}]},
        {"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": "-1"}]},
        {"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": "NaN"}]},
        {"currency": "EUR", "prices": [{"from": "2026-01-01"}, {"from": "2026-01-01"}]},
    ],
)
def test_what_are_no_prices_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(NotPrices):
        price_list(given)


def test_a_budget_stands_where_its_fullest_bound_does() -> None:
    found = standing({"cpu_hours": Decimal(10), "gpu_hours": None, "money": Decimal(4)}, {"cpu_hours": Decimal("9.99")})
    assert (found.percent, found.is_spent) == (99, False)
    assert [line.name for line in found.lines] == ["cpu_hours", "money"]
    assert standing({"cpu_hours": Decimal(10)}, {"cpu_hours": Decimal(10)}).is_spent
    assert standing({"cpu_hours": Decimal(0)}, {}).is_spent
    assert not standing({"cpu_hours": None}, {"cpu_hours": Decimal(10**9)}).is_spent


def test_each_level_is_warned_of_once() -> None:
    assert warnings_due(85, [50, 80], []) == [50, 80]
    assert warnings_due(85, [50, 80], [50]) == [80]
    assert warnings_due(130, [80], [80]) == [100]
    assert warnings_due(79, [80], []) == []


def test_a_hold_changes_only_where_it_is_not_as_it_should_be() -> None:
    assert [change_of_hold(*one) for one in ((True, False), (False, True), (True, True), (False, False))] == [
        True, False, None, None,
    ]  # fmt: skip


def test_what_was_spent_continues_over_a_restart() -> None:
    samples = [Sample(0, 0, 5), Sample(10, 20, 10), Sample(20, 5, 30), Sample(15, 9, 99)]
    found = spent(samples)
    assert found is not None
    assert (found.seconds, found.cpu_seconds, found.memory_seconds) == (20, 25, 400)
    assert spent(samples[:1]) is None
