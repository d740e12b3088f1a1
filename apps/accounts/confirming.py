"""Confirming that it is the user, before a sensitive change: which ways an account has, and what counts as confirmed.

With a password or a second factor, allauth asks for these. An account with neither signs in again at a provider that it
is linked with; or it has just come in by a one-time link. Not here: whether a provider's answer is fresh
(`yardmaster.fresh_sign_in`), the pages (`confirm_pages`).
"""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.login import get_authentication_records, record_authentication
from allauth.account.internal.flows.reauthentication import (
    STATE_SESSION_KEY,
    is_reauthentication_required,
    resume_request,
)
from allauth.core.exceptions import ReauthenticationRequired
from allauth.socialaccount.models import SocialAccount, SocialLogin
from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.second_factor import has_second_factor
from apps.audit.services import record
from yardmaster.fresh_sign_in import doubt

PROCESS = "confirm"
"""Of what allauth remembers of a way to a provider."""
LASTS = 300
"""Seconds for which a confirmation counts: as long as one by password (`ACCOUNT_REAUTHENTICATION_TIMEOUT`)."""
LINK_LASTS = 900
"""Seconds for which having come in by a one-time link counts as one: a new user sets a password then."""


def signs_in_elsewhere(user: User) -> bool:
    """Whether the account has nothing of its own to confirm with: no password, and no second factor."""
    return not user.has_usable_password() and not has_second_factor(user)


def providers_of(user: User) -> list[Any]:
    """Those that the account is linked with, and that the portal still has."""
    linked = set(SocialAccount.objects.filter(user=user).values_list("provider", flat=True))
    return [one for one in settings.YARDMASTER_OIDC.values() if one.id in linked]


def is_confirmed(request: HttpRequest) -> bool:
    """Whether the user who is signed in has lately confirmed that it is him."""
    try:
        return not is_reauthentication_required(request, app="")
    except ReauthenticationRequired:
        return False


def confirm_first(request: HttpRequest) -> HttpResponse:
    """To the page that asks for a confirmation, and back to this one. What was sent is not kept: it may be a password,
    which a session must not hold. Elsewhere raise allauth's `ReauthenticationRequired`, which keeps it."""
    first = get_adapter().get_reauthentication_methods(request.user)[0]["url"]
    return redirect(f"{first}?{urlencode({'next': request.path})}")


def refuse_unconfirmed(request: HttpRequest) -> None:
    """Raises ReauthenticationRequired for an account with nothing of its own to confirm with, unless it has confirmed
    lately: allauth would let it pass."""
    user = request.user
    if isinstance(user, User) and signs_in_elsewhere(user) and not _has_confirmed(request, user):
        raise ReauthenticationRequired


def _has_confirmed(request: HttpRequest, user: User) -> bool:
    now = time.time()
    for one in get_authentication_records(request, user):
        lasts = LASTS if one.get("reauthenticated") else LINK_LASTS if one.get("method") == "link" else 0
        if 0 <= now - one["at"] < lasts:
            return True
    return False


def state_of_confirmation(user: User) -> dict[str, Any]:
    """What is remembered in the session, with the state and the nonce of this one way to the provider."""
    return {"confirms": str(user.pk), "asked_at": time.time()}


def confirm_by_provider(request: HttpRequest, provider: Any, login: SocialLogin) -> str:
    """Note that the user has confirmed, by this answer of the provider; else why it is none, in a sentence. The answer
    has been checked: it is this provider's, for this browser and this way there."""
    user, state = request.user, login.state
    if not isinstance(user, User) or state.get("confirms") != str(user.pk):
        return "Meanwhile you signed in to another account of this portal."
    if not login.is_existing or login.user.pk != user.pk:
        return "You signed in there as a different user than the one that is linked with your account here."
    said = login.account.extra_data["userinfo"].get("auth_time")
    if why := doubt(said, asked_at=state["asked_at"], now=time.time(), is_sent=provider.sends_auth_time):
        return why
    record_authentication(request, user, "socialaccount", reauthenticated=True, provider=provider.id)
    record(user, "openid.confirm", f"user:{user.pk}", provider=provider.id)
    return ""


def waiting_address(request: HttpRequest) -> str:
    """The e-mail address that the account gets with the confirmation; empty where another change waits. The page says
    so: someone else may have entered it, in a session that was left open."""
    kept = request.session.get(STATE_SESSION_KEY) or {}
    try:
        waiting = json.loads(kept.get("request", "null")) or {}
    except (AttributeError, ValueError):
        return ""
    is_address = waiting.get("path") == reverse("account_address") == request.GET.get("next")
    return QueryDict(waiting.get("POST", "")).get("email", "") if is_address else ""


def go_on(request: HttpRequest, next_url: str) -> HttpResponse:
    """To where the user was, with what was sent there."""
    request.GET = QueryDict(urlencode({"next": next_url}))  # allauth reads it there
    answer: HttpResponse | None = resume_request(request)
    return answer or redirect(reverse("account_page"))
