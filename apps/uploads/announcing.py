"""Which files an upload may have, and announcing more of them: a million files are announced with many requests.

What follows stands behind what was announced, in the order of the paths: so one path twice, and a file where another
needs a folder, are found without the whole list.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.errors import Conflict, Invalid, NotFound
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import files_at, last_path, manifest_append
from apps.uploads.manifest import FILES_AT_ONCE, MAX_CODE_FILES, MAX_FILE_SIZE
from apps.uploads.models import Kind, State, Upload
from yardmaster.errors import Problem
from yardmaster.storage.base import MAX_PARTS
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.paths import folders_of, path_problems
from yardmaster_runner.checksums import part_size_of

_SHA256 = re.compile(r"[0-9a-f]{64}(-[0-9]{1,5})?")


def most_files(kind: Kind | str) -> int:
    """How many files an upload of this kind may have."""
    most: int = settings.YARDMASTER_FILES_PER_VERSION
    return most if kind == Kind.DATASET else min(most, MAX_CODE_FILES)


def upload_extend(upload: Upload, files: Sequence[ListedFile], *, after: int) -> Upload:
    """Announce more files, behind the `after` that were announced, and reserve their bytes. Repeats harmlessly.

    Raises `Invalid` (every problem), `QuotaExceeded`, and `Conflict` where another number of files was announced, or
    the upload is not open.
    """
    check_files(files)
    with transaction.atomic():
        found = Upload.objects.select_for_update().select_related("namespace").filter(pk=upload.pk)
        row = found.exclude(state=State.DELETING).first()
        if row is None:
            raise NotFound()
        if row.state != State.OPEN:
            raise Conflict(f"This upload is {row.state}: it accepts no more files.", "upload_not_open")
        if row.file_count == after + len(files) and last_path(row.pk, row.file_count) == files[-1].path:
            return row  # announced before; the answer was lost
        if row.file_count != after:
            message = f"{row.file_count} files were announced, not {after}."
            raise Conflict(message, "files_out_of_step", remedy="GET the upload, and continue behind its file_count.")
        _check_more(row, files)
        size = sum(file.size for file in files)
        storage_ledger.reserve(row.namespace, size, len(files))
        manifest_append(row.pk, row.file_count, files)
        Upload.objects.filter(pk=row.pk).update(
            held=F("held") + size, file_count=F("file_count") + len(files), touched_at=timezone.now(),
            files_held=F("files_held") + len(files),
        )  # fmt: skip
        row.refresh_from_db(fields=["held", "file_count", "touched_at"])
    return row


def is_in_order(files: Sequence[ListedFile]) -> bool:
    """Whether they come in the order of their paths."""
    return all(one.path < other.path for one, other in pairwise(files))


def check_files(files: Sequence[ListedFile]) -> None:
    """What is wrong with these files by themselves. Raises `Invalid`."""
    if not 1 <= len(files) <= FILES_AT_ONCE:
        raise too_many_at_once(len(files))
    problems = path_problems(file.path for file in files)
    for index, file in enumerate(files):
        if not 0 <= file.size <= MAX_FILE_SIZE:
            message = f"A file has 0 to {MAX_FILE_SIZE} bytes."
            problems.append(_problem(f"files.{index}.size", message, file.size))
        if file.declared and not _is_checksum(file):
            message = "A SHA-256 has 64 lower-case hexadecimal digits; that of a file's parts their number behind it."
            problems.append(_problem(f"files.{index}.sha256", message, file.declared))
    if problems:
        raise Invalid(problems[:20])


def too_many_at_once(count: int | str) -> Invalid:
    """So many files in one request are refused; also none."""
    message = f"A request announces 1 to {FILES_AT_ONCE} files, this one {count}."
    remedy = "Announce the others of a dataset with POST to the upload's files/ address, or upload one archive."
    return Invalid([Problem("files", "invalid", message, remedy)])


def _check_more(upload: Upload, files: Sequence[ListedFile]) -> None:
    count, most = upload.file_count + len(files), most_files(upload.kind)
    if count > most:
        message = f"An upload of {upload.kind} has at most {most} files, this one {count}."
        remedy = "Pack many small files into TFRecord shards."
        if upload.kind == Kind.DATASET:
            remedy += " An administrator can allow more (YARDMASTER_FILES_PER_VERSION)."
        raise Invalid([Problem("files", "invalid", message, remedy)])
    if not upload.is_sorted or not is_in_order([ListedFile(last_path(upload.pk, upload.file_count), 0), *files]):
        message = "More files than one request announces must be announced in the order of their paths."
        remedy = "Sort all paths by their UTF-8 bytes, and announce them in this order from the first request on."
        raise Invalid([Problem("files", "not_in_order", message, remedy, files[0].path)])
    if problems := [*_too_large(upload, files), *_conflicts(upload.pk, files)]:
        raise Invalid(problems[:20])


def _too_large(upload: Upload, files: Iterable[ListedFile]) -> Iterator[Problem]:
    most = upload.part_size * MAX_PARTS
    for index, file in enumerate(files):
        if file.size > most:
            message = f"The parts of this upload allow files of up to {most} bytes."
            yield Problem(f"files.{index}.size", "invalid", message, "Announce it first.", str(file.size))


def file_that_is_a_folder(upload_id: uuid.UUID, files: Sequence[ListedFile]) -> str:
    """The path of a file of this sorted list, among these or before them, below which some of these lie; empty: none
    is."""
    among = {file.path for file in files}
    inner = (folder for file in files for folder in folders_of(file.path) if folder in among)
    return next(inner, "") or next(iter(files_at(upload_id, _perhaps_files(files))), "")


def _conflicts(upload_id: uuid.UUID, files: Sequence[ListedFile]) -> Iterator[Problem]:
    """Files that were announced before and are folders now."""
    candidates = _perhaps_files(files)
    for path in files_at(upload_id, candidates):
        message = f"{path!r} is a file of this upload, so it cannot be a folder as well."
        index = candidates[path]
        yield Problem(f"files.{index}.path", "path_conflict", message, "Rename one of the two.", files[index].path)


def _perhaps_files(files: Sequence[ListedFile]) -> dict[str, int]:
    """Folders of these files that may be files before them, each with the first file that lies in it. In the order of
    paths, a file with what would lie below it has only paths between that begin with its own: so the first of these
    files does, too."""
    first = files[0].path
    return {
        folder: index
        for index, file in reversed(list(enumerate(files)))
        for folder in folders_of(file.path)
        if first.startswith(folder)
    }


def _is_checksum(file: ListedFile) -> bool:
    try:
        return bool(_SHA256.fullmatch(file.declared)) and part_size_of(file.size, file.declared) >= 0
    except ValueError:
        return False


def _problem(field: str, message: str, value: object) -> Problem:
    return Problem(field, "invalid", message, value=str(value))
