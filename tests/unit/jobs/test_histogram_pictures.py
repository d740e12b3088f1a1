"""Histograms as ridges: where the points lie, and how many there are."""

from __future__ import annotations

from apps.jobs.pages.histograms import HEIGHT, MOST_RIDGES, WIDTH, picture_of
from yardmaster.formats.summaries import HistogramStep, Series


def series(*steps: HistogramStep) -> Series[HistogramStep]:
    return Series("train", "weights", steps)


def step(number: int, left: float = 0.0, right: float = 1.0, counts: tuple[float, ...] = (1.0, 2.0)) -> HistogramStep:
    return HistogramStep(number, 0.0, left, right, counts)


def points(text: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (one.split(",") for one in text.split())]


def test_all_steps_share_one_axis_and_each_is_as_high_as_its_fullest_part():
    picture = picture_of(series(step(1), step(5, 0.0, 2.0, (7.0, 0.0))))
    assert (picture.left, picture.right, picture.steps) == ("0", "2", "steps 1 to 5")
    first, last = (points(one.points) for one in picture.ridges)
    assert (first[0][0], first[-1][0], last[-1][0]) == (0, WIDTH / 2, WIDTH)
    assert first[0][1] < last[0][1] < HEIGHT
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in [*first, *last])
    assert picture.ridges[-1].depth == 4


def test_many_steps_are_thinned_to_the_first_the_last_and_some_between():
    picture = picture_of(series(*(step(number) for number in range(100))))
    assert (len(picture.ridges), picture.ridges[0].step, picture.ridges[-1].step) == (MOST_RIDGES, 0, 99)


def test_one_step_is_one_ridge():
    picture = picture_of(series(step(3)))
    assert (len(picture.ridges), picture.steps) == (1, "step 3")
