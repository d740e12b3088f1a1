"""The scan of a registered bucket: its objects become the list of files of a version, page by page, in the memory of a
few pages. No object is read. A pass ends after a while and continues behind the last path, so that a worker that is
killed costs a minute.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.audit.services import record
from apps.buckets.access import key_prefix_of, store_of
from apps.buckets.models import Bucket, State
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.objects_listed import NAME_SHOWN, sorted_out
from apps.datasets.registering import buckets_forget
from apps.datasets.selectors import DATASETS
from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import SCAN_BUCKET, enqueue, enqueue_now
from apps.errors import Conflict, DomainError, Unprocessable, error_to_json
from apps.uploads import storage_ledger
from apps.uploads.announcing import file_that_is_a_folder, most_files
from apps.uploads.file_blocks import manifest_append
from apps.uploads.models import Kind, Upload
from apps.uploads.models import State as UploadState
from apps.uploads.services import uploads_discard
from apps.uploads.versioned.comparing import lists_compare
from apps.uploads.versioned.services import collection_create, version_add
from yardmaster.backoff import delay
from yardmaster.errors import Unavailable, YardmasterError
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.s3_client import status_of

log = logging.getLogger(__name__)

LEASE = timedelta(minutes=3)
PASS = 60.0
"""Seconds after which a pass ends."""
LONGEST = timedelta(hours=6)
AT_ONCE = 5_000
RETRIES = 6
_RETRY_FIRST, _RETRY_LONGEST = timedelta(seconds=5), timedelta(minutes=2)
"""Before a scan is tried again where the server did not answer."""
_SWEPT = 50
_REFUSED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled")
_MAY_PASS = ("RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "RequestLimitExceeded")
"""Codes that may come with a status for which a request is not repeated."""
_REMEDIES = {
    "AuthorizationHeaderMalformed": "Register the bucket with its region.",
    "PermanentRedirect": "Register the bucket with its region, and with the server of that region.",
    "RequestTimeTooSkewed": "An administrator sets the clock of this machine, or of the server.",
}
_KEPT = ("scanned", "scanned_bytes", "last_path", "left_out", "left_out_first", "failures", "problem")
NAMED_LEFT_OUT = 10
"""Objects that are left out and named."""


class ScanFailed(Unprocessable):
    """The bucket cannot be a dataset as it is."""

    code = "scan_failed"


def buckets_sweep(now: datetime) -> None:
    """Wake scans whose message was lost or whose worker was killed, and forget what is no dataset any more."""
    for bucket_id in due(Bucket.objects.all(), "next_look_at", now).values_list("pk", flat=True)[:_SWEPT]:
        enqueue(SCAN_BUCKET, bucket_id)
    buckets_forget(now)


def bucket_scan(bucket_id: UUID, *, clock: Callable[[], float] = time.monotonic) -> None:
    """One pass, by one worker at a time. What fails is written down for people."""
    mine = claim_due(Bucket.objects.filter(pk=bucket_id, state=State.SCANNING), "next_look_at", timezone.now(), LEASE)
    if mine is None:
        return
    bucket = Bucket.objects.select_related("namespace", "secret", "asked_by").get(pk=bucket_id)
    try:
        is_over = _list_some(bucket, mine, clock)
        if is_over:
            _finish(bucket, mine)
        elif _is_too_long(bucket):
            raise ScanFailed(f"The scan took more than {LONGEST}.", remedy="Register a folder with fewer objects.")
    except (YardmasterError, DomainError) as error:
        if not _try_later(bucket, mine, error):
            _fail(bucket, mine, _in_words(bucket, error))
    else:
        if not is_over and mine.update(next_look_at=timezone.now()):
            enqueue_now(SCAN_BUCKET, bucket_id)


def _try_later(bucket: Bucket, mine: QuerySet[Bucket], error: Exception) -> bool:
    """Continue behind the last path after a while, where the server may answer then: the sweep wakes the scan. False:
    it will not, has failed too often, or the scan has taken too long."""
    if not isinstance(error, Unavailable) or _is_final(error):
        return False
    if bucket.failures >= RETRIES or _is_too_long(bucket):
        return False
    log.warning("The scan of %s is tried again: %s", bucket.pk, error)
    at = timezone.now() + delay(bucket.failures, _RETRY_FIRST, _RETRY_LONGEST)
    problem = error_to_json(_in_words(bucket, error))
    return bool(mine.update(failures=bucket.failures + 1, next_look_at=at, problem=problem))


def _is_final(error: Exception) -> bool:
    """Whether the server gives the same answer to the same request."""
    code, status = _code_of(error), status_of(error)
    return code in (*_REFUSED, "NoSuchBucket") or (
        300 <= status < 500 and status not in (408, 429) and code not in _MAY_PASS
    )


def _is_too_long(bucket: Bucket) -> bool:
    return timezone.now() - bucket.started_at > LONGEST


def _code_of(error: Exception) -> str:
    """Of the S3 server's answer; empty where there was none."""
    return str(getattr(error.__cause__, "code", "") or "")


