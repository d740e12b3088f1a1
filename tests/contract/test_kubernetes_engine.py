"""The Kubernetes engine beyond the common contract: what it asks of an API server, and what it makes of its moods."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    QUICK,
    SMALL,
    KubernetesHarness,
    all_ended,
    has_phase,
    new_key,
    spec_of,
    task_in,
    wait_for,
    wait_until,
)
from tests.fakes.kubernetes_api import DONE_BUT_UNANSWERED, HALF_AN_ANSWER, NO_ANSWER
from tests.fakes.kubernetes_store import Refusal
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.errors import Left
from yardmaster.engines.kubernetes.observe.watching import Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, SpecRejected, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import ABSENT, Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import Move, Remembered, Submit, plan
from yardmaster.queueing.ledger import Quota

SOON = timedelta(seconds=1)
WRITES = ("patch", "delete", "deletecollection")
OF_RUNS = ("configmaps", "secrets", "jobs", "statefulsets", "pods")


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness()
    yield made
    made.close()


@pytest.fixture
def key() -> JobKey:
    return new_key()


def workers(count: int):
    return spec_of(roles={Role.WORKER: RoleSpec(count, SMALL), Role.PS: RoleSpec(1, SMALL)})


def running(harness: KubernetesHarness, key: JobKey, spec=None) -> JobKey:
    harness.engine.submit(spec or spec_of(), key, ACCESS)
    harness.let_begin(key)
    return key


def of_kind(harness: KubernetesHarness, plural: str):
    return harness.api.store.find(plural)


# --- what it asks of the server --------------------------------------------------------------------------------------


def test_a_job_takes_few_writes_and_as_many_for_eight_workers_as_for_two(harness: KubernetesHarness):
    namespace_id = new_key().namespace_id
    harness.engine.shape(namespace_id, Quota(cpu=64), ACCESS.portal_url)
    counts = []
    for count in (2, 8):
        before = harness.api.count(*WRITES)
        harness.engine.submit(workers(count), JobKey(namespace_id, new_key().job_id, 1), ACCESS)
        counts.append(harness.api.count(*WRITES) - before)
    assert counts[0] == counts[1] <= 8


def test_many_runs_are_observed_with_one_list_per_kind(harness: KubernetesHarness):
    keys = [running(harness, new_key()) for _ in range(3)]
    del harness.api.requests[:]
    seen = harness.engine.observe([*keys, new_key()])
    assert sum(one.exists for one in seen.values()) == 3
    asked = ["configmaps", "jobs", "pods", "statefulsets"]
    assert sorted(harness.api.requests) == [("list", plural) for plural in asked]


def coordinated(roles: Iterable[Role] = (Role.CHIEF, Role.WORKER, Role.PS), retries: int = 0) -> TrainingSpec:
    return spec_of(Strategy.PARAMETER_SERVER, roles={role: RoleSpec(1, SMALL) for role in roles}, retries=retries)


def test_the_server_is_asked_before_anything_is_made(harness: KubernetesHarness, key: JobKey):
    harness.engine.submit(spec_of(), new_key(), ACCESS)
    before = len(of_kind(harness, "configmaps"))
    harness.api.refuse("dry-run", "statefulsets", 422)
    with pytest.raises(SpecRejected, match="refuses the job"):
        harness.engine.submit(spec_of(), key, ACCESS)
    assert len(of_kind(harness, "configmaps")) == before


def test_the_preview_is_what_is_made(harness: KubernetesHarness, key: JobKey):
    shown = harness.engine.preview(spec_of(), key)
    harness.engine.submit(spec_of(), key, ACCESS)
    for one in shown:
        plural = "networkpolicies" if one["kind"] == "NetworkPolicy" else f"{one['kind'].lower()}s"
        made = harness.api.store.get((plural, one["metadata"]["namespace"], one["metadata"]["name"]))
        assert set(one) <= set(made)
    assert "a-token" not in str(shown)


# --- its moods -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "error"),
    [
        (401, Misconfigured),
        (403, Misconfigured),
        (409, Unavailable),
        (422, SpecRejected),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
        (NO_ANSWER, Unavailable),
        (HALF_AN_ANSWER, Unavailable),
        (DONE_BUT_UNANSWERED, Unavailable),
    ],
)
def test_every_mood_of_the_server_is_a_typed_error(harness: KubernetesHarness, key: JobKey, what, error):
    harness.api.refuse("patch", "configmaps", what)
    with pytest.raises(error):
        harness.engine.submit(spec_of(), key, ACCESS)
    running(harness, key)


@pytest.mark.parametrize("what", [NO_ANSWER, DONE_BUT_UNANSWERED])
@pytest.mark.parametrize("plural", ["secrets", "jobs", "statefulsets"])
def test_a_submission_that_was_cut_off_is_absent_and_the_next_one_finishes_it(harness, key: JobKey, plural, what):
    harness.api.refuse("patch", plural, what)
    with pytest.raises(Unavailable):
        harness.engine.submit(spec_of(), key, ACCESS)
    is_whole = (plural, what) == ("jobs", DONE_BUT_UNANSWERED)
    assert harness.engine.observe([key])[key].exists is is_whole
    running(harness, key)
    assert len(of_kind(harness, "pods")) == 3


def test_a_submission_that_was_cut_off_is_finished_by_other_settings_too(harness: KubernetesHarness, key: JobKey):
    """What was made already cannot be changed: it is made anew, and nobody's spec is blamed."""
    harness.api.refuse("patch", "jobs", DONE_BUT_UNANSWERED)  # the workers': the chief's is to follow
    with pytest.raises(Unavailable):
        harness.engine.submit(coordinated(), key, ACCESS)
    harness.tasks["image"] = "tasks:2"
    harness.engine = harness.another_process(watch=False)
    with pytest.raises(Left):
        harness.engine.submit(coordinated(), key, ACCESS)
    submit_when_possible(harness, key, coordinated())
    harness.let_begin(key)
    images = {one["spec"]["containers"][0]["image"] for one in of_kind(harness, "pods")}
    assert (images, len(of_kind(harness, "pods"))) == ({"tasks:2"}, 3)


