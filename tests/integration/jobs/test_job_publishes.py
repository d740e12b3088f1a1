"""What the tasks of a job leave in their output folders becomes one dataset version: all of it, once, or nothing."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.datasets.models import Dataset, DatasetVersion
from apps.jobs.models import Job, JobEvent, Publication, PublicationPart
from apps.jobs.published import published_by
from apps.jobs.services import job_delete, job_retry
from apps.jobs.worker import publishing
from apps.jobs.worker.publishing import publications_sweep, publish
from apps.namespaces.models import Role as Seat
from apps.namespaces.selectors import quota_of
from apps.namespaces.services import member_add, member_remove, team_create
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import uploads_sweep
from apps.uploads.versioned.selectors import files_of
from tests.integration.jobs.test_job_outputs import put
from tests.integration.jobs.world import task_of
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.job.spec_json import spec_from_json

TASK = "/api/v1/task/"
A, B = {"a/1.bin": b"one", "top.txt": b"x"}, {"a/2.bin": b"second"}


def launched(world, owner, **changes) -> Job:
    spec = {
        "strategy": "batch", "roles": {"worker": {"replicas": 2, "cpu": 1, "memory": "1Gi"}},
        "publishes": {"dataset": "made"}, **changes,
    }  # fmt: skip
    job = world.launch(owner, **spec)
    world.settle()
    return world.again(job)


def send(job: Job, index: int, content: dict[str, bytes], *, completes: bool = True, attempt: int = 1):
    client = task_of(job, attempt)
    body = {"role": "worker", "index": index}
    if content:
        body["files"] = [{"path": path, "size": len(data)} for path, data in content.items()]
    answer = client.post(f"{TASK}published/", body)
    assert answer.status_code == 201, answer.json()
    upload = answer.json()["upload"]
    if upload is None:
        return None
    put(client, upload, content)
    if completes:
        done = client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
        assert done.status_code == 200, done.json()
    return upload


def succeed(world, job: Job) -> Job:
    world.engine.succeed(job)
    world.look(job)
    assert world.again(job).phase == "SUCCEEDED"
    publish(job.pk)
    return world.again(job)


def content_of(version: DatasetVersion) -> dict[str, bytes]:
    found = {}
    for one in files_of(version):
        with storage().open_range(one.key) as stream:
            found[one.path] = stream.read()
    return found


def sweep_uploads() -> None:
    """When no signed address can write any more."""
    Upload.objects.update(writable_until=timezone.now() - timedelta(hours=1))
    uploads_sweep(timezone.now())


def stored(job: Job) -> int:
    """Bytes, without what the tasks printed."""
    use = storage_used(job.namespace)
    return use.used - use.logs


def objects(job: Job) -> list[str]:
    return [one.key for one in storage().list_prefix(f"namespaces/{job.namespace_id}") if "/code/" not in one.key]


def test_the_files_of_all_tasks_become_one_version_that_knows_its_job(world, ada, signed_in):
    job = launched(world, ada)
    send(job, 0, A)
    send(job, 1, B)
    assert not Dataset.objects.exists()
    job = succeed(world, job)
    version = DatasetVersion.objects.select_related("parent").get()
    assert (version.parent.name, version.number, version.source_job) == ("made", 1, job.pk)
    assert (version.created_by, version.note) == (ada, "By the job digits.")
    assert content_of(version) == A | B
    assert stored(job) == version.size == 10
    sweep_uploads()
    assert len(objects(job)) == 3
    assert not Upload.objects.filter(job_id=job.pk).exists()
    assert JobEvent.objects.get(job=job, kind="published").message == "Published version 1 of made."
    shown = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()["published"]
    assert (shown["state"], shown["dataset"], shown["version"], shown["number"]) == (
        "published", "made", str(version.pk), 1,
    )  # fmt: skip
    answer = signed_in(ada).get(f"/api/v1/dataset-versions/{version.pk}/").json()
    assert answer["source_job"] == str(job.pk)
    publish(job.pk)
    assert DatasetVersion.objects.count() == 1


def test_a_second_job_adds_a_version_and_a_note_is_kept(world, ada):
    for number in (1, 2):
        job = launched(world, ada, publishes={"dataset": "made", "note": f"try {number}"})
        send(job, 0, A)
        send(job, 1, {})
        succeed(world, job)
    assert list(DatasetVersion.objects.order_by("number").values_list("number", "note")) == [(1, "try 1"), (2, "try 2")]


def test_a_job_that_failed_before_it_sent_anything_is_not_waited_for(world, ada, signed_in):
    job = launched(world, ada, retries=0)
    assert published_by(job).state == "pending"
    world.engine.fail(job.key, Role.WORKER, 1, exit_code=1, reason="ScriptFailed", message="")
    world.until_quiet()
    assert signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()["published"]["state"] == "dropped"


@pytest.mark.parametrize("end", ["fail", "stop"])
def test_a_job_that_failed_or_was_stopped_publishes_nothing_and_its_quota_returns(world, ada, end):
    job = launched(world, ada, retries=0)
    send(job, 0, A)
    send(job, 1, B, completes=False)
    assert stored(job) + storage_used(job.namespace).reserved == 10
    if end == "fail":
        world.engine.fail(job.key, Role.WORKER, 1, exit_code=1, reason="ScriptFailed", message="")
    else:
        Job.objects.filter(pk=job.pk).update(wanted="STOP", next_look_at=world.now)
    world.until_quiet()
    publish(job.pk)
    assert Publication.objects.get().state == "dropped"
    assert not Dataset.objects.exists()
    sweep_uploads()
    assert (stored(job), storage_used(job.namespace).reserved) == (0, 0)
    assert objects(job) == []


def test_a_restarted_task_replaces_its_own_upload_alone(world, ada):
    job = launched(world, ada)
    send(job, 0, {"old.bin": b"old", "a/1.bin": b"?"})
    send(job, 1, B)
    send(job, 0, A)
    assert PublicationPart.objects.count() == 2
    succeed(world, job)
    assert content_of(DatasetVersion.objects.get()) == A | B


@pytest.mark.parametrize(("other", "named"), [({"top.txt": b"y"}, "top.txt"), ({"a": b"a file"}, "a/1.bin")])
def test_two_tasks_that_write_one_path_are_named_and_nothing_is_published(world, ada, other, named, signed_in):
    job = launched(world, ada)
    send(job, 0, A)
    send(job, 1, other)
    job = succeed(world, job)
    assert not Dataset.objects.exists()
    shown = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()["published"]
    assert (shown["state"], shown["problem"]["code"]) == ("failed", "path_written_twice")
    assert "worker-0" in shown["problem"]["detail"]
    assert "worker-1" in shown["problem"]["detail"]
    assert named in shown["problem"]["detail"]
    assert stored(job) == 0


def test_without_the_part_of_a_task_nothing_is_published(world, ada):
    job = launched(world, ada)
    send(job, 0, A)
    succeed(world, job)
    assert Publication.objects.get().problem["detail"] == "Nothing has arrived of worker-1."


def test_who_may_no_longer_create_data_there_publishes_nothing(world, ada, bob):
    team = team_create(slug="team", title="Team", manager=bob, actor=bob)
    member_add(namespace=team, user=ada, role=Seat.MEMBER, actor=bob)
    code = world.code_version(ada)
    job = launched(world, ada, namespace=team, code=str(code.pk))
    send(job, 0, A)
    send(job, 1, {})
    member_remove(namespace=team, user=ada, actor=bob)
    succeed(world, job)
    assert Publication.objects.get().state == "failed"
    assert not Dataset.objects.exists()


def test_the_creator_is_who_began_the_attempt(world, ada, bob):
    team = team_create(slug="team", title="Team", manager=bob, actor=bob)
    member_add(namespace=team, user=ada, role=Seat.MEMBER, actor=bob)
    job = launched(world, ada, namespace=team, code=str(world.code_version(ada).pk), retries=0)
    world.engine.fail(job.key, Role.WORKER, 0, exit_code=1, reason="ScriptFailed", message="")
    world.until_quiet()
    job = world.again(job)
    job_retry(user=bob, job=job, spec=spec_from_json(job.spec | {"code": str(world.code_version(bob).pk)}))
    world.settle()
    send(world.again(job), 0, A, attempt=2)
    send(world.again(job), 1, B, attempt=2)
    member_remove(namespace=team, user=ada, actor=bob)
    succeed(world, world.again(job))
    version = DatasetVersion.objects.select_related("parent").get()
    assert (version.created_by, version.parent.created_by) == (bob, bob)


def test_a_job_that_publishes_nothing_takes_no_parts(job):
    answer = task_of(job).post(f"{TASK}published/", {"role": "worker", "index": 0})
    assert (answer.status_code, answer.json()["code"]) == (409, "publishes_nothing")


def test_a_quota_that_is_reached_half_way_is_said_to_the_task(world, ada):
    job = launched(world, ada)
    quota = quota_of(job.namespace)
    quota.storage = 5
    quota.save()
    client = task_of(job)
    files = [{"path": "a.bin", "size": 6}]
    answer = client.post(f"{TASK}published/", {"role": "worker", "index": 0, "files": files})
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert not PublicationPart.objects.exists()


class TestInterrupted:
    def test_cut_off_after_the_objects_were_copied_it_is_done_again(self, world, ada, monkeypatch):
        job = launched(world, ada)
        send(job, 0, A)
        send(job, 1, B)
        with monkeypatch.context() as patched:
            patched.setattr(publishing, "uploads_join", _killed)
            with pytest.raises(SystemExit):
                succeed(world, job)
        publish(job.pk)  # while the lease of the dead worker lasts
        assert not DatasetVersion.objects.exists()
        Publication.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
        publish(job.pk)
        assert content_of(DatasetVersion.objects.get()) == A | B
        assert stored(job) == 10

    def test_a_store_that_does_not_answer_is_asked_again_later(self, world, ada, monkeypatch, sent):
        job = launched(world, ada)
        send(job, 0, A)
        send(job, 1, B)
        with monkeypatch.context() as patched:
            patched.setattr(publishing, "objects_join", _away)
            succeed(world, job)
        publication = Publication.objects.get()
        assert (publication.state, publication.tries) == ("collecting", 1)
        sent.clear()
        publications_sweep(timezone.now())
        assert sent == []
        publications_sweep(timezone.now() + timedelta(minutes=1))
        assert sent == [("yardmaster.publish", str(job.pk))]
        publish(job.pk)
        assert DatasetVersion.objects.count() == 1

    def test_the_sweep_wakes_none_of_an_attempt_that_runs(self, world, ada, sent):
        send(launched(world, ada), 0, A)
        sent.clear()
        publications_sweep(timezone.now())
        assert sent == []

    def test_an_object_that_is_gone_is_said_and_not_looked_for_without_end(self, world, ada):
        job = launched(world, ada)
        upload = send(job, 0, A)
        send(job, 1, B)
        storage().delete_prefix(Upload.objects.get(pk=upload["id"]).key_prefix)
        succeed(world, job)
        publication = Publication.objects.get()
        assert (publication.state, publication.problem["code"]) == ("failed", "part_missing")

    def test_a_job_that_is_deleted_first_leaves_nothing(self, world, ada):
        job = launched(world, ada, reclaim_delay=0)
        send(job, 0, A)
        send(job, 1, B)
        world.engine.succeed(job)
        world.until_quiet()
        job_delete(user=ada, job=world.again(job))
        publish(job.pk)
        world.until_quiet()
        assert not DatasetVersion.objects.exists()


def _killed(**_):
    raise SystemExit


def _away(*_):
    raise Unavailable("The object store does not answer.")


class TestPrepared:
    """The results of the tasks of a preparation are merged; they may be anything."""

    def part(self, worker: int, **changes) -> bytes:
        shard = {"path": f"train/train-0000{worker}.tfrecord", "records": 3 + worker, "size": 5}
        return json.dumps(
            {
                "plan": "p",
                "worker": worker,
                "workers": 2,
                "compression": "",
                "label": "label",
                "features": {"label": {"kind": "int64", "shape": [], "encoding": ""}},
                "classes": ["cat", "dog"],
                "splits": {"train": [shard]},
                "counts": {"train": {"cat": 2, "dog": 1 + worker}},
                "statistics": {},
                "bad": ["a\0.csv, row 3: \ud800 cells"],
                "bad_count": 1,
                **changes,
            }
        ).encode()

    def job(self, world, ada) -> Job:
        data = launched(world, ada)
        send(data, 0, {"a.csv": b"a,b\n1,2\n"})
        send(data, 1, {})
        succeed(world, data)
        raw = str(DatasetVersion.objects.get().pk)
        return launched(
            world, ada, program="prepare", options={"label": "b"}, inputs=[{"dataset_version": raw}], code=None,
            entry_point="", publishes={"dataset": "prepared"},
        )  # fmt: skip

    def test_they_become_one_description_beside_the_shards(self, world, ada):
        job = self.job(world, ada)
        for worker in (0, 1):
            shard = {f"train/train-0000{worker}.tfrecord": b"12345"}
            send(job, worker, shard | {f"part-{worker}.json": self.part(worker)})
        succeed(world, job)
        version = DatasetVersion.objects.get(parent__name="prepared")
        content = content_of(version)
        assert sorted(content) == ["dataset.json", "train/train-00000.tfrecord", "train/train-00001.tfrecord"]
        described = json.loads(content["dataset.json"])
        assert described["counts"] == {"train": {"cat": 4, "dog": 3}}
        assert version.note == "Prepared: 7 records, 2 skipped."
        assert version.size == sum(map(len, content.values()))
        used = version.size + DatasetVersion.objects.get(parent__name="made").size
        assert stored(job) == used
        assert Publication.objects.get(job=job).facts["bad"][0] == "a\ufffd.csv, row 3: ? cells"

    def test_counts_that_cannot_be_are_refused(self, world, ada):
        """The note would be longer than its column: it would be tried again for ever, with all files copied."""
        job = self.job(world, ada)
        send(job, 0, {"part-0.json": self.part(0)})
        send(job, 1, {"part-1.json": self.part(1, bad_count=10**2000)})
        succeed(world, job)
        assert Publication.objects.get(job=job).problem["code"] == "bad_results"

    @pytest.mark.parametrize(
        "second",
        [b"{", b"[]", b'{"worker": 1}', b"\xff\xfe", b'{"worker":' * 9_000, b"null"],
        ids=["cut", "list", "part", "binary", "deep", "null"],
    )
    def test_results_that_are_none_are_refused(self, world, ada, second):
        job = self.job(world, ada)
        send(job, 0, {"part-0.json": self.part(0)})
        send(job, 1, {"part-1.json": second})
        succeed(world, job)
        assert Publication.objects.get(job=job).problem["code"] == "bad_results"
        assert not DatasetVersion.objects.filter(parent__name="prepared").exists()
