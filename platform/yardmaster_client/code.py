"""`portal.code`: what every store can do, and code as a folder to work in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from yardmaster_client import git, notebook
from yardmaster_client.downloads import folder_named
from yardmaster_client.git import GitImport
from yardmaster_client.models import Code, CodeVersion
from yardmaster_client.names import find_version
from yardmaster_client.stores import Store
from yardmaster_client.transport import Transport


class CodeStore(Store[Code, CodeVersion]):
    """The code that jobs run."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport, "code", Code, CodeVersion)

    def open(self, reference: str, folder: Path | str | None = None, *, namespace: str | None = None) -> Path:
        """Put a version's files into a folder to work on: `name` (the newest), `name@version` or an id. The folder, by
        default one of the code's name right here, must be empty or new, so that no change in it is lost.

        Raises:
            ValueError: the folder has files.
        """
        version = find_version(self, reference, namespace)
        place = Path(folder) if folder is not None else folder_named(self.get(version.parent).name)
        if place.exists() and any(place.iterdir()):
            raise ValueError(f"{place} has files: name a folder that is new or empty, so that none of them is lost.")
        place.mkdir(parents=True, exist_ok=True)
        self.download(version.id, place, notebook.progress(f"Opening {reference}"))
        return place

    def save(
        self, folder: Path | str, name: str | None = None, note: str = "", *, namespace: str | None = None
    ) -> Code:
        """Make a folder's files a new version of the code `name` (by default: the folder's), or its first one. Where
        nothing has changed since the newest, that stays the newest."""
        place = Path(folder)
        name = name or place.resolve().name
        seen = notebook.progress(f"Saving {name}")
        return self.put(name, [place], namespace=namespace, note=note, unless_same=True, progress=seen)

    def fetch(
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
        wanted = {"address": address, "ref": ref, "folder": folder, "name": name, "git_token": git_token}
        return git.fetch(self._transport, wanted, namespace, each)
