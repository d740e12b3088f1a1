"""Checksums of files as object stores keep them: of a file that came in one piece its SHA-256; of one that came in
parts the SHA-256 of its parts' SHA-256s, with their number (`9f86…-3`), which is the composite checksum of S3
(docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html).

A composite says how large the parts were: 8 MiB, doubled until so many make up the file.
"""

from __future__ import annotations

import hashlib
from typing import Iterable, Union

PART_SIZE = 8 << 20
_DOUBLED = 24


class Checksum:
    """Of bytes that pass by, in the form that `like` has: plain, or composite of parts of the same size."""

    def __init__(self, size: int, like: str = "") -> None:
        self._part_size = part_size_of(size, like)
        self._digest = hashlib.sha256()
        self._left = self._part_size
        self._parts = []  # type: ignore[var-annotated]

    def update(self, data: "Union[bytes, memoryview]") -> None:
        if not self._part_size:
            self._digest.update(data)
            return
        view = memoryview(data)
        while view:
            piece = view[: self._left]
            self._digest.update(piece)
            self._left -= len(piece)
            view = view[len(piece) :]
            if not self._left:
                self._end_part()

    def text(self) -> str:
        """Of all that was given. To be asked once."""
        if not self._part_size:
            return self._digest.hexdigest()
        if self._left < self._part_size:
            self._end_part()
        return of_parts(self._parts)

    def _end_part(self) -> None:
        self._parts.append(self._digest.hexdigest())
        self._digest, self._left = hashlib.sha256(), self._part_size


def of_parts(parts: Iterable[str]) -> str:
    """The checksum of a file whose parts have these SHA-256s (in hexadecimal), in their order."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    return "%s-%d" % (hashlib.sha256(b"".join(bytes.fromhex(one) for one in found)).hexdigest(), len(found))


def part_size_of(size: int, checksum: str) -> int:
    """Of how many bytes the parts are that this checksum of a file of `size` bytes was made of; 0: it is plain.

    Raises ValueError: no parts of a usual size make up so many.
    """
    _, dash, count = checksum.partition("-")
    if not dash:
        return 0
    for doubled in range(_DOUBLED):
        part_size = PART_SIZE << doubled
        if -(-size // part_size) == int(count):
            return part_size
    raise ValueError("%s is no checksum of %d bytes" % (checksum, size))
