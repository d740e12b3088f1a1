"""Accounts: made with a namespace, ended at once, and never by accident."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.attempts import MOST, is_seen_from, network_note, networks_clean
from apps.accounts.models import PersonalToken, User
from apps.accounts.services import address_change, sign_in_link_create, token_create, user_change, user_create
from apps.audit.models import AuditEvent
from apps.errors import Conflict, Invalid
from apps.namespaces.models import Membership, Namespace, Role
from apps.uploads.models import Upload
from tests.integration.conftest import PASSWORD

pytestmark = pytest.mark.django_db
USERS = "/api/v1/users/"


def by_api(admin, signed_in):
    signed_in(admin).post(USERS, {"username": "eve"})


def by_createsuperuser(admin, signed_in):
    call_command("createsuperuser", username="eve", email="", interactive=False, verbosity=0)


def by_sign_up(admin, signed_in):
    form = {"username": "eve", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    Client().post("/accounts/signup/", form)


@pytest.mark.parametrize("way", [by_api, by_createsuperuser, by_sign_up])
def test_every_way_to_make_a_user_makes_the_personal_namespace(admin, signed_in, way, settings):
    settings.YARDMASTER_OPEN_SIGN_UP = True
    way(admin, signed_in)
    namespace = Namespace.objects.get(owner__username="eve")
    assert namespace.slug == "eve"
    assert list(namespace.memberships.values_list("user__username", "role")) == [("eve", Role.MANAGER)]
    assert namespace.quota.cpu is None


def test_a_default_quota_comes_from_the_settings(settings):
    settings.YARDMASTER_DEFAULT_QUOTA = {"cpu": 2, "memory": 1 << 30, "gpus": 0, "storage": None, "running_jobs": 3}
    quota = user_create(username="eve").personal_namespace.quota
    assert (quota.cpu, quota.gpus, quota.storage, quota.running_jobs) == (2, 0, None, 3)


def test_sign_up_is_closed_unless_it_is_opened(client):
    form = {"username": "eve", "email": "", "password1": PASSWORD, "password2": PASSWORD}
    client.post("/accounts/signup/", form)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("username", "slug"),
    [
        ("Ada.Lovelace", "adalovelace"),
        ("a_b", "a-b"),
        ("אדה", "user"),
        ("...", "user"),
        ("x" * 150, "x" * 50),
        ("019ab000-0000-7000-8000-000000000000", "u-019ab000-0000-7000-8000-000000000000"),
    ],
)
def test_a_slug_is_made_from_any_name(username, slug):
    assert user_create(username=username).personal_namespace.slug == slug


def test_equal_slugs_get_numbers():
    names = ["a.b", "ab", "a..b", "a+b"]
    slugs = [user_create(username=name).personal_namespace.slug for name in names]
    assert slugs == ["ab", "ab-2", "ab-3", "ab-4"]


@pytest.mark.parametrize(
    "username",
    ["", " ", "a b", "a/b", "../etc", "a\u202eb", "a\u200bb", "x" * 151, "x" * 10_000, "<script>", "a\nb", "a\x00b"],
)
def test_a_hostile_name_is_refused_by_field(admin, signed_in, username):
    response = signed_in(admin).post(USERS, {"username": username})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "username"
    assert User.objects.count() == 1


@pytest.mark.parametrize("other", ["ADA", "Ada", "ａｄａ"])
def test_two_names_never_differ_only_in_how_they_look(ada, other):
    with pytest.raises(Invalid):
        user_create(username=other)


def test_two_users_never_share_an_address(ada):
    with pytest.raises(Invalid):
        user_create(username="eve", email="ADA@example.org")


def test_a_name_is_no_address_but_the_users_own(ada):
    for name, email in [("ada@example.org", ""), ("eve@example.org", ""), ("eve@example.org", "eva@example.org")]:
        with pytest.raises(Invalid) as refused:
            user_create(username=name, email=email)
        assert [one.field for one in refused.value.errors] == ["username"]
    assert user_create(username="eve@example.org", email="Eve@example.org").username == "eve@example.org"


def test_an_address_is_no_name_of_another_user(ada):
    User.objects.create_user("Former@example.org")
    with pytest.raises(Invalid):
        user_create(username="eve", email="former@example.org")
    with pytest.raises(Invalid):
        address_change(user=ada, email="FORMER@example.org")


def test_names_and_addresses_that_clash_already_can_still_be_locked_and_kept(admin, ada):
    clashing = User.objects.create_user("ada@example.org")
    for user in (clashing, ada):
        assert user_change(user=user, actor=admin, is_active=False, email=user.email).is_active is False


@pytest.mark.parametrize("sends_mail", [False, True])
@pytest.mark.parametrize(
    ("name", "email", "field"),
    [("ada@example.org", "", "username"), ("new@example.org", "", "username"), ("eve", "former@example.org", "email")],
)
def test_nobody_signs_up_with_the_address_of_another_as_a_name(ada, settings, sends_mail, name, email, field):
    settings.YARDMASTER_OPEN_SIGN_UP, settings.YARDMASTER_SENDS_MAIL = True, sends_mail
    User.objects.create_user("former@example.org")
    form = {"username": name, "email": email, "password1": PASSWORD, "password2": PASSWORD}
    answer = Client().post("/accounts/signup/", form)
    assert list(answer.context["form"].errors) == [field]
    assert User.objects.count() == 2


def test_an_address_that_nobody_confirmed_is_no_name_either(settings):
    settings.YARDMASTER_OPEN_SIGN_UP, settings.YARDMASTER_SENDS_MAIL = True, True
    form = {"username": "e@example.org", "email": "e@example.org", "password1": PASSWORD, "password2": PASSWORD}
    assert "username" in Client().post("/accounts/signup/", form).context["form"].errors
    assert not User.objects.exists()


def test_a_weak_password_is_refused_with_all_reasons(admin, signed_in):
    response = signed_in(admin).post(USERS, {"username": "eve", "password": "123"})
    assert response.status_code == 400
    assert {error["field"] for error in response.json()["errors"]} == {"password"}
    assert len(response.json()["errors"]) >= 2


def test_no_answer_and_no_audit_holds_a_password(admin, signed_in):
    body = signed_in(admin).post(USERS, {"username": "eve", "password": PASSWORD}).content.decode()
    assert PASSWORD not in body
    assert "md5" not in body
    assert PASSWORD not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize("field", ["is_superuser", "id", "last_login", "groups", "sign_in_epoch", "namespace"])
def test_nothing_else_can_be_set_from_outside(admin, signed_in, field):
    assert signed_in(admin).post(USERS, {"username": "eve", field: "1"}).status_code == 400
    assert signed_in(admin).patch(f"{USERS}{admin.pk}/", {field: "1"}).status_code == 400


def test_a_user_changes_only_the_own_names(ada, signed_in):
    client = signed_in(ada)
    for field in ("is_staff", "is_active", "email", "username", "is_superuser"):
        assert client.patch("/api/v1/me/", {field: True}).status_code == 400
    assert client.patch("/api/v1/me/", {"first_name": "Ada"}).json()["first_name"] == "Ada"
    ada.refresh_from_db()
    assert (ada.is_staff, ada.first_name) == (False, "Ada")


def test_users_are_for_administrators(ada, signed_in, admin):
    client = signed_in(ada)
    for response in (
        client.get(USERS),
        client.post(USERS, {"username": "eve"}),
        client.get(f"{USERS}{admin.pk}/"),
        client.patch(f"{USERS}{ada.pk}/", {"is_staff": True}),
        client.delete(f"{USERS}{admin.pk}/"),
        client.post(f"{USERS}{admin.pk}/sign-in-link/"),
    ):
        assert response.status_code == 403
    ada.refresh_from_db()
    assert not ada.is_staff


def test_deactivation_ends_sessions_tokens_and_links_at_once(admin, ada, signed_in, with_token):
    session, token = signed_in(ada), with_token(ada)
    link = sign_in_link_create(ada)
    assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 200
    response = signed_in(admin).patch(f"{USERS}{ada.pk}/", {"is_active": False})
    assert response.json()["is_active"] is False
    assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 401
    assert session.get(link).status_code == 410
    assert authenticate(None, username="ada", password=PASSWORD) is None


def test_what_was_ended_does_not_wake_when_the_user_is_activated_again(admin, ada, signed_in, with_token):
    session, token = signed_in(ada), with_token(ada)
    user_change(user=ada, actor=admin, is_active=False)
    user_change(user=ada, actor=admin, is_active=True)
    assert session.get("/api/v1/me/").status_code == token.get("/api/v1/me/").status_code == 401
    assert authenticate(None, username="ada", password=PASSWORD) == ada


def test_the_last_administrator_stays_one(admin, ada):
    for change in ({"is_staff": False}, {"is_active": False}):
        with pytest.raises(Conflict):
            user_change(user=admin, actor=admin, **change)
    user_change(user=ada, actor=admin, is_staff=True)
    user_change(user=admin, actor=admin, is_staff=False)


def test_a_changed_address_that_is_taken_is_refused(admin, ada, bob, signed_in):
    response = signed_in(admin).patch(f"{USERS}{bob.pk}/", {"email": "Ada@example.org"})
    assert response.json()["errors"][0]["field"] == "email"


class TestDeletion:
    """kubeflow#5269, #7297: how to remove a user, whose namespace must not come back."""

    def test_a_user_and_the_namespace_go_for_good(self, admin, ada, signed_in):
        token_create(user=ada, name="t", scopes=[], expires_in=None)
        assert signed_in(admin).delete(f"{USERS}{ada.pk}/").status_code == 204
        assert not User.objects.filter(username="ada").exists()
        assert not Namespace.objects.filter(slug="ada").exists()
        assert not PersonalToken.objects.exists()
        assert AuditEvent.objects.filter(action="user.delete", facts__username="ada").exists()

    def test_whoever_still_has_something_is_not_deleted(self, admin, ada, signed_in):
        now = timezone.now()
        Upload.objects.create(
            namespace=ada.personal_namespace, part_size=1, file_count=0, held=0, created_at=now, touched_at=now
        )
        response = signed_in(admin).delete(f"{USERS}{ada.pk}/")
        assert (response.status_code, response.json()["code"]) == (409, "not_empty")
        assert "upload" in response.json()["detail"]
        assert User.objects.filter(username="ada").exists()
        assert Membership.objects.filter(user=ada).exists()

    def test_nobody_deletes_himself(self, admin, signed_in):
        assert signed_in(admin).delete(f"{USERS}{admin.pk}/").status_code == 409

    def test_the_only_manager_of_a_team_is_not_deleted(self, admin, ada, signed_in):
        signed_in(admin).post("/api/v1/namespaces/", {"slug": "vision", "manager": "ada"})
        response = signed_in(admin).delete(f"{USERS}{ada.pk}/")
        assert response.status_code == 409
        assert "vision" in response.json()["detail"]


