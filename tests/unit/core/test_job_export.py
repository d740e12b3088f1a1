"""A job as manifests for any cluster: what tasks run and see is what they would in the portal, said to Kubernetes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.real.portal import free_port
from yardmaster.errors import SpecRejected
from yardmaster.job.export import Code, Export, Target, export_of
from yardmaster.job.export.code import config_map, fits, keys_of
from yardmaster.job.export.manifests import name_of
from yardmaster.job.export.tasks import literal
from yardmaster.job.spec import (
    USUAL_PATHS,
    DatasetInput,
    InputMode,
    Paths,
    Publishes,
    Resources,
    Role,
    RoleSpec,
    SecretInput,
    Strategy,
    SuccessRule,
    TrainingSpec,
)
from yardmaster.job.spec_images import PinnedImage
from yardmaster.job.strategy import classic_flags, tf_config

FILES = {"train.py": b"print(1)\n", "requirements.txt": b"pandas\n"}
TARGET = Target("team/image:1")
TOOLS = Path(__file__).parents[3] / "platform/yardmaster/job/export/tools"


def spec_of(strategy: Strategy = Strategy.BETWEEN_GRAPH, *, chief: int = 0, ps: int = 1, **more: Any) -> TrainingSpec:
    counts = {Role.CHIEF: chief, Role.WORKER: 1 if strategy is Strategy.SINGLE else 2, Role.PS: ps}
    roles = {role: RoleSpec(count) for role, count in counts.items() if count}
    return TrainingSpec("My job", strategy, roles, uuid.uuid4(), "train.py", **{"paths": USUAL_PATHS, **more})


def exported(spec: TrainingSpec, files: dict[str, bytes] | None = FILES, target: Target = TARGET) -> Export:
    return export_of(spec, Code("digits@3", files), {"": "the dataset mnist@2"}, target)


def pod_of(made: Export, role: str) -> dict[str, Any]:
    found = next(one for one in made.objects if one["metadata"]["name"] == f"my-job-{role}")
    return found["spec"]["template"]["spec"]


def as_read(text: str, index: int) -> str:
    """As Kubernetes gives it to the container of this index."""
    names = {"YARDMASTER_INDEX": str(index)}
    return re.sub(r"\$(\$|\((\w+)\))", lambda found: "$" if found[1] == "$" else names.get(found[2], found[0]), text)


def seen_by(made: Export, role: str, index: int) -> tuple[list[str], dict[str, str]]:
    """Command and variables of a task."""
    (container,) = pod_of(made, role)["containers"]
    variables = {one["name"]: as_read(one["value"], index) for one in container["env"] if "value" in one}
    return [as_read(one, index) for one in container["command"]], variables


@pytest.mark.parametrize(
    ("strategy", "chief", "ps"),
    [
        (Strategy.BETWEEN_GRAPH, 0, 1),
        (Strategy.BETWEEN_GRAPH, 1, 2),
        (Strategy.PARAMETER_SERVER, 1, 1),
        (Strategy.MULTI_WORKER_MIRRORED, 1, 0),
        (Strategy.MULTI_WORKER_MIRRORED, 0, 0),
    ],
)
def test_each_task_gets_the_tf_config_that_it_would_in_the_portal(strategy: Strategy, chief: int, ps: int):
    spec = spec_of(strategy, chief=chief, ps=ps)
    made = exported(spec)
    cluster = {
        role.value: [f"my-job-{role.value}-{index}.my-job:2222" for index in range(spec.replicas(role))]
        for role in spec.roles
    }
    for role, index in spec.tasks():
        command, variables = seen_by(made, role.value, index)
        assert json.loads(variables["TF_CONFIG"]) == tf_config(spec, cluster, role, index)
        flags = classic_flags(spec, cluster, role, index)
        words = " ".join(command)
        assert all(flag in words for flag in flags[:-1])
        if flags and "$((" in words:
            added = int(words.partition("YARDMASTER_INDEX + ")[2].partition("))")[0])
            assert flags[-1] == f"--task_index={added + index}"
        elif flags:
            assert flags[-1] in command


def test_one_task_has_no_tf_config_no_service_and_runs_alone():
    made = exported(spec_of(Strategy.SINGLE, ps=0))
    command, variables = seen_by(made, "worker", 0)
    assert command == ["python3", "-u", "train.py", "--data_dir=/job/data", "--log_dir=/job/log"]
    assert "TF_CONFIG" not in variables
    assert [one["kind"] for one in made.objects] == ["ConfigMap", "ConfigMap", "Job"]


def test_arguments_and_variables_are_expanded_as_in_the_portal_and_nothing_else_is():
    spec = spec_of(
        arguments=("--a=$LR", "--b=${DATA_DIR}/x", "--c=$$HOME", "--d=$(nothing)", "--e=$YARDMASTER_INDEX", "$TOKEN"),
        environment={"LR": "0.1", "BOTH": "$LR $5 $(YARDMASTER_ROLE)"},
        secrets=(SecretInput("KEY", env="TOKEN"),),
    )
    command, variables = seen_by(exported(spec), "worker", 1)
    assert command[-6:] == ["--a=0.1", "--b=/job/data/x", "--c=$HOME", "--d=$(nothing)", "--e=1", "$TOKEN"]
    assert variables["BOTH"] == "0.1 $5 worker"
    assert literal("$(A) $$") == "$$(A) $$$$"


def test_values_of_secrets_are_named_and_never_there():
    secrets = (SecretInput("KEY", env="TOKEN"), SecretInput("GCP", env="GOOGLE", file="keys/gcp.json"))
    made = exported(spec_of(secrets=secrets))
    pod = pod_of(made, "worker")
    env = {one["name"]: one for one in pod["containers"][0]["env"]}
    assert env["TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "my-job-secrets", "key": "KEY"}}
    assert env["GOOGLE"]["value"] == "/job/secrets/keys/gcp.json"
    assert env["SECRETS_DIR"]["value"] == "/job/secrets"
    (volume,) = [one for one in pod["volumes"] if one["name"] == "secrets"]
    assert volume["secret"]["items"] == [{"key": "GCP", "path": "keys/gcp.json"}]
    assert any("--from-literal=KEY=VALUE --from-file=GCP=FILE" in line for line in made.head)


def test_servers_end_with_those_who_decide():
    made = exported(spec_of(reclaim_delay=timedelta(seconds=7)))
    assert seen_by(made, "ps", 0)[0][:4] == ["python3", "/job-tools/until_done.py", "7", "worker-0,worker-1"]
    assert seen_by(made, "worker", 1)[0][:4] == [
        "python3", "/job-tools/report_done.py", "worker-1", "my-job-ps-0.my-job"
    ]  # fmt: skip
    by_leader = exported(spec_of(success_rule=SuccessRule.CHIEF))
    assert seen_by(by_leader, "ps", 0)[0][3] == "worker-0"
    driven = exported(spec_of(Strategy.PARAMETER_SERVER, chief=1))
    assert seen_by(driven, "worker", 1)[0][3] == "chief-0"
    assert seen_by(driven, "chief", 0)[0][3].count(",") == 2, "two workers and a server wait for the chief"
    assert seen_by(exported(spec_of(Strategy.MULTI_WORKER_MIRRORED, ps=0)), "worker", 0)[0][1] == "-u"


def test_limits_retries_and_resources_are_the_jobs():
    asked = Resources(cpu=1.5, memory=3 << 30, gpus=2, extended={"rdma/hca": 1})
    spec = replace(
        spec_of(Strategy.SINGLE, ps=0, retries=0, max_runtime=timedelta(hours=2), grace_period=timedelta(seconds=90)),
        roles={Role.WORKER: RoleSpec(1, asked)},
    )
    made = exported(spec)
    job = made.objects[-1]["spec"]
    pod = pod_of(made, "worker")
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (0, 7200)
    assert (pod["restartPolicy"], pod["terminationGracePeriodSeconds"]) == ("Never", 90)
    amounts = {"cpu": "1.5", "memory": "3Gi", "nvidia.com/gpu": "2", "rdma/hca": "1"}
    assert pod["containers"][0]["resources"] == {"requests": amounts, "limits": amounts}
    assert "CUDA_VISIBLE_DEVICES" not in seen_by(made, "worker", 0)[1]
    assert pod_of(exported(spec_of(retries=3)), "worker")["restartPolicy"] == "OnFailure"


def test_requirements_are_installed_before_the_script():
    def pip(spec: TrainingSpec, files: dict[str, bytes]) -> list[str]:
        before = pod_of(exported(spec, files), "worker")["initContainers"]
        return before[1]["command"][7:] if len(before) > 1 else []

    assert pip(spec_of(), FILES) == ["-r", "requirements.txt"]
    assert pip(spec_of(requirements=("scipy==1.0", "a$b")), FILES) == ["scipy==1.0", "a$$b"]
    assert pip(spec_of(requirements=()), FILES) == []
    assert pip(spec_of(), {"train.py": b""}) == []
    made = exported(spec_of(), {"train.py": b"", "pyproject.toml": b""})
    assert any("pyproject.toml" in line for line in made.head)


def test_modules_commands_and_one_directory():
    module = replace(spec_of(Strategy.SINGLE, ps=0), entry_point="-m package.train", paths=Paths("", "", ""))
    assert seen_by(exported(module), "worker", 0)[0] == ["python3", "-u", "-m", "package.train"]
    command = replace(spec_of(Strategy.SINGLE, ps=0), entry_point="", command="python a.py $(date) $HOME")
    assert seen_by(exported(command), "worker", 0)[0] == ["/bin/sh", "-c", "python a.py $(date) $HOME"]
    one_dir = spec_of(Strategy.SINGLE, ps=0, paths=Paths("", "--model_dir", "--model_dir"))
    command_line, variables = seen_by(exported(one_dir), "worker", 0)
    assert command_line[-1] == "--model_dir=/job/log"
    assert variables["MODEL_DIR"] == "/job/log"


def test_a_claim_has_data_and_results_and_without_one_the_head_says_so():
    inputs = (DatasetInput(uuid.uuid4()),)
    made = exported(spec_of(inputs=inputs), target=Target("i", claim="team-claim"))
    variables = seen_by(made, "worker", 0)[1]
    assert variables["DATA_DIR"] == "/claim/data"
    assert variables["LOG_DIR"] == "/claim/my-job/log"
    assert {"name": "claim", "persistentVolumeClaim": {"claimName": "team-claim"}} in pod_of(made, "ps")["volumes"]
    assert any("mnist@2 into the folder data of the claim team-claim" in line for line in made.head)
    without = exported(spec_of(inputs=inputs))
    assert {"name": "data", "emptyDir": {}} in pod_of(without, "worker")["volumes"]
    assert any("mnist@2 at its top" in line for line in without.head)
    assert any("go with the pods" in line for line in without.head)


def test_images_that_the_job_names_are_those_of_its_pods_unless_another_is_chosen():
    pinned = PinnedImage("torch", f"registry.example/team/line:1@sha256:{'0' * 64}", pull_secret="login")
    spec = spec_of(pinned_images=(pinned,))
    spec = replace(spec, roles={**spec.roles, Role.WORKER: replace(spec.roles[Role.WORKER], image="torch")})
    made = exported(spec, target=Target("own:1", python="/opt/python"))
    (worker,), (server,) = (pod_of(made, role)["containers"] for role in ("worker", "ps"))
    assert (worker["image"], worker["command"][0]) == (pinned.reference, "python3")
    assert (server["image"], server["command"][0]) == ("own:1", "/opt/python")
    assert {one["image"] for one in pod_of(made, "worker")["initContainers"]} == {pinned.reference}
    assert any("imagePullSecrets" in line for line in made.head)
    chosen = exported(spec, target=Target("other:1", is_chosen=True))
    assert pod_of(chosen, "worker")["containers"][0]["image"] == "other:1"
    assert not any("imagePullSecrets" in line for line in chosen.head)


def test_what_the_portal_does_for_a_job_is_named():
    inputs = (DatasetInput(uuid.uuid4(), mode=InputMode.STREAM),)
    made = exported(spec_of(inputs=inputs, publishes=Publishes("ready")))
    assert any("neither streamed nor shared out" in line for line in made.head)
    assert any("version of the dataset ready" in line for line in made.head)
    assert not any("streamed" in line or "version of" in line for line in exported(spec_of()).head)


def test_code_that_is_too_large_is_left_to_the_reader():
    made = exported(spec_of(), None)
    assert any("too large for a ConfigMap" in line for line in made.head)
    assert not [one for one in made.objects if one["metadata"]["name"] == "my-job-code"]
    assert fits({"a.py": 600_000})
    assert not fits({"a.bin": 900_000})
    assert not fits({f"{number}.py": 1 for number in range(1_001)})
    large = exported(spec_of(), {"train.py": b"x" * 300_000})
    assert "--server-side" in large.head[0]


def test_files_keep_their_bytes_and_paths():
    files = {
        "a/b.py": b"1\n",
        "a__b.py": b"2\n",
        "sign.txt": "\u2028".encode(),
        "pixel.png": b"\x89\xff",
        "ümlaut.py": b"3",
    }
    made = config_map({"name": "x"}, files)
    assert set(keys_of(files).values()) == set(files)
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]+", key) for key in keys_of(files))
    assert set(made["data"]) | set(made["binaryData"]) == set(keys_of(files))
    assert len(made["binaryData"]) == 2


def test_a_file_that_is_called_like_a_made_key_keeps_its_own():
    files = {"file-0": b"1", "file-1": b"2", "z b": b"3", "z c": b"4"}
    assert keys_of(files) == {"file-0": "file-0", "file-1": "file-1", "file-2": "z b", "file-3": "z c"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"program": "prepare"}, "program"),
        ({"strategy": Strategy.IN_GRAPH}, "strategy"),
        ({"strategy": Strategy.SERVICE}, "strategy"),
        ({"strategy": Strategy.SPARK}, "strategy"),
        ({"entry_point": "train.ipynb"}, "entry_point"),
        ({"tf1": True}, "tf1"),
    ],
)
def test_what_only_the_portal_can_run_is_refused(change: dict[str, Any], field: str):
    with pytest.raises(SpecRejected) as raised:
        exported(replace(spec_of(), **change))
    (problem,) = raised.value.problems
    assert (problem.field, problem.code) == (field, "not_exportable")
    assert problem.remedy


@pytest.mark.parametrize(
    ("target", "field"),
    [(Target("a b"), "image"), (Target("x\n- y"), "image"), (Target("i", claim="Not/OK"), "claim")],
)
def test_hostile_targets_are_refused(target: Target, field: str):
    with pytest.raises(SpecRejected) as raised:
        exported(spec_of(), target=target)
    assert [one.field for one in raised.value.problems] == [field]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My job", "my-job"),
        ("9 lives", "job-9-lives"),
        ("…", "job"),
        ("a" * 99, "a" * 40),
        ("x\nkind: Pod", "x-kind-pod"),
    ],
)
def test_names_are_dns_labels(name: str, expected: str):
    assert name_of(replace(spec_of(), name=name)) == expected


def test_the_head_stays_a_comment_whatever_names_say():
    spec = replace(spec_of(), name="x\u2028y\nkind: Pod")
    made = export_of(spec, Code("c\n@1", FILES), {"": "a\nb"}, TARGET)
    assert all(line.isprintable() for line in made.head)


def _with_free_port(folder: Path, *names: str) -> list[str]:
    """Copies of the tools: every pod has the port for itself, and here other tests run at the same time."""
    port = free_port("0.0.0.0")
    for name in names:
        text = (TOOLS / name).read_text()
        assert text.count("2223") == 1
        (folder / name).write_text(text.replace("2223", str(port)))
    return [str(folder / name) for name in names]


def test_a_server_runs_until_all_who_decide_have_said_so(tmp_path: Path):
    """The tools of the pods, with a server that would never end and two tasks, one of which fails first."""
    environment = {"HOME": str(tmp_path), "PATH": ""}
    never = "import time\nwhile True: time.sleep(1)"
    until_done, report_done = _with_free_port(tmp_path, "until_done.py", "report_done.py")
    until = [sys.executable, until_done, "0", "worker-0,worker-1", sys.executable, "-c", never]
    with subprocess.Popen(until, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            report = [sys.executable, report_done]
            for task, code in (("worker-0", 0), ("worker-1", 3)):
                command = [*report, task, "127.0.0.1", sys.executable, "-c", f"raise SystemExit({code})"]
                assert subprocess.run(command, env=environment, check=False, timeout=30).returncode == code
            assert server.poll() is None, "worker-1 has failed"
            assert (tmp_path / "done").read_text() == "worker-0\n"
            again = [*report, "worker-1", "127.0.0.1", sys.executable, "-c", "pass"]
            assert subprocess.run(again, env=environment, check=False, timeout=30).returncode == 0
            assert server.wait(30) == 0
            assert server.stdout is not None
            assert "The training is over" in server.stdout.read()
        finally:
            server.kill()


def test_the_code_is_copied_without_the_links_of_a_config_map(tmp_path: Path):
    source, hidden = tmp_path / "source", tmp_path / "source" / "..2026_11_26"
    (hidden / "lib").mkdir(parents=True)
    (hidden / "lib" / "a.py").write_text("1")
    (source / "..data").symlink_to(hidden)
    (source / "lib").symlink_to("..data/lib")
    command = [sys.executable, str(TOOLS / "prepare.py"), str(source), str(tmp_path / "code"), str(tmp_path / "log")]
    subprocess.run(command, check=True, timeout=30)
    assert [one.relative_to(tmp_path / "code").as_posix() for one in (tmp_path / "code").rglob("*")] == [
        "lib",
        "lib/a.py",
    ]
    assert not (tmp_path / "code" / "lib").is_symlink()
    assert (tmp_path / "log").is_dir()
