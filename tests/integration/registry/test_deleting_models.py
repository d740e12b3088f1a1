"""A deleted model is hidden, can be restored, counts against the quota, and is removed when its time is over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.registry.deletion import deleted_sweep
from apps.registry.models import Model, ModelVersion, Stage
from apps.registry.services import models_clear
from apps.registry.stages import stage_set
from apps.stores import storage
from apps.uploads.models import Upload
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import file_key
from tests.integration.model_versions import job_of, version_of
from yardmaster.storage.base import ObjectMissing

pytestmark = pytest.mark.django_db


def addresses(version: ModelVersion) -> tuple[str, str]:
    return f"/api/v1/models/{version.parent_id}/", f"/api/v1/model-versions/{version.pk}/"


def test_a_deleted_version_is_hidden_and_comes_back(ada, api):
    version, other = (version_of(job_of(ada), name="digits") for _ in range(2))
    model, address = addresses(version)
    assert api.delete(address).status_code == 204
    assert api.get(address).status_code == 404
    assert api.get(f"{address}files/").status_code == 404
    assert api.get(f"{address}archive/").status_code == 404
    assert [one["number"] for one in api.get(f"{model}versions/").json()["results"]] == [2]
    assert [one["number"] for one in api.get(f"{model}versions/", {"deleted": "true"}).json()["results"]] == [1]
    assert storage_used(ada.personal_namespace).used == version.size + other.size
    assert api.post(f"{address}restore/").status_code == 200
    assert api.get(address).json()["number"] == 1


def test_a_deleted_model_is_hidden_with_its_versions_and_comes_back(ada, api):
    version = version_of(job_of(ada))
    model, address = addresses(version)
    assert api.delete(model).status_code == 204
    assert [api.get(one).status_code for one in (model, address)] == [404, 404]
    assert api.get("/api/v1/models/").json()["results"] == []
    (deleted,) = api.get("/api/v1/models/", {"deleted": "true"}).json()["results"]
    assert deleted["id"] == str(version.parent_id)
    assert api.post(f"{address}restore/").status_code == 409, "its model is deleted"
    assert api.post(f"{model}restore/").status_code == 200
    assert [api.get(one).status_code for one in (model, address)] == [200, 200]


def test_a_new_export_of_the_name_of_a_deleted_model_makes_another(ada, api):
    version = version_of(job_of(ada), name="digits")
    model, _ = addresses(version)
    api.delete(model)
    again = version_of(job_of(ada), name="digits")
    assert (again.number, again.parent_id == version.parent_id) == (1, False)
    answer = api.post(f"{model}restore/")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")
    assert api.patch(addresses(again)[0], {"name": "newer"}).status_code == 200
    assert api.post(f"{model}restore/").status_code == 200


def test_what_is_in_production_is_not_deleted(ada, api):
    version = version_of(job_of(ada))
    stage_set(version, Stage.PRODUCTION, actor=ada)
    for address in addresses(version):
        answer = api.delete(address)
        assert (answer.status_code, answer.json()["code"]) == (409, "in_production")
    stage_set(version, Stage.NONE, actor=ada)
    assert api.delete(addresses(version)[1]).status_code == 204


def test_after_its_grace_period_it_is_removed_with_its_files(ada, api, django_capture_on_commit_callbacks):
    kept, version = version_of(job_of(ada), name="kept"), version_of(job_of(ada), name="gone")
    other = version_of(job_of(ada), name="kept")
    api.delete(addresses(version)[0])
    api.delete(addresses(other)[1])
    now = timezone.now()
    deleted_sweep(now + timedelta(days=6))
    assert ModelVersion.objects.count() == 3
    with django_capture_on_commit_callbacks(execute=True):
        deleted_sweep(now + timedelta(days=8))
    assert list(ModelVersion.objects.values_list("pk", flat=True)) == [kept.pk]
    assert [model.name for model in Model.objects.all()] == ["kept"]
    assert storage_used(ada.personal_namespace).used == kept.size
    for gone in (version, other):
        with pytest.raises(ObjectMissing):
            storage().stat(file_key(gone, "saved_model.pb"))
    assert storage().stat(file_key(kept, "saved_model.pb")).size == kept.size


def test_deleted_now_its_storage_is_free_at_once(ada, api, django_capture_on_commit_callbacks):
    version = version_of(job_of(ada))
    api.delete(addresses(version)[0])
    with django_capture_on_commit_callbacks(execute=True):
        assert api.delete(f"{addresses(version)[0]}?now=true").status_code == 204
    assert storage_used(ada.personal_namespace).used == 0
    assert not Upload.objects.exists()
    assert api.delete(addresses(version)[0]).status_code == 404


def test_removing_a_namespace_removes_its_models_whatever_their_stage(ada, django_capture_on_commit_callbacks):
    version = version_of(job_of(ada))
    stage_set(version, Stage.PRODUCTION, actor=ada)
    with django_capture_on_commit_callbacks(execute=True):
        assert models_clear(ada.personal_namespace, actor=None) == 0
    assert storage_used(ada.personal_namespace).used == 0
