"""Objects larger than one request copies: put together of copied parts, on real servers."""

from __future__ import annotations

import uuid

import pytest

from tests.real.object_stores import KEYS, minio_server, versitygw_server
from yardmaster.errors import Unavailable
from yardmaster.storage import s3
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.s3 import S3Storage

__all__ = ["minio_server", "versitygw_server"]
pytestmark = pytest.mark.s3
MIB = 1 << 20
CONTENT = bytes(range(256)) * (4096 * 12) + b"the end"


@pytest.fixture(params=["minio_server", "versitygw_server"])
def store(request, monkeypatch) -> S3Storage:
    monkeypatch.setattr(s3, "_COPIED_AT_ONCE", 5 * MIB)
    server = request.getfixturevalue(request.param)
    made = S3Storage(server.url, f"copies-{uuid.uuid4().hex[:8]}", *KEYS)
    made.prepare()
    return made


def test_a_large_object_is_copied_whole_over_an_older_one(store):
    store.put("from/ä b+c", CONTENT)
    store.put("to/it", b"older")
    copied = store.copy("from/ä b+c", "to/it")
    assert copied.size == len(CONTENT)
    with store.open_range("to/it") as body:
        assert body.read() == CONTENT
    assert store.move("to/it", "to/elsewhere").size == len(CONTENT)


def test_a_copy_that_fails_half_way_leaves_the_older_object_and_no_parts(store, monkeypatch):
    store.put("large", CONTENT)
    store.put("target", b"older")
    begun, copy_part = [], store._client.copy_part

    def fails_second(*arguments):
        begun.append(arguments[2])
        if len(begun) == 2:
            raise Unavailable("The object store does not answer.")
        return copy_part(*arguments)

    monkeypatch.setattr(store._client, "copy_part", fails_second)
    with pytest.raises(Unavailable):
        store.copy("large", "target")
    assert store.stat("target").size == 5
    assert list(store._client.uploads(store._bucket, "target")) == []
    with pytest.raises(ObjectMissing):
        store.copy("nothing", "target")
