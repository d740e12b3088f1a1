"""`/device/`: where a user confirms or refuses a program that shows a code and asks to be signed in."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import device
from apps.accounts.attempts import code_was_right, may_try_code
from apps.accounts.selectors import user_of
from apps.accounts.services import token_lifetime_default

_WRONG = "No program is waiting with this code. Compare it with your terminal; a code is valid for 10 minutes."
_TOO_MANY = "Too many codes were tried. Wait a few minutes."


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def device_page(request: HttpRequest) -> HttpResponse:
    """Without a code its field, with one who asks. Only a POST decides: a link that is opened confirms nothing."""
    given = request.POST if request.method == "POST" else request.GET
    code = given.get("code", "")
    if not code.strip():
        return _shown(request)
    user = user_of(request)
    if not may_try_code(request, user):
        return _shown(request, status=429, code=code, trouble=_TOO_MANY)
    now, answer = timezone.now(), request.POST.get("answer")
    if answer in ("confirm", "refuse"):
        found = device.device_decide(user=user, code=code, confirm=answer == "confirm", now=now)
    else:
        found = device.device_find(code, now)
    if found is None:
        return _shown(request, status=404, code=code, trouble=_WRONG)
    code_was_right(request, user)
    return _shown(request, code=device.code_shown(code), asking=found, expires=now + token_lifetime_default())


def _shown(request: HttpRequest, *, status: int = 200, **context: object) -> HttpResponse:
    response = render(request, "accounts/device.html", context, status=status)
    response.headers["Referrer-Policy"] = "strict-origin"  # the address may hold the code
    return response


pages_urlpatterns: list[URLPattern | URLResolver] = [path("device/", device_page, name="device_page")]
