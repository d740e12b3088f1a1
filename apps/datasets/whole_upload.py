"""An upload that the portal itself fills, whole files at once: what it made becomes a version of a dataset."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import IO

from apps.accounts.models import User
from apps.namespaces.models import Namespace
from apps.stores import storage
from apps.uploads.finishing import upload_finish
from apps.uploads.models import Kind, State, Upload
from apps.uploads.services import upload_begin, upload_complete
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.checksums import Checksum


def listed(path: str, content: IO[bytes]) -> ListedFile:
    """How an upload lists this file, which is read from its begin; afterwards it is at its begin again."""
    size = content.seek(0, 2)
    checksum = Checksum(size)
    content.seek(0)
    while piece := content.read(1 << 20):
        checksum.update(piece)
    content.seek(0)
    return ListedFile(path, size, checksum.text())


def upload_filled(
    namespace: Namespace,
    actor: User | None,
    files: Sequence[tuple[ListedFile, Callable[[], IO[bytes]]]],
    begun: Callable[[uuid.UUID], None],
    beat: Callable[[], None],
) -> Upload:
    """The upload of these files, complete. `begun` gets its id before the first file is stored, `beat` is called after
    each; both may raise. Raises `QuotaExceeded`."""
    every = [one for one, _ in files]
    upload = upload_begin(namespace=namespace, actor=actor, kind=Kind.DATASET, files=every)
    # The portal puts each file there whole, whatever its size.
    Upload.objects.filter(pk=upload.pk).update(part_size=max(upload.part_size, *(one.size for one in every)))
    begun(upload.pk)
    for file, opened in files:
        with opened() as content:
            storage().put(key_join(upload.key_prefix, file.path), content)
        beat()
    upload = upload_complete(upload)
    if upload.state == State.COMPLETING:
        upload_finish(upload.pk)
    beat()
    return Upload.objects.select_related("namespace").get(pk=upload.pk)
