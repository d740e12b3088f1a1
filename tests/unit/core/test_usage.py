"""A task's use over time: bounded, with every peak of memory and no cpu second lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yardmaster.usage import MOST_SAMPLES, SHORTEST_STEP, Sample, cpu_use, is_due, thin, with_sample

RISING = st.lists(st.tuples(st.floats(5, 60), st.floats(0, 100), st.integers(0, 1 << 40)), min_size=1, max_size=700)


def samples_of(steps: list[tuple[float, float, int]]) -> list[Sample]:
    time = cpu = 0.0
    found = []
    for seconds, spent, memory in steps:
        time, cpu = time + seconds, cpu + spent
        found.append(Sample(time, cpu, memory))
    return found


@given(RISING)
def test_thinning_keeps_the_ends_the_peak_and_the_bound(steps):
    before = samples_of(steps)
    after = thin(before)
    assert len(after) <= MOST_SAMPLES
    assert (after[0].time, after[-1]) == (before[0].time, before[-1])
    assert max(one.memory for one in after) == max(one.memory for one in before)
    assert [one.time for one in after] == sorted(one.time for one in after)


@given(RISING)
def test_thinning_loses_no_cpu_second(steps):
    before = samples_of(steps)
    after = thin(before)
    spent = sum(use.cores * (use.time - one.time) for use, one in zip(cpu_use(after), after, strict=False))
    assert abs(spent - (before[-1].cpu_seconds - before[0].cpu_seconds)) < 1e-3


def test_a_month_of_reports_stays_bounded_and_reaches_to_now():
    kept: list[Sample] = []
    for at in range(0, 30 * 86_400, 5):
        if is_due(kept, at):
            kept = with_sample(kept, Sample(at, at * 1.5, 1 << 30))
    assert len(kept) <= MOST_SAMPLES
    assert kept[0].time == 0
    assert 30 * 86_400 - kept[-1].time < 30 * 86_400 / MOST_SAMPLES * 2
    assert all(abs(use.cores - 1.5) < 1e-9 for use in cpu_use(kept))


def test_samples_that_come_too_soon_or_from_another_clock_are_not_due():
    first = [Sample(100.0, 1.0, 1)]
    assert not is_due(first, 100.0 + SHORTEST_STEP - 0.1)
    assert not is_due(first, 50.0)
    assert is_due(first, 100.0 + SHORTEST_STEP)


def test_a_restart_is_no_negative_use():
    samples = [Sample(0, 50.0, 1), Sample(10, 2.0, 1), Sample(20, 12.0, 1)]
    assert [(use.time, use.cores) for use in cpu_use(samples)] == [(20, 1.0)]
