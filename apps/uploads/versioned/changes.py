"""Which files differ between two versions, by path. Pure. What differs inside a file: `apps.code.compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Changes:
    """Paths, each list in order."""

    added: list[str]
    changed: list[str]
    removed: list[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """Of two manifests (path: SHA-256)."""
    common = before.keys() & after.keys()
    return Changes(
        added=sorted(after.keys() - common),
        changed=sorted(path for path in common if before[path] != after[path]),
        removed=sorted(before.keys() - common),
    )
