"""How the portal speaks to an S3 server: `minio` for objects, a few calls of its own for uploads in parts (which
`minio` keeps to itself), and what each failure means.

The one module that imports `minio`. Not here: the contract (`s3`), and addresses for others (`s3_signing`).
"""

from __future__ import annotations

import contextlib
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import urllib3
from minio import Minio
from minio.error import InvalidResponseError, MinioException, S3Error
from urllib3.exceptions import HTTPError

from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.storage.base import (
    ObjectMissing,
    ObjectStat,
    Part,
    PartsRefused,
    StorageFull,
    UploadMissing,
)
from yardmaster.storage.s3_guard import GuardedPool
from yardmaster.storage.s3_listing import all_of, name_of, objects_in, text_of
from yardmaster.storage.s3_signing import Call, Credentials, signed_request

CONNECT_SECONDS, READ_SECONDS = 5, 30
FOREIGN_SECONDS = 10
"""That a server of others may take: a request of a page waits for it."""
PAUSE_SECONDS = 0.2
"""Before the second try; twice as long before the next."""
_TRIES = 3
_LISTED_AT_ONCE = 1000
_LONGEST_CODE, _LONGEST_MESSAGE = 100, 500
_UPLOAD_ID = re.compile(r"(?!.*\.\.)[\w.~+/=-]{1,1024}", re.ASCII)

CHECKSUM = "x-amz-checksum-sha256"
_STATUS_IN_WORDS = re.compile(r"Response code: (\d{3})")
_OBJECT_MISSING = {"NoSuchKey", "NoSuchObject", "NoSuchVersion"}
_PARTS_REFUSED = {"InvalidPart", "InvalidPartOrder", "EntityTooSmall", "BadDigest", "XAmzContentChecksumMismatch"}
_FULL = {"XMinioStorageFull", "StorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage"}
_REFUSED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled"}


@contextlib.contextmanager
def errors_translated(what: str) -> Iterator[None]:
    """What the server or the network answered, as the contract's errors; `what` says in a message what was tried."""
    try:
        yield
    except S3Error as error:
        raise meaning(what, error.code or "", error.message or "", error.object_name or "") from error
    except (MinioException, HTTPError, ElementTree.ParseError, OSError) as error:
        cause = getattr(error, "reason", None)  # the error itself names the address, which may be presigned
        known = cause if isinstance(cause, Exception) else error
        raise Unavailable(f"{what}: the object store did not answer: {_shown(error)}.") from known
    except ValueError as error:
        raise Unavailable(f"{what}: this is not as S3 defines it: {_shown(error)}.") from error


def meaning(what: str, code: str, message: str, key: str) -> YardmasterError:
    """The contract's error for an answer with this S3 error code. What the server says is kept as far as it is short:
    it is stored and shown."""
    code, message = code[:_LONGEST_CODE], message[:_LONGEST_MESSAGE]
    if code in _OBJECT_MISSING:
        return ObjectMissing(f"There is no object {key!r}.")
    if code == "NoSuchUpload":
        return UploadMissing(
            "No such upload is open for this key: it was completed or aborted, or never existed.",
            remedy="Start a new upload.",
        )
    if code in _PARTS_REFUSED:
        return PartsRefused(f"The object store refused the parts: {message or code}")
    if code in _FULL:
        return StorageFull(
            f"{what}: the object store is full.",
            remedy="Delete data that you no longer need, or ask an administrator for more storage; then try again.",
        )
    if code in _REFUSED:
        return Unavailable(
            f"{what}: the object store refused the portal's own access key ({code}).",
            remedy="An administrator checks the settings YARDMASTER_S3_ACCESS_KEY and YARDMASTER_S3_SECRET_KEY.",
        )
    if code == "NoSuchBucket":
        return Unavailable(
            f"{what}: the object store does not have the portal's bucket.",
            remedy="An administrator runs `manage.py prepare`, which makes it.",
        )
    return Unavailable(f"{what}: the object store answered {code}: {message}")


