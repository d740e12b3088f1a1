"""Ways around signing in, locks and confirmations, as a hostile user or a thief with a session would try them."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create, user_change, user_sign_out
from apps.errors import Forbidden, Invalid
from apps.namespaces.models import Role
from apps.namespaces.service_accounts import service_account_create, service_token_create
from apps.namespaces.services import team_create
from tests.integration.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def locked(user: User, admin: User) -> None:
    user_change(user=user, actor=admin, is_active=False)


def locked_and_unlocked(user: User, admin: User) -> None:
    locked(user, admin)
    user_change(user=user, actor=admin, is_active=True)


def signed_out(user: User, admin: User) -> None:
    user_sign_out(user=user, actor=admin)


def with_a_new_password(user: User, admin: User) -> None:
    user = User.objects.get(pk=user.pk)
    user.set_password("another long password")
    user.save()


@pytest.mark.parametrize("ended", [locked, locked_and_unlocked, signed_out, with_a_new_password])
def test_a_request_that_was_under_way_makes_no_token_that_outlives_the_end(admin, ada, ended):
    under_way = User.objects.get(pk=ada.pk)  # as the request has read the user
    ended(ada, admin)
    with pytest.raises(Forbidden) as refused:
        token_create(user=under_way, name="for later", scopes=[], expires_in=None)
    assert refused.value.code == "signed_out"
    assert not PersonalToken.objects.filter(user=ada).exists()
    if ended is not locked:
        token_create(user=User.objects.get(pk=ada.pk), name="now", scopes=[], expires_in=None)


@pytest.mark.parametrize("where", [
    "https://evil.example/", "https://session.portal.example/", "http://portal.example:8000/", "//evil.example",
    "https:evil.example", "\\\\evil.example", "/\\evil.example", "javascript:alert(1)",
])  # fmt: skip
def test_no_sign_in_leads_to_another_host_also_where_the_portal_answers_to_several(settings, ada, where):
    settings.ALLOWED_HOSTS = [".portal.example", "*"]
    settings.PUBLIC_URL = "https://portal.example"
    client = Client(headers={"host": "portal.example"})
    answer = client.post("/accounts/login/", {"login": "ada", "password": PASSWORD, "next": where}, secure=True)
    assert answer.headers["Location"] == "/"
    confirmed = client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": where}, secure=True)
    assert confirmed.headers["Location"] == "/"


def test_a_sign_in_leads_to_the_page_that_was_asked_for(ada):
    answer = Client().post("/accounts/login/", {"login": "ada", "password": PASSWORD, "next": "/jobs/?phase=FAILED"})
    assert answer.headers["Location"] == "/jobs/?phase=FAILED"


def test_the_host_of_a_request_is_in_no_link_of_a_mail(settings, ada, mailoutbox):
    settings.ALLOWED_HOSTS = ["*"]
    settings.YARDMASTER_SENDS_MAIL = True
    settings.PUBLIC_URL = "https://portal.example"
    client = Client(headers={"host": "evil.example"})
    client.post("/accounts/password/reset/", {"email": "ada@example.org"})
    assert len(mailoutbox) == 1
    assert "evil.example" not in mailoutbox[0].body + mailoutbox[0].subject
    assert "https://portal.example/accounts/password/reset/key/" in mailoutbox[0].body
    client.post("/accounts/password/reset/", {"email": "unknown@example.org"})
    assert all("evil.example" not in one.body + one.subject for one in mailoutbox)


@pytest.mark.parametrize("scopes", [[], ["admin"], ["read", "admin"]])
def test_no_token_of_a_service_account_administers(admin, ada, scopes):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    account = service_account_create(namespace=team, name="nightly", role=Role.MEMBER, description="", actor=ada)
    with pytest.raises(Invalid):
        service_token_create(account=account, name="t", scopes=scopes, expires_in=None, actor=ada)


def test_neither_a_user_nor_an_administrator_makes_a_service_account_an_administrator(admin, ada, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    account = service_account_create(namespace=team, name="nightly", role=Role.MEMBER, description="", actor=ada)
    answer = signed_in(admin).patch(f"/api/v1/users/{account.user_id}/", {"is_staff": True}, format="json")
    assert answer.status_code == 404
    assert not User.objects.get(pk=account.user_id).is_staff


@pytest.mark.parametrize(("method", "path", "body"), [
    ("post", "/api/v1/tokens/", {"name": "all"}), ("patch", "/api/v1/me/", {"first_name": "Eve"}),
    ("delete", "/api/v1/tokens/", {}),
])  # fmt: skip
def test_a_scoped_token_changes_nothing_of_its_owners_account(ada, with_token, method, path, body):
    for scope in ("read", "jobs", "data", "admin"):
        answer = getattr(with_token(ada, scope), method)(path, body, format="json")
        assert answer.status_code == 403, scope


def test_a_token_opens_no_page_that_confirms(ada):
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    client = Client(headers={"authorization": f"Bearer {secret}"})
    for path in ("/accounts/2fa/totp/activate/", "/accounts/password/change/", "/account/address/", "/account/tokens/"):
        answer = client.post(path, {"email": "eve@example.org"})
        assert answer.headers.get("Location", "").startswith("/accounts/login/"), path
