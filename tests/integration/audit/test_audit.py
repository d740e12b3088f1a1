"""The audit: written with the deed, never changed, read by those whom it concerns."""

from __future__ import annotations

import pytest
from django.db import transaction

from apps.accounts.services import user_create
from apps.audit.models import AuditEvent
from apps.audit.services import record
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create

pytestmark = pytest.mark.django_db
URL = "/api/v1/audit/"


def test_an_event_is_neither_changed_nor_deleted(ada):
    record(ada, "job.stop", "job:1", namespace=ada.personal_namespace, why="bored")
    event = AuditEvent.objects.get(action="job.stop")
    assert (event.actor_name, event.namespace_id, event.facts) == ("ada", ada.personal_namespace.pk, {"why": "bored"})
    event.action = "job.start"
    with pytest.raises(TypeError):
        event.save()
    with pytest.raises(TypeError):
        event.delete()


def test_a_deed_that_was_rolled_back_was_not_done(ada):
    before = AuditEvent.objects.count()
    with transaction.atomic():
        record(ada, "job.stop", "job:1")
        transaction.set_rollback(True)
    assert AuditEvent.objects.count() == before


def test_administrators_read_all_and_filter(admin, signed_in):
    user_create(username="eve", actor=admin)
    record(None, "portal.start", "portal")
    rows = signed_in(admin).get(URL, {"action": "user.create", "actor": str(admin.pk)}).json()["results"]
    assert [(row["actor_name"], row["facts"]["username"]) for row in rows] == [("admin", "eve")]
    assert signed_in(admin).get(URL).json()["results"][0]["actor"] is None


def test_managers_read_their_namespaces_and_members_nothing(admin, ada, bob, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    Membership.objects.create(namespace=team, user=bob, role=Role.MEMBER)
    record(admin, "user.create", "user:1")
    actions = [row["action"] for row in signed_in(ada).get(URL).json()["results"]]
    assert actions == ["namespace.create"]
    assert signed_in(bob).get(URL).json()["results"] == []
    assert signed_in(bob).get(URL, {"namespace": str(team.pk)}).json()["results"] == []


@pytest.mark.parametrize("query", [{"actor": "x"}, {"namespace": "1"}, {"subject": "x" * 201}])
def test_a_filter_that_will_not_do_is_named(admin, signed_in, query):
    response = signed_in(admin).get(URL, query)
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == next(iter(query))


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_it_cannot_be_written_from_outside(admin, signed_in, method):
    assert getattr(signed_in(admin), method)(URL, {"action": "x"}).status_code == 405
