"""An export becomes a version that knows what it was made of, and stays when its job is deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.jobs.models import Job, JobEvent, ScalarPoint
from apps.jobs.state.exports import METRICS_KEPT, last_values
from apps.jobs.worker.removal import remove
from apps.namespaces.models import Quota
from apps.registry.models import Model, ModelUpload, ModelVersion, Stage
from apps.registry.services import exports_replace, usable_name
from apps.registry.stages import stage_set
from apps.stores import storage
from apps.uploads.removal import tombstones_sweep
from apps.uploads.selectors import storage_used
from apps.uploads.versioned.selectors import file_key
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.test_task_api import sent, storage_parts
from tests.integration.jobs.world import task_of
from tests.integration.model_versions import job_of, version_of
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

pytestmark = pytest.mark.django_db

__all__ = ["engine_settings", "stores", "world"]


def points(job: Job, tag: str, *values: float, run: str = "") -> None:
    rows = [
        ScalarPoint(job=job, attempt=1, run=run, tag=tag, step=step, time=0.0, value=value)
        for step, value in enumerate(values)
    ]
    ScalarPoint.objects.bulk_create(rows)


def test_a_version_knows_what_it_was_made_of(world, ada, signed_in, settings):
    data = world.dataset_version(ada, {"a.csv": "1"})
    inputs = [{"dataset_version": str(data.pk), "name": "train"}]
    job = world.launch(ada, model={"name": "sentiment"}, arguments=["--lr=0.1"], inputs=inputs)
    engine = settings.YARDMASTER_ENGINES[job.engine]
    with_image = engine | {"options": {**engine.get("options", {}), "tasks": {"image": "registry/tasks:7"}}}
    world.until_running(job)
    points(job, "loss", 3.0, 2.0, 1.5)
    points(job, "accuracy", 0.1, 0.9, run="eval")
    settings.YARDMASTER_ENGINES = settings.YARDMASTER_ENGINES | {job.engine: with_image}
    sent(task_of(job), "model")
    version = ModelVersion.objects.get(job=job)
    shown = signed_in(ada).get(f"/api/v1/model-versions/{version.pk}/").json()
    assert (version.parent.name, shown["number"], shown["created_by"]) == ("sentiment", 1, "ada")
    assert shown["metrics"] == [
        {"run": "", "tag": "loss", "step": 2, "value": 1.5},
        {"run": "eval", "tag": "accuracy", "step": 1, "value": 0.9},
    ]  # fmt: skip
    source = shown["source"]
    assert (source["arguments"], source["engine"], source["strategy"]) == (["--lr=0.1"], job.engine, job.strategy)
    assert source["code"]["version"] == job.spec["code"]
    assert (source["code"]["name"].startswith("code"), source["code"]["number"]) == (True, 1)
    assert source["image"] == "registry/tasks:7"
    assert source["inputs"] == [
        {"kind": "dataset", "version": str(data.pk), "as": "train", "name": data.parent.name, "number": 1}
    ]


def test_values_that_come_after_the_export_are_kept_when_the_job_is_cleaned_up(world, ada):
    job = world.launch(ada)
    world.until_running(job)
    sent(task_of(job), "model")
    points(job, "loss", 2.0, 0.5, run="eval")
    world.engine.succeed(job)
    world.until_quiet()
    assert [one["value"] for one in ModelVersion.objects.get(job=job).metrics] == [0.5]


def test_of_very_many_scalars_some_are_kept(ada, django_assert_max_num_queries):
    job = job_of(ada)
    for tag in range(METRICS_KEPT + 5):
        points(job, f"t{tag:04}", 1.0, 2.0)
    with django_assert_max_num_queries(1 + METRICS_KEPT // 50):
        found = last_values(job, 1)
    assert len(found) == METRICS_KEPT
    assert {one["value"] for one in found} == {2.0}


@pytest.mark.parametrize("prefix", ["", "namespaces/{namespace}/jobs/{job}/1/model", "jobs/{job}/1/model.1"])
def test_a_model_outlives_its_job_wherever_it_lies(ada, django_capture_on_commit_callbacks, prefix):
    job = job_of(ada, deleted_at=timezone.now())
    place = prefix.format(namespace=job.namespace_id, job=job.pk)
    version = version_of(job, prefix=place)
    rest = f"namespaces/{job.namespace_id}/jobs/{job.pk}/1/checkpoints/5/late"
    storage().put(rest, b"late")
    with django_capture_on_commit_callbacks(execute=True):
        assert remove(job)
        tombstones_sweep(timezone.now() + timedelta(days=2))
    version.refresh_from_db()
    assert (version.job_id, version.job_name) == (None, "digits")
    with storage().open_range(file_key(version, "saved_model.pb")) as body:
        assert body.read() == b"weights"
    left = {one.key for place in ("namespaces", "jobs") for one in storage().list_prefix(place)}
    assert left == {file_key(version, "saved_model.pb")}
    assert storage_used(ada.personal_namespace).used == version.size


def test_a_replaced_export_goes_unless_it_has_a_stage(ada, django_capture_on_commit_callbacks):
    job = job_of(ada)
    first, second, third = (version_of(job) for _ in range(3))
    stage_set(first, Stage.STAGING, actor=ada)
    with django_capture_on_commit_callbacks(execute=True):
        exports_replace(job.pk, 1, by=third)
    assert set(ModelVersion.objects.values_list("number", flat=True)) == {1, 3}
    assert not ModelVersion.objects.filter(pk=second.pk).exists()
    assert storage_used(ada.personal_namespace).used == 2 * first.size


def test_numbers_are_not_given_again(ada):
    versions = [version_of(job_of(ada), name="digits") for _ in range(2)]
    versions[1].delete()
    assert version_of(job_of(ada), name="digits").number == 3
    assert Model.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("digits", "digits"),
        ("  a\u0000b\u200b ", "ab"),
        ("e\u0301", "\u00e9"),
        ("x" * 300, "x" * 100),
        ("\u200b", "model"),
    ],
)
def test_a_name_becomes_one_that_a_model_may_have(name, kept):
    assert usable_name(name) == kept


def test_the_api_of_models_takes_few_statements(ada, signed_in, django_assert_max_num_queries):
    api = signed_in(ada)
    for name in ("a", "b"):
        for _ in range(3):
            stage_set(version_of(job_of(ada), name=name), Stage.STAGING, actor=ada)
    model = Model.objects.get(name="a")
    for address, most in {
        "/api/v1/models/": 8,
        f"/api/v1/models/{model.pk}/": 8,
        f"/api/v1/models/{model.pk}/versions/": 8,
        f"/api/v1/models/{model.pk}/stages/": 8,
        f"/api/v1/models/{model.pk}/compare/?version=1&version=3": 8,
        f"/api/v1/model-versions/{model.versions.first().pk}/": 8,
    }.items():
        with django_assert_max_num_queries(most):
            assert api.get(address).status_code == 200
    (newest, *_) = api.get("/api/v1/models/").json()["results"]
    assert (newest["name"], newest["latest"]["number"], newest["latest"]["stage"]) == ("b", 3, "staging")
    parts = api.get(f"/api/v1/models/{model.pk}/compare/", {"version": [1, 3]}).json()["parts"]
    assert "Files" in [part["title"] for part in parts]


def test_an_export_over_the_quota_is_refused_and_makes_no_version(world, ada):
    job = world.launch(ada)
    world.until_running(job)
    Quota.objects.filter(namespace=job.namespace).update(storage=2)
    answer = task_of(job).post("/api/v1/task/model/", {"files": [{"path": "m", "size": 3}]})
    assert (answer.status_code, answer.json()["code"]) == (409, "quota_full")
    assert not ModelUpload.objects.exists()
    assert not ModelVersion.objects.exists()


FILES = [{"path": "model/a.bin", "size": 3}]


def begun(client, **body) -> dict:
    """An upload of a model of which all bytes have arrived."""
    upload = client.post("/api/v1/task/model/", {"files": FILES, **body}).json()["upload"]
    storage_parts(client, upload)
    return upload


def test_what_a_task_has_sent_early_is_continued_and_becomes_a_version_at_its_end(world, ada):
    job = world.launch(ada)
    world.until_running(job)
    client = task_of(job)
    upload = begun(client)
    again = client.post("/api/v1/task/model/", {"files": FILES, "continues": upload["id"], "stopped": True})
    assert again.json()["upload"]["id"] == upload["id"]
    assert [one["done"] for one in again.json()["upload"]["files"]] == [[1]]
    assert not ModelVersion.objects.exists()
    client.post(f"/api/v1/task/uploads/{upload['id']}/complete/", {})
    assert ModelVersion.objects.get(job=job).stopped
    assert (storage_used(job.namespace).used, storage_used(job.namespace).reserved) == (3, 0)


def test_a_version_and_its_event_say_where_in_the_working_folder_the_model_was(world, ada, signed_in):
    job = world.launch(ada)
    world.until_running(job)
    client, where = task_of(job), "<b>out</b>/model.keras"
    upload = begun(client, found_in=where)
    client.post(f"/api/v1/task/uploads/{upload['id']}/complete/", {})
    version = ModelVersion.objects.get(job=job)
    assert version.source["found_in"] == where
    assert JobEvent.objects.get(job=job, kind="model_kept").message.endswith(f"It was in the working folder: {where}.")
    for address in (f"/jobs/{job.pk}/", f"/model-versions/{version.pk}/"):
        shown = signed_in(ada).get(address).content.decode()
        assert "&lt;b&gt;out&lt;/b&gt;/model.keras" in shown
        assert where not in shown
    assert client.post("/api/v1/task/model/", {"files": FILES, "found_in": "x" * 513}).status_code == 400


@pytest.mark.parametrize("files", [[{"path": "model/b.bin", "size": 3}], [{"path": "model/a.bin", "size": 4}]])
def test_other_files_than_were_sent_early_are_another_upload(world, ada, files):
    job = world.launch(ada)
    world.until_running(job)
    client = task_of(job)
    upload = begun(client)
    other = client.post("/api/v1/task/model/", {"files": files, "continues": upload["id"]}).json()["upload"]
    assert other["id"] != upload["id"]
    assert ModelUpload.objects.get().upload_id.hex == other["id"].replace("-", "")


def test_the_upload_of_another_job_is_not_continued(world, ada):
    first, second = world.launch(ada), world.launch(ada)
    for job in (first, second):
        world.until_running(job)
    upload = begun(task_of(first))
    other = task_of(second).post("/api/v1/task/model/", {"files": FILES, "continues": upload["id"]}).json()["upload"]
    assert other["id"] != upload["id"]
    assert ModelUpload.objects.count() == 2


def test_what_was_sent_early_of_a_job_that_failed_is_removed(world, ada, django_capture_on_commit_callbacks):
    job = world.launch(ada)
    world.until_running(job)
    begun(task_of(job))
    assert storage_used(job.namespace).reserved == 3
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    with django_capture_on_commit_callbacks(execute=True):
        world.until_quiet()
    assert world.again(job).is_over
    assert not ModelUpload.objects.exists()
    assert not ModelVersion.objects.exists()
    assert (storage_used(job.namespace).reserved, storage_used(job.namespace).files) == (0, 0)
