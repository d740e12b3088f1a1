"""Accounts without a password confirm sensitive changes too: by a new sign-in at their provider, and a fresh one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from allauth.socialaccount.models import SocialAccount
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import sign_in_link_create
from apps.audit.models import AuditEvent
from portal.openid_settings import OpenIdProvider, as_allauth
from tests.integration.conftest import PASSWORD
from tests.real.plain_openid import PlainProvider, plain_provider
from yardmaster.fresh_sign_in import CLOCKS, doubt

pytestmark = pytest.mark.django_db
CONFIRM = "/accounts/reauthenticate/provider/"
SET_UP = "/accounts/2fa/totp/activate/"
NEW_ADDRESS = {"email": "new@example.org"}


@pytest.fixture(scope="module")
def provider() -> Iterator[PlainProvider]:
    with plain_provider() as found:
        yield found


@pytest.fixture
def configure(provider: PlainProvider, settings):
    def make(**changes: object) -> PlainProvider:
        one = OpenIdProvider("company", provider.issuer, "yardmaster", "secret", "Company")
        settings.PUBLIC_URL = "http://127.0.0.1:8080"
        settings.YARDMASTER_OIDC = {"company": replace(one, **changes)}  # type: ignore[arg-type]
        settings.SOCIALACCOUNT_PROVIDERS = as_allauth(settings.YARDMASTER_OIDC)
        return provider

    return make


def back(client: Client, address: str):
    parts = urlsplit(address)
    return client.get(f"{parts.path}?{parts.query}")


def come_in(provider: PlainProvider, client: Client | None = None) -> Client:
    client = client or Client()
    there = client.get("/accounts/oidc/company/login/").headers["Location"]
    back(client, provider.sign_in(there))
    assert "_auth_user_id" in client.session
    return client


def to_provider(client: Client, next_url: str) -> str:
    leave = client.post(f"{CONFIRM}company/", {"next": next_url})
    assert leave.status_code == 200, leave.headers
    return str(leave.headers["Refresh"].partition("url=")[2])


def asks(answer) -> bool:
    return answer.status_code == 302 and answer.headers["Location"].startswith(CONFIRM)


@pytest.fixture
def ada_there(configure) -> tuple[PlainProvider, Client]:
    provider = configure()
    return provider, come_in(provider)


def test_a_fresh_sign_in_confirms_and_leads_back_with_what_was_typed(ada_there):
    provider, client = ada_there
    asked = client.post("/account/address/", NEW_ADDRESS)
    assert asked.headers["Location"] == f"{CONFIRM}?next=%2Faccount%2Faddress%2F"
    user = User.objects.get(username="ada-there")
    assert user.email == ""
    page = client.get(asked.headers["Location"]).content.decode()
    assert "Sign in again with" in page
    assert "Your e-mail address becomes" in page, "someone else may have entered it"
    assert "new@example.org" in page
    assert "new@example.org" not in client.get(f"{CONFIRM}?next={SET_UP}").content.decode()
    answer = back(client, provider.sign_in(to_provider(client, "/account/address/")))
    assert answer.headers["Location"] == "/account/"
    user.refresh_from_db()
    assert user.email == "new@example.org"
    assert (provider.asked["prompt"], provider.asked["max_age"]) == ("login", "0")
    event = AuditEvent.objects.get(action="openid.confirm")
    assert (event.actor_id, event.facts) == (user.pk, {"provider": "company"})
    assert client.get(SET_UP).status_code == 200, "one confirmation counts for five minutes"


def test_signing_in_to_the_portal_confirms_nothing(ada_there):
    _, client = ada_there
    assert asks(client.get(SET_UP))


def test_a_confirmation_ends(ada_there, time_machine):
    provider, client = ada_there
    at = time.time()
    time_machine.move_to(at, tick=False)
    back(client, provider.sign_in(to_provider(client, SET_UP)))
    assert client.get(SET_UP).status_code == 200
    time_machine.move_to(at + 301, tick=False)
    assert asks(client.get(SET_UP))


@pytest.mark.parametrize(("claims", "why"), [
    ({"auth_time": None}, "did not say when"),
    ({"auth_time": int(time.time()) - 3600}, "did not ask you again"),
    ({"auth_time": int(time.time()) + 3600}, "ahead"),
    ({"auth_time": "now"}, "known form"),
    ({"auth_time": True}, "known form"),
    ({"sub": "eve-there"}, "a different user"),
])  # fmt: skip
def test_an_old_or_foreign_sign_in_confirms_nothing(ada_there, claims, why):
    provider, client = ada_there
    answer = back(client, provider.sign_in(to_provider(client, SET_UP), **claims))
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "Not confirmed" in page
    assert why in page
    assert f"{CONFIRM}?next=%2Faccounts%2F2fa%2Ftotp%2Factivate%2F" in page
    assert asks(client.get(SET_UP))
    assert not User.objects.filter(username="eve-there").exists()
    refusal = AuditEvent.objects.get(action="openid.refuse")
    assert refusal.actor_name == "ada-there"


def test_of_a_provider_that_says_no_time_the_prompt_is_relied_on_but_a_time_that_it_says_counts(configure):
    provider = configure(sends_auth_time=False)
    client = come_in(provider)
    back(client, provider.sign_in(to_provider(client, SET_UP), auth_time=int(time.time()) - 3600))
    assert asks(client.get(SET_UP))
    back(client, provider.sign_in(to_provider(client, SET_UP), auth_time=None))
    assert client.get(SET_UP).status_code == 200


def test_only_the_answer_to_this_way_there_confirms(ada_there):
    provider, client = ada_there
    # An answer to an ordinary sign-in, also a fresh one, with the state of another.
    login = client.get("/accounts/oidc/company/login/").headers["Location"]
    mixed = provider.sign_in(login)
    to_provider(client, SET_UP)
    back(client, mixed)
    assert asks(client.get(SET_UP))
    # The nonce of another way there.
    first, second = to_provider(client, SET_UP), to_provider(client, SET_UP)
    answer = back(client, provider.sign_in(first, nonce=parse_qs(urlsplit(second).query)["nonce"][0]))
    assert answer.status_code == 401
    assert "Not confirmed" in answer.content.decode()
    # Another browser of the same user.
    other = come_in(provider)
    back(other, provider.sign_in(to_provider(client, SET_UP)))
    assert asks(other.get(SET_UP))
    # Once.
    address = provider.sign_in(to_provider(client, SET_UP))
    back(client, address)
    assert client.get(SET_UP).status_code == 200
    assert back(client, address).status_code == 401


def test_who_is_signed_in_as_another_meanwhile_confirms_nothing(ada_there):
    provider, client = ada_there
    address = provider.sign_in(to_provider(client, SET_UP))
    client.post("/accounts/logout/")
    provider.subject = "bob-there"
    try:
        come_in(provider, client)
    finally:
        provider.subject = "ada-there"
    back(client, address)
    assert asks(client.get(SET_UP))


def test_a_cancelled_one_leads_back_to_the_page_that_asks(ada_there):
    _, client = ada_there
    state = parse_qs(urlsplit(to_provider(client, SET_UP)).query)["state"][0]
    answer = client.get("/accounts/oidc/company/login/callback/", {"error": "access_denied", "state": state})
    assert answer.status_code == 401
    assert f'href="{CONFIRM}?next=' in answer.content.decode()


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example/x", "javascript:alert(1)"])
def test_no_address_leads_elsewhere(ada_there, where):
    provider, client = ada_there
    assert "evil" not in client.get(CONFIRM, {"next": where}).content.decode()
    answer = back(client, provider.sign_in(to_provider(client, where)))
    assert answer.headers["Location"] == "/account/"


def test_a_second_factor_goes_before_the_provider(ada_there, time_machine):
    _, client = ada_there
    user, secret = User.objects.get(username="ada-there"), generate_totp_secret()
    TOTP.activate(user, secret)
    time_machine.move_to(time.time() + 120, tick=False)
    asked = client.post("/account/address/", NEW_ADDRESS)
    assert asked.headers["Location"].startswith("/accounts/2fa/reauthenticate/")
    assert client.post(f"{CONFIRM}company/", {"next": "/account/"}).headers["Location"].startswith("/accounts/2fa/")
    assert client.get(CONFIRM).headers["Location"].startswith("/accounts/2fa/")
    code = format_hotp_value(hotp_value(secret, int(time.time()) // 30))
    client.post(asked.headers["Location"], {"code": code, "next": "/account/address/"})
    user.refresh_from_db()
    assert user.email == "new@example.org"


def test_one_of_whom_a_second_factor_is_required_can_set_it_up(ada_there, settings):
    provider, client = ada_there
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "all"
    assert client.get("/jobs/").headers["Location"] == "/accounts/2fa/"
    assert asks(client.get(SET_UP))
    assert client.get(CONFIRM).status_code == 200
    answer = back(client, provider.sign_in(to_provider(client, SET_UP)))
    assert answer.headers["Location"] == SET_UP
    assert client.get(SET_UP).status_code == 200
    assert client.get("/jobs/").headers["Location"] == "/accounts/2fa/"


def test_a_first_password_is_not_kept_while_the_user_confirms(ada_there):
    provider, client = ada_there
    answer = client.post("/accounts/password/set/", {"password1": PASSWORD, "password2": PASSWORD})
    assert asks(answer)
    assert PASSWORD not in str(dict(client.session))
    assert not User.objects.get(username="ada-there").has_usable_password()
    back(client, provider.sign_in(to_provider(client, "/accounts/password/set/")))
    client.post("/accounts/password/set/", {"password1": PASSWORD, "password2": PASSWORD})
    assert User.objects.get(username="ada-there").check_password(PASSWORD)


def test_who_came_by_a_link_just_now_has_confirmed_and_later_has_no_way_but_another(db, time_machine):
    user = User.objects.create_user("new", "", None)
    client = Client()
    at = time.time()
    time_machine.move_to(at, tick=False)
    link = sign_in_link_create(user)
    client.post(link[link.index("/sign-in/") :])
    assert client.get("/accounts/password/set/").status_code == 200
    time_machine.move_to(at + 901, tick=False)
    answer = client.get("/accounts/password/set/")
    assert asks(answer)
    assert "Ask an administrator" in client.get(answer.headers["Location"]).content.decode()


def test_a_provider_that_is_not_linked_confirms_nothing(configure, db):
    configure()
    user = User.objects.create_user("new", "", None)
    client = Client()
    client.force_login(user)
    assert client.post(f"{CONFIRM}company/", {"next": SET_UP}).status_code == 404
    assert client.get(f"{CONFIRM}company/").status_code == 405
    assert not SocialAccount.objects.exists()


def test_a_provider_that_is_away_says_so_and_leads_back(ada_there, configure):
    _, client = ada_there
    configure(issuer="http://127.0.0.1:9")
    answer = client.post(f"{CONFIRM}company/", {"next": SET_UP})
    assert answer.status_code == 502
    assert "Not confirmed" in answer.content.decode()


def test_a_password_still_confirms_for_an_account_that_is_linked_as_well(ada_there):
    _, client = ada_there
    user = User.objects.get(username="ada-there")
    user.set_password(PASSWORD)
    user.save()
    client.force_login(user)
    assert client.get(SET_UP).headers["Location"].startswith("/accounts/reauthenticate/?")
    assert client.get(CONFIRM).headers["Location"] == "/accounts/reauthenticate/"


def test_recovery_codes_alone_are_no_way_to_confirm(ada_there):
    _, client = ada_there
    Authenticator.objects.create(user=User.objects.get(username="ada-there"), type="recovery_codes", data={})
    assert asks(client.get(SET_UP))


def test_what_counts_as_fresh():
    now = 1_000_000.0
    assert doubt(now, asked_at=now - 5, now=now, is_sent=True) == ""
    assert doubt(int(now - 5 - CLOCKS), asked_at=now - 5, now=now, is_sent=True) == ""
    assert doubt(now - 6 - CLOCKS, asked_at=now - 5, now=now, is_sent=True)
    assert doubt(now + CLOCKS + 1, asked_at=now, now=now, is_sent=True)
    assert doubt(float("nan"), asked_at=now, now=now, is_sent=False)
    assert doubt(None, asked_at=now, now=now, is_sent=True)
    assert doubt(None, asked_at=now, now=now, is_sent=False) == ""
