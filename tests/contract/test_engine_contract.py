"""What every engine promises (`yardmaster.engines.base`), tried on each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    SMALL,
    FakeHarness,
    Harness,
    HostsHarness,
    KubernetesHarness,
    LocalHarness,
    all_ended,
    has_phase,
    new_key,
    spec_of,
    task_in,
    wait_until,
)
from tests.real.machines import Machines, machines
from yardmaster.engines.base import Dials, ListsMachines, MachineState, Outputs, Restarts, Serves, Watches
from yardmaster.ids import JobKey
from yardmaster.job.spec import NOTHING, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase
from yardmaster_runner.exits import Ending

NOW = timedelta(0)
SHORT = timedelta(seconds=0.3)
LONG = timedelta(seconds=600)


@pytest.fixture(scope="module")
def machines_of_one_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Six machines, each with space for one task: every job is on several."""
    with machines(tmp_path_factory.mktemp("machines"), 6, "cores = 0.4") as made:
        yield made


ENGINES = ["fake", "local", "kubernetes", "kubernetes that watches", pytest.param("hosts", marks=pytest.mark.ssh)]


@pytest.fixture(params=ENGINES)
def harness(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Harness]:
    monkeypatch.setattr(
        "yardmaster.engines.supervision.removal._PATIENCE", 30.0
    )  # of many sides, one removes at a time
    if request.param == "fake":
        yield FakeHarness()
        return
    watches = request.param == "kubernetes that watches"
    made: LocalHarness | KubernetesHarness
    if request.param == "hosts":
        made = HostsHarness(tmp_path, request.getfixturevalue("machines_of_one_task"))
    else:
        made = LocalHarness(tmp_path) if request.param == "local" else KubernetesHarness(watch=watches)
    yield made
    made.close()


@pytest.fixture
def key() -> JobKey:
    return new_key()


@pytest.fixture
def running(harness: Harness, key: JobKey) -> JobKey:
    """A run of two workers and a parameter server, all begun."""
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    return key


def phases(harness: Harness, key: JobKey) -> dict[str, str]:
    return {f"{task.role}-{task.index}": str(task.phase) for task in harness.engine.observe([key])[key].tasks}


def test_a_name_and_whether_it_isolates_are_said(harness: Harness):
    assert harness.engine.name
    assert harness.engine.isolates in (True, False)
    assert harness.engine.has_way_out in (True, False)


def test_no_task_can_get_more_than_there_is(harness: Harness):
    capacity = harness.engine.capacity()
    assert 0 < capacity.largest_task.cpu <= capacity.total.cpu
    assert 0 < capacity.largest_task.memory <= capacity.total.memory
    assert capacity.free.cpu <= capacity.total.cpu


def test_machines_together_have_what_the_engine_has(harness: Harness, running: JobKey):
    engine = harness.engine
    assert isinstance(engine, ListsMachines)
    capacity, machines = engine.capacity(), engine.machines()
    names = [one.name for one in machines]
    assert names
    assert names == sorted(set(names))
    usable = [one for one in machines if one.is_usable]
    assert sum((one.total for one in usable), NOTHING) == capacity.total
    for one in machines:
        assert one.state is MachineState.READY or one.free.cpu == 0
        assert one.free.cpu <= one.total.cpu
        assert one.free.memory <= one.total.memory
    known = {bound.job_id for one in machines for bound in one.bound}
    assert known in ({running.job_id}, set())  # all of its tasks, or it leaves them to the portal
    if known:
        roles = sorted(bound.role for one in machines for bound in one.bound)
        assert roles == ["ps", "worker", "worker"]
        assert sum(one.free.cpu for one in usable) == pytest.approx(capacity.free.cpu - 3 * SMALL.cpu)


def test_every_key_gets_an_answer_also_unknown_ones(harness: Harness, running: JobKey):
    unknown = new_key()
    seen = harness.engine.observe([running, unknown])
    assert set(seen) == {running, unknown}
    assert seen[running].exists
    assert seen[unknown] == ABSENT
    assert harness.engine.observe([]) == {}


