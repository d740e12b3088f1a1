"""Environments of a namespace: claimed once, sent once, shared, charged, and removed when they are not used."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.environments.models import Environment
from apps.environments.services import (
    HELD_FOR,
    LOST_AFTER,
    archive_begin,
    archive_settle,
    environment_claim,
    environment_delete,
    environments_sweep,
    key_of,
)
from apps.errors import Conflict
from apps.namespaces.models import Namespace
from apps.uploads import storage_ledger
from apps.uploads.models import State, Upload
from apps.uploads.selectors import storage_used
from yardmaster.storage.file_list import ListedFile

NOW = timezone.now()
WANTED = {"image": "a" * 64, "python": "3.11", "requirements": ["pandas>=2"], "constraints": []}
LOCK = [{"name": "pandas", "version": "2.2", "sha256": "b" * 64}]
ONE, OTHER = str(uuid.uuid4()), str(uuid.uuid4())


@pytest.fixture
def here(ada) -> Namespace:
    return Namespace.objects.get(slug="ada")


def _claim(here: Namespace, holder: str, now=NOW, **changes):
    return environment_claim(namespace=here, wanted=WANTED | changes, holder=holder, now=now)


def _sent(here: Namespace, size: int = 1000) -> Environment:
    """One that is ready, without its bytes."""
    claim = _claim(here, ONE)
    upload = _begin(here, claim.environment, ONE, size)
    _completed(upload)
    archive_settle(upload.pk, NOW)
    return Environment.objects.get(pk=claim.environment.pk)


def _completed(upload: Upload) -> None:
    """As if all of its bytes had come."""
    Upload.objects.filter(pk=upload.pk).update(state=State.COMPLETE)
    storage_ledger.reservation_use(upload.namespace_id, reserved=upload.held, used=upload.held)


def _begin(here: Namespace, environment: Environment, holder: str, size: int = 1000) -> Upload:
    return archive_begin(
        namespace=here, environment_id=environment.pk, holder=holder, lock=LOCK,
        files=[ListedFile("packages.tar.gz", size)], job_id=uuid.uuid4(), lock_job=lambda: None,
    )  # fmt: skip


def test_one_task_makes_it_and_the_others_wait(here) -> None:
    assert _claim(here, ONE).state == "build"
    assert _claim(here, OTHER).state == "wait"
    assert _claim(here, ONE, NOW + HELD_FOR / 2).state == "build"
    assert Environment.objects.count() == 1


def test_another_task_continues_where_the_first_is_lost(here) -> None:
    _claim(here, ONE)
    assert _claim(here, OTHER, NOW + HELD_FOR + timedelta(seconds=1)).state == "build"
    with pytest.raises(Conflict) as raised:
        _begin(here, Environment.objects.get(), ONE)
    assert raised.value.code == "environment_taken"


def test_once_sent_all_have_it_with_what_is_in_it(here) -> None:
    environment = _sent(here)
    claim = _claim(here, OTHER)
    assert (claim.state, claim.environment.lock, claim.environment.size) == ("ready", LOCK, 1000)
    assert Upload.objects.get(pk=environment.upload_id).used


def test_a_namespace_sees_nothing_of_another(here, bob) -> None:
    _sent(here)
    there = Namespace.objects.get(slug="bob")
    assert _claim(there, OTHER).state == "build"
    with pytest.raises(Conflict):
        _begin(there, Environment.objects.get(namespace=here), ONE)


def test_the_order_of_the_lines_does_not_matter_and_the_image_does() -> None:
    lines = ["pandas", "rich"]
    assert key_of(**WANTED | {"requirements": lines}) == key_of(**WANTED | {"requirements": lines[::-1]})
    assert key_of(**WANTED) != key_of(**WANTED | {"image": "c" * 64})
    assert key_of(**WANTED) != key_of(**WANTED | {"constraints": ["pandas<3"]})


def test_an_archive_that_was_begun_again_replaces_the_first(here) -> None:
    environment = _claim(here, ONE).environment
    first = _begin(here, environment, ONE)
    second = _begin(here, environment, ONE)
    assert not Upload.objects.filter(pk=first.pk).exclude(state=State.DELETING).exists()
    _completed(second)
    archive_settle(first.pk, NOW)
    archive_settle(second.pk, NOW)
    archive_settle(second.pk, NOW)
    assert Environment.objects.get().upload_id == second.pk


def test_one_that_is_not_used_for_long_is_removed_and_its_storage_returned(here, settings) -> None:
    environment = _sent(here)
    assert storage_used(here).used == 1000
    environments_sweep(NOW + settings.YARDMASTER_PACKAGES_KEPT - timedelta(hours=1))
    assert Environment.objects.filter(pk=environment.pk).exists()
    _claim(here, OTHER, NOW + timedelta(days=20))
    environments_sweep(NOW + settings.YARDMASTER_PACKAGES_KEPT + timedelta(hours=1))
    assert Environment.objects.filter(pk=environment.pk).exists()
    environments_sweep(NOW + settings.YARDMASTER_PACKAGES_KEPT + timedelta(days=21))
    assert not Environment.objects.exists()
    assert storage_used(here).used == 0


def test_one_that_was_begun_and_lost_is_removed(here) -> None:
    _claim(here, ONE)
    environments_sweep(NOW + LOST_AFTER / 2)
    assert Environment.objects.exists()
    environments_sweep(NOW + LOST_AFTER * 2)
    assert not Environment.objects.exists()


def test_what_was_complete_and_not_noted_is_noted_by_the_sweep(here) -> None:
    upload = _begin(here, _claim(here, ONE).environment, ONE)
    _completed(upload)
    environments_sweep(NOW)
    assert _claim(here, OTHER).state == "ready"


def test_the_least_used_goes_where_there_are_too_many(here, monkeypatch) -> None:
    monkeypatch.setattr("apps.environments.services.MOST", 3)
    for number in range(5):
        _claim(here, ONE, NOW + timedelta(minutes=number), requirements=[f"package{number}"])
    kept = [one.requirements[0] for one in Environment.objects.order_by("used_at")]
    assert kept == ["package2", "package3", "package4"]


def test_a_member_removes_one_and_the_next_job_makes_it_again(here, ada) -> None:
    environment = _sent(here)
    environment_delete(environment, ada)
    assert _claim(here, OTHER).state == "build"
