"""Thinning a curve."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apps.jobs.state.curves import Point, thin


def curve(values) -> list[Point]:
    return [Point(step, float(step), value) for step, value in enumerate(values)]


def test_a_short_curve_stays_as_it_is():
    points = curve([1.0, None, 3.0])
    assert thin(points, 10) == points


def test_a_spike_stays_a_spike():
    values = [0.5] * 10_000
    values[4321] = 99.0
    values[8765] = -99.0
    thinned = [point.value for point in thin(curve(values), 100)]
    assert 99.0 in thinned
    assert -99.0 in thinned


@given(
    values=st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=300),
    most=st.integers(min_value=4, max_value=50),
)
def test_a_thinned_curve_is_bounded_in_order_and_keeps_its_ends(values, most):
    points = curve(values)
    thinned = thin(points, most)
    assert len(thinned) <= max(most, 4)
    assert thinned[0] == points[0]
    assert thinned[-1] == points[-1]
    assert thinned == sorted(thinned, key=lambda point: point.step)
    assert set(thinned) <= set(points)
