"""The page behind a one-time sign-in link. The other pages of signing in and out are allauth's."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts.services import sign_in_link_look, sign_in_link_use


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button, POST signs in: whoever merely fetches the link, such as a mail scanner, does not spend it."""
    now = timezone.now()
    if request.method == "POST":
        user = sign_in_link_use(token, now)
        if user is not None:
            login(request, user)  # gives the session a new key, and empties one that was somebody else's
            return redirect("home")
    link = sign_in_link_look(token, now)
    response = render(request, "accounts/sign_in_link.html", {"link": link}, status=200 if link else 410)
    response.headers["Referrer-Policy"] = "no-referrer"  # the address is the secret
    return response


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("sign-in/<str:token>/", sign_in_link, name="sign_in_link"),
]
