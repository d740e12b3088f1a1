"""A Jupyter whose files are on one machine waits for that machine: without quota, and in no one's way."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.jobs.models import Job
from apps.jobs.state import ledger
from tests.integration.workbench.conftest import jupyter_of
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.placement import Node

GIB = 1 << 30
LARGE = Resources(64, 256 * GIB)


@pytest.fixture
def machines(world, ada):
    """Says what the two machines are, the first of which has Ada's files."""

    def said(first: Node, second: Node, *notebooks: str, homes: bool = True) -> None:
        world.engine.set_nodes(first, second)
        mine = {(ada.personal_namespace.pk, ada.pk): first.name} if homes else {}
        notes = frozenset(notebooks) if notebooks else None
        world.engine._capacity = replace(world.engine._capacity, homes=mine, notebooks=notes)

    return said


def free(name: str) -> Node:
    return Node(name, LARGE, LARGE)


def closed(name: str, why: str) -> Node:
    return Node(name, LARGE, NOTHING, closed=why)


def test_it_waits_without_quota_for_a_drained_machine_and_a_later_job_starts(world, ada, machines):
    machines(closed("gpu-1", "drained"), free("gpu-2"))
    session = jupyter_of(ada)
    Job.objects.filter(pk=session.job_id).update(queued_at=world.now - timedelta(days=1))
    other = world.launch(ada)
    world.settle()
    mine = Job.objects.get(pk=session.job_id)
    assert (mine.phase, mine.reason, mine.returns) == ("QUEUED", "WaitingForCapacity", 0)
    assert "the machine gpu-1, which has its files" in mine.message
    assert "gpu-1 (drained)" in mine.message
    assert ledger.held_roles(mine) == frozenset()
    assert world.again(other).phase != "QUEUED"
    machines(free("gpu-1"), free("gpu-2"))
    world.now += timedelta(minutes=1)
    world.settle()
    assert Job.objects.get(pk=session.job_id).phase in ("STARTING", "RUNNING")


def test_one_without_files_waits_for_a_machine_that_has_jupyterlab(world, ada, machines):
    machines(free("gpu-1"), closed("gpu-2", "away"), "gpu-2", homes=False)
    session = jupyter_of(ada)
    world.settle()
    mine = Job.objects.get(pk=session.job_id)
    assert mine.phase == "QUEUED"
    assert "It runs only on the machine gpu-2, which has JupyterLab" in mine.message
    machines(free("gpu-1"), closed("gpu-2", "away"), "gpu-2")
    world.now += timedelta(minutes=1)
    world.settle()
    assert "No machine has both its files, which are on gpu-1, and JupyterLab" in Job.objects.get(pk=mine.pk).message


def test_one_whose_machine_is_off_the_list_never_starts_and_says_so(world, ada, machines):
    machines(free("gpu-1"), free("gpu-2"))
    world.engine._capacity = replace(world.engine._capacity, homes={(ada.personal_namespace.pk, ada.pk): "gpu-9"})
    session = jupyter_of(ada)
    world.settle()
    mine = Job.objects.get(pk=session.job_id)
    assert (mine.phase, mine.reason) == ("QUEUED", "NoMatchingFlavor")
    assert "gpu-9, which has its files. That machine is not in the list any more" in mine.message