def test_a_workload_that_is_refused_though_the_dry_run_passed_is_the_specs_fault(harness, key: JobKey):
    harness.api.refuse("patch", "statefulsets", 422)
    with pytest.raises(SpecRejected):
        harness.engine.submit(spec_of(), key, ACCESS)


def test_a_run_that_is_whole_is_not_written_again(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    before = harness.api.count(*WRITES, "dry-run")
    harness.engine.submit(spec_of(), key, ACCESS)
    assert harness.api.count(*WRITES, "dry-run") == before


def test_a_submission_that_was_cut_off_and_is_stopped_stays_stopped(harness: KubernetesHarness, key: JobKey):
    harness.api.refuse("patch", "statefulsets", NO_ANSWER)
    with pytest.raises(Unavailable):
        harness.engine.submit(spec_of(), key, ACCESS)
    harness.engine.stop(key, SOON)
    harness.engine.submit(spec_of(), key, ACCESS)
    wait_for(lambda: of_kind(harness, "pods") == [])
    assert of_kind(harness, "jobs") == of_kind(harness, "statefulsets") == []


def test_a_stop_between_two_of_its_writes_is_not_undone(harness: KubernetesHarness, key: JobKey):
    """The stop comes while the submission still makes objects: what came too late goes as well."""
    api, apply = harness.engine._api, harness.engine._api.apply

    def applied(manifest, **more):
        made = apply(manifest, **more)
        if manifest["kind"] == "Secret":
            harness.engine.stop(key, SOON)
        return made

    api.apply = applied
    harness.engine.submit(spec_of(), key, ACCESS)
    seen = wait_until(harness.engine, key, all_ended)
    assert {task.phase for task in seen.tasks} == {TaskPhase.RELEASED}
    assert of_kind(harness, "jobs") == []


@pytest.mark.parametrize("before", ["ConfigMap", "NetworkPolicy", "Secret", "StatefulSet"])
def test_a_run_that_is_finished_while_it_is_submitted_goes_with_all_that_came_too_late(harness, key: JobKey, before):
    """What is made of an owner that goes is garbage, also where it has gone."""
    api, apply = harness.engine._api, harness.engine._api.apply

    def applied(manifest, **more):
        made = apply(manifest, **more)
        if manifest["kind"] == before and not more:
            harness.engine.finish(key)
        return made

    harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    api.apply = applied
    harness.engine.submit(spec_of(), key, ACCESS)
    wait_for(lambda: not any(of_kind(harness, one) for one in OF_RUNS))
    assert harness.engine.observe([key])[key] == ABSENT


def test_a_stop_that_was_cut_off_is_finished_by_the_next(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.api.refuse("delete", "jobs", 500)
    with pytest.raises(Unavailable):
        harness.engine.stop(key, SOON)
    harness.engine.stop(key, SOON)
    wait_until(harness.engine, key, all_ended)


def test_who_ends_a_run_from_two_sides_loses_no_note(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.let_end(key, Role.WORKER, 0, 7)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    sides = [lambda role=role: harness.engine.release(key, [role]) for role in (Role.PS, Role.WORKER)] * 4
    threads = [threading.Thread(target=side) for side in sides]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = wait_until(harness.engine, key, all_ended)
    assert [str(task.phase) for task in seen.tasks] == ["FAILED", "RELEASED", "RELEASED"]
    assert seen.tasks[0].exit_code == 7


# --- what happens on the cluster -------------------------------------------------------------------------------------


def test_a_failed_worker_is_started_again_alone(harness: KubernetesHarness, key: JobKey):
    running(harness, key, spec_of(retries=1))
    harness.let_end(key, Role.WORKER, 1, 1)
    seen = wait_until(
        harness.engine, key, lambda seen: task_in(seen, Role.WORKER, 1).restarts == 1 and all_running(seen)
    )
    assert task_in(seen, Role.WORKER, 0).restarts == 0
    harness.let_end(key, Role.WORKER, 1, 1)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 1, TaskPhase.FAILED))


def all_running(seen) -> bool:
    return all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def test_an_evicted_worker_comes_again_without_a_restart_to_spend(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.cluster.evict(key.name, "worker", 0)
    wait_until(harness.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).restarts == 1 and all_running(seen))


@pytest.mark.parametrize("role", [Role.WORKER, Role.PS])
def test_a_task_that_wrote_more_than_it_may_has_failed_for_good_though_the_cluster_makes_another(
    harness: KubernetesHarness, key: JobKey, role: Role
):
    running(harness, key, spec_of(retries=5))
    harness.cluster.overfill(key.name, role.value, 0)
    seen = wait_until(harness.engine, key, has_phase(role, 0, TaskPhase.FAILED))
    assert task_in(seen, role, 0).reason == "ScratchExceeded"
    assert "exceeds the limit" in task_in(seen, role, 0).message


@pytest.mark.parametrize("name", ["amd.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/hca"])
def test_what_the_operator_did_not_name_is_refused_before_anything_is_made(
    harness: KubernetesHarness, key: JobKey, name: str
):
    greedy = spec_of(roles={Role.WORKER: RoleSpec(1, Resources(extended={name: 4})), Role.PS: RoleSpec(1, SMALL)})
    with pytest.raises(SpecRejected) as refused:
        harness.engine.submit(greedy, key, ACCESS)
    assert [one.field for one in refused.value.problems] == [f"roles.worker.extended.{name}"]
    assert harness.engine.observe([key])[key] == ABSENT


def test_an_evaluator_and_a_chief_are_jobs_of_their_own(harness: KubernetesHarness, key: JobKey):
    roles = {role: RoleSpec(1, SMALL) for role in (Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR)}
    running(harness, key, spec_of(Strategy.PARAMETER_SERVER, roles=roles))
    assert len(of_kind(harness, "jobs")) == 3
    harness.let_end(key, Role.CHIEF, 0, 0)
    wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.SUCCEEDED))


