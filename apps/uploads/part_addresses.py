"""Addresses that parts of an upload are sent to, signed: with one, no other credential is needed.

Not here: what arrives at them (`delivery`), and putting it together (`finishing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

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
    whole_note,
)
from apps.uploads.models import State, Upload
from yardmaster.errors import Problem
from yardmaster.storage.base import Audience, SignedRequest

_NAMED = 20


@dataclass(frozen=True)
class WantedPart:
    """A part that is to be sent: its file's index, its number, and its SHA-256 in hexadecimal. `said_in` is where the
    request says so."""

    file: int
    part: int
    sha256: str
    said_in: str = "parts"


@dataclass(frozen=True)
class SignedPart:
    """How to send one part."""

    file: int
    part: int
    request: SignedRequest


def parts_sign(upload: Upload, wanted: Sequence[WantedPart], audience: Audience = Audience.PEOPLE) -> list[SignedPart]:
    """Addresses for these parts of the upload's files, good for a quarter of an hour each. All or none.

    A file of one part is sent as the object that it becomes where the store takes that: then it costs one request.
    """
    _require_open(upload)
    if not 1 <= len(wanted) <= PARTS_AT_ONCE:
        raise Invalid([_invalid("parts", f"Ask for 1 to {PARTS_AT_ONCE} parts at once.", len(wanted))])
    known = sent_files(upload.pk, {one.file for one in wanted})
    for one in wanted:
        _check_wanted(upload, known.get(one.file), one)
    whole = {one.file: signed for one in wanted if (signed := _whole(upload, known[one.file], one, audience))}
    if whole:
        _note_whole(upload, {one.file: one.sha256 for one in wanted if one.file in whole})
    begun = _begun(upload, [file for index, file in known.items() if index not in whole])
    return [
        SignedPart(
            one.file, one.part, whole.get(one.file) or _part(upload, known[one.file], begun[one.file], one, audience)
        )
        for one in wanted
    ]


def _require_open(upload: Upload, **changes: datetime) -> None:
    changes["touched_at"] = timezone.now()
    if not Upload.objects.filter(pk=upload.pk, state=State.OPEN).update(**changes):
        state = Upload.objects.filter(pk=upload.pk).values_list("state", flat=True).first()
        if state is None or state == State.DELETING:
            raise NotFound()
        raise Conflict(f"This upload is {state}: it accepts no more parts.", "upload_not_open")


def _check_wanted(upload: Upload, file: SentFile | None, wanted: WantedPart) -> None:
    if file is None:
        message = f"Files are numbered 0 to {upload.file_count - 1}."
        raise Invalid([_invalid(f"{wanted.said_in}.file", message, wanted.file)])
    count = part_count(file.size, upload.part_size)
    if not 1 <= wanted.part <= count:
        message = f"This file has parts 1 to {count}." if count else "This file is empty: it has no parts to send."
        raise Invalid([_invalid(f"{wanted.said_in}.part", message, wanted.part)])
    if file.sha256:
        raise Conflict("This file is already complete.", "upload_not_open")


def _whole(upload: Upload, file: SentFile, one: WantedPart, audience: Audience) -> SignedRequest | None:
    """How to send the file at once; None: it goes in parts. Raises `Invalid` for other bytes than were announced."""
    if file.multipart_id or file.size > upload.part_size:
        return None
    signed = storage().object_url(
        file.key(upload), size=file.size, sha256=one.sha256, expires=ADDRESS_LIFE, audience=audience
    )
    if signed and file.declared not in ("", one.sha256) and "-" not in file.declared:
        message = f"{file.path!r} was announced with the SHA-256 {file.declared}."
        remedy = "Send the bytes that were announced, or start a new upload."
        raise Invalid([Problem(f"{one.said_in}.sha256", "checksum_mismatch", message, remedy, one.sha256)])
    return signed


def _note_whole(upload: Upload, checksums: Mapping[int, str]) -> None:
    """Before such an address is given away: what it may write, and until when. Raises where the upload is not open any
    more: what it reserved has perhaps been given back.

    Nothing closes such an address, also not when the upload has become a version, which never changes: so the addresses
    of one file all write the same bytes. Raises `Conflict` for others."""
    with transaction.atomic():
        _require_open(upload, writable_until=timezone.now() + ADDRESS_LIFE)
        if others := whole_note(upload.pk, checksums):
            raise _other_bytes(upload, sorted(others))


def _other_bytes(upload: Upload, files: Sequence[int]) -> Conflict:
    known = sent_files(upload.pk, files[:_NAMED])
    problems = [
        Problem(f"files.{index}", "other_bytes", f"{file.path!r} was to have the SHA-256 {file.whole}.", "", file.path)
        for index, file in known.items()
    ]
    return Conflict(
        f"Other bytes were to be sent for {len(files)} of these files, and their signed addresses cannot be withdrawn.",
        "other_bytes",
        remedy="Send the same bytes as before. If a file has changed, discard this upload and start a new one.",
        errors=problems,
    )


def _part(upload: Upload, file: SentFile, multipart_id: str, one: WantedPart, audience: Audience) -> SignedRequest:
    size = part_length(file.size, upload.part_size, one.part)
    return storage().part_url(
        file.key(upload), multipart_id, one.part, size=size, sha256=one.sha256, expires=ADDRESS_LIFE, audience=audience
    )


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
