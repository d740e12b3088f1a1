"""Removing uploads: it costs what was begun of the upload, and keeps no worker from its work."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.dispatch.messages import REMOVE_UPLOAD
from apps.uploads import removal, services
from apps.uploads.leases import LEASE, removal_claim
from apps.uploads.manifest import open_in_parts
from apps.uploads.models import State, Upload
from apps.uploads.removal import mark_for_removal, remove, upload_remove
from apps.uploads.services import uploads_sweep
from tests.integration.sending import begin, part, put, sign, uploaded
from yardmaster.errors import Unavailable
from yardmaster.storage.local import LocalStorage
from yardmaster.storage.local_parts import PartFolder

MIB = 1 << 20


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def _disk(tmp_path) -> list[str]:
    return [path.name for path in (tmp_path / "objects").rglob("*") if path.is_file()]


def _large(client, count: int) -> str:
    """An upload of files of two parts, of which none is sent."""
    files = [{"path": f"f{number}", "size": 8 * MIB + 1} for number in range(count)]
    return client.post("/api/v1/uploads/", {"kind": "dataset", "files": files}).json()["id"]


def _deleting(client, content=None) -> uuid.UUID:
    upload = uuid.UUID(uploaded(client, content or {"a": b"abc"}))
    assert mark_for_removal(Upload.objects.filter(pk=upload)) == [upload]
    return upload


def _dead(*_: object) -> None:
    raise Unavailable("It does not answer.")


def test_removing_an_upload_looks_at_what_was_begun_of_it_and_at_nothing_else(client, monkeypatch):
    others = begin(client, {f"o{number}": b"a" for number in range(20)})
    wanted = [part(number, 1, b"a") for number in range(20)]
    assert client.post(f"/api/v1/uploads/{others['id']}/parts/", {"parts": wanted}).status_code == 200
    upload = _large(client, 10)
    sign(client, upload, 3, b"x" * 8 * MIB)
    looked_at: list[str] = []
    look = PartFolder._folder
    monkeypatch.setattr(PartFolder, "_folder", lambda self, key, one: looked_at.append(key) or look(self, key, one))
    assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204
    assert [key.rpartition("/")[2] for key in looked_at] == ["f3"]


def test_what_was_sent_in_parts_and_not_put_together_goes(client, tmp_path):
    upload = _large(client, 3)
    for number in range(2):
        [url] = sign(client, upload, number, b"x" * 8 * MIB)
        assert put(url, b"x" * 8 * MIB).status_code == 200
    assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204
    assert _disk(tmp_path) == []
    assert list((tmp_path / "objects" / "parts").iterdir()) == []


def test_one_process_removes_an_upload_at_a_time(client, monkeypatch):
    upload = _deleting(client)
    lease = removal_claim(upload)
    monkeypatch.setattr(LocalStorage, "delete_prefix", lambda *_: pytest.fail("a second one begins, too"))
    remove(upload)
    uploads_sweep(timezone.now())
    assert Upload.objects.get().lease == lease.token


def test_the_sweep_takes_up_what_lost_its_worker(client, tmp_path):
    upload = _deleting(client)
    assert removal_claim(upload)  # killed after this
    Upload.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()
    assert _disk(tmp_path) == []


def test_a_removal_that_met_a_dead_store_is_free_for_the_sweep_at_once(client, monkeypatch):
    upload = _deleting(client)
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete_prefix", _dead)
        upload_remove(upload)
    assert Upload.objects.get().leased_until is None
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()


def test_a_removal_continues_behind_the_files_that_are_gone(client, monkeypatch):
    upload = _large(client, 2)
    sign(client, upload, 0, b"x" * 8 * MIB)
    row = Upload.objects.get()
    assert mark_for_removal(Upload.objects.all())
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete_prefix", _dead)
        upload_remove(row.pk)
    assert list(open_in_parts(row)) == []
    monkeypatch.setattr(LocalStorage, "multipart_abort", lambda *_: pytest.fail("begun again"))
    upload_remove(row.pk)
    assert not Upload.objects.exists()


def test_who_lost_the_lease_of_a_removal_forgets_nothing(client, monkeypatch):
    upload = _deleting(client)
    steps = removal._remove_bytes

    def taken(row, lease) -> None:
        steps(row, lease)
        Upload.objects.update(leased_until=timezone.now() - LEASE)
        assert removal_claim(upload)

    monkeypatch.setattr(removal, "_remove_bytes", taken)
    remove(upload)
    assert Upload.objects.get().state == State.DELETING
    assert Upload.objects.get().leased_until > timezone.now()


def test_many_files_are_left_to_a_worker(client, monkeypatch, tmp_path):
    monkeypatch.setattr(removal, "INLINE_FILES", 2)
    woken: list[tuple[str, uuid.UUID]] = []
    monkeypatch.setattr(removal, "enqueue", lambda task, subject: woken.append((task, subject)))
    few, many = (uploaded(client, {f"f{number}": b"abc" for number in range(count)}) for count in (2, 3))
    for upload in (few, many):
        assert client.delete(f"/api/v1/uploads/{upload}/").status_code == 204
    left = Upload.objects.get()
    assert str(left.pk) == many
    uploads_sweep(timezone.now())
    assert woken == [(REMOVE_UPLOAD, left.pk)] * 2, "a message may be lost"
    upload_remove(left.pk)
    assert not Upload.objects.exists()
    assert _disk(tmp_path) == []


def test_a_sweep_ends_before_it_has_removed_all(client, monkeypatch):
    for _ in range(2):
        _deleting(client)
    monkeypatch.setattr(services, "_SWEPT_FOR", -1.0)
    uploads_sweep(timezone.now())
    assert Upload.objects.count() == 2


def test_what_can_still_be_written_is_not_begun_again_by_each_sweep(client, monkeypatch):
    upload = _deleting(client)
    Upload.objects.update(writable_until=timezone.now() + timedelta(minutes=1))
    upload_remove(upload)
    assert Upload.objects.get().leased_until is None
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "delete_prefix", lambda *_: pytest.fail("its addresses are still valid"))
        uploads_sweep(timezone.now())
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()
