"""A job that can never start is queued by nobody's accident, and never looks like one that waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import yaml

from tests.hostile.conftest import http
from tests.real.scene import PATIENCE, Scene, until
from yardmaster_client.errors import PortalError

pytestmark = [pytest.mark.slow, pytest.mark.linux]

UNLIMITED = dict.fromkeys(["cpu", "memory", "gpus", "storage", "running_jobs"])
TOO_LARGE = {"worker": {"cpu": 4000, "memory": "256Mi"}}


@pytest.fixture
def spec(attacked: Scene) -> Iterator[dict[str, Any]]:
    """A job that asks for more cores than any machine has; whatever was queued of it is stopped."""
    yield attacked.spec(attacked.put_code({"main.py": "print(1)"}), roles=TOO_LARGE, name="giant")
    for job in attacked.client.jobs.list(search="giant"):
        if not job.is_final:
            attacked.settled(attacked.client.jobs.stop(job.id))


@pytest.fixture
def attacked_admin(attacked: Scene) -> Iterator[httpx2.Client]:
    with http(attacked.portal.url, attacked.token) as client:
        yield client


def test_one_request_does_not_queue_it(attacked: Scene, spec: dict[str, Any]):
    with pytest.raises(PortalError) as refused:
        attacked.client.jobs.launch(spec)
    assert (refused.value.status, refused.value.code) == (409, "never_fits")
    [numbers] = refused.value.facts["numbers"]
    assert (numbers["resource"], numbers["needs"]) == ("cpu", 4000)
    assert not list(attacked.client.jobs.list(search="giant"))


def test_accepted_it_has_a_state_of_its_own_and_starts_by_itself_when_it_fits(attacked: Scene, spec: dict[str, Any]):
    giant = attacked.client.jobs.launch(spec, accept_never_fits=True)
    assert (giant.queue_state, giant.position) == ("never_fits", None)
    until(lambda: attacked.client.jobs.why(giant.id)["numbers"], PATIENCE, "its numbers")
    assert giant.id in [job.id for job in attacked.client.jobs.list(queue_state="never_fits")]
    assert giant.id not in [job.id for job in attacked.client.jobs.list(queue_state="waiting")]
    small = attacked.client.jobs.launch({**spec, "roles": {"worker": {"cpu": 0.1, "memory": "256Mi"}}})
    assert attacked.ended(small).phase == "SUCCEEDED"
    assert attacked.client.jobs.get(giant.id).queue_state == "never_fits"


def test_a_quota_that_is_raised_makes_it_an_ordinary_job(
    attacked: Scene, attacked_admin: httpx2.Client, spec: dict[str, Any]
):
    namespace = attacked.client.jobs.launch(spec, accept_never_fits=True).namespace
    address = f"/api/v1/namespaces/{namespace}/quota/"
    attacked_admin.put(address, json=UNLIMITED | {"cpu": 0.05}).raise_for_status()
    try:
        small = {**spec, "roles": {"worker": {"cpu": 0.1, "memory": "256Mi"}}}
        with pytest.raises(PortalError, match="exceeds its namespace's quota"):
            attacked.client.jobs.launch(small)
        job = attacked.client.jobs.launch(small, accept_never_fits=True)
        until(lambda: attacked.row(job, "reason") == ("ExceedsMaxQuota",), PATIENCE, "its reason")
    finally:
        attacked_admin.put(address, json=UNLIMITED).raise_for_status()
    assert attacked.ended(job).phase == "SUCCEEDED"


def test_the_command_line_asks_and_a_job_file_may_answer(attacked: Scene, spec: dict[str, Any], tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump(spec))
    refused = attacked.command("jobs", "launch", str(file))
    assert refused.returncode == 1
    assert "--queue-anyway" in refused.stderr
    assert "4000" in refused.stderr
    assert attacked.command("jobs", "launch", str(file), "--queue-anyway").returncode == 0
    file.write_text(yaml.safe_dump(spec | {"accept_never_fits": True}))
    assert attacked.command("jobs", "launch", str(file)).returncode == 0
    listed = attacked.command("jobs", "list", "--queue-state", "never_fits")
    assert listed.stdout.count("CAN NEVER FIT") == 2
    assert "CAN NEVER FIT" in attacked.command("jobs", "why", "giant").stdout
