"""The files of an upload under way: how large they may be, in which parts they come, and how far each has come, in one
row per `BATCH` of them. Which files there are: `file_blocks`.

What has arrived of a file is the store's to say; here is only what the store cannot know. A change
holds the upload's row, or its lease.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import Any

from apps.uploads.file_blocks import BLOCK, block_of, blocks_of
from apps.uploads.models import FileBatch, Upload
from yardmaster.storage.base import MAX_OBJECT_SIZE, MAX_PARTS, key_join
from yardmaster.storage.facts import FileFacts
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.checksums import PART_SIZE

LARGEST_COUNT = (1 << 31) - 1
"""Of files, as the database counts them. How many a version may have: `announcing.most_files`."""
MAX_CODE_FILES = 20_000
"""Code is shown as a tree and read before each launch."""
FILES_AT_ONCE = 20_000
"""Announced with one request; the others follow."""
MAX_FILE_SIZE = MAX_OBJECT_SIZE
FILE_LIST_BYTES = 16 << 20
"""Of JSON that announces files: as many as one request may, with paths and checksums as long as they may be."""
PARTS_AT_ONCE = 1_000
ADDRESS_LIFE = timedelta(minutes=15)
"""Signed addresses are credentials: as short as a slow line lets them be. Who needs longer asks again."""

INLINE_BYTES = 256 << 20
INLINE_FILES = 500
"""Up to here `complete` does its work within the request, a second or two; beyond, a worker does it."""
INLINE_WORK = 2.0
"""Seconds of the processor that this may take there, whatever the files are: then a worker continues. A MiB of empty
TFRecord records is 65,536 records to count."""
INLINE_ARCHIVE_BYTES = 16 << 20
"""The same for an archive that is unpacked. Of these only a zip that says that it holds little is unpacked at once
(`unpacking.is_quick`): what others hold is known at their end."""
INLINE_UNPACKED_BYTES = 64 << 20
"""So much is little, in `INLINE_FILES` files."""


def part_size_for(largest: int) -> int:
    """8 MiB, doubled until the largest file has at most 10,000 parts. The same for all files of an upload."""
    size = PART_SIZE
    while size * MAX_PARTS < largest:
        size *= 2
    return size


def part_count(size: int, part_size: int) -> int:
    """How many parts a file has; an empty one has none."""
    return -(-size // part_size)


def part_length(size: int, part_size: int, part: int) -> int:
    """How many bytes part `part` (from 1) of a file has."""
    return min(part_size, size - (part - 1) * part_size)


def part_sizes(size: int, part_size: int) -> dict[int, int]:
    """The size of each part that a file has, by number."""
    return {n: part_length(size, part_size, n) for n in range(1, part_count(size, part_size) + 1)}


BATCH = 500
"""Files whose progress lies in one row: some 100 KiB at most."""
LONGEST_FAULT = 300
_WHOLE = "sha256:"


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of an upload with its place in the list. `multipart_id` is empty before its first part address was made,
    and where it is sent whole: `whole` is then the SHA-256 of all that can be sent. Its `sha256` is there once it is
    put together and checked."""

    index: int
    path: str
    size: int
    declared: str
    sha256: str
    multipart_id: str
    whole: str = ""

    def key(self, upload: Upload) -> str:
        """Where it lies."""
        return key_join(upload.key_prefix, self.path)