def test_a_workload_that_somebody_deleted_is_said_to_be_stopped_outside(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.api.store.delete(("statefulsets", namespace(harness, key), names.workload_name(key, Role.PS)))
    seen = wait_until(harness.engine, key, lambda seen: task_in(seen, Role.PS, 0).phase.is_ended)
    assert task_in(seen, Role.PS, 0).reason == "StoppedOutside"
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.RUNNING])
def test_the_last_workload_that_somebody_deleted_is_made_anew_before_all_run_and_told_afterwards(
    harness: KubernetesHarness, key: JobKey, phase: Phase
):
    spec = spec_of()
    running(harness, key, spec)
    name = names.workload_name(key, Role.WORKER)
    harness.api.store.delete(("jobs", namespace(harness, key), name))
    seen = harness.engine.observe([key])[key]
    assert not seen.exists
    assert task_in(seen, Role.PS, 0).phase is TaskPhase.RUNNING
    now = datetime(2027, 1, 4, tzinfo=UTC)
    step = plan(Remembered(spec, phase, Wanted.RUN, now, now, now), seen, now)
    if phase is Phase.RUNNING:
        assert isinstance(step, Move)
        assert (step.phase, step.verdict.reason) == (Phase.FAILED, "StoppedOutside")
        assert f"The Job {name} is not on the cluster." in step.verdict.message
        return
    assert step == Submit()
    submit_when_possible(harness, key, spec)
    assert harness.engine.observe([key])[key].exists


