"""Verifying that a version's files are intact: every byte is read and its SHA-256 compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from apps.datasets.models import DatasetVersion
from apps.stores import storage
from apps.uploads.versioned.selectors import file_key, files_in
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.facts import FactFinder, find_facts
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.checksums import Checksum

ETAG = "etag:"
"""Before the store's ETag, in the place of a checksum: what the portal knows of content that it has not read."""
PATIENCE = 20.0
"""Seconds after which no further file is begun."""


@dataclass(frozen=True)
class Corrupt:
    """A file that is not what it was. `found` is empty where it is gone."""

    path: str
    expected: str
    found: str
    message: str


@dataclass(frozen=True)
class CheckResult:
    """`next`: the last path that was checked, where files remain; checking continues after it."""

    checked: int
    bytes: int
    corrupt: list[Corrupt]
    next: str | None


def version_check(
    version: DatasetVersion,
    *,
    after: str = "",
    patience: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CheckResult:
    """Check files in the order of their paths, from the one after `after`, at least one and for about
    `patience` seconds."""
    deadline = clock() + (PATIENCE if patience is None else patience)
    checked = size = 0
    corrupt: list[Corrupt] = []
    for file in files_in(version, after):
        if checked and clock() > deadline:
            return CheckResult(checked, size, corrupt, after)
        if fault := _fault_of(version, file):
            corrupt.append(fault)
        checked, size, after = checked + 1, size + file.size, file.path
    return CheckResult(checked, size, corrupt, None)


def _fault_of(version: DatasetVersion, file: ListedFile) -> Corrupt | None:
    if file.sha256.startswith(ETAG):
        return _change_of(version, file)
    try:
        with storage().open_range(file_key(version, file.path)) as stream:
            facts = find_facts(FactFinder(stream, checksum=Checksum(file.size, file.sha256)))
    except ObjectMissing:
        return Corrupt(file.path, file.sha256, "", "The file is missing in the object store.")
    if facts.sha256 == file.sha256:
        return None
    message = f"The file's {facts.size} bytes do not match the checksum."
    return Corrupt(file.path, file.sha256, facts.sha256, message)


def _change_of(version: DatasetVersion, file: ListedFile) -> Corrupt | None:
    """Of a file in a registered bucket, which is not read: whether it is still the object that was listed."""
    try:
        found = storage().stat(file_key(version, file.path))
    except ObjectMissing:
        return Corrupt(file.path, file.sha256, "", "The object was deleted from its bucket.")
    etag = ETAG + found.etag.strip('"')
    if etag == file.sha256 and found.size == file.size:
        return None
    message = f"The object was replaced in its bucket: it has {found.size} bytes and another ETag."
    return Corrupt(file.path, file.sha256, etag, message)
