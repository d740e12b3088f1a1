"""What the API server shows, as states of tasks, in words that help."""

from __future__ import annotations

import json
from datetime import UTC, datetime

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
from yardmaster.engines.kubernetes.observe.roles import indexes
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.record import release_of, released_key
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.failures import REASONS, verdict_for
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

ONE = make_spec(Strategy.SINGLE, retries=0)
AGAIN = make_spec(Strategy.SINGLE, retries=2)
SERVERS = make_spec(shape={Role.WORKER: 1, Role.PS: 1}, retries=2)
QUOTA = 'pods "x" is forbidden: exceeded quota: tasks, requested: cpu=1, used: cpu=4, limited: cpu=4'


def waiting(reason, message=""):
    return container(state={"waiting": {"reason": reason, "message": message}})


def worker(*pods, spec=ONE, **more):
    found = states(spec, *pods, **more)[0]
    assert found.reason == "" or found.reason in REASONS
    return found


def test_without_an_owner_there_is_nothing():
    assert observation_of(Seen(None, [workload(Role.WORKER)], [pod(Role.WORKER, 0, "Running")])) == ABSENT


def test_a_submission_that_was_cut_off_is_as_good_as_absent_and_says_what_is_missing():
    spec = make_spec(Strategy.PARAMETER_SERVER)
    found = observation_of(
        Seen(
            owner(spec),
            [workload(Role.PS)],
            [pod(Role.PS, 0, "Running", containerStatuses=container(state={"running": {}}))],
        )
    )
    assert not found.exists
    assert f"Job {KEY.name}-chief is not on the cluster" in found.message
    phases = {(task.role, task.index): task.phase for task in found.tasks}
    assert phases.pop((Role.PS, 0)) is TaskPhase.RUNNING
    assert set(phases.values()) == {TaskPhase.PENDING}
    assert events_wanted(found) == []


def test_it_is_there_with_its_last_workload_or_once_something_was_released():
    spec = make_spec(Strategy.PARAMETER_SERVER)
    assert observation_of(Seen(owner(spec), [workload(Role.CHIEF)])).exists
    told = owner(spec)
    told["data"][released_key(Role.PS)] = release_of(Role.PS, datetime(2026, 11, 20, tzinfo=UTC), ()).to_json()
    assert observation_of(Seen(told)).exists


def test_an_owner_that_is_on_its_way_out_owns_nothing():
    going = owner(ONE)
    going["metadata"]["deletionTimestamp"] = BEGUN
    assert observation_of(Seen(going, [workload(Role.WORKER)])) == ABSENT


def test_every_task_is_there_before_its_pod_is():
    spec = make_spec(Strategy.PARAMETER_SERVER)
    found = states(spec)
    assert [(task.role, task.index) for task in found] == spec.tasks()
    assert {task.phase for task in found} == {TaskPhase.PENDING}


UNKNOWN = "The node could not pull the image. It says: no such image"


@pytest.mark.parametrize("word", ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"])
def test_trainer_2001_an_image_that_cannot_be_pulled_is_said(word):
    found = worker(pod(Role.WORKER, 0, "Pending", containerStatuses=waiting(word, "no such image")))
    assert (found.phase, found.reason, found.message) == (TaskPhase.PENDING, "ImagePull", UNKNOWN)


def test_the_image_of_the_runner_counts_too():
    status = {"name": "runner", "state": {"waiting": {"reason": "ErrImagePull", "message": "no runner"}}}
    assert worker(pod(Role.WORKER, 0, "Pending", initContainerStatuses=[status])).reason == "ImagePull"


def test_what_no_node_can_take_says_why():
    why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    found = worker(pod(Role.WORKER, 0, "Pending", conditions=[condition]))
    assert (found.phase, found.reason, found.message) == (TaskPhase.PENDING, "Unschedulable", why)


def test_notebooks_64_a_quota_that_refuses_is_not_a_generic_message():
    events = [event(workload(Role.WORKER), "FailedCreate", QUOTA)]
    found = worker(events=events)
    assert (found.phase, found.reason) == (TaskPhase.PENDING, "QuotaRefused")
    assert "requested: cpu=1" in found.message
    assert "cluster's own quota" in verdict_for(found).message


def test_a_volume_that_cannot_be_mounted_is_said():
    starting = pod(Role.WORKER, 0, "Pending", containerStatuses=waiting("ContainerCreating"))
    found = worker(starting, events=[event(starting, "FailedMount", "no such secret")])
    assert (found.reason, found.message) == ("StartFailed", "FailedMount: no such secret")


def test_what_a_busy_node_overcomes_by_itself_is_no_reason():
    words = (
        'MountVolume.SetUp failed for volume "token" : failed to sync secret cache: timed out waiting for the condition'
    )
    starting = pod(Role.WORKER, 0, "Pending", containerStatuses=waiting("ContainerCreating"))
    passing, lasting = event(starting, "FailedMount", words), event(starting, "FailedMount", "no such secret")
    assert worker(starting, events=[passing]).reason == ""
    assert worker(starting, events=[passing, lasting]).message == "FailedMount: no such secret"
    ready = [{"type": "PodReadyToStartContainers", "status": "True"}]
    pulling = pod(Role.WORKER, 0, "Pending", containerStatuses=waiting("ContainerCreating"), conditions=ready)
    assert worker(pulling, events=[lasting]).reason == ""


def test_memory_passed_is_said_with_its_limit():
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(137, reason="OOMKilled")))
    assert (found.phase, found.reason, found.exit_code) == (TaskPhase.FAILED, "OutOfMemory", 137)
    assert found.message == "Its limit is 1.5 GiB."


