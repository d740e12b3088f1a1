"""What fits what was used, and what is worth offering."""

from __future__ import annotations

import pytest

from apps.jobs.models import TaskFact
from apps.jobs.state.used_sizes import Used, used_by_role
from yardmaster.job.spec import Resources
from yardmaster.usage import cores_for, memory_for

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("peak", "asked"),
    [(1, 256 * MIB), (600 * MIB, 768 * MIB), (int(1.2 * GIB), int(1.5 * GIB)), (4 * GIB, 5 * GIB)],
)
def test_memory_has_a_quarter_to_spare_in_whole_steps(peak, asked):
    assert memory_for(peak) == asked


@pytest.mark.parametrize(("busy", "asked"), [(0.0, 0.25), (0.25, 0.25), (0.26, 0.5), (1.9, 2.0), (7.3, 7.5)])
def test_cores_come_in_whole_quarters(busy, asked):
    assert cores_for(busy) == asked


def test_the_largest_use_of_a_role_counts_and_what_was_not_measured_does_not():
    samples = [[0.0, 0.0, GIB], [10.0, 15.0, GIB], [20.0, 20.0, GIB]]
    used = used_by_role(
        [
            TaskFact(role="worker", index=0, peak_memory=GIB, usage_samples=samples),
            TaskFact(role="worker", index=1, usage={"peak_memory": 2 * GIB}),
            TaskFact(role="ps", index=0),
        ]
    )
    assert used == {"worker": Used(2 * GIB, 1.5)}


@pytest.mark.parametrize(
    ("asked", "used", "offered"),
    [
        (Resources(1, 5 * GIB), Used(int(1.2 * GIB), 0.9), Resources(1, int(1.5 * GIB))),
        (Resources(4, 2 * GIB), Used(int(1.5 * GIB), 0.9), Resources(1, int(2 * GIB))),
        (Resources(1, 2 * GIB, 1), Used(int(0.7 * GIB), None), Resources(1, GIB, 1)),
        (Resources(1, 2 * GIB), Used(int(1.5 * GIB), 0.9), None),
        (Resources(0.25, GIB), Used(3 * GIB, 8.0), None),
    ],
    ids=["memory", "cores", "a GPU stays", "nearly all is used", "more was used than asked for"],
)
def test_an_offer_is_much_less_and_never_more(asked, used, offered):
    assert used.smaller(asked) == offered