def manifest_with_found(upload_id: uuid.UUID) -> Iterator[ListedFile]:
    """The files with what was found in them so far."""
    for start in count(0, BLOCK):
        files = block_of(upload_id, start // BLOCK)
        found = _progress(upload_id, range(start, start + len(files)))[1]
        for index, file in enumerate(files, start):
            facts = dict(zip(("sha256", "records", "fault"), found[index], strict=True)) if index in found else {}
            yield replace(file, **facts)
        if len(files) < BLOCK:
            return


def progress_forget(upload_id: uuid.UUID) -> None:
    """All has been put into the manifest. Belongs into the transaction that does so."""
    FileBatch.objects.filter(upload=upload_id).delete()


def sent_files(upload_id: uuid.UUID, indexes: Collection[int]) -> dict[int, SentFile]:
    """The files with these numbers, of those that there are. In their order."""
    blocks = blocks_of(upload_id, indexes)
    begun, found = _progress(upload_id, indexes)
    sent: dict[int, SentFile] = {}
    for index in sorted(indexes):
        block, at = blocks.get(index // BLOCK, ()), index % BLOCK
        if index >= 0 and at < len(block):
            file = block[at]
            sha256 = found[index][0] if index in found else file.sha256
            as_sent = _sent_as(begun.get(index, ""))
            sent[index] = SentFile(index, file.path, file.size, file.declared, sha256, *as_sent)
    return sent


def sent_in_blocks(upload: Upload) -> Iterator[list[SentFile]]:
    """All files, a block at a time."""
    for start in range(0, upload.file_count, BLOCK):
        yield list(sent_files(upload.pk, range(start, start + BLOCK)).values())


def open_in_parts(upload: Upload) -> Iterator[tuple[int, list[SentFile]]]:
    """The files that the store has an open upload in parts for: of each batch its number, and these. Costs what was
    begun, however many files were announced."""
    for number in list(FileBatch.objects.filter(upload=upload).order_by("number").values_list("number", flat=True)):
        files = sent_files(upload.pk, range(number * BATCH, (number + 1) * BATCH)).values()
        yield number, [file for file in files if file.multipart_id and not file.sha256]


def batch_forget(upload: Upload, number: int) -> None:
    """The store has nothing of these files any more."""
    FileBatch.objects.filter(upload=upload, number=number).delete()


def begun_in(upload_id: uuid.UUID, indexes: Iterable[int]) -> dict[int, str]:
    """Which of these files the store has an upload in parts for."""
    return _progress(upload_id, list(indexes))[0]


def whole_note(upload_id: uuid.UUID, checksums: Mapping[int, str]) -> set[int]:
    """These files are sent whole, each with this SHA-256. Returns those for which others were noted before: then
    nothing is noted. Holds the upload's row."""
    before = begun_in(upload_id, checksums)
    begun = {index: _WHOLE + sha256 for index, sha256 in checksums.items()}
    others = {index for index, one in begun.items() if before.get(index, one) != one}
    if not others:
        _merge(upload_id, begun=begun)
    return others


def _sent_as(begun: str) -> tuple[str, str]:
    """The store's id of an upload in parts; or the SHA-256 of a file that is sent whole."""
    return ("", begun.removeprefix(_WHOLE)) if begun.startswith(_WHOLE) else (begun, "")


def begun_note(upload_id: uuid.UUID, begun: Mapping[int, str]) -> None:
    """The store's uploads in parts of these files."""
    _merge(upload_id, begun=begun)


def found_note(upload_id: uuid.UUID, facts: Mapping[int, FileFacts]) -> None:
    """What was found in these files, now that they are put together."""
    found = {index: [one.sha256, one.records, one.fault[:LONGEST_FAULT]] for index, one in facts.items()}
    _merge(upload_id, found=found)


def files_forget(upload_id: uuid.UUID, indexes: Collection[int]) -> None:
    """These files are to be sent again. What may be sent as whole objects stays known: their addresses are valid."""
    rows = list(FileBatch.objects.filter(upload=upload_id, number__in=_numbers(indexes)))
    for row in rows:
        for index in indexes:
            if not row.begun.get(str(index), "").startswith(_WHOLE):
                row.begun.pop(str(index), None)
            row.found.pop(str(index), None)
    FileBatch.objects.bulk_update(rows, ["begun", "found"])


def _progress(upload_id: uuid.UUID, indexes: Collection[int]) -> tuple[dict[int, str], dict[int, list[Any]]]:
    rows = FileBatch.objects.filter(upload=upload_id)
    if isinstance(indexes, range):
        rows = rows.filter(number__gte=indexes.start // BATCH, number__lt=-(-indexes.stop // BATCH))
    else:
        rows = rows.filter(number__in=_numbers(indexes))
    begun: dict[int, str] = {}
    found: dict[int, list[Any]] = {}
    for row in rows:
        begun |= {int(index): one for index, one in row.begun.items()}
        found |= {int(index): one for index, one in row.found.items()}
    return begun, found


def _merge(upload_id: uuid.UUID, **news: Mapping[int, Any]) -> None:
    """Add to the batches, one statement to read and one to write."""
    of_batch: dict[int, dict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
    for name, entries in news.items():
        for index, entry in entries.items():
            of_batch[index // BATCH][name][str(index)] = entry
    if not of_batch:
        return
    known = {row.number: row for row in FileBatch.objects.filter(upload=upload_id, number__in=of_batch)}
    rows = [known.get(number) or FileBatch(upload_id=upload_id, number=number) for number in of_batch]
    for row in rows:
        row.begun |= of_batch[row.number]["begun"]
        row.found |= of_batch[row.number]["found"]
    FileBatch.objects.bulk_create(
        [FileBatch(upload_id=upload_id, number=row.number, begun=row.begun, found=row.found) for row in rows],
        update_conflicts=True, unique_fields=["upload", "number"], update_fields=["begun", "found"],
    )  # fmt: skip


def _numbers(indexes: Iterable[int]) -> set[int]:
    return {index // BATCH for index in indexes}
