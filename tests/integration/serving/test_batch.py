"""Batch inference at the portal: what is launched, who may, and that another's model is confirmed where it would run as
the portal."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.audit.models import AuditEvent
from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from tests.integration.sending import uploaded

FOREIGN = {"confirm_foreign_model": True}


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def root(admin, signed_in, world):
    """An administrator, where the engine isolates no user from another."""
    world.engine.isolates = False
    return signed_in(admin)


def dataset_of(client, name):
    """A version of a new dataset."""
    upload = uploaded(client, {"a.csv": b"a,b\n1,2\n"})
    made = client.post("/api/v1/datasets/", {"name": name, "upload": upload}, format="json")
    assert made.status_code == 201, made.json()
    return DatasetVersion.objects.get(parent__name=name)


@pytest.fixture
def data(me):
    return dataset_of(me, "reviews")


def launch(client, version, data, **more):
    body = {"dataset_version": str(data.pk), "to": "sentiments", **more}
    return client.post(f"/api/v1/model-versions/{version.pk}/batch/", body, format="json")


def test_it_is_a_job_with_the_model_and_the_data_as_inputs_that_publishes(me, version, data):
    answer = launch(me, version, data, workers=3, options={"keep": "id", "most_bad": 5})
    assert answer.status_code == 201, answer.json()
    job = Job.objects.get(pk=answer.json()["id"])
    assert (job.strategy, job.spec["program"], job.name) == ("batch", "predict", "digits on reviews")
    assert job.spec["options"] == {"keep": "id", "most_bad": 5}
    named = {one["name"]: one.get("model_version") or one["dataset_version"] for one in job.spec["inputs"]}
    assert named == {"model": str(version.pk), "data": str(data.pk)}
    note = "Predictions of digits version 1 for reviews version 1."
    assert job.spec["publishes"] == {"dataset": "sentiments", "note": note}
    assert job.spec["roles"]["worker"]["replicas"] == 3


@pytest.mark.parametrize(
    ("more", "field"),
    [({"options": {"batch": 0}}, "options.batch"), ({"options": {"colour": "red"}}, "options.colour"),
     ({"to": " "}, "to"), ({"workers": 0}, "workers"), ({"mode": "x"}, "mode")],
)  # fmt: skip
def test_what_is_wrong_is_named(me, version, data, more, field):
    answer = launch(me, version, data, **more)
    assert answer.status_code in (400, 422)
    assert field in {one["field"] for one in answer.json()["errors"]}
    assert not Job.objects.filter(strategy="batch").exists()


def test_strangers_find_neither_the_model_nor_the_data(me, bob, signed_in, version, data):
    assert launch(signed_in(bob), version, data).status_code == 404
    assert launch(me, version, dataset_of(signed_in(bob), "theirs")).status_code == 404
    assert signed_in(bob).get(reverse("model_batch_page", args=[version.pk])).status_code == 404


def test_another_users_model_runs_as_the_portal_only_where_that_is_confirmed(root, version, data, settings):
    def batch(**more):
        return launch(root, version, data, **more)

    def serve(**more):
        return root.post("/api/v1/services/", {"model_version": str(version.pk), **more}, format="json")

    def job_file(**more):
        inputs = [
            {"model_version": str(version.pk), "name": "model"},
            {"dataset_version": str(data.pk), "name": "data"},
        ]
        spec = {
            "name": "by file", "strategy": "batch", "roles": {"worker": {}}, "program": "predict", "inputs": inputs,
            "publishes": {"dataset": "made"},
        }  # fmt: skip
        return root.post("/api/v1/jobs/", {"spec": spec, **more}, format="json")

    for ask in (batch, serve, job_file):
        refused = ask()
        assert (refused.status_code, refused.json()["code"]) == (409, "foreign_model")
        assert "confirm_foreign_model" in refused.json()["remedy"]
        assert ask(**FOREIGN).status_code == 201
    assert AuditEvent.objects.filter(action="model_version.run_foreign").count() == 3


def test_where_all_users_are_trusted_nothing_is_asked(root, version, data, settings):
    settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = True
    assert launch(root, version, data).status_code == 201


def test_ones_own_model_and_an_engine_that_isolates_need_no_confirmation(me, root, world, ada, version, data, settings):
    world.engine.isolates = True
    assert launch(root, version, data).status_code == 201
    world.engine.isolates = False
    ada.is_staff = True
    ada.save()
    assert launch(me, version, data).status_code == 201


def test_the_page_launches_what_was_filled_in_and_shows_what_is_wrong(me, version, data):
    address = reverse("model_batch_page", args=[version.pk])
    page = me.get(address).content.decode()
    assert "reviews, version 1" in page
    filled = {
        "dataset_version": str(data.pk), "to": "sentiments", "workers": "1", "most_bad": "0", "format": "auto",
        "pixels": "0-1", "batch": "8", "write": "tfrecord", "shard_megabytes": "10", "columns": "x",
    }  # fmt: skip
    wrong = me.post(address, filled, format="multipart")
    assert wrong.status_code == 400
    assert "INPUT=COLUMN for each input" in wrong.content.decode()
    done = me.post(address, filled | {"columns": "x=a"}, format="multipart")
    job = Job.objects.get(name="digits on reviews")
    assert done["Location"] == reverse("job_page", args=[job.pk])
    assert job.spec["options"]["shard_bytes"] == 10_000_000
    clone = f"{address}?from={job.pk}"
    assert clone in me.get(reverse("job_page", args=[job.pk])).content.decode()
    page = me.get(clone).content.decode()
    for text in (f'value="{data.pk}" selected', 'value="sentiments"', 'value="x=a"', 'value="tfrecord" selected'):
        assert text in page
    assert 'name="shard_megabytes" value="10"' in page
    assert me.get(f"{address}?from=nothing").status_code == 404


def test_the_pages_ask_an_administrator_to_confirm(root, version, data):
    address = reverse("model_batch_page", args=[version.pk])
    filled = {
        "dataset_version": str(data.pk), "to": "sentiments", "workers": "1", "most_bad": "0", "format": "auto",
        "pixels": "0-1", "batch": "8", "write": "jsonl", "shard_megabytes": "10",
    }  # fmt: skip
    asked = root.post(address, filled, format="multipart").content.decode()
    assert 'name="confirm_foreign_model" value="1"' in asked
    assert root.post(address, filled | {"confirm_foreign_model": "1"}, format="multipart").status_code == 302
    start = reverse("model_try_start", args=[version.pk])
    panel = root.post(start, {"idle_limit": "3600"}, format="multipart", HTTP_HX_REQUEST="true").content.decode()
    assert "ada ran the job that made version 1 of digits" in panel
    assert 'value="3600" selected' in panel
    more = {"idle_limit": "3600", "confirm_foreign_model": "1"}
    assert b"Waiting in the queue" in root.post(start, more, format="multipart", HTTP_HX_REQUEST="true").content
