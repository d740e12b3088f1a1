"""The page of one job: what it says in every state, what can be done from it, who may see it, what it costs."""

from __future__ import annotations

import html
import re
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.jobs.models import Checkpoint, Job, JobAttempt, JobEvent, TaskFact
from apps.jobs.services import job_stop
from apps.namespaces.models import Membership, Namespace, Role
from apps.stores import log_store
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.world import World
from tests.integration.model_versions import version_of
from yardmaster.job.spec import Role as TaskRole
from yardmaster.job.spec_json import spec_from_json
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.logs.keys import StreamKey
from yardmaster_client.jobfile import job_from_text

__all__ = ["engine_settings", "stores", "world"]

pytestmark = pytest.mark.django_db
GIB = 1 << 30
HOSTILE = [
    "</title><script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "\u202egnp.exe", "🚂" * 150, "n" * 200
]  # fmt: skip


@pytest.fixture(autouse=True)
def _logs(settings, tmp_path):
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    log_store.cache_clear()
    yield
    log_store.cache_clear()


@pytest.fixture
def see(client):
    """What a user sees on a job's page."""

    def get(user: User, job: Job, path: str = "", **headers: str) -> str:
        client.force_login(user)
        response = client.get(f"/jobs/{job.pk}/{path}", headers=headers)
        assert response.status_code == 200, response.status_code
        return response.content.decode()

    return get


