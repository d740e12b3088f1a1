"""A job as manifests, applied by hand to a namespace that no portal knows: all of its pods do their part and end."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from tests.cluster.reach import Cluster, wait_for
from yardmaster.job.export import Code, Target, export_of
from yardmaster.job.spec import USUAL_PATHS, Resources, Role, RoleSpec, SecretInput, Strategy, TrainingSpec

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(200)]

SCRIPT = """
import argparse, json, os, socket, sys, time
from lib.words import GREETING
parser = argparse.ArgumentParser()
for flag in ("ps_hosts", "worker_hosts", "job_name", "task_index", "data_dir", "log_dir", "greeting", "index"):
    parser.add_argument("--" + flag, default="")
given = parser.parse_args()
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
assert given.job_name == task["type"], (given, config)
assert int(given.task_index) == task["index"] == int(os.environ["YARDMASTER_INDEX"]) == int(given.index)
assert given.worker_hosts.split(",") == config["cluster"]["worker"]
assert given.greeting == "$HOME is " + os.environ["WHAT"] == "$HOME is plain $5", given.greeting
assert os.environ["TOKEN"] == "sesame", "the secret"
for folder in (".", given.log_dir, os.environ["MODEL_DIR"], "/tmp"):
    open(os.path.join(folder, "written"), "w").close()
if task["type"] == "ps":
    server = socket.create_server(("", 2222))
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(GREETING + b" " + connection.recv(100))
host, port = config["cluster"]["ps"][0].split(":")
while True:
    try:
        connection = socket.create_connection((host, int(port)), timeout=5)
        break
    except OSError:
        time.sleep(0.2)
with connection:
    connection.sendall(b"worker %d" % task["index"])
    assert connection.recv(100) == b"hello worker %d" % task["index"]
print("answered", task["index"], flush=True)
"""
FILES = {"train.py": SCRIPT.encode(), "lib/words.py": b'GREETING = b"hello"\n', "lib/pixel": b"\x89\x00\xff"}


def exchanging() -> TrainingSpec:
    """Two workers that ask a server which never ends by itself."""
    small = Resources(cpu=0.1, memory=64 << 20)
    return TrainingSpec(
        "Exchange, v2", Strategy.BETWEEN_GRAPH,
        {Role.WORKER: RoleSpec(2, small), Role.PS: RoleSpec(1, small)},
        uuid.uuid4(), "train.py",
        arguments=("--greeting=$$HOME is ${WHAT}", "--index=$(YARDMASTER_INDEX)"),
        environment={"WHAT": "plain $5"},
        secrets=(SecretInput("TOKEN", env="TOKEN"),),
        paths=USUAL_PATHS,
        retries=0,
        reclaim_delay=timedelta(seconds=2),
    )  # fmt: skip


def test_an_exported_job_runs_to_its_end_without_a_portal(cluster: Cluster, namespace: str, tmp_path: Path):
    made = export_of(exchanging(), Code("exchange@1", FILES), {}, Target(cluster.probe_image, python="python"))
    file = tmp_path / "job.yaml"
    file.write_text("".join(f"# {line}\n" for line in made.head) + yaml.safe_dump_all(made.objects))
    assert any("kubectl create secret generic exchange-v2-secrets" in line for line in made.head)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "exchange-v2-secrets", "namespace": namespace}}
    cluster.apply({**secret, "stringData": {"TOKEN": "sesame"}})
    cluster.kubectl("apply", "-n", namespace, "-f", str(file))
    wait_for("the end of all pods", lambda: _phases(cluster, namespace) == ["Succeeded"] * 3, 90)
    cluster.kubectl("wait", "--for=condition=complete", "--timeout=30s", "-n", namespace, "jobs", "--all")
    logs = cluster.kubectl("logs", "-n", namespace, "job/exchange-v2-worker", "--all-pods=true", "--prefix=false")
    assert {line.partition("] ")[2] for line in logs.splitlines()} == {"answered 0", "answered 1"}
    assert "The training is over" in cluster.kubectl("logs", "-n", namespace, "job/exchange-v2-ps")


def _phases(cluster: Cluster, namespace: str) -> list[str]:
    pods = json.loads(cluster.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    phases = sorted(one["status"]["phase"] for one in pods)
    assert "Failed" not in phases, [
        cluster.kubectl("logs", one["metadata"]["name"], "-n", namespace)
        for one in pods
        if one["status"]["phase"] == "Failed"
    ]
    return phases
