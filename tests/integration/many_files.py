"""Versions of very many files, made as complete uploads leave them: for tests and measurements."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from typing import Any

from django.utils import timezone

from apps.datasets.models import Dataset, DatasetVersion
from apps.uploads.file_blocks import BLOCK
from apps.uploads.models import FileBlock, Kind, State, Upload
from yardmaster.storage.file_list import ListedFile, pack


def path_of(number: int) -> str:
    return f"train/{number // 10_000:03}/{number:07}.txt"


def version_of(owner: Any, count: int, changed: int = -1) -> DatasetVersion:
    """A version of so many files, made as a complete upload leaves it; one of them may have another content."""
    now, namespace = timezone.now(), owner.personal_namespace
    upload = Upload(
        namespace=namespace, kind=Kind.DATASET, part_size=8 << 20, file_count=count, held=count, state=State.COMPLETE,
        used=True, is_sorted=True, created_at=now, touched_at=now,
    )  # fmt: skip
    upload.key_prefix = f"datasets/{upload.target_id}"
    upload.save(force_insert=True)
    FileBlock.objects.bulk_create(_blocks(upload, count, changed), batch_size=50)
    parent = Dataset.objects.create(namespace=namespace, name=f"many {uuid.uuid4()}", latest_number=1)
    return DatasetVersion.objects.create(
        id=upload.target_id, parent=parent, number=1, upload_id=upload.pk, key_prefix=upload.key_prefix, size=count,
        file_count=count, added=count, changed=0, removed=0,
    )  # fmt: skip


def _blocks(upload: Upload, count: int, changed: int) -> Iterator[FileBlock]:
    for number, start in enumerate(range(0, count, BLOCK)):
        indexes = range(start, min(count, start + BLOCK))
        files = [_file(one, "changed" if one == changed else "") for one in indexes]
        yield FileBlock(
            upload=upload, number=number, first_path=path_of(start).encode(), packed=pack(files), size=len(files)
        )


def _file(number: int, content: str) -> ListedFile:
    """With a checksum like a real one, which takes its space in a packed list."""
    sha256 = hashlib.sha256(f"{number}{content}".encode()).hexdigest()
    return ListedFile(path_of(number), 1, sha256, sha256)
