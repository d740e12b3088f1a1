"""Removing an upload: first its quota is given back and it is gone for everybody, then its bytes go.

Cut off between the two, the sweep goes on.
"""

from __future__ import annotations

import logging
import uuid

from django.db import transaction
from django.db.models import QuerySet

from apps.uploads import storage_ledger
from apps.uploads.models import State, Upload
from apps.uploads.selectors import file_key
from apps.uploads.storage import storage
from yardmaster.errors import Unavailable

log = logging.getLogger(__name__)


def let_go(uploads: QuerySet[Upload]) -> bool:
    """Give the upload's bytes back to its namespace and mark it for removal. False: somebody else has, or it stays."""
    with transaction.atomic():
        upload = uploads.exclude(state=State.DELETING).select_for_update().first()
        if upload is None:
            return False
        if upload.state == State.COMPLETE:
            storage_ledger.use_return(upload.namespace_id, upload.held)
        else:
            storage_ledger.reservation_return(upload.namespace_id, upload.held)
        upload.state, upload.held, upload.used = State.DELETING, 0, False
        upload.save(update_fields=["state", "held", "used"])
    return True


def remove_now(upload_id: uuid.UUID) -> None:
    """Remove the bytes; where the store does not answer, the sweep tries again."""
    try:
        remove(upload_id)
    except Unavailable:
        log.warning("The object store does not answer; upload %s is removed later.", upload_id, exc_info=True)


def remove(upload_id: uuid.UUID) -> None:
    """Remove the bytes, and then the upload. Raises `Unavailable`."""
    upload = Upload.objects.filter(pk=upload_id, state=State.DELETING).first()
    if upload is None:
        return
    for file in upload.files.filter(sha256="").exclude(multipart_id=""):
        storage().multipart_abort(file_key(upload, file), file.multipart_id)
    storage().delete_prefix(upload.key_prefix)
    storage().delete_prefix(f"uploads/{upload.pk}")
    upload.delete()
