"""Signing in with an OpenID provider: what of its answer is believed, and whose account it is.

A provider's user is known by issuer and subject alone. An address links to an account that is here already only where
the provider is trusted with that, has confirmed the address, and the account is no administrator's. Users that are not
known are made, without an unconfirmed address. Not here: the pages (`openid_pages`), which teams groups give
(`yardmaster.provider_groups`) and how they get them (`apps.namespaces.provider_teams`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import jwt
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.models import SocialAccount, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from apps.accounts import confirming
from apps.accounts.models import User, groups_claimed
from apps.accounts.services import user_change, user_create
from apps.audit.services import openid_failure_record, record
from apps.errors import Conflict, Invalid
from yardmaster.provider_groups import groups_in

_ALGORITHMS = {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
_LOGIN: Mapping[str, Any] = MappingProxyType({"process": "login"})
_NO_NAME = re.compile(r"[^\w.+-]+")


class OpenIdAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # allauth has no types
    """allauth's, which neither checks the signature of an ID token nor sends a nonce."""

    nonce = ""
    """Of the sign-in that this answer is for."""

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        path = reverse("openid_connect_callback", kwargs={"provider_id": self.provider_id})
        return f"{settings.PUBLIC_URL}{path}"

    def complete_login(self, request: HttpRequest, app: Any, token: SocialToken, **kwargs: Any) -> SocialLogin:
        """Raises OAuth2Error for an ID token that is not this provider's, for this portal and this sign-in, and now."""
        claims = self._checked(app, str(kwargs["response"].get("id_token", "")))
        userinfo = self._fetch_user_info(token.token) if "userinfo_endpoint" in self.openid_config else {}
        if userinfo and userinfo.get("sub") != claims["sub"]:
            raise OAuth2Error("The user's facts are another user's.")
        # When the user signed in says the signed token alone.
        facts = {**claims, **userinfo, "auth_time": claims.get("auth_time")}
        return self.get_provider().sociallogin_from_response(request, {"userinfo": facts})

    def _checked(self, app: Any, id_token: str) -> dict[str, Any]:
        issuer = self.openid_config["issuer"]
        if issuer.rstrip("/") != settings.YARDMASTER_OIDC[self.provider_id].issuer:
            raise OAuth2Error("The provider's issuer is another than the configured one.")
        try:
            header = jwt.get_unverified_header(id_token)
            if header.get("alg") not in _ALGORITHMS:
                raise OAuth2Error("The ID token is not signed with a key pair.")
            claims: dict[str, Any] = jwtkit.verify_and_decode(
                credential=id_token, keys_url=self.openid_config["jwks_uri"], issuer=issuer, audience=app.client_id,
                lookup_kid=jwtkit.lookup_kid_jwk,
            )  # fmt: skip
        except (jwt.PyJWTError, KeyError, TypeError, ValueError) as error:
            raise OAuth2Error("The ID token cannot be read.") from error
        if not self.nonce or claims.get("nonce") != self.nonce or not claims.get("sub") or "exp" not in claims:
            raise OAuth2Error("The ID token is not for this sign-in.")
        return claims


