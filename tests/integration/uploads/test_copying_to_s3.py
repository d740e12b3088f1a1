"""A portal that moves from a folder to an S3 server: all is copied and compared, and what is damaged is named."""

from __future__ import annotations

import io
import json
import uuid

import pytest
from django.core.management import CommandError, call_command

from apps.buckets import access
from apps.datasets.models import DatasetVersion
from apps.datasets.scanning import bucket_scan
from apps.namespaces.models import Namespace
from apps.secrets.models import Kind
from apps.secrets.services import secret_set
from apps.stores import storage, store_named
from apps.uploads.models import State, Upload
from tests.integration.sending import begin, uploaded
from tests.real.object_stores import KEYS, S3Server, minio_server
from yardmaster.ids import folder_of
from yardmaster.storage.base import ObjectStat
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server"]
pytestmark = [pytest.mark.s3, pytest.mark.django_db]


@pytest.fixture
def both(settings, minio_server: S3Server) -> None:
    settings.YARDMASTER_STORES = {"folder": settings.YARDMASTER_STORAGE, "s3": minio_server.settings()}


@pytest.fixture
def client(ada, signed_in):
    return signed_in(ada)


def moved(upload: Upload) -> list[ObjectStat]:
    """What lies at the new place of this upload."""
    return list(store_named("s3").list_prefix(upload.key_prefix))


def content(key: str) -> bytes:
    with store_named("s3").open_range(key) as body:
        return body.read()


def _copy() -> str:
    out = io.StringIO()
    call_command("copy_objects", "--from", "folder", "--to", "s3", stdout=out, stderr=out)
    return out.getvalue()


CONTENT = {"a/b.bin": b"x" * (9 << 20), "größe 1+2.txt": b"text", "empty": b""}
OF_BOB = {"b": b"of another namespace"}


def test_everything_is_there_and_read_back_whole(both, client):
    ids = [uploaded(client, CONTENT), uploaded(client, {"train.py": b"print(1)\n"}, "code")]
    begin(client, {"under way": b"abc"})
    assert "4 objects" in _copy()
    for upload in Upload.objects.filter(pk__in=ids):
        expected = CONTENT if upload.kind == "dataset" else {"train.py": b"print(1)\n"}
        found = {one.key.removeprefix(upload.key_prefix + "/"): one.key for one in moved(upload)}
        assert {path: content(key) for path, key in found.items()} == expected
    assert "4 objects" in _copy(), "repeated, it compares and changes nothing"


def test_what_is_damaged_or_missing_is_named_and_the_rest_is_copied(both, client):
    upload = Upload.objects.get(pk=uploaded(client, {"good": b"1", "bad": b"2", "gone": b"3"}))
    storage().put(f"{upload.key_prefix}/bad", b"other")
    storage().delete(f"{upload.key_prefix}/gone")
    out = io.StringIO()
    with pytest.raises(CommandError, match="2 of 3 objects were not copied"):
        call_command("copy_objects", "--from", "folder", "--to", "s3", stdout=out, stderr=out)
    assert "bad is damaged" in out.getvalue()
    assert "gone is missing" in out.getvalue()
    assert [one.key for one in moved(upload)] == [f"{upload.key_prefix}/good"]


def test_an_object_that_was_changed_on_the_way_is_sent_again_by_the_next_try(both, client):
    upload = Upload.objects.get(pk=uploaded(client, {"a": b"right"}))
    _copy()
    store_named("s3").put(f"{upload.key_prefix}/a", b"wrong")
    with pytest.raises(CommandError, match="1 of 1 objects"):
        _copy()
    _copy()
    assert content(f"{upload.key_prefix}/a") == b"right"


def test_from_one_to_itself_is_refused(both):
    with pytest.raises(CommandError, match="both s3"):
        call_command("copy_objects", "--from", "s3", "--to", "s3")


@pytest.fixture
def registered(both, settings, ada, client, minio_server: S3Server) -> DatasetVersion:
    """A dataset whose files are two objects in a bucket of others."""
    settings.YARDMASTER_BUCKET_ENDPOINTS = [minio_server.url]
    access.forget_all()
    theirs = S3Storage(minio_server.url, f"theirs-{uuid.uuid4().hex[:8]}", *KEYS)
    theirs.prepare()
    for path in ("data/a.txt", "data/b.txt"):
        theirs.put(path, path.encode())
    keys = json.dumps(dict(zip(("access_key", "secret_key"), KEYS, strict=True)))
    secret_set(namespace=Namespace.objects.get(owner=ada), name="KEYS", value=keys, actor=ada, kind=Kind.S3)
    body = {"name": "theirs", "bucket": theirs._bucket, "prefix": "data", "secret": "KEYS"}
    answer = client.post("/api/v1/buckets/", body)
    assert answer.status_code == 202, answer.json()
    bucket_scan(uuid.UUID(answer.json()["id"]))
    return DatasetVersion.objects.get()


def test_a_registered_bucket_is_not_copied_and_its_dataset_is_read_as_before(registered, client, settings):
    uploaded(client, {"mine": b"1"})
    assert Upload.objects.filter(state=State.COMPLETE).count() == 2
    assert "1 objects" in _copy()
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORES["s3"]
    with storage().open_range(f"{registered.key_prefix}/a.txt") as body:
        assert body.read() == b"data/a.txt"


def test_each_namespace_has_its_bucket_where_the_server_has_one_per_namespace(both, settings, client, signed_in, bob):
    name = f"b{uuid.uuid4().hex[:12]}"
    store = settings.YARDMASTER_STORES["s3"]
    options = store["options"] | {"bucket": name, "prefix": "", "bucket_per_namespace": True}
    settings.YARDMASTER_STORES = settings.YARDMASTER_STORES | {"s3": store | {"options": options}}
    sent = [uploaded(client, CONTENT), uploaded(signed_in(bob), OF_BOB)]
    assert "4 objects" in _copy()
    assert "4 objects" in _copy(), "repeated, it compares and changes nothing"
    for upload, content_sent in zip(Upload.objects.filter(pk__in=sent).order_by("pk"), (CONTENT, OF_BOB), strict=True):
        bucket = S3Storage(**options | {"bucket": f"{name}-{upload.namespace_id}", "bucket_per_namespace": False})
        folder = upload.key_prefix.removeprefix(f"{folder_of(upload.namespace_id)}/")
        found = {one.key.removeprefix(f"{folder}/"): one.key for one in bucket.everything()}
        assert found.keys() == content_sent.keys()
        assert {path: content(f"{upload.key_prefix}/{path}") for path in found} == content_sent


def test_of_many_problems_the_first_are_named_and_all_are_counted(both, client):
    upload = Upload.objects.get(pk=uploaded(client, {f"{number:02}": b"x" for number in range(25)}))
    storage().delete_prefix(upload.key_prefix)
    out = io.StringIO()
    with pytest.raises(CommandError, match="25 of 25 objects were not copied"):
        call_command("copy_objects", "--from", "folder", "--to", "s3", stdout=out, stderr=out)
    assert out.getvalue().count("is missing") == 20
    assert "5 more" in out.getvalue()
