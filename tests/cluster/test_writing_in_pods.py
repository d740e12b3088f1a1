"""What scripts in pods write: an export after a stop that waits for the portal, and the checkpoint of a second life."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import pytest

from tests.cluster.jobs import TRAINS, cleaned_up, ended, launch, pod_of, text_of
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.real.portal import RealPortal
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

GRACE = 8
MODEL = 128 << 20
"""Bytes of its weights: several parts, so that the upload takes a while."""
EXPORTS = f"""
import hashlib, os, signal, sys, time
weights = os.urandom(1 << 20) * {MODEL >> 20}
def export(number, frame):
    model = os.environ["MODEL_DIR"]
    os.makedirs(model + "/variables", exist_ok=True)
    for name, data in (("data-00000-of-00001", weights), ("index", b"index")):
        with open(model + "/variables/variables." + name, "wb") as file:
            file.write(data)
    with open(model + "/saved_model.pb", "wb") as file:
        file.write(b"exported after SIGTERM")
    sys.exit(0)
signal.signal(signal.SIGTERM, export)
print("weights", hashlib.sha256(weights).hexdigest(), flush=True)
while True:
    time.sleep(0.05)
"""
CHECKPOINTS = """
import os, time
log = os.environ["LOG_DIR"]
found = open(log + "/checkpoint").read().split() if os.path.exists(log + "/checkpoint") else ["-", "nothing"]
if found[1] == "nothing":
    print("begins with nothing", flush=True)
else:
    data = open(log + "/" + found[1].strip('"') + ".data-00000-of-00001").read()
    print("begins with", found[1], data, sorted(name for name in os.listdir(log) if "ckpt" in name), flush=True)
    raise SystemExit
def write(step, *endings):
    for ending in endings:
        with open(f"{log}/ckpt-{step}.{ending}", "w") as file:
            file.write(f"variables of step {step}")
    with open(log + "/new", "w") as file:
        file.write(f'model_checkpoint_path: "ckpt-{step}"')
    os.replace(log + "/new", log + "/checkpoint")
for step in (10, 20):
    write(step, "index", "data-00000-of-00001")
while not os.path.exists("/tmp/go"):
    time.sleep(0.05)
write(30, "data-00000-of-00002", "index")
print("wrote half of step 30", flush=True)
while True:
    time.sleep(1)
"""


def test_an_export_after_a_stop_is_kept_though_the_portal_is_away_until_the_grace_period_is_over(
    ada: Yardmaster, cluster: Cluster, portal: RealPortal, tmp_path: Path
):
    roles = {"worker": {"replicas": 1, "cpu": 0.5, "memory": "1Gi"}}
    job = launch(ada, EXPORTS, roles=roles, grace_period=GRACE)
    wait_for("its first line", lambda: "weights " in text_of(ada, job), TRAINS)
    expected = text_of(ada, job).split()[1]
    namespace, pod = pod_of(cluster, job, "worker", 0)
    ada.jobs.stop(job.id)
    portal.kill("web")  # the worker goes on and asks the pod to end; its export finds no portal
    wait_for("the pod is asked to end", lambda: _is_ending(cluster, namespace, pod), 60)
    over = time.monotonic() + GRACE + 1
    wait_for("the end of the grace period", lambda: time.monotonic() > over, GRACE + 10)
    assert _is_ending(cluster, namespace, pod), "the pod ended with the grace period, before its export was up"
    portal.start("web")
    job = ended(ada, job, "STOPPED")
    cleaned_up(ada, job)
    kept = ada.jobs.get(job.id).model
    assert kept is not None, "the export is lost"
    version = ada.models.version(kept)
    assert (version.job, version.stopped) == (job.id, True)
    ada.models.download(version.id, tmp_path)
    with (tmp_path / "variables/variables.data-00000-of-00001").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == expected
    assert (tmp_path / "saved_model.pb").read_bytes() == b"exported after SIGTERM"
    pods = ("get", "pods", "--all-namespaces", "--show-labels")
    wait_for("the end of its pods", lambda: job.id not in cluster.kubectl(*pods))


def _is_ending(cluster: Cluster, namespace: str, pod: str) -> bool:
    """Whether the pod is being deleted, and its container still runs."""
    try:
        found = cluster.get("pod", pod, namespace)
    except Refused:
        return False
    states = [one["state"] for one in found["status"].get("containerStatuses", ())]
    return "deletionTimestamp" in found["metadata"] and any("running" in state for state in states)


def test_a_task_in_a_new_pod_begins_with_the_newest_complete_checkpoint(ada: Yardmaster, cluster: Cluster):
    """The newest is half written when its pod is lost, and the folder of the new pod is empty."""
    job = launch(ada, CHECKPOINTS, retries=2)
    kept = wait_for("a checkpoint", lambda: ada.transport.get(f"jobs/{job.id}/checkpoints/"), TRAINS)
    assert [one["step"] for one in kept] == [20], json.dumps(kept)
    namespace, pod = pod_of(cluster, job, "worker", 0)
    cluster.kubectl("exec", pod, "--namespace", namespace, "--", "touch", "/tmp/go")
    wait_for("half a checkpoint", lambda: "wrote half" in text_of(ada, job))
    cluster.kubectl("delete", "pod", pod, "--namespace", namespace, "--grace-period=1")
    wait_for("a second life", lambda: len(_beginnings(ada, job)) > 1, TRAINS)
    files = "['ckpt-20.data-00000-of-00001', 'ckpt-20.index']"
    expected = ["begins with nothing", f'begins with "ckpt-20" variables of step 20 {files}']
    assert _beginnings(ada, job) == expected
    ended(ada, job)


def _beginnings(ada: Yardmaster, job: Job) -> list[str]:
    """What each life of its task has found."""
    return [line for line in text_of(ada, job).splitlines() if line.startswith("begins with")]