def submit_when_possible(harness: KubernetesHarness, key: JobKey, spec) -> None:
    """As the portal does: again, while the cluster still deletes what was there."""
    for _ in range(2000):
        with contextlib.suppress(Left):
            harness.engine.submit(spec, key, ACCESS)
            return
        threading.Event().wait(0.01)
    pytest.fail("something is left for ever")


def test_nothing_is_made_twice_while_the_cluster_still_deletes_what_was_there(key: JobKey):
    """The garbage collector is late: pods of a deleted Job run on, and a deleted owner's Jobs are still there."""
    harness = KubernetesHarness(lives=False)
    try:
        harness.engine.submit(spec_of(), key, ACCESS)
        harness.cluster.step()
        for kind, name in (("jobs", names.workload_name(key, Role.WORKER)), ("configmaps", key.name)):
            harness.api.store.delete((kind, namespace(harness, key), name))
            with pytest.raises(Unavailable, match="still deleting"):
                harness.engine.submit(spec_of(), key, ACCESS)
        for _ in range(4):
            harness.cluster.step()
        harness.engine.submit(spec_of(), key, ACCESS)
        assert harness.engine.observe([key])[key].exists
    finally:
        harness.close()


def test_an_owner_that_somebody_holds_up_is_absent_and_not_submitted_again(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    place = ("configmaps", namespace(harness, key), key.name)
    harness.api.store.merge(place, {"metadata": {"finalizers": ["example.org/held"]}})
    for _ in range(2):
        harness.engine.clean_up(key)
        assert harness.engine.observe([key])[key] == ABSENT
    with pytest.raises(Unavailable, match="still deleting"):
        harness.engine.submit(spec_of(), key, ACCESS)


# --- its life in writes ----------------------------------------------------------------------------------------------


def test_kubeflow_4758_a_whole_life_takes_six_writes_and_leaves_nothing(harness: KubernetesHarness, key: JobKey):
    running(harness, key, workers(2))
    for index in range(2):
        harness.let_end(key, Role.WORKER, index, 0)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 1, TaskPhase.SUCCEEDED))
    harness.engine.finish(key)
    wait_until(harness.engine, key, lambda seen: seen == ABSENT)
    harness.engine.clean_up(key)
    assert harness.api.count(*WRITES) - base_of(harness) == 6
    wait_for(lambda: not any(of_kind(harness, one) for one in OF_RUNS))


