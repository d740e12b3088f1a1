"""Reading the objects of registered buckets, with the keys in their secrets. Keys of the portal's own store that begin
with `buckets/` lead here: `buckets/<bucket id>/<version id>/<path>`.

Nothing is written or deleted there. Where an endpoint may be is decided at the registration (`endpoints`) and again by
each connection (`yardmaster.storage.s3_guard`).
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

from apps.buckets.models import Bucket
from apps.errors import NotFound
from apps.secrets.delivery import opened
from apps.secrets.values import keys_of
from yardmaster.storage.base import Audience, ByteStream, ObjectMissing, ObjectStat, Storage
from yardmaster.storage.s3 import S3Storage

PREFIX = "buckets/"
REMEMBERED = 2.0
"""Seconds for which a bucket's keys are kept in this process: a thousand addresses are signed at once. Who replaces
keys revokes the earlier ones, which should sign nothing any more."""

_lock = threading.Lock()
_known: dict[uuid.UUID, tuple[float, S3Storage]] = {}


def key_prefix_of(bucket_id: uuid.UUID, version_id: uuid.UUID) -> str:
    """Where the files of a version in this bucket seem to lie."""
    return f"{PREFIX}{bucket_id}/{version_id}"


def store_of(bucket: Bucket) -> S3Storage:
    """The bucket, with the keys of its secret. Raises `NotFound` where that was deleted, `CannotOpen`."""
    if bucket.secret is None:
        raise NotFound(
            f"The credentials of {bucket.address} were deleted.",
            "secret_missing",
            remedy=f"Scan it again with others: on the page Registered buckets, or with `yardmaster datasets rescan "
            f"{bucket.name} --secret NAME`.",
        )
    access_key, secret_key = keys_of(opened(bucket.secret))
    return S3Storage(
        bucket.endpoint, bucket.bucket, access_key, secret_key, region=bucket.region, prefix=bucket.prefix,
        is_foreign=True,
    )  # fmt: skip


def forget_all() -> None:
    """Forget keys that are kept (for tests, and after a secret was replaced in this process)."""
    with _lock:
        _known.clear()


def _store(bucket_id: uuid.UUID) -> S3Storage:
    now = time.monotonic()
    with _lock:
        kept = _known.get(bucket_id)
    if kept is not None and now - kept[0] < REMEMBERED:
        return kept[1]
    bucket = Bucket.objects.select_related("secret").filter(pk=bucket_id).first()
    if bucket is None:
        raise ObjectMissing("The bucket of this file is no longer registered.")
    store = store_of(bucket)
    with _lock:
        _known[bucket_id] = now, store
    return store


class WithBuckets:
    """The portal's own store, in which registered buckets can be read, too."""

    def __init__(self, own: Storage) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        store, name = self._place(key)
        return store.open_range(name, start, length)

    def stat(self, key: str) -> ObjectStat:
        store, name = self._place(key)
        return store.stat(name)

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        store, name = self._place(key)
        return store.read_url(name, expires, filename=filename, content_type=content_type, audience=audience)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        return iter(()) if prefix.startswith(PREFIX) else self._own.list_prefix(prefix, first)

    def delete(self, key: str) -> None:
        if not key.startswith(PREFIX):
            self._own.delete(key)

    def delete_prefix(self, prefix: str) -> None:
        """What is in a registered bucket belongs to others and stays."""
        if not prefix.startswith(PREFIX):
            self._own.delete_prefix(prefix)

    def _place(self, key: str) -> tuple[Storage, str]:
        if not key.startswith(PREFIX):
            return self._own, key
        bucket_id, _, rest = key.removeprefix(PREFIX).partition("/")
        return cast(Storage, _store(uuid.UUID(bucket_id))), rest.partition("/")[2]
