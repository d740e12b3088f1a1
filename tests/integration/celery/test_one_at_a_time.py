"""What launches jobs for tenants takes one thread of a worker: the others are left to what all of them wait for."""

from __future__ import annotations

import threading

import pytest

from celery_worker import periodic


@pytest.mark.parametrize(("task", "work"), [("look_at_sweeps", "sweeps_sweep"), ("sweep_schedules", "schedules_sweep")])
def test_a_second_thread_has_other_things_to_do(monkeypatch, task, work):
    begun, may_end = threading.Event(), threading.Event()
    calls = []

    def busy(now):
        calls.append(now)
        begun.set()
        assert may_end.wait(20)

    monkeypatch.setattr(periodic, work, busy)
    first = threading.Thread(target=getattr(periodic, task))
    first.start()
    assert begun.wait(20)
    getattr(periodic, task)()
    assert len(calls) == 1
    may_end.set()
    first.join(20)
    getattr(periodic, task)()
    assert len(calls) == 2
