"""Making, changing and deleting versioned things. A version is made in one transaction, of bytes already there.

Not here: uploads (`apps.uploads.services`), and what each store finds in files.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.audit.changes import changes
from apps.audit.services import record
from apps.dispatch.outbox import happened
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Namespace
from apps.uploads.file_blocks import noteworthy_of
from apps.uploads.models import Upload
from apps.uploads.services import upload_use, uploads_discard
from apps.uploads.versioned.comparing import lists_compare
from apps.uploads.versioned.models import Collection, Version, versions_deleting
from apps.uploads.versioned.selectors import VersionStore
from yardmaster.errors import Problem

C = TypeVar("C", bound=Collection)
V = TypeVar("V", bound=Version)

MAX_NAME = 100
_CLEARED_AT_ONCE = 50


def collection_create(
    store: VersionStore[C, V],
    *,
    namespace: Namespace,
    actor: User | None,
    name: str,
    description: str,
    upload: Upload,
    note: str = "",
    more: Mapping[str, Any] = MappingProxyType({}),
) -> C:
    """Make the thing with its first version; `note` and `more` are that one's. Raises `Conflict` for a taken name, or
    an upload that is not complete."""
    _check_upload(store, upload, namespace)
    try:
        with transaction.atomic():
            made = store.collections(
                namespace=namespace, name=checked_name(name), description=description, created_by=actor
            )
            made.save(force_insert=True)
            _version_create(store, made, actor=actor, upload=upload, note=note, more=more)
            record(actor, f"{store.noun}.create", f"{store.noun}:{made.pk}", namespace=namespace, name=made.name)
    except IntegrityError as error:
        raise _name_taken(name, namespace) from error
    return made


def version_add(
    store: VersionStore[C, V],
    collection: C,
    *,
    actor: User | None,
    upload: Upload,
    note: str = "",
    more: Mapping[str, Any] = MappingProxyType({}),
) -> V:
    """The next version; `more` are columns of its own. Raises `Conflict` for an upload that is not complete."""
    _check_upload(store, upload, collection.namespace)
    with transaction.atomic():
        made = _version_create(store, collection, actor=actor, upload=upload, note=note, more=more)
        record(
            actor, f"{store.noun}_version.create", f"{store.noun}_version:{made.pk}",
            namespace=collection.namespace, of=str(collection.pk), number=made.number,
        )  # fmt: skip
    return made


def collection_change(
    store: VersionStore[C, V],
    collection: C,
    *,
    actor: User | None,
    name: str | None = None,
    description: str | None = None,
) -> C:
    """Rename or describe; None leaves it as it is."""
    before = {"name": collection.name, "description": collection.description}
    if name is not None and name != collection.name:
        collection.name = checked_name(name)
    if description is not None:
        collection.description = description
    facts = changes(before, {"name": collection.name, "description": collection.description})
    try:
        with transaction.atomic():
            collection.save(update_fields=["name", "description"])
            subject = f"{store.noun}:{collection.pk}"
            if facts:
                record(actor, f"{store.noun}.change", subject, namespace=collection.namespace, **facts)
    except IntegrityError as error:
        raise _name_taken(collection.name, collection.namespace) from error
    return collection


def collection_delete(store: VersionStore[C, V], collection: C, *, actor: User | None) -> None:
    """Delete the thing with all its versions. Raises `Conflict` while an unfinished job uses one of them."""
    with transaction.atomic():
        _lock(store, collection.pk)
        versions = list(_versions(store).filter(parent=collection.pk))
        refuse_in_use(store, versions)
        collection.delete()
        record(
            actor, f"{store.noun}.delete", f"{store.noun}:{collection.pk}",
            namespace=collection.namespace, name=collection.name, versions=len(versions),
        )  # fmt: skip
        uploads_discard(version.upload_id for version in versions)


def collections_clear(store: VersionStore[C, V], namespace: Namespace, *, actor: User | None) -> int:
    """Delete the things of a namespace of which nothing shall stay, some at a time. Returns how many are still there.
    Raises `Conflict` like `collection_delete`."""
    found: Any = store.collections
    for collection in found.objects.filter(namespace=namespace)[:_CLEARED_AT_ONCE]:
        collection_delete(store, collection, actor=actor)
    return int(found.objects.filter(namespace=namespace).count())


def version_delete(store: VersionStore[C, V], collection: C, version: V, *, actor: User | None) -> None:
    """Delete one version. Raises `Conflict` while an unfinished job uses it."""
    with transaction.atomic():
        _lock(store, collection.pk)
        refuse_in_use(store, [version])
        subject = f"{store.noun}_version:{version.pk}"
        upload_id, number = version.upload_id, version.number
        version.delete()
        record(
            actor, f"{store.noun}_version.delete", subject,
            namespace=collection.namespace, of=str(collection.pk), number=number,
        )  # fmt: skip
        uploads_discard([upload_id])


def checked_name(name: str) -> str:
    """The name in one normal form. Raises `Invalid`."""
    name = unicodedata.normalize("NFC", name).strip()
    if not 1 <= len(name) <= MAX_NAME or any(unicodedata.category(sign)[0] == "C" for sign in name):
        message = f"A name has 1 to {MAX_NAME} characters, none of them a control character."
        raise Invalid([Problem("name", "invalid", message, "Choose another name.", name)])
    return name


def _version_create(
    store: VersionStore[C, V],
    collection: C,
    *,
    actor: User | None,
    upload: Upload,
    note: str,
    more: Mapping[str, Any] = MappingProxyType({}),
) -> V:
    locked = _lock(store, collection.pk)
    upload_use(upload)
    newest = _versions(store).filter(parent=collection.pk).order_by("-number").first()
    change = lists_compare(newest.upload_id if newest else None, upload.pk, most=0).changes.counts
    locked.latest_number += 1
    locked.save(update_fields=["latest_number"])
    made: V = store.versions(
        id=upload.target_id, parent=locked, number=locked.latest_number, note=note, upload_id=upload.pk,
        key_prefix=upload.key_prefix, size=upload.held, file_count=upload.file_count,
        added=change["added"], changed=change["changed"], removed=change["removed"], created_by=actor,
        **store.version_fields(noteworthy_of(upload.pk)), **more,
    )  # fmt: skip
    made.save(force_insert=True)
    if store.announces:
        about = {
            store.noun: collection.name, "number": made.number, "bytes": made.size, "files": made.file_count,
            "note": note,
        }  # fmt: skip
        kind = f"{store.noun}_version"
        happened(f"{kind}.created", made.pk, collection.namespace_id, kind, None, **about)
    return made


def _lock(store: VersionStore[C, V], collection_id: uuid.UUID) -> C:
    """Of two changes of the same thing at once, one waits."""
    found = store.collections._default_manager.select_for_update().filter(pk=collection_id).first()
    if found is None:
        raise NotFound()
    return found


def _versions(store: VersionStore[C, V]) -> Any:
    return store.versions._default_manager


def _check_upload(store: VersionStore[C, V], upload: Upload, namespace: Namespace) -> None:
    if upload.kind != store.kind:
        message = f"This is an upload of {upload.kind}, not of {store.kind}."
        raise Invalid([Problem("upload", "invalid", message, "Upload the files again with the right kind.")])
    if upload.namespace_id != namespace.pk:
        message = "This upload belongs to another namespace, and its bytes to that one's quota."
        raise Invalid([Problem("upload", "invalid", message, f"Upload the files into {namespace.slug}.")])


def versions_in_use(store: VersionStore[C, V], version_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these versions unfinished jobs need."""
    answers = versions_deleting.send(store.versions, version_ids=set(version_ids))
    used: set[Any] = {one for _, in_use in answers for one in in_use or ()}
    return used


def refuse_in_use(store: VersionStore[C, V], versions: Iterable[V]) -> None:
    """Raise `Conflict` where an unfinished job needs one of these versions."""
    numbers = {version.pk: version.number for version in versions}
    used = versions_in_use(store, numbers)
    if used:
        raise Conflict(
            f"An unfinished job uses version {min(numbers[one] for one in used)} of this {store.noun}.",
            "in_use",
            remedy="Wait until the job has ended, or stop it.",
        )


def _name_taken(name: str, namespace: Namespace) -> Conflict:
    detail = f"The name {name[:100]!r} already exists in {namespace.slug}."
    return Conflict(detail, "name_taken", remedy="Choose another name, or add a version to it.")
