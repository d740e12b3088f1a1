"""The files that tasks write below their log directories: from the task's uploads to what people see."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.jobs.models import JobOutput, OutputUpload, ReplacedOutputs, TaskFact
from apps.jobs.state import outputs
from apps.jobs.state.output_files import event_files_of
from apps.registry.models import ModelVersion
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from tests.integration.jobs.world import task_of
from tests.integration.sending import part, sha256

TASK = "/api/v1/task/"
EVENTS = "train/events.out.tfevents.1.host"


def begin(client: APIClient, content: dict[str, bytes], **body):
    files = [{"path": path, "size": len(data)} for path, data in content.items()]
    return client.post(f"{TASK}outputs/", {"role": "worker", "index": 0, "files": files, **body})


def put(client: APIClient, upload: dict, content: dict[str, bytes]) -> None:
    for file in upload["files"]:
        data = content[file["path"]]
        if data:
            wanted = {"parts": [part(file["index"], 1, data)]}
            (one,) = client.post(f"{TASK}uploads/{upload['id']}/parts/", wanted).json()["urls"]
            path = one["url"].split("/", 3)[3]
            assert APIClient().put(f"/{path}", data, content_type="application/octet-stream").status_code == 200


def send(client: APIClient, content: dict[str, bytes], **body) -> dict:
    begun = begin(client, content, **body)
    assert begun.status_code == 201, begun.json()
    upload = begun.json()["upload"]
    put(client, upload, content)
    done = client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
    assert done.status_code == 200, done.json()
    return upload


def listed(client: APIClient, job, **query) -> dict[str, int]:
    answer = client.get(f"/api/v1/jobs/{job.pk}/outputs/", query)
    assert answer.status_code == 200, answer.json()
    return {one["path"]: one["size"] for one in answer.json()["results"]}


def read(output: JobOutput) -> bytes:
    content = b""
    for one in output.segments:
        with storage().open_range(one["key"]) as stream:
            content += stream.read()
    return content


def expire_addresses() -> None:
    past = timezone.now() - timedelta(hours=1)
    Upload.objects.update(writable_until=past)
    ReplacedOutputs.objects.update(due_at=past)


def test_outputs_are_listed_once_all_of_an_upload_is_there(job, ada, signed_in):
    client, me = task_of(job), signed_in(ada)
    content = {"plots/a.png": b"png", "metrics.csv": b"a,b\n"}
    upload = begin(client, content).json()["upload"]
    put(client, upload, content)
    assert listed(me, job) == {}
    client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
    assert listed(me, job) == {"worker-0/metrics.csv": 4, "worker-0/plots/a.png": 3}
    assert storage_used(job.namespace).used == 7
    assert not OutputUpload.objects.exists()


def test_files_of_the_same_path_of_two_tasks_do_not_collide(job, ada, signed_in):
    client = task_of(job)
    send(client, {EVENTS: b"zero"})
    send(client, {EVENTS: b"one"}, index=1)
    assert listed(signed_in(ada), job) == {f"worker-0/{EVENTS}": 4, f"worker-1/{EVENTS}": 3}
    assert [read(one) for one in event_files_of(job.pk, 1)] == [b"zero", b"one"]


def test_in_a_shared_folder_files_keep_their_paths(job, ada, signed_in):
    send(task_of(job), {EVENTS: b"zero", "a.csv": b""}, shared=True)
    assert listed(signed_in(ada), job) == {EVENTS: 4, "a.csv": 0}
    found = task_of(job).get(f"{TASK}outputs/", {"role": "worker", "index": 0, "shared": 1}).json()
    assert found == {"files": [{"path": EVENTS, "size": 4}]}


def test_an_event_file_grows_by_segments_and_is_read_as_one(job, ada, signed_in, django_capture_on_commit_callbacks):
    client, me = task_of(job), signed_in(ada)
    send(client, {EVENTS: b"0123456789"})
    send(client, {EVENTS: b"abcd"}, starts=[10])
    send(client, {EVENTS: b"ef"}, starts=[14])
    (output,) = event_files_of(job.pk, 1)
    assert (len(output.segments), output.size) == (3, 16)
    answer = me.get(f"/api/v1/jobs/{job.pk}/outputs/content/", {"path": f"worker-0/{EVENTS}"})
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, b"0123456789abcdef")
    with django_capture_on_commit_callbacks(execute=True):
        send(client, {EVENTS: b"abcdefgh"}, starts=[10])
    (output,) = event_files_of(job.pk, 1)
    assert (len(output.segments), read(output)) == (2, b"0123456789abcdefgh")
    expire_addresses()
    outputs.outputs_sweep(timezone.now())
    assert Upload.objects.filter(kind="output", state="complete").count() == 2


@pytest.mark.parametrize("start", [3, 11, 99])
def test_a_segment_that_does_not_continue_the_file_is_refused(job, start):
    client = task_of(job)
    send(client, {EVENTS: b"0123456789"})
    answer = begin(client, {EVENTS: b"xx"}, starts=[start])
    assert (answer.status_code, answer.json()["code"]) == (409, "past_the_end")


def test_a_file_of_too_many_segments_is_sent_whole_again(job, monkeypatch):
    monkeypatch.setattr(outputs, "MOST_SEGMENTS", 3)
    client = task_of(job)
    for start in range(3):
        send(client, {EVENTS: b"x"}, starts=[start])
    answer = begin(client, {EVENTS: b"x"}, starts=[3])
    assert (answer.status_code, answer.json()["code"]) == (409, "past_the_end")
    send(client, {EVENTS: b"xxxx"})
    (output,) = event_files_of(job.pk, 1)
    assert (len(output.segments), read(output)) == (1, b"xxxx")


def test_only_event_files_have_segments(job):
    answer = begin(task_of(job), {"a.csv": b"xx"}, starts=[10])
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")


def test_a_segment_whose_beginning_was_replaced_meanwhile_is_not_shown(job):
    client = task_of(job)
    send(client, {EVENTS: b"0123456789"}, shared=True)
    late = {EVENTS: b"late"}
    begun = begin(client, late, shared=True, starts=[10]).json()["upload"]
    put(client, begun, late)
    OutputUpload.objects.filter(upload_id=begun["id"]).update(task="other")  # so that it is not given up
    send(client, {EVENTS: b"new"}, shared=True)
    OutputUpload.objects.filter(upload_id=begun["id"]).update(task="")
    assert client.post(f"{TASK}uploads/{begun['id']}/complete/", {}).status_code == 200
    (output,) = event_files_of(job.pk, 1)
    assert read(output) == b"new"


def test_a_replaced_file_is_removed_and_its_storage_returned_when_no_address_can_write_it(
    job, django_capture_on_commit_callbacks
):
    client = task_of(job)
    send(client, {"a.csv": b"old", "b.png": b"stays"})
    old = JobOutput.objects.get(name="worker-0/a.csv").segments[0]["key"]
    with django_capture_on_commit_callbacks(execute=True):
        send(client, {"a.csv": b"newer"})
    Upload.objects.update(writable_until=timezone.now() + timedelta(minutes=5))
    ReplacedOutputs.objects.update(due_at=timezone.now() + timedelta(minutes=5))
    outputs.outputs_sweep(timezone.now())
    assert storage_used(job.namespace).used == 13
    expire_addresses()
    outputs.outputs_sweep(timezone.now())
    assert storage_used(job.namespace).used == 10
    assert not ReplacedOutputs.objects.exists()
    assert not any(one.key == old for one in storage().list_prefix(old))
    assert {one.name: read(one) for one in JobOutput.objects.all()} == {
        "worker-0/a.csv": b"newer", "worker-0/b.png": b"stays",
    }  # fmt: skip


def test_an_upload_of_which_all_was_replaced_goes_at_once(job, django_capture_on_commit_callbacks):
    client = task_of(job)
    for content in (b"1", b"22", b"333"):
        with django_capture_on_commit_callbacks(execute=True):
            send(client, {"a.csv": content})
    assert JobOutput.objects.get().size == 3
    assert Upload.objects.filter(kind="output", state="complete").count() == 1
    assert storage_used(job.namespace).used == 3


def test_what_a_task_has_begun_and_not_completed_is_given_up_when_it_begins_again(job):
    client = task_of(job)
    for _ in range(5):
        assert begin(client, {"a.csv": b"xxx"}).status_code == 201
    assert OutputUpload.objects.count() == 1
    assert Upload.objects.filter(kind="output", state="open").count() == 1


def test_outputs_beyond_the_limit_of_a_job_are_refused_with_the_numbers(job, settings):
    settings.YARDMASTER_OUTPUT_LIMIT = 10
    client = task_of(job)
    send(client, {"a.csv": b"12345678"})
    answer = begin(client, {"b.csv": b"123"})
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert "10" in answer.json()["detail"]
    send(client, {"a.csv": b"1234567890"})


def test_more_files_than_an_attempt_may_have_are_refused(job, monkeypatch):
    monkeypatch.setattr(outputs, "MOST_FILES", 2)
    client = task_of(job)
    send(client, {"a": b"1", "b": b"2"})
    send(client, {"a": b"3"})
    assert begin(client, {"c": b"1"}).json()["code"] == "quota_full"


def test_too_many_files_at_once_and_a_task_that_the_job_does_not_have_are_refused(job):
    client = task_of(job)
    many = {f"{n}": b"" for n in range(outputs.OUTPUTS_AT_ONCE + 1)}
    assert begin(client, many).status_code == 400
    assert begin(client, {"a": b"1"}, index=9).status_code == 404
    assert begin(client, {"../a": b"1"}).status_code == 400
    assert begin(client, {"a": b"1", "b": b"2"}, starts=[0]).status_code == 400


def test_an_upload_that_was_completed_without_its_message_is_shown_all_the_same(job):
    from apps.uploads.services import upload_complete

    client = task_of(job)
    upload = begin(client, {"empty.txt": b""}).json()["upload"]
    upload_complete(Upload.objects.get(pk=upload["id"]))
    assert not JobOutput.objects.exists()
    outputs.outputs_sweep(timezone.now())
    assert JobOutput.objects.get().name == "worker-0/empty.txt"


def test_a_file_takes_the_place_of_a_folder_of_its_name_and_the_other_way_round(job, ada, signed_in):
    client, me = task_of(job), signed_in(ada)
    send(client, {"a/b/c.txt": b"1", "d.txt": b"2"}, shared=True)
    send(client, {"a/b": b"3", "d.txt/e.txt": b"4"}, shared=True)
    assert listed(me, job) == {"a/b": 1, "d.txt/e.txt": 1}


def test_the_whole_event_log_of_a_spark_application_takes_the_place_of_what_it_was_before(
    job, ada, signed_in, django_capture_on_commit_callbacks
):
    client, me = task_of(job), signed_in(ada)
    logs = [f"spark-events/app-{number}.zstd" for number in (1, 2)]
    send(client, {f"{name}.inprogress": b"begun" for name in logs}, shared=True)
    send(client, {"other.inprogress": b"x"}, shared=True)
    with django_capture_on_commit_callbacks(execute=True):
        send(client, {logs[0]: b"begun and ended", "other": b"xy"}, shared=True)
    expire_addresses()
    outputs.outputs_sweep(timezone.now())
    assert listed(me, job) == {logs[0]: 15, f"{logs[1]}.inprogress": 5, "other": 2, "other.inprogress": 1}
    assert storage_used(job.namespace).used == 15 + 5 + 2 + 1


def test_the_list_is_read_page_by_page(job, ada, signed_in):
    send(task_of(job), {f"{n}.txt": b"x" for n in range(5)}, shared=True)
    me, after, found = signed_in(ada), "", []
    while after is not None:
        page = me.get(f"/api/v1/jobs/{job.pk}/outputs/", {"page_size": 2, "after": after}).json()
        found += [one["path"] for one in page["results"]]
        after = page["next"]
    assert found == [f"{n}.txt" for n in range(5)]


def test_a_file_is_read_from_its_signed_address_and_all_of_them_as_one_zip(job, ada, bob, signed_in):
    client, me = task_of(job), signed_in(ada)
    send(client, {EVENTS: b"0123", "a.csv": b"csv"}, shared=True)
    send(client, {EVENTS: b"45"}, shared=True, starts=[4])
    answer = me.get(f"/api/v1/jobs/{job.pk}/outputs/content/", {"path": "a.csv"})
    assert answer.status_code == 302
    assert me.get(f"/api/v1/jobs/{job.pk}/outputs/content/", {"path": "none"}).status_code == 404
    archive = me.get(f"/api/v1/jobs/{job.pk}/outputs/archive/")
    with zipfile.ZipFile(io.BytesIO(b"".join(archive.streaming_content))) as found:
        assert {name: found.read(name) for name in found.namelist()} == {EVENTS: b"012345", "a.csv": b"csv"}
    for address in ("", "content/?path=a.csv", "archive/"):
        assert signed_in(bob).get(f"/api/v1/jobs/{job.pk}/outputs/{address}").status_code == 404


def test_why_outputs_are_not_saved_is_shown_on_the_jobs_page_and_goes_when_they_are(job, ada, client):
    facts = {"role": "worker", "index": 0, "state": "running"}
    problem = "This needs 5 MiB of storage; 1 MiB of the namespace's 10 MiB are available."
    task_of(job).post(f"{TASK}report/", {**facts, "unsaved": {"outputs": problem}})
    client.force_login(ada)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "Outputs are not being saved" in page
    assert "10 MiB are available" in page
    task_of(job).post(f"{TASK}report/", {**facts, "unsaved": {"outputs": ""}})
    assert TaskFact.objects.get(job=job, role="worker", index=0).unsaved == {}
    assert "Outputs are not being saved" not in client.get(f"/jobs/{job.pk}/").content.decode()


def test_the_jobs_page_lists_outputs_and_says_where_to_write_before_there_are_any(job, ada, client):
    client.force_login(ada)
    assert "LOG_DIR" in client.get(f"/jobs/{job.pk}/").content.decode()
    send(task_of(job), {"plots/a.png": b"png"}, shared=True)
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert "plots/a.png" in page
    answer = client.get(f"/jobs/{job.pk}/outputs/file/?path=plots/a.png&attempt=1")
    assert answer.status_code == 302
    assert client.get(f"/jobs/{job.pk}/outputs/archive/?attempt=1").status_code == 200
    full = client.get(f"/jobs/{job.pk}/outputs/").content.decode()
    assert "plots/a.png" in full


def test_a_model_of_a_stopped_job_is_marked(job, ada, signed_in):
    client = task_of(job)
    body = {"files": [{"path": "saved_model.pb", "size": 1}], "stopped": True}
    upload = client.post(f"{TASK}model/", body).json()["upload"]
    wanted = {"parts": [{"file": 0, "part": 1, "sha256": sha256(b"x")}]}
    (one,) = client.post(f"{TASK}uploads/{upload['id']}/parts/", wanted).json()["urls"]
    APIClient().put("/" + one["url"].split("/", 3)[3], b"x", content_type="application/octet-stream")
    client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
    assert ModelVersion.objects.get(job=job).stopped
    assert signed_in(ada).get(f"/api/v1/jobs/{job.pk}/model/").json()["stopped"] is True
    events = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/events/").json()["results"]
    assert [one["facts"].get("stopped") for one in events if one["kind"] == "model_kept"] == [True]


def test_deleting_the_job_deletes_its_outputs(world, job, ada, signed_in, django_capture_on_commit_callbacks):
    send(task_of(job), {EVENTS: b"0123", "a.csv": b"csv"}, shared=True)
    keys = [one.segments[0]["key"] for one in JobOutput.objects.all()]
    world.engine.succeed(job)
    world.until_quiet()
    assert signed_in(ada).delete(f"/api/v1/jobs/{job.pk}/").status_code == 204
    world.now = max(world.now, world.again(job).next_look_at)
    expire_addresses()
    with django_capture_on_commit_callbacks(execute=True):
        world.settle()
    assert not JobOutput.objects.exists()
    assert not any(list(storage().list_prefix(key)) for key in keys)
    assert storage_used(job.namespace).used == 0
