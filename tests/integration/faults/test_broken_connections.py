"""The broker or the database is away: who asks gets an answer in time, and what was asked for is done later."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.real.portal import WHOLE
from tests.real.postgres import Cluster, running_cluster
from tests.real.scene import Scene, scene_in, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

ROUNDS = 3
"""Without a broker a portal is as slow every time; a machine that stands still for a second makes one round slow."""
COUNT = "import time\nfor n in range({lines}):\n    print(n, flush=True)\n    time.sleep({pause})\n"


@contextlib.contextmanager
def http_of(scene: Scene) -> Iterator[httpx2.Client]:
    """Without the SDK's patience."""
    headers = {"Authorization": f"Bearer {scene.token}"}
    with httpx2.Client(base_url=f"{scene.portal.url}/api/v1/", headers=headers, timeout=60) as client:
        yield client


@pytest.fixture
def http(portal_scene: Scene) -> Iterator[httpx2.Client]:
    with http_of(portal_scene) as client:
        yield client


def numbers(lines: int) -> list[str]:
    return [str(n) for n in range(lines)]


# --- the broker ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["killed", "hanging"])
def test_without_a_broker_a_launch_is_answered_soon_and_the_job_runs_when_it_is_back(
    portal_scene: Scene, http: httpx2.Client, how: str
):
    code = portal_scene.put_code({"main.py": COUNT.format(lines=20, pause=0)})
    valkey = portal_scene.portal.running["valkey"]
    if how == "killed":
        portal_scene.portal.kill("valkey")
    else:
        valkey.send_signal(signal.SIGSTOP)
    try:
        launching, reading = [_slowest_launch(portal_scene, http, code, f"{how}-0")], [_reading(portal_scene, http)]
        while (min(launching) >= 2.0 or min(reading) >= 4.0) and len(launching) < ROUNDS:
            time.sleep(5.5)  # until every part of the portal asks the broker again
            launching.append(_slowest_launch(portal_scene, http, code, f"{how}-{len(launching)}"))
            reading.append(_reading(portal_scene, http))
        assert min(launching) < 2.0, launching
        assert min(reading) < 4.0, reading
    finally:
        if how == "killed":
            portal_scene.portal.start("valkey")
        else:
            valkey.send_signal(signal.SIGCONT)
    for job in list(portal_scene.client.jobs.list(search=f"{how}-")):
        job = portal_scene.settled(job)
        assert job.phase == "SUCCEEDED", job.message
        assert portal_scene.lines(job) == numbers(20)
        portal_scene.assert_nothing_is_left(job)


def _slowest_launch(scene: Scene, http: httpx2.Client, code: str, name: str) -> float:
    """Seconds until a launch is answered, at most, of three in a row."""
    took: list[float] = []
    for number in range(3):
        begun = time.monotonic()
        answer = http.post("jobs/", json={"spec": scene.spec(code, name=f"{name}-{number}")})
        took.append(time.monotonic() - begun)
        assert answer.status_code == 201, answer.text
    return max(took)


def _reading(scene: Scene, http: httpx2.Client) -> float:
    """Seconds until the jobs, and whether the portal is well, are answered."""
    begun = time.monotonic()
    assert http.get("jobs/").status_code == 200
    assert httpx2.get(f"{scene.portal.url}/healthz", timeout=60).status_code == 200
    assert httpx2.get(f"{scene.portal.url}/readyz", timeout=10).json()["broker"] == "away"
    return time.monotonic() - begun


@pytest.mark.long
def test_the_worker_and_all_others_outlive_a_broker_that_dies_again_and_again(portal_scene: Scene):
    running = {name: portal_scene.portal.running[name].pid for name in WHOLE if name != "valkey"}
    jobs = []
    for _ in range(5):
        jobs.append(portal_scene.launch(COUNT.format(lines=30, pause=0.02)))
        portal_scene.portal.kill("valkey")
        portal_scene.portal.start("valkey")
    for job in jobs:
        job = portal_scene.settled(job)
        assert job.phase == "SUCCEEDED", job.message
        assert portal_scene.lines(job) == numbers(30)
    assert {name: portal_scene.portal.running[name].pid for name in running} == running
    assert [name for name in running if portal_scene.portal.running[name].poll() is not None] == []


# --- the database ----------------------------------------------------------------------------------------------------


def test_a_database_that_is_locked_for_seconds_delays_and_fails_nothing(portal_scene: Scene, http: httpx2.Client):
    code = portal_scene.put_code({"main.py": COUNT.format(lines=150, pause=0.02)})
    job = portal_scene.client.jobs.launch(portal_scene.spec(code))
    until(lambda: portal_scene.portal_has_line(job, "worker", 0), what="its first line")
    base = sqlite3.connect(portal_scene.portal.home / "portal.sqlite3", isolation_level=None, check_same_thread=False)
    base.execute("BEGIN EXCLUSIVE")
    answers: list[httpx2.Response] = []
    launching = threading.Thread(
        target=lambda: answers.append(http.post("jobs/", json={"spec": portal_scene.spec(code, name="locked")}))
    )
    launching.start()
    try:
        begun = time.monotonic()
        with http_of(portal_scene) as reader:
            assert reader.get("jobs/").status_code == 200
        assert time.monotonic() - begun < 8, "reading must not wait for who writes"
        time.sleep(6)
        assert not answers
    finally:
        base.execute("ROLLBACK")
        base.close()
    launching.join(30)
    assert [answer.status_code for answer in answers] == [201]
    for one in (job, portal_scene.client.jobs.get(answers[0].json()["id"])):
        one = portal_scene.settled(one)
        assert one.phase == "SUCCEEDED", one.message
        assert portal_scene.lines(one) == numbers(150)
        portal_scene.assert_nothing_is_left(one)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL of our own, which can be stopped and started with its data."""
    with running_cluster() as cluster:
        cluster.create_migrated("portal")
        yield cluster


@pytest.mark.postgres
def test_a_database_that_is_away_is_said_with_503_and_all_goes_on_when_it_is_back(postgres: Cluster):
    settings = {"YARDMASTER_DATABASE_URL": postgres.url("portal")}
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-fault-") as folder,
        scene_in(Path(folder), settings=settings) as scene,
        http_of(scene) as http,
    ):
        code = scene.put_code({"main.py": COUNT.format(lines=200, pause=0.02)})
        job = scene.client.jobs.launch(scene.spec(code))
        until(lambda: scene.portal_has_line(job, "worker", 0), what="its first line")
        postgres.stop()
        for method, path, body in (
            ("GET", "jobs/", None),
            ("POST", "jobs/", {"spec": scene.spec(code)}),
            ("GET", f"jobs/{job.id}/", None),
        ):
            answer = http.request(method, path, json=body)
            assert answer.status_code == 503, answer.text
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.headers["Retry-After"]
            assert answer.json()["code"] == "unavailable"
            assert "Traceback" not in answer.text
        assert httpx2.get(f"{scene.portal.url}/healthz", timeout=60).status_code == 200
        assert httpx2.get(f"{scene.portal.url}/readyz", timeout=60).status_code == 503
        time.sleep(5)  # the script ends without a database to tell
        postgres.start()
        job = scene.settled(job)
        assert job.phase == "SUCCEEDED", job.message
        assert scene.lines(job) == numbers(200)
        assert [name for name in WHOLE if scene.portal.running[name].poll() is not None] == []
        assert scene.settled(scene.client.jobs.launch(scene.spec(code))).phase == "SUCCEEDED"
