"""What is said of a running job whose Spark driver waits for executors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from apps.jobs.explanations.executor_waits import executor_wait
from apps.jobs.models import TaskFact

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
SPEC: dict[str, Any] = {"spark": {"cluster": "farm"}}


def _driver(executors: dict[str, Any] | None, phase: str = "RUNNING") -> TaskFact:
    reported = {} if executors is None else {"executors": executors}
    return TaskFact(role="driver", index=0, phase=phase, state="running", reported=reported)


def test_the_cluster_and_what_lacks_are_named() -> None:
    lacking = {"given": 1, "wanted": 4, "since": NOW.timestamp() - 65}
    found = executor_wait(SPEC, [_driver(lacking)], NOW)
    assert found is not None
    assert found.message.startswith("For 1 min 5 s the Spark cluster farm has given 1 of 4 executors: other")
    assert "ask for fewer or smaller executors" in found.remedy
    assert executor_wait(SPEC, [_driver(lacking, "SUCCEEDED")], NOW) is None
    assert executor_wait(SPEC, [_driver(None)], NOW) is None
    assert executor_wait({"spark": None}, [_driver(lacking)], NOW) is None
