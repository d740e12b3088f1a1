"""Making, changing and deleting datasets and their versions."""

from __future__ import annotations

from apps.accounts.models import User
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.shelf import DATASETS
from apps.namespaces.models import Namespace
from apps.uploads.models import Upload
from apps.uploads.versioned import services


def dataset_create(
    *, namespace: Namespace, actor: User | None, name: str, upload: Upload, description: str = ""
) -> Dataset:
    """A dataset whose version 1 is the upload's files."""
    return services.collection_create(
        DATASETS, namespace=namespace, actor=actor, name=name, description=description, upload=upload
    )


def dataset_version_add(*, dataset: Dataset, actor: User | None, upload: Upload, note: str = "") -> DatasetVersion:
    """The dataset's next version."""
    return services.version_add(DATASETS, dataset, actor=actor, upload=upload, note=note)