def test_the_scripts_exit_code_and_times_are_kept():
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(7)))
    assert (found.phase, found.reason, found.exit_code) == (TaskPhase.FAILED, "ScriptFailed", 7)
    assert found.started_at == datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    assert found.finished_at == datetime(2026, 11, 20, 12, 5, tzinfo=UTC)
    assert found.node == "node-1"


def test_the_runners_last_words_are_believed():
    output = "Epoch 1\nyardmaster-runner: ImportFailed: No module named 'nope'\n"
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(1, message=output)))
    assert (found.reason, found.message) == ("ImportFailed", "No module named 'nope'")


def test_words_that_are_not_of_the_vocabulary_are_only_output():
    output = "yardmaster-runner: Fine: really\n"
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(3, message=output)))
    assert found.reason == "ScriptFailed"


def test_a_name_that_dns_does_not_know_is_said():
    output = "yardmaster-runner: PortalUnreachable: no answer: [Errno -2] Name or service not known"
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(91, message=output)))
    assert found.reason == "PortalUnreachable"
    assert "The cluster's DNS does not know that name." in found.message


def test_an_image_without_the_runner_shows_what_python_said():
    output = "/usr/bin/python3: No module named yardmaster_runner\n"
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(1, message=output)))
    assert "No module named yardmaster_runner" in found.message


@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByPodGC"])
def test_what_the_cluster_took_away_comes_again_and_costs_nothing(reason):
    target = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "drained"}
    gone = pod(Role.WORKER, 0, "Failed", conditions=[target], containerStatuses=terminated(143))
    found = worker(gone, workloads=[workload(Role.WORKER, 0)])
    assert (found.phase, found.reason, found.restarts) == (TaskPhase.PENDING, "Evicted", 1)


def test_evicted_from_a_node_without_memory_is_said_in_the_kubelets_words():
    gone = pod(Role.WORKER, 0, "Failed", reason="Evicted", message="The node was low on resource: memory.")
    found = worker(gone)
    assert (found.phase, found.reason) == (TaskPhase.FAILED, "Evicted")
    assert "low on resource: memory" in found.message


def test_a_failed_task_comes_again_while_its_restarts_last():
    first, second, third = (
        pod(Role.WORKER, 0, "Failed", failures, containerStatuses=terminated(1)) for failures in range(3)
    )
    found = worker(first, spec=AGAIN)
    assert (found.phase, found.restarts) == (TaskPhase.PENDING, 1)
    running = pod(Role.WORKER, 0, "Running", 1, containerStatuses=container(state={"running": {"startedAt": BEGUN}}))
    found = worker(running, first, spec=AGAIN)
    assert (found.phase, found.restarts) == (TaskPhase.RUNNING, 1)
    found = worker(third, first, second, spec=AGAIN)
    assert (found.phase, found.restarts, found.exit_code) == (TaskPhase.FAILED, 2, 1)


@pytest.mark.parametrize("code", [90, 92])
def test_what_no_restart_can_mend_has_failed_at_once(code):
    found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(code)), spec=AGAIN)
    assert (found.phase, found.exit_code) == (TaskPhase.FAILED, code)


def test_an_end_that_only_the_job_remembers_counts():
    spec = make_spec(shape={Role.WORKER: 4, Role.PS: 1})
    found = states(
        spec, workloads=[workload(Role.WORKER, completedIndexes="0-1", failedIndexes="3"), workload(Role.PS)]
    )
    assert [task.phase.value for task in found[:4]] == ["SUCCEEDED", "SUCCEEDED", "PENDING", "FAILED"]


def test_indexes_are_read_as_jobs_write_them():
    assert indexes("") == frozenset()
    assert indexes("0,2-4,7") == {0, 2, 3, 4, 7}


def test_what_somebody_else_deleted_was_stopped_outside():
    found = states(SERVERS, workloads=[workload(Role.WORKER)])
    assert [(task.phase, task.reason) for task in found] == [
        (TaskPhase.PENDING, ""),
        (TaskPhase.FAILED, "StoppedOutside"),
    ]


