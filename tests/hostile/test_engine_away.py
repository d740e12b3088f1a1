"""An engine that takes nothing, or ends nothing: no job holds its quota for it, and nothing of one appears later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.scene import QUICK, Scene, scene, until
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

IMPATIENT = {**QUICK, "YARDMASTER_ENGINE_PATIENCE": "3"}
SERVES = "import time\nprint('here', flush=True)\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def impatient() -> Iterator[Scene]:
    with scene(settings=IMPATIENT) as one:
        yield one


@pytest.fixture
def runs(impatient: Scene) -> Iterator[Path]:
    """Where the engine keeps its runs. Whatever a test does to it, it is there again afterwards."""
    path = impatient.portal.home / "local" / "runs"
    path.mkdir(parents=True, exist_ok=True)
    yield path
    come_back(path)


def go_away(runs: Path) -> None:
    """A file stands where the folder was: the engine can neither read nor write a run."""
    runs.rename(runs.with_name("runs.away"))
    runs.write_text("not a folder")


def come_back(runs: Path) -> None:
    if runs.is_file():
        runs.unlink()
        runs.with_name("runs.away").rename(runs)


LOOK = """
import sys, uuid, django; django.setup()
from django.utils import timezone
from apps.jobs.state.leases import ask_for_look
ask_for_look(uuid.UUID(sys.argv[1]), timezone.now())
"""


def settled(scene: Scene, job: Job) -> Job:
    scene.portal.script(LOOK, job.id)
    return scene.settled(job)


def phase(scene: Scene, job: Job) -> str:
    return str(scene.row(job, "phase")[0])


def until_without_quota(scene: Scene, job: Job, wanted: str) -> None:
    """Until the job is in this phase and holds none. The engine is asked again and again: by itself the portal asks one
    that cannot use its folder once a minute."""

    def look() -> bool:
        if phase(scene, job) == wanted and scene.held(job) == 0:
            return True
        scene.portal.script(LOOK, job.id)
        return False

    until(look, what=f"the job to be {wanted}, without quota")


@pytest.mark.long
def test_a_job_that_its_engine_does_not_take_gives_its_quota_back_and_starts_when_it_does(impatient: Scene, runs: Path):
    go_away(runs)
    job = impatient.launch("print('done')")
    until(lambda: impatient.row(job, "returns")[0] > 0, what="the job to go back to the queue")
    until_without_quota(impatient, job, "QUEUED")
    until(lambda: impatient.client.jobs.why(job.id)["reason"] == "EngineUnavailable", what="the reason")
    come_back(runs)
    job = settled(impatient, job)
    assert job.phase == "SUCCEEDED", job.message
    impatient.assert_nothing_is_left(job)


def test_a_stop_is_carried_out_for_the_quota_while_the_engine_is_away_and_on_it_when_it_is_back(
    impatient: Scene, runs: Path
):
    job = impatient.launch(SERVES)
    until(lambda: impatient.portal_has_line(job, "worker", 0), what="its first line")
    go_away(runs)
    impatient.client.jobs.stop(job.id)
    until_without_quota(impatient, job, "STOPPED")
    assert impatient.client.jobs.get(job.id).cleaned_up_at is None
    come_back(runs)
    job = settled(impatient, job)
    assert job.phase == "STOPPED"
    impatient.assert_nothing_is_left(job)


def test_an_engine_that_stays_away_fails_its_jobs_and_holds_no_quota():
    with scene(settings={**IMPATIENT, "YARDMASTER_ENGINE_AWAY_LIMIT": "10"}) as one:
        path = one.portal.home / "local" / "runs"
        path.mkdir(parents=True, exist_ok=True)
        running = one.launch(SERVES)
        until(lambda: one.portal_has_line(running, "worker", 0), what="its first line")
        go_away(path)
        never_taken = one.launch("print('done')")
        for job in (running, never_taken):
            until_without_quota(one, job, "FAILED")
            assert "engine" in one.client.jobs.get(job.id).message
        come_back(path)
        for job in (running, never_taken):
            job = settled(one, job)
            assert job.phase == "FAILED"
            one.assert_nothing_is_left(job)