def status_of(error: BaseException) -> int:
    """The HTTP status of the answer that `error` was made from; 0 where there was none."""
    cause = error.__cause__
    if isinstance(cause, Answered):
        return cause.status
    if isinstance(cause, S3Error):
        return int(cause.response.status) if cause.response is not None else 0
    found = _STATUS_IN_WORDS.search(str(cause)) if isinstance(cause, InvalidResponseError) else None
    return int(found[1]) if found else 0


def _shown(error: BaseException) -> str:
    """Without addresses: those that are presigned are credentials."""
    reason = getattr(error, "reason", None) or error
    text = re.sub(r"\?[^\s'\")]*", "?…", str(reason))
    return text[:200].rstrip(".")


@dataclass(frozen=True)
class Endpoint:
    """Where a server listens, `http://` or `https://` with host and perhaps port, and nothing after it."""

    url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ValueError(f"{self.url!r} is no address of an S3 server: write https://host or https://host:port")
        if parts.username or parts.password:
            raise ValueError("the address of an S3 server holds no credentials: set the access key and the secret key")

    @property
    def origin(self) -> str:
        return self.url.rstrip("/")


class Answered(Exception):
    """What a server answered to a call that is not `minio`'s: the HTTP status, and its code where it named one."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code or f"status {status}")
        self.status = status
        self.code = code


def _timeout(seconds: float) -> urllib3.Timeout:
    return urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds)


def _own_pool() -> urllib3.PoolManager:
    retries = urllib3.Retry(
        total=_TRIES, backoff_factor=PAUSE_SECONDS, status_forcelist=[500, 502, 503, 504], raise_on_status=False
    )
    return urllib3.PoolManager(maxsize=32, timeout=_timeout(READ_SECONDS), retries=retries)


class S3Client:
    """One server with one pair of keys. Safe to use from several threads."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials, *, is_foreign: bool = False) -> None:
        """`is_foreign`: others have named the server. It is not followed anywhere else."""
        self._endpoint = endpoint
        self._credentials = credentials
        self._http = GuardedPool(_timeout(FOREIGN_SECONDS)) if is_foreign else _own_pool()
        parts = urlsplit(endpoint.origin)
        self.objects = Minio(
            parts.netloc,
            access_key=credentials.access_key,
            secret_key=credentials.secret_key,
            region=credentials.region,
            secure=parts.scheme == "https",
            http_client=self._http,
        )

    def page(self, bucket: str, prefix: str, after: str) -> tuple[list[ObjectStat], bool]:
        """The first objects below the prefix behind the key `after`, and whether there may be more. Raises
        `Unavailable` also for what no S3 server says."""
        what = "Listing a bucket"
        query = {"list-type": "2", "prefix": prefix, "start-after": after, "encoding-type": "url"}
        answer = self._call(what, Call("GET", bucket, "", {name: one for name, one in query.items() if one}))
        with errors_translated(what):
            return objects_in(answer)

    # --- Uploads in parts ------------------------------------------------------------------------------------------

    def begin(self, bucket: str, key: str, *, is_copy: bool = False) -> str:
        """`is_copy`: of parts that the server has; MinIO takes those only where it is to keep no checksums."""
        headers = {} if is_copy else {"x-amz-checksum-algorithm": "SHA256"}
        answer = self._call("Beginning an upload", Call("POST", bucket, key, {"uploads": ""}, headers))
        return text_of(answer, "UploadId")

    def parts(self, bucket: str, key: str, upload_id: str) -> list[Part]:
        """Raises `UploadMissing`."""
        found: list[Part] = []
        marker = "0"
        while True:
            query = {**_named(upload_id), "max-parts": str(_LISTED_AT_ONCE), "part-number-marker": marker}
            answer = self._call("Listing the parts of an upload", Call("GET", bucket, key, query))
            found += [
                Part(
                    int(text_of(one, "PartNumber")),
                    int(text_of(one, "Size")),
                    text_of(one, "ETag").strip('"'),
                    checksum_read(text_of(one, "ChecksumSHA256")),
                )
                for one in all_of(answer, "Part")
            ]
            marker = text_of(answer, "NextPartNumberMarker")
            if text_of(answer, "IsTruncated") != "true":
                return sorted(found)

    def complete(self, bucket: str, key: str, upload_id: str, parts: Sequence[Part]) -> None:
        """Raises `UploadMissing` and `PartsRefused`."""
        rows = "".join(
            f"<Part><PartNumber>{part.number}</PartNumber><ETag>{escape(part.etag)}</ETag>"
            + (f"<ChecksumSHA256>{checksum_written(part.sha256)}</ChecksumSHA256>" if part.sha256 else "")
            + "</Part>"
            for part in parts
        )
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        self._call("Putting an upload together", Call("POST", bucket, key, _named(upload_id)), body)

    def copy_part(
        self, source: tuple[str, str], target: tuple[str, str], upload_id: str, number: int, begin: int, end: int
    ) -> Part:
        """Bytes of an object as a part; `end` is the byte behind the last."""
        headers = {"x-amz-copy-source": _path_of(*source), "x-amz-copy-source-range": f"bytes={begin}-{end - 1}"}
        query = {**_named(upload_id), "partNumber": str(number)}
        answer = self._call("Copying a part of an object", Call("PUT", *target, query, headers))
        return Part(
            number, end - begin, text_of(answer, "ETag").strip('"'), checksum_read(text_of(answer, "ChecksumSHA256"))
        )

    def abort(self, bucket: str, key: str, upload_id: str) -> None:
        """Absent: success."""
        with contextlib.suppress(UploadMissing):
            self._call("Aborting an upload", Call("DELETE", bucket, key, _named(upload_id)))

    def uploads(self, bucket: str, prefix: str) -> Iterator[tuple[str, str, datetime]]:
        """Open uploads in parts below the prefix: key, id, begin. MinIO lists those of one key alone."""
        markers: Mapping[str, str] = {}
        while True:
            query = {"uploads": "", "prefix": prefix, **markers}
            answer = self._call("Listing open uploads", Call("GET", bucket, "", query))
            for one in all_of(answer, "Upload"):
                begun = datetime.fromisoformat(text_of(one, "Initiated").replace("Z", "+00:00"))
                yield text_of(one, "Key"), text_of(one, "UploadId"), begun
            if text_of(answer, "IsTruncated") != "true":
                return
            markers = {
                "key-marker": text_of(answer, "NextKeyMarker"),
                "upload-id-marker": text_of(answer, "NextUploadIdMarker"),
            }

    def _call(self, what: str, call: Call, body: bytes | None = None) -> ElementTree.Element:
        """The XML of the answer (an empty element where there is none)."""
        with errors_translated(what):
            url, headers = signed_request(
                self._endpoint.origin, call, self._credentials, body or b"", datetime.now(UTC)
            )
            answer = self._http.request(call.method, url, body=body, headers=headers)
            found = _element(answer)
        # A completion that fails late is a 200 that holds an error.
        if answer.status >= 300 or name_of(found) == "Error":
            said = Answered(answer.status, text_of(found, "Code"))
            raise meaning(what, str(said), text_of(found, "Message"), call.key) from said
        return found


def _element(answer: urllib3.BaseHTTPResponse) -> ElementTree.Element:
    """What was answered; empty where there is nothing, or a refusal that is no XML. Raises `ParseError`."""
    try:
        return ElementTree.fromstring(answer.data) if answer.data.strip() else ElementTree.Element("Nothing")
    except ElementTree.ParseError:
        if answer.status < 300:
            raise
        return ElementTree.Element("Nothing")


def checksum_written(sha256: str) -> str:
    """A SHA-256 in hexadecimal as S3 writes it."""
    return b64encode(bytes.fromhex(sha256)).decode()


def checksum_read(text: str) -> str:
    """The other way round, of a composite too; empty where there is none."""
    digest, dash, parts = text.partition("-")
    return b64decode(digest).hex() + dash + parts


def _path_of(bucket: str, key: str) -> str:
    return f"/{bucket}/{quote(key, safe='/~')}"


def _named(upload_id: str) -> dict[str, str]:
    if not _UPLOAD_ID.fullmatch(upload_id):
        raise meaning("Looking for an upload", "NoSuchUpload", "", "")
    return {"uploadId": upload_id}
