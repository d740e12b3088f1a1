"""What is refused of any archive, and what its files have to be together. The kinds of archives: `zips`, `tars`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from yardmaster.errors import Problem, YardmasterError
from yardmaster.storage.paths import folders_of, path_fault

MAX_RATIO = 200
RATIO_MATTERS_FROM = 64 << 20
"""Below so many bytes an archive is unpacked whatever its ratio: it does no harm."""


_FOLDERS_FREE = 10_000


class ArchiveRefused(YardmasterError):
    """The archive will never be unpacked. `problems` names entries where single ones are at fault."""

    code = "archive_refused"

    def __init__(self, code: str, message: str, remedy: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(message, code=code, remedy=remedy)
        self.problems = tuple(problems)


class Paths:
    """The paths of an archive as they come: each by itself, doubled ones, and a file where another needs a folder. Of
    each only a number of 64 bits is kept, so a million costs some hundred megabytes at most. There may be twice as many
    folders as files, whatever the depth: a path can name 255 of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: set[int] = set()
        self._folders: set[int] = set()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, path: str) -> None:
        """One more. Raises `ArchiveRefused`."""
        if fault := path_fault(path):
            raise _refused(fault[0], path, fault[1])
        if len(self._files) == self._most:
            raise too_many(self._most)
        path = unicodedata.normalize("NFC", path)
        one = hash(path)
        if one in self._files:
            raise _refused("path_doubled", path, "is there twice")
        above = [hash(folder) for folder in folders_of(path)]
        if one in self._folders or not self._files.isdisjoint(above):
            raise _refused("path_conflict", path, "is a file, and a folder of other files, or lies below a file")
        self._files.add(one)
        self._folders.update(above)
        if len(self._folders) > max(_FOLDERS_FREE, 2 * self._most):
            raise ArchiveRefused("too_many_folders", f"The archive has more than {2 * self._most} folders.")


def too_many(most: int) -> ArchiveRefused:
    """More files than are unpacked."""
    message = f"The archive has more than {most} files."
    return ArchiveRefused("too_many_files", message, "Pack many small files into TFRecord shards.")


def bomb(size: int, packed: int) -> ArchiveRefused:
    """It unpacks to improbably much."""
    message = f"The archive unpacks to more than {size} bytes, over {MAX_RATIO} times its own {packed}."
    return ArchiveRefused("archive_bomb", message, "Upload the files themselves.")


def _refused(code: str, path: str, message: str) -> ArchiveRefused:
    remedy = "Rename the file, or leave it out."
    problem = Problem("archive", code, f"This path {message}.", remedy, path[:600])
    return ArchiveRefused(code, f"{path[:600]!r}: this path {message}.", remedy, [problem])
