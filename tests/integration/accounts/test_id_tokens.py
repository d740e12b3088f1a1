"""ID tokens that are not believed, and addresses that are not taken over."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from cryptography.hazmat.primitives.asymmetric import rsa
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from apps.accounts.openid import OpenIdAdapter, _confirmed
from portal.openid_settings import OpenIdProvider, providers
from yardmaster.provider_groups import TeamRole, groups_in, wanted_roles

KEY, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
ISSUER = "https://sso.example.org"


@pytest.fixture
def adapter(settings, monkeypatch) -> OpenIdAdapter:
    settings.YARDMASTER_OIDC = {"company": OpenIdProvider("company", ISSUER, "yardmaster", "s", "Company")}
    found = OpenIdAdapter(RequestFactory().get("/"), "company")
    found._openid_config = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}
    found.nonce = "right"

    def fetch_key(credential: str, url: str, lookup: object) -> tuple[str, Any]:
        return jwt.get_unverified_header(credential)["alg"], KEY.public_key()

    monkeypatch.setattr(jwtkit, "fetch_key", fetch_key)
    return found


def token(key: Any = KEY, algorithm: str | None = "RS256", **changes: object) -> str:
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": "yardmaster", "sub": "1", "nonce": "right", "iat": now, "exp": now + 60} | changes
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers={"kid": "1"})


def checked(adapter: OpenIdAdapter, text: str) -> dict[str, Any]:
    found: dict[str, Any] = adapter._checked(SimpleNamespace(client_id="yardmaster"), text)
    return found


def test_a_right_token_is_believed(adapter):
    assert checked(adapter, token())["sub"] == "1"


@pytest.mark.parametrize("text", [
    token(exp=int(time.time()) - 60), token(aud="another"), token(iss="https://evil.example"), token(nonce="another"),
    token(nonce=None), token(sub=None), token(exp=None), token(key=OTHER), token(key="a" * 32, algorithm="HS256"),
    token(key=None, algorithm="none"), "", "a.b.c",
])  # fmt: skip
def test_any_other_is_not(adapter, text):
    with pytest.raises(OAuth2Error):
        checked(adapter, text)


def test_without_a_nonce_of_this_sign_in_none_is(adapter):
    adapter.nonce = ""
    with pytest.raises(OAuth2Error):
        checked(adapter, token(nonce=""))


def test_a_document_of_another_issuer_is_not_used(adapter):
    adapter._openid_config["issuer"] = "https://evil.example"
    with pytest.raises(OAuth2Error):
        checked(adapter, token(iss="https://evil.example"))


@pytest.mark.parametrize("verified", [False, None, "true", 1])
def test_an_address_that_is_not_confirmed_is_none(verified):
    assert _confirmed({"email": "a@example.org", "email_verified": verified}) == ""
    assert _confirmed({"email": "a@example.org", "email_verified": True}) == "a@example.org"


def test_the_highest_role_of_all_groups_counts_and_what_is_no_list_gives_none():
    mapping = {"a": (TeamRole("t", "viewer"),), "b": (TeamRole("t", "manager"), TeamRole("u", "member"))}
    assert wanted_roles(groups_in(["a", "b", "c", 5, ""]), mapping) == {"t": "manager", "u": "member"}
    assert groups_in({"a": 1}) == groups_in(None) == frozenset()


@pytest.mark.parametrize("text", [
    "[]", "{", '{"Bad Id": {}}', '{"a": {"client_id": "x"}}', '{"a": {"issuer": "ftp://x", "client_id": "x"}}',
    '{"a": {"issuer": "https://x", "client_id": "x", "trust": true}}',
    '{"a": {"issuer": "https://x", "client_id": "x", "teams": {"g": {"team": "t", "role": "root"}}}}',
    '{"a": {"issuer": "https://x", "client_id": "x", "secret_file": "absent"}}',
])  # fmt: skip
def test_a_file_that_is_wrong_stops_the_start(tmp_path, text):
    (tmp_path / "oidc.json").write_text(text)
    with pytest.raises(ImproperlyConfigured, match="YARDMASTER_OIDC_FILE"):
        providers(str(tmp_path / "oidc.json"))
