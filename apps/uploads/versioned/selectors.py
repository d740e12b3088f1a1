"""Which tables a store (datasets, code) has, which of its things a person may see, their files, and what differs
between two versions. A foreign id is a 404. What differs inside a file: `apps.code.compare`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Collection as Some
from dataclasses import dataclass
from datetime import timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Generic, TypeVar

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from apps.accounts.models import User
from apps.api.audience import audience
from apps.errors import NotFound
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespaces_visible, reading_note, require_role
from apps.stores import storage
from apps.uploads import file_blocks
from apps.uploads.models import Kind
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned.listed import Listed
from apps.uploads.versioned.models import Collection, Version
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile

C = TypeVar("C", bound=Collection)
V = TypeVar("V", bound=Version)

ALL = Q()
VersionFields = Callable[[Iterable[ListedFile]], dict[str, Any]]


def nothing_more(_: Any) -> dict[str, Any]:
    """A store that adds no columns of its own."""
    return {}


@dataclass(frozen=True)
class VersionStore(Generic[C, V]):
    """One kind of versioned things."""

    kind: Kind
    noun: str
    collections: type[C]
    versions: type[V]
    version_fields: VersionFields = nothing_more
    """Columns of its own, from the files whose records were counted or in which a fault was found."""
    live: Q = ALL
    """Which things are there for people, and `live_versions` which versions, where deleted ones stay for a while."""
    live_versions: Q = ALL
    announces: bool = False
    """Whether each new version is an event that may be sent out (`dispatch.outbox.happened`)."""


@dataclass(frozen=True)
class Changes:
    """Paths, each list in order, of very many the first; and how many there are."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    counts: Mapping[str, int]

    def __bool__(self) -> bool:
        return any(self.counts.values())


def changes_between(before: Iterable[ListedFile], after: Iterable[ListedFile], most: int | None = None) -> Changes:
    """Of two lists of files, each in the order of its paths; up to `most` paths of a kind. Holds neither of them.
    Of lists that are stored: `comparing`."""
    paths: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    counts = dict.fromkeys(paths, 0)
    both = merge(((one.path, 0, one.sha256) for one in before), ((one.path, 1, one.sha256) for one in after))
    for path, found in groupby(both, key=itemgetter(0)):
        sides = {side: sha256 for _, side, sha256 in found}
        if len(sides) == 2 and sides[0] == sides[1]:
            continue
        kind = "changed" if len(sides) == 2 else "added" if 1 in sides else "removed"
        counts[kind] += 1
        if most is None or counts[kind] <= most:
            paths[kind].append(path)
    return Changes(**paths, counts=counts)


DOWNLOAD_LIFE = timedelta(minutes=10)


def collections_visible(store: VersionStore[C, V], user: User) -> QuerySet[C]:
    """Those in the user's namespaces."""
    visible: QuerySet[C] = store.collections._default_manager.filter(namespace__in=namespaces_visible(user))
    rows = visible.filter(store.live)
    return rows.select_related("namespace", "created_by")


def collection_for(
    store: VersionStore[C, V], user: User, collection_id: uuid.UUID, *, at_least: Role = Role.VIEWER
) -> C:
    """The thing, if the user may see it. Raises 404, or 403 where the role is too low."""
    found = collections_visible(store, user).filter(pk=collection_id).first()
    if found is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, found.namespace, at_least)
    reading_note(user, store.noun, found.pk, found.namespace)
    return found


def version_for(store: VersionStore[C, V], user: User, version_id: uuid.UUID, *, at_least: Role = Role.VIEWER) -> V:
    """The version, if the user may see it. Raises as above."""
    rows = versions_visible(store, user).select_related("parent__namespace", "created_by")
    found = rows.filter(pk=version_id).first()
    if found is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, parent_of(found).namespace, at_least)
    reading_note(user, store.noun, parent_of(found).pk, parent_of(found).namespace)
    return found


def versions_visible(store: VersionStore[C, V], user: User) -> QuerySet[V]:
    """The versions of everything that the user may see."""
    versions: Any = store.versions._default_manager
    rows: QuerySet[V] = versions.filter(store.live_versions, parent__namespace__in=namespaces_visible(user))
    return rows


def with_newest(store: VersionStore[C, V], rows: QuerySet[C]) -> QuerySet[C]:
    """The rows with their newest version at hand (`newest_of`), in one more query for all of them."""
    versions: Any = store.versions._default_manager
    there = versions.filter(store.live_versions)
    newer = there.filter(parent=OuterRef("parent"), number__gt=OuterRef("number"))
    newest = there.filter(~Exists(newer)).select_related("created_by")
    return rows.prefetch_related(Prefetch("versions", queryset=newest, to_attr="newest"))


def newest_of(collection: C) -> Any:
    """The newest version, or None where all were deleted."""
    if hasattr(collection, "newest"):
        return next(iter(collection.newest), None)
    return collection.versions.select_related("created_by").order_by("-number").first()  # type: ignore[attr-defined]


def parent_of(version: Version) -> Any:
    """What this is a version of."""
    return version.parent  # type: ignore[attr-defined]


def versions_of(store: VersionStore[C, V], collection: C) -> QuerySet[V]:
    """All versions of the thing."""
    versions: Any = store.versions._default_manager
    rows: QuerySet[V] = versions.filter(store.live_versions, parent=collection)
    return rows.select_related("created_by")


def version_numbered(store: VersionStore[C, V], collection: C, number: int | None) -> V | None:
    """The version with this number, or the newest (None where all were deleted). 404 for a number that is not there."""
    rows = versions_of(store, collection).order_by("-number")
    if number is None:
        return rows.first()
    found = rows.filter(number=number).first()
    if found is None:
        raise NotFound(f"There is no version {number} of this {store.noun}.", remedy="It may have been deleted.")
    return found


def version_before(store: VersionStore[C, V], version: V) -> V | None:
    """The version that this one followed, as far as it is still there."""
    rows = versions_of(store, parent_of(version)).filter(number__lt=version.number)
    return rows.order_by("-number").first()


def files_in(version: Version | Listed, after: str = "") -> Iterator[ListedFile]:
    """The version's files behind a path, by path, with what was found in them; read as they are needed."""
    return file_blocks.files_after(version.upload_id, after)


def files_of(version: Version | Listed, after: str = "") -> Iterator[StoredFile]:
    """The same with where they lie."""
    for file in files_in(version, after):
        yield StoredFile(file.path, file.size, file.sha256, file_key(version, file.path))


def file_for(version: Version, path: str) -> ListedFile:
    """One file by its path, exactly. Raises 404."""
    found = files_at(version, [path]).get(path)
    if found is None:
        raise NotFound("This version has no such file.", remedy="Its files/ address lists them.")
    return found


def files_at(version: Version, paths: Some[str]) -> dict[str, ListedFile]:
    """Several files by their paths; those that the version has not are left out."""
    return file_blocks.files_at(version.upload_id, set(paths))


def file_key(version: Version | Listed, path: str) -> str:
    """Where a file of the version lies."""
    return key_join(version.key_prefix, path)


def download_url(version: Version, path: str, *, content_type: str = "") -> str:
    """A short-lived address of the file's bytes."""
    name = path.rpartition("/")[2]
    return storage().read_url(
        file_key(version, path), DOWNLOAD_LIFE, filename=name, content_type=content_type, audience=audience()
    )