def test_all_tasks_are_seen_as_soon_as_submit_returns(harness: Harness, key: JobKey):
    spec = spec_of()
    harness.engine.submit(spec, key, ACCESS)
    seen = harness.engine.observe([key])[key]
    assert [(task.role, task.index) for task in seen.tasks] == spec.tasks()
    assert not any(task.phase.is_ended for task in seen.tasks)


def test_a_second_submit_changes_nothing(harness: Harness, running: JobKey):
    before = harness.engine.observe([running])[running]
    harness.engine.submit(spec_of(name="another"), running, ACCESS)
    assert harness.engine.observe([running])[running] == before


def test_a_submit_of_an_ended_run_changes_nothing(harness: Harness, running: JobKey):
    harness.engine.stop(running, NOW)
    ended = wait_until(harness.engine, running, all_ended)
    harness.engine.submit(spec_of(), running, ACCESS)
    assert harness.engine.observe([running])[running] == ended


def test_begun_tasks_have_a_time_that_says_its_zone(harness: Harness, running: JobKey):
    for task in harness.engine.observe([running])[running].tasks:
        assert task.phase is TaskPhase.RUNNING
        assert task.started_at is not None
        assert task.started_at.utcoffset() == timedelta(0)


def test_an_end_shows_with_its_code_and_the_others_go_on(harness: Harness, running: JobKey):
    harness.let_end(running, Role.WORKER, 0, 0)
    harness.let_end(running, Role.WORKER, 1, 7)
    wait_until(harness.engine, running, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    seen = wait_until(harness.engine, running, has_phase(Role.WORKER, 1, TaskPhase.FAILED))
    assert task_in(seen, Role.WORKER, 0).exit_code == 0
    assert task_in(seen, Role.WORKER, 1).exit_code == 7
    assert task_in(seen, Role.WORKER, 1).finished_at is not None
    assert task_in(seen, Role.PS, 0).phase is TaskPhase.RUNNING


def test_release_ends_these_roles_and_keeps_the_rest_and_its_facts(harness: Harness, running: JobKey):
    harness.let_end(running, Role.WORKER, 0, 0)
    wait_until(harness.engine, running, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    for _ in range(2):
        harness.engine.release(running, [Role.PS])
    wait_until(harness.engine, running, has_phase(Role.PS, 0, TaskPhase.RELEASED))
    assert phases(harness, running) == {"worker-0": "SUCCEEDED", "worker-1": "RUNNING", "ps-0": "RELEASED"}
    harness.engine.release(running, [Role.WORKER, Role.PS])
    wait_until(harness.engine, running, all_ended)
    assert phases(harness, running) == {"worker-0": "SUCCEEDED", "worker-1": "RELEASED", "ps-0": "RELEASED"}


def test_release_of_roles_that_are_not_there_changes_nothing(harness: Harness, running: JobKey):
    harness.engine.release(running, [Role.EVALUATOR, Role.CHIEF])
    harness.engine.release(running, [])
    assert set(phases(harness, running).values()) == {"RUNNING"}


def test_stop_returns_at_once_and_all_are_released(harness: Harness, running: JobKey):
    for _ in range(2):
        harness.engine.stop(running, LONG)
    seen = wait_until(harness.engine, running, all_ended)
    assert {task.phase for task in seen.tasks} == {TaskPhase.RELEASED}
    harness.engine.stop(running, NOW)
    assert harness.engine.observe([running])[running] == seen


def test_what_ignores_being_stopped_is_killed_when_its_grace_is_over(harness: Harness, key: JobKey):
    harness.make_stubborn(key, Role.WORKER, 1)
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    harness.engine.stop(key, SHORT)
    seen = wait_until(harness.engine, key, all_ended)
    assert task_in(seen, Role.WORKER, 1).phase is TaskPhase.RELEASED


def test_a_stop_before_anything_has_begun_ends_everything(harness: Harness, key: JobKey):
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.engine.stop(key, SHORT)
    wait_until(harness.engine, key, all_ended)
    assert set(phases(harness, key).values()) == {"RELEASED"}


def test_after_tidy_nothing_is_known_and_the_key_may_come_again(harness: Harness, running: JobKey):
    for _ in range(2):
        harness.engine.clean_up(running)
        assert harness.engine.observe([running])[running] == ABSENT
    harness.engine.submit(spec_of(), running, ACCESS)
    harness.let_begin(running)
    assert set(phases(harness, running).values()) == {"RUNNING"}
    harness.engine.clean_up(running)


def test_verbs_on_a_run_that_is_not_there_succeed_and_make_nothing(harness: Harness, key: JobKey):
    harness.engine.clean_up(key)
    harness.engine.stop(key, SHORT)
    harness.engine.release(key, [Role.PS])
    harness.engine.stop(key, NOW)
    assert harness.engine.observe([key])[key] == ABSENT


def test_preview_shows_every_task_and_has_no_effect(harness: Harness, key: JobKey):
    spec = spec_of()
    first = harness.engine.preview(spec, key)
    assert len(first) >= len(spec.tasks())
    assert harness.engine.preview(spec, key) == first
    assert harness.engine.observe([key])[key] == ABSENT


def test_a_verb_from_many_sides_at_once_is_as_one(harness: Harness, key: JobKey):
    at_once(12, lambda: harness.engine.submit(spec_of(), key, ACCESS))
    harness.let_begin(key)
    assert set(phases(harness, key).values()) == {"RUNNING"}
    at_once(6, lambda: harness.engine.release(key, [Role.PS]))
    at_once(6, lambda: harness.engine.stop(key, SHORT))
    wait_until(harness.engine, key, all_ended)
    at_once(6, lambda: harness.engine.clean_up(key))
    assert harness.engine.observe([key])[key] == ABSENT


def test_who_watches_hears_of_the_run_that_changed(harness: Harness, running: JobKey):
    if not isinstance(harness.engine, Watches):
        pytest.skip("this engine does not watch")
    changes = harness.engine.changes()
    harness.let_end(running, Role.WORKER, 0, 0)
    assert running in changes  # for ever, were it never told


def test_the_tail_of_an_unknown_task_is_empty(harness: Harness, key: JobKey):
    if not isinstance(harness.engine, Outputs):
        pytest.skip("this engine keeps no output")
    assert harness.engine.tail(key, Role.WORKER, 0, 10) == []


# --- restarts ---------------------------------------------------------------------------------------------------------

BACK_OFF = 90.0
"""Seconds until an engine has started a task again for the second time: a cluster waits 20 s before it does."""


def begun(harness: Harness, key: JobKey, retries: int, strategy: Strategy = Strategy.BETWEEN_GRAPH, **more) -> None:
    harness.engine.submit(spec_of(strategy, retries=retries, **more), key, ACCESS)
    harness.let_begin(key)


def test_a_task_that_fails_is_started_again(harness: Harness, key: JobKey):
    begun(harness, key, retries=1)
    harness.let_fail(key, Role.WORKER, 0)
    seen = wait_until(harness.engine, key, runs_again(Role.WORKER, 0, 1), BACK_OFF)
    assert task_in(seen, Role.WORKER, 1).restarts == 0


def test_retries_are_the_restarts_of_all_tasks_together(harness: Harness, key: JobKey):
    begun(harness, key, retries=1)
    harness.let_fail(key, Role.WORKER, 0)
    wait_until(harness.engine, key, runs_again(Role.WORKER, 0, 1), BACK_OFF)
    harness.let_fail(key, Role.WORKER, 1)
    seen = wait_until(harness.engine, key, has_phase(Role.WORKER, 1, TaskPhase.FAILED))
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING
    harness.let_fail(key, Role.PS, 0)
    wait_until(harness.engine, key, has_phase(Role.PS, 0, TaskPhase.FAILED))
    assert task_in(harness.engine.observe([key])[key], Role.WORKER, 1).phase is TaskPhase.FAILED


@pytest.mark.timeout(400)
def test_a_restart_of_all_tasks_together_costs_one(harness: Harness, key: JobKey):
    roles = {Role.WORKER: RoleSpec(2, SMALL)}
    begun(harness, key, 2, Strategy.MULTI_WORKER_MIRRORED, roles=roles)
    for index in (0, 1):
        before = task_in(harness.engine.observe([key])[key], Role.WORKER, index).restarts
        harness.let_fail(key, Role.WORKER, index)
        wait_until(harness.engine, key, all_run_again(harness, key, index, before), BACK_OFF)
        assert harness.engine.observe([key])[key].gang_restarts in (None, index + 1), "or it counts none"
    harness.let_fail(key, Role.WORKER, 0)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED), BACK_OFF)


