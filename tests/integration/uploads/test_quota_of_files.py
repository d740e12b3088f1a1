"""The files in the lists of a namespace are counted when they come, and returned when their list goes."""

from __future__ import annotations

import io
import tarfile
import uuid
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads import finishing, unpacking
from apps.uploads.joining import uploads_join
from apps.uploads.models import FileBatch, FileBlock, Kind, State, Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import uploads_discard, uploads_sweep
from tests.integration.sending import begin, complete, part, send, zipped


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def limited(ada):
    quota = quota_of(namespace_for(ada, None))
    quota.files = 5
    quota.save()


def _files(ada) -> int:
    return storage_used(namespace_for(ada, None)).files


def _announce(client, first: int, count: int, upload: str = ""):
    files = [{"path": f"f{number}", "size": 0} for number in range(first, first + count)]
    if upload:
        return client.post(f"/api/v1/uploads/{upload}/files/", {"after": first, "files": files})
    return client.post("/api/v1/uploads/", {"kind": "dataset", "files": files})


def test_announced_files_are_charged_and_returned(ada, client, limited, django_capture_on_commit_callbacks):
    upload = _announce(client, 0, 3).json()["id"]
    assert _announce(client, 3, 2, upload).status_code == 200
    assert _announce(client, 3, 2, upload).status_code == 200  # repeated: counted once
    assert _files(ada) == 5
    for refused in (_announce(client, 5, 1, upload), _announce(client, 0, 1)):
        assert (refused.status_code, refused.json()["code"]) == (409, "quota_full")
        assert "needs 1 file of" in refused.json()["detail"]
        assert {one["field"]: one["value"] for one in refused.json()["errors"]}["files.hard"] == "5"
    assert complete(client, upload).status_code == 200
    assert _files(ada) == 5
    with django_capture_on_commit_callbacks(execute=True):
        uploads_discard([Upload.objects.get().pk])
    assert _files(ada) == 0


def test_of_an_upload_that_failed_no_list_is_kept(ada, client):
    """Its files count for no limit any more."""
    content = {"not-an-archive.zip": b"this is no zip"}
    upload = begin(client, content)
    send(client, upload, content)
    Upload.objects.update(writable_until=timezone.now() + timedelta(minutes=1))  # as on an S3 server
    assert complete(client, upload["id"], unpack=True).json()["code"] == "not_a_zip"
    row = Upload.objects.get()
    assert (row.state, row.files_held, _files(ada)) == (State.FAILED, 0, 0)
    assert row.held == len(content["not-an-archive.zip"]), "it may still be written"
    assert not FileBlock.objects.exists()
    assert not FileBatch.objects.exists()
    address = f"/api/v1/uploads/{upload['id']}/"
    assert client.get(address).json()["files"] == client.get(f"{address}files/").json()["results"] == []
    assert client.post(f"{address}parts/", {"parts": [part(0, 1)]}).json()["code"] == "upload_not_open"
    assert client.delete(address).status_code == 204
    Upload.objects.update(writable_until=None)
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()
    assert storage_used(namespace_for(ada, None)).reserved == 0


def _tar(content: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, data in content.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("packed", [_tar, zipped])
def test_what_an_archive_holds_is_charged_as_it_is_found(ada, client, limited, packed, monkeypatch):
    monkeypatch.setattr(unpacking, "_FILES_AHEAD", 2)
    monkeypatch.setattr(finishing, "is_quick", lambda upload, lease: True)  # within the request, which says what became
    data = packed({f"f{number}": b"x" for number in range(6)})
    upload = begin(client, {"archive.zip": data})
    send(client, upload, {"archive.zip": data})
    refused = complete(client, upload["id"], unpack=True)
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_full")
    assert _files(ada) == 1
    quota = quota_of(namespace_for(ada, None))
    quota.files = 7
    quota.save()
    assert complete(client, upload["id"], unpack=True).json()["file_count"] == 6
    assert (_files(ada), Upload.objects.get().files_held) == (6, 6)


def test_the_api_shows_and_changes_it_and_leaves_it_where_it_is_not_named(ada, admin, client, limited, signed_in):
    namespace = namespace_for(ada, None)
    address = f"/api/v1/namespaces/{namespace.pk}/quota/"
    _announce(client, 0, 3)
    shown = client.get(address).json()
    assert (shown["hard"]["files"], shown["used"]["files"]) == (5, 3)
    limits = {"cpu": None, "memory": None, "gpus": None, "storage": None, "running_jobs": None}
    everywhere = signed_in(admin)
    assert everywhere.put(address, limits).status_code == 200
    assert client.get(address).json()["hard"]["files"] == 5
    assert everywhere.put(address, limits | {"files": 10}).json()["hard"]["files"] == 10
    assert everywhere.put(address, limits | {"files": -1}).status_code == 400


def test_what_tasks_were_charged_moves_to_what_they_publish(ada, client):
    parts = {}
    for name in ("worker-0", "worker-1"):
        upload = begin(client, {f"{name}/{number}": b"x" for number in range(2)})
        send(client, upload, {f"{name}/{number}": b"x" for number in range(2)})
        assert complete(client, upload["id"]).status_code == 200
        parts[name] = Upload.objects.get(pk=upload["id"])
    assert _files(ada) == 4
    with transaction.atomic():
        made = uploads_join(
            namespace=namespace_for(ada, None), actor=ada, kind=Kind.DATASET, target_id=uuid.uuid4(), uploads=parts,
            left_out={"worker-1/1"}, more=[],
        )  # fmt: skip
    assert (made.files_held, _files(ada)) == (3, 3)
