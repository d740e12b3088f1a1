"""Following engines: bursts are combined, and a follower outlives what its engine comes up with."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

from apps.jobs.engines.following import QUIET, Coalescer, Follower, ReplayBuffer
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey, new_id

A, B = uuid.UUID(int=1), uuid.UUID(int=2)


def test_the_first_change_wakes_at_once():
    coalescer = Coalescer()
    assert coalescer.change(A, 10.0)
    assert coalescer.change(B, 10.0)


def test_changes_that_follow_shortly_after_make_one_more_wake_up_together():
    coalescer = Coalescer()
    assert coalescer.change(A, 10.0)
    assert not any(coalescer.change(A, 10.0 + n / 1000) for n in range(1, 100))
    assert coalescer.take_due(10.0 + QUIET / 2) == []
    assert coalescer.take_due(10.0 + QUIET) == [A]
    assert coalescer.take_due(10.0 + 3 * QUIET) == []


def test_the_last_change_of_a_burst_is_never_lost():
    coalescer = Coalescer()
    coalescer.change(A, 10.0)
    coalescer.take_due(10.0 + QUIET)
    assert coalescer.change(A, 10.0 + QUIET + 0.001), "it had been quiet"
    assert not coalescer.change(A, 10.0 + QUIET + 0.002)
    assert coalescer.take_due(10.0 + 2 * QUIET + 0.01) == [A]


class EngineThatBreaks:
    """Its stream yields once, then fails."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.key = JobKey(new_id(), new_id(), 1)

    def changes(self) -> Iterator[JobKey]:
        yield self.key
        if self.error is not None:
            raise self.error


def test_a_follower_goes_on_after_an_engine_that_is_away(caplog):
    seen: list[uuid.UUID] = []
    engine = EngineThatBreaks(Unavailable("The engine does not answer."))
    follower = Follower("broken", engine, seen.append)
    with caplog.at_level(logging.WARNING):
        follower.follow_once()
        follower.follow_once()
    assert seen == [engine.key.job_id] * 2
    assert "does not answer" in caplog.text


def test_a_bug_in_an_engine_is_logged_with_its_traceback(caplog):
    follower = Follower("buggy", EngineThatBreaks(ZeroDivisionError()), lambda job_id: None)
    with caplog.at_level(logging.ERROR):
        follower.follow_once()
    assert "ZeroDivisionError" in caplog.text


def test_what_was_heard_while_another_led_is_kept_for_as_long_as_it_may_be_dead():
    replay = ReplayBuffer(20.0)
    replay.note(A, 10.0)
    replay.note(B, 25.0)
    replay.note(A, 26.0)
    assert replay.take(44.0) == [B, A]
    replay.note(A, 50.0)
    assert replay.take(71.0) == []
