"""Which dataset versions a person may see, and their files. Reads only."""

from __future__ import annotations

import uuid

from apps.accounts.models import User
from apps.datasets.models import DatasetVersion
from apps.datasets.shelf import DATASETS
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned import selectors


def version_for(user: User, version_id: uuid.UUID) -> DatasetVersion:
    """The version, if the user may see it; else 404."""
    return selectors.version_for(DATASETS, user, version_id)


def files_of(version: DatasetVersion) -> list[StoredFile]:
    """Its files, by path."""
    return selectors.files_of(version)
