"""Which tables a shelf (datasets, code) has, and what it adds to a new version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from apps.uploads.models import Kind
from apps.uploads.versioned.models import Collection, Version
from yardmaster.storage.file_list import ListedFile

C = TypeVar("C", bound=Collection)
V = TypeVar("V", bound=Version)

VersionFields = Callable[[Sequence[ListedFile]], dict[str, Any]]


def nothing_more(_: Any) -> dict[str, Any]:
    """A shelf that adds no columns of its own."""
    return {}


@dataclass(frozen=True)
class Shelf(Generic[C, V]):
    """One kind of versioned things."""

    kind: Kind
    noun: str
    collections: type[C]
    versions: type[V]
    version_fields: VersionFields = nothing_more
