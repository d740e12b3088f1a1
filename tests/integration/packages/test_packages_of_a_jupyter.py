"""A real Jupyter that starts with the packages that a job has installed."""

from __future__ import annotations

import subprocess

import pytest

from tests.real.scene import Scene

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.timeout(300)]


@pytest.mark.long
def test_it_starts_with_the_packages_of_a_job(portal_with_index: Scene) -> None:
    scene = portal_with_index
    code = scene.put_code({"main.py": "import greet", "requirements.txt": "greet>=2\n"}, "before")
    assert scene.ended(scene.client.jobs.launch(scene.spec(code))).phase == "SUCCEEDED"
    found = scene.client.transport.get("environments/")["results"]
    environment = next(one["id"] for one in found if one["requirements"] == ["greet>=2"])
    session = scene.client.sessions.start("jupyter", environment=environment)
    ready = scene.client.sessions.wait(session.id, timeout=120)
    assert ready.state == "ready", ready
    assert ready.job is not None
    job = scene.client.jobs.get(ready.job)
    said = scene.lines(job)
    assert any("greet 2.0, polite 1.5" in line for line in said), said
    assert any("the program says hello again" in line for line in ran_in(scene, job.id)), said
    scene.client.sessions.stop(session.id)


def ran_in(scene: Scene, job_id: str) -> list[str]:
    """What the interpreter of its kernels prints of the package."""
    place = next(scene.portal.home.glob("local/runs/*/tasks/worker-0/work/python/bin/greet"), None)
    assert place is not None, job_id
    return subprocess.run([str(place)], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
