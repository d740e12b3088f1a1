"""The tables of datasets, and what a version knows beyond its files: records, and damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.datasets.models import Dataset, DatasetVersion
from apps.uploads.models import Kind
from apps.uploads.versioned.selectors import VersionStore
from yardmaster.storage.file_list import ListedFile

_PROBLEMS_KEPT = 100


def _version_fields(files: Sequence[ListedFile]) -> dict[str, Any]:
    counts = [file.records for file in files if file.records is not None]
    damaged = [{"path": file.path, "fault": file.fault} for file in files if file.fault]
    return {"records": sum(counts) if counts else None, "problems": damaged[:_PROBLEMS_KEPT]}


DATASETS = VersionStore(Kind.DATASET, "dataset", Dataset, DatasetVersion, _version_fields)
