"""Values of curves that are no finite numbers: they stay seen, and are said to be what they are."""

from __future__ import annotations

from apps.jobs.state.curves import Curve, Point, thin


def test_the_first_value_that_is_not_finite_stays_in_a_thinned_curve():
    points = [Point(step, 0.0, 0.5) for step in range(10_000)]
    points[4_321] = Point(4_321, 0.0, None, "nan")
    assert points[4_321] in thin(points, 100)


def test_a_curve_says_what_its_points_without_a_value_are():
    curve = Curve(".", "loss", [Point(1, 0.0, 0.5), Point(2, 1.0, None, "inf"), Point(3, 2.0, None)])
    assert curve.triples == [(1, 0.0, 0.5), (2, 1.0, None), (3, 2.0, None)]
    assert curve.not_finite == {"2": "inf", "3": "unknown"}
