"""Checkpoints where the store is an S3 server, whose addresses nothing closes but the time."""

from __future__ import annotations

from datetime import timedelta

import pytest
import urllib3
from django.utils import timezone

from apps.jobs.state.results import newest_checkpoint, results_folder
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import uploads_sweep
from tests.integration.jobs.world import task_of
from tests.integration.sending import part
from tests.real.object_stores import S3Server, minio_server

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.django_db]

TASK = "/api/v1/task/"


@pytest.fixture
def stores(settings, tmp_path, minio_server: S3Server):
    settings.YARDMASTER_STORAGE = minio_server.settings()
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    storage().prepare()


def _begun(client, content: dict[str, bytes]) -> tuple[str, list[dict]]:
    """An upload of the checkpoint of step 5, and the signed addresses of its files."""
    files = [{"path": path, "size": len(data)} for path, data in content.items()]
    upload = client.post(f"{TASK}checkpoints/", {"step": 5, "files": files}).json()["upload"]
    wanted = [part(file["index"], 1, content[file["path"]]) for file in upload["files"]]
    return upload["id"], client.post(f"{TASK}uploads/{upload['id']}/parts/", {"parts": wanted}).json()["urls"]


def _put(signed: dict, data: bytes) -> int:
    return urllib3.request("PUT", signed["url"], body=data, headers=signed["headers"]).status


def test_what_is_sent_late_for_a_step_that_was_begun_again_goes_and_is_paid_until_then(job):
    client = task_of(job)
    hidden = {f"hidden-{number}": bytes([number]) * 1000 for number in range(3)}
    _, late = _begun(client, hidden)
    upload, [address] = _begun(client, {"kept": b"tiny"})
    assert _put(address, b"tiny") == 200
    assert client.post(f"{TASK}uploads/{upload}/complete/", {}).status_code == 200
    assert [_put(one, data) for one, data in zip(late, hidden.values(), strict=True)] == [200] * 3
    assert storage_used(job.namespace).reserved == 3000
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    use = storage_used(job.namespace)
    assert (use.used, use.reserved) == (4, 0)
    [kept] = storage().list_prefix(results_folder(job))
    assert (kept.size, kept.key) == (4, newest_checkpoint(job).files[0]["key"])
