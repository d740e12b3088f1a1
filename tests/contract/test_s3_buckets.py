"""A bucket for each namespace: the same keys, in buckets that come with the first upload and go with the namespace."""

from __future__ import annotations

import hashlib
import uuid
from datetime import timedelta

import pytest
import urllib3

from tests.real.object_stores import S3Server, minio_server, versitygw_server
from yardmaster.errors import Unavailable
from yardmaster.ids import folder_of
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server", "versitygw_server"]
pytestmark = pytest.mark.s3


@pytest.fixture(params=["minio", "versitygw"])
def store(request) -> S3Storage:
    server: S3Server = request.getfixturevalue(f"{request.param}_server")
    options = server.options() | {"bucket": f"b{uuid.uuid4().hex[:12]}", "prefix": "", "bucket_per_namespace": True}
    made = S3Storage(**options)  # type: ignore[arg-type]
    made.prepare()
    return made


def _buckets(store: S3Storage) -> set[str]:
    mine = store._bucket
    return {one.name.removeprefix(mine) for one in store._objects.list_buckets() if one.name.startswith(mine)}


def _content(store: S3Storage, key: str) -> bytes:
    with store.open_range(key) as body:
        return body.read()


def test_each_namespace_has_a_bucket_from_its_first_upload_until_it_goes(store):
    one, two = uuid.uuid4(), uuid.uuid4()
    for namespace in (one, two, one):
        store.prepare(f"{folder_of(namespace)}/datasets/x")
        store.put(f"{folder_of(namespace)}/datasets/x/f", str(namespace).encode())
    store.put("uploads/1/f", b"elsewhere")
    assert _buckets(store) == {"", f"-{one}", f"-{two}"}
    assert [found.key for found in store.list_prefix(folder_of(one))] == [f"{folder_of(one)}/datasets/x/f"]
    assert [found.key for found in store.list_prefix(f"{folder_of(one)}/datasets")] == [
        f"{folder_of(one)}/datasets/x/f"
    ]
    store.delete_prefix(folder_of(one))
    store.delete_prefix(folder_of(one))
    assert _buckets(store) == {"", f"-{two}"}
    assert list(store.list_prefix(f"{folder_of(one)}/datasets")) == []
    with pytest.raises(ObjectMissing):
        store.stat(f"{folder_of(one)}/datasets/x/f")
    assert _content(store, f"{folder_of(two)}/datasets/x/f") == str(two).encode()
    store.prepare(f"{folder_of(one)}/datasets/x")
    assert f"-{one}" in _buckets(store)


def test_an_object_moves_from_one_bucket_to_another(store):
    namespace = folder_of(uuid.uuid4())
    store.prepare(f"{namespace}/d")
    store.put(f"{namespace}/d/a.zip", b"zip")
    assert store.move(f"{namespace}/d/a.zip", "uploads/1/archive.zip").size == 3
    assert _content(store, "uploads/1/archive.zip") == b"zip"


def test_parts_and_whole_objects_go_into_the_bucket(store):
    key = f"{folder_of(uuid.uuid4())}/d/f"
    store.prepare(key)
    sha256, quarter = hashlib.sha256(b"abc").hexdigest(), timedelta(minutes=15)
    upload_id = store.multipart_begin(key, 5 << 20)
    for signed in (
        store.part_url(key, upload_id, 1, size=3, sha256=sha256, expires=quarter),
        store.object_url(f"{key}2", size=3, sha256=sha256, expires=quarter),
    ):
        assert urllib3.request("PUT", signed.url, body=b"abc", headers=dict(signed.headers)).status == 200
    store.multipart_complete(key, upload_id, store.parts(key, upload_id))
    assert _content(store, key) == _content(store, f"{key}2") == b"abc"
    assert urllib3.request("GET", store.read_url(key, quarter)).data == b"abc"


def test_without_its_bucket_nothing_can_be_written_and_the_message_says_so(store):
    with pytest.raises(Unavailable, match="does not have the portal's bucket"):
        store.put(f"{folder_of(uuid.uuid4())}/d/f", b"x")


@pytest.mark.parametrize("change", [{"prefix": "p"}, {"bucket": "b" * 27}])
def test_what_does_not_go_with_a_bucket_per_namespace_is_refused(change):
    options = {"endpoint": "http://127.0.0.1:1", "bucket": "b", "access_key": "a", "secret_key": "s"}
    with pytest.raises(ValueError, match="bucket per namespace"):
        S3Storage(**(options | {"bucket_per_namespace": True} | change))
