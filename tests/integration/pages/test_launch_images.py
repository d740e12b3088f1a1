"""The launch form offers the images that this namespace may use on this engine, and the page of a job shows which one
it has."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from apps.images.services import image_create, image_delete
from apps.jobs.models import Job
from apps.namespaces.models import Namespace
from tests.integration.jobs.conftest import stores
from tests.integration.jobs.test_job_images import FIRST, SECOND, add, image_world
from tests.integration.pages.test_launch_page import rows

__all__ = ["image_world", "stores"]

pytestmark = pytest.mark.django_db
ROLE = "roles-worker-image"


@pytest.fixture
def signed(client: Client, ada) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def data(image_world, ada) -> dict[str, str]:
    code = image_world.code_version(ada, {"train.py": "print(1)\n"})
    return {
        "form": "f1", "name": "digits", "strategy": "between_graph", "code": str(code.pk), "entry_point": "train.py",
        "roles-worker-replicas": "2", "roles-ps-replicas": "1", **rows("inputs"), **rows("environment"),
    }  # fmt: skip


def options(page: str, name: str = "image") -> list[str]:
    """The values of a select; nothing where there is none."""
    found = re.search(rf'<select name="{name}"[^>]*>(.*?)</select>', page, re.DOTALL)
    return re.findall(r'value="([^"]*)"', found[1]) if found else []


def page_of(client: Client, data: dict[str, str] | None = None, **changes: str) -> str:
    if data is None:
        return client.get("/jobs/launch/").content.decode()
    return client.post("/jobs/launch/", data | {"take": "place"} | changes).content.decode()


def test_it_offers_what_the_namespace_may_use_with_what_it_has(image_world, signed, ada, bob, admin, data):
    add(admin, python="3.11", tensorflow="2.19.0", description="For <b>digits</b>", gpus=True)
    add(admin, "off", enabled=False)
    add(admin, "of-bob", everyone=False, namespaces=[Namespace.objects.get(owner=bob)])
    page = page_of(signed)
    assert options(page) == ["", "tf"]
    assert options(page, ROLE) == ["", "tf"]
    assert "tf – Python 3.11, TensorFlow 2.19.0; GPUs – For &lt;b&gt;digits&lt;/b&gt;" in page


def test_it_offers_none_where_there_is_none_or_the_engine_runs_none(image_world, signed, admin, data):
    page = page_of(signed)
    assert options(page) == options(page, ROLE) == []
    add(admin)
    assert options(page_of(signed, data, engine="plain")) == []
    assert options(page_of(signed, data, engine="staged")) == ["", "tf"]


def test_what_was_chosen_stays_where_it_is_not_available_and_its_error_stands_there(image_world, signed, admin, data):
    add(admin)
    sent = data | {"image": "tf", ROLE: "gone", "engine": "plain"}
    page = page_of(signed, sent)
    assert options(page) == ["", "tf"]
    assert "gone (not available here)" in page
    refused = signed.post("/jobs/launch/", sent)
    assert refused.status_code == 422
    assert 'href="#f-image"' in refused.content.decode()
    assert 'href="#f-roles-worker-image"' in refused.content.decode()
    assert not Job.objects.exists()


def test_a_job_is_launched_in_it_and_its_page_shows_what_was_pinned(image_world, signed, admin, data):
    image = add(admin)
    image_create(name="small", facts={"reference": SECOND}, actor=admin)
    answer = signed.post("/jobs/launch/", data | {"image": "tf", ROLE: "small", "engine": "staged"})
    assert answer.status_code == 302, answer.content.decode()
    image_delete(image=image, actor=admin)
    job = Job.objects.get()
    page = signed.get(f"/jobs/{job.pk}/").content.decode()
    assert FIRST in page
    assert SECOND in page
    assert "image: tf" in page, "the job file has its name"
    again = signed.get(f"/jobs/launch/?from={job.pk}").content.decode()
    assert "tf (not available here)" in again
    assert re.search(r'<option value="small" selected>', again)


def test_the_file_says_the_image_and_the_form_follows_it(image_world, signed, admin, data):
    add(admin)
    page = page_of(signed, data, image="tf", engine="staged")
    assert "image: tf" in page
    yaml = f"name: a\nstrategy: single\nroles: {{worker: {{image: tf}}}}\ncode: {data['code']}\nentry_point: train.py\n"
    page = page_of(signed, data | {"yaml": yaml}, take="yaml")
    selected = re.search(rf'<select name="{ROLE}"[^>]*>(.*?)</select>', page, re.DOTALL)
    assert selected
    assert '<option value="tf" selected>' in selected[1]


def test_two_jobs_with_one_name_and_two_digests_differ(image_world, signed, ada, admin):
    image = add(admin)
    first = image_world.launch(ada, image="tf")
    image_delete(image=image, actor=admin)
    image_create(name="tf", facts={"reference": SECOND}, actor=admin)
    second = image_world.launch(ada, image="tf")
    page = signed.get(f"/jobs/compare/?job={first.pk}&job={second.pk}").content.decode()
    assert "tf (sha256:111111111111)" in page
    assert "tf (sha256:222222222222)" in page
