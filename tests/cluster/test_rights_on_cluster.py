"""The portal's account as deploy/kubernetes gives it: it is enough for all that the portal does, and no more.

Every take-over is tried twice: with the account's own rights, and with those of an administrator bound to it, where
only the policy stands in the way. All are dry runs: the server decides, and nothing comes of what it would let
through.
"""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.cluster.account import BY_POLICY, Account, may, namespace_of, portal_account, shaped
from tests.cluster.pods import pod
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.contract.engine_harness import ACCESS, spec_of, wait_until
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import EngineNamespaceMissing, Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.queueing.ledger import Quota

pytestmark = pytest.mark.cluster

URL = ACCESS.portal_url
QUOTA = Quota(cpu=0.5, memory=256 << 20, gpus=0)
TINY = Resources(cpu=0.05, memory=64 << 20)
DRY = "--dry-run=server"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def account(cluster: Cluster) -> Iterator[Account]:
    """Beside it, in its home, which is no namespace that it made, a pod of others."""
    with portal_account(cluster, f"ym-rights-{secrets.token_hex(2)}-") as made:
        cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", made.home, "--timeout=30s")
        cluster.apply(pod(cluster, made.home, "sleeper", "import time; time.sleep(600)"))
        yield made


@pytest.fixture(scope="module")
def engine(account: Account) -> KubernetesEngine:
    return account.engine()


@pytest.fixture(scope="module")
def own(engine: KubernetesEngine) -> str:
    """A namespace that the portal made."""
    namespace_id = new_id()
    shaped(engine, namespace_id, QUOTA, URL)
    return namespace_name(namespace_id, engine.options)


@pytest.fixture
def all_rights(cluster: Cluster, account: Account) -> Iterator[None]:
    name = f"{account.home}-everything"
    words = ("--clusterrole=cluster-admin", f"--serviceaccount={account.home}:portal")
    cluster.kubectl("create", "clusterrolebinding", name, *words)
    try:
        wait_for("the rights", lambda: may(account, "patch", "clusterroles", "kube-system"), 20)
        yield
    finally:
        cluster.kubectl("delete", "clusterrolebinding", name)
    wait_for("their end", lambda: not may(account, "patch", "clusterroles", "kube-system"), 20)


# --- enough ----------------------------------------------------------------------------------------------------------


def test_they_are_enough_for_the_whole_life_of_a_namespace_and_a_job(cluster: Cluster, engine: KubernetesEngine):
    namespace_id = new_id()
    with pytest.raises(Unavailable, match="just created"):
        engine.shape(namespace_id, QUOTA, URL)
    shaped(engine, namespace_id, QUOTA, URL)
    key = JobKey(namespace_id, new_id(), 1)
    roles = {role: RoleSpec(1, TINY) for role in (Role.CHIEF, Role.WORKER, Role.PS)}
    engine.submit(spec_of(Strategy.PARAMETER_SERVER, roles=roles, retries=1), key, ACCESS)
    wait_until(engine, key, lambda seen: all(one.phase is TaskPhase.RUNNING for one in seen.tasks), 60)
    assert engine.capacity().total.cpu > 0
    assert isinstance(engine.tail(key, Role.WORKER, 0, 5), list)
    own = namespace_name(namespace_id, engine.options)
    wait_for(
        "runners that hear SIGTERM",
        lambda: all(_hears_sigterm(cluster, own, one) for one in cluster.names("pods", "--namespace", own)),
    )
    engine.release(key, [Role.WORKER, Role.PS])
    wait_until(engine, key, lambda seen: sum(one.phase is TaskPhase.RELEASED for one in seen.tasks) == 2, 60)
    engine.stop(key, timedelta(seconds=1))
    engine.clean_up(key)
    wait_for("the end of the namespace", lambda: engine.remove(namespace_id).gone, 90)


