"""How the measurement of steps tells those during uploads from the others, and compares them."""

from __future__ import annotations

import pytest

from tests.bench.step_times import BUSY, Sample, Step, busy_spans, quantile, ratios, within


def steps(begun: float, count: int, taken: float, processor: float = 0.0) -> list[Step]:
    return [
        Step(begun + number * taken, begun + (number + 1) * taken, processor or taken) for number in range(count)
    ]  # fmt: skip


def test_uploads_are_where_the_runner_read_much_and_spans_that_touch_are_one():
    read = (0, 10, BUSY + 10, 2 * BUSY + 10, 2 * BUSY + 20, 3 * BUSY + 20)
    assert busy_spans([Sample(float(at), much, 0.0) for at, much in enumerate(read)]) == [(1.0, 3.0), (4.0, 5.0)]


def test_a_step_counts_that_touches_a_span_even_if_it_is_longer():
    found = within([Step(0, 1, 1), Step(1, 4, 1), Step(4, 5, 1), Step(5, 6, 1)], [(2.0, 3.0), (3.5, 3.6), (4.5, 6.0)])
    assert [step.began for step in found] == [1, 4, 5]


def test_steps_that_are_slowed_down_show_in_the_ratios_and_so_does_what_the_runner_used():
    quiet = steps(0.0, 200, 0.01)
    busy = steps(10.0, 190, 0.02, processor=0.01) + steps(20.0, 10, 0.05, processor=0.03)
    samples = [Sample(10.0, 0, 1.0), Sample(15.0, BUSY, 3.0)]
    found = ratios(quiet, busy, samples, busy_spans(samples))
    assert (found.median, found.p99) == (pytest.approx(2), pytest.approx(5))
    assert (found.processor_median, found.processor_p99) == (pytest.approx(1), pytest.approx(3))
    assert (found.share, found.steps) == (pytest.approx(0.4), 200)


def test_a_percentile_of_too_few_steps_is_refused():
    with pytest.raises(ValueError, match="99 during them: at least 100"):
        ratios(steps(0.0, 200, 0.01), steps(5.0, 99, 0.01), [], [])


@pytest.mark.parametrize(("part", "value"), [(0.0, 0), (0.5, 50), (0.99, 99), (1.0, 99)])
def test_a_quantile_is_one_of_the_values(part: float, value: int):
    assert quantile(iter(range(99, -1, -1)), part) == value
