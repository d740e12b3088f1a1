"""How often one may try to sign in, over the API and on the pages alike.

Counted per address, per account, and per pair of both. An account's count never locks its owner out: a user who signed
in from an address before, or has the cookie that signing in left in the browser, is counted apart. Refused attempts do
not count, so an address that is over its own limit adds nothing to any account's. The networks that an account has
signed in from are known in the database and exactly: a table of counters, whose collisions only make a limit stricter,
would here loosen one. Not here: where counts are kept (`apps.api.allowances`), and signing in itself.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from allauth.account.internal.stagekit import LOGIN_SESSION_KEY
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.core import signing
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone

from apps.accounts.models import KnownNetwork, User
from apps.accounts.selectors import LONGEST_NAME, users_reached_by
from apps.api.addresses import network_of
from apps.api.allowances import take
from apps.api.outside import problem_response
from apps.api.problems import answer_to
from apps.errors import TooMany
from yardmaster.allowances import Allowance, Taking, seconds_until_more

LASTS = timedelta(days=30)
MOST = 20
"""Networks of one account: the last ones count."""


def network_note(user: User, network: str, now: datetime) -> None:
    """Remember that the account has just signed in from here, and forget its oldest networks."""
    known = KnownNetwork.objects.filter(user=user)
    if known.filter(network=network).update(seen_at=now):
        return
    KnownNetwork.objects.bulk_create([KnownNetwork(user=user, network=network, seen_at=now)], ignore_conflicts=True)
    newest = known.order_by("-seen_at", "-pk").values_list("pk", flat=True)[:MOST]
    known.exclude(pk__in=list(newest)).delete()


def is_seen_from(network: str, account: str, now: datetime) -> bool:
    """Whether the account with this id signed in from this network lately. What is no id has never."""
    try:
        user_id = UUID(account)
    except ValueError:
        return False
    seen = KnownNetwork.objects.filter(user_id=user_id, network=network, seen_at__gt=now - LASTS)
    return seen.exists()


def networks_clean(now: datetime) -> None:
    """Forget networks that no longer count."""
    KnownNetwork.objects.filter(seen_at__lte=now - LASTS).delete()


PAGE_COST = 2
"""A guess on the page counts as two over the API: people mistype less often than programs try again."""
DEVICE_LASTS = 365 * 86_400
_SALT = "yardmaster.device"
_MINUTES, _HOUR = 300, 3_600
_DAY = 86_400
_SECOND_FACTOR = "/accounts/2fa/"
_RESET = "/accounts/password/reset/"
_BY_ADDRESS = ("/accounts/signup/", _RESET, "/accounts/confirm-email/", "/sign-in/", "/invitation/")
_BY_USER = (
    "/accounts/password/change/",
    "/accounts/password/set/",
    "/accounts/reauthenticate/",
    "/account/address/",
    "/account/tokens/",
    "/api/v1/tokens/",
)


@dataclass(frozen=True)
class Attempt:
    """One that may be made. To be notified when it succeeded."""

    address: str
    takings: Mapping[str, Sequence[Taking]]
    """By account. A name may reach several accounts, and it is a guess at each of them."""

    def succeeded(self, user: User) -> None:
        """It costs the account that signed in no guess then, and this address is known for it from now on. What it took
        from other accounts that the name reaches stays taken. Raises `TooMany` where the account signs in too often."""
        account = str(user.pk)
        if (over := take([Taking(_sign_ins(), account)]).over) is not None:
            raise too_many_attempts(over.allowance)
        take([Taking(one.allowance, one.who, -one.cost) for one in self.takings.get(account, ())])
        network_note(user, self.address, timezone.now())

    def was_not_made(self) -> None:
        """No password was looked at, so that it costs nothing."""
        take([Taking(one.allowance, one.who, -one.cost) for some in self.takings.values() for one in some])


def attempt_begin(request: HttpRequest, name: str, *, cost: int = 1) -> Attempt:
    """Count an attempt to sign in as `name` (a username or an e-mail address). Raises `TooMany`."""
    address = address_of(request)
    takings = {account: _takings(request, account, address, cost) for account in _accounts(name)}
    if min(take([Taking(_sign_ins(), account, 0) for account in takings]).used) >= _sign_ins().amount:
        raise too_many_attempts(_sign_ins())  # whatever the password is: none is hashed
    every = list(dict.fromkeys(one for some in takings.values() for one in some))
    if (over := take(every).over) is not None:
        raise too_many_attempts(over.allowance)
    return Attempt(address, takings)


def _takings(request: HttpRequest, account: str, address: str, cost: int) -> list[Taking]:
    pair = f"{account}\n{address}"
    if known := _known_as(request, account, address):
        return [Taking(_allowance("known", "PAIR", _MINUTES), f"{account}\n{known}", cost)]
    return [
        Taking(_allowance("address", "ADDRESS", 60), address, cost),
        Taking(_allowance("pair", "PAIR", _MINUTES), pair, cost),
        Taking(_allowance("account", "ACCOUNT", _MINUTES), account, cost),
    ]


def may_guess(user: User) -> bool:
    """Count a guess at the password of the user who is signed in."""
    return take([Taking(_allowance("open-session", "PAIR", _MINUTES), str(user.pk))]).over is None


def may_try_code(request: HttpRequest, user: User) -> bool:
    """Count a code of a program that asks to be signed in, which the user typed: by user and by address."""
    return take(_code_takings(request, user)).over is None


def code_was_right(request: HttpRequest, user: User) -> None:
    """It costs nothing then."""
    take([Taking(one.allowance, one.who, -one.cost) for one in _code_takings(request, user)])


def _code_takings(request: HttpRequest, user: User) -> list[Taking]:
    return [
        Taking(_allowance("code", "PAIR", _MINUTES), str(user.pk)),
        Taking(_allowance("code-address", "ADDRESS", 60), address_of(request)),
    ]


def device_ask_count(request: HttpRequest) -> None:
    """Count a program that asks to be signed in, by address. Raises `TooMany`."""
    if (over := take([Taking(_allowance("device", "ADDRESS", 60), address_of(request))]).over) is not None:
        raise too_many_attempts(over.allowance)


def passkey_challenge_count(request: HttpRequest) -> None:
    """Count a challenge for signing in with a passkey, by address. Raises `TooMany`."""
    if (over := take([Taking(_allowance("challenge", "ADDRESS", 60), address_of(request))]).over) is not None:
        raise too_many_attempts(over.allowance)


def openid_ask_count(request: HttpRequest) -> None:
    """Count a way to an OpenID provider, by address: each is a session, and may be a request to the provider. Raises
    `TooMany`."""
    if (over := take([Taking(_allowance("openid", "ADDRESS", 60), address_of(request))]).over) is not None:
        raise too_many_attempts(over.allowance)


def address_of(request: HttpRequest) -> str:
    """The address that a request is counted under; for IPv6 the network of 64 bits, since one host owns all of it."""
    text = str(request.META.get("REMOTE_ADDR", ""))
    if settings.SECURE_PROXY_SSL_HEADER:
        text = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or text
    return network_of(text)


class CountAttempts:
    """Middleware: counts what else can be guessed or filled (sign-up, links, resets, passwords of a session that was
    left open, new tokens), and leaves the cookie of a known device with the browser that signs in."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        user = getattr(request, "_signed_in_here", None)
        if user is not None and not _device_of(request, str(user.pk)):
            value = signing.dumps([str(user.pk), secrets.token_hex(8)], salt=_SALT)
            response.set_cookie(
                settings.YARDMASTER_DEVICE_COOKIE, value, max_age=DEVICE_LASTS, httponly=True, samesite="Lax",
                secure=settings.SESSION_COOKIE_SECURE,
            )  # fmt: skip
        return response

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        if request.method != "POST":
            return None
        over = take(_takings_of(request)).over
        return None if over is None else problem_response(request, answer_to(too_many_attempts(over.allowance)))


