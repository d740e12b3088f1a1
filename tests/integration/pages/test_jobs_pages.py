"""The list of jobs: what it shows, how it is filtered and paged, and what is done with the chosen jobs."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.models import Job

pytestmark = pytest.mark.django_db
HOSTILE = ["</td><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\u202egnp.exe", "🚂" * 150, "n" * 200]


def make_job(owner: User, name: str = "digits", **fields: Any) -> Job:
    now = timezone.now()
    if fields.get("phase") in ("SUCCEEDED", "FAILED", "STOPPED"):
        fields = {"decided_at": now, "cleaned_up_at": now} | fields
    roles = {"ps": {"replicas": 1}, "worker": {"replicas": 2}}
    spec = {"strategy": "between_graph", "roles": roles, "reclaim_delay": 30}
    replicas = {"ps": 1, "worker": 2}
    fields = {"strategy": "between_graph", "spec": spec, "replicas": replicas, "needs": {}} | fields
    fields.setdefault("namespace", owner.personal_namespace)
    return Job.objects.create(owner=owner, name=name, engine="local", queued_at=now, **fields)


@pytest.fixture
def page(client):
    """What a user sees at an address below `/jobs/`."""

    def get(user: User, path: str = "", **headers: str) -> str:
        client.force_login(user)
        response = client.get(f"/jobs/{path}", headers=headers)
        assert response.status_code == 200, response.status_code
        return response.content.decode()

    return get


class TestList:
    def test_it_says_what_each_job_is_and_why_it_is_where_it_is(self, ada, page):
        make_job(ada, "trains", phase="RUNNING", started_at=timezone.now(), progress={"step": 30, "total": 120})
        make_job(ada, "waits", phase="QUEUED", position=2, message="The quota has 1 core left, and it asks for 3.")
        text = page(ada)
        assert "trains" in text
        assert "2 workers" in text
        assert "1 parameter server" in text
        assert "step 30 of 120" in text
        assert 'value="25"' in text
        assert "2 ahead. The quota has 1 core left" in text

    def test_an_empty_one_says_how_to_begin(self, ada, page):
        assert "yardmaster jobs launch" in page(ada)

    def test_filters_that_leave_nothing_say_so(self, ada, page):
        make_job(ada)
        assert "No jobs match these filters" in page(ada, "?search=nothing")

    def test_what_others_do_is_not_shown(self, ada, bob, page):
        make_job(bob, "secret-of-bob")
        assert "secret-of-bob" not in page(ada, "?where=all")

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("", {"one", "two", "three"}),
            ("?search=t", {"two", "three"}),
            ("?phase=RUNNING", {"one"}),
            ("?phase=RUNNING&phase=FAILED", {"one", "two"}),
            ("?strategy=single", {"three"}),
            ("?owner=bob", set()),
            ("?phase=NONSENSE&strategy=nonsense", {"one", "two", "three"}),
        ],
    )
    def test_filters_lie_in_the_address(self, ada, page, query, names):
        make_job(ada, "one", phase="RUNNING", started_at=timezone.now())
        make_job(ada, "two", phase="FAILED")
        make_job(ada, "three", strategy="single")
        text = page(ada, query)
        assert {name for name in ("one", "two", "three") if f"<bdi>{name}</bdi>" in text} == names

    def test_pages_follow_one_another_and_keep_the_filters(self, ada, page):
        for number in range(30):
            make_job(ada, f"job-{number:02}")
        first = page(ada, "?search=job")
        assert "<bdi>job-29</bdi>" in first
        assert "<bdi>job-04</bdi>" not in first
        older = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
        assert "search=job" in older
        second = page(ada, older)
        assert "<bdi>job-04</bdi>" in second
        assert 'rel="prev"' in second

    def test_htmx_gets_the_list_alone_and_a_browser_that_goes_back_the_page(self, ada, page):
        make_job(ada)
        part = page(ada, "", **{"HX-Request": "true"})
        assert part.lstrip().startswith("<div")
        assert "<html" in page(ada, "", **{"HX-Request": "true", "HX-History-Restore-Request": "true"})

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_names_harm_nothing(self, ada, page, name):
        make_job(ada, name, phase="FAILED", message="<b>boom</b>" * 1_000)
        text = page(ada)
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "<b>boom" not in text
        assert len(text) < 40_000

    def test_a_long_list_costs_few_queries(self, ada, client, django_assert_max_num_queries):
        for number in range(30):
            make_job(ada, f"job-{number}")
        client.force_login(ada)
        client.get("/jobs/")  # the first request of a browser is remembered in its account
        with django_assert_max_num_queries(8):
            assert client.get("/jobs/").status_code == 200


class TestRows:
    def test_changed_rows_take_the_place_of_the_old_ones_and_gone_ones_leave(self, ada, page):
        job, gone = make_job(ada, "one"), uuid.uuid4()
        text = page(ada, f"rows/?job={job.pk}&job={gone}&job=nonsense")
        assert f'id="job-{job.pk}"' in text
        assert 'hx-swap-oob="true"' in text
        assert f'id="job-{gone}" hx-swap-oob="delete"' in text
        assert "nonsense" not in text

    def test_foreign_rows_look_like_gone_ones(self, ada, bob, page):
        job = make_job(bob, "secret-of-bob")
        text = page(ada, f"rows/?job={job.pk}")
        assert "secret-of-bob" not in text
        assert 'hx-swap-oob="delete"' in text


class TestBulk:
    def send(self, client, user: User, action: str, *jobs: Job, **more: str):
        client.force_login(user)
        data = {"action": action, "job": [str(job.pk) for job in jobs], "back": "/jobs/?search=x", **more}
        return client.post("/jobs/bulk/", data, follow=True)

    def test_stopping_many_says_what_was_done_and_what_not(self, ada, client):
        jobs = [make_job(ada), make_job(ada), make_job(ada, phase="SUCCEEDED")]
        response = self.send(client, ada, "stop", *jobs)
        assert response.redirect_chain == [("/jobs/?search=x", 302)]
        text = response.content.decode()
        assert "Stopping 2 jobs." in text
        assert "1 job was skipped: had already ended." in text
        assert Job.objects.filter(wanted="STOP").count() == 2

    def test_deleting_asks_first_and_takes_only_what_has_ended(self, ada, client):
        ended, running = make_job(ada, "ended", phase="FAILED"), make_job(ada, "running")
        text = self.send(client, ada, "delete", ended, running).content.decode()
        assert "1 job will be deleted" in text
        assert "has not ended: stop it first" in text
        assert not Job.objects.filter(deleted_at__isnull=False).exists()
        text = self.send(client, ada, "delete", ended, running, typed="Ended").content.decode()
        assert "Nothing was deleted" in text
        assert not Job.objects.filter(deleted_at__isnull=False).exists()
        text = self.send(client, ada, "delete", ended, running, typed=" ended").content.decode()
        assert "Deleted 1 job." in text
        assert list(Job.objects.filter(deleted_at__isnull=False)) == [ended]

    def test_several_are_deleted_by_typing_how_many(self, ada, client):
        jobs = [make_job(ada, phase="FAILED") for _ in range(3)]
        assert "3 jobs" in self.send(client, ada, "delete", *jobs).content.decode()
        assert "Deleted 3 jobs." in self.send(client, ada, "delete", *jobs, typed="3 jobs").content.decode()

    def test_a_job_whose_tasks_are_still_being_released_is_kept(self, ada, client):
        job = make_job(ada, phase="SUCCEEDED", cleaned_up_at=None)
        assert "Nothing to delete" in self.send(client, ada, "delete", job).content.decode()

    def test_foreign_jobs_cannot_be_chosen(self, ada, bob, client):
        job = make_job(bob)
        assert "No jobs selected" in self.send(client, ada, "stop", job).content.decode()
        assert Job.objects.get().wanted == "RUN"

    def test_who_only_looks_on_may_not_stop(self, ada, bob, client):
        from apps.namespaces.models import Membership

        job = make_job(bob)
        Membership.objects.create(namespace=bob.personal_namespace, user=ada, role="viewer")
        text = self.send(client, ada, "stop", job).content.decode()
        assert "This needs the role member" in text
        assert Job.objects.get().wanted == "RUN"

    def test_nobody_is_sent_elsewhere_afterwards(self, ada, client):
        response = self.send(client, ada, "stop", make_job(ada), back="https://evil.example/")
        assert response.redirect_chain == [("/jobs/", 302)]

    def test_nothing_chosen_says_so(self, ada, client):
        assert "No jobs selected" in self.send(client, ada, "stop").content.decode()

    def test_a_time_long_ago_is_told_in_words(self, ada, page):
        job = make_job(ada, phase="FAILED", started_at=timezone.now() - timedelta(hours=3))
        Job.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(hours=3))
        assert "3 h ago" in page(ada)