def words_of(page: str) -> str:
    """The text of a page, as it is read."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


def fail(world: World, job: Job, **facts: Any) -> Job:
    """Worker 1 fails the running job, and what is left is cleaned up."""
    world.until_running(job)
    world.engine.set(world.again(job), TaskRole.WORKER, 1, TaskPhase.FAILED, **facts)
    world.until_quiet()
    return world.again(job)


class TestStates:
    def test_a_queued_job_says_its_one_reason_its_position_and_who_is_ahead(self, world, ada, bob, see):
        def large(user: User, name: str) -> Job:
            return world.launch(user, name=name, roles={"worker": {"replicas": 1, "cpu": 40}}, strategy="single")

        holder, foreign = large(ada, "holds most"), large(bob, "bob's secret")
        first, job = large(ada, "first in line"), large(ada, "waits")
        for one in (holder, foreign, first, job):
            world.look(one)
        page = see(ada, job)
        words = words_of(page)
        assert "2 jobs are ahead of this job" in words
        assert "first in line" in words
        assert "bob&#x27;s secret" not in page
        assert "1 in other namespaces" in words
        assert "CPU cores" in words
        assert "Missing" in words
        assert 'data-phase="QUEUED"' in page
        assert 'rel="icon" href="data:image/svg+xml,' in page

    def test_a_running_job_says_since_when_and_shows_every_task_with_its_use(self, world, ada, see):
        job = world.launch(ada)
        world.until_running(job)
        now = timezone.now()
        samples = [[now.timestamp() - 60 + at * 10, at * 15.0, GIB // 2] for at in range(6)]
        TaskFact.objects.filter(job=job, role="worker", index=0).update(
            usage_samples=samples, usage={"memory": GIB // 2, "peak_memory": GIB // 2}, reported_at=now, node="rack-7",
            state="running", progress={"step": 40, "total": 100}, restarts=2,
        )  # fmt: skip
        page = see(ada, job)
        words = words_of(page)
        assert "Running for" in words
        assert re.search(r"Worker 0.*Worker 1.*Parameter server 0", words)
        assert "1.5 of 1 core" in words
        assert "512 MiB, peak 512 MiB of 1.0 GiB" in words
        assert "Restarts2" in words.replace(" ", "")
        assert "rack-7" in words
        assert "step 40 of 100" in words
        assert page.count("<polyline") == 2
        assert 'data-phase="RUNNING"' in page

    def test_a_running_job_says_which_tasks_are_not_heard_of(self, world, ada, see, client, time_machine):
        job = world.launch(ada)
        world.until_running(job)
        time_machine.move_to(timezone.now(), tick=False)  # the page counts the seconds
        tasks = TaskFact.objects.filter(job=job)
        tasks.update(reported_at=timezone.now())
        assert "heartbeat" not in words_of(see(ada, job))
        tasks.filter(role="worker", index=1).update(reported_at=timezone.now() - timedelta(seconds=90))
        words = words_of(see(ada, job))
        assert "worker-1 has sent no heartbeat for 1 min 30 s." in words
        assert words.count("Last heartbeat") == 1
        told = client.get(f"/api/v1/jobs/{job.pk}/why/").json()
        assert (told["phase"], told["reason"]) == ("RUNNING", "TasksStale")
        assert "send their output later" in told["remedy"]

    def test_a_running_job_says_that_a_machine_is_not_ready_rather_than_that_its_task_is_silent(
        self, world, ada, see, client
    ):
        job = world.launch(ada)
        world.until_running(job)
        TaskFact.objects.filter(job=job).update(reported_at=timezone.now() - timedelta(seconds=90))
        said = "The machine rack-7 is not ready, or does not answer."
        world.engine.set(job, TaskRole.WORKER, 1, TaskPhase.RUNNING, reason="NodeNotReady", message=said)
        world.look(job)
        words = words_of(see(ada, job))
        assert f"Worker 1: {said}" in words
        assert "without using a restart" in words
        told = client.get(f"/api/v1/jobs/{job.pk}/why/").json()
        assert (told["phase"], told["reason"]) == ("RUNNING", "NodeNotReady")
        world.engine.set(job, TaskRole.WORKER, 1, TaskPhase.RUNNING, reason="", message="")
        world.look(job)
        assert client.get(f"/api/v1/jobs/{job.pk}/why/").json()["reason"] == "TasksStale"

    def test_a_task_that_never_reached_the_portal_is_named_with_the_address_it_tries(
        self, world, ada, see, client, time_machine
    ):
        job = world.launch(ada)
        world.until_running(job)
        time_machine.move_to(timezone.now(), tick=False)  # the page counts the seconds
        tasks = TaskFact.objects.filter(job=job)
        tasks.update(reported_at=timezone.now(), started_at=timezone.now() - timedelta(seconds=75))
        lost = tasks.filter(role="worker", index=0)
        lost.update(reported_at=None, started_at=timezone.now() - timedelta(seconds=50))
        assert "connected to the portal" not in words_of(see(ada, job))
        lost.update(started_at=timezone.now() - timedelta(seconds=75))
        words = words_of(see(ada, job))
        assert "worker-0 has not connected to the portal yet, after 1 min 15 s, at http://127.0.0.1:8080." in words
        assert words.count("Has not connected to the portal yet") == 1
        told = client.get(f"/api/v1/jobs/{job.pk}/why/").json()
        assert (told["phase"], told["reason"]) == ("RUNNING", "PortalNotReached")
        assert "YARDMASTER_HOST" in told["remedy"]
        tasks.update(reported_at=timezone.now())
        assert client.get(f"/api/v1/jobs/{job.pk}/why/").json()["message"] == ""

    def test_a_job_that_succeeded_counts_down_to_the_release_of_its_parameter_servers(self, world, ada, see):
        job = world.launch(ada, reclaim_delay=300)
        world.until_running(job)
        world.engine.succeed(world.again(job))
        for _ in range(10):
            world.look(job)
        job = world.again(job)
        assert job.phase == "SUCCEEDED"
        Job.objects.filter(pk=job.pk).update(decided_at=timezone.now())
        page = see(ada, job)
        assert "The parameter servers shut down" in words_of(page)
        assert "data-countdown" in page

    def test_a_failed_job_says_which_task_failed_first_why_its_last_lines_and_what_helps(self, world, ada, see):
        job = world.launch(ada)
        stream = StreamKey(job.pk, 1, TaskRole.WORKER, 1)
        text = b"step 1\n\x1b[31mModuleNotFoundError: No module named 'pandas'\x1b[0m\n"
        log_store().append(stream, 0, text, [(0, 1)])
        job = fail(world, job, exit_code=1, restarts=3)
        page = see(ada, job)
        words = words_of(page)
        assert "Worker 1 failed first." in words
        assert "The module pandas is not installed" in words
        assert "Add pandas to requirements.txt in the code" in words
        assert "ModuleNotFoundError: No module named &#x27;pandas&#x27;" in page
        assert "\x1b" not in page
        assert f"/jobs/{job.pk}/logs/?attempt=1&amp;task=worker-1" in page
        assert 'data-phase="FAILED"' in page

    def test_an_attempt_says_how_the_ones_before_it_ended(self, world, ada, see, client):
        job = fail(world, world.launch(ada), exit_code=1)
        client.force_login(ada)
        client.post(f"/jobs/{job.pk}/retry/")
        assert "Attempt 1" in words_of(see(ada, job))


class TestWhatCanBeDone:
    def test_stopping_it_says_what_happens_next(self, world, ada, client, see):
        job = world.launch(ada)
        world.until_running(job)
        client.force_login(ada)
        response = client.post(f"/jobs/{job.pk}/stop/", follow=True)
        assert world.again(job).wanted == "STOP"
        assert "to exit before they are killed" in response.content.decode()
        assert "Stopping …" in see(ada, job)

    def test_a_failure_with_a_known_remedy_is_retried_with_it_in_one_click(self, world, ada, client, see):
        job = fail(world, world.launch(ada), exit_code=137, reason="OutOfMemory", peak_memory=GIB)
        assert "Retry with 2 GiB for each worker instead of 1 GiB" in words_of(see(ada, job))
        response = client.post(f"/jobs/{job.pk}/retry/", {"change": "1"}, follow=True)
        assert "Attempt 2 is queued with 2 GiB for each worker" in response.content.decode()
        again = world.again(job)
        assert again.attempt == 2
        assert again.spec["roles"]["worker"]["memory"] == 2 * GIB
        assert again.spec["roles"]["ps"]["memory"] == GIB

    def test_what_the_code_asks_for_stays_when_a_requirement_is_added_by_one_click(self, world, ada, client, see):
        files = {"train.py": "import tensorflow_hub\n", "requirements.txt": "tensorflow-hub==0.16  # old\n"}
        job = world.launch(ada, code=str(world.code_version(ada, files).pk), requirements=None)
        text = b"ModuleNotFoundError: No module named 'pkg_resources'\n"
        log_store().append(StreamKey(job.pk, 1, TaskRole.WORKER, 1), 0, text, [(0, 1)])
        job = fail(world, job, exit_code=1)
        assert "Retry with setuptools&lt;81" in see(ada, job)
        client.post(f"/jobs/{job.pk}/retry/", {"change": "1"})
        assert world.again(job).spec["requirements"] == ["tensorflow-hub==0.16", "setuptools<81"]

    def test_it_is_retried_as_it_was_too(self, world, ada, client):
        job = fail(world, world.launch(ada), exit_code=137, reason="OutOfMemory")
        client.force_login(ada)
        client.post(f"/jobs/{job.pk}/retry/")
        assert world.again(job).spec == job.spec
        assert world.again(job).attempt == 2

    def test_a_retry_that_cannot_be_says_why(self, world, ada, client):
        job = world.launch(ada)
        client.force_login(ada)
        response = client.post(f"/jobs/{job.pk}/retry/", follow=True)
        assert "has not ended" in response.content.decode()
        assert world.again(job).attempt == 1

    def test_deleting_asks_for_the_name(self, world, ada, client):
        job = world.launch(ada)
        job_stop(user=ada, job=job)
        world.until_quiet()
        client.force_login(ada)
        assert "Type the job" in client.get(f"/jobs/{job.pk}/delete/").content.decode()
        refused = client.post(f"/jobs/{job.pk}/delete/", {"name": "digit"})
        assert refused.status_code == 400
        assert "Nothing was deleted" in refused.content.decode()
        assert Job.objects.get(pk=job.pk).deleted_at is None
        assert client.post(f"/jobs/{job.pk}/delete/", {"name": "digits"}).headers["Location"] == "/jobs/"
        assert client.get(f"/jobs/{job.pk}/").status_code == 404

    def test_a_running_job_is_not_deleted(self, world, ada, client):
        job = world.launch(ada)
        client.force_login(ada)
        response = client.post(f"/jobs/{job.pk}/delete/", {"name": "digits"})
        assert response.status_code == 400
        assert "Stop it first" in response.content.decode()

    def test_whoever_may_only_look_is_offered_nothing_else(self, world, ada, bob, see, client):
        team = Namespace.objects.create(slug="team")
        Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
        Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
        job = world.launch(ada, namespace=team)
        assert 'id="job-stop"' in see(ada, job)
        assert 'id="job-stop"' not in see(bob, job)
        assert client.post(f"/jobs/{job.pk}/stop/").status_code == 403
        assert world.again(job).wanted == "RUN"


class TestParts:
    def test_for_htmx_there_are_only_the_parts_that_change(self, world, ada, see, client):
        job = world.launch(ada)
        part = see(ada, job, **{"HX-Request": "true"})
        assert "<html" not in part
        assert part.count('hx-swap-oob="true"') == 9
        assert 'id="job-status"' in part
        client.force_login(ada)
        assert "HX-Request" in client.get(f"/jobs/{job.pk}/").headers["Vary"]

    def test_the_model_its_files_and_the_checkpoints_are_there_to_take(self, world, ada, see):
        job = world.launch(ada)
        world.until_running(job)
        now = timezone.now()
        model = version_of(job, content={"a b/saved_model.pb": b"x"})
        Checkpoint.objects.create(job=job, attempt=1, step=400, upload_id=uuid.uuid4(), size=10, completed_at=now)
        page = see(ada, job)
        assert f"/model-versions/{model.pk}/file/?path=a%20b/saved_model.pb" in page
        assert "step 400" in page
        assert "Resume point" in page

    def test_the_spec_is_there_as_the_file_that_makes_the_job_again(self, world, ada, see):
        job = world.launch(ada, arguments=["--lr=0.1", "a: b"], environment={"ON": "yes"}, retries=5)
        page = see(ada, job)
        text = html.unescape(re.search(r"<code>(name: .*?)</code>", page, re.S)[1])
        file = job_from_text(text, Path("job.yaml"))
        assert spec_from_json(file.spec) == spec_from_json(job.spec)
        assert file.namespace == job.namespace.slug

    def test_its_end_of_the_log_needs_no_script(self, world, ada, see):
        job = world.launch(ada)
        log_store().append(StreamKey(job.pk, 1, TaskRole.WORKER, 0), 0, b"hello <b>\n", [(0, 1)])
        page = see(ada, job)
        assert "hello &lt;b&gt;" in page

    def test_what_happened_stands_there_newest_first(self, world, ada, see):
        job = world.launch(ada)
        world.until_running(job)
        words = words_of(see(ada, job).partition('id="job-events"')[2])
        assert words.index("Running") < words.index("Starting") < words.index("Queued")


class TestAccess:
    def test_it_is_for_those_who_may_see_it(self, world, ada, bob, client):
        job = world.launch(ada)
        for path in ("", "delete/"):
            client.force_login(bob)
            assert client.get(f"/jobs/{job.pk}/{path}").status_code == 404
        for path in ("stop/", "retry/", "delete/"):
            assert client.post(f"/jobs/{job.pk}/{path}", {"name": "digits"}).status_code == 404
        client.logout()
        assert client.get(f"/jobs/{job.pk}/").status_code == 302

    @pytest.mark.parametrize("name", HOSTILE)
    def test_a_hostile_name_harms_no_part_of_it(self, world, ada, see, name):
        job = world.launch(ada)
        Job.objects.filter(pk=job.pk).update(name=name, message=name, remedy=name, phase="STARTING")
        JobEvent.objects.create(job=job, at=timezone.now(), attempt=1, kind=name[:32], message=name)
        TaskFact.objects.create(job=job, attempt=1, role="worker", index=0, node=name, message=name, phase="RUNNING")
        Job.objects.filter(pk=job.pk).update(admitted_at=timezone.now())
        for path in ("", "delete/"):
            page = see(ada, job, path)
            assert "<script>" not in page
            assert "<img src=x" not in page
            assert " style=" not in page

    def test_it_needs_no_script_and_nothing_from_elsewhere(self, world, ada, see):
        page = see(ada, world.launch(ada))
        assert "<script>" not in page
        assert " style=" not in page
        assert 'src="http' not in page


class TestCost:
    @pytest.mark.parametrize("phase", ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED"])
    def test_it_takes_at_most_twelve_queries(self, world, ada, client, django_assert_max_num_queries, phase):
        job = world.launch(ada, roles={"worker": {"replicas": 20, "cpu": 1}, "ps": {"replicas": 2}})
        world.until_running(job)
        now = timezone.now()
        Job.objects.filter(pk=job.pk).update(
            phase=phase, attempt=2, decided_at=now - timedelta(seconds=1), cleaned_up_at=now,
            waiting={"ahead": [str(uuid.uuid4())], "holders": [], "numbers": []} if phase == "QUEUED" else {},
        )  # fmt: skip
        JobAttempt.objects.create(job=job, number=2, spec=job.spec, queued_at=now, role="worker", index=1)
        client.force_login(ada)
        client.get("/")  # the session knows its namespace from here on
        for headers in ({}, {"HX-Request": "true"}):
            with django_assert_max_num_queries(12):
                assert client.get(f"/jobs/{job.pk}/", headers=headers).status_code == 200
