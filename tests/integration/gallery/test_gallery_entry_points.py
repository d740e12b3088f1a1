"""Each folder of the gallery that shows a way to start a training, launched by its job file on the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.scene import Scene, scene
from yardmaster_client import Job
from yardmaster_client.jobfile import read_job_file

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

GALLERY = Path(__file__).parents[3] / "examples" / "gallery"
LONG = 200.0


@pytest.fixture(scope="module")
def portal_scene() -> Iterator[Scene]:
    with scene() as one:
        yield one


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts():
    """These tests use no database of their own: what the folder above prepares for Django is not needed here."""


def succeeded(scene: Scene, folder: str) -> tuple[Job, list[str]]:
    """The job of the folder's file when it has ended well, and its lines."""
    place = GALLERY / folder
    spec = read_job_file(place / "job.yaml").spec
    latest = scene.client.code.put(spec["code"], [place]).latest
    assert latest is not None
    job = scene.client.jobs.launch({**spec, "code": latest.id})
    assert not job.warnings
    ended = scene.ended(job, LONG)
    lines = scene.lines(ended)
    assert ended.phase == "SUCCEEDED", (ended.reason, lines[-20:])
    return ended, lines


def loss_of(lines: list[str]) -> float:
    (found,) = [line for line in lines if line.startswith("loss ")]
    return float(found.split()[1])


def test_a_package_is_run_as_a_module(portal_scene: Scene):
    _, lines = succeeded(portal_scene, "package")
    assert loss_of(lines) < 0.01
    assert any("Epoch 20/20" in line for line in lines)


def test_a_script_of_tensorflow_1_trains_with_a_parameter_server_unchanged(portal_scene: Scene):
    job, lines = succeeded(portal_scene, "tf1")
    assert loss_of(lines) < 0.01
    files = [one.path for one in portal_scene.client.jobs.outputs(job.id)]
    assert any("events.out.tfevents" in path for path in files), files


def test_a_notebook_is_executed_with_its_parameters_and_kept(portal_scene: Scene):
    job, lines = succeeded(portal_scene, "notebook")
    assert loss_of(lines) < 0.01
    assert "[cell 5/5] loss = model.evaluate(features, targets, verbose=0)" in lines
    (name,) = [one.path for one in portal_scene.client.jobs.outputs(job.id) if one.path.endswith(".ipynb")]
    assert name == "notebooks/train.ipynb"
