"""The file by which a task's runner is asked to report at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from yardmaster_runner import reporter
from yardmaster_runner.nudges import Nudges
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.reporter import Facts, Reporter
from yardmaster_runner.task_api import Wishes


def test_a_change_ends_a_wait_once(tmp_path: Path):
    file = tmp_path / "nudge"
    nudges = Nudges(str(file))
    never = threading.Event()
    file.touch()
    begun = time.monotonic()
    nudges.wait(never, 60)
    assert time.monotonic() - begun < 10
    begun = time.monotonic()
    nudges.wait(never, 0.5)
    assert time.monotonic() - begun >= 0.5
    Nudges("").wait(never, 0.01)


def test_a_nudged_runner_reports_before_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reporter, "AT_LEAST_EVERY", 600.0)
    monkeypatch.setattr(reporter, "AT_MOST_EVERY", 300.0)
    file, reports = tmp_path / "nudge", threading.Semaphore(0)

    class Api:
        def report(self, facts: Any) -> Wishes:
            reports.release()
            return Wishes(False)

    one = Reporter(Facts(0), Api(), lambda: None, lambda wishes: None, str(file))  # type: ignore[arg-type]
    one.start()
    assert reports.acquire(timeout=20)
    file.touch()
    assert reports.acquire(timeout=20), "within the longest pause"
    one.finish(Patience(0.0, Haste()))
    one.join(20)
    assert not one.is_alive()
