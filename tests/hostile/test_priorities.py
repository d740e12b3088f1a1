"""What a tenant gains by a high priority: the first place among its own jobs, and no other tenant's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from tests.hostile.conftest import http
from tests.real.scene import SMALL, Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux]

Tenant = Callable[[str], httpx2.Client]
NO_LIMITS: dict[str, Any] = dict.fromkeys(["cpu", "memory", "gpus", "storage", "running_jobs"])
SLEEP = "import time\ntime.sleep(600)\n"


@pytest.fixture(scope="module")
def full() -> Iterator[tuple[Scene, int]]:
    """A portal whose machine is taken but for less than what a job of the tests needs; how many cores it has."""
    with scene() as one:
        engines = one.client.transport.get("engines/")
        cores = next(each for each in engines["results"] if each["is_default"])["total"]["cpu"]
        holder = one.launch(SLEEP, name="holder", roles={"worker": {"cpu": cores - 0.2, "memory": "256Mi"}})
        until(lambda: one.client.jobs.get(holder.id).phase == "RUNNING", what="the machine to be full")
        yield one, cores


@pytest.fixture
def tenant(full: tuple[Scene, int]) -> Iterator[Tenant]:
    clients: list[httpx2.Client] = []

    def sign_in(name: str) -> httpx2.Client:
        clients.append(http(full[0].portal.url, full[0].portal.token_of(name)))
        return clients[-1]

    yield sign_in
    for client in clients:
        client.close()


@pytest.fixture
def launch(full: tuple[Scene, int]) -> Iterator[Callable[..., dict[str, Any]]]:
    """Launch a job that waits, as this tenant; all of them are stopped at the end."""
    launched: list[tuple[httpx2.Client, str]] = []

    def make(client: httpx2.Client, **changes: Any) -> dict[str, Any]:
        spec = {
            "name": "waits", "strategy": "in_graph", "roles": {"worker": {**SMALL, "cpu": 0.5}, "ps": dict(SMALL)},
            "grace_period": 5, **changes,
        }  # fmt: skip
        answer = client.post("/api/v1/jobs/", json={"spec": spec})
        assert answer.status_code == 201, answer.text
        launched.append((client, answer.json()["id"]))
        return dict(answer.json())

    yield make
    for client, job_id in launched:
        client.post(f"/api/v1/jobs/{job_id}/stop/")


def position(client: httpx2.Client, job: dict[str, Any]) -> int:
    """Where the portal says that the waiting job stands."""
    return int(until(lambda: _waits(client, job), what="the job to be decided")["position"])


def _waits(client: httpx2.Client, job: dict[str, Any]) -> dict[str, Any] | None:
    shown = client.get(f"/api/v1/jobs/{job['id']}/").json()
    assert shown["phase"] == "QUEUED"
    return dict(shown) if shown["position"] is not None else None


def namespace_of(client: httpx2.Client) -> str:
    return str(next(one for one in client.get("/api/v1/namespaces/").json()["results"] if one["personal"])["id"])


def test_priority_1000_does_not_pass_another_tenants_earlier_job_until_an_administrator_raises_the_ceiling(
    full: tuple[Scene, int], tenant: Tenant, launch: Callable[..., dict[str, Any]]
):
    victim, greedy = tenant("victim"), tenant("greedy")
    earlier = launch(victim)
    assert position(victim, earlier) == 0
    later = launch(greedy, priority=1000)
    assert "priority_above_ceiling" in [one["code"] for one in later["warnings"]]
    assert (position(victim, earlier), position(greedy, later)) == (0, 1)

    quota = f"/api/v1/namespaces/{namespace_of(greedy)}/quota/"
    assert greedy.put(quota, json={**NO_LIMITS, "priority_ceiling": 1000}).status_code == 403
    assert greedy.get(quota).json()["priority_ceiling"] == 0

    with http(full[0].portal.url, full[0].token) as admin:
        for wrong in (-1, 1001, "high", None):
            refused = admin.put(quota, json={**NO_LIMITS, "priority_ceiling": wrong})
            assert refused.status_code == 400
            assert "priority_ceiling" in refused.text
        assert admin.put(quota, json={**NO_LIMITS, "priority_ceiling": 1000}).json()["priority_ceiling"] == 1000
        until(lambda: position(greedy, later) == 0, what="the raised ceiling to count")
        until(lambda: position(victim, earlier) == 1, what="the other job to be passed")
        assert admin.put(quota, json=NO_LIMITS).json()["priority_ceiling"] == 1000, "left out: it stays"
        assert admin.put(quota, json={**NO_LIMITS, "priority_ceiling": 0}).status_code == 200
    until(lambda: position(victim, earlier) == 0, what="the lowered ceiling to count")


def test_within_a_namespace_a_priority_orders_and_the_other_tenants_places_stay(
    tenant: Tenant, launch: Callable[..., dict[str, Any]]
):
    mine, other = tenant("orderly"), tenant("bystander")
    first, between, urgent = launch(mine), launch(other), launch(mine, priority=7)
    for client, job, place in ((mine, urgent, 0), (other, between, 1), (mine, first, 2)):
        until(lambda at=(client, job, place): position(at[0], at[1]) == at[2], what=f"place {place}")


def test_an_early_job_that_can_never_start_lends_its_place_to_no_later_one(
    full: tuple[Scene, int], tenant: Tenant, launch: Callable[..., dict[str, Any]]
):
    greedy, victim = tenant("placeholder"), tenant("patient")
    never = launch(greedy, roles={"worker": {**SMALL, "cpu": 0.5, "replicas": 3}, "ps": dict(SMALL)})
    assert position(greedy, never) == 0
    with http(full[0].portal.url, full[0].token) as admin:
        limits = {**NO_LIMITS, "cpu": 1}
        assert admin.put(f"/api/v1/namespaces/{namespace_of(greedy)}/quota/", json=limits).status_code == 200
    earlier, later = launch(victim), launch(greedy, priority=1000)
    assert (position(victim, earlier), position(greedy, later)) == (0, 1)
    assert greedy.get(f"/api/v1/jobs/{never['id']}/").json()["reason"] == "ExceedsMaxQuota"