def _takings_of(request: HttpRequest) -> list[Taking]:
    if request.path.startswith(_SECOND_FACTOR):
        return _second_factor_takings(request)
    if request.path.startswith(_BY_ADDRESS):
        entrance = Taking(_allowance("entrance", "ADDRESS", 60), address_of(request), PAGE_COST)
        return [entrance, *(_mails(request) if request.path == _RESET else [])]
    if request.path.startswith(_BY_USER):
        who = str(request.user.pk) if request.user.is_authenticated else address_of(request)
        return [Taking(_allowance("own", "ACCOUNT", _MINUTES), who)]
    return []


def _second_factor_takings(request: HttpRequest) -> list[Taking]:
    """Codes and passkeys: by address, and by the account that is being signed in to, or is. Anyone who got this far
    knows the password, so that codes need a bound by the day as well. A known device is counted apart."""
    address = address_of(request)
    pending = request.session.get(LOGIN_SESSION_KEY) or {}
    signing_in = _plain_id(pending.get("user_pk", "")) if isinstance(pending, dict) else ""
    account = str(request.user.pk) if request.user.is_authenticated else signing_in
    if not account:  # a passkey instead of a password says itself whose it is, and cannot be guessed
        return [Taking(_allowance("factor-address", "ADDRESS", 60), address)]
    who = f"{account}\n{_device_of(request, account)}"
    return [
        Taking(_allowance("factor-address", "ADDRESS", 60), address),
        Taking(_allowance("factor", "PAIR", _MINUTES), who),
        Taking(_allowance("factor-day", "CODES", _DAY), who),
    ]


