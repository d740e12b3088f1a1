"""What takes too much of the processor before the answer is left to a worker."""

from __future__ import annotations

import pytest

from apps.uploads import finishing
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish_quietly
from apps.uploads.models import State, Upload
from tests.integration.sending import begin, complete, send, store, tfrecord, zipped

__all__ = ["store"]
pytestmark = [pytest.mark.django_db]

RECORDS = 300_000
EMPTY = tfrecord(b"") * RECORDS


@pytest.mark.parametrize("is_archive", [False, True])
def test_counting_millions_of_empty_records_is_left_to_a_worker(ada, signed_in, monkeypatch, is_archive: bool):
    monkeypatch.setattr(finishing, "INLINE_WORK", 0.02)
    client = signed_in(ada)
    content = {"a.zip": zipped({"a.tfrecord": EMPTY})} if is_archive else {"a.tfrecord": EMPTY}
    upload = begin(client, content)
    send(client, upload, content)
    answer = complete(client, upload["id"], unpack=is_archive)
    assert (answer.status_code, answer.json()["state"]) == (202, "completing")
    assert upload_finish_quietly(upload["id"])
    done = Upload.objects.get(pk=upload["id"])
    assert done.state == State.COMPLETE
    assert [(one.path, one.records) for one in manifest_of(done.pk)] == [("a.tfrecord", RECORDS)]
    made = client.post("/api/v1/datasets/", {"name": "d", "upload": upload["id"]})
    assert made.json()["latest"]["records"] == RECORDS
