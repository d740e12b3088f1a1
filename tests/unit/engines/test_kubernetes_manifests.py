"""The objects of a run: few, restricted, named by ids alone, and with no word of a user in them."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings

from tests.fakes.kubernetes_store import violations
from tests.unit.core.generators import make_spec, specs
from tests.unit.engines.kubernetes_objects import KEY, OPTIONS, UID
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.kubernetes.namespaces import manifests as namespaces
from yardmaster.engines.kubernetes.render import manifests, names
from yardmaster.engines.kubernetes.render.names import cluster_map
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.pods import TOKEN_DIR
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import Paths, Resources, Role, Strategy
from yardmaster.job.strategy import leading_task
from yardmaster.lifecycle.plan import Timing
from yardmaster_runner.settings import read_settings

ACCESS = TaskAccess("http://portal:8080", "the-token")
EVERY_OPTION = TaskOptions.from_table(
    {
        "image": "tasks:1",
        "image_pull_secrets": ["registry"],
        "runner_image": "runner:1",
        "runner_path": "/opt/yardmaster",
        "node_selector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "priority_class": "training",
        "service_domain": "cluster.local",
        "scratch": "20Gi",
    }
)
TOKEN_UID = "the-secret"
RECOMMENDED = ("name", "instance", "part-of", "managed-by")
DNS_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
HOSTILE = "'\"`$(id) $HOME {{ .Values }} ${X} %s\n---\nprivileged: true\n# \u202e\\"


def made_for(spec, options=OPTIONS, access=ACCESS):
    run = manifests.Run.of(spec, KEY, access, options)
    return [manifests.with_uids(one, UID, TOKEN_UID) for one in run.all()]


def workloads(spec, options=OPTIONS):
    return {
        one["metadata"]["labels"][names.ROLE]: one
        for one in made_for(spec, options)
        if "template" in one.get("spec", {})
    }


def pod_of(spec, role, options=OPTIONS):
    return workloads(spec, options)[role]["spec"]["template"]["spec"]


def variables(spec, role, options=OPTIONS):
    return {one["name"]: one for one in pod_of(spec, role, options)["containers"][0]["env"]}


@settings(deadline=None)
@given(specs())
def test_any_valid_spec_becomes_objects_that_a_cluster_takes(spec):
    for options in (OPTIONS, EVERY_OPTION):
        made = made_for(spec, options)
        has_peers = len(spec.tasks()) > 1 or spec.strategy in (Strategy.IN_GRAPH, Strategy.SERVICE)
        speaks = has_peers and spec.strategy is not Strategy.BATCH
        assert len(made) == 2 + speaks + len(spec.roles) <= 7
        assert made[-1]["metadata"]["labels"][names.ROLE] == leading_task(spec)[0].value
        assert len({(one["kind"], one["metadata"]["name"]) for one in made}) == len(made)
        for one in made:
            json.dumps(one)
            assert DNS_LABEL.fullmatch(one["metadata"]["name"])
            assert one["metadata"]["namespace"] == names.namespace_name(KEY.namespace_id, options)
            assert names.key_from_labels(one["metadata"]["labels"]) == KEY
        for role, one in workloads(spec, options).items():
            assert violations(one["spec"]["template"]["spec"]) == []
            assert len(f"{one['metadata']['name']}-{spec.replicas(Role(role)) - 1}") <= 63


@settings(deadline=None)
@given(specs())
def test_requests_equal_limits_but_of_disk_and_are_what_the_spec_asks_for(spec):
    for role, one in spec.roles.items():
        given_ = pod_of(spec, role)["containers"][0]["resources"]
        disk = {name: given_[name].pop("ephemeral-storage") for name in ("requests", "limits")}
        assert disk == {"requests": str(1 << 30), "limits": str(20 << 30)}
        assert given_["requests"] == given_["limits"]
        assert int(given_["limits"]["memory"]) == one.resources.memory
        assert float(given_["limits"]["cpu"]) == one.resources.cpu
        assert int(given_["limits"].get("nvidia.com/gpu", 0)) == one.resources.gpus
        assert {name: given_["limits"][name] for name in one.resources.extended} == {
            name: str(amount) for name, amount in one.resources.extended.items()
        }


def test_the_number_of_objects_does_not_grow_with_the_workers():
    few, many = (make_spec(shape={Role.WORKER: count, Role.PS: count}) for count in (2, 8))
    assert [one["kind"] for one in made_for(few)] == [one["kind"] for one in made_for(many)]
    assert len(made_for(few)) == 5


def test_the_tasks_of_a_run_reach_each_other_and_no_other_run():
    """The namespace's policies forbid all but names and the portal, and policies add up."""
    (policy,) = [one for one in made_for(make_spec(shape={Role.WORKER: 2})) if one["kind"] == "NetworkPolicy"]
    mine = {"podSelector": {"matchLabels": {names.RUN: KEY.name}}}
    assert policy["spec"] == {
        **mine,
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [mine]}],
        "egress": [{"to": [mine]}],
    }
    for one in workloads(make_spec(shape={Role.WORKER: 2})).values():
        assert one["spec"]["template"]["metadata"]["labels"][names.RUN] == KEY.name


