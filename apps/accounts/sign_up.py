"""How allauth's sign-up makes users here: closed unless the operator opens it, and always with a personal namespace."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.forms import SignupForm
from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from apps.accounts import confirming
from apps.accounts.addresses import address_ask
from apps.accounts.attempts import PAGE_COST, attempt_begin
from apps.accounts.models import User
from apps.accounts.passkeys import passkeys_work
from apps.accounts.second_factor import has_second_factor
from apps.accounts.services import name_and_address_problems
from apps.errors import Invalid, TooMany


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.YARDMASTER_OPEN_SIGN_UP)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """In the place of allauth's own counts, which anybody could push out of its cache."""
        name = str(credentials.get("email") or credentials.get("username") or "")
        try:
            self._attempt = attempt_begin(request, name, cost=PAGE_COST)
        except TooMany as problem:
            raise self.validation_error("too_many_login_attempts") from problem

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        try:
            user: User | None = super().authenticate(request, **credentials)
        except TooMany:
            self._attempt.was_not_made()
            raise
        if user is not None:
            self._succeeded(user)
        return user

    def _succeeded(self, user: User) -> None:
        """A password that a second factor follows makes no network known, and gives no guess back."""
        if has_second_factor(user):
            return
        try:
            self._attempt.succeeded(user)
        except TooMany as problem:
            raise self.validation_error("too_many_login_attempts") from problem

    def get_reauthentication_methods(self, user: User) -> list[dict[str, str]]:
        """Ways to confirm that it is the user, the first where none is chosen: what takes no typing before codes."""
        if isinstance(user, User) and confirming.signs_in_elsewhere(user):
            return [{"id": "provider", "description": "Sign in again", "url": reverse("confirm_page")}]
        words = {"mfa_reauthenticate": "Use a code", "mfa_reauthenticate:webauthn": "Use a passkey"}
        order = ("reauthenticate", "mfa_reauthenticate:webauthn", "mfa_reauthenticate")
        found = super().get_reauthentication_methods(user)
        ways = [{**one, "description": words.get(one["id"], one["description"])} for one in found]
        return sorted(ways, key=lambda one: order.index(one["id"]))

    def is_reauthentication_required(self, *, app: str, **facts: Any) -> bool:
        """Raises ReauthenticationRequired for an account that allauth has no way to ask, and so would not."""
        is_required: bool = super().is_reauthentication_required(app=app, **facts)
        if is_required:
            confirming.refuse_unconfirmed(self.request)
        return is_required

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """With links to the portal's own address: allauth takes the host from the request, and so from who asks."""
        own, host = settings.PUBLIC_URL, urlsplit(settings.PUBLIC_URL).netloc
        links = {
            name: f"{own}{urlsplit(value)._replace(scheme='', netloc='').geturl()}"
            for name, value in context.items()
            if name.endswith("_url") and isinstance(value, str)
        }
        site = SimpleNamespace(name=host, domain=host)
        super().send_mail(template_prefix, email, {**context, **links, "current_site": site})

    def format_email_subject(self, subject: str) -> str:
        return f"[{urlsplit(settings.PUBLIC_URL).netloc}] {subject}"

    def is_safe_url(self, url: str) -> bool:
        """Only addresses of the portal itself. allauth takes every host of `ALLOWED_HOSTS`, which may have those of
        others below it, such as sessions of the workbench."""
        own = {urlsplit(settings.PUBLIC_URL).netloc, self.request.get_host()}
        return url_has_allowed_host_and_scheme(url, allowed_hosts=own, require_https=self.request.is_secure())

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("account_page")


class SignUpForm(SignupForm):  # type: ignore[misc]  # allauth has no types
    """Where the portal sends mail, the address that was given waits until its reader has confirmed it."""

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean()
        name, email = cleaned.get("username"), cleaned.get("email") or ""
        if name:
            # An address that waits for its reader is not the user's own yet, and so no name.
            own = "" if settings.YARDMASTER_SENDS_MAIL else email
            for user in (User(username=name, email=own), User(username="", email=email)):
                for problem in name_and_address_problems(user):
                    self.add_error(problem.field, f"{problem.message} {problem.remedy}".strip())
        return cleaned

    def save(self, request: HttpRequest) -> User:
        if not settings.YARDMASTER_SENDS_MAIL:
            user: User = super().save(request)
            return user
        with transaction.atomic():
            user = super().save(request)
            email, user.email = user.email, ""
            EmailAddress.objects.filter(user=user).delete()  # allauth signs in and resets passwords by these as well
            user.save(update_fields=["email"])
        if email:
            with suppress(Invalid):  # the page of the account offers to send the mail again
                address_ask(user=user, email=email)
        return user


def sign_up_state(request: HttpRequest) -> dict[str, Any]:
    """For templates: whether to offer sign-up at all, and whether a mail would reach anybody."""
    return {
        "open_sign_up": bool(settings.YARDMASTER_OPEN_SIGN_UP),
        "passkeys_work": passkeys_work(),
        "sends_mail": bool(settings.YARDMASTER_SENDS_MAIL),
        "openid_providers": list(settings.YARDMASTER_OIDC.values()),
    }
