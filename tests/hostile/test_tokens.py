"""Tokens that a thief would like to keep: they end by themselves, and all at once where their owner says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.hostile.conftest import http

pytestmark = [pytest.mark.slow, pytest.mark.linux]

TOKENS = "/api/v1/tokens/"
PASSWORD = "correct horse battery"


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
