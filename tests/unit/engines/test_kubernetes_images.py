"""Images of the catalogue in pods: which container has which, how the runner comes in, what they are pulled with, and
what is said where they cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.kubernetes_store import violations
from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import BEGUN, KEY, OPTIONS, container, event, owner, pod, workload
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.observe.facts import Seen, events_wanted, observation_of
from yardmaster.engines.kubernetes.render import images, manifests, names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.spec_images import PinnedImage
from yardmaster.lifecycle.failures import REASONS, verdict_for
from yardmaster.lifecycle.image_words import IMAGES, NOT_PULLED
from yardmaster.lifecycle.phases import TaskPhase, TaskState

ACCESS = TaskAccess("http://portal:8080", "the-token")
DIGEST = "sha256:" + "a" * 64
PLANTS = PinnedImage("plants", f"registry.example/lab/plants:2@{DIGEST}", "plants-login")
PUBLIC = PinnedImage("public", f"registry.example/public@{DIGEST}")
SOURCE = Path(images.__file__).parents[4]
Raw = dict[str, Any]


def spec_with(overall: str = "", **of_role: str) -> TrainingSpec:
    made = make_spec(shape={Role.WORKER: 2, Role.PS: 1})
    roles = {role: replace(one, image=of_role.get(role.value, "")) for role, one in made.roles.items()}
    return replace(made, image=overall, roles=roles, pinned_images=(PLANTS, PUBLIC))


def templates(spec: TrainingSpec, **options: Any) -> dict[str, Raw]:
    """By role; each keeps to what `restricted` asks for."""
    chosen = TaskOptions.from_table({"image": "tasks:1", **options})
    made = manifests.Run.of(spec, KEY, ACCESS, chosen).workloads
    found = {one["metadata"]["labels"][names.ROLE]: one["spec"]["template"] for one in made}
    assert [violations(one["spec"]) for one in found.values()] == [[]] * len(found)
    return found


def variables(container: Raw) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container["env"]}


# --- which image, and the runner -------------------------------------------------------------------------------------


def test_the_image_of_a_role_comes_before_that_of_the_job_and_of_the_pool():
    pools = [{"name": "servers", "roles": ["ps"], "image": "pool:1"}]
    found = templates(spec_with("public", worker="plants"), pools=pools)
    assert found["worker"]["spec"]["containers"][0]["image"] == PLANTS.reference
    assert found["ps"]["spec"]["containers"][0]["image"] == PUBLIC.reference
    alone = templates(spec_with(worker="plants"), pools=pools)
    assert alone["ps"]["spec"]["containers"][0]["image"] == "pool:1"
    assert "initContainers" not in alone["ps"]["spec"]
    assert "annotations" not in alone["ps"]["metadata"]


def test_the_runner_is_copied_from_the_engines_own_image_and_stays_out_of_the_images_search_path():
    pod = templates(spec_with("plants"), python="/opt/venv/bin/python", runner_path="/opt/yardmaster")["worker"]["spec"]
    (copy,), (task,) = pod["initContainers"], pod["containers"]
    assert (copy["image"], copy["command"][0]) == ("tasks:1", "/opt/venv/bin/python")
    assert copy["env"] == [{"name": "PYTHONPATH", "value": "/opt/yardmaster"}]
    assert copy["volumeMounts"] == [{"name": "runner", "mountPath": "/yardmaster/runner"}]
    assert {"name": "runner", "mountPath": "/yardmaster/runner", "readOnly": True} in task["volumeMounts"]
    assert task["command"][0] == "python3", "the operator's path is one of the operator's image"
    assert "PYTHONPATH" not in variables(task)


def test_an_image_that_only_has_the_runner_is_used_where_the_operator_named_one():
    pod = templates(spec_with("plants"), runner_image="runner:1", runner_path="/opt/yardmaster")["worker"]["spec"]
    assert pod["initContainers"][0]["image"] == "runner:1"
    assert "PYTHONPATH" not in variables(pod["containers"][0])


def test_what_the_two_commands_do(tmp_path: Path):
    """Python itself runs them: the copy from where it finds the runner, and the start of the copy."""
    folder = tmp_path / "runner"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    pod = templates(spec_with("plants"))["worker"]["spec"]
    for _ in range(2):  # a container that is started again finds what it copied before
        copy = pod["initContainers"][0]["command"][2].replace("/yardmaster/runner", str(folder))
        subprocess.run([sys.executable, "-c", copy], env=environment, check=True)
    assert (folder / "yardmaster_runner" / "__main__.py").is_file()
    start = pod["containers"][0]["command"][2].replace("/yardmaster/runner", str(folder))
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER", "PYTHONPATH"))}
    done = subprocess.run([sys.executable, "-c", start], env=plain, cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr == "yardmaster-runner: YARDMASTER_WORK_DIR is not set: the engine must give it\n"


# --- what it is pulled with ------------------------------------------------------------------------------------------


def test_each_pod_has_the_secret_of_its_own_image_and_no_container_sees_it():
    options = {"image_pull_secrets": ["all"], "pull_secrets_from": "operators"}
    found = templates(spec_with("public", worker="plants"), **options)
    copy = f"{KEY.name}-pull-0"
    assert found["worker"]["spec"]["imagePullSecrets"] == [{"name": "all"}, {"name": copy}]
    assert found["ps"]["spec"]["imagePullSecrets"] == [{"name": "all"}]
    assert copy not in str([found["worker"]["spec"][part] for part in ("containers", "initContainers", "volumes")])


def test_what_is_in_the_namespace_already_is_not_copied():
    spec = spec_with("plants")
    there = TaskOptions(image="tasks:1", image_pull_secrets=("plants-login",), pull_secrets_from="operators")
    for options in (OPTIONS, there):
        assert images.copied_pull_secrets(spec, KEY, options) == {}
    assert templates(spec)["worker"]["spec"]["imagePullSecrets"] == [{"name": "plants-login"}]
    both = templates(spec, image_pull_secrets=["plants-login"], pull_secrets_from="operators")
    assert both["worker"]["spec"]["imagePullSecrets"] == [{"name": "plants-login"}]
    own = TaskOptions(image="tasks:1", pull_secrets_from="operators")
    assert images.copied_pull_secrets(spec_with(), KEY, own) == {}


# --- what is said ----------------------------------------------------------------------------------------------------

HEAD = f'failed to pull and unpack image "{PLANTS.reference}": failed to resolve reference "{PLANTS.reference}": '
URL = f"https://registry.example/v2/lab/plants/manifests/{DIGEST}"


def seen(word: str, message: str, spec: TrainingSpec | None = None, **state: Any) -> TaskState:
    waiting = {"state": {"waiting": {"reason": word, "message": message}}}
    return task_of("Pending", container(**(state or waiting)), spec)


def task_of(phase: str, statuses: list[Raw], spec: TrainingSpec | None = None, events: tuple[Raw, ...] = ()):
    spec = spec or make_spec(Strategy.SINGLE, retries=2)
    one = pod(Role.WORKER, 0, phase, containerStatuses=statuses)
    one["metadata"]["annotations"][names.IMAGE] = "plants"
    found = observation_of(Seen(owner(spec), [workload(Role.WORKER, spec.retries)], [one], list(events)))
    return found.tasks[0]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (f"{HEAD}{PLANTS.reference}: not found", "ImageNotFound"),
        ("reading manifest sha256:1 in registry.example/lab/plants: manifest unknown", "ImageNotFound"),
        (f"{HEAD}unexpected status from HEAD request to {URL}: 401 Unauthorized", "ImageAccessDenied"),
        (f"{HEAD}pull access denied, repository does not exist or may require authorization", "ImageAccessDenied"),
        (f"{HEAD}failed to authorize: failed to fetch anonymous token: 403 Forbidden", "ImageAccessDenied"),
        (f'{HEAD}failed to do request: Head "{URL}": dial tcp: lookup registry.example: no such host',
         "RegistryUnreachable"),
        (f'{HEAD}failed to do request: Head "{URL}": x509: certificate signed by unknown authority',
         "RegistryUnreachable"),
        (f"{HEAD}unexpected status from HEAD request to {URL}: 503 Service Unavailable", "RegistryUnreachable"),
        (f"{HEAD}no match for platform in manifest {DIGEST}: not found", "ImagePlatform"),
        (f"{HEAD}write /var/lib/containerd/x: no space left on device", "ImagePull"),
    ],
)  # fmt: skip
def test_why_an_image_cannot_be_pulled_is_said_with_its_name_and_a_remedy(said: str, reason: str):
    for word, message in (
        ("ErrImagePull", f"rpc error: code = NotFound desc = {said}"),
        (
            "ImagePullBackOff",
            f'Back-off pulling image "{PLANTS.reference}": ErrImagePull: rpc error: code = X desc = {said}',
        ),
    ):
        task = seen(word, message)
        phase = TaskPhase.FAILED if REASONS[reason].permanent else TaskPhase.PENDING
        assert (task.phase, task.reason) == (phase, reason)
        assert "the image plants" in task.message.lower()
        assert task.message.endswith(said.removeprefix(HEAD))
        verdict = verdict_for(task)
        assert verdict.message.startswith("Worker 0 could not start")
        assert task.message in verdict.message
        assert "dministrator" in verdict.remedy


def test_an_older_kubelet_says_why_in_an_event_and_until_then_only_that_it_waits():
    message = f'Back-off pulling image "{PLANTS.reference}"'
    task = seen("ImagePullBackOff", message)
    assert (
        task.message
        == f"The node could not pull the image plants ({PLANTS.reference}). It waits before it tries again."
    )
    spec = make_spec(Strategy.SINGLE, retries=2)
    waits = pod(Role.WORKER, 0, "Pending", containerStatuses=container(
        state={"waiting": {"reason": "ImagePullBackOff", "message": message}}))  # fmt: skip
    known = observation_of(Seen(owner(spec), [workload(Role.WORKER, 2)], [waits], []))
    assert events_wanted(known) == ["type=Warning"]
    said = event(waits, "Failed", f'Failed to pull image "{PLANTS.reference}": {HEAD}{PLANTS.reference}: not found')
    found = observation_of(Seen(owner(spec), [workload(Role.WORKER, 2)], [waits], [said]))
    assert found.tasks[0].reason == "ImageNotFound"
    assert events_wanted(found) == []


@pytest.mark.parametrize(
    "why",
    [
        'exec: "python3": executable file not found in $PATH: unknown',
        'exec: "python3": permission denied: unknown',
        'exec: "/opt/venv/bin/python": stat /opt/venv/bin/python: no such file or directory: unknown',
    ],
)
def test_an_image_without_python_fails_at_once_and_says_so(why: str):
    message = f"failed to create containerd task: failed to create shim task: OCI runtime create failed: {why}"
    ended = {"exitCode": 128, "reason": "StartError", "message": message, "startedAt": BEGUN, "finishedAt": BEGUN}
    for task in (seen("RunContainerError", message), task_of("Failed", container(state={"terminated": ended}))):
        assert (task.phase, task.reason) == (TaskPhase.FAILED, "ImageLacksPython")
        assert task.message.startswith("The image plants has no Python that its tasks may start.")
        assert task.message.endswith(why)


def test_an_image_for_other_processors_fails_at_once_and_says_so():
    said = {"reason": "Error", "message": "exec /usr/bin/python3: exec format error\n"}
    runtime = {"reason": "StartError", "message": 'runc create failed: exec: "python3": exec format error: unknown'}
    for one in (said, runtime):
        ended = {"exitCode": 255, "startedAt": BEGUN, "finishedAt": BEGUN, **one}
        task = task_of("Failed", container(state={"terminated": ended}))
        assert (task.phase, task.reason) == (TaskPhase.FAILED, "ImagePlatform")
        assert task.message.startswith("The image plants is not for the processor of the node. The node says: ")


def test_a_script_that_prints_such_words_has_failed_by_itself():
    output = "begun\nOSError: [Errno 8] exec: exec format error"
    ended = {"exitCode": 1, "reason": "Error", "message": output, "startedAt": BEGUN, "finishedAt": BEGUN}
    assert task_of("Failed", container(state={"terminated": ended})).reason == "ScriptFailed"


def test_another_failure_to_start_is_said_as_it_was():
    task = seen("CreateContainerError", "context deadline exceeded")
    assert (task.reason, task.message) == ("StartFailed", "CreateContainerError: context deadline exceeded")


def test_each_word_has_a_remedy_and_only_what_is_tried_again_waits():
    assert set(IMAGES) < set(REASONS)
    assert all(REASONS[word].remedy for word in IMAGES)
    assert {word for word in IMAGES if not REASONS[word].permanent} == NOT_PULLED
