"""Addresses that parts of an upload are sent to, signed: with one, no other credential is needed.

Not here: what arrives at them (`delivery`), and putting it together (`finishing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.errors import Conflict, Invalid, NotFound
from apps.stores import storage
from apps.uploads.manifest import (
    ADDRESS_LIFE,
    PARTS_AT_ONCE,
    SentFile,
    begun_in,
    begun_note,
    part_count,
    part_length,
    sent_files,
)
from apps.uploads.models import State, Upload
from yardmaster.errors import Problem
from yardmaster.storage.base import Audience, SignedRequest


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


def parts_sign(upload: Upload, wanted: Sequence[WantedParts], audience: Audience = Audience.PEOPLE) -> list[SignedPart]:
    """Addresses for these parts of the upload's files, good for a quarter of an hour each. All or none."""
    _require_open(upload)
    if not 1 <= (count := sum(len(one.parts) for one in wanted)) <= PARTS_AT_ONCE:
        message = f"Ask for 1 to {PARTS_AT_ONCE} parts at once."
        raise Invalid([_invalid(wanted[0].field("parts") if wanted else "files", message, count)])
    known = sent_files(upload.pk, {one.file for one in wanted})
    for one in wanted:
        _check_wanted(upload, known.get(one.file), one)
    begun = _begun(upload, list(known.values()))
    return [
        signed for one in wanted for signed in _signed(upload, known[one.file], begun[one.file], one.parts, audience)
    ]


def _require_open(upload: Upload) -> None:
    if not Upload.objects.filter(pk=upload.pk, state=State.OPEN).update(touched_at=timezone.now()):
        state = Upload.objects.filter(pk=upload.pk).values_list("state", flat=True).first()
        if state is None or state == State.DELETING:
            raise NotFound()
        raise Conflict(f"This upload is {state}: it accepts no more parts.", "upload_not_open")


def _check_wanted(upload: Upload, file: SentFile | None, wanted: WantedParts) -> None:
    if file is None:
        message = f"Files are numbered 0 to {upload.file_count - 1}."
        raise Invalid([_invalid(wanted.field("file"), message, wanted.file)])
    count = part_count(file.size, upload.part_size)
    if wrong := [part for part in wanted.parts if not 1 <= part <= count]:
        message = f"This file has parts 1 to {count}." if count else "This file is empty: it has no parts to send."
        raise Invalid([_invalid(wanted.field("parts"), message, wrong[0])])
    if file.sha256:
        raise Conflict("This file is already complete.", "upload_not_open")


def _signed(
    upload: Upload, file: SentFile, multipart_id: str, parts: Sequence[int], audience: Audience
) -> Iterator[SignedPart]:
    key = file.key(upload)
    for part in parts:
        size = part_length(file.size, upload.part_size, part)
        request = storage().part_url(key, multipart_id, part, size=size, expires=ADDRESS_LIFE, audience=audience)
        yield SignedPart(file.index, part, request)


def _begun(upload: Upload, files: Sequence[SentFile]) -> dict[int, str]:
    """The store's upload in parts of each file, begun when it is first needed. Of two at once, one wins for both."""
    begun = {file.index: file.multipart_id for file in files if file.multipart_id}
    mine: dict[int, str] = {}
    kept: dict[int, str] = {}
    try:
        for file in files:
            if file.index not in begun:
                mine[file.index] = storage().multipart_begin(file.key(upload), upload.part_size)
        if mine:
            kept, others = _kept(upload, mine)
            begun |= kept | others
    finally:
        for file in files:
            if file.index in mine and file.index not in kept:
                storage().multipart_abort(file.key(upload), mine[file.index])
    return begun


def _kept(upload: Upload, mine: Mapping[int, str]) -> tuple[dict[int, str], dict[int, str]]:
    """Which of mine count from now on, and the others' where another request was faster."""
    with transaction.atomic():
        _require_open(upload)  # and hold its row
        others = {index: one for index, one in begun_in(upload.pk, mine).items() if index in mine}
        kept = {index: one for index, one in mine.items() if index not in others}
        begun_note(upload.pk, kept)
    return kept, others


def _invalid(field: str, message: str, value: object) -> Problem:
    return Problem(field, "invalid", message, value=str(value))
