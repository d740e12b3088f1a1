"""What Jupyters keep goes with their user from every namespace, and with a namespace as its data do."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.errors import Conflict
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.removals.models import Data
from apps.removals.services import namespace_remove, user_remove
from apps.workbench.models import Home
from tests.integration.jobs.conftest import sent, stores
from tests.integration.removals.test_removals import go_on, said, until_ended
from tests.integration.workbench.conftest import changed, jupyter_of, over
from tests.integration.workbench.homes import GIB, home_world, look, used

__all__ = ["home_world", "sent", "stores"]


@pytest.fixture
def world(home_world):
    home_world.engine.reserved = GIB
    return home_world


@pytest.fixture
def team(world, ada, bob, admin) -> Namespace:
    found = team_create(slug="vision", title="", manager=bob, actor=admin)
    Membership.objects.create(namespace=found, user=ada, role=Role.MEMBER)
    return found


@pytest.mark.parametrize("data", list(Data))
def test_a_users_homes_go_with_the_user_from_every_namespace(world, ada, bob, admin, team, data):
    over(jupyter_of(ada))
    in_team = jupyter_of(ada, team)
    world.settle()
    over(jupyter_of(bob, team))
    removal = go_on(user_remove(user=ada, data=data, actor=admin))
    assert removal.ended_at is None
    assert "files of ada's Jupyter on staged: They are being deleted." in said(removal)
    assert changed(in_team).job.wanted == "STOP", "it ran in another namespace"
    over(in_team)
    look(ada)
    until_ended(world, removal)
    assert [one.owner_id for one in Home.objects.all()] == [bob.pk]
    assert used(team) == GIB


def test_a_home_that_does_not_go_holds_the_removal_up_and_says_why(world, ada, admin):
    over(jupyter_of(ada))
    world.engine.held.add(ada.pk)
    removal = go_on(user_remove(user=ada, data=Data.DELETE, actor=admin))
    look(ada)
    removal = go_on(removal)
    assert "Its engine has not removed all of it yet." in said(removal)
    world.engine.held.clear()
    look(ada)
    until_ended(world, removal)
    assert not User.objects.filter(pk=ada.pk).exists()


@pytest.mark.parametrize("data", list(Data))
def test_homes_go_with_a_team_whose_namespace_an_engine_removes(world, bob, admin, team, data):
    session = over(jupyter_of(bob, team))
    removal = go_on(namespace_remove(namespace=team, data=data, actor=admin))
    look(bob)
    removal = until_ended(world, removal)
    assert not Home.objects.exists()
    assert "homes of Jupyters" not in said(removal)
    assert session.pk


def test_homes_of_a_team_stay_with_its_data_where_the_engine_still_has_them(world, bob, admin, team, monkeypatch):
    monkeypatch.setattr("apps.workbench.home_keeping.keeping_engines", list)
    over(jupyter_of(bob, team))
    removal = until_ended(world, namespace_remove(namespace=team, data=Data.KEEP, actor=admin))
    assert "1 homes of Jupyters: Kept in the closed namespace vision" in said(removal)
    assert Home.objects.get().goes is False
    again = go_on(namespace_remove(namespace=team, data=Data.DELETE, actor=admin))
    look(bob)
    until_ended(world, again)
    assert not Home.objects.exists()


def test_a_user_who_keeps_files_is_removed_and_not_deleted(world, ada, admin):
    session = over(jupyter_of(ada))
    session.job.delete()
    with pytest.raises(Conflict, match="kept files of Jupyters") as refused:
        user_delete(user=ada, actor=admin)
    assert "remove the user" in refused.value.remedy
    assert Home.objects.exists()
