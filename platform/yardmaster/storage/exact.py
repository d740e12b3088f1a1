"""Reading exactly what was signed: so many bytes, with this SHA-256."""

from __future__ import annotations

import hashlib

from yardmaster.storage.base import ChecksumMismatch, PartsRefused, Readable


class ExactReader:
    """Passes another reader's bytes on. `what` names them in errors ("Part 3")."""

    def __init__(self, source: Readable, size: int, sha256: str, what: str) -> None:
        self._source = source
        self._size = size
        self._sha256 = sha256
        self._what = what
        self._left = size
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        """Raises `PartsRefused` at the first byte too many."""
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise PartsRefused(f"{self._what} must have {self._size} bytes; more came.")
        self._digest.update(data)
        return data

    def require_whole(self) -> None:
        """After the last byte. Raises `PartsRefused`: too few came; `ChecksumMismatch`: others came."""
        if self._left:
            raise PartsRefused(f"{self._what} must have {self._size} bytes; {self._size - self._left} came.")
        if (found := self._digest.hexdigest()) != self._sha256:
            raise ChecksumMismatch(
                f"{self._what} has the SHA-256 {found}, not {self._sha256}, which was signed.", remedy="Send it again."
            )
