"""Jobs of a whole portal on a real cluster: logs that are complete, users who see nothing of each other."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest

from tests.cluster.jobs import TRAINS, WAITS, cleaned_up, ended, launch, pod_of, text_of
from tests.cluster.pods import ended as exit_of
from tests.cluster.pods import pod
from tests.cluster.reach import Cluster, wait_for
from tests.real.portal import RealPortal
from yardmaster.engines.kubernetes.render.pods import TOKEN_DIR, TOKEN_KEY
from yardmaster_client import PortalError, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

LINES = 1_000_000
USES = """
import os, sys, time
print("seen", os.environ["API_KEY"] == sys.argv[-1][::-1], os.environ["API_KEY"], flush=True)
time.sleep(600)
"""
PRINTS = """
import sys
for number in range(int(sys.argv[-1])):
    print("line", number, "of a log that must arrive whole")
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


@pytest.mark.long
def test_a_million_lines_from_a_pod_arrive_once_each_and_outlive_it(ada: Yardmaster, cluster: Cluster):
    job = ended(ada, launch(ada, PRINTS, str(LINES)))
    cleaned_up(ada, job)
    pods = ("get", "pods", "--all-namespaces", "--show-labels")
    wait_for("the end of its pods", lambda: job.id not in cluster.kubectl(*pods))
    numbers = [int(line.split()[1]) for line in text_of(ada, job).splitlines() if line.startswith("line ")]
    assert numbers == list(range(LINES))


def test_a_pods_own_token_is_in_no_log_and_an_argument_names_a_file_of_the_inputs(ada: Yardmaster, tmp_path: Path):
    (tmp_path / "x.csv").write_text("a,b")
    latest = ada.datasets.put("table", [tmp_path / "x.csv"]).latest
    assert latest is not None
    told = [f"{TOKEN_DIR}/{TOKEN_KEY}", "--table=${DATA_DIR}/x.csv"]
    job = ended(ada, launch(ada, TELLS, *told, inputs=[{"dataset_version": latest.id}]))
    cleaned_up(ada, job)
    assert text_of(ada, job).splitlines() == ["Bearer [task token]", "a,b"]
    (task,) = ada.jobs.tasks(job.id)
    assert job.started_at is not None
    assert task["phase"] == "SUCCEEDED"


def test_a_secret_is_in_the_pod_of_the_job_that_names_it_and_in_no_log_or_object(ada: Yardmaster, cluster: Cluster):
    value = "-".join(str(number) for number in range(40, 60))
    home = next(one.id for one in ada.namespaces() if one.personal and one.role == "manager")
    ada.secret_set(home, "API_KEY", {"value": value})
    job = launch(ada, USES, value[::-1], secrets=[{"name": "API_KEY", "env": "API_KEY"}])
    wait_for("its line", lambda: "seen True [secret API_KEY]" in text_of(ada, job), TRAINS)
    kept = cluster.kubectl("get", "pods,jobs,secrets,configmaps", "--all-namespaces", "-o", "json")
    assert job.id in kept
    assert value not in kept
    assert base64.b64encode(value.encode()).decode() not in kept
    ada.jobs.stop(job.id)


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


@pytest.mark.long
def test_servers_in_pods_are_driven_from_a_pod_with_the_runs_label(ada: Yardmaster, cluster: Cluster):
    task = {"cpu": 0.3, "memory": "1Gi"}
    roles = {"ps": {"replicas": 1, **task}, "worker": {"replicas": 2, **task}}
    servers = ada.jobs.launch({"name": "servers", "strategy": "in_graph", "roles": roles, "max_runtime": 600})
    wait_for("all serve", lambda: "serves at" in text_of(ada, servers, "worker", 1), TRAINS)
    wait_for("the target", lambda: ada.transport.get(f"jobs/{servers.id}/").get("serving"), TRAINS)
    job = ada.transport.get(f"jobs/{servers.id}/")
    namespace, server = pod_of(cluster, servers, "ps", 0)
    script = f"import sys; sys.argv.append({job['serving']['target']!r})\n{DRIVES}"
    driver = pod(cluster, namespace, "driver", script, image=cluster.task_image, memory="1Gi")
    label = {"yardmaster/run": cluster.get("pod", server, namespace)["metadata"]["labels"]["yardmaster/run"]}
    driver["metadata"]["labels"] |= label
    driver["spec"]["securityContext"] |= {"runAsUser": 10_001}
    cluster.apply(driver)
    code = exit_of(cluster, namespace, "driver", TRAINS)
    assert "the servers say 42.0" in cluster.log("driver", namespace), code
    ada.jobs.stop(servers.id)
    ended(ada, servers, "STOPPED")
