"""Uploads to a store with a server of its own: small files in one request, nothing read back, and no byte that no quota
counts."""

from __future__ import annotations

import gzip
import io
import tarfile
import uuid
import zipfile
from datetime import timedelta

import pytest
import urllib3
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.namespaces.models import Quota
from apps.namespaces.selectors import namespace_for
from apps.stores import storage
from apps.uploads import announcing, finishing, selectors
from apps.uploads.file_blocks import manifest_of
from apps.uploads.finishing import upload_finish
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.models import State, Upload
from apps.uploads.removal import remove
from apps.uploads.selectors import storage_used
from apps.uploads.services import uploads_sweep
from tests.integration.sending import begin, complete, part, sha256, zipped
from tests.integration.uploads.test_tar_unpack import listed, reviews, tarred
from tests.real.object_stores import S3Server, minio_server
from yardmaster.storage.s3 import S3Storage
from yardmaster_runner.checksums import of_parts

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.django_db]

MIB = 1 << 20
CONTENT = {"small": b"abc", "empty": b"", "large": b"x" * (8 * MIB) + b"tail"}


@pytest.fixture
def client(ada, signed_in, settings, minio_server: S3Server):
    settings.YARDMASTER_STORAGE = minio_server.settings()
    storage().prepare()
    return signed_in(ada)


def _signed(client, upload, content=CONTENT) -> list[dict]:
    wanted = [
        part(file["index"], number, content[file["path"]][(number - 1) * 8 * MIB : number * 8 * MIB])
        for file in upload["files"]
        for number in range(1, file["parts"] + 1)
    ]
    return client.post(f"/api/v1/uploads/{upload['id']}/parts/", {"parts": wanted}).json()["urls"]


def _put(signed: dict, data: bytes) -> int:
    return urllib3.request(signed["method"], signed["url"], body=data, headers=signed["headers"]).status


def _sent(client, content=CONTENT) -> tuple[dict, list[dict]]:
    upload = begin(client, content)
    signed = _signed(client, upload, content)
    for one in signed:
        data = content[upload["files"][one["file"]]["path"]]
        assert _put(one, data[(one["part"] - 1) * 8 * MIB : one["part"] * 8 * MIB]) == 200
    return upload, signed


def test_a_small_file_is_one_request_and_nothing_is_read_back(client, monkeypatch):
    upload, signed = _sent(client)
    addresses = {(one["file"], one["part"]): one["url"] for one in signed}
    assert "uploadId" not in addresses[0, 1]
    assert "uploadId" in addresses[2, 1]
    monkeypatch.setattr(S3Storage, "open_range", lambda *_: pytest.fail("a byte was read back"))
    done = client.get(f"/api/v1/uploads/{upload['id']}/").json()["files"]
    assert [one["done"] for one in done] == [[1], [], [1, 2]]
    assert complete(client, upload["id"]).status_code == 200
    made = client.post("/api/v1/datasets/", {"name": "d", "upload": upload["id"]}).json()
    files = client.get(f"/api/v1/dataset-versions/{made['latest']['id']}/files/").json()["results"]
    large = of_parts([sha256(CONTENT["large"][: 8 * MIB]), sha256(b"tail")])
    assert {one["path"]: one["sha256"] for one in files} == {
        "small": sha256(b"abc"), "empty": sha256(b""), "large": large,
    }  # fmt: skip


def test_the_checksum_of_the_whole_that_was_announced_is_compared(client):
    for declared, status in ((sha256(CONTENT["large"]), 200), (sha256(b"other"), 422)):
        files = [{"path": "large", "size": len(CONTENT["large"]), "sha256": declared}]
        upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files}).json()
        for one in _signed(client, upload):
            assert _put(one, CONTENT["large"][(one["part"] - 1) * 8 * MIB : one["part"] * 8 * MIB]) == 200
        assert complete(client, upload["id"]).status_code == status


def test_an_address_of_a_complete_upload_writes_nothing_else(client):
    upload, signed = _sent(client)
    assert complete(client, upload["id"]).status_code == 200
    assert _put(signed[0], b"xyz") == 400
    assert _put(signed[0], b"abc") == 200, "the same bytes again change nothing"
    assert _put(signed[1], b"x" * (8 * MIB)) == 404


