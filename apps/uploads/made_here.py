"""An upload whose bytes a worker has already: one archive that becomes the files of a version. It is reserved, checked
and charged as what people send.

Not here: unpacking it (`unpacking`), and who made the archive.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from django.utils import timezone

from apps.accounts.models import User
from apps.errors import NotFound
from apps.namespaces.models import Namespace
from apps.stores import storage
from apps.uploads.manifest import found_note
from apps.uploads.models import Kind, State, Upload
from apps.uploads.services import upload_begin
from yardmaster.storage.base import key_join
from yardmaster.storage.facts import FactFinder
from yardmaster.storage.file_list import ListedFile


def archive_begin(*, namespace: Namespace, actor: User | None, kind: Kind, file: Path) -> Upload:
    """Reserve its bytes. Raises `Invalid`, `QuotaExceeded` and `Conflict`."""
    listed = ListedFile(file.name, file.stat().st_size)
    return upload_begin(namespace=namespace, actor=actor, kind=kind, files=[listed])


def archive_put(upload: Upload, file: Path, beat: Callable[[int], None]) -> None:
    """Put the bytes into the store and leave the rest to `upload_finish`. `beat` gets the size
    of each piece. Raises `Unavailable`, and `NotFound` where the upload is gone."""
    with file.open("rb") as source:
        finder = FactFinder(source, beat=beat)
        storage().put(key_join(upload.key_prefix, file.name), finder)
    found_note(upload.pk, {0: finder.facts()})
    rows = Upload.objects.filter(pk=upload.pk, state=State.OPEN)
    if not rows.update(state=State.COMPLETING, unpack=True, problem=None, touched_at=timezone.now(), leased_until=None):
        raise NotFound()
