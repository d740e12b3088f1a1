"""Getting stored files to this machine: side by side, checked, and without a half-written file left behind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from yardmaster_client.errors import PortalError
from yardmaster_client.transport import Transport
from yardmaster_client.uploads import Progress, in_order
from yardmaster_runner.checksums import Checksum

_PARALLEL = 4
_ETAG = "etag:"
"""Before a store's ETag, in the place of a checksum: nothing to compare the content with."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    """A file at the portal. `address` is an API path that leads to its bytes, or a signed URL."""

    path: str
    size: int
    sha256: str
    address: str


def folder_named(name: str) -> Path:
    """A folder right here for something of this name, wherever the name would lead: others chose it."""
    plain = re.sub(r"[^\w.@+-]+", "_", name).lstrip(".")
    return Path(plain or "download")


def download(
    transport: Transport,
    files: Iterable[RemoteFile],
    folder: Path,
    progress: Progress = lambda done, total: None,
) -> list[Path]:
    """Write `files` below `folder`; files that are there already, unchanged, are not fetched again. Returns all paths.

    Raises:
        PortalError: the portal refused, or a file arrived damaged. ValueError: a path would leave the folder.
    """
    wanted = [(file, _place(folder, file.path)) for file in files]
    total, done = sum(file.size for file, _ in wanted), 0
    progress(0, total)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        arriving = in_order(pool, lambda one: _fetch(transport, *one), wanted, ahead=4 * _PARALLEL)
        for (file, _), _ in zip(wanted, arriving, strict=True):
            done += file.size
            progress(done, total)
    return [place for _, place in wanted]


def _place(folder: Path, path: str) -> Path:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
        raise ValueError(f"{path!r} would lie outside of {folder}.")
    return folder.joinpath(*parts)


def _fetch(transport: Transport, file: RemoteFile, place: Path) -> None:
    if _is_here(file, place):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.part")
    known = "" if file.sha256.startswith(_ETAG) else file.sha256
    checksum, size = Checksum(file.size, known), 0
    try:
        with draft.open("wb") as stream:
            size = transport.download(file.address, _both(stream.write, checksum.update))
        if size != file.size and not known:
            message = f"{file.path} was changed in its bucket after the dataset was registered."
            raise PortalError(502, "changed", message, "Scan the dataset again, and download its new version.")
        if known and checksum.text() != known:
            raise PortalError(502, "damaged", f"{file.path} arrived damaged.", "Download it again.")
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def _is_here(file: RemoteFile, place: Path) -> bool:
    if not file.sha256 or file.sha256.startswith(_ETAG) or not place.is_file() or place.stat().st_size != file.size:
        return False
    return checksum_of(place, file.size, file.sha256) == file.sha256


def checksum_of(place: Path, size: int, like: str) -> str:
    """The checksum of a file of this size here, in the form of another: plain, or of parts."""
    checksum = Checksum(size, like)
    with place.open("rb") as stream:
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            checksum.update(chunk)
    return checksum.text()


def _both(one: Callable[[bytes], object], other: Callable[[bytes], object]) -> Callable[[bytes], None]:
    def write(data: bytes) -> None:
        one(data)
        other(data)

    return write
