"""What befalls tasks on a real cluster: scripts that fail, pods that are taken away, nodes that are emptied."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, SMALL, has_phase, spec_of, task_in, wait_until
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.failures import EXIT_STAGE_IN_FAILED
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

PATIENCE = 60.0
ALONE = {Role.WORKER: RoleSpec(1, SMALL)}
WORKER_FAILED = has_phase(Role.WORKER, 0, TaskPhase.FAILED)


def submit_alone(harness: ClusterHarness, key: JobKey) -> TaskState:
    """A job of one worker that fails, as it is seen then."""
    harness.engine.submit(spec_of(Strategy.SINGLE, roles=ALONE), key, ACCESS)
    return task_in(wait_until(harness.engine, key, WORKER_FAILED, PATIENCE), Role.WORKER, 0)


def pod_of(cluster: Cluster, harness: ClusterHarness, key: JobKey, role: Role, index: int) -> dict:
    """The pod that is this task and is not about to go; empty where there is none."""
    place = namespace_name(key.namespace_id, harness.engine.options)
    labels = f"yardmaster/run={key.name},yardmaster/role={role.value}"
    found = json.loads(cluster.kubectl("get", "pods", "--namespace", place, "-l", labels, "-o", "json"))["items"]
    mine = [one for one in found if one["metadata"]["name"].startswith(f"{key.name}-{role.value}-{index}")]
    return next((one for one in mine if "deletionTimestamp" not in one["metadata"]), {})


def test_a_failing_script_is_named_with_its_own_last_words(on_cluster: ClusterHarness, key: JobKey):
    on_cluster.portal.orders("print('before')\nraise ValueError('it\\'s \"odd\" $(HOME) {{ }} 😀')")
    task = submit_alone(on_cluster, key)
    assert (task.exit_code, task.reason) == (1, "ScriptFailed")
    assert task.message == 'ValueError: it\'s "odd" $(HOME) {{ }} 😀'
    assert on_cluster.engine.tail(key, Role.WORKER, 0, 5)[-1] == f"yardmaster-runner: ScriptFailed: {task.message}"


def test_an_entry_point_that_does_not_exist_is_named(on_cluster: ClusterHarness, key: JobKey):
    on_cluster.portal.orders("pass", entry_point="missing.py")
    task = submit_alone(on_cluster, key)
    assert (task.exit_code, task.reason) == (EXIT_STAGE_IN_FAILED, "ScriptNotFound")
    assert "missing.py" in task.message
    assert "missing.py" in on_cluster.engine.tail(key, Role.WORKER, 0, 1)[0]


def test_an_image_without_the_interpreter_is_no_fault_of_the_script(on_cluster: ClusterHarness, key: JobKey):
    usual, on_cluster.engine = on_cluster.engine, on_cluster.new_engine(python="/no/such/python")
    try:
        task = submit_alone(on_cluster, key)
        assert task.reason == "ImageLacksPython"
        assert "/no/such/python" in task.message
        assert on_cluster.engine.tail(key, Role.WORKER, 0, 5) == []
    finally:
        on_cluster.engine = usual


def test_a_pod_that_somebody_deletes_is_made_anew_until_the_restarts_are_spent(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey
):
    def delete() -> None:
        found = pod_of(cluster, on_cluster, key, Role.WORKER, 1)["metadata"]
        cluster.kubectl(
            "delete", "pod", found["name"], "--namespace", found["namespace"], "--grace-period=0", "--force"
        )

    on_cluster.engine.submit(spec_of(retries=1), key, ACCESS)
    on_cluster.let_begin(key)
    delete()
    seen = wait_until(on_cluster.engine, key, lambda seen: came_back(task_in(seen, Role.WORKER, 1)), PATIENCE)
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
    assert [task.restarts for task in seen.tasks if task.index == 0] == [0, 0]
    delete()
    seen = wait_until(on_cluster.engine, key, has_phase(Role.WORKER, 1, TaskPhase.FAILED), PATIENCE)
    assert task_in(seen, Role.WORKER, 1).reason == "Lost"
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING


def came_back(task: TaskState) -> bool:
    return task.phase is TaskPhase.RUNNING and task.restarts == 1


@pytest.mark.alone  # closes the node for everybody
def test_a_node_that_is_emptied_costs_no_retry(cluster: Cluster, on_cluster: ClusterHarness, key: JobKey):
    on_cluster.engine.submit(spec_of(retries=0), key, ACCESS)
    on_cluster.let_begin(key)
    drained = {place: pod_of(cluster, on_cluster, key, *place) for place in ((Role.WORKER, 0), (Role.PS, 0))}
    node = drained[Role.WORKER, 0]["spec"]["nodeName"]
    cluster.kubectl("cordon", node)
    try:
        for pod in drained.values():
            evict(cluster, pod["metadata"]["name"], pod["metadata"]["namespace"])
        for place, pod in drained.items():
            wait_for("another pod", lambda place=place, pod=pod: is_another(cluster, on_cluster, key, place, pod))
        assert not any(task.phase is TaskPhase.FAILED for task in on_cluster.engine.observe([key])[key].tasks)
    finally:
        cluster.kubectl("uncordon", node)
    wait_until(on_cluster.engine, key, all_run, PATIENCE)
    for role, index in ((Role.WORKER, 0), (Role.WORKER, 1)):
        on_cluster.let_end(key, role, index, 0)
    wait_until(on_cluster.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED), PATIENCE)
    wait_until(on_cluster.engine, key, has_phase(Role.WORKER, 1, TaskPhase.SUCCEEDED), PATIENCE)


def all_run(seen: Observation) -> bool:
    return all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def is_another(cluster: Cluster, harness: ClusterHarness, key: JobKey, place: tuple[Role, int], before: dict) -> bool:
    now = pod_of(cluster, harness, key, *place)
    return bool(now) and now["metadata"]["uid"] != before["metadata"]["uid"]


def evict(cluster: Cluster, name: str, namespace: str) -> None:
    """As `kubectl drain` does, of this pod alone."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"gracePeriodSeconds": 1},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", given=eviction)


def test_what_ignores_being_stopped_ends_with_the_run_that_is_cleaned_up(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey
):
    """No API shows it then, and no quota counts it: only the node knows."""
    if not cluster.is_developed:
        pytest.skip("the processes of nodes can be seen where the node is this machine")
    on_cluster.make_stubborn(key, Role.WORKER, 0)
    on_cluster.engine.submit(spec_of(Strategy.SINGLE, roles=ALONE), key, ACCESS)
    on_cluster.let_begin(key)
    uid = pod_of(cluster, on_cluster, key, Role.WORKER, 0)["metadata"]["uid"]
    assert processes_of(uid)
    on_cluster.engine.clean_up(key)
    wait_for("its processes end", lambda: not processes_of(uid), PATIENCE)


def processes_of(uid: str) -> list[str]:
    """Of a pod on this machine, by their control groups."""
    found = []
    for groups in Path("/proc").glob("[0-9]*/cgroup"):
        with contextlib.suppress(OSError):
            if f"pod{uid}" in groups.read_text():
                found.append(groups.parent.name)
    return found