@pytest.mark.parametrize("leaves", [{Role.WORKER, Role.PS}, {Role.WORKER, Role.PS, Role.EVALUATOR}])
@pytest.mark.parametrize("is_done", [False, True])
def test_no_set_of_roles_takes_more_than_eight_writes(harness: KubernetesHarness, key: JobKey, leaves, is_done):
    """Nor does it take more where an evaluator has ended before the chief."""
    running(harness, key, coordinated([Role.CHIEF, *leaves]))
    if is_done and Role.EVALUATOR in leaves:
        harness.let_end(key, Role.EVALUATOR, 0, 0)
        wait_until(harness.engine, key, has_phase(Role.EVALUATOR, 0, TaskPhase.SUCCEEDED))
    harness.let_end(key, Role.CHIEF, 0, 0)
    wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.SUCCEEDED))
    harness.engine.finish(key)
    wait_until(harness.engine, key, lambda seen: seen == ABSENT)
    harness.engine.clean_up(key)
    assert harness.api.count(*WRITES) - base_of(harness) == 5 + len(leaves) <= 8
    wait_for(lambda: not any(of_kind(harness, one) for one in OF_RUNS))


def test_a_finished_run_shows_what_has_not_ended_and_is_there_until_all_has(key: JobKey):
    harness = KubernetesHarness(lives=False)
    try:
        harness.engine.submit(coordinated(), key, ACCESS)
        harness.cluster.let_begin(key.name)
        for _ in range(2):
            harness.cluster.step()
        harness.make_stubborn(key, Role.WORKER, 0)
        harness.cluster.end(key.name, "chief", 0, 0)
        for _ in range(2):
            harness.engine.finish(key)
        for _ in range(8):
            harness.cluster.step()
        (left,) = harness.engine.observe([key])[key].tasks
        assert (left.role, left.phase.is_ended, harness.engine.observe([key])[key].exists) == (
            Role.WORKER,
            False,
            False,
        )
        with pytest.raises(Unavailable, match="still deleting"):
            harness.engine.submit(coordinated(), key, ACCESS)
        harness.engine.clean_up(key)
        for _ in range(3):
            harness.cluster.step()
        assert harness.engine.observe([key])[key] == ABSENT
        assert not any(of_kind(harness, one) for one in OF_RUNS)
    finally:
        harness.close()


@pytest.mark.parametrize(("evaluators", "writes"), [(0, 9), (1, 10)])
def test_all_that_a_chief_leaves_running_is_released_with_one_write(harness, key: JobKey, evaluators, writes):
    roles = [Role.CHIEF, Role.WORKER, Role.PS, *[Role.EVALUATOR] * evaluators]
    running(harness, key, coordinated(roles))
    harness.let_end(key, Role.CHIEF, 0, 0)
    wait_until(harness.engine, key, has_phase(Role.CHIEF, 0, TaskPhase.SUCCEEDED))
    harness.engine.release(key, set(roles) - {Role.CHIEF})
    seen = wait_until(harness.engine, key, all_ended)
    assert {task.phase for task in seen.tasks if task.role is not Role.CHIEF} == {TaskPhase.RELEASED}
    assert len(of_kind(harness, "jobs")) == 1
    harness.engine.clean_up(key)
    assert harness.api.count(*WRITES) - base_of(harness) == writes
    wait_for(lambda: not any(of_kind(harness, one) for one in OF_RUNS))


def test_what_is_released_is_never_more_than_was_asked_for(harness: KubernetesHarness, key: JobKey):
    """The token would take the workers along, and what an earlier version made does not belong to it."""
    running(harness, key, coordinated())
    harness.engine.release(key, [Role.PS])
    wait_until(harness.engine, key, has_phase(Role.PS, 0, TaskPhase.RELEASED))
    assert len(of_kind(harness, "jobs")) == 2
    assert len(of_kind(harness, "secrets")) == 1
    old = running(harness, new_key(), coordinated())
    owner = harness.api.store.get(("configmaps", namespace(harness, old), old.name))["metadata"]
    for plural, role in (("jobs", Role.WORKER), ("statefulsets", Role.PS)):
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": old.name, "uid": owner["uid"]}
        place = (plural, namespace(harness, old), names.workload_name(old, role))
        harness.api.store.merge(place, {"metadata": {"ownerReferences": [reference]}})
    harness.engine.release(old, [Role.PS, Role.WORKER])
    wait_until(harness.engine, old, has_phase(Role.WORKER, 0, TaskPhase.RELEASED))
    assert not any(one["metadata"]["labels"][names.RUN] == old.name for one in of_kind(harness, "statefulsets"))