def _list_some(bucket: Bucket, mine: QuerySet[Bucket], clock: Callable[[], float]) -> bool:
    """List for a while. Whether all objects are listed."""
    upload = _upload_of(bucket, mine)
    until = clock() + PASS
    store = store_of(bucket)
    objects = store.everything(bucket.last_path)
    while True:
        found = list(islice(objects, AT_ONCE))
        files, left_out = sorted_out(found, store, is_cut=len(found) == AT_ONCE)
        if bucket.scanned + len(files) > (most := most_files(Kind.DATASET)):
            message = f"There are more than {most:,} objects, the most that a version can have."
            remedy = "Register a folder with fewer objects. An administrator can allow more "
            raise ScanFailed(message, remedy=remedy + "(YARDMASTER_FILES_PER_VERSION).")
        if found:
            _refuse_conflict(upload, files)
            _keep(bucket, mine, upload, files, left_out, found[-1].key)
        if len(found) < AT_ONCE:
            return True
        if clock() > until:
            return False


def _keep(
    bucket: Bucket,
    mine: QuerySet[Bucket],
    upload: Upload,
    files: list[ListedFile],
    left_out: list[dict[str, str]],
    last_path: str,
) -> None:
    with transaction.atomic():
        if files:
            manifest_append(upload.pk, bucket.scanned, files)
        bucket.scanned, bucket.last_path = bucket.scanned + len(files), last_path
        bucket.scanned_bytes += sum(one.size for one in files)
        bucket.left_out += len(left_out)
        bucket.left_out_first = [*bucket.left_out_first, *left_out][:NAMED_LEFT_OUT]
        bucket.failures, bucket.problem = 0, None
        if not mine.update(**{name: getattr(bucket, name) for name in _KEPT}):
            raise Conflict("Another worker continues this scan.")
        storage_ledger.reserve(bucket.namespace, 0, len(files))
        mine_too = Upload.objects.filter(pk=upload.pk)
        mine_too.update(file_count=bucket.scanned, files_held=bucket.scanned, touched_at=timezone.now())


def _upload_of(bucket: Bucket, mine: QuerySet[Bucket]) -> Upload:
    """The list under way: an upload of nothing, which is charged nothing and is no one's to use."""
    found = Upload.objects.filter(pk=bucket.upload_id).first() if bucket.upload_id else None
    if found is not None:
        return found
    now = timezone.now()
    upload = Upload(
        namespace=bucket.namespace, created_by=bucket.asked_by, kind=Kind.DATASET, part_size=1, file_count=0,
        is_sorted=True, held=0, state=UploadState.COMPLETE, used=True, created_at=now, touched_at=now,
    )  # fmt: skip
    upload.key_prefix = key_prefix_of(bucket.pk, upload.target_id)
    with transaction.atomic():
        upload.save(force_insert=True)
        bucket.upload_id, bucket.scanned, bucket.scanned_bytes, bucket.last_path = upload.pk, 0, 0, ""
        bucket.left_out, bucket.left_out_first = 0, []
        begun = ("upload_id", "scanned", "scanned_bytes", "last_path", "left_out", "left_out_first")
        if not mine.update(**{name: getattr(bucket, name) for name in begun}):
            raise Conflict("Another worker continues this scan.")
    return upload


