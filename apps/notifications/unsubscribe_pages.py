"""The page behind a mail's link that switches its kind of notification off. Open: the link itself says who asks.

GET changes nothing, for mail scanners follow links. POST comes from the page's button, and from mail programs
(RFC 8058), which have no page of the portal: so no CSRF token is asked for, and no session is looked at.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from apps.accounts.attempts import address_of
from apps.api.allowances import take
from apps.errors import TooMany
from apps.notifications.unsubscribing import is_off, unsubscribe, unsubscription_of
from yardmaster.allowances import Allowance, Taking
from yardmaster.outgoing.notices import KINDS

PER_MINUTE, _MINUTE = 120, 60
"""Per address: mail providers send the requests of many people from few."""


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def unsubscribe_page(request: HttpRequest, token: str) -> HttpResponse:
    """What the link is for, with a button; POST switches it off. A link that does not count answers the same whatever
    is wrong with it."""
    asked = Taking(Allowance("unsubscribe", PER_MINUTE, _MINUTE), address_of(request))
    if take([asked]).over is not None:
        raise TooMany("Too many requests from this address.", "rate_limited", wait=_MINUTE)
    found = unsubscription_of(token)
    if found is None:
        return _answer(request, {"kinds": []}, 410)
    is_done = request.method == "POST"
    if is_done:
        unsubscribe(found)
    context = {"kinds": [KINDS[one] for one in found.kinds], "is_done": is_done, "was_off": is_done or is_off(found)}
    return _answer(request, context)


def _answer(request: HttpRequest, context: dict[str, object], status: int = 200) -> HttpResponse:
    response = render(request, "notifications/unsubscribe.html", context, status=status)
    response.headers["Referrer-Policy"] = "strict-origin"  # the address is the secret
    return response


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("unsubscribe/<str:token>/", unsubscribe_page, name="unsubscribe_page"),
]
