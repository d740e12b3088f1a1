"""What this machine has, and the limits that its kernel keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision.control_groups import ControlGroup, can_hold_tasks
from yardmaster.engines.supervision.machine import find_gpus, measure, physical_memory, processors
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import Resources


def test_what_is_set_stands_in_place_of_what_is_found():
    assert measure(3, 5 << 30, ["7", "9"]) == Resources(cpu=3.0, memory=5 << 30, gpus=2)
    found = measure(None, None, None)
    assert (found.cpu, found.memory) == (processors(), physical_memory())
    assert found.cpu > 0
    assert found.memory > 16 << 20


def test_gpus_are_numbered_as_cuda_does_also_with_gaps(tmp_path: Path):
    for name in ("nvidia3", "nvidia5", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert find_gpus(tmp_path) == ["0", "1"]
    assert find_gpus(tmp_path / "nowhere") == []


def test_a_group_is_good_that_hands_on_memory_and_cpu(tmp_path: Path):
    assert not can_hold_tasks(tmp_path)
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu io\n")
    assert not can_hold_tasks(tmp_path)
    (tmp_path / "cgroup.subtree_control").write_text("cpuset cpu io memory pids\n")
    assert can_hold_tasks(tmp_path)
    with pytest.raises(Misconfigured, match="cannot hold tasks"):
        LocalEngine(tmp_path, control_group=str(tmp_path / "nowhere"))


def test_limits_are_written_as_the_kernel_reads_them(tmp_path: Path):
    group = ControlGroup(tmp_path, "run.worker-0")
    for _ in range(2):
        group.make(Resources(cpu=1.5, memory=1 << 30))
    written = {path.name: path.read_text() for path in group.path.iterdir()}
    assert written == {"memory.max": "1073741824", "cpu.max": "150000 100000", "memory.swap.max": "0"}


def test_what_the_kernel_counted_is_read(tmp_path: Path):
    group = ControlGroup(tmp_path, "run.worker-0")
    assert (group.out_of_memory_kills(), group.peak()) == (0, 0)
    group.path.mkdir()
    (group.path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    (group.path / "memory.peak").write_text("123456\n")
    assert (group.out_of_memory_kills(), group.peak()) == (2, 123456)
    group.kill()
    group.remove()


@pytest.mark.parametrize("span", [[0, 10], [30, 20], [1, 70000]])
def test_a_range_of_ports_that_is_none_is_refused(tmp_path: Path, span: list[int]):
    with pytest.raises(Misconfigured, match="port_range"):
        LocalEngine(tmp_path, port_range=span)
