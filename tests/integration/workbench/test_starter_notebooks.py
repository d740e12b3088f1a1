"""The starter notebooks, each run from top to bottom in a session of a real portal on the local engine."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter, socket_of_task
from tests.real.portal import RealPortal
from yardmaster.ids import JobKey
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.tensorflow, pytest.mark.timeout(500)]

FOLDER = "Starter notebooks"


@pytest.fixture(scope="module")
def portal(whole_portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(whole_portal.url, whole_portal.token_of("ada", is_staff=True)) as portal:
        yield portal


@pytest.fixture(scope="module")
def session(portal: Yardmaster, whole_portal: RealPortal) -> Iterator[Jupyter]:
    transport = portal.transport
    begun = transport.post("sessions/", {"kind": "jupyter", "size": "medium"})
    job = portal.jobs.wait(begun["job"], until=lambda job: job.phase == "RUNNING", timeout=PATIENCE)
    key = JobKey(uuid.UUID(job.namespace), uuid.UUID(job.id), job.attempt)
    engine = whole_portal.home / "local"
    home = engine / "workbench" / job.namespace / portal.me()["id"]
    session = Jupyter(socket_of_task(engine / "runs" / key.name), home, begun["id"])
    yield session
    session.close()
    transport.post(f"sessions/{begun['id']}/stop/", {})
    assert portal.jobs.wait(job.id, timeout=PATIENCE).phase == "STOPPED"


@pytest.mark.long
def test_explore_a_dataset_makes_one_where_there_is_none_and_shows_it(session: Jupyter, portal: Yardmaster):
    shown = session.run_notebook(f"{FOLDER}/1-explore-a-dataset.ipynb")
    assert shown[0].startswith("ada at http://")
    assert "digits, version 1: 11 files" in "".join(shown)
    assert "classes:  0, 1, 2, 3" in "".join(shown)
    assert sum("<Figure" in one for one in shown) == 2
    again = session.run_notebook(f"{FOLDER}/1-explore-a-dataset.ipynb")
    assert "digits, version 1" in "".join(again), "what is there is used"
    data = portal.datasets.find("digits")
    assert data is not None
    assert data.latest is not None
    cache = Path(session.run("import os; print(os.environ['XDG_CACHE_HOME'])").strip())
    assert (cache / "yardmaster" / "datasets" / data.latest.id / "dataset.json").is_file()
    assert session.home not in cache.parents, "what can be fetched again does not fill the home"
    assert not (session.home / ".cache").exists()


@pytest.mark.long
def test_launch_and_compare_follows_two_jobs_and_draws_both_curves(session: Jupyter, portal: Yardmaster):
    shown = session.run_notebook(f"{FOLDER}/2-launch-and-compare-jobs.ipynb")
    jobs = [job for job in portal.jobs.list() if job.name.startswith("digits-rate-")]
    assert sorted(job.phase for job in jobs) == ["SUCCEEDED", "SUCCEEDED"]
    watched = next(one for one in shown if "<pre" in one)
    for job in jobs:
        assert f"{portal.transport.url}/jobs/{job.id}/" in watched
    assert "test accuracy" in watched, "the last lines of the log"
    assert "<Figure" in shown[-2]
    assert len(re.findall("SUCCEEDED model version 1", shown[-1])) == 2


@pytest.mark.long
def test_drive_servers_trains_in_both_ways_and_stops_them(session: Jupyter, portal: Yardmaster):
    shown = session.run_notebook(f"{FOLDER}/3-drive-tensorflow-servers.ipynb")
    (job,) = (job for job in portal.jobs.list() if job.name == "servers-of-a-notebook")
    assert job.phase == "STOPPED"
    said = "".join(shown)
    assert "/job:worker/replica:0/task:1/device:CPU:0" in said
    (accuracy,) = re.findall(r"accuracy ([01]\.\d+)", said)
    assert float(accuracy) > 0.85
    losses = [float(one) for one in re.findall(r"epoch \d: loss (\d+\.\d+)", said)]
    assert len(losses) == 4
    assert losses[-1] < losses[0] < 2.3
    assert "/job:ps" in said
