"""Whether a registered Spark cluster has given a driver its executors, as the runner reads it."""

from __future__ import annotations

from pathlib import Path

from tests.unit.runner.test_spark_registered import FARM
from yardmaster_runner.spark.granted import AFTER, Granted, GrantWatch, Wait, file_in, logging

ASKS = "Connected to Spark cluster with app ID app-1"
GIVEN = "Granted executor ID app-1/{} on hostPort 10.0.0.6:7078 with 2 core(s), 2.0 GiB RAM"
LOST = "Executor app-1/{} removed: Command exited with code 1"


def given(*ids: int) -> list[str]:
    return [GIVEN.format(one) for one in ids]


def test_executors_that_come_in_time_are_no_wait() -> None:
    one = Granted(2)
    assert one.read([], 100.0) is None, "the driver has not asked yet"
    assert one.read([ASKS, *given(0)], 200.0) is None
    assert one.read(given(1), 200.0 + AFTER - 1) is None
    assert one.read([], 900.0) is None


def test_a_wait_says_since_when_and_how_many_there_are_and_ends_with_the_last_one() -> None:
    one = Granted(2)
    one.read([ASKS, *given(0)], 200.0)
    assert one.read([], 200.0 + AFTER) == Wait(1, 2, 200.0)
    assert one.read(given(1), 300.0) is None
    assert one.read([LOST.format(1)], 400.0) is None
    assert one.read([], 400.0 + AFTER) == Wait(1, 2, 400.0), "lost, and none in its place"
    assert one.read([ASKS, *given(0, 1)], 500.0) is None, "another context"


def test_who_wants_fewer_or_has_begun_with_fewer_does_not_wait() -> None:
    ready = "SchedulerBackend is ready for scheduling beginning after waiting maxRegisteredResourcesWaitingTime: 600000"
    for line in ("Shutting down all executors", "Requesting to kill executor(s) 0", ready):
        one = Granted(2)
        one.read([ASKS, *given(0), line], 200.0)
        assert one.read([], 300.0) is None
    one = Granted(2)
    one.read([ASKS, ready], 200.0)
    assert one.read([], 900.0) == Wait(0, 2, 200.0), "it cannot begin with none"


def test_the_log_and_the_portal_are_told_once_when_executors_lack_and_when_they_are_there(tmp_path: Path) -> None:
    said: list[str] = []
    told: list[Wait | None] = []
    now = [200.0]
    watch = GrantWatch(str(tmp_path), FARM, said.append, told.append, lambda: now[0])
    watch.look()
    path = Path(file_in(str(tmp_path)))
    path.write_text(f"{ASKS}\nGranted exec")
    for now[0] in (200.0, 200.0 + AFTER, 230.0):
        watch.look()
    shown = "the Spark cluster farm (spark://10.0.0.5:7077)"
    assert [line.partition(": other")[0] for line in said] == [
        f"{shown} has given 0 of 3 executors (cores of each: 2, memory: 2048 MiB)"
    ]
    path.write_text("\n".join([ASKS, *given(0, 1, 2), ""]))
    watch.look()
    assert said[1:] == [f"{shown} has given all 3 executors"]
    assert told == [Wait(0, 3, 200.0), None]


def test_what_spark_writes_there_is_still_shown_where_it_is_more_than_a_note() -> None:
    lines = logging("/w").splitlines()
    assert "appender.granted.fileName = /w/spark-executors.log" in lines
    assert "logger.backend.appenderRef.console.level = warn" in lines
