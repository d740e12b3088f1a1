"""What happens to jobs when the cluster is disturbed: programs restart, objects vanish, the kernel ends a task."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.cluster.jobs import SMALL, TRAINS, WAITS, cleaned_up, ended, launch, pod_of, text_of
from tests.cluster.reach import DEVCLUSTER, Cluster, wait_for
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

COUNTS = """
import time
for number in range(150):
    print("line", number, flush=True)
    time.sleep(0.2)
"""
EATS = """
import time
held = []
while True:
    held.append(b"x" * (8 << 20))
    print("holds", 8 * len(held), "MiB", flush=True)
    time.sleep(0.4)
"""


def restart(program: str) -> None:
    done = subprocess.run([str(DEVCLUSTER), "restart", program], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"only the development cluster's programs can be restarted here: {done.stderr[-300:]}")


@pytest.mark.alone  # restarts the cluster's programs
def test_the_api_server_and_etcd_restart_under_a_running_job(ada: Yardmaster, cluster: Cluster):
    job = launch(ada, COUNTS)
    wait_for("the first lines", lambda: "line 5" in text_of(ada, job), TRAINS)
    restart("etcd")
    restart("apiserver")
    wait_for("the API server", cluster.answers)
    during = launch(ada, "print('ran')")
    assert "ran" in text_of(ada, ended(ada, during))
    said = [line for line in text_of(ada, ended(ada, job)).splitlines() if line.startswith("line ")]
    assert said == [f"line {number}" for number in range(150)]


@pytest.mark.parametrize("kind", ["job", "configmap"])
def test_what_is_deleted_behind_the_portals_back_is_told_and_leaves_nothing(
    ada: Yardmaster, cluster: Cluster, kind: str
):
    job = launch(ada, WAITS, retries=0)
    wait_for("begun", lambda: "begun" in text_of(ada, job), TRAINS)
    namespace, _ = pod_of(cluster, job, "worker", 0)
    cluster.kubectl("delete", kind, "--namespace", namespace, "--selector", f"yardmaster/job={job.id}", "--wait=false")
    ended_job = ended(ada, job, "FAILED")
    assert ended_job.message
    assert ended_job.remedy
    cleaned_up(ada, job)
    left = ("pods,jobs,statefulsets,services,secrets,configmaps", "--namespace", namespace, "-o", "name")
    wait_for(
        "nothing is left",
        lambda: not cluster.kubectl("get", *left, "--selector", f"yardmaster/job={job.id}").strip(),
    )
    assert "begun" in text_of(ada, job)


@pytest.mark.alone  # takes more than half of the node
def test_two_jobs_that_each_fit_half_run_one_after_the_other(ada: Yardmaster):
    """Each needs more than half of the machine: neither waits for the other with its own half taken."""
    roles = {"worker": {"replicas": 3, **SMALL, "cpu": 0.35}}
    jobs = [launch(ada, "import time; time.sleep(3)", roles=roles, strategy="multi_worker_mirrored") for _ in range(3)]
    for job in jobs:
        ended(ada, job)


def test_a_task_that_takes_more_memory_than_it_may_is_told_with_its_peak(ada: Yardmaster):
    roles = {"worker": {"replicas": 1, "cpu": 0.2, "memory": "256Mi"}}
    job = ended(ada, launch(ada, EATS, roles=roles, retries=0), "FAILED")
    assert job.reason == "OutOfMemory", job.message
    peak = re.search(r"peak memory (\d+(?:\.\d+)?) MiB", job.message)
    assert peak, job.message
    assert 128 < float(peak[1]) <= 256
    assert "more memory" in job.remedy
    assert "holds 96 MiB" in text_of(ada, job)
