"""The pages of one's account: profile, address, tokens, sessions; and how they stand hostile names."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.browsers import agent_words
from apps.accounts.models import Browser, PersonalToken
from apps.accounts.services import sign_in_link_create, token_create
from apps.audit.models import AuditEvent
from tests.integration.conftest import PASSWORD, no_writes

pytestmark = pytest.mark.django_db
HOSTILE = '"><script>alert(1)</script>\u202eevil\u202c 👩‍🔬 ' + "x" * 60
PAGES = ["/account/", "/account/tokens/", "/account/sessions/", "/account/notifications/", "/namespaces/"]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize("path", PAGES)
def test_the_pages_are_for_those_who_are_signed_in_and_ask_little_of_the_database(
    ada, client, path, django_assert_max_num_queries
):
    assert client.get(path).status_code == 302
    client.force_login(ada)
    client.get(path)  # notes the browser, once a minute
    with django_assert_max_num_queries(8):
        page = client.get(path)
    assert page.status_code == 200
    assert " style=" not in page.content.decode()


class TestProfile:
    def test_a_name_and_a_zone_are_kept(self, ada, client):
        client.force_login(ada)
        wish = {"first_name": HOSTILE, "last_name": "Lovelace", "time_zone": "Europe/London"}
        page = client.post("/account/", wish, follow=True).content.decode()
        ada.refresh_from_db()
        assert (ada.first_name, ada.last_name, ada.time_zone) == (HOSTILE, "Lovelace", "Europe/London")
        assert 'data-time-zone="Europe/London"' in page
        assert "<script>alert" not in page

    @pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "x" * 65])
    def test_a_zone_that_is_none_is_refused_and_what_was_typed_stays(self, ada, client, zone):
        client.force_login(ada)
        response = client.post("/account/", {"first_name": "Augusta", "time_zone": zone})
        assert response.status_code == 200
        assert "Augusta" in response.content.decode()
        ada.refresh_from_db()
        assert (ada.first_name, ada.time_zone) == ("", "")

    def test_another_address_takes_the_password(self, ada, client):
        client.force_login(ada)
        page = client.post("/account/address/", {"email": "new@example.org", "password": "wrong wrong"})
        assert "not your password" in page.content.decode()
        assert _address(ada) == "ada@example.org"
        client.post("/account/address/", {"email": "new@example.org", "password": PASSWORD})
        assert _address(ada) == "new@example.org"
        fresh = Client()
        assert fresh.post("/accounts/login/", {"login": "new@example.org", "password": PASSWORD}).status_code == 302
        assert fresh.get("/api/v1/me/").status_code == 200

    def test_the_old_address_signs_nobody_in_any_more(self, ada, client):
        from allauth.account.models import EmailAddress

        EmailAddress.objects.create(user=ada, email=ada.email, primary=True)  # as sign-up leaves it
        client.force_login(ada)
        client.post("/account/address/", {"email": "new@example.org", "password": PASSWORD})
        fresh = Client()
        fresh.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
        assert fresh.get("/api/v1/me/").status_code == 401

    def test_an_address_of_somebody_else_is_refused(self, ada, bob, client):
        client.force_login(ada)
        page = client.post("/account/address/", {"email": "BOB@example.org", "password": PASSWORD})
        assert "Another user has this address" in page.content.decode()
        assert _address(ada) == "ada@example.org"

    def test_guessing_the_password_in_an_open_session_is_slowed(self, ada, client):
        client.force_login(ada)
        for _ in range(11):
            client.post("/account/address/", {"email": "new@example.org", "password": "wrong wrong"})
        page = client.post("/account/address/", {"email": "new@example.org", "password": PASSWORD}).content.decode()
        assert "Too many attempts" in page
        assert _address(ada) == "ada@example.org"

    def test_allauths_own_page_of_addresses_leads_here(self, ada, client):
        client.force_login(ada)
        assert client.get("/accounts/email/").headers["Location"] == "/account/"
        assert client.post("/accounts/email/", {"email": "x@example.org", "action_add": ""}).status_code == 302
        assert _address(ada) == "ada@example.org"


class TestTokens:
    def test_a_token_is_shown_once_and_works(self, ada, client):
        """kfctl#140: people who get no token for scripts scrape the login form for a cookie."""
        client.force_login(ada)
        wish = {"name": "laptop", "reach": "scopes", "scopes": ["read", "jobs"], "lifetime": "week"}
        response = client.post("/account/tokens/", wish)
        secret = response.context["secret"]
        assert secret in response.content.decode()
        assert "no-store" in response.headers["Cache-Control"]
        assert secret not in client.get("/account/tokens/").content.decode()
        token = PersonalToken.objects.get()
        assert token.scopes == ["read", "jobs"]
        assert timedelta(days=6) < token.expiry - timezone.now() <= timedelta(days=7)
        assert _me(secret) == 200

    @pytest.mark.parametrize(
        "wish",
        [
            {"name": "", "reach": "all", "lifetime": "week"},
            {"name": "t", "reach": "scopes", "lifetime": "week"},
            {"name": "t", "reach": "scopes", "scopes": ["root"], "lifetime": "week"},
            {"name": "t", "reach": "all", "lifetime": "century"},
            {"name": "x" * 101, "reach": "all", "lifetime": "week"},
            {},
        ],
    )
    def test_a_token_for_everything_is_never_made_by_forgetting_something(self, ada, client, wish):
        client.force_login(ada)
        assert client.post("/account/tokens/", wish).status_code == 200
        assert not PersonalToken.objects.exists()

    def test_everything_has_to_be_chosen(self, ada, client):
        client.force_login(ada)
        client.post("/account/tokens/", {"name": "t", "reach": "all", "scopes": ["read"], "lifetime": "year"})
        token = PersonalToken.objects.get()
        assert token.scopes == []
        assert timedelta(days=364) < token.expiry - timezone.now() <= timedelta(days=365)

    def test_one_that_never_expires_is_offered_only_where_the_settings_allow_it(self, ada, client, settings):
        client.force_login(ada)
        wish = {"name": "t", "reach": "all", "lifetime": "ever"}
        assert 'value="ever"' not in client.get("/account/tokens/").content.decode()
        client.post("/account/tokens/", wish)
        assert not PersonalToken.objects.exists()
        settings.YARDMASTER_TOKEN_LONGEST_LIFETIME = timedelta(0)
        client.post("/account/tokens/", wish)
        assert PersonalToken.objects.get().expiry is None
        assert "never expires" in client.get("/account/tokens/").content.decode()

    @pytest.mark.parametrize(
        ("default", "longest", "words"),
        [
            (90, 365, ["7 days", "30 days", "90 days", "365 days"]),
            (90, 10, ["7 days", "10 days"]),
            (14, 30, ["7 days", "14 days", "30 days"]),
            (800, 0, ["7 days", "30 days", "90 days", "365 days", "800 days", "never"]),
        ],
    )
    def test_the_form_offers_what_the_settings_allow_and_chooses_the_default(
        self, ada, client, settings, default, longest, words
    ):
        settings.YARDMASTER_TOKEN_LIFETIME = timedelta(days=default)
        settings.YARDMASTER_TOKEN_LONGEST_LIFETIME = timedelta(days=longest)
        client.force_login(ada)
        page = client.get("/account/tokens/").content.decode()
        assert re.findall(r"<option [^>]*>([^<]*)</option>", page) == words
        chosen = min(default, longest) if longest else default
        assert re.findall(r"<option [^>]*selected>([^<]*)</option>", page) == [f"{chosen} days"]

    def test_all_are_revoked_with_one_button(self, ada, bob, client):
        secrets = [token_create(user=ada, name=name, scopes=[], expires_in=None)[1] for name in ("a", "b")]
        _, other = token_create(user=bob, name="c", scopes=[], expires_in=None)
        client.force_login(ada)
        assert "Revoke all tokens" in client.get("/account/tokens/").content.decode()
        assert client.get("/account/tokens/revoke-all/").status_code == 405
        assert "Revoked 2 tokens." in client.post("/account/tokens/revoke-all/", follow=True).content.decode()
        assert [_me(secret) for secret in (*secrets, other)] == [401, 401, 200]

    def test_revoking_takes_a_post_and_ends_it_at_once(self, ada, client):
        token, secret = token_create(user=ada, name=HOSTILE, scopes=[], expires_in=None)
        client.force_login(ada)
        assert client.get(f"/account/tokens/{token.pk}/revoke/").status_code == 405
        page = client.post(f"/account/tokens/{token.pk}/revoke/", follow=True).content.decode()
        assert "<script>alert" not in page
        assert _me(secret) == 401

    def test_a_token_of_another_user_is_a_404(self, ada, bob, client):
        token, _ = token_create(user=ada, name="t", scopes=[], expires_in=None)
        client.force_login(bob)
        assert client.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
        assert PersonalToken.objects.exists()

    def test_a_program_ends_the_token_it_came_with(self, ada):
        for scopes in ([], ["read"]):
            _, secret = token_create(user=ada, name="t", scopes=scopes, expires_in=None)
            api = APIClient()
            api.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
            assert api.delete("/api/v1/tokens/current/").status_code == 204
            assert _me(secret) == 401

    def test_a_session_has_no_token_to_end(self, ada, signed_in):
        response = signed_in(ada).delete("/api/v1/tokens/current/")
        assert (response.status_code, response.json()["code"]) == (404, "not_found")


