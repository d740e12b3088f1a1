"""Every page that asks an account with a password for a confirmation asks an account without one as well.

Which pages these are is found by asking them all, as `tests/integration/security/matrix.py` lists them.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from allauth.socialaccount.models import SocialAccount
from django.db import transaction
from django.test import Client

from apps.accounts.models import User
from apps.api.allowances import forget_all
from portal.openid_settings import OpenIdProvider, as_allauth
from tests.integration.conftest import PASSWORD
from tests.integration.security.matrix import routes

pytestmark = pytest.mark.django_db
WAYS = ("/accounts/reauthenticate/", "/accounts/2fa/reauthenticate/", "/accounts/2fa/webauthn/reauthenticate/")
IN_THE_FORM = {"POST /account/address/", "POST /accounts/password/change/"}
"""Those that ask for the password itself, in their own form."""
ANSWERS = {
    "POST /account/address/": {"email": "new@example.org"},
    "POST /accounts/password/change/": {"password1": "a new long one", "password2": "a new long one"},
    "POST /accounts/password/set/": {"password1": "a new long one", "password2": "a new long one"},
}
SENSITIVE = {
    "GET /accounts/2fa/recovery-codes/", "GET /accounts/2fa/recovery-codes/download/",
    "POST /accounts/2fa/recovery-codes/download/",
    "GET /accounts/2fa/recovery-codes/generate/", "POST /accounts/2fa/recovery-codes/generate/",
    "GET /accounts/2fa/totp/activate/", "POST /accounts/2fa/totp/activate/",
    "GET /accounts/2fa/totp/deactivate/", "POST /accounts/2fa/totp/deactivate/",
    "GET /accounts/2fa/webauthn/add/", "POST /accounts/2fa/webauthn/add/",
    "GET /accounts/2fa/webauthn/keys/{key}/edit/", "POST /accounts/2fa/webauthn/keys/{key}/edit/",
    "GET /accounts/2fa/webauthn/keys/{key}/remove/", "POST /accounts/2fa/webauthn/keys/{key}/remove/",
    "POST /accounts/oidc/company/link/", "POST /accounts/oidc/company/unlink/",
}  # fmt: skip
"""Where a confirmation is asked for today. One more: add it, and see that it is meant."""


@pytest.fixture(autouse=True)
def _company(settings):
    one = OpenIdProvider("company", "http://127.0.0.1:9", "yardmaster", "secret", "Company")
    settings.YARDMASTER_OIDC = {"company": one}
    settings.SOCIALACCOUNT_PROVIDERS = as_allauth(settings.YARDMASTER_OIDC)


def addresses() -> list[tuple[str, str]]:
    """Method and address of every page of the account, `{key}` for a passkey."""
    found = []
    for one in routes():
        if not one.pattern.startswith(("account/", "accounts/")):
            continue
        path = re.sub(r"<int:pk>", "{key}", one.pattern)
        path = re.sub(r"<str:provider_id>|\(\?P<provider_id>[^)]*\)", "company", path)
        if "<" not in path and not f"/{path}".startswith(WAYS):
            found.append((one.method, f"/{path}"))
    return list(dict.fromkeys(found))


def asked_of(user: User, *, totp: bool = False, passkey: bool = False) -> dict[str, str]:
    """The pages that lead this user to a confirmation, and where. Nothing that is done stays done."""
    client, key = Client(), 0
    if totp:
        TOTP.activate(user, generate_totp_secret())
        RecoveryCodes.activate(user)
    if passkey:
        data = {"name": "laptop", "credential": {}}
        key = Authenticator.objects.create(user=user, type="webauthn", data=data).pk
    found = {}
    for method, path in addresses():
        client.force_login(user)
        forget_all()
        with transaction.atomic():
            answer = client.generic(method, path.format(key=key)) if method == "GET" else client.post(
                path.format(key=key), ANSWERS.get(f"{method} {path}", {})
            )  # fmt: skip
            transaction.set_rollback(True)
        to = urlsplit(answer.headers.get("Location", "")).path
        if answer.status_code == 302 and to.startswith(WAYS):
            found[f"{method} {path}"] = to
    return found


def without_password(name: str) -> User:
    user = User.objects.create_user(name, f"{name}@example.org", None)
    SocialAccount.objects.create(user=user, provider="company", uid=name)
    return user


def with_password(name: str) -> User:
    return User.objects.create_user(name, f"{name}@example.org", PASSWORD)


def test_these_pages_ask_for_a_confirmation():
    bare, with_app = asked_of(with_password("a")), asked_of(with_password("b"), totp=True)
    with_key = asked_of(with_password("c"), passkey=True)
    every = {*bare, *with_app, *with_key}
    assert every == SENSITIVE


@pytest.mark.parametrize("factors", [{}, {"totp": True}, {"passkey": True}])
def test_each_of_them_asks_an_account_without_a_password(factors):
    password, none = asked_of(with_password("a"), **factors), asked_of(without_password("b"), **factors)
    way = "/accounts/2fa/" if factors else "/accounts/reauthenticate/provider/"
    wanted = {*password, "POST /account/address/", "POST /accounts/password/set/", "GET /accounts/password/set/"}
    missing = {one: none.get(one) for one in wanted if not none.get(one, "").startswith(way)}
    assert not missing


def test_what_asks_in_its_own_form_does_nothing_without_an_answer():
    user = with_password("a")
    client = Client()
    client.force_login(user)
    for one in IN_THE_FORM:
        client.post(one.removeprefix("POST "), ANSWERS[one])
    user.refresh_from_db()
    assert (user.email, user.check_password(PASSWORD)) == ("a@example.org", True)


def test_nothing_of_an_account_without_a_password_changes_without_a_confirmation():
    user = without_password("a")
    client = Client()
    client.force_login(user)
    for method, path in addresses():
        if method == "POST" and (f"POST {path}" in ANSWERS or f"POST {path}" in SENSITIVE):
            client.post(path.format(key=0), ANSWERS.get(f"POST {path}", {}))
    user.refresh_from_db()
    assert (user.email, user.has_usable_password()) == ("a@example.org", False)
    assert not Authenticator.objects.filter(user=user).exists()
    assert SocialAccount.objects.filter(user=user).count() == 1
