"""Putting an upload together: verified, once, and whatever cuts it off."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.errors import Conflict
from apps.namespaces.selectors import namespace_for
from apps.uploads import finishing, services
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish
from apps.uploads.leases import LeaseLost, lease_claim
from apps.uploads.models import State, Tombstone, Upload
from apps.uploads.removal import mark_for_removal
from apps.uploads.selectors import storage_used, stored_files
from apps.uploads.services import upload_begin, upload_use, uploads_discard, uploads_expire, uploads_sweep
from tests.integration.sending import begin, complete, part, put, send, sha256, sign, tfrecord, uploaded
from yardmaster.storage.file_list import ListedFile

CONTENT = {"a/b.bin": b"hello", "c": b"x" * 1000, "empty": b""}


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def _sent(client, content=CONTENT, **more) -> str:
    upload = begin(client, content, **more)
    send(client, upload, content)
    return upload["id"]


def _disk(tmp_path) -> list[str]:
    return [path.name for path in (tmp_path / "objects").rglob("*") if path.is_file()]


def test_what_was_reserved_is_used_and_every_file_is_hashed(ada, client):
    uploaded(client, CONTENT)
    upload = Upload.objects.get()
    assert [(file.path, file.size, file.sha256) for file in stored_files(upload)] == [
        (path, len(data), sha256(data)) for path, data in sorted(CONTENT.items())
    ]
    use = storage_used(namespace_for(ada, None))
    assert (use.used, use.reserved) == (1005, 0)


def test_completing_twice_is_one_success(ada, client):
    upload = _sent(client)
    assert complete(client, upload).json() == complete(client, upload).json()
    assert storage_used(namespace_for(ada, None)).used == 1005


def test_missing_parts_are_named_and_can_still_be_sent(client):
    upload = begin(client, {"f": b"abc", "g": b"de"})["id"]
    put(sign(client, upload, 0, b"abc")[0], b"abc")
    answer = complete(client, upload)
    assert (answer.status_code, answer.json()["code"]) == (409, "parts_missing")
    assert answer.json()["errors"][0]["field"] == "files.1"
    state = client.get(f"/api/v1/uploads/{upload}/").json()
    assert (state["state"], state["problem"]["code"]) == ("open", "parts_missing")
    put(sign(client, upload, 1, b"de")[0], b"de")
    assert complete(client, upload).status_code == 200


def test_another_content_than_announced_is_refused_and_can_be_sent_again(client):
    body = {"kind": "dataset", "files": [{"path": "f", "size": 4, "sha256": sha256(b"good")}]}
    upload = client.post("/api/v1/uploads/", body).json()["id"]
    put(sign(client, upload, 0, b"evil")[0], b"evil")
    answer = complete(client, upload)
    assert (answer.status_code, answer.json()["code"]) == (422, "checksum_mismatch")
    assert answer.json()["errors"][0]["field"] == "files.0"
    assert client.get(f"/api/v1/uploads/{upload}/").json()["files"][0]["done"] == []
    put(sign(client, upload, 0, b"good")[0], b"good")
    assert complete(client, upload).status_code == 200


def test_a_file_that_the_store_has_lost_is_sent_anew(client, tmp_path):
    """As after a power cut: the parts were acknowledged, and their upload is not there any more."""
    import shutil

    upload = _sent(client, {"f": b"abc"})
    shutil.rmtree(tmp_path / "objects" / "parts")
    assert client.get(f"/api/v1/uploads/{upload}/").json()["files"][0]["done"] == []
    assert complete(client, upload).json()["code"] == "parts_missing"
    put(sign(client, upload, 0, b"abc")[0], b"abc")
    assert complete(client, upload).status_code == 200


def test_a_file_that_was_good_is_not_read_again_after_another_one_was_bad(client, store):
    files = [{"path": "good", "size": 4}, {"path": "late", "size": 4, "sha256": sha256(b"late")}]
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files}).json()["id"]
    put(sign(client, upload, 0, b"good")[0], b"good")
    put(sign(client, upload, 1, b"evil")[0], b"evil")
    assert complete(client, upload).status_code == 422
    assert client.get(f"/api/v1/uploads/{upload}/").json()["files"][0]["done"] == [1]
    put(sign(client, upload, 1, b"late")[0], b"late")
    assert complete(client, upload).status_code == 200


def test_a_large_upload_is_left_to_a_worker_and_says_so(client, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(services, "INLINE_BYTES", 10)
    woken = []
    monkeypatch.setattr(services, "enqueue", lambda task, upload_id: woken.append(upload_id))
    upload = _sent(client)
    answer = complete(client, upload)
    assert (answer.status_code, answer.json()["state"]) == (202, "completing")
    assert woken == [uuid.UUID(upload)]
    assert complete(client, upload).status_code == 202
    upload_finish(uuid.UUID(upload))
    assert client.get(f"/api/v1/uploads/{upload}/").json()["state"] == "complete"
    assert complete(client, upload).status_code == 200


def test_an_upload_that_is_being_completed_takes_no_parts_and_is_not_deleted_under_the_worker(client, monkeypatch):
    monkeypatch.setattr(services, "INLINE_BYTES", 10)
    monkeypatch.setattr(services, "enqueue", lambda task, upload_id: None)
    upload = _sent(client)
    complete(client, upload)
    assert lease_claim(uuid.UUID(upload)) is not None
    assert client.post(f"/api/v1/uploads/{upload}/parts/", {"parts": [part(0, 1)]}).status_code == 409
    assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 409


def test_of_two_completes_at_once_one_does_the_work(client, monkeypatch):
    monkeypatch.setattr(services, "upload_finish", lambda upload_id, in_request: True)
    upload = uuid.UUID(_sent(client))
    complete(client, str(upload))
    assert lease_claim(upload) is not None
    assert lease_claim(upload) is None
    upload_finish(upload)
    assert Upload.objects.get().state == State.COMPLETING


class StoreDiesAfter:
    """A store whose process is killed after so many objects were put together."""

    def __init__(self, store, objects: int):
        self._store = store
        self._left = objects

    def __getattr__(self, name):
        return getattr(self._store, name)

    def multipart_complete(self, *args):
        if self._left == 0:
            raise KeyboardInterrupt
        self._left -= 1
        return self._store.multipart_complete(*args)


@pytest.mark.parametrize("objects", [0, 1, 2])
def test_a_killed_worker_costs_time_and_nothing_else(ada, client, monkeypatch, store, objects):
    content = {f"f{number}": bytes([number]) * 10 for number in range(3)}
    upload = uuid.UUID(_sent(client, content))
    monkeypatch.setattr(services, "upload_finish", lambda upload_id, in_request: True)
    complete(client, str(upload))
    dying = StoreDiesAfter(store, objects)
    with monkeypatch.context() as patched:
        patched.setattr(finishing, "storage", lambda: dying)
        with pytest.raises(KeyboardInterrupt):
            upload_finish(upload)
    assert Upload.objects.get().state == State.COMPLETING
    Upload.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    woken = []
    monkeypatch.setattr(services, "enqueue", lambda task, upload_id: woken.append(upload_id))
    uploads_sweep(timezone.now())
    assert woken == [upload]
    upload_finish(upload)
    assert [(file.path, file.sha256) for file in stored_files(Upload.objects.get())] == [
        (path, sha256(data)) for path, data in content.items()
    ]
    assert storage_used(namespace_for(ada, None)).used == 30


def test_records_are_counted_and_damage_is_noted_for_datasets(client):
    content = {
        "a.tfrecord": tfrecord(b"one", b"two"),
        "b.tfrecord": tfrecord(b"one", b"two")[:-3],
        "c.csv": b"x,y\n1,2\n",
        "d.jsonl": b"{}\n{}\n",
        "e.png": b"\x89PNG",
    }
    uploaded(client, content)
    found = {file.path: (file.records, file.fault) for file in manifest_of(Upload.objects.get().pk)}
    assert found["a.tfrecord"] == (2, "")
    assert found["b.tfrecord"] == (1, "record 1 at byte 19: the file ends 3 bytes too early")
    assert (found["c.csv"], found["d.jsonl"], found["e.png"]) == ((1, ""), (2, ""), (None, ""))


def test_records_of_code_are_not_counted(client):
    uploaded(client, {"a.csv": b"x,y\n1,2\n"}, "code")
    assert next(manifest_of(Upload.objects.get().pk)).records is None


def test_an_upload_is_good_for_one_use(client):
    uploaded(client, CONTENT)
    upload = Upload.objects.get()
    upload_use(upload)
    with pytest.raises(Conflict) as refused:
        upload_use(upload)
    assert refused.value.code == "upload_used"


def test_an_upload_that_is_not_complete_cannot_be_used(client):
    begin(client, CONTENT)
    with pytest.raises(Conflict) as refused:
        upload_use(Upload.objects.get())
    assert refused.value.code == "upload_not_complete"


# --- Expiry and removal


def test_an_idle_upload_expires_and_returns_its_quota(ada, client, tmp_path, settings):
    _sent(client)
    begin(client, {"second": b"123"})
    uploaded(client, {"third": b"complete but never used"})
    assert uploads_expire(timezone.now()) == 0
    later = timezone.now() + settings.YARDMASTER_UPLOAD_TTL + timedelta(seconds=1)
    assert uploads_expire(later) == 3
    assert uploads_expire(later) == 0
    assert not Upload.objects.exists()
    use = storage_used(namespace_for(ada, None))
    assert (use.used, use.reserved) == (0, 0)
    assert _disk(tmp_path) == []


def test_a_used_upload_does_not_expire(client, settings):
    uploaded(client, CONTENT)
    upload_use(Upload.objects.get())
    assert uploads_expire(timezone.now() + 10 * settings.YARDMASTER_UPLOAD_TTL) == 0


def test_sending_parts_keeps_an_upload_alive(client, settings):
    upload = begin(client, CONTENT)["id"]
    Upload.objects.update(touched_at=timezone.now() - settings.YARDMASTER_UPLOAD_TTL)
    sign(client, upload, 0, b"abc")
    assert uploads_expire(timezone.now() + timedelta(seconds=5)) == 0


def test_a_removal_that_was_cut_off_is_finished_by_the_sweep(ada, client, tmp_path):
    uploaded(client, CONTENT)
    upload = Upload.objects.get()
    assert mark_for_removal(Upload.objects.filter(pk=upload.pk))  # killed after this
    assert storage_used(namespace_for(ada, None)).used == 0
    assert client.get(f"/api/v1/uploads/{upload.pk}/").status_code == 404
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()
    assert _disk(tmp_path) == []


def test_discarding_removes_what_is_in_use(ada, client, tmp_path, django_capture_on_commit_callbacks):
    uploaded(client, CONTENT)
    upload = Upload.objects.get()
    upload_use(upload)
    with django_capture_on_commit_callbacks(execute=True):
        uploads_discard([upload.pk, upload.pk, uuid.uuid4()])
    assert not Upload.objects.exists()
    assert storage_used(namespace_for(ada, None)).used == 0
    assert _disk(tmp_path) == []


def test_finishing_takes_few_statements_however_many_files_there_are(ada, django_assert_max_num_queries):
    files = [ListedFile(f"f{number}", 0) for number in range(1_200)]
    upload = upload_begin(namespace=namespace_for(ada, None), actor=ada, kind="dataset", files=files)
    Upload.objects.update(state=State.COMPLETING)
    with django_assert_max_num_queries(60):
        upload_finish(upload.pk)
    assert Upload.objects.get().is_complete
    assert {file.sha256 for file in manifest_of(upload.pk)} == {sha256(b"")}


def test_many_uploads_are_discarded_in_few_statements(ada, client, django_assert_max_num_queries):
    for number in range(10):
        uploaded(client, {"f": b"x" * number})
    with django_assert_max_num_queries(10):
        uploads_discard(Upload.objects.values_list("pk", flat=True))
    use = storage_used(namespace_for(ada, None))
    assert (use.used, use.reserved) == (0, 0)


# --- After the removal


def test_what_a_late_writer_puts_where_an_upload_lay_is_removed_again(client, store, tmp_path):
    content = {"f": b"abc"}
    upload = begin(client, content)
    prefix = Upload.objects.get().key_prefix
    client.delete(f"/api/v1/uploads/{upload['id']}/")
    now = timezone.now()
    for late in (timedelta(minutes=2), timedelta(hours=3), timedelta(hours=25)):
        store.put(f"{prefix}/f", b"late")
        uploads_sweep(now + late)
        assert _disk(tmp_path) == []
    assert not Tombstone.objects.exists()


def test_whoever_lost_the_lease_to_a_removal_takes_back_what_was_written(client, store, tmp_path, monkeypatch):
    upload = _sent(client)

    def removed_meanwhile(row, lease):
        Upload.objects.update(leased_until=None)
        services.upload_abort(Upload.objects.get(pk=upload))
        store.put(f"{row.key_prefix}/late", b"late")
        raise LeaseLost

    monkeypatch.setattr(finishing, "_conclude", removed_meanwhile)
    assert complete(client, upload).status_code == 404
    assert not Upload.objects.exists()
    assert _disk(tmp_path) == []
