"""Home: what runs, what waits and why, what failed lately, the quota, models, and the first steps."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.browsers import BY_LINK
from apps.accounts.models import User
from apps.datasets.models import Dataset
from apps.jobs.models import Job, Reservation
from apps.namespaces.models import Membership, Namespace, Quota
from apps.uploads.models import StorageAccount
from apps.workbench.models import Kind, WorkbenchSession
from tests.integration.model_versions import version_of

pytestmark = pytest.mark.django_db
HOSTILE = ["</a><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\u202egnp.exe", "🚂" * 150, "n" * 200]


def make_job(owner: User, name: str = "digits", **fields: Any) -> Job:
    replicas = {"worker": 2, "ps": 1}
    fields = {"strategy": "between_graph", "spec": {}, "replicas": replicas, "needs": {}} | fields
    fields.setdefault("queued_at", timezone.now())
    fields.setdefault("namespace", owner.personal_namespace)
    return Job.objects.create(owner=owner, name=name, engine="local", **fields)


def ended(hours_ago: float) -> dict[str, Any]:
    now = timezone.now()
    return {"started_at": now - timedelta(hours=hours_ago + 1), "decided_at": now - timedelta(hours=hours_ago)}


@pytest.fixture
def home(client):
    """Home as a user sees it."""

    def get(user: User, query: str = "", **headers: str) -> str:
        client.force_login(user)
        response = client.get(f"/{query}", headers=headers)
        assert response.status_code == 200
        return response.content.decode()

    return get


class TestJobs:
    def test_it_says_what_runs_and_how_far_it_is(self, ada, home):
        make_job(ada, phase="RUNNING", started_at=timezone.now(), progress={"step": 30, "total": 120, "epoch": 2})
        page = home(ada)
        assert "2 workers, 1 parameter server" in page
        assert "step 30 of 120 · epoch 2" in page
        assert "25 % done" in page

    def test_it_says_why_a_job_waits_and_what_helps(self, ada, home):
        """pains.md C: pending with no explanation."""
        make_job(ada, position=0, message="cpu needs 8, 7 of 16 are unused.", remedy="Stop a job, or ask for less.")
        page = home(ada)
        assert "Next in the queue. cpu needs 8, 7 of 16 are unused." in page
        assert "Stop a job, or ask for less." in page

    def test_those_who_wait_are_shown_in_the_order_of_the_queue(self, ada, home):
        make_job(ada, "third", position=None)
        make_job(ada, "second", position=1)
        make_job(ada, "first", position=0)
        page = home(ada)
        assert page.index(">first<") < page.index(">second<") < page.index(">third<")

    def test_it_says_what_failed_since_yesterday_and_nothing_older(self, ada, home):
        make_job(
            ada, "fresh", phase="FAILED", message="worker 1 ran out of memory.", remedy="Ask for more.", **ended(2)
        )
        make_job(ada, "stale", phase="FAILED", message="long ago", **ended(30))
        page = home(ada)
        assert "fresh" in page
        assert "worker 1 ran out of memory." in page
        assert "Ask for more." in page
        assert "stale" not in page

    def test_many_successes_hide_no_failure(self, ada, home):
        make_job(ada, "the-failure", phase="FAILED", **ended(5))
        for number in range(8):
            make_job(ada, f"fine-{number}", phase="SUCCEEDED", **ended(1))
        page = home(ada)
        assert ">the-failure<" in page
        assert page.count(">fine-") == 6

    def test_more_than_fit_are_counted_and_linked(self, ada, home):
        for number in range(9):
            make_job(ada, f"job-{number}", phase="RUNNING", started_at=timezone.now())
        page = home(ada)
        assert "<strong>9</strong>" in page
        assert ">3 more</a>" in page
        assert "/jobs/?phase=STARTING&amp;phase=RUNNING" in page.replace("&phase", "&amp;phase")

    def test_deleted_and_foreign_jobs_are_not_there(self, ada, bob, home):
        make_job(ada, "deleted-one", phase="RUNNING", deleted_at=timezone.now())
        make_job(bob, "foreign-one", phase="RUNNING")
        page = home(ada)
        assert "deleted-one" not in page
        assert "foreign-one" not in page

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_hostile_name_harms_nothing(self, ada, home, name):
        make_job(ada, name, phase="FAILED", message=name, remedy=name, **ended(1))
        page = home(ada)
        assert "<script>alert" not in page
        assert "<img src=x" not in page

    def test_a_team_sees_whose_jobs_they_are(self, ada, bob, home):
        team = Namespace.objects.create(slug="vision")
        Membership.objects.create(namespace=team, user=ada)
        make_job(bob, phase="RUNNING", namespace=team)
        assert ">bob<" in home(ada, "?namespace=vision")


class TestQuota:
    def test_it_shows_used_reserved_and_hard_in_words_and_bars(self, ada, home):
        """pains.md D: quota hidden or discovered too late."""
        own = ada.personal_namespace
        Quota.objects.filter(namespace=own).update(cpu=Decimal(16), storage=200 << 30, memory=None)
        StorageAccount.objects.update_or_create(namespace=own, defaults={"used": 131 << 30, "reserved": 22 << 30})
        job = make_job(ada, phase="RUNNING", started_at=timezone.now())
        Reservation.objects.create(
            job=job, namespace=own, engine="local", attempt=1, role="worker", cpu=Decimal("4.5"), memory=3 << 30,
            gpus=0, reserved_at=timezone.now(),
        )  # fmt: skip
        page = home(ada)
        assert "4.5 of 16" in page
        assert "131 GiB + 22 GiB reserved of 200 GiB" in page
        assert "3.0 GiB · no limit" in page
        assert 'class="quota-reserved" width="76.50"' in page
        assert 'class="quota-used" width="65.50"' in page


class TestModels:
    def test_models_made_lately_lead_to_their_jobs(self, ada, home):
        job = make_job(ada, phase="SUCCEEDED", **ended(1))
        version_of(job, name="digits-model", content={"saved_model.pb": b"x" * 2048})
        page = home(ada)
        assert "digits-model" in page
        assert "2.0 KiB" in page


class TestFirstSteps:
    def test_each_step_has_the_page_and_the_command_that_does_the_same(self, ada, home):
        page = home(ada)
        assert "Train your first model" in page
        for command in ("datasets upload", "code upload", "jobs launch", "login http"):
            assert f"yardmaster {command}" in page
        assert "pip install http" in page

    def test_what_was_done_is_marked(self, ada, home):
        assert "step-done" not in home(ada)
        Dataset.objects.create(namespace=ada.personal_namespace, name="digits")
        assert home(ada).count("step-done") == 1

    def test_commands_name_the_team_that_one_works_in(self, ada, home):
        team = Namespace.objects.create(slug="vision")
        Membership.objects.create(namespace=team, user=ada)
        assert "--name digits --namespace vision" in home(ada, "?namespace=vision")
        assert "--namespace" not in home(ada, f"?namespace={ada.personal_namespace.slug}")

    def test_they_go_with_the_first_job_and_do_not_come_back(self, ada, home):
        make_job(ada, phase="STOPPED", **ended(200))
        page = home(ada)
        assert "Train your first model" not in page
        assert "No running jobs." in page

    def test_who_came_by_a_link_and_has_no_password_is_asked_to_set_one(self, ada, client):
        def is_asked(by_link: bool) -> bool:
            client.force_login(ada)
            session = client.session
            session[BY_LINK] = by_link
            session.save()
            return "Set a password</a> to sign in again" in client.get("/").content.decode()

        assert not is_asked(by_link=True)
        ada.set_unusable_password()
        ada.save()
        assert is_asked(by_link=True)
        assert not is_asked(by_link=False), "who signs in at a provider needs none"


class TestWorkbench:
    def test_both_sessions_can_be_opened_and_looking_starts_none(self, ada, home):
        page = home(ada)
        for kind, name in (("jupyter", "Jupyter"), ("tensorboard", "TensorBoard")):
            assert f'id="home-open-{kind}" form="home-start-{kind}"' in page
            assert f"Open {name}</button>" in page
            assert page.count(f'<form id="home-start-{kind}" method="post" action="/workbench/start/">') == 1
        assert not WorkbenchSession.objects.exists()
        assert "csrfmiddlewaretoken" not in home(ada, **{"HX-Request": "true"}), "a part is the same each time"

    def test_what_runs_has_its_state_and_is_opened(self, ada, home):
        made = self._session(ada, "user:1", Kind.JUPYTER, phase="RUNNING", started_at=timezone.now())
        page = home(ada)
        assert "Loading" in page
        assert f'href="/sessions/{made.pk}/?open=1"' in page
        assert "Open when ready" in page
        WorkbenchSession.objects.update(ready_at=timezone.now())
        page = home(ada)
        assert "Open Jupyter</a>" in page
        assert "if unused" in page
        Job.objects.update(phase="FAILED", message="The <b>image</b> cannot be pulled.")
        assert "The &lt;b&gt;image&lt;/b&gt; cannot be pulled." in home(ada)

    def test_more_that_run_are_counted_and_other_users_jupyters_are_not(self, ada, bob, home):
        for number in range(2):
            self._session(ada, f"job:{number}", Kind.TENSORBOARD, phase="RUNNING", started_at=timezone.now())
        self._session(ada, "job:3", Kind.TENSORBOARD, phase="STOPPED", **ended(1))
        Membership.objects.create(namespace=ada.personal_namespace, user=bob, role="viewer")
        self._session(bob, "user:2", Kind.JUPYTER, namespace=ada.personal_namespace, phase="RUNNING")
        assert "2 more TensorBoards of chosen jobs" in home(ada)
        assert "home-open-jupyter" in home(ada)
        WorkbenchSession.objects.filter(owner=bob).delete()
        viewed = home(bob, f"?namespace={ada.personal_namespace.slug}")
        assert "TensorBoard" in viewed
        assert "home-open" not in viewed, "a viewer starts nothing"

    @staticmethod
    def _session(owner: User, subject: str, kind: str, **job: Any) -> WorkbenchSession:
        made = make_job(owner, strategy="service", **job)
        return WorkbenchSession.objects.create(
            namespace=made.namespace, kind=kind, subject=subject, owner=owner, job=made, size="small",
            idle_seconds=3600, started_at=timezone.now(), job_ids=["x"] if subject.startswith("job:") else [],
        )  # fmt: skip


class TestRefreshing:
    def test_htmx_gets_the_part_that_moves_alone(self, ada, home):
        make_job(ada, phase="RUNNING", started_at=timezone.now())
        part = home(ada, **{"HX-Request": "true"})
        assert "<html" not in part
        assert "digits" in part
        assert "1 running, 0 queued, 0 failed in the last 24 hours." in part

    def test_it_takes_twelve_statements_at_most(self, ada, client, django_assert_max_num_queries):
        for phase in ("RUNNING", "QUEUED", "STARTING"):
            make_job(ada, phase=phase)
        make_job(ada, phase="QUEUED", reason="ExceedsCapacity")
        for phase in ("FAILED", "SUCCEEDED"):
            make_job(ada, phase=phase, **ended(1))
        client.force_login(ada)
        client.get("/")  # the first look of a session notes the browser
        with django_assert_max_num_queries(12):
            client.get("/")

    def test_first_steps_take_twelve_statements_at_most(self, ada, client, django_assert_max_num_queries):
        client.force_login(ada)
        client.get("/")  # the first look of a session notes the browser
        with django_assert_max_num_queries(12):
            client.get("/")

    def test_a_stranger_signs_in_first(self, client):
        assert client.get("/").headers["Location"].startswith("/accounts/login/")