def test_a_task_that_is_alone_needs_no_policy_unless_it_serves():
    alone = make_spec(Strategy.SINGLE)
    assert [one["kind"] for one in made_for(alone)] == ["ConfigMap", "Secret", "Job"]
    serves = make_spec(Strategy.IN_GRAPH, shape={Role.WORKER: 1})
    assert "NetworkPolicy" in [one["kind"] for one in made_for(serves)]


def test_the_owner_has_the_token_and_the_leading_task_and_the_token_has_the_rest():
    owner, *rest = made_for(make_spec(Strategy.PARAMETER_SERVER))
    assert (owner["kind"], owner["metadata"].get("ownerReferences")) == ("ConfigMap", None)
    policy, *rest = rest
    of_owner, of_token = ("ConfigMap", KEY.name, UID), ("Secret", rest[0]["metadata"]["name"], TOKEN_UID)
    found = {}
    assert policy["metadata"]["ownerReferences"] == rest[0]["metadata"]["ownerReferences"]
    for one in rest:
        (reference,) = one["metadata"]["ownerReferences"]
        name = one["metadata"]["name"].removeprefix(KEY.name)
        found[name] = (reference["kind"], reference["name"], reference["uid"])
    assert found == {"-token": of_owner, "-chief": of_owner, "-worker": of_token, "-ps": of_token}
    assert all(one["metadata"]["labels"][names.OWNER] == UID for one in rest)


def test_no_word_of_a_user_is_in_any_object():
    spec = replace(
        make_spec(Strategy.BETWEEN_GRAPH),
        name=HOSTILE,
        entry_point=f"{HOSTILE}.py",
        arguments=(HOSTILE, "--x=y-of-the-user"),
        environment={"A_VARIABLE_OF_THE_USER": HOSTILE},
        paths=Paths(data_flag="--flag-of-the-user"),
    )
    text = json.dumps(made_for(spec))
    assert text == json.dumps(made_for(replace(make_spec(Strategy.BETWEEN_GRAPH))))
    for word in ("privileged: true", "of-the-user", "OF_THE_USER", "$(id)"):
        assert word not in text


def test_the_token_is_in_the_secret_and_nowhere_else():
    made = made_for(make_spec())
    assert [one["kind"] for one in made if ACCESS.token in json.dumps(one)] == ["Secret"]
    token = next(one for one in pod_of(make_spec(), "worker")["volumes"] if one["name"] == "token")
    assert token["secret"]["secretName"] == names.token_name(KEY)


@pytest.mark.parametrize("role", ["chief", "worker", "ps"])
def test_the_runner_reads_the_environment_that_a_task_gets(role):
    spec = make_spec(Strategy.PARAMETER_SERVER)
    known = variables(spec, role)
    plain = {name: one["value"] for name, one in known.items() if "value" in one}
    read = read_settings({**plain, "YARDMASTER_INDEX": "0", "YARDMASTER_RESTART": ""})
    host = f"{KEY.name}-worker-1.tasks"
    assert (read.url, read.role, read.restart) == ("http://portal:8080", role, 0)
    assert read.token_file.startswith(TOKEN_DIR)
    assert read.cluster["worker"][1] == f"{host}:2222"
    assert set(read.cluster) == {"chief", "worker", "ps"}


