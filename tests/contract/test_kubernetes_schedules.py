"""Random schedules end in the truth: nothing lost, nothing doubled, everything cleaned up. `make test` has the same
ten in every run, `make test-all` 300 others; `YARDMASTER_TEST_SCHEDULES` asks for more.
"""

from __future__ import annotations

import os

import pytest

from tests.contract.kubernetes_schedule import Schedule

BATCHES = 10
PER_BATCH = int(os.environ.get("YARDMASTER_TEST_SCHEDULES", "300")) // BATCHES
STEPS = 30


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_schedule_ends_in_the_truth(batch: int):
    for seed in range(batch * PER_BATCH, (batch + 1) * PER_BATCH):
        end_in_the_truth(seed)


@pytest.mark.parametrize("seed", range(10_000, 10_010))
def test_some_schedules_end_in_the_truth(seed: int):
    end_in_the_truth(seed)


def end_in_the_truth(seed: int) -> None:
    schedule = Schedule(seed)
    schedule.live_through(STEPS)
    schedule.calm_down()
    truth = schedule.truth()
    for process in schedule.processes:
        assert {key: process.observe(key) for key in truth} == truth, f"seed {seed}"
        del process.wire.requests[:]
        there = {key: seen for key, seen in truth.items() if seen.exists}
        assert {key: process.observe(key) for key in there} == there, f"seed {seed}"
        assert [what for verb, what in process.wire.requests if verb == "list" and what != "events"] == []
    schedule.finish()
    assert schedule.problems() == [], f"seed {seed}"
    assert not any(one.exists for one in schedule.truth().values()), f"seed {seed}"
