"""How passes over streamed shards end with the script: no call of TensorFlow's may be running while Python ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from yardmaster_runner.data import passes
from yardmaster_runner.data.inputs import DataUnavailable
from yardmaster_runner.data.passes import _Calls


def test_the_end_waits_for_a_call_and_lets_it_fail() -> None:
    calls = _Calls()
    seen: list[str] = []
    has_begun = threading.Event()

    def call() -> None:
        with calls:
            has_begun.set()
            while not seen:
                try:
                    calls.check()
                except DataUnavailable as error:
                    seen.append(str(error))
                time.sleep(0.001)

    thread = threading.Thread(target=call)
    thread.start()
    assert has_begun.wait(20)
    calls.end()
    assert seen == ["the script is ending"]
    thread.join()
    with pytest.raises(DataUnavailable, match="the script is ending"):
        calls.check()


class Reading:
    """The time, in which another call comes each time that it is slept through, until none is left. They take longer
    together than the quiet after which the end comes."""

    def __init__(self, calls: _Calls) -> None:
        self.now = self.last_call = 1000.0
        self.left = 20
        self._calls = calls

    def monotonic(self) -> float:
        return self.now

    def sleep(self, _: float) -> None:
        self.now += 0.1
        if self.left:
            thread = threading.Thread(target=self._call)
            thread.start()
            thread.join()

    def _call(self) -> None:
        with self._calls:
            self.left -= 1
            self.last_call = self.now


def test_the_end_waits_until_no_more_calls_come(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _Calls()
    reading = Reading(calls)
    monkeypatch.setattr(passes, "time", reading)
    calls.end()
    assert reading.left == 0
    assert passes.QUIET < reading.now - reading.last_call < 2 * passes.QUIET


def test_the_end_waits_only_where_a_call_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = _Calls()
    reading = Reading(calls)
    reading.left = 0
    monkeypatch.setattr(passes, "time", reading)
    calls.end(more_may_come=False)
    assert reading.now == 1000.0
    with calls:
        pass
    calls.end(more_may_come=False)
    assert passes.QUIET < reading.now - 1000.0 < 2 * passes.QUIET


def test_a_call_that_never_returns_does_not_hold_the_end_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LONGEST_END", 0.05)
    calls = _Calls()
    with calls:
        calls.end()


HANGS = """
import atexit, time
from yardmaster_runner.data import passes

class ReadToItsEnd:
    is_going = False

class NeverGone:
    def __del__(self, sleep=time.sleep):
        sleep(600)

passes.QUIET, passes.HANGS_AFTER = 0.0, 0.5
read, never_gone = ReadToItsEnd(), NeverGone()
passes._ALL.add(read)
atexit.register(passes._end)
raise ValueError("the data is damaged")
"""


@pytest.mark.timeout(120)
def test_a_script_that_has_failed_ends_although_python_cannot() -> None:
    """Also where all shards were read: TensorFlow reads on after an error, and asks whether there is another."""
    source = str(Path(passes.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", HANGS], env={"PYTHONPATH": source}, capture_output=True, timeout=100)
    assert done.returncode == 1
    assert done.stderr.endswith(b"ValueError: the data is damaged\n")
