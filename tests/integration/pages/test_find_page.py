"""Finding anything: jobs, datasets, code and pages; never what is somebody else's."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.code.models import Code
from apps.datasets.models import Dataset
from apps.jobs.models import Job

pytestmark = pytest.mark.django_db


def make_job(owner: User, name: str) -> Job:
    return Job.objects.create(
        owner=owner, namespace=owner.personal_namespace, name=name, engine="local", strategy="single", spec={},
        needs={}, queued_at=timezone.now(),
    )  # fmt: skip


@pytest.fixture
def found(client):
    """The list that a user gets for some words."""

    def get(user: User, words: str) -> str:
        client.force_login(user)
        response = client.get("/find/", {"q": words}, headers={"HX-Request": "true"})
        assert response.status_code == 200
        return response.content.decode()

    return get


def test_it_finds_jobs_datasets_code_and_pages_by_part_of_a_name(ada, found):
    job = make_job(ada, "launch-of-digits")
    data = Dataset.objects.create(namespace=ada.personal_namespace, name="digits-launch-data")
    code = Code.objects.create(namespace=ada.personal_namespace, name="launcher")
    page = found(ada, "LAUNCH")
    assert f"/jobs/{job.pk}/" in page
    assert str(data.pk) in page
    assert str(code.pk) in page
    assert "Launch a job" in page


def test_it_finds_a_job_by_its_whole_id(ada, bob, found):
    job = make_job(ada, "digits")
    assert f"/jobs/{job.pk}/" in found(ada, str(job.pk))
    assert f"/jobs/{job.pk}/" not in found(bob, str(job.pk))
    assert "No results for" in found(ada, str(uuid.uuid4()))


def test_pages_are_found_by_what_people_call_them(ada, found):
    assert "Tokens" in found(ada, "api")
    assert "Sign out" in found(ada, "log out")


def test_without_words_there_are_the_newest_jobs_and_all_pages(ada, found):
    make_job(ada, "newest")
    page = found(ada, "")
    assert "newest" in page
    assert "Sign out" in page


def test_nobody_finds_what_is_foreign(ada, bob, found):
    make_job(ada, "secret-job")
    Dataset.objects.create(namespace=ada.personal_namespace, name="secret-data")
    page = found(bob, "secret")
    assert "secret-job" not in page
    assert "secret-data" not in page


@pytest.mark.parametrize(
    "words", ["</p><script>alert(1)</script>", "%", "_", "x" * 5_000, "\u202eabc", "🚂", "'--", "   "]
)
def test_hostile_words_harm_nothing(ada, found, words):
    make_job(ada, "</a><script>alert(1)</script>")
    assert "<script>" not in found(ada, words)


def test_it_is_a_page_without_a_script(ada, client):
    make_job(ada, "digits")
    client.force_login(ada)
    page = client.get("/find/", {"q": "dig"}).content.decode()
    assert "<html" in page
    assert 'value="dig"' in page
    assert ">digits<" in page


def test_it_takes_eight_statements_at_most(ada, client, django_assert_max_num_queries):
    make_job(ada, "digits")
    Dataset.objects.create(namespace=ada.personal_namespace, name="digits")
    Code.objects.create(namespace=ada.personal_namespace, name="digits")
    client.force_login(ada)
    client.get("/find/")  # the first look of a session notes the browser
    with django_assert_max_num_queries(8):
        client.get("/find/", {"q": "digits"}, headers={"HX-Request": "true"})
    with django_assert_max_num_queries(8):
        client.get("/find/", {"q": "digits"})