def all_run_again(harness: Harness, key: JobKey, index: int, before: int) -> Callable[[Observation], bool]:
    """Every worker runs, this one after more restarts. An engine that asks for it is told to restart them all."""

    def holds(seen: Observation) -> bool:
        if seen.to_restart and isinstance(harness.engine, Restarts):
            harness.engine.restart(key)
            return False
        assert not any(task.phase is TaskPhase.FAILED for task in seen.tasks), f"failed for good: {seen.tasks}"
        running = all(task.phase is TaskPhase.RUNNING for task in seen.tasks)
        return running and task_in(seen, Role.WORKER, index).restarts > before

    return holds


def test_what_no_restart_can_mend_is_a_failure_at_once(harness: Harness, key: JobKey):
    begun(harness, key, retries=5)
    harness.let_fail(key, Role.WORKER, 0, Ending(1, "CodeError", "NameError: name 'x' is not defined"))
    seen = wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    task = task_in(seen, Role.WORKER, 0)
    assert (task.reason, task.message, task.exit_code) == ("CodeError", "NameError: name 'x' is not defined", 1)


def test_the_same_failure_twice_without_a_step_of_progress_is_final(harness: Harness, key: JobKey):
    begun(harness, key, retries=5)
    harness.let_fail(key, Role.WORKER, 0, failure("a", reached=40))
    wait_until(harness.engine, key, runs_again(Role.WORKER, 0, 1), BACK_OFF)
    harness.let_fail(key, Role.WORKER, 0, failure("a", reached=40))
    seen = wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    assert (task_in(seen, Role.WORKER, 0).reason, task_in(seen, Role.WORKER, 0).message) == (
        "SameFailure",
        "ValueError: a",
    )
    assert task_in(seen, Role.WORKER, 1).phase is TaskPhase.RUNNING