def test_what_a_late_writer_put_in_its_place_is_not_taken_for_the_file(client):
    content = {"small": b"new"}
    upload = begin(client, content)
    [signed] = _signed(client, upload, content)
    key = f"{Upload.objects.get().key_prefix}/small"
    late = storage().object_url(key, size=3, sha256=sha256(b"old"), expires=ADDRESS_LIFE)
    assert _put(vars(late), b"old") == 200
    assert complete(client, upload["id"]).json()["code"] == "parts_missing"
    assert _put(signed, b"new") == 200
    assert complete(client, upload["id"]).status_code == 200
    with storage().open_range(key) as body:
        assert body.read() == b"new"


def test_many_small_files_are_listed_and_not_looked_at_one_by_one(client, monkeypatch):
    content = {f"f{number:02}": b"content of %d" % number for number in range(25)}
    upload, _ = _sent(client, content)
    looked_at: list[str] = []
    look = S3Storage.stat
    monkeypatch.setattr(S3Storage, "stat", lambda self, key: looked_at.append(key) or look(self, key))
    assert complete(client, upload["id"]).status_code == 200
    assert looked_at == []
    made = client.post("/api/v1/datasets/", {"name": "d", "upload": upload["id"]}).json()
    files = client.get(f"/api/v1/dataset-versions/{made['latest']['id']}/files/").json()["results"]
    assert {one["path"]: one["sha256"] for one in files} == {path: sha256(data) for path, data in content.items()}


def test_addresses_of_one_file_all_write_the_same_bytes(client):
    """Nothing closes an address, and a version never changes."""
    upload = begin(client, {"a": b"print(1)", "b": b"print(3)"}, "code")
    wanted = [part(0, 1, b"print(1)"), part(1, 1, b"print(3)")]
    address = f"/api/v1/uploads/{upload['id']}/parts/"
    urls = client.post(address, {"parts": wanted}).json()["urls"]
    refused = client.post(address, {"parts": [part(0, 1, b"print(2)"), wanted[1]]})
    assert (refused.status_code, refused.json()["code"]) == (409, "other_bytes")
    assert [(one["field"], one["value"]) for one in refused.json()["errors"]] == [("files.0", "a")]
    assert sha256(b"print(1)") in refused.json()["errors"][0]["message"]
    assert "start a new one" in refused.json()["remedy"]
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))  # who began to send goes on for long
    assert client.post(address, {"parts": [part(0, 1, b"print(2)")]}).status_code == 409
    again = client.post(address, {"parts": wanted}).json()["urls"]
    assert [_put(urls[0], b"print(1)"), _put(again[0], b"print(1)"), _put(again[1], b"print(3)")] == [200] * 3
    assert complete(client, upload["id"]).status_code == 200


def test_no_address_is_signed_for_other_bytes_than_were_announced(client):
    files = [{"path": "a", "size": 3, "sha256": sha256(b"abc")}]
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files}).json()
    address = f"/api/v1/uploads/{upload['id']}/parts/"
    refused = client.post(address, {"parts": [part(0, 1, b"abd")]})
    assert refused.status_code == 400
    [problem] = refused.json()["errors"]
    assert (problem["field"], problem["code"]) == ("parts.0.sha256", "checksum_mismatch")
    [signed] = client.post(address, {"parts": [part(0, 1, b"abc")]}).json()["urls"]
    assert _put(signed, b"abc") == 200
    assert complete(client, upload["id"]).status_code == 200


def test_no_address_is_given_away_once_the_quota_was_given_back(client, monkeypatch):
    upload = begin(client, {"small": b"abc"})
    signing = S3Storage.object_url

    def discards(self, *arguments, **options):
        assert client.delete(f"/api/v1/uploads/{upload['id']}/").status_code == 204
        return signing(self, *arguments, **options)

    monkeypatch.setattr(S3Storage, "object_url", discards)
    wanted = {"parts": [part(0, 1, b"abc")]}
    assert client.post(f"/api/v1/uploads/{upload['id']}/parts/", wanted).status_code == 404


