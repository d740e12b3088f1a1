"""What schedulers, autoscalers, drains, registries and other people do to pods, in the words of the vocabulary."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import (
    BEGUN,
    KEY,
    container,
    event,
    owner,
    pod,
    states,
    terminated,
    workload,
)
from yardmaster.engines.kubernetes.observe.facts import Seen, events_wanted, observation_of
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.phases import Observation, TaskPhase

ONE = make_spec(Strategy.SINGLE, retries=0)
AGAIN = make_spec(Strategy.SINGLE, retries=2)
TWO = make_spec(shape={Role.WORKER: 2, Role.PS: 1}, retries=2)
FULL = "0/2 nodes are available: 2 Insufficient cpu."
CORDONED = "0/1 nodes are available: 1 node(s) were unschedulable."
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
LIVES = container(state={"running": {"startedAt": BEGUN}})
GONE_AT, LATER = "2026-11-20T12:05:30Z", "2026-11-20T12:06:00Z"
Raw = dict[str, Any]


def refused_pod(words: str = FULL, reason: str = "Unschedulable", index: int = 0, uid: str = "", **status: Any) -> Raw:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": reason, "message": words,
                 "lastTransitionTime": BEGUN}  # fmt: skip
    made = pod(Role.WORKER, index, "Pending", conditions=[scheduled], **status)
    made["spec"].pop("nodeName")
    made["metadata"]["uid"] = uid
    return made


def seen(*pods: Raw, spec=ONE, events: list[Raw] = (), workloads: list[Raw] | None = None) -> Observation:
    made = [workload(role, spec.retries) for role in spec.roles] if workloads is None else workloads
    found = observation_of(Seen(owner(spec), made, pods, events))
    assert all(task.reason == "" or task.reason in REASONS for task in found.tasks)
    return found


# --- schedulers and autoscalers --------------------------------------------------------------------------------------


def test_what_has_no_node_is_refused_since_the_scheduler_said_so():
    found = seen(refused_pod())
    assert found.refused is not None
    assert (found.refused.since, found.refused.message, found.refused.is_growing) == (AT, FULL, False)
    assert [task.reason for task in found.tasks] == ["Unschedulable"]


def test_a_cordoned_node_is_said_in_plain_words_after_the_schedulers():
    (task,) = seen(refused_pod(CORDONED)).tasks
    assert task.message.startswith(CORDONED)
    assert "cordoned or being drained" in task.message
    taint = "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }."
    assert "not ready takes no tasks" in seen(refused_pod(taint)).tasks[0].message


@pytest.mark.parametrize("reason", ["TriggeredScaleUp", "Nominated"])
def test_an_autoscaler_that_adds_a_node_is_said(reason: str):
    waits = refused_pod()
    found = seen(waits, events=[event(waits, reason, "pod triggered scale-up: [{workers 1->2 (max: 4)}]")])
    assert found.refused is not None
    assert found.refused.is_growing
    assert found.tasks[0].reason == "ScalingUp"
    assert "1->2" in found.tasks[0].message


def test_an_autoscaler_that_adds_none_is_said_and_the_last_word_counts():
    waits = refused_pod()
    events = [
        event(waits, "TriggeredScaleUp", "scale-up", at=BEGUN),
        event(waits, "NotTriggerScaleUp", "1 max node group size reached", at=LATER),
    ]
    found = seen(waits, events=events)
    assert found.refused is not None
    assert not found.refused.is_growing
    assert (found.tasks[0].reason, "max node group size" in found.tasks[0].message) == ("Unschedulable", True)


def test_an_event_about_a_pod_that_had_the_name_before_says_nothing():
    waits = refused_pod(uid="new")
    old = event(waits, "TriggeredScaleUp", "scale-up", uid="old")
    assert seen(waits, events=[old]).tasks[0].reason == "Unschedulable"
    assert seen(waits, events=[{**old, "involvedObject": {**old["involvedObject"], "uid": "new"}}]).refused.is_growing


def test_room_that_others_are_told_to_make_is_waited_for():
    found = seen(refused_pod(nominatedNodeName="node-7"))
    assert found.refused is not None
    assert found.refused.is_growing
    assert "node-7" in found.tasks[0].message


def test_what_is_held_back_on_purpose_is_not_refused():
    assert seen(refused_pod("gated", reason="SchedulingGated")).refused is None


def test_a_task_that_is_made_anew_waits_for_its_place_and_the_run_is_not_refused():
    again = refused_pod()
    again["metadata"]["annotations"]["batch.kubernetes.io/job-index-ignored-failure-count"] = "1"
    found = seen(again, spec=AGAIN)
    assert (found.tasks[0].reason, found.tasks[0].restarts, found.refused) == ("Unschedulable", 1, None)


def test_the_events_that_are_asked_for_are_those_that_may_say_more():
    assert events_wanted(seen(refused_pod())) == [
        "reason=TriggeredScaleUp", "reason=NotTriggerScaleUp", "reason=Nominated"
    ]  # fmt: skip
    assert events_wanted(seen()) == ["type=Warning"]
    assert events_wanted(seen(pod(Role.WORKER, 0, "Running", containerStatuses=LIVES))) == []


# --- machines --------------------------------------------------------------------------------------------------------


def conditions(ready: str, containers: str) -> list[Raw]:
    return [{"type": "Ready", "status": ready}, {"type": "ContainersReady", "status": containers}]


@pytest.mark.parametrize(
    ("ready", "containers", "reason"),
    [("True", "True", ""), ("False", "True", "NodeNotReady"), ("False", "False", "")],
)
def test_a_task_on_a_node_that_is_not_ready_runs_and_says_so(ready: str, containers: str, reason: str):
    found = pod(Role.WORKER, 0, "Running", containerStatuses=LIVES, conditions=conditions(ready, containers))
    (task,) = seen(found).tasks
    assert (task.phase, task.reason, "node-1" in task.message) == (TaskPhase.RUNNING, reason, bool(reason))


@pytest.mark.parametrize(
    ("why", "reason"), [("EvictionByEvictionAPI", "NodeDrained"), ("DeletionByTaintManager", "Evicted")]
)
def test_a_task_that_is_told_to_leave_its_node_says_so_while_it_ends(why: str, reason: str):
    target = {"type": "DisruptionTarget", "status": "True", "reason": why}
    leaving = pod(Role.WORKER, 0, "Running", containerStatuses=LIVES, conditions=[target])
    leaving["metadata"]["deletionTimestamp"] = GONE_AT
    (task,) = seen(leaving).tasks
    assert (task.phase, task.reason) == (TaskPhase.RUNNING, reason)
    assert "node-1" in task.message


# --- images ----------------------------------------------------------------------------------------------------------

DENIED = 'failed to pull and unpack image "r/x:1": pull access denied'
SAID = "The registry does not let the cluster pull the image r/x:1. The node says: pull access denied"


def image(word: str, message: str) -> Raw:
    return pod(
        Role.WORKER, 0, "Pending", containerStatuses=container(state={"waiting": {"reason": word, "message": message}})
    )


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("ErrImagePull", DENIED),
        ("ImagePullBackOff", f'Back-off pulling image "r/x:1": ErrImagePull: {DENIED}'),
    ],
)
def test_the_registrys_words_are_the_same_while_it_is_tried_and_while_it_rests(word: str, message: str):
    (task,) = seen(image(word, message)).tasks
    assert (task.phase, task.reason, task.message) == (TaskPhase.PENDING, "ImageAccessDenied", SAID)


def test_a_kubelet_that_says_only_that_it_waits_has_said_the_words_in_an_event():
    waits = image("ImagePullBackOff", 'Back-off pulling image "r/x:1"')
    assert events_wanted(seen(waits)) == ["type=Warning"]
    failed = event(waits, "Failed", f'Failed to pull image "r/x:1": {DENIED}')
    assert seen(waits, events=[event(waits, "Failed", "Error: ErrImagePull"), failed]).tasks[0].message == SAID


def test_a_name_that_is_none_has_failed_at_once():
    (task,) = seen(image("InvalidImageName", "couldn't parse image name"), spec=AGAIN).tasks
    assert (task.phase, task.reason, task.message) == (TaskPhase.FAILED, "ImageInvalid", "couldn't parse image name")
    assert REASONS["ImageInvalid"].permanent


# --- what others removed ---------------------------------------------------------------------------------------------


def removed(role: Role, phase: str, ended: str | None, **status: Any) -> Raw:
    """Deleted at 12:05:00 with 30 seconds to end in."""
    statuses = terminated(143, finishedAt=ended) if ended else LIVES
    found = pod(role, 0, phase, containerStatuses=statuses, **status)
    found["metadata"] |= {"deletionTimestamp": GONE_AT, "deletionGracePeriodSeconds": 30}
    return found


@pytest.mark.parametrize(("phase", "ended"), [("Running", None), ("Failed", "2026-11-20T12:05:20Z")])
def test_what_ends_because_its_workload_was_deleted_was_stopped_outside(phase: str, ended: str | None):
    spec = make_spec(shape={Role.WORKER: 1, Role.PS: 1})
    found = states(spec, removed(Role.PS, phase, ended), workloads=[workload(Role.WORKER)])
    assert (found[1].phase, found[1].reason) == (TaskPhase.FAILED, "StoppedOutside")


def test_what_had_failed_before_it_was_deleted_failed_by_itself():
    found = seen(removed(Role.WORKER, "Failed", "2026-11-20T12:04:00Z"))
    assert (found.tasks[0].phase, found.tasks[0].reason) == (TaskPhase.FAILED, "Killed")


def test_a_pod_that_was_deleted_by_hand_was_stopped_outside_too():
    found = seen(removed(Role.WORKER, "Failed", "2026-11-20T12:05:20Z"))
    assert (found.tasks[0].phase, found.tasks[0].reason) == (TaskPhase.FAILED, "StoppedOutside")
    again = seen(removed(Role.WORKER, "Failed", "2026-11-20T12:05:20Z"), spec=AGAIN)
    assert (again.tasks[0].phase, again.tasks[0].reason) == (TaskPhase.PENDING, "StoppedOutside")


def test_a_run_whose_token_was_deleted_says_what_is_missing_and_not_how_its_pods_ended():
    pods = [removed(Role.WORKER, "Failed", "2026-11-20T12:05:20Z"), removed(Role.PS, "Running", None)]
    found = seen(*pods, spec=TWO, workloads=[])
    assert not found.exists
    assert f"{KEY.name}-worker is not on the cluster" in found.message
    assert {task.phase for task in found.tasks} == {TaskPhase.PENDING}


def test_a_namespace_without_the_account_of_its_tasks_is_said():
    message = 'Error creating: pods "x" is forbidden: error looking up service account n/tasks: "tasks" not found'
    found = seen(events=[event(workload(Role.WORKER), "FailedCreate", message)])
    assert found.tasks[0].reason == "NamespaceIncomplete"
