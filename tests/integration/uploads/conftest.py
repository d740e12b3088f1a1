"""A store of its own per test, and what a client does to upload."""

from __future__ import annotations

import pytest

from apps.uploads.models import Upload
from apps.uploads.selectors import files_progress
from apps.uploads.services import DeclaredFile, parts_sign, upload_begin, upload_complete
from apps.uploads.storage import storage


@pytest.fixture(autouse=True)
def store(settings, tmp_path):
    """The portal's store, in the test's own folder."""
    options = settings.YARDMASTER_STORAGE["options"] | {"root": tmp_path / "objects"}
    settings.YARDMASTER_STORAGE = settings.YARDMASTER_STORAGE | {"options": options}
    return storage()