def test_what_was_discarded_counts_until_nobody_can_write_it_any_more(client, ada):
    namespace = namespace_for(ada, None)
    before = storage_used(namespace)
    upload, signed = _sent(client)
    size = sum(map(len, CONTENT.values()))
    assert client.delete(f"/api/v1/uploads/{upload['id']}/").status_code == 204
    assert client.get(f"/api/v1/uploads/{upload['id']}/").status_code == 404
    row = Upload.objects.get()
    assert _put(signed[0], b"abc") == 200, "S3 has no way to close an address"
    assert (storage_used(namespace).used, storage_used(namespace).reserved) == (before.used, before.reserved + size)
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert not Upload.objects.exists()
    assert list(storage().list_prefix(row.key_prefix)) == []
    assert storage_used(namespace) == before


def test_a_deleted_version_counts_as_long(client, ada):
    namespace = namespace_for(ada, None)
    before = storage_used(namespace)
    upload, _ = _sent(client)
    complete(client, upload["id"])
    [row] = Upload.objects.all()
    assert row.writable_until <= timezone.now() + ADDRESS_LIFE
    client.delete(f"/api/v1/uploads/{upload['id']}/")
    row.refresh_from_db()
    assert (row.state, row.held) == (State.DELETING, sum(map(len, CONTENT.values())))
    remove(row.pk)
    Upload.objects.update(writable_until=None)
    remove(row.pk)
    remove(row.pk)
    assert storage_used(namespace) == before


def test_a_large_upload_is_compared_with_the_listing_as_it_goes(client, monkeypatch):
    for module in (announcing, finishing, selectors):
        monkeypatch.setattr(module, "FILES_AT_ONCE", 10)
    content = {path: path.encode() for path in sorted(f"{number}{sign}x" for number in range(10) for sign in "-/0é")}
    files = [{"path": path, "size": len(data)} for path, data in content.items()]
    upload = client.post("/api/v1/uploads/", {"kind": "dataset", "files": files[:10]}).json()
    for start in (10, 20, 30):
        body = {"after": start, "files": files[start : start + 10]}
        assert client.post(f"/api/v1/uploads/{upload['id']}/files/", body).status_code == 200
    wanted = [part(index, 1, data) for index, data in enumerate(content.values())]
    for one in client.post(f"/api/v1/uploads/{upload['id']}/parts/", {"parts": wanted[:-1]}).json()["urls"]:
        assert _put(one, files[one["file"]]["path"].encode()) == 200
    page = client.get(f"/api/v1/uploads/{upload['id']}/files/?first=25").json()
    assert [one["done"] for one in page["results"]] == [[1]] * 14 + [[]]
    assert complete(client, upload["id"]).json()["code"] == "parts_missing"
    [signed] = client.post(f"/api/v1/uploads/{upload['id']}/parts/", {"parts": wanted[-1:]}).json()["urls"]
    assert _put(signed, list(content.values())[-1]) == 200
    monkeypatch.setattr(S3Storage, "stat", lambda *_: pytest.fail("an object was looked at by itself"))
    assert complete(client, upload["id"]).status_code == 200
    assert [(one.path, one.sha256) for one in manifest_of(upload["id"])] == [
        (path, sha256(data)) for path, data in content.items()
    ]


def test_a_tar_is_unpacked_into_the_store(client):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in CONTENT.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    upload, _ = _sent(client, {"data.tar.gz": out.getvalue()})
    assert complete(client, upload["id"], unpack=True).status_code == 202
    assert upload_finish(uuid.UUID(upload["id"]))
    found = Upload.objects.get(pk=upload["id"])
    assert (found.state, found.file_count) == (State.COMPLETE, 3)
    for path, data in CONTENT.items():
        with storage().open_range(f"{found.key_prefix}/{path}") as stream:
            assert stream.read(len(data) + 1) == data
    assert len(list(storage().list_prefix(found.key_prefix))) == 3


