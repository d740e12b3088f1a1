"""Sessions of the workbench and model servers on a cluster: their image and nodes, the home that a notebook keeps, and
who reaches whom."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.kubernetes_store import violations
from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import KEY, OPTIONS, capacity_of, event
from tests.unit.engines.test_kubernetes_manifests import made_for, pod_of, workloads
from tests.unit.engines.test_kubernetes_node_pools import A100, NODES, TAINT, labelled
from tests.unit.engines.test_kubernetes_placing import refused_pod, seen
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.observe.facts import events_wanted
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.notebooks import HOME_DIR
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured
from yardmaster.ids import new_id
from yardmaster.job.spec import Resources, Role, SparkInput, Strategy, TrainingSpec
from yardmaster.job.spec_images import PinnedImage
from yardmaster.queueing.ledger import Candidate
from yardmaster.queueing.needs import needs_of, needs_or_none
from yardmaster.queueing.placement import Board, tasks_of
from yardmaster_runner.settings import read_settings

GI = 1 << 30
OWNER = uuid.UUID(int=3 << 100)
REACHED = TaskAccess("http://10.1.2.3:8080", "the-token")
SET_APART = {
    "image": "tasks:1",
    "service_node_selector": {"for": "people"},
    "service_tolerations": [{"key": "people", "operator": "Exists", "effect": "NoSchedule"}],
}
UNBOUND = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
LISTEN = "YARDMASTER_LISTEN_ADDRESS"
Raw = dict[str, Any]


def session(program: str = "jupyter", resources: Resources | None = None) -> TrainingSpec:
    options = {
        "jupyter": {"session": str(uuid.UUID(int=4)), "owner": str(OWNER)},
        "tensorboard": {"session": str(uuid.UUID(int=4)), "bytes": 1 << 30},
        "spark_history": {"session": str(uuid.UUID(int=4)), "bytes": 1 << 30},
        "model_server": {"name": "digits", "version": "1"},
    }[program]
    return make_spec(
        Strategy.SERVICE, {Role.WORKER: 1}, program=program, options=options, code_version=None, entry_point="",
        inputs=(), resources=resources or Resources(1, GI),
    )  # fmt: skip


def pod(spec: TrainingSpec, options: TaskOptions = OPTIONS) -> Raw:
    return pod_of(spec, "worker", options)


def kinds(spec: TrainingSpec, options: TaskOptions = OPTIONS) -> dict[str, Raw]:
    return {one["kind"]: one for one in made_for(spec, options, REACHED)}


# --- image and nodes -------------------------------------------------------------------------------------------------


def test_a_notebook_has_an_image_of_its_own_where_one_is_set():
    options = replace(OPTIONS, workbench_image="notebooks:1")
    images = {one: pod(session(one), options)["containers"][0]["image"] for one in ("jupyter", "tensorboard")}
    assert images == {"jupyter": "notebooks:1", "tensorboard": "tasks:1"}
    assert pod(session())["containers"][0]["image"] == "tasks:1"
    on_a_device = TaskOptions.from_table({"image": "tasks:1", "workbench_image": "notebooks:1", "pools": [A100]})
    asks = session(resources=Resources(1, GI, 0, {"device/a100-40gb": 1}))
    assert pod(asks, on_a_device)["containers"][0]["image"] == "notebooks:1"


@pytest.mark.parametrize("program", ["jupyter", "tensorboard", "model_server"])
def test_services_go_to_the_nodes_set_apart_for_them_and_training_does_not(program: str):
    options = TaskOptions.from_table(SET_APART | {"node_selector": {"for": "training"}})
    made = pod(session(program), options)
    assert (made["nodeSelector"], made["tolerations"]) == ({"for": "people"}, SET_APART["service_tolerations"])
    trains = pod_of(make_spec(), "worker", options)
    assert trains["nodeSelector"] == {"for": "training"}
    assert "tolerations" not in trains


def test_what_services_say_nothing_of_is_the_engines_own():
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    table = {"image": "tasks:1", "service_node_selector": {"for": "people"}, "tolerations": tolerations}
    assert pod(session(), TaskOptions.from_table(table))["tolerations"] == tolerations
    of_workers = {"name": "w", "roles": ["worker"], "node_selector": {"kind": "memory"}}
    with_pools = TaskOptions.from_table({"image": "tasks:1", "pools": [of_workers]})
    assert pod(session(), with_pools)["nodeSelector"] == {"kind": "memory"}
    both = TaskOptions.from_table(table | {"pools": [of_workers]})
    assert pod(session(), both)["nodeSelector"] == {"for": "people"}


def test_a_service_with_a_device_goes_where_the_device_is():
    gpu = {"name": "gpu", "accelerators": True, "node_selector": {"gpu": "t4"}}
    options = TaskOptions.from_table(SET_APART | {"pools": [A100, gpu]})
    assert pod(session(resources=Resources(1, GI, 0, {"device/a100-40gb": 1})), options)["nodeSelector"] == {
        "gpu": "a100"
    }
    assert pod(session(resources=Resources(1, GI, 1)), options)["nodeSelector"] == {"gpu": "t4"}
    assert pod(session(resources=Resources(1, GI, 1)), TaskOptions.from_table(SET_APART))["nodeSelector"] == {
        "for": "people"
    }


def test_admission_counts_the_nodes_that_take_each():
    nodes = [*NODES, labelled("apart", {"for": "people"}, [{**TAINT, "key": "people"}])]
    found = capacity_of(nodes, [], TaskOptions.from_table(SET_APART)).nodes
    eight, board = Resources(8, GI), Board.idle(found)
    serves = session(resources=eight)
    assert board.most(tasks_of(serves, {Role.WORKER: 9})) == 1
    assert board.most(tasks_of(make_spec(resources=eight), {Role.WORKER: 9})) == 3
    without = capacity_of(NODES, [], TaskOptions.from_table(SET_APART)).nodes
    assert not Board.idle(without).fits(tasks_of(serves, {Role.WORKER: 1}))


def test_what_is_stored_of_a_job_says_whether_it_serves():
    for spec in (session(), make_spec()):
        known = needs_or_none(needs_of(spec))
        assert known is not None
        fields = {"job_id": new_id(), "namespace_id": new_id(), "queued_at": None}
        assert known.tasks == Candidate.of(spec, **fields).tasks
        assert {one.serves for one in known.tasks} == {spec.strategy is Strategy.SERVICE}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"service_node_selector": ["x"]}, "service_node_selector"),
        ({"service_node_selector": {"for": 1}}, "service_node_selector"),
        ({"service_tolerations": {"key": "x"}}, "it is a list of tables"),
        ({"service_tolerations": ["x"]}, "each is a table"),
        ({"service_tolerations": [{"keys": "x"}]}, "keys is none of"),
        ({"service_tolerations": [{"key": 5}]}, "are texts"),
        ({"service_tolerations": [{"key": "x", "operator": "In"}]}, "operator is"),
        ({"service_tolerations": [{"key": "x", "operator": "Exists", "value": "y"}]}, "Exists without a value"),
        ({"service_tolerations": [{"operator": "Equal"}]}, "without a key"),
        ({"service_tolerations": [{"key": "x", "effect": "Never"}]}, "effect is one of"),
        ({"service_tolerations": [{"key": "x", "tolerationSeconds": 5}]}, "tolerationSeconds"),
        ({"home_size": "much"}, "home_size"),
        ({"home_class": "Not A Name"}, "home_class"),
        ({"workbench_image": 5}, "workbench_image"),
        ({"spark_image": 5}, "spark_image"),
    ],
)
def test_an_option_that_is_wrong_is_named(table: Raw, said: str):
    with pytest.raises(Misconfigured, match=said):
        TaskOptions.from_table({"image": "tasks:1", **table})


# --- Spark -----------------------------------------------------------------------------------------------------------

WITH_SPARK: Raw = {"image": "tasks:1", "workbench_image": "notebooks:1", "spark_image": "spark:1"}


def images(spec: TrainingSpec, **options: Any) -> dict[str, str]:
    """By role."""
    chosen = TaskOptions.from_table(WITH_SPARK | options)
    return {one.value: pod_of(spec, one.value, chosen)["containers"][0]["image"] for one in spec.roles}


def with_executors(**changes: Any) -> TrainingSpec:
    return replace(
        session(), options={**session().options, "spark_executors": 2, "cores": 2, "memory": 3 * GI}, **changes
    )


def test_what_runs_spark_has_the_image_with_spark_and_nothing_else_has():
    assert images(make_spec(Strategy.SPARK)) == {"driver": "spark:1", "executor": "spark:1"}
    assert images(session("spark_history")) == {"worker": "spark:1"}
    assert images(with_executors()) == {"worker": "spark:1"}
    assert images(session()) == {"worker": "notebooks:1"}
    assert images(session("tensorboard")) == {"worker": "tasks:1"}
    assert set(images(make_spec()).values()) == {"tasks:1"}


def test_without_such_an_image_all_is_as_it_was():
    none = {"spark_image": ""}
    assert images(make_spec(Strategy.SPARK), **none) == {"driver": "tasks:1", "executor": "tasks:1"}
    assert images(session("spark_history"), **none) == {"worker": "tasks:1"}
    assert images(with_executors(), **none) == {"worker": "notebooks:1"}


def test_the_image_with_spark_counts_on_every_pool_and_below_the_images_that_jobs_name():
    pools = [{"name": "executors", "roles": ["executor"], "image": "pool:1"}]
    job = make_spec(Strategy.SPARK)
    assert images(job, pools=pools)["executor"] == "spark:1"
    own = PinnedImage("own", "registry.example/own@sha256:" + "a" * 64)
    roles = {role: replace(one, image="own" if role is Role.DRIVER else "") for role, one in job.roles.items()}
    found = images(replace(job, roles=roles, pinned_images=(own,)), pools=pools)
    assert found == {"driver": own.reference, "executor": "spark:1"}


# --- homes -----------------------------------------------------------------------------------------------------------


def test_a_notebook_writes_to_the_home_of_its_owner():
    made = kinds(session(), replace(OPTIONS, home_size="5Gi", home_class="fast"))
    claim, place = made["PersistentVolumeClaim"], names.namespace_name(KEY.namespace_id, OPTIONS)
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": str(5 * GI)}},
    }
    metadata = claim["metadata"]
    assert metadata["namespace"] == place
    assert "ownerReferences" not in metadata, "it outlives the run"
    assert names.key_from_labels(metadata["labels"]) is None, "nor is it of one"
    template = made["Job"]["spec"]["template"]
    assert template["metadata"]["labels"][names.HOME] == metadata["name"]
    volume = next(one for one in template["spec"]["volumes"] if one["name"] == "home")
    assert volume["persistentVolumeClaim"] == {"claimName": metadata["name"]}
    container = template["spec"]["containers"][0]
    assert {"name": "home", "mountPath": HOME_DIR} in container["volumeMounts"]
    variables = {one["name"]: one.get("value", "0") for one in container["env"]}
    told = read_settings(variables)
    assert (told.home_dir, told.has_own_python) == (HOME_DIR, True)
    assert template["spec"]["securityContext"]["fsGroup"] == OPTIONS.user
    assert violations(template["spec"]) == []


def test_a_home_is_named_after_its_owner_alone():
    again = replace(session(), options={"session": str(uuid.UUID(int=5)), "owner": str(OWNER)})
    other = replace(session(), options={"session": str(uuid.UUID(int=4)), "owner": str(uuid.UUID(int=9))})
    claims = [kinds(one)["PersistentVolumeClaim"] for one in (session(), again, other)]
    mine, same, theirs = (one["metadata"]["name"] for one in claims)
    assert mine == same != theirs
    assert "storageClassName" not in claims[0]["spec"], "the cluster's default"


@pytest.mark.parametrize(
    ("spec", "options"),
    [(session("tensorboard"), OPTIONS), (session("model_server"), OPTIONS), (make_spec(), OPTIONS),
     (session(), replace(OPTIONS, home_size=""))],
)  # fmt: skip
def test_nothing_else_has_a_home(spec: TrainingSpec, options: TaskOptions):
    assert "PersistentVolumeClaim" not in kinds(spec, options)
    for one in workloads(spec, options).values():
        assert names.HOME not in one["metadata"]["labels"]
        assert not [some for some in one["spec"]["template"]["spec"]["volumes"] if some["name"] == "home"]


def of_claim(name: str, message: str) -> Raw:
    made = event({"metadata": {"name": name}}, "ProvisioningFailed", message)
    return {**made, "type": "Warning", "involvedObject": {"kind": "PersistentVolumeClaim", "name": name}}


def test_a_session_that_waits_for_its_home_says_why_and_names_no_other_users():
    waits = refused_pod(UNBOUND)
    waits["metadata"]["labels"] |= {names.HOME: "home-mine"}
    events = [of_claim("home-others", "theirs"), of_claim("data", "the data volume"), of_claim("home-mine", "is full")]
    found = seen(waits, events=events)
    assert found.tasks[0].reason == "VolumePending"
    assert found.tasks[0].message == f"{UNBOUND} ProvisioningFailed: is full"
    assert found.refused is not None
    trains = seen(refused_pod(UNBOUND), events=events)
    assert trains.tasks[0].message == f"{UNBOUND} ProvisioningFailed: the data volume"


def test_a_home_that_is_made_after_a_node_was_chosen_says_why_it_is_not():
    waits = refused_pod()
    waits["status"]["conditions"] = []
    waits["metadata"]["labels"] |= {names.HOME: "home-mine"}
    assert events_wanted(seen(waits)) == ["type=Warning"]
    found = seen(waits, events=[of_claim("home-mine", "is full")])
    assert (found.tasks[0].reason, found.tasks[0].message) == ("VolumePending", "ProvisioningFailed: is full")
    assert found.refused is None, "the scheduler has a node"
    waits["spec"]["nodeName"] = "node-1"
    assert seen(waits, events=[of_claim("home-mine", "is full")]).tasks[0].reason == ""


# --- who reaches whom ------------------------------------------------------------------------------------------------

PORTS = [{"protocol": "TCP", "port": 2222}]


def policy(spec: TrainingSpec) -> Raw:
    return kinds(spec)["NetworkPolicy"]["spec"]


@pytest.mark.parametrize("program", ["jupyter", "tensorboard", "model_server"])
def test_the_portal_alone_reaches_the_port_of_a_service(program: str):
    found = policy(session(program))
    assert found["podSelector"] == {"matchLabels": {names.RUN: KEY.name}}
    assert found["policyTypes"] == ["Ingress", "Egress"]
    assert found["ingress"] == [{"from": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": PORTS}]
    if program != "jupyter":
        assert found["egress"] == []


FARM = replace(OPTIONS, spark_cidrs=("10.9.0.0/16",), spark_namespace="spark")
SPARK_PEERS = [
    {"ipBlock": {"cidr": "10.9.0.0/16"}},
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "spark"}}},
]


def test_the_driver_of_a_registered_spark_cluster_alone_reaches_it_and_is_reached_from_there():
    spark, every_port = SparkInput("farm"), [{"protocol": "TCP"}]
    driver = make_spec(Strategy.SPARK, {Role.DRIVER: 1}, spark=spark)
    for spec in (driver, replace(session(), spark=spark)):
        found = kinds(spec, FARM)["NetworkPolicy"]["spec"]
        assert found["podSelector"] == {"matchLabels": {names.RUN: KEY.name}}
        assert {"from": SPARK_PEERS, "ports": every_port} in found["ingress"]
        assert {"to": SPARK_PEERS, "ports": every_port} in found["egress"]
        (role,) = spec.roles
        (own,) = [one for one in pod_of(spec, role, FARM)["containers"][0]["env"] if one["name"] == LISTEN]
        assert own["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    for spec in (session(), make_spec(), make_spec(Strategy.SPARK)):
        assert kinds(spec, FARM) == kinds(spec), "other pods get nothing"
        assert LISTEN not in str(kinds(spec, FARM))
    assert "NetworkPolicy" not in kinds(driver), "nothing is opened where no addresses are set"


def test_a_notebook_drives_the_servers_of_its_namespace_and_nothing_else_does():
    servers, mine = make_spec(Strategy.IN_GRAPH), {"podSelector": {"matchLabels": {names.RUN: KEY.name}}}
    (out,) = policy(session())["egress"]
    own, into = policy(servers)["ingress"]
    assert (own, out["ports"], into["ports"]) == ({"from": [mine]}, PORTS, PORTS)
    for rule, spec in ((out["to"], servers), (into["from"], session())):
        ((kind, selector),) = rule[0].items()
        assert (len(rule), kind) == (1, "podSelector"), "of this namespace alone"
        chosen = selector["matchLabels"].items()
        for other in (servers, session(), session("tensorboard"), make_spec()):
            labels = [one["spec"]["template"]["metadata"]["labels"] for one in workloads(other).values()]
            assert {chosen <= one.items() for one in labels} == {other is spec or other == spec}
    assert len(policy(make_spec(Strategy.BETWEEN_GRAPH))["ingress"]) == 1
