"""Hours that are few, and lines of one point: both can be seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from apps.api.display import hours
from apps.api.plots import MARK, WIDTH, lines

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
END = BEGIN + timedelta(days=10)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, ""),
        (Decimal(0), "0.0"),
        (Decimal("0.00001"), "< 0.0001"),
        (Decimal("0.00417"), "0.0042"),
        (0.15, "0.15"),
        (Decimal("0.99"), "0.99"),
        (Decimal("1234.56"), "1,234.6"),
    ],
)
def test_few_hours_have_two_digits_and_many_have_one_place(value, words):
    assert hours(value) == words


@pytest.mark.parametrize("days", [0, 5, 10])
def test_a_single_point_is_drawn_within_the_picture(days):
    (line,) = lines({"median": [(BEGIN + timedelta(days=days), 3.0)]}, BEGIN, END).lines
    (left, _), (right, _) = (tuple(map(float, one.split(","))) for one in line.paths[0].split())
    assert right - left == MARK
    assert left >= 0
    assert right <= WIDTH