def test_pods_that_an_earlier_run_left_do_not_count():
    stray = pod(Role.WORKER, 0, "Succeeded", containerStatuses=terminated(0))
    stray["metadata"]["labels"][names.OWNER] = "another"
    assert worker(stray).phase is TaskPhase.PENDING


def test_a_parameter_server_is_started_again_until_its_restarts_are_spent():
    def server(restarts, state, last=1, reason="Error"):
        status = {"restartCount": restarts, "state": state}
        ended = {"terminated": {"exitCode": last, "reason": reason, "startedAt": BEGUN, "finishedAt": BEGUN}}
        return pod(Role.PS, 0, "Running", containerStatuses=container(**status, lastState=ended))

    running, crashed = {"running": {"startedAt": BEGUN}}, {"waiting": {"reason": "CrashLoopBackOff"}}
    assert states(SERVERS, server(1, running))[1].phase is TaskPhase.RUNNING
    found = states(SERVERS, server(2, crashed))[1]
    assert (found.phase, found.restarts, found.reason) == (TaskPhase.PENDING, 2, "ScriptFailed")
    found = states(SERVERS, server(3, running))[1]
    assert (found.phase, found.exit_code) == (TaskPhase.FAILED, 1)
    assert states(SERVERS, server(1, running, reason="OOMKilled"))[1].reason == "OutOfMemory"
    assert states(SERVERS, server(9, running, last=0))[1].phase is TaskPhase.RUNNING


def test_a_node_that_does_not_answer_is_said():
    found = worker(pod(Role.WORKER, 0, "Unknown"))
    assert (found.phase, found.reason) == (TaskPhase.RUNNING, "NodeNotReady")


def test_released_tasks_keep_their_facts_and_show_released_when_they_are_gone():
    at = datetime(2026, 11, 20, 13, 0, tzinfo=UTC)
    spec = make_spec(shape={Role.WORKER: 2, Role.PS: 1})
    running = container(state={"running": {"startedAt": BEGUN}})
    before = states(
        spec,
        pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(7)),
        pod(Role.WORKER, 1, "Running", containerStatuses=running),
        workloads=[workload(Role.WORKER, failedIndexes="0"), workload(Role.PS)],
    )
    told = owner(spec)
    told["data"][released_key(Role.WORKER)] = release_of(Role.WORKER, at, before).to_json()
    dying = observation_of(Seen(told, [workload(Role.PS)], [pod(Role.WORKER, 1, "Running", containerStatuses=running)]))
    assert [task.phase.value for task in dying.tasks] == ["FAILED", "RUNNING", "PENDING"]
    gone = observation_of(Seen(told, [workload(Role.PS)]))
    assert [task.phase.value for task in gone.tasks] == ["FAILED", "RELEASED", "PENDING"]
    assert (gone.tasks[0].exit_code, gone.tasks[0].finished_at) == (7, before[0].finished_at)
    assert (gone.tasks[1].started_at, gone.tasks[1].finished_at) == (before[1].started_at, at)


def test_the_record_of_the_most_tasks_fits_into_its_object():
    spec = make_spec(shape={Role.WORKER: 999, Role.PS: 1}, retries=0)
    failed = terminated(1, message="yardmaster-runner: ScriptFailed: " + "x" * 2000)
    found = states(spec, *(pod(Role.WORKER, index, "Failed", containerStatuses=failed) for index in range(999)))
    assert len(json.dumps(release_of(Role.WORKER, datetime.now(UTC), found).to_json())) < 900_000


class TestTimeThatIsOver:
    """The cluster ended a Job at its `activeDeadlineSeconds`: the portal was away at the end of `max_runtime`."""

    FAILED = workload(
        Role.WORKER, conditions=[{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}], failedIndexes=""
    )

    def test_a_task_whose_pod_it_removed_says_why(self):
        found = worker(spec=AGAIN, workloads=[self.FAILED])
        assert (found.phase, found.reason) == (TaskPhase.FAILED, "DeadlineExceeded")
        assert "while the portal was unavailable" in verdict_for(found).message

    def test_so_does_one_whose_pod_is_still_being_removed(self):
        ending = pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(143))
        ending["metadata"]["deletionTimestamp"] = BEGUN
        found = worker(ending, spec=AGAIN, workloads=[self.FAILED])
        assert (found.phase, found.reason) == (TaskPhase.FAILED, "DeadlineExceeded")
        assert found.finished_at is not None

    def test_one_that_had_failed_before_keeps_its_own_reason(self):
        found = worker(pod(Role.WORKER, 0, "Failed", containerStatuses=terminated(1)), workloads=[self.FAILED])
        assert (found.phase, found.reason) == (TaskPhase.FAILED, "ScriptFailed")

    def test_a_job_that_failed_otherwise_lost_its_pod(self):
        failed = workload(Role.WORKER, conditions=[{"type": "Failed", "status": "True", "reason": "FailedIndexes"}])
        assert worker(workloads=[failed]).reason == "Lost"
