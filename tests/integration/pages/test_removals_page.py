"""The page of removals: for administrators, with what is left in words."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.namespaces.models import Namespace
from apps.namespaces.services import team_create
from apps.removals.models import Data, Removal
from apps.removals.services import user_remove

pytestmark = pytest.mark.django_db
PAGE = "/admin/removals/"


def test_an_administrator_removes_by_typing_the_name(ada, admin, client):
    client.force_login(admin)
    assert "No user or team has been removed yet" in client.get(PAGE).content.decode()
    answer = client.post(PAGE, {"slug": "ada", "delete": "on"}, follow=True)
    assert "ada is being removed" in answer.content.decode()
    removal = Removal.objects.get()
    assert (removal.username, removal.data) == ("ada", "delete")
    assert not User.objects.get(pk=ada.pk).is_active


def test_an_administrator_locks_stops_revokes_and_unlocks(ada, admin, client):
    client.force_login(admin)
    assert "No user is locked" in client.get(PAGE).content.decode()
    token_create(user=ada, name="t", scopes=[], expires_in=None)

    def press(action: str, name: str = "ada") -> str:
        return client.post(f"{PAGE}account/", {"username": name, "action": action}, follow=True).content.decode()

    assert "Revoked 1 token of ada." in press("revoke")
    assert "ada is locked." in press("lock")
    assert not User.objects.get(pk=ada.pk).is_active
    assert "0 jobs are being stopped" in press("lock_and_stop")
    assert "ada can sign in again" in press("unlock")
    assert User.objects.get(pk=ada.pk).is_active
    assert "There is no such user" in press("lock", "nobody-at-all")
    assert "cannot lock yourself out" in press("lock", "admin")
    assert User.objects.get(pk=admin.pk).is_active
    ada.refresh_from_db()
    client.force_login(ada)
    assert client.post(f"{PAGE}account/", {"username": "admin", "action": "lock"}).status_code == 403
    assert User.objects.get(pk=admin.pk).is_active


def test_a_team_is_removed_and_its_data_kept_unless_said_otherwise(ada, admin, client):
    team_create(slug="vision", title="", manager=ada, actor=admin)
    client.force_login(admin)
    client.post(PAGE, {"slug": "vision"})
    assert (Removal.objects.get().slug, Removal.objects.get().data) == ("vision", "keep")


def test_what_is_left_is_listed_and_harmless_to_read(ada, admin, client):
    removal = user_remove(user=ada, data=Data.KEEP, actor=admin)
    left = [{"what": "namespace on cluster", "why": "Finalizers: <script>alert(1)</script>"}]
    Removal.objects.filter(pk=removal.pk).update(left=left)
    client.force_login(admin)
    page = client.get(PAGE).content.decode()
    assert "namespace on cluster" in page
    assert "<script>alert" not in page
    assert "In progress" in page
    Removal.objects.filter(pk=removal.pk).update(left=[], ended_at=timezone.now())
    assert "Everything was removed" in client.get(PAGE).content.decode()


@pytest.mark.parametrize("slug", ["", "nothing", "admin"])
def test_what_speaks_against_it_stands_at_the_name(admin, client, slug):
    client.force_login(admin)
    page = client.post(PAGE, {"slug": slug}).content.decode()
    assert "is-invalid" in page
    assert not Removal.objects.exists()
    assert Namespace.objects.get(owner=admin).closed_at is None


def test_nobody_else_sees_or_begins_any(ada, bob, client):
    client.force_login(ada)
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"slug": "bob"}).status_code == 403
    assert not Removal.objects.exists()


def test_a_closed_namespace_says_so_on_its_page(ada, admin, client):
    client.force_login(admin)
    address = f"/namespaces/{ada.personal_namespace.pk}/"
    assert "is closed" not in client.get(address).content.decode()
    user_remove(user=ada, data=Data.KEEP, actor=admin)
    assert "is closed" in client.get(address).content.decode()
