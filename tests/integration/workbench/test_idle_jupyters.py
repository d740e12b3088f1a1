"""When a Jupyter is stopped because no one uses it: only when it has said so itself, or says nothing for long."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.hosting.dialing import Reply, TooSlow
from apps.workbench import activity
from apps.workbench.worker import sessions_sweep
from tests.integration.workbench.conftest import changed, ready, unused
from yardmaster.engines.base import Address


class Answers:
    """What a Jupyter answers, by subject; None: nothing, in time."""

    kernels: Any = []
    terminals: Any = []

    def dial(self, address: Address, method: str, path: str, **facts: Any) -> Reply:
        found = getattr(self, path.rsplit("/", 1)[1])
        if found is None:
            raise TooSlow
        return found if isinstance(found, Reply) else Reply(200, json.dumps(found).encode())


@pytest.fixture
def answers(monkeypatch) -> Answers:
    found = Answers()
    monkeypatch.setattr(activity, "address_of", lambda job: Address("127.0.0.1", 1))
    monkeypatch.setattr(activity, "dial", found.dial)
    return found


@pytest.fixture
def idle(jupyter):
    """Its limit is over."""
    return unused(ready(jupyter), left=timedelta(minutes=-1))


def kernel(state: str) -> dict[str, Any]:
    return {"id": "k", "last_activity": "2027-01-04T10:00:00Z", "execution_state": state}


def test_one_that_says_that_it_is_unused_is_stopped(idle, answers):
    assert sessions_sweep(timezone.now()) == 1
    assert changed(idle).job.wanted == "STOP"


def test_one_that_computes_is_used_now(idle, answers):
    answers.kernels = [kernel("busy")]
    now = timezone.now()
    assert sessions_sweep(now) == 0
    assert changed(idle).last_used_at == now


@pytest.mark.parametrize("none", [None, Reply(500, b""), Reply(200, b"{"), Reply(302, b"")])
@pytest.mark.parametrize("subject", ["kernels", "terminals"])
def test_one_that_does_not_answer_is_asked_again_and_stopped_after_half_an_hour(idle, answers, subject, none):
    setattr(answers, subject, none)
    now = timezone.now()
    assert [sessions_sweep(now + timedelta(minutes=one)) for one in (0, 1, 29, 30)] == [0, 0, 0, 1]


def test_an_answer_begins_another_time_without_one(idle, answers):
    answers.kernels, now = None, timezone.now()
    assert sessions_sweep(now) == 0
    answers.kernels = [kernel("busy")]
    assert sessions_sweep(now + timedelta(minutes=20)) == 0
    answers.kernels = None
    later = now + timedelta(minutes=20) + idle.idle_limit
    assert [sessions_sweep(later + timedelta(minutes=one)) for one in (0, 29, 30)] == [0, 0, 1]


def test_one_that_was_lost_has_the_same_time(idle, answers):
    changed(idle, ready_at=None)
    answers.kernels, now = None, timezone.now() + timedelta(days=1)
    assert [sessions_sweep(now + timedelta(minutes=one)) for one in (0, 29, 30)] == [0, 0, 1]


def test_a_jupyter_without_terminals_answers(idle, answers):
    answers.terminals = Reply(404, b"")
    assert sessions_sweep(timezone.now()) == 1


def test_what_it_was_used_for_is_seen_long_before_its_limit_is_over(jupyter, answers):
    answers.kernels = [kernel("busy")]
    fresh, now = unused(ready(jupyter), left=timedelta(minutes=40)), timezone.now()
    assert sessions_sweep(now) == 0
    assert changed(fresh).last_used_at == now
    assert sessions_sweep(now + timedelta(seconds=10)) == 0
    assert changed(fresh).last_used_at == now  # it is not asked all the time
