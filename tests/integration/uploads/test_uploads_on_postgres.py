"""What only a real database shows: several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from apps.accounts.models import User
from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.errors import DomainError, QuotaExceeded
from apps.jobs.models import Checkpoint
from apps.jobs.state.results import checkpoint_begin
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for, quota_of
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.services import upload_abort, upload_begin, upload_complete, upload_use
from apps.uploads.versioned.services import collection_create, version_add
from tests.integration.model_versions import job_of
from tests.real.postgres import postgres_cluster, postgres_db
from yardmaster.storage.file_list import ListedFile

__all__ = ["postgres_cluster", "postgres_db"]

pytestmark = pytest.mark.postgres


@pytest.fixture
def namespace(postgres_db) -> Namespace:
    return namespace_for(User.objects.create_user("carl", "carl@example.org", "correct horse battery"), None)


def outcomes(deeds: list[Callable[[], object]]) -> list[object]:
    """What each gives or raises, all begun together."""
    gate, found = threading.Barrier(len(deeds)), []

    def run(deed: Callable[[], object]) -> None:
        gate.wait()
        try:
            found.append(deed())
        except DomainError as problem:
            found.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(deed,)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == len(deeds)
    return found


def begin(namespace: Namespace, size: int = 0) -> Upload:
    return upload_begin(namespace=namespace, actor=None, kind="dataset", files=[ListedFile("f", size)])


def test_uploads_begun_together_never_take_more_than_the_quota(namespace):
    quota = quota_of(namespace)
    quota.storage = 350
    quota.save()
    found = outcomes([lambda: begin(namespace, 100)] * 12)
    assert sum(isinstance(one, Upload) for one in found) == 3
    assert sum(isinstance(one, QuotaExceeded) for one in found) == 9
    assert storage_used(namespace).reserved == 300
    assert Upload.objects.count() == 3


def test_of_aborts_at_once_one_returns_the_quota(namespace):
    upload = begin(namespace, 100)
    begin(namespace, 7)
    found = [Upload.objects.get(pk=upload.pk) for _ in range(6)]
    outcomes([lambda one=one: upload_abort(one) for one in found])
    assert storage_used(namespace).reserved == 7


def test_completes_at_once_count_the_bytes_once(namespace):
    upload = begin(namespace)
    outcomes([lambda: upload_complete(Upload.objects.get(pk=upload.pk))] * 6)
    upload.refresh_from_db()
    assert upload.is_complete
    use = storage_used(namespace)
    assert (use.used, use.reserved) == (0, 0)


def test_an_upload_is_used_once_by_whoever_is_first(namespace):
    upload = upload_complete(begin(namespace))
    found = outcomes([lambda: upload_use(Upload.objects.get(pk=upload.pk))] * 6)
    assert found.count(None) == 1


def made(namespace: Namespace, upload: Upload) -> Dataset:
    return collection_create(DATASETS, namespace=namespace, actor=None, name="d", description="", upload=upload)


def test_versions_added_together_get_numbers_without_gap_or_double(namespace):
    dataset = made(namespace, upload_complete(begin(namespace)))
    uploads = [upload_complete(begin(namespace)) for _ in range(6)]
    outcomes([lambda one=one: version_add(DATASETS, dataset, actor=None, upload=one) for one in uploads])
    numbers = DatasetVersion.objects.order_by("number").values_list("number", flat=True)
    assert list(numbers) == [1, 2, 3, 4, 5, 6, 7]


def test_datasets_of_the_same_name_made_together_are_one(namespace):
    uploads = [upload_complete(begin(namespace)) for _ in range(4)]
    found = outcomes([lambda one=one: made(namespace, one) for one in uploads])
    assert sorted(getattr(one, "code", "made") for one in found) == ["made", "name_taken", "name_taken", "name_taken"]
    assert Upload.objects.filter(used=True).count() == 1


def test_checkpoints_of_one_step_that_are_begun_together_are_one_in_the_end(namespace):
    job = job_of(User.objects.get())

    def checkpoint() -> Upload:
        return checkpoint_begin(job=job, attempt=1, step=5, files=[ListedFile("model.index", 10)])

    found = outcomes([checkpoint] * 5)
    assert any(isinstance(one, Upload) for one in found)
    assert Upload.objects.get().pk == Checkpoint.objects.get().upload_id
    assert storage_used(namespace).reserved == 10