def test_the_last_networks_of_an_account_are_known_for_a_month(ada, bob):
    now = timezone.now()
    for number in range(MOST + 5):
        network_note(ada, f"10.0.0.{number}", now + timedelta(minutes=number))
    network_note(ada, "10.0.0.5", now + timedelta(days=2))
    network_note(ada, "10.0.1.0", now + timedelta(days=2, minutes=1))
    known = set(ada.known_networks.values_list("network", flat=True))
    assert known == {"10.0.0.5", "10.0.1.0", *(f"10.0.0.{number}" for number in range(7, MOST + 5))}
    assert is_seen_from("10.0.0.5", str(ada.pk), now + timedelta(days=31))
    assert not is_seen_from("10.0.0.8", str(ada.pk), now + timedelta(days=31))
    assert not is_seen_from("10.0.0.5", str(bob.pk), now)
    assert not is_seen_from("10.0.0.5", "a name that nobody has", now)
    networks_clean(now + timedelta(days=31))
    assert set(ada.known_networks.values_list("network", flat=True)) == {"10.0.0.5", "10.0.1.0"}


def test_a_page_of_users_costs_few_queries(admin, signed_in):
    for n in range(20):
        user_create(username=f"u{n}")
    client = signed_in(admin)
    client.get(f"{USERS}?page_size=1")  # the first request of a browser is remembered in its account
    with CaptureQueriesContext(connection) as queries:
        assert len(client.get(USERS).json()["results"]) == 21
    assert len(queries) <= 4