class ProviderUsers(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    """Whose account a provider's user is, or becomes."""

    def list_apps(self, request: HttpRequest, provider: str | None = None, client_id: str | None = None) -> list[Any]:
        """Those of the settings: none is kept in the database."""
        from allauth.socialaccount.adapter import _build_apps_from_settings

        found = _build_apps_from_settings(provider=provider, client_id=client_id)
        return [app for apps in found.values() for app in apps]

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False  # users are made in `pre_social_login`: no form asks for a name or an address

    def can_authenticate_by_email(self, login: SocialLogin, email: str) -> bool:
        return False

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Finds or makes the user, and gives it what its groups give. Raises ImmediateHttpResponse to refuse, which is
        recorded."""
        try:
            self._let_in(request, sociallogin)
        except _Refusal as refusal:  # here, and not where it arose: what was begun there is rolled back
            user = request.user if isinstance(request.user, User) else None
            openid_failure_record(refusal.provider_id, refusal.why, user)
            raise

    def on_authentication_error(self, request: HttpRequest, provider: Any, **facts: Any) -> None:
        """An answer that is none, on the way back of a confirmation: back to the page that asks for one."""
        state = (facts.get("extra_context") or {}).get("state") or {}
        if state.get("process") == confirming.PROCESS:
            why = "The provider did not sign you in, or its answer was not accepted."
            title = settings.YARDMASTER_OIDC[provider.app.provider_id].title
            raise ImmediateHttpResponse(refused_page(request, title, why, state, status=401))

    def _let_in(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        provider = settings.YARDMASTER_OIDC[sociallogin.account.provider]
        facts = sociallogin.account.extra_data["userinfo"]
        groups = groups_in(facts.get(provider.groups_claim))
        email = _confirmed(facts)
        state = sociallogin.state
        if provider.allowed_groups and not groups & set(provider.allowed_groups):
            raise _refused(request, provider, "Your groups there do not allow you to sign in here.", state)
        if provider.allowed_domains and email.rpartition("@")[2].lower() not in provider.allowed_domains:
            why = "The provider has not confirmed an e-mail address of yours that may sign in here."
            raise _refused(request, provider, why, state)
        if state.get("process") == confirming.PROCESS:
            if why := confirming.confirm_by_provider(request, provider, sociallogin):
                raise _refused(request, provider, why, state)
            groups_apply(sociallogin.user, provider, groups)
            raise ImmediateHttpResponse(confirming.go_on(request, state.get("next", "")))
        if state.get("process") == "connect":
            self._link(request, provider, sociallogin)
            raise ImmediateHttpResponse(redirect("linked_page"))
        if not sociallogin.is_existing:
            with transaction.atomic():
                user = self._found_or_made(request, provider, facts, email)
                sociallogin.connect(request, user)
                record(user, "openid.link", f"user:{user.pk}", provider=provider.id)
        if sociallogin.user.is_active:
            groups_apply(sociallogin.user, provider, groups)

    def _link(self, request: HttpRequest, provider: Any, sociallogin: SocialLogin) -> None:
        """Link the account of who is signed in. Not by allauth, which would write the user as it was read before the
        provider was asked: with a lock, a password or rights that have changed since."""
        with transaction.atomic():
            user = User.objects.select_for_update().filter(pk=str(request.user.pk), is_active=True).first()
            if user is None or (sociallogin.is_existing and sociallogin.user.pk != user.pk):
                raise _refused(request, provider, "Your account there is linked to another user here.")
            if not sociallogin.is_existing:
                sociallogin.account.user = user
                sociallogin.account.save()
                record(user, "openid.link", f"user:{user.pk}", provider=provider.id)

    def _found_or_made(self, request: HttpRequest, provider: Any, facts: dict[str, Any], email: str) -> User:
        people = User.objects.select_for_update().filter(is_service=False)
        same = people.filter(email__iexact=email).first() if email else None
        if same is not None and provider.trust_email and not same.is_staff and _has_proved_address(same):
            return same
        if same is not None:
            why = "An account here already has your address. Sign in to it, then link it on the page Linked sign-in."
            raise _refused(request, provider, why)
        if not provider.create_users:
            raise _refused(request, provider, "You have no account here. Ask an administrator.")
        try:
            return user_create(
                username=_free_name(facts, email), email=email, first_name=str(facts.get("given_name", ""))[:150],
                last_name=str(facts.get("family_name", ""))[:150],
            )  # fmt: skip
        except Invalid as problem:
            raise _refused(request, provider, problem.detail) from problem


def groups_apply(user: User, provider: Any, groups: frozenset[str]) -> None:
    """Give the user the teams of these groups, and the portal's administration where a group is named for it; take away
    what came from this provider and no longer does."""
    source = f"oidc:{provider.id}"
    with transaction.atomic():
        groups_claimed.send(User, user=user, source=source, groups=groups, mapping=provider.teams)
        if not provider.administrators and user.administrator_by != source:
            return
        is_one = bool(groups & set(provider.administrators))
        if is_one and not user.is_staff:
            user_change(user=user, actor=None, source=source, is_staff=True)
            User.objects.filter(pk=user.pk).update(administrator_by=source)
        elif not is_one and user.is_staff and user.administrator_by == source:
            try:
                user_change(user=user, actor=None, source=source, is_staff=False)
            except Conflict:  # the last administrator stays one
                return
            User.objects.filter(pk=user.pk).update(administrator_by="")
        user.refresh_from_db(fields=["is_staff", "administrator_by"])


def _has_proved_address(user: User) -> bool:
    """Whether the user has confirmed the address to this portal. Where it sends no mail, anyone may enter any address;
    and what another provider says of one is not trusted here."""
    return bool(settings.YARDMASTER_SENDS_MAIL) and not SocialAccount.objects.filter(user=user).exists()


def _confirmed(facts: dict[str, Any]) -> str:
    """The address, where the provider says that its user has proved to have it; else empty."""
    email = facts.get("email")
    return email if facts.get("email_verified") is True and isinstance(email, str) and len(email) <= 254 else ""


def _free_name(facts: dict[str, Any], email: str) -> str:
    """The name that the provider says, without what a name cannot hold; numbered where another has it."""
    said = next((facts[key] for key in ("preferred_username", "name", "nickname") if facts.get(key)), email)
    plain = _NO_NAME.sub("-", str(said).partition("@")[0])[:100].strip("-.") or "user"
    taken = {
        one.casefold() for one in User.objects.filter(username__istartswith=plain).values_list("username", flat=True)
    }
    names = (plain if n == 1 else f"{plain}-{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name.casefold() not in taken)


class _Refusal(ImmediateHttpResponse):  # type: ignore[misc]  # allauth has no types
    def __init__(self, page: HttpResponse, provider_id: str, why: str) -> None:
        super().__init__(page)
        self.provider_id, self.why = provider_id, why


def _refused(request: HttpRequest, provider: Any, why: str, state: Mapping[str, Any] = _LOGIN) -> _Refusal:
    return _Refusal(refused_page(request, provider.title, why, state, status=403), provider.id, why)


def refused_page(request: HttpRequest, title: str, why: str, state: Mapping[str, Any], *, status: int) -> HttpResponse:
    """Says why a way to the provider with this title ended; `state` is what was remembered of it."""
    heading, back, to = "Not signed in", reverse("account_login"), "Back to sign-in"
    if state.get("process") == confirming.PROCESS:
        query = urlencode({"next": state["next"]}) if state.get("next") else ""
        heading, back, to = "Not confirmed", f"{reverse('confirm_page')}?{query}", "Try again"
    context = {"title": title, "why": why, "heading": heading, "back": back, "to": to}
    return render(request, "accounts/openid_refused.html", context, status=status)
