"""Signing in with a real OpenID provider over a real LDAP directory, and with answers that must not be believed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from apps.accounts.models import Browser, User
from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import member_add, team_create
from portal.openid_settings import OpenIdProvider, as_allauth
from tests.integration.conftest import PASSWORD
from tests.real.openid import Provider, answers, provider
from yardmaster.provider_groups import TeamRole

pytestmark = pytest.mark.django_db
REDIRECT = "http://127.0.0.1:8080/accounts/oidc/company/login/callback/"


@pytest.fixture(scope="module")
def dex(tmp_path_factory) -> Iterator[Provider]:
    with provider(tmp_path_factory.mktemp("openid"), REDIRECT) as found:
        end = time.monotonic() + 30
        while not answers(found.issuer):
            assert time.monotonic() < end, "dex did not start"
        yield found


@pytest.fixture
def company(dex: Provider, settings):
    """`company(**changes)`: configures the provider."""

    def configure(**changes: object) -> Provider:
        one = OpenIdProvider(
            id="company", issuer=dex.issuer, client_id="yardmaster", secret="client secret", title="Company",
            scopes=("openid", "profile", "email", "groups"),
            teams={"vision-people": (TeamRole("vision", "member"),)},
        )  # fmt: skip
        settings.PUBLIC_URL = "http://127.0.0.1:8080"
        settings.YARDMASTER_OIDC = {"company": replace(one, **changes)}  # type: ignore[arg-type]
        settings.SOCIALACCOUNT_PROVIDERS = as_allauth(settings.YARDMASTER_OIDC)
        dex.directory.set_members("vision-people", "ada")
        dex.directory.set_members("portal-admins")
        return dex

    return configure


def to_dex(client: Client, next_url: str = "") -> str:
    answer = client.get("/accounts/oidc/company/login/", {"next": next_url} if next_url else {})
    assert answer.status_code == 302, answer.content
    return str(answer.headers["Location"])


def back(client: Client, address: str):
    parts = urlsplit(address)
    return client.get(f"{parts.path}?{parts.query}")


def sign_in(dex: Provider, name: str, **options: object) -> tuple[Client, object]:
    client = Client()
    answer = back(client, dex.sign_in(to_dex(client), name, **options))  # type: ignore[arg-type]
    return client, answer


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


@pytest.fixture
def vision(admin: User):
    return team_create(slug="vision", title="", manager=admin, actor=admin)


def test_a_new_user_signs_in_and_gets_the_teams_of_the_groups(company, vision):
    dex = company()
    page = Client().get("/accounts/login/").content.decode()
    assert "Sign in with Company" in page
    client, answer = sign_in(dex, "ada")
    assert answer.status_code == 302, answer.content.decode()
    assert answer.headers["Location"] == "/"
    assert is_in(client)
    user = User.objects.get(username="Ada")
    assert (user.email, user.has_usable_password(), user.is_staff) == ("ada@example.org", False, False)
    assert user.personal_namespace.slug == "ada"
    member = Membership.objects.get(user=user, namespace=vision)
    assert (member.role, member.source) == ("member", "oidc:company")
    assert Browser.objects.get(user=user).way == "oidc:company"
    assert "with <bdi>company</bdi>" in client.get("/account/sessions/").content.decode()
    assert client.get("/account/linked/").status_code == 200
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"user.create", "openid.link", "member.add", "session.begin"} <= actions
    sign_in(dex, "ada")
    assert User.objects.filter(username__istartswith="ada").count() == 1


def test_a_group_that_is_gone_takes_its_membership_and_none_that_people_gave(company, vision, admin):
    dex = company()
    sign_in(dex, "ada")
    user = User.objects.get(username="Ada")
    other = team_create(slug="other", title="", manager=admin, actor=admin)
    member_add(namespace=other, user=user, role=Role.VIEWER, actor=admin)
    dex.directory.set_members("vision-people", "bob")
    sign_in(dex, "ada")
    assert [one.namespace.slug for one in Membership.objects.filter(user=user, namespace__owner=None)] == ["other"]
    assert AuditEvent.objects.filter(action="member.remove").exists()


def test_a_membership_that_a_person_gave_is_left_as_it_is(company, vision, admin):
    dex = company(teams={"vision-people": (TeamRole("vision", "viewer"),)})
    sign_in(dex, "bob")
    user = User.objects.get(username="Bob")
    member_add(namespace=vision, user=user, role=Role.MANAGER, actor=admin)
    dex.directory.set_members("vision-people", "bob")
    sign_in(dex, "bob")
    assert Membership.objects.get(user=user, namespace=vision).role == "manager"


def test_administrators_come_and_go_with_their_group_only_where_it_is_set(company, admin):
    dex = company()
    dex.directory.set_members("portal-admins", "ada")
    sign_in(dex, "ada")
    assert not User.objects.get(username="Ada").is_staff
    company(administrators=("portal-admins",))
    dex.directory.set_members("portal-admins", "ada")
    sign_in(dex, "ada")
    assert User.objects.get(username="Ada").is_staff
    dex.directory.set_members("portal-admins")
    sign_in(dex, "ada")
    assert not User.objects.get(username="Ada").is_staff
    admin.refresh_from_db()
    assert admin.is_staff


@pytest.mark.parametrize("trusts", [False, True])
def test_an_address_takes_over_no_administrator(company, trusts):
    boss = User.objects.create_user("boss", "ada@example.org", PASSWORD, is_staff=True)
    client, answer = sign_in(company(trust_email=trusts), "ada")
    assert answer.status_code == 403
    assert not is_in(client)
    assert not SocialAccount.objects.filter(user=boss).exists()


def test_an_address_signs_in_to_a_local_account_only_where_the_provider_is_trusted(company, settings, db):
    settings.YARDMASTER_SENDS_MAIL = True
    local = User.objects.create_user("ada-local", "ada@example.org", PASSWORD)
    client, answer = sign_in(company(), "ada")
    assert (answer.status_code, is_in(client)) == (403, False)
    assert "link it" in answer.content.decode()
    client, _ = sign_in(company(trust_email=True), "ada")
    assert client.session["_auth_user_id"] == str(local.pk)


def test_an_address_that_was_never_confirmed_here_signs_in_to_no_account(company, settings, db):
    settings.YARDMASTER_SENDS_MAIL = False
    User.objects.create_user("eve", "ada@example.org", PASSWORD)
    client, answer = sign_in(company(trust_email=True, administrators=("portal-admins",)), "ada")
    assert (answer.status_code, is_in(client)) == (403, False), "eve may have entered any address"


def test_a_link_by_hand_needs_the_password_again_and_writes_nothing_of_the_user_back(company, db):
    dex = company()
    local = User.objects.create_user("ada-local", "ada@example.org", PASSWORD)
    client = Client()
    client.post("/accounts/login/", {"login": "ada-local", "password": PASSWORD})
    session = client.session
    session["account_authentication_methods"] = []
    session.save()
    asked = client.post("/accounts/oidc/company/link/")
    assert asked.headers.get("Location", "").startswith("/accounts/reauthenticate/")
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    leave = client.post("/accounts/oidc/company/link/")
    address = dex.sign_in(leave.headers["Refresh"].partition("url=")[2], "ada")
    User.objects.filter(pk=local.pk).update(first_name="Changed meanwhile")
    back(client, address)
    local.refresh_from_db()
    assert local.first_name == "Changed meanwhile"
    assert AuditEvent.objects.filter(action="openid.link", actor_id=local.pk).exists()
    assert client.get("/accounts/3rdparty/").headers["Location"] == "/account/linked/"


def test_a_user_links_the_provider_by_hand(company, db):
    dex = company()
    User.objects.create_user("ada-local", "ada@example.org", PASSWORD)
    client = Client()
    client.post("/accounts/login/", {"login": "ada-local", "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    leave = client.post("/accounts/oidc/company/link/")
    assert leave.status_code == 200
    answer = back(client, dex.sign_in(leave.headers["Refresh"].partition("url=")[2], "ada"))
    assert answer.headers["Location"] == "/account/linked/"
    assert SocialAccount.objects.get(uid__gt="").user.username == "ada-local"
    client, _ = sign_in(dex, "ada")
    assert is_in(client)


def confirmed_at(dex: Provider, client: Client, name: str = "ada"):
    where = {"next": "/accounts/2fa/totp/activate/"}
    leave = client.post("/accounts/reauthenticate/provider/company/", where)
    return back(client, dex.sign_in(leave.headers["Refresh"].partition("url=")[2], name))


def test_an_account_without_a_password_confirms_by_a_new_sign_in(company, db):
    dex = company(sends_auth_time=False)  # dex says no time, and asks for the password at each sign-in
    client, _ = sign_in(dex, "ada")
    asked = client.get("/accounts/2fa/totp/activate/")
    assert asked.headers["Location"].startswith("/accounts/reauthenticate/provider/")
    assert confirmed_at(dex, client, "bob").status_code == 403, "another user of the provider"
    assert client.get("/accounts/2fa/totp/activate/").status_code == 302
    assert confirmed_at(dex, client).headers["Location"] == "/accounts/2fa/totp/activate/"
    assert client.get("/accounts/2fa/totp/activate/").status_code == 200
    assert not User.objects.filter(username="Bob").exists()


def test_where_it_is_taken_to_say_the_time_its_answer_confirms_nothing(company, db):
    dex = company()
    client, _ = sign_in(dex, "ada")
    answer = confirmed_at(dex, client)
    assert answer.status_code == 403
    assert "did not say when" in answer.content.decode()


def test_a_wrong_password_and_a_denied_consent_sign_in_no_one(company, db):
    dex = company()
    assert "Invalid" in dex.sign_in(to_dex(Client()), "ada", "wrong")
    client = Client()
    denied = dex.sign_in(to_dex(client), "ada", approve=False)
    if denied.startswith("http"):
        back(client, denied)
    assert not is_in(client)
    client = Client()
    state = parse_qs(urlsplit(to_dex(client)).query)["state"][0]
    answer = client.get(
        "/accounts/oidc/company/login/callback/", {"error": "access_denied", "state": state}, follow=True
    )
    assert "cancelled" in answer.content.decode()
    assert not is_in(client)


def test_a_forged_state_a_used_code_and_another_browsers_answer_sign_in_no_one(company, db):
    dex = company()
    client = Client()
    address = dex.sign_in(to_dex(client), "ada")
    thief = Client()
    back(thief, address)  # the state is of another browser
    assert not is_in(thief)
    forged = Client()
    to_dex(forged)
    back(forged, address.replace("state=", "state=x"))
    assert not is_in(forged)
    back(client, address)
    assert is_in(client)
    again = Client()
    to_dex(again)
    state = parse_qs(urlsplit(to_dex(again)).query)["state"][0]
    code = parse_qs(urlsplit(address).query)["code"][0]
    back(again, f"{REDIRECT}?code={code}&state={state}")  # a used code in a sign-in of its own
    assert not is_in(again)


def test_a_locked_user_stays_out(company, db):
    dex = company()
    sign_in(dex, "ada")
    User.objects.filter(username="Ada").update(is_active=False)
    client, _ = sign_in(dex, "ada")
    assert not is_in(client)


def test_only_named_groups_and_domains_come_in(company, db):
    client, answer = sign_in(company(allowed_groups=("vision-people",)), "bob")
    assert (answer.status_code, is_in(client)) == (403, False)
    client, answer = sign_in(company(allowed_domains=("example.com",)), "ada")
    assert (answer.status_code, is_in(client)) == (403, False)
    client, answer = sign_in(company(create_users=False), "ada")
    assert (answer.status_code, is_in(client)) == (403, False)
    assert not User.objects.exists()


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example/x", "javascript:alert(1)"])
def test_no_address_leads_elsewhere_afterwards(company, db, where):
    dex = company()
    client = Client()
    answer = back(client, dex.sign_in(to_dex(client, where), "ada"))
    assert answer.headers["Location"] == "/"


def test_it_leads_back_to_the_page_that_was_asked_for(company, db):
    dex = company()
    client = Client()
    answer = back(client, dex.sign_in(to_dex(client, "/jobs/?phase=FAILED"), "ada"))
    assert answer.headers["Location"] == "/jobs/?phase=FAILED"


def test_the_way_there_has_a_state_a_nonce_and_a_challenge(company, db):
    company()
    asked = parse_qs(urlsplit(to_dex(Client())).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    assert asked["redirect_uri"] == [REDIRECT]
    assert Client().get("/accounts/oidc/other/login/").status_code == 404


def test_a_provider_that_is_away_is_said_so(company, settings, db):
    company(issuer="http://127.0.0.1:9/none")
    answer = Client().get("/accounts/oidc/company/login/")
    assert answer.status_code == 502
    assert "does not answer" in answer.content.decode()
