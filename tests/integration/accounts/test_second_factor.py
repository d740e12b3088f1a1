"""The second factor: set up, asked for at every way in, counted once, bounded, required, and reset when it is lost."""

from __future__ import annotations

import re

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Browser, User
from apps.accounts.services import sign_in_link_create
from apps.audit.models import AuditEvent
from apps.secrets.services import secrets_reseal
from tests.integration.conftest import PASSWORD

HALF_MINUTE = 30


@pytest.fixture
def clock(time_machine):
    """`clock()` goes on by half a minute, so that there is a new code."""
    at = 1_790_000_000
    time_machine.move_to(at, tick=False)

    def go_on(seconds: int = HALF_MINUTE) -> None:
        nonlocal at
        at += seconds
        time_machine.move_to(at, tick=False)

    return go_on


def code_for(secret: str) -> str:
    counter = int(timezone.now().timestamp()) // HALF_MINUTE
    return format_hotp_value(hotp_value(secret, counter))


def set_up(client: Client, clock) -> tuple[str, list[str]]:
    """Sets the app up on the pages, as a user who is signed in; its secret and the recovery codes."""
    page = client.get("/accounts/2fa/totp/activate/", follow=True)
    if "account_reauthenticate" in str(page.resolver_match) or b"Confirm that it is you" in page.content:
        page = client.post(page.request["PATH_INFO"] + "?next=/accounts/2fa/totp/activate/", {
            "password": PASSWORD, "next": "/accounts/2fa/totp/activate/",
        }, follow=True)  # fmt: skip
    secret = re.search(r"<code class=\"text-break\"[^>]*>([A-Z2-7]+)</code>", page.content.decode())
    assert secret is not None, page.content.decode()[-3000:]
    done = client.post("/accounts/2fa/totp/activate/", {"code": code_for(secret.group(1))}, follow=True)
    codes = re.findall(r"\b\d{8}\b", done.content.decode())
    assert len(codes) >= 10, done.content.decode()[-3000:]
    clock()
    clock()
    return secret.group(1), codes[:10]


def password(client: Client, name: str = "ada") -> object:
    return client.post("/accounts/login/", {"login": name, "password": PASSWORD})


@pytest.fixture
def with_app(ada: User, clock) -> tuple[str, list[str]]:
    client = Client()
    client.force_login(ada)
    return set_up(client, clock)


def is_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_an_app_is_set_up_and_asked_for_from_then_on(client, ada, clock, with_app):
    secret, _ = with_app
    answer = password(client)
    assert answer.headers["Location"].startswith("/accounts/2fa/authenticate/")
    assert not is_in(client)
    assert client.get("/account/").status_code == 302
    page = client.get("/accounts/2fa/authenticate/").content.decode()
    assert "Second step" in page
    client.post("/accounts/2fa/authenticate/", {"code": code_for(secret)})
    assert is_in(client)
    assert Browser.objects.get(user=ada, session_id=client.session.session_key).way == "password+code"
    assert "password and code" in client.get("/account/sessions/").content.decode()
    actions = set(AuditEvent.objects.filter(subject=f"user:{ada.pk}").values_list("action", flat=True))
    assert {"second_factor.add", "session.begin"} <= actions
    kept = Authenticator.objects.get(user=ada, type="totp").data["secret"]
    assert secret not in kept


def test_a_code_counts_once_and_no_earlier_one_after_it(ada, clock, with_app):
    secret, _ = with_app
    earlier = code_for(secret)
    clock()
    code = code_for(secret)
    first, second, third = Client(), Client(), Client()
    for one in (first, second, third):
        password(one)
    first.post("/accounts/2fa/authenticate/", {"code": code})
    second.post("/accounts/2fa/authenticate/", {"code": code})
    third.post("/accounts/2fa/authenticate/", {"code": earlier})
    assert [is_in(one) for one in (first, second, third)] == [True, False, False]


def test_a_code_counts_once_also_in_another_process(ada, clock, with_app):
    from django.core.cache import cache

    secret, _ = with_app
    code = code_for(secret)
    first, second = Client(), Client()
    for one in (first, second):
        password(one)
        cache.clear()  # another process knows nothing of this one's memory
        one.post("/accounts/2fa/authenticate/", {"code": code})
    assert [is_in(one) for one in (first, second)] == [True, False]


def test_a_recovery_code_signs_in_once(ada, clock, with_app):
    _, codes = with_app
    first, second = Client(), Client()
    for one in (first, second):
        password(one)
        one.post("/accounts/2fa/authenticate/", {"code": codes[0]})
    assert [is_in(one) for one in (first, second)] == [True, False]
    assert AuditEvent.objects.filter(action="second_factor.recovery").count() == 1
    assert codes[1] not in first.get("/accounts/2fa/recovery-codes/").content.decode()


def test_codes_cannot_be_tried_out(ada, clock, with_app):
    secret, _ = with_app
    client = Client()
    password(client)
    statuses = [client.post("/accounts/2fa/authenticate/", {"code": f"{n:06}"}).status_code for n in range(12)]
    assert statuses[:9] == [200] * 9, "ten in five minutes, one of which set the app up"
    assert statuses[9:] == [429] * 3
    other = Client(REMOTE_ADDR="203.0.113.9")  # nor from another address, with a new sign-in
    password(other)
    assert other.post("/accounts/2fa/authenticate/", {"code": code_for(secret)}).status_code == 429
    assert AuditEvent.objects.filter(action="second_factor.fail").exists()


