"""Training jobs in pods lose a task, and go on from their checkpoints."""

from __future__ import annotations

import itertools
import re
import subprocess
from typing import Any

import pytest

from portal.env import task_python
from tests.cluster.jobs import TRAINS, ended, pod_of, text_of
from tests.cluster.reach import Cluster, wait_for
from tests.real.portal import ROOT
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(700)]


@pytest.fixture(scope="module")
def digits(ada: Yardmaster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The example on parameter servers, so slow that there is time to disturb it."""
    example, data = ROOT / "examples" / "digits", tmp_path_factory.mktemp("digits")
    subprocess.run([task_python(), str(example / "prepare.py"), str(data)], check=True, capture_output=True)
    dataset, code = ada.datasets.put("digits", [data]).latest, ada.code.put("digits", [example]).latest
    assert dataset is not None
    assert code is not None
    task = {"cpu": 0.3, "memory": "1Gi"}
    return {
        "strategy": "between_graph", "code": code.id, "entry_point": "between_graph.py",
        "inputs": [{"dataset_version": dataset.id}], "reclaim_delay": 1, "grace_period": 5, "retries": 3,
        "environment": {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "1"},
        "arguments": ["--steps=400", "--checkpoint_every=20", "--step_sleep=0.1"],
        "roles": {"ps": {"replicas": 1, **task}, "worker": {"replicas": 2, **task}},
    }  # fmt: skip


@pytest.mark.long
def test_a_worker_whose_pod_is_deleted_goes_on_from_the_checkpoint(ada: Yardmaster, cluster: Cluster, digits):
    """Its new pod has an empty folder: without the portal's checkpoint it would begin with the first step."""
    more = {"name": "loses a worker", "arguments": ["--steps=1000", "--checkpoint_every=20", "--step_sleep=0.1"]}
    job = ada.jobs.launch(digits | more)
    wait_for("a checkpoint of a later step", lambda: kept_steps(ada, job)[0] >= 20, TRAINS)
    namespace, name = pod_of(cluster, job, "worker", 0)
    before = steps_of(ada, job)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    job = ended(ada, job)
    events = ada.transport.get(f"jobs/{job.id}/events/")["results"]
    restarted = [one["facts"] for one in events if one["kind"] == "task_restarted"]
    assert [(one["role"], one["index"]) for one in restarted] == [("worker", 0)], events
    steps = steps_of(ada, job)
    assert len(steps) >= len(before) + 4, "no lines of a second life: the first may have written two more"
    assert min(steps[1:]) >= LINES_EVERY, steps
    assert "test accuracy" in text_of(ada, job)


LINES_EVERY = 20
"""Local steps between two lines; each is at least one of the global steps, which the lines say. So only the first line
of a worker that began with the first step can say fewer."""


def kept_steps(ada: Yardmaster, job: Job) -> list[int]:
    """Of the checkpoints at the portal, the one to continue from first."""
    return [one["step"] for one in ada.transport.get(f"jobs/{job.id}/checkpoints/")] or [0]


def steps_of(ada: Yardmaster, job: Job) -> list[int]:
    return [int(step) for step in re.findall(r"^step (\d+)/", text_of(ada, job), re.MULTILINE)]


def test_a_lost_parameter_server_costs_time_and_not_the_job(ada: Yardmaster, cluster: Cluster, digits):
    """Not by force: what is deleted so vanishes from the network before its connections are closed, and others wait for
    answers until TCP gives them up."""
    job = ada.jobs.launch(digits | {"name": "loses a parameter server"})
    wait_for("a few steps", lambda: text_of(ada, job).count("\nstep ") > 1, TRAINS)
    namespace, name = pod_of(cluster, job, "ps", 0)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    assert "test accuracy" in text_of(ada, ended(ada, job))


ALL_TASKS_CPU = 0.9
"""Of a node of two processors, on which tests of another file run at the same time. A pod gets no more than it asks
for, and TensorFlow's start is all computing: where fewer tasks divide it, they are done sooner."""
AT_LENGTH = (pytest.mark.long,)
LOSSES = {
    "a server": ("ps", "parameter_server", ["--steps=1500"], {"chief": 1, "worker": 1, "ps": 1}),
    "the chief": ("chief", "parameter_server", ["--steps=1500"], {"chief": 1, "worker": 1, "ps": 1}),
    "a member": ("worker", "multi_worker_mirrored", ["--epochs=40"], {"worker": 2}),
}


CASES = [pytest.param(*case, id=name, marks=AT_LENGTH * (name == "the chief")) for name, case in LOSSES.items()]
"""Of a server and a chief, whose losses concern the same tasks, a server is enough."""


@pytest.mark.parametrize(("lost", "strategy", "arguments", "replicas"), CASES)
def test_tensorflow_7767_a_loss_that_concerns_all_restarts_all_from_the_checkpoint(
    ada: Yardmaster, cluster: Cluster, digits: dict[str, Any], lost: str, strategy: str, arguments, replicas
):
    spec = digits | {"name": f"loses its {lost}", "strategy": strategy, "entry_point": f"{strategy}.py"}
    cpu = round(ALL_TASKS_CPU / sum(replicas.values()), 2)
    roles = {role: {"replicas": count, "cpu": cpu, "memory": "1Gi"} for role, count in replicas.items()}
    job = ada.jobs.launch(spec | {"arguments": arguments, "roles": roles})
    wait_for("a checkpoint", lambda: ada.transport.get(f"jobs/{job.id}/checkpoints/"), TRAINS)
    namespace, name = pod_of(cluster, job, lost, replicas[lost] - 1)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    job = ended(ada, job)
    events = ada.transport.get(f"jobs/{job.id}/events/")["results"]
    assert [one["kind"] for one in events].count("gang_restart") == 1
    text = text_of(ada, job, "chief" if "chief" in replicas else "worker")
    assert "test accuracy" in text
    steps = [int(step) for step in re.findall(r"^(?:step|Epoch) (\d+)/", text, re.MULTILINE)]
    lives = text.count("oneDNN custom operations are on")
    assert went_on(steps), (lives, steps)


def went_on(steps: list[int]) -> bool:
    """Whether no step was skipped, and a task that began a second time did not begin with the first."""
    size = steps[0]
    return size not in steps[1:] and all(later <= before + size for before, later in itertools.pairwise(steps))
