"""Specifications as a weapon: too large, too many, and rows that break today's rules or are none at all.

The portal is this file's own: its limit of queued jobs is low, its rules are tightened while jobs run, and its database
is written to behind its back.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
import yaml

from tests.hostile.conftest import http
from tests.real.scene import PATIENCE, Scene, scene, until
from yardmaster_client import Job
from yardmaster_client.errors import PortalError

pytestmark = [pytest.mark.slow, pytest.mark.linux]

MOST_QUEUED = 5
LIMIT = 256 << 10
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
IGNORES_SIGTERM = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{SLEEPS}"


@pytest.fixture(scope="module")
def _own() -> Iterator[Scene]:
    with scene(settings={"YARDMASTER_QUEUED_JOBS": str(MOST_QUEUED)}) as one:
        yield one


@pytest.fixture
def own(_own: Scene) -> Iterator[Scene]:
    """The portal with its own rules and all processes, and no unfinished job, before and after."""
    yield _own
    _own.portal.environment.pop("YARDMASTER_SPEC_BYTES", None)
    restart(_own, "web", "worker", "beat")
    for job in _own.client.jobs.list():
        if not job.is_final:
            _own.client.jobs.stop(job.id)
    until(lambda: all(job.is_final for job in _own.client.jobs.list()), PATIENCE, "every job to end")


@pytest.fixture
def admin(own: Scene) -> Iterator[httpx2.Client]:
    with http(own.portal.url, own.token) as client:
        yield client


def restart(own: Scene, *names: str) -> None:
    for name in names:
        if name in own.portal.running:
            own.portal.kill(name)
    own.portal.start(*names)


def store(own: Scene, job: Job, spec: Any) -> None:
    """Write this as the job's specification, straight into the database of the running portal."""
    text, key = json.dumps(spec), job.id.replace("-", "")
    with contextlib.closing(sqlite3.connect(own.portal.home / "portal.sqlite3", timeout=30)) as base, base:
        base.execute("UPDATE jobs_job SET spec = ? WHERE id = ?", (text, key))
        base.execute("UPDATE jobs_jobattempt SET spec = ? WHERE job_id = ?", (text, key))


def stored(own: Scene, job: Job) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(own.row(job, "spec")[0])
    return found


def breaking_rules(spec: dict[str, Any]) -> dict[str, Any]:
    """The same job as no rule of today allows it, and with a key of a release that is gone."""
    bad = {"environment": {"TF_CONFIG": "mine", "YARDMASTER_X": "1"}, "retries": 5000, "name": "", "gone": {"deep": []}}
    worker = spec["roles"]["worker"] | {"memory": 1 << 20, "tier": "gold"}
    return spec | bad | {"roles": {"worker": worker}}


UNREADABLE = {"version": 1, "strategy": "single", "roles": [["worker", "many"]]}


def running(own: Scene, script: str = SLEEPS, **changes: Any) -> Job:
    job = own.launch(script, **changes)
    until(lambda: own.portal_has_line(job, "worker", 0), PATIENCE, "the script to begin")
    return job


def large(own: Scene, code: str, size: int) -> dict[str, Any]:
    """A specification of about this many bytes, none of whose fields is too long by itself."""
    return own.spec(code, environment={f"V{n}": "x" * 30_000 for n in range(size // 30_000)})


# --- too large -------------------------------------------------------------------------------------------------------


def test_a_specification_that_is_too_large_is_refused_at_every_edge_with_the_same_words(own: Scene, admin, tmp_path):
    spec = large(own, own.put_code({"main.py": "print(1)"}), 300 << 10)
    told = set()
    for path in ("jobs/", "jobs/check/", "jobs/manifests/"):
        answer = admin.post(f"/api/v1/{path}", json={"spec": spec}).json()
        problems = answer.get("errors") or answer["problems"]
        told.add((problems[0]["field"], problems[0]["code"], problems[0]["message"]))
    ended = own.settled(own.launch("print(1)"))
    retry = admin.post(f"/api/v1/jobs/{ended.id}/retry/", json={"spec": spec})
    assert retry.status_code == 422
    told.add(tuple(retry.json()["errors"][0][name] for name in ("field", "code", "message")))
    assert len(told) == 1, told
    field, code, message = told.pop()
    assert (field, code) == ("environment", "too_large")
    assert "262,144 bytes (256 KiB)" in message
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec))
    for command in ("launch", "check"):
        done = own.command("jobs", command, str(file))
        assert done.returncode != 0
        assert message in " ".join((done.stdout + done.stderr).split())


@pytest.mark.long
def test_a_queue_of_the_largest_specifications_costs_its_lists_nothing(own: Scene, admin):
    own.portal.kill("beat")
    own.portal.kill("worker")
    spec = large(own, own.put_code({"main.py": "print(1)"}), 240 << 10)
    for _ in range(MOST_QUEUED):
        assert admin.post("/api/v1/jobs/", json={"spec": spec}).status_code == 201
    (held,) = own.ask("SELECT SUM(LENGTH(spec)) FROM jobs_job WHERE phase = 'QUEUED'")[0]
    assert held > MOST_QUEUED * (200 << 10)
    rows = admin.get("/api/v1/jobs/", params={"page_size": 200})
    assert len(rows.json()["results"]) >= MOST_QUEUED
    assert all("spec" not in row and row["replicas"] for row in rows.json()["results"])
    assert len(rows.content) < 4_000 * len(rows.json()["results"])


def test_of_many_launches_at_once_no_more_are_queued_than_the_limit_says(own: Scene, admin):
    own.portal.kill("beat")
    own.portal.kill("worker")
    spec = own.spec(own.put_code({"main.py": "print(1)"}))
    with ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: admin.post("/api/v1/jobs/", json={"spec": spec}), range(24)))
    refused = [one.json() for one in answers if one.status_code == 409]
    assert sorted(one.status_code for one in answers) == [201] * MOST_QUEUED + [409] * (24 - MOST_QUEUED)
    assert {one["code"] for one in refused} == {"queue_full"}
    assert f"may have {MOST_QUEUED} jobs in the queue" in refused[0]["detail"]
    assert "YARDMASTER_QUEUED_JOBS" in refused[0]["remedy"]


