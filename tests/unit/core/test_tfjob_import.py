"""A TFJob as a job file: what each part becomes, and that nothing is passed over in silence."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.errors import SpecRejected
from yardmaster.job.spec_json import spec_from_json
from yardmaster.job.tfjob import Imported, Kind, find_tfjob, import_tfjob
from yardmaster.job.tfjob.commands import as_argument, entry_of
from yardmaster.job.tfjob.volumes import purpose_of

ID = "0193e5a4-0000-7000-8000-000000000001"


def container(command: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "tensorflow", "image": "team/mnist:1", "command": command or ["python", "train.py"], **more}


def replica(count: int = 1, policy: str = "Never", *, pod: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    spec = {"containers": [container(**more)], **(pod or {})}
    return {"replicas": count, "restartPolicy": policy, "template": {"spec": spec}}


def tfjob(spec: dict[str, Any] | None = None, **replicas: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": "mnist"},
        "spec": {"tfReplicaSpecs": replicas or {"Worker": replica()}, **(spec or {})},
    }


def imported(spec: dict[str, Any] | None = None, **replicas: Any) -> Imported:
    """And valid, once there are code and datasets."""
    made = import_tfjob(tfjob(spec, **replicas))
    inputs = [
        {"dataset_version": ID, **{key: one[key] for key in one if key != "dataset"}}
        for one in made.spec.get("inputs", [])
    ]
    spec_from_json({**made.spec, "code": ID, "inputs": inputs})
    return made


def said(made: Imported, *words: str) -> bool:
    return any(all(word in f"{one.message} {one.remedy}" for word in words) for one in made.notes)


def problems_of(spec: dict[str, Any]) -> set[str]:
    """What a launch would say."""
    try:
        spec_from_json(spec)
    except SpecRejected as error:
        return {one.message for one in error.problems}
    return set()


def problem_of(document: Any) -> Any:
    with pytest.raises(SpecRejected) as raised:
        import_tfjob(find_tfjob(document)[0])
    return raised.value.problems[0]


@pytest.mark.parametrize(
    ("counts", "strategy", "roles"),
    [
        ({"Worker": 1}, "single", {"worker": 1}),
        ({"Chief": 1}, "single", {"worker": 1}),
        ({"Master": 1, "Worker": 2}, "multi_worker_mirrored", {"chief": 1, "worker": 2}),
        ({"Worker": 3}, "multi_worker_mirrored", {"worker": 3}),
        ({"Worker": 1, "Evaluator": 1}, "multi_worker_mirrored", {"worker": 1, "evaluator": 1}),
        ({"Chief": 1, "Evaluator": 1}, "multi_worker_mirrored", {"worker": 1, "evaluator": 1}),
        ({"PS": 2, "Worker": 4}, "between_graph", {"worker": 4, "ps": 2}),
        ({"PS": 1, "Chief": 1}, "between_graph", {"worker": 1, "ps": 1}),
        ({"PS": 1, "Chief": 1, "Worker": 2}, "parameter_server", {"chief": 1, "worker": 2, "ps": 1}),
        (
            {"PS": 1, "Chief": 1, "Worker": 2, "Evaluator": 1},
            "parameter_server",
            {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1},
        ),
        ({"ps": 1, "worker": 2, "Chief": 0}, "between_graph", {"worker": 2, "ps": 1}),
    ],
)
def test_the_strategy_is_read_from_the_roles(counts, strategy, roles):
    made = imported(**{name: replica(count) for name, count in counts.items()})
    assert made.spec["strategy"] == strategy
    assert {role: one["replicas"] for role, one in made.spec["roles"].items()} == roles
    assert said(made, f"The strategy is {strategy}")


def test_classic_flags_are_left_out_and_say_the_strategy():
    flags = ["--ps_hosts=a:1", "--worker_hosts", "b:1", "--epochs=3", "--job_name=worker", "--task_index", "0"]
    one = replica(args=flags)
    made = imported(PS=one, Chief=one, Worker=one)
    assert made.spec["strategy"] == "between_graph"
    assert made.spec["arguments"] == ["--epochs=3"]
    assert said(made, "--task_index is left out")


def test_an_evaluator_beside_sessions_is_left_out_and_more_than_one_chief_is_one():
    made = imported(PS=replica(), Worker=replica(2), Evaluator=replica())
    assert "evaluator" not in made.spec["roles"]
    assert said(made, "Evaluator is left out")
    made = imported(Chief=replica(2), Worker=replica())
    assert made.spec["roles"]["chief"]["replicas"] == 1
    assert said(made, "one chief", "asks for 2")


def test_a_number_that_has_no_end_is_no_amount():
    with pytest.raises(SpecRejected, match=r"limits\.cpu: Expected an amount"):
        imported(Worker=replica(resources={"limits": {"cpu": 1 << 40_000, "memory": "1Gi"}}))


def test_resources_of_each_role_are_taken_and_the_limit_counts():
    limits = {"cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": 2, "rdma/hca": "1", "ephemeral-storage": "10Gi"}
    made = imported(
        Worker=replica(2, resources={"limits": limits, "requests": {"cpu": "500m", "memory": "3072Mi"}}),
        PS=replica(resources={"requests": {"cpu": 2, "memory": "1e9"}}),
    )
    assert made.spec["roles"]["worker"] == {
        "replicas": 2,
        "cpu": 1.5,
        "memory": "3Gi",
        "gpus": 2,
        "extended": {"rdma/hca": 1},
    }
    assert made.spec["roles"]["ps"] == {"replicas": 1, "cpu": 2, "memory": "976562.5Ki"}
    assert said(made, "limit 1500m", "request 500m")
    assert not said(made, "3072Mi"), "the same amount, written in another way"
    assert said(made, "ephemeral-storage is left out")
    assert said(imported(), "no cpu and no memory")


@pytest.mark.parametrize(
    ("argv", "entry", "arguments"),
    [
        (["python", "train.py", "--a", "b c"], "train.py", ["--a", "b c"]),
        (["python3.9", "-u", "-W", "ignore", "./src/train.py"], "src/train.py", []),
        (["/usr/bin/python3", "/opt/model/mnist.py", "--x"], "mnist.py", ["--x"]),
        (["python", "/app/src/train.py"], "src/train.py", []),
        (["python", "-m", "package.train", "--x"], "-m package.train", ["--x"]),
        (["sh", "-c", "python train.py --epochs 3"], "train.py", ["--epochs", "3"]),
        (["bash", "-ec", "cd /app/src && exec python train.py"], "train.py", []),
        (["/app/train.py", "-v"], "train.py", ["-v"]),
    ],
)
def test_what_runs_is_an_entry_point_where_it_can_be(argv, entry, arguments):
    found = entry_of(argv, ["/app"], ())
    assert (found.entry_point, list(found.arguments), found.command) == (entry, arguments, "")


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["sh", "-c", "python a.py && python b.py"], "python a.py && python b.py"),
        (["sh", "-c", "python train.py > $(LOG)/x"], "python train.py > ${LOG}/x"),
        (["sh", "-c", "echo $(date) $$HOME"], "echo $(date) $HOME"),
        (["python", "-c", "print('a b')"], "python -c 'print('\"'\"'a b'\"'\"')'"),
        (["torchrun", "x.py", "$(LOG)"], "torchrun x.py ''\"${LOG}\"''"),
        (["bash", "run.sh"], "bash run.sh"),
    ],
)
def test_anything_else_stays_a_command_for_the_shell(argv, command):
    assert entry_of(argv, [], {"LOG"}).command == command


def test_packages_that_the_command_installs_are_requirements():
    line = "set -e; pip install --no-cache-dir pandas==2.0 && python train.py"
    found = entry_of(["sh", "-c", line], [], ())
    assert (found.entry_point, found.requirements, found.installs) == ("train.py", ("pandas==2.0",), True)
    assert entry_of(["sh", "-c", "pip install . && python train.py"], [], ()).command.startswith("pip install")
    made = imported(Worker=replica(command=["sh", "-c", "pip install -r requirements.txt absl-py && python train.py"]))
    assert "requirements" not in made.spec, "they would take the place of the file"
    assert said(made, "absl-py", "Add these lines to requirements.txt")
    made = imported(Worker=replica(command=["sh", "-c", line]))
    assert made.spec["requirements"] == ["pandas==2.0"]


def test_dollars_mean_the_same_in_a_job_file():
    assert as_argument("$(NAME) $NAME ${NAME} $$(NAME) $5") == "$(NAME) $$NAME $${NAME} $$(NAME) $5"


def test_one_volume_for_everything_is_data_and_results():
    volumes = {"volumes": [{"name": "work", "persistentVolumeClaim": {"claimName": "team-claim"}}]}
    args = [
        "--data_dir=/mnt/data",
        "--log_dir",
        "/mnt/logs",
        "--checkpoint_dir=/mnt/ckpt",
        "--export_dir=/mnt/model/1",
        "--n=/x",
    ]
    env = [{"name": "TRAIN_FILES", "value": "/mnt/data/part-1.csv"}, {"name": "DATA_DIR", "value": "/mnt/data"}]
    made = imported(
        Worker=replica(args=args, env=env, volumeMounts=[{"name": "work", "mountPath": "/mnt/"}], pod=volumes)
    )
    assert made.spec["arguments"] == [
        "--data_dir=$DATA_DIR",
        "--log_dir",
        "$LOG_DIR",
        "--checkpoint_dir=$LOG_DIR/ckpt",
        "--export_dir=$MODEL_DIR",
        "--n=/x",
    ]
    assert made.spec["inputs"] == [{"dataset": "team-claim-data"}]
    assert "DATA_DIR" not in made.spec["environment"]
    assert said(made, "datasets upload FOLDER --name team-claim-data")


def test_several_volumes_with_data_are_named_inputs():
    volumes = [
        {"name": "images", "nfs": {"server": "n", "path": "/exports/images"}},
        {"name": "labels", "hostPath": {"path": "/l"}},
        {"name": "code", "configMap": {"name": "scripts"}},
        {"name": "key", "secret": {"secretName": "k"}},
        {"name": "dshm", "emptyDir": {"medium": "Memory"}},
    ]
    mounts = [{"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes]
    command = ["python", "/code/sub/train.py", "--images", "/images/a.png", "--labels=/labels"]
    made = imported(Worker=replica(command=command, volumeMounts=mounts, pod={"volumes": volumes}))
    assert made.spec["inputs"] == [{"dataset": "images", "name": "images"}, {"dataset": "l", "name": "labels"}]
    assert made.spec["arguments"] == ["--images", "$DATA_DIR/images/a.png", "--labels=$DATA_DIR/labels"]
    assert made.spec["entry_point"] == "sub/train.py"
    assert said(made, "configMap scripts, with the script")
    assert said(made, "the secret k", "left out")
    assert said(made, "emptyDir", "in memory")


def test_variables_and_secrets():
    env = [
        {"name": "LR", "value": "0.1"},
        {"name": "TF_CONFIG", "value": "{}"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "my-secret", "key": "api.token"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ]
    made = imported(Worker=replica(env=env, envFrom=[{"configMapRef": {"name": "all"}}]))
    assert made.spec["environment"] == {"LR": "0.1"}
    assert made.spec["secrets"] == [{"name": "my_secret_api_token", "env": "TOKEN"}]
    assert said(made, "yardmaster secrets set my_secret_api_token")
    for words in (("TF_CONFIG",), ("NODE is of the pod",), ("MODE", "ConfigMap"), ("envFrom",)):
        assert said(made, *words), words


@pytest.mark.parametrize(
    ("policies", "limit", "retries"),
    [
        (["Never", "Never"], 5, 0),
        (["", ""], None, 0),
        (["Never", "OnFailure"], 5, 5),
        (["ExitCode", "ExitCode"], None, None),
        (["Always", "OnFailure"], 10_000, 100),
    ],
)
def test_restart_policies_are_retries(policies, limit, retries):
    policy = {} if limit is None else {"backoffLimit": limit}
    made = imported({"runPolicy": policy}, PS=replica(policy=policies[0]), Worker=replica(2, policies[1]))
    assert made.spec.get("retries") == retries
    assert said(made, "differ") is (len(set(policies)) > 1)


def test_the_run_policy_and_what_decides():
    policy = {
        "activeDeadlineSeconds": 3600,
        "ttlSecondsAfterFinished": 60,
        "cleanPodPolicy": "None",
        "suspend": True,
        "schedulingPolicy": {"minAvailable": 3, "queue": "q", "priorityClass": "high"},
    }
    one = replica(2, pod={"terminationGracePeriodSeconds": 90})
    made = imported({"runPolicy": policy}, PS=replica(), Worker=one)
    assert (made.spec["max_runtime"], made.spec["grace_period"]) == (3600, 90)
    assert made.spec["success"] == {"rule": "chief"}
    for words in (("ttlSecondsAfterFinished",), ("hold_failed",), ("suspend",), ("queue q",), ("priorityClass high",)):
        assert said(made, *words), words
    assert "success" not in imported({"successPolicy": "AllWorkers"}, PS=replica(), Worker=one).spec
    assert "success" not in imported(PS=replica(), Chief=replica(), Worker=one).spec, "there the chief decides anyway"


def test_what_has_no_counterpart_is_listed():
    pod = {
        "nodeSelector": {"a": "b"},
        "tolerations": [{}],
        "affinity": {"x": 1},
        "initContainers": [{"name": "i"}],
        "serviceAccountName": "s",
        "hostAliases": [{"ip": "1"}],
        "containers": [container(livenessProbe={"x": 1}), {"name": "sidecar"}],
    }
    made = imported({"surprise": 1}, Worker={"replicas": 1, "template": {"spec": pod}, "odd": 2})
    for words in (
        "nodeSelector",
        "tolerations",
        "affinity",
        "initContainers",
        "serviceAccountName",
        "hostAliases",
        "livenessProbe",
        "The container sidecar",
        "surprise",
        "odd",
    ):
        assert said(made, words), words
    assert said(made, "image team/mnist:1")


def test_roles_that_run_something_else_are_named():
    made = imported(PS=replica(command=["python", "server.py"], env=[{"name": "X", "value": "1"}]), Worker=replica(2))
    assert made.spec["entry_point"] == "train.py"
    assert said(made, "What ps runs differs")
    assert said(made, "Variables of ps alone", "X")


def test_without_a_command_the_image_says_what_runs():
    worker = {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}}}
    made = imported(Worker=worker)
    assert made.spec["entry_point"] == "train.py"
    assert next(one for one in made.notes if "the image does" in one.message).kind is Kind.TO_DO


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        ([{"kind": "Service"}], "not_a_tfjob", "Service"),
        ([], "not_a_tfjob", "no object"),
        (["text", 3, None], "not_a_tfjob", "text"),
        ([{"kind": "PyTorchJob"}], "other_kind", "PyTorchJob"),
        ([{"kind": "TrainJob", "apiVersion": "trainer.kubeflow.org/v1alpha1"}], "other_kind", "runtime"),
        ([tfjob(), tfjob()], "several_tfjobs", "2 TFJobs"),
        ([{**tfjob(), "apiVersion": "kubeflow.org/v1beta2"}], "old_version", "v1beta2"),
        ([{**tfjob(), "apiVersion": 7}], "bad_value", "kubeflow.org/v1"),
        ([tfjob(PS=replica())], "role_missing", "neither a Chief nor a Worker"),
        ([tfjob(Worker=replica(), Server=replica())], "wrong_type", "replica type"),
        ([tfjob(Worker=[1])], "wrong_type", "a mapping"),
        ([tfjob(Worker={"replicas": "two"})], "wrong_type", "whole number"),
        ([tfjob(Worker=replica(resources={"limits": {"cpu": "lots"}}))], "wrong_type", "an amount"),
        ([tfjob(Worker=replica(policy="Sometimes"))], "wrong_type", "Never"),
        ([tfjob({"runPolicy": {"cleanPodPolicy": "Some"}})], "wrong_type", "Running"),
    ],
)
def test_what_is_no_tfjob_of_this_version_is_refused_with_a_remedy(document, code, words):
    found = problem_of(document)
    assert found.code == code
    assert words in found.message
    assert found.remedy


def test_the_tfjob_among_other_documents_is_found():
    listed = {"kind": "List", "items": [{"kind": "Service", "metadata": {"name": "s"}}, tfjob()]}
    found, others = find_tfjob([None, listed, {"kind": "PersistentVolumeClaim", "metadata": {"name": "p"}}])
    assert found["metadata"]["name"] == "mnist"
    assert others == ["Service s", "PersistentVolumeClaim p"]


@pytest.mark.parametrize(
    ("name", "purpose"),
    [
        ("--data_dir", "data"),
        ("--log-dir", "log"),
        ("--train_dir", "log"),
        ("--train_data_dir", "data"),
        ("--model_dir", "model"),
        ("DATASET_PATH", "data"),
        ("--epochs", ""),
        ("/mnt/checkpoints", "log"),
        ("--saved_model_dir", "model"),
    ],
)
def test_names_say_what_a_path_is_for(name, purpose):
    assert purpose_of(name) == purpose


_TEXTS = st.text(max_size=12) | st.sampled_from(
    ["python", "train.py", "--data_dir=/d/x", "/d/x", "sh", "-c", "$(A)", "Never", "2Gi", "\0", "a b"]
)
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS
_KEYS = st.sampled_from(
    [
        "name",
        "replicas",
        "restartPolicy",
        "template",
        "spec",
        "containers",
        "command",
        "args",
        "env",
        "value",
        "valueFrom",
        "volumeMounts",
        "mountPath",
        "volumes",
        "persistentVolumeClaim",
        "claimName",
        "resources",
        "limits",
        "cpu",
        "memory",
        "secretKeyRef",
        "key",
        "image",
        "runPolicy",
        "backoffLimit",
        "workingDir",
        "successPolicy",
    ]
)
_ANYTHING = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(
    name=_TEXTS,
    workers=st.integers(0, 5),
    servers=st.integers(0, 3),
    chief=st.booleans(),
    argv=st.lists(_TEXTS, max_size=5),
    env=st.lists(st.fixed_dictionaries({"name": _TEXTS | st.sampled_from(["A", "B"]), "value": _TEXTS}), max_size=3),
    mounts=st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b"]), "mountPath": _TEXTS | st.sampled_from(["/d", "/"])}
        ),
        max_size=3,
    ),
    odd=_ANYTHING,
)
def test_whatever_is_imported_is_valid_or_says_what_to_correct(name, workers, servers, chief, argv, env, mounts, odd):
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": f"c-{one}"}} for one in "ab"]
    one = replica(workers, env=env, volumeMounts=mounts, pod={"volumes": volumes})
    one["template"]["spec"]["containers"][0]["command"] = argv
    document = tfjob({"odd": odd}, Worker=one, PS=replica(servers), Chief=replica(int(chief)))
    document["metadata"]["name"] = name
    try:
        made = import_tfjob(document)
    except SpecRejected:
        return
    inputs = [
        {"dataset_version": ID, **{key: one[key] for key in one if key != "dataset"}}
        for one in made.spec.get("inputs", [])
    ]
    to_do = {note.message for note in made.notes if note.kind is Kind.TO_DO}
    assert problems_of({**made.spec, "code": ID, "inputs": inputs}) <= to_do


@settings(max_examples=80, deadline=None)
@given(_ANYTHING, _ANYTHING)
def test_hostile_values_are_refused_or_read_and_never_more(worker, spec):
    document = tfjob(Worker=worker)
    if isinstance(spec, dict):
        document["spec"].update(spec)
    with suppress(SpecRejected):
        import_tfjob(document)


def test_a_thousand_odd_keys_and_containers_make_a_bounded_answer():
    pod = {f"key{number}": number for number in range(5000)}
    containers = [container(), *({"name": f"side{number}"} for number in range(900))]
    made = import_tfjob(tfjob(Worker={"template": {"spec": {**pod, "containers": containers}}}))
    assert len(made.notes) <= 201
    assert max(len(one.message) for one in made.notes) < 1000


def test_many_volumes_paths_and_objects_are_bounded():
    volumes = [{"name": f"v{number}", "hostPath": {"path": f"/h{number}"}} for number in range(1_000)]
    mounts = [{"name": one["name"], "mountPath": f"/m{number}"} for number, one in enumerate(volumes)]
    many = tfjob(Worker=replica(volumeMounts=mounts, pod={"volumes": volumes}))
    found = problem_of([many])
    assert (found.field.rpartition(".")[2], found.code) == ("volumeMounts", "wrong_type")
    args = [f"--flag{number}=/m{number % 100}/x" for number in range(900)]
    made = imported(Worker=replica(args=args, volumeMounts=mounts[:100], pod={"volumes": volumes}))
    assert len(made.spec["inputs"]) == 100
    _, others = find_tfjob([tfjob(), *({"kind": "Pod"} for _ in range(20_000))])
    assert len(others) == 50
    assert "20000 TFJobs" in problem_of([tfjob()] * 20_000).message
