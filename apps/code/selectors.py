"""Which code versions a person may see, their files and source text. Reads only."""

from __future__ import annotations

import uuid

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.code.shelf import CODE
from apps.stores.objects import storage
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned import selectors

_SOURCE = ".py"


def version_for(user: User, version_id: uuid.UUID) -> CodeVersion:
    """The version, if the user may see it; else 404."""
    return selectors.version_for(CODE, user, version_id)


def files_of(version: CodeVersion) -> list[StoredFile]:
    """Its files, by path."""
    return selectors.files_of(version)


def sources_of(version: CodeVersion, limit_bytes: int) -> dict[str, str]:
    """The text of its Python files, by path, as long as `limit_bytes` last: shallow and small ones come first, so that
    entry points are there whatever lies beside them. What is not UTF-8 has replacement characters."""
    python = [file for file in files_of(version) if file.path.endswith(_SOURCE)]
    sources: dict[str, str] = {}
    for file in sorted(python, key=lambda file: (file.path.count("/"), file.size, file.path)):
        if file.size <= limit_bytes:
            limit_bytes -= file.size
            with storage().open_range(file.key) as stream:
                sources[file.path] = stream.read(file.size).decode("utf-8-sig", "replace")
    return sources
