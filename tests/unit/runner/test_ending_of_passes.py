"""How passes over streamed shards end with the script: no call of TensorFlow's may be running while Python ends."""

from __future__ import annotations

import threading
import time

import pytest

from yardmaster_runner.data import passes
from yardmaster_runner.data.inputs import DataUnavailable
from yardmaster_runner.data.passes import _Calls


def test_the_end_waits_for_a_call_and_lets_it_fail() -> None:
    calls = _Calls()
    seen: list[str] = []

    def call() -> None:
        with calls:
            while not seen:
                try:
                    calls.check()
                except DataUnavailable as error:
                    seen.append(str(error))
                time.sleep(0.001)

    thread = threading.Thread(target=call)
    thread.start()
    calls.end()
    assert seen == ["the script is ending"]
    thread.join()
    with pytest.raises(DataUnavailable, match="the script is ending"):
        calls.check()


def test_the_end_waits_until_no_more_calls_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "QUIET", 0.2)
    calls, ends = _Calls(), []

    def read_on() -> None:
        for _ in range(20):
            with calls:
                pass
            time.sleep(0.005)
        ends.append(time.monotonic())

    thread = threading.Thread(target=read_on)
    thread.start()
    calls.end()
    assert ends
    thread.join()


def test_a_call_that_never_returns_does_not_hold_the_end_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LONGEST_END", 0.05)
    calls = _Calls()
    with calls:
        calls.end()
