"""Hours of what was held, within a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import NOW
from yardmaster.accounting import Held, hours_used, total_of

GIB = 1 << 30


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def held(key: str, since: float, until: float | None, job: int = 1) -> Held[str]:
    return Held(key, UUID(int=job), at(since), None if until is None else at(until), 2.0, 4 * GIB, 1)


def test_hours_are_summed_by_key_and_jobs_counted_once() -> None:
    found = hours_used([held("a", 0, 1), held("a", 1, 3), held("b", 0, 2, job=2), held("b", 0, 1, job=3)], at(0), at(9))
    assert {key: (one.cpu, one.memory, one.gpus, one.jobs) for key, one in found.items()} == {
        "a": (6.0, 12.0, 3.0, 1),
        "b": (6.0, 12.0, 3.0, 2),
    }
    total = total_of(found.values())
    assert (total.cpu, total.memory, total.gpus, total.jobs) == (12.0, 24.0, 6.0, 3)


@pytest.mark.parametrize(
    ("since", "until", "hours"),
    [(-5, 2, 2), (8, None, 2), (-5, None, 10), (-5, -1, None), (11, None, None), (5, 4, None), (3, 3, None)],
)
def test_only_what_falls_into_the_time_counts(since: float, until: float | None, hours: float | None) -> None:
    found = hours_used([held("a", since, until)], at(0), at(10))
    assert {key: one.cpu / 2 for key, one in found.items()} == ({} if hours is None else {"a": hours})


@given(st.lists(st.tuples(st.floats(-50, 50), st.none() | st.floats(-50, 50)), max_size=8), st.floats(-20, 20))
def test_two_times_that_meet_have_together_what_the_whole_has(
    spans: list[tuple[float, float | None]], cut: float
) -> None:
    rows = [held("a", *span) for span in spans]
    whole, first, second = (
        total_of(hours_used(rows, at(begin), at(end)).values()).cpu for begin, end in [(-20, 20), (-20, cut), (cut, 20)]
    )
    assert whole == pytest.approx(first + second, abs=1e-6)