def test_more_reviews_than_a_block_of_the_list_are_unpacked_and_read_back_from_the_store(client):
    content = reviews(1_200)  # 50,000 would take 170 s of processor time, most of it MinIO's; a folder has them
    upload, _ = _sent(client, {"reviews.tar.gz": tarred(content)})
    assert complete(client, upload["id"], unpack=True).status_code == 202
    assert upload_finish(uuid.UUID(upload["id"]))
    assert [(one["path"], one["sha256"]) for one in listed(client, upload["id"])] == [
        (path, sha256(data)) for path, data in sorted(content.items())
    ]
    prefix = Upload.objects.get(pk=upload["id"]).key_prefix
    assert {one.key.removeprefix(f"{prefix}/") for one in storage().list_prefix(prefix)} == content.keys()
    for path, data in content.items():
        with storage().open_range(f"{prefix}/{path}") as stream:
            assert stream.read() == data


def test_an_encoding_that_a_sender_names_is_not_undone_when_the_file_is_read(client):
    """Its header need not be signed. Undone twice, 8 MiB would be read as terabytes."""
    data = gzip.compress(gzip.compress(b"x" * MIB))
    upload = begin(client, {"f": data})
    [signed] = _signed(client, upload, {"f": data})
    signed["headers"]["Content-Encoding"] = "gzip, gzip"
    assert _put(signed, data) == 200
    assert complete(client, upload["id"]).status_code == 200
    with storage().open_range(f"{Upload.objects.get().key_prefix}/f") as stream:
        assert stream.read(len(data) + 1) == data


def test_a_late_archive_takes_the_place_of_no_file_that_was_in_it_and_goes(client, ada):
    """Its address outlives the archive."""
    data = zipped({"data.zip": b"a file of this name", "b": b"abc"})
    upload, [signed] = _sent(client, {"data.zip": data})
    place = Upload.objects.get().key_prefix
    assert complete(client, upload["id"], unpack=True).status_code == 200
    made = client.post("/api/v1/datasets/", {"name": "d", "upload": upload["id"]}).json()
    assert _put(signed, data) == 200, "S3 has no way to close an address"
    version = DatasetVersion.objects.get(pk=made["latest"]["id"])
    with storage().open_range(f"{version.key_prefix}/data.zip") as body:
        assert body.read() == b"a file of this name"
    assert len(list(storage().list_prefix(version.key_prefix))) == 2
    used = storage_used(namespace_for(ada, None))
    kept = len(b"a file of this name") + 3
    assert (used.used, used.reserved) == (kept, len(data)), "what may lie there is charged"
    Upload.objects.update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert list(storage().list_prefix(place)) == []
    assert len(list(storage().list_prefix(version.key_prefix))) == 2
    used = storage_used(namespace_for(ada, None))
    assert (used.used, used.reserved) == (kept, 0)


def test_a_refused_archive_reserves_no_more_than_its_own_size(client, ada):
    data = bytearray(zipped({"large": b"x" * MIB}))
    data[data.index(b"large") + 12] ^= 0xFF
    upload, _ = _sent(client, {"data.zip": bytes(data)})
    assert complete(client, upload["id"], unpack=True).status_code == 422
    assert storage_used(namespace_for(ada, None)).reserved == len(data)


def test_archives_that_may_come_again_leave_no_more_than_the_quota(client, ada):
    """Each holds a few bytes, and could be sent again after it was extracted."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("few", b"a")
        archive.comment = b"c" * 60_000
    data = out.getvalue()
    Quota.objects.update_or_create(namespace=namespace_for(ada, None), defaults={"storage": len(data) * 3 // 2})
    upload, _ = _sent(client, {"data.zip": data})
    assert complete(client, upload["id"], unpack=True).status_code == 200
    body = {"kind": "dataset", "files": [{"path": "data.zip", "size": len(data)}]}
    assert client.post("/api/v1/uploads/", body).json()["code"] == "quota_full"
    Upload.objects.filter(state=State.DELETING).update(writable_until=timezone.now() - timedelta(seconds=1))
    uploads_sweep(timezone.now())
    assert client.post("/api/v1/uploads/", body).status_code == 201