class TestSessions:
    def test_each_browser_is_listed_in_words_and_ones_own_is_marked(self, ada, client):
        client.force_login(ada)
        other = Client(headers={"user-agent": FIREFOX})
        other.post(sign_in_link_create(ada))
        other.get("/")
        page = client.get("/account/sessions/").content.decode()
        assert "Firefox on Linux" in page
        assert page.count("badge bg-green-lt") == 1
        assert other.session.session_key not in page

    def test_one_that_is_ended_is_signed_out_at_once(self, ada, client):
        client.force_login(ada)
        other = _browser(ada)
        ended = Browser.objects.get(session_id=other.session.session_key)
        client.post(f"/account/sessions/{ended.pk}/end/")
        assert other.get("/api/v1/me/").status_code == 401
        assert client.get("/api/v1/me/").status_code == 200

    def test_somebody_elses_browser_is_a_404(self, ada, bob, client):
        other = _browser(ada)
        client.force_login(bob)
        browser = Browser.objects.get(user=ada)
        assert client.post(f"/account/sessions/{browser.pk}/end/").status_code == 404
        assert other.get("/api/v1/me/").status_code == 200

    def test_ending_all_others_keeps_this_one_and_the_tokens(self, ada, client):
        _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
        client.force_login(ada)
        others = [_browser(ada), _browser(ada)]
        never_noted = Client()
        never_noted.force_login(ada)
        page = client.post("/account/sessions/end-others/", follow=True).content.decode()
        assert [one.get("/api/v1/me/").status_code for one in (*others, never_noted)] == [401, 401, 401]
        assert client.get("/api/v1/me/").status_code == 200
        assert page.count("account-row-words") == 1
        assert _me(secret) == 200

    def test_one_that_a_new_password_has_ended_is_not_listed(self, ada, client):
        other = _browser(ada)
        ada.set_password("another long password")
        ada.save()
        assert other.get("/api/v1/me/").status_code == 401
        client.force_login(ada)
        page = client.get("/account/sessions/").content.decode()
        assert page.count("account-row-words") == 1

    def test_it_is_noted_once_a_minute_and_not_at_every_request(self, ada, client, django_assert_num_queries):
        now = timezone.now()
        with time_machine.travel(now, tick=False):
            client.force_login(ada)
            client.get("/account/sessions/")
            with django_assert_num_queries(2):  # the session and the user
                client.get("/accounts/logout/")
        with time_machine.travel(now + timedelta(minutes=2), tick=False):
            client.get("/account/sessions/")
            assert Browser.objects.get().seen_at == now + timedelta(minutes=2)
            assert Browser.objects.get().signed_in_at == now

    def test_noting_it_changes_no_session_that_another_request_changes_just_now(self, ada, client):
        now = timezone.now()
        with time_machine.travel(now, tick=False):
            client.force_login(ada)
        before = Session.objects.get().session_data
        with time_machine.travel(now + timedelta(minutes=5), tick=False):
            client.get("/api/v1/me/")
        assert Browser.objects.get().seen_at == now + timedelta(minutes=5)
        assert Session.objects.get().session_data == before

    def test_a_database_that_takes_no_writes_costs_the_note_and_no_page(self, ada, client, caplog):
        client.force_login(ada)
        client.get("/account/sessions/")
        caches["browsers"].clear()
        with connection.execute_wrapper(no_writes):
            assert client.get("/account/sessions/").status_code == 200
        assert "The use of a browser could not be noted: database or disk is full" in caplog.text

    def test_signing_out_leaves_nothing(self, ada, client):
        client.force_login(ada)
        client.get("/")
        client.post("/accounts/logout/")
        assert not Browser.objects.exists()

    def test_what_a_browser_calls_itself_harms_nobody(self, ada, client):
        client.get("/")
        hostile = Client(headers={"user-agent": HOSTILE * 50})
        hostile.force_login(ada)
        hostile.get("/")
        client.force_login(ada)
        assert "<script>alert" not in client.get("/account/sessions/").content.decode()

    def test_expired_sessions_are_forgotten(self, ada, client):
        from apps.accounts.browsers import browsers_clean

        client.force_login(ada)
        client.get("/")
        browsers_clean(timezone.now())
        assert Session.objects.exists()
        browsers_clean(timezone.now() + timedelta(days=60))
        assert not Session.objects.exists()
        assert not Browser.objects.exists()


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (FIREFOX, "Firefox on Linux"),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0",
            "Edge on Windows",
        ),
        ("Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome on Android"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8.14.1", "curl"),
        ("", "An unknown browser"),
        ("x" * 10_000, "An unknown browser"),
    ],
)
def test_a_browser_is_told_by_what_it_calls_itself(agent, words):
    assert agent_words(agent) == words


