"""What a dataset version knows beyond its files: records, and damage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.datasets.models import Dataset, DatasetFile, DatasetVersion
from apps.uploads.models import Kind
from apps.uploads.selectors import CountedFile
from apps.uploads.versioned.shelf import Shelf

_PROBLEMS_KEPT = 100


def _file_fields(file: CountedFile) -> dict[str, Any]:
    return {"records": file.records, "fault": file.fault}


def _version_fields(files: Sequence[CountedFile]) -> dict[str, Any]:
    counts = [file.records for file in files if file.records is not None]
    damaged = [{"path": file.path, "fault": file.fault} for file in files if file.fault]
    return {"records": sum(counts) if counts else None, "problems": damaged[:_PROBLEMS_KEPT]}


DATASETS = Shelf(Kind.DATASET, "dataset", Dataset, DatasetVersion, DatasetFile, _file_fields, _version_fields)
