"""Personal tokens: shown once, kept as a hash, dead when revoked or expired."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import PersonalToken
from apps.accounts.services import token_create
from apps.audit.models import AuditEvent
from tests.integration.conftest import PASSWORD, no_writes

pytestmark = pytest.mark.django_db
TOKENS, SIGN_IN = "/api/v1/tokens/", "/api/v1/auth/token/"


def test_the_secret_is_shown_once_and_only_its_hash_is_kept(ada, signed_in):
    client = signed_in(ada)
    made = client.post(TOKENS, {"name": "laptop", "scopes": ["jobs", "read"], "expires_in": 3600}).json()
    assert made["token"].startswith("ym_")
    assert made["scopes"] == ["read", "jobs"]
    listed = client.get(TOKENS).content.decode() + client.get(f"{TOKENS}{made['id']}/").content.decode()
    assert made["token"] not in listed
    assert made["token"] not in str(PersonalToken.objects.values())


def test_a_token_signs_in_and_a_changed_one_does_not(ada):
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert _me(secret) == 200
    for other in (
        secret[:-1],
        secret + "0",
        secret.upper(),
        secret[:15],
        secret[:-1] + ("0" if secret[-1] != "0" else "1"),
    ):
        assert _me(other) == 401


def test_a_token_expires_unless_its_maker_may_say_otherwise(ada, signed_in, settings):
    client = signed_in(ada)
    settings.YARDMASTER_TOKEN_LIFETIME = timedelta(days=5)
    made = [client.post(TOKENS, {"name": "t"}), APIClient().post(SIGN_IN, _login())]
    for one in made:
        expiry = PersonalToken.objects.get(pk=one.json()["id"]).expiry
        assert timedelta(days=4) < expiry - timezone.now() <= timedelta(days=5)
    settings.YARDMASTER_TOKEN_LONGEST_LIFETIME = timedelta(days=10)
    for wish in (None, 10 * 86_400 + 1):
        for refused in (
            client.post(TOKENS, {"name": "t", "expires_in": wish}),
            APIClient().post(SIGN_IN, {**_login(), "expires_in": wish}),
        ):
            error = refused.json()["errors"][0]
            assert (refused.status_code, error["field"], error["code"]) == (400, "expires_in", "too_long")
            assert "864000" in error["remedy"]
    assert PersonalToken.objects.count() == 2
    assert client.post(TOKENS, {"name": "t", "expires_in": 10 * 86_400}).status_code == 201
    settings.YARDMASTER_TOKEN_LONGEST_LIFETIME = timedelta(0)
    assert client.post(TOKENS, {"name": "t", "expires_in": None}).json()["expires_at"] is None


def test_all_tokens_of_a_user_are_revoked_at_once(ada, bob, admin, signed_in, with_token):
    tokens = {
        user: [token_create(user=user, name="t", scopes=[], expires_in=None)[1] for _ in "ab"] for user in (ada, bob)
    }
    assert with_token(ada, "admin").delete(TOKENS).status_code == 403
    assert signed_in(ada).delete(f"/api/v1/users/{bob.pk}/tokens/").status_code == 403
    assert signed_in(ada).delete(TOKENS).json() == {"revoked": 3}
    assert [_me(secret) for secret in (*tokens[ada], *tokens[bob])] == [401, 401, 200, 200]
    assert signed_in(admin).delete(f"/api/v1/users/{bob.pk}/tokens/").json() == {"revoked": 2}
    assert [_me(secret) for secret in tokens[bob]] == [401, 401]
    told = AuditEvent.objects.filter(action="token.revoke_all").order_by("at")
    assert [(one.actor_name, one.subject, one.facts["count"]) for one in told] == [
        ("ada", f"user:{ada.pk}", 3),
        ("admin", f"user:{bob.pk}", 2),
    ]


def _login() -> dict[str, str]:
    return {"username": "ada", "password": PASSWORD, "name": "cli"}


def test_an_expired_token_is_dead(ada):
    _, secret = token_create(user=ada, name="t", scopes=[], expires_in=timedelta(hours=1))
    assert _me(secret) == 200
    with time_machine.travel(timezone.now() + timedelta(hours=1, seconds=1), tick=False):
        assert _me(secret) == 401


def test_a_revoked_token_is_dead_at_once(ada, signed_in):
    token, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert signed_in(ada).delete(f"{TOKENS}{token.pk}/").status_code == 204
    assert _me(secret) == 401


def test_a_token_of_another_user_is_a_404(ada, bob, admin, signed_in):
    token, _ = token_create(user=ada, name="t", scopes=[], expires_in=None)
    for stranger in (bob, admin):
        for method in ("get", "delete"):
            assert getattr(signed_in(stranger), method)(f"{TOKENS}{token.pk}/").status_code == 404
        assert signed_in(stranger).get(TOKENS).json()["results"] == []
    assert PersonalToken.objects.filter(pk=token.pk).exists()


def test_its_use_is_noted_once_a_minute(ada):
    token, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    now = timezone.now()
    with time_machine.travel(now, tick=False):
        assert _me(secret) == 200
        with CaptureQueriesContext(connection) as queries:
            assert _me(secret) == 200
    assert not any(query["sql"].startswith("UPDATE") for query in queries)
    token.refresh_from_db()
    assert token.last_used_at == now
    with time_machine.travel(now + timedelta(minutes=2), tick=False):
        assert _me(secret) == 200
    token.refresh_from_db()
    assert token.last_used_at == now + timedelta(minutes=2)


def test_a_database_that_takes_no_writes_costs_the_note_and_no_answer(ada, caplog):
    token, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    assert _me(secret) == 200
    PersonalToken.objects.filter(pk=token.pk).update(last_used_at=timezone.now() - timedelta(hours=1))
    with connection.execute_wrapper(no_writes):
        assert _me(secret) == 200
    assert "The use of a token could not be noted: database or disk is full" in caplog.text


def test_the_first_use_is_recorded_or_refused(ada):
    token, secret = token_create(user=ada, name="t", scopes=[], expires_in=None)
    before = AuditEvent.objects.count()
    with connection.execute_wrapper(no_writes):
        assert _me(secret) == 503
    token.refresh_from_db()
    assert token.last_used_at is None
    assert _me(secret) == 200
    assert AuditEvent.objects.filter(action="token.first_use").count() == 1
    assert AuditEvent.objects.count() == before + 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 101),
        ("scopes", ["everything"]),
        ("scopes", "read"),
        ("expires_in", 59),
        ("expires_in", 10**12),
        ("expires_in", True),
        ("expires_in", "soon"),
        ("user", "somebody"),
    ],
)
def test_a_bad_wish_is_refused_by_field(ada, signed_in, field, value):
    response = signed_in(ada).post(TOKENS, {"name": "t", field: value})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"].startswith(field)
    assert not PersonalToken.objects.exists()


class TestPasswordForToken:
    """kfctl#140: people who get no token for scripts scrape the login form for a cookie."""

    @pytest.mark.parametrize("name", ["ada", "ADA", "ada@example.org"])
    def test_a_name_or_address_and_a_password_give_a_token(self, ada, name):
        response = APIClient().post(
            SIGN_IN, {"username": name, "password": PASSWORD, "name": "cli", "scopes": ["jobs"]}
        )
        assert response.status_code == 201
        assert _me(response.json()["token"]) == 200
        assert response.json()["scopes"] == ["jobs"]

    @pytest.mark.parametrize("name", ["ada", "nobody", "nobody@example.org", "x" * 200])
    def test_a_wrong_password_and_an_unknown_name_sound_the_same(self, ada, name):
        response = APIClient().post(SIGN_IN, {"username": name, "password": "wrong wrong", "name": "cli"})
        assert (response.status_code, response.json()["code"]) == (401, "not_authenticated")
        assert response.json()["detail"] == "The name or the password is wrong, or the account is locked."

    @pytest.mark.parametrize("name", ["ada", "ada@example.org", "nobody", "nobody@example.org"])
    def test_every_name_costs_one_hash_so_that_time_betrays_no_user(self, ada, name, monkeypatch):
        from django.contrib.auth.hashers import MD5PasswordHasher

        hashed = []
        real = MD5PasswordHasher.encode
        monkeypatch.setattr(MD5PasswordHasher, "encode", lambda *a, **k: hashed.append(1) or real(*a, **k))
        APIClient().post(SIGN_IN, {"username": name, "password": "wrong wrong", "name": "cli"})
        assert len(hashed) == 1

    def test_a_locked_account_gets_none(self, ada):
        ada.is_active = False
        ada.save()
        response = APIClient().post(SIGN_IN, {"username": "ada", "password": PASSWORD, "name": "cli"})
        assert response.status_code == 401

    def test_guessing_is_slowed_by_address_and_name(self, ada):
        client = APIClient()
        guess = {"username": "ada", "password": "wrong wrong", "name": "cli"}
        codes = [client.post(SIGN_IN, guess).status_code for _ in range(11)]
        assert codes == [401] * 10 + [429]
        response = client.post(SIGN_IN, {**guess, "username": "ADA"})
        assert response.json()["code"] == "throttled"
        assert int(response.headers["Retry-After"]) > 0

    def test_no_other_user_is_locked_out_by_it(self, ada, bob):
        client = APIClient()
        for _ in range(11):
            client.post(SIGN_IN, {"username": "ada", "password": "wrong wrong", "name": "cli"})
        right = {"username": "ada", "password": PASSWORD, "name": "cli"}
        assert client.post(SIGN_IN, {**right, "username": "bob"}).status_code == 201
        assert APIClient(REMOTE_ADDR="10.1.1.1").post(SIGN_IN, right).status_code == 201

    def test_a_made_up_forwarding_header_does_not_help_a_guesser(self, ada):
        client = APIClient()
        guess = {"username": "ada", "password": "wrong wrong", "name": "cli"}
        codes = [client.post(SIGN_IN, guess, HTTP_X_FORWARDED_FOR=f"1.2.3.{n}").status_code for n in range(11)]
        assert codes[-1] == 429

    def test_one_password_on_many_names_is_slowed_by_address(self, db):
        client = APIClient()
        codes = [
            client.post(SIGN_IN, {"username": f"u{n}", "password": "Winter2026!", "name": "c"}).status_code
            for n in range(61)
        ]
        assert codes[-1] == 429


def _me(secret: str) -> int:
    return APIClient().get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {secret}").status_code
