"""A removal called off while it works, and jobs and managers that come in between: what was to stay, stays."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_change
from apps.audit.models import AuditEvent
from apps.errors import Conflict, NotFound
from apps.jobs import services
from apps.jobs.engines import namespaces as places
from apps.jobs.models import Job
from apps.namespaces.models import EngineNamespace, Membership, Namespace, Role
from apps.namespaces.services import member_remove, team_create
from apps.removals.models import Data
from apps.removals.services import namespace_remove, user_remove
from tests.integration.jobs.conftest import sent, stores
from tests.integration.namespaces.placed import placed_world
from tests.integration.removals.test_removals import go_on, said, until_ended

__all__ = ["placed_world", "sent", "stores"]


@pytest.fixture
def world(placed_world):
    return placed_world


@pytest.fixture
def called_off_while_the_engine_lets_go(world, ada, admin, monkeypatch):
    """The account is activated again while a pass waits for the cluster."""
    remove = world.engine.remove

    def removed(namespace_id):
        remains = remove(namespace_id)
        user_change(user=User.objects.get(pk=ada.pk), actor=admin, is_active=True)
        return remains

    monkeypatch.setattr(world.engine, "remove", removed)


@pytest.mark.usefixtures("called_off_while_the_engine_lets_go")
@pytest.mark.parametrize("data", list(Data))
def test_what_an_active_user_has_stays(world, ada, admin, data):
    places.engine_namespaces_keep(ada.personal_namespace.pk)
    job = world.launch(ada)
    world.settle()
    world.engine.succeed(job)
    world.until_quiet()
    removal = go_on(user_remove(user=ada, data=data, actor=admin))
    assert "Cancelled" in said(removal)
    assert User.objects.get(pk=ada.pk).is_active
    assert Job.objects.get(pk=job.pk).deleted_at is None
    assert set(AuditEvent.objects.filter(action__startswith="user.remov").values_list("action", flat=True)) == {
        "user.remove", "user.removal_called_off",
    }  # fmt: skip


@pytest.mark.usefixtures("called_off_while_the_engine_lets_go")
def test_an_active_user_without_anything_stays_too(world, ada, admin):
    places.engine_namespaces_keep(ada.personal_namespace.pk)
    go_on(user_remove(user=ada, data=Data.KEEP, actor=admin))
    assert User.objects.get(pk=ada.pk).is_active


def test_a_removal_asked_for_again_after_it_was_called_off_is_carried_out(world, ada, admin):
    mine = ada.personal_namespace
    places.engine_namespaces_keep(mine.pk)
    world.engine.finalizers[mine.pk] = ("a finalizer",)
    first = go_on(user_remove(user=ada, data=Data.KEEP, actor=admin))
    user_change(user=User.objects.get(pk=ada.pk), actor=admin, is_active=True)
    again = user_remove(user=User.objects.get(pk=ada.pk), data=Data.KEEP, actor=admin)
    assert (again.pk, Namespace.objects.get(pk=mine.pk).closed_at is None) == (first.pk, False)
    world.engine.finalizers.clear()
    until_ended(world, again)
    assert not User.objects.filter(pk=ada.pk).exists()


def test_a_place_that_was_to_go_is_kept_when_its_namespace_is_open_again(world, ada, admin):
    mine = ada.personal_namespace
    places.engine_namespaces_keep(mine.pk)
    world.engine.finalizers[mine.pk] = ("a finalizer",)
    go_on(user_remove(user=ada, data=Data.KEEP, actor=admin))
    user_change(user=User.objects.get(pk=ada.pk), actor=admin, is_active=True)
    EngineNamespace.objects.update(goes=True)  # as a worker writes it that read it before
    before = len(world.engine.asked)
    places.engine_namespaces_keep(mine.pk, clock=timezone.now)
    assert "remove" not in [verb for verb, _ in world.engine.asked[before:]]
    assert not EngineNamespace.objects.get(namespace_id=mine.pk).goes


def test_a_job_launched_while_its_namespace_is_removed_is_refused(world, ada, bob, admin, monkeypatch):
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    reads = services.launch_checked

    def slowly(user, namespace, spec, engine):
        namespace_remove(namespace=team, data=Data.KEEP, actor=admin)
        return reads(user, namespace, spec, engine)

    monkeypatch.setattr(services, "launch_checked", slowly)
    with pytest.raises(Conflict):
        world.launch(ada, namespace=Namespace.objects.get(pk=team.pk))
    assert not Job.objects.exists()


def test_a_job_that_a_user_launches_while_they_are_taken_out_of_the_team_is_refused(
    world, ada, bob, admin, monkeypatch
):
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=Role.MEMBER)
    reads = services.launch_checked

    def slowly(user, namespace, spec, engine):
        member_remove(namespace=team, user=ada, actor=bob)
        return reads(user, namespace, spec, engine)

    monkeypatch.setattr(services, "launch_checked", slowly)
    with pytest.raises(NotFound):
        world.launch(ada, namespace=team)
    assert not Job.objects.exists()


def test_a_team_keeps_a_manager_who_can_sign_in(world, ada, bob, admin):
    team = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=team, user=ada, role=Role.MANAGER)
    user_remove(user=ada, data=Data.KEEP, actor=admin)
    with pytest.raises(Conflict, match="only manager"):
        user_remove(user=bob, data=Data.KEEP, actor=admin)
