"""A Jupyter with the packages of an environment of its namespace."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.environments.models import Environment, State
from apps.workbench.models import WorkbenchSession
from tests.integration.workbench.conftest import over

LOCK = [{"name": "rich", "version": "13.0", "sha256": ""}, {"name": "polite", "version": "1.5", "sha256": ""}]
SESSIONS = "/api/v1/sessions/"


def environment_of(namespace, **columns) -> Environment:
    now = timezone.now() - timedelta(minutes=1)
    facts = {
        "key": uuid.uuid4().hex * 2,
        "requirements": ["rich"],
        "python": "3.11",
        "state": State.READY,
        "lock": LOCK,
    }
    return Environment.objects.create(namespace=namespace, created_at=now, used_at=now, **{**facts, **columns})


def started(me, **more):
    return me.post(SESSIONS, {"kind": "jupyter", **more})


def requirements() -> list[str]:
    job = WorkbenchSession.objects.get().job
    assert job is not None
    return job.spec["requirements"]


def test_it_has_exactly_what_was_installed_and_keeps_it(world, me, mine):
    environment = environment_of(mine)
    assert started(me, environment=str(environment.pk)).status_code == 201
    assert requirements() == ["rich==13.0", "polite==1.5"]
    over(WorkbenchSession.objects.get(), "STOPPED")
    assert started(me).status_code == 201
    assert requirements() == ["rich==13.0", "polite==1.5"]
    over(WorkbenchSession.objects.get(), "STOPPED")
    assert started(me, environment="").status_code == 201
    assert requirements() == []


@pytest.mark.parametrize("which", ["other", "unknown", "no id", "building"])
def test_only_one_of_its_own_namespace_is_taken(world, me, mine, bob, which):
    named = {
        "other": lambda: str(environment_of(bob.personal_namespace).pk),
        "unknown": lambda: str(uuid.uuid4()),
        "no id": lambda: "rich",
        "building": lambda: str(environment_of(mine, state=State.BUILDING).pk),
    }[which]()
    answer = started(me, environment=named)
    assert answer.status_code == 400
    assert [one["field"] for one in answer.json()["errors"]] == ["environment"]


def test_a_tensorboard_has_none(world, me, mine):
    answer = me.post(SESSIONS, {"kind": "tensorboard", "environment": str(environment_of(mine).pk)})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "environment")


def test_the_page_offers_those_of_the_namespace(world, me, mine, bob):
    page = "/workbench/"
    assert "Packages" not in me.get(page).content.decode()
    environment_of(bob.personal_namespace)
    assert "Packages" not in me.get(page).content.decode()
    environment = environment_of(mine)
    text = me.get(page).content.decode()
    assert "rich (2 packages)" in text
    me.post("/workbench/start/", {"kind": "jupyter", "environment": str(environment.pk)}, format="multipart")
    assert requirements() == ["rich==13.0", "polite==1.5"]


def test_environments_are_listed_to_members_and_removed_by_them(me, mine, ada, bob, signed_in):
    environment = environment_of(mine)
    (row,) = me.get("/api/v1/environments/").json()["results"]
    assert (row["id"], row["requirements"], row["lock"][0]["name"]) == (str(environment.pk), ["rich"], "rich")
    address = f"/api/v1/environments/{environment.pk}/"
    assert signed_in(bob).get(address).status_code == signed_in(bob).delete(address).status_code == 404
    assert me.get(address).status_code == 200
    assert me.delete(address).status_code == 204
    assert me.get(address).status_code == 404
