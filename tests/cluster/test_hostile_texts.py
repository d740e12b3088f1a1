"""Texts that break templates, shells and YAML: what the engine makes of them passes admission, and they arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.account import shaped
from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.reach import Cluster
from tests.contract.engine_harness import ACCESS, SMALL, has_phase, spec_of, wait_until
from yardmaster.engines.base import TaskAccess
from yardmaster.errors import SpecRejected
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import MODEL_SERVER
from yardmaster.job.spec import DatasetInput, Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.strategy import ROLES, is_service, only_serves
from yardmaster.lifecycle.phases import ABSENT, TaskPhase
from yardmaster.queueing.ledger import Quota

pytestmark = pytest.mark.cluster

ODD = (
    "", " ", "'", '"', "`id`", "\\", "\\n", "a\nb", "a\r\nb", "\t", "\x1b[31m", "\u202etxt", "\ufeff", "😀𝔘", "e\u0301",
    "$HOME", "$(HOME)", "$$(HOME)", "$$", "$(YARDMASTER_URL)", "${HOME}", "%s%d%(x)s", "{0}{x!r}",
    "{{ .Values.x }}", "{% raw %}", "{{", "yes", "null", "~", "0x10", "1e3", "2027-01-04", "- a: b", "&a *a", "*a",
    "!!python/object/apply:os.system [id]", "# none", "a: |\n  b", "---\na: b\n...", "key: {a: [b]}", "<script>",
    "x" * 4000,
)  # fmt: skip
ENVIRONMENT = {f"ODD_{number}": text for number, text in enumerate(ODD)}
ODD_PATH = "/no/$(HOME)/$$(HOME)/'\"{{ x }}/a: b"
ASKED = Resources(cpu=0.1, memory=1 << 30, gpus=1, extended={"example.com/fpga": 2, "rdma/hca_shared.v1": 1})
EVERYTHING: dict[str, Any] = {
    "gpu_resource": "example.com/gpu",
    "node_selector": {"example.com/pool": "yes", "kubernetes.io/os": "linux"},
    "tolerations": [
        {"operator": "Exists"},
        {"key": "example.com/gpu", "operator": "Equal", "value": "true", "effect": "NoExecute", "tolerationSeconds": 5},
    ],
    "image_pull_secrets": ["one", "two.example"],
    "runner_path": ODD_PATH,
    "spark_image": "a.example/spark:1",
    "scratch": "1Gi",
    "service_domain": "cluster.local",
    "portal_url": "http://192.0.2.1:8080/$(HOME)?a='\"{{ b }}&c=d",
    "port": 65535,
    "user": 2_000_000_000,
}
ALLOWED = {"extended_resources": ["example.com/fpga", "rdma/*"]}
OPTIONS = {
    "plain": {},
    "everything": EVERYTHING,
    "its own runner image": {**EVERYTHING, "runner_image": "a.example/b:1"},
}

TELL = """
import json, os, sys
odd = {name: value for name, value in os.environ.items() if name.startswith("ODD_")}
print(json.dumps({"arguments": sys.argv[1:], "environment": odd, "path": os.environ["PYTHONPATH"]}))
"""


def hostile_spec(strategy: Strategy, **changes: Any) -> TrainingSpec:
    roles = {role: RoleSpec(1 if rule.most == 1 else 2, ASKED) for role, rule in ROLES[strategy].items()}
    script: dict[str, Any] = {"arguments": ODD, "environment": ENVIRONMENT, "entry_point": "it's $(HOME) {{ a }} 😀.py"}
    if only_serves(strategy):
        script = {"code_version": None, "entry_point": ""}
    if is_service(strategy):
        script |= {"program": MODEL_SERVER, "options": {"name": "it's $(HOME) {{ a }} 😀", "version": "1"}}
        script["inputs"] = (DatasetInput(None, model_version=new_id()),)
    name = "a: 'job' \"{{ $(HOME) }}\" 😀 \\ # &x *x !!y"
    return spec_of(strategy, **{"name": name, "roles": roles, **script, **changes})


@pytest.fixture(scope="module")
def place(cluster: Cluster, on_cluster: ClusterHarness) -> JobKey:
    """Of a run in a namespace that is shaped, and so `restricted`."""
    key = on_cluster.new_key()
    shaped(on_cluster.engine, key.namespace_id, Quota(), ACCESS.portal_url)
    return key


def judge(cluster: Cluster, one: dict[str, Any]) -> dict[str, Any]:
    return cluster.apply(one, "--dry-run=server")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("strategy", Strategy)
def test_whatever_a_spec_says_its_objects_and_pods_pass_admission_as_they_are(
    cluster: Cluster, on_cluster: ClusterHarness, place: JobKey, strategy: Strategy, options: str
):
    spec = hostile_spec(strategy)
    assert check_spec(spec) == []
    for one in on_cluster.new_engine(**ALLOWED, **OPTIONS[options]).preview(spec, place):
        assert judge(cluster, one)["metadata"]["name"] == one["metadata"]["name"]
        if "template" not in one.get("spec", {}):
            continue
        template = one["spec"]["template"]
        metadata = {
            "name": "shown",
            "namespace": one["metadata"]["namespace"],
            "labels": template["metadata"]["labels"],
        }
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        made, asked = judge(cluster, pod)["spec"], template["spec"]
        for kind in ("containers", "initContainers"):
            for found, wanted in zip(made.get(kind, ()), asked.get(kind, ()), strict=True):
                assert found["command"] == wanted["command"]
                assert found["resources"]["limits"].keys() == wanted["resources"]["limits"].keys()
                assert [(each["name"], each.get("value", "")) for each in found.get("env", ())] == [
                    (each["name"], each.get("value", "")) for each in wanted.get("env", ())
                ]
        assert made.get("nodeSelector", {}) == asked.get("nodeSelector", {})
        assert [each for each in asked.get("tolerations", ()) if each not in made["tolerations"]] == []


@pytest.mark.parametrize("resource", ["a..b/c", "requests.a.example/b"])
@pytest.mark.parametrize("role", [Role.WORKER, Role.PS])
def test_a_resource_that_kubernetes_cannot_name_is_the_users_to_change_and_leaves_nothing(
    on_cluster: ClusterHarness, place: JobKey, role: Role, resource: str
):
    odd = RoleSpec(1, Resources(cpu=0.1, memory=64 << 20, extended={resource: 1}))
    spec = spec_of(roles={Role.WORKER: RoleSpec(1, SMALL), Role.PS: RoleSpec(1, SMALL), role: odd})
    key = on_cluster.new_key()
    with pytest.raises(SpecRejected) as caught:
        on_cluster.new_engine(extended_resources=["*/*"]).submit(spec, key, ACCESS)
    assert any(resource in problem.message for problem in caught.value.problems)
    assert on_cluster.engine.observe([key])[key] == ABSENT


@pytest.fixture
def key(on_cluster: ClusterHarness) -> Iterator[JobKey]:
    made, token = on_cluster.new_key(), on_cluster.portal.token
    yield made
    on_cluster.engine.clean_up(made)
    on_cluster.order_stand_in()
    on_cluster.portal.token = token


def test_every_text_arrives_in_the_task_as_it_was_sent(on_cluster: ClusterHarness, key: JobKey):
    """The user's by the runner, for which `$$` is a dollar; the operator's and the token by the cluster."""
    portal = on_cluster.portal
    portal.token = "ymt.$(HOME)$$(HOME)'\"{{x}}\\n#:&*!"
    portal.orders(TELL, spec_arguments=list(ODD), spec_environment=ENVIRONMENT)
    engine = on_cluster.new_engine(runner_path=f"/opt/yardmaster:{ODD_PATH.replace(':', '')}")
    spec = spec_of(Strategy.SINGLE, roles={Role.WORKER: RoleSpec(1, SMALL)})
    engine.submit(spec, key, TaskAccess(ACCESS.portal_url, portal.token))
    wait_until(engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED), 60)
    (said,) = [json.loads(line) for line in portal.lines() if line.startswith(b"{")]
    assert said["arguments"] == [one.replace("$$", "$") for one in ODD]
    assert said["environment"] == {name: text.replace("$$", "$") for name, text in ENVIRONMENT.items()}
    assert said["path"].endswith(ODD_PATH.replace(":", ""))
