"""Objects on an S3 server: MinIO, or any other. Browsers, the command line and tasks send to it and read from it
directly, with presigned addresses; their bytes never pass through the portal.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import BinaryIO, cast
from urllib.parse import quote

from minio.commonconfig import CopySource
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from yardmaster.errors import Unavailable
from yardmaster.ids import NAMESPACES
from yardmaster.storage.base import (
    MAX_PARTS,
    Audience,
    ByteStream,
    ObjectMissing,
    ObjectStat,
    Part,
    PartsRefused,
    Readable,
    SignedRequest,
    StorageError,
    UploadMissing,
    check_numbers,
    key_segments,
)
from yardmaster.storage.s3_client import (
    CHECKSUM,
    Endpoint,
    S3Client,
    checksum_read,
    checksum_written,
    errors_translated,
)
from yardmaster.storage.s3_signing import Call, Credentials, presigned_url

_STREAM_PART = 16 << 20
"""Bytes of memory for what is written without a known length; an object of up to 10,000 of these."""
_COPIED_AT_ONCE = 512 << 20
"""Bytes that a server copies in one request. S3 allows 5 GiB, which takes longer than an answer is waited for."""
_BEYOND = "InvalidRange"
_LONGEST_BUCKET = 26
"""With a hyphen and an id behind it, the 63 characters that S3 allows."""
_WITH_CHECKSUM: dict[str, str | list[str] | tuple[str]] = {"x-amz-checksum-mode": "ENABLED"}


class S3Storage:
    """`Storage` in one bucket, below `prefix` where one is given; or, with `bucket_per_namespace`, the folder of each
    namespace (`ids.folder_of`) in a bucket of its own, `<bucket>-<id>`.

    `endpoint` is the server as the portal sees it; `public_endpoint` as browsers and the command line do, and
    `task_endpoint` as tasks do, where those differ. `prepare` makes the buckets. `is_foreign`: the bucket is not the
    portal's, which only reads there.
    """

    def __init__(
        self,
        endpoint: str,
        bucket: str,
        access_key: str,
        secret_key: str,
        *,
        region: str = "us-east-1",
        prefix: str = "",
        bucket_per_namespace: bool = False,
        public_endpoint: str = "",
        task_endpoint: str = "",
        is_foreign: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        if not (access_key and secret_key):
            raise ValueError("an S3 server needs an access key and a secret key")
        if prefix:
            key_segments(prefix)
        if bucket_per_namespace and (prefix or len(bucket) > _LONGEST_BUCKET):
            raise ValueError(
                f"with a bucket per namespace there is no prefix, and the bucket's name has at most {_LONGEST_BUCKET} "
                "characters: those of namespaces have an id behind it"
            )
        self._credentials = Credentials(access_key, secret_key, region)
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._bucket_per_namespace = bucket_per_namespace
        self._ready: set[str] = set()
        self._client = S3Client(Endpoint(endpoint), self._credentials, is_foreign=is_foreign)
        self._objects = self._client.objects
        self._seen_from = {
            Audience.PEOPLE: Endpoint(public_endpoint or endpoint).origin,
            Audience.TASKS: Endpoint(task_endpoint or endpoint).origin,
        }
        self._clock = clock

    def origin(self, audience: Audience) -> str:
        return self._seen_from[audience]

    @property
    def is_near(self) -> bool:
        return False

    def served(self) -> None:
        return None

    def prepare(self, prefix: str = "") -> None:
        bucket = self._place(prefix)[0] if prefix else self._bucket
        if bucket in self._ready:
            return
        with errors_translated("Making a bucket"):
            try:
                if not self._objects.bucket_exists(bucket):
                    self._objects.make_bucket(bucket)
            except S3Error as error:
                if error.code not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):  # another process was faster
                    raise
        self._ready.add(bucket)

    # --- Objects ---------------------------------------------------------------------------------------------------

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        with errors_translated("Writing an object"):
            if isinstance(data, bytes):
                self._objects.put_object(*self._place(key), io.BytesIO(data), len(data))
            else:
                self._objects.put_object(*self._place(key), cast(BinaryIO, data), -1, part_size=_STREAM_PART)
        return self.stat(key)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        if start < 0 or (length is not None and length < 0):
            raise ValueError("a range begins at 0 or later and has 0 or more bytes")
        if length == 0:
            self.stat(key)
            return io.BytesIO()
        try:
            with errors_translated("Opening an object"):
                return _Body(self._objects.get_object(*self._place(key), start, length or 0))
        except Unavailable as error:
            if isinstance(cause := error.__cause__, S3Error) and cause.code == _BEYOND:
                return io.BytesIO()
            raise

    def stat(self, key: str) -> ObjectStat:
        with errors_translated("Looking at an object"):
            found = self._objects.stat_object(*self._place(key), extra_headers=_WITH_CHECKSUM)
            headers = found.metadata or {}
            return ObjectStat(
                key, found.size or 0, found.etag or "", _whole_seconds(found.last_modified),
                checksum_read(headers.get(CHECKSUM, "")),
            )  # fmt: skip

    def copy(self, source: str, target: str) -> ObjectStat:
        size = self.stat(source).size
        if size > _COPIED_AT_ONCE:
            self._copy_in_parts(self._place(source), self._place(target), size)
        else:
            with errors_translated("Copying an object"):
                self._objects.copy_object(*self._place(target), CopySource(*self._place(source)))
        return self.stat(target)

    def _copy_in_parts(self, source: tuple[str, str], target: tuple[str, str], size: int) -> None:
        upload_id = self._client.begin(*target, is_copy=True)
        begins = range(0, size, max(_COPIED_AT_ONCE, -(-size // MAX_PARTS)))
        try:
            parts = [
                self._client.copy_part(source, target, upload_id, number, begin, min(begin + begins.step, size))
                for number, begin in enumerate(begins, 1)
            ]
            self._client.complete(*target, upload_id, parts)
        except (Unavailable, StorageError):
            with contextlib.suppress(Unavailable):  # what is left of it `clean_up` finds
                self._client.abort(*target, upload_id)
            raise

    def move(self, source: str, target: str) -> ObjectStat:
        try:
            moved = self.copy(source, target)
        except ObjectMissing:
            return self.stat(target)
        self.delete(source)
        return moved

    def delete(self, key: str) -> None:
        with errors_translated("Deleting an object"):
            self._objects.remove_object(*self._place(key))

    def delete_prefix(self, prefix: str) -> None:
        bucket, folder = self._folder(prefix)
        with errors_translated("Deleting a folder"), _nothing_without_bucket():
            names = (DeleteObject(self._place(found.key)[1]) for found in self.list_prefix(prefix))
            for error in self._objects.remove_objects(bucket, names):
                raise Unavailable(f"Deleting a folder: the object store answered {error.code}: {error.message}")
            if not folder:  # the whole of a namespace
                self._ready.discard(bucket)
                self._objects.remove_bucket(bucket)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        bucket, folder = self._folder(prefix)
        before = self._place(first)[1][:-1] if first else None
        with errors_translated("Listing a folder"), _nothing_without_bucket():
            for one in self._objects.list_objects(bucket, prefix=folder, recursive=True, start_after=before):
                key = f"{prefix}/{(one.object_name or '')[len(folder) :]}"
                if key < first:
                    continue
                yield ObjectStat(key, one.size or 0, one.etag or "", _whole_seconds(one.last_modified))

    def everything(self, after: str = "") -> Iterator[ObjectStat]:
        """All objects of the bucket, or below the prefix, behind this key, in the order of their keys; page by page.
        Also the empty objects that some tools make for folders, whose keys are empty or end with a slash."""
        is_cut = True
        while is_cut:
            page, is_cut = self._client.page(self._bucket, self._prefix, self._prefix + after if after else "")
            for one in page:
                yield replace(one, key=one.key[len(self._prefix) :])
            after = page[-1].key[len(self._prefix) :] if page else ""

    # --- Uploads in parts ------------------------------------------------------------------------------------------

    def multipart_begin(self, key: str, part_size: int) -> str:
        return self._client.begin(*self._place(key))

    def part_url(
        self,
        key: str,
        upload_id: str,
        part: int,
        *,
        size: int,
        sha256: str,
        expires: timedelta,
        audience: Audience = Audience.PEOPLE,
    ) -> SignedRequest:
        query = {"partNumber": str(part), "uploadId": upload_id}
        return self._signed("PUT", key, query, _content(size, sha256), expires, audience)

    def object_url(
        self, key: str, *, size: int, sha256: str, expires: timedelta, audience: Audience = Audience.PEOPLE
    ) -> SignedRequest:
        return self._signed("PUT", key, {}, _content(size, sha256), expires, audience)

    def parts(self, key: str, upload_id: str) -> list[Part]:
        return self._client.parts(*self._place(key), upload_id)

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        place = self._place(key)
        try:
            try:
                check_numbers(parts)
                self._client.complete(*place, upload_id, parts)
            except PartsRefused:
                self._client.parts(*place, upload_id)  # some servers say so of an upload that is not there
                raise
        except UploadMissing:
            if self._size(key) != sum(part.size for part in parts):
                raise
        return self.stat(key)

    def multipart_abort(self, key: str, upload_id: str) -> None:
        try:
            self._client.abort(*self._place(key), upload_id)
        except UploadMissing:
            return

    def clean_up(self, older_than: timedelta) -> None:
        before = self._clock() - older_than
        for name, upload_id, begun in list(self._client.uploads(self._bucket, self._prefix)):
            if begun < before:
                self._client.abort(self._bucket, name, upload_id)

    # --- Addresses -------------------------------------------------------------------------------------------------

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        name = filename or key.rpartition("/")[2]
        query = {
            "response-content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
            "response-content-type": content_type or "application/octet-stream",
        }
        return self._signed("GET", key, query, {}, expires, audience).url

    # ---------------------------------------------------------------------------------------------------------------

    def _place(self, key: str) -> tuple[str, str]:
        """The bucket of a key, and its name there."""
        segments = key_segments(key)
        if self._bucket_per_namespace and segments[0] == NAMESPACES and len(segments) > 1:
            return f"{self._bucket}-{segments[1]}", "/".join(segments[2:])
        return self._bucket, self._prefix + key

    def _folder(self, prefix: str) -> tuple[str, str]:
        """The bucket of a folder, and how the names there begin; empty: all of them."""
        bucket, name = self._place(prefix)
        return bucket, f"{name}/" if name else ""

    def _size(self, key: str) -> int | None:
        try:
            return self.stat(key).size
        except ObjectMissing:
            return None

    def _signed(
        self,
        method: str,
        key: str,
        query: dict[str, str],
        headers: dict[str, str],
        expires: timedelta,
        audience: Audience,
    ) -> SignedRequest:
        call = Call(method, *self._place(key), query, headers)
        url = presigned_url(self._seen_from[audience], call, self._credentials, expires, self._clock())
        sent = {name: value for name, value in headers.items() if name != "Content-Length"}  # which every client sends
        return SignedRequest(method, url, sent)


@contextlib.contextmanager
def _nothing_without_bucket() -> Iterator[None]:
    """What is not there holds nothing."""
    try:
        yield
    except S3Error as error:
        if error.code != "NoSuchBucket":
            raise


class _Body:
    """The bytes of an object as they lie there, whatever its sender said of their encoding; a connection that is
    interrupted is `Unavailable`, never a short object."""

    def __init__(self, answer: BaseHTTPResponse) -> None:
        self._answer = answer

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._answer.read(None if size < 0 else size, decode_content=False)
        except (HTTPError, OSError) as error:
            raise Unavailable(f"Reading an object: the object store interrupted it: {type(error).__name__}.") from error

    def close(self) -> None:
        self._answer.close()
        self._answer.release_conn()

    def __enter__(self) -> _Body:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _content(size: int, sha256: str) -> dict[str, str]:
    """The headers that bind an address to its content."""
    return {"Content-Length": str(size), CHECKSUM: checksum_written(sha256)}


def _whole_seconds(moment: datetime | None) -> datetime:
    """Heads have whole seconds, listings have parts of them."""
    return (moment or datetime.fromtimestamp(0, UTC)).replace(microsecond=0)
