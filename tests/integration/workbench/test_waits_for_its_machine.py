"""A Jupyter whose files are on one machine waits for that machine: without quota, and in no one's way."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from apps.jobs.checking import NeverFits
from apps.jobs.models import Job
from apps.jobs.state import ledger
from apps.workbench import services, spark
from tests.integration.workbench.conftest import jupyter_of
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.placement import Node

GIB = 1 << 30
LARGE = Resources(64, 256 * GIB)


@pytest.fixture
def machines(world, ada):
    """Says what the two machines are, the first of which has Ada's files."""

    def said(first: Node, second: Node, *notebooks: str, homes: bool = True, spark: str = "") -> None:
        world.engine.set_nodes(first, second)
        mine = {(ada.personal_namespace.pk, ada.pk): first.name} if homes else {}
        notes = frozenset(notebooks) if notebooks else None
        with_spark = frozenset({spark}) if spark else None
        world.engine._capacity = replace(world.engine._capacity, homes=mine, notebooks=notes, spark=with_spark)

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


def test_with_spark_executors_it_is_refused_where_its_machine_has_no_spark(world, ada, machines, monkeypatch):
    monkeypatch.setattr(spark, "why_no_spark", lambda engine: "")
    machines(free("gpu-1"), free("gpu-2"), spark="gpu-2")
    start = partial(services.jupyter_start, user=ada, namespace=ada.personal_namespace, size="large")
    with pytest.raises(NeverFits, match="No machine has both its files, which are on gpu-1, and Spark"):
        start(spark_executors=1)
    machines(free("gpu-1"), free("gpu-2"), spark="gpu-1")
    assert start(spark_executors=1)[0].job.phase == "QUEUED"


def test_a_spark_job_waits_for_machines_that_have_spark_and_others_start_elsewhere(world, ada, machines):
    machines(free("gpu-1"), closed("gpu-2", "drained"), homes=False, spark="gpu-2")
    roles = {"driver": {"cpu": 0.1, "memory": "1Gi"}, "executor": {"replicas": 2, "cpu": 0.1, "memory": "1Gi"}}
    mine, other = world.launch(ada, strategy="spark", roles=roles, requirements=[]), world.launch(ada)
    world.settle()
    mine = world.again(mine)
    assert (mine.phase, mine.reason) == ("QUEUED", "WaitingForCapacity")
    assert "It runs only on the machine gpu-2, which has Spark." in mine.message
    assert "gpu-2 (drained)" in mine.message
    assert world.again(other).phase != "QUEUED"
    large = {**roles, "executor": {"replicas": 9, "cpu": 10, "memory": "1Gi"}}
    never = world.launch(ada, strategy="spark", roles=large, requirements=[])
    assert (never.phase, never.reason) == ("QUEUED", "NoMatchingFlavor")
    assert "which has Spark. Even with nothing else running, only 7 of its 10 tasks fit there" in never.message
    machines(free("gpu-1"), free("gpu-2"), homes=False, spark="gpu-2")
    world.now += timedelta(minutes=1)
    world.settle()
    assert world.again(mine).phase in ("STARTING", "RUNNING")