@pytest.mark.parametrize("options", [OPTIONS, EVERY_OPTION])
def test_servers_are_the_pods_that_other_tasks_are_and_are_told_as_they_know_each_other(options):
    roles, none = {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1}, timedelta(0)  # servers have no time to upload
    spec = make_spec(Strategy.IN_GRAPH, roles, grace_period=none)
    trained = make_spec(Strategy.BETWEEN_GRAPH, roles, grace_period=none)
    here, there = json.dumps(workloads(spec, options)), json.dumps(workloads(trained, options))
    assert here.replace(f'"{names.STRATEGY}": "in_graph"', f'"{names.STRATEGY}": "between_graph"') == there
    engine = KubernetesEngine(tasks={"image": "tasks:1"}, api=Api(connect_to("http://127.0.0.1:1")))
    found = engine.servers(spec, KEY)
    told = json.loads(variables(spec, "worker")["YARDMASTER_CLUSTER"]["value"])
    assert {role.value: list(some) for role, some in found.addresses.items()} == told
    assert names.namespace_name(KEY.namespace_id, engine.options) in found.reach
    mounted = {one["mountPath"] for one in pod_of(spec, "worker")["containers"][0]["volumeMounts"]}
    assert found.data_dir.rpartition("/")[0] in mounted


def test_full_names_for_clusters_that_need_them():
    found = cluster_map(make_spec(), KEY, EVERY_OPTION)["ps"]
    space = names.namespace_name(KEY.namespace_id, EVERY_OPTION)
    assert found == [f"{KEY.name}-ps-0.tasks.{space}.svc.cluster.local:2222"]


def test_a_task_learns_its_index_from_its_own_pod():
    spec = make_spec()
    worker, server = variables(spec, "worker"), variables(spec, "ps")
    assert names.JOB_INDEX in worker["YARDMASTER_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert names.JOB_FAILURES in worker["YARDMASTER_RESTART"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert names.SET_INDEX in server["YARDMASTER_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert "YARDMASTER_RESTART" not in server


def test_a_dollar_in_a_value_stays_a_dollar():
    options = replace(OPTIONS, portal_url="http://portal/$(HOME)")
    assert variables(make_spec(), "worker", options)["YARDMASTER_URL"]["value"] == "http://portal/$$(HOME)"


def test_the_cluster_map_of_the_most_tasks_fits_into_one_variable():
    spec = make_spec(shape={Role.WORKER: 900, Role.PS: 100})
    assert len(variables(spec, "worker")["YARDMASTER_CLUSTER"]["value"]) < 131_000


def test_eviction_costs_no_restart_and_what_no_restart_can_mend_fails_at_once():
    job = workloads(make_spec(retries=3))["worker"]["spec"]
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 2, 2)
    assert job["backoffLimitPerIndex"] == 3
    ignore, fail = job["podFailurePolicy"]["rules"]
    assert (ignore["action"], ignore["onPodConditions"][0]["type"]) == ("Ignore", "DisruptionTarget")
    assert (fail["action"], fail["onExitCodes"]["values"]) == ("FailIndex", [90, 92])
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_a_coordinator_is_started_again_like_any_other_task():
    made = workloads(make_spec(Strategy.PARAMETER_SERVER, retries=3))
    assert {role: made[role]["spec"]["backoffLimitPerIndex"] for role in ("chief", "worker")} == {
        "chief": 3,
        "worker": 3,
    }


def test_parameter_servers_have_names_that_stay_and_come_up_together():
    found = workloads(make_spec())["ps"]
    assert found["kind"] == "StatefulSet"
    assert found["spec"]["podManagementPolicy"] == "Parallel"
    service = next(
        one for one in namespaces.base(KEY.namespace_id, "http://10.0.0.1", OPTIONS) if one["kind"] == "Service"
    )
    assert found["spec"]["serviceName"] == pod_of(make_spec(), "ps")["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"].items() <= found["spec"]["template"]["metadata"]["labels"].items()
    alone = workloads(make_spec(Strategy.SINGLE))["worker"]["spec"]["template"]
    assert not service["spec"]["selector"].items() <= alone["metadata"]["labels"].items()
    assert "subdomain" not in alone["spec"]


