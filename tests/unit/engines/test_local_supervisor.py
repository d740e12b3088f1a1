"""How often the supervisor looks at its tasks' memory."""

from __future__ import annotations

import time

import pytest

from yardmaster.engines.supervision import supervisor
from yardmaster.engines.supervision.supervisor import Supervisor


@pytest.fixture
def idle() -> Supervisor:
    """Without tasks, and not begun."""
    made = Supervisor.__new__(Supervisor)
    made.tasks, made._grace, made._watch_at = {}, 1.0, 0.0
    return made


def test_a_look_that_waits_for_others_is_followed_by_the_next_as_soon_as_ever(idle, monkeypatch):
    monkeypatch.setattr(supervisor, "table", lambda **_: time.sleep(0.2) or {})
    idle._watch(100.0)
    assert idle._watch_at == pytest.approx(101.0, abs=0.9)


def test_a_look_that_costs_much_of_a_processor_is_followed_later(idle, monkeypatch):
    def dear(**_):
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return {}

    monkeypatch.setattr(supervisor, "table", dear)
    idle._watch(100.0)
    assert idle._watch_at >= 105.0
