"""Putting an upload together and checking it, in the request for small ones and in a worker for large ones.

One at a time holds the upload's lease. Whatever cuts it off, calling `upload_finish` again goes on file by file. Not
here: zips (`unpacking`).
"""

from __future__ import annotations

import time
import uuid
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.api.problems import ApiProblem
from apps.api.problems import problem_of as problem_of_error
from apps.uploads import storage_ledger
from apps.uploads.limits import part_count, part_length
from apps.uploads.models import Kind, State, Upload, UploadFile
from apps.uploads.selectors import file_key
from apps.uploads.storage import storage
from yardmaster.errors import Problem, YardmasterError
from yardmaster.ids import new_id
from yardmaster.storage.base import ObjectMissing, Part, UploadMissing
from yardmaster.storage.facts import FactFinder, FileFacts, find_facts

LEASE = timedelta(seconds=60)
_RENEW_AFTER = 10.0
CRC_BUDGET = 8 << 20
"""Bytes of records per upload whose checksums are verified: half a second of work."""
_NOTED_AT_ONCE = 200


class LeaseLost(Exception):
    """Somebody else completes or has removed this upload."""


class UploadRefused(ApiProblem):
    """The upload can never become complete: it ends here, and its bytes go."""


@dataclass
class Lease:
    """The right to complete one upload, renewed while work goes on."""

    upload_id: uuid.UUID
    token: uuid.UUID
    renewed: float
    passed: int = 0

    def beat(self, amount: int) -> None:
        """`amount` more bytes were worked on. Raises `LeaseLost`."""
        self.passed += amount
        if time.monotonic() - self.renewed > _RENEW_AFTER:
            self.renew()

    def renew(self) -> None:
        rows = Upload.objects.filter(pk=self.upload_id, lease=self.token, state=State.COMPLETING)
        if not rows.update(leased_until=timezone.now() + LEASE, bytes_checked=self.passed):
            raise LeaseLost
        self.renewed = time.monotonic()


def upload_finish(upload_id: uuid.UUID) -> None:
    """Complete an upload in state `completing`. Anything else, and one that another process completes: nothing to do.

    What is wrong with the upload is kept in `problem`, takes it back to `open` (or to `failed` where sending again
    cannot help) and is raised as `ApiProblem` or `Unavailable`.
    """
    lease = _claim(upload_id)
    if lease is None:
        return
    upload = Upload.objects.select_related("namespace").get(pk=upload_id)
    try:
        _put_together(upload, lease)
        if upload.unpack:
            from apps.uploads.unpacking import archive_unpack

            archive_unpack(upload, lease)
        _conclude(upload, lease)
    except LeaseLost:
        return
    except (ApiProblem, YardmasterError) as error:
        _note_problem(upload, lease, error)
        raise


def _claim(upload_id: uuid.UUID) -> Lease | None:
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    token = new_id()
    rows = Upload.objects.filter(free, pk=upload_id, state=State.COMPLETING)
    if not rows.update(lease=token, leased_until=now + LEASE):
        return None
    return Lease(upload_id, token, time.monotonic())


def _put_together(upload: Upload, lease: Lease) -> None:
    missing = [
        problem for file in upload.files.filter(sha256="").order_by("index") for problem in _lacking(upload, file)
    ]
    if missing:
        raise ApiProblem(
            409,
            "parts_missing",
            f"{len(missing)} of {upload.file_count} files have not arrived whole.",
            remedy="GET the upload to see which parts are there, and send the others.",
            errors=missing[:20],
        )
    noted: list[UploadFile] = []
    crc_budget = CRC_BUDGET
    for file in upload.files.filter(sha256="").order_by("index").iterator(chunk_size=2000):
        facts = _file_finish(upload, file, lease, crc_budget)
        crc_budget = max(0, crc_budget - facts.size)
        file.sha256, file.records, file.fault = facts.sha256, facts.records, facts.fault[:300]
        noted.append(file)
        if len(noted) == _NOTED_AT_ONCE:
            _note(noted, lease)
    _note(noted, lease)