def test_a_link_stands_for_the_password_alone(client, ada, clock, with_app):
    secret, _ = with_app
    link = sign_in_link_create(ada)
    client.post(link[link.index("/sign-in/") :])
    assert not is_in(client)
    client.post("/accounts/2fa/authenticate/", {"code": code_for(secret)})
    assert is_in(client)
    assert Browser.objects.get(session_id=client.session.session_key).way == "link+code"
    assert client.session["signed_in_by_link"]


def test_without_a_password_there_is_no_second_step(client, ada, with_app):
    assert client.get("/accounts/2fa/authenticate/").headers["Location"] == "/accounts/login/"
    assert client.post("/accounts/2fa/authenticate/", {"code": "000000"}).status_code in (302, 429)
    assert not is_in(client)


def test_a_password_alone_gives_no_token(ada, with_app, signed_in):
    from rest_framework.test import APIClient

    wish = {"username": "ada", "password": PASSWORD, "name": "t"}
    answer = APIClient().post("/api/v1/auth/token/", wish)
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor")
    assert "yardmaster login" in answer.json()["remedy"]
    assert APIClient().post("/api/v1/auth/token/", wish | {"password": "wrong"}).status_code == 401


def test_where_it_is_required_nothing_else_is_open(client, admin, ada, settings, clock):
    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "administrators"
    password(client, "admin")
    assert is_in(client)
    for path in ("/", "/jobs/", "/account/tokens/", "/device/", "/admin/"):
        assert client.get(path).headers.get("Location") == "/accounts/2fa/", path
    assert client.post("/account/tokens/", {"name": "x", "reach": "all", "lifetime": "month"}).status_code == 403
    answer = client.get("/api/v1/me/")
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")
    assert "requires a second step" in client.get("/accounts/2fa/").content.decode()
    set_up(client, clock)
    assert client.get("/jobs/").status_code == 200
    removed = client.post("/accounts/2fa/totp/deactivate/")
    assert removed.status_code == 200  # shown again: it is the last one
    assert Authenticator.objects.filter(user=admin, type="totp").exists()
    other = Client()
    password(other, "ada")
    assert other.get("/jobs/").status_code == 200


def test_where_it_is_required_a_password_makes_no_token_before_it_is_set_up(admin, settings):
    from rest_framework.test import APIClient

    settings.YARDMASTER_REQUIRE_SECOND_FACTOR = "all"
    answer = APIClient().post("/api/v1/auth/token/", {"username": "admin", "password": PASSWORD, "name": "t"})
    assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")


def test_an_administrator_resets_a_lost_one(signed_in, client, admin, ada, bob, with_app):
    address = f"/api/v1/users/{ada.pk}/second-factor/reset/"
    assert signed_in(bob).post(address).status_code == 403
    assert signed_in(ada).post(address).status_code == 403
    assert signed_in(admin).post(address).json() == {"removed": 2}
    assert signed_in(admin).post(address).json() == {"removed": 0}
    assert signed_in(admin).post(f"/api/v1/users/{admin.pk}/second-factor/reset/").status_code == 409
    password(client)
    assert is_in(client)
    event = AuditEvent.objects.get(action="second_factor.reset")
    assert (event.actor_name, event.facts["kinds"]) == ("admin", ["recovery_codes", "totp"])


def test_a_session_that_was_left_open_cannot_remove_it(ada, clock, with_app):
    client = Client()
    client.force_login(ada)
    answer = client.post("/accounts/2fa/totp/deactivate/")
    assert "reauthenticate" in answer.headers["Location"]
    assert Authenticator.objects.filter(user=ada, type="totp").exists()


def test_a_locked_user_passes_no_second_step(client, ada, clock, with_app):
    secret, _ = with_app
    password(client)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    client.post("/accounts/2fa/authenticate/", {"code": code_for(secret)})
    assert client.get("/account/").status_code == 302


def test_no_address_leads_elsewhere(client, ada, clock, with_app):
    secret, _ = with_app
    client.post("/accounts/login/?next=https://evil.example/", {
        "login": "ada", "password": PASSWORD, "next": "https://evil.example/",
    })  # fmt: skip
    answer = client.post("/accounts/2fa/authenticate/", {"code": code_for(secret), "next": "https://evil.example/"})
    assert answer.headers["Location"] == "/"


def test_the_picture_is_the_portals_own(ada, clock):
    client = Client()
    client.force_login(ada)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    answer = client.get("/accounts/2fa/totp/activate/")
    assert 'src="data:image/svg+xml;base64,' in answer.content.decode()
    assert "http://www" not in re.sub(r"base64,[^\"]+", "", answer.content.decode())
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


def test_a_new_secret_key_seals_second_factors_again_and_codes_still_count(ada, clock, with_app, settings):
    secret, _ = with_app
    settings.YARDMASTER_EARLIER_SECRET_KEYS, settings.SECRET_KEY = [settings.SECRET_KEY], "another-key-" * 5
    done, broken = secrets_reseal()
    assert (done, broken) == (2, []), "the app's secret, and the recovery codes"
    assert secrets_reseal() == (0, [])
    settings.YARDMASTER_EARLIER_SECRET_KEYS = []
    clock()
    client = Client()
    password(client)
    answer = client.post("/accounts/2fa/authenticate/", {"code": code_for(secret)})
    assert answer.status_code == 302
    assert client.get("/account/").status_code == 200
