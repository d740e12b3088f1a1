"""Runs on an API server that the scheduler has no node for, that the machines trouble, or that others remove."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness, new_key, spec_of, task_in, wait_for, wait_until
from tests.fakes.kubernetes_store import moment
from yardmaster.engines.base import Keeps
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import Move, Remembered, TakeBack, Timing, plan

FULL = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.fixture(params=[False, True], ids=["asked", "watched"])
def harness(request) -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(watch=request.param)
    yield made
    made.close()


@pytest.fixture
def key() -> JobKey:
    return new_key()


def change_pods(harness: KubernetesHarness, key: JobKey, role: Role, **status: object) -> None:
    with harness.api.store.lock:
        for pod in harness.api.store.find("pods", labels=f"{names.RUN}={key.name},{names.ROLE}={role.value}"):
            place = ("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
            harness.api.store.write(place, {**pod, "status": {**pod["status"], **status}})


def refuse(harness: KubernetesHarness, key: JobKey, role: Role = Role.WORKER) -> None:
    wait_until(harness.engine, key, lambda seen: seen.exists)
    wait_for(lambda: len(harness.api.store.find("pods", labels=f"{names.RUN}={key.name}")) == 3)
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": FULL}
    change_pods(harness, key, role, conditions=[{**scheduled, "lastTransitionTime": moment()}])


def is_refused(seen: Observation) -> bool:
    return seen.refused is not None


def test_a_run_that_the_scheduler_refuses_is_taken_off_whole_and_may_come_again(
    harness: KubernetesHarness, key: JobKey
):
    harness.engine.submit(spec_of(), key, ACCESS)
    refuse(harness, key)
    seen = wait_until(harness.engine, key, is_refused)
    now = datetime.now(UTC) + timedelta(seconds=90)
    before = now - timedelta(seconds=95)
    step = plan(Remembered(spec_of(), Phase.STARTING, Wanted.RUN, before, before, submitted_at=before), seen, now)
    assert isinstance(step, TakeBack)
    assert FULL in step.why.message
    harness.engine.clean_up(key)
    wait_until(harness.engine, key, lambda seen: not seen.exists)
    wait_for(lambda: not any(key.name in name for _, _, name in list(harness.api.store.objects)))
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)


def test_an_autoscalers_event_is_found_and_shown(harness: KubernetesHarness, key: JobKey):
    harness.engine.submit(spec_of(), key, ACCESS)
    refuse(harness, key)
    (first, *_) = harness.api.store.find("pods", labels=f"{names.RUN}={key.name},{names.ROLE}=worker")
    about = {name: first["metadata"][name] for name in ("name", "namespace", "uid")}
    place = ("events", about["namespace"], "grown")
    harness.api.store.write(place, {"kind": "Event", "metadata": {"name": "grown", "namespace": about["namespace"]},
                                    "reason": "TriggeredScaleUp", "type": "Normal", "message": "1->2",
                                    "involvedObject": about, "lastTimestamp": moment()})  # fmt: skip
    seen = wait_until(harness.engine, key, lambda seen: is_refused(seen) and seen.refused.is_growing)
    assert {task.reason for task in seen.of([Role.WORKER])} == {"ScalingUp", "Unschedulable"}


def test_a_node_that_is_not_ready_is_said_and_heard_of(harness: KubernetesHarness, key: JobKey):
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    lost = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    changes = harness.engine.changes()
    change_pods(harness, key, Role.WORKER, conditions=lost)
    assert next(changes) == key
    seen = wait_until(harness.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).reason == "NodeNotReady")
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING
    assert task_in(seen, Role.PS, 0).reason == ""


@pytest.mark.parametrize("what", ["token", "owner", "servers", "workers"])
def test_whatever_others_delete_of_a_running_job_was_stopped_outside(
    harness: KubernetesHarness, key: JobKey, what: str
):
    """The pods are told to end, and their scripts end badly of it: that is no error of the script's."""
    spec = spec_of()
    harness.engine.submit(spec, key, ACCESS)
    harness.let_begin(key)
    namespace = names.namespace_name(key.namespace_id, harness.engine.options)
    place = {
        "token": ("secrets", namespace, names.token_name(key)),
        "owner": ("configmaps", namespace, key.name),
        "servers": ("statefulsets", namespace, names.workload_name(key, Role.PS)),
        "workers": ("jobs", namespace, names.workload_name(key, Role.WORKER)),
    }[what]
    harness.api.store.delete(place)
    found = []
    wait_for(lambda: found.append(_verdict(harness, key, spec)) or found[-1] is not None)
    assert found[-1].reason == "StoppedOutside"


def _verdict(harness: KubernetesHarness, key: JobKey, spec):
    """What the reconciler would decide now."""
    seen, now = harness.engine.observe([key])[key], datetime.now(UTC)
    assert isinstance(harness.engine, Keeps)
    if not seen.exists and not seen.message:
        seen = Observation(False, message=harness.engine.missing(key))
    step = plan(Remembered(spec, Phase.RUNNING, Wanted.RUN, now, now, now), seen, now, Timing())
    return step.verdict if isinstance(step, Move) else None
