"""Uploads in parts in Apache Ignite, and what interruptions leave there.

A part is a generation of pieces. The upload's row lists those that have arrived whole, and is changed only as it was
read. A complete upload's pieces become those of its object; nothing is copied.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from yardmaster.errors import Unavailable
from yardmaster.ids import new_id
from yardmaster.storage.base import (
    MAX_PARTS,
    Part,
    PartsRefused,
    Readable,
    UploadMissing,
)
from yardmaster.storage.exact import ExactReader
from yardmaster.storage.ignite_pieces import Pieces
from yardmaster.storage.ignite_rows import (
    ArrivedPart,
    Extent,
    LooseRow,
    ObjectRow,
    Rows,
    UploadRow,
    now_ms,
    with_part,
)
from yardmaster.storage.local_parts import check_parts
from yardmaster.storage.signing import PartGrant
from yardmaster_runner.checksums import of_parts

_ID = re.compile(r"[0-9a-f]{32}")
_TRIES = 60
"""To change a row while others do, too: so many parts of one upload may arrive at once."""


class Uploads:
    """`placed` shows an object and releases an older one."""

    def __init__(self, rows: Rows, pieces: Pieces, placed: Callable[[ObjectRow], ObjectRow]) -> None:
        self._rows, self._pieces, self._placed = rows, pieces, placed

    def begin(self, key: str, part_size: int) -> str:
        made = new_id().hex
        self._rows.upload_add(UploadRow(made, key, part_size, 0, now_ms(), False, ()))
        return made

    def write(self, grant: PartGrant, data: Readable) -> str:
        """Take one part, in the place of one that an earlier try left. Its ETag."""
        if not 1 <= grant.part <= MAX_PARTS:
            raise PartsRefused(f"Parts are numbered 1 to {MAX_PARTS}, not {grant.part}.")
        upload = self._open(grant.key, grant.upload_id)
        if grant.size > upload.part_size:
            raise PartsRefused(
                f"Part {grant.part} has {grant.size} bytes, more than the upload's part size {upload.part_size}."
            )
        extent = Extent(new_id().hex, grant.size)
        loose = LooseRow(extent.generation, grant.key, grant.upload_id, (extent,))
        self._rows.loose_set(loose)
        try:
            exact = ExactReader(data, grant.size, grant.sha256, f"Part {grant.part}")
            self._pieces.write(extent.generation, exact)
            exact.require_whole()
            self._arrived(upload, ArrivedPart(grant.part, extent, grant.sha256))
        except BaseException:
            with suppress(Unavailable):  # what is left of it `clean_up` finds
                self.loose_end(loose)
            raise
        self._rows.loose_drop(loose.id)
        return grant.sha256

    def parts(self, key: str, upload_id: str) -> list[Part]:
        return [one.part() for one in self._known(key, upload_id).parts]

    def complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectRow:
        size = sum(part.size for part in parts)
        try:
            upload = self._closed(key, upload_id, parts)
        except UploadMissing:
            found = self._rows.object_of(key)
            if found is None or found.size != size:
                raise
            return found
        made = ObjectRow(
            key, upload.id, size, upload.changed, of_parts(one.sha256 for one in upload.parts[: len(parts)]),
            tuple(one.extent for one in upload.parts[: len(parts)]),
        )  # fmt: skip
        row = self._placed(made)
        self._release(upload, [one.extent for one in upload.parts[len(parts) :]])
        self._rows.upload_forget(upload.id)
        return row

    def abort(self, key: str, upload_id: str) -> None:
        for turn in range(_TRIES):
            try:
                upload = self._known(key, upload_id)
            except UploadMissing:
                return
            if self._is_placed(upload):  # complete, but for this row
                self._rows.upload_forget(upload.id)
                return
            loose = LooseRow(upload.id, upload.key, upload.id, tuple(one.extent for one in upload.parts))
            self._rows.loose_set(loose)
            if self._rows.upload_drop(upload):
                self.loose_end(loose)
                return
            _pause(turn)
        raise _busy(upload_id)

    def clean_up(self, before_ms: int) -> None:
        """Forget uploads that have stood still since then and are empty, or whose end was interrupted."""
        for upload in self._rows.uploads_before(before_ms):
            if upload.is_closed or not upload.parts:
                self.abort(upload.key, upload.id)

    def loose_end(self, row: LooseRow) -> None:
        """Remove what nothing refers to of these pieces, then forget that they were loose."""
        used = self._used(row)
        self._pieces.remove([one for one in row.extents if one.generation not in used])
        self._rows.loose_drop(row.id)

    def loose_end_of(self, row_id: str) -> None:
        if (row := self._rows.loose_of(row_id)) is not None:
            self.loose_end(row)

    # ---------------------------------------------------------------------------------------------------------------

    def _known(self, key: str, upload_id: str) -> UploadRow:
        upload = self._rows.upload_of(upload_id) if _ID.fullmatch(upload_id) else None
        if upload is None or upload.key != key:
            raise _missing(upload_id)
        return upload

    def _open(self, key: str, upload_id: str) -> UploadRow:
        upload = self._known(key, upload_id)
        if upload.is_closed:
            raise _missing(upload_id)
        return upload

    def _arrived(self, upload: UploadRow, part: ArrivedPart) -> None:
        for turn in range(_TRIES):
            parts, replaced = with_part(upload, part)
            if replaced is not None and replaced.extent != part.extent:
                self._loosen(upload, replaced.extent)
            is_done = self._rows.upload_set(upload, parts)
            if is_done and replaced is not None and replaced.extent != part.extent:
                self._release(upload, [replaced.extent])
            if is_done:
                return
            _pause(turn)
            upload = self._open(upload.key, upload.id)
            if part in upload.parts:  # the answer was lost
                return
        raise _busy(upload.id)

    def _closed(self, key: str, upload_id: str, parts: Sequence[Part]) -> UploadRow:
        """The upload, to which nothing comes any more."""
        for turn in range(_TRIES):
            upload = self._known(key, upload_id)
            check_parts(parts, [one.part() for one in upload.parts], upload.part_size)
            if upload.is_closed:
                return upload
            self._rows.upload_set(upload, upload.parts, is_closed=True)
            _pause(turn)
        raise _busy(upload_id)

    def _loosen(self, upload: UploadRow, extent: Extent) -> LooseRow:
        row = LooseRow(extent.generation, upload.key, upload.id, (extent,))
        self._rows.loose_set(row)
        return row

    def _release(self, upload: UploadRow, extents: Sequence[Extent]) -> None:
        for one in extents:
            row = self._loosen(upload, one)
            self._pieces.remove([one])
            self._rows.loose_drop(row.id)

    def _is_placed(self, upload: UploadRow) -> bool:
        found = self._rows.object_of(upload.key)
        return found is not None and found.id == upload.id

    def _used(self, row: LooseRow) -> set[str]:
        """The generations of its owner that are referred to."""
        found = self._rows.object_of(row.key)
        used = {one.generation for one in found.extents} if found is not None and found.id == row.owner else set()
        upload = self._rows.upload_of(row.owner)
        return used | {one.extent.generation for one in upload.parts} if upload is not None else used


def _pause(turn: int) -> None:
    if turn:
        time.sleep(min(0.005 * turn, 0.1))


def _busy(upload_id: str) -> Unavailable:
    return Unavailable(f"The upload {upload_id} is being changed by others.", remedy="Try again in a moment.")


def _missing(upload_id: str) -> UploadMissing:
    return UploadMissing(
        f"No upload {upload_id[:40]!r} is open for this key: it was completed or aborted, or never existed.",
        remedy="Start a new upload.",
    )
