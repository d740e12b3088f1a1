"""The files of a version or a model as one zip, made while it is sent: no more is kept than a piece of a file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator

from apps.stores.objects import storage
from apps.uploads.selectors import StoredFile
from yardmaster.storage.base import CHUNK, read_chunks

_ALWAYS = (1980, 1, 1, 0, 0, 0)
"""The same files give the same bytes."""


class _Outbox:
    """Where `zipfile` writes; whatever has been written is taken out again and again."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def archive_chunks(files: Iterable[StoredFile]) -> Iterator[bytes]:
    """The zip's bytes, piece by piece."""
    outbox = _Outbox()
    with zipfile.ZipFile(outbox, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for file in files:
            entry = zipfile.ZipInfo(file.path, _ALWAYS)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            entry.file_size = file.size
            with archive.open(entry, "w") as target, storage().open_range(file.key) as source:
                for chunk in read_chunks(source, CHUNK):
                    target.write(chunk)
                    if piece := outbox.take():
                        yield piece
    yield outbox.take()
