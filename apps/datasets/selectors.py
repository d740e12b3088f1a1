"""Which dataset versions a person may see, their files, and what a version knows beyond them: records, and damage."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from apps.accounts.models import User
from apps.datasets.models import Dataset, DatasetVersion
from apps.uploads.models import Kind
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned import selectors
from apps.uploads.versioned.selectors import Shelf
from yardmaster.storage.file_list import ListedFile

_PROBLEMS_KEPT = 100


def _version_fields(files: Sequence[ListedFile]) -> dict[str, Any]:
    counts = [file.records for file in files if file.records is not None]
    damaged = [{"path": file.path, "fault": file.fault} for file in files if file.fault]
    return {"records": sum(counts) if counts else None, "problems": damaged[:_PROBLEMS_KEPT]}


DATASETS = Shelf(Kind.DATASET, "dataset", Dataset, DatasetVersion, _version_fields)


def version_for(user: User, version_id: uuid.UUID) -> DatasetVersion:
    """The version, if the user may see it; else 404."""
    return selectors.version_for(DATASETS, user, version_id)


def files_of(version: DatasetVersion) -> list[StoredFile]:
    """Its files, by path."""
    return selectors.files_of(version)
