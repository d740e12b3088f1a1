"""Disk: what a task wrote beyond its limit is its failure, for good and in words of disk; a full node is none."""

from __future__ import annotations

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import event, pod, states, workload
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import REASONS, Blame, verdict_for
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.remedies import known_change

SPEC = make_spec(shape={Role.WORKER: 1, Role.PS: 1}, retries=2)
WORKLOADS = [workload(Role.WORKER, 2), workload(Role.PS)]
TOO_MUCH = {
    "of the pod": "Pod ephemeral local storage usage exceeds the total limit of containers 20Gi. ",
    "of its container": 'Container task exceeded its local ephemeral storage limit "20Gi". ',
    "of a folder": 'Usage of EmptyDir volume "work" exceeds the limit "20Gi". ',
}


def task(role, *pods, events=()):
    found = states(SPEC, *pods, workloads=WORKLOADS, events=list(events))
    return next(one for one in found if one.role is role)


@pytest.mark.parametrize("said", TOO_MUCH.values(), ids=TOO_MUCH)
@pytest.mark.parametrize("conditions", [[], [{"type": "DisruptionTarget", "status": "True", "reason": "x"}]])
@pytest.mark.parametrize("role", [Role.WORKER, Role.PS])
def test_what_wrote_more_than_it_may_has_failed_for_good_and_in_words_of_disk(said, conditions, role):
    gone = pod(role, 0, "Failed", reason="Evicted", message=said, conditions=conditions)
    found = task(role, gone)
    assert (found.phase, found.reason) == (TaskPhase.FAILED, "ScratchExceeded")
    verdict = verdict_for(found)
    assert said.strip().rstrip(".") in verdict.message
    assert verdict.blame is Blame.LIMIT
    assert "disk" in verdict.message
    assert "memory" not in verdict.message + verdict.remedy
    assert known_change(SPEC, verdict, None, peak_memory=1 << 40) is None


def test_the_pod_that_its_job_makes_of_it_all_the_same_changes_nothing():
    gone = pod(Role.WORKER, 0, "Failed", reason="Evicted", message=TOO_MUCH["of the pod"])
    found = task(Role.WORKER, gone, pod(Role.WORKER, 0, "Running", 1))
    assert (found.phase, found.reason) == (TaskPhase.FAILED, "ScratchExceeded")


def test_a_server_that_is_there_again_after_it_wrote_too_much_has_failed_all_the_same():
    again = pod(Role.PS, 0, "Pending")
    evicted = event(again, "Evicted", TOO_MUCH["of a folder"])
    assert task(Role.PS, again).phase is TaskPhase.PENDING
    found = task(Role.PS, again, events=[evicted])
    assert (found.phase, found.reason) == (TaskPhase.FAILED, "ScratchExceeded")


@pytest.mark.parametrize(
    "said", ["The node was low on resource: ephemeral-storage. Threshold…", "The node had condition: [DiskPressure]. "]
)
def test_a_full_disk_of_the_node_is_said_as_one_and_costs_nothing(said):
    target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    gone = pod(Role.WORKER, 0, "Failed", 2, reason="Evicted", message=said, conditions=[target])
    found = task(Role.WORKER, gone)
    assert (found.phase, found.reason) == (TaskPhase.PENDING, "MachineDiskFull")
    assert "memory" not in REASONS[found.reason].remedy
