"""`Store`, `CodeStore`, `Models` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Generic

from yardmaster_client import uploads
from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.code import CodeStore
from yardmaster_client.git import GitImport
from yardmaster_client.models import Code, CodeVersion, Model, ModelVersion, StageChange, StoredFile
from yardmaster_client.registry import Models
from yardmaster_client.stores import Item, Store, Version


class AsyncStore(Asynchronous, Generic[Item, Version]):
    """See `stores.Store`."""

    _sync: Store[Item, Version]

    def list(self, **filters: Any) -> AsyncGenerator[Item, None]:
        """Newest first. Filters: namespace, search."""
        return self._iterate(partial(self._sync.list, **filters))

    async def get(self, item_id: str) -> Item:
        return await self._run(partial(self._sync.get, item_id))

    async def find(self, name: str, *, namespace: str | None = None) -> Item | None:
        """The newest one with exactly this name, or None."""
        return await self._run(partial(self._sync.find, name, namespace=namespace))

    def versions(self, item_id: str) -> AsyncGenerator[Version, None]:
        """Newest first."""
        return self._iterate(partial(self._sync.versions, item_id))

    async def version(self, version_id: str) -> Version:
        return await self._run(partial(self._sync.version, version_id))

    def files(self, version_id: str, *, page_size: int | None = None) -> AsyncGenerator[StoredFile, None]:
        """By path. `page_size`: how many are asked for at once."""
        return self._iterate(partial(self._sync.files, version_id, page_size=page_size))

    def entries(self, version_id: str, folder: str = "") -> AsyncGenerator[dict[str, Any], None]:
        """What lies in one folder, by path: `name`, `path`, `is_folder`, `files`, `size`."""
        return self._iterate(partial(self._sync.entries, version_id, folder))

    async def preview(self, version_id: str, path: str) -> dict[str, Any]:
        """What a file of a dataset looks like."""
        return await self._run(partial(self._sync.preview, version_id, path))

    async def check(self, version_id: str) -> Sequence[dict[str, str]]:
        """Have the portal read every file of a dataset's version and compare it with its checksum. The damaged ones,
        and those that take too long to be read there and were not compared (`found` is empty):
        `{"path", "expected", "found", "message"}`. Blocks while there is more to read."""
        return await self._run(partial(self._sync.check, version_id))

    async def download(
        self, version_id: str, folder: Path, progress: uploads.Progress = lambda done, total: None
    ) -> Sequence[Path]:
        """All files of a version into `folder`. Neither their list nor their addresses are held as a whole."""
        return await self._run(partial(self._sync.download, version_id, folder, progress))

    async def local(self, reference: str, *, namespace: str | None = None) -> Path:
        """A folder here with all files of a version: `name` (the newest), `name@version` or an id. It is downloaded
        once, below `$XDG_CACHE_HOME/yardmaster` (`~/.cache/yardmaster`), and stays until it is removed there; in a
        session, until that ends. Do not write into it."""
        return await self._run(partial(self._sync.local, reference, namespace=namespace))

    async def put(
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
        return await self._run(
            partial(
                self._sync.put,
                name,
                paths,
                namespace=namespace,
                note=note,
                description=description,
                unpack=unpack,
                unless_same=unless_same,
                follow_links=follow_links,
                left_out=left_out,
                progress=progress,
            )
        )

    async def delete(self, item_id: str) -> None:
        await self._run(partial(self._sync.delete, item_id))


class AsyncCodeStore(AsyncStore[Code, CodeVersion]):
    """See `code.CodeStore`."""

    _sync: CodeStore

    async def open(self, reference: str, folder: Path | str | None = None, *, namespace: str | None = None) -> Path:
        """Put a version's files into a folder to work on: `name` (the newest), `name@version` or an id. The folder, by
        default one of the code's name right here, must be empty or new, so that no change in it is lost.

        Raises:
            ValueError: the folder has files.
        """
        return await self._run(partial(self._sync.open, reference, folder, namespace=namespace))

    async def save(
        self, folder: Path | str, name: str | None = None, note: str = "", *, namespace: str | None = None
    ) -> Code:
        """Make a folder's files a new version of the code `name` (by default: the folder's), or its first one. Where
        nothing has changed since the newest, that stays the newest."""
        return await self._run(partial(self._sync.save, folder, name, note, namespace=namespace))

    async def fetch(
        self,
        address: str,
        *,
        ref: str = "",
        folder: str = "",
        name: str = "",
        git_token: str = "",
        namespace: str | None = None,
        each: Callable[[GitImport], object] = lambda one: None,
    ) -> GitImport:
        """Have the portal fetch code from Git, `git+https://host/owner/repository[@ref][#subdirectory=path]`, and wait
        until it is there: its `code_version` is what a job names as its code. What the namespace has already is not
        fetched again. `name`: of the code whose next version it becomes, by default the repository's. `git_token`: the
        name of the secret with a token for a private repository. `each` is called whenever something is new.

        Raises:
            PortalError: it was not fetched; its `code` and `remedy` say why, and what to do.
        """
        return await self._run_long(
            partial(
                self._sync.fetch,
                address,
                ref=ref,
                folder=folder,
                name=name,
                git_token=git_token,
                namespace=namespace,
                each=each,
            )
        )


class AsyncModels(AsyncStore[Model, ModelVersion]):
    """See `registry.Models`."""

    _sync: Models

    async def stage(self, version_id: str, stage: str, note: str = "") -> ModelVersion:
        """Give a version a stage: staging, production, archived, or none (an empty text)."""
        return await self._run(partial(self._sync.stage, version_id, stage, note))

    def stages(self, model_id: str) -> AsyncGenerator[StageChange, None]:
        """The history of a model's stages, newest first."""
        return self._iterate(partial(self._sync.stages, model_id))

    async def compare(self, model_id: str, numbers: Sequence[int]) -> dict[str, Any]:
        """Versions side by side: `{"versions", "parts": [{"title", "rows": [{"name", "values", "differs"}]}]}`."""
        return await self._run(partial(self._sync.compare, model_id, numbers))

    def deleted_versions(self, model_id: str) -> AsyncGenerator[ModelVersion, None]:
        """Those that can still be restored."""
        return self._iterate(partial(self._sync.deleted_versions, model_id))

    async def remove(self, model_id: str, *, now: bool = False) -> None:
        """Delete a model. Until its grace period is over it can be restored; with `now` its files go at once."""
        await self._run(partial(self._sync.remove, model_id, now=now))

    async def remove_version(self, version_id: str, *, now: bool = False) -> None:
        """Delete a version, in the same way."""
        await self._run(partial(self._sync.remove_version, version_id, now=now))

    async def restore(self, model_id: str) -> Model:
        return await self._run(partial(self._sync.restore, model_id))

    async def restore_version(self, version_id: str) -> ModelVersion:
        return await self._run(partial(self._sync.restore_version, version_id))
