"""What a script can do with the files of its machine's user, and what its shell says of its own: on real machines."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.engine_harness import ACCESS, HostsHarness, new_key, spec_of, wait_until
from tests.real.machines import Machines
from yardmaster.engines.base import MachineState
from yardmaster.engines.supervision.facts import key_to_json
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

pytestmark = [pytest.mark.ssh, pytest.mark.slow]
ALONE = {Role.WORKER: RoleSpec(1, Resources(cpu=0.2, memory=64 << 20)), Role.PS: RoleSpec(1, Resources(cpu=0.1))}


def begun(harness: HostsHarness) -> JobKey:
    key = new_key()
    harness.engine.submit(spec_of(roles=ALONE), key, ACCESS)
    harness.let_begin(key)
    return key


def folder_of(harness: HostsHarness, three: Machines, key: JobKey) -> Path:
    """The run's folder on its machine: both tasks are on one."""
    (node,) = {task.node for task in harness.engine.observe([key])[key].tasks}
    return three.home(int(node[1:])) / ".yardmaster" / "runs" / key.name


def plant_depth(file: Path) -> None:
    file.write_text("[" * 200_000)


def plant_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def plant_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def plant_link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


def plant_size(file: Path) -> None:
    os.truncate(file, 1 << 30)


def plant_lies(file: Path) -> None:
    file.write_text(file.read_text().replace('"restarts": 0', '"restarts": {}').replace('"spent": 0', '"spent": 1e999'))


@pytest.mark.parametrize("plant", [plant_depth, plant_folder, plant_pipe, plant_link, plant_size, plant_lies])
def test_files_that_a_script_planted_hide_no_other_run_and_are_removed(
    harness: HostsHarness, three: Machines, plant: Callable[[Path], None]
):
    innocent, hostile = begun(harness), begun(harness)
    folder = folder_of(harness, three, hostile)
    plant(folder / "tasks" / "worker-0" / "state.json")
    begin = time.monotonic()
    seen = harness.engine.observe([innocent, hostile])
    assert {task.phase for task in seen[innocent].tasks} == {TaskPhase.RUNNING}
    assert seen[innocent].message == ""
    assert all(one.state is MachineState.READY for one in harness.engine.machines())
    harness.engine.stop(hostile, timedelta(0))
    harness.engine.clean_up(hostile)
    assert harness.engine.observe([hostile])[hostile] == ABSENT
    assert not folder.exists()
    assert time.monotonic() - begin < 60
    assert harness.engine.records.placement(hostile) is None


def test_a_lock_that_a_script_holds_costs_its_own_run_a_second(harness: HostsHarness, three: Machines):
    innocent, hostile = begun(harness), begun(harness)
    with open(folder_of(harness, three, hostile) / "wanted", "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(Unavailable):
            harness.engine.stop(hostile, timedelta(0))
        harness.engine.stop(innocent, timedelta(0))
        wait_until(harness.engine, innocent, lambda seen: all(task.phase.is_ended for task in seen.tasks))
        harness.engine.clean_up(hostile)
    assert harness.engine.observe([hostile])[hostile] == ABSENT


def test_a_part_that_was_removed_is_not_made_by_a_request_that_comes_late(harness: HostsHarness, three: Machines):
    key = begun(harness)
    placement = harness.engine.records.placement(key)
    assert placement is not None
    ((name, share),) = placement.shares.items()
    host = harness.engine.inventory.hosts()[name]
    late = harness.engine._submitter._part(placement, name, host)
    harness.engine.clean_up(key)
    with pytest.raises(Unavailable, match="removed before it was made"):
        harness.engine.links.call(host, "submit", **late)
    assert not (three.home(int(name[1:])) / ".yardmaster" / "runs" / key.name).exists()
    # Nor does a removal that comes late touch what was made since.
    harness.engine.submit(spec_of(roles=ALONE), key, ACCESS)
    harness.engine.links.call(host, "clean_up", key=key_to_json(key), part=share.part)
    assert {task.phase for task in harness.engine.observe([key])[key].tasks} <= {TaskPhase.PENDING, TaskPhase.RUNNING}


def test_a_shell_that_greets_is_named(harness_of: Callable[..., HostsHarness], three: Machines):
    greeting = three.home(1) / ".bashrc"
    greeting.write_text("echo Welcome to this machine\n")
    try:
        found = {one.host.name: one for one in harness_of().engine.survey()}
        assert [found[name].machine.state for name in ("m1", "m2")] == [MachineState.NOT_READY, MachineState.READY]
        assert found["m1"].error is not None
        assert "Welcome to this machine" in found["m1"].error.message
        assert "print nothing" in found["m1"].error.remedy
    finally:
        greeting.unlink()
