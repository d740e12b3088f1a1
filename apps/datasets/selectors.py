"""The tables of datasets, and what a version knows beyond its files: records, and damage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apps.datasets.models import Dataset, DatasetVersion
from apps.uploads.models import Kind
from apps.uploads.versioned.selectors import VersionStore
from yardmaster.storage.file_list import ListedFile

_PROBLEMS_KEPT = 100


def _version_fields(files: Iterable[ListedFile]) -> dict[str, Any]:
    records: int | None = None
    damaged: list[dict[str, str]] = []
    for file in files:
        if file.records is not None:
            records = (records or 0) + file.records
        if file.fault and len(damaged) < _PROBLEMS_KEPT:
            damaged.append({"path": file.path, "fault": file.fault})
    return {"records": records, "problems": damaged}


DATASETS = VersionStore(Kind.DATASET, "dataset", Dataset, DatasetVersion, _version_fields, announces=True)
