"""A tenant that wants to have used nothing: deletes the job, the account, the namespace. The record stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.hostile.conftest import http
from tests.real.scene import Scene, until
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


def usage(scene: Scene, **query: str) -> list[dict[str, Any]]:
    """As the administrator reads it."""
    with http(scene.portal.url, scene.token) as client:
        return list(client.get("/api/v1/usage/", params=query).raise_for_status().json()["results"])


@contextmanager
def tenant_with_a_job(scene: Scene, name: str) -> Iterator[tuple[Scene, Job]]:
    """A tenant's own view of the portal, and a job of theirs that has ended."""
    one = Scene(scene.portal, scene.portal.token_of(name))
    with one.client:
        yield one, one.settled(one.launch("import time\ntime.sleep(1)"))


def test_a_deleted_job_is_still_counted(attacked: Scene):
    with tenant_with_a_job(attacked, "usage-one") as (mallory, job):
        before = usage(attacked, namespace="usage-one")
        assert [(one["username"], one["engine"], one["jobs"]) for one in before] == [("usage-one", "local", 1)]
        assert before[0]["memory_gib_hours"] > 0
        mallory.client.jobs.delete(job.id)
    until(
        lambda: not attacked.ask("SELECT 1 FROM jobs_job WHERE id = ?", job.id.replace("-", "")), what="the end of it"
    )
    assert usage(attacked, namespace="usage-one") == before
    name = attacked.ask("SELECT job_name FROM jobs_reservation WHERE job_id = ?", job.id.replace("-", ""))
    assert name == [("fault",)]


def test_a_removed_user_and_their_namespace_are_still_counted(attacked: Scene):
    with tenant_with_a_job(attacked, "usage-two"):
        pass
    before = usage(attacked, namespace="usage-two")
    (user,) = {one["user"] for one in before}
    with http(attacked.portal.url, attacked.token) as client:
        client.post(f"/api/v1/users/{user}/removal/", json={"data": "delete"}).raise_for_status()
    hex_id = user.replace("-", "")
    until(lambda: not attacked.ask("SELECT 1 FROM accounts_user WHERE id = ?", hex_id), what="the user's end")
    until(
        lambda: not attacked.ask("SELECT 1 FROM namespaces_namespace WHERE slug = 'usage-two'"), what="the namespace's"
    )
    assert usage(attacked, namespace="usage-two") == before
    assert usage(attacked, namespace=before[0]["namespace"]) == before


def test_nobody_reads_what_others_used_but_administrators(attacked: Scene):
    with tenant_with_a_job(attacked, "usage-three"):
        pass
    with http(attacked.portal.url, attacked.portal.token_of("usage-four")) as stranger:
        assert stranger.get("/api/v1/usage/", params={"namespace": "usage-three"}).status_code == 404
        assert stranger.get("/api/v1/usage/").json()["results"] == []
        assert stranger.delete("/api/v1/usage/").status_code == 405
    with http(attacked.portal.url, attacked.portal.token_of("usage-three")) as manager:
        found = manager.get("/api/v1/usage/", params={"namespace": "usage-three"}).json()
        assert [one["username"] for one in found["results"]] == ["usage-three"]
        assert found["total"]["jobs"] == 1
    with http(attacked.portal.url) as nobody:
        assert nobody.get("/api/v1/usage/").status_code == 401


def test_the_command_says_the_same(attacked: Scene):
    with tenant_with_a_job(attacked, "usage-five") as (mallory, _):
        done = mallory.command("namespaces", "usage", "usage-five")
    assert done.returncode == 0, done.stderr
    assert "usage-five" in done.stdout
    assert "total" in done.stdout