def _hears_sigterm(cluster: Cluster, namespace: str, pod_name: str) -> bool:
    """The first process of a container loses what it has not yet asked for. With the little that it may use here, a
    runner takes seconds to begin."""
    said = cluster.kubectl("exec", pod_name, "--namespace", namespace, "--", "grep", "SigCgt", "/proc/1/status")
    return bool(int(said.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_a_namespace_that_was_deleted_is_missed_by_a_submission_and_made_again(cluster: Cluster, engine):
    """Its rights went with it, so that the server speaks of missing rights, not of a missing namespace."""
    namespace_id = new_id()
    shaped(engine, namespace_id, QUOTA, URL)
    engine.submit(spec_of(roles={Role.WORKER: RoleSpec(1, TINY)}), JobKey(namespace_id, new_id(), 1), ACCESS)
    name = namespace_name(namespace_id, engine.options)
    cluster.remove_namespace(name)
    cluster.kubectl("wait", "--for=delete", f"namespace/{name}", "--timeout=50s")
    key = JobKey(namespace_id, new_id(), 1)
    with pytest.raises(EngineNamespaceMissing):
        engine.submit(spec_of(roles={Role.WORKER: RoleSpec(1, TINY)}), key, ACCESS)
    shaped(engine, namespace_id, QUOTA, URL)
    engine.submit(spec_of(roles={Role.WORKER: RoleSpec(1, TINY)}), key, ACCESS)
    engine.clean_up(key)


def test_what_was_taken_off_a_namespace_is_put_back(cluster: Cluster, engine: KubernetesEngine):
    namespace_id = new_id()
    shaped(engine, namespace_id, QUOTA, URL)
    name = namespace_name(namespace_id, engine.options)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce-")
    cluster.kubectl("delete", "networkpolicy", "default-deny", "--namespace", name)
    assert sorted(engine.shape(namespace_id, QUOTA, URL)) == [f"Namespace/{name}", "NetworkPolicy/default-deny"]
    assert list(engine.shape(namespace_id, QUOTA, URL)) == []


# --- and no more -----------------------------------------------------------------------------------------------------


def privileged_pod(account: Account, namespace: str) -> dict[str, Any]:
    made = pod(account.cluster, namespace, "taker", "pass")
    made["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return made | {"metadata": {"name": "taker", "namespace": namespace}}


def job(account: Account, namespace: str, *, privileged: bool) -> dict[str, Any]:
    template = (privileged_pod if privileged else plain_pod)(account, namespace)
    metadata = {"name": "taker", "namespace": namespace}
    spec = {"template": {"spec": template["spec"]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def plain_pod(account: Account, namespace: str) -> dict[str, Any]:
    return pod(account.cluster, namespace, "taker", "pass")


def binding(account: Account, namespace: str, role: str, *accounts: str) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "namespace": account.home, "name": one} for one in accounts]
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "taker", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }


def bound_everywhere(account: Account) -> dict[str, Any]:
    made = binding(account, "", "cluster-admin", "portal")
    return {**made, "kind": "ClusterRoleBinding", "metadata": {"name": "taker"}}


def create(made: Callable[[Account, str], dict[str, Any]]) -> Callable[[Account, str], str]:
    return lambda account, own: account.cluster.kubectl("create", DRY, "-f", "-", given=made(account, own))


def label(namespace: str, **labels: str | None) -> Callable[[Account, str], str]:
    """Set, or taken off where the value is None; of the namespace that was made, where `namespace` is empty."""
    names = {"enforce": "pod-security.kubernetes.io/enforce", "managed_by": "app.kubernetes.io/managed-by"}
    patch = json.dumps({"metadata": {"labels": {names.get(name, name): value for name, value in labels.items()}}})
    return lambda account, own: account.cluster.kubectl(
        "patch", "namespace", namespace or own, "--type=merge", "-p", patch, DRY
    )


def kubectl(*words: str) -> Callable[[Account, str], str]:
    return lambda account, own: account.cluster.kubectl(*words)


def evict(account: Account, own: str) -> str:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "sleeper"}}
    path = f"/api/v1/namespaces/{account.home}/pods/sleeper/eviction?dryRun=All"
    return account.cluster.kubectl("create", "--raw", path, "-f", "-", given=eviction)


def delete_pods(account: Account, own: str) -> str:
    return account.cluster.kubectl("delete", "--raw", f"/api/v1/namespaces/{account.home}/pods?dryRun=All")


def escalate(account: Account, own: str) -> str:
    rules = json.dumps({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]})
    return account.cluster.kubectl("patch", "clusterrole", account.role, "--type=merge", "-p", rules, DRY)


def managed(name: str, **labels: str) -> dict[str, Any]:
    return namespace_of(name, **({"managed_by": "yardmaster", "enforce": "restricted"} | labels))


