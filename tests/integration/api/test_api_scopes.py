"""A token reaches as far as its scopes, and cannot make itself reach further."""

from __future__ import annotations

import pytest

from apps.api.permissions import SCOPES

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("scopes", "url", "allowed"),
    [
        (["read"], "/api/v1/me/", True),
        (["jobs"], "/api/v1/me/", True),
        (["read"], "/api/v1/namespaces/", True),
        (["jobs"], "/api/v1/namespaces/", False),
        (["admin"], "/api/v1/namespaces/", True),
        (["read"], "/api/v1/users/", True),
        (["data"], "/api/v1/users/", False),
        (["data"], "/api/v1/audit/", False),
        ([], "/api/v1/users/", True),
    ],
)
def test_reading_takes_read_or_the_scope(admin, with_token, scopes, url, allowed):
    response = with_token(admin, *scopes).get(url)
    assert response.status_code == (200 if allowed else 403)
    if not allowed:
        assert response.json()["code"] == "permission_denied"
        assert response.json()["remedy"]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scoped_token_makes_no_token(ada, with_token, scope):
    response = with_token(ada, scope).post("/api/v1/tokens/", {"name": "stronger", "scopes": []})
    assert response.status_code == 403


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scoped_token_changes_no_profile(ada, with_token, scope):
    assert with_token(ada, scope).patch("/api/v1/me/", {"first_name": "x"}).status_code == 403


@pytest.mark.parametrize("scope", ["read", "jobs", "data"])
def test_only_the_admin_scope_administers(admin, with_token, scope):
    client = with_token(admin, scope)
    assert client.post("/api/v1/users/", {"username": "eve"}).status_code == 403
    assert client.post(f"/api/v1/users/{admin.pk}/sign-in-link/").status_code == 403
    assert client.post("/api/v1/namespaces/", {"slug": "x"}).status_code == 403


def test_the_admin_scope_makes_no_administrator(ada, with_token):
    assert with_token(ada, "admin").post("/api/v1/users/", {"username": "eve"}).status_code == 403
    assert with_token(ada, "admin").get("/api/v1/users/").status_code == 403


def test_an_options_request_shows_nothing_to_a_stranger(client):
    assert client.options("/api/v1/users/").status_code == 401
