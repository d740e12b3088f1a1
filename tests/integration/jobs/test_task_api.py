"""The API that a job's tasks speak to."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from apps.jobs.explanations.row_words import Row
from apps.jobs.models import Checkpoint, Job, JobAttempt, ScalarPoint, TaskFact
from apps.jobs.services import job_retry
from apps.jobs.state.exports import exports_settle
from apps.jobs.state.results import newest_checkpoint, results_settle
from apps.jobs.state.task_auth import AFTER_CLEANUP, identity_of, token_of
from apps.jobs.task_api import orders
from apps.jobs.task_api import reports as task_reports
from apps.registry.models import ModelUpload, ModelVersion
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import file_key
from tests.integration.jobs.world import task_of
from tests.integration.sending import part
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

TASK = "/api/v1/task/"


def report(client: APIClient, **facts):
    return client.post(f"{TASK}report/", {"role": "worker", "index": 0, "state": "running", **facts})


def sent(client: APIClient, kind: str, **body) -> dict:
    """Begin an upload, let its bytes arrive, complete it."""
    files = [{"path": "model/a.bin", "size": 3}]
    begun = client.post(f"{TASK}{kind}/", {"files": files, **body})
    assert begun.status_code == 201, begun.json()
    upload = begun.json()["upload"]
    storage_parts(client, upload)
    done = client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
    assert done.status_code == 200, done.json()
    return upload


def storage_parts(client: APIClient, upload: dict) -> None:
    """Send every part to its signed address."""
    for file in upload["files"]:
        wanted = {"parts": [part(file["index"], 1, b"x" * file["size"])]}
        for one in client.post(f"{TASK}uploads/{upload['id']}/parts/", wanted).json()["urls"]:
            path = one["url"].split("/", 3)[3]
            answer = APIClient().put(f"/{path}", b"x" * file["size"], content_type="application/octet-stream")
            assert answer.status_code in (200, 201, 204), answer.content


def test_the_first_value_that_a_task_gives_counts_for_all_tasks_of_the_attempt(job):
    def agree(name: str, value: str, index: int = 0):
        body = {"role": "worker", "index": index, "name": name, "value": value}
        return task_of(job).post(f"{TASK}agreed/", body, format="json")

    order = {"role": "worker", "index": 0}
    assert task_of(job).get(f"{TASK}order/", order).json()["agrees"]
    assert agree("a", "0,1").json() == {"value": "0,1"}
    assert agree("a", "1,0", 1).json() == {"value": "0,1"}
    assert agree("b", "").json() == {"value": ""}
    assert agree("a", "x", 99).status_code == 404
    assert agree("c" * 65, "x").status_code == 400
    large = "x" * (200 << 10)
    assert agree("large", large).json()["value"] == large
    refused = agree("larger", large)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_agreed")
    JobAttempt.objects.filter(job=job).update(agreed=None)
    assert not task_of(job).get(f"{TASK}order/", order).json()["agrees"]
    assert agree("a", "0").json()["code"] == "not_agreed"


def test_the_engine_is_given_the_token_and_it_opens_the_order(world, job):
    access = world.engine.access_of(job.key)
    assert access.user == job.owner_id
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {access.token}")
    order = client.get(f"{TASK}order/", {"role": "worker", "index": 1}).json()
    assert (order["job"], order["attempt"], order["checkpoint"]) == (str(job.pk), 1, None)
    assert order["spec"] == job.spec
    (file,) = order["code"]["files"]
    assert file["path"] == "train.py"
    assert file["url"].startswith("http")


def test_files_that_the_order_does_not_list_come_by_page(world, ada, bob, monkeypatch):
    monkeypatch.setattr(orders, "FILES_AT_ONCE", 2)
    version = world.code_version(ada, {"train.py": "print()\n"} | {f"lib/{number}.py": "" for number in range(4)})
    client = task_of(world.launch(ada, code=str(version.pk)))
    who = {"role": "worker", "index": 0}
    page = client.get(f"{TASK}order/", who).json()["code"]
    seen = list(page["files"])
    while page["next"]:
        page = client.get(f"{TASK}versions/{version.pk}/files/", who | {"after": page["next"]}).json()
        seen += page["files"]
    assert [one["path"] for one in seen] == [*(f"lib/{number}.py" for number in range(4)), "train.py"]
    assert all(one["url"].startswith("http") for one in seen)
    other = world.code_version(bob)
    assert client.get(f"{TASK}versions/{other.pk}/files/", who).status_code == 404


def test_progress_wakes_nobody_who_waits_for_the_end(job, monkeypatch):
    told = []
    monkeypatch.setattr(task_reports, "job_changed", lambda job, *, is_detail=False: told.append(is_detail))
    report(task_of(job), progress={"step": 10, "total": 100})
    assert told == [True]


def test_a_report_with_everything_costs_eight_statements(job, django_assert_num_queries):
    client = task_of(job)
    scalars = [{"run": ".", "tag": "loss", "step": step, "time": 1.0, "value": 0.5} for step in range(50)]
    report(client, scalars=scalars[:1])
    usage = {"cpu_seconds": 1.5, "memory": 10, "peak_memory": 20}
    with django_assert_num_queries(8 + 2):  # and a savepoint, which outside a test is the transaction
        report(client, progress={"step": 10, "total": 100}, usage=usage, scalars=scalars)
    assert TaskFact.objects.get(role="worker", index=0).points_since_thinning == 51
    assert ScalarPoint.objects.count() == 50


def test_a_task_that_the_job_does_not_have_gets_no_order(job):
    client = task_of(job)
    assert client.get(f"{TASK}order/", {"role": "worker", "index": 2}).status_code == 404
    assert client.get(f"{TASK}order/", {"role": "chief", "index": 0}).status_code == 404
    assert client.get(f"{TASK}order/", {"role": "boss", "index": 0}).status_code == 400


@pytest.mark.parametrize("token", ["", "nonsense", "ymt.a.b.c", "ymt.{job}.1.0000", "ymt.{job}.2.{signature}"])
def test_a_token_that_is_none_opens_nothing(job, token):
    signature = token_of(job.pk, 1).rpartition(".")[2]
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token.format(job=job.pk.hex, signature=signature)}")
    answer = client.get(f"{TASK}order/", {"role": "worker", "index": 0})
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


def test_a_jobs_token_opens_nothing_that_is_for_people_and_the_other_way_round(job, ada, with_token):
    assert task_of(job).get("/api/v1/jobs/").status_code == 401
    assert task_of(job).get(f"/api/v1/jobs/{job.pk}/").status_code == 401
    assert with_token(ada).get(f"{TASK}order/", {"role": "worker", "index": 0}).status_code == 401


def test_a_token_outlives_its_attempt_by_ten_minutes_for_the_last_lines(world, job):
    token = token_of(job.pk, 1)
    now = timezone.now()
    JobAttempt.objects.filter(job=job).update(cleaned_up_at=now)
    assert identity_of(token, now + AFTER_CLEANUP) is not None
    assert identity_of(token, now + AFTER_CLEANUP + timedelta(seconds=1)) is None


def test_a_token_survives_a_change_of_the_secret_key(job, settings):
    token = token_of(job.pk, 1)
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another-secret-" + "y" * 40
    assert identity_of(token, timezone.now()) is None
    settings.SECRET_KEY_FALLBACKS = [old]
    assert identity_of(token, timezone.now()) is not None


def test_a_report_is_what_people_see_of_the_task(job, ada, signed_in):
    usage = {"cpu_seconds": 1.5, "memory": 10, "peak_memory": 20}
    answer = report(task_of(job), progress={"step": 10, "total": 100}, usage=usage)
    assert answer.json() == {
        "stop": False,
        "watched": False,
        "followed": False,
        "shells": [],
        "release": False,
        "stacks": 0,
    }
    task = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/tasks/").json()["results"][0]
    assert (task["state"], task["progress"], task["usage"], task["peak_memory"]) == (
        "running",
        {"step": 10, "total": 100},
        usage,
        20,
    )
    assert signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()["progress"] == {"step": 10, "total": 100}


def test_the_jobs_progress_is_its_leading_tasks(job):
    report(task_of(job), index=1, progress={"step": 99})
    assert Job.objects.get(pk=job.pk).progress == {}
    report(task_of(job), index=0, progress={"step": 7})
    assert Job.objects.get(pk=job.pk).progress == {"step": 7}


def test_the_progress_of_independent_tasks_is_that_of_all_together(world, ada, signed_in):
    job = world.launch(ada, strategy="batch", roles={"worker": {"replicas": 2}})
    world.settle()

    def told(index: int, **progress: int) -> dict:
        Job.objects.filter(pk=job.pk).update(progress_at=timezone.now() - timedelta(seconds=2))
        report(task_of(job), index=index, progress=progress)
        return Job.objects.get(pk=job.pk).progress

    assert told(1, step=10, total=100) == {"step": 10}  # how much the other one has to do is not known
    assert told(0, step=5, total=50) == {"step": 15, "total": 150}
    assert told(1, step=100, total=100) == {"step": 105, "total": 150}
    Job.objects.filter(pk=job.pk).update(spec=job.spec | {"program": "prepare"})
    assert told(0, step=50, total=50) == {"step": 150, "total": 150, "unit": "records"}
    assert Row(Job.objects.get(pk=job.pk), timezone.now()).unit == "records"


def test_progress_is_written_once_a_second_and_the_last_one_always(job, time_machine):
    time_machine.move_to(timezone.now(), tick=False)
    report(task_of(job), progress={"step": 1})
    report(task_of(job), progress={"step": 2})
    assert Job.objects.get(pk=job.pk).progress == {"step": 1}
    report(task_of(job), state="ended", exit_code=0, progress={"step": 3})
    assert Job.objects.get(pk=job.pk).progress == {"step": 3}


def test_a_repeated_report_changes_nothing(job):
    points = [{"run": ".", "tag": "loss", "step": step, "time": 1.0, "value": 0.5} for step in range(3)]
    for value in (0.5, 9.0):
        report(task_of(job), scalars=[{**one, "value": value} for one in points])
    assert list(ScalarPoint.objects.values_list("step", "value").order_by("step")) == [(0, 0.5), (1, 0.5), (2, 0.5)]
    assert TaskFact.objects.filter(job=job, role="worker", index=0).count() == 1


def test_a_report_of_an_earlier_start_of_the_task_changes_nothing(job):
    report(task_of(job), restart=1, progress={"step": 5})
    report(task_of(job), restart=0, state="ended", exit_code=1)
    assert TaskFact.objects.get(job=job, role="worker", index=0).state == "running"


def test_a_report_of_an_old_attempt_changes_nothing_and_tells_it_to_stop(world, job, ada):
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    JobAttempt.objects.update(cleaned_up_at=timezone.now())
    job_retry(user=ada, job=world.again(job))
    answer = report(task_of(job, attempt=1), progress={"step": 5}, scalars=[])
    assert (answer.json()["stop"], answer.json()["watched"]) == (True, False)
    assert Job.objects.get(pk=job.pk).progress == {}
    refused = task_of(job, attempt=1).post(f"{TASK}checkpoints/", {"step": 1, "files": [{"path": "a", "size": 1}]})
    assert (refused.status_code, refused.json()["code"]) == (409, "attempt_over")


@pytest.mark.parametrize(
    ("change", "stops"), [({"wanted": "STOP"}, True), ({"phase": "STOPPING"}, True), ({"phase": "SUCCEEDED"}, False)]
)
def test_a_task_is_told_to_stop_when_the_job_is_to_stop(job, change, stops):
    Job.objects.filter(pk=job.pk).update(**change)
    assert report(task_of(job)).json()["stop"] is stops


@pytest.mark.parametrize(("seconds", "watched"), [(60, True), (-1, False)])
def test_a_task_hears_whether_a_tensorboard_shows_its_job(job, django_assert_num_queries, seconds, watched):
    report(task_of(job))
    with CaptureQueriesContext(connection) as before:
        report(task_of(job))
    Job.objects.filter(pk=job.pk).update(watched_until=timezone.now() + timedelta(seconds=seconds))
    with django_assert_num_queries(len(before)):
        assert report(task_of(job)).json()["watched"] is watched


@pytest.mark.parametrize(
    "facts",
    [
        {"state": "dancing"},
        {"index": -1},
        {"role": "boss"},
        {"progress": {"step": -1}},
        {"scalars": [{"run": ".", "tag": "loss", "step": "x", "time": 1, "value": 1}]},
        {"scalars": {}},
        {"exit_code": 10**12},
    ],
)
def test_a_report_that_makes_no_sense_is_refused_and_half_of_it_is_not_kept(job, facts):
    before = TaskFact.objects.values_list("pk", "state", "progress")
    assert report(task_of(job), **facts).status_code == 400
    assert list(TaskFact.objects.values_list("pk", "state", "progress")) == list(before)
    assert not ScalarPoint.objects.exists()


def test_a_report_costs_few_statements(job, django_assert_max_num_queries):
    points = [{"run": ".", "tag": f"t{n % 5}", "step": n, "time": 1.0, "value": 0.5} for n in range(200)]
    client = task_of(job)
    report(client)
    with django_assert_max_num_queries(14):  # the first values of new metrics included
        report(client, progress={"step": 1}, scalars=points)


def test_a_checkpoint_is_the_one_to_go_on_from_once_it_is_complete(world, job):
    client = task_of(job)
    begun = client.post(f"{TASK}checkpoints/", {"step": 5, "files": [{"path": "ckpt/model.index", "size": 3}]}).json()
    assert newest_checkpoint(job) is None
    storage_parts(client, begun["upload"])
    client.post(f"{TASK}uploads/{begun['upload']['id']}/complete/", {})
    assert newest_checkpoint(job).step == 5
    order = client.get(f"{TASK}order/", {"role": "worker", "index": 0}).json()
    assert order["checkpoint"]["step"] == 5
    assert [one["path"] for one in order["checkpoint"]["files"]] == ["ckpt/model.index"]
    assert storage_used(job.namespace).used == 3


def test_three_checkpoints_are_kept_and_the_storage_of_older_ones_is_returned(
    world, job, ada, signed_in, django_capture_on_commit_callbacks
):
    client = task_of(job)
    for step in range(5):
        with django_capture_on_commit_callbacks(execute=True):
            sent(client, "checkpoints", step=step)
    listed = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/checkpoints/").json()
    assert [one["step"] for one in listed] == [4, 3, 2]
    assert storage_used(job.namespace).used == 9


def test_a_retry_goes_on_from_the_newest_checkpoint(world, job, ada):
    sent(task_of(job), "checkpoints", step=7)
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    job_retry(user=ada, job=world.again(job))
    order = task_of(job, attempt=2).get(f"{TASK}order/", {"role": "worker", "index": 0}).json()
    assert (order["attempt"], order["checkpoint"]["step"]) == (2, 7)


def test_a_checkpoint_whose_upload_was_cut_off_is_not_the_one_to_continue_from(world, job, ada):
    """Neither for a restarted task of the same attempt nor for the next attempt."""
    client = task_of(job)
    sent(client, "checkpoints", step=7)
    begun = client.post(
        f"{TASK}checkpoints/", {"step": 9, "files": [{"path": "a", "size": 3}, {"path": "b", "size": 3}]}
    )
    upload = begun.json()["upload"]
    storage_parts(client, {**upload, "files": upload["files"][:1]})
    assert client.post(f"{TASK}uploads/{upload['id']}/complete/", {}).json()["code"] == "parts_missing"
    results_settle(timezone.now())
    assert client.get(f"{TASK}order/", {"role": "worker", "index": 0}).json()["checkpoint"]["step"] == 7
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    job_retry(user=ada, job=world.again(job))
    order = task_of(job, attempt=2).get(f"{TASK}order/", {"role": "worker", "index": 0}).json()
    assert order["checkpoint"]["step"] == 7


def test_a_step_that_is_sent_again_after_a_cut_begins_anew(job):
    client = task_of(job)
    body = {"step": 5, "files": [{"path": "a", "size": 3}]}
    first, second = (client.post(f"{TASK}checkpoints/", body) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json()["upload"]["id"] != second.json()["upload"]["id"]
    assert Checkpoint.objects.filter(job=job).count() == 1
    assert storage_used(job.namespace).reserved == 3


def test_a_step_that_is_made_again_replaces_the_one_there_was(job, django_capture_on_commit_callbacks):
    client = task_of(job)
    with django_capture_on_commit_callbacks(execute=True):
        sent(client, "checkpoints", step=5)
        sent(client, "checkpoints", step=9)
    before = newest_checkpoint(job)
    with django_capture_on_commit_callbacks(execute=True):
        sent(client, "checkpoints", step=5)
    after = newest_checkpoint(job)
    assert (before.step, after.step) == (9, 5), "the newest is the one made last"
    assert Checkpoint.objects.filter(job=job).count() == 2
    assert storage_used(job.namespace).used == 6
    with storage().open_range(after.files[0]["key"]) as stream:
        assert stream.read() == b"xxx"


def test_a_restarted_task_may_keep_its_model_again(job, django_capture_on_commit_callbacks):
    client = task_of(job)
    for _ in range(3):
        with django_capture_on_commit_callbacks(execute=True):
            sent(client, "model")
    assert ModelVersion.objects.filter(job=job).count() == 1
    assert storage_used(job.namespace).used == 3


def test_the_model_is_listed_and_can_be_read(job, ada, bob, signed_in):
    sent(task_of(job), "model")
    me = signed_in(ada)
    (listed,) = me.get("/api/v1/models/").json()["results"]
    latest = listed["latest"]
    assert (listed["name"], latest["number"], latest["job"], latest["size"], latest["files"]) == (
        "digits", 1, str(job.pk), 3, 1,
    )  # fmt: skip
    shown = me.get(f"/api/v1/jobs/{job.pk}/model/").json()
    assert (shown["id"], shown["model"], shown["name"]) == (latest["id"], listed["id"], "digits")
    assert shown["files"][0]["path"] == "model/a.bin"
    assert me.get(f"/api/v1/jobs/{job.pk}/").json()["model"] == latest["id"]
    stranger = signed_in(bob)
    assert stranger.get("/api/v1/models/").json()["results"] == []
    assert stranger.get(f"/api/v1/models/{listed['id']}/").status_code == 404


def test_an_upload_that_was_finished_without_its_message_becomes_a_result_all_the_same(job):
    client = task_of(job)
    upload = client.post(f"{TASK}model/", {"files": [{"path": "m", "size": 0}]}).json()["upload"]
    from apps.uploads.services import upload_complete

    upload_complete(Upload.objects.get(pk=upload["id"]))
    assert ModelUpload.objects.filter(job=job).exists()
    exports_settle(timezone.now())
    assert ModelVersion.objects.get(job=job).number == 1
    assert not ModelUpload.objects.exists()


def test_an_upload_of_another_job_is_not_found(world, job, ada):
    other = world.launch(ada)
    world.settle()
    upload = task_of(other).post(f"{TASK}model/", {"files": [{"path": "m", "size": 1}]}).json()["upload"]
    client = task_of(job)
    for verb, address in [("get", ""), ("post", "parts/"), ("post", "complete/")]:
        body = {"parts": [part(0, 1)]} if address == "parts/" else {}
        answer = getattr(client, verb)(f"{TASK}uploads/{upload['id']}/{address}", body)
        assert answer.status_code == 404


def test_a_deleted_job_returns_the_storage_of_its_results_but_its_model(
    world, job, ada, signed_in, django_capture_on_commit_callbacks
):
    client = task_of(job)
    sent(client, "checkpoints", step=1)
    sent(client, "model")
    assert storage_used(job.namespace).used == 6
    world.engine.succeed(job)
    world.until_quiet()
    assert signed_in(ada).delete(f"/api/v1/jobs/{job.pk}/").status_code == 204
    world.now = max(world.now, world.again(job).next_look_at)
    with django_capture_on_commit_callbacks(execute=True):
        world.settle()
    assert storage_used(job.namespace).used == 3
    version = ModelVersion.objects.get(source_job=job.pk)
    assert (version.job, version.job_name) == (None, "digits")
    with storage().open_range(file_key(version, "model/a.bin")) as stream:
        assert stream.read() == b"xxx"
    assert list(storage().list_prefix(f"jobs/{job.pk}")) == []


def test_the_verdict_on_a_task_without_memory_names_the_most_it_reported(job, world):
    """Who is killed for its memory cannot say it any more, and a cluster does not know it either."""
    usage = {"cpu_seconds": 1.5, "memory": 1 << 30, "peak_memory": 19 << 30}
    report(task_of(job), usage=usage)
    message = "Its limit is 20 GiB."
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="OutOfMemory", message=message, exit_code=137)
    world.passes(30)
    told = world.again(job)
    assert (told.reason, told.phase) == ("OutOfMemory", "FAILED")
    assert "(exit code 137, peak memory 19 GiB). Its limit is 20 GiB." in told.message


def test_the_engines_own_measure_of_memory_counts_more(job, world):
    report(task_of(job), usage={"cpu_seconds": 1.5, "memory": 1, "peak_memory": 1 << 30})
    facts = {"reason": "OutOfMemory", "exit_code": 137, "peak_memory": 3 << 30}
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, **facts)
    world.passes(30)
    assert "peak memory 3 GiB" in world.again(job).message