def test_what_the_garbage_collector_has_not_reached_makes_no_pods_after_the_tidying(key: JobKey):
    harness = KubernetesHarness(lives=False)
    try:
        roles = (Role.CHIEF, Role.WORKER, Role.EVALUATOR)
        harness.engine.submit(coordinated(roles, retries=3), key, ACCESS)
        harness.cluster.let_begin(key.name)
        for _ in range(2):
            harness.cluster.step()
        for role in roles:  # the others fail because the chief is gone
            harness.cluster.end(key.name, role.value, 0, int(role is not Role.CHIEF))
        harness.engine.release(key, [Role.EVALUATOR, Role.WORKER])
        harness.api.store.collect_garbage = lambda: None
        assert of_kind(harness, "secrets") == []
        assert len(of_kind(harness, "jobs")) == 3
        harness.engine.clean_up(key)
        for _ in range(3):
            harness.cluster.step()
        assert of_kind(harness, "jobs") == of_kind(harness, "statefulsets") == of_kind(harness, "pods") == []
    finally:
        harness.close()


def test_a_release_that_was_cut_off_is_finished_by_the_next(harness: KubernetesHarness, key: JobKey):
    running(harness, key, coordinated())
    harness.api.refuse("delete", "secrets", 500)
    with pytest.raises(Unavailable):
        harness.engine.release(key, [Role.PS, Role.WORKER])
    harness.engine.release(key, [Role.PS, Role.WORKER])
    wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.RELEASED))


def test_a_single_task_takes_four_writes(harness: KubernetesHarness, key: JobKey):
    spec = spec_of(Strategy.SINGLE, roles={Role.WORKER: RoleSpec(1, SMALL)})
    running(harness, key, spec)
    harness.let_end(key, Role.WORKER, 0, 0)
    wait_until(harness.engine, key, all_ended)
    harness.engine.clean_up(key)
    assert harness.api.count(*WRITES) - base_of(harness) == 4


def base_of(harness: KubernetesHarness) -> int:
    """The writes that made the namespace, its two policies among them; a third one is the run's."""
    of_a_namespace = ("namespaces", "serviceaccounts", "services", "resourcequotas", "limitranges")
    return 2 + sum(verb in WRITES and what in of_a_namespace for verb, what in harness.api.requests)


def test_a_stop_with_another_grace_or_a_second_one_tells_the_pods_too(harness: KubernetesHarness, key: JobKey):
    """Else the cluster ends the pods with the time that the spec gives, as it deletes what made them."""
    running(harness, key)
    harness.engine.stop(key, spec_of().time_to_end)
    assert harness.api.count("deletecollection") == 0
    harness.engine.stop(key, spec_of().time_to_end)
    assert harness.api.count("deletecollection") == 1
    other = running(harness, new_key())
    harness.engine.stop(other, timedelta(seconds=600))
    assert harness.api.count("deletecollection") == 2


# --- what it leaves --------------------------------------------------------------------------------------------------


