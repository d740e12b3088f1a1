"""Where a test run spends its time: printed at its end as the slowest tests, and the seconds of every folder.

A plug-in (`-p tests.timing`, as `make test` has it). Seconds are those of the clock, added up over all workers. What
several tests share (a portal) counts for the first that asks for it. With `KEEP_TIMES` in the environment the time of
the run and its slowest tests are left in `.pytest-times.json`, too, for `make figures`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).resolve().parents[1] / ".pytest-times.json"
KEEP_TIMES = "YARDMASTER_KEEP_TEST_TIMES"
SLOWEST = 20


class Times:
    """A test's duration is that of its setup, call and teardown together."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._durations: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._durations[report.nodeid] = self._durations.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """A run that was interrupted, or collected nothing, leaves the file as it is."""
        if os.environ.get(KEEP_TIMES) and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            found = summary(time.monotonic() - self._began, self._durations)
            FILE.write_text(json.dumps(found, indent=1) + "\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section(f"the slowest {SLOWEST} tests")
        for seconds, test in summary(0, self._durations)["slowest"]:
            terminalreporter.line(f"{seconds:7.1f} s  {test}")
        terminalreporter.section("seconds of each folder")
        for folder, (seconds, tests) in by_folder(self._durations.items()):
            terminalreporter.line(f"{seconds:7.1f} s  {tests:5} tests  {folder}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # with several workers the controller sees every report
        config.pluginmanager.register(Times(), "yardmaster-times")


def summary(seconds: float, durations: Mapping[str, float]) -> dict[str, Any]:
    """What the file has: the run's seconds, the number of tests, and the slowest, the slowest first."""
    order = sorted(durations.items(), key=lambda one: (-one[1], one[0]))
    slowest = [[round(duration, 2), test] for test, duration in order[:SLOWEST]]
    return {"seconds": round(seconds, 1), "tests": len(durations), "slowest": slowest}


def by_folder(seconds: Iterable[tuple[str, float]]) -> list[tuple[str, tuple[float, int]]]:
    """The seconds and the number of tests of each folder, the slowest first."""
    found: dict[str, tuple[float, int]] = {}
    for test, spent in seconds:
        folder = test.partition("::")[0].rpartition("/")[0]
        so_far, tests = found.get(folder, (0.0, 0))
        found[folder] = (so_far + spent, tests + 1)
    return sorted(found.items(), key=lambda item: -item[1][0])
