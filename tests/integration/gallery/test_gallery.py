"""Folders of the gallery, launched by their job files on the local engine: ways to start a training, packages of its
own, a progress bar."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.integration.gallery.folders import launched, yaml_wheel
from tests.real.package_index import package_index
from tests.real.scene import Scene, scene
from yardmaster_client import Job, LogLine, Yardmaster
from yardmaster_client.follow import OpenLine

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

LONG = 200.0
BAR = re.compile(r" *(\d+) % \[=* *\] (\d+)/(\d+) loss \d+\.\d{4}")
ENDLESS = 1_000_000
"""Steps: more than a test waits for."""


@pytest.fixture(scope="module")
def portal_scene() -> Iterator[Scene]:
    with package_index(yaml_wheel()) as index, scene(settings={"YARDMASTER_PACKAGE_INDEX": index.url}) as one:
        yield one


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts():
    """These tests use no database of their own: what the folder above prepares for Django is not needed here."""


def succeeded(scene: Scene, folder: str) -> tuple[Job, list[str]]:
    """The job of the folder's file when it has ended well, and its lines."""
    ended = scene.ended(launched(scene.client, folder), LONG)
    lines = scene.lines(ended)
    assert ended.phase == "SUCCEEDED", (ended.reason, lines[-20:])
    return ended, lines


def loss_of(lines: list[str]) -> float:
    (found,) = [line for line in lines if line.startswith("loss ")]
    return float(found.split()[1])


@pytest.mark.long
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


def test_a_keras_script_trains_with_a_package_that_the_image_does_not_have(portal_scene: Scene):
    job, lines = succeeded(portal_scene, "keras_requirements")
    assert any("1 package installed" in line and "pyyaml" in line.lower() for line in lines), lines
    assert any(line.startswith("settings {'units': [16, 8]") for line in lines)
    assert any("Epoch 8/8" in line for line in lines)
    (kept,) = portal_scene.client.jobs.model(job.id)["files"]
    assert kept["path"] == "waves.keras"


class Watcher:
    """Follows a job's log, and stops the job once it has seen two states of a line that is not finished."""

    def __init__(self, client: Yardmaster, job_id: str) -> None:
        self.client, self.job_id = client, job_id
        self.steps: list[int] = []

    def see(self, line: OpenLine) -> None:
        bar = BAR.fullmatch(line.text)
        assert bar, line.text
        self.steps.append(int(bar[2]))
        if len(set(self.steps)) == 2:
            self.client.jobs.stop(self.job_id)

    def kept(self) -> int:
        """The step of the first bar that is a line of the log."""
        lines = self.client.jobs.follow(self.job_id, on_open=self.see)
        texts = (one.text for one in lines if isinstance(one, LogLine))
        return next(int(bar[2]) for bar in map(BAR.search, texts) if bar)


def test_the_latest_state_of_a_bar_is_seen_while_it_runs_and_one_line_is_kept_at_the_end(portal_scene: Scene):
    client = portal_scene.client
    short = launched(client, "progress_bar", {"arguments": ["--steps=40"]})
    endless = launched(client, "progress_bar", {"arguments": [f"--steps={ENDLESS}"], "grace_period": 2})
    seen = Watcher(client, endless.id)
    kept = seen.kept()
    assert len(set(seen.steps)) >= 2, "no line was finished before"
    assert seen.steps == sorted(seen.steps)
    assert kept >= seen.steps[-1], "the state in which it was stopped"
    assert sum(bool(BAR.search(line)) for line in portal_scene.lines(portal_scene.ended(endless))) == 1
    job = portal_scene.ended(short)
    lines = portal_scene.lines(job)
    assert job.phase == "SUCCEEDED", lines
    (bar, trained) = [line for line in lines if "%" in line or line.startswith("trained")]
    assert BAR.fullmatch(bar)
    assert bar.startswith("100 % [" + 30 * "=" + "] 40/40 loss")
    assert trained.startswith("trained [")