TAKE_OVERS: dict[str, Callable[[Account, str], str]] = {
    "a privileged pod in kube-system": create(lambda account, own: privileged_pod(account, "kube-system")),
    "a privileged job in kube-system": create(lambda account, own: job(account, "kube-system", privileged=True)),
    "a job in default": create(lambda account, own: job(account, "default", privileged=False)),
    "cluster-admin in its own namespace": create(lambda account, own: binding(account, own, "cluster-admin", "portal")),
    "cluster-admin everywhere": create(lambda account, own: bound_everywhere(account)),
    "its role in kube-system": create(lambda account, own: binding(account, "kube-system", account.role, "portal")),
    "its role in default": create(lambda account, own: binding(account, "default", account.role, "portal")),
    "its role in its home": create(lambda account, own: binding(account, account.home, account.role, "portal")),
    "its role for another": create(lambda account, own: binding(account, own, account.role, "default")),
    "its role for another, too": create(lambda account, own: binding(account, own, account.role, "portal", "default")),
    "its role for no one": create(lambda account, own: binding(account, own, account.role)),
    "more rights in its role": escalate,
    "a namespace with another prefix": create(lambda account, own: managed(f"other-{account.prefix}1")),
    "a namespace without the label": create(
        lambda account, own: namespace_of(f"{account.prefix}1", enforce="restricted")
    ),
    "a privileged namespace": create(lambda account, own: managed(f"{account.prefix}1", enforce="privileged")),
    "a namespace of old rules": create(lambda account, own: managed(f"{account.prefix}1", enforce_version="v1.0")),
    "a namespace without Pod Security": create(
        lambda account, own: namespace_of(f"{account.prefix}1", managed_by="yardmaster")
    ),
    "a label of kube-system": label("kube-system", taken="over"),
    "kube-system as its own": label("kube-system", managed_by="yardmaster", enforce="restricted"),
    "its own namespace privileged": label("", enforce="privileged"),
    "its own namespace without Pod Security": label("", enforce=None),
    "its own namespace as another's": label("", managed_by="somebody"),
    "the end of a namespace elsewhere": lambda account, own: account.cluster.kubectl(
        "delete", "namespace", account.home, DRY
    ),
    "the end of pods elsewhere": delete_pods,
    "an eviction elsewhere": evict,
    "a configmap elsewhere": kubectl("create", "configmap", "taker", "--namespace", "kube-system", DRY),
    "a token elsewhere": kubectl("create", "serviceaccount", "taker", "--namespace", "kube-system", DRY),
    "a node": kubectl("patch", "nodes", "devnode", "--type=merge", "-p", '{"metadata":{"labels":{"a":"b"}}}', DRY),
}
READS = {
    "secrets elsewhere": kubectl("get", "secrets", "--namespace", "kube-system"),
    "secrets everywhere": kubectl("get", "secrets", "--all-namespaces"),
    "secrets of its own": lambda account, own: account.cluster.kubectl("get", "secrets", "--namespace", own),
    "accounts elsewhere": kubectl("get", "serviceaccounts", "--namespace", "kube-system"),
    "another's token": kubectl("create", "token", "default", "--namespace", "kube-system"),
    "the policy's end": lambda account, own: account.cluster.kubectl(
        "delete", "validatingadmissionpolicybinding", f"{account.home}-portal", DRY
    ),
}
BY_THE_SERVER = ("forbidden", "Forbidden")
"""A refusal that is about rights or admission, and not about a path or a name that is wrong."""


@pytest.mark.parametrize("name", [*TAKE_OVERS, *READS])
def test_a_take_over_is_refused(account: Account, own: str, name: str):
    with pytest.raises(Refused) as refused:
        {**TAKE_OVERS, **READS}[name](account, own)
    assert any(word in str(refused.value) for word in BY_THE_SERVER), refused.value


def test_with_all_rights_the_policy_still_refuses_each(account: Account, own: str, all_rights: None):
    let_through = {}
    for name, attempt in TAKE_OVERS.items():
        try:
            let_through[name] = attempt(account, own)
        except Refused as refused:
            if BY_POLICY not in str(refused):
                let_through[name] = str(refused)
    assert let_through == {}


def test_the_policy_is_about_no_other_account(cluster: Cluster):
    """An administrator does all of it."""
    cluster.kubectl("create", "configmap", "of-an-administrator", "--namespace", "kube-system", DRY)
    cluster.kubectl("create", DRY, "-f", "-", given=namespace_of("yardmaster-of-an-administrator"))


def test_what_it_does_every_day_passes_the_policy(account: Account, own: str):
    """So that a refusal above is not just one of everything."""
    account.cluster.kubectl("create", DRY, "-f", "-", given=managed(f"{account.prefix}1"))
    account.cluster.kubectl("create", DRY, "-f", "-", given=binding(account, own, account.role, "portal"))
    account.cluster.kubectl("create", "configmap", "a-run", "--namespace", own, DRY)
    label("", note="ours")(account, own)
    account.cluster.kubectl("delete", "namespace", own, DRY)
