"""A real job that is preempted: its script ends, continues from its checkpoint in the next attempt, and loses no step
that was saved."""

from __future__ import annotations

import contextlib
import sqlite3

import httpx2
import pytest

from tests.real.scene import Scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

COUNTS = """
import os, pathlib, time

folder = pathlib.Path(os.environ["LOG_DIR"])
found = sorted(int(one.stem.split("-")[1]) for one in folder.glob("model-*.index"))
step = found[-1] if found else 0
print("begins at", step, flush=True)
while step < 400 and not (folder / "enough").exists():
    time.sleep(1)
    step += 1
    (folder / f"model-{step}.data-00000-of-00001").write_text("x" * step)
    (folder / f"model-{step}.index").write_text("index")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "model-{step}"')
    print("step", step, flush=True)
    if found:
        break
"""
"""What TensorFlow leaves of a checkpoint, without TensorFlow. It ends one step after it continued."""


def test_a_preempted_job_continues_from_its_checkpoint(portal_scene: Scene):
    scene = portal_scene
    headers = {"Authorization": f"Bearer {scene.token}"}
    with httpx2.Client(base_url=f"{scene.portal.url}/api/v1", headers=headers, timeout=60) as http:
        (engine,) = http.get("/preemption/").json()
        said = {"is_on": True, "least_minutes": 1}
        assert http.patch(f"/preemption/{engine['engine']}/", json=said).status_code == 200
        urgent = {"name": "urgent", "value": 100, "preempts": True}
        assert http.post("/priority-classes/", json=urgent).status_code == 201
        (room,) = http.get("/engines/").json()["results"]
        most = {"worker": {"replicas": 1, "cpu": room["total"]["cpu"], "memory": "256Mi"}}
        old = scene.launch(COUNTS, name="long", roles=most)
        until(lambda: http.get(f"/jobs/{old.id}/checkpoints/").json(), 90, "a checkpoint")
        _has_run_for_an_hour(scene, old.id)
        first = scene.launch("print('at last')", name="first", roles=most, priority_class="urgent")
        done = scene.ended(first, 120)
        assert done.phase == "SUCCEEDED"
        again = scene.ended(scene.client.jobs.get(old.id), 120)
        assert (again.phase, again.attempt) == ("SUCCEEDED", 2)
        attempts = http.get(f"/jobs/{old.id}/attempts/").json()
        one = next(each for each in attempts if each["number"] == 1)
        assert (one["phase"], one["reason"]) == ("STOPPED", "Preempted")
        kept = max(each["step"] for each in http.get(f"/jobs/{old.id}/checkpoints/").json() if each["attempt"] == 1)
    lines = scene.lines(again)
    begun = int(next(line for line in lines if line.startswith("begins at")).split()[-1])
    assert begun == kept > 0
    assert f"step {begun + 1}" in lines
    scene.assert_nothing_is_left(again)


def _has_run_for_an_hour(scene: Scene, job_id: str) -> None:
    """As its row says: no test waits so long."""
    with contextlib.closing(sqlite3.connect(f"{scene.portal.home}/portal.sqlite3", timeout=30)) as base, base:
        query = "UPDATE jobs_job SET started_at = datetime(started_at, '-1 hour') WHERE id = ?"
        assert base.execute(query, [job_id.replace("-", "")]).rowcount == 1
