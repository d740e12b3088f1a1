"""Nudges: told soon, told once, and never in the way of whoever gives them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

import pytest

from apps.api.nudging import Nudger

PATIENCE = 20.0
MOST_A_SECOND = 20


class Listener:
    """Hears what a nudger sends; stumbles over each error that it was given first."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.rounds: list[dict[str, int]] = []

    async def send(self, latest: dict[str, int]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.rounds.append(latest)

    def heard(self) -> dict[str, int]:
        return {thing: news for latest in self.rounds for thing, news in latest.items()}


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "never came"
        time.sleep(0.01)


def test_what_moves_often_in_a_moment_is_told_a_few_times_and_the_last_news_always():
    listener = Listener()
    nudger = Nudger("things", listener.send)
    begun = time.monotonic()
    for number in range(1000):
        nudger.add("a", number)
        time.sleep(0.0003)  # so that there is time for more rounds than there may be
    nudger.add("b", 1)
    wait_for(lambda: listener.heard() == {"a": 999, "b": 1})
    rounds = len(listener.rounds)
    assert rounds <= (time.monotonic() - begun) * MOST_A_SECOND + 2


def test_a_message_server_that_is_away_is_complained_about_once_and_tried_again(caplog):
    listener = Listener(OSError("away"), TimeoutError("slow"))
    nudger = Nudger("things", listener.send)
    for number in range(3):
        left = len(listener.errors)
        nudger.add("a", number)
        wait_for(lambda left=left: len(listener.errors) < left or bool(listener.rounds))
    wait_for(lambda: listener.heard() == {"a": 2})
    assert [one.levelno for one in caplog.records if "things" in one.getMessage()] == [logging.WARNING]


def test_what_a_message_server_that_stands_still_did_not_take_is_sent_again_where_that_is_wanted():
    listener = Listener(TimeoutError(), TimeoutError())
    Nudger("things", listener.send, again=True).add("a", 1)
    wait_for(lambda: listener.heard() == {"a": 1})


def test_of_what_is_sent_again_the_newest_is_told():
    begun, newer, listener = threading.Event(), threading.Event(), Listener()

    async def send(latest: dict[str, int]) -> None:
        if not begun.is_set():
            begun.set()
            newer.wait(PATIENCE)
            raise TimeoutError
        await listener.send(latest)

    nudger = Nudger("things", send, again=True)
    nudger.add("a", 1)
    wait_for(begun.is_set)
    nudger.add("a", 2)
    newer.set()
    wait_for(lambda: listener.rounds == [{"a": 2}])


@pytest.mark.parametrize(("again", "error"), [(True, OSError("away")), (False, TimeoutError())])
def test_what_a_server_that_is_away_did_not_take_is_forgotten_and_else_unless_it_is_wanted(again, error):
    listener = Listener(error)
    nudger = Nudger("things", listener.send, again=again)
    nudger.add("a", 1)
    wait_for(lambda: not listener.errors)
    nudger.add("b", 1)
    wait_for(lambda: listener.rounds == [{"b": 1}])


def test_a_bug_in_sending_is_logged_with_its_traceback_and_the_next_is_told(caplog):
    listener = Listener(ZeroDivisionError())
    nudger = Nudger("things", listener.send)
    nudger.add("a", 1)
    wait_for(lambda: not listener.errors)
    nudger.add("a", 2)
    wait_for(lambda: listener.heard() == {"a": 2})
    assert any(one.exc_info for one in caplog.records)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # what the portal does is what is tested
def test_a_forked_process_tells_with_a_thread_of_its_own(tmp_path):
    listener = Listener()
    nudger = Nudger("things", listener.send)
    nudger.add("before", 1)
    wait_for(lambda: bool(listener.rounds))
    told = tmp_path / "told"
    child = os.fork()
    if child == 0:
        try:
            nudger.add("after", 2)
            wait_for(lambda: listener.heard().get("after") == 2)
            told.write_text(f"{threading.active_count()}")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert told.read_text() == "2"
