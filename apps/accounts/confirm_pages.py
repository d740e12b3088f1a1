"""The page on which an account without a password confirms that it is its user, by signing in again at its provider.

Not here: what counts as confirmed (`confirming`), and the way back from the provider (`openid_pages`).
"""

from __future__ import annotations

from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from allauth.account.utils import get_next_redirect_url
from allauth.account.views import PasswordSetView
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.attempts import openid_ask_count
from apps.accounts.confirming import (
    PROCESS,
    confirm_first,
    is_confirmed,
    providers_of,
    signs_in_elsewhere,
    state_of_confirmation,
)
from apps.accounts.openid_pages import leave_page, to_provider
from apps.accounts.selectors import user_of


@login_required
@never_cache
@require_http_methods(["GET", "HEAD"])
def confirm(request: HttpRequest) -> HttpResponse:
    """The providers to sign in at again; for an account without any, what else to do."""
    user, next_url = user_of(request), get_next_redirect_url(request) or ""
    if not signs_in_elsewhere(user):
        return _to_own_way(request, next_url)
    return render(request, "accounts/confirm.html", {"providers": providers_of(user), "next": next_url})


@login_required
@require_POST
def confirm_begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """To the provider, which is to ask its user again."""
    user, next_url = user_of(request), get_next_redirect_url(request) or ""
    if not signs_in_elsewhere(user):
        return _to_own_way(request, next_url)
    if provider_id not in {one.id for one in providers_of(user)}:
        raise Http404
    openid_ask_count(request)
    answer = to_provider(
        request, provider_id, PROCESS, next_url, ask={"prompt": "login", "max_age": "0"}, **state_of_confirmation(user)
    )
    return leave_page(request, answer)


def _to_own_way(request: HttpRequest, next_url: str) -> HttpResponse:
    first = get_adapter().get_reauthentication_methods(request.user)[0]["url"]
    return redirect(f"{first}?{urlencode({'next': next_url})}" if next_url else first)


class PasswordSet(PasswordSetView):  # type: ignore[misc]  # allauth has no types
    """A first password is a new way in, so that it is asked for as changing one is."""

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        is_first = request.user.is_authenticated and not request.user.has_usable_password()
        if is_first and not is_confirmed(request):
            return confirm_first(request)
        answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return answer


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("accounts/reauthenticate/provider/", confirm, name="confirm_page"),
    path("accounts/reauthenticate/provider/<str:provider_id>/", confirm_begin, name="confirm_begin"),
    path("accounts/password/set/", PasswordSet.as_view(), name="password_set_page"),
]