@pytest.mark.timeout(400)
def test_another_failure_progress_or_another_task_is_no_repetition(harness: Harness, key: JobKey):
    begun(harness, key, retries=9)
    failures = [(0, "a", 1), (1, "a", 1), (0, "a", 2)]
    for count, (index, signature, reached) in enumerate(failures):
        harness.let_fail(key, Role.WORKER, index, failure(signature, reached))
        wait_until(harness.engine, key, runs_again(Role.WORKER, index, [1, 1, 2][count]), BACK_OFF)
    harness.let_fail(key, Role.WORKER, 1, failure("b", 1))
    wait_until(harness.engine, key, runs_again(Role.WORKER, 1, 2), BACK_OFF)


def failure(signature: str, reached: int) -> Ending:
    return Ending(1, "ScriptFailed", f"ValueError: {signature}", signature, reached)


def runs_again(role: Role, index: int, restarts: int) -> Callable[[Observation], bool]:
    """The task runs, after so many restarts."""

    def holds(seen: Observation) -> bool:
        task = task_in(seen, role, index)
        assert task.phase is not TaskPhase.FAILED, f"it failed for good: {task}"
        return (task.phase, task.restarts) == (TaskPhase.RUNNING, restarts)

    return holds


def servers_spec() -> TrainingSpec:
    return spec_of(Strategy.IN_GRAPH, code_version=None, entry_point="")


