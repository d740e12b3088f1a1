"""Reading the objects of registered buckets, with the keys in their secrets. Keys of the portal's own store that begin
with `buckets/` lead here: `buckets/<bucket id>/<version id>/<path>`.

Nothing is written or deleted there (`yardmaster.storage.mounted`). Where an endpoint may be is decided at the
registration (`endpoints`) and again by each connection (`yardmaster.storage.s3_guard`).
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import cast

from apps.buckets.models import Bucket
from apps.errors import NotFound
from apps.secrets.delivery import opened
from apps.secrets.values import keys_of
from yardmaster.storage.base import ObjectMissing, Storage
from yardmaster.storage.s3 import S3Storage

PREFIX = "buckets/"
REMEMBERED = 2.0
"""Seconds for which a bucket's keys are kept in this process: a thousand addresses are signed at once. Who replaces
keys revokes the earlier ones, which should sign nothing any more."""
MOST_REMEMBERED = 200
"""Buckets. Each keeps connections of its own."""

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
        if len(_known) >= MOST_REMEMBERED:
            _known.clear()
        _known[bucket_id] = now, store
    return store


def place_of(key: str) -> tuple[Storage, str]:
    """Where the object with a key that begins with `PREFIX` lies: its bucket, and its key there. Raises
    `ObjectMissing` where that is no longer registered, and as `store_of`."""
    bucket_id, _, rest = key.removeprefix(PREFIX).partition("/")
    return cast(Storage, _store(uuid.UUID(bucket_id))), rest.partition("/")[2]