def test_the_owners_end_is_the_end_of_everything(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.api.store.delete(("configmaps", namespace(harness, key), key.name))
    assert harness.engine.observe([key])[key] == ABSENT
    wait_for(lambda: not any(of_kind(harness, one) for one in ("pods", "jobs", "statefulsets", "secrets")))


def test_kubeflow_4758_nothing_is_left_after_tidy(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    harness.make_stubborn(key, Role.WORKER, 0)
    harness.engine.clean_up(key)
    assert of_kind(harness, "pods") == of_kind(harness, "configmaps") == []
    wait_for(lambda: not any(of_kind(harness, one) for one in OF_RUNS))


def test_a_submission_that_comes_late_does_not_bring_a_removed_namespace_back(harness: KubernetesHarness, key: JobKey):
    for _ in range(2):
        with pytest.raises(EngineNamespaceMissing, match=namespace(harness, key)):
            KubernetesEngine.submit(harness.engine, spec_of(), key, ACCESS)
        harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
        harness.engine.remove(key.namespace_id)
    assert of_kind(harness, "namespaces") == []


def test_its_own_namespace_is_restricted(harness: KubernetesHarness, key: JobKey):
    harness.engine.submit(spec_of(), key, ACCESS)
    (made,) = of_kind(harness, "namespaces")
    assert made["metadata"]["name"] == namespace(harness, key)
    assert made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_tail_is_the_end_of_the_containers_own_output(harness: KubernetesHarness, key: JobKey):
    running(harness, key)
    (pod,) = [one for one in of_kind(harness, "pods") if one["metadata"]["name"].endswith("worker-1-0x")]
    harness.api.store.logs[pod["metadata"]["namespace"], pod["metadata"]["name"]] = "one\ntwo\nthree\n"
    assert harness.engine.tail(key, Role.WORKER, 1, 2) == ["two", "three"]
    assert harness.engine.tail(key, Role.WORKER, 0, 2) == []


def namespace(harness: KubernetesHarness, key: JobKey) -> str:
    return names.namespace_name(key.namespace_id, harness.engine.options)


# --- watching --------------------------------------------------------------------------------------------------------


@pytest.fixture
def heard(harness: KubernetesHarness, key: JobKey) -> Iterator[list[JobKey]]:
    """What a reader has heard so far, of a run that is there and quiet."""
    running(harness, key)
    watching = Watching(harness.engine._api, harness.engine.options.namespace_prefix, QUICK)
    so_far: list[JobKey] = []
    reader = threading.Thread(target=lambda: so_far.extend(watching.keys()))
    reader.start()
    wait_for(lambda: harness.api.count("watch") == 4 and so_far)
    yield so_far
    watching.close()
    reader.join()


def test_a_quiet_cluster_is_listed_once_and_then_only_watched(harness: KubernetesHarness, heard):
    before = harness.api.count("list")
    threading.Event().wait(0.5)
    assert (harness.api.count("list"), harness.api.count("watch")) == (before, 4)


@pytest.mark.parametrize("mood", [410, 429, 500, NO_ANSWER, HALF_AN_ANSWER])
def test_a_watch_outlives_every_mood_of_the_server(harness: KubernetesHarness, heard, key: JobKey, mood):
    for plural in ("pods", "jobs", "statefulsets", "configmaps"):
        harness.api.refuse("watch", plural, mood, times=2)
    harness.api.end_watches()
    wait_for(lambda: all(fault.times == 0 for fault in harness.api.faults))
    threading.Event().wait(0.2)
    before = len(heard)
    harness.let_end(key, Role.WORKER, 0, 0)
    wait_for(lambda: len(heard) > before)
    assert set(heard) == {key}


def test_a_version_that_is_too_old_is_listed_anew(harness: KubernetesHarness, heard):
    before, lists = len(heard), harness.api.count("list")
    harness.api.refuse("watch", "pods", 410)
    harness.api.end_watches()
    wait_for(lambda: harness.api.count("list") > lists and len(heard) > before)


def test_a_stream_that_ends_is_taken_up_where_it_ended(harness: KubernetesHarness, heard, key: JobKey):
    before, lists = len(heard), harness.api.count("list")
    harness.api.end_watches()
    wait_for(lambda: harness.api.count("watch") >= 8)
    harness.let_end(key, Role.WORKER, 0, 0)
    wait_for(lambda: len(heard) > before)
    assert harness.api.count("list") == lists


def test_the_fake_refuses_what_a_cluster_would(harness: KubernetesHarness, key: JobKey):
    harness.engine.submit(spec_of(), key, ACCESS)
    (job, *_) = of_kind(harness, "jobs")
    place = ("jobs", namespace(harness, key), job["metadata"]["name"])
    job["spec"]["template"]["spec"]["containers"][0]["securityContext"]["privileged"] = True
    with pytest.raises(Refusal, match="PodSecurity"):
        harness.api.store.apply(place, job, "somebody", False)
