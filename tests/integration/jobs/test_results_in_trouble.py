"""What becomes of results when the portal itself is in trouble: an error ends no loop, holds up no other, and does not
repeat without end."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from apps.datasets.models import DatasetVersion
from apps.jobs.models import Checkpoint, OutputUpload, Publication, PublicationPart, ReplacedOutputs
from apps.jobs.state import exports, outputs, publications, results
from apps.jobs.worker import publishing
from apps.jobs.worker.publishing import publish
from apps.registry.models import ModelUpload
from apps.uploads.models import Kind, State, Upload
from celery_worker import tasks
from tests.integration.jobs.test_job_publishes import A, B, content_of, launched, send, stored, succeed
from yardmaster.errors import Unavailable


def test_an_error_of_the_portal_is_tried_again_some_times_and_then_said(world, ada, signed_in, monkeypatch):
    job = launched(world, ada)
    send(job, 0, A)
    send(job, 1, B)

    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(publishing, "objects_join", broken)
    job = succeed(world, job)
    row = Publication.objects.get(job=job)
    assert (row.state, row.tries, row.lease) == ("collecting", 1, None)
    assert row.due_at > timezone.now()
    for _ in range(2, 12):
        publish(job.pk)
    assert Publication.objects.get(job=job).state == "collecting"
    publish(job.pk)
    row = Publication.objects.get(job=job)
    assert (row.state, row.problem["code"]) == ("failed", "portal_error")
    assert (
        "log of the workers" in signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()["published"]["problem"]["remedy"]
    )
    assert stored(job) == 0
    publish(job.pk)
    assert not DatasetVersion.objects.exists()


def test_a_store_that_is_away_for_days_does_not_end_a_publication(world, ada, monkeypatch):
    job = launched(world, ada)
    send(job, 0, A)
    send(job, 1, B)

    def away(*_, **__):
        raise Unavailable("The object store does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "objects_join", away)
        job = succeed(world, job)
        for _ in range(20):
            publish(job.pk)
    assert Publication.objects.get(job=job).state == "collecting"
    publish(job.pk)
    assert content_of(DatasetVersion.objects.get()) == A | B


def test_of_two_starts_of_one_task_at_once_the_later_one_counts(world, ada, monkeypatch):
    job = launched(world, ada)
    begin = publications.upload_begin
    others = []

    def meanwhile(**wanted):
        if not others:
            others.append(None)
            others[0] = publications.part_begin(job=job, attempt=1, task="worker-0", files=wanted["files"])
        return begin(**wanted)

    monkeypatch.setattr(publications, "upload_begin", meanwhile)
    sent = send(job, 0, A)
    part = PublicationPart.objects.get(publication__job=job)
    assert str(part.upload_id) == sent["id"] != str(others[0].pk)
    assert not Upload.objects.filter(pk=others[0].pk, state="open").exists()


def _part(job, upload):
    publication, _ = Publication.objects.get_or_create(job=job, attempt=1)
    PublicationPart.objects.create(publication=publication, task=str(upload)[-8:], upload_id=upload)


KINDS = pytest.mark.parametrize(
    ("module", "one", "all_of_them", "make"),
    [
        (publications, "part_settle", "parts_settle", _part),
        (results, "result_settle", "results_settle", lambda job, upload: Checkpoint.objects.create(
            job=job, attempt=1, step=1, upload_id=upload, size=1)),
        (exports, "export_settle", "exports_settle", lambda job, upload: ModelUpload.objects.create(
            job=job, attempt=1, upload_id=upload)),
        (outputs, "outputs_settle", "outputs_sweep", lambda job, upload: OutputUpload.objects.create(
            job=job, attempt=1, upload_id=upload)),
    ],
)  # fmt: skip


@KINDS
def test_one_bad_row_does_not_hold_up_the_others(world, ada, monkeypatch, module, one, all_of_them, make):
    job = launched(world, ada)
    for _ in range(2):
        make(job, uuid.uuid4())
    seen = []

    def settle(upload_id, now):
        seen.append(upload_id)
        if len(seen) == 1:
            raise ValueError(upload_id)

    monkeypatch.setattr(module, one, settle)
    getattr(module, all_of_them)(timezone.now())
    assert len(set(seen)) == 2


@KINDS
def test_all_are_settled_whose_uploads_have_ended_and_none_before(
    world, ada, monkeypatch, django_assert_max_num_queries, module, one, all_of_them, make
):
    monkeypatch.setattr(results, "AT_ONCE", 3)
    job, seen = launched(world, ada), []
    states = [State.OPEN, State.COMPLETE, State.COMPLETING, State.FAILED, State.DELETING]
    ids = {state: [_upload(job, state) for _ in range(4)] for state in states}
    for state in states:
        for upload_id in ids[state]:
            make(job, upload_id)
    make(job, gone := uuid.uuid4())
    monkeypatch.setattr(module, one, lambda upload_id, now: seen.append(upload_id))
    with django_assert_max_num_queries(10):
        getattr(module, all_of_them)(timezone.now())
    assert set(seen) == {gone, *ids[State.COMPLETE], *ids[State.FAILED], *ids[State.DELETING]}
    assert len(seen) == 13


def _upload(job, state):
    now = timezone.now()
    upload = Upload(
        namespace=job.namespace, kind=Kind.CHECKPOINT, part_size=8 << 20, file_count=0, held=0, state=state,
        created_at=now, touched_at=now,
    )  # fmt: skip
    upload.key_prefix = f"tests/{upload.target_id}"
    upload.save(force_insert=True)
    return upload.pk


def test_replaced_outputs_that_cannot_be_removed_hold_up_no_others(db, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE", 3)
    now, tried = timezone.now(), []
    for _ in range(8):
        ReplacedOutputs.objects.create(pk=uuid.uuid4(), paths=["a"], due_at=now)

    def remove(upload_id, paths):
        tried.append(upload_id)
        if len(tried) < 8:
            raise ValueError(upload_id)

    monkeypatch.setattr(outputs, "files_remove", remove)
    outputs.outputs_sweep(now)
    assert len(set(tried)) == 8
    assert not ReplacedOutputs.objects.filter(pk=tried[-1]).exists()
    assert ReplacedOutputs.objects.count() == 7


def test_one_kind_of_results_does_not_hold_up_the_others(monkeypatch):
    called = []

    def settle(now):
        called.append(now)
        raise ValueError("broken")

    for name in ("publications_sweep", "results_settle", "exports_settle", "outputs_sweep"):
        monkeypatch.setattr(tasks, name, settle)
    tasks.settle_results()
    assert len(called) == 4
