"""A store that is busy, away or full in the middle of an upload: the sender learns it, nothing is lost or half made,
and the upload continues when the store is well again."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.namespaces.selectors import namespace_for
from apps.stores import storage
from apps.uploads.finishing import upload_finish
from apps.uploads.models import State, Upload
from apps.uploads.selectors import storage_used, stored_files
from apps.uploads.services import uploads_sweep
from tests.fakes.failing_storage import FailingStorage
from tests.integration.sending import begin, complete, send
from yardmaster.errors import Unavailable
from yardmaster.storage.base import StorageFull

CONTENT = {"a/b.bin": b"hello", "c": b"x" * 1000, "d": b"last"}
AWAY = "Putting an upload together: the object store answered SlowDown."


@pytest.fixture
def failures(store, settings, monkeypatch):
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"class": "tests.fakes.failing_storage.FailingStorage"}
    monkeypatch.setattr(FailingStorage, "failures", {})
    return FailingStorage.failures


@pytest.fixture
def client(failures, ada, signed_in):
    return signed_in(ada)


def sent(client) -> str:
    upload = begin(client, CONTENT)
    send(client, upload, CONTENT)
    return upload["id"]


def is_whole(upload: str) -> bool:
    """Every object is there with its bytes, and nothing else is charged."""
    row = Upload.objects.get(pk=upload)
    found = {}
    for one in stored_files(row):
        with storage().open_range(one.key) as body:
            found[one.path] = body.read()
    use = storage_used(row.namespace)
    return found == CONTENT and (use.used, use.reserved) == (1009, 0)


@pytest.mark.parametrize("verb", ["parts", "multipart_complete", "open_range"])
def test_a_busy_store_leaves_the_upload_to_the_sweep(client, failures, verb):
    upload = sent(client)
    failures[verb] = [Unavailable(AWAY)]
    answer = complete(client, upload)
    assert (answer.status_code, "SlowDown" in answer.json()["detail"]) == (503, True)
    assert client.get(f"/api/v1/uploads/{upload}/").json()["state"] == "completing"
    uploads_sweep(timezone.now())
    upload_finish(uuid.UUID(upload))  # what the sweep's message asks for
    assert is_whole(upload)


def test_a_store_that_is_full_takes_the_upload_back_to_its_sender(client, failures):
    upload = sent(client)
    failures["multipart_complete"] = [StorageFull("The object store is full.", remedy="Delete data.")]
    answer = complete(client, upload)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_full")
    shown = client.get(f"/api/v1/uploads/{upload}/").json()
    assert (shown["state"], shown["problem"]["code"], shown["problem"]["remedy"]) == (
        "open", "storage_full", "Delete data.",
    )  # fmt: skip
    assert all(one["done"] == [1] for one in shown["files"])
    assert complete(client, upload).status_code == 200
    assert is_whole(upload)


def test_a_store_that_is_away_when_parts_are_signed_costs_nothing(ada, client, failures):
    upload = begin(client, CONTENT)
    failures["multipart_begin"] = [Unavailable(AWAY)]
    part = {"file": 0, "part": 1, "sha256": "0" * 64}
    address = f"/api/v1/uploads/{upload['id']}/parts/"
    assert client.post(address, {"parts": [part]}, content_type="application/json").status_code == 503
    assert storage_used(namespace_for(ada, None)).reserved == 1009
    send(client, upload, CONTENT)
    assert complete(client, upload["id"]).status_code == 200
    assert is_whole(upload["id"])


def test_what_a_store_that_was_away_kept_of_an_upload_is_removed_by_the_sweep(ada, client, failures):
    upload = sent(client)
    prefix = Upload.objects.get(pk=upload).key_prefix
    failures["delete_prefix"] = [Unavailable(AWAY)]
    assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204
    assert Upload.objects.get(pk=upload).state == State.DELETING
    assert storage_used(namespace_for(ada, None)).reserved == 0
    uploads_sweep(timezone.now() + timedelta(minutes=1))
    assert not Upload.objects.filter(pk=upload).exists()
    assert not list(storage().list_prefix(prefix))
