"""Machines that do not answer, lose power, come back, or are another machine: on real ones with a real sshd each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    SMALL,
    HostsHarness,
    all_ended,
    has_phase,
    new_key,
    spec_of,
    task_in,
    wait_until,
)
from tests.real.machines import Machines
from yardmaster.engines.base import MachineState
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase

pytestmark = [pytest.mark.ssh, pytest.mark.slow]
QUICK = 40.0


def machine_of(harness: HostsHarness, key: JobKey, role: Role, index: int) -> int:
    """The number of the machine on which the task is."""
    return int(task_in(harness.engine.observe([key])[key], role, index).node.removeprefix("m"))


def begun(harness: HostsHarness, **changes: object) -> JobKey:
    key = new_key()
    harness.engine.submit(spec_of(**changes), key, ACCESS)
    harness.let_begin(key)
    return key


def is_away(seen: Observation) -> bool:
    return "has not answered since" in seen.message


def is_back(seen: Observation) -> bool:
    return seen.message == "" and all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def test_a_machine_without_its_network_is_told_of_and_its_tasks_run_on(harness: HostsHarness, three: Machines):
    key = begun(harness)
    number = machine_of(harness, key, Role.PS, 0)
    pids = harness.starts(key, Role.PS, 0)
    three.cut(number)
    try:
        seen = wait_until(harness.engine, key, is_away, QUICK)
        assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
        assert f"The machine m{number} has not answered since" in seen.message
        state = next(one for one in harness.engine.machines() if one.name == f"m{number}")
        assert (state.state, state.free.cpu) == (MachineState.NOT_READY, 0)
        assert state.total.cpu == 0.7  # as it was last
    finally:
        three.join(number)
    wait_until(harness.engine, key, is_back, QUICK)
    assert harness.starts(key, Role.PS, 0) == pids


@pytest.mark.long
def test_tasks_of_a_machine_that_was_away_too_long_are_lost(harness_of: Callable[..., HostsHarness], three: Machines):
    harness = harness_of(lost_after=3.0)
    key = begun(harness)
    number = machine_of(harness, key, Role.PS, 0)
    three.cut(number)
    try:
        seen = wait_until(harness.engine, key, has_phase(Role.PS, 0, TaskPhase.FAILED), QUICK)
        lost = task_in(seen, Role.PS, 0)
        assert (lost.reason, lost.exit_code) == ("Lost", None)
        assert f"The machine m{number}, on which it ran, has not answered since" in lost.message
        harness.engine.clean_up(key)
        assert harness.engine.observe([key])[key] == ABSENT
        with pytest.raises(Unavailable):  # what was there before is not gone yet
            harness.engine.submit(spec_of(), key, ACCESS)
    finally:
        three.join(number)
    runs = three.home(number) / ".yardmaster" / "runs" / key.name
    assert runs.exists()
    deadline = time.monotonic() + QUICK
    while runs.exists():  # what it still ran was ended when it was back
        harness.engine.capacity()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)


def started_elsewhere(harness: HostsHarness, key: JobKey, number: int, restarts: int) -> Observation:
    """The run, once every task runs, none of them on this machine, so many of them started again."""

    def holds(seen: Observation) -> bool:
        if seen.to_restart:
            with contextlib.suppress(Unavailable):
                harness.engine.restart(key)
        assert not any(task.phase is TaskPhase.FAILED for task in seen.tasks), seen
        again = sum(task.restarts for task in seen.tasks)
        runs = all(task.phase is TaskPhase.RUNNING and task.node != f"m{number}" for task in seen.tasks)
        return runs and again == restarts

    return wait_until(harness.engine, key, holds, QUICK)


def test_tasks_of_a_lost_machine_start_elsewhere_with_all_that_know_their_addresses(
    harness_of: Callable[..., HostsHarness], three: Machines
):
    harness = harness_of(lost_after=3.0)
    key = begun(harness, retries=1)
    harness.let_end(key, Role.WORKER, 1, 0)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 1, TaskPhase.SUCCEEDED))
    number = machine_of(harness, key, Role.PS, 0)
    before = harness.engine.servers(spec_of(), key)
    three.cut(number)
    try:
        wait_until(harness.engine, key, lambda seen: seen.to_restart, QUICK)
        wait_until(
            harness.engine,
            key,
            lambda seen: _moved(harness, key, seen, number) and _phases(seen) == ["RUNNING", "SUCCEEDED", "RUNNING"],
            QUICK,
        )
        after = harness.engine.servers(spec_of(), key)
        assert before is not None
        assert after is not None
        assert before.addresses[Role.PS] != after.addresses[Role.PS]
        assert not harness.engine.restart(key)  # one loss is one restart
        harness.let_fail(key, Role.WORKER, 0)
        wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED), QUICK)  # it was the only one
    finally:
        three.join(number)
    runs = three.home(number) / ".yardmaster" / "runs" / key.name
    deadline = time.monotonic() + QUICK
    while runs.exists():
        harness.engine.capacity()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert harness.engine.observe([key])[key].exists


def _moved(harness: HostsHarness, key: JobKey, seen: Observation, number: int) -> bool:
    if seen.to_restart:
        harness.engine.restart(key)
    return all(task.node != f"m{number}" for task in seen.tasks if not task.phase.is_ended)


def _phases(seen: Observation) -> list[str]:
    return [task.phase.value for task in seen.tasks]


@pytest.mark.long
def test_of_tasks_that_know_none_of_the_others_only_those_of_the_lost_machine_start_again(
    harness_of: Callable[..., HostsHarness], three: Machines
):
    harness = harness_of(lost_after=3.0)
    roles = {Role.WORKER: RoleSpec(3, SMALL)}
    key = begun(harness, strategy=Strategy.BATCH, roles=roles, retries=5)
    number = machine_of(harness, key, Role.WORKER, 2)
    lost = [task.index for task in harness.engine.observe([key])[key].tasks if task.node == f"m{number}"]
    three.cut(number)
    try:
        seen = started_elsewhere(harness, key, number, len(lost))
        assert [task.index for task in seen.tasks if task.restarts] == lost
    finally:
        three.join(number)


def test_lost_tasks_wait_for_a_machine_where_none_has_the_space(
    harness_of: Callable[..., HostsHarness], three: Machines
):
    harness = harness_of(lost_after=3.0)
    key = begun(harness, roles={Role.WORKER: RoleSpec(5, SMALL), Role.PS: RoleSpec(1, SMALL)}, retries=1)
    number = machine_of(harness, key, Role.PS, 0)
    three.cut(number)
    try:
        wait_until(harness.engine, key, lambda seen: seen.to_restart, QUICK)
        with pytest.raises(Unavailable, match="No machines have the space"):
            harness.engine.restart(key)
        seen = harness.engine.observe([key])[key]
        here = {task.phase for task in seen.tasks if task.node != f"m{number}"}
        there = {task.phase for task in seen.tasks if task.node == f"m{number}"}
        assert (here, there) == ({TaskPhase.RUNNING}, {TaskPhase.PENDING})
    finally:
        three.join(number)
    wait_until(harness.engine, key, is_back, QUICK)  # nothing was ended for nothing
    assert sum(task.restarts for task in harness.engine.observe([key])[key].tasks) == 0


@pytest.mark.parametrize("retries", [0, 2])
def test_a_machine_that_was_started_again_goes_by_the_rules_of_a_lost_task(
    harness: HostsHarness, three: Machines, retries: int
):
    key = begun(harness, retries=retries)
    number = machine_of(harness, key, Role.PS, 0)
    three.crash(number)
    wait_until(harness.engine, key, is_away, QUICK)
    three.boot(number)
    if retries:
        seen = wait_until(
            harness.engine, key, lambda now: task_in(now, Role.PS, 0).restarts == 1 and is_back(now), QUICK
        )
        harness.let_begin(key)
        assert len(harness.starts(key, Role.PS, 0)) == 2
    else:
        seen = wait_until(harness.engine, key, has_phase(Role.PS, 0, TaskPhase.FAILED), QUICK)
        assert task_in(seen, Role.PS, 0).reason == "Lost"
    others = [task for task in seen.tasks if task.node != f"m{number}"]
    assert {task.phase for task in others} == {TaskPhase.RUNNING}


def test_a_loss_of_one_machine_restarts_all_tasks_where_none_can_continue_alone(harness: HostsHarness, three: Machines):
    key = begun(harness, strategy=Strategy.PARAMETER_SERVER, retries=2, roles=_chief_workers_and_servers())
    number = machine_of(harness, key, Role.PS, 0)
    three.crash(number)
    wait_until(harness.engine, key, is_away, QUICK)
    three.boot(number)
    wait_until(
        harness.engine, key, lambda now: is_back(now) and all(task.restarts == 1 for task in now.tasks), QUICK * 2
    )


def _chief_workers_and_servers() -> dict[Role, RoleSpec]:
    return {Role.CHIEF: RoleSpec(1, SMALL), Role.WORKER: RoleSpec(2, SMALL), Role.PS: RoleSpec(1, SMALL)}


def test_a_machine_that_shows_another_key_is_not_spoken_to(harness: HostsHarness, three: Machines):
    entry = three.file.read_text()
    lines = entry.split("host_key = ")
    swapped = "host_key = ".join([lines[0], lines[2].split("\n", 1)[0] + "\n" + lines[1].split("\n", 1)[1], *lines[2:]])
    three.file.write_text(swapped)
    try:
        found = {one.host.name: one for one in harness.engine.survey()}
        assert found["m1"].machine.state is MachineState.NOT_READY
        assert found["m1"].error is not None
        assert found["m1"].error.code == "host_key_changed"
        assert [found[name].node.closed for name in ("m1", "m2")] == ["not ready", ""]
        assert "a different host key" in found["m1"].error.message
        assert "machines --accept m1" in found["m1"].error.remedy
        assert found["m2"].machine.state is MachineState.READY
        key = new_key()
        harness.engine.submit(spec_of(), key, ACCESS)  # the others have the space
        assert "m1" not in {task.node for task in harness.engine.observe([key])[key].tasks}
    finally:
        three.file.write_text(entry)


@pytest.mark.long
def test_stopping_is_not_held_up_by_a_machine_that_is_away(harness: HostsHarness, three: Machines):
    key = begun(harness)
    number = machine_of(harness, key, Role.PS, 0)
    three.cut(number)
    try:
        wait_until(harness.engine, key, is_away, QUICK)
        harness.engine.stop(key, timedelta(0))
        wait_until(
            harness.engine,
            key,
            lambda now: all(task.phase.is_ended for task in now.tasks if task.node != f"m{number}"),
            QUICK,
        )
    finally:
        three.join(number)
    harness.engine.stop(key, timedelta(0))
    wait_until(harness.engine, key, all_ended, QUICK)