def test_a_pod_has_time_to_upload_after_the_grace_period_and_a_server_only_that():
    with_servers = make_spec(Strategy.BETWEEN_GRAPH, grace_period=timedelta(seconds=45))
    assert pod_of(with_servers, "ps")["terminationGracePeriodSeconds"] == 45
    assert pod_of(make_spec(grace_period=timedelta(hours=1)), "worker")["terminationGracePeriodSeconds"] == 3600 + 3600
    assert pod_of(make_spec(grace_period=timedelta(seconds=45)), "worker")["terminationGracePeriodSeconds"] == 45 + 3600
    assert pod_of(make_spec(grace_period=timedelta(0)), "worker")["terminationGracePeriodSeconds"] == 1


def test_tasks_without_gpus_see_none():
    with_gpus = make_spec(resources=Resources(gpus=1))
    assert variables(make_spec(), "worker")["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in variables(with_gpus, "worker")


def test_what_the_operator_chose_is_in_every_pod():
    pod = pod_of(make_spec(), "worker", EVERY_OPTION)
    assert pod["nodeSelector"] == {"pool": "gpu"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert pod["priorityClassName"] == "training"
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["initContainers"][0]["image"] == "runner:1"
    assert variables(make_spec(), "worker", EVERY_OPTION)["PYTHONPATH"]["value"] == "/yardmaster/runner"


def test_every_object_says_what_it_is_in_the_recommended_labels():
    user = uuid.UUID(int=3 << 100)
    for one in made_for(make_spec(), access=replace(ACCESS, user=user)):
        told = [one["metadata"]["labels"]]
        if "template" in one.get("spec", {}):
            told.append(one["spec"]["template"]["metadata"]["labels"])
        for labels in told:
            assert {name: labels[f"app.kubernetes.io/{name}"] for name in RECOMMENDED} == {
                "name": "training",
                "instance": KEY.name,
                "part-of": "yardmaster",
                "managed-by": "yardmaster",
            }
            assert labels["yardmaster/job"] == str(KEY.job_id)
            if "yardmaster/role" in labels:
                assert labels["app.kubernetes.io/component"] == labels["yardmaster/role"]
                assert labels["yardmaster/user"] == str(user)


def test_whose_job_it_is_changes_nothing_but_a_label():
    known, unknown = (
        json.dumps(made_for(make_spec(), access=replace(ACCESS, user=user))) for user in (uuid.UUID(int=7), None)
    )
    assert known.replace(f', "yardmaster/user": "{uuid.UUID(int=7)}"', "") == unknown
    assert "yardmaster/user" not in unknown


def test_a_deadline_stands_behind_the_longest_time_of_a_job_and_not_of_its_servers():
    spec = make_spec(max_runtime=timedelta(hours=2), grace_period=timedelta(seconds=30))
    made = {role: one["spec"] for role, one in workloads(spec, replace(OPTIONS, deadline_margin=600)).items()}
    assert made["worker"]["activeDeadlineSeconds"] == 7200 + 30 + 150 + 600
    # A set with one is refused by the cluster; in the template of a Job it would begin again with each pod.
    for one in made.values():
        assert "activeDeadlineSeconds" not in one["template"]["spec"]
    assert "activeDeadlineSeconds" not in made["ps"]
    assert all("activeDeadlineSeconds" not in one["spec"] for one in workloads(make_spec()).values())


def test_the_portals_own_end_comes_first():
    """By default also where every task begins as late as it may."""
    assert timedelta(seconds=OPTIONS.deadline_margin) > Timing().start_timeout + Timing().kill_margin


def test_users_and_groups_are_none_that_a_machine_knows():
    for role in ("worker", "ps"):
        context = pod_of(make_spec(), role)["securityContext"]
        assert (context["runAsUser"], context["runAsGroup"], context["fsGroup"]) == (10_001,) * 3


def test_resources_that_the_operator_does_not_give_are_refused_by_name():
    spec = make_spec(resources=Resources(extended={"rdma/hca": 1, "nvidia.com/gpu": 1, "plain": 1}))
    wide = replace(OPTIONS, extended_resources=("*/*", "nvidia.com/gpu"))
    refused = {problem.field for problem in manifests.refused_resources(spec, wide)}
    assert refused == {
        f"roles.{role}.extended.{name}" for role in ("worker", "ps") for name in ("nvidia.com/gpu", "plain")
    }
    narrow = replace(OPTIONS, extended_resources=("vendor.example/*",))
    assert len(manifests.refused_resources(spec, narrow)) == 6


DEVICES = ("amd.com/gpu", "nvidia.com/mig-1g.5gb", "devices.kubevirt.io/kvm")


@pytest.mark.parametrize("name", [*DEVICES, "rdma/hca"])
def test_without_a_word_of_the_operator_jobs_may_ask_for_nothing_else(name):
    assert len(manifests.refused_resources(make_spec(resources=Resources(extended={name: 1})), OPTIONS)) == 2


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize(
    "pattern", ["*", "*/*", "*.com/*", "devices.*", "devices.*/*", "nvidia.com/mig-*", "amd.com/g?u"]
)
def test_a_pattern_never_means_a_device_and_its_full_name_does(name, pattern):
    spec = make_spec(resources=Resources(extended={name: 1}))
    assert manifests.refused_resources(spec, replace(OPTIONS, extended_resources=(pattern,)))
    assert not manifests.refused_resources(spec, replace(OPTIONS, extended_resources=(pattern, name)))


def test_what_a_task_may_write_bounds_its_folders_too_and_may_be_lifted():
    limits = {one["name"]: one.get("emptyDir") for one in pod_of(make_spec(), "worker")["volumes"]}
    assert limits["work"] == limits["tmp"] == {"sizeLimit": str(20 << 30)}
    free = pod_of(make_spec(), "worker", replace(OPTIONS, scratch=""))
    assert "ephemeral-storage" not in json.dumps(free)
    assert "sizeLimit" not in json.dumps(free)
    small = pod_of(make_spec(), "worker", replace(OPTIONS, scratch="512Mi"))["containers"][0]["resources"]
    assert {small[one]["ephemeral-storage"] for one in small} == {str(512 << 20)}


@pytest.mark.parametrize("amounts", [{"gpus": 1}, *({"extended": {name: 1}} for name in DEVICES[:2])])
def test_gpus_are_shown_to_tasks_that_ask_for_any_accelerator_and_hidden_from_all_others(amounts):
    assert {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} <= set(variables(make_spec(), "worker"))
    seen = variables(make_spec(resources=Resources(**amounts)), "worker")
    assert not {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} & set(seen)
    hidden = variables(make_spec(resources=Resources(extended={"rdma/hca": 1})), "worker")
    assert hidden["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "image"),
        ({"image": " "}, "image"),
        ({"image": "a", "imagee": "b"}, "imagee"),
        ({"image": "a", "user": 0}, "root"),
        ({"image": "a", "user": "root"}, "user"),
        ({"image": "a", "port": 80}, "port"),
        ({"image": "a", "deadline_margin": 0}, "deadline_margin"),
        ({"image": "a", "scratch": "much"}, "scratch"),
        ({"image": "a", "scratch_request": ""}, "scratch_request"),
        ({"image": "a", "scratch_in_namespace": "0"}, "scratch_in_namespace"),
        ({"image": "a", "namespace_prefix": "Kube_"}, "namespace_prefix"),
        ({"image": "a", "image_pull_policy": "Sometimes"}, "image_pull_policy"),
        ({"image": "a", "runner_image": "b"}, "runner_path"),
        ({"image": "a", "bound_role": "b"}, "bound_account"),
    ],
)
def test_an_option_that_is_wrong_is_named(table, said):
    with pytest.raises(Misconfigured, match=said):
        TaskOptions.from_table(table)
