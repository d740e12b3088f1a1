"""Counters in tables of a fixed size: never too low, never pushed out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.allowances import MOST, Allowance, Table, Taking, cells_of, seconds_until_more, stretch_of

TEN = Allowance("ten", 10, 60)
SECRET = b"a secret of this test"


def taken(table: Table, who: str, times: int, now: float = 0.0, allowance: Allowance = TEN) -> int:
    """How many of so many tries were let through."""
    return sum(table.take([Taking(allowance, who)], now).over is None for _ in range(times))


def test_no_more_than_the_amount_is_let_through():
    assert taken(Table(SECRET), "ada", 50) == 10


def test_a_flood_of_others_pushes_nobody_out():
    table = Table(SECRET)
    taken(table, "ada", 10)
    for number in range(50_000):
        table.take([Taking(TEN, f"other {number}")], 0.0)
    assert taken(table, "ada", 10) == 0


def test_a_flood_takes_no_more_memory():
    table = Table(SECRET)
    for number in range(1_000):
        table.take([Taking(TEN, f"other {number}")], number)
    assert len(table._pages) == 1


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 3)), max_size=60))
def test_a_count_is_never_too_low(uses):
    table, true = Table(SECRET), Counter()
    for who, cost in uses:
        outcome = table.take([Taking(TEN, who, cost)], 30.0)
        assert outcome.used[0] >= true[who]
        true[who] += 0 if outcome.over else cost
        assert true[who] <= 10


def test_what_was_used_counts_less_and_less_after_its_time():
    table = Table(SECRET)
    assert taken(table, "ada", 10, 59.9) == 10
    assert taken(table, "ada", 10, 60.1) == 0  # no second amount at the turn of a minute
    assert taken(table, "ada", 10, 90.0) == 5
    assert taken(table, "ada", 20, 300.0) == 10


def test_of_several_allowances_all_are_taken_or_none():
    table = Table(SECRET)
    one, other = Taking(TEN, "ada"), Taking(Allowance("two", 2, 60), "ada")
    overs = [table.take([one, other], 0.0).over for _ in range(5)]
    assert overs == [None, None, other, other, other]
    assert table.take([Taking(TEN, "ada", 0)], 0.0).used == (2,)


def test_what_is_given_back_can_be_taken_again_and_never_more():
    table = Table(SECRET)
    taken(table, "ada", 10)
    table.take([Taking(TEN, "ada", -3)], 0.0)
    assert taken(table, "ada", 10) == 3
    table.take([Taking(TEN, "ada", -1000)], 0.0)
    assert taken(table, "ada", 20) == 10


def test_a_counter_stays_at_its_most():
    many = Allowance("many", 10 * MOST, 60)
    table = Table(SECRET)
    for _ in range(3):
        table.take([Taking(many, "ada", MOST)], 0.0)
    assert table.take([Taking(many, "ada", 0)], 0.0).used == (MOST,)


def test_where_one_is_counted_depends_on_the_secret():
    assert cells_of(Taking(TEN, "ada"), SECRET) != cells_of(Taking(TEN, "ada"), b"another")


@pytest.mark.parametrize(
    ("now", "number", "share", "wait"), [(0, 0, 1.0, 60), (45, 0, 0.25, 15), (119.5, 1, 1 / 120, 1)]
)
def test_stretches_of_time(now, number, share, wait):
    assert stretch_of(TEN, now) == (number, pytest.approx(share))
    assert seconds_until_more(TEN, now) == wait
