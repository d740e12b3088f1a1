"""Stages: one version each in staging and production, who promoted it and when."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.errors import Conflict
from apps.namespaces.models import Membership, Namespace, Role
from apps.registry.models import ModelVersion, Stage
from apps.registry.stages import stage_set
from tests.integration.model_versions import job_of, version_of

pytestmark = pytest.mark.django_db


def stages_of(version: ModelVersion) -> list[str]:
    rows = ModelVersion.objects.filter(parent=version.parent).order_by("number")
    return list(rows.values_list("stage", flat=True))


def test_a_promoted_version_takes_the_place_of_the_one_before(ada, api):
    first, second = (version_of(job_of(ada), name="digits") for _ in range(2))
    for version in (first, second):
        answer = api.post(f"/api/v1/model-versions/{version.pk}/stage/", {"stage": "production", "note": "good"})
        assert (answer.status_code, answer.json()["stage"]) == (200, "production"), answer.json()
    assert stages_of(first) == ["archived", "production"]
    history = api.get(f"/api/v1/models/{first.parent_id}/stages/").json()["results"]
    assert [(one["version"], one["before"], one["after"], one["by"]) for one in history] == [
        (2, "", "production", "ada"), (1, "production", "archived", "ada"), (1, "", "production", "ada"),
    ]  # fmt: skip
    assert history[0]["note"] == "good"
    assert "version 2" in history[1]["note"]
    assert AuditEvent.objects.filter(action="model_version.stage").count() == 3


def test_the_same_stage_again_changes_nothing(ada):
    version = version_of(job_of(ada))
    for _ in range(2):
        stage_set(version, Stage.STAGING, actor=ada)
    assert version.parent.stage_changes.count() == 1
    stage_set(version, Stage.NONE, actor=ada)
    assert stages_of(version) == [""]


def test_a_version_of_a_stopped_script_is_not_for_production(ada):
    version = version_of(job_of(ada), stopped=True)
    with pytest.raises(Conflict, match="stopped"):
        stage_set(version, Stage.PRODUCTION, actor=ada)
    stage_set(version, Stage.STAGING, actor=ada)


def test_members_promote_and_viewers_do_not(ada, bob, signed_in):
    team = Namespace.objects.create(slug="team", title="Team")
    version = version_of(job_of(ada, namespace=team))
    member = Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    address = f"/api/v1/model-versions/{version.pk}/stage/"
    assert signed_in(bob).post(address, {"stage": "staging"}).status_code == 403
    assert signed_in(bob).delete(f"/api/v1/models/{version.parent_id}/").status_code == 403
    Membership.objects.filter(pk=member.pk).update(role=Role.MEMBER)
    assert signed_in(bob).post(address, {"stage": "staging"}).status_code == 200
    assert signed_in(bob).post(address, {"stage": "best"}).status_code == 400
    assert signed_in(ada).post(address, {"stage": "staging"}).status_code == 404, "a stranger"
