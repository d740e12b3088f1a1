"""What a page costs the portal that asks every second about a session whose program lets it wait."""

from __future__ import annotations

import time

import pytest
from django.utils import timezone

from apps.hosting import state
from apps.hosting.state import State, situation_of
from apps.jobs.models import Job
from tests.integration.workbench.conftest import changed


@pytest.fixture
def asked(monkeypatch, jupyter) -> list[float]:
    """The moments at which its port was asked; the task runs, and does not answer in time."""
    Job.objects.filter(pk=jupyter.job_id).update(phase="RUNNING", started_at=timezone.now())
    moments: list[float] = []

    def answers(*given):
        moments.append(time.monotonic())
        time.sleep(0.1)
        return False

    monkeypatch.setattr(state, "SLOW", 0.05)
    monkeypatch.setattr(state, "_answers", answers)
    monkeypatch.setattr(state, "_rests", {})
    return moments


def looks(session) -> State:
    return situation_of(changed(session), timezone.now()).state


def test_a_program_that_lets_the_portal_wait_is_not_asked_by_each_page(asked, jupyter, monkeypatch):
    monkeypatch.setattr(state, "REST", state.REST * 250)
    assert [looks(jupyter) for _ in range(5)] == [State.LOADING] * 5
    assert len(asked) == 1
    state._rests.clear()
    monkeypatch.setattr(state, "REST", 1.0)
    while len(asked) < 3:
        looks(jupyter)
        time.sleep(0.01)
    assert asked[2] - asked[1] >= 0.2, "as long as it took, after it"


def test_one_looks_at_a_time(asked, jupyter, monkeypatch):
    answers = state._answers
    monkeypatch.setattr(state, "_answers", lambda *given: (looks(jupyter), answers(*given))[1])
    looks(jupyter)
    assert len(asked) == 1


def test_a_program_that_says_at_once_that_it_is_not_ready_is_asked_each_time(asked, jupyter, monkeypatch):
    monkeypatch.setattr(state, "SLOW", 600.0)
    for _ in range(3):
        looks(jupyter)
    assert len(asked) == 3
