"""The page Edit of a job, and tags, pins and the archive in the list."""

from __future__ import annotations

import pytest
from django.http import QueryDict

from apps.jobs.labels import MOST_TAGS, job_change, job_pin
from apps.jobs.models import Job, JobPin
from apps.jobs.pages.listing import filters_of
from tests.integration.pages.test_jobs_pages import HOSTILE, make_job

pytestmark = pytest.mark.django_db


def test_what_is_typed_is_saved_and_shown(ada, web):
    job = make_job(ada, phase="SUCCEEDED")
    form = {"name": "baseline", "tags": "Paper, run 7, ", "note": "First line\nsecond", "pinned": "on"}
    answer = web.post(f"/jobs/{job.pk}/edit/", form, follow=True)
    text = answer.content.decode()
    for words in ("Saved.", "baseline", "paper", "run 7", "First line<br>second"):
        assert words in text
    assert JobPin.objects.filter(user=ada, job=job).exists()
    page = web.get(f"/jobs/{job.pk}/edit/").content.decode()
    assert 'value="paper, run 7"' in page
    web.post(f"/jobs/{job.pk}/edit/", form | {"pinned": ""})
    assert not JobPin.objects.exists()


def test_what_is_wrong_is_said_and_what_was_typed_stays(ada, web):
    job = make_job(ada)
    answer = web.post(f"/jobs/{job.pk}/edit/", {"name": "x", "tags": "fine", "archived": "on"})
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "has not ended" in text
    assert 'value="fine"' in text
    job.refresh_from_db()
    assert job.tags == []


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_text(ada, web, text):
    job = make_job(ada, phase="FAILED")
    job_change(user=ada, job=job, tags=[text[:40].replace(",", "")] if text.isprintable() else [], note=text)
    for path in (f"/jobs/{job.pk}/", f"/jobs/{job.pk}/edit/", "/jobs/"):
        page = web.get(path).content.decode()
        assert "<script>alert" not in page
        assert "<img src=x" not in page


def test_pinned_jobs_stand_above_the_newest_and_filters_leave_them_out(ada, web):
    old = make_job(ada, "the pinned one", phase="SUCCEEDED")
    for n in range(30):
        make_job(ada, f"newer {n}", phase="SUCCEEDED")
    assert "the pinned one" not in web.get("/jobs/").content.decode()
    job_pin(user=ada, job=old)
    page = web.get("/jobs/").content.decode()
    assert page.index("the pinned one") < page.index("newer 29")
    assert page.count("Pinned") == 1
    assert "Pinned" in web.get(f"/jobs/rows/?job={old.pk}").content.decode(), "also when its row is fetched again"
    job_pin(user=ada, job=Job.objects.get(name="newer 20"))
    page = web.get("/jobs/").content.decode()
    assert page.count("newer 20") == page.count("newer 21"), "on top, and not a second time below"
    assert page.index("newer 20") < page.index("newer 29")
    assert "the pinned one" not in web.get("/jobs/?search=newer").content.decode()


def test_the_chosen_are_archived_and_restored_together(ada, web):
    done, runs = make_job(ada, "is over", phase="SUCCEEDED"), make_job(ada, "still runs", phase="RUNNING")
    chosen = {"job": [str(done.pk), str(runs.pk)], "back": "/jobs/"}
    page = web.post("/jobs/bulk/", chosen | {"action": "archive"}, follow=True).content.decode()
    assert "Archived 1 job." in page
    assert "has not ended" in page
    assert "is over" not in page
    shown = web.get("/jobs/?archived=yes").content.decode()
    assert "is over" in shown
    assert "Unarchive" in shown
    web.post("/jobs/bulk/", {"job": str(done.pk), "action": "unarchive"})
    assert "is over" in web.get("/jobs/").content.decode()


def test_pinning_what_is_pinned_unpins_it(ada, web):
    job = make_job(ada)
    for words in ("Pinned 1 job.", "Unpinned 1 job."):
        page = web.post("/jobs/bulk/", {"job": str(job.pk), "action": "pin"}, follow=True).content.decode()
        assert words in page


def test_a_page_of_the_list_costs_few_queries(ada, web, django_assert_max_num_queries):
    for n in range(30):
        job = make_job(ada, f"job {n}", phase="SUCCEEDED")
        job_change(user=ada, job=job, tags=[f"tag {n}", "all"])
        if n % 3 == 0:
            job_pin(user=ada, job=job)
    with django_assert_max_num_queries(8):
        web.get("/jobs/")
    with django_assert_max_num_queries(8):
        web.get("/jobs/?tag=all")


def test_an_address_with_very_many_tags_asks_for_few(ada, web, django_assert_max_num_queries):
    make_job(ada, "found by none")
    query = "&".join(f"tag=t{n}" for n in range(1_500))
    assert web.get(f"/jobs/?{query}").status_code == 200
    assert len(filters_of(QueryDict("&".join(["tag=A"] * 300 + ["tag=b"])), None).tags) == 2
    assert len(filters_of(QueryDict(query), None).tags) == MOST_TAGS


def test_with_as_many_pins_as_are_allowed_nothing_of_an_edit_is_saved(ada, web, monkeypatch):
    monkeypatch.setattr("apps.jobs.labels.MOST_PINS", 0)
    job = make_job(ada)
    answer = web.post(f"/jobs/{job.pk}/edit/", {"name": "new name", "pinned": "on"})
    assert answer.status_code == 422
    job.refresh_from_db()
    assert job.name == "digits"
    page = web.post("/jobs/bulk/", {"job": str(job.pk), "action": "pin"}, follow=True).content.decode()
    assert "as many as are allowed" in page
