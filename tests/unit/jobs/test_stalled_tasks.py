"""A job stands still where all of its tasks that train do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.jobs.explanations.stalled_tasks import stalled_tasks, waits_for
from apps.jobs.models import TaskFact

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def task(name: str, minutes: int | None = None, peer: str = "", **more: object) -> TaskFact:
    role, index = name.split("-")
    since = None if minutes is None else (NOW - timedelta(minutes=minutes)).timestamp()
    reported = {} if since is None else {"stalled": {"since": since, "peer": peer}}
    return TaskFact(
        role=role, index=int(index), **{"phase": "RUNNING", "state": "running", "reported": reported, **more}
    )


def test_all_that_train_have_to_stand_still() -> None:
    assert stalled_tasks([task("worker-0", 5), task("worker-1")], NOW) is None
    found = stalled_tasks([task("worker-0", 5), task("worker-1", 4), task("ps-0")], NOW)
    assert found is not None
    assert "worker-0, worker-1 have made no progress" in found.message
    assert "4 min" in found.message
    assert "where its threads stand" in found.remedy


def test_a_chief_that_stands_still_speaks_for_the_workers_it_leads() -> None:
    assert stalled_tasks([task("chief-0", 5), task("worker-0"), task("ps-0")], NOW) is not None


def test_what_has_ended_or_stages_does_not_count() -> None:
    assert stalled_tasks([task("worker-0", 5, state="staging")], NOW) is None
    assert stalled_tasks([task("worker-0", 5, phase="SUCCEEDED"), task("worker-1")], NOW) is None
    assert stalled_tasks([task("worker-0", 5), task("worker-1", phase="SUCCEEDED")], NOW) is not None
    assert stalled_tasks([], NOW) is None


def test_tasks_that_wait_for_a_server_name_it() -> None:
    peer = "/job:ps/replica:0/task:0"
    tasks = [task("worker-0", 5, peer), task("worker-1", 5, peer)]
    found = stalled_tasks(tasks, NOW)
    assert found is not None
    assert "worker-0, worker-1 wait for ps-0" in found.message
    assert "See the log of ps-0" in found.remedy
    assert waits_for(task("worker-0", 5, "something else")) == "something else"