@pytest.mark.long
def test_a_retry_does_not_pass_the_limit_of_queued_jobs_either(own: Scene, admin):
    ended = own.settled(own.launch("print(1)"))
    own.portal.kill("beat")
    own.portal.kill("worker")
    spec = own.spec(own.put_code({"main.py": "print(1)"}))
    for _ in range(MOST_QUEUED):
        assert admin.post("/api/v1/jobs/", json={"spec": spec}).status_code == 201
    refused = admin.post(f"/api/v1/jobs/{ended.id}/retry/", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "queue_full")
    assert own.row(ended, "attempt") == (1,)


# --- stored before the rules -----------------------------------------------------------------------------------------


def test_a_running_job_whose_row_breaks_todays_rules_succeeds(own: Scene):
    job = running(own, "import pathlib, time\nprint('begun', flush=True)\ntime.sleep(8)\n")
    store(own, job, breaking_rules(stored(own, job)))
    restart(own, "worker")
    assert own.settled(job).phase == "SUCCEEDED"
    own.assert_nothing_is_left(job)


@pytest.mark.long
def test_a_stopping_job_whose_row_breaks_todays_rules_ends_and_returns_its_quota(own: Scene):
    job = running(own, IGNORES_SIGTERM)
    own.client.jobs.stop(job.id)
    until(lambda: own.row(job, "phase") == ("STOPPING",), PATIENCE, "the job to be stopping")
    store(own, job, breaking_rules(stored(own, job)))
    assert own.settled(job).phase == "STOPPED"
    own.assert_nothing_is_left(job)


def test_a_running_job_whose_row_is_no_specification_fails_and_leaves_nothing(own: Scene, admin):
    job = running(own)
    store(own, job, UNREADABLE)
    ended = own.settled(job)
    assert (ended.phase, ended.reason) == ("FAILED", "SpecUnreadable")
    assert admin.get(f"/api/v1/jobs/{job.id}/why/").json()["blame"] == "platform"
    own.assert_nothing_is_left(job)


@pytest.mark.long
def test_a_stopping_job_whose_row_is_no_specification_ends_and_leaves_nothing(own: Scene):
    job = running(own, IGNORES_SIGTERM)
    own.client.jobs.stop(job.id)
    until(lambda: own.row(job, "phase") == ("STOPPING",), PATIENCE, "the job to be stopping")
    store(own, job, UNREADABLE)
    assert own.settled(job).phase == "STOPPED"
    own.assert_nothing_is_left(job)


@pytest.mark.long
def test_a_release_with_a_tighter_rule_leaves_a_running_job_alone_and_refuses_its_retry(own: Scene):
    job = running(own, SLEEPS, environment={"LONG": "x" * 4_000})
    own.portal.environment["YARDMASTER_SPEC_BYTES"] = "2048"
    restart(own, "web", "worker", "beat")
    until(lambda: own.client.jobs.get(job.id).phase == "RUNNING", PATIENCE, "the job to be seen running")
    own.client.jobs.stop(job.id)
    assert own.settled(job).phase == "STOPPED"
    own.assert_nothing_is_left(job)
    with pytest.raises(PortalError) as refused:
        own.client.jobs.retry(job.id)
    assert refused.value.errors[0].code == "too_large"
    assert "the most is 2,048 bytes" in refused.value.errors[0].message
