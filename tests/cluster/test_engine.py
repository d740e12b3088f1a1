"""The Kubernetes engine on a real cluster: what only a real API server, scheduler and kubelet can say."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.cluster.account import Account, shaped
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, InItsPlace, all_ended, new_key, spec_of, task_in, wait_until
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy
from yardmaster.job.strategy import ROLES
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.image_words import NOT_PULLED
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase, TaskState
from yardmaster.lifecycle.success import job_verdict
from yardmaster.queueing.ledger import Quota

pytestmark = pytest.mark.cluster

TINY = Resources(cpu=0.05, memory=128 << 20)
EVERY_ROLE = {role: RoleSpec(1, TINY) for role in ROLES[Strategy.PARAMETER_SERVER]}
SOON = timedelta(seconds=1)
PATIENCE = 60.0


@pytest.fixture
def engine(account: Account) -> KubernetesEngine:
    tasks = {"image": account.cluster.probe_image, **account.options}
    return InItsPlace(kubeconfig=account.cluster.kubeconfig, tasks=tasks)


@pytest.fixture
def key(cluster: Cluster, engine: KubernetesEngine) -> Iterator[JobKey]:
    made = new_key()
    yield made
    engine.clean_up(made)
    name = namespace_name(made.namespace_id, engine.options)
    cluster.remove_namespace(name)


def all_run(seen) -> bool:
    return all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def held_up(seen) -> bool:
    return any(task.reason for task in seen.tasks)


def small_spec(**changes):
    return spec_of(roles={Role.WORKER: RoleSpec(2, TINY), Role.PS: RoleSpec(1, TINY)}, **changes)


def test_every_role_runs_restricted_and_finds_the_others_by_name(cluster: Cluster, engine, key: JobKey):
    engine.submit(spec_of(Strategy.PARAMETER_SERVER, roles=EVERY_ROLE), key, ACCESS)
    wait_until(engine, key, all_run, PATIENCE)
    look = (
        "import json, os, socket; c = json.loads(os.environ['YARDMASTER_CLUSTER']);"
        "print(json.dumps({r: [socket.gethostbyname(h.split(':')[0]) for h in hs] for r, hs in c.items()}),"
        " os.getuid(), os.environ['YARDMASTER_INDEX'], open(os.environ['YARDMASTER_TOKEN_FILE']).read())"
    )
    name = namespace_name(key.namespace_id, engine.options)
    pod = f"{key.name}-ps-0"
    said = cluster.kubectl("exec", pod, "--namespace", name, "--", "python3", "-c", look)
    found, user, index, token = said.rsplit(maxsplit=3)
    assert {role: len(addresses) for role, addresses in json.loads(found).items()} == {"chief": 1, "worker": 1, "ps": 1}
    assert (user, index, token) == ("10001", "0", ACCESS.token)


def test_release_stop_and_tidy_leave_their_facts_and_then_nothing(cluster: Cluster, engine, key: JobKey):
    engine.submit(small_spec(), key, ACCESS)
    wait_until(engine, key, all_run, PATIENCE)
    engine.release(key, [Role.PS])
    seen = wait_until(engine, key, lambda seen: task_in(seen, Role.PS, 0).phase is TaskPhase.RELEASED, PATIENCE)
    assert task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING
    engine.stop(key, SOON)
    wait_until(engine, key, all_ended, PATIENCE)
    engine.clean_up(key)
    assert engine.observe([key])[key] == ABSENT
    selector = f"yardmaster/run={key.name}"
    left = ("get", "all,cm,secret", "--all-namespaces", "-l", selector, "-o", "name")
    wait_for("nothing is left", lambda: not cluster.kubectl(*left).strip())


def test_after_tidy_the_same_run_may_come_again_at_once(engine, key: JobKey):
    for _ in range(2):
        engine.submit(small_spec(), key, ACCESS)
        wait_until(engine, key, all_run, PATIENCE)
        engine.clean_up(key)


def test_trainer_2001_an_image_that_does_not_exist_is_said(account: Account, key: JobKey):
    tasks = {"image": "localhost/no/such-image:1", **account.options}
    engine = InItsPlace(kubeconfig=account.cluster.kubeconfig, tasks=tasks)
    engine.submit(small_spec(), key, ACCESS)
    # Before that, a new namespace may have said that it was not ready yet.
    seen = wait_until(engine, key, lambda seen: {task.reason for task in seen.tasks} <= NOT_PULLED, PATIENCE)
    assert all("localhost/no/such-image:1" in task.message for task in seen.tasks)
    assert engine.tail(key, Role.WORKER, 0, 10) == []


def others(seen: Observation) -> list[TaskState]:
    """All but the parameter servers, which have no deadline."""
    return [task for task in seen.tasks if task.role is not Role.PS]


def test_the_cluster_ends_what_the_portal_did_not_and_its_own_words_say_so(account: Account, key: JobKey):
    """As of a portal that is away: the run is not observed or stopped until its time is over for the cluster, too."""
    tasks = {"image": account.cluster.probe_image, **account.options, "deadline_margin": 60}
    engine = InItsPlace(kubeconfig=account.cluster.kubeconfig, tasks=tasks)
    engine.submit(replace(small_spec(), max_runtime=timedelta(seconds=1)), key, ACCESS)
    wait_until(engine, key, all_run, PATIENCE)  # their time is over for the cluster after more than that
    seen = wait_until(engine, key, lambda seen: all(task.phase.is_ended for task in others(seen)), 2 * PATIENCE)
    ended = others(seen)
    assert {(task.phase, task.reason) for task in ended} == {(TaskPhase.FAILED, "DeadlineExceeded")}
    verdict = job_verdict(small_spec(), seen)
    assert (verdict.reason, verdict.blame) == ("DeadlineExceeded", REASONS["DeadlineExceeded"].blame)


def test_what_no_node_can_take_says_why(engine, key: JobKey):
    engine.submit(spec_of(Strategy.SINGLE, roles={Role.WORKER: RoleSpec(1, Resources(cpu=4000))}), key, ACCESS)
    (task,) = wait_until(engine, key, held_up, PATIENCE).tasks
    assert task.reason == "Unschedulable"
    assert "Insufficient cpu" in task.message


def test_notebooks_64_a_quota_that_refuses_pods_is_said(cluster: Cluster, engine, key: JobKey):
    name = namespace_name(key.namespace_id, engine.options)
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)
    quota = {"metadata": {"name": "tight", "namespace": name}, "spec": {"hard": {"limits.memory": "150Mi"}}}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    cluster.kubectl("wait", "--for=jsonpath={.status.hard.limits\\.memory}", "resourcequota/tight", "--namespace", name)
    engine.submit(spec_of(Strategy.SINGLE, roles={Role.WORKER: RoleSpec(1, Resources(memory=1 << 30))}), key, ACCESS)
    (task,) = wait_until(engine, key, held_up, PATIENCE).tasks
    assert task.reason == "QuotaRefused"
    assert "exceeded quota" in task.message


def test_changes_are_heard_within_seconds(engine, key: JobKey):
    changes = engine.changes()
    engine.submit(small_spec(), key, ACCESS)
    begun = time.monotonic()
    while next(changes) != key:
        assert time.monotonic() - begun < 20
