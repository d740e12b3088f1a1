"""Tokens that a thief would like to keep: they end by themselves, and all at once where their owner says so."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.hostile.conftest import http, in_browser
from tests.real.portal import LIGHT
from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

TOKENS = "/api/v1/tokens/"
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def narrow() -> Iterator[Scene]:
    """A portal with low limits of what right passwords leave behind."""
    limits = {"SIGN_INS_MADE": 10, "TOKENS_PER_USER": 8, "SESSIONS_PER_USER": 3, "PASSWORDS_AT_ONCE": 1}
    dear = {"DJANGO_SETTINGS_MODULE": "tests.real.settings_of_dear_passwords"}  # so that places are full
    with scene(LIGHT, {**dear, **{f"YARDMASTER_{name}": str(limit) for name, limit in limits.items()}}) as one:
        yield one


@pytest.mark.long
def test_right_passwords_fill_no_table_and_are_refused_in_the_end(narrow: Scene):
    narrow.portal.token_of("busy")
    login = {"username": "busy", "password": PASSWORD, "name": "cli"}
    with http(narrow.portal.url) as client:
        answers = [client.post("/api/v1/auth/token/", json=login) for _ in range(14)]
    codes = [one.json().get("code", "") for one in answers]
    assert codes[:7] == [""] * 7, "the eighth token is the one of before"
    assert set(codes[7:10]) == {"too_many_tokens"}
    assert set(codes[12:]) == {"throttled"}
    assert "Revoke some" in answers[7].json()["remedy"]
    assert _count(narrow, "PersonalToken.objects.filter(user__username='busy')") == 8


@pytest.mark.long
def test_sessions_of_one_user_are_few_and_the_last_stay(narrow: Scene):
    narrow.portal.token_of("roaming")
    with in_browser(narrow.portal.url, "roaming") as first:
        assert first.get("/account/").status_code == 200
        for _ in range(5):
            with in_browser(narrow.portal.url, "roaming") as last:
                assert last.get("/account/").status_code == 200
        assert first.get("/account/").status_code == 302
    assert _count(narrow, "Browser.objects.filter(user__username='roaming')") == 3
    assert _count(narrow, "Session.objects.all()") == _count(narrow, "Browser.objects.all()")


def test_few_passwords_are_checked_at_once_and_the_others_are_refused(narrow: Scene):
    narrow.portal.token_of("patient")
    login = {"username": "patient", "password": PASSWORD, "name": "cli"}

    def guess(number: int) -> tuple[int, str]:
        with http(narrow.portal.url) as stranger:
            answer = stranger.post("/api/v1/auth/token/", json={**login, "username": f"nobody{number}"})
            return answer.status_code, answer.json()["code"]

    def refused() -> bool:
        with ThreadPoolExecutor(24) as pool:
            answers = set(pool.map(guess, range(24)))
        assert answers <= {(401, "not_authenticated"), (429, "too_many_at_once"), (429, "throttled")}
        return (429, "too_many_at_once") in answers

    until(refused, what="a refusal")
    with http(narrow.portal.url, narrow.token) as other:
        assert other.get("/api/v1/me/").status_code == 200


def _count(narrow: Scene, rows: str) -> int:
    found = narrow.portal.script(
        "import django; django.setup()\nfrom django.contrib.sessions.models import Session\n"
        f"from apps.accounts.models import Browser, PersonalToken\nprint({rows}.count())"
    )
    return int(found.splitlines()[-1])


def test_no_way_to_get_a_token_gives_one_for_ever(tenant, stranger):
    owner = tenant("token-owner")
    login = {"username": "token-owner", "password": PASSWORD, "name": "cli"}
    for made in (owner.post(TOKENS, json={"name": "t"}), stranger.post("/api/v1/auth/token/", json=login)):
        assert made.status_code == 201, made.text
        lasts = datetime.fromisoformat(made.json()["expires_at"]) - datetime.now(UTC)
        assert timedelta(days=89) < lasts <= timedelta(days=90)
    for wish in (None, 366 * 86_400, 50 * 366 * 86_400):
        for refused in (
            owner.post(TOKENS, json={"name": "t", "expires_in": wish}),
            stranger.post("/api/v1/auth/token/", json={**login, "expires_in": wish}),
        ):
            assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "too_long")


def test_all_tokens_of_a_user_end_at_once_and_nobody_elses(attacked, tenant):
    robbed, other = tenant("robbed"), tenant("not-robbed")
    stolen = robbed.post(TOKENS, json={"name": "stolen", "scopes": ["read"]}).json()["token"]
    with http(attacked.portal.url, stolen) as thief:
        assert thief.delete(TOKENS).status_code == 403, "a scoped token revokes no others"
        assert thief.get("/api/v1/me/").status_code == 200
        assert robbed.delete(TOKENS).json() == {"revoked": 2}
        assert thief.get("/api/v1/me/").status_code == 401
    assert robbed.get("/api/v1/me/").status_code == 401
    assert other.get("/api/v1/me/").status_code == 200


def test_an_administrator_ends_the_tokens_of_a_user_and_a_tenant_does_not(attacked, tenant):
    suspect, other = tenant("suspect"), tenant("not-robbed")
    user_id = suspect.get("/api/v1/me/").json()["id"]
    assert other.delete(f"/api/v1/users/{user_id}/tokens/").status_code == 403
    assert suspect.get("/api/v1/me/").status_code == 200
    with http(attacked.portal.url, attacked.token) as admin:
        assert admin.delete(f"/api/v1/users/{user_id}/tokens/").json() == {"revoked": 1}
    assert suspect.get("/api/v1/me/").status_code == 401
