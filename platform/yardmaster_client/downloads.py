"""Getting stored files to this machine: side by side, checked, and none half written under its own name.

What an interruption leaves of a file is a draft beside it (`.NAME.part`), which a later run continues.
"""

from __future__ import annotations

import re
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.transport import Transport
from yardmaster_client.uploads import Progress, in_order
from yardmaster_runner.checksums import Checksum
from yardmaster_runner.receiving import PIECE, Incoming

_PARALLEL = 4
_ETAG = "etag:"
"""Before a store's ETag, in the place of a checksum: nothing to compare the content with. The object is asked for by
it."""
_DOES_NOT_FIT = frozenset({"changed", "damaged", "not_continued"})
"""Codes after which a draft is of no use."""
_SMALL, _GROUP = 64 << 10, 16
"""Files up to this size are handed to a fetching thread several at a time."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at the portal. `address` is an API path that leads to its bytes, or a signed URL; `signed` one that is
    tried before where the portal gave it at once for many files."""

    path: str
    size: int
    sha256: str
    address: str
    signed: str = ""


def folder_named(name: str) -> Path:
    """A folder right here for something of this name, wherever the name would lead: others chose it."""
    plain = re.sub(r"[^\w.@+-]+", "_", name).lstrip(".")
    return Path(plain or "download")


def download(
    transport: Transport,
    files: Iterable[RemoteFile],
    folder: Path,
    progress: Progress = lambda done, total: None,
    *,
    total: int | None = None,
) -> list[Path]:
    """Write `files` below `folder`; files that are there already, unchanged, are not fetched again. Returns all paths.

    With `total`, the bytes of all files, these are taken one after another as they are needed.

    Raises:
        PortalError: the portal refused, or a file arrived damaged. ValueError: a path would leave the folder.
    """
    if total is None:
        files = list(files)
        total = sum(file.size for file in files)
    fetching = _Fetching(transport)
    places: list[Path] = []
    done = 0
    progress(0, total)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        groups = _grouped((file, _place(folder, file.path)) for file in files)
        for group in in_order(pool, fetching.fetch_all, groups, ahead=2 * _PARALLEL):
            for file, place in group:
                places.append(place)
                done += file.size
                progress(done, total)
    return places


def _grouped(files: Iterable[tuple[RemoteFile, Path]]) -> Iterator[list[tuple[RemoteFile, Path]]]:
    """Small files several at a time, others one by one: handing over costs as much as fetching a small one."""
    some: list[tuple[RemoteFile, Path]] = []
    for one in files:
        some.append(one)
        if one[0].size > _SMALL or len(some) == _GROUP:
            yield some
            some = []
    if some:
        yield some


def _place(folder: Path, path: str) -> Path:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise ValueError(f"{path!r} would lie outside of {folder}.")
    return folder.joinpath(*parts)


class _Fetching:
    """Fetches files, each whole or not at all; from any thread."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._folders: set[Path] = set()
        self._own = threading.local()

    def fetch_all(self, wanted: list[tuple[RemoteFile, Path]]) -> list[tuple[RemoteFile, Path]]:
        """Returns what it was given."""
        for file, place in wanted:
            self._fetch(file, place)
        return wanted

    def _fetch(self, file: RemoteFile, place: Path) -> None:
        if _is_here(file, place):
            return
        if place.parent not in self._folders:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(place.parent)
        draft = place.with_name(f".{place.name}.part")
        try:
            self._receive(file, draft)
            draft.replace(place)
        except BaseException as error:
            if not _is_worth_keeping(file, draft, error):
                draft.unlink(missing_ok=True)
            if isinstance(error, PortalError):
                raise error.at(file.path) from None
            raise

    def _receive(self, file: RemoteFile, draft: Path) -> None:
        """Continue what an earlier run has left. Where that does not become the file, fetch all of it."""
        if 0 < _kept(draft) <= file.size and _has_checksum(file):
            try:
                return self._receive_all(file, draft, continues=True)
            except PortalError as error:
                if error.code not in _DOES_NOT_FIT and error.status != 416:
                    raise
        return self._receive_all(file, draft, continues=False)

    def _receive_all(self, file: RemoteFile, draft: Path, *, continues: bool) -> None:
        if file.signed:
            try:
                return self._receive_from(self._transport.read_signed, file.signed, file, draft, continues)
            except PortalError as error:
                if error.status != 403:  # it has expired while others were fetched
                    raise
        return self._receive_from(self._transport.download, file.address, file, draft, continues)

    def _receive_from(
        self, read: Callable[[str, Incoming, str], object], address: str, file: RemoteFile, draft: Path, continues: bool
    ) -> None:
        """A file that is as it was when it was stored."""
        etag = file.sha256.removeprefix(_ETAG) if file.sha256.startswith(_ETAG) else ""
        checksum = Checksum(file.size, file.sha256) if _has_checksum(file) else None
        look = checksum.update if checksum else None
        with Incoming(str(draft), look, self._space(), continues=continues) as incoming:
            if not continues or incoming.size < file.size:
                read(address, incoming, etag)
        if checksum is None and incoming.size != file.size:
            message = f"{file.path} was changed in its bucket after the dataset was registered."
            raise PortalError(502, "changed", message, "Scan the dataset again, and download its new version.")
        if checksum and checksum.text() != file.sha256:
            raise PortalError(502, "damaged", f"{file.path} arrived damaged.", "Download it again.")

    def _space(self) -> memoryview:
        """Of this thread, for all of its files."""
        if not hasattr(self._own, "space"):
            self._own.space = memoryview(bytearray(PIECE))
        space: memoryview = self._own.space
        return space


def _has_checksum(file: RemoteFile) -> bool:
    return bool(file.sha256) and not file.sha256.startswith(_ETAG)


def _kept(draft: Path) -> int:
    """Bytes of a draft that an earlier run left; 0 where there is no such file."""
    try:
        found = draft.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_worth_keeping(file: RemoteFile, draft: Path, error: BaseException) -> bool:
    """Whether a later run may continue the draft: the store was away or in trouble, and a checksum will tell whether
    what is there fits."""
    is_trouble = isinstance(error, NotReachable) or (
        isinstance(error, PortalError) and error.status >= 500 and error.code not in _DOES_NOT_FIT
    )
    return is_trouble and _has_checksum(file) and _kept(draft) > 0


def _is_here(file: RemoteFile, place: Path) -> bool:
    if not _has_checksum(file) or not place.is_file() or place.stat().st_size != file.size:
        return False
    return checksum_of(place, file.size, file.sha256) == file.sha256


def checksum_of(place: Path, size: int, like: str) -> str:
    """The checksum of a file of this size here, in the form of another: plain, or of parts."""
    checksum, space = Checksum(size, like), memoryview(bytearray(PIECE))
    with place.open("rb", buffering=0) as stream:
        while count := stream.readinto(space):
            checksum.update(space[:count])
    return checksum.text()
