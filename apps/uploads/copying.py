"""Copying everything that is stored from one object store to another, for a portal that moves: the bytes of complete
uploads, each compared with the checksum that was noted when it came.

It may be interrupted and repeated: what is there already is only compared again. Uploads that are still under way are
not copied; their senders send them again. Nor are the files of registered buckets, which lie in the buckets of others,
and what lies in Apache Ignite, where it stays.
Not here: which stores there are (the settings).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from django.db.models import Q

from apps.buckets.access import PREFIX
from apps.stores import IGNITE
from apps.uploads.file_blocks import manifest_of
from apps.uploads.models import State, Upload
from yardmaster.storage.assembly import in_parallel
from yardmaster.storage.base import ObjectMissing, Storage, key_join
from yardmaster.storage.facts import FactFinder, find_facts
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.checksums import Checksum

NAMED = 20
"""Problems that are kept in words; the others are counted."""


@dataclass
class Copied:
    """What came of it. `failed` counts the objects that are missing or damaged where they were copied from, and those
    that did not arrive as they were sent; `problems` names the first `NAMED` of them."""

    objects: int = 0
    size: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, file: ListedFile, problem: str) -> None:
        """Count a file, with what is wrong with it (empty: nothing)."""
        self.objects += 1
        self.size += file.size
        if problem:
            self.failed += 1
            if len(self.problems) < NAMED:
                self.problems.append(problem)


def objects_copy(source: Storage, target: Storage, beat: Callable[[Copied], None]) -> Copied:
    """Copy and compare everything; `beat` is called after each upload. Raises `Unavailable` where a store does not
    answer, and `StorageFull`: repeat it then."""
    done = Copied()
    target.prepare()
    for upload_id, prefix in _complete():
        target.prepare(prefix)  # a namespace may have a bucket of its own
        work = (partial(_copied, source, target, key_join(prefix, one.path), one) for one in manifest_of(upload_id))
        for file, problem in in_parallel(partial.__call__, work, lambda: None):
            done.add(file, problem)
        beat(done)
    return done


def _complete() -> Iterator[tuple[UUID, str]]:
    """The uploads whose objects are in the portal's own store, and their folders there."""
    elsewhere = Q(key_prefix__startswith=PREFIX) | Q(key_prefix__startswith=IGNITE)
    rows = Upload.objects.filter(state=State.COMPLETE).exclude(elsewhere).order_by("pk")
    return rows.values_list("pk", "key_prefix").iterator(chunk_size=500)


def _copied(source: Storage, target: Storage, key: str, file: ListedFile) -> tuple[ListedFile, str]:
    """The file, and what is wrong with it."""
    try:
        if not _is_there(target, key, file.size) and (sent := _send(source, target, key, file)) != file.sha256:
            target.delete(key)
            return file, f"{key} is damaged: its SHA-256 is {sent}, not {file.sha256}."
    except ObjectMissing:
        return file, f"{key} is missing."
    with target.open_range(key) as body:
        arrived = find_facts(FactFinder(body, checksum=Checksum(file.size, file.sha256))).sha256
    if arrived != file.sha256:
        target.delete(key)  # the next try sends it again
        return file, f"{key} did not arrive as it was sent: its SHA-256 is {arrived}, not {file.sha256}."
    return file, ""


def _is_there(target: Storage, key: str, size: int) -> bool:
    try:
        return target.stat(key).size == size
    except ObjectMissing:
        return False


def _send(source: Storage, target: Storage, key: str, file: ListedFile) -> str:
    with source.open_range(key) as body:
        finder = FactFinder(body, checksum=Checksum(file.size, file.sha256))
        target.put(key, finder)
    return finder.facts().sha256
