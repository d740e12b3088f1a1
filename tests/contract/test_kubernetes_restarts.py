"""A task is lost without which the others cannot go on: all start anew together, when the portal says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    SMALL,
    KubernetesHarness,
    has_phase,
    new_key,
    spec_of,
    task_in,
    wait_until,
)
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import Observation, TaskPhase

ROLES = {Role.CHIEF: RoleSpec(1, SMALL), Role.WORKER: RoleSpec(2, SMALL), Role.PS: RoleSpec(2, SMALL)}


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness()
    yield made
    made.close()


@pytest.fixture
def key(harness: KubernetesHarness) -> JobKey:
    """A run of `parameter_server`, in which all tasks run."""
    return begun(harness, Strategy.PARAMETER_SERVER)


def begun(harness: KubernetesHarness, strategy: Strategy, retries: int = 2, roles=ROLES) -> JobKey:
    key = new_key()
    harness.engine.submit(spec_of(strategy, roles=roles, retries=retries), key, ACCESS)
    harness.let_begin(key)
    wait_until(harness.engine, key, all_run)
    return key


def all_run(seen: Observation) -> bool:
    return bool(seen.tasks) and all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def runs_anew(seen: Observation) -> bool:
    return all_run(seen) and not seen.to_restart


def lost(seen: Observation) -> bool:
    return seen.to_restart


def uids(harness: KubernetesHarness, key: JobKey, role: str = "") -> dict[str, str]:
    """Task → the uid of its living pod."""
    labels = f"{names.RUN}={key.name}" + (f",{names.ROLE}={role}" if role else "")
    found = [one for one in harness.api.store.find("pods", labels=labels) if one["status"]["phase"] in LIVING]
    return {f"{one['metadata']['labels'][names.ROLE]}-{_index(one)}": one["metadata"]["uid"] for one in found}


def all_fresh(harness: KubernetesHarness, key: JobKey, before: dict[str, str]) -> bool:
    """Every task has a living pod again, and none of those from before."""
    now = uids(harness, key)
    return now.keys() == before.keys() and not set(now.values()) & set(before.values())


LIVING = ("Pending", "Running")


def _index(pod) -> str:
    metadata = pod["metadata"]
    return metadata["annotations"].get(names.JOB_INDEX) or metadata["labels"][names.SET_INDEX]


def remove(harness: KubernetesHarness, key: JobKey, role: str, index: int) -> None:
    """By force: nothing of the pod is left to look at."""
    labels = f"{names.RUN}={key.name},{names.ROLE}={role}"
    for pod in harness.api.store.find("pods", labels=labels):
        if _index(pod) == str(index):
            harness.api.store.delete(("pods", pod["metadata"]["namespace"], pod["metadata"]["name"]), 0)


Loss = Callable[[KubernetesHarness, JobKey], None]
LOSSES: dict[str, Loss] = {
    "the chief fails": lambda harness, key: harness.let_end(key, Role.CHIEF, 0, 1),
    "the chief is evicted": lambda harness, key: harness.cluster.evict(key.name, "chief", 0),
    "the chief is removed by force": lambda harness, key: remove(harness, key, "chief", 0),
    "a server fails": lambda harness, key: harness.let_end(key, Role.PS, 1, 1),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_tensorflow_7767_a_lost_server_or_chief_starts_all_anew_together(harness, key: JobKey, loss: Loss):
    before = uids(harness, key)
    loss(harness, key)
    wait_until(harness.engine, key, lost)
    assert harness.engine.restart(key)
    wait_until(harness.engine, key, lambda seen: runs_anew(seen) and all_fresh(harness, key, before))
    assert not harness.engine.restart(key)


def test_a_lost_worker_comes_back_alone(harness: KubernetesHarness, key: JobKey):
    before = uids(harness, key)
    harness.let_end(key, Role.WORKER, 0, 1)
    seen = wait_until(harness.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).restarts == 1 and all_run(seen))
    assert not seen.to_restart
    assert not harness.engine.restart(key)
    assert {name for name, uid in uids(harness, key).items() if uid != before[name]} == {"worker-0"}


def test_one_loss_is_one_restart_however_many_see_it(harness: KubernetesHarness, key: JobKey):
    harness.let_end(key, Role.PS, 0, 1)
    wait_until(harness.engine, key, lost)
    threads = [threading.Thread(target=harness.engine.restart, args=(key,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(harness.engine, key, lambda seen: runs_anew(seen) and [one.restarts for one in seen.tasks] == [1] * 5)
    assert not harness.engine.restart(key)


def test_a_restart_that_was_cut_off_after_its_note_is_finished_by_the_next(harness: KubernetesHarness, key: JobKey):
    before = uids(harness, key)
    harness.let_end(key, Role.CHIEF, 0, 1)
    wait_until(harness.engine, key, lost)
    harness.api.refuse("create", "pods/eviction", 500)
    with pytest.raises(Unavailable):
        harness.engine.restart(key)
    wait_until(harness.engine, key, lost)
    assert harness.engine.restart(key)
    wait_until(harness.engine, key, lambda seen: runs_anew(seen) and all_fresh(harness, key, before))


def test_restarts_together_are_spent_like_others(harness: KubernetesHarness):
    key = begun(harness, Strategy.PARAMETER_SERVER, retries=1)
    harness.let_end(key, Role.PS, 0, 1)
    wait_until(harness.engine, key, lost)
    before = uids(harness, key)
    assert harness.engine.restart(key)
    wait_until(harness.engine, key, lambda seen: runs_anew(seen) and all_fresh(harness, key, before))
    harness.let_end(key, Role.PS, 0, 7)
    seen = wait_until(harness.engine, key, has_phase(Role.PS, 0, TaskPhase.FAILED))
    assert not seen.to_restart
    assert task_in(seen, Role.PS, 0).exit_code == 7


def test_without_retries_nothing_starts_anew(harness: KubernetesHarness):
    key = begun(harness, Strategy.PARAMETER_SERVER, retries=0)
    harness.let_end(key, Role.CHIEF, 0, 1)
    seen = wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.FAILED))
    assert not seen.to_restart
    assert not harness.engine.restart(key)


def test_servers_of_graphs_with_sessions_of_their_own_come_back_alone(harness: KubernetesHarness):
    key = begun(harness, Strategy.BETWEEN_GRAPH, roles={Role.WORKER: RoleSpec(2, SMALL), Role.PS: RoleSpec(1, SMALL)})
    harness.let_end(key, Role.PS, 0, 1)
    seen = wait_until(harness.engine, key, lambda seen: task_in(seen, Role.PS, 0).restarts == 1 and all_run(seen))
    assert not seen.to_restart


def test_members_of_a_collective_come_back_together(harness: KubernetesHarness):
    key = begun(harness, Strategy.MULTI_WORKER_MIRRORED, roles={Role.WORKER: RoleSpec(3, SMALL)})
    before = uids(harness, key)
    harness.let_end(key, Role.WORKER, 1, 1)
    wait_until(harness.engine, key, lost)
    assert harness.engine.restart(key)
    seen = wait_until(harness.engine, key, lambda seen: runs_anew(seen) and all_fresh(harness, key, before))
    # The lost one may have been back already, and is then started once more.
    assert [task.restarts for task in seen.tasks] in ([1, 1, 1], [1, 2, 1])


def test_what_is_to_end_starts_nothing_anew(harness: KubernetesHarness, key: JobKey):
    harness.let_end(key, Role.CHIEF, 0, 0)
    wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.SUCCEEDED))
    harness.engine.release(key, [Role.PS])
    harness.let_end(key, Role.WORKER, 0, 1)
    assert not harness.engine.observe([key])[key].to_restart
    assert not harness.engine.restart(key)


def test_an_error_that_no_restart_can_mend_is_a_failure_at_once(harness: KubernetesHarness):
    key = begun(harness, Strategy.PARAMETER_SERVER, retries=3)
    harness.cluster.end(key.name, "chief", 0, 1, message="yardmaster-runner: ImportFailed: No module named 'nothing'.")
    seen = wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.FAILED))
    assert task_in(seen, Role.CHIEF, 0).reason == "ImportFailed"
