"""Several portals on the same machines, several processes of one, and what a machine lacks."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.engine_harness import ACCESS, SMALL, HostsHarness, all_ended, new_key, spec_of, wait_until
from tests.real.machines import Machines, machines
from yardmaster.engines.base import MachineState
from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.hosts.keys import Keys
from yardmaster.errors import Misconfigured, Unavailable
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

pytestmark = [pytest.mark.ssh, pytest.mark.slow]


@pytest.fixture
def other_portal(three: Machines, tmp_path: Path) -> Iterator[HostsEngine]:
    """It has the same machines, and a key and files of its own."""
    root = tmp_path / "other portal"
    line = Keys(root).public()
    for number in (1, 2, 3):
        with open(three.home(number) / ".ssh" / "authorized_keys", "a") as file:
            file.write(line + "\n")
    engine = HostsEngine(root, three.file, owner="another portal", command=["/bin/sleep", "600"])
    yield engine
    for placement in engine.records.placements():
        engine.clean_up(placement.key)
    engine.close()


def test_what_another_portal_runs_is_not_free_and_not_ours(harness: HostsHarness, other_portal: HostsEngine):
    key = new_key()
    other_portal.submit(spec_of(), key, ACCESS)
    theirs = harness.engine.capacity()
    assert theirs.total.cpu == pytest.approx(2.1)
    assert theirs.free.cpu == pytest.approx(2.1 - 3 * SMALL.cpu)
    assert not any(node.bound for node in theirs.nodes)
    assert sum(len(node.bound) for node in other_portal.capacity().nodes) == 3
    assert harness.engine.observe([key])[key] == ABSENT
    mine = new_key()
    harness.engine.submit(spec_of(), mine, ACCESS)
    harness.let_begin(mine)
    ports = [engine.servers(spec_of(), one) for engine, one in ((harness.engine, mine), (other_portal, key))]
    assert not set(ports[0].addresses[Role.WORKER]) & set(ports[1].addresses[Role.WORKER])
    harness.engine.clean_up(mine)
    assert {task.phase for task in other_portal.observe([key])[key].tasks} == {TaskPhase.RUNNING}


def test_a_job_that_has_no_place_now_is_refused_and_nothing_is_held(harness: HostsHarness, other_portal: HostsEngine):
    other_portal.submit(
        spec_of(roles={Role.WORKER: RoleSpec(5, SMALL), Role.PS: RoleSpec(1, SMALL)}), new_key(), ACCESS
    )
    key = new_key()
    with pytest.raises(Unavailable, match="No machines have the space"):
        harness.engine.submit(spec_of(), key, ACCESS)
    assert harness.engine.observe([key])[key] == ABSENT
    assert harness.engine.records.placement(key) is None


def test_another_process_of_the_portal_sees_and_ends_the_same_run(harness_of: Callable[..., HostsHarness]):
    first, second = harness_of(), harness_of()
    key = new_key()
    first.engine.submit(spec_of(), key, ACCESS)
    first.let_begin(key)
    assert second.engine.observe([key]) == first.engine.observe([key])
    second.engine.stop(key, timedelta(0))
    wait_until(first.engine, key, all_ended)
    second.engine.clean_up(key)
    assert first.engine.observe([key])[key] == ABSENT


def test_a_full_disk_is_named_and_nothing_is_left(tmp_path: Path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "none", small], check=True)
    try:
        with machines(tmp_path / "hosts", 1, f'folder = "{small}/yardmaster"') as made:
            harness = HostsHarness(tmp_path / "harness", made)
            harness.engine.capacity()
            subprocess.run(["dd", "if=/dev/zero", f"of={small}/filling", "bs=4k"], check=False, capture_output=True)
            key = new_key()
            with pytest.raises(Unavailable, match=r"m1: .*full"):
                harness.engine.submit(spec_of(), key, ACCESS)
            assert harness.engine.observe([key])[key] == ABSENT
            (small / "filling").unlink()
            harness.engine.submit(spec_of(), key, ACCESS)
            harness.let_begin(key)
            harness.close()
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_a_machine_without_python_or_with_an_old_one_says_so(three: Machines, harness: HostsHarness, tmp_path: Path):
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\nprintf \'{"problem": "python", "version": "3.9.2"}\\n\'\n')
    old.chmod(0o755)
    entry = three.file.read_text()
    parts = entry.split("[[machine]]\n")
    parts[1] = f'python = "/nowhere/python3"\n{parts[1]}'
    parts[2] = f'python = "{old}"\n{parts[2]}'
    three.file.write_text("[[machine]]\n".join(parts))
    try:
        found = {one.host.name: one for one in harness.engine.survey()}
        assert [found[name].machine.state for name in ("m1", "m2", "m3")] == [
            MachineState.NOT_READY, MachineState.NOT_READY, MachineState.READY,
        ]  # fmt: skip
        assert "/nowhere/python3 could not be started" in found["m1"].error.message
        assert "3.9.2, but at least 3.11 is required" in found["m2"].error.message
    finally:
        three.file.write_text(entry)


def test_a_machine_that_lets_the_portal_not_in_says_what_to_do(
    three: Machines, harness_of: Callable[..., HostsHarness]
):
    keys = three.home(1) / ".ssh" / "authorized_keys"
    kept = keys.read_text()
    keys.write_text("")
    try:
        found = {one.host.name: one for one in harness_of().engine.survey()}
        assert isinstance(found["m1"].error, Misconfigured)
        assert "refuses the portal's login as root" in found["m1"].error.message
        assert "machines --key" in found["m1"].error.remedy
    finally:
        keys.write_text(kept)


def test_a_job_too_large_for_one_machine_is_on_several_and_a_small_one_is_not(harness: HostsHarness):
    small, large = new_key(), new_key()
    one = {Role.WORKER: RoleSpec(2, Resources(cpu=0.1, memory=64 << 20))}
    harness.engine.submit(spec_of(Strategy.MULTI_WORKER_MIRRORED, roles=one), small, ACCESS)
    assert len({task.node for task in harness.engine.observe([small])[small].tasks}) == 1
    harness.engine.submit(spec_of(roles={Role.WORKER: RoleSpec(4, SMALL), Role.PS: RoleSpec(1, SMALL)}), large, ACCESS)
    assert len({task.node for task in harness.engine.observe([large])[large].tasks}) == 3
