"""Which running tasks have not been heard from for too long, in words."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.jobs.explanations.stale_tasks import STALE_AFTER, stale_tasks
from apps.jobs.models import TaskFact

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fact(index: int, ago: float | None, phase: str = "RUNNING", role: str = "worker") -> TaskFact:
    told = None if ago is None else NOW - timedelta(seconds=ago)
    return TaskFact(role=role, index=index, phase=phase, reported_at=told)


@pytest.mark.parametrize(
    "facts",
    [
        [],
        [fact(0, STALE_AFTER.total_seconds() - 1)],
        [fact(0, None)],
        [fact(0, 500, "SUCCEEDED"), fact(1, 500, "FAILED"), fact(2, 500, "RELEASED"), fact(3, 500, "PENDING")],
    ],
    ids=["no task", "just heard of", "not begun to report", "not running"],
)
def test_nothing_is_said_of_who_was_heard_of_or_need_not_be(facts):
    assert stale_tasks(facts, NOW) == ""


def test_one_is_named_with_how_long():
    facts = [fact(0, 1), fact(1, 185), fact(0, 400, "SUCCEEDED", "chief")]
    assert stale_tasks(facts, NOW) == "worker-1 has sent no heartbeat for 3 min 5 s."


def test_many_are_counted_and_the_first_named():
    facts = [fact(index, 60 + index) for index in range(7)] + [fact(0, 2, role="ps")]
    words = stale_tasks(facts, NOW)
    assert words.startswith("7 of 8 running tasks have sent no heartbeat for up to 1 min 6 s: ")
    assert words.endswith("worker-0, worker-1, worker-2, worker-3, worker-4 and 2 more.")
