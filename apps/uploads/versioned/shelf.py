"""Which tables a shelf (datasets, code) has, and what it adds to a new version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from apps.uploads.models import Kind
from apps.uploads.selectors import CountedFile
from apps.uploads.versioned.models import Collection, Version, VersionFile

C = TypeVar("C", bound=Collection)
V = TypeVar("V", bound=Version)
F = TypeVar("F", bound=VersionFile)

FileFields = Callable[[CountedFile], dict[str, Any]]
VersionFields = Callable[[Sequence[CountedFile]], dict[str, Any]]


def nothing_more(_: Any) -> dict[str, Any]:
    """A shelf that adds no columns of its own."""
    return {}


@dataclass(frozen=True)
class Shelf(Generic[C, V, F]):
    """One kind of versioned things."""

    kind: Kind
    noun: str
    collections: type[C]
    versions: type[V]
    files: type[F]
    file_fields: FileFields = nothing_more
    version_fields: VersionFields = nothing_more