class TestEntrance:
    def test_the_hint_for_a_forgotten_password_fits_what_the_portal_can_do(self, client, settings):
        settings.YARDMASTER_SENDS_MAIL = False
        assert "/accounts/password/reset/" not in client.get("/accounts/login/").content.decode()
        assert "administrator" in client.get("/accounts/password/reset/").content.decode()
        settings.YARDMASTER_SENDS_MAIL = True
        assert "/accounts/password/reset/" in client.get("/accounts/login/").content.decode()

    def test_a_new_password_leads_back_to_the_account(self, ada, client):
        client.force_login(ada)
        new = "another long password"
        wish = {"oldpassword": PASSWORD, "password1": new, "password2": new}
        assert client.post("/accounts/password/change/", wish).headers["Location"] == "/account/"

    @pytest.mark.parametrize(("wish", "status"), [({"revoke_tokens": "on"}, 401), ({}, 200)])
    def test_a_new_password_can_revoke_all_tokens(self, ada, client, wish, status):
        _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
        client.force_login(ada)
        assert "checked" in client.get("/accounts/password/change/").content.decode().partition("revoke_tokens")[2]
        new = "another long password"
        passwords = {"oldpassword": "wrong", "password1": new, "password2": new}
        client.post("/accounts/password/change/", {**passwords, **wish})
        assert _me(secret) == 200, "a password that was not changed revokes nothing"
        client.post("/accounts/password/change/", {**passwords, "oldpassword": PASSWORD, **wish})
        assert _me(secret) == status


