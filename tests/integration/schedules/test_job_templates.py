"""Templates over the API: saved, launched with values, changed as revisions, and what is gone is named."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.code.models import CodeVersion
from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.schedules.models import JobTemplate, TemplateJob, TemplateRevision
from tests.integration.schedules.conftest import PARAMETERS, template_of

pytestmark = pytest.mark.django_db
URL = "/api/v1/job-templates/"


@pytest.fixture
def me(ada, signed_in):
    return signed_in(ada)


def problems(answer) -> set[tuple[str, str]]:
    return {(one["field"], one["code"]) for one in answer.json()["errors"]}


def test_a_job_is_saved_as_a_template_and_launched_with_values(world, ada, me):
    job = world.launch(ada, arguments=["--lr=0.5"], environment={"MODE": "fast"})
    made = me.post(URL, {"job": str(job.pk), "name": "baseline"}, format="json")
    assert made.status_code == 201, made.json()
    assert (made.json()["engine"], made.json()["revision"]) == (job.engine, 1)
    address = f"{URL}{made.json()['id']}/"
    spec = made.json()["spec"] | {"arguments": ["--lr={{lr}}", "{{note}}"]}
    changed = me.patch(address, {"spec": spec, "parameters": PARAMETERS}, format="json")
    assert changed.status_code == 200, changed.json()
    assert changed.json()["revision"] == 2
    body = {"parameters": {"lr": "0.25", "note": "a; b $(c)"}, "name": "second"}
    launched = me.post(f"{address}launch/", body, format="json")
    assert launched.status_code == 201, launched.json()
    found = Job.objects.get(pk=launched.json()["id"])
    assert (found.name, found.spec["arguments"]) == ("second", ["--lr=0.25", "a; b $(c)"])
    assert found.spec["environment"] == {"MODE": "fast"}
    origin = TemplateJob.objects.get(job=found)
    assert (origin.template_name, origin.revision, origin.values) == (
        "baseline", 2, {"lr": 0.25, "note": "a; b $(c)"},
    )  # fmt: skip
    told = AuditEvent.objects.filter(action__startswith="job_template.").order_by("pk")
    assert [one.action.split(".")[1] for one in told] == ["create", "change", "launch"]
    assert (told[1].facts["revision_before"], told[1].facts["revision"]) == (1, 2)


def test_values_that_are_not_valid_launch_nothing_and_are_named(world, ada, me):
    template = template_of(world, ada)
    answer = me.post(f"{URL}{template.pk}/launch/", {"parameters": {"lr": 3, "rate": 1}}, format="json")
    assert answer.status_code == 422
    assert problems(answer) == {("parameters.lr", "out_of_range"), ("parameters.rate", "unknown_parameter")}
    assert not Job.objects.exists()


def test_the_latest_version_is_taken_at_each_launch(world, ada, me):
    data = world.dataset_version(ada, {"a.tfrecord": "x"})
    inputs = [{"dataset_version": str(data.pk), "name": "digits"}]
    template = template_of(world, ada, spec={"inputs": inputs}, latest=["inputs.0"])
    newer = world.dataset_version(ada, {"a.tfrecord": "y"})
    DatasetVersion.objects.filter(pk=newer.pk).update(parent=data.parent, number=2)
    answer = me.post(f"{URL}{template.pk}/launch/", {}, format="json")
    assert answer.status_code == 201, answer.json()
    job = Job.objects.get(pk=answer.json()["id"])
    assert [one["dataset_version"] for one in job.spec["inputs"]] == [str(newer.pk)]


def test_what_is_gone_is_named_with_what_to_do(world, ada, me):
    data = world.dataset_version(ada, {"a.tfrecord": "x"})
    inputs = [{"dataset_version": str(data.pk), "name": "digits"}]
    template = template_of(world, ada, spec={"inputs": inputs})
    name = data.parent.name
    DatasetVersion.objects.filter(pk=data.pk).delete()
    answer = me.post(f"{URL}{template.pk}/launch/", {}, format="json")
    (problem,) = answer.json()["errors"]
    assert (problem["field"], problem["code"]) == ("inputs.0.dataset_version", "gone")
    assert f"{name}, version 1" in problem["message"]
    assert "save the template again" in problem["remedy"]


def test_no_one_saves_what_they_may_not_see(world, ada, bob, signed_in):
    team = team_create(slug="vision", title="Vision", manager=ada, actor=ada)
    Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    secret = world.code_version(ada)  # of ada's own namespace
    spec = world.spec_json(bob, code=str(secret.pk))
    body = {"namespace": "vision", "name": "x", "spec": spec}
    answer = signed_in(bob).post(URL, body, format="json")
    assert problems(answer) == {("code", "gone")}
    assert not JobTemplate.objects.exists()


def test_a_template_is_checked_as_a_launch_is(world, ada, me):
    spec = world.spec_json(ada, entry_point="absent.py", arguments=["{{typo}}"])
    answer = me.post(URL, {"name": "x", "spec": spec, "parameters": PARAMETERS}, format="json")
    assert ("arguments.0", "unknown_parameter") in problems(answer)
    spec["arguments"] = ["{{lr}}", "{{note}}"]
    answer = me.post(URL, {"name": "x", "spec": spec, "parameters": PARAMETERS}, format="json")
    assert problems(answer) == {("entry_point", "entry_point_missing")}


def test_strangers_know_nothing_viewers_see_and_members_change(world, ada, bob, signed_in):
    team = team_create(slug="vision", title="Vision", manager=ada, actor=ada)
    template = template_of(world, ada, team)
    his, address = signed_in(bob), f"{URL}{template.pk}/"
    assert his.get(address).status_code == 404
    assert his.get(URL).json()["results"] == []
    member = Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    assert his.get(address).status_code == 200
    for answer in (his.patch(address, {"name": "y"}), his.delete(address), his.post(f"{address}launch/", {})):
        assert answer.status_code == 403
    Membership.objects.filter(pk=member.pk).update(role=Role.MEMBER)
    assert his.patch(address, {"name": "y"}, format="json").json()["name"] == "y"
    assert his.get(URL, {"namespace": "vision", "name": "y"}).json()["results"][0]["id"] == str(template.pk)
    assert his.delete(address).status_code == 204
    assert not TemplateRevision.objects.exists()


def test_names_are_unique_and_templates_not_too_many(world, ada, me, settings):
    template_of(world, ada)
    spec = world.spec_json(ada)
    assert me.post(URL, {"name": "nightly", "spec": spec}, format="json").json()["code"] == "name_taken"
    settings.YARDMASTER_SCHEDULES = settings.YARDMASTER_SCHEDULES.__class__(
        **{**settings.YARDMASTER_SCHEDULES.__dict__, "templates": 1}
    )
    assert me.post(URL, {"name": "other", "spec": spec}, format="json").json()["code"] == "too_many_templates"


def test_the_same_content_makes_no_new_revision(world, ada, me):
    template = template_of(world, ada)
    answer = me.patch(f"{URL}{template.pk}/", {"parameters": PARAMETERS, "description": "d"}, format="json")
    assert (answer.json()["revision"], answer.json()["description"]) == (1, "d")


def test_a_job_outlives_its_template(world, ada, me):
    template = template_of(world, ada)
    answer = me.post(f"{URL}{template.pk}/launch/", {}, format="json")
    me.delete(f"{URL}{template.pk}/")
    origin = TemplateJob.objects.get(job=answer.json()["id"])
    assert (origin.template, origin.template_name) == (None, "nightly")


def test_newer_code_of_another_does_not_run_as_the_portal(world, ada, admin, signed_in, settings):
    team = team_create(slug="vision", title="Vision", manager=admin, actor=admin)
    code = world.code_version(admin)
    code.parent.namespace = team
    code.parent.save()
    world.engine.isolates = False
    template = template_of(world, admin, team, spec={"code": str(code.pk)}, latest=["code"])
    newer = world.code_version(ada)
    CodeVersion.objects.filter(pk=newer.pk).update(parent=code.parent, number=2)
    his, launch = signed_in(admin), f"{URL}{template.pk}/launch/"
    refused = his.post(launch, {}, format="json")
    assert (refused.status_code, problems(refused)) == (422, {("code", "foreign_code")})
    assert not Job.objects.exists()
    settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL = True
    assert his.post(launch, {}, format="json").status_code == 201
    settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL, world.engine.isolates = False, True
    assert his.post(launch, {}, format="json").status_code == 201
    world.engine.isolates = False
    CodeVersion.objects.filter(pk=newer.pk).update(created_by=admin)
    assert his.post(launch, {}, format="json").status_code == 201
