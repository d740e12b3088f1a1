"""Whose model is one's own: who began the attempts of its job, made their code, and made the models that went in."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.audit.models import AuditEvent
from apps.code.models import Code, CodeVersion
from apps.jobs.foreign import ForeignModel, foreign_models
from apps.jobs.models import Job
from apps.jobs.services import job_retry
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.registry.models import ModelVersion
from apps.serving.services import spec_of
from apps.uploads.models import Upload
from tests.integration.jobs.test_task_api import sent
from tests.integration.jobs.world import task_of
from yardmaster.job.spec import Resources
from yardmaster.job.spec_json import spec_from_json

SMALL = {"strategy": "single", "roles": {"worker": {"cpu": 1, "memory": "1Gi"}}}


@pytest.fixture
def team(admin, bob):
    """The administrator is its manager, bob a member."""
    made = team_create(slug="vision", title="", manager=admin, actor=admin)
    Membership.objects.create(namespace=made, user=bob, role=Role.MEMBER)
    return made


@pytest.fixture
def code(world, team):
    """A function that gives the id of new code of a user in the team."""

    def make(user):
        version = world.code_version(user)
        CodeVersion.objects.filter(pk=version.pk).update(created_by=user)
        Upload.objects.filter(pk=version.upload_id).update(created_by=user)
        Code.objects.filter(pk=version.parent_id).update(namespace=team)
        return str(version.pk)

    return make


def ended(world, job, *, exports=True):
    """What the job's current attempt has exported when it is over."""
    world.until_running(job)
    job = world.again(job)
    if exports:
        sent(task_of(job, job.attempt), "model")
    world.engine.succeed(job)
    world.until_quiet()
    return ModelVersion.objects.get(source_job=job.pk, attempt=world.again(job).attempt) if exports else None


def asked(user, version):
    """What is asked before the user runs the model as the portal; empty: nothing."""
    try:
        foreign_models(user, spec_of(version, Resources(cpu=1, memory=1 << 30)), "staged", confirmed=False)
    except ForeignModel as error:
        return error.detail
    return ""


@pytest.fixture
def launched(world, admin, team, code):
    """A job that the administrator has launched in the team with code of their own."""
    return world.launch(admin, team, code=code(admin), **SMALL)


def test_what_one_launched_with_ones_own_code_is_ones_own(world, admin, launched):
    version = ended(world, launched)
    world.engine.isolates = False
    assert asked(admin, version) == ""
    ModelVersion.objects.update(source={})  # of an earlier release, whose job is there
    assert asked(admin, ModelVersion.objects.get()) == ""
    ModelVersion.objects.update(job=None)
    assert "An unknown user ran the job that made version 1" in asked(admin, ModelVersion.objects.get())


def test_a_member_who_retries_an_administrators_job_with_other_code_made_the_model(world, admin, bob, launched, code):
    ended(world, launched, exports=False)
    mine = spec_from_json(launched.spec | {"code": code(bob)})
    job_retry(user=bob, job=world.again(launched), spec=mine)
    version = ended(world, launched)
    assert version.created_by == bob
    world.engine.isolates = False
    assert "bob ran the job that made version 1 of digits and bob wrote the code of it" in asked(admin, version)
    CodeVersion.objects.all().delete()  # what the version keeps stays
    assert "bob wrote the code of it" in asked(admin, version)


def test_the_checkpoint_of_anothers_attempt_is_in_what_a_later_one_exports(world, admin, bob, launched):
    ended(world, launched, exports=False)
    job_retry(user=bob, job=world.again(launched))
    ended(world, launched, exports=False)
    job_retry(user=admin, job=world.again(launched))
    version = ended(world, launched)
    assert version.created_by == admin
    world.engine.isolates = False
    assert asked(admin, version).startswith("bob ran the job")


def test_anothers_code_and_models_make_a_model_foreign(world, admin, bob, team, code):
    of_bob = ended(world, world.launch(bob, team, code=code(bob), **SMALL))
    inputs = [{"model_version": str(of_bob.pk), "name": "base"}]
    further = ended(world, world.launch(admin, team, code=code(admin), name="further", inputs=inputs, **SMALL))
    his_code = ended(world, world.launch(admin, team, code=code(bob), name="his code", **SMALL))
    world.engine.isolates = False
    assert asked(admin, further).startswith("bob had a part in a model in version 1 of further, and the engine")
    assert asked(admin, his_code).startswith("bob wrote the code of version 1 of his code, and the engine")
    parts = {(one["part"], one["name"]) for one in further.source["makers"]}
    assert parts == {("run", "admin"), ("code", "admin"), ("model", "bob")}


def test_a_version_made_of_anothers_upload_is_both_users_code(world, admin, bob, team, code):
    mine = code(admin)
    Upload.objects.filter(pk=CodeVersion.objects.get(pk=mine).upload_id).update(created_by=bob)
    version = ended(world, world.launch(admin, team, code=mine, **SMALL))
    world.engine.isolates = False
    assert asked(admin, version).startswith("bob wrote the code of version 1 of digits, and the engine")
    parts = {(one["part"], one["name"]) for one in version.source["makers"]}
    assert parts == {("run", "admin"), ("code", "admin"), ("code", "bob")}


def test_a_retry_asks_too_and_writes_it_down(world, admin, signed_in, version):
    client = signed_in(admin)
    world.engine.isolates = False
    spec = {
        "name": "predict", "strategy": "batch", "roles": {"worker": {}}, "program": "predict",
        "inputs": [
            {"model_version": str(version.pk), "name": "model"},
            {"dataset_version": str(world.dataset_version(admin, {"a.csv": "x"}).pk), "name": "data"},
        ],
        "publishes": {"dataset": "made"},
    }  # fmt: skip
    Membership.objects.create(namespace=version.parent.namespace, user=admin, role=Role.MEMBER)
    made = client.post("/api/v1/jobs/", {"spec": spec, "confirm_foreign_model": True}, format="json")
    assert made.status_code == 201, made.json()
    job = Job.objects.get(pk=made.json()["id"])
    Job.objects.update(queued_at=world.now, next_look_at=world.now)
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    address, page = f"/api/v1/jobs/{job.pk}/retry/", reverse("job_retry_page", args=[job.pk])
    refused = client.post(address, {}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "foreign_model")
    shown = client.post(page, {"accept_never_fits": "1"}, format="multipart")
    assert shown.status_code == 409
    for text in ("ada ran the job that made version 1", 'name="confirm_foreign_model"', 'name="accept_never_fits"'):
        assert text in shown.content.decode()
    assert world.again(job).attempt == 1
    assert client.post(address, {"confirm_foreign_model": True}, format="json").status_code == 200
    events = AuditEvent.objects.filter(action="model_version.run_foreign", actor_id=admin.pk)
    assert events.count() == 2
