"""Addresses that parts of an upload are sent to, signed: whoever has one needs no other credential.

Not here: what arrives at them (`delivery`), and putting it together (`finishing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils import timezone

from apps.api.problems import Conflict, Invalid
from apps.uploads.limits import ADDRESS_LIFE, PARTS_AT_ONCE, part_count, part_length
from apps.uploads.models import State, Upload, UploadFile
from apps.uploads.selectors import file_key
from apps.uploads.storage import storage
from yardmaster.errors import Problem
from yardmaster.storage.base import SignedRequest


@dataclass(frozen=True)
class WantedParts:
    """Parts of one file that are to be sent. `said_in` is where the request says so, where it speaks of many files."""

    file: int
    parts: Sequence[int]
    said_in: str = ""

    def field(self, name: str) -> str:
        """What a problem with `name` is reported as."""
        return f"{self.said_in}.{name}" if self.said_in else name


@dataclass(frozen=True)
class SignedPart:
    """How to send one part."""

    file: int
    part: int
    request: SignedRequest


def parts_sign(upload: Upload, wanted: Sequence[WantedParts], base_url: str | None = None) -> list[SignedPart]:
    """Addresses for these parts of the upload's files, good for an hour each. All or none."""
    _require_open(upload)
    if not 1 <= (count := sum(len(one.parts) for one in wanted)) <= PARTS_AT_ONCE:
        message = f"Ask for 1 to {PARTS_AT_ONCE} parts at once."
        raise Invalid([_invalid(wanted[0].field("parts") if wanted else "files", message, count)])
    known = {file.index: file for file in upload.files.filter(index__in={one.file for one in wanted})}
    for one in wanted:
        _check_wanted(upload, known.get(one.file), one)
    return [signed for one in wanted for signed in _signed(upload, known[one.file], one.parts, base_url)]


def _require_open(upload: Upload) -> None:
    if not Upload.objects.filter(pk=upload.pk, state=State.OPEN).update(touched_at=timezone.now()):
        upload.refresh_from_db()
        raise Conflict(f"This upload is {upload.state}: it takes no more parts.", "upload_not_open")


def _check_wanted(upload: Upload, file: UploadFile | None, wanted: WantedParts) -> None:
    if file is None:
        message = f"Files are numbered 0 to {upload.file_count - 1}."
        raise Invalid([_invalid(wanted.field("file"), message, wanted.file)])
    count = part_count(file.size, upload.part_size)
    if wrong := [part for part in wanted.parts if not 1 <= part <= count]:
        message = f"This file has parts 1 to {count}." if count else "This file is empty: it has no parts to send."
        raise Invalid([_invalid(wanted.field("parts"), message, wrong[0])])
    if file.sha256:
        raise Conflict("This file is already complete.", "upload_not_open")


def _signed(upload: Upload, file: UploadFile, parts: Sequence[int], base_url: str | None) -> Iterator[SignedPart]:
    key, multipart_id = file_key(upload, file), _multipart_of(upload, file)
    for part in parts:
        size = part_length(file.size, upload.part_size, part)
        request = storage().part_url(key, multipart_id, part, size=size, expires=ADDRESS_LIFE, base_url=base_url)
        yield SignedPart(file.index, part, request)


def _multipart_of(upload: Upload, file: UploadFile) -> str:
    """The store's upload for this file, begun when it is first needed. Of two at once, one wins for both."""
    if file.multipart_id:
        return file.multipart_id
    key = file_key(upload, file)
    mine = storage().multipart_begin(key, upload.part_size)
    if UploadFile.objects.filter(pk=file.pk, multipart_id="").update(multipart_id=mine):
        return mine
    storage().multipart_abort(key, mine)
    file.refresh_from_db()
    return file.multipart_id


def _invalid(field: str, message: str, value: object) -> Problem:
    return Problem(field, "invalid", message, value=str(value))
