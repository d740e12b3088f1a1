"""Accounts of programs: they work in one namespace with tokens of their own, and can become nothing more."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import sign_in_link_create, user_change
from apps.audit.models import AuditEvent
from apps.errors import Conflict, DomainError, Invalid
from apps.namespaces import service_accounts, services
from apps.namespaces.models import Membership, Namespace, Role, ServiceAccount
from apps.namespaces.selectors import namespace_for
from apps.removals.models import Data
from apps.removals.services import namespace_remove
from apps.uploads.models import Upload
from tests.integration.conftest import PASSWORD


@pytest.fixture
def team(admin: User, ada: User) -> Namespace:
    return services.team_create(slug="vision", title="", manager=ada, actor=admin)


@pytest.fixture
def account(team: Namespace, ada: User) -> ServiceAccount:
    return service_accounts.service_account_create(
        namespace=team, name="nightly", role=Role.MEMBER, description="The nightly training", actor=ada
    )


def token_of(account: ServiceAccount, *scopes: str, actor: User) -> APIClient:
    _, secret = service_accounts.service_token_create(
        account=account, name="ci", scopes=list(scopes), expires_in=timedelta(days=1), actor=actor
    )
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


def test_a_manager_makes_one_over_the_api_and_it_works_in_its_namespace_alone(signed_in, team, ada):
    client = signed_in(ada)
    base = f"/api/v1/namespaces/{team.pk}/service-accounts/"
    made = client.post(base, {"name": "nightly", "role": "member"})
    assert made.status_code == 201, made.content
    assert made.json()["username"] == "nightly@vision"
    assert made.json()["made_by"] == "ada"
    new = client.post(f"{base}{made.json()['id']}/tokens/", {"name": "ci", "scopes": ["jobs", "data"]})
    assert new.status_code == 201, new.content
    program = APIClient()
    program.credentials(HTTP_AUTHORIZATION=f"Bearer {new.json()['token']}")
    me = program.get("/api/v1/me/").json()
    assert [(one["slug"], one["role"]) for one in me["namespaces"]] == [("vision", "member")]
    assert program.get("/api/v1/namespaces/").status_code == 403  # it needs another scope
    assert [one["username"] for one in client.get(base).json()["results"]] == ["nightly@vision"]
    created = AuditEvent.objects.get(action="token.first_use")
    assert (created.actor_name, created.facts["account_made_by"]) == ("nightly@vision", "ada")


def test_without_a_namespace_it_works_in_its_own_one(account, team):
    assert namespace_for(account.user, None) == team
    assert not Namespace.objects.filter(owner=account.user).exists()


def test_a_viewer_reserves_nothing_of_its_namespace_however_that_is_named(team, ada):
    viewer = service_accounts.service_account_create(
        namespace=team, name="reader", role=Role.VIEWER, description="", actor=ada
    )
    client = token_of(viewer, "data", actor=ada)
    wish = {"kind": "dataset", "files": [{"path": "a.csv", "size": 1}]}
    for where in ({}, {"namespace": "vision"}):
        assert client.post("/api/v1/uploads/", wish | where, format="json").status_code == 403
    assert not Upload.objects.exists()


def test_it_is_none_of_the_people(signed_in, admin, account, team, ada):
    client = signed_in(admin)
    names = {one["username"] for one in client.get("/api/v1/users/").json()["results"]}
    assert account.user.username not in names
    assert client.get(f"/api/v1/users/{account.user_id}/").status_code == 404
    assert client.patch(f"/api/v1/users/{account.user_id}/", {"is_staff": True}).status_code == 404
    assert client.post(f"/api/v1/users/{account.user_id}/sign-in-link/").status_code == 404
    members = signed_in(ada).get(f"/api/v1/namespaces/{team.pk}/members/").json()["results"]
    assert [one["username"] for one in members] == ["ada"]


def test_it_cannot_sign_in(client, account, settings):
    answer = client.post("/accounts/login/", {"login": account.user.username, "password": "x"})
    assert "_auth_user_id" not in client.session
    assert answer.status_code == 200
    answer = APIClient().post("/api/v1/auth/token/", {"username": account.user.username, "password": "x", "name": "t"})
    assert answer.status_code == 401
    with pytest.raises(Conflict):
        sign_in_link_create(account.user)
    forced = Client()
    forced.force_login(account.user)
    assert forced.get("/account/").status_code == 302  # a session that was made for it anyway is none


def test_it_cannot_make_itself_more(account, team, ada, bob, admin):
    program = token_of(account, "read", "jobs", "data", actor=ada)
    base = f"/api/v1/namespaces/{team.pk}"
    wider = {"name": "wider", "scopes": []}
    mine = f"{base}/service-accounts/{account.pk}/"
    for answer in (
        program.post("/api/v1/tokens/", wider),
        program.post(f"{mine}tokens/", {"name": "wider", "scopes": ["jobs"]}),
        program.patch(mine, {"role": "manager"}),
        program.post(f"{base}/service-accounts/", {"name": "other", "role": "member"}),
        program.post(f"{base}/members/", {"username": "bob", "role": "member"}),
        program.patch(f"{base}/members/{account.user_id}/", {"role": "manager"}),
        program.patch("/api/v1/me/", {"first_name": "x"}),
        program.post("/api/v1/users/", {"username": "eve"}),
        program.get("/api/v1/users/"),
    ):
        assert answer.status_code == 403, answer.content
    assert PersonalToken.objects.filter(user=account.user).count() == 1
    assert Membership.objects.get(user=account.user).role == Role.MEMBER


def test_a_token_that_is_somehow_without_scopes_makes_no_further_ones(account, with_token):
    program = with_token(account.user)
    assert program.post("/api/v1/tokens/", {"name": "wider"}).status_code == 403


def test_nobody_makes_it_a_manager_an_administrator_or_a_member_elsewhere(account, team, ada, bob, admin):
    other = services.team_create(slug="other", title="", manager=bob, actor=admin)
    with pytest.raises(Conflict):
        services.member_add(namespace=other, user=account.user, role=Role.VIEWER, actor=bob)
    with pytest.raises(Conflict):
        services.member_change(namespace=team, user=account.user, role=Role.MANAGER, actor=ada)
    with pytest.raises(Invalid):
        service_accounts.service_account_change(account=account, role=Role.MANAGER, actor=ada)
    with pytest.raises((IntegrityError, DomainError)), transaction.atomic():
        user_change(user=account.user, actor=admin, is_staff=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.filter(pk=account.user_id).update(email="x@example.org")


@pytest.mark.parametrize("scopes", [[], ["admin"], ["jobs", "admin"], ["root"]])
def test_its_tokens_have_scopes_that_reach_no_administration(account, ada, scopes):
    with pytest.raises(Invalid):
        service_accounts.service_token_create(
            account=account, name="t", scopes=scopes, expires_in=timedelta(days=1), actor=ada
        )


def test_a_stranger_and_a_member_change_none(signed_in, team, account, ada, bob, admin):
    base = f"/api/v1/namespaces/{team.pk}/service-accounts/"
    assert signed_in(bob).get(base).status_code == 404
    services.member_add(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    client = signed_in(bob)
    assert client.get(base).status_code == 200
    assert client.post(base, {"name": "mine"}).status_code == 403
    assert client.get(f"{base}{account.pk}/tokens/").status_code == 403
    assert client.delete(f"{base}{account.pk}/").status_code == 403
    other = services.team_create(slug="other", title="", manager=bob, actor=admin)
    elsewhere = f"/api/v1/namespaces/{other.pk}/service-accounts/{account.pk}/"
    assert client.get(elsewhere).status_code == 404
    assert client.post(f"{elsewhere}tokens/", {"name": "x", "scopes": ["jobs"]}).status_code == 404


def test_a_rotated_token_works_beside_the_new_one_until_the_overlap_ends(account, ada, time_machine):
    time_machine.move_to("2026-01-01T00:00:00Z", tick=False)
    token, old = service_accounts.service_token_create(
        account=account, name="ci", scopes=["jobs"], expires_in=timedelta(days=30), actor=ada
    )
    made, new = service_accounts.service_token_rotate(
        account=account, token=token, overlap=timedelta(hours=1), actor=ada, now=timezone.now()
    )
    assert (made.name, made.scopes, made.expiry - made.created) == ("ci", ["jobs"], timedelta(days=30))
    assert [_status(secret) for secret in (old, new)] == [200, 200]
    time_machine.move_to("2026-01-01T01:00:01Z", tick=False)
    assert [_status(secret) for secret in (old, new)] == [401, 200]
    with pytest.raises(Conflict):
        service_accounts.service_token_rotate(
            account=account, token=token, overlap=timedelta(0), actor=ada, now=timezone.now()
        )


def test_a_rotation_never_lengthens_the_old_token(account, ada):
    token, _ = service_accounts.service_token_create(
        account=account, name="ci", scopes=["jobs"], expires_in=timedelta(minutes=5), actor=ada
    )
    before = token.expiry
    service_accounts.service_token_rotate(
        account=account, token=token, overlap=timedelta(days=1), actor=ada, now=timezone.now()
    )
    assert PersonalToken.objects.get(pk=token.pk).expiry == before


def test_there_are_only_so_many_in_teams_alone_and_under_good_names(account, team, ada, settings):
    settings.YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE = 1
    with pytest.raises(Conflict, match="as many as are allowed"):
        _create(team, ada, "second")
    settings.YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE = 5
    for bad in ("", "Nightly", "a@b", "-a", "a" * 41, "nightly"):
        with pytest.raises(Invalid):
            _create(team, ada, bad)
    with pytest.raises(Conflict):
        _create(ada.personal_namespace, ada, "mine")


def test_a_deleted_one_is_gone_at_once(account, ada, team):
    program = token_of(account, "jobs", actor=ada)
    assert program.get("/api/v1/jobs/").status_code == 200
    service_accounts.service_account_delete(account=account, actor=ada)
    assert program.get("/api/v1/jobs/").status_code == 401
    assert not User.objects.filter(username="nightly@vision").exists()
    service_accounts.service_account_delete(account=account, actor=ada)


def test_they_end_when_the_removal_of_their_namespace_begins(account, ada, admin, team):
    program = token_of(account, "read", actor=ada)
    namespace_remove(namespace=team, data=Data.KEEP, actor=admin)
    assert program.get("/api/v1/jobs/").status_code == 401
    team.delete()
    assert not User.objects.filter(is_service=True).exists()


def test_a_namespace_that_goes_takes_the_users_with_it(account, team):
    team.delete()
    assert not User.objects.filter(is_service=True).exists()


def test_no_mail_resets_its_password(client, account, mailoutbox):
    client.post("/accounts/password/reset/", {"email": account.user.username})
    assert mailoutbox == []


def test_the_pages_show_a_secret_once_and_rotate(client, account, team, ada):
    client.force_login(ada)
    one = f"/namespaces/{team.pk}/service-accounts/{account.pk}/"
    form = {"name": "ci", "scopes": ["jobs"], "lifetime": "month"}
    text = client.post(one, form).content.decode()
    secret = re.search(r"ym_[0-9a-f]+", text)
    assert secret is not None
    assert secret.group() not in client.get(one).content.decode()
    assert _status(secret.group()) == 200
    token = PersonalToken.objects.get(user=account.user)
    rotated = client.post(f"{one}tokens/{token.pk}/rotate/", {"overlap": "0"}).content.decode()
    assert _status(secret.group()) == 401
    assert _status(re.search(r"ym_[0-9a-f]+", rotated).group()) == 200  # type: ignore[union-attr]
    assert client.post(one, form | {"scopes": ["admin"]}).status_code == 200
    assert PersonalToken.objects.filter(user=account.user).count() == 2
    assert client.post(f"{one}role/", {"role": "manager"}).status_code == 302
    assert Membership.objects.get(user=account.user).role == Role.MEMBER
    assert client.post(f"{one}delete/").status_code == 302
    assert client.get(one).status_code == 404


def test_the_first_administrator_is_still_made_where_only_programs_are(db):
    out = StringIO()
    call_command("first_admin", stdout=out)
    assert "Made the administrator" in out.getvalue()
    assert User.objects.get(username="admin").check_password(PASSWORD) is False


def _create(team: Namespace, actor: User, name: str) -> ServiceAccount:
    return service_accounts.service_account_create(
        namespace=team, name=name, role=Role.VIEWER, description="", actor=actor
    )


def _status(secret: str) -> int:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client.get("/api/v1/jobs/").status_code


def test_a_scoped_token_of_a_manager_makes_no_stronger_one(account, team, ada, with_token):
    api, address = (
        with_token(ada, "admin", "read"),
        f"/api/v1/namespaces/{team.pk}/service-accounts/{account.pk}/tokens/",
    )
    refused = api.post(address, {"name": "ci", "scopes": ["jobs"]}, format="json")
    assert refused.status_code == 403
    assert "would have more" in refused.json()["detail"]
    made = api.post(address, {"name": "ci", "scopes": ["read"]}, format="json")
    assert made.status_code == 201
    strong, _ = service_accounts.service_token_create(
        account=account, name="strong", scopes=["jobs"], expires_in=timedelta(days=1), actor=ada
    )
    assert api.post(f"{address}{strong.pk}/rotation/", {}, format="json").status_code == 403
