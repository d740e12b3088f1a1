"""A portal that moves from a folder to an S3 server: all is copied and compared, and what is damaged is named."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apps.stores import storage, store_named
from apps.uploads.models import Upload
from tests.integration.sending import begin, uploaded
from tests.real.object_stores import S3Server, minio_server
from yardmaster.storage.base import ObjectStat

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