def _note(files: list[UploadFile], lease: Lease) -> None:
    UploadFile.objects.bulk_update(files, ["sha256", "records", "fault"])
    files.clear()
    lease.renew()


def _lacking(upload: Upload, file: UploadFile) -> list[Problem]:
    """The problem of a file whose parts are not all there."""
    expected = _parts_of(upload, file)
    arrived = {} if not file.multipart_id else {part.number: part for part in _arrived(upload, file)}
    lacking = [n for n, size in expected.items() if n not in arrived or arrived[n].size != size]
    if not lacking:
        return []
    shown = ", ".join(map(str, lacking[:10])) + ("…" if len(lacking) > 10 else "")
    message = f"Of {file.path!r} these parts are missing: {shown}."
    return [Problem(f"files.{file.index}", "parts_missing", message, "Send them, then complete again.", shown)]


def _parts_of(upload: Upload, file: UploadFile) -> dict[int, int]:
    count = part_count(file.size, upload.part_size)
    return {n: part_length(file.size, upload.part_size, n) for n in range(1, count + 1)}


def _arrived(upload: Upload, file: UploadFile) -> list[Part]:
    key = file_key(upload, file)
    try:
        return storage().parts(key, file.multipart_id)
    except UploadMissing:
        # Put together by a try that was cut off before it could note so: then the object is there, whole.
        try:
            whole = storage().stat(key).size == file.size
        except ObjectMissing:
            whole = False
        return [Part(n, size, "") for n, size in _parts_of(upload, file).items()] if whole else []


def _file_finish(upload: Upload, file: UploadFile, lease: Lease, crc_budget: int) -> FileFacts:
    key = file_key(upload, file)
    if file.size == 0:
        storage().put(key, b"")
    else:
        parts = _arrived(upload, file)
        if any(part.etag for part in parts):
            storage().multipart_complete(key, file.multipart_id, parts)
    count_as = file.path if upload.kind == Kind.DATASET and not upload.unpack else None
    with storage().open_range(key) as source:
        facts = find_facts(FactFinder(source, count_as=count_as, crc_budget=crc_budget, beat=lease.beat))
    if file.declared_sha256 not in ("", facts.sha256) or facts.size != file.size:
        _send_again(upload, file)
        raise ApiProblem(
            422,
            "checksum_mismatch",
            f"{file.path!r} arrived with another content than announced.",
            remedy="Send this file's parts again, then complete again.",
            errors=[Problem(f"files.{file.index}", "checksum_mismatch", f"SHA-256 {facts.sha256}", "", file.path)],
        )
    return facts


def _send_again(upload: Upload, file: UploadFile) -> None:
    storage().delete(file_key(upload, file))
    UploadFile.objects.filter(pk=file.pk).update(multipart_id="", sha256="")


def _conclude(upload: Upload, lease: Lease) -> None:
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            raise LeaseLost
        used = sum(row.files.values_list("size", flat=True))
        storage_ledger.reservation_use(row.namespace_id, reserved=row.held, used=used)
        row.state, row.held, row.lease, row.leased_until = State.COMPLETE, used, None, None
        row.touched_at = timezone.now()
        row.save(update_fields=["state", "held", "lease", "leased_until", "touched_at"])


def _note_problem(upload: Upload, lease: Lease, error: ApiProblem | YardmasterError) -> None:
    problem = error if isinstance(error, ApiProblem) else problem_of_error(error)
    assert problem is not None, "every YardmasterError is a problem"
    kept = {
        "status": problem.status,
        "code": problem.code,
        "detail": problem.detail,
        "remedy": problem.remedy,
        "errors": [asdict(one) for one in problem.errors],
    }
    final = isinstance(error, UploadRefused)
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            return
        if final:
            storage_ledger.reservation_return(row.namespace_id, row.held)
            row.held = 0
        row.state, row.problem = (State.FAILED if final else State.OPEN), kept
        row.lease = row.leased_until = None
        row.touched_at = timezone.now()
        row.save(update_fields=["state", "problem", "held", "lease", "leased_until", "touched_at"])
    if final:
        storage().delete_prefix(upload.key_prefix)
        storage().delete_prefix(f"uploads/{upload.pk}")
