"""The way to an OpenID provider and back. They stand before allauth's own addresses of the same paths."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.models import SocialAccount, SocialApp
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.generic import RedirectView
from requests import RequestException

from apps.accounts.attempts import openid_ask_count
from apps.accounts.openid import OpenIdAdapter, groups_apply, refused_page
from apps.accounts.selectors import user_of
from apps.audit.services import record
from apps.errors import Conflict, words_of

_NOTHING: Mapping[str, str] = MappingProxyType({})


@never_cache
@require_GET
def openid_login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider. Back it leads to `next`, where that is an address of the portal. Raises `TooMany`."""
    openid_ask_count(request)
    return to_provider(request, provider_id, "login", get_next_redirect_url(request))


@login_required
@require_POST
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth has no types
def openid_link(request: HttpRequest, provider_id: str) -> HttpResponse:
    """The same for a user who is signed in, and links the account."""
    return leave_page(request, to_provider(request, provider_id, "connect", "/account/linked/"))


def leave_page(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """What a form that leads to the provider gets. Not a redirect: `form-action` lets a form lead to the portal
    alone."""
    if answer.status_code != 302:
        return answer
    page = render(request, "accounts/openid_leave.html", {"url": answer.headers["Location"]})
    page.headers["Refresh"] = f"0; url={answer.headers['Location']}"
    return page


def to_provider(
    request: HttpRequest,
    provider_id: str,
    process: str,
    next_url: str | None,
    *,
    ask: Mapping[str, str] = _NOTHING,
    **kept: Any,
) -> HttpResponse:
    """To the provider, with a new state and nonce. `ask`: more that it is asked; `kept` is remembered in the session
    with the state. Raises Http404 for one that there is not."""
    _known(provider_id)
    provider, nonce = OpenIdAdapter(request, provider_id).get_provider(), secrets.token_urlsafe(24)
    provider.oauth2_adapter_class = OpenIdAdapter  # it knows the address to come back to
    try:
        answer: HttpResponse = provider.redirect(
            request, process, next_url, auth_params={**ask, "nonce": nonce}, nonce=nonce, **kept
        )
    except (RequestException, OAuth2Error, KeyError, ValueError):
        title = settings.YARDMASTER_OIDC[provider_id].title
        why = "It does not answer. Try again in a minute, or sign in in another way."
        return refused_page(request, title, why, {"process": process, "next": next_url}, status=502)
    return answer


class _Callback(OAuth2CallbackView):  # type: ignore[misc]  # allauth has no types
    def _get_state(self, request: HttpRequest, provider: Any) -> tuple[Any, Any]:
        state, answer = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, answer


@never_cache
@require_GET
def openid_callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Back from the provider."""
    _known(provider_id)
    try:
        answer: HttpResponse = _Callback.adapter_view(OpenIdAdapter(request, provider_id))(request)
    except SocialApp.DoesNotExist as error:
        raise Http404 from error
    return answer


@login_required
@require_http_methods(["GET", "HEAD"])
def linked(request: HttpRequest) -> HttpResponse:
    """With which providers one can sign in."""
    mine = {one.provider: one for one in SocialAccount.objects.filter(user=user_of(request))}
    rows = [(one, mine.get(one.id)) for one in settings.YARDMASTER_OIDC.values()]
    return render(request, "accounts/linked.html", {"rows": rows})


@login_required
@require_POST
@reauthentication_required  # type: ignore[untyped-decorator]  # allauth has no types
def openid_unlink(request: HttpRequest, provider_id: str) -> HttpResponse:
    """End the link. Not the last way in of a user without a password."""
    user = user_of(request)
    own = SocialAccount.objects.filter(user=user)
    try:
        with transaction.atomic():
            if not user.has_usable_password() and own.exclude(provider=provider_id).first() is None:
                raise Conflict("This is your only way to sign in.", remedy="Set a password first.")
            if own.filter(provider=provider_id).delete()[0]:
                record(user, "openid.unlink", f"user:{user.pk}", provider=provider_id)
                if provider_id in settings.YARDMASTER_OIDC:  # nothing of it would follow the groups from now on
                    groups_apply(user, settings.YARDMASTER_OIDC[provider_id], frozenset())
    except Conflict as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, "The link was removed.")
    return redirect("linked_page")


def _known(provider_id: str) -> None:
    if provider_id not in settings.YARDMASTER_OIDC:
        raise Http404


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/oidc/<str:provider_id>/login/", openid_login, name="openid_login"),
    path("accounts/oidc/<str:provider_id>/link/", openid_link, name="openid_link"),
    path("accounts/oidc/<str:provider_id>/unlink/", openid_unlink, name="openid_unlink"),
    path("accounts/oidc/<str:provider_id>/login/callback/", openid_callback, name="openid_callback"),
    path("account/linked/", linked, name="linked_page"),
    # In the place of allauth's page, which would end a link without a record.
    path("accounts/3rdparty/", RedirectView.as_view(pattern_name="linked_page")),
]