def _refuse_conflict(upload: Upload, files: list[ListedFile]) -> None:
    if files and (path := file_that_is_a_folder(upload.pk, files)):
        message = f"The object {path[:NAME_SHOWN]!r} became a folder of other objects while the bucket was listed."
        raise ScanFailed(message, remedy="Scan again when the bucket is no longer changed.")


def _finish(bucket: Bucket, mine: QuerySet[Bucket]) -> None:
    """Make the version, where there is something new."""
    if not bucket.scanned:
        _refuse_empty(bucket)
    assert bucket.upload_id is not None, "the first pass makes it"
    known = Dataset.objects.select_related("namespace")
    dataset = None if bucket.dataset_id is None else known.filter(pk=bucket.dataset_id).first()
    newest = None if dataset is None else dataset.versions.order_by("-number").first()
    is_new = newest is None or lists_compare(newest.upload_id, bucket.upload_id, most=0).changes
    with transaction.atomic():
        made: dict[str, Any] = {
            "state": State.READY,
            "ended_at": timezone.now(),
            "next_look_at": None,
            "upload_id": None,
            "problem": None,
        }
        if is_new:
            made["dataset_id"] = _version(bucket, bucket.upload_id, dataset)
        else:
            uploads_discard([bucket.upload_id])
        if not mine.update(**made):
            raise Conflict("Another worker continues this scan.")


def _refuse_empty(bucket: Bucket) -> None:
    if bucket.left_out:
        first = bucket.left_out_first[0]
        message = f"None of the {bucket.left_out:,} objects in {bucket.address} can be a file"
        raise ScanFailed(f"{message}: {first['path']!r} {first['reason']}.", remedy="Rename them, or check the prefix.")
    raise ScanFailed(f"There are no objects in {bucket.address}.", remedy="Check the prefix.")


def _version(bucket: Bucket, upload_id: UUID, dataset: Dataset | None) -> UUID:
    """The dataset's id. Belongs into the transaction that ends the scan."""
    Upload.objects.filter(pk=upload_id).update(used=False)
    upload = Upload.objects.select_related("namespace").get(pk=upload_id)
    if dataset is None:
        note = f"Registered from {bucket.address} on {bucket.endpoint}."
        dataset = collection_create(
            DATASETS, namespace=bucket.namespace, actor=bucket.asked_by, name=bucket.name, description=note,
            upload=upload,
        )  # fmt: skip
    else:
        version_add(DATASETS, dataset, actor=bucket.asked_by, upload=upload, note="Scanned again")
    DatasetVersion.objects.filter(upload_id=upload.pk).update(size=bucket.scanned_bytes)
    return dataset.pk


def _fail(bucket: Bucket, mine: QuerySet[Bucket], error: DomainError | YardmasterError) -> None:
    with transaction.atomic():
        problem = error_to_json(error)
        upload_id = Bucket.objects.filter(pk=bucket.pk).values_list("upload_id", flat=True).first()
        now = timezone.now()
        if not mine.update(state=State.FAILED, problem=problem, ended_at=now, next_look_at=None, upload_id=None):
            return
        if upload_id is not None:
            uploads_discard([upload_id])
        facts = {"address": bucket.address, "code": problem["code"]}
        record(bucket.asked_by, "bucket.scan_failed", f"bucket:{bucket.pk}", namespace=bucket.namespace, **facts)


def _in_words(bucket: Bucket, error: DomainError | YardmasterError) -> DomainError | YardmasterError:
    """What a foreign server answered, in words about that server."""
    code = _code_of(error)
    where = f"{bucket.address} on {bucket.endpoint}"
    if code in _REFUSED:
        return ScanFailed(
            f"The server refuses to list {where} with these credentials ({code}).",
            remedy="Check the keys, and give them the rights s3:ListBucket and s3:GetObject.",
        )
    if code == "NoSuchBucket":
        return ScanFailed(f"There is no bucket {bucket.bucket} on {bucket.endpoint}.", remedy="Check its name.")
    if isinstance(error, DomainError):
        return error
    return ScanFailed(
        f"{where} cannot be listed. {error.message}", remedy=_REMEDIES.get(code, "Check the server, then scan again.")
    )
