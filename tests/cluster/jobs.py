"""Jobs for tests on a cluster: launched, looked at and waited for through the API, their pods found by kubectl."""

from __future__ import annotations

import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.cluster.reach import Cluster, wait_for
from yardmaster_client import Job, PortalError, Yardmaster
from yardmaster_client.signed import Passing

SMALL = {"cpu": 0.4, "memory": "512Mi"}
TRAINS = 240.0
"""Seconds that a small training may take on a busy machine."""
WAITS = """
import time
print("begun", flush=True)
time.sleep(600)
"""
_names = itertools.count()


def put(client: Yardmaster, script: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "main.py").write_text(script)
        latest = client.code.put(f"code {next(_names)}", [Path(folder)]).latest
    assert latest is not None
    return latest.id


def launch(client: Yardmaster, script: str, *arguments: str, **changes: Any) -> Job:
    spec = {
        "name": f"job {next(_names)}", "strategy": "single", "code": put(client, script), "entry_point": "main.py",
        "arguments": list(arguments), "roles": {"worker": {"replicas": 1, **SMALL}}, "reclaim_delay": 0,
        "grace_period": 2,
    }  # fmt: skip
    return client.jobs.launch(spec | changes)


def text_of(client: Yardmaster, job: Job, role: str = "worker", index: int = 0) -> str:
    data = bytearray()
    try:
        client.transport.download(f"jobs/{job.id}/logs/raw/", Passing(data.extend), role=role, index=index)
    except PortalError:
        return ""
    return data.decode(errors="replace")


def pod_of(cluster: Cluster, job: Job, role: str, index: int) -> tuple[str, str]:
    """(namespace, name) of the task's pod that runs, waited for: a line of its log may come before its node says so."""
    return wait_for(f"pod of {role} {index}", lambda: _running_pod(cluster, job, role, index), 30)


def _running_pod(cluster: Cluster, job: Job, role: str, index: int) -> tuple[str, str] | None:
    found = json.loads(cluster.kubectl("get", "pods", "--all-namespaces", "-o", "json"))["items"]
    for one in found:
        labels = one["metadata"].get("labels", {})
        place = (labels.get("batch.kubernetes.io/job-completion-index"), labels.get("apps.kubernetes.io/pod-index"))
        is_this = labels.get("yardmaster/job") == job.id and labels.get("yardmaster/role") == role
        if is_this and str(index) in place and one["status"].get("phase") == "Running":
            return one["metadata"]["namespace"], one["metadata"]["name"]
    return None


def ended(client: Yardmaster, job: Job, phase: str = "SUCCEEDED") -> Job:
    job = client.jobs.wait(job.id, timeout=TRAINS)
    assert job.phase == phase, (job.reason, job.message, text_of(client, job)[-2000:])
    return job


def cleaned_up(client: Yardmaster, job: Job) -> None:
    wait_for("cleaned_up", lambda: client.jobs.get(job.id).cleaned_up_at is not None)
