"""Jobs of a whole portal on a real cluster: training that goes on, logs that are complete, users who see nothing of
each other.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from portal.env import task_python
from tests.cluster.jobs import TRAINS, WAITS, ended, launch, pod_of, text_of, tidied
from tests.cluster.reach import Cluster, wait_for
from tests.real.portal import ROOT, RealPortal
from yardmaster.engines.kubernetes.environment import TOKEN_DIR, TOKEN_KEY
from yardmaster_client import PortalError, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

LINES = 1_000_000
PRINTS = """
import sys
for number in range(int(sys.argv[-1])):
    print("line", number, "of a log that nobody may shorten")
"""
TELLS = """
import sys
print("Bearer", open(sys.argv[-2]).read().strip())
print(open(sys.argv[-1].partition("=")[2]).read())
"""
DRIVES = """
import sys
import tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
with tf1.device("/job:ps/task:0"):
    kept = tf1.get_variable("kept", initializer=20.0)
with tf1.device("/job:worker/task:1"):
    sum_of = kept + 22.0
with tf1.Session(sys.argv[-1]) as session:
    session.run(tf1.global_variables_initializer())
    print("the servers say", session.run(sum_of), flush=True)
"""


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


def test_a_million_lines_from_a_pod_arrive_once_each_and_outlive_it(ada: Yardmaster, cluster: Cluster):
    job = ended(ada, launch(ada, PRINTS, str(LINES)))
    tidied(ada, job)
    assert job.id not in cluster.kubectl("get", "pods", "--all-namespaces", "--show-labels")
    numbers = [int(line.split()[1]) for line in text_of(ada, job).splitlines() if line.startswith("line ")]
    assert numbers == list(range(LINES))


def test_a_pods_own_token_is_in_no_log_and_an_argument_names_a_file_of_the_inputs(ada: Yardmaster, tmp_path: Path):
    (tmp_path / "x.csv").write_text("a,b")
    latest = ada.datasets.put("table", [tmp_path / "x.csv"]).latest
    assert latest is not None
    told = [f"{TOKEN_DIR}/{TOKEN_KEY}", "--table=${DATA_DIR}/x.csv"]
    job = ended(ada, launch(ada, TELLS, *told, inputs=[{"dataset_version": latest.id}]))
    tidied(ada, job)
    assert text_of(ada, job).splitlines() == ["Bearer [task token]", "a,b"]
    (task,) = ada.jobs.tasks(job.id)
    assert job.started_at is not None
    assert task["phase"] == "SUCCEEDED"


def test_a_worker_whose_pod_is_deleted_goes_on_from_the_checkpoint(ada: Yardmaster, cluster: Cluster, digits):
    job = ada.jobs.launch(digits | {"name": "loses a worker"})
    wait_for("a few steps", lambda: text_of(ada, job).count("\nstep ") > 1, TRAINS)
    namespace, name = pod_of(cluster, job, "worker", 0)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    job = ended(ada, job)
    steps = [int(line.split()[1].split("/")[0]) for line in text_of(ada, job).splitlines() if line.startswith("step ")]
    begins = [later for before, later in itertools.pairwise(steps) if later < before]
    assert all(step > 0 for step in begins), steps
    assert "test accuracy" in text_of(ada, job)


def test_a_lost_parameter_server_costs_time_and_not_the_job(ada: Yardmaster, cluster: Cluster, digits):
    """Not by force: what is deleted so vanishes from the network before its connections are closed, and others wait for
    answers until TCP gives them up."""
    job = ada.jobs.launch(digits | {"name": "loses a parameter server"})
    wait_for("a few steps", lambda: text_of(ada, job).count("\nstep ") > 1, TRAINS)
    namespace, name = pod_of(cluster, job, "ps", 0)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    assert "test accuracy" in text_of(ada, ended(ada, job))


ANEW = {
    "a server": ("ps", "parameter_server", ["--steps=3000"], {"chief": 1, "worker": 1, "ps": 1}),
    "the chief": ("chief", "parameter_server", ["--steps=3000"], {"chief": 1, "worker": 1, "ps": 1}),
    "a member": ("worker", "multi_worker_mirrored", ["--epochs=40"], {"worker": 2}),
}


@pytest.mark.parametrize(("lost", "strategy", "arguments", "replicas"), ANEW.values(), ids=ANEW)
def test_tensorflow_7767_a_loss_that_concerns_all_starts_all_anew_from_the_checkpoint(
    ada: Yardmaster, cluster: Cluster, digits: dict[str, Any], lost: str, strategy: str, arguments, replicas
):
    spec = digits | {"name": f"loses its {lost}", "strategy": strategy, "entry_point": f"{strategy}.py"}
    roles = {role: {"replicas": count, "cpu": 0.3, "memory": "1Gi"} for role, count in replicas.items()}
    job = ada.jobs.launch(spec | {"arguments": arguments, "roles": roles})
    wait_for("a checkpoint", lambda: ada.transport.get(f"jobs/{job.id}/checkpoints/"), 120)
    namespace, name = pod_of(cluster, job, lost, replicas[lost] - 1)
    cluster.kubectl("delete", "pod", name, "--namespace", namespace, "--grace-period=1")
    job = ended(ada, job)
    events = ada.transport.get(f"jobs/{job.id}/events/")["results"]
    assert [one["kind"] for one in events].count("restarted_together") == 1
    text = text_of(ada, job, "chief" if "chief" in replicas else "worker")
    assert "test accuracy" in text
    steps = [int(step) for step in re.findall(r"^(?:step|Epoch) (\d+)/", text, re.MULTILINE)]
    lives = text.count("oneDNN custom operations are on")
    assert went_on(steps), (lives, steps)


def went_on(steps: list[int]) -> bool:
    """Whether no step was skipped, and a task that began a second time did not begin with the first."""
    size = steps[0]
    return size not in steps[1:] and all(later <= before + size for before, later in itertools.pairwise(steps))


def test_a_portal_that_is_killed_and_comes_back_has_lost_no_line(ada: Yardmaster, portal: RealPortal):
    script = "import time\nfor n in range(400):\n    print('line', n, flush=True)\n    time.sleep(0.05)\n"
    job = launch(ada, script)
    wait_for("the first lines", lambda: "line 20" in text_of(ada, job), TRAINS)
    for name in ("web", "worker", "conductor", "beat", "valkey"):
        portal.kill(name)
    time.sleep(5)
    portal.start("valkey")
    portal.start("web", "worker", "beat", "conductor")
    job = ended(ada, job)
    said = [line for line in text_of(ada, job).splitlines() if line.startswith("line ")]
    assert said == [f"line {number}" for number in range(400)]


def test_two_users_see_nothing_of_each_other(ada: Yardmaster, bob: Yardmaster, portal: RealPortal, cluster: Cluster):
    hers, his = launch(ada, WAITS), launch(bob, WAITS)
    for client, job in ((ada, hers), (bob, his)):
        wait_for("begun", lambda client=client, job=job: "begun" in text_of(client, job), TRAINS)
    places = {pod_of(cluster, job, "worker", 0)[0] for job in (hers, his)}
    assert len(places) == 2
    for path in ("", "tasks/", "logs/", "logs/raw/", "manifests/", "events/"):
        with pytest.raises(PortalError) as refused:
            bob.transport.get(f"jobs/{hers.id}/{path}")
        assert refused.value.status == 404
    with pytest.raises(PortalError, match="no such job"):
        list(bob.jobs.follow(hers.id))
    assert hers.id not in {job.id for job in bob.jobs.list()}
    for client, job in ((ada, hers), (bob, his)):
        client.jobs.stop(job.id)
        ended(client, job, "STOPPED")


def test_servers_in_pods_are_driven_from_another_pod_of_the_namespace(ada: Yardmaster):
    task = {"cpu": 0.2, "memory": "1Gi"}
    roles = {"ps": {"replicas": 1, **task}, "worker": {"replicas": 2, **task}}
    servers = ada.jobs.launch({"name": "servers", "strategy": "in_graph", "roles": roles, "max_runtime": 600})
    wait_for("all serve", lambda: "serves at" in text_of(ada, servers, "worker", 1), TRAINS)
    wait_for("the target", lambda: ada.transport.get(f"jobs/{servers.id}/").get("serving"), TRAINS)
    job = ada.transport.get(f"jobs/{servers.id}/")
    driver = launch(ada, DRIVES, job["serving"]["target"], roles={"worker": {"replicas": 1, **task}})
    assert "the servers say 42.0" in text_of(ada, ended(ada, driver))
    ada.jobs.stop(servers.id)
    ended(ada, servers, "STOPPED")
