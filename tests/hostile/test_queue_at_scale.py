"""A queue of thousands: a pass decides all of it, no job is looked at alone, and a flood stops no other tenant."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest

from tests.hostile.conftest import http
from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux]

FLOOD = 3_000
NO_LIMITS: dict[str, Any] = dict.fromkeys(["cpu", "memory", "gpus", "storage", "running_jobs"])


def spec(**changes: Any) -> dict[str, Any]:
    server = {"cpu": 0.1, "memory": "1Gi"}  # TensorFlow's servers take more than half of it
    roles = {"worker": server, "ps": server}
    return {"name": "waits", "strategy": "in_graph", "roles": roles, "grace_period": 5, **changes}


def flood(one: Scene, job_id: str) -> None:
    """Copies of a waiting job, that nobody is to look at by themselves."""
    base = sqlite3.connect(one.portal.home / "portal.sqlite3", timeout=60)
    with contextlib.closing(base), base:
        columns = [row[1] for row in base.execute("PRAGMA table_xinfo(jobs_job)") if row[6] == 0]
        fresh = {
            "id": "lower(hex(randomblob(16)))", "next_look_at": "NULL", "reason": "''", "position": "NULL",
            "waiting_digest": "''", "request_key": "NULL",
        }  # fmt: skip
        values = ", ".join(fresh.get(name, f'"{name}"') for name in columns)
        names = ", ".join(f'"{name}"' for name in columns)
        base.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            f"INSERT INTO jobs_job ({names}) SELECT {values} FROM jobs_job, n WHERE id = ?",
            (FLOOD, job_id.replace("-", "")),
        )


@pytest.mark.long
def test_a_flood_of_waiting_jobs_is_decided_as_a_whole_and_stops_no_other_tenant():
    with scene() as one, http(one.portal.url, one.portal.token_of("flooder")) as flooder:
        home = next(each for each in flooder.get("/api/v1/namespaces/").json()["results"] if each["personal"])["id"]
        with http(one.portal.url, one.token) as admin:
            limits = {**NO_LIMITS, "running_jobs": 1}
            assert admin.put(f"/api/v1/namespaces/{home}/quota/", json=limits).status_code == 200
        running, model = (flooder.post("/api/v1/jobs/", json={"spec": spec()}).json()["id"] for _ in range(2))
        until(lambda: flooder.get(f"/api/v1/jobs/{running}/").json()["phase"] == "RUNNING", what="the first job")
        until(lambda: flooder.get(f"/api/v1/jobs/{model}/").json()["position"] == 0, what="the second one to wait")
        flood(one, model)

        counted = (
            "SELECT COUNT(*), COUNT(DISTINCT position), MAX(position) FROM jobs_job WHERE reason = 'WaitingForQuota'"
        )
        until(lambda: one.ask(counted) == [(FLOOD + 1, FLOOD + 1, FLOOD)], what="every job to have its place")
        looks = "SELECT COUNT(*) FROM jobs_job WHERE phase = 'QUEUED' AND next_look_at IS NOT NULL"
        assert one.ask(looks) == [(1,)], "only the launched one is ever looked at by itself"

        with http(one.portal.url, one.portal.token_of("other")) as other:
            job = other.post("/api/v1/jobs/", json={"spec": spec()}).json()["id"]
            until(lambda: other.get(f"/api/v1/jobs/{job}/").json()["phase"] == "RUNNING", what="the other's job")
            for client, each in ((other, job), (flooder, running)):
                client.post(f"/api/v1/jobs/{each}/stop/")
