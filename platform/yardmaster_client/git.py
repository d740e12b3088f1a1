"""Code from Git: the portal fetches it, and this waits for it. Nothing here speaks to a Git host."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from yardmaster_client.errors import PortalError
from yardmaster_client.models import read
from yardmaster_client.transport import Transport

PREFIX = "git+"
FIELDS = ("git", "ref", "folder", "name", "token")
_LOOK_EVERY = 0.5


@dataclass(frozen=True)
class GitImport:
    """Code that is fetched. When its state is `ready`, `code_version` is what a job names as its code."""

    id: str
    state: str
    name: str = ""
    repository: str = ""
    ref: str = ""
    folder: str = ""
    commit: str = ""
    bytes: int = 0
    notes: dict[str, Any] = field(default_factory=dict)
    problem: dict[str, Any] | None = None
    code_version: str | None = None
    is_new: bool = False
    created_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.state in ("ready", "failed")

    @property
    def warnings(self) -> list[str]:
        """What is to be known of the files, a sentence each."""
        found = []
        for kind, words in _WORDS.items():
            if kind in self.notes:
                count, first = self.notes[kind]["count"], ", ".join(self.notes[kind]["first"][:3])
                found.append(f"{words}: {first}{f' and {count - 3} more' if count > 3 else ''}.")
        return found


_WORDS = {
    "submodules": "Submodules are left out",
    "lfs": "Pointers of Git LFS come without their content",
    "links": "Links to folders, or to nothing, are left out",
}


def is_git(code: object) -> bool:
    """Whether a job file's `code` is an address of Git: `git+https://…`, or `{git: https://…, ref: …, folder: …}`."""
    return code.startswith(PREFIX) if isinstance(code, str) else isinstance(code, Mapping) and "git" in code


def wanted_of(code: str | Mapping[str, Any], token: str = "") -> dict[str, Any]:
    """What `code` says, as arguments of `fetch`. Raises `ValueError` for a key that is not known."""
    said: Mapping[str, Any] = {"git": code} if isinstance(code, str) else code
    if unknown := sorted(set(said) - set(FIELDS)):
        raise ValueError(f"code: {unknown[0]!r} is not known. Code from Git has {', '.join(FIELDS)}.")
    texts = {key: str(value) for key, value in said.items()}
    return {
        "address": texts["git"], "ref": texts.get("ref", ""), "folder": texts.get("folder", ""),
        "name": texts.get("name", ""), "git_token": token or texts.get("token", ""),
    }  # fmt: skip


def fetch(
    transport: Transport,
    wanted: Mapping[str, str],
    namespace: str | None,
    each: Callable[[GitImport], object],
) -> GitImport:
    """Have the portal fetch it, and wait. `each` is called whenever something is new. Raises `PortalError`."""
    body = {key: value for key, value in wanted.items() if value} | ({"namespace": namespace} if namespace else {})
    found = read(GitImport, transport.post("code-imports/", body))
    seen: GitImport | None = None
    while True:
        if found != seen:
            each(found)
        if found.state == "failed":
            raise _failed(found)
        if found.is_over:
            return found
        time.sleep(_LOOK_EVERY)
        seen, found = found, read(GitImport, transport.get(f"code-imports/{found.id}/"))


def _failed(found: GitImport) -> PortalError:
    problem = found.problem or {"code": "git_failed", "detail": "The code was not fetched."}
    return PortalError.from_answer(422, {key: value for key, value in problem.items() if key != "kind"})
