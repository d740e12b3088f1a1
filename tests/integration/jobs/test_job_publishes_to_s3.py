"""What a job publishes where the store is an S3 server: the server copies, also what it cannot copy in one request."""

from __future__ import annotations

from datetime import timedelta

import pytest
import urllib3
from django.utils import timezone

from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.jobs.models import Publication
from apps.jobs.worker.publishing import publish
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import uploads_sweep
from apps.uploads.versioned.selectors import files_of
from apps.uploads.versioned.services import collection_delete
from tests.integration.jobs.test_job_publishes import content_of, launched, stored, succeed
from tests.integration.jobs.world import task_of
from tests.integration.sending import part, sha256
from tests.real.object_stores import S3Server, minio_server
from yardmaster.errors import Unavailable
from yardmaster.storage import s3
from yardmaster_runner.checksums import of_parts

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.django_db]

TASK = "/api/v1/task/"
PART = 8 << 20
LARGE = bytes(range(256)) * (PART // 256) + b"and more" * 500_000
CONTENTS = ({"train/a b.tfrecord": LARGE, "ä.txt": b"one"}, {"train/c.tfrecord": b"two", "empty": b""})


@pytest.fixture
def stores(settings, tmp_path, minio_server: S3Server, monkeypatch):
    settings.YARDMASTER_STORAGE = minio_server.settings()
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    storage().prepare()
    monkeypatch.setattr(s3, "_COPIED_AT_ONCE", 5 << 20)


def send(job, index: int, content: dict[str, bytes]) -> None:
    client = task_of(job)
    files = [{"path": path, "size": len(data)} for path, data in content.items()]
    upload = client.post(f"{TASK}published/", {"role": "worker", "index": index, "files": files}).json()["upload"]
    for file in upload["files"]:
        data = content[file["path"]]
        pieces = [data[at : at + PART] for at in range(0, len(data), PART)]
        wanted = [part(file["index"], number, piece) for number, piece in enumerate(pieces, 1)]
        signed = client.post(f"{TASK}uploads/{upload['id']}/parts/", {"parts": wanted}).json() if wanted else {}
        for one in signed.get("urls", []):
            sent = urllib3.request("PUT", one["url"], body=pieces[one["part"] - 1], headers=one["headers"])
            assert sent.status == 200, sent.data
    done = client.post(f"{TASK}uploads/{upload['id']}/complete/", {})
    assert done.status_code in (200, 202), done.json()


def sent_by_both(world, ada):
    job = launched(world, ada)
    for index, content in enumerate(CONTENTS):
        send(job, index, content)
    return job


def keys(job) -> list[str]:
    return sorted(one.key for one in storage().list_prefix(f"namespaces/{job.namespace_id}") if "/code/" not in one.key)


def test_the_server_copies_what_all_tasks_sent_and_keeps_nothing_twice(world, ada, monkeypatch):
    job = sent_by_both(world, ada)
    monkeypatch.setattr(s3.S3Storage, "open_range", lambda *_: pytest.fail("bytes passed through the worker"))
    succeed(world, job)
    monkeypatch.undo()
    version = DatasetVersion.objects.get()
    assert content_of(version) == CONTENTS[0] | CONTENTS[1]
    assert stored(job) == version.size == sum(map(len, (CONTENTS[0] | CONTENTS[1]).values()))
    found = {one.path: one.sha256 for one in files_of(version)}
    assert found["train/a b.tfrecord"] == of_parts([sha256(LARGE[:PART]), sha256(LARGE[PART:])])
    Upload.objects.update(writable_until=timezone.now() - timedelta(hours=1))
    uploads_sweep(timezone.now())
    assert keys(job) == sorted(f"{version.key_prefix}/{path}" for path in CONTENTS[0] | CONTENTS[1])


def test_a_server_that_goes_away_while_it_copies_publishes_later_and_nothing_before(world, ada, monkeypatch):
    job = sent_by_both(world, ada)
    with monkeypatch.context() as patched:
        patched.setattr(s3.S3Client, "copy_part", _away)
        succeed(world, job)
    assert not DatasetVersion.objects.exists()
    assert Publication.objects.get().state == "collecting"
    publish(job.pk)
    assert content_of(DatasetVersion.objects.get()) == CONTENTS[0] | CONTENTS[1]


def test_a_deleted_publication_counts_until_no_task_can_send_its_parts_again(
    world, ada, django_capture_on_commit_callbacks
):
    job = sent_by_both(world, ada)
    succeed(world, job)
    version, before = DatasetVersion.objects.get(), storage_used(job.namespace)
    with django_capture_on_commit_callbacks(execute=True):
        collection_delete(DATASETS, Dataset.objects.get(), actor=ada)
    use = storage_used(job.namespace)
    assert (before.used - use.used, use.reserved - before.reserved) == (version.size, version.size)
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert storage_used(job.namespace).reserved == before.reserved


def _away(*_):
    raise Unavailable("The object store does not answer.")
