"""Datasets, code and models: named things with immutable versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from yardmaster_client import notebook, uploads
from yardmaster_client.cache import cache_folder
from yardmaster_client.downloads import RemoteFile, checksum_of, download
from yardmaster_client.local_files import LocalFile, find_files
from yardmaster_client.models import (
    Code,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Model,
    ModelVersion,
    StoredFile,
    read,
)
from yardmaster_client.names import find_version
from yardmaster_client.transport import Transport
from yardmaster_client.uploads import one_ahead

Item = TypeVar("Item", bound=Dataset | Code | Model)
Version = TypeVar("Version", bound=DatasetVersion | CodeVersion | ModelVersion)
_FILES_AT_ONCE = _WITH_ADDRESSES = 1_000
"""Files that the portal is asked for at once, also with their addresses."""
_PATHS = {"dataset": "datasets", "code": "code", "model": "models"}


class Store(Generic[Item, Version]):
    """Datasets, code, or models."""

    def __init__(self, transport: Transport, kind: str, item: type[Item], version: type[Version]) -> None:
        self._transport, self.kind, self._item, self._version = transport, kind, item, version
        self._path = _PATHS[kind]

    def list(self, **filters: Any) -> Iterator[Item]:
        """Newest first. Filters: namespace, search."""
        return (read(self._item, row) for row in self._transport.pages(f"{self._path}/", **filters))

    def get(self, item_id: str) -> Item:
        return read(self._item, self._transport.get(f"{self._path}/{item_id}/"))

    def find(self, name: str, *, namespace: str | None = None) -> Item | None:
        """The newest one with exactly this name, or None."""
        rows = self.list(search=name, namespace=namespace)
        return next((item for item in rows if item.name == name), None)

    def versions(self, item_id: str) -> Iterator[Version]:
        """Newest first."""
        return (read(self._version, row) for row in self._transport.pages(f"{self._path}/{item_id}/versions/"))

    def version(self, version_id: str) -> Version:
        return read(self._version, self._transport.get(f"{self.kind}-versions/{version_id}/"))

    def files(self, version_id: str, *, page_size: int | None = None) -> Iterator[StoredFile]:
        """By path. `page_size`: how many are asked for at once."""
        size = page_size or _FILES_AT_ONCE
        rows = self._transport.pages(f"{self.kind}-versions/{version_id}/files/", page_size=size)
        return (read(StoredFile, row) for row in rows)

    def entries(self, version_id: str, folder: str = "") -> Iterator[dict[str, Any]]:
        """What lies in one folder, by path: `name`, `path`, `is_folder`, `files`, `size`."""
        where = {"folder": folder} if folder else {}
        return self._transport.pages(f"{self.kind}-versions/{version_id}/entries/", page_size=200, **where)

    def preview(self, version_id: str, path: str) -> dict[str, Any]:
        """What a file of a dataset looks like."""
        return dict(self._transport.get(f"dataset-versions/{version_id}/preview/", path=path))

    def check(self, version_id: str) -> Sequence[dict[str, str]]:
        """Have the portal read every file of a dataset's version and compare it with its checksum. The damaged ones,
        and those that take too long to be read there and were not compared (`found` is empty):
        `{"path", "expected", "found", "message"}`. Blocks while there is more to read."""
        corrupt: Sequence[dict[str, str]] = ()
        after = ""
        while True:
            page = self._transport.get(f"dataset-versions/{version_id}/check/", after=after)
            corrupt = (*corrupt, *page["corrupt"], *map(_unread, page.get("unread", ())))
            if page["next"] is None:
                return corrupt
            after = page["next"]

    def download(
        self, version_id: str, folder: Path, progress: uploads.Progress = lambda done, total: None
    ) -> Sequence[Path]:
        """All files of a version into `folder`. Neither their list nor their addresses are held as a whole."""
        path = f"{self.kind}-versions/{version_id}/files/"
        pages = self._transport.whole_pages(path, page_size=_WITH_ADDRESSES, addresses=1)

        def files() -> Iterator[RemoteFile]:
            for one in (read(StoredFile, row) for rows in one_ahead(pages) for row in rows):
                yield RemoteFile(
                    one.path, one.size, one.sha256, f"/api/v1/{path}content/?path={quote(one.path)}", one.url or ""
                )

        return download(self._transport, files(), folder, progress, total=self.version(version_id).size)

    def local(self, reference: str, *, namespace: str | None = None) -> Path:
        """A folder here with all files of a version: `name` (the newest), `name@version` or an id. It is downloaded
        once, below `$XDG_CACHE_HOME/yardmaster` (`~/.cache/yardmaster`), and stays until it is removed there; in a
        session, until that ends. Do not write into it."""
        version = find_version(self, reference, namespace)
        place = cache_folder() / self._path / version.id
        if not place.exists():
            draft = place.with_suffix(".part")  # continued where a download was interrupted
            draft.mkdir(parents=True, exist_ok=True)
            self.download(version.id, draft, notebook.progress(f"Downloading {reference}"))
            draft.rename(place)
        return place

    def put(
        self,
        name: str,
        paths: Iterable[Path],
        *,
        namespace: str | None = None,
        note: str = "",
        description: str = "",
        unpack: bool = False,
        unless_same: bool = False,
        follow_links: bool = False,
        left_out: Callable[[str], object] = lambda path: None,
        progress: uploads.Progress = lambda done, total: None,
    ) -> Item:
        """Upload `paths` as a new version of `name`, which is made where it does not exist.

        `unless_same`: when the newest version has exactly these files, nothing is uploaded. `left_out` is called with
        the path of each link in a folder that is not followed.
        """
        files = find_files(paths, follow_links=follow_links, left_out=left_out)
        existing = self.find(name, namespace=namespace or self._own_namespace())
        if existing and unless_same and self._is_same(existing, files):
            return existing
        upload = uploads.upload(
            self._transport, self.kind, files, namespace=namespace, unpack=unpack, progress=progress
        )
        if existing:
            self._transport.post(f"{self._path}/{existing.id}/versions/", {"upload": upload, "note": note})
            return self.get(existing.id)
        body = {"name": name, "upload": upload, "description": description}
        if namespace:
            body["namespace"] = namespace
        return read(self._item, self._transport.post(f"{self._path}/", body))

    def delete(self, item_id: str) -> None:
        self._transport.delete(f"{self._path}/{item_id}/")

    def _own_namespace(self) -> str | None:
        """Where things go that name no namespace."""
        namespaces = self._transport.get("me/").get("namespaces", ())
        return next((one["id"] for one in namespaces if one.get("personal")), None)

    def _is_same(self, item: Item, files: Sequence[LocalFile]) -> bool:
        if item.latest is None:
            return False
        there = {one.path: one for one in self.files(item.latest.id)}
        if {path: one.size for path, one in there.items()} != {one.path: one.size for one in files}:
            return False
        return all(checksum_of(one.source, one.size, there[one.path].sha256) == there[one.path].sha256 for one in files)


def _unread(path: str) -> dict[str, str]:
    message = "It takes too long to be read by the portal, and was not compared: download it and compare its SHA-256."
    return {"path": path, "expected": "", "found": "", "message": message}