def test_a_run_of_servers_begins_and_is_stopped_like_any_other(harness: Harness, key: JobKey):
    harness.engine.submit(servers_spec(), key, ACCESS)
    harness.let_begin(key)
    assert set(phases(harness, key).values()) == {"RUNNING"}
    harness.engine.stop(key, SHORT)
    seen = wait_until(harness.engine, key, all_ended)
    assert {task.phase for task in seen.tasks} == {TaskPhase.RELEASED}
    harness.engine.clean_up(key)
    assert harness.engine.observe([key])[key] == ABSENT


def test_servers_have_addresses_of_their_own_that_stay_while_the_run_is_there(harness: Harness, key: JobKey):
    if not isinstance(harness.engine, Serves):
        pytest.skip("this engine gives no addresses")
    spec = servers_spec()
    harness.engine.submit(spec, key, ACCESS)
    found = harness.engine.servers(spec, key)
    assert found is not None
    assert {role: len(some) for role, some in found.addresses.items()} == {Role.WORKER: 2, Role.PS: 1}
    every = [one for some in found.addresses.values() for one in some]
    assert len(set(every)) == 3
    assert all(one.rpartition(":")[0] and one.rpartition(":")[2].isdecimal() for one in every)
    assert found.reach.endswith(".")
    assert found.data_dir.startswith("/")
    harness.let_begin(key)
    assert harness.engine.servers(spec, key) == found
    other = new_key()
    harness.engine.submit(spec, other, ACCESS)
    theirs = harness.engine.servers(spec, other)
    assert theirs is not None
    assert not set(every) & {one for some in theirs.addresses.values() for one in some}
    harness.engine.clean_up(other)


def at_once(count: int, act: Callable[[], None]) -> None:
    """Do it in `count` threads that begin together; every one must succeed."""
    barrier, failures = threading.Barrier(count), []

    def one() -> None:
        barrier.wait()
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the test's failure
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def service_spec() -> TrainingSpec:
    """One task that serves a port."""
    roles = {Role.WORKER: RoleSpec(1, SMALL)}
    return spec_of(Strategy.SERVICE, code_version=None, entry_point="", program="model_server", roles=roles)


def test_a_service_has_an_address_to_dial_from_its_begin_until_it_is_removed(harness: Harness, key: JobKey):
    if not isinstance(harness.engine, Dials):
        pytest.skip("the portal cannot connect to tasks of this engine")
    spec, other = service_spec(), new_key()
    assert harness.engine.address(spec, key, Role.WORKER, 0) is None
    for one in (key, other):
        harness.engine.submit(spec, one, ACCESS)
        harness.let_begin(one)
    found = harness.engine.address(spec, key, Role.WORKER, 0)
    assert found is not None
    assert 0 < found.port < 65_536
    assert harness.engine.address(spec, key, Role.WORKER, 0) == found
    assert harness.engine.address(spec, key, Role.PS, 0) is None
    harness.engine.clean_up(key)
    wait_until(harness.engine, key, lambda seen: not seen.exists)
    assert harness.engine.address(spec, key, Role.WORKER, 0) is None
    harness.engine.clean_up(other)


def test_a_service_is_stopped_like_any_run(harness: Harness, key: JobKey):
    harness.engine.submit(service_spec(), key, ACCESS)
    harness.let_begin(key)
    assert phases(harness, key) == {"worker-0": "RUNNING"}
    harness.engine.stop(key, SHORT)
    assert {task.phase for task in wait_until(harness.engine, key, all_ended).tasks} == {TaskPhase.RELEASED}
