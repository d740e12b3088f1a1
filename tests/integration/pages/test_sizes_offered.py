"""The launch form asks for what a script used before, and the page of a job offers the smaller shape."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.jobs.models import TaskFact
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.pages.test_launch_page import value_of

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db
MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def code(world, ada):
    return world.code_version(ada, {"train.py": "print()", "other.py": "print()"})


@pytest.fixture
def signed(client: Client, ada) -> Client:
    client.force_login(ada)
    return client


def ran(world, owner, code, *, memory: int, asked: str = "5Gi", cores: float = 0.9, **changes):
    """A job that has succeeded, whose workers used so much."""
    roles = {"worker": {"replicas": 2, "cpu": 1, "memory": asked}, "ps": {"replicas": 1, "memory": "1Gi"}}
    job = world.launch(owner, code=str(code.pk), entry_point="train.py", roles=roles, reclaim_delay=0, **changes)
    world.until_running(job)
    samples = [[0.0, 0.0, memory], [10.0, cores * 10, memory]]
    TaskFact.objects.filter(job=job, role="worker").update(usage={"peak_memory": memory}, usage_samples=samples)
    world.engine.succeed(job)
    world.until_quiet()
    return world.again(job)


def sizes(page: str, role: str = "worker") -> tuple[str, str]:
    return value_of(page, f"roles-{role}-memory"), value_of(page, f"roles-{role}-cpu")


def test_a_script_that_never_ran_gets_the_first_sizes(signed, code):
    assert sizes(signed.get("/jobs/launch/?preset=between_graph").content.decode()) == ("1.5Gi", "0.5")


def test_the_form_asks_for_what_the_script_used_before(world, ada, signed, code):
    ran(world, ada, code, memory=2 * GIB)
    ran(world, ada, code, memory=3 * GIB, cores=1.8)
    page = signed.get("/jobs/launch/?preset=between_graph").content.decode()
    assert sizes(page) == ("3.75Gi", "2")
    assert sizes(page, "ps") == ("1.5Gi", "0.5")
    assert "This script used before, in each task: worker 3.0 GiB and 1.8 cores" in page


def test_another_script_of_the_code_has_no_say(world, ada, signed, code):
    ran(world, ada, code, memory=3 * GIB)
    page = signed.post(
        "/jobs/launch/", {"take": "preset", "strategy": "single", "code": str(code.pk), "entry_point": "other.py"}
    ).content.decode()
    assert sizes(page) == ("1.5Gi", "1")


def test_a_deleted_job_has_no_say(world, ada, signed, code):
    job = ran(world, ada, code, memory=3 * GIB)
    type(job).objects.filter(pk=job.pk).update(deleted_at=world.now)
    assert sizes(signed.get("/jobs/launch/?preset=between_graph").content.decode()) == ("1.5Gi", "0.5")


def test_what_was_typed_and_what_is_cloned_stays(world, ada, signed, code):
    job = ran(world, ada, code, memory=4 * GIB)
    page = signed.get(f"/jobs/launch/?from={job.pk}").content.decode()
    assert sizes(page) == ("5Gi", "1")
    typed = {"take": "preset", "strategy": "single", "code": str(code.pk), "entry_point": "train.py"}
    page = signed.post("/jobs/launch/", typed | {"roles-worker-memory": "7Gi", "roles-worker-cpu": "3"})
    assert sizes(page.content.decode()) == ("7Gi", "3")


def test_the_page_of_a_job_offers_the_smaller_shape(world, ada, signed, code):
    job = ran(world, ada, code, memory=int(1.2 * GIB))
    page = signed.get(f"/jobs/{job.pk}/").content.decode()
    assert "Worker: asked 5.0 GiB, used 1.2 GiB." in page
    assert "Launch with 1.5 GiB for each worker" in page
    form = signed.get(f"/jobs/launch/?from={job.pk}&size=used").content.decode()
    assert sizes(form) == ("1.5Gi", "1")
    assert value_of(form, "name") == job.name


def test_nothing_is_offered_where_nearly_all_was_used_or_the_job_has_failed(world, ada, signed, code):
    job = ran(world, ada, code, memory=int(3.9 * GIB))
    assert 'id="job-sizes"' not in signed.get(f"/jobs/{job.pk}/").content.decode()
    job = ran(world, ada, code, memory=GIB)
    type(job).objects.filter(pk=job.pk).update(phase="FAILED")
    assert 'id="job-sizes"' not in signed.get(f"/jobs/{job.pk}/").content.decode()
