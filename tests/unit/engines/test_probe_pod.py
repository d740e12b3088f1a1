"""The pod of a probe: a restricted one that ends by itself, and what is read of it."""

from __future__ import annotations

import pytest

from tests.fakes.kubernetes_store import violations
from yardmaster.engines.kubernetes.probes import pod
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.ids import new_id

OPTIONS = TaskOptions(image="tasks:1", node_selector={"pool": "cpu"}, image_pull_secrets=("registry",))


def with_state(phase: str = "Pending", **state: object) -> dict:
    return {
        "metadata": {},
        "status": {"phase": phase, "containerStatuses": [{"name": names.CONTAINER, "state": state}]},
    }


class TestItsObjects:
    def test_it_is_as_restricted_as_a_task_and_goes_where_they_go(self):
        made = pod.job("reach", pod.new_probe_id(), ["-c", "pass"], OPTIONS)["spec"]["template"]["spec"]
        assert violations(made) == []
        assert (made["nodeSelector"], made["imagePullSecrets"]) == ({"pool": "cpu"}, [{"name": "registry"}])
        assert made["automountServiceAccountToken"] is False
        (container,) = made["containers"]
        assert container["image"] == "tasks:1"
        assert container["resources"]["limits"]["ephemeral-storage"]

    def test_it_ends_by_itself_whatever_becomes_of_who_asked(self):
        spec = pod.job("reach", pod.new_probe_id(), [], OPTIONS)["spec"]
        assert spec["backoffLimit"] == 0
        assert spec["activeDeadlineSeconds"] <= 600
        assert spec["ttlSecondsAfterFinished"] <= 60

    def test_no_watch_of_the_portal_takes_it_for_a_run(self):
        assert names.MANAGED_BY not in str(pod.job("reach", pod.new_probe_id(), [], OPTIONS))

    def test_its_ids_are_no_namespace_s_and_differ(self):
        ids = {str(pod.new_probe_id()) for _ in range(100)}
        assert len(ids) == 100
        assert all(pod.is_probe_id(one) for one in ids)
        assert not any(pod.is_probe_id(str(new_id())) for _ in range(100))


class TestWhatIsRead:
    @pytest.mark.parametrize("found", [[], [with_state(waiting={"reason": "ContainerCreating"})]])
    def test_nothing_yet(self, found):
        assert pod.answer_of(found) is None
        assert pod.address_in(found) is None

    def test_its_last_words(self):
        told = pod.answer_of([with_state("Succeeded", terminated={"exitCode": 3, "message": "5000"})])
        assert told == ProbeAnswer("5000", 3)

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            (with_state("Failed", terminated={"exitCode": 137, "reason": "OOMKilled"}), "137"),
            ({"metadata": {}, "status": {"phase": "Failed", "message": "Pod was active too long"}}, "too long"),
            (with_state(waiting={"reason": "ImagePullBackOff", "message": "no such image"}), "no such image"),
            (with_state(waiting={"reason": "InvalidImageName", "message": "A:B:C"}), "A:B:C"),
            (with_state(waiting={"reason": "CreateContainerConfigError", "message": "no such user"}), "no such user"),
        ],
    )
    def test_why_it_tells_nothing(self, found, said):
        told = pod.answer_of([found])
        assert told is not None
        assert said in told.problem
        there = pod.address_in([found])
        assert there is not None
        assert said in there.problem

    def test_where_one_that_stays_can_be_reached(self):
        running = with_state("Running", running={})
        assert pod.address_in([running]) is None
        running["status"]["podIP"] = "10.1.2.3"
        assert pod.address_in([running]) == ProbeAnswer("10.1.2.3")

    def test_one_that_was_to_stay_and_ended_says_why(self):
        there = pod.address_in([with_state("Failed", terminated={"exitCode": 1, "message": "Traceback"})])
        assert there is not None
        assert "ended with 1: Traceback" in there.problem

    def test_one_that_is_late_says_what_the_scheduler_says(self):
        condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
        late = {"metadata": {}, "status": {"phase": "Pending", "conditions": [condition]}}
        assert "0/1 nodes" in pod.why_late([late], 45)
        assert "no pod" in pod.why_late([], 45)