def _plain_id(text: object) -> str:
    """An id as users have it: allauth keeps those of the sign-in that is under way without hyphens."""
    try:
        return str(UUID(str(text)))
    except ValueError:
        return ""


def _mails(request: HttpRequest) -> list[Taking]:
    """Mails that reset a password, by the account that they go to. As with guesses, what strangers ask for leaves the
    owner's own share alone."""
    email = request.POST.get("email", "").strip()
    mails = _allowance("mail", "MAILS", _HOUR)
    found = [(one, _known_as(request, one, address_of(request))) for one in _accounts(email)] if email else []
    return [Taking(mails, f"{account}\n{known}" if known else account) for account, known in found]


@receiver(user_logged_in)
def _remember(request: HttpRequest | None, user: User, **facts: object) -> None:
    if request is not None:
        request._signed_in_here = user  # type: ignore[attr-defined]


def too_many_attempts(allowance: Allowance) -> TooMany:
    return TooMany("Too many attempts.", "throttled", wait=seconds_until_more(allowance, time.time()))


def _allowance(name: str, setting: str, seconds: int) -> Allowance:
    return Allowance(f"sign-in-{name}", settings.YARDMASTER_SIGN_IN_LIMITS[setting], seconds)


def _sign_ins() -> Allowance:
    """How often one account may sign in: each time leaves rows behind, and hashes a password."""
    return _allowance("made", "SUCCESSES", _MINUTES)


def _accounts(name: str) -> list[str]:
    """The accounts behind a name; a name that none has is one too, so that it is answered alike."""
    return [str(user.pk) for user in users_reached_by(name)] or [name.strip()[:LONGEST_NAME].casefold()]


def _known_as(request: HttpRequest, account: str, address: str) -> str:
    """The device or else the address that signed in to this account before; empty where neither did."""
    return _device_of(request, account) or (address if is_seen_from(address, account, timezone.now()) else "")


def _device_of(request: HttpRequest, account: str) -> str:
    """The device's own name, where it signed in to this account before."""
    value = request.COOKIES.get(settings.YARDMASTER_DEVICE_COOKIE, "")
    try:
        owner, device = signing.loads(value, salt=_SALT, max_age=DEVICE_LASTS) if value else ("", "")
    except (signing.BadSignature, ValueError, TypeError):
        return ""
    return str(device) if owner == account else ""