def _browser(user) -> Client:
    other = Client()
    other.force_login(user)
    other.get("/")
    return other


def _address(user) -> str:
    user.refresh_from_db()
    return user.email


def _me(secret: str) -> int:
    return APIClient().get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {secret}").status_code


class TestConfirmation:
    """Where the portal sends mail, an address counts when its reader has confirmed it."""

    @pytest.fixture(autouse=True)
    def _mail(self, settings):
        settings.YARDMASTER_SENDS_MAIL = True

    def _ask(self, client, email: str = "new@example.org") -> str:
        wish = {"email": email, "password": PASSWORD}
        return client.post("/account/address/", wish, follow=True).content.decode()

    def _link(self, mail) -> str:
        found = re.search(r"/accounts/address/\S+", mail.body)
        assert found is not None
        return found[0]

    def test_the_former_address_stays_until_the_new_one_is_confirmed(self, ada, client, mailoutbox):
        client.force_login(ada)
        assert "not confirmed" in self._ask(client)
        assert _address(ada) == "ada@example.org"
        link = self._link(mailoutbox[0])
        assert mailoutbox[0].to == ["new@example.org"]
        assert "Confirm this address?" in Client().get(link).content.decode()
        assert _address(ada) == "ada@example.org"
        assert "Address confirmed" in Client().post(link).content.decode()
        assert _address(ada) == "new@example.org"
        assert Client().post(link).status_code == 410
        assert AuditEvent.objects.filter(action="address.confirm").count() == 1

    def test_a_link_dies_with_time_and_with_another_address(self, ada, client, mailoutbox):
        client.force_login(ada)
        now = timezone.now()
        with time_machine.travel(now, tick=False):
            self._ask(client)
            assert "An e-mail was just sent" in self._ask(client, "third@example.org")
        with time_machine.travel(now + timedelta(minutes=2), tick=False):
            self._ask(client, "third@example.org")
            assert Client().post(self._link(mailoutbox[0])).status_code == 410
        with time_machine.travel(now + timedelta(days=4), tick=False):
            assert Client().post(self._link(mailoutbox[1])).status_code == 410
            client.force_login(ada)
            assert "An e-mail was sent to" in client.post("/account/address/resend/", follow=True).content.decode()
            assert Client().post(self._link(mailoutbox[2])).status_code == 200
        assert _address(ada) == "third@example.org"

    def test_an_address_that_another_user_has_by_then_is_not_taken(self, ada, bob, client, mailoutbox):
        client.force_login(ada)
        self._ask(client)
        bob.email = "new@example.org"
        bob.save()
        answer = Client().post(self._link(mailoutbox[0]))
        assert (answer.status_code, "Another user has this address" in answer.content.decode()) == (410, True)
        assert _address(ada) == "ada@example.org"

    def test_whoever_is_locked_out_confirms_nothing(self, ada, client, mailoutbox):
        client.force_login(ada)
        self._ask(client)
        type(ada).objects.update(is_active=False)
        assert Client().post(self._link(mailoutbox[0])).status_code == 410

    def test_a_mail_that_cannot_be_sent_is_said(self, ada, client, settings, monkeypatch):
        def refuse(*args: object, **options: object) -> None:
            raise OSError("no route")

        monkeypatch.setattr("apps.accounts.addresses.send_mail", refuse)
        client.force_login(ada)
        assert "could not be sent" in self._ask(client)
        assert _address(ada) == "ada@example.org"

    def test_no_address_at_all_needs_no_confirmation(self, ada, client, mailoutbox):
        client.force_login(ada)
        assert "The address was changed." in self._ask(client, "")
        assert (_address(ada), mailoutbox) == ("", [])

    def test_one_that_an_administrator_sets_counts_at_once(self, ada, admin, client, signed_in, mailoutbox):
        client.force_login(ada)
        self._ask(client)
        signed_in(admin).patch(f"/api/v1/users/{ada.pk}/", {"email": "set@example.org"})
        assert Client().post(self._link(mailoutbox[0])).status_code == 410
        assert _address(ada) == "set@example.org"
